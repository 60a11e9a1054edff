from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpsc import GramRelease, ParameterError, Plan, plan
from dpsc.analyst.plan import never_rising
from dpsc.analyst.simulate import Likeness, likely, simulated
from dpsc.types import Array
from tests.soak import quick_or_long

CLEAR: dict[str, Any] = {"signal_to_noise": 4.0, "averages": 10}


def test_no_error_rises_with_n_or_epsilon_and_in_the_end_it_has_fallen() -> None:
    expected = plan([3000, 50, 300], T0=15, h=4, epsilon=[4.0, 0.25], runs=4, **CLEAR).table
    for column in ("error", "error_in_shock"):
        table = expected.set_index(["n", "epsilon"])[column]
        for (n, e), (m, f) in itertools.product(table.index, repeat=2):
            if n <= m and e <= f:
                assert table[m, f] <= table[n, e]
        assert table[3000, 4.0] < 0.8 * table[50, 0.25]
    for column in ("without_privacy", "without_privacy_in_shock"):
        assert expected.groupby("n")[column].first().is_monotonic_decreasing


@pytest.mark.parametrize("seed", range(3))
def test_no_error_is_planned_below_the_one_without_privacy(seed: int) -> None:
    """Also with so few runs that chance decides, and so many donors that noise hardly matters."""
    table = plan([500, 20_000], T0=8, h=3, epsilon=[1.0, 8.0], averages=30, runs=2, seed=seed).table
    for suffix in ("", "_in_shock"):
        assert (table[f"error{suffix}"] >= table[f"without_privacy{suffix}"]).all()


@given(arrays(float, (4, 3), elements=st.floats(1e-3, 1e3)))
def test_errors_that_rise_by_chance_are_drawn_together(errors: Array) -> None:
    """Never rising, within the given errors, and not moved if they never rise; turned round, it is the same."""
    mended = never_rising(errors)
    assert (np.diff(mended, axis=0) <= 0).all()
    assert (np.diff(mended, axis=1) <= 0).all()
    assert mended.max() <= errors.max() * (1 + 1e-12)
    assert mended.min() >= errors.min() * (1 - 1e-12)
    np.testing.assert_allclose(never_rising(mended), mended)
    np.testing.assert_allclose(1 / never_rising(1 / errors[::-1, ::-1])[::-1, ::-1], mended)


def test_of_two_errors_that_rise_neither_is_believed_more() -> None:
    """The smaller of two would be too small on average, the larger too large."""
    np.testing.assert_allclose(never_rising(np.array([[4.0, 1.0, 4.0, 1.0]])), [[4.0, 2.0, 2.0, 1.0]])


def test_the_last_value_is_the_same_for_every_plan() -> None:
    expected = plan([50, 300], T0=15, h=4, epsilon=[4.0, 0.25], runs=2).table
    assert (expected["last_value"].nunique(), expected["last_value_in_shock"].nunique()) == (1, 1)


def test_donors_follow_a_shock_and_the_last_value_does_not() -> None:
    row = plan(2000, T0=15, h=4, epsilon=2.0, runs=6, **CLEAR).table.iloc[0]
    assert row["last_value_in_shock"] > 1.5 * row["last_value"]
    assert row["error_in_shock"] < 0.5 * row["last_value_in_shock"]
    assert row["without_privacy_in_shock"] < 0.5 * row["last_value_in_shock"]


def test_an_average_is_foreseen_better_than_a_single_unit() -> None:
    single, average = (plan(1000, T0=15, h=4, epsilon=1.0, averages=m, runs=6).table["error"][0] for m in (1, 30))
    assert average < 0.8 * single


def test_merging_sites_costs_as_much_as_less_budget() -> None:
    one, many = (
        plan(100, T0=15, h=4, epsilon=1.0, sites=s, runs=8, **CLEAR).table["error_in_shock"][0] for s in (1, 50)
    )
    assert many > 1.2 * one


