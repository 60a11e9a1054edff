"""Neighbours: known worst cases, and the search for the pair that comes closest to a bound. All are made up.

Each function returns the largest change it found. Two neighbours attain this number, so a bound below it is wrong, and
a bound far above it may be.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize

from dpsc.custodian.donors.panel import Panel
from dpsc.custodian.weights.classic import ridge_weights
from dpsc.release.rowmap import RowMap
from dpsc.types import Array, Integers

FAR = 50.0  # the size of a hostile donor's values, far beyond the public bounds (-1, 1)
FARTHEST = 1e9  # the movement of a hostile donor, in units of the constant that stands beside rows of a Gram release


@dataclass(frozen=True, eq=False)
class Pair:
    """Two donor pools that differ in the first row, and a public target."""

    name: str
    donors: Array
    neighbour: Array
    target: Array
    T0: int

    @property
    def pools(self) -> tuple[Array, Array]:
        """Both donor pools."""
        return self.donors, self.neighbour

    def panel(self, side: int) -> Panel:
        """Return one donor pool as a panel with public bounds (-1, 1)."""
        return Panel.from_arrays(self.pools[side], self.target, treatment_time=self.T0, bounds=(-1, 1))


def fine_bits(row: Sequence[float], target: Sequence[float]) -> Pair:
    """One donor that is zero, against a row whose weight has fine bits, for attacks on the lowest bits of a weight."""
    donors = np.array([[*row, 0.0]])
    return Pair("fine bits", 0 * donors, donors, np.array([*target, 0.0]), len(row))


def _pair(name: str, others: Array, row: Array, other_row: Array, T0: int) -> Pair:
    target = np.ones(len(row))
    return Pair(name, np.vstack([row, others]), np.vstack([other_row, others]), target, T0)


def opposite_rows(T0: int, h: int, *, before: float = 1.0, after: float = 1.0) -> Pair:
    """One donor, x = -x' along y: attains the exact ridge sensitivity and, with Z = ±1, the answer's.

    ``before`` and ``after`` are the sizes of the entries; sizes above one must be clipped.
    """
    row = np.append(np.full(T0, before), np.full(h, after))
    return _pair("opposite rows", np.empty((0, T0 + h)), row, -row, T0)


def zero_row(n: int, T0: int, h: int) -> Pair:
    """All ones against the same with one row of zeros: breaks objective perturbation as printed."""
    ones = np.ones(T0 + h)
    return _pair("ones and a zero row", np.ones((n - 1, T0 + h)), ones, np.zeros(T0 + h), T0)


def rank_one(n: int, T0: int, h: int) -> Pair:
    """Donors that are all the same, against one that is their mirror image: moves the gradient the furthest."""
    ones = np.ones(T0 + h)
    return _pair("rank one", np.ones((n - 1, T0 + h)), ones, -ones, T0)


def weak_crowd(n: int, T0: int, h: int, *, mu: float) -> Pair:
    """Many weak donors that share the weight until a strong one takes it: moves all weights at once, far in l1."""
    weak = np.full((n - 1, T0 + h), (mu / (n * T0)) ** 0.5)
    return _pair("weak crowd", weak, np.ones(T0 + h), np.zeros(T0 + h), T0)


def still_and_moving(row_map: RowMap) -> Pair:
    """One donor that does not move, against one that moves so much that the map's constant is nothing beside it.

    Their vectors are two of the unit vectors: the worst case of the Gram matrix, on its diagonal.
    """
    return _pair("still and moving", _nobody(row_map), np.zeros(row_map.T), _along(row_map, 0, FARTHEST), row_map.T - 1)


def orthogonal_rows(row_map: RowMap) -> Pair:
    """Two donors that move very much, in two directions of the map, the first and the last."""
    row, other = (_along(row_map, direction, FARTHEST) for direction in (0, -1))
    return _pair("orthogonal rows", _nobody(row_map), row, other, row_map.T - 1)


def mirrored_rows(row_map: RowMap) -> Pair:
    """Two donors that move as much as the map's constant, one up and one down.

    Their vectors are the diagonals between two unit vectors: as bad as :func:`still_and_moving`, but off the diagonal
    of the Gram matrix.
    """
    row = _along(row_map, 0, 1.0)
    return _pair("mirrored rows", _nobody(row_map), row, -row, row_map.T - 1)


def _along(row_map: RowMap, direction: int, size: float) -> Array:
    """Return a row whose whitened movement is in one direction, and so many times as long as the constant."""
    return np.asarray(size * row_map.constant * row_map.back[:, direction])


def _nobody(row_map: RowMap) -> Array:
    return np.empty((0, row_map.T))


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


def climb(height: Callable[[Array], float], starts: Iterable[Array]) -> float:
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


def ridge(lambda_: float, R: float, *, tries: int, seed: int = 0) -> float:
    """Return the largest move of the ridge weights found over X, x, x' (rows of norm at most R) and y (norm 1)."""
    best = 0.0
    for k in range(tries):
        rng = np.random.default_rng([seed, k])
        n, T0 = int(rng.integers(1, 5)), int(rng.integers(2, 5))

        def height(flat: Array, n: int = n, T0: int = T0) -> float:
            vectors = flat.reshape(n + 2, T0)
            rows = vectors[:-1] * np.minimum(1, R / np.linalg.norm(vectors[:-1], axis=1, keepdims=True))
            return weight_change(rows[:n], rows[n], vectors[-1] / np.linalg.norm(vectors[-1]), lambda_)

        best = max(best, climb(height, [R * rng.normal(size=(n + 2) * T0)]))
    return best


