"""A release and the estimate from it with floating-point noise from a generator: how large errors are, nothing private.

It makes the choices of :class:`dpsc.GramRelease` with ``like=`` the target, and reads the matrix as an estimate does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsc.analyst.intervals import MixtureUncertainty
from dpsc.analyst.models import TargetModels
from dpsc.release.kernel import Kernel, Smoothness
from dpsc.release.matrix import GRID_BITS, budget_mu
from dpsc.release.population import Population, symmetric_noise
from dpsc.release.rowmap import RowMap, constant_for, constant_over_scale, directions_for
from dpsc.release.scale import COUNTED_AT_MOST, LEAST, MOST, MOST_COUNTS, estimated, guess_from, share_for
from dpsc.types import Array


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
        scale, share = self._scale(donors, n, y, on_counts)
        noise = math.sqrt(2 * self.sites / (1 - share)) / self.mu
        constant = constant_for(scale, constant_over_scale(n, noise))
        row_map = RowMap(T, kernel, None, directions_for(n, T, noise, kernel), constant, GRID_BITS)
        vectors = np.vstack([np.full(len(donors), row_map.constant), row_map.whitened(donors.T)])
        vectors /= np.linalg.norm(vectors, axis=0)
        size = row_map.size
        return vectors @ vectors.T * (n / len(donors)) + noise * on_matrix[:size, :size], noise, row_map

    def _scale(self, donors: Array, n: int, y: Array, noise: Array) -> tuple[float, float]:
        """Return how much a donor moves, from the target and noisy counts of donors, and what share the counts cost."""
        kernel = Kernel.named(self.smoothness)
        guess = guess_from(y, donors.shape[1], kernel)
        if self.sites > 1:
            return estimated(np.zeros(MOST_COUNTS), 0, 1.0, guess), 0.0
        columns = np.array(donors.T)
        kernel.whiten_movement_in_place(columns)
        powers = np.floor(np.log2(np.linalg.norm(columns, axis=0)))
        counts = np.bincount(np.clip(powers, LEAST, MOST).astype(int) - LEAST, minlength=MOST_COUNTS)
        counted = min(n, COUNTED_AT_MOST)
        share = share_for(counted, self.mu, guess is not None)
        mu = self.mu * math.sqrt(share)
        return estimated(counts * (counted / len(donors)) + math.sqrt(2) / mu * noise, counted, mu, guess), share
