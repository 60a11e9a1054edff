"""From comparisons of mean errors, each with its 95% interval, to a verdict on a claim."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from dpsc.paper.points import Outcome

Verdict = Literal["holds", "does not hold", "undecided"]
Z = 1.96
BETTER, UNCLEAR, WORSE = 1, 0, -1


def compare(a: Outcome | float, b: Outcome | float, factor: float = 1.0) -> int:
    """Return BETTER if ``factor * a`` is significantly below b, WORSE if significantly above."""
    a_mean, a_error = (a.mean, a.error) if isinstance(a, Outcome) else (a, 0.0)
    b_mean, b_error = (b.mean, b.error) if isinstance(b, Outcome) else (b, 0.0)
    difference = b_mean - factor * a_mean
    margin = Z * math.hypot(factor * a_error, b_error)
    return BETTER if difference > margin else WORSE if difference < -margin else UNCLEAR


def all_of(signs: Sequence[int]) -> Verdict:
    """Return "holds" if every comparison is BETTER, "does not hold" if one is WORSE."""
    if all(sign == BETTER for sign in signs):
        return "holds"
    return "does not hold" if WORSE in signs else "undecided"


def most_of(signs: Sequence[int]) -> Verdict:
    """Return "holds" if more than half of the comparisons are BETTER, "does not hold" if at least half are WORSE."""
    if signs.count(BETTER) > len(signs) / 2:
        return "holds"
    return "does not hold" if signs.count(WORSE) >= len(signs) / 2 else "undecided"


def tally(signs: Sequence[int]) -> str:
    """Count comparisons in words."""
    return f"{signs.count(BETTER)} yes, {signs.count(WORSE)} no, {signs.count(UNCLEAR)} within noise"


def named(size: tuple[int, int]) -> str:
    """Name a size."""
    return f"n={size[0]}, T0={size[1]}"


def geometric_mean(ratios: Iterable[float]) -> float:
    """Average ratios."""
    return float(np.exp(np.mean(np.log(list(ratios)))))
