"""From a noisy matrix to the population that the donors come from: pure post-processing of a release.

A vector (1, w) / |(1, w)| counts w with the weight ``1 / (1 + |w|^2)``: donors that move more count less. For w from
N(m, Sigma) the weighted moments are known exactly, because ``1 / (1 + |w|^2)`` is the integral of
``exp(-t (1 + |w|^2))`` over t > 0, and a Gaussian times such a factor is again Gaussian, with mean
``(I + 2 t Sigma)^-1 m`` and covariance ``(I + 2 t Sigma)^-1 Sigma``. So weighted moments are averages of these over t,
and the donors' own moments are those whose weighted moments are what the release shows.

Donors are taken for draws from one population: a mean path, a few common directions, and idiosyncratic variation
around them (the bulk). All are estimated from the release with what is known about its noise: its scale, hence the size
E of its largest eigenvalue, and that the trace is n.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.optimize import nnls

from dpsc.errors import ReleaseError
from dpsc.release.kernel import Kernel, correlation
from dpsc.release.rowmap import RowMap
from dpsc.types import Array, Integers

_ADDED = (0.0, 1e-13, 1e-10, 1e-7, 1e-4)  # to the diagonal, as a share of it: the first that is enough


def root_of(covariance: Array) -> Array:
    """Return a lower triangular L with L L' = covariance, or almost so."""
    for added in _ADDED:
        matrix = covariance
        if added:
            matrix = covariance + added * float(np.diag(covariance).mean()) * np.eye(len(covariance))
        root, failed = dpotrf(matrix.T)  # the upper root of the transpose, as LAPACK stores matrices
        if not failed and np.isfinite(root).all():
            return np.asarray(root.T)
    raise ReleaseError("the numbers of the release or the target are too large or too small to compute with.")


def solve(root: Array, values: Array, *, transposed: bool = False) -> Array:
    """Return root^-1 values, or root'^-1 values: what SciPy's ``solve_triangular`` does, without its checks.

    An estimate solves thousands of small systems, for which the checks take longer than the solution.
    """
    solution, failed = dtrtrs(root.T, values, lower=0, trans=not transposed)  # root.T is as LAPACK stores matrices
    if failed:
        raise ReleaseError("the numbers of the release or the target are too large or too small to compute with.")
    return np.asarray(solution)


_TIMES = np.exp(np.arange(-14.0, 6.1, 0.25))  # t, for an integral over its logarithm
_STEPS = 30
_DAMPING = 0.7


@dataclass(frozen=True, eq=False)
class Attenuation:
    """How a population's moments are weakened, in the basis of the eigenvectors of its covariance.

    Attributes
    ----------
    vectors : k × k
        Eigenvectors of Sigma.
    of_mean : array of length k
        The weighted mean is ``V diag(of_mean) V' m``.
    of_variances : array of length k
        Weighted over true variances.
    """

    vectors: Array
    of_mean: Array
    of_variances: Array

    @classmethod
    def of(cls, weighted_mean: Array, weighted_covariance: Array) -> Attenuation:
        """Return the attenuation from weighted moments, the second ones around the weighted mean.

        Mean and variances are found together, in steps towards those that weaken to what is given.
        """
        shown, V = np.linalg.eigh(weighted_covariance)
        shown = np.maximum(shown, 1e-12)
        shown_mean = V.T @ weighted_mean
        mean, variances = shown_mean.copy(), shown.copy()
        for _ in range(_STEPS):
            widths, weights = _weights(mean, variances)
            of_mean = weights @ (1 / widths)
            mean = shown_mean / of_mean
            around = weights @ (mean / widths) ** 2 - (weights @ (mean / widths)) ** 2
            left = np.maximum(shown - around, 0.1 * shown)
            variances *= (left / (weights @ (variances / widths))) ** _DAMPING
        return cls(V, of_mean, np.minimum(1.0, shown / variances))

    def to_mean(self) -> Array:
        """Return the matrix that turns the mean into the weighted mean."""
        return np.asarray((self.vectors * self.of_mean) @ self.vectors.T)

    def undone(self, paths: Array) -> Array:
        """Return A X for a matrix X of k rows, where A C A' is the covariance that weakens to the given C."""
        V = self.vectors
        return np.asarray((V / np.sqrt(self.of_variances)) @ (V.T @ paths))


