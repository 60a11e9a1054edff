"""Second moments straight from a noisy matrix, for those who want plain ridge or robust synthetic control."""

from __future__ import annotations

import numpy as np

from dpsc.gram.mapping import RowMap
from dpsc.gram.population import above
from dpsc.types import Array


def plain(matrix: Array, row_map: RowMap, *, ridge: float) -> Array:
    """Return the noisy moments over time with negative eigenvalues set to zero and ``ridge`` added to the diagonal."""
    lam, V = above(_second_moments(matrix, row_map), 0.0)
    return _over_time(V, lam, row_map) + ridge * np.eye(row_map.T)


def truncated(
    matrix: Array, noise_scale: float, row_map: RowMap, *, rank: int | None = None, threshold: float | None = None
) -> Array:
    """Keep the largest eigenvalues: the first ``rank``, or those whose root, a singular value, is above a threshold."""
    lam, V = above(_second_moments(matrix, row_map), 0.0 if threshold is None else threshold**2)
    if rank is not None:
        lam, V = lam[-rank:], V[:, -rank:]
    floor = 1e-9 * max(float(lam.max(initial=0.0)), noise_scale) * row_map.kernel.matrix(row_map.T)
    return _over_time(V, lam, row_map) + floor


def symmetric_noise(size: int, scale: float, rng: np.random.Generator) -> Array:
    """Draw noise like that of a release, with this scale on the diagonal; in floating point, for simulations only."""
    above_diagonal = np.triu(rng.normal(size=(size, size)), 1) * scale / np.sqrt(2)
    return np.asarray(above_diagonal + above_diagonal.T + np.diag(rng.normal(size=size)) * scale)


def _second_moments(matrix: Array, row_map: RowMap) -> Array:
    """Return the part of the matrix without the constant."""
    return matrix if row_map.directions is None else matrix[1:, 1:]


def _over_time(V: Array, lam: Array, row_map: RowMap) -> Array:
    paths = row_map.back @ V
    return np.asarray((paths * lam) @ paths.T)
