from __future__ import annotations

import math
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from dpsc.custodian.weights import minimiser
from dpsc.custodian.weights.minimiser import GriddedRows
from dpsc.types import Array

Problem = tuple[GriddedRows, Array, float, Array]


def dense(X: GriddedRows) -> Array:
    return X @ np.eye(X.shape[1])


def smoothness(X: GriddedRows, nu: float) -> float:
    """A number above the largest eigenvalue of 2 X X' + nu I."""
    return 1.001 * 2 * float(np.linalg.norm(dense(X), 2)) ** 2 + nu


def problem(n: int, T0: int, noise: float, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    X, y = GriddedRows.of(rng.uniform(-1, 1, (n, T0))), rng.uniform(-1, 1, T0)
    nu = float(rng.choice([T0, 30.0 * T0]))
    b = noise * rng.laplace(size=n)
    return X, y, nu, minimiser.shrink_noise(b, 4 * minimiser.gradient_size(T0, nu))


@pytest.mark.parametrize(("n", "T0"), [(1, 2), (3, 5), (30, 8), (200, 20)])
@pytest.mark.parametrize("noise", [0.0, 1.0, 50.0, 1e6])
def test_the_minimiser_is_feasible_certified_and_agrees_with_a_convex_solver(n: int, T0: int, noise: float) -> None:
    X, y, nu, b = problem(n, T0, noise, seed=n)
    f = minimiser.minimise(X, y, nu, b)
    L = smoothness(X, nu)
    assert np.abs(f).sum() <= 1 + 1e-12
    assert minimiser.distance_bound(X, y, nu, b, f, L) <= minimiser.tolerance(n, T0, nu) <= 1e-9
    variable = cp.Variable(n)
    objective = cp.sum_squares(y - dense(X).T @ variable) + nu / 2 * cp.sum_squares(variable) + b @ variable
    cp.Problem(cp.Minimize(objective), [cp.norm1(variable) <= 1]).solve(solver="CLARABEL")
    np.testing.assert_allclose(f, variable.value, atol=1e-4)


def test_the_certificate_is_never_below_the_true_distance() -> None:
    rng = np.random.default_rng(0)
    for seed in range(50):
        X, y, nu, b = problem(8, 4, 5.0, seed)
        best = minimiser.minimise(X, y, nu, b)
        other = best + 10.0 ** rng.uniform(-8, 0) * rng.normal(size=8)
        other /= max(1.0, np.abs(other).sum())
        L = smoothness(X, nu)
        distance = np.linalg.norm(other - best)
        assert distance <= minimiser.distance_bound(X, y, nu, b, other, L) + minimiser.tolerance(8, 4, nu)


@pytest.mark.parametrize("kind", ["float", "integer"])
def test_softened_noise_has_the_same_minimiser(kind: str) -> None:
    """Compared at sizes where the unsoftened problem can still be solved in floating point."""
    rng = np.random.default_rng(1)
    for trial in range(30):
        n, T0, nu = 6, 3, 20.0
        X, y = GriddedRows.of(rng.uniform(-1, 1, (n, T0))), rng.uniform(-1, 1, T0)
        G = minimiser.gradient_size(T0, nu)
        b: Array = rng.laplace(size=n) * 40 * G
        if trial % 2:  # near ties at the top, where several weights share the ball
            b[:3] = np.sign(b[:3]) * (np.abs(b).max() + rng.uniform(0, nu, 3))
        whole = np.rint(b * 1024).astype(np.int64)
        softened = minimiser.shrink_noise(b, 4 * G)
        if kind == "integer":
            b = np.asarray(whole / 1024)
            softened = np.asarray(minimiser.shrink_noise(whole, 4 * G * 1024) / 1024)
        assert np.abs(softened).max() <= 4 * G * (1 + 1e-12)
        f = minimiser.minimise(X, y, nu, softened)
        L = smoothness(X, nu)
        assert minimiser.distance_bound(X, y, nu, b, f, L) <= 1e-9


@pytest.mark.parametrize(("n", "nu"), [(1, 1e7), (1000, 100.0), (1000, 1e7), (20_000, 1e5), (100_000, 1e7)])
@pytest.mark.parametrize("donors", ["nobody", "everybody alike"])
def test_ties_among_all_weights_are_solved_within_the_tolerance(n: int, nu: float, donors: str) -> None:
    """The hardest noise for the certificate: all entries equal, so that every donor shares the ball."""
    T0 = 2
    X, y = GriddedRows.of(np.full((n, T0), 0.0 if donors == "nobody" else 1.0)), np.ones(T0)
    b = np.full(n, 4 * minimiser.gradient_size(T0, nu))
    f = minimiser.minimise(X, y, nu, b)
    tolerance = minimiser.tolerance(n, T0, nu)
    L = smoothness(X, nu)
    assert np.linalg.norm(f + 1 / n) <= tolerance
    assert minimiser.distance_bound(X, y, nu, b, f, L) <= tolerance


def test_degenerate_noise_is_always_certified() -> None:
    """Ties, zeros and duplicates in both donors and noise: the certificate must come every time."""
    rng = np.random.default_rng(3)
    for _ in range(400):
        n, T0 = int(rng.integers(1, 12)), int(rng.integers(1, 5))
        donors = rng.choice([-1.0, 0.0, 1.0, 0.5], (n, T0))
        donors[rng.integers(0, n, n // 2)] = donors[0]
        X = GriddedRows.of(donors)
        y, nu = rng.choice([-1.0, 0.0, 1.0], T0), float(10 ** rng.uniform(-1, 5))
        limit = 4 * minimiser.gradient_size(T0, nu)
        b = minimiser.shrink_noise(
            rng.choice([-1.0, 1.0, 0.0, 1 - 1e-9], n) * limit * rng.choice([1e-3, 0.3, 1, 9]), limit
        )
        f = minimiser.minimise(X, y, nu, b)
        L = smoothness(X, nu)
        assert minimiser.distance_bound(X, y, nu, b, f, L) <= minimiser.tolerance(n, T0, nu)


def test_small_noise_is_left_alone() -> None:
    b = np.array([1.0, -2.0])
    np.testing.assert_array_equal(minimiser.shrink_noise(b, 3.0), b)


def beside_the_sphere(seed: int) -> tuple[GriddedRows, Array, float, Array, float]:
    """One donor, T0 = 60, and noise that puts the minimiser inside the ball, 1e-8 to 1e-6 from its surface."""
    rng = np.random.default_rng(seed)
    X, y, nu = GriddedRows.of(rng.uniform(-1, 1, (1, 60))), rng.uniform(-1, 1, 60), 60.0
    (x,) = dense(X)
    solution = 1 - 10 ** rng.uniform(-8, -6)
    curvature = 2 * float(x @ x) + nu
    return X, y, nu, np.array([2 * float(x @ y) - curvature * solution]), solution


def test_the_certificate_comes_for_minimisers_just_inside_the_sphere() -> None:
    for seed in range(60):
        X, y, nu, b, exactly = beside_the_sphere(seed)
        f, tolerance = minimiser.minimise(X, y, nu, b), minimiser.tolerance(1, 60, nu)
        L = smoothness(X, nu)
        assert minimiser.distance_bound(X, y, nu, b, f, L) <= tolerance
        assert abs(f[0] - exactly) <= tolerance


def test_the_certificate_counts_its_own_rounding() -> None:
    """At the computed minimiser the residual may be 0 by luck; what was rounded away on the way to it is not."""
    X, y, nu, b = problem(30, 8, 1.0, seed=0)
    f = minimiser.minimise(X, y, nu, b)
    rounding = minimiser._rounding_error(30, 8, nu)
    assert rounding > 30**0.5 * 2 * 8 * 31 * 2.0**-53
    assert minimiser.distance_bound(X, y, nu, b, f, smoothness(X, nu)) >= rounding / nu
    # Nobody's data, no noise: the minimiser 0 has residual 0, and only rounding is left.
    zero = GriddedRows.of(np.zeros((3, 2)))
    bound = minimiser.distance_bound(zero, np.zeros(2), 5.0, np.zeros(3), np.zeros(3), 5.0)
    assert bound == minimiser._rounding_error(3, 2, 5.0) / 5.0


@pytest.mark.parametrize("where", ["inside the sphere", "anywhere", "ties"])
def test_without_a_certificate_the_answer_is_still_within_the_tolerance(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is refused and nothing else is returned: either would depend on donors."""
    for seed in range(8):
        if where == "inside the sphere":
            X, y, nu, b, exactly = beside_the_sphere(seed)
            truth = np.array([exactly])
        elif where == "ties":
            X, y, nu = GriddedRows.of(np.ones((50 + seed, 2))), np.ones(2), 100.0
            b = np.full(50 + seed, 4 * minimiser.gradient_size(2, nu))
            truth = np.full(50 + seed, -1 / (50 + seed))
        else:
            X, y, nu, b = problem(20, 6, 5.0, seed)
            truth = minimiser.minimise(X, y, nu, b)
        with monkeypatch.context() as patch:
            patch.setattr(minimiser, "distance_bound", lambda *arguments: np.inf)
            f = minimiser.minimise(X, y, nu, b)
        allowed = minimiser.tolerance(X.shape[0], X.shape[1], nu) * (2 if where == "anywhere" else 1)
        assert np.linalg.norm(f - truth) <= allowed
        assert math.fsum(np.abs(f)) <= 1


def test_the_accurate_projection_is_as_accurate_as_its_proof_says() -> None:
    """Against fractions, with heights placed around the threshold a rounding apart."""
    rng = np.random.default_rng(0)
    for trial in range(200):
        n = int(rng.integers(1, 60))
        v = rng.normal(size=n) * 10 ** rng.uniform(-2, 3)
        if trial % 3 == 1:
            v[1:] = v[0] - 1 + rng.integers(-6, 7, n - 1) * 2.0**-53 + (trial % 2) / n
        if trial % 3 == 2:
            v[:] = v[0]
        size = [Fraction(float(entry)) for entry in np.abs(v)]
        if sum(size) <= 1:
            continue
        ordered = sorted(size, reverse=True)
        sums = [sum(ordered[: k + 1]) for k in range(n)]
        threshold = max((total - 1) / (k + 1) for k, total in enumerate(sums))
        made = [Fraction(float(entry)) for entry in np.abs(minimiser._onto_l1_ball_accurately(v))]
        squares = sum((one - max(entry - threshold, 0)) ** 2 for one, entry in zip(made, size, strict=True))
        assert math.sqrt(squares) <= (9.5 * math.sqrt(n) + 1) * 2.0**-53
        assert sum(made) <= 1