def _weights(along: Array, variances: Array) -> tuple[Array, Array]:
    """Return 1 + 2 t variance for every t and direction, and how much each t counts."""
    t = _TIMES[:, np.newaxis]
    widths = 1 + 2 * t * variances
    logs = np.log(_TIMES) - _TIMES - np.log(widths).sum(axis=1) / 2 - (t * along**2 / widths).sum(axis=1)
    weights = np.exp(logs - logs.max())
    return widths, weights / weights.sum()


_ROUNDS = 2
_MEAN_DIRECTIONS = 1000  # the mean is sought in at most so many
_LEAST_WEIGHT = 1e-3
_BULK_PERSISTENCE = (0.0, 0.5, 0.95)
_MEAN_LIKE_DONORS = (0.0, 0.01, 0.1, 1.0)
_MEAN_TRENDS = (0.0, 0.1, 1.0)
_MEAN_WALKS = (0.3, 1.0)  # never without one: a shock must not be impossible


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
    white : float
        The part of its variance that is new in every period.
    missed : T × T
        What the release shows of units' covariance beyond all this: mostly noise.
    missed_noise : T × T
        ``a' missed_noise a`` is the standard deviation of the noise in ``a' missed a``, a combination of periods.
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
    white: float
    missed: Array
    missed_noise: Array
    directions: int
    counted: float
    has_level: bool

    def over(self, periods: Integers) -> Population:
        """Return the population over some of the periods, by position."""
        if len(periods) == len(self.mean):
            return self
        s = np.ix_(periods, periods)
        names = ("mean_error", "common", "direction_error", "bulk", "missed", "missed_noise")
        parts = {name: getattr(self, name)[s] for name in names}
        return replace(self, mean=self.mean[periods], **parts)

    def size(self) -> float:
        """Return the mean variance of a unit per period."""
        return float(np.diag(self.common + self.direction_error + self.bulk).mean())

    def times(self, factor: float) -> Population:
        """Return the population with covariances multiplied, for a population without a mean."""
        names = ("common", "direction_error", "bulk", "white", "missed", "missed_noise")
        return replace(self, **{name: factor * getattr(self, name) for name in names})

    @classmethod
    def of(cls, matrix: Array, n: float, noise_scale: float, row_map: RowMap) -> Population:
        """Estimate the population from a noisy matrix of vectors of length one."""
        matrix = matrix + np.eye(len(matrix)) * (n - np.trace(matrix)) / len(matrix)
        if row_map.directions is None:
            return cls._without_mean(matrix, n, noise_scale, row_map)
        back, R = row_map.back, row_map.constant
        counted = max(float(matrix[0, 0]), 2 * noise_scale)
        seen, moments = matrix[0, 1:] / counted, matrix[1:, 1:]  # in units of R

        variance = (noise_scale / counted) ** 2 / 2
        smoothest = row_map.smoothest(_MEAN_DIRECTIONS)
        like_donors = Split.of(moments, noise_scale, row_map).over_time(back) / counted
        rough = _mean(seen, None, variance, like_donors, row_map, smoothest)[0]
        del like_donors  # with 2,000 periods every such matrix takes 32 MB
        centre = row_map.whitening @ rough
        moments = moments - counted * np.outer(centre, centre)
        split = Split.of(moments, noise_scale, row_map)
        weakened = Attenuation.of(centre, split.in_directions / counted)
        beyond = moments - split.in_directions - split.lost * np.eye(len(moments))
        split = split.strengthened(weakened)
        like_donors = split.over_time(back) / counted
        mean, mean_error = _mean(seen, weakened.to_mean(), variance, like_donors, row_map, smoothest)
        unit, paths = R**2 / counted, weakened.undone(back.T).T
        return cls(
            mean=R * mean,
            mean_error=R**2 * mean_error,
            common=unit * split.common(back),
            direction_error=unit * split.lost * back @ back.T,
            bulk=unit * split.bulk,
            white=unit * split.white,
            missed=unit * paths @ beyond @ paths.T,
            missed_noise=unit * noise_scale * paths @ paths.T,
            directions=len(split.sizes),
            counted=counted,
            has_level=False,
        )

    @classmethod
    def _without_mean(cls, matrix: Array, n: float, noise_scale: float, row_map: RowMap) -> Population:
        """Read a matrix of version 0.1.0: second moments around zero, levels included, in units of nobody."""
        split, T, back = Split.of(matrix, noise_scale, row_map), row_map.T, row_map.back
        return cls(
            mean=np.zeros(T),
            mean_error=np.zeros((T, T)),
            common=split.common(back) / n,
            direction_error=split.lost * back @ back.T / n,
            bulk=split.bulk / n,
            white=split.white / n,
            missed=np.zeros((T, T)),
            missed_noise=np.zeros((T, T)),
            directions=len(split.sizes),
            counted=float(n),
            has_level=True,
        )


