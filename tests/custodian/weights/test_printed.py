from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import minimize

from dpsc import (
    ObjectivePerturbation,
    OutputPerturbation,
    Panel,
    PanelError,
    ParameterError,
    PrivateResult,
    UnprovenError,
    UnprovenResult,
)
from dpsc.custodian.weights import printed
from dpsc.custodian.weights.classic import ridge_weights
from dpsc.privacy import source
from dpsc.types import Array
from tests.conftest import printed_objective
from tests.making import make_panel
from tests.soak import quick_or_long

OUT = OutputPerturbation.as_printed(epsilon1=0.5, epsilon2=0.25, lambda_=4.0)
OBJ = ObjectivePerturbation.as_printed(epsilon1=0.5, epsilon2=0.25, lambda_=4.0)


@pytest.mark.parametrize(("n", "T0"), [(4, 6), (9, 4)])
def test_the_perturbed_minimiser_minimises_the_printed_objective(n: int, T0: int) -> None:
    rng = np.random.default_rng(n)
    X, y, b = rng.uniform(-1, 1, (n, T0)), rng.uniform(-1, 1, T0), 5 * rng.normal(size=n)
    brute = minimize(printed_objective, np.zeros(n), args=(X, y, 3.0, b), tol=1e-14).x
    np.testing.assert_allclose(printed.perturbed_minimiser(X, y, 3.0, b), brute, atol=1e-5)


def test_without_noise_the_perturbed_minimiser_is_ridge() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (30, 7)), rng.uniform(-1, 1, 7)
    np.testing.assert_allclose(
        printed.perturbed_minimiser(X, y, 5.0, np.zeros(30)), ridge_weights(X, y, 5.0), atol=1e-12
    )


def test_output_perturbation_states_every_number_it_used(panel: Panel) -> None:
    result = OUT.fit(panel)
    assert isinstance(result, PrivateResult)
    n, T0, h = panel.n, panel.T0, panel.h
    p = result.parameters
    assert (p["n"], p["T0"], p["h"], p["lambda_"]) == (n, T0, h, 4.0)
    assert p["a"] == pytest.approx(4 * T0 * math.sqrt(8 + n) / (4.0 * 0.5))
    assert p["b"] == pytest.approx(2 * math.sqrt(h) / 0.25)
    assert (result.guarantee.epsilon, result.guarantee.delta) == (0.75, 0)
    assert result.guarantee.arithmetic == "float"
    assert result.gaps.tolist() == pytest.approx((result.observed - result.counterfactual).tolist())


def test_objective_perturbation_takes_both_branches_of_the_budget() -> None:
    c, lambda_ = 50.0, 10.0
    jacobian = math.log((1 + c / lambda_) ** 2)
    epsilon0, Delta = printed.divide_budget(jacobian + 1, lambda_, c)
    assert epsilon0 == pytest.approx(1)
    assert Delta == 0
    epsilon0, Delta = printed.divide_budget(1.0, lambda_, c)
    assert epsilon0 == 0.5
    assert Delta == pytest.approx(c / (math.exp(0.25) - 1) - lambda_)
    assert Delta > 0
    # The two branches meet what they were chosen for: the Jacobian costs at most epsilon1 - epsilon0.
    assert (1 + c / (lambda_ + Delta)) ** 2 == pytest.approx(math.exp(0.5))


def test_objective_perturbation_noise_scales_are_the_printed_ones(panel: Panel) -> None:
    n, T0 = panel.n, panel.T0
    gradient = 4 * T0 * math.sqrt(8 + n)
    c = (1 + math.sqrt(16 * n - 15)) * T0
    laplace = OBJ.fit(panel, unproven=True).parameters
    assert laplace["c"] == pytest.approx(c)
    assert laplace["beta"] == pytest.approx(min(gradient, c * math.sqrt(n) + 4 * T0) / laplace["epsilon0"])
    small_c = ObjectivePerturbation.as_printed(epsilon1=0.5, epsilon2=0.25, lambda_=4.0, c=0.1)
    p = small_c.fit(panel, unproven=True).parameters
    assert p["beta"] == pytest.approx((0.1 * math.sqrt(n) + 4 * T0) / p["epsilon0"])
    gaussian = ObjectivePerturbation.as_printed(epsilon1=0.5, epsilon2=0.25, lambda_=4.0, delta=1e-6)
    p = gaussian.fit(panel, unproven=True).parameters
    assert p["beta"] == pytest.approx(gradient * math.sqrt(2 * math.log(2e6) + p["epsilon0"]) / p["epsilon0"])


