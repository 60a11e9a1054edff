from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsc.evidence.audit.sensitivities import gradient_move, jacobian_ratio, ridge_move, weight_change
from dpsc.privacy import sensitivity
from tests.soak import quick_or_long


@settings(max_examples=quick_or_long(100, 20_000))
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(2, 12), st.floats(1e-3, 1e4), st.booleans())
def test_neither_ridge_sensitivity_is_ever_exceeded(seed: int, n: int, T0: int, lambda_: float, corners: bool) -> None:
    rng = np.random.default_rng(seed)
    X, x, y = (rng.uniform(-1, 1, shape) for shape in ((n, T0), (T0,), (T0,)))
    if corners:
        X, x, y = np.sign(X), np.sign(x), np.sign(y)
    if rng.random() < 0.5:  # the shapes that hurt: other donors small, the changed row along y
        X *= rng.choice([0, 1e-2, 1 / n])
        X[0], x = y, rng.choice([-1.0, 0.0]) * y
    moved = weight_change(X, x, y, lambda_)
    exact = sensitivity.exact_ridge(float(np.linalg.norm(y)), math.sqrt(T0), lambda_)
    assert moved <= exact * (1 + 1e-9)
    assert exact <= sensitivity.printed_ridge(n, T0, lambda_) * (1 + 1e-12)


@pytest.mark.parametrize(("lambda_", "R"), [(0.1, 1.0), (1.0, 1.0), (2.0, 1.0), (5.0, 1.0), (20.0, 1.0), (3.0, 2.5)])
def test_gradient_ascent_reaches_the_exact_ridge_sensitivity_and_no_further(lambda_: float, R: float) -> None:
    bound = sensitivity.exact_ridge(1.0, R, lambda_)
    best = ridge_move(lambda_, R, tries=quick_or_long(3, 100))
    assert 0.99 * bound <= best <= bound * (1 + 1e-9)
    assert best > 0.9 * bound  # a bound 10% too small would be broken


def test_the_exact_ridge_sensitivity_is_29_times_below_the_printed_one() -> None:
    T0 = 10
    ratio = sensitivity.printed_ridge(100, T0, T0) / sensitivity.exact_ridge(math.sqrt(T0), math.sqrt(T0), T0)
    assert ratio == pytest.approx(29.4, abs=0.1)


def test_the_papers_lower_bound_example_does_not_grow_with_n() -> None:
    """With lambda = 2 T0, as the lemma states, its example moves the weights by 0.5 for every n."""
    for n in (10, 100, 300):
        X = np.full((n, n), 1 / n)
        X[0] = 1
        assert weight_change(X, np.zeros(n), np.ones(n), 2.0 * n) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("h", [1, 3, 10])
def test_the_post_period_sensitivity_is_attained(h: int) -> None:
    assert np.linalg.norm(np.ones(h) - -np.ones(h)) == pytest.approx(sensitivity.post_period(h))


def test_the_answer_sensitivity_is_attained_in_both_norms() -> None:
    f, lower, upper = np.array([0.2, -0.5, 0.3]), np.array([-1.0, 0.0]), np.array([1.0, 0.5])
    Z = np.array([lower, lower, upper])
    neighbour = np.array([lower, upper, upper])
    change = (neighbour - Z).T @ f
    l1, l2 = sensitivity.answer(0.5, upper - lower)
    assert np.abs(change).sum() == pytest.approx(l1)
    assert np.linalg.norm(change) == pytest.approx(l2)


# A single donor cannot reach it: 4.5 T0 of 8 T0.
@pytest.mark.parametrize("n", quick_or_long([2, 4], [2, 3, 4, 5, 9]))
def test_the_gradient_over_the_ball_moves_as_far_as_the_bound_and_no_further(n: int) -> None:
    """Climb over entries in [-1, 1] and weights in the ball, from many starts, corners among them."""
    T0 = 3
    l1_bound, l2_bound = sensitivity.constrained_gradient(n, T0)
    best1, best2 = gradient_move(n, T0, tries=quick_or_long(2, 30))
    assert 0.99 * l2_bound <= best2 <= l2_bound * (1 + 1e-9)
    assert 0.99 * l1_bound <= best1 <= l1_bound * (1 + 1e-9)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_the_jacobian_over_the_ball_is_bounded_and_the_bound_is_nearly_reached(n: int) -> None:
    """Random attacks stay below; the known worst case, the changed row opposite to all others, comes close."""
    T0, nu = 4, 30.0
    bound = sensitivity.constrained_jacobian(n, T0, nu)
    rng = np.random.default_rng(n)
    for _ in range(300):
        X, x = np.sign(rng.normal(size=(n, T0))), np.sign(rng.normal(size=T0))
        signs = rng.choice([-1.0, 1.0], n) if rng.random() < 0.7 else np.array([])
        assert jacobian_ratio(X, x, signs, nu) <= bound * (1 + 1e-9)
    others = np.ones((n, T0))
    worst = jacobian_ratio(others, -np.ones(T0), np.ones(n), nu)
    assert 0.99 * (bound - 1) <= worst - 1 <= (bound - 1) * (1 + 1e-9)
    assert worst - 1 > 0.9 * (bound - 1)  # a bound 10% too small would be broken


def test_the_jacobian_inside_the_ball_reaches_its_part_of_the_bound() -> None:
    T0, nu = 5, 7.0
    X, x = np.zeros((1, T0)), np.ones(T0)
    assert jacobian_ratio(X, x, np.array([]), nu) == pytest.approx(sensitivity.constrained_jacobian(1, T0, nu))
