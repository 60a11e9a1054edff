"""Every stated sensitivity bound as a case for the audit, and the search for the neighbours that come closest to it.

Each search returns the largest change it found. Two neighbours attain this number, so a bound below it is wrong, and a
bound far above it may be.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize

from dpsc.custodian.donors.blocks import row_writer
from dpsc.custodian.gram.exact_sum import Products
from dpsc.custodian.gram.integer_rows import IntegerRows
from dpsc.custodian.gram.sources import sum_of_rows
from dpsc.custodian.weights.classic import ridge_weights
from dpsc.evidence.audit import neighbours
from dpsc.evidence.audit.case import Case, ClaimedLoss, Exact
from dpsc.privacy import sensitivity
from dpsc.release.kernel import Kernel, Smoothness
from dpsc.release.matrix import GRID_BITS
from dpsc.release.rowmap import RowMap
from dpsc.types import Array, Integers

_UNIT = "Δ ="
_KINDS: tuple[Smoothness, ...] = ("high", "mild", "none")


def ridge(tries: int = 6) -> Case:
    """Attack the exact ridge sensitivity, in both of its cases."""
    attacks = tuple(
        Exact(
            f"ascent, λ = {lambda_:g}, R = {R:g}",
            ClaimedLoss(sensitivity.exact_ridge(1.0, R, lambda_), unit=_UNIT),
            lambda lambda_=lambda_, R=R: ridge_move(lambda_, R, tries=tries),  # type: ignore[misc]
            f"{tries} starts",
        )
        for lambda_, R in ((0.5, 1.0), (2.0, 1.0), (5.0, 1.0), (3.0, 2.5))
    )
    return Case("ridge-sensitivity", "exact ridge sensitivity", attacks)


def printed_ridge(tries: int = 6) -> Case:
    """Attack the paper's ridge sensitivity."""
    n, T0, lambda_ = 1, 3, 300.0  # the bound is closest to the truth for one donor and a large lambda
    claim = ClaimedLoss(sensitivity.printed_ridge(n, T0, lambda_), unit=_UNIT)
    attack = Exact("ascent", claim, lambda: boxed_ridge_move(n, T0, lambda_, tries=tries), f"{tries} starts")
    return Case("printed-ridge-sensitivity", "printed ridge sensitivity", (attack,))


def answer() -> Case:
    """Attack the answer's sensitivity, in both norms."""
    f, lower, upper = np.array([0.2, -0.5, 0.3]), np.array([-1.0, 0.0]), np.array([1.0, 0.5])
    bounds = sensitivity.answer(float(np.abs(f).max()), upper - lower)
    attacks = _norms(bounds, lambda: answer_move(f, lower, upper, tries=3))
    return Case("answer-sensitivity", "sensitivity of the answer", attacks)


def ball_gradient() -> Case:
    """Attack the gradient's sensitivity over the l1 ball."""
    n, T0 = 4, 3
    bounds = sensitivity.constrained_gradient(n, T0)
    attacks = _norms(bounds, lambda: gradient_move(n, T0, tries=1))
    return Case("gradient-sensitivity", "gradient over the l1 ball", attacks)


def ball_jacobian() -> Case:
    """Attack the bound on Jacobians over the l1 ball."""
    T0, nu = 4, 30.0
    attacks = tuple(
        Exact(
            f"corners, {n} donors",
            ClaimedLoss(sensitivity.constrained_jacobian(n, T0, nu) - 1, unit="J - 1 ="),
            lambda n=n: largest_jacobian(n, T0, nu, tries=200) - 1,  # type: ignore[misc]
        )
        for n in (1, 3, 6)
    )
    return Case("jacobian", "Jacobians over the l1 ball", attacks)


def post_period() -> Case:
    """Replace a row of ones by minus ones after the intervention."""
    h = 5
    pair = neighbours.opposite_rows(2, h)
    claim = ClaimedLoss(sensitivity.post_period(h), unit=_UNIT)
    reach = float(np.linalg.norm(pair.donors[:, 2:] - pair.neighbour[:, 2:]))
    return Case("post-period-sensitivity", "post-period sensitivity", (Exact("opposite rows", claim, lambda: reach),))


