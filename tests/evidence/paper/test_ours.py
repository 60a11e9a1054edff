"""What is simulated in bulk is what our algorithms do one run at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpsc import GramRelease, ObjectivePerturbation, OutputPerturbation
from dpsc.custodian.weights.minimiser import GriddedRows, minimise
from dpsc.custodian.weights.projection import onto_l1_ball
from dpsc.evidence.paper import recipes
from dpsc.evidence.paper.points import AlgorithmName, Dataset, Point, generate
from dpsc.evidence.paper.recipes import minimise_over_ball, onto_balls
from dpsc.types import Array
from tests.soak import quick_or_long

N, T0 = 12, 8


@pytest.fixture(scope="module")
def data() -> Dataset:
    return generate("printed", N, T0, np.random.default_rng(5))


def algorithm_itself(data: Dataset, point: Point, runs: int) -> Array:
    panel = recipes.panel_of(data)
    answers = []
    for seed in range(runs):
        options: dict[str, Any] = {"epsilon": point.epsilon, "delta": point.delta, "seed": seed}
        if point.method == "gram":
            release = GramRelease(**options).release(panel)
            answers.append(release.estimate(panel.target, panel.treatment_time).counterfactual)
        elif point.method == "out":
            answers.append(OutputPerturbation(**options, lambda_=point.lambda_).fit(panel).counterfactual)
        else:
            answers.append(ObjectivePerturbation(**options, lambda_=point.lambda_).fit(panel).counterfactual)
    return data.rmse(np.array(answers))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("method", "delta"),
    [("out", 0.0), ("out", 1e-6), ("obj", 0.0), ("obj", 1e-6), *quick_or_long([], [("gram", 1e-6)])],
)
def test_the_simulation_has_the_errors_of_the_algorithm(data: Dataset, method: AlgorithmName, delta: float) -> None:
    point = Point("ours", method, N, T0, float(T0), 3.0, 3.0, delta)
    gram = method == "gram"  # takes ten times as long; its noise has a test of its own, so less power is enough
    simulated = recipes.simulate_ours(
        data, point, quick_or_long(150 if gram else 6000, 20_000), np.random.default_rng(0)
    )
    real = algorithm_itself(data, point, quick_or_long(100 if gram else 1000, 10_000))
    assert stats.ks_2samp(simulated, real).pvalue > 1e-3

    wrong = quick_or_long(0.6, 0.9) if gram else 0.9
    assert stats.ks_2samp(wrong * simulated, real).pvalue < 1e-3


def test_rows_are_projected_as_one_at_a_time() -> None:
    rng = np.random.default_rng(0)
    for scale in (0.01, 0.3, 3.0, 1e6):
        points = scale * rng.laplace(size=(50, 9))
        expected = np.array([onto_l1_ball(row) for row in points])
        np.testing.assert_allclose(onto_balls(points), expected, atol=1e-9)


@pytest.mark.parametrize(("n", "nu"), [(5, 1.0), (20, 0.5), (20, 100.0)])
def test_many_objectives_are_minimised_as_one_at_a_time(n: int, nu: float) -> None:
    rng = np.random.default_rng(n)
    X, y = rng.integers(-(2**20), 2**20, (n, 10)) / 2**20, rng.uniform(-1, 1, 10)
    b = rng.laplace(size=(30, n)) * rng.choice([0.1, 1.0, 10.0], size=(30, 1))
    expected = np.array([minimise(GriddedRows.of(X), y, nu, row) for row in b])
    np.testing.assert_allclose(minimise_over_ball(X, y, nu, b), expected, atol=1e-6)
