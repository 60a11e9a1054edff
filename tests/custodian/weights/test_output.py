from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpsc import (
    DpscWarning,
    ObjectivePerturbation,
    OutputPerturbation,
    Panel,
    PanelError,
    ParameterError,
    PrivateResult,
    SyntheticControl,
    UnprovenResult,
)
from dpsc.custodian.weights.classic import ridge_weights
from dpsc.custodian.weights.minimiser import GriddedRows
from dpsc.custodian.weights.output import release_ridge, shorten_rows
from dpsc.privacy import sensitivity
from dpsc.privacy.additive import StepBudget
from dpsc.privacy.exact import solver_error
from dpsc.types import Array
from tests.conftest import NoNoise, scale_pvalue
from tests.making import SECRET, make_panel
from tests.soak import quick_or_long

UNIT_EPSILON, UNIT_RHO = StepBudget("epsilon", 1.0), StepBudget("rho", 0.5)  # for which scales are sensitivities


def test_the_computed_weights_are_within_the_stated_error_of_exact_rational_ones() -> None:
    rng = np.random.default_rng(0)
    n, T0, mu = 7, 3, 0.01
    X = np.trunc(rng.uniform(-1, 1, (n, T0)) * 2**20) / 2**20
    y = rng.uniform(-1, 1, T0)
    computed, _ = release_ridge(GriddedRows.of(X), y, 2 * mu, math.sqrt(T0), UNIT_EPSILON, NoNoise())
    exact = rational_ridge(X, y, Fraction(mu))
    e = solver_error(n, T0, float(np.linalg.norm(y)), math.sqrt(T0), mu)
    grid = sensitivity.exact_ridge(float(np.linalg.norm(y)), math.sqrt(T0), 2 * mu) / 2**12
    assert np.linalg.norm(computed - exact) <= e + grid / 2
    assert e < 1e-9


def rational_ridge(X: Array, y: Array, mu: Fraction) -> Array:
    """Solve for the ridge weights in exact fractions."""
    n, T0 = X.shape
    rows = [[Fraction(float(v)) for v in row] for row in X]
    system: list[list[Fraction]] = [
        [sum((rows[j][s] * rows[j][t] for j in range(n)), mu if s == t else Fraction(0)) for t in range(T0)]
        for s in range(T0)
    ]
    r: list[Fraction] = [Fraction(float(v)) for v in y]
    for i in range(T0):
        for k in range(i + 1, T0):
            factor = system[k][i] / system[i][i]
            system[k] = [a - factor * b for a, b in zip(system[k], system[i], strict=True)]
            r[k] -= factor * r[i]
    for i in reversed(range(T0)):
        r[i] = (r[i] - sum((system[i][t] * r[t] for t in range(i + 1, T0)), Fraction(0))) / system[i][i]
    return np.array([float(sum(a * b for a, b in zip(row, r, strict=True))) for row in rows])


@pytest.mark.parametrize("R", [0.7, 2.0])
def test_no_neighbour_moves_the_released_integers_further_than_their_noise_is_calibrated_to(R: float) -> None:
    """The worst pair, x = -x' along y and nobody else, reaches the l2 sensitivity to one part in a thousand."""
    T0, lambda_ = 4, 2.0
    rng = np.random.default_rng(2)
    worst = 0.0
    for trial in range(40):
        n = 1 if trial == 0 else int(rng.integers(1, 6))
        y = rng.uniform(-1, 1, T0)
        X = shorten_rows(rng.uniform(-1, 1, (n, T0)) * (0 if trial < 5 else 1), R)
        best = min(R, math.sqrt(lambda_ / 2)) * y / np.linalg.norm(y)
        results = []
        for x in (best, -best):
            X[0] = x
            weights, l2 = release_ridge(GriddedRows.of(X), y, lambda_, R, UNIT_RHO, NoNoise())
            _, l1 = release_ridge(GriddedRows.of(X), y, lambda_, R, UNIT_EPSILON, NoNoise())
            results.append(weights)
        change = results[0] - results[1]
        assert np.linalg.norm(change) <= l2
        assert np.abs(change).sum() <= l1
        worst = max(worst, float(np.linalg.norm(change)) / l2)
    assert worst > 0.999


