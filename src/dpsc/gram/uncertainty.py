"""How large the error of a forecast may be: intervals of a mixture of models, as its predictive law gives them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import gammaln, stdtr, stdtrit

from dpsc.answers.uncertainty import IntervalKind, IntervalPart
from dpsc.gram.models import Candidate
from dpsc.types import Array

_TURNS = 120  # ten or so are usual
_CLOSE = 1e-12
# Three constants, chosen on the panels to design on (docs/estimator.md):
INFLATION = 1.2  # of variances: what the choice of c and b by evidence leaves out
NOISE_COUNTS = 2.0  # the noise's part of a variance: the model of the donors' mean is too sure of itself
LASTING = 0.5  # the share of a variance whose error is the same in all periods: something new that stays


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

    @cached_property
    def fit(self) -> Array:
        """The mixture's mean of each period before the intervention, from all others before it."""
        return np.asarray(sum(c.weight * c.observed.left_out[0] for c in self.candidates))

    def ends(self, combinations: Array, level: float, part: IntervalPart) -> tuple[Array, Array]:
        """Return how far below and above the forecast the truth may be, for each row of ``combinations``.

        The truth is a linear combination of the later periods; the ends are the quantiles (1 - level) / 2 and
        (1 + level) / 2 of the mixture, found by search.
        """
        return self.law(combinations, part).between(level)

    def below(self, combinations: Array, values: Array) -> Array:
        """Return the chance that the truth is below the forecast plus a value, for each row of ``combinations``."""
        return self.law(combinations).below(values)

    def quantile(self, combinations: Array, chances: Array) -> Array:
        """Return what the truth less the forecast is below with these chances, one for each combination."""
        return self.law(combinations).quantile(chances)

    def ends_before(self, level: float) -> tuple[Array, Array]:
        """Return how far below and above the fit each period before the intervention may be."""
        centres = np.array([c.observed.left_out[0] - self.fit for c in self.candidates])
        spreads = np.array([np.sqrt(INFLATION) * c.observed.left_out[1] for c in self.candidates])
        return self._mixture(centres, spreads).between(level)

    def law(self, combinations: Array, part: IntervalPart = "both") -> StudentMixture:
        """Return the law of the truth less the forecast, for each row of ``combinations``."""
        centres = np.array([combinations @ (c.observed.forecast - self.forecast) for c in self.candidates])
        if part == "privacy":
            centres = np.zeros_like(centres)
        variances = [variance_of(combinations, covariance_of(c, part)) for c in self.candidates]
        return self._mixture(centres, np.sqrt(variances))

    def _mixture(self, centres: Array, spreads: Array) -> StudentMixture:
        weights = np.array([c.weight for c in self.candidates])
        return StudentMixture(centres, spreads, weights, np.array([c.degrees for c in self.candidates]))


def covariance_of(candidate: Candidate, part: IntervalPart = "both") -> Array:
    """Return the covariance of a candidate's error, or a part of it, with what it leaves out added."""
    noise = candidate.observed.error_from(candidate.noise)
    if part == "privacy":
        return NOISE_COUNTS * noise * INFLATION
    model = candidate.observed.forecast_covariance - noise
    return INFLATION * (model if part == "model" else model + NOISE_COUNTS * noise)


def variance_of(combinations: Array, covariance: Array) -> Array:
    """Return the variance of combinations of the periods, a part of each period's error being the same in all."""
    own = np.einsum("ch,hj,cj->c", combinations, covariance, combinations)
    same = (combinations @ np.sqrt(np.diag(covariance).clip(0))) ** 2
    return np.asarray(((1 - LASTING) * own + LASTING * same).clip(1e-300))


@dataclass(frozen=True, eq=False)
class StudentMixture:
    """Mixtures of Student's t: one column per number, one row per member.

    Parameters
    ----------
    centres, spreads : members × numbers
    weights, degrees : arrays of length members
    """

    centres: Array
    spreads: Array
    weights: Array
    degrees: Array

    def between(self, level: float) -> tuple[Array, Array]:
        """Return the ends of the central interval."""
        numbers = self.centres.shape[1]
        both = StudentMixture(np.tile(self.centres, 2), np.tile(self.spreads, 2), self.weights, self.degrees)
        ends = both.quantile(np.repeat([(1 - level) / 2, (1 + level) / 2], numbers))
        return ends[:numbers], ends[numbers:]

    def below(self, values: Array) -> Array:
        """Return the chance of less than a value."""
        return np.asarray(self.weights @ stdtr(self.degrees[:, np.newaxis], (values - self.centres) / self.spreads))

    def density(self, values: Array) -> Array:
        """Return the density at a value."""
        degrees = self.degrees[:, np.newaxis]
        squares = ((values - self.centres) / self.spreads) ** 2
        constants = np.exp(gammaln((degrees + 1) / 2) - gammaln(degrees / 2)) / np.sqrt(np.pi * degrees)
        return np.asarray(self.weights @ (constants * (1 + squares / degrees) ** (-(degrees + 1) / 2) / self.spreads))

    def quantile(self, chances: Array) -> Array:
        """Return the values below which numbers are with these chances, one for each number.

        Newton's steps while they get shorter and stay between what is known to be below and above, halvings otherwise.
        """
        each = self.centres + stdtrit(self.degrees[:, np.newaxis], chances) * self.spreads
        low, high = each.min(axis=0), each.max(axis=0)
        now, moved = self.weights @ each, high - low
        for _ in range(_TURNS):
            missed = self.below(now) - chances
            low, high = np.where(missed < 0, now, low), np.where(missed < 0, high, now)
            step = -missed / np.maximum(self.density(now), 1e-300)
            newton = (low <= now + step) & (now + step <= high) & (2 * np.abs(step) <= moved)
            step = np.where(newton, step, (low + high) / 2 - now)
            now, moved = now + step, np.abs(step)
            if (moved <= _CLOSE * np.abs(each).max(axis=0)).all():
                break
        return np.asarray(now)
