"""Figures, by the name of their kind. Draws answers and knows nothing of mechanisms; shows and saves nothing itself."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from dpsc import checks
from dpsc.answers.base import Drawing
from dpsc.answers.figures.sheet import Sheet, figure_of
from dpsc.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Sheet", "as_bytes", "draw", "figure_of"]


class Drawn(Protocol):
    """What has figures: a result, a study."""

    figures: ClassVar[Mapping[str, Drawing]]


def draw(answer: Drawn, kind: str, sheet: Sheet | None = None, units: str | None = None) -> Axes:
    """Draw one of its figures, on a sheet or on a new figure, and return the axes."""
    if kind not in answer.figures:
        known = ", ".join(repr(name) for name in answer.figures)
        raise ParameterError(
            f"kind must be one of {known}, not {kind!r}.{checks.did_you_mean(str(kind), list(answer.figures))}"
        )
    return answer.figures[kind](answer, sheet or Sheet(), units)


def as_bytes(figure: Figure, format: Literal["png", "svg"], dpi: float = 200) -> bytes:
    """Return a figure as the content of a file, the same every time: no date in it, no random names."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "dpsc", "figure.autolayout": False, "figure.constrained_layout.use": False}):
        figure.savefig(buffer, format=format, dpi=dpi, metadata={"Date": None} if format == "svg" else None)
    return buffer.getvalue()
