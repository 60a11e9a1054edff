"""Everything dpsc ships as private, as cases for the audit. Claims are the budgets that a caller would ask for."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpsc.analyst.release import Release
from dpsc.custodian.gram.algorithm import GramRelease
from dpsc.custodian.gram.exact_sum import Counts, Products
from dpsc.custodian.gram.sources import sum_of_rows
from dpsc.custodian.weights.objective import ObjectivePerturbation
from dpsc.custodian.weights.output import OutputPerturbation
from dpsc.custodian.weights.printed import PrintedOutputPerturbation
from dpsc.errors import DpscWarning
from dpsc.evidence.audit import measure, neighbours, people, sensitivities
from dpsc.evidence.audit.case import (
    SHOWN_DELTA,
    Attack,
    Case,
    ClaimedLoss,
    Effort,
    Exact,
    Losses,
    LowBits,
    Sampled,
)
from dpsc.evidence.audit.neighbours import Step, TwoStep, call
from dpsc.privacy import discrete, laplace
from dpsc.privacy.accounting import gaussian_mu, zcdp_rho
from dpsc.privacy.additive import StepBudget, release_integers
from dpsc.privacy.guarantee import Guarantee
from dpsc.privacy.source import seeded
from dpsc.release.kernel import Kernel, Smoothness
from dpsc.release.matrix import GRID_BITS
from dpsc.release.rowmap import RowMap
from dpsc.release.scale import noisy_counts
from dpsc.types import Array, Integers

DELTA = 1e-6
_SPLIT = 0.9  # of objective perturbation: most of the budget goes to the step whose proof is hard
_SENSITIVITY = 64  # units of the integers; fine enough for the discrete laws to be close to the continuous ones


def discrete_noise(epsilon: float, delta: float) -> Case:
    """Attack OpenDP's discrete noise as :func:`release_integers` uses it, in one dimension."""
    law = "gaussian" if delta else "laplace"
    sensitivity, visible = (float(_SENSITIVITY), float(_SENSITIVITY)), SHOWN_DELTA if delta else 0.0

    def budget(delta: float) -> StepBudget:
        return StepBudget("rho", zcdp_rho(epsilon, delta)) if delta else StepBudget("epsilon", epsilon)

    def draw(side: int, effort: Effort) -> Array:
        values = np.full(effort.runs, side * _SENSITIVITY, dtype=np.int64)
        noisy, _ = release_integers(values, sensitivity, budget(visible), effort.source(), largest=_SENSITIVITY)
        return noisy[:, np.newaxis].astype(np.float64)

    def exact() -> float:
        zero = np.zeros(1, dtype=np.int64)
        _, noise = release_integers(zero, sensitivity, budget(delta), Effort(1, 1, 0).source(), largest=_SENSITIVITY)
        return measure.table_epsilon(*measure.discrete_tables(law, _SENSITIVITY, noise.scale), delta)

    return Case(
        f"discrete-{law}",
        f"discrete {law.capitalize()} noise",
        (
            Exact("exact loss", ClaimedLoss(epsilon, delta), exact, "probabilities of all integers"),
            Sampled("runs in bulk", ClaimedLoss(epsilon, visible), draw),
        ),
    )


def joint_laplace(epsilon: float) -> Case:
    """Attack the high-dimensional Laplace distribution in 1 and 10 dimensions."""
    claim = ClaimedLoss(epsilon)
    attacks = []
    for d in (1, 10):
        shift, step = np.eye(d)[0], Step("joint laplace", 1 / epsilon)

        def draw(side: int, effort: Effort, shift: Array = shift) -> Array:
            return np.asarray(side * shift + laplace.sample(len(shift), 1 / epsilon, effort.source(), (effort.runs,)))

        def calls(side: int, effort: Effort, shift: Array = shift) -> Array:
            drawn = [laplace.sample(len(shift), 1 / epsilon, effort.source()) for _ in range(effort.calls)]
            return np.asarray(side * shift + np.array(drawn))

        scores = {"likelihood ratio": lambda v, s=step, c=shift: s.log_ratio(v, 0 * c, c)}
        attacks += [
            Sampled(f"runs in bulk, {d} dim.", claim, draw, scores),
            Sampled(f"single calls, {d} dim.", claim, calls, scores),
        ]
    return Case("joint-laplace", "joint Laplace noise (float)", tuple(attacks))


