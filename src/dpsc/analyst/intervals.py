"""How large the error of a forecast may be, for one target and for several whose errors are alike.

All targets are compared with the same estimated population. With A_i the map of a path to the error of target i's
forecast (later periods less what the earlier ones predict), path_i = shared mean's error + what the targets have in
common + its own, so that

    Cov(error_i, error_j) = A_i (mean_error + kappa c_i c_j (common + direction_error + sqrt(b_i b_j) bulk)) A_j'.

The mean's error is the same for all targets. kappa is how alike the targets are beyond what donors explain (a group
of regions that differs from the donors in the same way): it is found from how their average moved around what the
donors predict before the first intervention, averaged over its values by evidence. (The noise counts once between
targets and more within one: with more everywhere, pooled intervals hold too often.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln, stdtr, stdtrit

from dpsc.analyst.models import Candidate, Gaussian, log_sum
from dpsc.answers.effects import IntervalKind, IntervalPart
from dpsc.release.population import Population
from dpsc.types import Array, Integers

_TURNS = 120  # ten or so are usual
_CLOSE = 1e-12
# Constants, chosen on the panels to design on (docs/explanation/estimator.md):
INFLATION = 1.3  # of variances: what the choice of c and b by evidence leaves out
NOISE_COUNTS = 1.5  # the noise's part of a variance: the model of the donors' mean is too sure of itself
LASTING = 0.5  # the share of a variance, less what is new in every period, whose error is the same in all periods


@dataclass(frozen=True, eq=False)
class MixtureUncertainty:
    """The error of the mixture's mean: each candidate has Student's t around its own forecast.

    Parameters
    ----------
    candidates : list of Candidate
    periods : array, optional
        The positions of the candidates' periods among all T, if they are not all of them.
    """

    candidates: list[Candidate]
    periods: Integers | None = None
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
        spreads = np.sqrt([variances_before(c) for c in self.candidates])
        return self._mixture(centres, spreads).between(level)

    def law(self, combinations: Array, part: IntervalPart = "both") -> StudentMixture:
        """Return the law of the truth less the forecast, for each row of ``combinations``."""
        centres = np.array([combinations @ (c.observed.forecast - self.forecast) for c in self.candidates])
        if part == "privacy":
            centres = np.zeros_like(centres)
        variances = [variance_of(combinations, covariance_of(c, part), white_of(c, part)) for c in self.candidates]
        return self._mixture(centres, np.sqrt(variances))

    def _mixture(self, centres: Array, spreads: Array) -> StudentMixture:
        weights = np.array([c.weight for c in self.candidates])
        return StudentMixture(centres, spreads, weights, np.array([c.degrees for c in self.candidates]))


def covariance_of(candidate: Candidate, part: IntervalPart = "both") -> Array:
    """Return the covariance of a candidate's error, or a part of it, with what it leaves out added.

    Known noise on the target's own periods is added as it is, and so is what it and the donors' do to the forecast.
    """
    noise = candidate.observed.error_from(candidate.noise)
    if candidate.own_noise is not None:
        own = np.diag(candidate.own_noise[candidate.observed.T0 :])
        both = INFLATION * (candidate.observed.forecast_covariance - own) + own
        return {"both": both, "privacy": noise, "model": both - noise}[part]
    if part == "privacy":
        return INFLATION * NOISE_COUNTS * noise
    model = candidate.observed.forecast_covariance - noise
    return INFLATION * (model if part == "model" else model + NOISE_COUNTS * noise)


def white_of(candidate: Candidate, part: IntervalPart = "both") -> Array:
    """Return the variances of what is new to a candidate in every period, so that it cannot last."""
    later = slice(candidate.observed.T0, None)
    new = np.full(len(candidate.observed.path.mean[later]), INFLATION * candidate.white)
    if candidate.own_noise is None:
        return 0 * new if part == "privacy" else new
    both, noise = new + candidate.own_noise[later], candidate.noise.diagonal()[later]
    return np.asarray({"both": both, "privacy": noise, "model": (both - noise).clip(0)}[part])


def variances_before(candidate: Candidate) -> Array:
    """Return the variances of what the other periods before the intervention miss each of them by."""
    variances, T0 = candidate.observed.left_out[1] ** 2, candidate.observed.T0
    own = np.zeros(T0) if candidate.own_noise is None else candidate.own_noise[:T0]
    return np.asarray(INFLATION * (variances - own).clip(0) + own)


def variance_of(combinations: Array, covariance: Array, white: Array | float = 0.0) -> Array:
    """Return the variance of combinations of the periods, a part of each period's error being the same in all.

    What is new in every period, of variance ``white``, is not part of that.
    """
    new = (white * combinations**2).sum(axis=1)
    own = np.einsum("ch,hj,cj->c", combinations, covariance, combinations) - new
    same = (combinations @ np.sqrt((np.diag(covariance) - white).clip(0))) ** 2
    return _with_what_lasts(combinations, new, own, same)


def _with_what_lasts(combinations: Array, new: Array, own: Array, same: Array) -> Array:
    """Return variances, a share of each being what it is if the error is the same in all periods.

    Of a difference between periods such errors would cancel: that they are the same makes none smaller.
    """
    same = np.where((combinations < 0).any(axis=1), np.maximum(own, same), same)
    return np.asarray((new + (1 - LASTING) * own + LASTING * same).clip(1e-300))


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
        with np.errstate(over="ignore"):
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


_ALIKE = np.array([0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0])


@dataclass(frozen=True, eq=False)
class JointUncertainty:
    """The error of the forecasts of several targets, one after the other.

    Parameters
    ----------
    members : sequence of MixtureUncertainty
        Of each target, all over the same T periods, each with its own T0.
    population : Population
        That they were compared with.
    alike : float
        kappa.
    """

    members: Sequence[MixtureUncertainty]
    population: Population
    alike: float
    kind: ClassVar[IntervalKind] = "effect"

    def ends(self, combinations: Array, level: float, part: IntervalPart) -> tuple[Array, Array]:
        """Return how far below and above the forecasts the truth may be, for combinations of all targets' periods."""
        if part != "both":
            raise NotImplementedError("pooled intervals are not split into parts.")
        lower, upper = self._ask(combinations, lambda law, _: np.array(law.between(level)))
        return lower, upper

    def below(self, combinations: Array, values: Array) -> Array:
        """Return the chance that the truth is below the forecasts plus a value."""
        return self._ask(combinations, lambda law, rows: law.below(values[rows])[np.newaxis])[0]

    def quantile(self, combinations: Array, chances: Array) -> Array:
        """Return what the truth less the forecasts is below with these chances, one for each combination."""
        return self._ask(combinations, lambda law, rows: law.quantile(chances[rows])[np.newaxis])[0]

    def ends_before(self, level: float) -> tuple[Array, Array]:
        """Return nothing: before the interventions there are only the targets' own intervals."""
        return np.array([np.nan]), np.array([np.nan])

    def _ask(self, combinations: Array, question: Callable[[StudentMixture, Integers], Array]) -> list[Array]:
        """Ask the law of each combination: of one target alone its own law, of several a Student's t."""
        used = np.array([combinations[:, s].any(axis=1) for s in self.slices]).T
        whose = np.where(used.sum(axis=1) > 1, -1, used.argmax(axis=1))
        answers: dict[int, Array] = {}
        for target in np.unique(whose):
            rows = np.flatnonzero(whose == target)
            own = combinations[rows][:, self.slices[target]]
            law = self._law(combinations[rows]) if target < 0 else self.members[target].law(own)
            answers |= dict(zip(rows.tolist(), question(law, rows).T, strict=True))
        return list(np.array([answers[row] for row in range(len(combinations))]).T)

    def together(self, combinations: Array) -> tuple[Array, float]:
        """Return the scale matrix and the degrees of freedom of the Student's t of several combinations together."""
        return self._covariance(combinations), self._degrees

    def _law(self, combinations: Array) -> StudentMixture:
        spreads = np.sqrt(np.diag(self._covariance(combinations)).clip(1e-300))[np.newaxis]
        return StudentMixture(np.zeros_like(spreads), spreads, np.ones(1), np.array([self._degrees]))

    def _covariance(self, combinations: Array) -> Array:
        white = np.concatenate([_average(m, white_of) for m in self.members])
        new = (combinations * white) @ combinations.T
        own = combinations @ self.covariance @ combinations.T - new
        spreads = combinations * np.sqrt((np.diag(self.covariance) - white).clip(0))
        by_target = np.array([spreads[:, s].sum(axis=1) for s in self.slices]).T
        same = by_target @ self._correlations @ by_target.T
        plain = new + (1 - LASTING) * own + LASTING * same
        wide = _with_what_lasts(combinations, *map(np.diag, (new, own, same)))
        factors = np.sqrt(wide / np.diag(plain).clip(1e-300))
        return np.asarray(plain * np.outer(factors, factors))

    @cached_property
    def slices(self) -> list[slice]:
        """The place of each target among all periods."""
        ends = np.cumsum([len(member.forecast) for member in self.members])
        return [
            slice(int(end) - len(member.forecast), int(end)) for end, member in zip(ends, self.members, strict=True)
        ]

    @property
    def correlation(self) -> float:
        """Of the average errors of two targets, on average over pairs; 0 for one target alone."""
        count = len(self.members)
        pairs = float(self._correlations.sum() - count) / max(1, count * (count - 1))
        return min(1.0, max(0.0, pairs))

    @cached_property
    def _degrees(self) -> float:
        return float(np.mean([_average(member, lambda c: c.degrees) for member in self.members]))

    @cached_property
    def _correlations(self) -> Array:
        """Of the targets' average errors."""
        size = len(self.covariance)
        averages = np.zeros((len(self.members), size))
        for row, s in zip(averages, self.slices, strict=True):
            row[s] = 1 / (s.stop - s.start)
        covariance = averages @ self.covariance @ averages.T
        spread = np.sqrt(np.diag(covariance))
        return np.asarray(covariance / np.outer(spread, spread))

    @cached_property
    def covariance(self) -> Array:
        """Of all errors: what targets share, and on the blocks of the diagonal what each has for itself."""
        part = self.population
        T = len(part.mean)
        mean = [_error_map(m, T, lambda c: 1.0) for m in self.members]
        size = [_error_map(m, T, lambda c: math.sqrt(c.size)) for m in self.members]
        own = [_error_map(m, T, lambda c: math.sqrt(c.size * c.own_share)) for m in self.members]
        total = _together(mean, part.mean_error)
        total += self.alike * (_together(size, part.common + part.direction_error) + _together(own, part.bulk))
        total *= INFLATION
        for s, member in zip(self.slices, self.members, strict=True):
            total[s, s] = _own_covariance(member)
        return total