def test_the_epsilon_for_a_wished_error_is_interpolated() -> None:
    errors = {0.25: 2.0, 0.5: 1.0, 1.0: 1.0, 4.0: 0.25}
    expected = Plan(pd.DataFrame({"n": 1000, "epsilon": errors.keys(), "error": errors.values()}))
    assert expected.epsilon_for(3.0) == expected.epsilon_for(2.0) == 0.25
    assert expected.epsilon_for(math.sqrt(2.0)) == pytest.approx(math.sqrt(0.125))
    assert expected.epsilon_for(1.0) == pytest.approx(0.5)
    assert expected.epsilon_for(0.5) == pytest.approx(2.0)
    assert expected.epsilon_for(0.25, n=1000) == pytest.approx(4.0)
    assert expected.epsilon_for(0.2) == math.inf
    with pytest.raises(ParameterError, match="n = 5"):
        expected.epsilon_for(1.0, n=5)


@pytest.mark.statistical
def test_a_plan_is_what_happens_to_units_like_the_simulated_ones() -> None:
    """Other units of the same kind, released and estimated by the algorithm itself."""
    T0, h, n, runs = 20, 5, 500, quick_or_long(24, 200)
    calm: list[float] = []
    shock: list[float] = []
    for seed, likeness in enumerate(likely(None, T0 + h, 10, runs, 1.0)):
        units = simulated(n, T0, h, 10, 2, likeness, [1000, seed])
        for each, errors in ((units, calm), (units.in_shock(), shock)):
            release = GramRelease(epsilon=1.0, delta=1e-6, like=each.target[:T0], seed=seed).release(each.donors)
            answer = release.estimate(each.target, T0).counterfactual.to_numpy()
            errors.append(each.error(answer) / float(np.std(each.target[:T0])))
    row = plan(n, T0, h, epsilon=1.0, averages=10, rank=2, signal_to_noise=1.0, runs=runs).table.iloc[0]
    assert np.median(calm) == pytest.approx(row["error"], rel=0.35)
    assert np.median(shock) == pytest.approx(row["error_in_shock"], rel=0.35)


def test_a_plan_from_the_targets_history_is_in_its_units() -> None:
    history = 100 + np.cumsum(np.random.default_rng(0).normal(size=15))
    one, ten = (plan(300, T0=15, h=4, epsilon=1.0, target=scale * history, runs=4).table for scale in (1, 10))
    np.testing.assert_allclose(
        10 * one.drop(columns="guess").to_numpy()[:, 2:], ten.drop(columns="guess").to_numpy()[:, 2:], rtol=1e-6
    )
    assert one["last_value"].iloc[0] < 20


@pytest.mark.parametrize("history", [[5, 5, 5, 5, 6], [0, 0, 1e-300], [1e90, -1e90, 1e90], [1e12, 1e12 + 1e-3, 1e12]])
def test_a_history_of_any_size_and_with_few_changes_can_be_planned_for(history: list[float]) -> None:
    table = plan([1, 30], T0=2, h=1, epsilon=[1e-3, 1e3], target=history, runs=2).table
    assert (table["error"] > 0).all()
    assert np.isfinite(table.to_numpy()).all()


def test_simulated_targets_change_by_one_on_average() -> None:
    units = simulated(50, 31, 4, 5, 3, Likeness(1.0, 0.0), [0, 0])
    assert np.mean(np.diff(units.target[:31]) ** 2) == pytest.approx(1.0)


def test_what_is_shared_is_as_large_as_it_is_said_to_be() -> None:
    """Averages of all units keep what is shared and lose what is not; level by level, over many panels."""
    for ratio, fleeting in itertools.product((0.5, 2.0), (0.0, 0.5, 1.0)):
        shared, own = [], []
        for seed in range(40):
            units = simulated(2000, 20, 10, 1, 3, Likeness(ratio, fleeting), [0, seed])
            moving = units.donors - units.donors.mean(axis=1, keepdims=True)
            _, vectors = np.linalg.eigh(np.cov(moving.T, bias=True))
            along = moving @ vectors[:, -3:]
            own.append((np.sum(moving**2) - np.sum(along**2)) / moving.size * 30 / (29 - 3))
            shared.append(np.mean(moving**2) - own[-1] * 29 / 30)
        assert math.sqrt(np.sum(shared) / np.sum(own)) == pytest.approx(ratio, rel=0.1)