def output(epsilon: float, delta: float) -> Case:
    """Attack OutputPerturbation: weights and answer together."""
    claim, visible, T0 = ClaimedLoss(epsilon, delta), SHOWN_DELTA if delta else 0.0, 4
    shown = ClaimedLoss(epsilon, visible)

    def variant(pair: neighbours.Pair, delta: float = delta, **options: Any) -> TwoStep:
        def make(seed: int | None) -> OutputPerturbation:
            return OutputPerturbation(epsilon=epsilon, delta=delta, weights_ball=False, seed=seed, **options)

        return TwoStep(make, pair)

    def on_the_ball(side: int, effort: Effort) -> Array:
        def make(seed: int | None) -> OutputPerturbation:
            return OutputPerturbation(epsilon=epsilon, delta=visible, seed=seed)

        return call(make, neighbours.rank_one(3, T0, 2), side, effort)

    def weight(side: int, effort: Effort) -> Array:
        def make(seed: int | None) -> OutputPerturbation:
            return OutputPerturbation(epsilon=epsilon, lambda_=0.77, weights_ball=False, seed=seed)

        return call(make, neighbours.fine_bits([0.61, 0.35], [0.7, 0.3]), side, effort)

    # With lambda = 4 T0 rows of full length are the worst; the hostile donor's values, far outside, must be clipped.
    hostile = neighbours.opposite_rows(T0, 1, before=neighbours.FAR, after=neighbours.FAR)
    options = {"lambda_": 4.0 * T0}
    pairs = [
        variant(hostile, **options),
        variant(neighbours.opposite_rows(T0, 1, before=math.sqrt(0.5))),
        variant(neighbours.opposite_rows(T0, 1, before=neighbours.FAR), row_norm=1.0, lambda_=8.0),
        variant(neighbours.opposite_rows(T0, 3)),
        variant(neighbours.zero_row(10, T0, 1)),
        variant(neighbours.rank_one(10, T0, 1)),
        variant(neighbours.weak_crowd(50, T0, 1, mu=0.5), lambda_=1.0),
    ]
    worst = variant(hostile, visible, **options)
    ratio = {"likelihood ratio": worst.log_ratio()}
    attacks: list[Attack] = [
        Exact("exact loss", claim, lambda: max(v.exact_epsilon(delta) for v in pairs), f"{len(pairs)} pairs"),
        Sampled("runs in bulk", shown, worst.draw_bulk, ratio),
        Sampled("calls of fit", shown, worst.draw_calls, ratio),
    ]
    if delta == 0:
        attacks.append(Sampled("calls of fit, on the ball", shown, on_the_ball))
        attacks.append(LowBits("low bits of the weights", ClaimedLoss(epsilon / 2), weight))  # half pays for them
    name = f"output-{'gaussian' if delta else 'pure'}"
    return Case(name, f"OutputPerturbation δ{'>' if delta else '='}0", tuple(attacks))


def float_weight(side: int, effort: Effort) -> Array:
    """Draw the one weight of DPSC_out as printed, for epsilon1 = 1 and with floating-point noise, in bulk."""
    algorithm = TwoStep(
        lambda seed: OutputPerturbation.as_printed(epsilon1=1.0, epsilon2=1.0, lambda_=300.0, seed=seed),
        neighbours.fine_bits([0.99, 0.97], [0.97, 0.99]),
    )
    _, weights, _ = algorithm.fit_once()
    return np.asarray(algorithm.centres()[side] + laplace.sample(1, weights.scale, effort.source(), (effort.runs,)))


def float_low_bits() -> Case:
    """Show what floating-point noise, which the paper's recipes have, does not promise."""
    attack = LowBits("low bits of the weights", ClaimedLoss(1.0), float_weight)
    note = "float guarantees are about real numbers; low bits leak more"
    return Case("float-low-bits", "low bits of DPSC_out as printed", (attack,), "not claimed", note)


def printed_output() -> Case:
    """Attack the paper's Algorithm 2 as printed, which is private with far more noise than it needs."""
    pair = neighbours.opposite_rows(4, 1)

    def make(seed: int | None) -> PrintedOutputPerturbation:
        return OutputPerturbation.as_printed(epsilon1=0.5, epsilon2=0.5, lambda_=8.0, seed=seed)

    algorithm, claim = TwoStep(make, pair), ClaimedLoss(1.0)
    return Case(
        "printed-output",
        "DPSC_out as printed",
        (
            Exact("exact loss", claim, lambda: algorithm.exact_epsilon(0.0), "one pair"),
            Sampled("calls of fit", claim, algorithm.draw_calls, {"likelihood ratio": algorithm.log_ratio()}),
        ),
    )


