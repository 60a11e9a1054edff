"""From a noisy matrix to the population that the donors come from: pure post-processing of a release.

Donors are taken for draws from one population: a mean path, a few common directions, and idiosyncratic variation
around them (the bulk). All are estimated from the release with what is known about its noise: its scale, hence the size
E of its largest eigenvalue, and that the trace is n.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.optimize import nnls

from dpsc.gram.attenuation import Attenuation
from dpsc.gram.kernel import Kernel, correlation
from dpsc.gram.mapping import RowMap
from dpsc.types import Array

_ROUNDS = 6
_BULK_PERSISTENCE = (0.0, 0.5, 0.95)
_MEAN_LIKE_DONORS = (0.0, *10.0 ** np.arange(-3, 0.1, 0.5))
_MEAN_SHAPES = (0.0, 0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True, eq=False)
class Population:
    """Units are N(mean, common + bulk), in the outcome's own units, up to a level of their own.

    Attributes
    ----------
    mean : array of length T
        The mean movement; zero if the release holds none.
    mean_error : T × T
        How uncertain it is, as a covariance.
    common : T × T
        The covariance of what units have in common, in a few directions.
    direction_error : T × T
        What noise hides of these directions.
    bulk : T × T
        The covariance of what each unit has for itself.
    directions : int
        How many common directions rise above the noise.
    counted : float
        How many donors the release counts; those that move much more than its constant count less.
    has_level : bool
        Whether ``common`` and ``bulk`` include units' levels, as in releases of version 0.1.0.
    """

    mean: Array
    mean_error: Array
    common: Array
    direction_error: Array
    bulk: Array
    directions: int
    counted: float
    has_level: bool

    def over(self, T: int) -> Population:
        """Return the population over the first T periods only."""
        s = np.s_[:T, :T]
        return replace(
            self, mean=self.mean[:T], mean_error=self.mean_error[s], common=self.common[s],
            direction_error=self.direction_error[s], bulk=self.bulk[s],
        )  # fmt: skip

    def size(self) -> float:
        """Return the mean variance of a unit per period."""
        return float(np.diag(self.common + self.direction_error + self.bulk).mean())

    def times(self, factor: float) -> Population:
        """Return the population with covariances multiplied, for a population without a mean."""
        return replace(
            self, common=factor * self.common, direction_error=factor * self.direction_error, bulk=factor * self.bulk
        )

    @classmethod
    def of(cls, matrix: Array, n: int, noise_scale: float, row_map: RowMap) -> Population:
        """Estimate the population from a noisy matrix of vectors of length one."""
        matrix = matrix + np.eye(len(matrix)) * (n - np.trace(matrix)) / len(matrix)
        if row_map.directions is None:
            return cls._without_mean(matrix, n, noise_scale, row_map)
        back, R = row_map.back, row_map.constant
        counted = max(float(matrix[0, 0]), 2 * noise_scale)
        seen, moments = matrix[0, 1:] / counted, matrix[1:, 1:]  # in units of R

        variance = (noise_scale / counted) ** 2 / 2
        split = Split.of(moments, noise_scale, row_map)
        first, _ = _mean(seen, np.eye(len(seen)), variance, split.over_time(back) / counted, row_map)
        centre = row_map.whitening @ first
        split = Split.of(moments - counted * np.outer(centre, centre), noise_scale, row_map)
        attenuation = Attenuation.of(centre, split.in_directions(row_map) / counted)
        to_seen, undo = attenuation.to_mean(), attenuation.from_covariance()
        mean, mean_error = _mean(seen, to_seen, variance, split.over_time(back @ undo) / counted, row_map)
        unit = R**2 / counted
        bulk = split.bulk_in_directions(row_map)
        more_bulk = float(np.trace(undo @ bulk @ undo.T) / np.trace(bulk))
        return cls(
            mean=R * mean,
            mean_error=R**2 * mean_error,
            common=unit * split.common(back @ undo),
            direction_error=unit * split.lost * back @ undo @ undo.T @ back.T,
            bulk=unit * more_bulk * split.bulk,
            directions=len(split.sizes),
            counted=counted,
            has_level=False,
        )

    @classmethod
    def _without_mean(cls, matrix: Array, n: int, noise_scale: float, row_map: RowMap) -> Population:
        """Read a matrix of version 0.1.0: second moments around zero, levels included, in units of nobody."""
        split, T, back = Split.of(matrix, noise_scale, row_map), row_map.T, row_map.back
        return cls(
            mean=np.zeros(T),
            mean_error=np.zeros((T, T)),
            common=split.common(back) / n,
            direction_error=split.lost * back @ back.T / n,
            bulk=split.bulk / n,
            directions=len(split.sizes),
            counted=float(n),
            has_level=True,
        )


@dataclass(frozen=True, eq=False)
class Split:
    """Second moments in k whitened directions, split into common directions and a bulk."""

    vectors: Array
    sizes: Array
    lost: float
    bulk: Array

    @classmethod
    def of(cls, moments: Array, noise_scale: float, row_map: RowMap) -> Split:
        """Split a noisy matrix.

        With E = noise_scale sqrt(2 k), the size of the largest eigenvalue of the noise: common directions are
        eigenvectors of moments - bulk with eigenvalue lam > E, of true size theta = (lam + sqrt(lam^2 - E^2)) / 2;
        the bulk is a non-negative combination of AR(1) covariances, fitted to what the directions leave; both are
        estimated in turn. Eigenvalues are then shrunk to eta = sqrt(lam^2 - E^2), which is optimal in Frobenius norm
        for a low-rank matrix in such noise; what shrinking takes off is ``lost``, spread over all directions: the
        true ones point a little elsewhere.
        """
        k = len(moments)
        E = noise_scale * math.sqrt(2 * k)
        whole, shapes, basis, triangle = _bulk_shapes(row_map.kernel, row_map.T, row_map.directions)
        bulk = max(float(np.median(np.linalg.eigvalsh(moments))), 0.0) * np.eye(k)
        for _ in range(_ROUNDS):
            lam, V = above(moments - bulk, E)
            theta = (lam + np.sqrt(lam**2 - E**2)) / 2
            amounts = nnls(triangle, basis.T @ (moments - (V * theta) @ V.T).ravel())[0]
            bulk = np.tensordot(amounts, shapes, axes=1)
        eta = np.maximum(np.sqrt(lam**2 - E**2), 0.1 * E)
        return cls(
            vectors=V,
            sizes=eta,
            lost=max(0.0, float(np.sum(theta - eta))) / k,
            bulk=np.tensordot(amounts, whole, axes=1) + 0.001 * E * row_map.kernel.matrix(row_map.T),
        )

    def common(self, back: Array) -> Array:
        """Return the common part over time."""
        paths = back @ self.vectors
        return np.asarray((paths * self.sizes) @ paths.T)

    def over_time(self, back: Array) -> Array:
        """Return both parts over time."""
        return self.common(back) + self.bulk

    def bulk_in_directions(self, row_map: RowMap) -> Array:
        """Return the bulk in the whitened directions."""
        W = row_map.whitening
        return np.asarray(W @ self.bulk @ W.T)

    def in_directions(self, row_map: RowMap) -> Array:
        """Return both parts in the whitened directions."""
        return (self.vectors * self.sizes) @ self.vectors.T + self.bulk_in_directions(row_map)


def _mean(
    seen: Array, to_seen: Array, variance: float, like_donors: Array, row_map: RowMap
) -> tuple[Array, Array]:
    """Return the mean over all T periods and its error, from its noisy image in the k directions.

    Its prior is a mixture of a path like a donor's, a trend and a slow walk, in amounts of greatest evidence. What the
    k directions do not show of it stays in its error.
    """
    W, T = to_seen @ row_map.whitening, row_map.T
    size = float(np.trace(like_donors) - like_donors.sum() / T)
    time = np.arange(T) - (T - 1) / 2
    trend, walk = time * math.sqrt(size / float(time @ time)), _centred(correlation(0.99, T))
    walk = size / np.trace(walk) * walk
    like_image, walk_image, trend_image = W @ like_donors @ W.T, W @ walk @ W.T, W @ trend

    best, amounts = -math.inf, (0.0, 0.0, 0.0)
    for a, c in itertools.product(_MEAN_LIKE_DONORS, _MEAN_SHAPES):
        root = np.linalg.cholesky(a * like_image + c * walk_image + variance * np.eye(len(seen)))
        z, t = solve_triangular(root, np.column_stack([seen, trend_image]), lower=True, check_finite=False).T
        for b in _MEAN_SHAPES:  # a trend adds b t t', of rank one
            more = 1 + b * float(t @ t)
            misfit = float(z @ z) - b * float(t @ z) ** 2 / more
            evidence = -(float(np.log(np.diag(root)).sum()) + math.log(more) / 2 + misfit / 2)
            if evidence > best:
                best, amounts = evidence, (a, b, c)
    a, b, c = amounts
    prior = a * like_donors + b * np.outer(trend, trend) + c * walk
    root = np.linalg.cholesky(W @ prior @ W.T + variance * np.eye(len(seen)))
    half = solve_triangular(root, W @ prior, lower=True, check_finite=False).T
    return half @ solve_triangular(root, seen, lower=True, check_finite=False), prior - half @ half.T


def _centred(covariance: Array) -> Array:
    """Return the covariance of a path less its mean over time."""
    rows = covariance - covariance.mean(axis=0)
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


@lru_cache(maxsize=8)
def _bulk_shapes(kernel: Kernel, T: int, directions: int | None) -> tuple[Array, Array, Array, Array]:
    """Return the covariances that make up the bulk, over time and in whitened directions, and a QR of the latter."""
    W = RowMap(T, kernel, None, directions, 0.0, 0).whitening
    whole = np.stack([correlation(phi, T) for phi in _BULK_PERSISTENCE])
    shapes = np.stack([W @ shape @ W.T for shape in whole])
    basis, triangle = np.linalg.qr(shapes.reshape(len(shapes), -1).T)
    return whole, shapes, basis, triangle


def above(matrix: Array, limit: float) -> tuple[Array, Array]:
    """Return the eigenvalues above a limit, in increasing order, and their vectors."""
    values, vectors = eigh(matrix, subset_by_value=(limit, np.inf), check_finite=False)
    return np.asarray(values), np.asarray(vectors)