def rows() -> Case:
    """Look for integer vectors longer than one, and for a pair of rows that changes the Gram matrix too much."""

    def longest() -> float:
        best = 0.0
        for row_map in _maps((2, 7, 30)):
            data = rows_of_every_kind(row_map.T, 2000, seed=row_map.T)

            def to_integers(block: Array, row_map: RowMap = row_map) -> Array:
                return IntegerRows(row_map, len(block))(row_writer(block))

            best = max(best, longest_row(to_integers, data, GRID_BITS))
        return best

    def change() -> float:
        best = 0.0
        for row_map in _maps((2, 5)):
            for worst in (neighbours.still_and_moving, neighbours.orthogonal_rows, neighbours.mirrored_rows):
                one, other = (sum_of_rows(pool, Products(row_map)) for pool in worst(row_map).pools)
                best = max(best, gram_change(one - other) / 4.0**GRID_BITS)
        return best

    return Case(
        "gram-rows",
        "vectors of the Gram matrix",
        (
            Exact(
                "longest vector",
                ClaimedLoss(1.0, unit="length² ="),
                longest,
                "36,000 rows, in whole numbers",
                slack=0.0,
            ),
            Exact("orthogonal vectors", ClaimedLoss(math.sqrt(2), unit=_UNIT), change, "in whole numbers"),
        ),
    )