def objective(epsilon: float, delta: float) -> Case:
    """Attack ObjectivePerturbation: real calls, and the losses of (minimiser, normal vector) through the bijection.

    Its noise is large, so that few calls show little; the calls use a larger epsilon, where they show more.
    """
    T0, visible, large = 4, SHOWN_DELTA if delta else 0.0, 4 * epsilon

    def make(seed: int | None, delta: float = delta, epsilon: float = epsilon) -> ObjectivePerturbation:
        return ObjectivePerturbation(epsilon=epsilon, delta=delta, lambda_=0.1, split=_SPLIT, seed=seed)

    def losses(pair: neighbours.Pair, delta: float, effort: Effort) -> Array:
        used = make(0, delta).fit(pair.panel(0)).parameters
        step = Step("gaussian" if delta else "laplace", used["beta"])
        data = [pair.panel(side).scaled("audit") for side in (0, 1)]
        b = step.scale * step.draw(used["n"], effort.runs // 4, effort.source())
        return measure.ball_losses(data[0].X, data[1].X, data[0].y, used["nu"], b, step.scale, step.law)

    def calls(side: int, effort: Effort) -> Array:
        return call(lambda seed: make(seed, visible, large), neighbours.zero_row(1, T0, 1), side, effort)

    attacks: list[Attack] = [Sampled("calls of fit", ClaimedLoss(large, visible), calls)]
    for n, delta_ in itertools.product((1, 2, 3), {delta, visible}):
        pair = neighbours.zero_row(1, T0, 1) if n == 1 else neighbours.rank_one(n, T0, 1)
        for ordered in (pair, pair.swapped()):
            claim = ClaimedLoss(_SPLIT * epsilon, _SPLIT * delta_)
            attacks.append(Losses(f"losses of the learning step, n = {n}", claim, partial(losses, ordered, delta_)))
    title = f"ObjectivePerturbation δ{'>' if delta else '='}0"
    return Case(f"objective-{'gaussian' if delta else 'pure'}", title, tuple(attacks))


_T = 2
_PURE = 0.5  # epsilon of a pure release that is added to another
_SCALE = 3.0  # of a Gram release, so that no counts are needed
_KINDS: tuple[Smoothness, ...] = ("high", "mild", "none")
_TOO_RARE = "events of probability δ are too rare to be sampled"


def gram_release(epsilon: float, delta: float) -> Case:
    """Attack the Gram release with rows whose vectors are orthogonal."""

    def make(seed: int | None, smoothness: Smoothness = "high", delta: float = delta) -> GramRelease:
        return GramRelease(epsilon=epsilon, delta=delta, smoothness=smoothness, scale=_SCALE, seed=seed)

    def visible(seed: int | None) -> GramRelease:
        return make(seed, delta=SHOWN_DELTA)

    def exact() -> float:
        return max(
            measure.gaussian_epsilon(math.sqrt(_mu_squared(make(0, kind), T)), delta) for kind in _KINDS for T in (2, 5)
        )

    example = visible(0).release(np.zeros((1, _T)))
    pair = neighbours.still_and_moving(example.row_map)

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
    pair = neighbours.still_and_moving(RowMap(_T, kernel, None, _T - 1, _SCALE, GRID_BITS))
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
        return measure.gaussian_epsilon(shift(gaussian_mu(epsilon, delta)), delta)

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


def gram_segments() -> Case:
    """Attack a release in segments: a donor that changes its label, its values, or both, through the whole release."""
    make = GramRelease(epsilon=1.0, delta=1e-6, scale=_SCALE)
    promise = make.guarantee
    assert promise is not None

    def moved(before: tuple[int, str], after: tuple[int, str]) -> float:
        """Return what one donor costs; the same seed gives both neighbours the same noise."""
        seeded_make = replace(make, seed=0)
        rows = neighbours.orthogonal_rows(seeded_make.custodian_sum(np.zeros((1, _T))).row_map).pools
        one, other = (
            seeded_make.release(rows[row], by=[label] * len(rows[row]), labels=["a", "b"])
            for row, label in (before, after)
        )
        changes = zip(one.blocks, other.blocks, strict=True)
        return sum(_cost(block - changed, one) for block, changed in changes)

    claim = ClaimedLoss(promise.loss.mu_squared, unit="μ² =")
    pairs = {"another label": ((0, "a"), (0, "b")), "other values": ((0, "a"), (1, "a")), "both": ((0, "a"), (1, "c"))}
    attacks = tuple(Exact(name, claim, partial(moved, *pair), "one donor") for name, pair in pairs.items())
    return Case("gram-segments", "GramRelease in segments", attacks)


def gram_outcomes() -> Case:
    """Attack a release of several outcomes: one donor moves all of them by the most it can."""
    make, each = GramRelease(epsilon=1.0, delta=1e-6), {"a": {"scale": _SCALE, "share": 3}, "b": {"scale": 20 * _SCALE}}
    promise = make.guarantee
    assert promise is not None

    def moved(worst: Callable[[RowMap], neighbours.Pair]) -> float:
        """Return what one donor costs; the same seed gives both neighbours the same noise."""
        seeded_make = replace(make, seed=0)
        parts = seeded_make.divided(each, each)
        pools = {name: worst(part.custodian_sum(np.zeros((1, _T))).row_map).pools for name, part in parts.items()}
        one, other = (seeded_make.release({name: pools[name][k] for name in pools}, each=each) for k in (0, 1))
        return sum(_cost(one[name].matrix - other[name].matrix, one[name]) for name in one)

    claim = ClaimedLoss(promise.loss.mu_squared, unit="μ² =")
    pairs = {"still and moving": neighbours.still_and_moving, "orthogonal": neighbours.orthogonal_rows}
    attacks = tuple(
        Exact(name, claim, partial(moved, worst), "one donor, all outcomes") for name, worst in pairs.items()
    )
    return Case("gram-outcomes", "GramRelease of several outcomes", attacks)


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
        return _PURE + measure.gaussian_epsilon(shift, 2 * delta)

    shift, other_shift = (
        math.sqrt(_mu_squared(GramRelease(epsilon=a.epsilon, delta=a.delta, scale=_SCALE, seed=0), _T))
        for a in (make, other)
    )
    return Case(
        "composition",
        "several releases together",
        (
            Exact("two releases", _claim(twice), lambda: measure.gaussian_epsilon(math.sqrt(2) * shift, twice.delta)),
            Exact("a release and a pure one", _claim(mixed), lambda: with_laplace(shift, mixed.delta)),
            Exact("two sites merged", _claim(merged), lambda: measure.gaussian_epsilon(other_shift, merged.delta)),
        ),
    )


def _claim(guarantee: Guarantee) -> ClaimedLoss:
    return ClaimedLoss(guarantee.epsilon, guarantee.delta)


def _mu_squared(algorithm: GramRelease, T: int) -> float:
    """Return the squared mu of the worst rows: the same seed gives both neighbours the same noise."""
    row_map = algorithm.custodian_sum(np.zeros((1, T))).row_map
    losses = []
    for worst in (neighbours.still_and_moving, neighbours.orthogonal_rows, neighbours.mirrored_rows):
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


def _log_ratio(outputs: Array, pair: neighbours.Pair, release: Release) -> Array:
    products = Products(release.row_map)
    rows, columns = np.triu_indices(release.row_map.size)
    centres = [sum_of_rows(pool, products)[rows, columns] / 4.0**release.grid_bits for pool in pair.pools]
    scales = np.where(rows == columns, release.diagonal_scale, release.off_diagonal_scale) / 4.0**release.grid_bits
    one, other = (((outputs - centre) / scales) ** 2 for centre in centres)
    return np.asarray((other - one).sum(axis=1) / 2)


# The names of ``dpsc audit --mechanism``. The first list can be tight; it is attacked at every requested epsilon.
TIGHT: dict[str, Callable[[float], Case]] = {
    "discrete-laplace": lambda epsilon: discrete_noise(epsilon, 0.0),
    "discrete-gaussian": lambda epsilon: discrete_noise(epsilon, DELTA),
    "joint-laplace": joint_laplace,
    "output-pure": lambda epsilon: output(epsilon, 0.0),
    "output-gaussian": lambda epsilon: output(epsilon, DELTA),
    "gram": lambda epsilon: gram_release(epsilon, DELTA),
    "gram-counts": lambda epsilon: gram_counts(epsilon, DELTA),
    "panel": lambda epsilon: people.release(epsilon, DELTA),
    "panel-pure": lambda epsilon: people.release(epsilon, 0.0),
    "panel-lengths": lambda epsilon: people.lengths(epsilon, DELTA),
    "panel-lengths-pure": lambda epsilon: people.lengths(epsilon, 0.0),
}
OTHER: dict[str, Callable[[], Case]] = {
    "objective-pure": lambda: objective(1.0, 0.0),
    "objective-gaussian": lambda: objective(1.0, DELTA),
    "printed-output": printed_output,
    "gram-mu": gram_mu,
    "gram-segments": gram_segments,
    "gram-outcomes": gram_outcomes,
    "composition": composition,
    "ridge-sensitivity": sensitivities.ridge,
    "printed-ridge-sensitivity": sensitivities.printed_ridge,
    "answer-sensitivity": sensitivities.answer,
    "gradient-sensitivity": sensitivities.ball_gradient,
    "jacobian": sensitivities.ball_jacobian,
    "post-period-sensitivity": sensitivities.post_period,
    "gram-rows": sensitivities.rows,
    "panel-sensitivity": people.bounds,
    "panel-joins": people.joins,
    "float-low-bits": float_low_bits,
}
NAMES = (*TIGHT, *OTHER)


def cases(names: Sequence[str] = NAMES, epsilons: Sequence[float] = (1.0,)) -> list[Case]:
    """Return the cases with these names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpscWarning)  # some attack noise from a seed, which is the same for both sides
        tight = [TIGHT[name](epsilon) for name in TIGHT if name in names for epsilon in epsilons]
        return tight + [OTHER[name]() for name in OTHER if name in names]
