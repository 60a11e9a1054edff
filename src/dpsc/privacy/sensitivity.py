"""How far one donor can move what is computed from all of them. Knows no data: every bound is a formula.

Neighbours everywhere: two donor matrices that differ in one whole row, entries in [-1, 1] after public scaling; the
number of donors n, the periods, the target y and all parameters are the same. Proofs: docs/proofs/sensitivity.md. Tests
attack each bound with adversarial neighbours.
"""

from __future__ import annotations

import math

import numpy as np

from dpsc.types import Array


def printed_ridge(n: int, T0: int, lambda_: float) -> float:
    """Return the paper's l2 sensitivity of the ridge weights, ``4 T0 sqrt(8 + n) / lambda`` (Lemma lem.sens).

    It holds, although its proof bounds the gradient over ||f||_1 <= 1, which unconstrained ridge does not promise. In
    one line: ``f = (X X' + mu I)^-1 X y`` with mu = lambda / 2, so ``||f|| <= ||X y|| / mu <= 2 sqrt(n) T0 / lambda``
    for entries in [-1, 1], and two such vectors differ by at most ``4 sqrt(n) T0 / lambda``. It is far from tight.
    """
    return 4 * T0 * math.sqrt(8 + n) / lambda_


def exact_ridge(y_norm: float, row_norm: float, lambda_: float) -> float:
    """Return the exact l2 sensitivity of the ridge weights, for rows of norm at most ``row_norm`` and any n.

    With mu = lambda/2, R the bound on row norms and y public and fixed: ``||y|| / sqrt(mu)`` while mu <= R^2, and
    ``2 R ||y|| / (mu + R^2)`` beyond. It does not depend on n. First case: f = X (X'X + mu I)^-1 y, and
    s / (s^2 + mu) <= 1 / (2 sqrt(mu)) for every singular value s, so ||f|| <= ||y|| / (2 sqrt(mu)); two such vectors
    differ by at most twice that. The second case needs the residuals of both fits: docs/proofs/sensitivity.md. Both are
    attained by x = -x' parallel to y with all other rows zero. It would break if y depended on the donors, or if a row
    could be longer than R.

    Examples
    --------
    >>> T0 = 10
    >>> round(exact_ridge(T0**0.5, T0**0.5, lambda_=T0), 3), round(printed_ridge(100, T0, lambda_=T0), 1)
    (1.414, 41.6)
    """
    mu = lambda_ / 2
    if mu <= row_norm**2:
        return y_norm / math.sqrt(mu)
    return 2 * row_norm * y_norm / (mu + row_norm**2)


def post_period(h: int) -> float:
    """Return the Frobenius sensitivity of the n × h matrix of donors after the intervention, ``2 sqrt(h)``.

    One row changes, each of its h entries by at most 2.
    """
    return 2 * math.sqrt(h)


def answer(largest_weight: float, widths: Array) -> tuple[float, float]:
    """Return the l1 and l2 sensitivity of Z'f for weights f that are already released.

    Replacing row i changes ``Z'f`` by ``f_i (z' - z)``; entry t of that is at most ``max|f| widths[t]``, with widths[t]
    the width of the interval that holds entry t. With entries in [-1, 1] the l2 sensitivity is ``2 sqrt(h) max|f|``.
    f must be a released quantity, and so the same for both neighbours (adaptive composition); a scale computed from
    unreleased weights would break it.

    Examples
    --------
    >>> answer(0.5, np.full(4, 2.0))
    (4.0, 2.0)
    """
    return largest_weight * float(np.sum(widths)), largest_weight * float(np.linalg.norm(widths))


def constrained_gradient(n: int, T0: int) -> tuple[float, float]:
    """Return the l1 and l2 sensitivity of the gradient of ``||y - X'f||^2`` anywhere in {||f||_1 <= 1}.

    They are ``4 T0 max(2, n)`` and ``4 T0 max(2, sqrt(n))``. With s = |f_i|, entry i of the difference is
    ``2 sum_t (x'_t - x_t) (g_t - y_t + f_i (x'_t + x_t))`` with |g_t| <= 1 - s; the others are ``2 f_i x_j.(x' - x)``.
    With D the mean of |x'_t - x_t| the squared l2 norm is at most ``4 T0^2 D^2 ((2 + s - s D)^2 + s^2 (n - 1))``:
    convex in s, and at both ends largest at D = 2, where it is 64 T0^2 (s = 0) or 16 n T0^2 (s = 1); likewise the l1
    norm, ``2 T0 D (2 + s - s D + s (n - 1))``. It needs entries of X and y in [-1, 1].
    """
    return 4.0 * T0 * max(2, n), 4.0 * T0 * max(2.0, math.sqrt(n))


