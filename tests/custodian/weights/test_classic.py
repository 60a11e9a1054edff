from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from pysyncon import Dataprep, RobustSynth
from scipy.optimize import minimize
from sklearn.linear_model import Ridge

from dpsc import Panel, PanelError, ParameterError, SyntheticControl
from dpsc.custodian.weights.classic import hard_threshold, ridge_weights, simplex_weights
from tests.conftest import printed_objective
from tests.making import long, make_panel

SIZES = [(3, 10), (10, 10), (40, 7), (200, 30)]


@pytest.mark.parametrize(("n", "T0"), SIZES)
@pytest.mark.parametrize("lambda_", [1e-3, 1.0, 50.0])
def test_ridge_matches_scikit_learn_in_primal_and_dual_form(n: int, T0: int, lambda_: float) -> None:
    rng = np.random.default_rng(n)
    X, y = rng.uniform(-1, 1, (n, T0)), rng.uniform(-1, 1, T0)
    peer = Ridge(alpha=lambda_ / 2, fit_intercept=False, solver="svd").fit(X.T, y).coef_
    np.testing.assert_allclose(ridge_weights(X, y, lambda_), peer, atol=1e-8)


def test_ridge_minimises_the_printed_objective() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-1, 1, (4, 6)), rng.uniform(-1, 1, 6)
    brute = minimize(printed_objective, np.zeros(4), args=(X, y, 3.0), tol=1e-14).x
    np.testing.assert_allclose(ridge_weights(X, y, 3.0), brute, atol=1e-6)


@pytest.mark.parametrize(("n", "T0"), SIZES)
def test_simplex_is_as_good_as_a_convex_solver(n: int, T0: int) -> None:
    rng = np.random.default_rng(n)
    X, y = rng.uniform(0, 300, (n, T0)), rng.uniform(0, 300, T0)
    f = simplex_weights(X, y)
    variable = cp.Variable(n)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(y - X.T @ variable)), [variable >= 0, cp.sum(variable) == 1])
    best = problem.solve(solver="CLARABEL")
    assert f.min() >= 0
    assert f.sum() == pytest.approx(1, abs=1e-12)
    assert np.sum((y - X.T @ f) ** 2) == pytest.approx(best, rel=1e-6)


def test_simplex_on_identical_donors_equal_to_the_target() -> None:
    assert simplex_weights(np.ones((4, 3)), np.ones(3)).tolist() == [0.25] * 4


@pytest.mark.parametrize(
    ("choice", "peer_choice"), [({"rank": 2}, {"sv_count": 2}), ({"threshold": 30.0}, {"threshold": 30.0})]
)
def test_robust_weights_match_pysyncon(choice: dict[str, float], peer_choice: dict[str, float]) -> None:
    rng = np.random.default_rng(3)
    T0, h, n = 12, 4, 6
    paths = 5 + rng.uniform(0, 1, (n + 1, 2)) @ rng.uniform(0, 10, (2, T0 + h)) + rng.normal(size=(n + 1, T0 + h))
    table = long(paths, [f"u{i}" for i in range(n + 1)], range(T0 + h), ("unit", "time", "value"))
    prep = Dataprep(
        foo=table,
        predictors=["value"],
        predictors_op="mean",
        dependent="value",
        unit_variable="unit",
        time_variable="time",
        treatment_identifier="u0",
        controls_identifier=[f"u{i}" for i in range(1, n + 1)],
        time_predictors_prior=range(T0),
        time_optimize_ssr=range(T0),
    )
    peer = RobustSynth()
    peer.fit(prep, lambda_=0.7, **peer_choice)
    panel = Panel.from_long(table, unit="unit", time="time", outcome="value", treated_unit="u0", treatment_time=T0)
    ours = SyntheticControl(method="robust", lambda_=1.4, **choice).fit(panel)  # type: ignore[arg-type]
    np.testing.assert_allclose(ours.weights.to_numpy(), np.ravel(peer.W), atol=1e-8)


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
def test_hard_threshold_is_the_truncated_svd(shape: tuple[int, int]) -> None:
    U = np.random.default_rng(0).normal(size=shape)
    left, s, right = np.linalg.svd(U, full_matrices=False)
    truncated = (left[:, :3] * s[:3]) @ right[:3]
    np.testing.assert_allclose(hard_threshold(U, rank=3), truncated, atol=1e-10)
    np.testing.assert_allclose(hard_threshold(U, threshold=(s[2] + s[3]) / 2), truncated, atol=1e-10)
    np.testing.assert_allclose(hard_threshold(U, rank=99), U, atol=1e-10)


