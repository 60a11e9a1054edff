from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import DpscError, GramRelease, OutputPerturbation, Panel, ParameterError, PrivateResult, Release, ReleaseError
from dpsc.analyst.models import Gaussian
from dpsc.answers import figures as plot
from dpsc.answers.effects import IntervalPart
from dpsc.release.kernel import Kernel, Smoothness
from dpsc.release.population import Population, symmetric_noise
from dpsc.types import Array, TargetLike
from tests.making import make_panel
from tests.soak import quick_or_long

T0, H = 30, 6
PARTS: tuple[IntervalPart, ...] = ("both", "privacy", "model")


def walks(n: int, seed: int = 0, rank: int = 2, noise: float = 0.3, T: int = T0 + H) -> tuple[Array, Array]:
    """Donors and a target on common random walks."""
    rng = np.random.default_rng(seed)
    paths = rng.uniform(-1, 1, (n + 1, rank)) @ np.cumsum(rng.normal(size=(rank, T)), axis=1)
    paths += noise * rng.normal(size=paths.shape)
    return paths[1:], paths[0]


def released(
    donors: Array, epsilon: float = 1.0, smoothness: Smoothness = "high", seed: int = 0, scale: float = 2.0
) -> Release:
    make = GramRelease(epsilon=epsilon, delta=1e-6, smoothness=smoothness, seed=seed, scale=scale)
    return make.release(donors)


def rmse(values: object, truth: Array) -> float:
    return float(np.sqrt(np.mean((np.asarray(values) - truth) ** 2)))


def test_the_error_falls_with_the_number_of_donors() -> None:
    errors = {}
    for n in (100, 1000, 10_000):
        runs = []
        for seed in range(12):
            donors, target = walks(n, seed, rank=3, noise=0.02)
            runs.append(rmse(released(donors, seed=seed).estimate(target, T0).counterfactual, target[T0:]))
        errors[n] = np.median(runs)
    assert errors[10_000] < 0.7 * errors[1000] < 0.7 * errors[100]


def test_at_epsilon_1_a_thousand_donors_beat_every_forecast_without_donors() -> None:
    ratios = []
    for seed in range(20):
        donors, target = walks(1000, seed)
        result = released(donors, seed=seed).estimate(target, T0)
        best = min(rmse(result.baselines[name], target[T0:]) for name in result.baselines)
        ratios.append(rmse(result.counterfactual, target[T0:]) / best)
    assert np.median(ratios) < 0.5


def test_intervals_know_of_a_response_to_something_new_that_differs_between_units() -> None:
    """Too little for a common direction, and nothing before tells how a unit will respond."""
    found: dict[float, list[tuple[bool, float]]] = {0.0: [], 1.4: []}
    for seed in range(12):
        donors, target = walks(10_000, seed)
        own = np.random.default_rng(seed).uniform(-1, 1, len(donors) + 1)
        for size, answers in found.items():
            later = size * (np.arange(T0 + H) >= T0)
            result = released(donors + np.outer(own[1:], later), seed=seed).estimate(target + own[0] * later, T0)
            low, high = result.att_interval()
            answers.append((low <= 0 <= high, high - low))
    assert sum(inside for inside, _ in found[1.4]) >= 11
    calm, shock = (np.array([width for _, width in answers]) for answers in found.values())
    assert np.median(shock / calm) > 1.7


def forecast_with_a_free_level(D: Array, y: Array) -> Array:
    """Generalised least squares, from scratch: the level is what fits the first periods best."""
    T0 = len(y)
    inverse, ones = np.linalg.pinv(D[:T0, :T0], rcond=1e-10), np.ones(T0)
    level = (ones @ inverse @ y) / (ones @ inverse @ ones)
    return np.asarray(level + D[T0:, :T0] @ inverse @ (y - level))