def _maps(periods: tuple[int, ...]) -> list[RowMap]:
    """Return public maps of rows, with all directions and with fewer."""
    return [
        RowMap(T, Kernel.named(kind), None, directions, 1.0, GRID_BITS)
        for kind, T in itertools.product(_KINDS, periods)
        for directions in (T - 1, (T + 1) // 2)
    ]


def _norms(bounds: tuple[float, float], search: Callable[[], tuple[float, float]]) -> tuple[Exact, Exact]:
    """Return the attacks in l1 and l2 on a pair of bounds; the search runs once."""
    reached = lru_cache(maxsize=1)(search)
    return (
        Exact("ascent, l1", ClaimedLoss(bounds[0], unit="Δ₁ ="), lambda: reached()[0]),
        Exact("ascent, l2", ClaimedLoss(bounds[1], unit="Δ₂ ="), lambda: reached()[1]),
    )


def rows_of_every_kind(T: int, count: int, seed: int) -> Array:
    """Rows that might become too long: of all sizes, sparse, constant, along the grid's diagonals."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, T))
    rows[::5] = np.sign(rows[::5])
    rows[1::5] *= 10.0 ** rng.integers(-250, 250, (len(rows[1::5]), 1))
    rows[2::5] *= rng.random((len(rows[2::5]), T)) < 0.3
    rows[3::5] = np.cumsum(rows[3::5], axis=1)
    rows[4::50] = rows[4::50, :1]
    return rows


_STEP = math.sqrt(np.finfo(np.float64).eps)


def ascend(height: Callable[[Array], float], starts: Iterable[Array]) -> float:
    """Return the largest height that quasi-Newton ascent with numerical gradients reaches from any start."""

    def depth(flat: Array) -> float:
        return -height(flat)

    def slope(flat: Array) -> Array:
        """Return forward differences, with SciPy's own steps but without its checks, which take longer than heights."""
        here, moved, found = depth(flat), flat.copy(), np.empty_like(flat)
        for i, x in enumerate(flat.tolist()):
            moved[i] = x + math.copysign(_STEP * max(1.0, abs(x)), x)
            found[i] = (depth(moved) - here) / (moved[i] - x)
            moved[i] = x
        return found

    return max(-float(minimize(depth, start, jac=slope).fun) for start in starts)


def weight_change(X: Array, x: Array, y: Array, lambda_: float) -> float:
    """Return how far the ridge weights move when the first row of X becomes x."""
    neighbour = X.copy()
    neighbour[0] = x
    return float(np.linalg.norm(ridge_weights(X, y, lambda_) - ridge_weights(neighbour, y, lambda_)))


def ridge_move(lambda_: float, R: float, *, tries: int, seed: int = 0) -> float:
    """Return the largest move of the ridge weights found over X, x, x' (rows of norm at most R) and y (norm 1)."""
    best = 0.0
    for k in range(tries):
        rng = np.random.default_rng([seed, k])
        n, T0 = int(rng.integers(1, 5)), int(rng.integers(2, 5))

        def height(flat: Array, n: int = n, T0: int = T0) -> float:
            vectors = flat.reshape(n + 2, T0)
            rows = vectors[:-1] * np.minimum(1, R / np.linalg.norm(vectors[:-1], axis=1, keepdims=True))
            return weight_change(rows[:n], rows[n], vectors[-1] / np.linalg.norm(vectors[-1]), lambda_)

        best = max(best, ascend(height, [R * rng.normal(size=(n + 2) * T0)]))
    return best


def boxed_ridge_move(n: int, T0: int, lambda_: float, *, tries: int, seed: int = 0) -> float:
    """Return the largest move of the ridge weights found over X, x and y with entries in [-1, 1]."""
    rng = np.random.default_rng([seed, 1])

    def height(flat: Array) -> float:
        rows = np.clip(flat.reshape(n + 2, T0), -1, 1)
        return weight_change(rows[:n], rows[n], rows[n + 1], lambda_)

    return ascend(height, (rng.normal(size=(n + 2) * T0) for _ in range(tries)))


def gradient_change(X: Array, x: Array, y: Array, f: Array) -> Array:
    """Return how the gradient of ``||y - X'f||^2`` at f changes when the first row of X becomes x."""
    neighbour = X.copy()
    neighbour[0] = x
    return np.asarray(2 * (neighbour @ (neighbour.T @ f - y) - X @ (X.T @ f - y)))


def gradient_move(n: int, T0: int, *, tries: int, seed: int = 0) -> tuple[float, float]:
    """Return the largest l1 and l2 change of the gradient found over entries in [-1, 1] and weights in the l1 ball."""
    rng = np.random.default_rng([seed, n])

    def change(flat: Array) -> Array:
        rows, f = np.clip(flat[:-n].reshape(n + 2, T0), -1, 1), flat[-n:]
        return gradient_change(rows[:n], rows[n], rows[n + 1], f / max(1.0, float(np.abs(f).sum())))

    ones = np.ones(T0)
    starts = [
        np.concatenate([np.tile(s * ones, (n, 1)).ravel(), -s * ones, r * ones, np.eye(n)[j]])
        for s, r, j in itertools.product((1, -1), (1, -1), {0, n - 1})
    ]
    starts += [np.append(rng.uniform(-1, 1, (n + 2) * T0), rng.normal(size=n)) for _ in range(tries)]
    return (
        ascend(lambda v: float(np.abs(change(v)).sum()), starts),
        ascend(lambda v: float(np.linalg.norm(change(v))), starts),
    )


def jacobian_ratio(X: Array, x: Array, signs: Array, nu: float) -> float:
    """Return det(V'A'V) / det(V'AV) on the face of the ball with these signs (inside the ball if there are none)."""
    n = X.shape[0]
    neighbour = X.copy()
    neighbour[0] = x
    basis = np.linalg.svd(signs[np.newaxis, :])[2][1:].T if signs.size else np.eye(n)
    dets = [np.linalg.slogdet(basis.T @ (2 * M @ M.T + nu * np.eye(n)) @ basis)[1] for M in (neighbour, X)]
    return float(np.exp(dets[0] - dets[1]))


def largest_jacobian(n: int, T0: int, nu: float, *, tries: int, seed: int = 0) -> float:
    """Return the largest ratio of Jacobians found at corners; at some the changed row is opposite to all others."""
    rng = np.random.default_rng([seed, n])
    best = jacobian_ratio(np.ones((n, T0)), -np.ones(T0), np.ones(n), nu) if n > 1 else 0.0
    for _ in range(tries):
        X, x = np.sign(rng.normal(size=(n, T0))), np.sign(rng.normal(size=T0))
        signs = rng.choice([-1.0, 1.0], n) if n > 1 and rng.random() < 0.7 else np.array([])
        best = max(best, jacobian_ratio(X, x, signs, nu))
    return max(best, jacobian_ratio(np.zeros((n, T0)), np.ones(T0), np.array([]), nu))


def answer_move(f: Array, lower: Array, upper: Array, *, tries: int, seed: int = 0) -> tuple[float, float]:
    """Return the largest l1 and l2 change of Z'f found when one row is replaced, over rows within their bounds."""
    rng = np.random.default_rng(seed)

    def change(flat: Array, i: int) -> Array:
        z, other = np.clip(flat.reshape(2, -1), lower, upper)
        return np.asarray(f[i] * (other - z))

    starts = [np.concatenate([lower, upper]), *(rng.normal(size=2 * len(lower)) for _ in range(tries))]
    best1 = max(ascend(lambda v, i=i: float(np.abs(change(v, i)).sum()), starts) for i in range(len(f)))  # type: ignore[misc]
    best2 = max(ascend(lambda v, i=i: float(np.linalg.norm(change(v, i))), starts) for i in range(len(f)))  # type: ignore[misc]
    return best1, best2


def longest_row(to_integers: Callable[[Array], Array], rows: Array, bits: int) -> float:
    """Return the largest squared length of an integer vector as a share of 4^bits, added up exactly in integers."""
    columns = to_integers(rows)
    squares = (columns**2).sum(axis=0)
    if not np.isfinite(squares).all():
        return math.inf
    longest = np.argsort(squares)[-50:]
    return float(Fraction(max(sum(int(v) ** 2 for v in columns[:, j]) for j in longest), 4**bits))


def gram_change(change: Integers) -> float:
    """Return the Frobenius norm of a change of an integer Gram matrix, without rounding before the root."""
    return math.sqrt(sum(int(v) ** 2 for v in change.ravel()))
