"""The Gram release, and several releases together, as cases for the audit."""

from __future__ import annotations

import math

import numpy as np

from dpsc.audit import exact_loss, neighbours
from dpsc.audit.case import SHOWN_DELTA, Case, ClaimedLoss, Effort, Exact, Sampled
from dpsc.gram.algorithm import GramRelease
from dpsc.gram.kernel import Kernel, Smoothness
from dpsc.gram.release import Release
from dpsc.gram.sources import sum_of_rows
from dpsc.privacy import discrete
from dpsc.privacy.guarantee import Guarantee
from dpsc.types import Array

_T = 2
_PURE = 0.5  # epsilon of a pure release that is added to another
_KINDS: tuple[Smoothness, ...] = ("high", "mild", "none")
WHY_NOT_ALL = "the conversion from zCDP to (ε, δ) is not tight; events of probability δ are too rare to be sampled"


def gram_release(epsilon: float, delta: float) -> Case:
    """Attack the Gram release with orthogonal whitened rows."""
    claim = ClaimedLoss(epsilon, delta)
    pair = neighbours.orthogonal_rows(_T, Kernel.named("high"))

    def make(seed: int | None, smoothness: Smoothness = "high", delta: float = delta) -> GramRelease:
        return GramRelease(epsilon=epsilon, delta=delta, smoothness=smoothness, seed=seed)

    def visible(seed: int | None) -> GramRelease:
        return make(seed, delta=SHOWN_DELTA)

    def exact() -> float:
        return max(_exact_epsilon(make(0, kind), _T, delta) for kind in _KINDS)

    def calls(side: int, effort: Effort) -> Array:
        return np.array([_flat(visible(effort.seed()).release(pair.pools[side])) for _ in range(effort.calls)])

    def bulk(side: int, effort: Effort) -> Array:
        release = visible(0).release(pair.pools[side])
        total = sum_of_rows(pair.pools[side], release.kernel, None, release.grid_bits)
        source, columns = effort.source(), []
        for i, j in zip(*np.triu_indices(_T), strict=True):
            scale = release.diagonal_scale if i == j else release.off_diagonal_scale
            values = np.full(effort.runs, total[i, j])
            columns.append(discrete.add(values, "gaussian", scale, source, largest=float(2**40)))
        return np.column_stack(columns) / 4.0**release.grid_bits

    example, shown = visible(0).release(pair.donors), ClaimedLoss(epsilon, SHOWN_DELTA)
    ratio = {"likelihood ratio": lambda v: _log_ratio(v, pair, example)}
    attacks = (
        Exact("exact loss", claim, exact, "two pairs of rows, Gaussian curve"),
        Sampled("runs in bulk", shown, bulk, ratio),
        Sampled("calls of release", shown, calls, ratio),
    )
    return Case("gram", "GramRelease", attacks, note=WHY_NOT_ALL)


def gram_zcdp() -> Case:
    """Compare the zCDP loss of orthogonal rows with the rho that the guarantee of a release states."""
    stated = GramRelease(epsilon=1.0, delta=1e-6).release(np.eye(_T)).guarantee
    assert stated is not None

    def exact() -> float:
        seeded = (GramRelease(epsilon=1.0, delta=1e-6, smoothness=kind, seed=0) for kind in _KINDS)
        return max(_rho(algorithm, T) for algorithm in seeded for T in (2, 5))

    attack = Exact("exact loss", ClaimedLoss(stated.loss.rho, unit="ρ ="), exact, "two pairs of rows")
    return Case("gram-zcdp", "GramRelease, as zCDP", (attack,))


def composition(delta: float = 1e-6) -> Case:
    """Attack what is promised for several releases: twice from the same donors, and merged from two sites."""
    make = GramRelease(epsilon=1.0, delta=delta)
    once = make.release(np.eye(_T)).guarantee
    other = GramRelease(epsilon=2.0, delta=delta)
    site, other_site = make.release(np.eye(_T)), other.release(np.ones((4, _T)))
    merged = Release.merge([site, other_site], disjoint=True).guarantee
    assert once is not None
    assert merged is not None
    twice = once + once
    mixed = once + Guarantee(_PURE, arithmetic="exact")

    def epsilon_of(shift: float, delta: float) -> float:
        return exact_loss.epsilon_at(delta, lambda epsilon: exact_loss.gaussian_delta(shift, epsilon))

    def with_laplace(shift: float, delta: float) -> float:
        """Laplace noise loses all of its epsilon half of the time, whatever the Gaussian does."""
        return _PURE + epsilon_of(shift, 2 * delta)

    shift, other_shift = (math.sqrt(2 * _rho(_seeded(algorithm), _T)) for algorithm in (make, other))
    return Case(
        "composition",
        "several releases together",
        (
            Exact("two releases", _claim(twice), lambda: epsilon_of(math.sqrt(2) * shift, twice.delta)),
            Exact("a release and a pure one", _claim(mixed), lambda: with_laplace(shift, mixed.delta)),
            Exact("two sites merged", _claim(merged), lambda: epsilon_of(other_shift, merged.delta)),
        ),
    )


def _claim(guarantee: Guarantee) -> ClaimedLoss:
    return ClaimedLoss(guarantee.epsilon, guarantee.delta)


def _seeded(algorithm: GramRelease) -> GramRelease:
    return GramRelease(epsilon=algorithm.epsilon, delta=algorithm.delta, smoothness=algorithm.smoothness, seed=0)


def _rho(algorithm: GramRelease, T: int) -> float:
    """Return the zCDP loss of the worst rows: the same seed gives both neighbours the same noise."""
    losses = []
    for worst in (neighbours.orthogonal_rows, neighbours.crossed_rows):
        pair = worst(T, Kernel.named(algorithm.smoothness))
        one, other = (algorithm.release(pool) for pool in pair.pools)
        change = (one.matrix - other.matrix).astype(np.float64)
        diagonal = float(np.sum(np.diag(change) ** 2)) / (2 * one.diagonal_scale**2)
        above = float(np.sum(change[np.triu_indices(T, 1)] ** 2)) / (2 * one.off_diagonal_scale**2)
        losses.append(diagonal + above)
    return max(losses)


def _exact_epsilon(algorithm: GramRelease, T: int, delta: float) -> float:
    shift = math.sqrt(2 * _rho(algorithm, T))
    return exact_loss.epsilon_at(delta, lambda epsilon: exact_loss.gaussian_delta(shift, epsilon))


def _flat(release: Release) -> Array:
    return np.asarray(release.noisy_moments[np.triu_indices(release.T)])


def _log_ratio(outputs: Array, pair: neighbours.Pair, release: Release) -> Array:
    centres = [
        sum_of_rows(pool, release.kernel, None, release.grid_bits)[np.triu_indices(_T)] / 4.0**release.grid_bits
        for pool in pair.pools
    ]
    rows, columns = np.triu_indices(_T)
    scales = np.where(rows == columns, release.diagonal_scale, release.off_diagonal_scale) / 4.0**release.grid_bits
    one, other = (((outputs - centre) / scales) ** 2 for centre in centres)
    return np.asarray((other - one).sum(axis=1) / 2)