def test_one_donor_can_move_all_weights_and_the_l1_calibration_pays_for_it() -> None:
    """Many weak donors share the weight until a strong one takes it: in l1 that is beyond the l2 sensitivity."""
    n, T0, lambda_ = 400, 4, 2.0
    y = np.ones(T0)
    X = np.full((n, T0), math.sqrt(1 / (n * T0)))
    weights = []
    for x in (-y / 2, y / 2):
        X[0] = x
        f, l1 = release_ridge(GriddedRows.of(X), y, lambda_, math.sqrt(T0), UNIT_EPSILON, NoNoise())
        weights.append(f)
    X[0] = 0
    f, l2 = release_ridge(GriddedRows.of(X), y, lambda_, math.sqrt(T0), UNIT_RHO, NoNoise())
    moved = max(float(np.abs(f - other).sum()) for other in weights)
    assert l2 < moved <= l1


@pytest.mark.parametrize("R", [0.3, 1.0, 1.9])
def test_shortened_rows_are_never_longer_than_the_bound(R: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 4)) * rng.choice([1e-300, 1e-3, 1.0], (500, 1))
    X[0] = 0
    short = shorten_rows(X, R)
    squares = [sum(Fraction(float(v)) ** 2 for v in row) for row in short]
    assert max(squares) <= Fraction(R) ** 2
    unchanged = np.linalg.norm(X, axis=1) < 0.999 * R
    np.testing.assert_array_equal(short[unchanged], X[unchanged])
    np.testing.assert_allclose(np.linalg.norm(short[~unchanged], axis=1), R, rtol=2e-3)


@pytest.mark.statistical
@pytest.mark.parametrize(("delta", "law"), [(0.0, stats.laplace()), (1e-6, stats.norm())])
def test_the_noise_on_weights_and_answer_is_the_stated_one(delta: float, law: stats.rv_continuous) -> None:
    """From the operating system's entropy; a scale 10% too small is rejected. False alarms: one in a million."""
    panel = make_panel(n=20, h=12)  # many periods: the answers' noise needs about 5,000 numbers for this power
    data = panel.scaled("test")
    exact = ridge_weights(data.X, data.y, float(panel.T0))
    weight_noise, answer_noise = [], []
    for _ in range(450):
        result = OutputPerturbation(epsilon=1.0, delta=delta, weights_ball=False).fit(panel)
        f = result.weights.to_numpy()
        weight_noise.append((f - exact) / result.parameters["weight_scale"])
        answer_noise.append((result.counterfactual.to_numpy() - data.Z.T @ f) / result.parameters["answer_scale"])
    for noise in (np.ravel(weight_noise), np.ravel(answer_noise)):
        assert stats.kstest(noise, law.cdf).pvalue > 1e-6
        assert scale_pvalue(noise, "gaussian" if delta else "laplace") > 1e-6
        assert scale_pvalue(0.9 * noise, "gaussian" if delta else "laplace") < 1e-2


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_guarantee_is_the_budget_and_its_losses_pay_for_it(delta: float) -> None:
    result = OutputPerturbation(epsilon=1.0, delta=delta, split=0.3).fit(make_panel())
    assert isinstance(result, PrivateResult)
    guarantee = result.guarantee
    assert (guarantee.epsilon, guarantee.delta, guarantee.arithmetic) == (1.0, delta, "exact")
    assert guarantee.loss.epsilon(delta) == pytest.approx(1.0, rel=1e-5)
    assert guarantee.loss.rho == 0
    assert "exact arithmetic" in str(result.guarantee)


