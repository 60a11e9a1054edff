"""Figures. Draws results and knows nothing of mechanisms; returns figures and never shows or saves them."""

from __future__ import annotations

import io
import itertools
import textwrap
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from dpsc.answers.base import Answer
from dpsc.answers.palette import BLACK, BLUE, GREEN, GREY, GRID, PURPLE, SKY, VERMILION
from dpsc.answers.words import donors_help, percent
from dpsc.data.dates import period_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def overview(result: Answer) -> Figure:
    """Draw observed and counterfactual over time, and the gap between them below, with intervals if there are any."""
    figure = _figure(5.6)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    _draw_path(top, result)
    _draw_gaps(bottom, result)
    top.set_xlabel("")
    top.set_title(result.headline, loc="left", fontsize=10, parse_math=False)
    light = [] if result.verdict is None else [donors_help(result.verdict)]
    notes = "\n".join(textwrap.fill(text, 110) for text in (*light, *(f"Note: {note}." for note in result.notes)))
    figure.supxlabel(notes, fontsize=8, color=GREY, x=0.02, ha="left", parse_math=False)
    return figure


def path(result: Answer, units: str | None = None) -> Figure:
    """Draw observed and counterfactual over time."""
    figure = _figure(4.2)
    axes = figure.subplots()
    _draw_path(axes, result)
    _label(axes, str(result.target.name), units)
    axes.set_title(result.headline, loc="left", fontsize=10, parse_math=False)
    return figure


def gaps(result: Answer, units: str | None = None) -> Figure:
    """Draw the gap between observed and counterfactual, with a line at zero."""
    figure = _figure(3.4)
    axes = figure.subplots()
    _draw_gaps(axes, result, named=True)
    _label(axes, f"gap in {result.target.name}", units)
    axes.set_title(result.headline, loc="left", fontsize=10, parse_math=False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def plan_curves(table: pd.DataFrame, unit: str) -> Figure:
    """Draw the expected error over epsilon, one curve per number of donors, and the error without privacy."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    figure = _figure(4.6)
    axes = figure.subplots()
    styles = zip((BLUE, VERMILION, GREEN, PURPLE, SKY, BLACK), "osD^vP", strict=True)
    for (n, rows), (colour, marker) in zip(table.groupby("n"), itertools.cycle(styles), strict=False):
        rows = rows.sort_values("epsilon")
        axes.plot(rows["epsilon"], rows["error"], color=colour, marker=marker, ms=5, lw=1.8, label=f"{n:,} donors")
        axes.plot(rows["epsilon"], rows["without_privacy"], color=colour, lw=1.1, ls=":")
    axes.axhline(float(table["last_value"].median()), color=GREY, lw=1.2, ls="--", label="last value, no donors")
    axes.plot([], [], color=BLACK, lw=1.1, ls=":", label="the same without privacy")
    axes.set(xscale="log", yscale="log", xlabel="privacy budget ε (smaller protects more)")
    axes.set_ylabel(f"expected error, {unit}", parse_math=False)
    axes.xaxis.set_major_locator(FixedLocator(sorted(table["epsilon"].unique())))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color=GRID, lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _figure(height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(7.2, height), layout="constrained")


def _draw_path(axes: Axes, result: Answer) -> None:
    times = _axis_values(result.target.index)
    post = times[result.T0 :]
    axes.plot(times, result.target, color=BLACK, lw=1.8, label="observed")
    if result.fitted.notna().any():
        axes.plot(
            times[: result.T0], result.fitted, color=VERMILION, lw=1.2, ls=":", label="fit, each period from all others"
        )
    axes.plot(post, result.counterfactual, color=VERMILION, lw=1.8, ls="--", marker="o", ms=3, label="counterfactual")
    for band, shade, label in _bands(result):
        _fill(axes, post, band["lower"], band["upper"], VERMILION, shade, label)
    axes.set_ylabel(str(result.target.name), parse_math=False)
    axes.legend(frameon=False, loc="best", fontsize=9)
    _finish(axes, result)


def _draw_gaps(axes: Axes, result: Answer, named: bool = False) -> None:
    post = _axis_values(result.target.index)[result.T0 :]
    axes.axhline(0, color=GREY, lw=1)
    for band, shade, label in _bands(result):
        lower, upper = result.observed - band["upper"], result.observed - band["lower"]
        _fill(axes, post, lower, upper, BLUE, shade, label if named else "")
    axes.plot(post, result.gaps, color=BLUE, lw=1.8, marker="o", ms=4 if named else 3, label="gap")
    if named and len(post) == 1:  # one point has no scale: show the period before it too
        times = _axis_values(result.target.index)
        step = times[-1] - times[-2]
        axes.set_xlim(times[-2] - step / 4, times[-1] + step)
    axes.set_ylabel("gap")
    _finish(axes, result)


def _label(axes: Axes, what: str, units: str | None) -> None:
    axes.set_ylabel(f"{what} ({units})" if units else what, parse_math=False)


def _finish(axes: Axes, result: Answer) -> None:
    axes.axvline(_between(_axis_values(result.target.index), result.T0), color=GREY, lw=1, ls=":")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(str(result.target.index.name or "time"), parse_math=False)
    _label_periods(axes, result.target.index)


def as_bytes(figure: Figure, format: Literal["png", "svg"]) -> bytes:
    """Return a figure as the content of a file, the same every time: no date in it, no random names."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "dpsc"}):
        figure.savefig(buffer, format=format, dpi=160, metadata={"Date": None} if format == "svg" else None)
    return buffer.getvalue()


def _fill(axes: Axes, times: Any, lower: Any, upper: Any, colour: str, shade: float, label: str = "") -> None:
    """Shade a band; over a single period, where there is no band, draw a bar."""
    if len(times) == 1:
        axes.vlines(times, lower, upper, color=colour, alpha=2 * shade, lw=8, label=label)
    else:
        axes.fill_between(times, lower, upper, color=colour, alpha=shade, lw=0, label=label)


def _bands(result: Answer) -> list[tuple[pd.DataFrame, float, str]]:
    """Return the intervals to draw: from a Gram release the whole one and the part from privacy noise."""
    level = percent(result.level)
    if result.interval_kind == "none":
        return []
    if result.interval_kind == "projection noise":
        return [(result.interval(), 0.2, f"{level} interval, projection noise only")]
    return [
        (result.interval(), 0.15, f"{level} interval"),
        (result.interval(part="privacy"), 0.3, "of which privacy noise"),
    ]


def _axis_values(index: pd.Index[Any]) -> np.ndarray[Any, Any]:
    """Return numbers or dates as they are, and positions for labels."""
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if pd.api.types.is_numeric_dtype(index) or isinstance(index, pd.DatetimeIndex):
        return index.to_numpy()
    return np.arange(len(index))


def _between(times: np.ndarray[Any, Any], T0: int) -> Any:
    """Return the point halfway between the last untreated and the first treated period."""
    return times[T0 - 1] + (times[T0] - times[T0 - 1]) / 2


def _label_periods(axes: Axes, index: pd.Index[Any]) -> None:
    """Choose tick labels that do not overlap."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.ticker import MaxNLocator

    if pd.api.types.is_integer_dtype(index):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    elif isinstance(index, pd.DatetimeIndex | pd.PeriodIndex):
        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    elif not pd.api.types.is_numeric_dtype(index):
        longest = max(len(period_name(label)) for label in index)
        shown = max(2, min(10, 80 // (longest + 2)))
        step = -(-len(index) // shown)
        axes.set_xticks(range(0, len(index), step), [period_name(label) for label in index[::step]], parse_math=False)
