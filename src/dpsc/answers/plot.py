"""Figures, by the name of their kind. Draws answers and knows nothing of mechanisms; shows and saves nothing itself."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from dpsc import checks
from dpsc.answers.base import Answer, Pooled
from dpsc.answers.figures import choices, plan
from dpsc.answers.figures.choices import in_space, in_time
from dpsc.answers.figures.sheet import Sheet
from dpsc.answers.placebos import Placebos, Sensitivity
from dpsc.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(
    answer: Answer | Pooled,
    kind: str,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    figsize: tuple[float, float | None] | None = None,
    units: str | None = None,
    shown: bool = False,
) -> Axes:
    """Draw one figure of a result or of a study, on a new figure or on given axes, and return the axes.

    Parameters
    ----------
    answer : Result or Study
    kind : str
        One of ``answer.figures``.
    ax : Axes, optional
    title : str, optional
        Instead of the answer's own question. NOT PRIVATE stays on what is not.
    figsize : pair of float, optional
        Of the new figure, in inches.
    units : str, optional
        The outcome's units.
    shown : bool
        In a notebook, make a new figure through pyplot, so that it is shown.
    """
    if kind not in answer.figures:
        known = ", ".join(repr(name) for name in answer.figures)
        raise ParameterError(
            f"kind must be one of {known}, not {kind!r}.{checks.did_you_mean(str(kind), list(answer.figures))}"
        )
    return answer.figures[kind](answer, Sheet(ax, title, figsize, shown), units)


def compare(
    documents: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    ax: Axes | None = None,
    title: str | None = None,
    figsize: tuple[float, float | None] | None = None,
) -> Axes:
    """Draw the average effects of several answers side by side: pairs of a name and the content of ``result.json``."""
    return choices.compared(documents, Sheet(ax, title, figsize))


def placebos(result: Answer, found: Placebos, *, units: str | None = None, **sheet: Any) -> Axes:
    """Draw placebos that are there already; other arguments as in :func:`compare`."""
    return {"time": in_time, "space": in_space}[found.kind](result, found, Sheet(**sheet), units)


def sensitivity(result: Answer, found: Sensitivity, *, units: str | None = None, **sheet: Any) -> Axes:
    """Draw other choices that are there already; other arguments as in :func:`compare`."""
    return choices.sensitivity(result, found, Sheet(**sheet), units)


def plan_curves(table: pd.DataFrame, unit: str) -> Figure:
    """Draw the expected error over epsilon, one curve per number of donors, and the error without privacy."""
    return figure_of(plan.plan_curves(table, unit, Sheet()))


def figure_of(axes: Axes) -> Figure:
    """Return the whole figure that axes are on."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def as_bytes(figure: Figure, format: Literal["png", "svg"], dpi: float = 200) -> bytes:
    """Return a figure as the content of a file, the same every time: no date in it, no random names."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "dpsc"}), _laid_out(figure, format, dpi):
        figure.savefig(buffer, format=format, dpi=dpi, metadata={"Date": None} if format == "svg" else None)
    return buffer.getvalue()


@contextmanager
def _laid_out(figure: Figure, format: Literal["png", "svg"], dpi: float) -> Iterator[None]:
    """Lay a figure out as saving it would, for as long as it is saved: a figure with a layout engine is drawn twice."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    engine, canvas, usual = figure.get_layout_engine(), figure.canvas, figure.dpi
    if engine is None:
        yield
        return
    {"png": FigureCanvasAgg, "svg": FigureCanvasSVG}[format](figure)
    try:
        figure.dpi = dpi
        engine.execute(figure)
        with mpl.rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
            figure.set_layout_engine(None)
        figure.dpi = usual
        yield
    finally:
        figure.dpi = usual
        figure.set_canvas(canvas)
        figure.set_layout_engine(engine)