def boxed_ridge(n: int, T0: int, lambda_: float, *, tries: int, seed: int = 0) -> float:
    """Return the largest move of the ridge weights found over X, x and y with entries in [-1, 1]."""
    rng = np.random.default_rng([seed, 1])

    def height(flat: Array) -> float:
        rows = np.clip(flat.reshape(n + 2, T0), -1, 1)
        return weight_change(rows[:n], rows[n], rows[n + 1], lambda_)

    return climb(height, (rng.normal(size=(n + 2) * T0) for _ in range(tries)))


def gradient_change(X: Array, x: Array, y: Array, f: Array) -> Array:
    """Return how the gradient of ``||y - X'f||^2`` at f changes when the first row of X becomes x."""
    neighbour = X.copy()
    neighbour[0] = x
    return np.asarray(2 * (neighbour @ (neighbour.T @ f - y) - X @ (X.T @ f - y)))


def ball_gradient(n: int, T0: int, *, tries: int, seed: int = 0) -> tuple[float, float]:
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
        climb(lambda v: float(np.abs(change(v)).sum()), starts),
        climb(lambda v: float(np.linalg.norm(change(v))), starts),
    )


def jacobian_ratio(X: Array, x: Array, signs: Array, nu: float) -> float:
    """Return det(V'A'V) / det(V'AV) on the face of the ball with these signs (inside the ball if there are none)."""
    n = X.shape[0]
    neighbour = X.copy()
    neighbour[0] = x
    basis = np.linalg.svd(signs[np.newaxis, :])[2][1:].T if signs.size else np.eye(n)
    dets = [np.linalg.slogdet(basis.T @ (2 * M @ M.T + nu * np.eye(n)) @ basis)[1] for M in (neighbour, X)]
    return float(np.exp(dets[0] - dets[1]))


def ball_jacobian(n: int, T0: int, nu: float, *, tries: int, seed: int = 0) -> float:
    """Return the largest ratio of Jacobians found at corners; at some the changed row is opposite to all others."""
    rng = np.random.default_rng([seed, n])
    best = jacobian_ratio(np.ones((n, T0)), -np.ones(T0), np.ones(n), nu) if n > 1 else 0.0
    for _ in range(tries):
        X, x = np.sign(rng.normal(size=(n, T0))), np.sign(rng.normal(size=T0))
        signs = rng.choice([-1.0, 1.0], n) if n > 1 and rng.random() < 0.7 else np.array([])
        best = max(best, jacobian_ratio(X, x, signs, nu))
    return max(best, jacobian_ratio(np.zeros((n, T0)), np.ones(T0), np.array([]), nu))


def answer(f: Array, lower: Array, upper: Array, *, tries: int, seed: int = 0) -> tuple[float, float]:
    """Return the largest l1 and l2 change of Z'f found when one row is replaced, over rows within their bounds."""
    rng = np.random.default_rng(seed)

    def change(flat: Array, i: int) -> Array:
        z, other = np.clip(flat.reshape(2, -1), lower, upper)
        return np.asarray(f[i] * (other - z))

    starts = [np.concatenate([lower, upper]), *(rng.normal(size=2 * len(lower)) for _ in range(tries))]
    best1 = max(climb(lambda v, i=i: float(np.abs(change(v, i)).sum()), starts) for i in range(len(f)))  # type: ignore[misc]
    best2 = max(climb(lambda v, i=i: float(np.linalg.norm(change(v, i))), starts) for i in range(len(f)))  # type: ignore[misc]
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
