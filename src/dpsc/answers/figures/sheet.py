"""The sheet that every figure is drawn on: its size, letters, lines, colours, and what stands around the axes."""

from __future__ import annotations

import math
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
GREY = "#5b636d"  # reference lines and small text
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


WIDE, NARROW = 7.2, 4.0  # inches: a column of text on a desk and on a phone; letters have one size on both
TITLE, LABEL, SMALL = 12.0, 9.5, 8.5  # sizes of letters, in points
LINE, THIN, DOTTED = 1.8, 0.9, (0, (1, 1.5))  # points: lines of data, and lines to compare with
_LEFT, _ABOVE, _ROW = 0.4, 0.12, 1.35 / 72  # inches: beside axes at the least, over them, a row for each point


_KEY: dict[str, Any] = {"loc": "upper left", "frameon": False, "fontsize": LABEL, "handlelength": 1.6}
_KEY |= {"handletextpad": 0.5, "columnspacing": 1.2, "borderpad": 0, "borderaxespad": 0}


@dataclass(frozen=True)
class Sheet:
    """The canvas of every figure: from top to bottom title, what is measured, key, axes, small print.

    Attributes
    ----------
    ax : Axes, optional
        Draw here instead of on a new figure.
    title : str, optional
        Instead of the usual one. An empty one leaves out the small print, too: a page around the figure says both.
    figsize : pair of float, optional
        Of the new figure, in inches; without a height (None) it is as high as it needs to be.
    shown : bool
        Make the new figure through pyplot if this is a notebook, which then shows it.
    """

    ax: Axes | None = None
    title: str | None = None
    figsize: tuple[float, float | None] | None = None
    shown: bool = False

    @property
    def width(self) -> float:
        """The width of the figure in inches."""
        return figure_of(self.ax).get_figwidth() if self.ax is not None else (self.figsize or (WIDE,))[0]

    def axes(self, height: float) -> Axes:
        """Return the axes to draw on; new ones are so many inches high."""
        return self.ax if self.ax is not None else self.figure(height).subplots()

    def figure(self, height: float) -> Figure:
        """Return a new figure, for axes of this height in inches; refuse where axes were given."""
        if self.ax is not None:
            raise ParameterError("this figure has several panels and needs a figure of its own: leave out ax.")
        if self.shown and _in_a_notebook():
            from matplotlib import pyplot

            figure = pyplot.figure(figsize=(self.width, height))
        else:
            from matplotlib.figure import Figure

            figure = Figure(figsize=(self.width, height))
        figure.subplots_adjust(left=_LEFT / self.width, right=1 - 0.1 / self.width)  # about
        return figure

    def finish(
        self,
        axes: Axes,
        usual: str,
        mark: str,
        *,
        measured: str,
        along: str = "",
        small_print: str = "",
        grid: Literal["x", "y"] = "y",
        above: float = 0.0,
        between: tuple[float, float] = (0.0, 0.0),
    ) -> Axes:
        """Write what is around the axes, and put everything in its place.

        Of several axes, the first is given. ``measured`` is what the values are, in their units; they are read from the
        axis ``grid``. ``along`` is what the other one is. ``mark`` stands under the title of what has no guarantee. In
        inches: ``above`` is for what stands over the axes, and ``between`` is between columns and between rows of
        several.
        """
        title = usual if self.title is None else self.title
        title = f"{title}\n{mark}".strip()
        figure = figure_of(axes)
        panels = [axes] if self.ax is not None else [panel for panel in figure.axes if panel.get_visible()]
        key: dict[str, Any] = {}
        for panel in panels:
            _plain(panel, grid, SMALL if len(panels) > 2 else LABEL)
            for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
                key.setdefault(label, handle)
        panels[-1].set_xlabel(wrapped(along, inches_wide(axes), LABEL), fontsize=LABEL, parse_math=False)
        if self.ax is not None:
            _on_given(axes, title, measured, key, grid)
            return axes
        edge = 0.02 if self.title == "" else 0.12  # a page has margins of its own
        room = self.width - 2 * edge

        def written(text: str, size: float, gid: str, **style: Any) -> tuple[Any, float]:
            text = wrapped(text, room, size, style.get("fontweight", "normal"))
            drawn = figure.text(0, 0, text, fontsize=size, gid=gid, linespacing=1.2, parse_math=False, **style)
            return drawn, (text.count("\n") + 1) * size * _ROW if text else 0.0

        heading, high = written(title, TITLE, "title", fontweight="bold", va="top")
        what, row = written(measured, LABEL, "measured", color=GREY, va="top")
        small_print = "" if self.title == "" else small_print
        small, foot = written(small_print, SMALL - 1, "small print", color=GREY, va="bottom")
        legend = figure.legend(
            key.values(), [wrapped(label, room - 0.5, LABEL) for label in key], ncols=_columns(list(key), room), **_KEY
        )
        tops = [edge, edge + high, edge + high + row + 0.03]
        top = tops[2] + (legend.get_window_extent().height / figure.dpi if key else 0.0) + above + _ABOVE
        bottom = edge + foot + (0.08 if foot else 0.0) + _below(panels[-1])
        beside = 0.1 + max(_widest(panel.get_yticklabels()) for panel in panels)
        left, apart = max(_LEFT, edge + beside), (between[0] + beside, between[1])
        right = max(edge + 0.05, _beyond(panels[-1], self.width - left))
        whole = (self.figsize or (0, None))[1] or top + figure.get_figheight() + bottom
        figure.set_size_inches(self.width, whole)
        down, across = axes.get_subplotspec().get_gridspec().get_geometry()  # type: ignore[union-attr]
        figure.subplots_adjust(
            left=left / self.width,
            right=1 - right / self.width,
            top=1 - top / whole,
            bottom=bottom / whole,
            wspace=across * apart[0] / (self.width - left - right - (across - 1) * apart[0]),
            hspace=down * apart[1] / (whole - top - bottom - (down - 1) * apart[1]),
        )
        x = edge / self.width
        for text, y in ((heading, 1 - tops[0] / whole), (what, 1 - tops[1] / whole), (small, edge / whole)):
            text.set_position((x, y))
        legend.set_bbox_to_anchor((x, 1 - tops[2] / whole), figure.transFigure)
        return axes


