from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpsc import ParameterError
from dpsc.privacy import laplace, source
from dpsc.types import Array

ALPHA = 1e-4


def radius_pvalue(draws: Array, scale: float) -> float:
    d = draws.shape[-1]
    return float(stats.kstest(np.linalg.norm(draws, axis=-1), stats.gamma(d, scale=scale).cdf).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize("d", [1, 2, 10, 100])
def test_the_radius_is_gamma_and_the_test_rejects_what_is_not(d: int) -> None:
    draws = laplace.sample(d, 2.5, source.seeded(d), (20_000,))
    assert radius_pvalue(draws, 2.5) > ALPHA
    assert radius_pvalue(0.9 * draws, 2.5) < ALPHA
    if d > 1:
        rng = np.random.default_rng(d)
        direction = draws / np.linalg.norm(draws, axis=-1, keepdims=True)
        published = direction * np.abs(rng.laplace(scale=2.5, size=(20_000, 1)))
        assert radius_pvalue(published, 2.5) < ALPHA


@pytest.mark.statistical
def test_the_direction_is_uniform_and_independent_of_the_radius() -> None:
    d, runs = 5, 50_000
    draws = laplace.sample(d, 1.0, source.seeded(1), (runs,))
    radius = np.linalg.norm(draws, axis=1)
    unit = draws / radius[:, None]
    # A coordinate of a uniform unit vector has (u^2) ~ Beta(1/2, (d-1)/2).
    for coordinate in unit.T:
        assert stats.kstest(coordinate**2, stats.beta(0.5, (d - 1) / 2).cdf).pvalue > ALPHA
        assert abs(np.corrcoef(radius, coordinate)[0, 1]) < 5 / np.sqrt(runs)
    covariance = np.cov(unit.T) * d
    assert np.abs(covariance - np.eye(d)).max() < 6 * np.sqrt(2 / runs)


@pytest.mark.statistical
def test_one_dimension_is_the_ordinary_laplace() -> None:
    draws = laplace.sample(1, 3.0, source.seeded(2), (50_000,))[:, 0]
    assert stats.kstest(draws, stats.laplace(scale=3.0).cdf).pvalue > ALPHA
    assert stats.kstest(0.9 * draws, stats.laplace(scale=3.0).cdf).pvalue < ALPHA


def test_draws_come_in_batches_of_any_shape() -> None:
    assert laplace.sample(3, 1.0, source.system()).shape == (3,)
    assert laplace.sample(3, 1.0, source.system(), (2, 4)).shape == (2, 4, 3)


@pytest.mark.parametrize(
    ("dimension", "scale", "name"), [(0, 1.0, "dimension"), (3, 0.0, "scale"), (3, np.inf, "scale")]
)
def test_senseless_parameters_are_refused_by_name(dimension: int, scale: float, name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        laplace.sample(dimension, scale, source.system())
