from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsc import ParameterError
from dpsc.privacy import exact


def test_the_gram_is_exact_whatever_the_order_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(-(2**20), 2**20, (20_000, 5), endpoint=True)
    total = exact.second_moments(rows)
    slow = rows.astype(object).T @ rows.astype(object)
    assert (total == slow).all()
    assert (exact.second_moments(rows[rng.permutation(len(rows))]) == total).all()


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_truncation_never_makes_a_row_longer(row: list[float]) -> None:
    integers = exact.truncate(np.array(row))
    assert all(abs(int(q)) <= abs(v) * 2**20 for q, v in zip(integers, row, strict=True))


def test_overflow_is_refused_from_public_numbers() -> None:
    with pytest.raises(ParameterError, match="64-bit"):
        exact.require_no_overflow(2.0**62, "x")
    exact.require_no_overflow(2.0**61, "x")


@given(st.floats(1e-300, 1e300))
def test_the_power_of_two_below(value: float) -> None:
    power = exact.power_of_two_below(value)
    assert power <= value < 2 * power
    assert np.frexp(power)[0] == 0.5
