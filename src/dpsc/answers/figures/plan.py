"""Figures from before any question is asked: the error to expect, and what a release says about its donors."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsc.answers.figures.sheet import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LABEL,
    PURPLE,
    SKY,
    VERMILION,
    PeriodAxis,
    Sheet,
    label_x,
    label_y,
    plain,
)
from dpsc.types import Array, Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plan_curves(table: pd.DataFrame, unit: str, sheet: Sheet) -> Axes:
    """Draw the expected error over epsilon, one curve per number of donors, and the error without privacy."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    axes = sheet.axes(3.8)
    styles = zip((BLUE, VERMILION, GREEN, PURPLE, SKY, BLACK), "osD^vP", strict=True)
    for (n, rows), (colour, marker) in zip(table.groupby("n"), itertools.cycle(styles), strict=False):
        rows = rows.sort_values("epsilon")
        axes.plot(rows["epsilon"], rows["error"], color=colour, marker=marker, ms=6, lw=1.9, label=f"{n:,} donors")
        axes.plot(rows["epsilon"], rows["without_privacy"], color=colour, lw=1.3, ls=":")
    axes.axhline(float(table["last_value"].median()), color=GREY, lw=1.2, ls="--", label="last value, no donors")
    axes.plot([], [], color=BLACK, lw=1.3, ls=":", label="the same without privacy")
    errors = table[["error", "without_privacy", "last_value"]].to_numpy(dtype=np.float64)
    far_apart = errors.max() > 3 * errors.min()
    axes.set(xscale="log", yscale="log" if far_apart else "linear")
    label_x(axes, "privacy budget ε (smaller protects more)")
    label_y(axes, f"expected error, {unit}" if unit else "expected error")
    axes.xaxis.set_major_locator(FixedLocator(sorted(table["epsilon"].unique())))
    if far_apart:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
    plain(axes)
    axes.tick_params(labelsize=LABEL)
    return sheet.finish(axes, "How large an error is to be expected?", True, "Simulated; no donor was touched.")


def movement(
    times: Times,
    mean: Array,
    error: Array,
    spread: Array,
    sheet: Sheet,
    *,
    outcome: str,
    caption: str,
    private: bool,
) -> Axes:
    """Draw how the donors move on average, how sure that is, and how far single donors are from it."""
    axes = sheet.axes(3.4)
    periods = PeriodAxis(times)
    at = periods.values
    axes.plot(at, mean, color=BLUE, lw=2, label="donors' average")
    hatched: Any = {"facecolor": "none", "edgecolor": BLUE, "hatch": "//////"}
    label = "how uncertain the average is (95%)"
    axes.fill_between(at, mean - 2 * error, mean + 2 * error, alpha=0.8, lw=0, label=label, **hatched)
    label = "where about two thirds of the donors are"
    axes.fill_between(at, mean - spread, mean + spread, color=SKY, alpha=0.25, lw=0, label=label)
    axes.axhline(0, color=GREY, lw=1)
    outcome = "the outcome" if outcome == "outcome" else outcome
    label_y(axes, f"{outcome}, less each donor's own level")
    plain(axes)
    periods.write(axes)
    return sheet.finish(axes, f"How do the donors move in {outcome}?", private, caption)
