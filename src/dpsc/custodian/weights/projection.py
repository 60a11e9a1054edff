"""The second step of both algorithms: project the answer, not the data, and turn it into a result.

Given weights f that are already released, release Z'f with noise in h dimensions, instead of adding noise to all n × h
entries of Z. Also the projection of weights onto {||f||_1 <= 1}, which is post-processing and costs no budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from dpsc.answers.effects import IntervalKind, IntervalPart, Unknown
from dpsc.answers.result import Findings
from dpsc.custodian.donors.panel import Panel, ScaledPanel
from dpsc.errors import ParameterError
from dpsc.privacy import discrete, exact, sensitivity
from dpsc.privacy.additive import (
    NoiseLaw,
    StepBudget,
    discrete_scale,
    release_integers,
    require_fine_grid,
)
from dpsc.privacy.source import Source
from dpsc.types import Array


def check_answer(data: ScaledPanel, budget: StepBudget) -> None:
    """Refuse, before anything is drawn, noise on the answer that might not fit into 64 bits or on too coarse a grid."""
    n, h = data.Z.shape
    bits = _bits(n)
    largest = 4.0**bits
    discrete.require_room(discrete_scale((2 * h * largest, 2 * math.sqrt(h) * largest), budget), n * largest)
    require_fine_grid(sensitivity.answer(2.0 ** (bits - 1), _widths(data, bits))[1], h, budget)


def release_answer(data: ScaledPanel, weights: Array, budget: StepBudget, source: Source) -> tuple[Array, NoiseLaw]:
    """Release Z'f for released weights f, and the law of the noise on it.

    Private: Z, entries within its public bounds. Neighbours: one row of Z replaced. Sensitivity:
    ``sensitivity.answer``. The weights must be a released quantity, because they set the scale of the noise.
    """
    largest = float(np.abs(weights).max())
    if largest == 0:  # no donor has weight: the answer is zero whatever the donors are
        return np.zeros(data.Z.shape[1]), NoiseLaw("gaussian", 0.0, data.Z.shape[1])

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


def onto_l1_ball(f: Array) -> Array:
    """Return the point of {||f||_1 <= 1} nearest to f.

    Examples
    --------
    >>> onto_l1_ball(np.array([2.0, -2.0, 0.1])).tolist()
    [0.5, -0.5, 0.0]
    """
    size = np.abs(f)
    if math.fsum(size) <= 1:
        return f
    # Only entries within 1 of the largest can stay; measured from there, large numbers do not cancel.
    height = (size - size.max()) + 1
    ordered = np.sort(height[height > 0])[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, ordered.size + 1)
    threshold = excess[np.flatnonzero(ordered > excess)[-1]]
    kept = np.maximum(height - threshold, 0.0)
    return np.asarray(np.copysign(kept * (1 / math.fsum(kept)), f))


PROJECTION_ONLY = (
    "intervals show the noise of the projection step, NOT the uncertainty of the effect: they do not include the error "
    "of the released weights"
)
BEYOND_BOUNDS = (
    "the counterfactual is beyond the public bounds: the noise is larger than any outcome can be, and the answer is "
    "useless. A Gram release needs far less noise"
)


@dataclass(frozen=True, eq=False)
class ProjectionNoise(Unknown):
    """The error that the noise of the projection step causes, in the outcome's units; the model's error is unknown."""

    noise: NoiseLaw
    unit: Array
    kind: IntervalKind = field(default="projection noise", init=False)

    def ends(self, combinations: Array, level: float, part: IntervalPart) -> tuple[Array, Array]:
        """Return the ends of what linear combinations of the periods may differ by: the same on both sides."""
        half = self._known(part) * np.array([self._half_width(self.unit * row, level) for row in combinations])
        return -half, half

    def _half_width(self, combination: Array, level: float) -> float:
        """Return the half-width for a combination; that of a single period is known without a search."""
        (used,) = np.nonzero(combination)
        if len(used) == 1:
            return self.noise.half_width(level) * abs(float(combination[used[0]]))
        return self.noise.half_width_of(combination, level)

    def _known(self, part: IntervalPart) -> int:
        if part == "model":
            raise ParameterError(
                "two-step algorithms release nothing about how well weights predict; use a Gram release."
            )
        return 1


Parameters = dict[str, float | str]  # public numbers, enough to redo the arithmetic by hand


def sizes(panel: Panel) -> Parameters:
    """Return the public sizes of a panel, the first of the parameters."""
    return {"n": panel.n, "T0": panel.T0, "h": panel.h}


def findings(
    panel: Panel, algorithm: str, weights: Array, scaled_path: Array, parameters: Parameters, noise: NoiseLaw
) -> Findings:
    """Return what a result holds: the path unscaled, and weights by position, as donors' labels are not released."""
    assert panel.bounds is not None
    path = panel.bounds.unscale(scaled_path, panel.post)
    beyond = (path < panel.bounds.lower[panel.post]) | (path > panel.bounds.upper[panel.post])
    return {
        "target": panel.target,
        "T0": panel.T0,
        "counterfactual": pd.Series(path, index=panel.times[panel.post], name="counterfactual"),
        "weights": pd.Series(weights, index=pd.RangeIndex(panel.n, name="donor"), name="weight"),
        "algorithm": algorithm,
        "parameters": parameters,
        "notes": (PROJECTION_ONLY, BEYOND_BOUNDS) if beyond.any() else (PROJECTION_ONLY,),
        "uncertainty": ProjectionNoise(noise, panel.bounds.factor[panel.post]),
    }
