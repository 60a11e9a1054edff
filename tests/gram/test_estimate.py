from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from dpsc import DpscError, GramRelease, OutputPerturbation, Panel, ParameterError, PrivateResult, Release, ReleaseError
from dpsc.answers.base import IntervalPart
from dpsc.gram.estimate import NO_BETTER, NO_SIGNAL
from dpsc.gram.kernel import Kernel, Smoothness
from dpsc.gram.moments import denoise
from dpsc.gram.uncertainty import ForwardForecasts, forecast_weights, one_period_ahead
from dpsc.types import Array
from dpsc.weights.classic import ridge_weights
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


def released(donors: Array, epsilon: float = 1.0, smoothness: Smoothness = "high", seed: int = 0) -> Release:
    return GramRelease(epsilon=epsilon, delta=1e-6, smoothness=smoothness, seed=seed).release(donors)


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


def test_plain_ridge_on_a_release_without_noise_is_ridge_on_unit_rows() -> None:
    donors, target = walks(200)
    unit = donors / np.linalg.norm(donors, axis=1, keepdims=True)
    result = released(donors, epsilon=1e9, smoothness="none").estimate(target, T0, lambda_=3.0)
    expected = unit[:, T0:].T @ ridge_weights(unit[:, :T0], target[:T0], 3.0)
    np.testing.assert_allclose(result.counterfactual, expected, atol=1e-3)


def test_robust_on_a_release_without_noise_is_robust_on_unit_rows() -> None:
    donors, target = walks(200)
    unit = donors / np.linalg.norm(donors, axis=1, keepdims=True)
    left, s, right = np.linalg.svd(unit, full_matrices=False)
    low = (left[:, :2] * s[:2]) @ right[:2]
    expected = low[:, T0:].T @ np.linalg.lstsq(low[:, :T0].T, target[:T0], rcond=1e-8)[0]
    release = released(donors, epsilon=1e9, smoothness="none")
    np.testing.assert_allclose(release.estimate(target, T0, rank=2).counterfactual, expected, atol=1e-2)
    threshold = float((s[1] + s[2]) / 2)
    np.testing.assert_allclose(release.estimate(target, T0, threshold=threshold).counterfactual, expected, atol=1e-2)


@pytest.mark.parametrize("smoothness", ["high", "mild", "none"])
def test_without_noise_the_default_recovers_the_moments_whatever_the_kernel(smoothness: Smoothness) -> None:
    donors, target = walks(3000, noise=0.1)
    result = released(donors, epsilon=1e6, smoothness=smoothness).estimate(target, T0)
    assert rmse(result.counterfactual, target[T0:]) < 0.3
    assert result.fitted.isna().tolist() == [True] + [False] * (T0 - 1)
    assert rmse(result.fitted[10:], target[10:T0]) < 0.3


def test_the_answer_has_the_scale_of_the_target() -> None:
    donors, target = walks(1000)
    release = released(donors)
    one, thousand = release.estimate(target, T0), release.estimate(1000 * target, T0)
    np.testing.assert_allclose(1000 * one.counterfactual, thousand.counterfactual)
    np.testing.assert_allclose(1000 * one.interval()["lower"], thousand.interval()["lower"])


def test_a_reference_path_is_put_back() -> None:
    donors, target = walks(2000)
    path = 1000 + np.arange(T0 + H) * 5.0
    plain = GramRelease(epsilon=4.0, delta=1e-6, seed=1).release(donors)
    shifted = GramRelease(epsilon=4.0, delta=1e-6, seed=1, reference=path).release(donors + path)
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
    release = GramRelease(epsilon=1.0, delta=1e-6).release(pd.DataFrame(donors, columns=times))
    text = pd.Series(target, index=[str(t.date()) for t in times])
    with pytest.raises(ReleaseError, match="convert them to the same kind"):
        release.estimate(text, times[T0])
    release.estimate(text.set_axis(pd.to_datetime(text.index)), times[T0])


@pytest.mark.parametrize(
    ("target", "time", "problem"),
    [
        (np.ones(5), T0, "shape"),
        (pd.Series(np.ones(40)), T0, "not in the release"),
        (pd.Series(np.ones(T0 - 1)), T0, "no finite value"),
        (np.full(T0 + H, np.nan), T0, "no finite value"),
        (np.append(np.ones(T0 + H - 1), np.inf), T0, "infinite"),
        (np.ones(T0 + H), 1, "at least 2"),
    ],
)
def test_targets_that_do_not_fit_are_refused(target: object, time: int, problem: str) -> None:
    with pytest.raises(ReleaseError, match=problem):
        released(walks(20)[0]).estimate(target, time)


