"""Everything dpsc ships as private, as cases for the audit. Claims are the budgets that a caller would ask for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpsc.custodian.weights.objective import ObjectivePerturbation
from dpsc.custodian.weights.output import OutputPerturbation
from dpsc.custodian.weights.printed import PrintedOutputPerturbation
from dpsc.evidence.audit import measure, search, shipped_sensitivity, steps
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
from dpsc.evidence.audit.shipped_gram import composition, gram_counts, gram_mu, gram_release
from dpsc.evidence.audit.steps import Step, TwoStep, call
from dpsc.privacy import laplace
from dpsc.privacy.accounting import zcdp_rho
from dpsc.privacy.additive import StepBudget, release_integers
from dpsc.types import Array

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

    def variant(pair: search.Pair, delta: float = delta, **options: Any) -> TwoStep:
        def make(seed: int | None) -> OutputPerturbation:
            return OutputPerturbation(epsilon=epsilon, delta=delta, weights_ball=False, seed=seed, **options)

        return TwoStep(make, pair)

    def on_the_ball(side: int, effort: Effort) -> Array:
        def make(seed: int | None) -> OutputPerturbation:
            return OutputPerturbation(epsilon=epsilon, delta=visible, seed=seed)

        return call(make, search.rank_one(3, T0, 2), side, effort)

    def weight(side: int, effort: Effort) -> Array:
        def make(seed: int | None) -> OutputPerturbation:
            return OutputPerturbation(epsilon=epsilon, lambda_=0.77, weights_ball=False, seed=seed)

        return call(make, search.fine_bits([0.61, 0.35], [0.7, 0.3]), side, effort)

    # With lambda = 4 T0 rows of full length are the worst; the hostile donor's values, far outside, must be clipped.
    hostile = search.opposite_rows(T0, 1, before=search.FAR, after=search.FAR)
    options = {"lambda_": 4.0 * T0}
    pairs = [
        variant(hostile, **options),
        variant(search.opposite_rows(T0, 1, before=math.sqrt(0.5))),
        variant(search.opposite_rows(T0, 1, before=search.FAR), row_norm=1.0, lambda_=8.0),
        variant(search.opposite_rows(T0, 3)),
        variant(search.zero_row(10, T0, 1)),
        variant(search.rank_one(10, T0, 1)),
        variant(search.weak_crowd(50, T0, 1, mu=0.5), lambda_=1.0),
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
        search.fine_bits([0.99, 0.97], [0.97, 0.99]),
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
    pair = search.opposite_rows(4, 1)

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

    def losses(pair: search.Pair, delta: float, effort: Effort) -> Array:
        used = make(0, delta).fit(pair.panel(0)).parameters
        step = Step("gaussian" if delta else "laplace", used["beta"])
        data = [pair.panel(side).scaled("audit") for side in (0, 1)]
        b = step.scale * step.draw(used["n"], effort.runs // 4, effort.source())
        return steps.ball_losses(data[0].X, data[1].X, data[0].y, used["nu"], b, step.scale, step.law)

    def calls(side: int, effort: Effort) -> Array:
        return call(lambda seed: make(seed, visible, large), search.zero_row(1, T0, 1), side, effort)

    attacks: list[Attack] = [Sampled("calls of fit", ClaimedLoss(large, visible), calls)]
    for n, delta_ in itertools.product((1, 2, 3), {delta, visible}):
        pair = search.zero_row(1, T0, 1) if n == 1 else search.rank_one(n, T0, 1)
        for pools in (pair.pools, pair.pools[::-1]):
            ordered = search.Pair(pair.name, *pools, pair.target, pair.T0)
            claim = ClaimedLoss(_SPLIT * epsilon, _SPLIT * delta_)
            attacks.append(Losses(f"losses of the learning step, n = {n}", claim, partial(losses, ordered, delta_)))
    title = f"ObjectivePerturbation δ{'>' if delta else '='}0"
    return Case(f"objective-{'gaussian' if delta else 'pure'}", title, tuple(attacks))


# The names of ``dpsc audit --mechanism``. The first list can be tight; it is attacked at every requested epsilon.
TIGHT: dict[str, Callable[[float], Case]] = {
    "discrete-laplace": lambda epsilon: discrete_noise(epsilon, 0.0),
    "discrete-gaussian": lambda epsilon: discrete_noise(epsilon, DELTA),
    "joint-laplace": joint_laplace,
    "output-pure": lambda epsilon: output(epsilon, 0.0),
    "output-gaussian": lambda epsilon: output(epsilon, DELTA),
    "gram": lambda epsilon: gram_release(epsilon, DELTA),
    "gram-counts": lambda epsilon: gram_counts(epsilon, DELTA),
}
OTHER: dict[str, Callable[[], Case]] = {
    "objective-pure": lambda: objective(1.0, 0.0),
    "objective-gaussian": lambda: objective(1.0, DELTA),
    "printed-output": printed_output,
    "gram-mu": gram_mu,
    "composition": composition,
    "ridge-sensitivity": shipped_sensitivity.ridge,
    "printed-ridge-sensitivity": shipped_sensitivity.printed_ridge,
    "answer-sensitivity": shipped_sensitivity.answer,
    "gradient-sensitivity": shipped_sensitivity.ball_gradient,
    "jacobian": shipped_sensitivity.ball_jacobian,
    "post-period-sensitivity": shipped_sensitivity.post_period,
    "gram-rows": shipped_sensitivity.rows,
    "float-low-bits": float_low_bits,
}
NAMES = (*TIGHT, *OTHER)


def cases(names: Sequence[str] = NAMES, epsilons: Sequence[float] = (1.0,)) -> list[Case]:
    """Return the cases with these names."""
    tight = [TIGHT[name](epsilon) for name in TIGHT if name in names for epsilon in epsilons]
    return tight + [OTHER[name]() for name in OTHER if name in names]
