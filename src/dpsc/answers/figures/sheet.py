"""The sheet that a figure is drawn on: colours, axes of periods, a title that is a question, a legend, a caption."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from dpsc.errors import ParameterError
from dpsc.periods.dates import period_name
from dpsc.types import Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


BLACK, BLUE, SKY, GREEN = "#000000", "#0072B2", "#56B4E9", "#009E73"
ORANGE, VERMILION, PURPLE = "#E69F00", "#D55E00", "#CC79A7"
GREY = "#777777"  # reference lines and small text
GRID = "#e6e6e6"


_SAFETY = 0.96  # small letters are drawn a little wider than they are


@lru_cache(maxsize=2**14)  # the same words stand on many figures
def width(text: str, size: float, weight: str = "normal") -> float:
    """Return the width of a line in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]) / 72


def wrapped(text: str, inches: float, size: float, weight: str = "normal") -> str:
    """Break a text into lines that fit; a word that is too long is broken, too."""
    inches *= _SAFETY
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            longer = f"{line} {word}".strip()
            if width(longer, size, weight) <= inches:
                line = longer
                continue
            lines += [line] if line else []
            *full, line = _pieces(word, inches, size, weight)
            lines += full
        lines.append(line)
    return "\n".join(lines)


def _pieces(word: str, inches: float, size: float, weight: str) -> list[str]:
    """Break a word that is too long, letter by letter, in a time that grows with its length."""
    if width(word, size, weight) <= inches:
        return [word]
    pieces, used = [""], 0.0
    for letter in word:
        wide = width(letter, size, weight)
        if pieces[-1] and used + wide > inches:
            pieces.append("")
            used = 0.0
        pieces[-1] += letter
        used += wide
    return pieces


WIDTH = 6.0  # inches: letters of 9 points can still be read when the figure is 420 pixels wide
TITLE, LABEL, SMALL = 11.0, 9.5, 8.5  # sizes of letters, in points
_MARGIN = 0.08  # inches around everything
_LINE = 1.3  # the height of a line, in letters


