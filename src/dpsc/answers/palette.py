"""The colours of every figure: Okabe and Ito's, told apart with any colour vision, and in grey by lightness."""

BLACK, BLUE, SKY, GREEN = "#000000", "#0072B2", "#56B4E9", "#009E73"
ORANGE, VERMILION, PURPLE = "#E69F00", "#D55E00", "#CC79A7"
GREY = "#777777"  # rules, yardsticks, small print
GRID = "#e6e6e6"
