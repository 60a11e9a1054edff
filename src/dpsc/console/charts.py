"""The library's figures on the page, and where on them each period is, so that a date can be chosen by a click."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from dpsc.answers import plot, web
from dpsc.answers.figures.periods import PeriodAxis
from dpsc.answers.figures.sheet import Sheet, label_y, plain
from dpsc.answers.palette import BLACK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE, NARROW = 8.4, 4.8  # inches; letters of 9 points can be read on a desk and on a phone


class Chart(NamedTuple):
    """A figure inside the page; ``at`` are the places of the periods, as shares of its width."""

    source: str
    at: list[float]
    top: float
    bottom: float


def drawn(draw: Callable[..., Axes], width: float, index: pd.Index[Any] | None = None) -> Chart:
    """Draw a figure so many inches wide."""
    axes = draw(figsize=(width, None))
    figure = plot.figure_of(axes)
    source = web.inline_svg(plot.as_bytes(figure, "svg"))
    if index is None:
        return Chart(source, [], 0.0, 1.0)
    box = axes.get_position()
    axis: Any = axes.xaxis
    places = axis.convert_units(PeriodAxis(index).values)
    at = [float(axes.transData.transform((x, 0.0))[0] / figure.bbox.width) for x in places]
    return Chart(source, [round(share, 5) for share in at], 1 - box.y1, 1 - box.y0)


def target_alone(series: pd.Series[float], units: str | None, figsize: tuple[float, float | None]) -> Axes:
    """Draw the target before any date is chosen."""
    sheet = Sheet(None, "", figsize)
    axes = sheet.axes(3.6)
    times = PeriodAxis(series.index)
    axes.plot(times.values, series, color=BLACK, lw=1.9, marker="o" if len(series) <= 60 else "", ms=3.2)
    plain(axes)
    label_y(axes, f"{series.name} ({units})" if units else str(series.name))
    times.write(axes)
    return sheet.finish(axes, "", True, "")
