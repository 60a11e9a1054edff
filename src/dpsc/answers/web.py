"""Self-contained HTML pages from templates: figures are inside the page, nothing is fetched, everything is escaped."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """Fill a template of ``dpsc/answers/templates``."""
    return _environment().get_template(template).render(**values)


def inline_svg(svg: bytes) -> str:
    """Return an SVG file as the address of an image that is part of the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("dpsc.answers"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