def _on_given(axes: Axes, title: str, measured: str, key: dict[str, Any], grid: str) -> None:
    """Write title and labels of axes that somebody has, and the key inside them."""
    wide, high = inches_wide(axes), figure_of(axes).get_figheight() * axes.get_position().height
    axes.set_title(wrapped(title, wide, TITLE, "bold"), loc="left", fontsize=TITLE, fontweight="bold", parse_math=False)
    write, room = (axes.set_ylabel, 0.85 * high) if grid == "y" else (axes.set_xlabel, wide)
    write(wrapped(measured, max(1.0, room), LABEL), fontsize=LABEL, parse_math=False)
    if key:
        broken = [wrapped(label, 0.6 * wide, SMALL - 1) for label in key]
        axes.legend(key.values(), broken, fontsize=SMALL - 1, framealpha=0.6, edgecolor="none")


def _plain(axes: Axes, grid: Literal["x", "y"], size: float) -> None:
    """Take away what no reader needs; draw a faint grid and round numbers with the same digits."""
    from matplotlib.ticker import AutoLocator, FuncFormatter, MaxNLocator

    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set(visible=grid == "y", color=GREY, linewidth=THIN)
    axes.grid(axis=grid, color=GRID, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=size, color=GREY, length=0)
    axes.tick_params(axis="x", length=0 if grid == "x" else 3)
    for axis, most in ((axes.xaxis, 1 + int(inches_wide(axes))), (axes.yaxis, 6)):
        if isinstance(axis.get_major_locator(), AutoLocator):
            axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
            axis.set_major_formatter(FuncFormatter(lambda value, _, of=axis: _digits(value, of.get_majorticklocs())))


def _digits(value: float, ticks: np.ndarray[Any, Any]) -> str:
    """Write a number with as many digits as tell ticks apart; very large numbers and very small steps as in 2e+59."""
    step, largest = np.diff(ticks).min() if len(ticks) > 1 else abs(value), np.abs(ticks).max(initial=abs(value))
    if largest >= 1e13 or 0 < step < 1e-9:
        digits = 1 + math.floor(math.log10(largest)) - math.floor(math.log10(step))
        return f"{value:.{digits}g}".replace("-", "−")
    decimals = len(f"{step:.12f}".rstrip("0").partition(".")[2])
    return f"{value:,.{decimals}f}".replace("-", "−")


def _widest(labels: Sequence[Any]) -> float:
    """Return the width of the widest line of labels."""
    lines = [(line, label.get_fontsize()) for label in labels for line in label.get_text().split("\n")]
    return max((width(*line) for line in lines), default=0.0) / _SAFETY


def _below(axes: Axes) -> float:
    """Return the inches that the labels below axes take."""
    rows = 1 + max((label.get_text().count("\n") for label in axes.get_xticklabels()), default=0)
    text = axes.get_xlabel()
    return 0.1 + (rows + (text.count("\n") + 1 if text else 0)) * LABEL * _ROW


def _beyond(axes: Axes, wide: float) -> float:
    """Return the inches by which a label would stand out of axes at the right."""
    labels = dict(zip(axes.get_xticks(), axes.get_xticklabels(), strict=True))
    inside = [at for at in labels if at <= max(axes.get_xlim())]
    if not inside or labels[max(inside)].get_ha() != "center":
        return 0.0
    to = axes.transData + axes.transAxes.inverted()
    share = float(to.transform((max(inside), axes.get_ylim()[0]))[0])
    return 0.02 + _widest([labels[max(inside)]]) / 2 - (1 - share) * wide


def inches_wide(axes: Axes) -> float:
    """Return the width of axes, about: they are put in place later."""
    return float(figure_of(axes).get_figwidth() * axes.get_position().width)


def figure_of(axes: Axes) -> Figure:
    """Return the whole figure that axes are on."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def _columns(labels: Sequence[str], room: float) -> int:
    """Return the largest number of columns that fit."""
    wide = [width(label, LABEL) + 0.45 for label in labels]
    for columns in range(len(labels), 1, -1):
        if sum(max(part) for part in np.array_split(wide, columns)) <= room:
            return -(-len(labels) // -(-len(labels) // columns))  # as few as have no more rows
    return 1


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
        if pd.api.types.is_numeric_dtype(self.index):
            names = [name.replace("-", "−") for name in names]
        longest = max(width(name, LABEL) for name in {names[0], names[-1], max(names, key=len)})
        shown = self._shown(max(2, int(inches_wide(axes) / (longest + 0.12))))
        texts = [names[k] if below is None else f"{names[k]}\n{below[k]}" for k in shown]
        axes.set_xticks(self.values[shown], texts, parse_math=False)

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
        axes.axvline(at, color=GREY, lw=THIN, ls=DOTTED, gid="intervention")
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
