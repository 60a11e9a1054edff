"""Bounds: what is refused, and that scaling is undone exactly and never leaves [-1, 1]."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsc import PanelError
from dpsc.custodian.donors.missing import Bounds, Scaling

SCALINGS: tuple[Scaling, ...] = ("zero", "center")
finite = st.floats(-1e150, 1e150, allow_subnormal=False)
pairs = st.tuples(finite, finite).map(sorted).filter(lambda pair: pair[1] - pair[0] > 1e-150)


def test_one_pair_serves_every_period() -> None:
    bounds = Bounds.parse((0, 300), periods=3)
    assert bounds.lower.tolist() == [0, 0, 0]
    assert bounds.upper.tolist() == [300, 300, 300]


@pytest.mark.parametrize("given_as", [list, tuple, np.array])
def test_one_pair_per_period_is_kept_per_period(given_as: Any) -> None:
    bounds = Bounds.parse(given_as([(0, 1), (-2, 3), (4, 5)]), periods=3)
    assert bounds.lower.tolist() == [0, -2, 4]
    assert bounds.upper.tolist() == [1, 3, 5]


def test_decimals_are_numbers() -> None:
    assert Bounds.parse((Decimal("0.5"), Decimal(2)), periods=1).upper.tolist() == [2.0]


def test_parsed_bounds_do_not_follow_the_callers_array() -> None:
    mine = np.array([[0.0, 1.0], [0.0, 1.0]])
    bounds = Bounds.parse(mine, periods=2)
    mine[:] = 7
    assert bounds.upper.tolist() == [1, 1]
    with pytest.raises(ValueError, match="read-only"):
        bounds.upper[0] = 2


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((1, 0), "lo < hi"),
        ((1, 1), "lo < hi"),
        ([(0, 1), (0, 1), (5, 2)], "period number 2"),
        ((0, np.inf), "finite"),
        ((-np.inf, 1), "finite"),
        ((np.nan, 1), "finite"),
        ([(0, 1), (0, np.nan), (0, 1)], "finite"),
        ((-1e308, 1e308), "wide"),
        ((0, 5e-324), "narrow"),
        (5, "shape"),
        ((0, 1, 2), "shape"),
        ([(0, 1)], "shape"),
        ([(0, 1), (0, 1)], "shape"),
        ([(0, 1), (0,), (0, 1)], "numbers"),
        (("0", "1"), "numbers"),
        ((b"0", b"1"), "numbers"),
        ("ab", "numbers"),
        ((0, 10**400), "numbers"),
        ((0, 1j), "numbers"),
        ((np.datetime64(0, "D"), np.datetime64(1, "D")), "numbers"),
        ({"lo": 0, "hi": 1}, "numbers"),
        ({0, 1}, "numbers"),
        ((None, 1), "finite"),
    ],
)
def test_bounds_that_bound_nothing_are_refused(bounds: Any, message: str) -> None:
    with pytest.raises(PanelError, match=message):
        Bounds.parse(bounds, periods=3)


@pytest.mark.parametrize("scaling", ["middle", None, ["zero"], np.array([1, 2])])
def test_unknown_scaling_is_refused(scaling: Any) -> None:
    with pytest.raises(PanelError, match="scaling"):
        Bounds.parse((0, 1), 2, scaling)


@settings(deadline=None)
@given(pairs)
def test_scaling_zero_keeps_zero_at_zero(pair: list[float]) -> None:
    assert Bounds.parse(pair, 1, "zero").scale(np.zeros(1)).tolist() == [0.0]


def test_scaling_center_maps_the_middle_to_zero_and_the_ends_to_one() -> None:
    bounds = Bounds.parse((10, 30), 3, "center")
    assert bounds.scale(np.array([10.0, 20.0, 30.0])).tolist() == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize("scaling", SCALINGS)
@settings(deadline=None)
@given(pair=pairs, share=st.floats(0, 1))
def test_unscale_undoes_scale(scaling: Scaling, pair: list[float], share: float) -> None:
    bounds = Bounds.parse(pair, 1, scaling)
    value = bounds.clip(bounds.lower + share * (bounds.upper - bounds.lower))
    error = np.abs(bounds.unscale(bounds.scale(value)) - value)
    # Under "center" the offset may dwarf the width, and a value there has the offset's own precision.
    assert error <= 1e-12 * (bounds.factor if scaling == "zero" else bounds.factor + np.abs(bounds.offset))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_unscale_undoes_scale_for_some_periods(scaling: Scaling) -> None:
    bounds = Bounds.parse([(0, 1), (10, 30), (-5, 2)], 3, scaling)
    some = slice(1, None)
    value = np.array([12.0, -3.0])
    np.testing.assert_allclose(bounds.unscale(bounds.scale(value, some), some), value, rtol=1e-15)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_differences_are_unscaled_without_the_offset(scaling: Scaling) -> None:
    bounds = Bounds.parse((10, 30), 2, scaling)
    a, b = np.array([11.0, 12.0]), np.array([29.0, 12.5])
    np.testing.assert_allclose((bounds.scale(a) - bounds.scale(b)) * bounds.factor, a - b)


def test_clip_leaves_missing_cells_missing() -> None:
    clipped = Bounds.parse((0, 1), 3).clip(np.array([[-5.0, np.nan, 5.0]]))
    np.testing.assert_array_equal(clipped, [[0.0, np.nan, 1.0]])
