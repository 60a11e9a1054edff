"""The Gram release, the counts behind its scale, and several releases together, as cases for the audit."""

from __future__ import annotations

import math

import numpy as np

from dpsc.analyst.release import Release
from dpsc.custodian.gram.algorithm import GramRelease
from dpsc.custodian.gram.exact_sum import Counts, Products
from dpsc.custodian.gram.sources import sum_of_rows
from dpsc.evidence.audit import measure, search
from dpsc.evidence.audit.case import SHOWN_DELTA, Case, ClaimedLoss, Effort, Exact, Sampled
from dpsc.privacy import discrete
from dpsc.privacy.accounting import gaussian_mu
from dpsc.privacy.guarantee import Guarantee
from dpsc.privacy.source import seeded
from dpsc.release.kernel import Kernel, Smoothness
from dpsc.release.matrix import GRID_BITS
from dpsc.release.rowmap import RowMap
from dpsc.release.scale import noisy_counts
from dpsc.types import Array, Integers

_T = 2
_PURE = 0.5  # epsilon of a pure release that is added to another
_SCALE = 3.0
_KINDS: tuple[Smoothness, ...] = ("high", "mild", "none")
_TOO_RARE = "events of probability δ are too rare to be sampled"


def gram_release(epsilon: float, delta: float) -> Case:
    """Attack the Gram release with rows whose vectors are orthogonal."""

    def make(seed: int | None, smoothness: Smoothness = "high", delta: float = delta) -> GramRelease:
        return GramRelease(epsilon=epsilon, delta=delta, smoothness=smoothness, scale=_SCALE, seed=seed)

    def visible(seed: int | None) -> GramRelease:
        return make(seed, delta=SHOWN_DELTA)

    def exact() -> float:
        return max(_epsilon(math.sqrt(_mu_squared(make(0, kind), T)), delta) for kind in _KINDS for T in (2, 5))

    example = visible(0).release(np.zeros((1, _T)))
    pair = search.still_and_moving(example.row_map)

    def calls(side: int, effort: Effort) -> Array:
        return np.array([_flat(visible(effort.seed()).release(pair.pools[side])) for _ in range(effort.calls)])

    def bulk(side: int, effort: Effort) -> Array:
        total = visible(0).custodian_sum(pair.pools[side]).total
        source, columns = effort.source(), []
        for i, j in zip(*np.triu_indices(_T), strict=True):
            scale = example.diagonal_scale if i == j else example.off_diagonal_scale
            values = np.full(effort.runs, total[i, j])
            columns.append(discrete.add(values, "gaussian", scale, source, largest=float(2**40)))
        return np.column_stack(columns) / 4.0**example.grid_bits

    claim, shown = ClaimedLoss(epsilon, delta), ClaimedLoss(epsilon, SHOWN_DELTA)
    ratio = {"likelihood ratio": lambda v: _log_ratio(v, pair, example)}
    attacks = (
        Exact("exact loss", claim, exact, "three pairs of rows, Gaussian curve"),
        Sampled("runs in bulk", shown, bulk, ratio),
        Sampled("calls of release", shown, calls, ratio),
    )
    return Case("gram", "GramRelease", attacks, note=_TOO_RARE)


def gram_counts(epsilon: float, delta: float) -> Case:
    """Attack the counts that a scale is found from: alone, and together with the matrix that follows."""
    kernel = Kernel.named("high")
    summand = Counts(_T, kernel, None)
    pair = search.still_and_moving(RowMap(_T, kernel, None, _T - 1, _SCALE, GRID_BITS))
    one, other = (sum_of_rows(pool, summand) for pool in pair.pools)

    def shift(mu: float) -> float:
        return float(np.linalg.norm(one - other)) / _counts_scale(mu)

    def draw(side: int, effort: Effort) -> Array:
        changed = (one, other)[side][one != other]
        mu = gaussian_mu(epsilon, SHOWN_DELTA)
        n = effort.runs * int(changed.sum())
        noisy = noisy_counts(np.tile(changed, effort.runs), n, mu, GRID_BITS, effort.source())
        return noisy.reshape(effort.runs, len(changed))

    make = GramRelease(epsilon=epsilon, delta=delta, like=[0.0, _SCALE], seed=0)

    def together() -> float:
        """Return the loss of both steps on the same pair, the map of the second as the first one made it."""
        release = make.release(pair.donors)
        share = release.scale.share
        change = np.subtract(*(sum_of_rows(pool, Products(release.row_map)) for pool in pair.pools))
        return shift(make.mu * math.sqrt(share)) ** 2 + _cost(change, release)

    def exact() -> float:
        return _epsilon(shift(gaussian_mu(epsilon, delta)), delta)

    attacks = (
        Exact("exact loss", ClaimedLoss(epsilon, delta), exact, "one pair of rows, Gaussian curve"),
        Sampled("runs in bulk", ClaimedLoss(epsilon, SHOWN_DELTA), draw),
        Exact("with the matrix", ClaimedLoss(make.loss.mu_squared, unit="μ² ="), together, "one pair of rows"),
    )
    return Case("gram-counts", "counts behind the scale", attacks, note=_TOO_RARE)


