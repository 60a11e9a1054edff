"""Figures from before any question is asked: the error to expect, and what a release says about its donors."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsc.answers.figures.sheet import BLACK, BLUE, GREEN, GREY, LINE, PURPLE, SKY, THIN, VERMILION, PeriodAxis, Sheet
from dpsc.types import Array, Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plan_curves(table: pd.DataFrame, unit: str, sheet: Sheet) -> Axes:
    """Draw the likely error over epsilon, one curve per number of donors, its range, and the error without privacy."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    axes = sheet.axes(3.1)
    styles = zip((BLUE, VERMILION, GREEN, PURPLE, SKY, BLACK), "osD^vP", strict=True)
    for (n, rows), (colour, marker) in zip(table.groupby("n"), itertools.cycle(styles), strict=False):
        rows = rows.sort_values("epsilon")
        axes.plot(rows["epsilon"], rows["error"], color=colour, marker=marker, ms=5, lw=LINE, label=f"{n:,} donors")
        axes.fill_between(rows["epsilon"], rows["error_low"], rows["error_high"], color=colour, alpha=0.1, lw=0)
        axes.plot(rows["epsilon"], rows["without_privacy"], color=colour, lw=1.3, ls=":")
    axes.plot([], [], color=BLACK, lw=1.3, ls=":", label="the same without privacy")
    axes.fill_between([], [], [], color=GREY, alpha=0.2, lw=0, label="range that holds 8 of 10 errors")
    errors, last = (
        table[["error_low", "error_high", "without_privacy"]].to_numpy(np.float64),
        float(table["last_value"].median()),
    )
    near = last <= 1.6 * errors.max()  # else the line would leave the curves a corner of the figure
    said = "no donors: the last value" if near else f"no donors, above the figure: the last value, {last:.3g}"
    axes.plot([], [], color=GREY, lw=1.3, ls="--", label=said)
    if near:
        axes.axhline(last, color=GREY, lw=1.3, ls="--")
    far_apart = errors.max() > 10 * errors.min()
    axes.set(xscale="log", yscale="log" if far_apart else "linear")
    if far_apart:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(FixedLocator(sorted(table["epsilon"].unique())))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    return sheet.finish(
        axes,
        "The error to expect from each budget",
        "",
        measured=f"likely error, {unit}" if unit else "likely error",
        along="privacy budget ε (smaller protects more)",
        small_print="Simulated; no donor was touched.",
    )


def movement(
    times: Times, mean: Array, error: Array, spread: Array, sheet: Sheet, *, outcome: str, caption: str, mark: str
) -> Axes:
    """Draw how the donors move on average, how sure that is, and how far single donors are from it."""
    axes = sheet.axes(2.9)
    periods = PeriodAxis(times)
    at = periods.values
    axes.plot(at, mean, color=BLUE, lw=LINE, label="donors' average")
    hatched: Any = {"facecolor": "none", "edgecolor": BLUE, "hatch": "//////"}
    label = "95% interval of the average"
    axes.fill_between(at, mean - 2 * error, mean + 2 * error, alpha=0.8, lw=0, label=label, **hatched)
    label = "about two thirds of the donors"
    axes.fill_between(at, mean - spread, mean + spread, color=SKY, alpha=0.25, lw=0, label=label)
    axes.axhline(0, color=GREY, lw=THIN)
    outcome = "the outcome" if outcome == "outcome" else outcome
    periods.write(axes)
    measured = f"{outcome}, less each donor's own level"
    return sheet.finish(axes, f"How the donors move in {outcome}", mark, measured=measured, small_print=caption)
