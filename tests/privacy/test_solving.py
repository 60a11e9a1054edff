from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

from dpsc import ParameterError
from dpsc.privacy.exact import require_solvable, solver_error


def exact_weight(x: list[Fraction], y: list[Fraction], mu: Fraction) -> Fraction:
    """One donor: (x.x + mu)^-1 x.y."""
    return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0)) / (sum((a * a for a in x), Fraction(0)) + mu)


def test_the_bound_covers_what_solving_really_loses_and_is_not_zero() -> None:
    """The normal equations of one donor over many periods, solved in floats and in fractions."""
    rng = np.random.default_rng(0)
    lost = 0.0
    for T0 in (2, 8, 20):
        for mu in (1e-8, 1e-3, 1.0):
            X, y = rng.uniform(-1, 1, (1, T0)), rng.uniform(-1, 1, T0)
            computed = float((X @ cho_solve(cho_factor(X.T @ X + mu * np.eye(T0)), y))[0])
            true = exact_weight([Fraction(v) for v in X[0].tolist()], [Fraction(v) for v in y.tolist()], Fraction(mu))
            error = abs(float(Fraction(computed) - true))
            lost = max(lost, error)
            assert error <= solver_error(1, T0, float(np.linalg.norm(y)), math.sqrt(T0), mu)
    assert lost > 0


def test_a_mu_that_rounding_would_swamp_is_refused() -> None:
    with pytest.raises(ParameterError, match="too small"):
        require_solvable(10**6, 10, 3.0, 1e-9)
    assert 0 < require_solvable(10, 10, 3.0, 1.0) < 1e-9