def unit_movements(donors: Array, constant: float) -> Array:
    """Donors less their mean over time, divided by the length of their vectors in a release without smoothness."""
    movements = donors - donors.mean(axis=1, keepdims=True)
    return np.asarray(movements / np.sqrt(constant**2 + (movements**2).sum(axis=1, keepdims=True)))


def test_plain_ridge_on_a_release_without_noise_is_ridge_on_unit_movements() -> None:
    donors, target = walks(200)
    release = released(donors, epsilon=1e9, smoothness="none")
    unit = unit_movements(donors, release.row_map.constant)
    expected = forecast_with_a_free_level(unit.T @ unit + 1.5 * np.eye(T0 + H), target[:T0])
    np.testing.assert_allclose(release.estimate(target, T0, lambda_=3.0).counterfactual, expected, atol=1e-3)


def test_robust_on_a_release_without_noise_is_robust_on_unit_movements() -> None:
    donors, target = walks(200)
    release = released(donors, epsilon=1e9, smoothness="none")
    unit = unit_movements(donors, release.row_map.constant)
    _, s, right = np.linalg.svd(unit, full_matrices=False)
    low = right[:2] * s[:2, np.newaxis]
    design = np.vstack([np.ones(T0), low[:, :T0]]).T  # a level, and two common paths
    level, *loadings = np.linalg.lstsq(design, target[:T0], rcond=None)[0]
    expected = level + np.array(loadings) @ low[:, T0:]
    np.testing.assert_allclose(release.estimate(target, T0, rank=2).counterfactual, expected, atol=1e-2)
    threshold = float((s[1] + s[2]) / 2)
    np.testing.assert_allclose(release.estimate(target, T0, threshold=threshold).counterfactual, expected, atol=1e-2)


@pytest.mark.parametrize("smoothness", ["high", "mild", "none"])
def test_without_noise_the_default_recovers_the_moments_whatever_the_kernel(smoothness: Smoothness) -> None:
    donors, target = walks(3000, noise=0.1)
    result = released(donors, epsilon=1e6, smoothness=smoothness).estimate(target, T0)
    assert rmse(result.counterfactual, target[T0:]) < 0.3
    assert len(result.fitted) == T0
    assert rmse(result.fitted, target[:T0]) < 0.3


def test_the_unit_of_the_outcome_does_not_matter() -> None:
    donors, target = walks(1000)
    one = released(donors).estimate(target, T0)
    thousand = released(1024 * donors, scale=2048.0).estimate(1024 * target, T0)
    np.testing.assert_allclose(1024 * one.counterfactual, thousand.counterfactual, rtol=1e-6)
    np.testing.assert_allclose(1024 * one.interval()["lower"], thousand.interval()["lower"], rtol=1e-6)


def test_levels_of_donors_and_target_do_not_matter() -> None:
    donors, target = walks(1000)
    levels = 1e3 * np.random.default_rng(5).normal(size=(1000, 1))
    plain, shifted = released(donors).estimate(target, T0), released(donors + levels).estimate(target - 77, T0)
    np.testing.assert_allclose(plain.counterfactual - 77, shifted.counterfactual, atol=1e-3)
    np.testing.assert_allclose(plain.gaps, shifted.gaps, atol=1e-3)


def test_a_reference_path_is_put_back() -> None:
    donors, target = walks(2000)
    path = 1000 + np.arange(T0 + H) * 5.0
    plain = GramRelease(epsilon=4.0, delta=1e-6, seed=1, scale=2.0).release(donors)
    shifted = GramRelease(epsilon=4.0, delta=1e-6, seed=1, scale=2.0, reference=path).release(donors + path)
    a, b = plain.estimate(target, T0), shifted.estimate(target + path, T0)
    np.testing.assert_allclose(a.counterfactual + path[T0:], b.counterfactual, atol=0.02)
    np.testing.assert_allclose(a.gaps, b.gaps, atol=0.02)


