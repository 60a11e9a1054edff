"""Figures. Draws results and knows nothing of mechanisms; returns figures and never shows or saves them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsc.result import NonPrivateResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart with any colour vision, and in grey by lightness.
BLACK, ORANGE, BLUE, GREY = "#000000", "#D55E00", "#0072B2", "#999999"


def path(result: Any) -> Figure:
    """Draw observed and counterfactual over time, and the gap between them below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.6), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    times = _axis_values(result.target.index)
    post = times[result.T0 :]

    top.plot(times, result.target, color=BLACK, lw=1.8, label="observed")
    if isinstance(result, NonPrivateResult):
        top.plot(times[: result.T0], result.fitted, color=ORANGE, lw=1.2, ls=":", label="fit")
    top.plot(post, result.counterfactual, color=ORANGE, lw=1.8, ls="--", marker="o", ms=3, label="counterfactual")
    top.set_ylabel(str(result.target.name))
    top.legend(frameon=False, loc="best")
    top.set_title(result._headline(), loc="left", fontsize=10)

    bottom.axhline(0, color=GREY, lw=1)
    bottom.plot(post, result.gaps, color=BLUE, lw=1.8, marker="o", ms=3)
    bottom.set_ylabel("gap")
    bottom.set_xlabel(str(result.target.index.name or "time"))

    for axes in (top, bottom):
        axes.axvline(_between(times, result.T0), color=GREY, lw=1, ls=":")
        axes.spines[["top", "right"]].set_visible(False)
    _label_periods(bottom, result.target.index)
    return figure


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
    from matplotlib.ticker import MaxNLocator

    if pd.api.types.is_integer_dtype(index):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    elif index.dtype == object or pd.api.types.is_string_dtype(index):
        step = max(1, len(index) // 10)
        axes.set_xticks(range(0, len(index), step), [str(t) for t in index[::step]])
