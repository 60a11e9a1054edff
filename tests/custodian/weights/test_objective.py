from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpsc import ObjectivePerturbation, Panel, PanelError, ParameterError, PrivateResult, UnprovenResult
from dpsc.custodian.weights import minimiser
from dpsc.custodian.weights.minimiser import GriddedRows
from dpsc.custodian.weights.objective import (
    SOLVER_SHARE,
    draw_on_a_grid,
    gaussian_beta,
    release_minimiser,
)
from dpsc.privacy import sensitivity, source
from dpsc.types import Array
from tests.conftest import NoNoise
from tests.making import make_panel


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_guarantee_is_the_budget_and_its_losses_pay_for_it(delta: float) -> None:
    result = ObjectivePerturbation(epsilon=1.0, delta=delta).fit(make_panel())
    assert isinstance(result, PrivateResult)
    guarantee = result.guarantee
    assert (guarantee.epsilon, guarantee.delta, guarantee.arithmetic) == (1.0, delta, "exact")
    assert guarantee.loss.epsilon(delta) <= 1.0 + 1e-6
    assert result.weights.abs().sum() <= 1 + 1e-9


@pytest.mark.parametrize(("n", "epsilon"), [(1, 0.5), (2, 0.1), (10, 1.0), (100, 50.0), (10, 2000.0)])
def test_the_learning_budget_pays_for_jacobian_noise_and_solver(n: int, epsilon: float) -> None:
    X, y = GriddedRows.of(np.zeros((n, 4))), np.ones(4)
    _, used = release_minimiser(X, y, 4.0, epsilon, 0.0, source.seeded(0))
    jacobian = math.log(sensitivity.constrained_jacobian(n, 4, used["nu"]))
    l1, _ = sensitivity.constrained_gradient(n, 4)
    assert jacobian + l1 / used["beta"] + SOLVER_SHARE * epsilon == pytest.approx(epsilon, rel=7e-5)
    assert jacobian + l1 / used["beta"] + SOLVER_SHARE * epsilon <= epsilon
    assert used["nu"] >= 4.0


@pytest.mark.parametrize("n", [1, 10, 400])
def test_the_solvers_tolerance_is_charged_in_l1_for_pure_privacy(n: int) -> None:
    epsilon = 1.0
    _, used = release_minimiser(GriddedRows.of(np.zeros((n, 4))), np.ones(4), 4.0, epsilon, 0.0, source.seeded(0))
    apart = 2 * minimiser.tolerance(n, 4, used["nu"])
    cost = math.sqrt(n) * apart / used["solver_scale"]
    assert 0.1 * SOLVER_SHARE * epsilon < cost <= SOLVER_SHARE * epsilon


def test_without_noise_the_release_is_the_constrained_minimiser() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (9, 5)), rng.uniform(-1, 1, 5)
    f, used = release_minimiser(GriddedRows.of(X), y, 5.0, 4.0, 0.0, NoNoise())
    np.testing.assert_allclose(f, minimiser.minimise(GriddedRows.of(X), y, used["nu"], np.zeros(9)), atol=1e-5)


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 8.0])
def test_one_donor_the_exact_law_of_the_minimiser_keeps_the_promise(epsilon: float) -> None:
    """With n = 1 the minimiser is clip((2 x.y - b) / (2 |x|^2 + nu), -1, 1): its law is known, for every x and x'."""
    T0 = 2
    y = np.ones(T0)
    _, used = release_minimiser(GriddedRows.of(np.zeros((1, T0))), y, float(T0), epsilon, 0.0, source.seeded(0))
    nu, beta = used["nu"], used["beta"]
    points = np.linspace(-0.999, 0.999, 41)

    def law(x: Array) -> Array:
        """Density at interior points, and the mass at -1 and at 1."""
        curvature = 2 * x @ x + nu
        noise = stats.laplace(scale=beta)
        density = noise.pdf(2 * x @ y - curvature * points) * curvature
        return np.append(density, [noise.sf(2 * x @ y + curvature), noise.cdf(2 * x @ y - curvature)])

    rows = [np.array([a, b]) for a in (-1.0, 0.0, 1.0) for b in (-1.0, 0.5, 1.0)]
    worst = max(float(np.max(np.log(law(x) / law(other)))) for x in rows for other in rows)
    assert 0.3 * epsilon < worst <= epsilon


@pytest.mark.statistical
def test_the_noise_in_the_objective_has_the_stated_law() -> None:
    n, T0, epsilon0 = 30, 4, 1.0

    def draws(delta: float) -> tuple[Array, float]:
        rows = []
        for _ in range(300):
            integers, beta, unit = draw_on_a_grid(n, T0, epsilon0, delta, 1e-6, source.system())
            rows.append(integers * unit / beta)
        return np.array(rows), beta

    laplace, beta = draws(0.0)
    l1, l2 = sensitivity.constrained_gradient(n, T0)
    assert beta == pytest.approx(l1 / epsilon0, rel=1e-3)
    gaussian, sigma = draws(1e-6)
    assert sigma == pytest.approx(gaussian_beta(l2, epsilon0, 1e-6), rel=0.01)
    for total, law, shrink in (
        (np.abs(laplace).sum(), stats.gamma(laplace.size), 0.9),
        (np.sum(gaussian**2), stats.chi2(gaussian.size), 0.9**2),
    ):
        assert min(law.cdf(total), law.sf(total)) > 1e-6
        assert law.cdf(shrink * total) < 1e-6


