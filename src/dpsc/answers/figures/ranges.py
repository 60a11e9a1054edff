"""Charts of dots with their intervals, one line per number: other choices, and answers side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsc.answers.base import Answer
from dpsc.answers.figures.one import effect_on, method_of
from dpsc.answers.figures.sheet import LABEL, Sheet, inches_wide, label_x, plain
from dpsc.answers.figures.text import width, wrapped
from dpsc.answers.palette import BLACK, BLUE, GREY, VERMILION
from dpsc.answers.trials import Sensitivity
from dpsc.answers.words import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def sensitivity(result: Answer, found: Sensitivity, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw the average effect under every choice; the first is the answer itself."""
    table = found.table
    real = table["treatment_time"].iloc[0]
    names = [
        choice if date == real else f"{choice}, {date}"
        for choice, date in zip(table["choice"], table["treatment_time"], strict=True)
    ]
    axes = sheet.axes(1.0 + 0.3 * len(names))
    ranges(axes, names, table, highlighted=0, level=result.level)
    axes.axvline(float(table["effect"].iloc[0]), color=VERMILION, lw=1, ls=(0, (1, 1.5)))
    label_x(axes, effect_on(result, units), less=_left_of(axes) - 0.6)
    lines = [*([result.title] if result.title else []), f"Dates that were tried: {', '.join(found.dates)}."]
    caption = "\n".join([*lines, method_of(result)])
    return sheet.finish(axes, "Do other choices give another answer?", result.private, caption)


def compared(documents: Sequence[tuple[str, Any]], sheet: Sheet) -> Axes:
    """Draw the average effects of several ``result.json``, side by side."""
    outcomes = list(dict.fromkeys(_outcome(document) for _, document in documents))
    names, rows, notes = [], [], []
    for name, document in documents:
        mark = "" if document.get("private") else ", NOT PRIVATE"
        names.append(name + mark + (f": {_outcome(document)}" if len(outcomes) > 1 else ""))
        effect, interval = document.get("average_effect"), document.get("average_effect_interval")
        if interval is None or not document.get("interval_is_for_the_effect", True):
            interval = [np.nan, np.nan]
            notes.append(f"{name} has no interval for the effect.")
        rows.append({"effect": np.nan if effect is None else effect, "lower": interval[0], "upper": interval[1]})
    levels = {document.get("level") or 0.95 for _, document in documents}
    if len(levels) > 1:
        notes.append(f"The intervals have different levels: {', '.join(percent(v) for v in sorted(levels))}.")
    if len(outcomes) > 1:
        notes.append("The outcomes differ: compare signs, not sizes.")
    axes = sheet.axes(1.0 + 0.4 * len(names))
    ranges(axes, names, pd.DataFrame(rows), level=levels.pop() if len(levels) == 1 else None)
    what = f"average effect on {outcomes[0]}" if len(outcomes) == 1 else "average effect"
    label_x(axes, what, less=_left_of(axes) - 0.6)
    return sheet.finish(axes, "Do the answers agree?", True, "\n".join(notes))


def ranges(
    axes: Axes, names: Sequence[str], table: pd.DataFrame, *, highlighted: int | None = None, level: float | None
) -> None:
    """Draw one dot and its interval per row of ``effect``, ``lower``, ``upper``, from top to bottom."""
    places = np.arange(len(table))
    colours = [VERMILION if k == highlighted else BLUE for k in places]
    interval = "interval" if level is None else f"{percent(level)} interval"
    axes.axvline(0, color=GREY, lw=1)
    axes.hlines(places, table["lower"], table["upper"], colors=colours, lw=2.4, alpha=0.55)
    for k, effect in zip(places, table["effect"], strict=True):
        axes.plot([effect], [k], color=colours[k], marker="D" if k == highlighted else "o", ms=6.5, ls="")
    axes.plot([], [], color=BLACK, marker="o", ms=6.5, lw=2.4, label=f"average effect and its {interval}")
    axes.set_yticks(places, _broken(axes, names), fontsize=LABEL, parse_math=False)
    axes.set_ylim(len(table) - 0.4, -0.6)
    plain(axes, grid="x")
    axes.tick_params(axis="y", length=0)


def _broken(axes: Axes, names: Sequence[str]) -> list[str]:
    return [wrapped(name, 0.42 * inches_wide(axes), LABEL) for name in names]


def _left_of(axes: Axes) -> float:
    """Return how much room the names take, in inches."""
    lines = [line for label in axes.get_yticklabels() for line in label.get_text().splitlines()]
    return max(width(line, LABEL) for line in lines) + 0.3


def _outcome(document: Any) -> str:
    outcome, units = document.get("outcome") or "outcome", document.get("units")
    outcome = "the outcome" if outcome == "outcome" else str(outcome)
    return f"{outcome} ({units})" if units else outcome
