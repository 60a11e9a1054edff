"""How long the tests run: ``make test`` is quick, ``make soak`` sets DPSC_SOAK and repeats everything many times.

Every test runs in both, and differs in sizes only: a test that one of them skipped could be skipped by both.
"""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")
SOAK = bool(os.environ.get("DPSC_SOAK"))


def quick_or_long(quick: T, long: T) -> T:
    """Return what ``make test`` uses, or what ``make soak`` uses."""
    return long if SOAK else quick
