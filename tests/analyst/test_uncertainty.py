from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from dpsc.analyst.intervals import StudentMixture


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
