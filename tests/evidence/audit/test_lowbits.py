"""The low-bit attack breaks floating-point noise and finds nothing against exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from dpsc import OutputPerturbation, Panel
from dpsc.evidence.audit import measure
from dpsc.types import Array
from tests.soak import quick_or_long

pytestmark = pytest.mark.statistical


def test_the_attack_breaks_numpys_laplace() -> None:
    rng = np.random.default_rng(0)
    claimed = 1.0
    zero, one = (value + rng.laplace(scale=1 / claimed, size=400_000) for value in (0.0, 1.0))
    assert measure.low_bit_attack(zero, one) > 5 * claimed


def released_weights(x: Array, runs: int) -> Array:
    """The one released weight, in many runs, when the one donor is x; the target is along it."""
    panel = Panel.from_arrays([[*x, 0.0]], [0.7, 0.3, 0.0], treatment_time=2, bounds=(-1, 1))
    algorithm = OutputPerturbation(epsilon=2.0, lambda_=0.77, weights_ball=False)
    return np.array([algorithm.fit(panel).weights.iloc[0] for _ in range(runs)])


def test_the_attack_finds_nothing_against_exact_arithmetic() -> None:
    """With as many runs the same attack breaks float arithmetic: the case "float-as-exact" in test_broken.py."""
    claimed = 1.0  # half of the budget
    nobody, someone = (released_weights(np.array(x), quick_or_long(2000, 20_000)) for x in ([0.0, 0.0], [0.61, 0.35]))
    assert measure.low_bit_attack(nobody, someone, error=1e-5) <= claimed


def test_the_lowest_bit_of_a_number() -> None:
    assert measure.lowest_bit(np.array([1.0, 0.75, 6.0, 2.0**-1000])).tolist() == [0, -2, 1, -1000]
