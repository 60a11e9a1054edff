"""How far one donor can move what is computed from all of them. Knows no data: every bound is a formula.

Neighbours everywhere: two donor matrices that differ in one whole row, entries in [-1, 1] after public scaling; the
number of donors n, the periods, the target y and all parameters are the same.
"""

from __future__ import annotations

import math


def printed_ridge(n: int, T0: int, lambda_: float) -> float:
    """Return the paper's l2 sensitivity of the ridge weights, ``4 T0 sqrt(8 + n) / lambda`` (Lemma lem.sens).

    It holds, although its proof bounds the gradient over ||f||_1 <= 1, which unconstrained ridge does not promise. In
    one line: ``f = (X X' + mu I)^-1 X y`` with mu = lambda / 2, so ``||f|| <= ||X y|| / mu <= 2 sqrt(n) T0 / lambda``
    for entries in [-1, 1], and two such vectors differ by at most ``4 sqrt(n) T0 / lambda``. It is far from tight.
    """
    return 4 * T0 * math.sqrt(8 + n) / lambda_


def post_period(h: int) -> float:
    """Return the Frobenius sensitivity of the n × h matrix of donors after the intervention, ``2 sqrt(h)``.

    One row changes, each of its h entries by at most 2.
    """
    return 2 * math.sqrt(h)
