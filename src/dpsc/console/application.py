"""A page as an application: without Shiny's inline script, which the policy forbids, and without quoted errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from shiny import App, Inputs, Outputs, Session, ui

_INLINE_SCRIPT = re.compile(r"<script>.*?</script>", re.DOTALL)  # Shiny has one, for spinners; none is allowed to run
_WWW = Path(__file__).parent / "www"


def application(page: str, serve: Callable[[Inputs, Outputs, Session], None]) -> App:
    """Return the application that shows a page; ``serve`` connects each that is opened."""
    app = App(ui.page_html(page), serve, static_assets={"/console": _WWW})
    app.sanitize_errors = True
    assert not callable(app.ui)
    app.ui["html"] = _INLINE_SCRIPT.sub("", app.ui["html"])
    return app
