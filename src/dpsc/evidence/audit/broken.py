"""NOT PRIVATE: mechanisms that are known to be broken, to show that the audit catches them.

Each has one mistake and claims more privacy than it has; several mistakes come from published code. They run on made-up
neighbours inside the audit and cannot be applied to data: every function here returns a case, never a mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from dpsc.custodian.weights.minimiser import GriddedRows
from dpsc.custodian.weights.objective import release_minimiser
from dpsc.custodian.weights.output import OutputPerturbation
from dpsc.custodian.weights.printed import default_c, divide_budget, printed_beta
from dpsc.evidence.audit import broken_elsewhere, measure, search, steps
from dpsc.evidence.audit.case import (
    SHOWN_DELTA,
    Case,
    ClaimedLoss,
    Effort,
    Exact,
    Losses,
    LowBits,
    Sampled,
    known_broken,
)
from dpsc.evidence.audit.shipped import float_weight
from dpsc.evidence.audit.steps import Step, TwoStep, call
from dpsc.privacy import sensitivity
from dpsc.privacy.accounting import gaussian_mu
from dpsc.privacy.source import seeded
from dpsc.release.matrix import GRID_BITS
from dpsc.types import Array


def laplace_radius() -> Case:
    """Draw the radius of high-dimensional Laplace noise from |Laplace(a)| instead of Gamma(d, a)."""
    d, epsilon = 10, 1.0
    shift = np.eye(d)[0]

    def draw(side: int, effort: Effort) -> Array:
        source = effort.source()
        direction = source.normals((effort.runs, d))
        radius = source.gammas(1, (effort.runs, 1)) / epsilon
        return np.asarray(side * shift + direction * radius / np.linalg.norm(direction, axis=1, keepdims=True))

    return known_broken(
        "laplace-radius", "radius |Laplace| in 10 dimensions", Sampled("runs in bulk", ClaimedLoss(epsilon), draw)
    )


def variance_beta() -> Case:
    """Draw Gaussian noise with variance sigma instead of sigma squared."""
    epsilon, delta, l2 = 1.0, SHOWN_DELTA, 40.0
    sigma = l2 / gaussian_mu(epsilon, delta)

    def draw(side: int, effort: Effort) -> Array:
        return side * l2 + math.sqrt(sigma) * effort.source().normals((effort.runs, 1))

    def exact() -> float:
        return measure.epsilon_at(delta, lambda e: measure.gaussian_delta(l2 / math.sqrt(sigma), e))

    claim = ClaimedLoss(epsilon, delta)
    attacks = Exact("exact loss", claim, exact), Sampled("runs in bulk", claim, draw)
    return known_broken("variance-beta", "variance β instead of β²", *attacks)


def curvature_left_out() -> Case:
    """Perturb the objective without raising its curvature (the paper's Delta) to what the Jacobian needs."""
    T0, lambda_, epsilon = 4, 0.1, 1.0
    pair = search.zero_row(1, T0, 1)
    X, neighbour = (pair.panel(side).scaled("audit").X for side in (0, 1))
    y = np.ones(T0)
    _, used = release_minimiser(GriddedRows.of(X), y, lambda_, epsilon, 0.0, seeded(0))
    step = Step("laplace", used["beta"])

    def draw(side: int, effort: Effort) -> Array:
        b = step.scale * step.draw(1, effort.runs, effort.source())
        return np.clip(steps.minimisers((X, neighbour)[side], y, lambda_, b), -1, 1)

    def losses(effort: Effort) -> Array:
        b = step.scale * step.draw(1, effort.runs, effort.source())
        return steps.ball_losses(X, neighbour, y, lambda_, b, step.scale, step.law)

    claim = ClaimedLoss(epsilon)
    attacks = Sampled("runs in bulk", claim, draw), Losses("losses", claim, losses)
    return known_broken("curvature-left-out", "curvature Δ left out", *attacks)


def independent_entries() -> Case:
    """Add independent Laplace entries to Z, with the scale of one joint draw: the loss is sqrt(h) epsilon."""
    h, epsilon = 9, 1.0
    pair = search.opposite_rows(2, h)
    step = Step("laplace", sensitivity.post_period(h) / epsilon)
    Z, other = (pool[0, 2:] for pool in pair.pools)

    def draw(side: int, effort: Effort) -> Array:
        return (Z, other)[side] + step.scale * step.draw(h, effort.runs, effort.source())

    ratio = {"likelihood ratio": lambda v: step.log_ratio(v, Z, other)}
    return known_broken(
        "independent-entries", "independent entries of W", Sampled("runs in bulk", ClaimedLoss(epsilon), draw, ratio)
    )


def printed_objective(epsilon: float = 10.0, delta: float = 0.0, n: int = 10) -> Case:
    """Minimise over all of R^n, as the paper prints DPSC_obj: no epsilon holds for the weights."""
    T0, lambda_ = 10, 10.0
    pair = search.zero_row(n, T0, 1)
    X, neighbour = (pool[:, :T0] for pool in pair.pools)
    y, c = np.ones(T0), default_c(n, T0)
    epsilon0, Delta = divide_budget(epsilon, lambda_, c)
    nu = lambda_ + Delta
    step = Step("gaussian" if delta else "joint laplace", printed_beta(n, T0, epsilon0, delta, c))

    def noise(effort: Effort) -> Array:
        return step.scale * step.draw(n, effort.runs, effort.source())

    def losses(swapped: bool, effort: Effort) -> Array:
        pools = (neighbour, X) if swapped else (X, neighbour)
        return steps.unconstrained_losses(*pools, y, nu, noise(effort), step.scale, step.law)

    def draw(side: int, effort: Effort) -> Array:
        return steps.minimisers((X, neighbour)[side], y, nu, noise(effort))

    def ratio(f: Array) -> Array:
        b = [-steps.gradients(pool, y, nu, f) for pool in (X, neighbour)]
        return steps.log_density(b[0], step.scale, step.law) - steps.log_density(b[1], step.scale, step.law)

    claim = ClaimedLoss(epsilon, delta)
    return known_broken(
        "printed-objective",
        f"DPSC_obj as printed, n = {n}",
        Losses("losses", claim, partial(losses, False)),
        Losses("losses, swapped", claim, partial(losses, True)),
        Sampled("runs in bulk", claim, draw, {"likelihood ratio": ratio}),
    )


def clipping_forgotten() -> Case:
    """Release an answer whose donors were never clipped to the public bounds."""
    epsilon = 1.0
    _, l2 = sensitivity.answer(1.0, np.full(1, 2.0))
    step = Step("laplace", l2 / epsilon)

    def draw(side: int, effort: Effort) -> Array:
        return (1 - 2 * side) * search.FAR + step.scale * step.draw(1, effort.runs, effort.source())

    return known_broken("clipping-forgotten", "clipping forgotten", Sampled("runs in bulk", ClaimedLoss(epsilon), draw))


def noise_halved() -> Case:
    """Run output perturbation with twice the budget that it claims."""
    algorithm = _output(lambda seed: OutputPerturbation(epsilon=2.0, lambda_=16.0, weights_ball=False, seed=seed))
    claim, ratio = ClaimedLoss(1.0), {"likelihood ratio": algorithm.log_ratio()}
    return known_broken(
        "noise-halved",
        "noise halved",
        Exact("exact loss", claim, lambda: algorithm.exact_epsilon(0.0)),
        Sampled("runs in bulk", claim, algorithm.draw_bulk, ratio),
        Sampled("calls of fit", claim, algorithm.draw_calls, ratio),
    )


def bound_used_twice() -> Case:
    """Spend the whole epsilon on the weights and once more on the answer."""
    algorithm = _output(lambda seed: OutputPerturbation(epsilon=2.0, lambda_=16.0, weights_ball=False, seed=seed))
    claim = ClaimedLoss(1.0)
    sampled = Sampled("runs in bulk", claim, algorithm.draw_bulk, {"likelihood ratio": algorithm.log_ratio()})
    return known_broken("bound-used-twice", "one budget used twice", sampled)


def seeded_generator() -> Case:
    """Seed the noise, so that anyone can subtract it."""
    pair = search.opposite_rows(4, 1)

    def draw(side: int, effort: Effort) -> Array:
        return call(lambda seed: OutputPerturbation(epsilon=1.0, seed=0), pair, side, effort)

    return known_broken("seeded-generator", "a seeded generator", Sampled("calls of fit", ClaimedLoss(1.0), draw))


def float_as_exact() -> Case:
    """Present floating-point noise as exact."""
    attack = LowBits("low bits", ClaimedLoss(1.0), float_weight)
    return known_broken("float-as-exact", "float noise presented as exact", attack)


def rounded_rows() -> Case:
    """Round the entries of unit rows to the nearest integers instead of truncating."""
    return _rows("rounded-rows", "Gram rows rounded to nearest", lambda unit, rows: np.rint(unit * 2.0**GRID_BITS))


def long_rows() -> Case:
    """Leave the rows as long as they are."""
    return _rows("long-rows", "Gram rows not normalised", lambda unit, rows: np.trunc(rows * 2.0**GRID_BITS))


def _rows(name: str, title: str, to_integers: Callable[[Array, Array], Array]) -> Case:
    def integers(rows: Array) -> Array:
        return to_integers(rows / np.linalg.norm(rows, axis=1, keepdims=True), rows).T

    def longest() -> float:
        rows = np.random.default_rng(0).normal(size=(2000, 30))
        return search.longest_row(integers, rows, GRID_BITS)

    return known_broken(name, title, Exact("longest row", ClaimedLoss(1.0, unit="length² ="), longest, slack=0.0))


def _output(make: Callable[[int | None], OutputPerturbation]) -> TwoStep:
    return TwoStep(make, search.opposite_rows(4, 1))


BROKEN: dict[str, Callable[[], Case]] = {
    "laplace-radius": laplace_radius,
    "variance-beta": variance_beta,
    "curvature-left-out": curvature_left_out,
    "independent-entries": independent_entries,
    "printed-objective": printed_objective,
    "clipping-forgotten": clipping_forgotten,
    "noise-halved": noise_halved,
    "bound-used-twice": bound_used_twice,
    "seeded-generator": seeded_generator,
    "float-as-exact": float_as_exact,
    "rounded-rows": rounded_rows,
    "long-rows": long_rows,
    **broken_elsewhere.EXHIBITS,
}