def test_the_gaussian_scale_bounds_the_loss_with_the_stated_probability() -> None:
    """Worst case: h always along the noise's projection on its plane. A beta 10% smaller breaks the promise."""
    l2, epsilon0, delta = 3.0, 0.8, 0.01
    chi = np.sqrt(-2 * np.log(np.random.default_rng(0).uniform(size=2_000_000)))

    def share_over(beta: float) -> float:
        r = l2 / beta
        return float(np.mean(r * chi + r**2 / 2 > epsilon0))

    beta = gaussian_beta(l2, epsilon0, delta)
    assert share_over(beta) == pytest.approx(delta, rel=0.03)
    assert share_over(0.9 * beta) > 1.5 * delta
    printed = l2 * math.sqrt(2 * math.log(2 / delta) + epsilon0) / epsilon0
    assert 0.9 * printed < beta < printed


def test_ten_thousand_donors_form_no_n_by_n_matrix() -> None:
    import tracemalloc

    rng = np.random.default_rng(0)
    panel = Panel.from_arrays(rng.uniform(-1, 1, (10_000, 103)), np.full(103, 0.5), treatment_time=100, bounds=(-1, 1))
    tracemalloc.start()
    ObjectivePerturbation(epsilon=1.0, delta=1e-6).fit(panel)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * panel.donors.nbytes < 10_000 * 10_000 * 8


def test_with_a_large_budget_it_approaches_the_constrained_minimiser() -> None:
    panel = make_panel(n=6, T0=20)
    data = panel.scaled("test")
    exact = minimiser.minimise(GriddedRows.of(data.X), data.y, 20.0, np.zeros(6))
    result = ObjectivePerturbation(epsilon=1e6).fit(panel)
    np.testing.assert_allclose(result.weights, exact, atol=1e-2)
    np.testing.assert_allclose(result.counterfactual, data.Z.T @ exact, atol=1e-2)


def test_a_lambda_too_small_to_solve_with_is_refused_whatever_the_donors_are() -> None:
    for value in (0.0, 1.0):
        panel = Panel.from_arrays(np.full((1, 3), value), np.ones(3), treatment_time=2, bounds=(-1, 1))
        with pytest.raises(ParameterError, match="lambda_ = 1e-20 is too small"):
            ObjectivePerturbation(epsilon=300, lambda_=1e-20).fit(panel)


@pytest.mark.parametrize("epsilon0", [0.1, 10.0, 50.0, 1000.0])
def test_the_grid_of_gaussian_noise_is_as_fine_as_the_proof_needs(epsilon0: float) -> None:
    n, T0, delta = 50, 3, 1e-6
    _, l2 = sensitivity.constrained_gradient(n, T0)
    _, beta, unit = draw_on_a_grid(n, T0, epsilon0, delta, 1.0, source.seeded(0))
    t = math.sqrt(2 * math.log(2000 * n / delta))
    eta = n * (t + l2 / beta + 2) * unit / beta
    assert eta <= min(epsilon0 / 4096, 0.005)
    assert math.exp(eta) * 0.99 + 0.001 <= 1
    r, chi = l2 / beta, math.sqrt(2 * math.log(1 / (0.99 * delta)))
    assert r * chi + r**2 / 2 + 2 * eta <= epsilon0 * (1 + 1e-9)


def test_a_seed_makes_the_answer_repeatable_and_not_private() -> None:
    algorithm, panel = ObjectivePerturbation(epsilon=1.0, seed=3), make_panel()
    assert algorithm.fit(panel).counterfactual.equals(algorithm.fit(panel).counterfactual)
    assert isinstance(algorithm.fit(panel), UnprovenResult)


def test_a_panel_without_bounds_is_refused_by_name() -> None:
    panel = Panel.from_arrays(np.zeros((3, 5)), np.zeros(5), treatment_time=3)
    with pytest.raises(PanelError, match="ObjectivePerturbation needs public bounds"):
        ObjectivePerturbation(epsilon=1.0).fit(panel)


@pytest.mark.parametrize(
    "changes", [{"epsilon": -1}, {"delta": 2}, {"split": 2}, {"lambda_": -1}, {"arithmetic": "float"}]
)
def test_senseless_parameters_are_refused_by_name(changes: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=next(iter(changes))):
        ObjectivePerturbation(**({"epsilon": 1.0} | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [1, 30, 3000])
def test_the_cells_of_the_grid_are_charged_to_the_laplace_noise(n: int) -> None:
    """A shift by h moves the cell that the noise is in by up to ||h||_1 / unit + n (docs): n units more."""
    l1, _ = sensitivity.constrained_gradient(n, 4)
    _, beta, unit = draw_on_a_grid(n, 4, 1.0, 0.0, 1.0, source.seeded(0))
    assert unit > l1 / n / 2**16
    assert beta >= l1 + n * unit


def test_what_is_released_is_noisy_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise in the objective moves the minimiser; noise for the solver moves what is released of it."""
    X, y = GriddedRows.of(np.full((5, 4), 0.5)), np.ones(4)
    made: list[Array] = []
    original = minimiser.minimise

    def watched(X: GriddedRows, y: Array, nu: float, b: Array) -> Array:
        made.append(original(X, y, nu, b))
        made.append(b)
        return made[-2]

    monkeypatch.setattr(minimiser, "minimise", watched)
    f, used = release_minimiser(X, y, 4.0, 400.0, 0.0, source.system())
    alpha, b = made
    assert np.abs(b).min() > 0
    assert np.linalg.norm(alpha - original(X, y, used["nu"], np.zeros(5))) > 1e-6
    assert (f != alpha).all()
    assert np.linalg.norm(f - alpha) < 1e-6
