"""Figures of one answer: observed and counterfactual, the gap between them, and what it adds up to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpsc.answers.base import Answer
from dpsc.answers.figures.sheet import BLACK, BLUE, GREY, VERMILION, PeriodAxis, Sheet, label_x, label_y, plain
from dpsc.answers.words import donors_help, outcome, percent, sentence
from dpsc.privacy.guarantee import Guarantee
from dpsc.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OBSERVED, WITHOUT = "observed", "without the intervention (estimated)"
PRIVACY = "part of it that privacy noise alone would cause (from the intervention on)"
_FEW = 60  # periods: more have no markers
_ABOVE = 18.0  # points between axes and title, for the name of the intervention


def overview(result: Answer, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw the path and, below it, the gaps; on given axes the path alone."""
    if sheet.ax is not None:
        return path(result, sheet, units)
    caption = caption_of(result, sheet)
    figure = sheet.figure(5.0)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[1.7, 1])
    draw_path(top, result, units)
    draw_gaps(bottom, result)
    label_y(bottom, _in_units("difference", units))
    PeriodAxis(result.target.index).mark(top, result.T0, named=True)
    PeriodAxis(result.target.index).mark(bottom, result.T0, named=False)
    _label_times(bottom, result)
    top.tick_params(labelbottom=False)
    handles, labels = top.get_legend_handles_labels()
    lower = dict(zip(*reversed(bottom.get_legend_handles_labels()), strict=True))
    both = [(handle, lower[label]) if label in lower else handle for handle, label in zip(handles, labels, strict=True)]
    sheet.entitle(top, result.title or question(result), result.private, _ABOVE)
    sheet.below(top, both, labels, caption)
    upper: Axes = top
    return upper


def path(result: Answer, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw observed and counterfactual over time."""
    axes = sheet.axes(3.6)
    draw_path(axes, result, units)
    return _finish(axes, result, sheet, question(result))


def gaps(result: Answer, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw the gap between observed and counterfactual, before the intervention too, with a line at zero."""
    axes = sheet.axes(3.2)
    draw_gaps(axes, result)
    label_y(axes, _in_units(f"difference in {outcome(result)}", units))
    return _finish(axes, result, sheet, f"What difference did the intervention make to {outcome(result)}?")


def cumulative(result: Answer, sheet: Sheet, units: str | None = None) -> Axes:
    """Draw what the effects add up to, from the intervention on."""
    axes = sheet.axes(3.2)
    times, found = PeriodAxis(result.target.index), result.cumulative()
    after = times.values[result.T0 :]
    axes.axhline(0, color=GREY, lw=1)
    axes.plot(
        after, found["effect"], color=BLUE, lw=2, marker=_marker("s", len(after)), ms=4, label="sum of the effects"
    )
    if result.interval_kind != "none":
        band(axes, after, found["lower"], found["upper"], BLUE, interval_name(result))
    label_y(axes, _in_units(f"sum of the effects on {outcome(result)}", units))
    plain(axes)
    if len(after) == 1:
        _around(axes, times.values)
    times_after = PeriodAxis(result.observed.index)
    times_after.write(axes)
    label_x(axes, _time_name(result))
    usual = f"What did the effects on {outcome(result)} add up to?"
    return sheet.finish(axes, result.title or usual, result.private, caption_of(result, sheet))


def draw_path(axes: Axes, result: Answer, units: str | None = None) -> None:
    """Draw the observed line, the counterfactual over the whole axis, and its band."""
    times = PeriodAxis(result.target.index).values
    axes.plot(times, result.target, color=BLACK, lw=1.9, marker=_marker("o", len(times)), ms=3.2, label=OBSERVED)
    whole = np.concatenate([result.fitted, result.counterfactual])
    axes.plot(times[-len(whole) :], whole, color=VERMILION, lw=1.9, ls=(0, (4, 1.6)), label=WITHOUT)
    for lower, upper, start, label in bands(result):
        band(axes, times[start:], lower, upper, VERMILION, label)
    label_y(axes, _in_units(outcome(result), units))
    plain(axes)
    if len(times[result.T0 :]) == 1 and result.fitted.empty:
        axes.plot(times[-1:], result.counterfactual, color=VERMILION, marker="D", ms=5)


def draw_gaps(axes: Axes, result: Answer) -> None:
    """Draw observed less counterfactual and its band, before the intervention as after it."""
    times = PeriodAxis(result.target.index).values
    axes.axhline(0, color=GREY, lw=1)
    whole = gaps_of(result)
    axes.plot(
        times[-len(whole) :], whole, color=BLUE, lw=1.9, marker=_marker("s", len(times)), ms=3.4, label="difference"
    )
    for lower, upper, start, label in bands(result):
        seen = result.target.iloc[start:].to_numpy(dtype=np.float64)
        band(axes, times[start:], seen - upper, seen - lower, BLUE, label)
    plain(axes)


def gaps_of(result: Answer) -> Array:
    """Return the gaps before the intervention, if there is a fit, and after it."""
    whole = np.concatenate([result.fitted, result.counterfactual])
    return np.asarray(result.target.to_numpy(dtype=np.float64)[-len(whole) :] - whole)


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


def caption_of(result: Answer, sheet: Sheet) -> str:
    """Return the small print: whether donors help, warnings, method and guarantee; a page says it once, by itself."""
    if sheet.on_page:
        return ""
    light = [] if result.verdict is None else [donors_help(result.verdict)]
    return "\n".join([*light, *(sentence(f"note: {note}") for note in result.notes), method_of(result)])


def method_of(result: Answer) -> str:
    """Return how the answer was made and what it guarantees."""
    return f"{sentence(result.algorithm)} {promise(result.guarantee, result.reason)}"


def promise(guarantee: Guarantee | None, reason: str) -> str:
    """Return the guarantee in a few words, or why there is none."""
    if guarantee is None:
        return f"NOT PRIVATE: {reason}."
    delta = f", δ = {guarantee.delta:g}" if guarantee.delta else ""
    return f"Differentially private: ε = {guarantee.epsilon:.4g}{delta}."


def effect_on(result: Answer, units: str | None) -> str:
    """Name the average effect, for an axis."""
    return _in_units(f"average effect on {outcome(result)}", units)


def _finish(axes: Axes, result: Answer, sheet: Sheet, usual: str) -> Axes:
    times = PeriodAxis(result.target.index)
    times.mark(axes, result.T0, named=True)
    if len(result.observed) == 1 and result.fitted.empty:
        _around(axes, times.values)
    _label_times(axes, result)
    return sheet.finish(axes, result.title or usual, result.private, caption_of(result, sheet), above=_ABOVE)


def _label_times(axes: Axes, result: Answer) -> None:
    PeriodAxis(result.target.index).write(axes)
    label_x(axes, _time_name(result))


def _time_name(result: Answer) -> str:
    name = result.target.index.name
    return "" if name is None or name == "time" else str(name)


def _around(axes: Axes, times: Any) -> None:
    """Show the period before a single one too: one point has no scale."""
    step = times[-1] - times[-2]
    axes.set_xlim(times[-2] - step / 4, times[-1] + step)


def _marker(form: str, periods: int) -> str:
    return form if periods <= _FEW else ""


def _in_units(text: str, units: str | None) -> str:
    return f"{text} ({units})" if units else text
