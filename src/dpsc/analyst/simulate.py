"""Simulated units that nobody treats, as like the target as its own history suggests, and what a release makes of them.

What units share builds up over time, as a random walk, or comes and goes, as white noise, or is half of each. What is a
unit's own comes and goes. So a history that keeps its direction is likely to be shared; one that jumps to and fro may
be either, but an average of many units that does is more likely to share its jumps.

A release of simulated donors makes the choices of :class:`dpsc.GramRelease` with ``like=`` the target, and the matrix
is read as an estimate does. Its noise is floating-point noise from a generator: how large errors are, nothing private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.fft import dst
from scipy.special import ndtri

from dpsc.analyst.intervals import MixtureUncertainty
from dpsc.analyst.models import TargetModels
from dpsc.release.kernel import Kernel, Smoothness
from dpsc.release.matrix import GRID_BITS, budget_mu
from dpsc.release.population import Population, symmetric_noise
from dpsc.release.rowmap import RowMap, constant_for, constant_over_scale, directions_for
from dpsc.release.scale import COUNTED_AT_MOST, LEAST, MOST, MOST_COUNTS, estimated, guess_from, share_for
from dpsc.types import Array

# Before the target is seen: chosen on the panels to design on and on factor models (docs/guides/choosing-epsilon.md).
USUAL = 0.35  # signal to noise, of single units
_AVERAGED = 30  # what is averaged is sparser: at this number and beyond it the ratio is 0.15
_SPREAD = 0.7  # of its logarithm
_FLEETING = (0.0, 0.5, 1.0)  # equally likely
_LOG_RATIOS = np.linspace(math.log(0.02), math.log(50.0), 201)


class Likeness(NamedTuple):
    """What is assumed about units.

    Attributes
    ----------
    signal_to_noise : float
        The standard deviation of what a unit shares over that of what is its own.
    fleeting : float
        The share of what units share, in variance, that comes and goes.
    """

    signal_to_noise: float
    fleeting: float


def likely(history: Array | None, T: int, averages: int, count: int, signal_to_noise: float | None) -> list[Likeness]:
    """Return assumptions that are likely after a history: equal steps of probability, from small to large ratios.

    Parameters
    ----------
    history : array or None
        Of the target; without it, all that is known is what is usual.
    T : int
        The number of periods over which variances are meant.
    averages : int
        How many units the target is the average of: the variance of what is their own is divided by it.
    count : int
        How many assumptions.
    signal_to_noise : float or None
        The ratio, if it is said.
    """
    log_ratios = _LOG_RATIOS if signal_to_noise is None else np.array([math.log(signal_to_noise)])
    log_ratio, fleeting = (each.ravel() for each in np.meshgrid(log_ratios, _FLEETING, indexing="ij"))
    usual = USUAL * min(averages, _AVERAGED) ** -0.25
    log_weights = -0.5 * ((log_ratio - math.log(usual)) / _SPREAD) ** 2
    if history is not None:
        log_weights = log_weights + _log_evidence(np.diff(history), T, np.exp(-2 * log_ratio) / averages, fleeting)
    below = np.cumsum(np.exp(log_weights - log_weights.max()))
    places = np.searchsorted(below, below[-1] * (np.arange(count) + 0.5) / count)
    return [Likeness(math.exp(log_ratio[i]), float(fleeting[i])) for i in places]


def walk_step(T: int) -> float:
    """Return the variance of a random walk's steps if its variance over T periods is one on average."""
    return 6 * T / (T**2 - 1)


def _log_evidence(changes: Array, T: int, own: Array, fleeting: Array) -> Array:
    """Return the log density of a target's changes, up to a constant, whatever its size, for each own variance.

    Sines diagonalise the covariance of changes: one for those of a random walk, ``2 - 2 cos`` for those of white noise.
    """
    N = len(changes)
    squares = dst(changes / np.abs(changes).max(), type=1, norm="ortho") ** 2
    of_white = 2 - 2 * np.cos(np.pi * np.arange(1, N + 1) / (N + 1))
    variances = walk_step(T) * (1 - fleeting[:, np.newaxis]) + np.outer(fleeting + own, of_white)
    return np.asarray(-0.5 * np.log(variances).sum(axis=1) - N / 2 * np.log((squares / variances).sum(axis=1)))


_SIMULATED_DONORS = 2000  # they stand for more
_SHOCK = 3.0  # mean absolute changes of the target from one period to the next, before the intervention
PENALTIES = 10.0 ** np.arange(-8, 1.1, 0.5)  # of ridge, relative to the donors' sum of squares


@dataclass(frozen=True, eq=False)
class Units:
    """Simulated paths.

    Attributes
    ----------
    target : array of length T
    donors : array, donors × T
        At most 2,000, which stand for more.
    T0 : int
    loss_of_target, losses : float and array
        What a shock takes from the target and from each donor.
    """

    target: Array
    donors: Array
    T0: int
    loss_of_target: float
    losses: Array

    def first(self, n: int) -> Units:
        """Return the target with the first n donors only."""
        return replace(self, donors=self.donors[:n], losses=self.losses[:n])

    def in_shock(self) -> Units:
        """Return the same units with a common shock that builds up over the first two periods from T0 on.

        Nothing before announces it.
        """
        steps = np.clip((np.arange(len(self.target)) - self.T0 + 1) / 2, 0, 1)
        target, donors = self.target - self.loss_of_target * steps, self.donors - np.outer(self.losses, steps)
        return replace(self, target=target, donors=donors)

    def error(self, forecast: Array | float) -> float:
        """Return the root mean squared error of a forecast of the target's periods from T0 on."""
        return math.sqrt(float(np.mean((forecast - self.target[self.T0 :]) ** 2)))

    def ridge_errors(self) -> list[float]:
        """Return the errors of ridge on the raw donors, one for each penalty, with every unit's level taken off.

        Weights are drawn towards equal ones, so a large penalty gives difference in differences.
        """
        y, T0 = self.target[: self.T0], self.T0
        X = self.donors - self.donors[:, :T0].mean(axis=1, keepdims=True)
        mean = y.mean() + X.mean(axis=0)
        values, vectors = np.linalg.eigh(X[:, :T0].T @ X[:, :T0])
        along, forward = vectors.T @ (y - mean[:T0]), X[:, T0:].T @ X[:, :T0] @ vectors
        penalties = PENALTIES * values.sum()
        return [self.error(mean[T0:] + forward @ (along / (np.maximum(values, 0) + p))) for p in penalties]


