"""Effects where there was none, beside the real one: at earlier dates, and of made-up units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpsc.answers.base import Answer
from dpsc.answers.figures.one import effect_on, method_of
from dpsc.answers.figures.periods import PeriodAxis
from dpsc.answers.figures.sheet import Sheet, label_x, label_y, plain
from dpsc.answers.palette import BLUE, GREY, SKY, VERMILION
from dpsc.answers.trials import Placebos
from dpsc.answers.words import percent
from dpsc.data.dates import period_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_QUESTION = "Could this effect appear where there was none?"


def in_time(result: Answer, found: Placebos, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw the effect at every earlier date, with its interval, and the real one at the end."""
    axes = sheet.axes(3.5)
    names = [period_name(label) for label in result.target.index]
    dates = PeriodAxis(result.target.index[[*map(names.index, found.table.index), result.T0]])
    places = dates.values
    axes.axhline(0, color=GREY, lw=1)
    axes.vlines(places[:-1], found.table["lower"], found.table["upper"], color=BLUE, alpha=0.4, lw=_width(len(places)))
    axes.plot(places[:-1], found.table["effect"], color=BLUE, marker="o", ms=4.5, ls="",
              label=f"an earlier date, when nothing happened, with its {percent(result.level)} interval")  # fmt: skip
    axes.vlines(places[-1:], found.real.lower, found.real.upper, color=VERMILION, alpha=0.5, lw=_width(len(places)))
    axes.plot(places[-1:], [found.real.effect], color=VERMILION, marker="D", ms=7.5, ls="",
              label=f"the intervention: {_said(found, 'earlier dates look as large')}")  # fmt: skip
    axes.axhline(found.real.effect, color=VERMILION, lw=1, ls=(0, (1, 1.5)))
    label_y(axes, effect_on(result, units))
    plain(axes)
    cut = _limit(axes, found)
    dates.write(axes)
    label_x(axes, "date that the intervention is given")
    said = f"Compared by p-values, because some dates have fewer periods after them.{cut}"
    return sheet.finish(axes, _QUESTION, result.private, _caption(result, said))


def in_space(result: Answer, found: Placebos, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw how often made-up units without an effect show one of each size, and the real one as a line."""
    axes = sheet.axes(3.3)
    effects = found.table["effect"].to_numpy(dtype=np.float64)
    widest = float(np.nanmax(np.abs([*effects, found.real.effect])))
    axes.hist(effects, bins=_bins(widest, len(effects)), color=SKY, edgecolor="white", lw=0.8,
              label=f"{len(effects)} made-up units without any effect")  # fmt: skip
    said = f"the real effect: {_said(found, 'made-up units show one as large')}"
    axes.axvline(found.real.effect, color=VERMILION, lw=2.4, ls=(0, (4, 1.2)), label=said)
    axes.axvline(0, color=GREY, lw=1)
    axes.set_xlim(-1.08 * widest, 1.08 * widest)
    label_x(axes, effect_on(result, units))
    label_y(axes, "number of made-up units")
    plain(axes)
    said = "Made-up units are drawn from the release alone; no donor is touched."
    return sheet.finish(axes, _QUESTION, result.private, _caption(result, said))


def _said(found: Placebos, what: str) -> str:
    """Say how many placebos are at least as large as the real effect."""
    if np.isnan(found.share):
        return "no effect was observed"
    count = round(found.share * len(found.table))
    return f"{count or 'none'} of {len(found.table)} {what}"


def _limit(axes: Axes, found: Placebos) -> str:
    """Leave out the ends of the longest intervals, which would make everything else small; say so."""
    table = found.table
    ends = table[["lower", "upper"]].abs().max(axis=1)
    needed = float(np.nanmax(np.abs([*table["effect"], *found.real[:3]])))
    most = 1.15 * max(needed, float(ends.quantile(0.8)))
    if not ends.max() > 1.5 * most:
        return ""
    axes.set_ylim(-most, most)
    return " Intervals that leave the figure are longer than it."


def _caption(result: Answer, said: str) -> str:
    return "\n".join([*([result.title] if result.title else []), said, method_of(result)])


def _bins(widest: float, count: int) -> Any:
    """Return bins with zero on an edge, so that both sides look alike."""
    half = max(4, min(15, round(np.sqrt(count))))
    return np.linspace(-widest, widest, 2 * half + 1)


def _width(places: int) -> float:
    return max(1.0, min(5.0, 150 / places))
