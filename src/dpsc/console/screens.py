"""Parts of the page from templates; everything that is filled in is escaped."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from dpsc.answers import words


def render(template: str, **values: Any) -> str:
    """Fill a template of ``dpsc/console/templates``."""
    return _environment().get_template(template).render(words=words, **values)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    loader = ChoiceLoader([PackageLoader("dpsc.console"), PackageLoader("dpsc.answers")])
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
