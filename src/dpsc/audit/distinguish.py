"""From two samples of outputs, one for each neighbour, to a privacy loss that has been demonstrated."""

from __future__ import annotations

import math

from scipy.stats import beta


def epsilon_lower_bound(
    hits: int, runs: int, neighbour_hits: int, neighbour_runs: int, *, delta: float = 0.0, error: float = 1e-3
) -> float:
    """Return an epsilon that the mechanism exceeds, wrong with probability at most ``error``.

    (epsilon, delta)-differential privacy means p <= e^epsilon q + delta for the probabilities p and q of any event
    under two neighbours. Clopper-Pearson bounds p from below and q from above, each at half the error. The event
    must have been fixed on other runs than these.

    Examples
    --------
    >>> round(epsilon_lower_bound(5000, 10_000, 0, 10_000), 1)
    6.5
    """
    p = float(beta.ppf(error / 2, hits, runs - hits + 1)) if hits else 0.0
    q = (
        float(beta.isf(error / 2, neighbour_hits + 1, neighbour_runs - neighbour_hits))
        if neighbour_hits < runs
        else 1.0
    )
    return math.log((p - delta) / q) if p > delta else 0.0
