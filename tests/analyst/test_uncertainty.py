from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from dpsc.analyst.intervals import StudentMixture, variance_of
from dpsc.analyst.models import AllSizes, Gaussian, donor_free_evidence, log_sum


@given(
    st.integers(1, 8),
    st.integers(1, 4),
    st.integers(0, 10_000),
    st.sampled_from([0.0005, 0.025, 0.2, 0.5, 0.8, 0.975]),
    st.sampled_from([0.3, 3.0]),
)
def test_a_quantile_of_a_mixture_has_its_chance_below(
    members: int, numbers: int, seed: int, chance: float, apart: float
) -> None:
    """Also of mixtures with members far apart, narrow beside wide ones, and heavy tails."""
    rng = np.random.default_rng(seed)
    shape = (members, numbers)
    law = StudentMixture(
        centres=rng.normal(size=shape) * 10.0 ** rng.uniform(-apart, apart),
        spreads=10.0 ** rng.uniform(-apart, apart, shape),
        weights=rng.dirichlet(np.full(members, 0.3)),
        degrees=rng.uniform(1, 30, members),
    )
    found = law.quantile(np.full(numbers, chance))
    each = law.centres + law.spreads * stdtrit(law.degrees[:, np.newaxis], chance)
    close = 1e-9 * np.abs(each).max(axis=0)
    assert (law.below(found - close) <= chance).all()
    assert (law.below(found + close) >= chance).all()


def test_the_density_of_a_mixture_is_how_fast_the_chance_below_grows() -> None:
    law = StudentMixture(np.array([[0.0], [3.0]]), np.array([[1.0], [0.2]]), np.array([0.3, 0.7]), np.array([2.0, 9.0]))
    for value in (-4.0, 0.0, 2.9, 5.0):
        grown = law.below(np.array([value + 1e-5])) - law.below(np.array([value - 1e-5]))
        np.testing.assert_allclose(law.density(np.array([value])), grown / 2e-5, rtol=1e-5)


def test_what_is_new_in_every_period_does_not_last() -> None:
    average, covariance = np.full((1, 8), 1 / 8), 2.0 * np.eye(8)
    assert variance_of(average, covariance)[0] == pytest.approx(
        0.5 * 2 / 8 + 0.5 * 2
    )  # half of it, in all periods alike
    assert variance_of(average, covariance, 2.0)[0] == pytest.approx(2 / 8)
    assert variance_of(average, covariance, 1.0)[0] == pytest.approx(1 / 8 + 0.5 / 8 + 0.5)
    assert variance_of(np.eye(8)[:1], covariance, 1.0)[0] == 2  # a single period's stays


@pytest.mark.parametrize("free_level", [False, True])
def test_the_evidence_of_all_sizes_at_once_is_that_of_each(free_level: bool) -> None:
    """Also with a loading on the mean, and in other units."""
    rng, T = np.random.default_rng(0), 9
    half, other, y, mean, movement, less = (rng.normal(size=shape) for shape in ((T, 3), (T, T), T, T, T, T))
    fixed, varying = half @ half.T, other @ other.T + 0.1 * np.eye(T)
    sizes, loadings, factors = np.array([1e-4, 0.3, 20.0]), (0.0, 0.3, 3.0), np.array([0.01, 1.0, 100.0])
    found = AllSizes.of(mean, fixed, varying, movement, free_level).log_evidence(factors, y, less, sizes, loadings)
    for i, factor in enumerate(factors):
        for j, tau in enumerate(loadings):
            for k, size in enumerate(sizes):
                covariance = fixed + tau * np.outer(movement, movement) + size * varying
                one = Gaussian(mean, covariance, free_level).observed(factor * y - less).log_evidence
                np.testing.assert_allclose(found[i, j, k], one, rtol=1e-6)


def test_the_donor_free_evidence_of_any_size_is_an_integral_over_sizes() -> None:
    y = np.random.default_rng(0).normal(size=12)
    observed = Gaussian(np.zeros(12), np.eye(12), True).observed(y)
    logs = np.arange(-30, 30, 0.01)
    each = [Gaussian(np.zeros(12), math.exp(log) * np.eye(12), True).observed(y).log_evidence for log in logs]
    integral = log_sum(np.array(each) + math.log(0.01)) - math.log(18 * math.log(10) / 4)
    np.testing.assert_allclose(observed.log_evidence_of_any_size(), integral, rtol=1e-6)
    np.testing.assert_allclose(donor_free_evidence(1000 * y) + 11 * math.log(1000), donor_free_evidence(y), rtol=1e-9)
