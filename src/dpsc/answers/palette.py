"""The colours of every figure, by Okabe and Ito: they differ with any colour vision, and in grey by lightness."""

BLACK, BLUE, SKY, GREEN = "#000000", "#0072B2", "#56B4E9", "#009E73"
ORANGE, VERMILION, PURPLE = "#E69F00", "#D55E00", "#CC79A7"
GREY = "#777777"  # reference lines and small text
GRID = "#e6e6e6"
