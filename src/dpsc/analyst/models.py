"""The target as a member of the donors' population, and donor-free models of it beside.

Pure post-processing: a population estimated from a release, and a public target before the intervention.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsc.release.population import Population, root_of, solve
from dpsc.types import Array

_SIZES = 10.0 ** np.arange(-3, 6.1, 0.5)  # c^2: from an average of a thousand units to other units of measurement
_USUAL_SIZES = 9  # how many of them are expected: each has a prior weight of one in so many
_OWN_SHARES = 10.0 ** np.arange(-2.5, 0.6, 0.5)  # b
_OWN_SHARE_SPREAD = 2.0  # of log b about 0
_LEAST_WEIGHT = 1e-4


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Paths N(mean, covariance) over T periods, with a free level if there is one; the first T0 are observed.

    A free level is known nothing of beforehand (a flat prior): only differences within the path are compared.
    """

    mean: Array
    covariance: Array
    free_level: bool

    def observed(self, y: Array) -> Observed:
        """Return the law of the later periods, given the first ones."""
        T0 = len(y)
        root = root_of(self.covariance[:T0, :T0])
        errors = solve(root, y - self.mean[:T0])
        ones = solve(root, np.ones(T0)) if self.free_level else np.zeros(T0)
        return Observed(self, T0, root, errors, ones)


@dataclass(frozen=True, eq=False)
class Observed:
    """A Gaussian path whose first T0 periods are known.

    With D = L L' the covariance of these periods, ``errors`` is ``L^-1 (y - mean)`` and ``ones`` is ``L^-1 1`` (zero
    without a free level). The estimate of the level is ``ones.errors / ones.ones``.
    """

    path: Gaussian
    T0: int
    root: Array
    errors: Array
    ones: Array

    @cached_property
    def level(self) -> float:
        """The level, by generalised least squares."""
        return float(self.ones @ self.errors / self.precision) if self.path.free_level else 0.0

    @cached_property
    def precision(self) -> float:
        """Of the level."""
        return float(self.ones @ self.ones)

    @property
    def log_evidence(self) -> float:
        """The log density of the first periods (of their differences, if the level is free), up to a constant."""
        return self.log_evidence_if_scaled(1.0)

    def log_evidence_if_scaled(self, factor: float) -> float:
        """Return the log density if the covariance were multiplied by a factor."""
        left = self.errors - self.level * self.ones
        free = int(self.path.free_level)
        log_level = math.log(self.precision) / 2 if free else 0.0
        log_size = self._log_size + (self.T0 - free) * math.log(factor) / 2
        return -log_size - float(left @ left) / (2 * factor) - log_level

    @cached_property
    def _log_size(self) -> float:
        return float(np.log(self.root.diagonal()).sum())

    @cached_property
    def _half(self) -> Array:
        later = self.path.covariance[: self.T0, self.T0 :]
        return solve(self.root, later)

    @cached_property
    def weights(self) -> Array:
        """Each later period as a combination of the first T0, less the means: h × T0."""
        plain = solve(self.root, self._half, transposed=True).T
        if not self.path.free_level:
            return np.asarray(plain)
        level = solve(self.root, self.ones, transposed=True) / self.precision
        return np.asarray(plain + np.outer(1 - plain.sum(axis=1), level))

    @cached_property
    def forecast(self) -> Array:
        """The expected later periods."""
        left = self.errors - self.level * self.ones
        return np.asarray(self.path.mean[self.T0 :] + self.level + self._half.T @ left)

    @cached_property
    def forecast_covariance(self) -> Array:
        """Of the later periods around the forecast."""
        covariance = self.path.covariance[self.T0 :, self.T0 :] - self._half.T @ self._half
        if self.path.free_level:
            missed = 1 - self._half.T @ self.ones
            covariance = covariance + np.outer(missed, missed) / self.precision
        return np.asarray(covariance)

    def error_from(self, part: Array) -> Array:
        """Return what a part of the covariance contributes to that of the forecast's error."""
        first, later, B = slice(None, self.T0), slice(self.T0, None), self.weights
        cross = B @ part[first, later]
        return np.asarray(part[later, later] - cross - cross.T + B @ part[first, first] @ B.T)

    @cached_property
    def left_out(self) -> tuple[Array, Array]:
        """Each of the first periods as the others foretell it, and the standard deviation of what they miss it by.

        With P the inverse covariance (less the level's direction), ``y_t - E[y_t | others] = (P (y - mean))_t / P_tt``
        and its variance is ``1 / P_tt``.
        """
        inverse = solve(self.root, np.eye(self.T0))
        level = inverse.T @ self.ones / math.sqrt(self.precision) if self.path.free_level else np.zeros(self.T0)
        precisions = np.einsum("ij,ij->j", inverse, inverse) - level**2
        missed = inverse.T @ (self.errors - self.level * self.ones) / precisions
        y = self.path.mean[: self.T0] + self.root @ self.errors
        return y - missed, 1 / np.sqrt(precisions)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model of the target, its weight, and the degrees of freedom of its tails."""

    observed: Observed
    weight: float
    degrees: float
    noise: Array  # the part of its covariance that is due to the noise of the release
    size: float = 1.0  # c^2
    own_share: float = 1.0  # b


def target_models(population: Population, y: Array) -> tuple[list[Candidate], float]:
    """Return models of a target that is a unit of the population, or an average of several.

    ``y ~ free level + N(mean, mean_error + c^2 (common + direction_error + b bulk))``: c is the target's size among
    units, b its idiosyncratic share, small for an average of many. They are weighted by the evidence of the first
    periods; its sum is returned too.
    """
    part, T, factor = population, len(population.mean), 1.0
    if part.has_level:
        factor = float(np.mean(Gaussian(part.mean, part.common + part.bulk, False).observed(y).errors ** 2))
        part = part.times(factor)

    shared = part.common + part.direction_error

    def model(c2: float, b: float, periods: int) -> Observed:
        s = np.s_[:periods, :periods]
        covariance = part.mean_error[s] + c2 * (shared[s] + b * part.bulk[s])
        return Gaussian(part.mean[:periods], covariance, not part.has_level).observed(y)

    prior = -0.5 * (np.log(_OWN_SHARES) / _OWN_SHARE_SPREAD) ** 2
    prior -= log_sum(prior) + math.log(_USUAL_SIZES)

    def log_weight(i: int, j: int) -> float:
        return model(_SIZES[i], _OWN_SHARES[j], len(y)).log_evidence + float(prior[j])

    start, shape = (
        (int(np.argmin(abs(_SIZES - 1))), int(np.argmin(abs(_OWN_SHARES - 1)))),
        (len(_SIZES), len(_OWN_SHARES)),
    )
    found = explored(log_weight, start, shape, -math.log(_LEAST_WEIGHT))
    total = log_sum(found.values())
    weights = {at: math.exp(log - total) for at, log in found.items()}
    kept = {at: weight for at, weight in weights.items() if weight >= _LEAST_WEIGHT}
    candidates = [
        Candidate(
            observed=model(_SIZES[i], _OWN_SHARES[j], T),
            weight=weight / sum(kept.values()),
            degrees=1 + len(y) / 2 + 1 / min(1.0, _SIZES[i]),
            noise=part.mean_error + _SIZES[i] * part.direction_error,
            size=factor * float(_SIZES[i]),
            own_share=float(_OWN_SHARES[j]),
        )
        for (i, j), weight in kept.items()
    ]
    return candidates, total


def explored(
    log_weight: Callable[[int, int], float], start: tuple[int, int], shape: tuple[int, int], worst: float
) -> dict[tuple[int, int], float]:
    """Return log weights on a grid, from the start outward wherever they are within ``worst`` of the best so far."""
    found: dict[tuple[int, int], float] = {}
    waiting = {start}
    while waiting:
        for at in waiting:
            found[at] = log_weight(*at)
        best = max(found.values())
        waiting = {
            (i, j)
            for (a, b), log in found.items()
            if log > best - worst
            for i, j in ((a - 1, b), (a + 1, b), (a, b - 1), (a, b + 1))
            if 0 <= i < shape[0] and 0 <= j < shape[1] and (i, j) not in found
        }
    return found


def plain_model(D: Array, y: Array, free_level: bool) -> Candidate:
    """Return one model with second moments D around zero, on the target's own scale."""
    observed = Gaussian(np.zeros(len(D)), D, free_level).observed(y)
    left, degrees = observed.errors - observed.level * observed.ones, max(1, len(y) - 1)
    scale = float(left @ left) / degrees
    scaled = Gaussian(np.zeros(len(D)), scale * D, free_level).observed(y)
    return Candidate(scaled, weight=1.0, degrees=float(degrees), noise=np.zeros_like(D))


