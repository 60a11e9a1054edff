"""How large the error of a forecast may be: intervals of a mixture of models, as its predictive law gives them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import stdtr, stdtrit

from dpsc.answers.base import IntervalKind, IntervalPart
from dpsc.gram.models import Candidate
from dpsc.types import Array

_HALVINGS = 60
_INFLATION = 1.5  # of variances: what the choice of c and b by evidence leaves out


@dataclass(frozen=True, eq=False)
class MixtureUncertainty:
    """The error of the mixture's mean: each candidate has Student's t around its own forecast.

    Parameters
    ----------
    candidates : list of Candidate
    """

    candidates: list[Candidate]
    kind: ClassVar[IntervalKind] = "effect"

    @cached_property
    def forecast(self) -> Array:
        """The mixture's mean."""
        return np.asarray(sum(c.weight * c.observed.forecast for c in self.candidates))

    def ends(self, combinations: Array, level: float, part: IntervalPart) -> tuple[Array, Array]:
        """Return how far below and above the forecast the truth may be, for each row of ``combinations``.

        The truth is a linear combination of the later periods; the ends are the quantiles (1 - level) / 2 and
        (1 + level) / 2 of the mixture, found by halving.
        """
        weights = np.array([c.weight for c in self.candidates])
        degrees = np.array([c.degrees for c in self.candidates])[:, np.newaxis]
        centres = np.array([combinations @ (c.observed.forecast - self.forecast) for c in self.candidates])
        covariances = [_INFLATION * self._covariance(c, part) for c in self.candidates]
        if part == "privacy":
            centres = np.zeros_like(centres)
        spreads = np.sqrt([np.einsum("ch,hj,cj->c", combinations, V, combinations).clip(1e-300) for V in covariances])
        lower, upper = (_quantile(p, centres, spreads, weights, degrees) for p in ((1 - level) / 2, (1 + level) / 2))
        return lower, upper

    @staticmethod
    def _covariance(candidate: Candidate, part: IntervalPart) -> Array:
        if part == "both":
            return candidate.observed.forecast_covariance
        noise = candidate.observed.error_from(candidate.noise)
        return noise if part == "privacy" else candidate.observed.forecast_covariance - noise


def _quantile(p: float, centres: Array, spreads: Array, weights: Array, degrees: Array) -> Array:
    each = centres + stdtrit(degrees, p) * spreads
    low, high = each.min(axis=0), each.max(axis=0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = weights @ stdtr(degrees, (middle - centres) / spreads) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)
