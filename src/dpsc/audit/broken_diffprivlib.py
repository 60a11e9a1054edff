"""NOT PRIVATE: diffprivlib's ``LinearRegression``, written anew from its published description.

diffprivlib (https://github.com/IBM/differential-privacy-library, release 0.6.6) adds Laplace noise to the sums that the
least-squares objective consists of: of y², of x y and of x². Issue 105 of 4 February 2026 describes the mistake: the
sensitivity of the sum of x² is the square of the lower bound, and the upper bound is ignored. With bounds (0, 100) it
is 0 instead of 100² = 10,000, and this sum gets no noise at all. (The issue says 100 where 100² is meant; pull request
110 has the number right. With the default, an intercept, bounds are first moved by a noisy mean, which is often 0 when
most donors are at the lower bound; then the same happens.)
"""

from __future__ import annotations

import math

import numpy as np

from dpsc.audit.case import Case, ClaimedLoss, Effort, Exact, Sampled, known_broken
from dpsc.audit.steps import exponentials
from dpsc.privacy.source import Source
from dpsc.types import Array

SOURCE = "https://github.com/IBM/differential-privacy-library/issues/105"
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
    return known_broken("diffprivlib-regression", "diffprivlib LinearRegression: Σx²", *attacks, source=SOURCE)


def _laplace(runs: int, source: Source) -> Array:
    return exponentials((runs,), source) - exponentials((runs,), source)


EXHIBITS = {"diffprivlib-regression": linear_regression}