def simulated(n: int, T0: int, h: int, averages: int, rank: int, likeness: Likeness, seed: list[int]) -> Units:
    """Draw units ``level + sum of loading * factor + own part``; the target is the average of some.

    Factors are random walks, white noise or both. Loadings are uniform on [0, 2]: in real panels almost all units
    follow what is common to them, some more than others, so that the donors' mean moves too. The part that is a unit's
    own is white noise. The units of the target are the same for every n, and fewer donors are the first of more. The
    target's changes from one period to the next before T0 have a mean square of one.

    Parameters are as in :func:`dpsc.plan`.
    """
    T, count = T0 + h, averages + min(n, _SIMULATED_DONORS)
    steps, jumps = np.random.default_rng([*seed, 0]).normal(size=(2, rank, T))
    lasting = (1 - likeness.fleeting) * walk_step(T)
    factors = math.sqrt(lasting) * np.cumsum(steps, axis=1) + math.sqrt(likeness.fleeting) * jumps
    numbers = np.random.default_rng([*seed, 1]).random((count, rank + T + 2))  # a row for each unit
    moving = np.atleast_2d(np.cov(factors, bias=True))
    size = math.sqrt(np.trace(moving) / 3 + moving.sum())  # loadings have mean 1 and variance 1/3
    own = ndtri(numbers[:, rank : rank + T]) / likeness.signal_to_noise
    units = 2 * numbers[:, :rank] @ factors + size * (own + ndtri(numbers[:, -2:-1]))
    units /= math.sqrt(float(np.mean(np.diff(units[:averages].mean(axis=0)[:T0]) ** 2)))
    target = units[:averages].mean(axis=0)
    losses = _SHOCK * np.mean(np.abs(np.diff(target[:T0]))) * (0.5 + numbers[:, -1])
    return Units(
        target=target,
        donors=units[averages:],
        T0=T0,
        loss_of_target=float(losses[:averages].mean()),
        losses=losses[averages:],
    )


@dataclass(frozen=True)
class Rehearsal:
    """What a release with this budget would do.

    Parameters
    ----------
    epsilon, delta : float
    smoothness : {"high", "mild", "none"}
    sites : int
        How many sites share the donors. From two on the scale is agreed on beforehand, so none is counted for it.
    """

    epsilon: float
    delta: float
    smoothness: Smoothness = "high"
    sites: int = 1

    @cached_property
    def mu(self) -> float:
        """The sensitivity in standard deviations of the noise."""
        return budget_mu(self.epsilon, self.delta, GRID_BITS)

    def estimate(self, donors: Array, n: int, y: Array, rng: np.random.Generator) -> MixtureUncertainty:
        """Return the forecast of a target and its uncertainty, from its first periods y and n donors like these."""
        matrix, noise, row_map = self.release(donors, n, y, rng)
        return MixtureUncertainty(TargetModels(Population.of(matrix, n, noise, row_map), y).candidates)

    def release(self, donors: Array, n: int, y: Array, rng: np.random.Generator) -> tuple[Array, float, RowMap]:
        """Return a noisy matrix, the scale of its noise and the map of its rows.

        A generator gives the same noise whatever the budget and n.
        """
        T, kernel = donors.shape[1], Kernel.named(self.smoothness)
        on_counts, on_matrix = rng.normal(size=MOST_COUNTS), symmetric_noise(T, 1.0, rng)
        movement = np.array(donors.T)
        kernel.whiten_movement_in_place(movement)
        scale, share = self._scale(np.linalg.norm(movement, axis=0), n, guess_from(y, T, kernel), on_counts)
        noise = math.sqrt(2 * self.sites / (1 - share)) / self.mu
        constant = constant_for(scale, constant_over_scale(n, noise))
        row_map = RowMap(T, kernel, None, directions_for(n, T, noise, kernel), constant, GRID_BITS)
        whitened = movement[1:] if row_map.directions == T - 1 else row_map.whitened(donors.T)
        vectors = np.vstack([np.full(len(donors), row_map.constant), whitened])
        vectors /= np.linalg.norm(vectors, axis=0)
        size = row_map.size
        return vectors @ vectors.T * (n / len(donors)) + noise * on_matrix[:size, :size], noise, row_map

    def _scale(self, moved: Array, n: int, guess: float | None, noise: Array) -> tuple[float, float]:
        """Return how much a donor moves, from a guess and noisy counts of donors, and what share the counts cost."""
        if self.sites > 1:
            return estimated(np.zeros(MOST_COUNTS), 0, 1.0, guess), 0.0
        powers = np.floor(np.log2(moved))
        counts = np.bincount(np.clip(powers, LEAST, MOST).astype(int) - LEAST, minlength=MOST_COUNTS)
        counted = min(n, COUNTED_AT_MOST)
        share = share_for(counted, self.mu, guess is not None)
        mu = self.mu * math.sqrt(share)
        return estimated(counts * (counted / len(moved)) + math.sqrt(2) / mu * noise, counted, mu, guess), share