def donor_free_evidence(y: Array, size: float) -> float:
    """Return the log evidence of the target without donors, for comparison.

    Level plus white noise, a random walk, half of each, or a damped trend, of variances around ``size``.
    """
    T0 = len(y)
    white, walk, times = np.eye(T0), random_walk(T0), np.arange(T0)
    response = np.cumsum(np.tril(0.8 ** np.maximum(np.subtract.outer(times, times), 0)), axis=0)
    trend = response @ response.T
    shapes = (white, walk, (white + walk) / 2, trend / np.diag(trend).mean())
    sizes = size * 10.0 ** np.arange(-3.5, 1.6, 0.5)
    observed = [Gaussian(np.zeros(T0), shape, True).observed(y) for shape in shapes]
    logs = [each.log_evidence_if_scaled(v) for each in observed for v in sizes]
    return log_sum(logs) - math.log(len(logs))


def random_walk(T: int) -> Array:
    """Return the covariance of a random walk, with mean variance 1."""
    steps = np.arange(1.0, T + 1)
    return np.asarray(np.minimum.outer(steps, steps) / steps.mean())


def log_sum(logs: Iterable[float]) -> float:
    """Return the logarithm of a sum, from logarithms."""
    values = np.asarray(list(logs))
    return float(values.max() + np.log(np.exp(values - values.max()).sum()))
