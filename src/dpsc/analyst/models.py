"""The target as a member of the donors' population, and donor-free models of it beside.

Pure post-processing: a population estimated from a release, and a public target before the intervention.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dormqr, dptsv, dsterf, dsytrd, dsytrd_lwork

from dpsc.errors import ReleaseError
from dpsc.release.population import Population, root_of, solve
from dpsc.types import Array

_SIZES = 10.0 ** np.arange(-5, 6.1, 0.25)  # c^2: from averages of many thousands to other units of measurement
_USUAL_SIZES = 18  # how many of them are expected: each has a prior weight of one in so many
_SIZE_SPREAD = 1.5  # of log c^2 about -log m, for a target that is known to be the average of m units
_OWN_SHARES = 10.0 ** np.arange(-2.5, 0.6, 0.5)  # b
_OWN_SHARE_SPREAD = 2.0  # of log b about 0
_LOADINGS = {0.0: 0.989, 0.3: 0.01, 3.0: 0.001}  # tau: variance of the loading on the mean about 1; prior weights
_LOADED_SIZES = _SIZES <= 0.02  # averages of fifty and more: only these may have another loading than 1
_NEW = 1.2  # how much of what is new in every period counts as such: the bulk's shapes are not exact
_CLEAR = 1.5  # standard deviations of the noise: what is beyond the model counts if it is more
_LEAST_WEIGHT = 1e-3


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
        return -self._log_size - self._squares / 2 - self._log_level

    def log_evidence_of_any_size(self) -> float:
        """Return the log density if the covariance may have any size: a quarter of a decade has a weight of one in 18.

        ``integral over v > 0 of v^(-d/2) exp(-S / (2 v)) dv / v = Gamma(d/2) (S/2)^(-d/2)``.
        """
        half = (self.T0 - int(self.path.free_level)) / 2
        sizes = math.lgamma(half) - half * math.log(max(self._squares, 1e-300) / 2)
        return -self._log_size - self._log_level + sizes - math.log(_USUAL_SIZES * math.log(10) / 4)

    @property
    def _squares(self) -> float:
        left = self.errors - self.level * self.ones
        return float(left @ left)

    @property
    def _log_level(self) -> float:
        return math.log(self.precision) / 2 if self.path.free_level else 0.0

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

    @property
    def average_error(self) -> Array:
        """The error of the average forecast of the later periods, as a combination of all T periods."""
        h = len(self.path.mean) - self.T0
        return np.concatenate([-self.weights.mean(axis=0), np.full(h, 1 / h)])

    def with_later(self, variance: float) -> Observed:
        """Return the law if one number more, of this variance, is in all later periods."""
        covariance = self.path.covariance.copy()
        covariance[self.T0 :, self.T0 :] += variance
        return replace(self, path=replace(self.path, covariance=covariance))

    def error_from(self, part: Array) -> Array:
        """Return what a part of the covariance contributes to that of the forecast's error."""
        first, later, B = slice(None, self.T0), slice(self.T0, None), self.weights
        cross = B @ part[first, later]
        return np.asarray(part[later, later] - cross - cross.T + B @ part[first, first] @ B.T)

    @cached_property
    def left_out(self) -> tuple[Array, Array]:
        """Each of the first periods as the others predict it, and the standard deviation of what they miss it by.

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
    white: float = 0.0  # the variance of what is new in every period, so far as it outweighs what lasts
    own_noise: Array | None = None  # the variances of the noise on the target's own periods, if they are known


@dataclass(frozen=True, eq=False)
class TargetModels:
    """Models of a target that is a unit of the population, or an average of several.

    ``y ~ free level + N(mean, mean_error + tau mean mean' + c^2 (common + direction_error + b bulk))``: c is the
    target's size among units, b its idiosyncratic share, small for an average of many, tau the variance of its loading
    on the mean (averages of very unequal units follow the plain mean of the donors, not the release's weighted one).
    If donors differ more after T0, given what they did before, than common, bulk and noise explain, as when each
    responds in its own way to something new, c^2 times the difference is added to all later periods.

    Parameters
    ----------
    population : Population
    y : array of length T0
    averages : int, optional
        How many units the target is the average of, if that is known: c^2 is then about one in so many.
    noise : array of length T, optional
        The variances of the noise on the target's own periods, if it is from a private panel.
    """

    population: Population
    y: Array
    averages: int | None = None
    noise: Array | None = None

    @cached_property
    def candidates(self) -> list[Candidate]:
        """Every model that counts, its weight from the evidence of the first periods."""
        weights = np.exp(self._logs - log_sum(self._logs.ravel()))
        kept = np.argwhere(weights >= _LEAST_WEIGHT)
        total = float(sum(weights[i, j, k] for i, j, k in kept))
        return [self._candidate(i, j, k, float(weights[i, j, k]) / total) for i, j, k in kept]

    @property
    def log_evidence(self) -> float:
        """Of all models together."""
        return log_sum(self._logs.ravel())

    def log_evidence_in_units(self, factors: Array, reference: Array) -> Array:
        """Return the log density of the target if it were ``factor`` times as large, for each factor.

        It is the density of the target as it is given, so that factors can be compared. ``reference`` is what was taken
        off the target, in the donors' units.
        """
        logs = self._log_weights(factors, reference)
        scaled = (len(self.y) - 1) * np.log(factors)
        return np.asarray(np.array([log_sum(each.ravel()) for each in logs]) + scaled)

    @cached_property
    def _part(self) -> Population:
        """The population; one without a mean, of version 0.1.0, at the target's own size."""
        return self.population.times(self._unit)

    @cached_property
    def _unit(self) -> float:
        part = self.population
        if not part.has_level:
            return 1.0
        return float(np.mean(Gaussian(part.mean, part.common + part.bulk, False).observed(self.y).errors ** 2))

    @cached_property
    def _movement(self) -> Array:
        """The mean's, over all periods."""
        return np.asarray(self._part.mean - self._part.mean.mean())

    @cached_property
    def _fixed(self) -> Array:
        """The covariance that does not depend on the target's size."""
        return self._part.mean_error if self.noise is None else self._part.mean_error + np.diag(self.noise)

    @cached_property
    def _logs(self) -> Array:
        return np.asarray(self._log_weights(np.ones(1), np.zeros(len(self.y)))[0])

    def _log_weights(self, factors: Array, reference: Array) -> Array:
        """Return prior weight and evidence of ``factor (y + reference) - reference``, for every b, tau and c^2."""
        y = self.y + reference
        evidence = [each.log_evidence(factors, y, reference, _SIZES, _LOADINGS) for each in self._all_sizes]
        return np.asarray(np.stack(evidence, axis=1) + self._log_prior)

    @cached_property
    def _log_prior(self) -> Array:
        own = -0.5 * (np.log(_OWN_SHARES) / _OWN_SHARE_SPREAD) ** 2
        size = np.full(len(_SIZES), -math.log(_USUAL_SIZES))
        if self.averages is not None and not self._part.has_level:
            size = -0.5 * (np.log(_SIZES * self.averages) / _SIZE_SPREAD) ** 2
            size -= log_sum(size)
        loading = np.where(_LOADED_SIZES, np.log(list(_LOADINGS.values()))[:, np.newaxis], -np.inf)
        loading[0, ~_LOADED_SIZES] = 0.0
        by_size = loading + size
        return np.asarray((own - log_sum(own))[:, np.newaxis, np.newaxis] + by_size)

    @cached_property
    def _all_sizes(self) -> list[AllSizes]:
        """The target's first periods for every b."""
        s, part = np.s_[: len(self.y)], self._part
        shared = part.common[s, s] + part.direction_error[s, s]
        return [
            AllSizes.of(
                part.mean[s], self._fixed[s, s], shared + b * part.bulk[s, s], self._movement[s], not part.has_level
            )
            for b in _OWN_SHARES
        ]

    def _candidate(self, i: int, j: int, k: int, weight: float) -> Candidate:
        """Return the model with the i-th b, the j-th tau and the k-th c^2."""
        part, b, tau, c2 = self._part, float(_OWN_SHARES[i]), list(_LOADINGS)[j], float(_SIZES[k])
        shared = part.common + part.direction_error
        covariance = self._fixed + c2 * (shared + b * part.bulk)
        if tau > 0:
            covariance += tau * np.outer(self._movement, self._movement)
        observed = Gaussian(part.mean, covariance, not part.has_level).observed(self.y)
        error = observed.average_error
        missed, noise = float(error @ part.missed @ error), float(error @ part.missed_noise @ error)
        lasting = np.diag(part.common).mean() + b * (np.diag(part.bulk).mean() - part.white)
        return Candidate(
            observed=observed.with_later(c2 * missed) if missed > _CLEAR * noise else observed,
            weight=weight,
            degrees=1 + len(self.y) / 2 + 1 / min(1.0, c2),
            noise=part.mean_error + c2 * part.direction_error,
            size=self._unit * c2,
            own_share=b,
            white=_NEW * c2 * max(0.0, float(b * part.white - lasting)),
            own_noise=self.noise,
        )


@dataclass(frozen=True, eq=False)
class AllSizes:
    """The evidence of paths ``free level + N(mean, fixed + tau movement movement' + c^2 varying)`` for all c^2 at once.

    With ``varying = L L'`` and ``L^-1 fixed L'^-1 = Q R Q'``, R tridiagonal, the covariance without tau is ``(L Q)
    (R + c^2 I) (L Q)'``: after one reduction every c^2 takes a few sums. Paths are kept as ``Q' L^-1 path``.

    Attributes
    ----------
    root : array
        L.
    reflections : pair of arrays
        Q, as LAPACK stores it.
    diagonal, beside, sizes_of_fixed : array
        Of R: its diagonal, what is beside it, and its eigenvalues.
    """

    root: Array
    reflections: tuple[Array, Array]
    diagonal: Array
    beside: Array
    sizes_of_fixed: Array
    mean: Array
    movement: Array
    ones: Array

    @classmethod
    def of(cls, mean: Array, fixed: Array, varying: Array, movement: Array, free_level: bool) -> AllSizes:
        """Decompose."""
        root = root_of(varying)
        half = solve(root, fixed)
        room = int(dsytrd_lwork(len(mean), lower=1)[0])
        reduced, diagonal, beside, lengths, _ = dsytrd(solve(root, half.T), lower=1, lwork=room, overwrite_a=1)
        eigenvalues, failed = dsterf(diagonal, beside)
        if failed or not np.isfinite(eigenvalues).all():
            raise ReleaseError("the numbers of the release or the target are too large or too small to compute with.")
        below_zero = min(0.0, float(eigenvalues[0]))  # by rounding alone
        nothing = np.zeros(len(mean))
        made = cls(
            root,
            (np.asfortranarray(reduced[1:, :-1]), lengths),
            diagonal - below_zero,
            beside,
            eigenvalues - below_zero,
            *(nothing,) * 3,
        )
        ones = made._turned(nothing + 1) if free_level else nothing
        return replace(made, mean=made._turned(mean), movement=made._turned(movement), ones=ones)

    def _turned(self, path: Array) -> Array:
        turned = solve(self.root, path[:, np.newaxis])
        turned[1:] = dormqr("L", "T", *self.reflections, turned[1:], lwork=len(path))[0]
        return np.asarray(turned[:, 0])

    def log_evidence(self, factors: Array, y: Array, less: Array, sizes: Array, loadings: Iterable[float]) -> Array:
        """Return the log density of ``factor y - less``, up to a constant, for every factor, loading and size."""
        paths = np.stack([self._turned(y), self._turned(less) + self.mean, self.movement, self.ones])
        variances = self.sizes_of_fixed + sizes[:, np.newaxis]
        solved = [dptsv(self.diagonal + size, self.beside, paths.T)[2] for size in sizes]
        inner = paths @ np.stack(solved)  # of paths, for every size
        log_size = float(np.log(self.root.diagonal()).sum()) + np.log(variances).sum(axis=1) / 2
        f = factors[:, np.newaxis]
        of_errors = f**2 * inner[:, 0, 0] - 2 * f * inner[:, 0, 1] + inner[:, 1, 1]
        with_movement, with_ones = (f * inner[:, 0, k] - inner[:, 1, k] for k in (2, 3))
        found = []
        for tau in loadings:
            gain = tau / (1 + tau * inner[:, 2, 2])  # by Woodbury's identity
            squares = of_errors - gain * with_movement**2
            logs = -log_size - np.log1p(tau * inner[:, 2, 2]) / 2 - squares / 2
            if self.ones.any():
                precision = inner[:, 3, 3] - gain * inner[:, 2, 3] ** 2
                level = (with_ones - gain * with_movement * inner[:, 2, 3]) / precision
                logs = logs + (level**2 * precision - np.log(precision)) / 2
            found.append(logs)
        return np.stack(found, axis=1)


def plain_model(D: Array, y: Array, free_level: bool) -> Candidate:
    """Return one model with second moments D around zero, on the target's own scale."""
    observed = Gaussian(np.zeros(len(D)), D, free_level).observed(y)
    left, degrees = observed.errors - observed.level * observed.ones, max(1, len(y) - 1)
    scale = float(left @ left) / degrees
    scaled = Gaussian(np.zeros(len(D)), scale * D, free_level).observed(y)
    return Candidate(scaled, weight=1.0, degrees=float(degrees), noise=np.zeros_like(D))


def donor_free_evidence(y: Array) -> float:
    """Return the log evidence of the target without donors, for comparison.

    Level plus white noise, a random walk, half of each, or a damped trend, of any size: it does not depend on the
    target's unit of measurement.
    """
    T0 = len(y)
    white, times = np.eye(T0), np.arange(T0)
    walk = np.minimum.outer(times + 1.0, times + 1.0) / (times + 1.0).mean()  # a random walk with mean variance 1
    response = np.cumsum(np.tril(0.8 ** np.maximum(np.subtract.outer(times, times), 0)), axis=0)
    trend = response @ response.T
    shapes = (white, walk, (white + walk) / 2, trend / np.diag(trend).mean())
    logs = [Gaussian(np.zeros(T0), shape, True).observed(y).log_evidence_of_any_size() for shape in shapes]
    return log_sum(logs) - math.log(len(logs))


def log_sum(logs: Iterable[float]) -> float:
    """Return the logarithm of a sum, from logarithms."""
    values = np.asarray(list(logs))
    return float(values.max() + np.log(np.exp(values - values.max()).sum()))