def test_the_split_moves_noise_from_the_weights_to_the_answer() -> None:
    panel = make_panel()
    few, many = (OutputPerturbation(epsilon=1.0, split=s).fit(panel).parameters["weight_scale"] for s in (0.2, 0.8))
    assert few == pytest.approx(4 * many)


def test_the_noise_on_the_weights_is_29_times_below_the_printed_one() -> None:
    panel = make_panel(n=100, T0=10)
    panel = Panel.from_arrays(panel.donors, np.ones(13), treatment_time=10, bounds=(-1, 1))
    ours = sensitivity.exact_ridge(math.sqrt(10), math.sqrt(10), 10.0) / 0.5
    printed = OutputPerturbation.as_printed(epsilon1=0.5, epsilon2=0.5, lambda_=10.0).fit(panel).parameters["a"]
    assert printed / ours == pytest.approx(29.4, abs=0.1)


def test_a_row_norm_lowers_the_noise_and_the_default_lambda() -> None:
    panel = make_panel(T0=16)
    loose, tight = (
        OutputPerturbation(epsilon=1.0, lambda_=16.0, row_norm=r).fit(panel).parameters for r in (None, 1.0)
    )
    assert tight["weight_scale"] < 0.7 * loose["weight_scale"]
    assert OutputPerturbation(epsilon=1.0, row_norm=2.0).fit(panel).parameters["lambda_"] == 4.0
    assert OutputPerturbation(epsilon=1.0).fit(panel).parameters["lambda_"] == 16.0
    assert OutputPerturbation(epsilon=1.0, row_norm=99.0).fit(panel).parameters["row_norm"] == 4.0


def test_weights_are_projected_onto_the_ball_unless_told_otherwise() -> None:
    panel = make_panel(n=40)
    inside, outside = (OutputPerturbation(epsilon=0.1, weights_ball=w).fit(panel) for w in (True, False))
    assert inside.weights.abs().sum() <= 1 + 1e-9 < outside.weights.abs().sum()


def test_public_numbers_do_not_depend_on_the_donors() -> None:
    """Everything on the result that is not noise is the same for two panels with nothing in common but public facts."""
    rng = np.random.default_rng(0)
    target = rng.uniform(-1, 1, 9)
    results = [
        OutputPerturbation(epsilon=1.0, delta=1e-6).fit(
            Panel.from_arrays(donors, target, treatment_time=6, bounds=(-1, 1))
        )
        for donors in (np.zeros((5, 9)), np.sign(rng.normal(size=(5, 9))) * 50)
    ]
    first, second = ({k: v for k, v in r.parameters.items() if k != "answer_scale"} for r in results)
    assert first == second


def test_a_seed_makes_the_answer_repeatable_and_not_private() -> None:
    panel = make_panel()
    algorithm = OutputPerturbation(epsilon=1.0, delta=1e-6, seed=4)
    assert algorithm.fit(panel).counterfactual.equals(algorithm.fit(panel).counterfactual)
    assert isinstance(algorithm.fit(panel), UnprovenResult)
    assert "not private" in algorithm.fit(panel).summary()


def test_a_target_of_zeros_needs_no_weights() -> None:
    panel = Panel.from_arrays(np.ones((3, 5)), np.zeros(5), treatment_time=3, bounds=(-1, 1))
    result = OutputPerturbation(epsilon=1.0).fit(panel)
    assert not result.counterfactual.any()


