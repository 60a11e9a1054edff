"""Search for the number where a condition starts or stops holding. The condition always holds at the result."""

from __future__ import annotations

import math
from collections.abc import Callable

Condition = Callable[[float], bool]


def smallest(holds: Condition, upper: float, *, precision: float) -> float:
    """Return about the first point at which an increasing condition holds; it must hold at ``upper``."""
    if holds(0.0):
        return 0.0
    lower = 0.0
    while upper - lower > precision * upper:
        middle = (lower + upper) / 2
        lower, upper = (lower, middle) if holds(middle) else (middle, upper)
    return upper


def largest(holds: Condition, start: float, *, precision: float, known: float | None = None) -> float:
    """Return about the last point at which a decreasing condition holds.

    ``known`` is a point where it holds. It may be far below the last one, so the search from there goes by ratios.

    Examples
    --------
    >>> round(largest(lambda x: x**2 <= 2, start=1.0, precision=1e-9), 6)
    1.414214
    """
    lower, upper = known, start
    while holds(upper):
        lower, upper = upper, 2 * upper
    if lower is None:
        lower = upper / 2
        while not holds(lower):
            lower, upper = lower / 2, lower
    while upper - lower > precision * upper:
        middle = (lower + upper) / 2 if known is None else math.sqrt(lower * upper)
        lower, upper = (middle, upper) if holds(middle) else (lower, middle)
    return lower
