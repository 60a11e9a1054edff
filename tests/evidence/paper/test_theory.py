from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dpsc.custodian.weights import printed
from dpsc.custodian.weights.classic import ridge_weights
from dpsc.custodian.weights.printed import default_c
from dpsc.evidence.paper import theory
from dpsc.evidence.paper.points import AlgorithmName
from dpsc.privacy import laplace, source
from dpsc.privacy.sensitivity import post_period, printed_ridge
from dpsc.types import Array

RUNS = 400
SETTINGS = [(n, T0, epsilon) for n, T0 in ((10, 10), (100, 10), (10, 100)) for epsilon in (2.0, 20.0, 200.0)]


def generated(n: int, T0: int, h: int = 3) -> tuple[Array, Array, Array, Array, float]:
    """The paper's linear model, scaled to [-1, 1]: donors, target, true donor signal, true weights, noise size."""
    rng = np.random.default_rng(n + T0)
    times = np.arange(1, T0 + h + 1) / (T0 + h) / 1.5
    slopes = rng.uniform(0.6, 1.0, n)
    f = rng.dirichlet(np.ones(n))
    sigma = 0.05
    M = np.outer(slopes, times)
    X = M + rng.uniform(-1, 1, M.shape) * sigma * math.sqrt(3)
    y = f @ M + rng.uniform(-1, 1, T0 + h) * sigma * math.sqrt(3)
    return X, y, M, f, sigma


def measured_and_bounds(n: int, T0: int, epsilon: float, algorithm: AlgorithmName) -> tuple[float, float, float]:
    """Return the RMSE of an algorithm over many draws of its noise, and the printed and the corrected bound."""
    h = 3
    X, y, M, f, sigma = generated(n, T0, h)
    lambda_, half = float(T0), epsilon / 2
    f_reg = ridge_weights(X[:, :T0], y[:T0], lambda_)
    noise = source.seeded(int(epsilon))
    if algorithm == "out":
        weights = f_reg + laplace.sample(n, printed_ridge(n, T0, lambda_) / half, noise, (RUNS,))
    else:
        c = printed.default_c(n, T0)
        epsilon0, Delta = printed.divide_budget(half, lambda_, c)
        b = laplace.sample(n, printed.printed_beta(n, T0, epsilon0, 0.0, c), noise, (RUNS,))
        weights = np.array([printed.perturbed_minimiser(X[:, :T0], y[:T0], lambda_ + Delta, draw) for draw in b])
    W = laplace.sample(n * h, post_period(h) / half, noise, (RUNS,)).reshape(RUNS, n, h)
    released = np.einsum("rnh,rn->rh", X[:, T0:] + W, weights)
    rmse = float(np.linalg.norm(released - f @ M[:, T0:], axis=1).mean() / math.sqrt(h))
    setting = theory.Setting(
        n=n,
        T0=T0,
        h=h,
        lambda_=lambda_,
        epsilon1=half,
        epsilon2=half,
        signal_norm=float(np.linalg.norm(M[:, T0:], 2)),
        weight_error=float(np.linalg.norm(f_reg - f)),
        sigma=sigma,
        psi=float(np.abs(f_reg).max()),
    )
    return rmse, theory.bound(algorithm, setting, "as_printed"), theory.bound(algorithm, setting, "corrected")


@pytest.mark.statistical
def test_the_corrected_output_bound_holds_where_the_printed_one_breaks() -> None:
    rows = [measured_and_bounds(*setting, "out") for setting in SETTINGS]
    assert all(measured <= corrected for measured, _, corrected in rows)
    assert sum(measured > as_printed for measured, as_printed, _ in rows) >= 8


@pytest.mark.statistical
def test_the_smallest_setting_has_the_known_size() -> None:
    measured, as_printed, corrected = measured_and_bounds(10, 10, 2.0, "out")
    assert measured == pytest.approx(3040, rel=0.15)
    assert as_printed == pytest.approx(62, rel=0.3)
    assert corrected == pytest.approx(10_600, rel=0.05)


@pytest.mark.statistical
def test_the_corrected_objective_bound_holds() -> None:
    for setting in SETTINGS:
        measured, _, corrected = measured_and_bounds(*setting, "obj")
        assert measured <= corrected


@pytest.fixture
def setting() -> theory.Setting:
    return theory.Setting(
        n=10, T0=10, h=3, lambda_=10, epsilon1=1, epsilon2=2, signal_norm=5, weight_error=0.5, sigma=0.1, psi=0.2
    )


def test_the_bounds_are_the_printed_formulas(setting: theory.Setting) -> None:
    a = 4 * 10 * math.sqrt(18) / 10
    expected = 5 / math.sqrt(3) * (0.5 + a) + (math.sqrt(0.1) + math.sqrt(2) / 2) * (math.sqrt(10) * 0.2 + a)
    assert theory.bound("out", setting, "as_printed") == pytest.approx(expected)
    expected = 5 / math.sqrt(3) * (0.5 + 10 * a) + (math.sqrt(0.1) + 30) * (math.sqrt(10) * 0.2 + 10 * a)
    assert theory.bound("out", setting, "corrected") == pytest.approx(expected)


def test_the_objective_bound_uses_the_printed_norms_of_its_noise(setting: theory.Setting) -> None:
    c = default_c(10, 10)
    epsilon0, Delta = printed.divide_budget(1, 10, c)
    shift = (1 / 10 + 1 / (10 + Delta)) * 2 * 100 * math.sqrt(10)
    for delta in (0.0, 1e-6):
        beta = printed.printed_beta(10, 10, epsilon0, delta, c)
        b_norm = math.sqrt(10 * beta) if delta else beta
        v = 2 / (10 + Delta) * b_norm + shift
        expected = 5 / math.sqrt(3) * (0.5 + v) + (math.sqrt(0.1) + math.sqrt(2) / 2) * (math.sqrt(10) * 0.2 + v)
        changed = dataclasses.replace(setting, delta=delta)
        assert theory.bound("obj", changed, "as_printed") == pytest.approx(expected)
        assert theory.bound("obj", changed, "corrected") > expected


def test_the_eigenvalue_lemma_behind_the_corollaries_is_false() -> None:
    rng = np.random.default_rng(0)
    n, T0, k, lambda_, xi = 30, 4000, 3, 10.0, 0.5
    X = np.linalg.qr(rng.normal(size=(n, k)))[0] @ rng.uniform(-math.sqrt(3), math.sqrt(3), (k, T0))
    claimed = 1 / ((1 - xi) * T0 + lambda_ / (2 * T0))
    actual = np.linalg.norm(np.linalg.inv(X @ X.T + lambda_ / (2 * T0) * np.eye(n)), 2)
    assert actual > 1000 * claimed
