"""Figures of the same question with other choices: placebos in time and in space, dots with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsc.answers.base import Answer
from dpsc.answers.figures.result import small_print
from dpsc.answers.figures.sheet import BLUE, DOTTED, GREY, LABEL, SKY, THIN, VERMILION, PeriodAxis, Sheet, wrapped
from dpsc.answers.placebos import Placebos, Sensitivity
from dpsc.answers.words import in_units, outcome, percent
from dpsc.errors import ParameterError
from dpsc.periods.dates import period_name
from dpsc.privacy.guarantee import mark_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_BARS = 20


def placebos(result: Answer, found: Placebos, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw effects where there are none, beside the real one."""
    return {"time": in_time, "space": in_space}[found.kind](result, found, sheet, units)


def in_time(result: Answer, found: Placebos, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw the effect at every earlier date, with its interval, and the real one at the end."""
    axes = sheet.axes(2.9)
    names = [period_name(label) for label in result.target.index]
    dates = PeriodAxis(result.target.index[[*map(names.index, found.table.index), result.T0]])
    places, wide = dates.values, max(1.0, min(5.0, 150 / len(dates.index)))
    axes.axhline(0, color=GREY, lw=THIN)
    axes.vlines(places[:-1], found.table["lower"], found.table["upper"], color=BLUE, alpha=0.4, lw=wide)
    label = "an earlier date, when nothing happened"
    axes.plot(places[:-1], found.table["effect"], color=BLUE, marker="o", ms=4.5, ls="", label=label)
    axes.vlines(places[-1:], found.real.lower, found.real.upper, color=VERMILION, alpha=0.5, lw=wide)
    label = f"the intervention: {_said(found, 'earlier dates look as large')}"
    axes.plot(places[-1:], [found.real.effect], color=VERMILION, marker="D", ms=7, ls="", label=label)
    axes.axhline(found.real.effect, color=VERMILION, lw=THIN, ls=DOTTED)
    cut = _limit(axes, found)
    dates.write(axes)
    return sheet.finish(
        axes,
        "The effect beside those at earlier dates, when nothing happened",
        result.mark,
        measured=effect_on(result, units, result.level) + cut,
        along="date that the intervention is given",
        small_print=small_print(result),
    )


def in_space(result: Answer, found: Placebos, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw how often made-up units without an effect show one of each size, and the real one as a line."""
    from matplotlib.ticker import MaxNLocator

    axes = sheet.axes(2.7)
    column, real = ("over_error", found.over_error) if found.of_real_units else ("effect", found.real.effect)
    effects = found.table[column].to_numpy(dtype=np.float64)
    widest = float(np.nanmax(np.abs(effects)))
    who = "other units" if found.of_real_units else "made-up units"
    label = f"{len(effects)} {who}"
    half = max(4, min(15, round(np.sqrt(len(effects)))))  # zero is an edge, so that both sides look alike
    axes.hist(
        effects,
        bins=list(np.linspace(-widest, widest, 2 * half + 1)),
        color=SKY,
        edgecolor="white",
        lw=0.8,
        label=label,
    )
    said = f"the real effect: {_said(found, 'made-up units show one as large')}"
    if found.rank is not None:
        said = f"the real effect: rank {found.rank} of {len(effects) + 1}"
    axes.axvline(real, color=VERMILION, lw=2.4, ls=(0, (4, 1.2)), label=said)
    axes.axvline(0, color=GREY, lw=THIN)
    ends = np.array([np.nanmin([-widest, real]), np.nanmax([widest, real])])
    axes.set_xlim(*(ends + 0.06 * np.diff(ends) * [-1, 1]))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
    return sheet.finish(
        axes,
        f"The effect beside those of {who}, which were not treated",
        result.mark,
        measured=f"number of {who}",
        along="effect over its standard error" if found.of_real_units else effect_on(result, units),
        small_print=small_print(result),
    )


def effect_on(result: Answer, units: str | None, level: float | None = None) -> str:
    """Name the average effect, and its interval if it is drawn."""
    what = in_units(f"average effect on {outcome(result)}", units)
    return what if level is None else f"{what} and its {percent(level)} interval"


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
    return "; the longest leave the figure"


def weights(result: Answer, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw how much each donor counts, those that count most."""
    if not isinstance(result.weights, pd.Series):
        raise ParameterError("donors have weights only in an answer from a private panel.")
    shown = result.weights.reindex(result.weights.abs().sort_values(ascending=False).index)[:_BARS]
    axes = _rows(sheet, list(map(str, shown.index)), 0.24)
    axes.barh(np.arange(len(shown)), shown, color=BLUE, height=0.65)
    axes.axvline(0, color=GREY, lw=THIN)
    many = f"the {_BARS} of {len(result.weights)} that count most" if len(result.weights) > _BARS else "all donors"
    return sheet.finish(
        axes,
        "The donors that the answer is made of",
        result.mark,
        measured=f"weight: how much of a donor's movement is in the counterfactual; {many}",
        small_print=small_print(result),
        grid="x",
    )


def sensitivity(result: Answer, found: Sensitivity, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw the average effect under every choice; the first is the answer itself."""
    table = found.table
    real = table["treatment_time"].iloc[0]
    names = [
        choice if date == real and k else f"{choice}: {date}"
        for k, (choice, date) in enumerate(zip(table["choice"], table["treatment_time"], strict=True))
    ]
    axes = ranges(sheet, names, table, highlighted=0)
    axes.axvline(float(table["effect"].iloc[0]), color=VERMILION, lw=THIN, ls=DOTTED)
    return sheet.finish(
        axes,
        f"The effect on {outcome(result)} under other choices",
        result.mark,
        measured=effect_on(result, units, result.level),
        small_print=small_print(result),
        grid="x",
    )


def compared(documents: Sequence[tuple[str, Any]], sheet: Sheet) -> Axes:
    """Draw the average effects of several ``result.json``, side by side; of different outcomes in percent, if known."""
    units = {document["units"] for _, document in documents if document.get("units")}
    unsaid = units.pop() if len(units) == 1 else None
    measured = [_outcome(document, unsaid) for _, document in documents]
    outcomes = list(dict.fromkeys(measured))
    names, rows, notes = [], [], []
    for (name, document), what in zip(documents, measured, strict=True):
        mark = "" if document.get("private") else f", {mark_of(document.get('no_guarantee') or '')}"
        of = f": {what}" if len(outcomes) > 1 and document.get("outcome") != name else ""
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
            what = "average effect over half the length of its interval,"
        notes.append("The outcomes differ: compare signs, not sizes.")
    interval = f"{percent(levels.pop())} interval" if len(levels) == 1 else "interval"
    return sheet.finish(
        ranges(sheet, names, pd.DataFrame(rows)),
        "Average effects side by side",
        "",
        measured=f"{what} and its {interval}",
        small_print="\n".join(notes),
        grid="x",
    )


def ranges(sheet: Sheet, names: Sequence[str], table: pd.DataFrame, *, highlighted: int | None = None) -> Axes:
    """Draw one dot and its interval per row of ``effect``, ``lower``, ``upper``, from top to bottom."""
    axes = _rows(sheet, names, 0.32)
    places = np.arange(len(table))
    colours = [VERMILION if k == highlighted else BLUE for k in places]
    axes.axvline(0, color=GREY, lw=THIN)
    axes.hlines(places, table["lower"], table["upper"], colors=colours, lw=2.4, alpha=0.55)
    for k, effect in zip(places, table["effect"], strict=True):
        axes.plot([effect], [k], color=colours[k], marker="D" if k == highlighted else "o", ms=6.5, ls="")
    return axes


def _rows(sheet: Sheet, names: Sequence[str], least: float) -> Axes:
    """Return axes with a row for each name, at the left, at least so many inches high."""
    broken = [wrapped(name, sheet.width / 3, LABEL) for name in names]
    lines = max(name.count("\n") + 1 for name in broken)
    axes = sheet.axes(0.1 + len(names) * max(least, 0.12 + 0.155 * lines))
    axes.set_yticks(np.arange(len(names)), broken, fontsize=LABEL, parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    return axes


def _outcome(document: Any, unsaid: str | None) -> str:
    """Name what was measured and its units; answers that do not say them are taken to be in those of the others."""
    name = document.get("outcome") or "outcome"
    return in_units("the outcome" if name == "outcome" else str(name), document.get("units") or unsaid)
