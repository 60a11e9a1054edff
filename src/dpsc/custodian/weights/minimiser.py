"""Minimising a perturbed ridge objective over {||f||_1 <= 1}, with a certificate of how close the answer is.

J(f) = ||y - X'f||^2 + (nu/2) ||f||^2 + b'f, entries of X and y in [-1, 1]. No n × n matrix is formed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpsc.custodian.donors.blocks import row_blocks
from dpsc.custodian.weights.projection import onto_l1_ball
from dpsc.privacy import exact
from dpsc.privacy.exact import require_no_overflow
from dpsc.types import Array, Integers


class GriddedRows:
    """X on the grid, n × T0, with ``X @ v`` and ``X.T @ f`` in float64.

    Entries are multiples of 2^-20 of size at most 1, which float32 holds exactly (24 bits), so that no digit is lost.
    """

    def __init__(self, blocks: Iterable[Array], shape: tuple[int, int]) -> None:
        self.shape = shape
        self._rows = np.empty(shape, dtype=np.float32)
        start = 0
        for rows in blocks:
            self._rows[start : start + len(rows)] = np.ldexp(exact.truncate(rows).astype(np.float64), -exact.ENTRY_BITS)
            start += len(rows)

    def __matmul__(self, v: Array) -> Array:
        return np.concatenate([rows.astype(np.float64) @ v for rows in row_blocks(self._rows)])

    @classmethod
    def of(cls, X: Array) -> GriddedRows:
        """Put an array on the grid."""
        return cls(row_blocks(X), X.shape)

    @property
    def T(self) -> _Transposed:
        """The transposed matrix, for products."""
        return _Transposed(self)

    def second_moments(self) -> Array:
        """Return X'X, added up exactly in integers and rounded once."""
        require_no_overflow(self.shape[0] * 4**exact.ENTRY_BITS, "the sum over donors")
        total = np.zeros((self.shape[1], self.shape[1]), dtype=np.int64)
        for rows in row_blocks(self._rows):
            total += exact.second_moments(np.ldexp(rows.astype(np.float64), exact.ENTRY_BITS))
        return np.ldexp(total.astype(np.float64), -2 * exact.ENTRY_BITS)


class _Transposed:
    def __init__(self, rows: GriddedRows) -> None:
        self._rows = rows

    def __matmul__(self, f: Array) -> Array:
        total = np.zeros(self._rows.shape[1])
        start = 0
        for rows in row_blocks(self._rows._rows):
            total += rows.T.astype(np.float64) @ f[start : start + len(rows)]
            start += len(rows)
        return total


_CHECK_EVERY = 10
_NEGLIGIBLE = 2.0**-45  # weights so small that rounding alone may have left them there


def gradient_size(T0: int, nu: float) -> float:
    """Return G, the largest entry that the gradient of J without its noise can have on the ball."""
    return 4 * T0 + nu


def shrink_noise(b: Array | Integers, limit: float) -> Array:
    """Return noise of size at most ``limit`` >= 4 G that has the same minimiser as b, whatever X and y are.

    Let c = max|b| - limit > 0 and soften: entries of b shrink by c toward zero. At the minimiser f for the softened
    noise the largest entry exceeds any other force, so f is on the sphere with a multiplier theta >= 3 G > G; entries
    that became 0 have |gradient| <= G < theta and weight 0; all others have the sign opposite to their noise. Putting c
    back then only raises theta by c, so f satisfies the optimality conditions for b too. Without this, floating point
    would lose the data beside large noise. For integers the arithmetic is exact.
    """
    size = np.abs(b)
    c = size.max() - limit
    return np.asarray(b if c <= 0 else np.sign(b) * np.maximum(size - c, 0))


def tolerance(n: int, T0: int, nu: float) -> float:
    """Return how close :func:`minimise` gets, a public number: 2^-40, or what :func:`_surely` can promise."""
    return max(2.0**-40, 16 * _rounding_error(n, T0, nu) / nu)


def minimise(X: GriddedRows, y: Array, nu: float, b: Array) -> Array:
    """Return a point of the ball within :func:`tolerance` of the minimiser in l2, for noise from :func:`shrink_noise`.

    Accelerated projected gradient for a nu-strongly convex function whose gradient is L-Lipschitz. It stops when
    :func:`distance_bound` certifies the tolerance. Without rounding J(f_k) - J* <= (1 - sqrt(nu/L))^k C, with C how
    much J varies on the ball, so ||f_k - f*||^2 <= 2 C / nu times that factor; four times as many steps as this needs
    are allowed, for rounding's sake. Should the certificate not have come by then, :func:`_surely` goes on: it is slow,
    but its result is within the tolerance whatever rounding does. Nothing is refused here: a refusal would depend on
    donors.
    """
    n, T0 = X.shape
    goal = tolerance(n, T0, nu)
    L = _lipschitz(X, nu)
    root = math.sqrt(nu / L)
    C = 12 * gradient_size(T0, nu)
    steps = 4 * math.ceil(math.log(2 * C / (nu * goal**2)) / root)

    momentum = (1 - root) / (1 + root)
    f = ahead = onto_l1_ball(-gradient(X, y, nu, b, np.zeros(n)) / L)
    for step in range(steps):
        if step % _CHECK_EVERY == 0:
            candidate = np.where(np.abs(f) < _NEGLIGIBLE, 0.0, f)
            if distance_bound(X, y, nu, b, candidate, L) <= goal:
                return candidate
        following = onto_l1_ball(ahead - gradient(X, y, nu, b, ahead) / L)
        ahead = following + momentum * (following - f)
        f = following
    return _surely(X, y, nu, b, f, L)


