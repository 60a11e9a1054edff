"""Privacy losses that need no sampling, because the law of the output is known: delta(epsilon) and its inverse.

The formulas are written a second time on purpose: they check those of :mod:`dpsc.privacy.accounting`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import log_ndtr
from scipy.stats import beta

from dpsc.audit.distinguish import Shown
from dpsc.types import Array

_WINDOW = 40.0  # scales on either side of the centres; the probability beyond them is below e^-40
_LARGEST_TABLE = 2_000_000


def gaussian_delta(shift: float, epsilon: float) -> float:
    """Return delta(epsilon) of Gaussian noise whose centres are ``shift`` standard deviations apart.

    Examples
    --------
    >>> f"{gaussian_delta(1 / 4.2247, 1.0):.2g}"
    '1e-06'
    """
    if shift == 0:
        return 0.0
    upper, lower = shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift
    return float(max(0.0, math.exp(log_ndtr(upper)) - math.exp(epsilon + log_ndtr(lower))))


def laplace_delta(shift: float, epsilon: float) -> float:
    """Return delta(epsilon) of one-dimensional Laplace noise whose centres are ``shift`` scales apart.

    Examples
    --------
    >>> laplace_delta(1.0, 1.0), round(laplace_delta(1.0, 0.5), 4)
    (0.0, 0.2212)
    """
    return max(0.0, -math.expm1((epsilon - shift) / 2))


def table_delta(log_p: Array, log_q: Array, epsilon: float) -> float:
    """Return delta(epsilon) between two laws given by their log-probabilities on the same points."""
    return float(np.sum(np.maximum(np.exp(log_p) - np.exp(epsilon + log_q), 0.0)))


def discrete_tables(law: str, shift: int, scale: float) -> tuple[Array, Array]:
    """Return the log-probabilities of discrete noise around 0 and around ``shift``, on the integers that matter."""
    reach = math.ceil(_WINDOW * scale) + abs(shift)
    if 2 * reach + 1 > _LARGEST_TABLE:
        raise ValueError("the noise is too wide to tabulate; its law is the continuous one to many digits")
    points = np.arange(-reach, reach + 1, dtype=np.float64)

    def log_law(x: Array) -> Array:
        size = np.abs(x) / scale
        return np.asarray(-size if law == "laplace" else -(size**2) / 2)

    one, other = log_law(points), log_law(points - shift)
    return one - np.log(np.exp(one).sum()), other - np.log(np.exp(other).sum())


def epsilon_at(delta: float, curve: Callable[[float], float]) -> float:
    """Return the smallest epsilon with ``curve(epsilon) <= delta``, for a decreasing curve.

    Examples
    --------
    >>> round(epsilon_at(1e-6, lambda epsilon: gaussian_delta(1 / 4.2247, epsilon)), 3)
    1.0
    """
    if curve(0.0) <= delta:
        return 0.0
    upper = 1.0
    while curve(upper) > delta and upper < 2.0**60:
        upper *= 2
    lower = 0.0
    while upper - lower > 1e-12 * upper:
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if curve(middle) > delta else (lower, middle)
    return lower


def table_epsilon(log_p: Array, log_q: Array, delta: float) -> float:
    """Return the smallest epsilon at which two tabulated laws are within delta, in the worse of both directions."""
    if delta == 0:
        return float(np.abs(log_p - log_q).max())
    directions = ((log_p, log_q), (log_q, log_p))
    return max(epsilon_at(delta, partial(table_delta, p, q)) for p, q in directions)


def losses_delta(losses: Array, epsilon: float) -> float:
    """Return an estimate of delta(epsilon) from privacy losses of outputs drawn from the first of two laws."""
    return float(np.mean(np.maximum(-np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)))


def from_losses(losses: Array, *, delta: float, error: float) -> Shown:
    """Return the epsilon that sampled privacy losses L = log p(output) / q(output), output drawn from p, demonstrate.

    If L > t has probability at least s under p, it has at most s e^-t under q, so (epsilon, delta) needs
    ``s (1 - e^(epsilon - t)) <= delta``. Half of the sample chooses t, the other half bounds s from below.
    """
    training, testing = losses[: len(losses) // 2], losses[len(losses) // 2 :]

    def promise(t: float, sample: Array) -> tuple[float, int]:
        hits = int((sample >= t).sum())
        share = float(beta.ppf(error, hits, len(sample) - hits + 1)) if hits else 0.0
        return (t + math.log1p(-delta / share) if share > delta else 0.0), hits

    tails = np.geomspace(20 / len(training), 1, 200)
    t = max(np.unique(np.quantile(training, 1 - tails)), key=lambda t: promise(t, training)[0])
    epsilon, hits = promise(float(t), testing)
    return Shown(max(epsilon, 0.0), f"loss at least {t:.4g} in {hits} of {len(testing)}")