def test_the_target_and_the_first_donors_are_the_same_for_all_n() -> None:
    few, many = (simulated(n, 10, 3, 4, 2, Likeness(1.0, 0.0), [0, 7]) for n in (20, 5000))
    np.testing.assert_array_equal(few.target, many.target)
    np.testing.assert_array_equal(few.donors, many.donors[:20])
    assert (len(few.donors), len(many.donors)) == (20, 2000)


def test_nothing_before_the_intervention_announces_the_shock_and_it_hits_everybody() -> None:
    units = simulated(50, 10, 4, 4, 2, Likeness(1.0, 0.0), [0, 7])
    shocked = units.in_shock()
    np.testing.assert_array_equal(units.target[:10], shocked.target[:10])
    np.testing.assert_array_equal(units.donors[:, :10], shocked.donors[:, :10])
    lost = units.donors - shocked.donors
    usual = np.mean(np.abs(np.diff(units.target[:10])))
    np.testing.assert_allclose(lost[:, 10], lost[:, 11] / 2)
    np.testing.assert_allclose(lost[:, 11], lost[:, 13])
    assert (lost[:, 11] > 3 * 0.5 * usual).all()
    assert (lost[:, 11] < 3 * 1.5 * usual).all()
    assert lost[:, 11].min() < (units.target - shocked.target)[11] < lost[:, 11].max()


def test_ridge_without_privacy_is_ridge() -> None:
    """At every penalty: weights from the donors' matrix, drawn towards equal ones."""
    units = simulated(6, 12, 3, 1, 1, Likeness(2.0, 0.0), [0, 0])
    X = units.donors - units.donors[:, :12].mean(axis=1, keepdims=True)
    y = units.target[:12] - units.target[:12].mean()
    equal, expected = np.full(6, 1 / 6), []
    for penalty in 10.0 ** np.arange(-8, 1.1, 0.5) * (X[:, :12] ** 2).sum():
        A = X[:, :12] @ X[:, :12].T + penalty * np.eye(6)
        weights = equal + np.linalg.solve(A, X[:, :12] @ (y - equal @ X[:, :12]))
        expected.append(units.error(units.target[:12].mean() + weights @ X[:, 12:]))
    np.testing.assert_allclose(units.ridge_errors(), expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"n": 0}, "n"), ({"epsilon": 0}, "epsilon"), ({"delta": 0}, "delta"), ({"T0": 1}, "T0"), ({"h": 0}, "h"),
        ({"rank": 0}, "rank"), ({"signal_to_noise": 0}, "signal"), ({"target": [1.0]}, "target"), ({"runs": 0}, "runs"),
        ({"smoothness": "x"}, "smoothness"), ({"averages": 0}, "averages"), ({"sites": 101}, "sites"),
        ({"target": [2.0, 2.0, 2.0]}, "target"), ({"target": [1e200, 0.0, 1.0]}, "target"), ({"T0": 2000}, "T0"),
    ],
)  # fmt: skip
def test_senseless_parameters_are_refused_by_name(changes: dict[str, object], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        plan(**({"n": 100, "T0": 10, "h": 2} | changes))  # type: ignore[arg-type]


def test_a_pilot_says_how_closely_donors_follow_and_the_range_is_narrower() -> None:
    """Donors that follow the target closely, and donors that have nothing to do with it."""
    rng = np.random.default_rng(0)
    n, T0, h = 400, 9, 2
    walk, own = np.cumsum(rng.normal(size=T0 + h)), 0.3 * rng.normal(size=(n, T0 + h))
    y, seen = walk[:T0], []
    for donors in (walk + own, np.cumsum(rng.normal(size=(n, T0 + h)), axis=1)):
        pilot = GramRelease(epsilon=0.5, delta=1e-6, like=y).release(donors)
        row = plan(n, T0, h, 1.0, target=y, runs=1, pilot=pilot).table.iloc[0]
        seen.append(row["detectable"])
        assert row["detectable_high"] / row["detectable_low"] == pytest.approx(3.0)
    plain = plan(n, T0, h, 1.0, target=y, runs=1).table.iloc[0]
    assert plain["detectable_high"] / plain["detectable_low"] == pytest.approx(5.0)
    assert seen[0] < 0.7 * seen[1]
    with pytest.raises(ParameterError, match="10 and 8"):
        plan(n, T0 - 1, h, 1.0, target=y, runs=1, pilot=pilot)
