"""Errors that nobody expected: the page names their kind alone, because their message might quote what was uploaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from dpsc.console.screens import render


def said(step: Callable[[], Any]) -> str:
    """Run a step; return what to say if it fails, else nothing."""
    try:
        step()
    except Exception as problem:
        if os.environ.get("DPSC_TRACEBACK"):
            raise
        return f"An unexpected error ({type(problem).__name__}). Its message is not shown; DPSC_TRACEBACK=1 shows it."
    return ""


def shown(panel: Callable[[], str]) -> str:
    """Return a part of the page, or what to show in its place."""
    parts: list[str] = []
    trouble = said(lambda: parts.append(panel()))
    return render("unexpected.html", said=trouble) if trouble else parts[0]