def _error_map(member: MixtureUncertainty, T: int, factor: Callable[[Candidate], float]) -> Array:
    """Return A, times a factor, averaged over the candidates: h × T."""
    weights = sum(c.weight * factor(c) * c.observed.weights for c in member.candidates)
    own = np.hstack([-np.asarray(weights), _average(member, factor) * np.eye(len(member.forecast))])
    if member.periods is None:
        return own
    every = np.zeros((len(own), T))
    every[:, member.periods] = own
    return every


def _average(member: MixtureUncertainty, value: Callable[[Candidate], Any]) -> Any:
    return sum(c.weight * value(c) for c in member.candidates)


def _together(maps: list[Array], covariance: Array) -> Array:
    stacked = np.vstack(maps)
    return np.asarray(stacked @ covariance @ stacked.T)


def _own_covariance(member: MixtureUncertainty) -> Array:
    """Return the covariance of the mixture: that of the candidates, and how they differ."""
    apart = np.array([c.observed.forecast - member.forecast for c in member.candidates])
    weights = np.array([c.weight for c in member.candidates])
    within = sum(c.weight * covariance_of(c) for c in member.candidates)
    return np.asarray(within + (apart.T * weights) @ apart)


def how_alike(
    population: Population, members: Sequence[MixtureUncertainty], pre: Array, weights: Array, periods: Integers
) -> float:
    """Return kappa, from the targets before the first intervention.

    Parameters
    ----------
    population : Population
        Over the periods before the first intervention.
    members : sequence of MixtureUncertainty
    pre : targets × periods
    weights : array
        Of the targets in their average; they add up to 1.
    periods : array
        The positions of those periods.
    """
    size = float(weights @ [_average(member, lambda c: c.size) for member in members])
    own = float(weights @ [_average(member, lambda c: c.size * c.own_share) for member in members])
    apart = float(weights @ weights)
    noise = sum(w**2 * _own_noise(member, periods) for w, member in zip(weights, members, strict=True))
    fixed = population.mean_error + np.diag(noise)
    unit = size * (population.common + population.direction_error) + own * population.bulk

    def log_evidence(alike: float) -> float:
        covariance = fixed + (alike + (1 - alike) * apart) * unit
        return Gaussian(population.mean, covariance, not population.has_level).observed(weights @ pre).log_evidence

    logs = np.array([log_evidence(alike) for alike in _ALIKE])
    return float(np.exp(logs - log_sum(logs)) @ _ALIKE)


def _own_noise(member: MixtureUncertainty, periods: Integers) -> Array:
    """Return the variances of the known noise on a target's periods at some positions."""
    known = member.candidates[0].own_noise
    if known is None or member.periods is None:
        return np.zeros(len(periods))
    return known[np.isin(member.periods, periods)]
