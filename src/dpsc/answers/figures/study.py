"""Figures of several units: the effect by time since adoption, by calendar time, and every unit by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsc.answers.base import Answer, Pooled
from dpsc.answers.figures.result import band, bands, gaps_of, method_of, shade_phases
from dpsc.answers.figures.sheet import (
    BLACK,
    BLUE,
    GREY,
    LABEL,
    SMALL,
    TITLE,
    VERMILION,
    PeriodAxis,
    Sheet,
    label_x,
    label_y,
    name_line,
    plain,
    wrapped,
)
from dpsc.answers.words import outcome, percent
from dpsc.periods.dates import period_name
from dpsc.types import Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PANELS = 60
_ACROSS = 3


def event(study: Pooled, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw the average effect by periods after adoption, how many units each rests on, and gaps before adoption."""
    axes = sheet.axes(3.8)
    table, before = study.by_event_time(), leads(study)
    ks = [*before.index, *table.index]
    axes.axvline(-0.5, color=GREY, lw=1.2, ls=(0, (1, 1.5)), gid="intervention")
    name_line(axes, -0.5, "adoption")
    if len(before):
        label = "before adoption: observed less fit"
        axes.plot(before.index, before, color=BLUE, marker="o", mfc="white", ms=5, ls="", label=label)
    _effects(axes, np.asarray(table.index), table, study.level)
    axes.set_xlim(min(ks) - 0.7, max(ks) + 0.7)
    counts = [*(str(len(study.results)) for _ in before), *map(str, table["units"])]
    PeriodAxis(pd.Index(ks)).write(axes, below=counts)
    label_x(axes, "periods after adoption (0: the first treated); below: number of units")
    label_y(axes, _effect_on(study, units))
    usual = f"How does the effect on {_outcome(study)} develop after adoption?"
    return sheet.finish(axes, study.title or usual, study.private, caption_of(study), above=18)


def calendar(study: Pooled, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw the average effect in each period over the units that are treated in it."""
    axes = sheet.axes(3.6)
    table = study.by_calendar_time()
    times = PeriodAxis(table.index)
    _effects(axes, times.values, table, study.level)
    times.write(axes, below=list(map(str, table["units"])))
    label_x(axes, "below: number of units treated in the period")
    label_y(axes, _effect_on(study, units))
    usual = f"What was the effect on {_outcome(study)} in each period?"
    return sheet.finish(axes, study.title or usual, study.private, caption_of(study))


def small_multiples(study: Pooled, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw every unit in a panel of its own; units that were never treated are grey and used for no number."""
    names = [*study.results, *study.never_treated][:_MOST_PANELS]
    across = min(_ACROSS, len(names))
    down = -(-len(names) // across)
    figure = sheet.figure(0.7 + 1.45 * down)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    index = max((result.target.index for result in study.results.values()), key=len)
    times = PeriodAxis(index)
    for panel, name in zip(panels, names, strict=False):
        if name in study.results:
            _unit(panel, study.results[name], times)
            text = f"{name}, from {period_name(study.results[name].treatment_time)}"
        else:
            path = _on(index, study.never_treated[name])
            panel.plot(times.values, path, color=GREY, lw=1.4, label="never treated: for the reader only")
            text = f"{name}, never treated"
        room = figure.get_figwidth() / across - 0.55
        colour = BLACK if name in study.results else GREY
        panel.set_title(wrapped(text, room, SMALL), fontsize=SMALL, loc="left", pad=3, parse_math=False, color=colour)
        plain(panel)
        panel.tick_params(labelsize=SMALL - 1, length=2)
        panel.locator_params(axis="y", nbins=4)
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    _first_and_last(panels, times, len(names), across)
    usual = f"What would {_outcome(study)} have been without the intervention, unit by unit?"
    title = wrapped(sheet.words(study.title or usual, study.private), figure.get_figwidth() - 0.2, TITLE, "bold")
    left = 0.08 / figure.get_figwidth()
    figure.suptitle(title, x=left, ha="left", fontsize=TITLE, fontweight="bold", parse_math=False)
    beside = wrapped(_outcome(study) + (f" ({units})" if units else ""), 1.2 * down, LABEL)
    label = figure.supylabel(beside, fontsize=LABEL, parse_math=False)
    entries: dict[str, Any] = {}
    for panel in panels[: len(names)]:
        entries |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    sheet.below(panels[0], list(entries.values()), list(entries), caption_of(study, shown=len(names)))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once: with many panels that takes a second
    label.set_y((panels[0].get_position().y1 + panels[len(names) - 1].get_position().y0) / 2)
    first: Axes = panels[0]
    return first


def leads(study: Pooled) -> pd.Series[float]:
    """Return the average gap k periods before adoption (k = -1, -2, ...) as far back as every unit goes.

    As many periods as there are after adoption: they show what no effect looks like.
    """
    gaps = {name: gaps_of(result)[: len(result.fitted)] for name, result in study.results.items()}
    longest = max(len(result.observed) for result in study.results.values())
    back = min(longest, *(len(result.fitted) for result in study.results.values()))
    weights = study.weights / study.weights.sum()
    if back == 0:
        return pd.Series(dtype=np.float64)
    total = sum(float(weights[name]) * gap[len(gap) - back :] for name, gap in gaps.items())
    return pd.Series(np.asarray(total), index=np.arange(-back, 0))


def caption_of(study: Pooled, shown: int | None = None) -> str:
    """Return the small print: what was drawn, method and guarantee."""
    units, others = len(study.results), len(study.never_treated)
    lines = [f"{units} treated units." if units != 1 else "1 treated unit."]
    if shown is not None and shown < units + others:
        lines[0] += f" The first {shown} of {units + others} are drawn."
    if others and shown is not None:
        lines[0] += f" Never treated, for the reader only, used for no number: {others}."
    return "\n".join([*lines, method_of(next(iter(study.results.values())))])


def _effects(axes: Axes, places: Any, table: pd.DataFrame, level: float) -> None:
    axes.axhline(0, color=GREY, lw=1)
    size = float(np.clip(100 / len(table), 1.5, 3.5))  # many bars are thin
    axes.plot(places, table["effect"], color=VERMILION, marker="D", ms=2 + size, ls="", label="average effect")
    label = f"{percent(level)} interval"
    axes.vlines(places, table["lower"], table["upper"], color=VERMILION, alpha=0.45, lw=size, label=label)
    plain(axes)


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
        panel.set_xticks(times.values[ends], written, fontsize=SMALL - 1, parse_math=False)
        panel.set_xlim(times.values[0], times.values[-1])
        first, last = panel.get_xticklabels()
        first.set_ha("left")
        last.set_ha("right")
        panel.tick_params(labelbottom=k + across >= drawn)


def _outcome(study: Pooled) -> str:
    return "the outcome" if not study.results else outcome(next(iter(study.results.values())))


def _effect_on(study: Pooled, units: str | None) -> str:
    return f"average effect on {_outcome(study)}" + (f" ({units})" if units else "")
