"""NOT PRIVATE: mechanisms that are known to be broken, to show that the audit catches them.

Each has one mistake and claims more privacy than it has; several mistakes come from published code. They run on made-up
neighbours inside the audit and cannot be applied to data: every function here returns a case, never a mechanism.

The exhibits are from two other packages, written anew from what they publish. Each has ``repaired``: the same attack on
the same mechanism without the mistake, which it must not accuse.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from dpsc.custodian.weights.classic import ridge_weights
from dpsc.custodian.weights.minimiser import GriddedRows
from dpsc.custodian.weights.objective import release_minimiser
from dpsc.custodian.weights.output import OutputPerturbation
from dpsc.custodian.weights.printed import default_c, divide_budget, printed_beta
from dpsc.evidence.audit import measure, neighbours, people, sensitivities
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
from dpsc.evidence.audit.neighbours import Step, TwoStep, call
from dpsc.evidence.audit.shipped import float_weight
from dpsc.privacy import sensitivity
from dpsc.privacy.accounting import gaussian_mu
from dpsc.privacy.source import Source, seeded
from dpsc.release.matrix import GRID_BITS
from dpsc.release.table_rule import STEPS, TableRule
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
        return measure.gaussian_epsilon(l2 / math.sqrt(sigma), delta)

    claim = ClaimedLoss(epsilon, delta)
    attacks = Exact("exact loss", claim, exact), Sampled("runs in bulk", claim, draw)
    return known_broken("variance-beta", "variance β instead of β²", *attacks)


def curvature_left_out() -> Case:
    """Perturb the objective without raising its curvature (the paper's Delta) to what the Jacobian needs."""
    T0, lambda_, epsilon = 4, 0.1, 1.0
    pair = neighbours.zero_row(1, T0, 1)
    X, neighbour = (pair.panel(side).scaled("audit").X for side in (0, 1))
    y = np.ones(T0)
    _, used = release_minimiser(GriddedRows.of(X), y, lambda_, epsilon, 0.0, seeded(0))
    step = Step("laplace", used["beta"])

    def draw(side: int, effort: Effort) -> Array:
        b = step.scale * step.draw(1, effort.runs, effort.source())
        return np.clip(measure.minimisers((X, neighbour)[side], y, lambda_, b), -1, 1)

    def losses(effort: Effort) -> Array:
        b = step.scale * step.draw(1, effort.runs, effort.source())
        return measure.ball_losses(X, neighbour, y, lambda_, b, step.scale, step.law)

    claim = ClaimedLoss(epsilon)
    attacks = Sampled("runs in bulk", claim, draw), Losses("losses", claim, losses)
    return known_broken("curvature-left-out", "curvature Δ left out", *attacks)


def independent_entries() -> Case:
    """Add independent Laplace entries to Z, with the scale of one joint draw: the loss is sqrt(h) epsilon."""
    h, epsilon = 9, 1.0
    pair = neighbours.opposite_rows(2, h)
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
    pair = neighbours.zero_row(n, T0, 1)
    X, neighbour = (pool[:, :T0] for pool in pair.pools)
    y, c = np.ones(T0), default_c(n, T0)
    epsilon0, Delta = divide_budget(epsilon, lambda_, c)
    nu = lambda_ + Delta
    step = Step("gaussian" if delta else "joint laplace", printed_beta(n, T0, epsilon0, delta, c))

    def noise(effort: Effort) -> Array:
        return step.scale * step.draw(n, effort.runs, effort.source())

    def losses(swapped: bool, effort: Effort) -> Array:
        pools = (neighbour, X) if swapped else (X, neighbour)
        return measure.unconstrained_losses(*pools, y, nu, noise(effort), step.scale, step.law)

    def draw(side: int, effort: Effort) -> Array:
        return measure.minimisers((X, neighbour)[side], y, nu, noise(effort))

    def ratio(f: Array) -> Array:
        b = [-measure.gradients(pool, y, nu, f) for pool in (X, neighbour)]
        return measure.log_density(b[0], step.scale, step.law) - measure.log_density(b[1], step.scale, step.law)

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
        return (1 - 2 * side) * neighbours.FAR + step.scale * step.draw(1, effort.runs, effort.source())

    return known_broken("clipping-forgotten", "clipping forgotten", Sampled("runs in bulk", ClaimedLoss(epsilon), draw))


def noise_halved() -> Case:
    """Run output perturbation with twice the budget that it claims."""
    claim, algorithm = ClaimedLoss(1.0), _output_perturbation_for_2()
    ratio = {"likelihood ratio": algorithm.log_ratio()}
    return known_broken(
        "noise-halved",
        "noise halved",
        Exact("exact loss", claim, lambda: algorithm.exact_epsilon(0.0)),
        Sampled("runs in bulk", claim, algorithm.draw_bulk, ratio),
        Sampled("calls of fit", claim, algorithm.draw_calls, ratio),
    )


def _output_perturbation_for_2() -> TwoStep:
    def make(seed: int | None) -> OutputPerturbation:
        return OutputPerturbation(epsilon=2.0, lambda_=16.0, weights_ball=False, seed=seed)

    return TwoStep(make, neighbours.opposite_rows(4, 1))


def bound_used_twice() -> Case:
    """Spend the whole epsilon on the weights and once more on the answer."""
    claim, algorithm = ClaimedLoss(1.0), _output_perturbation_for_2()
    sampled = Sampled("runs in bulk", claim, algorithm.draw_bulk, {"likelihood ratio": algorithm.log_ratio()})
    return known_broken("bound-used-twice", "one budget used twice", sampled)


def seeded_generator() -> Case:
    """Seed the noise, so that anyone can subtract it."""
    pair = neighbours.opposite_rows(4, 1)

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
        return sensitivities.longest_row(integers, rows, GRID_BITS)

    return known_broken(name, title, Exact("longest row", ClaimedLoss(1.0, unit="length² ="), longest, slack=0.0))


def records_as_people() -> Case:
    """Bound every record of a panel by itself: a person with many records moves more than one person may."""
    rule = TableRule("total", (0, 1), None, 1, None, 4, 12)
    cells = np.arange(rule.units * rule.periods)
    records = [people.Person(cells[k : k + 1], np.ones(1)) for k in cells]

    def reach() -> float:
        change = people.added(rule, *records)
        return float(np.linalg.norm(change)) / STEPS

    claim = ClaimedLoss(math.sqrt(rule.squared_sensitivity) / STEPS, unit="Δ₂ =")
    return known_broken("records-as-people", "records bounded, not people", Exact("one person gone", claim, reach))


def removal_as_replacement() -> Case:
    """Calibrate a panel's noise to removing a person, and promise it for replacing one."""
    delta, rule = 1e-6, TableRule("mean", (-1, 1), None, 1, None, 4, 2)
    pair = max(people.pairs(rule), key=lambda pair: people.moves(rule, pair)[1])
    removed = math.sqrt(rule.length_squared + rule.one_person**2 * rule.most_cells)
    scale = removed / gaussian_mu(1.0, delta)

    def exact() -> float:
        return measure.gaussian_epsilon(math.sqrt(people.moves(rule, pair)[1]) / scale, delta)

    attack = Exact("exact loss", ClaimedLoss(1.0, delta), exact)
    return known_broken("removal-as-replacement", "noise for a removal only", attack)


DIFFPRIVLIB = "https://github.com/IBM/differential-privacy-library/issues/105"


def diffprivlib_regression(*, repaired: bool = False) -> Case:
    """Calibrate the noise on the sum of x² to the lower bound alone.

    diffprivlib (https://github.com/IBM/differential-privacy-library, release 0.6.6) adds Laplace noise to the sums that
    the least-squares objective consists of: of y², x y and x². Issue 105 of 4 February 2026 describes the mistake:
    the sensitivity of the sum of x² is the square of the lower bound, and the upper bound is ignored. With bounds
    (0, 100) it is 0 instead of 100² = 10,000, and this sum gets no noise at all. (The issue says 100 where 100² is
    meant; pull request 110 has the number right. With the default, an intercept, bounds are first moved by a noisy
    mean, which is often 0 when most donors are at the lower bound; then the same happens.)
    """
    epsilon, lower, upper = 1.0, 0.0, 100.0  # the bounds of x in the issue; those of y are 0 and 1
    neighbours_x = [np.array([first, *np.zeros(9)]) for first in (1.0, upper)]
    y = np.full(10, 0.5)
    budget = epsilon / 3  # for each of the sums of y², x y and x²
    scale = max(abs(lower), abs(upper) if repaired else abs(lower)) ** 2 / budget
    squares = [float((x**2).sum()) for x in neighbours_x]
    change = abs(squares[0] - squares[1])

    def loss() -> float:
        return change / scale if scale else math.inf if change else 0.0

    def slope(side: int, effort: Effort) -> Array:
        """Return the slope, the minimiser of the noisy objective, once per run."""
        source = effort.source()
        products = float(neighbours_x[side] @ y) + (upper - lower) / budget * _laplace(effort.runs, source)
        noisy = np.abs(squares[side] + scale * _laplace(effort.runs, source))  # folded: a sum of squares is positive
        return np.asarray(products / noisy)[:, np.newaxis]

    claim = ClaimedLoss(epsilon)
    attacks = (
        Exact("exact loss of the sum of squares", claim, loss, f"changes by {change:g}, noise {scale:g}"),
        Sampled("slopes of many fits", claim, slope, {"size of the slope": lambda v: np.abs(v[:, 0])}),
    )
    return known_broken("diffprivlib-regression", "diffprivlib LinearRegression: Σx²", *attacks, source=DIFFPRIVLIB)


def _laplace(runs: int, source: Source) -> Array:
    return _exponentials((runs,), source) - _exponentials((runs,), source)


def _exponentials(shape: tuple[int, ...], source: Source) -> Array:
    """Draw exponential variables of mean one, the sizes of Laplace noise: half the squares of two normals."""
    return np.asarray((source.normals((2, *shape)) ** 2).sum(axis=0) / 2)


# mlsynth (https://github.com/jgreathouse9/mlsynth) has an estimator ``DPSC`` since pull request 219 of 11 July 2026;
# its release 1.0.0 on PyPI does not have it. The description is its page ``docs/dpsc.rst`` and the defaults of
# ``DPSCConfig`` (commit 64c8b35). By its own account it follows the code of the paper's authors value for value, with
# its noise:
#
# - "a magnitude ~ Lap(.) times a uniform direction", where n-dimensional Laplace noise has a Gamma(n) radius;
# - ``seed = 0`` unless the caller says something else;
# - sensitivities for entries in [-1, 1], and neither scaling nor clipping: "must be clipped before fitting", it says,
#   and its example then fits packs of cigarettes;
# - ``att_non_private`` in the result, "recorded alongside, so the privacy cost is visible directly".
MLSYNTH = "https://github.com/jgreathouse9/mlsynth/pull/219"
N, T0, H = 38, 8, 4  # donors as in its example; fewer periods, for speed
T = T0 + H
LAMBDA, EPSILON1, EPSILON2 = 10.0, 1.0, 1.0  # its defaults
PACKS = 100.0  # about the cigarettes sold per head and year in its example
TARGET = np.ones(T0)


def mlsynth_radius(*, repaired: bool = False) -> Case:
    """Give noise in many dimensions the radius of noise in one dimension."""
    claim1, claim = ClaimedLoss(EPSILON1), ClaimedLoss(EPSILON1 + EPSILON2)
    scale = sensitivity.printed_ridge(N, T0, LAMBDA) / EPSILON1
    one, other = (ridge_weights(donors[:, :T0], TARGET, LAMBDA) for donors in _opposite_before())

    def losses(effort: Effort) -> Array:
        return noise_losses((other - one) / scale, effort, repaired)

    def draw(side: int, effort: Effort) -> Array:
        return _release(_opposite_after()[side], effort.runs, effort.source(), repaired)

    attacks = (
        Losses("losses of the weights (output)", claim1, losses),
        Sampled("runs of the release (objective)", claim, draw, {"which path is nearer": _nearer}),
    )
    return known_broken("mlsynth-radius", "mlsynth DPSC: radius of the noise", *attacks, source=MLSYNTH)


def mlsynth_seed(*, repaired: bool = False) -> Case:
    """Seed the noise with 0 unless the caller says something else."""

    def draw(side: int, effort: Effort) -> Array:
        donors = _opposite_after()[side]
        sources = (effort.source() if repaired else seeded(0) for _ in range(effort.calls))
        return np.vstack([_release(donors, 1, source, True) for source in sources])

    attack = Sampled("calls with the defaults", ClaimedLoss(EPSILON1 + EPSILON2), draw)
    return known_broken("mlsynth-seed", "mlsynth DPSC: seed = 0 by default", attack, source=MLSYNTH)


def mlsynth_clipping(*, repaired: bool = False) -> Case:
    """Calibrate noise for entries in [-1, 1], and add it to weights of packs of cigarettes."""

    def loss() -> float:
        size = 1.0 if repaired else PACKS
        scale = sensitivity.printed_ridge(N, T0, LAMBDA) / EPSILON1
        some, _ = _opposite_before()  # a donor with less than one pack, against one with none
        weights = ridge_weights(some[:, :T0], size * TARGET, LAMBDA)
        return float(np.linalg.norm(weights)) / scale

    attack = Exact("exact loss of the weights (output)", ClaimedLoss(EPSILON1), loss)
    return known_broken("mlsynth-clipping", "mlsynth DPSC: no scaling, no clipping", attack, source=MLSYNTH)


def mlsynth_answer(*, repaired: bool = False) -> Case:
    """Put the non-private effect beside the private one."""

    def loss() -> float:
        one, other = (_effect_without_donors() if repaired else _ridge_effect(donors) for donors in _opposite_after())
        return math.inf if one != other else 0.0

    how = "the number beside the private effect, on both neighbours"
    attack = Exact("att_non_private", ClaimedLoss(EPSILON1 + EPSILON2), loss, how)
    return known_broken("mlsynth-answer", "mlsynth DPSC: raw answer beside it", attack, source=MLSYNTH)


def noise_losses(shift: Array, effort: Effort, repaired: bool = False) -> Array:
    """Return the privacy losses of noise of scale one, drawn around 0, against the same noise around ``shift``.

    Its density is ``exp(-r) / r^(d-1)`` if its radius r is |Laplace|, and ``exp(-r)`` if it is Gamma(d).
    """
    spike = 0 if repaired else len(shift) - 1
    v = _noise(len(shift), effort.runs, effort.source(), repaired)
    near, far = np.linalg.norm(v, axis=1), np.linalg.norm(v - shift, axis=1)
    return np.asarray(far - near + spike * np.log(far / near))


def _opposite_before() -> tuple[Array, Array]:
    """One donor along the target before the intervention, against its mirror image, of the size that moves most."""
    row = np.zeros(T)
    row[:T0] = math.sqrt(LAMBDA / 2 / T0)
    return _with_first_row(row), _with_first_row(-row)


def _opposite_after() -> tuple[Array, Array]:
    """One donor that is the same before the intervention and the opposite after it: the weights say nothing of it."""
    up, down = np.ones(T), np.ones(T)
    down[T0:] = -1
    return _with_first_row(up), _with_first_row(down)


def _with_first_row(row: Array) -> Array:
    return np.vstack([row, np.zeros((N - 1, T))])


def _noise(dimension: int, runs: int, source: Source, repaired: bool) -> Array:
    """Draw noise of scale one; a signed Laplace magnitude has the same effect as its absolute value."""
    direction = source.normals((runs, dimension))
    length = source.gammas(dimension, (runs, 1)) if repaired else _exponentials((runs, 1), source)
    return np.asarray(direction * length / np.linalg.norm(direction, axis=1, keepdims=True))


def _release(donors: Array, runs: int, source: Source, repaired: bool) -> Array:
    """Return weights by objective perturbation, the default, and the whole path of (donors + W)'f, one row per run.

    W'f is the length of f times T coordinates of W, a joint draw in N T dimensions, whatever f is.
    """
    c = default_c(N, T0)
    epsilon0, Delta = divide_budget(EPSILON1, LAMBDA, c)
    b = printed_beta(N, T0, epsilon0, 0.0, c) * _noise(N, runs, source, repaired)
    f = measure.minimisers(donors[:, :T0], TARGET, LAMBDA + Delta, b)
    used = source.normals((runs, T))
    unused = 2 * source.gammas((N - 1) * T // 2, (runs,))  # the squares of the other (N - 1) T coordinates
    length = source.gammas(N * T, (runs,)) if repaired else _exponentials((runs,), source)
    length *= sensitivity.post_period(T) / EPSILON2
    length *= np.linalg.norm(f, axis=1) / np.sqrt((used**2).sum(axis=1) + unused)
    return np.hstack([f, f @ donors + used * length[:, np.newaxis]])


def _nearer(outputs: Array) -> Array:
    """Return how much nearer a path is to what its weights would give on the first neighbour than on the second."""
    f, path = outputs[:, :N], outputs[:, N:]
    one, other = (np.linalg.norm(path - f @ donors, axis=1) for donors in _opposite_after())
    return np.asarray(np.log(other / one))


def _ridge_effect(donors: Array) -> float:
    """Return the mean effect after the intervention on a target of ones, by ridge regression on the raw donors."""
    path = ridge_weights(donors[:, :T0], TARGET, LAMBDA) @ donors
    return float((1.0 - path[T0:]).mean())


def _effect_without_donors() -> float:
    """Return the mean effect on a target of ones against its own mean before: what may stand beside a private one."""
    return float(1.0 - TARGET.mean())


EXHIBITS = {
    "mlsynth-radius": mlsynth_radius,
    "mlsynth-seed": mlsynth_seed,
    "mlsynth-clipping": mlsynth_clipping,
    "mlsynth-answer": mlsynth_answer,
    "diffprivlib-regression": diffprivlib_regression,
}
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
    "records-as-people": records_as_people,
    "removal-as-replacement": removal_as_replacement,
    **EXHIBITS,
}