def noise_in_the_objective(panel: Panel, delta: float, runs: int) -> Array:
    """Recover the noise b from released weights through the optimality condition of the printed objective."""
    data = panel.scaled("test")
    noises = []
    for seed in range(runs):
        algorithm = ObjectivePerturbation.as_printed(epsilon1=0.5, epsilon2=0.25, lambda_=4.0, delta=delta, seed=seed)
        result = algorithm.fit(panel, unproven=True)
        f, p = result.weights.to_numpy(), result.parameters
        noises.append(2 * data.X @ (data.y - data.X.T @ f) - (p["lambda_"] + p["Delta"]) * f)
        beta = float(p["beta"])
    return np.array(noises) / beta


@pytest.mark.statistical
def test_the_noise_in_the_objective_has_the_printed_law() -> None:
    panel = make_panel(n=6)
    radius = np.linalg.norm(noise_in_the_objective(panel, 0.0, quick_or_long(1000, 10_000)), axis=1)
    assert stats.kstest(radius, stats.gamma(6).cdf).pvalue > 1e-4
    assert stats.kstest(0.9 * radius, stats.gamma(6).cdf).pvalue < 1e-4
    normals = noise_in_the_objective(panel, 1e-6, 2000)
    assert stats.kstest(normals.ravel(), "norm").pvalue > 1e-4
    assert stats.kstest(0.9 * normals.ravel(), "norm").pvalue < 1e-4
    length = np.linalg.norm(normals, axis=1)  # the coordinates are independent
    assert stats.kstest(length, stats.chi(6).cdf).pvalue > 1e-4


@pytest.mark.statistical
def test_the_noise_on_the_weights_has_the_printed_law() -> None:
    panel = make_panel(n=6)
    data = panel.scaled("test")
    exact = ridge_weights(data.X, data.y, 4.0)
    a = 4 * panel.T0 * math.sqrt(14) / (4.0 * 0.5)
    radius = []
    for seed in range(quick_or_long(1000, 10_000)):
        result = OutputPerturbation.as_printed(epsilon1=0.5, epsilon2=0.25, lambda_=4.0, seed=seed).fit(panel)
        radius.append(np.linalg.norm(result.weights.to_numpy() - exact) / a)
    assert stats.kstest(radius, stats.gamma(6).cdf).pvalue > 1e-4
    assert stats.kstest(0.9 * np.array(radius), stats.gamma(6).cdf).pvalue < 1e-4


@pytest.mark.statistical
def test_the_projected_matrix_gets_one_joint_draw() -> None:
    """With f = e_1 the projection shows h coordinates of W: their joint law is that of one draw in n*h dimensions."""
    n, h, runs = 4, 3, 20_000
    noise = source.seeded(5)
    f = np.eye(n)[0]
    W = np.array([printed._project(np.zeros((n, h)), f, 1.0, noise)[0] for _ in range(runs)])
    # Given the squared radius R^2 ~ Gamma(nh)^2, the share of h coordinates is Beta(h/2, (nh-h)/2).
    rng = np.random.default_rng(6)
    expected = rng.standard_gamma(n * h, 50_000) ** 2 * rng.beta(h / 2, (n * h - h) / 2, 50_000)
    squares = (W**2).sum(axis=1)
    assert stats.ks_2samp(squares, expected).pvalue > 1e-4
    assert stats.ks_2samp(0.9**2 * squares, expected).pvalue < 1e-4
    independent = (rng.laplace(size=(runs, h)) ** 2).sum(axis=1)
    assert stats.ks_2samp(independent, expected).pvalue < 1e-4
    # Uncorrelated, yet dependent: one common radius makes large coordinates come together.
    assert abs(np.corrcoef(W[:, 0], W[:, 1])[0, 1]) < 5 / math.sqrt(runs)
    assert np.corrcoef(W[:, 0] ** 2, W[:, 1] ** 2)[0, 1] > 0.05