@dataclass(frozen=True, eq=False)
class Split:
    """Second moments in k whitened directions, split into common directions and a bulk.

    Attributes
    ----------
    vectors : k × directions
    sizes : array
        Of the common directions.
    lost : float
        What noise hides of the common directions, in each of all directions.
    bulk : T × T
    white : float
        The bulk's variance that is new in every period.
    bulk_in_directions : k × k
    """

    vectors: Array
    sizes: Array
    lost: float
    bulk: Array
    white: float
    bulk_in_directions: Array

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
        shapes, triangle = _bulk_shapes(row_map.kernel, row_map.T, row_map.directions)
        bulk: Array = max(float(np.median(np.diag(moments))), 0.0) * np.eye(k)
        for _ in range(_ROUNDS):
            lam, V = above(moments - bulk, E)
            theta = (lam + np.sqrt(lam**2 - E**2)) / 2
            left = moments - (V * theta) @ V.T
            products = np.array([np.vdot(shape, left) for shape in shapes])
            amounts = nnls(triangle, solve_triangular(triangle, products, trans="T"))[0]  # least squares, none below 0
            bulk = _mixed(amounts, shapes)
        eta = np.maximum(np.sqrt(lam**2 - E**2), 0.1 * E)
        floor = 0.001 * E  # of the kernel, whose image in the directions is the identity
        return cls(
            vectors=V,
            sizes=eta,
            lost=max(0.0, float(np.sum(theta - eta))) / k,
            white=float(amounts[_BULK_PERSISTENCE.index(0.0)]),
            bulk=_mixed(amounts, _bulk_over_time(row_map.T)) + floor * row_map.kernel.matrix(row_map.T),
            bulk_in_directions=bulk + floor * np.eye(k),
        )

    def common(self, back: Array) -> Array:
        """Return the common part over time."""
        paths = back @ self.vectors
        return np.asarray((paths * self.sizes) @ paths.T)

    def over_time(self, back: Array) -> Array:
        """Return both parts over time."""
        return self.common(back) + self.bulk

    @property
    def in_directions(self) -> Array:
        """Both parts in the whitened directions."""
        return np.asarray((self.vectors * self.sizes) @ self.vectors.T + self.bulk_in_directions)

    def strengthened(self, weakened: Attenuation) -> Split:
        """Return the split of the moments before they were weakened: the bulk, in all directions, on average."""
        more = float(np.mean(1 / weakened.of_variances))
        return replace(
            self,
            vectors=weakened.undone(self.vectors),
            lost=more * self.lost,
            bulk=more * self.bulk,
            white=more * self.white,
            bulk_in_directions=more * self.bulk_in_directions,
        )


