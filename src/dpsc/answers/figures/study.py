"""Figures of several units: the effect by time since the treatment, by calendar time, and every unit by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsc.answers.base import Answer
from dpsc.answers.figures.result import band, bands, method_of, shade_phases
from dpsc.answers.figures.sheet import (
    BLACK,
    DOTTED,
    GREY,
    SMALL,
    THIN,
    VERMILION,
    WIDE,
    PeriodAxis,
    Sheet,
    inches_wide,
    name_line,
    width,
    wrapped,
)
from dpsc.answers.pooled import Pooled
from dpsc.answers.words import in_units, outcome, percent
from dpsc.periods.dates import period_name
from dpsc.types import Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PANELS = 60
_GAP = 0.25  # inches between panels


def event(study: Pooled, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw the average effect by periods since the treatment, and as many before it, forecast without them."""
    axes = sheet.axes(3.2)
    table = study.by_event_time()
    before, after = table[table.index < 0], table[table.index >= 0]
    axes.axvline(-0.5, color=GREY, lw=THIN, ls=DOTTED, gid="intervention")
    name_line(axes, -0.5, "treatment")
    if len(before):
        _effects(axes, np.asarray(before.index), before, study.level, before=True)
    _effects(axes, np.asarray(after.index), after, study.level)
    axes.set_xlim(min(table.index) - 0.7, max(table.index) + 0.7)
    PeriodAxis(table.index).write(axes, below=list(map(str, table["units"])))
    earlier = f"Before the treatment: the same forecast, dated {len(before)} periods earlier. " if len(before) else ""
    return sheet.finish(
        axes,
        study.title or f"The effect on {_outcome(study)} by the time since the treatment",
        study.mark,
        measured=_effect_on(study, units),
        along="periods since the treatment (0: the first treated); below: number of units",
        small_print=earlier + caption_of(study),
        above=0.14,
    )


def calendar(study: Pooled, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw the average effect in each period over the units that are treated in it."""
    axes = sheet.axes(2.9)
    table = study.by_calendar_time()
    times = PeriodAxis(table.index)
    _effects(axes, times.values, table, study.level)
    times.write(axes, below=list(map(str, table["units"])))
    return sheet.finish(
        axes,
        f"The effect on {_outcome(study)} in each period, over the units treated in it",
        study.mark,
        measured=_effect_on(study, units),
        along="below: number of units treated in the period",
        small_print=caption_of(study),
    )


def small_multiples(study: Pooled, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw every unit in a panel of its own; units that were never treated are grey and used for no number."""
    names = [*study.results, *study.never_treated][:_MOST_PANELS]
    across = min(3 if sheet.width >= WIDE and len(names) != 4 else 2, len(names))
    down = -(-len(names) // across)
    figure = sheet.figure((1.1 + 2 * _GAP) * down - 2 * _GAP)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    index = max((result.target.index for result in study.results.values()), key=len)
    times = PeriodAxis(index)
    for panel, name in zip(panels, names, strict=False):
        if name in study.results:
            _unit(panel, study.results[name], times)
            text = f"{name}, from {period_name(study.results[name].treatment_time)}"
        else:
            path = _on(index, study.never_treated[name])
            panel.plot(times.values, path, color=GREY, lw=1.4, label="never treated: for comparison only")
            text = f"{name}, never treated"
        colour = BLACK if name in study.results else GREY
        room = sheet.width / across - 2 * _GAP
        panel.set_title(wrapped(text, room, SMALL), fontsize=SMALL, loc="left", pad=3, parse_math=False, color=colour)
        panel.locator_params(axis="y", nbins=4)
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    _first_and_last(panels, times, len(names), across)
    first: Axes = panels[0]
    return sheet.finish(
        first,
        f"Unit by unit: {_outcome(study)}, and without the intervention",
        study.mark,
        measured=in_units(_outcome(study), units),
        small_print=caption_of(study, shown=len(names)),
        above=_GAP,
        between=(_GAP, 2 * _GAP),
    )


def caption_of(study: Pooled, shown: int | None = None) -> str:
    """Return the small print: what was drawn, method and guarantee."""
    units, others = len(study.results), len(study.never_treated)
    said = ["1 treated unit." if units == 1 else f"{units} treated units."]
    if shown is not None and shown < units + others:
        said.append(f"The first {shown} of {units + others} are drawn.")
    return " ".join([*said, method_of(next(iter(study.results.values())))])


def _effects(axes: Axes, places: Any, table: pd.DataFrame, level: float, *, before: bool = False) -> None:
    axes.axhline(0, color=GREY, lw=THIN)
    size = float(np.clip(100 / len(table), 1.5, 3.5))  # many bars are thin
    colour, face = (GREY, "white") if before else (VERMILION, VERMILION)
    label = "before: the forecast's error" if before else "average effect"
    axes.plot(places, table["effect"], color=colour, mfc=face, marker="D", ms=2 + size, ls="", label=label)
    label = "" if before else f"{percent(level)} interval"
    axes.vlines(places, table["lower"], table["upper"], color=colour, alpha=0.45, lw=size, label=label, zorder=1.5)


def _unit(panel: Axes, result: Answer, times: PeriodAxis) -> None:
    at = times.at(result.target.index)
    panel.plot(at, result.target, color=BLACK, lw=1.4, label="observed")
    whole = np.concatenate([result.fitted, result.counterfactual])
    panel.plot(at[-len(whole) :], whole, color=VERMILION, lw=1.4, ls=(0, (4, 1.6)), label="without the intervention")
    lower, upper, start, label = bands(result)[0]
    band(panel, at[start:], lower, upper, VERMILION, label)
    position = list(times.index).index(result.treatment_time)
    times.mark(panel, position, named=False)
    shade_phases(panel, result, times)


def _on(index: Times, path: pd.Series[float]) -> Any:
    """Return a path on the study's periods; without labels of its own it is in their order."""
    if len(path) == len(index) and not path.index.isin(index).all():
        return path.to_numpy(dtype=np.float64)
    return path.reindex(index).to_numpy(dtype=np.float64)


def _first_and_last(panels: Any, times: PeriodAxis, drawn: int, across: int) -> None:
    """Write the first and the last period under the lowest panel of each column."""
    ends = [0, len(times.index) - 1]
    for k, panel in enumerate(panels[:drawn]):
        written = [period_name(times.index[end]) for end in ends]
        if sum(width(name, SMALL) for name in written) > inches_wide(panel) - _GAP:
            written[1] = "\n" + written[1]
        panel.set_xticks(times.values[ends], written, parse_math=False)
        panel.set_xlim(times.values[0], times.values[-1])
        first, last = panel.get_xticklabels()
        first.set_ha("left")
        last.set_ha("right")
        panel.tick_params(labelbottom=k + across >= drawn)


def _outcome(study: Pooled) -> str:
    return "the outcome" if not study.results else outcome(next(iter(study.results.values())))


def _effect_on(study: Pooled, units: str | None) -> str:
    return in_units(f"average effect on {_outcome(study)}", units)