def _surely(X: GriddedRows, y: Array, nu: float, b: Array, f: Array, L: float) -> Array:
    """Return a point within the tolerance of the minimiser by plain projected gradient, from any f in the ball.

    A step without rounding brings f nearer to the minimiser, by the factor 1 - nu/L at least, because the gradient step
    does and projecting does not take it away. If rounding moves the result of each step by at most e, f gets within
    ``2 (1 - nu/L)^k + e L / nu`` after k steps. docs/proofs/objective-perturbation.md: e L is at most 12 times
    :func:`_rounding_error`; the tolerance is 16 times that over nu, and the steps make the first part 1/16 of it.
    """
    n, T0 = X.shape
    goal = tolerance(n, T0, nu)
    for step in range(math.ceil(L / nu * math.log(32 / goal))):
        if step % _CHECK_EVERY == 0 and distance_bound(X, y, nu, b, f, L) <= goal:
            return f
        f = _onto_l1_ball_accurately(f - gradient(X, y, nu, b, f) / L)
    return f


def _onto_l1_ball_accurately(v: Array) -> Array:
    """Return a point of the ball within ``9.5 sqrt(n) + 1`` units of roundoff of the one nearest to v, in l2.

    It may be inside the sphere by a few roundings for each entry. Heights are within 2 units. The true threshold t* is
    the largest of ``(sum of A - 1) / |A|`` over all sets A of heights, so a computed one (``fsum`` rounds once: within
    3 units) plus 4 units is at most t* + 7.5. At the end it is at least t*: either a height above t* was left out,
    because the threshold exceeded it, or none was; then the others that were kept would each be above the threshold
    of their own set, so there are none. Above t*, an error of the threshold moves no entry by more than itself.
    """
    size = np.abs(v)
    if math.fsum(size) <= 1:
        return v
    height = (size - size.max()) + 1
    kept, threshold = height[height > 0], 0.0
    while True:
        threshold = max(threshold, (math.fsum(kept) - 1) / kept.size + 4 * exact.UNIT_ROUNDOFF)
        staying = kept[kept > threshold]
        if staying.size == kept.size:
            return np.asarray(np.copysign(np.maximum(height - threshold, 0.0), v))
        kept = staying


def gradient(X: GriddedRows, y: Array, nu: float, b: Array, f: Array) -> Array:
    """Return the gradient of J at f."""
    return np.asarray(2 * (X @ (X.T @ f - y)) + nu * f + b)


def distance_bound(X: GriddedRows, y: Array, nu: float, b: Array, f: Array, L: float) -> float:
    """Bound the distance of a feasible f to the minimiser by the residual of the optimality conditions.

    f minimises J over the ball if ``gradient + w = 0`` for some w in the normal cone at f: w = 0 inside, and on the
    sphere w_j = theta sign(f_j) where f_j is not 0, |w_j| <= theta elsewhere, theta >= 0. Whatever remains, r, makes f
    the exact minimiser for noise b + r instead of b, and minimisers for two noises differ by at most ||r|| / nu by
    strong convexity. (It is the duality gap taken apart by coordinates: the gap G itself would only give sqrt(G / nu),
    which floating point cannot make small.) The rounding errors of this computation are added. w = 0 is in the normal
    cone at every f, so the smaller of two bounds counts: near the sphere, but inside it, only w = 0 gives a good one.
    """
    g = gradient(X, y, nu, b, f)
    support = f != 0
    beyond = math.fsum(np.abs(f)) - 1  # correctly rounded, whatever n is
    n, T0 = X.shape
    rounding = _rounding_error(n, T0, nu)

    def bound(theta: float, moved: float) -> float:
        """Bound the distance with this theta, f being in the right place once it is moved by at most ``moved``."""
        normal = np.where(support, -theta * np.sign(f), np.clip(g, -theta, theta))
        return (float(np.linalg.norm(g - normal)) + L * moved + rounding) / nu + moved

    inside = bound(0.0, max(0.0, beyond + 2 * exact.UNIT_ROUNDOFF))
    if not support.any() or abs(beyond) >= 1e-6:
        return inside
    theta = max(0.0, -float(np.mean(g[support] * np.sign(f[support]))))
    return min(inside, bound(theta, abs(beyond) + 2 * exact.UNIT_ROUNDOFF))


def _rounding_error(n: int, T0: int, nu: float) -> float:
    """Bound the l2 error of computing :func:`gradient` in floating point on the ball, noise of size at most 4 G."""
    products = 2 * T0 * (exact.gamma(n + 1) + 2 * exact.gamma(T0 + 3))
    return math.sqrt(n) * (products + exact.gamma(6) * 6 * gradient_size(T0, nu))


def _lipschitz(X: GriddedRows, nu: float) -> float:
    """Return a number a little above the largest eigenvalue of 2 X X' + nu I."""
    return 1.001 * 2 * float(np.linalg.eigvalsh(X.second_moments())[-1]) + nu
