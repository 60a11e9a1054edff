"""Periods on an axis: where they are, how they are written, and where the intervention is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from dpsc.answers.figures.sheet import LABEL, SMALL, inches_wide
from dpsc.answers.figures.text import width
from dpsc.answers.palette import GREY
from dpsc.data.dates import period_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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

    index: pd.Index[Any]

    @property
    def values(self) -> np.ndarray[Any, Any]:
        """Where the periods are: restyle figures with these numbers or dates."""
        index: Any = self.index
        if isinstance(index, pd.PeriodIndex):
            return np.asarray(index.to_timestamp())
        if isinstance(index, pd.DatetimeIndex):
            return np.asarray(index.tz_localize(None))
        return index.to_numpy() if pd.api.types.is_numeric_dtype(index) else np.arange(len(index))

    def at(self, periods: pd.Index[Any]) -> np.ndarray[Any, Any]:
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
