from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsc.analyst import simulate
from dpsc.analyst.models import Gaussian
from dpsc.analyst.simulate import USUAL, likely
from dpsc.types import Array


def walk(seed: int, T: int) -> Array:
    return np.cumsum(np.random.default_rng(seed).normal(size=T))


def jumps(seed: int, T: int) -> Array:
    return np.random.default_rng(seed).normal(size=T)


def middle(history: Array | None, averages: int = 1) -> float:
    """Return the ratio that is as likely too small as too large."""
    return likely(history, 40, averages, 1, None)[0].signal_to_noise


def fleeting(history: Array, averages: int) -> float:
    """Return the share of what is common that is expected to come and go."""
    return float(np.mean([each.fleeting for each in likely(history, 40, averages, 200, None)]))


def test_without_a_history_all_that_is_known_is_what_is_usual() -> None:
    found = likely(None, 20, 1, 300, None)
    ratios = np.log([each.signal_to_noise for each in found])
    assert ratios.mean() == pytest.approx(math.log(USUAL), abs=0.02)
    assert ratios.std() == pytest.approx(0.7, rel=0.03)
    assert (np.diff(ratios) >= 0).all()
    assert np.mean([each.fleeting for each in found]) == pytest.approx(0.5, abs=0.05)


def test_what_is_averaged_is_usually_sparser() -> None:
    usual = {m: np.log([each.signal_to_noise for each in likely(None, 20, m, 300, None)]).mean() for m in (1, 30, 5000)}
    assert usual[30] == usual[5000] == pytest.approx(usual[1] - math.log(30) / 4, abs=0.02)


def test_a_ratio_that_is_said_is_kept_and_the_rest_is_as_likely_as_before() -> None:
    found = likely(None, 20, 1, 9, 3.0)
    assert [each.signal_to_noise for each in found] == pytest.approx([3.0] * 9)
    assert [each.fleeting for each in found] == [0.0] * 3 + [0.5] * 3 + [1.0] * 3


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_evidence_is_that_of_a_random_walk_and_white_noise(share: float) -> None:
    """With a free level and a free size: as the general Gaussian model of a target has it."""
    T = 12
    y = walk(1, T) + jumps(2, T)
    times = np.arange(1.0, T + 1)
    lasting = np.minimum.outer(times, times)
    lasting *= T / np.trace(lasting - lasting.mean(axis=0))
    own, expected = np.array([0.01, 0.3, 2.0, 50.0]), []
    for variance in own:
        covariance = (1 - share) * lasting + (share + variance) * np.eye(T)
        seen = Gaussian(np.zeros(T), covariance, True).observed(y)
        left = seen.errors - seen.level * seen.ones
        log_size = float(np.log(seen.root.diagonal()).sum()) + math.log(seen.precision) / 2
        expected.append(-log_size - (T - 1) / 2 * math.log(left @ left))
    found = simulate._log_evidence(np.diff(y), T, own, np.full(4, share))
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], atol=1e-9)


def test_what_keeps_its_direction_is_likely_shared() -> None:
    assert np.median([middle(walk(seed, 40)) for seed in range(20)]) > 3 * USUAL
    assert np.median([middle(jumps(seed, 40)) for seed in range(20)]) < USUAL


def test_the_jumps_of_an_average_of_many_are_likely_shared_and_those_of_a_single_unit_may_be_its_own() -> None:
    single, average = (np.mean([fleeting(jumps(seed, 40), m) for seed in range(20)]) for m in (1, 300))
    assert 0.5 < single < 0.7
    assert average > 0.8


def test_a_short_history_says_little() -> None:
    assert abs(math.log(middle(walk(3, 4)) / USUAL)) < 0.5 < abs(math.log(middle(walk(3, 40)) / USUAL))


@given(st.floats(1e-290, 1e95), st.integers(1, 40))
def test_units_of_measurement_do_not_matter(unit: float, count: int) -> None:
    y = walk(6, 10)
    np.testing.assert_allclose(likely(unit * y, 12, 2, count, None), likely(y, 12, 2, count, None))
