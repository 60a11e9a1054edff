"""Figures of the same question with other choices: placebos in time and in space, dots with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsc.answers.base import Answer
from dpsc.answers.figures.result import effect_on, method_of
from dpsc.answers.figures.sheet import (
    BLACK,
    BLUE,
    GREY,
    LABEL,
    SKY,
    VERMILION,
    PeriodAxis,
    Sheet,
    label_x,
    label_y,
    plain,
    width,
    wrapped,
)
from dpsc.answers.placebos import Placebos, Sensitivity
from dpsc.answers.words import percent
from dpsc.errors import ParameterError
from dpsc.periods.dates import period_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_BARS = 20
_QUESTION = "Could this effect appear where there was none?"


def placebos(result: Answer, found: Placebos, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw effects where there are none, beside the real one."""
    return {"time": in_time, "space": in_space}[found.kind](result, found, sheet, units)


def in_time(result: Answer, found: Placebos, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw the effect at every earlier date, with its interval, and the real one at the end."""
    axes = sheet.axes(3.5)
    names = [period_name(label) for label in result.target.index]
    dates = PeriodAxis(result.target.index[[*map(names.index, found.table.index), result.T0]])
    places = dates.values
    axes.axhline(0, color=GREY, lw=1)
    axes.vlines(places[:-1], found.table["lower"], found.table["upper"], color=BLUE, alpha=0.4, lw=_width(len(places)))
    label = f"an earlier date, when nothing happened, with its {percent(result.level)} interval"
    axes.plot(places[:-1], found.table["effect"], color=BLUE, marker="o", ms=4.5, ls="", label=label)
    axes.vlines(places[-1:], found.real.lower, found.real.upper, color=VERMILION, alpha=0.5, lw=_width(len(places)))
    label = f"the intervention: {_said(found, 'earlier dates look as large')}"
    axes.plot(places[-1:], [found.real.effect], color=VERMILION, marker="D", ms=7.5, ls="", label=label)
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
    column, real = ("over_error", found.over_error) if found.of_real_units else ("effect", found.real.effect)
    effects = found.table[column].to_numpy(dtype=np.float64)
    widest = float(np.nanmax(np.abs([*effects, real])))
    label = (
        f"{len(effects)} {'other units, not treated' if found.of_real_units else 'made-up units without any effect'}"
    )
    axes.hist(effects, bins=_bins(widest, len(effects)), color=SKY, edgecolor="white", lw=0.8, label=label)
    said = f"the real effect: {_said(found, 'made-up units show one as large')}"
    if found.rank is not None:
        said = f"the real effect: rank {found.rank} of {len(effects) + 1}"
    axes.axvline(real, color=VERMILION, lw=2.4, ls=(0, (4, 1.2)), label=said)
    axes.axvline(0, color=GREY, lw=1)
    axes.set_xlim(-1.08 * widest, 1.08 * widest)
    label_x(axes, "effect over its standard error" if found.of_real_units else effect_on(result, units))
    label_y(axes, "number of units" if found.of_real_units else "number of made-up units")
    plain(axes)
    said = "Made-up units are drawn from the release alone; no donor is touched."
    if found.of_real_units:
        said = "Each other unit is asked about as if it had been treated, with the remaining ones as donors."
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


def weights(result: Answer, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw how much each donor counts, those that count most."""
    if not isinstance(result.weights, pd.Series):
        raise ParameterError("donors have weights only in an answer from a private panel.")
    shown = result.weights.reindex(result.weights.abs().sort_values(ascending=False).index)[:_BARS]
    names = [wrapped(str(name), sheet.width / 3, LABEL) for name in shown.index]
    axes = sheet.axes(0.9 + 0.24 * len(names))
    places = np.arange(len(shown))
    label = "how much of a donor's movement is in the counterfactual"
    axes.barh(places, shown, color=BLUE, height=0.65, label=label)
    axes.axvline(0, color=GREY, lw=1)
    axes.set_yticks(places, names, fontsize=LABEL, parse_math=False)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    plain(axes, grid="x")
    axes.tick_params(axis="y", length=0)
    label_x(axes, "weight", less=max(width(line, LABEL) for name in names for line in name.splitlines()) - 0.3)
    count = f"The {_BARS} of {len(result.weights)} donors that count most." if len(result.weights) > _BARS else ""
    return sheet.finish(axes, "Which donors is the answer made of?", result.private, _caption(result, count))


def sensitivity(result: Answer, found: Sensitivity, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw the average effect under every choice; the first is the answer itself."""
    table = found.table
    real = table["treatment_time"].iloc[0]
    names = [
        choice if date == real else f"{choice}, {date}"
        for choice, date in zip(table["choice"], table["treatment_time"], strict=True)
    ]
    axes = ranges(sheet, names, table, effect_on(result, units), highlighted=0, level=result.level)
    axes.axvline(float(table["effect"].iloc[0]), color=VERMILION, lw=1, ls=(0, (1, 1.5)))
    lines = [*([result.title] if result.title else []), f"Dates that were tried: {', '.join(found.dates)}."]
    caption = "\n".join([*lines, method_of(result)])
    return sheet.finish(axes, "Do other choices give another answer?", result.private, caption)


def compared(documents: Sequence[tuple[str, Any]], sheet: Sheet, question: str = "Do the answers agree?") -> Axes:
    """Draw the average effects of several ``result.json``, side by side; of different outcomes in percent, if known."""
    units = {document["units"] for _, document in documents if document.get("units")}
    unsaid = units.pop() if len(units) == 1 else None
    measured = [_outcome(document, unsaid) for _, document in documents]
    outcomes = list(dict.fromkeys(measured))
    names, rows, notes = [], [], []
    for (name, document), outcome in zip(documents, measured, strict=True):
        mark = "" if document.get("private") else ", NOT PRIVATE"
        of = f": {outcome}" if len(outcomes) > 1 and outcome != name else ""
        names.append(name + mark + of)
        effect, interval = document.get("average_effect"), document.get("average_effect_interval")
        if interval is None or not document.get("interval_is_for_the_effect", True):
            interval = [np.nan, np.nan]
            notes.append(f"{name} has no interval for the effect.")
        rows.append({"effect": np.nan if effect is None else effect, "lower": interval[0], "upper": interval[1]})
    percents = [document.get("percent") for _, document in documents]
    in_percent = len(outcomes) > 1 and all(
        each is not None and None not in (each.get("lower"), each.get("upper")) and not np.isnan(row["lower"])
        for each, row in zip(percents, rows, strict=True)
    )
    if in_percent:
        rows = [{name: each[name] for name in ("effect", "lower", "upper")} for each in percents if each is not None]
    levels = {document.get("level") or 0.95 for _, document in documents}
    if len(levels) > 1:
        notes.append(f"The intervals have different levels: {', '.join(percent(v) for v in sorted(levels))}.")
    what = f"average effect on {outcomes[0]}" if len(outcomes) == 1 else "average effect"
    if in_percent:
        what = "average effect in percent"
        notes.append("The outcomes differ, so effects are in percent.")
    elif len(outcomes) > 1:
        halves = [(row["upper"] - row["lower"]) / 2 for row in rows]
        if all(half > 0 for half in halves):
            rows = [{name: end / half for name, end in row.items()} for row, half in zip(rows, halves, strict=True)]
            what = "average effect over half the length of its interval"
        notes.append("The outcomes differ: compare signs, not sizes.")
    axes = ranges(sheet, names, pd.DataFrame(rows), what, level=levels.pop() if len(levels) == 1 else None)
    return sheet.finish(axes, question, True, "\n".join(notes))


def ranges(
    sheet: Sheet,
    names: Sequence[str],
    table: pd.DataFrame,
    what: str,
    *,
    highlighted: int | None = None,
    level: float | None,
) -> Axes:
    """Draw one dot and its interval per row of ``effect``, ``lower``, ``upper``, from top to bottom."""
    broken = [wrapped(name, sheet.width / 3, LABEL) for name in names]
    axes = sheet.axes(1.2 + len(names) * max(0.3, 0.1 + 0.17 * max(name.count("\n") + 1 for name in broken)))
    places = np.arange(len(table))
    colours = [VERMILION if k == highlighted else BLUE for k in places]
    interval = "interval" if level is None else f"{percent(level)} interval"
    axes.axvline(0, color=GREY, lw=1)
    axes.hlines(places, table["lower"], table["upper"], colors=colours, lw=2.4, alpha=0.55)
    for k, effect in zip(places, table["effect"], strict=True):
        axes.plot([effect], [k], color=colours[k], marker="D" if k == highlighted else "o", ms=6.5, ls="")
    axes.plot([], [], color=BLACK, marker="o", ms=6.5, lw=2.4, label=f"average effect and its {interval}")
    axes.set_yticks(places, broken, fontsize=LABEL, parse_math=False)
    axes.set_ylim(len(table) - 0.4, -0.6)
    plain(axes, grid="x")
    axes.tick_params(axis="y", length=0)
    label_x(axes, what, less=max(width(line, LABEL) for name in broken for line in name.splitlines()) - 0.3)
    return axes


def _outcome(document: Any, unsaid: str | None) -> str:
    """Name what was measured and its units; answers that do not say them are taken to be in those of the others."""
    outcome, units = document.get("outcome") or "outcome", document.get("units") or unsaid
    outcome = "the outcome" if outcome == "outcome" else str(outcome)
    return f"{outcome} ({units})" if units else outcome