def test_estimates_are_repeatable_and_cost_nothing() -> None:
    donors, target = walks(500)
    release = GramRelease(epsilon=1.0, delta=1e-6).release(donors)
    first, second = (release.estimate(target, T0) for _ in range(2))
    assert first.counterfactual.equals(second.counterfactual)
    assert first.interval().equals(second.interval())
    assert first.guarantee is release.guarantee


def test_the_targets_own_periods_are_matched_and_what_is_missing_later_has_no_gap() -> None:
    donors, target = walks(500)
    release = released(donors)
    series = pd.Series(target).sample(frac=1, random_state=0).drop(index=[T0 + 1, T0 + 4])
    result = release.estimate(series, T0)
    assert result.gaps.isna().tolist() == [False, True, False, False, True, False]
    assert result.counterfactual.equals(release.estimate(target, T0).counterfactual)
    assert np.isfinite(result.att_interval()).all()


def test_a_target_with_another_kind_of_periods_is_told_so() -> None:
    times = list(pd.date_range("2020-01-01", periods=T0 + H))
    donors, target = walks(50)
    release = GramRelease(epsilon=1.0, delta=1e-6, scale=2.0).release(pd.DataFrame(donors, columns=times))
    text = pd.Series(target, index=[str(t.date()) for t in times])
    with pytest.raises(ReleaseError, match=r"its periods are numbers \(0\), those of the release days"):
        release.estimate(text.reset_index(drop=True), times[T0])
    expected = release.estimate(text.set_axis(pd.to_datetime(text.index)), times[T0])
    pd.testing.assert_series_equal(release.estimate(text, str(times[T0])).gaps, expected.gaps)


@pytest.mark.parametrize(
    ("target", "time", "problem"),
    [
        (np.ones(T0 + H + 1), T0, "shape"),
        (pd.Series(np.ones(5), index=range(100, 105)), T0, "not in it"),
        (pd.Series(np.ones(3), index=[0, 1, 1.5]), T0, "not in it"),
        (pd.Series(np.ones(T0 - 1)), T0, "no number"),
        (np.full(T0 + H, np.nan), T0, "no number"),
        (np.append(np.ones(T0 + H - 1), np.inf), T0, "infinite"),
        (np.ones(T0 + H), 1, "at least 2"),
    ],
)
def test_targets_that_do_not_fit_are_refused(target: TargetLike, time: int, problem: str) -> None:
    with pytest.raises(ReleaseError, match=problem):
        released(walks(20)[0]).estimate(target, time)