@dataclass(frozen=True)
class Sheet:
    """Where to draw: on a new figure, with legend and caption below, or on axes that somebody has.

    Attributes
    ----------
    ax : Axes, optional
        Draw here instead of on a new figure.
    title : str, optional
        Instead of the usual one.
    figsize : pair of float, optional
        Of the new figure, in inches; without a height (None) it is as high as it needs to be.
    shown : bool
        Make the new figure through pyplot if this is a notebook, which then shows it.
    on_page : bool
        The page around the figure says what holds of the whole answer: captions leave it out.
    """

    ax: Axes | None = None
    title: str | None = None
    figsize: tuple[float, float | None] | None = None
    shown: bool = False
    on_page: bool = False

    @property
    def width(self) -> float:
        """The width of the figure in inches."""
        return figure_of(self.ax).get_figwidth() if self.ax is not None else (self.figsize or (WIDTH,))[0]

    def axes(self, height: float) -> Axes:
        """Return the axes to draw on; a new figure has this height in inches if none was asked for."""
        return self.ax if self.ax is not None else self.figure(height).subplots()

    def figure(self, height: float) -> Figure:
        """Return a new figure; refuse where axes were given."""
        if self.ax is not None:
            raise ParameterError("this figure has several panels and needs a figure of its own: leave out ax.")
        high = None if self.figsize is None else self.figsize[1]
        size = (self.width, height if high is None else high)
        if self.shown and _in_a_notebook():
            from matplotlib import pyplot

            figure = pyplot.figure(figsize=size)
        else:
            from matplotlib.figure import Figure

            figure = Figure(figsize=size)
        figure.set_layout_engine("constrained", h_pad=0.06, w_pad=0.06)
        return figure

    def finish(self, axes: Axes, usual: str, private: bool, caption: str, *, above: float = 6.0) -> Axes:
        """Write the title over the axes, and legend and caption below; given axes have their legend inside.

        ``above`` is what is between axes and title, in points.
        """
        self.entitle(axes, usual, private, above)
        handles, labels = axes.get_legend_handles_labels()
        if self.ax is None:
            self.below(axes, handles, labels, caption)
        elif handles:
            broken = [wrapped(label, 0.6 * inches_wide(axes), SMALL - 1) for label in labels]
            axes.legend(handles, broken, fontsize=SMALL - 1, framealpha=0.6, edgecolor="none")
        return axes

    def entitle(self, axes: Axes, usual: str, private: bool, above: float = 6.0) -> None:
        """Write the title over the axes, broken where they end."""
        figure = figure_of(axes)
        boxes = [(one.bbox, one.get_tightbbox()) for one in figure.axes]
        beside = max(inner.x0 - outer.x0 for inner, outer in boxes if outer is not None) / figure.dpi
        room = inches_wide(axes) if self.ax is not None else figure.get_figwidth() - beside - 3 * _MARGIN
        text = wrapped(self.words(usual, private), room, TITLE, "bold")
        axes.set_title(text, loc="left", fontsize=TITLE, fontweight="bold", pad=above, parse_math=False)

    def words(self, usual: str, private: bool) -> str:
        """Return the title, the usual one if none was asked for; it says NOT PRIVATE where there is no guarantee."""
        title = usual if self.title is None else self.title
        return title if private else f"{title}\nNOT PRIVATE".strip()

    def below(self, axes: Axes, handles: Sequence[Any], labels: Sequence[str], caption: str) -> None:
        """Write the legend below the axes and the caption below it, and make room for both.

        Constrained layout keeps room for one thing at the foot of a figure, so that both are one: the caption is the
        legend's title, which is moved from above its entries to below them.
        """
        if not labels and not caption:
            return
        figure, wide = figure_of(axes), self.width - 2 * _MARGIN
        legend = figure.legend(
            handles,
            [wrapped(label, wide - 0.6, LABEL) for label in labels],
            loc="outside lower left",
            ncols=_columns(labels, wide),
            frameon=False,
            fontsize=LABEL,
            columnspacing=1.4,
            borderpad=0,
            handler_map=_side_by_side(),
            title=wrapped(caption, wide, SMALL),
            title_fontsize=SMALL,
            alignment="left",
        )
        legend.get_title().set(color=GREY, linespacing=_LINE, parse_math=False, gid="caption")
        box: Any = legend.get_children()[0]
        box.get_children().reverse()
        box.sep = 7  # points between legend and caption
        if self.figsize is None or self.figsize[1] is None:
            foot = legend.get_window_extent().height / figure.dpi + 2 * _MARGIN
            figure.set_size_inches(self.width, figure.get_figheight() + foot)


def plain(axes: Axes, *, grid: str = "y") -> None:
    """Take away what no reader needs, and draw a faint grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color=GRID, lw=0.6)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=LABEL, color=GREY)


def label_y(axes: Axes, text: str) -> None:
    """Write the label of the y axis, broken where the axis ends."""
    high = figure_of(axes).get_figheight() * axes.get_position().height
    axes.set_ylabel(wrapped(text, max(1.0, 0.85 * high), LABEL), fontsize=LABEL, parse_math=False)


def label_x(axes: Axes, text: str, less: float = 0.0) -> None:
    """Write the label of the x axis, broken where the axis ends, which is some inches shorter than usual."""
    axes.set_xlabel(wrapped(text, inches_wide(axes) - less, LABEL), fontsize=LABEL, parse_math=False)


def inches_wide(axes: Axes) -> float:
    """Return the width of axes, about: the layout is not made yet."""
    return float(figure_of(axes).get_figwidth() * axes.get_position().width)


def figure_of(axes: Axes) -> Figure:
    """Return the whole figure that axes are on."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def _columns(labels: Sequence[str], room: float) -> int:
    """Return the largest number of columns that fit."""
    for columns in range(len(labels), 1, -1):
        parts = [labels[k::columns] for k in range(columns)]  # not the legend's order, but no column is wider
        if sum(max(width(label, LABEL) for label in part) + 0.6 for part in parts) <= room:
            return columns
    return 1


def _side_by_side() -> dict[type, Any]:
    """Return how a legend draws an entry that stands for the same thing in two colours."""
    from matplotlib.legend_handler import HandlerTuple

    return {tuple: HandlerTuple(ndivide=None, pad=0.0)}


