"""Figures of one answer: observed and counterfactual, the gap between them, and what it adds up to."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsc.answers.base import Answer
from dpsc.answers.figures.sheet import BLACK, BLUE, GREY, LABEL, LINE, THIN, VERMILION, PeriodAxis, Sheet
from dpsc.answers.words import donors_help, in_units, outcome, percent, sentence
from dpsc.periods.treatment import LEFT_OUT, OFF
from dpsc.privacy.guarantee import Guarantee, mark_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OBSERVED, WITHOUT, PRIVACY = "observed", "without the intervention", "privacy noise alone"
_SHADED = {LEFT_OUT: "left out", OFF: "treatment off"}
_FEW = 60  # periods: more have no markers
_ABOVE = 0.14  # inches for the name of the intervention


def overview(result: Answer, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw the path and, below it, the gaps; on given axes the path alone."""
    if sheet.ax is not None:
        return path(result, sheet, units)
    figure = sheet.figure(4.6)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[1.7, 1])
    draw_path(top, result)
    draw_gaps(bottom, result)
    PeriodAxis(result.target.index).mark(bottom, result.T0, named=False)
    bottom.set_title("observed minus counterfactual", loc="left", x=0, fontsize=LABEL, color=GREY, pad=4)
    asked = result.title or question(result)
    return _finish(top, result, sheet, asked, in_units(outcome(result), units), between=(0.0, 0.32))