def _mean(
    seen: Array, to_seen: Array | None, variance: float, like_donors: Array, row_map: RowMap, smoothest: Array | None
) -> tuple[Array, Array]:
    """Return the mean over all T periods and its error, from its noisy image in the k directions.

    ``to_seen`` is how the image was weakened. The mean's prior is a mixture of a path like a donor's, a trend and a
    slow walk, averaged over their amounts by evidence. What the directions (the smoothest, if there are very many) do
    not show of it stays in its error.
    """
    T = row_map.T
    image = row_map.whitening if to_seen is None else to_seen @ row_map.whitening
    if smoothest is not None:
        image, seen = smoothest @ image, smoothest @ seen
    size = float(np.trace(like_donors) - like_donors.sum() / T)
    time = np.arange(T) - (T - 1) / 2
    trend, walk = np.outer(time, time), _centred(correlation(0.99, T))
    shapes = [like_donors, size / np.trace(trend) * trend, size / np.trace(walk) * walk]
    half_images = [image @ shape for shape in shapes]
    images = [half @ image.T for half in half_images]

    noise = variance * np.eye(len(seen))

    def root(amounts: tuple[float, ...]) -> Array:
        return root_of(_mixed(amounts, images) + noise)

    grid = list(itertools.product(_MEAN_LIKE_DONORS, _MEAN_TRENDS, _MEAN_WALKS))
    logs = []
    for amounts in grid:
        L = root(amounts)
        z = solve(L, seen)
        logs.append(-float(np.log(L.diagonal()).sum() + z @ z / 2))
    weights = np.exp(np.array(logs) - max(logs))
    weights = np.where(weights < _LEAST_WEIGHT, 0.0, weights) / weights[weights >= _LEAST_WEIGHT].sum()
    mean, second = np.zeros(T), np.zeros((T, T))
    for amounts, weight in zip(grid, weights, strict=True):
        if weight > 0:
            L = root(amounts)
            half = solve(L, _mixed(amounts, half_images))
            path = half.T @ solve(L, seen)
            mean += weight * path
            second += weight * (_mixed(amounts, shapes) - half.T @ half + np.outer(path, path))
    return mean, second - np.outer(mean, mean)


def _centred(covariance: Array) -> Array:
    """Return the covariance of a path less its mean over time."""
    rows = covariance - covariance.mean(axis=0)
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


def _mixed(amounts: Iterable[float], parts: Iterable[Array]) -> Array:
    """Return a sum of matrices, each times its amount."""
    return np.asarray(sum(amount * part for amount, part in zip(amounts, parts, strict=True)))


def _bulk_over_time(T: int) -> Iterator[Array]:
    """Yield the covariances that make up the bulk, over time."""
    return (correlation(phi, T) for phi in _BULK_PERSISTENCE)


@lru_cache(maxsize=8)
def _bulk_shapes(kernel: Kernel, T: int, directions: int | None) -> tuple[list[Array], Array]:
    """Return the bulk's covariances in whitened directions, and the Cholesky factor of their inner products."""
    row_map = RowMap(T, kernel, None, directions, 0.0, 0)
    shapes = [row_map.whitened_covariance(shape) for shape in _bulk_over_time(T)]
    inner = np.array([[np.vdot(one, other) for other in shapes] for one in shapes])
    tiny = 1e-12 * np.trace(inner) * np.eye(len(inner))  # over 3 periods the shapes depend on each other
    return shapes, np.linalg.cholesky(inner + tiny).T


def above(matrix: Array, limit: float) -> tuple[Array, Array]:
    """Return the eigenvalues above a limit, in increasing order, and their vectors."""
    values, vectors = eigh(matrix, subset_by_value=(limit, np.inf), check_finite=False)
    return np.asarray(values), np.asarray(vectors)


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