def constrained_jacobian(n: int, T0: int, nu: float) -> float:
    """Return the largest ratio of Jacobians, noise to minimiser over {||f||_1 <= 1}, between neighbours.

    It is ``1 + max(2, 8 (1 - 1/n)) T0 / nu``. The map has Jacobian 1 / det(V'AV) on a face with tangent basis V, where
    A = 2 X X' + nu I. Up to a constant det(V'AV) is det(nu I + 2 S) with S = X'VV'X. Inside the ball S = X'X, and one
    row changes the determinant by ``(1 + 2 x''M^-1 x') / (1 + 2 x'M^-1 x) <= 1 + 2 T0 / nu``, as M >= nu I. On a face
    with m non-zero weights S is the scatter of the m signed rows about their mean; one row contributes
    ``(1 - 1/m) (z - c)(z - c)'`` with c the mean of the others and ||z - c||^2 <= 4 T0.
    """
    return 1 + max(2.0, 8 * (1 - 1 / n)) * T0 / nu


def table_squared(length_squared: int, largest: int, one_person: int, most_cells: int, *, one_sign: bool) -> int:
    """Return the squared l2 sensitivity of a table of sums over people, and of how many people are in each cell.

    A person adds a vector of integers v, of size at most w = ``largest``, to at most P = ``most_cells`` cells, with
    ``|v|^2 <= Q = length_squared``; if c = ``one_person`` is not 0, a second table adds c in each of these cells.
    Replacing one person by another with k cells in common moves both by at most

        F(k) = 2 Q + 2 min(Q, k w^2) + 2 c^2 (P - k):

    ``|v - v'|^2 <= |v|^2 + |v'|^2 + 2 |v||v'|`` over the common cells, where the squares of each are at most
    min(Q, k w^2); elsewhere only one of them adds something; constants differ in the other cells, at most 2 (P - k) of
    them. The bound is the largest F(k), k = 0..P: F is linear on both sides of k = Q / w^2. It is attained (common
    cells with v' = -v, and Q w^-2 whole). Without the second table (c = 0) it is F(P) = 4 Q, and 2 Q if all values have
    one sign, as then v.v' >= 0. It would break if people were bounded together, or if the constants were scaled along
    with the values. Removing a person moves the tables by ``Q + c^2 P = F(0) / 2`` at most, in every layout. Written
    out in docs/proofs/people-in-groups.md.

    Examples
    --------
    >>> table_squared(12, 1, 1, 12, one_sign=False), table_squared(12, 1, 0, 12, one_sign=True)
    (48, 24)
    """
    if one_person == 0 and one_sign:
        return 2 * length_squared
    full = length_squared // largest**2
    return max(
        2 * length_squared + 2 * min(length_squared, k * largest**2) + 2 * one_person**2 * (most_cells - k)
        for k in {0, min(full, most_cells), min(full + 1, most_cells), most_cells}
    )


def table_l1(length_squared: int, largest: int, one_person: int, most_cells: int) -> int:
    """Return the l1 sensitivity of the same tables: ``2 (L + c P)``, L the largest l1 norm of a person's numbers.

    ``L = min(P w, sqrt(P Q))`` by Cauchy and Schwarz. In common cells values differ by at most the sum of their sizes
    and constants not at all; two people without a common cell attain it.

    Examples
    --------
    >>> table_l1(12, 1, 1, 12), table_l1(3, 1, 0, 12)
    (48, 12)
    """
    longest = min(most_cells * largest, math.isqrt(most_cells * length_squared))
    return 2 * (longest + one_person * most_cells)


def counted(one_person: int) -> tuple[int, int]:
    """Return the l1 and the squared l2 sensitivity of counts of people, each in at most one: ``2 c`` and ``2 c^2``.

    Replacing a person takes c = ``one_person`` out of one count and puts c into another; removing one does half of
    this. It is attained by any two people of different counts. It would break if a person could be in two counts, or if
    the ends of the bins were read off the people.

    Examples
    --------
    >>> counted(1)
    (2, 2)
    """
    return 2 * one_person, 2 * one_person**2
