"""The end of every two-step algorithm: turn a released path into a result in the outcome's units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dpsc.answers.result import SEEDED, Findings, PrivateResult, UnprovenResult, released
from dpsc.answers.uncertainty import IntervalKind, IntervalPart, Unknown
from dpsc.data.panel import Panel
from dpsc.errors import ParameterError
from dpsc.privacy.additive import NoiseLaw
from dpsc.privacy.guarantee import Guarantee
from dpsc.types import Array

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


def private(
    panel: Panel,
    algorithm: str,
    weights: Array,
    scaled_path: Array,
    parameters: Mapping[str, Any],
    noise: NoiseLaw,
    guarantee: Guarantee | None,
) -> PrivateResult | UnprovenResult:
    """Return an answer with its guarantee, or without one (None) if its noise came from a seed."""
    return released(guarantee, SEEDED, **_findings(panel, algorithm, weights, scaled_path, parameters, noise))


def unproven(
    panel: Panel,
    algorithm: str,
    weights: Array,
    scaled_path: Array,
    parameters: Mapping[str, Any],
    noise: NoiseLaw,
    reason: str,
) -> UnprovenResult:
    """Return an answer without a guarantee, and the reason why it has none."""
    return UnprovenResult(**_findings(panel, algorithm, weights, scaled_path, parameters, noise), reason=reason)


def _findings(
    panel: Panel, algorithm: str, weights: Array, scaled_path: Array, parameters: Mapping[str, Any], noise: NoiseLaw
) -> Findings:
    """Unscale the path; index the weights by position, because the donors' labels are not released."""
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
        "uncertainty": ProjectionNoise(noise, panel.bounds.unscale_difference(np.ones(panel.h), panel.post)),
    }
