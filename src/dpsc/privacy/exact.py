"""Integers instead of floats: rounding to power-of-two grids, and sums that are exact in any order.

Sensitivities stated for these integers hold to the last bit, which is what makes a guarantee "exact".
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpsc.errors import ParameterError
from dpsc.types import Array, Integers

UNIT_ROUNDOFF = 2.0**-53
ENTRY_BITS = 20  # resolution of entries in [-1, 1]: about one in a million
_EXACT_FLOAT = 2**53
_LARGEST = 2**62


def truncate(values: Array, bits: int = ENTRY_BITS) -> Integers:
    """Map [-1, 1] to integers of size at most 2^bits, toward zero, so that no norm grows."""
    return np.asarray(np.trunc(np.ldexp(values, bits)), dtype=np.int64)


def power_of_two_below(value: float) -> float:
    """Return the largest power of two that is at most ``value``.

    Examples
    --------
    >>> power_of_two_below(0.3)
    0.25
    """
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


def second_moments(rows: Integers | Array, bits: int = ENTRY_BITS) -> Integers:
    """Return ``rows.T @ rows`` exactly, for integers (or whole floats) of size at most 2^bits.

    Each block is multiplied in float64, where every partial sum is an integer below 2^53 and therefore exact; blocks
    are added in int64. The result does not depend on the order of the rows or on the blocks.
    """
    n, columns = rows.shape
    require_no_overflow(n * 4**bits, "the sum over donors")
    block = _EXACT_FLOAT // 4**bits
    total = np.zeros((columns, columns), dtype=np.int64)
    for start in range(0, n, block):
        part = rows[start : start + block].astype(np.float64, copy=False)
        total += (part.T @ part).astype(np.int64)
    return total


def fits(largest: float) -> bool:
    """Return whether integers up to this size fit into 64 bits, with some room left."""
    return largest < _LARGEST


def require_no_overflow(largest: float, what: str) -> None:
    """Refuse, from public numbers alone, what might not fit into 63 bits."""
    if not fits(largest):
        raise ParameterError(f"{what} could exceed 64-bit integers; use fewer donors or a larger budget.")


def norm(vector: Array) -> float:
    """Return a number at least the l2 norm of a vector; squares of tiny entries do not vanish in it."""
    size = float(np.abs(vector).max(initial=0.0))
    return 0.0 if size == 0 else safely_above(size * float(np.linalg.norm(vector / size)))


def safely_above(value: float) -> float:
    """Return a float at least as large as the real number whose rounded evaluation ``value`` is (few operations)."""
    return value * (1 + 1e-12)


def safely_below(value: float) -> float:
    """Return a float at most as large as the real number whose rounded evaluation ``value`` is (few operations)."""
    return value * (1 - 1e-12)


def gamma(operations: int) -> float:
    """Return Higham's constant: the relative error of so many chained floating-point operations."""
    return operations * UNIT_ROUNDOFF / (1 - operations * UNIT_ROUNDOFF)


def as_integers(values: ArrayLike) -> Integers:
    """Return whole floats as int64."""
    return np.asarray(values, dtype=np.int64)


def require_solvable(n: int, T0: int, R: float, mu: float) -> float:
    """Return E, the perturbation that solving (X'X + mu I) r = y amounts to, or refuse a mu that is too small for it.

    Higham, Accuracy and Stability of Numerical Algorithms, Theorem 10.4, for Cholesky; ||X'X|| <= n R^2.
    """
    E = (1.01 * T0 * gamma(3 * T0 + 1) + 4 * UNIT_ROUNDOFF + gamma(n + 1)) * (n * R**2 + mu)
    if mu / 8 < E:
        raise ParameterError(
            f"lambda_ = {2 * mu:g} is too small for {n} donors: the weights could not be solved for accurately enough "
            "to promise anything. Use a larger lambda_."
        )
    return E


def solver_error(n: int, T0: int, y_norm: float, R: float, mu: float) -> float:
    """Bound the l2 distance between computed and true ridge weights.

    The solution r of a system perturbed by at most E moves X r by at most
    ``||X (X'X + mu I)^-1|| E ||r|| <= E ||y|| / (2 sqrt(mu) (mu - E))``; the product X r adds gamma_T0 R ||r|| per
    coordinate.
    """
    E = require_solvable(n, T0, R, mu)
    solving = E * y_norm / (2 * math.sqrt(mu) * (mu - E))
    multiplying = math.sqrt(n) * gamma(T0 + 1) * R * y_norm / (mu - E)
    return safely_above(solving + multiplying)