def gram_mu() -> Case:
    """Compare what orthogonal vectors cost with the mu^2 that the guarantee of a release states."""
    stated = GramRelease(epsilon=1.0, delta=1e-6, scale=_SCALE).release(np.eye(_T)).guarantee
    assert stated is not None

    def exact() -> float:
        algorithms = (GramRelease(epsilon=1.0, delta=1e-6, smoothness=k, scale=_SCALE, seed=0) for k in _KINDS)
        return max(_mu_squared(algorithm, T) for algorithm in algorithms for T in (2, 5))

    attack = Exact("exact loss", ClaimedLoss(stated.loss.mu_squared, unit="μ² ="), exact, "three pairs of rows")
    return Case("gram-mu", "GramRelease, as Gaussian", (attack,))


def composition(delta: float = 1e-6) -> Case:
    """Attack what is promised for several releases: twice from the same donors, and merged from two sites."""
    make = GramRelease(epsilon=1.0, delta=delta, scale=_SCALE)
    once = make.release(np.eye(_T)).guarantee
    other = GramRelease(epsilon=2.0, delta=delta, scale=_SCALE)
    site, other_site = make.release(np.eye(_T)), other.release(np.ones((4, _T)))
    merged = Release.merge([site, other_site], disjoint=True).guarantee
    assert once is not None
    assert merged is not None
    twice = once + once
    mixed = once + Guarantee(_PURE, arithmetic="exact")

    def with_laplace(shift: float, delta: float) -> float:
        """Laplace noise loses all of its epsilon half of the time, whatever the Gaussian does."""
        return _PURE + _epsilon(shift, 2 * delta)

    shift, other_shift = (
        math.sqrt(_mu_squared(GramRelease(epsilon=a.epsilon, delta=a.delta, scale=_SCALE, seed=0), _T))
        for a in (make, other)
    )
    return Case(
        "composition",
        "several releases together",
        (
            Exact("two releases", _claim(twice), lambda: _epsilon(math.sqrt(2) * shift, twice.delta)),
            Exact("a release and a pure one", _claim(mixed), lambda: with_laplace(shift, mixed.delta)),
            Exact("two sites merged", _claim(merged), lambda: _epsilon(other_shift, merged.delta)),
        ),
    )


def _claim(guarantee: Guarantee) -> ClaimedLoss:
    return ClaimedLoss(guarantee.epsilon, guarantee.delta)


def _epsilon(shift: float, delta: float) -> float:
    return measure.epsilon_at(delta, lambda epsilon: measure.gaussian_delta(shift, epsilon))


def _mu_squared(algorithm: GramRelease, T: int) -> float:
    """Return the squared mu of the worst rows: the same seed gives both neighbours the same noise."""
    row_map = algorithm.custodian_sum(np.zeros((1, T))).row_map
    losses = []
    for worst in (search.still_and_moving, search.orthogonal_rows, search.mirrored_rows):
        one, other = (algorithm.release(pool) for pool in worst(row_map).pools)
        losses.append(_cost(one.matrix - other.matrix, one))
    return max(losses)


def _cost(change: Integers, release: Release) -> float:
    """Return the squared mu of a change of the matrix, at the scales that the release states."""
    D = np.asarray(change, dtype=np.float64)
    diagonal = float(np.sum(np.diag(D) ** 2)) / release.diagonal_scale**2
    return diagonal + float(np.sum(D[np.triu_indices(len(D), 1)] ** 2)) / release.off_diagonal_scale**2


def _counts_scale(mu: float) -> float:
    """Return the scale of the noise on counts, read off seeded noise: it is this many times a normal variable."""
    noise = noisy_counts(np.zeros(200, dtype=np.int64), 0, mu, GRID_BITS, seeded(0))
    normals = seeded(0).normals((200,))
    return float(np.abs(noise).max() / np.abs(normals).max())


def _flat(release: Release) -> Array:
    return np.asarray(release.noisy_moments[np.triu_indices(release.row_map.size)])


def _log_ratio(outputs: Array, pair: search.Pair, release: Release) -> Array:
    products = Products(release.row_map)
    rows, columns = np.triu_indices(release.row_map.size)
    centres = [sum_of_rows(pool, products)[rows, columns] / 4.0**release.grid_bits for pool in pair.pools]
    scales = np.where(rows == columns, release.diagonal_scale, release.off_diagonal_scale) / 4.0**release.grid_bits
    one, other = (((outputs - centre) / scales) ** 2 for centre in centres)
    return np.asarray((other - one).sum(axis=1) / 2)
