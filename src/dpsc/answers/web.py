"""Self-contained HTML pages from templates: figures are inside the page, nothing is fetched, everything is escaped."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dpsc.answers import plot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment
    from matplotlib.figure import Figure


def render(template: str, **values: Any) -> str:
    """Fill a template of ``dpsc/answers/templates``."""
    return _environment().get_template(template).render(**values)


def inline_svg(svg: bytes) -> str:
    """Return an SVG file as the address of an image that is part of the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")


def inline_png(png: bytes) -> str:
    """Return a PNG file as the address of an image that is part of the page."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def card(heading: str, lines: Sequence[str], figure: Figure, private: bool, reason: str) -> str:
    """Return what a notebook shows of an object: a heading, a few sentences, and a figure."""
    image = inline_png(plot.as_bytes(figure, "png", dpi=144))
    return render("card.html", heading=heading, lines=lines, image=image, warning="" if private else reason)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("dpsc.answers"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