def _in_a_notebook() -> bool:
    """Whether this runs in a kernel, which shows figures that were made through pyplot."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


_Side = Literal["left", "center", "right"]
_SIDES: tuple[_Side, ...] = ("left", "center", "right")
_STEPS = {  # between periods that are written, by what they are
    "M": (1, 2, 3, 6, 12, 24, 36, 60, 120, 240),
    "Q": (1, 2, 4, 8, 12, 20, 40, 80),
    "W": (1, 2, 4, 13, 26, 52, 104, 260, 520),
    "D": (1, 7, 14, 28, 56, 91, 182, 364, 728),
    "": (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000),
}


_IN_YEARS = ("M", "Q", "Y", "A")  # frequencies of which a year has a whole number


@dataclass(frozen=True, eq=False)
class PeriodAxis:
    """An axis of periods: numbers and dates where they are, labels one after the other."""

    index: Times

    @property
    def values(self) -> np.ndarray[Any, Any]:
        """Where the periods are: restyle figures with these numbers or dates."""
        index: Any = self.index
        if isinstance(index, pd.PeriodIndex):
            return np.asarray(index.to_timestamp())
        if isinstance(index, pd.DatetimeIndex):
            return np.asarray(index.tz_localize(None))
        return index.to_numpy() if pd.api.types.is_numeric_dtype(index) else np.arange(len(index))

    def at(self, periods: Times) -> np.ndarray[Any, Any]:
        """Return where some of the periods are."""
        return np.asarray(self.values[self.index.get_indexer(periods)])

    def before(self, position: int) -> Any:
        """Return the point halfway between a period and the one before it."""
        values = self.values
        return values[position - 1] + (values[position] - values[position - 1]) / 2

    def write(self, axes: Axes, below: list[str] | None = None) -> None:
        """Write as many periods under the axis as fit; ``below`` has a second line for each."""
        names = [period_name(label) for label in self.index]
        longest = max(width(name, LABEL) for name in {names[0], names[-1], max(names, key=len)})
        shown = self._shown(max(2, int(inches_wide(axes) / (longest + 0.12))))
        texts = [names[k] if below is None else f"{names[k]}\n{below[k]}" for k in shown]
        axes.set_xticks(self.values[shown], texts, fontsize=LABEL, parse_math=False)

    def _shown(self, most: int) -> list[int]:
        """Return the positions of at most so many periods: beginnings of years or round numbers if possible."""
        index: Any = self.index
        calendar, count = isinstance(index, pd.PeriodIndex), len(index)
        frequency = index.freqstr[:1] if calendar else ""
        steps = _STEPS.get(frequency, _STEPS[""])
        step = next((s for s in steps if -(-count // s) <= most), count)
        if frequency in _IN_YEARS or pd.api.types.is_integer_dtype(index):
            round_ones = np.asarray(index.asi8 if calendar else index) % step == 0
            if 2 <= round_ones.sum() <= most:
                return [int(k) for k in np.flatnonzero(round_ones)]
        return list(range(0, count, step))

    def mark(self, axes: Axes, position: int, *, named: bool) -> None:
        """Draw a line at the intervention and, over the axes, where it hides nothing, write what it is."""
        at = self.before(position)
        axes.axvline(at, color=GREY, lw=1.2, ls=(0, (1, 1.5)), gid="intervention")
        if named:
            share = position / len(self.index)
            side = _SIDES[0 if share < 0.35 else 2 if share > 0.65 else 1]
            name_line(axes, at, f"intervention, {period_name(self.index[position])}", side)


def name_line(axes: Axes, at: Any, text: str, side: _Side = "center") -> None:
    """Write what a vertical line is, over the axes, where it hides nothing."""
    from matplotlib.transforms import ScaledTranslation

    figure: Any = axes.get_figure(root=True)
    place = axes.get_xaxis_transform() + ScaledTranslation(0, 2 / 72, figure.dpi_scale_trans)
    axes.text(at, 1, text, transform=place, ha=side, va="bottom", fontsize=SMALL, color=GREY, parse_math=False)