def test_the_unproven_algorithm_refuses_without_the_callers_word(panel: Panel) -> None:
    with pytest.raises(UnprovenError, match="unproven=True"):
        OBJ.fit(panel)
    with pytest.raises(UnprovenError):
        OBJ.fit(panel, unproven=1)  # type: ignore[arg-type]
    result = OBJ.fit(panel, unproven=True)
    assert isinstance(result, UnprovenResult)
    assert result.guarantee is None
    reasons = [line for line in result.summary().splitlines() if line.startswith("no guarantee:")]
    assert len(reasons) == 1
    assert "R^n" in reasons[0]


def test_a_seeded_result_says_that_it_is_not_private(panel: Panel) -> None:
    algorithm = OutputPerturbation.as_printed(epsilon1=0.5, epsilon2=0.25, lambda_=4.0, seed=1)
    first, second = algorithm.fit(panel), algorithm.fit(panel)
    assert first.counterfactual.equals(second.counterfactual)
    assert isinstance(first, UnprovenResult)
    assert first.guarantee is None
    assert "not private" in first.summary()
    assert not OUT.fit(panel).counterfactual.equals(OUT.fit(panel).counterfactual)


def test_private_results_carry_no_label_of_a_donor_and_no_pre_period_fit(panel: Panel) -> None:
    labelled = Panel.from_wide(
        pd.DataFrame(panel.donors, index=[f"patient {i}" for i in range(panel.n)]),
        target=panel.target.to_numpy(),
        treatment_time=panel.T0,
        bounds=(-1, 1),
    )
    result = OUT.fit(labelled)
    assert result.weights.index.tolist() == list(range(panel.n))
    assert not re.search("patient", result.summary() + repr(result))
    assert result.fitted.empty


@pytest.mark.parametrize("algorithm", [OUT, OBJ])
def test_a_panel_without_bounds_is_refused_in_the_algorithms_name(algorithm: object) -> None:
    panel = Panel.from_arrays(np.zeros((3, 5)), np.zeros(5), treatment_time=3)
    options = {"unproven": True} if algorithm is OBJ else {}
    with pytest.raises(PanelError, match=r"DPSC_(out|obj) \(Algorithm [23]\) needs public bounds"):
        algorithm.fit(panel, **options)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"epsilon1": 0}, "epsilon1"),
        ({"epsilon1": -1}, "epsilon1"),
        ({"epsilon2": float("inf")}, "epsilon2"),
        ({"epsilon2": float("nan")}, "epsilon2"),
        ({"lambda_": 0}, "lambda_"),
        ({"lambda_": "10"}, "lambda_"),
        ({"delta": 1.0}, "delta"),
        ({"delta": -0.1}, "delta"),
        ({"c": 0}, "c must"),
        ({"c": float("nan")}, "c must"),
    ],
)
def test_senseless_parameters_are_refused_by_name(changes: dict[str, object], name: str) -> None:
    arguments: dict[str, object] = {"epsilon1": 1.0, "epsilon2": 1.0, "lambda_": 1.0}
    with pytest.raises(ParameterError, match=name):
        ObjectivePerturbation.as_printed(**(arguments | changes))  # type: ignore[arg-type]
    if not changes.keys() & {"delta", "c"}:
        with pytest.raises(ParameterError, match=name):
            OutputPerturbation.as_printed(**(arguments | changes))  # type: ignore[arg-type]