def test_results_are_in_the_outcomes_units_and_indexed_by_time() -> None:
    donors = np.array([[100.0, 150, 200, 250, 300], [50, 50, 50, 50, 50]])
    target = donors.mean(axis=0) + np.array([0, 0, 0, 10, 20])
    panel = Panel.from_arrays(
        donors, target, treatment_time=2003, times=range(2000, 2005), bounds=(0, 500), outcome="price"
    )
    result = SyntheticControl(method="simplex").fit(panel)
    assert result.counterfactual.index.tolist() == [2003, 2004]
    assert result.gaps.tolist() == pytest.approx([10, 20])
    assert result.att == pytest.approx(15)
    assert result.fitted.tolist() == pytest.approx(target[:3].tolist())
    assert result.rmse_pre == pytest.approx(0, abs=1e-6)
    assert result.rmse_post == pytest.approx(np.sqrt(250))
    assert result.weights.to_numpy() == pytest.approx([0.5, 0.5])
    assert "NOT PRIVATE" in result.summary()


def test_bounds_change_the_unit_of_lambda_and_nothing_else() -> None:
    panel = make_panel(bounds=(-1, 1))
    tenfold = Panel.from_arrays(10 * panel.donors, 10 * panel.target.to_numpy(), treatment_time=8, bounds=(-10, 10))
    small, large = (SyntheticControl(lambda_=2.0).fit(p) for p in (panel, tenfold))
    np.testing.assert_allclose(10 * small.counterfactual, large.counterfactual)


def test_ridge_without_bounds_uses_the_data_as_they_are() -> None:
    panel = make_panel()
    raw = Panel.from_arrays(10 * panel.donors, 10 * panel.target.to_numpy(), treatment_time=8)
    expected = ridge_weights(10 * panel.donors[:, :8], 10 * panel.target.to_numpy()[:8], 3.0)
    np.testing.assert_allclose(SyntheticControl(lambda_=3.0).fit(raw).weights, expected)
    with pytest.raises(ParameterError, match="lambda_"):
        SyntheticControl().fit(raw)


def test_tall_panels_never_form_an_n_by_n_matrix() -> None:
    import tracemalloc

    rng = np.random.default_rng(0)
    panel = Panel.from_arrays(rng.uniform(-1, 1, (20_000, 60)), np.zeros(60), treatment_time=50, bounds=(-1, 1))
    tracemalloc.start()
    SyntheticControl(lambda_=5.0).fit(panel)
    SyntheticControl(method="robust", rank=3).fit(panel)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * panel.donors.nbytes < 20_000 * 20_000 * 8


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"method": "lasso"}, "method"),
        ({"lambda_": 0}, "lambda_"),
        ({"lambda_": -1}, "lambda_"),
        ({"lambda_": float("nan")}, "lambda_"),
        ({"method": "simplex", "lambda_": 1.0}, "lambda_"),
        ({"method": "robust"}, "rank"),
        ({"method": "robust", "rank": 1, "threshold": 1.0}, "rank"),
        ({"method": "robust", "rank": 0}, "rank"),
        ({"method": "robust", "threshold": -1.0}, "threshold"),
        ({"rank": 2}, "rank"),
    ],
)
def test_senseless_parameters_are_refused_by_name(arguments: dict[str, object], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        SyntheticControl(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"lambda_": 1.0}, {"method": "simplex"}, {"method": "robust", "rank": 1}])
def test_a_donor_without_any_value_in_the_declared_periods_is_named_as_the_problem(options: dict[str, Any]) -> None:
    """It has no direction for a Gram release; weights on it make no sense."""
    table = pd.DataFrame([(u, t, float(i + t)) for i, u in enumerate("abcde") for t in range(6)], columns=list("uty"))
    table["y"] = table["y"].mask(table["u"] == "c")
    panel = Panel.from_long(
        table,
        unit="u",
        time="t",
        outcome="y",
        treated_unit="a",
        treatment_time=4,
        periods="0..5",
        missing="interpolate",
    )
    with pytest.raises(PanelError, match="no value in any period"):
        SyntheticControl(**options).fit(panel)
