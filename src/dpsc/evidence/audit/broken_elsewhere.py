"""NOT PRIVATE: mlsynth's ``DPSC`` and diffprivlib's ``LinearRegression``, written anew from their descriptions.

diffprivlib (https://github.com/IBM/differential-privacy-library, release 0.6.6) adds Laplace noise to the sums that the
least-squares objective consists of: of y², of x y and of x². Issue 105 of 4 February 2026 describes the mistake: the
sensitivity of the sum of x² is the square of the lower bound, and the upper bound is ignored. With bounds (0, 100) it
is 0 instead of 100² = 10,000, and this sum gets no noise at all. (The issue says 100 where 100² is meant; pull request
110 has the number right. With the default, an intercept, bounds are first moved by a noisy mean, which is often 0 when
most donors are at the lower bound; then the same happens.)

mlsynth (https://github.com/jgreathouse9/mlsynth) has an estimator ``DPSC`` since pull request 219 of 11 July 2026; its
release 1.0.0 on PyPI does not have it. The description is its page ``docs/dpsc.rst`` and the defaults of ``DPSCConfig``
(commit 64c8b35). By its own account it follows the code of the paper's authors value for value, with its noise:

- "a magnitude ~ Lap(.) times a uniform direction", where n-dimensional Laplace noise has a Gamma(n) radius;
- ``seed = 0`` unless the caller says something else;
- sensitivities for entries in [-1, 1], and neither scaling nor clipping: "must be clipped before fitting", it says, and
  its example then fits packs of cigarettes;
- ``att_non_private`` in the result, "recorded alongside, so the privacy cost is visible directly".

Every function has ``repaired``: the same attack on the same mechanism without the mistake, which it must not accuse.
"""

from __future__ import annotations

import math

import numpy as np

from dpsc.custodian.weights.classic import ridge_weights
from dpsc.custodian.weights.printed import default_c, divide_budget, printed_beta
from dpsc.evidence.audit import steps
from dpsc.evidence.audit.case import Case, ClaimedLoss, Effort, Exact, Losses, Sampled, known_broken
from dpsc.evidence.audit.steps import exponentials
from dpsc.privacy import sensitivity
from dpsc.privacy.source import Source, seeded
from dpsc.types import Array

DIFFPRIVLIB = "https://github.com/IBM/differential-privacy-library/issues/105"
EPSILON = 1.0
LOWER, UPPER = 0.0, 100.0  # the bounds of x in the issue; those of y are 0 and 1
X = np.array([1.0, *np.zeros(9)]), np.array([UPPER, *np.zeros(9)])  # neighbours: one donor is replaced
Y = np.full(10, 0.5)


def linear_regression(*, repaired: bool = False) -> Case:
    """Calibrate the noise on the sum of x² to the lower bound alone."""
    budget = EPSILON / 3  # for each of the sums of y², x y and x²
    scale = max(abs(LOWER), abs(UPPER) if repaired else abs(LOWER)) ** 2 / budget
    squares = [float((x**2).sum()) for x in X]

    change = abs(squares[0] - squares[1])

    def loss() -> float:
        return change / scale if scale else math.inf if change else 0.0

    def slope(side: int, effort: Effort) -> Array:
        """Return the slope, the minimiser of the noisy objective, once per run."""
        source = effort.source()
        products = float(X[side] @ Y) + (UPPER - LOWER) / budget * _laplace(effort.runs, source)
        noisy = np.abs(squares[side] + scale * _laplace(effort.runs, source))  # folded: a sum of squares is positive
        return np.asarray(products / noisy)[:, np.newaxis]

    claim = ClaimedLoss(EPSILON)
    attacks = (
        Exact("exact loss of the sum of squares", claim, loss, f"changes by {change:g}, noise {scale:g}"),
        Sampled("slopes of many fits", claim, slope, {"size of the slope": lambda v: np.abs(v[:, 0])}),
    )
    return known_broken("diffprivlib-regression", "diffprivlib LinearRegression: Σx²", *attacks, source=DIFFPRIVLIB)


def _laplace(runs: int, source: Source) -> Array:
    return exponentials((runs,), source) - exponentials((runs,), source)


MLSYNTH = "https://github.com/jgreathouse9/mlsynth/pull/219"
N, T0, H = 38, 8, 4  # donors as in its example; fewer periods, for speed
T = T0 + H
LAMBDA, EPSILON1, EPSILON2 = 10.0, 1.0, 1.0  # its defaults
PACKS = 100.0  # about the cigarettes sold per head and year in its example
TARGET = np.ones(T0)


def radius(*, repaired: bool = False) -> Case:
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


def default_seed(*, repaired: bool = False) -> Case:
    """Seed the noise with 0 unless the caller says something else."""

    def draw(side: int, effort: Effort) -> Array:
        donors = _opposite_after()[side]
        sources = (effort.source() if repaired else seeded(0) for _ in range(effort.calls))
        return np.vstack([_release(donors, 1, source, True) for source in sources])

    attack = Sampled("calls with the defaults", ClaimedLoss(EPSILON1 + EPSILON2), draw)
    return known_broken("mlsynth-seed", "mlsynth DPSC: seed = 0 by default", attack, source=MLSYNTH)


def no_clipping(*, repaired: bool = False) -> Case:
    """Calibrate noise for entries in [-1, 1], and add it to weights of packs of cigarettes."""

    def loss() -> float:
        size = 1.0 if repaired else PACKS
        scale = sensitivity.printed_ridge(N, T0, LAMBDA) / EPSILON1
        some, _ = _opposite_before()  # a donor with less than one pack, against one with none
        weights = ridge_weights(some[:, :T0], size * TARGET, LAMBDA)
        return float(np.linalg.norm(weights)) / scale

    attack = Exact("exact loss of the weights (output)", ClaimedLoss(EPSILON1), loss)
    return known_broken("mlsynth-clipping", "mlsynth DPSC: no scaling, no clipping", attack, source=MLSYNTH)


def answer_beside(*, repaired: bool = False) -> Case:
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
    length = source.gammas(dimension, (runs, 1)) if repaired else exponentials((runs, 1), source)
    return np.asarray(direction * length / np.linalg.norm(direction, axis=1, keepdims=True))


def _release(donors: Array, runs: int, source: Source, repaired: bool) -> Array:
    """Return weights by objective perturbation, the default, and the whole path of (donors + W)'f, one row per run.

    W'f is the length of f times T coordinates of W, a joint draw in N T dimensions, whatever f is.
    """
    c = default_c(N, T0)
    epsilon0, Delta = divide_budget(EPSILON1, LAMBDA, c)
    b = printed_beta(N, T0, epsilon0, 0.0, c) * _noise(N, runs, source, repaired)
    f = steps.minimisers(donors[:, :T0], TARGET, LAMBDA + Delta, b)
    used = source.normals((runs, T))
    unused = 2 * source.gammas((N - 1) * T // 2, (runs,))  # the squares of the other (N - 1) T coordinates
    length = source.gammas(N * T, (runs,)) if repaired else exponentials((runs,), source)
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
    "mlsynth-radius": radius,
    "mlsynth-seed": default_seed,
    "mlsynth-clipping": no_clipping,
    "mlsynth-answer": answer_beside,
    "diffprivlib-regression": linear_regression,
}
