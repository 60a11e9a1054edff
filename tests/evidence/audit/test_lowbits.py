"""The low-bit attack breaks floating-point noise and finds nothing against exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from dpsc.custodian.weights.minimiser import GriddedRows
from dpsc.custodian.weights.output import release_ridge
from dpsc.evidence.audit import measure
from dpsc.privacy import source
from dpsc.privacy.additive import StepBudget
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
    X, y, budget = GriddedRows.of(x[np.newaxis]), np.array([0.7, 0.3]), StepBudget("epsilon", 1.0)
    return np.array([release_ridge(X, y, 0.77, 2**0.5, budget, source.system())[0][0] for _ in range(runs)])


def test_the_attack_finds_nothing_against_exact_arithmetic() -> None:
    """It breaks float noise: the case "float-as-exact" in test_broken.py. The audit attacks real calls of ``fit``."""
    claimed = 1.0
    nobody, someone = (released_weights(np.array(x), quick_or_long(2000, 20_000)) for x in ([0.0, 0.0], [0.61, 0.35]))
    assert measure.low_bit_attack(nobody, someone, error=1e-5) <= claimed


def test_the_lowest_bit_of_a_number() -> None:
    assert measure.lowest_bit(np.array([1.0, 0.75, 6.0, 2.0**-1000])).tolist() == [0, -2, 1, -1000]