def path(result: Answer, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw observed and counterfactual over time."""
    axes = sheet.axes(3.1)
    draw_path(axes, result)
    return _finish(axes, result, sheet, result.title or question(result), in_units(outcome(result), units))


def gaps(result: Answer, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw the gap between observed and counterfactual, before the intervention too, with a line at zero."""
    axes = sheet.axes(2.7)
    draw_gaps(axes, result)
    what = in_units(f"observed minus counterfactual {outcome(result)}", units)
    return _finish(axes, result, sheet, f"The effect on {outcome(result)} in each period", what)


def cumulative(result: Answer, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw what the effects add up to, from the intervention on."""
    axes = sheet.axes(2.7)
    found, times = result.cumulative(), PeriodAxis(result.observed.index)
    form = _marker("s", len(found))
    axes.axhline(0, color=GREY, lw=THIN)
    axes.plot(times.values, found["effect"], color=BLUE, lw=LINE, marker=form, ms=4, label="_sum of the effects")
    if result.interval_kind != "none":
        band(axes, times.values, found["lower"], found["upper"], BLUE, interval_name(result))
    if len(found) == 1:
        _around(axes, PeriodAxis(result.target.index).values)
    times.write(axes)
    return sheet.finish(
        axes,
        f"The effect on {outcome(result)}, added up",
        result.mark,
        measured=in_units(f"sum since the intervention of the effects on {outcome(result)}", units),
        along=_time_name(result),
        small_print=small_print(result),
    )


def draw_path(axes: Axes, result: Answer) -> None:
    """Draw the observed line, the counterfactual over the whole axis, and its band."""
    times = PeriodAxis(result.target.index).values
    axes.plot(times, result.target, color=BLACK, lw=LINE, marker=_marker("o", len(times)), ms=3.2, label=OBSERVED)
    whole = np.concatenate([result.fitted, result.counterfactual])
    axes.plot(times[-len(whole) :], whole, color=VERMILION, lw=LINE, ls=(0, (4, 1.6)), label=WITHOUT)
    for lower, upper, start, label in bands(result):
        band(axes, times[start:], lower, upper, VERMILION, label)
    shade_phases(axes, result, PeriodAxis(result.target.index))
    if len(times[result.T0 :]) == 1 and result.fitted.empty:
        axes.plot(times[-1:], result.counterfactual, color=VERMILION, marker="D", ms=5)


def draw_gaps(axes: Axes, result: Answer) -> None:
    """Draw observed minus counterfactual and its band, before the intervention as after it."""
    times = PeriodAxis(result.target.index).values
    axes.axhline(0, color=GREY, lw=THIN)
    without = np.concatenate([result.fitted, result.counterfactual])
    whole = result.target.to_numpy(dtype=np.float64)[-len(without) :] - without
    form = _marker("s", len(times))
    axes.plot(times[-len(whole) :], whole, color=BLUE, lw=LINE, marker=form, ms=3.4, label="_difference")
    for lower, upper, start, label in bands(result):
        seen = result.target.iloc[start:].to_numpy(dtype=np.float64)
        band(axes, times[start:], seen - upper, seen - lower, BLUE, label)
    shade_phases(axes, result, PeriodAxis(result.target.index))


def shade_phases(axes: Axes, result: Answer, times: PeriodAxis) -> None:
    """Shade the periods that are left out, and those in which the treatment is off after it began."""
    first, phases, named = list(times.index).index(result.treatment_time), result.phases, set[str]()
    turns = [k for k in range(len(phases) + 1) if k in (0, len(phases)) or phases[k] != phases[k - 1]]
    for begin, end in pairwise(turns):
        if (label := _SHADED.get(phases[begin])) is not None:
            last = first + end
            right = times.before(last) if last < len(times.index) else times.values[-1]
            dark = 0.28 if phases[begin] == LEFT_OUT else 0.12
            name = None if label in named else label
            axes.axvspan(times.before(first + begin), right, color=GREY, alpha=dark, lw=0, zorder=0, label=name)
            named.add(label)


def bands(result: Answer) -> list[tuple[Any, Any, int, str]]:
    """Return the intervals to draw: lower and upper ends, the first period's position, and a name."""
    if result.interval_kind == "none":
        return []
    after = result.interval()
    if result.fitted.empty:
        return [(after["lower"].to_numpy(), after["upper"].to_numpy(), result.T0, interval_name(result))]
    lower, upper = np.concatenate([result.interval_before(), after]).T
    drawn = [(lower, upper, len(result.target) - len(lower), interval_name(result))]
    if result.interval_kind == "effect":
        noise = result.interval(part="privacy")
        drawn.append((noise["lower"].to_numpy(), noise["upper"].to_numpy(), result.T0, PRIVACY))
    return drawn


def band(axes: Axes, times: Any, lower: Any, upper: Any, colour: str, label: str) -> None:
    """Shade an interval, and hatch the part from privacy noise; over a single period, draw a bar."""
    noise = label == PRIVACY
    if len(times) == 1:
        axes.vlines(times, lower, upper, color=colour, alpha=0.55 if noise else 0.25, lw=9, label=label)
    elif noise:
        hatched: Any = {"facecolor": "none", "edgecolor": colour, "hatch": "//////"}
        axes.fill_between(times, lower, upper, alpha=0.75, lw=0.0, label=label, **hatched)
    else:
        axes.fill_between(times, lower, upper, color=colour, alpha=0.2, lw=0, label=label)


def interval_name(result: Answer) -> str:
    """Name the interval for a legend."""
    level = percent(result.level)
    return f"{level} interval" + (", noise of the last step only" if result.interval_kind == "projection noise" else "")


def question(result: Answer) -> str:
    """Return the question that every answer answers."""
    return f"What would {outcome(result)} have been without the intervention?"


def small_print(result: Answer) -> str:
    """Return the line for a figure that stands alone: method, guarantee, whether donors help, whether to read on."""
    light = [] if result.verdict is None else [donors_help(result.verdict)]
    more = ["Its notes are in the report."] if result.notes else []
    return " ".join([method_of(result), *light, *more])


def method_of(result: Answer) -> str:
    """Return how the answer was made and what it guarantees."""
    return f"{sentence(result.algorithm)} {promise(result.guarantee, result.reason)}"


def promise(guarantee: Guarantee | None, reason: str) -> str:
    """Return the guarantee in a few words, or why there is none."""
    if guarantee is None:
        return f"{mark_of(reason)}: {reason}."
    delta = f", δ = {guarantee.delta:g}" if guarantee.delta else ""
    return f"Differentially private: ε = {guarantee.epsilon:.4g}{delta}."


def _finish(
    axes: Axes, result: Answer, sheet: Sheet, title: str, measured: str, between: tuple[float, float] = (0.0, 0.0)
) -> Axes:
    times = PeriodAxis(result.target.index)
    times.mark(axes, result.T0, named=True)
    if len(result.observed) == 1 and result.fitted.empty:
        _around(axes, times.values)
    times.write(axes)
    return sheet.finish(
        axes,
        title,
        result.mark,
        measured=measured,
        along=_time_name(result),
        small_print=small_print(result),
        above=_ABOVE,
        between=between,
    )


def _time_name(result: Answer) -> str:
    """Name numbered periods; dates are known by their look."""
    index = result.target.index
    named = pd.api.types.is_numeric_dtype(index) and index.name not in (None, "time", "period")
    return str(index.name) if named else ""


def _around(axes: Axes, times: Any) -> None:
    """Show the period before a single one too: one point has no scale."""
    step = times[-1] - times[-2]
    axes.set_xlim(times[-2] - step / 4, times[-1] + step)


def _marker(form: str, periods: int) -> str:
    return form if periods <= _FEW else ""