def test_senseless_estimators_are_refused() -> None:
    release = released(walks(20)[0])
    for options in ({"lambda_": 1e-300}, {"rank": "a"}, {"rank": float("inf")}, {"level": 2.0}, {"threshold": -1.0}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            release.estimate(np.ones(T0 + H), T0, **options)
    with pytest.raises(ReleaseError, match="mapping"):
        release.study([np.ones(T0 + H)], T0)  # type: ignore[arg-type]


def test_only_one_estimator_at_a_time() -> None:
    with pytest.raises(ParameterError, match="at most one"):
        released(walks(20)[0]).estimate(np.ones(T0 + H), T0, lambda_=1.0, rank=2)


def test_no_signal_is_said_plainly() -> None:
    release = released(np.random.default_rng(0).normal(size=(20, T0 + H)), epsilon=0.2, scale=1.0)
    result = release.estimate(walks(1)[1], T0)
    assert result.parameters["common_directions"] == 0
    assert result.verdict is not None
    assert result.verdict.grade != "yes"


def test_the_verdict_says_whether_donors_track_the_target() -> None:
    donors, target = walks(3000, noise=0.05)
    verdict = released(donors, epsilon=4.0).estimate(target, T0).verdict
    assert verdict is not None
    assert verdict.grade == "yes"
    unlike = 5 + 0.03 * np.arange(T0 + H)
    verdict = released(np.random.default_rng(0).normal(size=(50, T0 + H)), scale=1.0).estimate(unlike, T0).verdict
    assert verdict is not None
    assert verdict.grade == "no"
    assert verdict.reason


def test_baselines_are_always_beside_the_estimate() -> None:
    result = released(walks(100)[0]).estimate(np.arange(T0 + H, dtype=float), T0)
    assert result.baselines["last value"].unique().tolist() == [T0 - 1]
    np.testing.assert_allclose(result.baselines["line"], np.arange(T0, T0 + H))
    assert {"last value", "line"} <= set(result.to_frame().columns)
    assert "last value" in result.summary()


def test_the_parts_of_the_interval_are_narrower_than_the_whole_and_levels_are_in_order() -> None:
    donors, target = walks(500)
    result = released(donors).estimate(target, T0)
    both, privacy, model = (result.interval(0.9, part)["upper"] - result.interval(0.9, part)["lower"] for part in PARTS)
    assert (privacy > 0).all()
    assert (privacy < both).all()
    assert (model <= 1.001 * both).all()
    wide = result.interval(0.99)["upper"] - result.interval(0.99)["lower"]
    assert (wide > 1.3 * both).all()
    ends = result.interval(0.9)
    assert ((ends["lower"] < result.counterfactual) & (result.counterfactual < ends["upper"])).all()


def test_more_budget_shrinks_the_part_that_privacy_causes() -> None:
    donors, target = walks(500)
    widths = []
    for epsilon in (0.5, 8.0):
        interval = released(donors, epsilon).estimate(target, T0).interval(0.95, "privacy")
        widths.append(float((interval["upper"] - interval["lower"]).mean()))
    assert widths[1] < 0.3 * widths[0]


@pytest.mark.statistical
@pytest.mark.parametrize("n", [300, 3000])
def test_intervals_cover_an_untreated_target_about_as_often_as_they_say(n: int) -> None:
    covered, covered_att, runs = [], [], quick_or_long(60, 1000)
    for seed in range(runs):
        donors, target = walks(n, seed)
        result = released(donors, seed=seed).estimate(target, T0)
        interval = result.interval(0.95)
        covered.append(((interval["lower"] <= target[T0:]) & (target[T0:] <= interval["upper"])).mean())
        low, high = result.att_interval(0.95)
        covered_att.append(low <= 0 <= high)
    assert 0.9 <= np.mean(covered) <= 0.995
    assert np.mean(covered_att) >= 0.85


def test_a_placebo_in_time_uses_untreated_periods_only() -> None:
    donors, target = walks(2000, noise=0.1)
    treated = target + np.where(np.arange(T0 + H) >= T0, 100.0, 0.0)
    result = released(donors, 4.0).estimate(treated, T0)
    placebo: Any = result.repeats.placebo()
    assert placebo.target.index.tolist() == list(range(T0))
    assert placebo.treatment_time == T0 - H
    assert "PLACEBO" in placebo.summary()
    assert abs(placebo.att) < 1 < abs(result.att)
    assert result.repeats.placebo(20).treatment_time == 20
    for time in (1, T0):
        with pytest.raises(DpscError):
            result.repeats.placebo(time)


def test_two_step_results_have_no_free_placebo() -> None:
    with pytest.raises(ParameterError, match="touch the donors again"):
        OutputPerturbation(epsilon=1.0).fit(make_panel()).repeats.placebo()


def test_several_targets_at_once() -> None:
    donors, target = walks(500)
    release = released(donors)
    frame = pd.DataFrame({"a": target, "b": -2 * target})
    results = release.study(frame, T0).results
    assert list(results) == ["a", "b"]
    for name in frame:
        assert results[name].counterfactual.equals(release.estimate(frame[name], T0).counterfactual)


def test_any_intervention_date_can_be_asked_for() -> None:
    donors, target = walks(500)
    release = released(donors)
    for time in (2, 10, T0 + H - 1):
        result = release.estimate(target, time)
        assert (result.T0, len(result.counterfactual)) == (time, T0 + H - time)
        assert np.isfinite(result.interval()).all().all()


def test_results_can_be_pickled_and_drawn(tmp_path: object) -> None:
    donors, target = walks(500)
    result = released(donors).estimate(target, T0)
    again = pickle.loads(pickle.dumps(result))
    assert again.summary() == result.summary()
    assert again.repeats.placebo().att == result.repeats.placebo().att
    plot.figure_of(result.plot()).draw_without_rendering()


def test_a_private_result_from_a_panel_and_dates() -> None:
    times = list(pd.period_range("2015Q1", periods=T0 + H, freq="Q"))
    donors, target = walks(500)
    panel = Panel.from_arrays(donors, target, treatment_time=times[T0], times=times, outcome="index")
    result = GramRelease(epsilon=1.0, delta=1e-6).release(panel).estimate(panel.target, "2022Q3")
    assert isinstance(result, PrivateResult)
    assert result.treatment_time == times[T0]
    assert result.target.name == "index"


@pytest.mark.parametrize("free_level", [True, False])
def test_a_gaussian_path_given_its_past_is_as_the_formulas_of_a_fresh_start(free_level: bool) -> None:
    """Forecast, its covariance and weights, against a level of enormous variance and plain inverses."""
    rng = np.random.default_rng(1)
    T, known = 12, 9
    D, mean, y = Kernel.named("high").matrix(T), rng.normal(size=T), rng.normal(size=known)
    vague = D + 1e4 * free_level
    solved = vague[known:, :known] @ np.linalg.inv(vague[:known, :known])
    observed = Gaussian(mean, D, free_level).observed(y)
    np.testing.assert_allclose(observed.forecast, mean[known:] + solved @ (y - mean[:known]), atol=1e-3)
    np.testing.assert_allclose(observed.weights, solved, atol=1e-3)
    left = vague[known:, known:] - solved @ vague[:known, known:]
    np.testing.assert_allclose(observed.forecast_covariance, left, atol=1e-3)
    np.testing.assert_allclose(observed.error_from(D), observed.forecast_covariance, atol=1e-10)


@pytest.mark.parametrize("free_level", [True, False])
def test_the_fit_before_the_intervention_is_each_period_as_all_others_predict_it(free_level: bool) -> None:
    D, y = Kernel.named("high").matrix(9), np.random.default_rng(1).normal(size=9)
    zero = np.zeros(9)
    fit, missed = Gaussian(zero, D, free_level).observed(y).left_out
    for t in range(9):
        order = [*(s for s in range(9) if s != t), t]
        others = Gaussian(zero, D[np.ix_(order, order)], free_level).observed(y[order[:-1]])
        assert fit[t] == pytest.approx(others.forecast[0])
        assert missed[t] ** 2 == pytest.approx(others.forecast_covariance[0, 0])


def test_the_population_has_the_planted_directions_and_mean() -> None:
    """Donors with a mean path and two common directions, in units of their own; the release's noise on top."""
    rng = np.random.default_rng(0)
    T, n = 30, 4000
    factors = np.cumsum(rng.normal(size=(2, T)), axis=1)
    mean = 2 * np.sin(np.arange(T) / 5)
    donors = 100 * (mean + rng.normal(size=(n, 2)) @ factors + 0.3 * rng.normal(size=(n, T)))
    release = released(donors, scale=200.0)
    population = release.population
    assert population.directions == 2
    centred = np.eye(T) - 1 / T
    truth = 1e4 * centred @ (factors.T @ factors) @ centred
    common = centred @ population.common @ centred
    assert np.linalg.norm(common - truth) < 0.3 * np.linalg.norm(truth)
    assert rmse(centred @ population.mean, centred @ (100 * mean)) < 0.3 * 100 * float(mean.std())
    assert np.linalg.eigvalsh(population.common + population.bulk).min() > 0
    noisy = release.noisy_moments + symmetric_noise(release.row_map.size, 50.0, rng)
    drowned = Population.of(noisy, n, 50.0, release.row_map)
    assert drowned.directions <= 2