def test_senseless_estimators_are_refused() -> None:
    release = released(walks(20)[0])
    for options in ({"lambda_": 1e-300}, {"rank": "a"}, {"rank": float("inf")}, {"level": 2.0}, {"threshold": -1.0}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            release.estimate(np.ones(T0 + H), T0, **options)
    with pytest.raises(ReleaseError, match="mapping"):
        release.estimate_many([np.ones(T0 + H)], T0)  # type: ignore[arg-type]


def test_only_one_estimator_at_a_time() -> None:
    with pytest.raises(ParameterError, match="at most one"):
        released(walks(20)[0]).estimate(np.ones(T0 + H), T0, lambda_=1.0, rank=2)


def test_no_signal_is_said_plainly() -> None:
    release = released(np.random.default_rng(0).normal(size=(20, T0 + H)), epsilon=0.2)
    result = release.estimate(walks(1)[1], T0)
    assert result.parameters["directions"] == 0
    assert NO_SIGNAL in result.notes
    assert NO_SIGNAL in result.summary()


def test_forecasts_no_better_than_the_last_value_are_said_plainly() -> None:
    release = released(np.random.default_rng(0).normal(size=(50, T0 + H)))
    steady = 5 + 1e-3 * np.arange(T0 + H)
    notes = release.estimate(steady, T0).notes
    assert any(note.startswith(NO_BETTER.split("{")[0]) for note in notes)
    donors, target = walks(2000, noise=0.05)
    assert not released(donors, epsilon=4.0).estimate(target, T0).notes


def test_baselines_are_always_beside_the_estimate() -> None:
    result = released(walks(100)[0]).estimate(np.arange(T0 + H, dtype=float), T0)
    assert result.baselines["last value"].unique().tolist() == [T0 - 1]
    np.testing.assert_allclose(result.baselines["line"], np.arange(T0, T0 + H))
    assert {"last value", "line"} <= set(result.to_frame().columns)
    assert "last value" in result.summary()


def test_the_two_parts_of_the_interval_add_up_in_squares() -> None:
    donors, target = walks(500)
    result = released(donors).estimate(target, T0)
    both, privacy, model = (result.interval(0.9, part)["upper"] - result.counterfactual for part in PARTS)
    np.testing.assert_allclose(both**2, privacy**2 + model**2)
    assert (privacy > 0).all()
    wide = result.interval(0.99)["upper"] - result.interval(0.99)["lower"]
    assert (wide > 2 * both).all()


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
    placebo = result.placebo_in_time()
    assert placebo.target.index.tolist() == list(range(T0))
    assert placebo.treatment_time == T0 - H
    assert "PLACEBO" in placebo.summary()
    assert abs(placebo.att) < 1 < abs(result.att)
    assert result.placebo_in_time(20).treatment_time == 20
    for time in (1, T0):
        with pytest.raises(DpscError):
            result.placebo_in_time(time)


def test_two_step_results_have_no_free_placebo() -> None:
    with pytest.raises(ParameterError, match="touch the donors again"):
        OutputPerturbation(epsilon=1.0).fit(make_panel()).placebo_in_time()


def test_several_targets_at_once() -> None:
    donors, target = walks(500)
    release = released(donors)
    frame = pd.DataFrame({"a": target, "b": -2 * target})
    results = release.estimate_many(frame, T0)
    assert list(results) == ["a", "b"]
    np.testing.assert_allclose(results["b"].counterfactual, -2 * results["a"].counterfactual)


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
    assert again.placebo_in_time().att == result.placebo_in_time().att
    result.plot().canvas.draw()


def test_a_private_result_from_a_panel_and_dates() -> None:
    times = list(pd.period_range("2015Q1", periods=T0 + H, freq="Q"))
    donors, target = walks(500)
    panel = Panel.from_arrays(donors, target, treatment_time=times[T0], times=times, outcome="index")
    result = GramRelease(epsilon=1.0, delta=1e-6).release(panel).estimate(panel.target, "2022Q3")
    assert isinstance(result, PrivateResult)
    assert result.treatment_time == times[T0]
    assert result.target.name == "index"


def test_forward_forecasts_are_those_of_a_fresh_start() -> None:
    """The Cholesky shortcut agrees with solving for every origin anew."""
    rng = np.random.default_rng(0)
    D = Kernel.named("high").matrix(12)
    y = rng.normal(size=12)
    forecasts = ForwardForecasts.of(D, y, horizon=3)
    expected: list[float] = []
    variances: list[float] = []
    for k in range(6, 12):
        block = slice(k, min(k + 3, 12))
        weights = forecast_weights(D[: block.stop, : block.stop], k)
        expected.extend(weights @ y[:k])
        scale = y[:k] @ np.linalg.solve(D[:k, :k], y[:k]) / k
        variances.extend(scale * np.diag(D[block, block] - weights @ D[:k, block]))
    np.testing.assert_allclose(forecasts.forecast, np.array(expected))
    np.testing.assert_allclose(forecasts.variance, np.array(variances))
    assert forecasts.origins == 6


def test_the_fit_before_the_intervention_is_a_forecast_one_period_ahead() -> None:
    D, y = Kernel.named("high").matrix(9), np.random.default_rng(1).normal(size=9)
    expected = [forecast_weights(D[: t + 1, : t + 1], t)[0] @ y[:t] for t in range(1, 9)]
    np.testing.assert_allclose(one_period_ahead(D, y)[1:], expected)


def test_denoising_finds_the_planted_directions() -> None:
    rng = np.random.default_rng(0)
    T, n, scale = 30, 2000, 6.4
    V = np.linalg.qr(rng.normal(size=(T, 2)))[0]
    truth = 600 * np.outer(V[:, 0], V[:, 0]) + 300 * np.outer(V[:, 1], V[:, 1]) + (n - 900) / T * np.eye(T)
    noise = np.triu(rng.normal(size=(T, T)), 1) * scale / np.sqrt(2)
    noisy = truth + noise + noise.T + np.diag(rng.normal(size=T)) * scale
    kernel = Kernel.named("none")
    cleaned = denoise(noisy, n, scale, kernel)
    assert cleaned.directions == 2
    assert np.linalg.norm(cleaned.moments - truth) < 0.7 * np.linalg.norm(noisy - truth)
    assert np.linalg.eigvalsh(cleaned.moments).min() > 0
