"""The second step of both algorithms: project the answer, not the data.

Given weights f that are already released, release Z'f with noise in h dimensions, instead of adding noise to all n × h
entries of Z. Also the projection of weights onto {||f||_1 <= 1}, which is post-processing and costs no budget.
"""

from __future__ import annotations

import math

import numpy as np

from dpsc.data.panel import ScaledPanel
from dpsc.privacy import discrete, exact, sensitivity
from dpsc.privacy.additive import (
    NoiseLaw,
    StepBudget,
    discrete_scale,
    release_floats,
    release_integers,
    require_fine_grid,
    zero_noise,
)
from dpsc.privacy.guarantee import Arithmetic
from dpsc.privacy.source import Source
from dpsc.types import Array


def check_answer(data: ScaledPanel, budget: StepBudget, arithmetic: Arithmetic) -> None:
    """Refuse, before anything is drawn, noise on the answer that might not fit into 64 bits or on too coarse a grid."""
    if arithmetic == "exact":
        n, h = data.Z.shape
        bits = _bits(n)
        largest = 4.0**bits
        discrete.require_room(discrete_scale((2 * h * largest, 2 * math.sqrt(h) * largest), budget), n * largest)
        require_fine_grid(sensitivity.answer(2.0 ** (bits - 1), _widths(data, bits))[1], h, budget)


def release_answer(
    data: ScaledPanel, weights: Array, budget: StepBudget, arithmetic: Arithmetic, source: Source
) -> tuple[Array, NoiseLaw]:
    """Release Z'f for released weights f, and the law of the noise on it.

    Private: Z, entries within its public bounds. Neighbours: one row of Z replaced. Sensitivity:
    ``sensitivity.answer``. The weights must be a released quantity, because they set the scale of the noise.
    """
    largest = float(np.abs(weights).max())
    if largest == 0:  # no donor has weight: the answer is zero whatever the donors are
        return np.zeros(data.Z.shape[1]), zero_noise(data.Z.shape[1])
    if arithmetic == "float":
        _, l2 = sensitivity.answer(largest, data.Z_upper - data.Z_lower)
        return release_floats(data.Z.T @ weights, l2, budget, source)

    # Both factors become integers, so that the product and its sensitivity are exact.
    n = data.Z.shape[0]
    bits = _bits(n)
    unit = 2 * exact.power_of_two_below(largest)  # so the largest integer below is 2^(bits - 1) or more
    f = exact.truncate(weights / unit, bits)
    Z = exact.truncate(data.Z, bits)
    noisy, noise = release_integers(
        Z.T @ f,
        sensitivity.answer(float(np.abs(f).max()), _widths(data, bits)),
        budget,
        source,
        largest=n * 4.0**bits,
    )
    resolution = math.ldexp(unit, -2 * bits)
    return noisy * resolution, noise.times(resolution)


def _widths(data: ScaledPanel, bits: int) -> Array:
    """Return how far one donor's truncated entries can be apart, period by period."""
    return (exact.truncate(data.Z_upper, bits) - exact.truncate(data.Z_lower, bits)).astype(np.float64)


def _bits(n: int) -> int:
    """Return a resolution at which a sum over n donors of products of two entries stays below 2^60."""
    return min(exact.ENTRY_BITS, int((60 - math.log2(n)) // 2))


def onto_l1_ball(f: Array, radius: float = 1.0) -> Array:
    """Return the point of {||f||_1 <= radius} nearest to f.

    Examples
    --------
    >>> onto_l1_ball(np.array([2.0, -2.0, 0.1])).tolist()
    [0.5, -0.5, 0.0]
    """
    size = np.abs(f)
    if math.fsum(size) <= radius:
        return f
    # Only entries within `radius` of the largest can stay; measured from there, large numbers do not cancel.
    height = (size - size.max()) + radius
    ordered = np.sort(height[height > 0])[::-1]
    excess = (np.cumsum(ordered) - radius) / np.arange(1, ordered.size + 1)
    threshold = excess[np.flatnonzero(ordered > excess)[-1]]
    kept = np.maximum(height - threshold, 0.0)
    return np.asarray(np.copysign(kept * (radius / math.fsum(kept)), f))
