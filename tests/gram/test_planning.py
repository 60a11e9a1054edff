from __future__ import annotations

import math

import numpy as np
import pytest

from dpsc import GramRelease, ParameterError, plan


def test_the_expected_error_falls_with_n_and_with_epsilon() -> None:
    table = plan([200, 5000], T0=20, h=5, epsilon=[0.5, 8.0], runs=15).table.set_index(["n", "epsilon"])["error"]
    assert table[5000, 0.5] < table[200, 0.5]
    assert table[200, 8.0] < table[200, 0.5]


def test_the_epsilon_for_a_wished_error_is_interpolated() -> None:
    expected = plan(1000, T0=20, h=5, epsilon=[0.25, 1.0, 4.0], runs=10)
    errors = expected.table["error"].to_numpy()
    assert 0.25 <= expected.epsilon_for(float(np.sqrt(errors[0] * errors[-1]))) <= 4.0
    assert expected.epsilon_for(10 * errors[0]) == 0.25
    assert expected.epsilon_for(errors.min() / 10) == math.inf


def test_a_plan_is_within_a_factor_2_of_what_then_happens() -> None:
    T0, h, n = 30, 6, 1000
    errors = []
    for seed in range(25):
        rng = np.random.default_rng(1000 + seed)
        common = rng.uniform(-1, 1, (n + 1, 3)) @ np.cumsum(rng.normal(size=(3, T0 + h)), axis=1)
        paths = common + np.sqrt(np.mean(common**2)) / 5 * rng.normal(size=common.shape)
        result = GramRelease(epsilon=1.0, delta=1e-6, seed=seed).release(paths[1:]).estimate(paths[0], T0)
        error = np.sqrt(np.mean((result.counterfactual.to_numpy() - common[0, T0:]) ** 2))
        errors.append(error / np.sqrt(np.mean(paths[0, :T0] ** 2)))
    expected = float(plan(n, T0, h, epsilon=1.0).table["error"].iloc[0])
    assert 0.5 < np.median(errors) / expected < 2


def test_a_plan_from_the_targets_history_is_in_its_units() -> None:
    history = 100 + np.cumsum(np.random.default_rng(0).normal(size=25))
    one, ten = (plan(500, T0=25, h=5, epsilon=1.0, target=scale * history, runs=8).table for scale in (1, 10))
    np.testing.assert_allclose(10 * one["error"], ten["error"], rtol=1e-6)
    assert one["error"].iloc[0] < 100


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"n": 0}, "n"), ({"epsilon": 0}, "epsilon"), ({"delta": 0}, "delta"), ({"T0": 1}, "T0"), ({"h": 0}, "h"),
        ({"rank": 0}, "rank"), ({"signal_to_noise": 0}, "signal"), ({"target": [1.0]}, "target"), ({"runs": 0}, "runs"),
        ({"smoothness": "x"}, "smoothness"),
    ],
)  # fmt: skip
def test_senseless_parameters_are_refused_by_name(changes: dict[str, object], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        plan(**({"n": 100, "T0": 10, "h": 2} | changes))  # type: ignore[arg-type]
