"""The low-bit attack breaks floating-point noise and finds nothing against exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from dpsc import OutputPerturbation, Panel
from dpsc.audit import lowbits
from dpsc.audit.distinguish import epsilon_lower_bound
from dpsc.bounds import Array
from dpsc.guarantee import Arithmetic

pytestmark = pytest.mark.statistical


def test_the_attack_breaks_numpys_laplace() -> None:
    rng = np.random.default_rng(0)
    claimed = 1.0
    zero, one = (value + rng.laplace(scale=1 / claimed, size=400_000) for value in (0.0, 1.0))
    assert lowbits.attack(zero, one) > 5 * claimed


def released_weights(x: Array, arithmetic: Arithmetic, runs: int) -> Array:
    """The one released weight, in many runs, when the one donor is x; the target is along it."""
    panel = Panel.from_arrays([[*x, 0.0]], [0.7, 0.3, 0.0], treatment_time=2, bounds=(-1, 1))
    algorithm = OutputPerturbation(epsilon=2.0, lambda_=0.77, weights_ball=False, arithmetic=arithmetic)
    return np.array([algorithm.fit(panel).weights.iloc[0] for _ in range(runs)])


@pytest.mark.parametrize(("arithmetic", "breaks"), [("float", True), ("exact", False)])
def test_the_attack_breaks_float_arithmetic_and_finds_nothing_against_exact(
    arithmetic: Arithmetic, breaks: bool
) -> None:
    claimed = 1.0  # half of the budget
    nobody, someone = (released_weights(np.array(x), arithmetic, 5000) for x in ([0.0, 0.0], [0.61, 0.35]))
    demonstrated = lowbits.attack(nobody, someone, error=1e-6)
    assert (demonstrated > 1.5 * claimed) if breaks else (demonstrated <= claimed)


def test_the_lower_bound_is_what_can_be_shown_and_no_more() -> None:
    assert epsilon_lower_bound(0, 1000, 0, 1000) == 0
    assert epsilon_lower_bound(500, 1000, 500, 1000) < 0.01
    many = epsilon_lower_bound(730_000, 1_000_000, 269_000, 1_000_000)
    assert 0.98 < many < np.log(0.73 / 0.269)
    assert epsilon_lower_bound(10, 1000, 0, 1000, delta=0.1) == 0
