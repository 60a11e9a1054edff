from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsc import sensitivity
from dpsc.bounds import Array
from dpsc.synthetic import ridge_weights


def weight_change(X: Array, x: Array, y: Array, lambda_: float) -> float:
    """How far the ridge weights move when the first row of X becomes x."""
    neighbour = X.copy()
    neighbour[0] = x
    return float(np.linalg.norm(ridge_weights(X, y, lambda_) - ridge_weights(neighbour, y, lambda_)))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(2, 12), st.floats(1e-3, 1e4), st.booleans())
def test_the_printed_sensitivity_is_never_exceeded(seed: int, n: int, T0: int, lambda_: float, corners: bool) -> None:
    rng = np.random.default_rng(seed)
    X, x, y = (rng.uniform(-1, 1, shape) for shape in ((n, T0), (T0,), (T0,)))
    if corners:
        X, x, y = np.sign(X), np.sign(x), np.sign(y)
    if rng.random() < 0.5:  # the shapes that hurt: other donors small, the changed row along y
        X *= rng.choice([0, 1e-2, 1 / n])
        X[0], x = y, rng.choice([-1.0, 0.0]) * y
    assert weight_change(X, x, y, lambda_) <= sensitivity.printed_ridge(n, T0, lambda_) * (1 + 1e-9)


def test_the_papers_lower_bound_example_does_not_grow_with_n() -> None:
    """With lambda = 2 T0, as the lemma states, its example moves the weights by 0.5 for every n."""
    for n in (10, 100, 300):
        X = np.full((n, n), 1 / n)
        X[0] = 1
        assert weight_change(X, np.zeros(n), np.ones(n), 2.0 * n) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("h", [1, 3, 10])
def test_the_post_period_sensitivity_is_attained(h: int) -> None:
    assert np.linalg.norm(np.ones(h) - -np.ones(h)) == pytest.approx(sensitivity.post_period(h))