def test_results_are_in_the_outcomes_units() -> None:
    small = make_panel(bounds=(-1, 1))
    large = Panel.from_arrays(300 * small.donors, 300 * small.target.to_numpy(), treatment_time=8, bounds=(-300, 300))
    results = [OutputPerturbation(epsilon=5.0, seed=1).fit(p) for p in (small, large)]
    np.testing.assert_allclose(300 * results[0].counterfactual, results[1].counterfactual, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize(
    "algorithm",
    [
        OutputPerturbation(epsilon=1.0, lambda_=1e-15),
        OutputPerturbation.as_printed(epsilon1=1.0, epsilon2=1.0, lambda_=1e-15),
    ],
)
def test_a_lambda_too_small_to_solve_with_is_refused_whatever_the_donors_are(algorithm: OutputPerturbation) -> None:
    for rows in (np.zeros((3, 5)), np.ones((3, 5)), np.eye(3, 5)):
        panel = Panel.from_arrays(rows, np.ones(5), treatment_time=3, bounds=(-1, 1))
        with pytest.raises(ParameterError, match="lambda_"):
            algorithm.fit(panel)


@pytest.mark.parametrize("size", [1e-140, 1e-160, 1e-310])
def test_the_noise_is_large_enough_for_a_tiny_target(size: float) -> None:
    """Squares of such entries underflow; the sensitivity must not."""
    T0 = 50
    y = np.full(T0, size)
    row = np.ones((1, T0))
    plus, minus = (
        release_ridge(GriddedRows.of(sign * row), y, 2.0 * T0, math.sqrt(T0), UNIT_RHO, NoNoise()) for sign in (1, -1)
    )
    assert np.abs(plus[0] - minus[0]).max() <= plus[1]


def test_noise_that_might_not_fit_is_refused_before_anything_is_drawn() -> None:
    """For weights of any size: otherwise a refusal would tell something about weights that were never paid for."""
    panel = Panel.from_arrays(np.ones((2, 4)), np.ones(4), treatment_time=3, bounds=(-1, 1))
    for epsilon, refused in ((1e-8, True), (1e-3, False)):
        outcomes = []
        for _ in range(20):
            try:
                OutputPerturbation(epsilon=epsilon, weights_ball=False).fit(panel)
                outcomes.append(False)
            except ParameterError:
                outcomes.append(True)
        assert set(outcomes) == {refused}


def test_floating_point_settings_of_the_caller_do_not_turn_donors_into_errors() -> None:
    with np.errstate(all="raise"):
        for value in (0.0, 5e-324, 1.0):
            panel = Panel.from_arrays(np.full((3, 5), value), np.ones(5), treatment_time=3, bounds=(-1, 1))
            OutputPerturbation(epsilon=1.0).fit(panel)


def test_a_frame_instead_of_a_panel_gets_advice() -> None:
    frame = pd.DataFrame(np.ones((3, 5)))
    for algorithm in (OutputPerturbation(epsilon=1.0), SyntheticControl(method="simplex")):
        with pytest.raises(PanelError, match="from_long"):
            algorithm.fit(frame)  # type: ignore[arg-type]


def test_a_delta_that_is_too_large_for_n_is_warned_about() -> None:
    with pytest.warns(DpscWarning, match="1/n"):
        OutputPerturbation(epsilon=1.0, delta=0.5).fit(make_panel())


def test_the_summary_does_not_pass_projection_noise_off_as_the_uncertainty_of_the_effect() -> None:
    assert "NOT the uncertainty of the effect" in OutputPerturbation(epsilon=1.0).fit(make_panel()).summary()


def test_a_panel_without_bounds_is_refused_by_name() -> None:
    panel = Panel.from_arrays(np.zeros((3, 5)), np.zeros(5), treatment_time=3)
    with pytest.raises(PanelError, match="OutputPerturbation needs public bounds"):
        OutputPerturbation(epsilon=1.0).fit(panel)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 1e-300}, "epsilon"),
        ({"epsilon": pd.DataFrame([[SECRET]])}, "epsilon must be a finite number above 0, not a DataFrame"),
        ({"delta": 1}, "delta"),
        ({"split": 0}, "split"),
        ({"split": 1}, "split"),
        ({"lambda_": 0}, "lambda_"),
        ({"row_norm": 0}, "row_norm"),
        ({"row_norm": 1e-170}, "row_norm"),
        ({"delta": 1e-300}, "delta"),
        ({"arithmetic": "float"}, "arithmetic is always exact now, because floating-point noise leaks; leave"),
    ],
)
def test_senseless_parameters_are_refused_by_name(changes: dict[str, object], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        OutputPerturbation(**({"epsilon": 1.0} | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", [OutputPerturbation, ObjectivePerturbation])
def test_a_script_that_asks_for_exact_arithmetic_still_runs(algorithm: type[OutputPerturbation]) -> None:
    with pytest.warns(DeprecationWarning, match="leave arithmetic= out") as warned:
        made = algorithm(epsilon=1.0, arithmetic="exact")
    assert warned[0].filename == __file__
    assert made == algorithm(epsilon=1.0)
    assert "arithmetic" not in repr(made)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_intervals_cover_the_noiseless_projection_as_often_as_they_say(delta: float) -> None:
    panel = make_panel(n=5, bounds=(-20, 20))
    donors = panel.donors[:, panel.post]
    level = 0.9
    errors, errors_att = [], []  # in half widths of their intervals
    for seed in range(quick_or_long(600, 20_000)):
        result = OutputPerturbation(epsilon=1.0, delta=delta, seed=seed).fit(panel)
        truth = donors.T @ result.weights.to_numpy()
        low, high = result.interval(level).to_numpy().T
        errors.extend(np.abs(2 * truth - low - high) / (high - low))
        low_att, high_att = result.att_interval(level)
        effect = float(np.mean(result.observed.to_numpy() - truth))
        errors_att.append(abs(2 * effect - low_att - high_att) / (high_att - low_att))
    for each in (np.array(errors), np.array(errors_att)):
        assert np.mean(each <= 1) == pytest.approx(level, abs=0.02)
        assert np.mean(each <= 0.9) < level - 0.02  # intervals 10% too narrow would be seen


def test_the_printed_algorithm_has_an_interval_too() -> None:
    panel = make_panel(n=5)
    donors, covered, runs = panel.donors[:, panel.post], 0, quick_or_long(400, 10_000)
    for seed in range(runs):
        result = OutputPerturbation.as_printed(epsilon1=1.0, epsilon2=1.0, lambda_=8.0, seed=seed).fit(panel)
        truth = donors.T @ result.weights.to_numpy()
        interval = result.interval(0.8)
        covered += int(((interval["lower"] <= truth) & (truth <= interval["upper"])).sum())
    assert covered / (3 * runs) == pytest.approx(0.8, abs=0.03)


def test_a_grid_that_is_too_coarse_for_gaussian_noise_is_refused_before_anything_is_drawn() -> None:
    """With narrow bounds after the intervention it depended on the released weights, which were paid for by then."""
    bounds = [(0.0, 1.0)] * 6 + [(0.5, 0.5 + 5.5e-6)] * 2
    donors = np.tile(np.array([low for low, _ in bounds]), (20, 1))
    panel = Panel.from_arrays(donors, donors[0], treatment_time=6, bounds=bounds)
    drawn: list[int] = []
    with pytest.raises(ParameterError, match="too few digits for exact Gaussian noise"):
        OutputPerturbation(epsilon=1.0, delta=1e-6).fit(panel, on_progress=drawn.append)
    assert drawn == []
    assert OutputPerturbation(epsilon=1.0).fit(panel).guarantee is not None


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-13), (4.0, 1e-12), (8.0, 1e-20)])
def test_a_delta_below_the_slack_of_the_grid_is_paid_for_by_zcdp(epsilon: float, delta: float) -> None:
    guarantee = OutputPerturbation(epsilon=epsilon, delta=delta).guarantee
    assert guarantee is not None
    assert guarantee.loss.rho > 0
    assert guarantee.loss.mu_squared == 0
    usual = OutputPerturbation(epsilon=epsilon, delta=1e-6).guarantee
    assert usual is not None
    assert 0 < usual.loss.rest_delta < 1e-10
