"""The data door: what comes in, in which order, what is refused, and that no donor's value gets out by accident."""

from __future__ import annotations

import datetime as dt
import traceback
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsc import DpscError, Panel, PanelError, SyntheticControl
from dpsc.custodian.donors.missing import Scaling
from tests import making
from tests.making import SECRET, told

UNITS = ["t", "a", "b", "c"]
TIMES = [1998, 1999, 2000, 2001, 2002]
VALUES = np.array([[1.0, 2, 3, 4, 5], [2, 4, 6, 8, 10], [-1, 0, 1, 0, -1], [9, 9, 8, 8, 7]])

KINDS: dict[str, list[Any]] = {
    "int": TIMES,
    "digits": ["8", "9", "10", "11", "12"],
    "datetime": [dt.datetime(year, 1, 1) for year in TIMES],
    "date": [dt.date(year, 1, 1) for year in TIMES],
    "Timestamp": list(pd.to_datetime([f"{year}" for year in TIMES])),
    "tz": list(pd.to_datetime([f"{year}" for year in TIMES]).tz_localize("US/Eastern")),
    "datetime64": list(np.array([str(year) for year in TIMES], dtype="M8[Y]")),
    "Period": list(pd.period_range("1998", periods=5, freq="Y")),
}


def long(times: Any = TIMES, units: Any = UNITS, values: Any = VALUES) -> pd.DataFrame:
    return making.long(values, units, times, ("unit", "time", "x"))


def wide(times: Any = TIMES) -> pd.DataFrame:
    return pd.DataFrame(VALUES, index=UNITS, columns=times)


def from_long(df: Any = None, **changes: Any) -> Panel:
    arguments: dict[str, Any] = {"unit": "unit", "time": "time", "outcome": "x", "treatment_time": 2001}
    if "target" not in changes:
        arguments["treated_unit"] = "t"
    return Panel.from_long(long() if df is None else df, **(arguments | changes))


def from_arrays(donors: Any = VALUES[1:], target: Any = VALUES[0], **changes: Any) -> Panel:
    return Panel.from_arrays(donors, target, **({"treatment_time": 3} | changes))


def assert_same(a: Panel, b: Panel) -> None:
    np.testing.assert_array_equal(a.donors, b.donors)
    np.testing.assert_array_equal(a.target.to_numpy(), b.target.to_numpy())
    assert list(a.times) == list(b.times)
    assert (a.T0, a.n, a.T, a.h) == (b.T0, b.n, b.T, b.h)


# Three ways in, one panel


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_long_wide_and_arrays_agree(kind: str, shuffled: bool) -> None:
    times = KINDS[kind]
    order = [3, 0, 4, 2, 1] if shuffled else [0, 1, 2, 3, 4]
    mixed = [times[i] for i in order]
    arguments: dict[str, Any] = {"treatment_time": times[3], "bounds": (-20, 20)}
    a = from_long(long(mixed, values=VALUES[:, order]), **arguments)
    b = Panel.from_wide(pd.DataFrame(VALUES[:, order], UNITS, pd.Index(mixed)), treated_unit="t", **arguments)
    c = Panel.from_arrays(VALUES[1:, order], VALUES[0, order], times=mixed, **arguments)
    assert_same(a, b)
    assert_same(a, c)
    np.testing.assert_array_equal(a.donors, VALUES[1:])
    np.testing.assert_array_equal(a.target.to_numpy(), VALUES[0])
    assert a.T0 == 3


def test_rows_of_a_long_frame_may_come_in_any_order() -> None:
    df = long()
    by_label = from_long(df.sample(frac=1, random_state=1))
    original = from_long(df)
    rows = original.donor_labels.get_indexer(by_label.donor_labels)
    np.testing.assert_array_equal(by_label.donors, original.donors[rows])
    assert list(by_label.times) == TIMES


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "digits"])
def test_years_are_years_however_they_are_written(kind: str) -> None:
    panel = from_long(long(KINDS[kind]), treatment_time=KINDS[kind][3])
    assert panel.times.tolist() == TIMES
    assert panel.treatment_time == 2001
    assert from_long(long(KINDS[kind]), treatment_time="2001-05-17").T0 == 3
    target = pd.Series(VALUES[0], index=KINDS[kind])
    np.testing.assert_array_equal(from_long(target=target).target, VALUES[0])


def test_a_csv_with_years_as_text_takes_the_year_as_a_number() -> None:
    assert from_long(long([str(time) for time in TIMES]), treatment_time=2001).T0 == 3


def test_a_column_of_period_objects_is_read() -> None:
    df = long(KINDS["Period"])
    df["time"] = df["time"].astype(object)
    assert from_long(df, treatment_time="2001").T0 == 3


def test_ordered_categories_are_periods_in_that_order() -> None:
    df = long(["Oct", "Nov", "Dec", "Jan", "Feb"])
    df["time"] = pd.Categorical(df["time"], ["Oct", "Nov", "Dec", "Jan", "Feb", "Mar"], ordered=True)
    panel = from_long(df.sample(frac=1, random_state=0), treatment_time="Jan")
    assert list(panel.times) == ["Oct", "Nov", "Dec", "Jan", "Feb"]
    assert panel.T0 == 3


def test_categorical_units_leave_no_ghost_of_unused_categories() -> None:
    df = long()
    df["unit"] = pd.Categorical(df["unit"], [*UNITS, "ghost"])
    panel = from_long(df)
    assert panel.donor_labels.tolist() == ["a", "b", "c"]
    with pytest.raises(PanelError, match="not in the data"):
        from_long(df, donors=["ghost"])
    with pytest.raises(PanelError, match="not in the data"):
        from_long(df, treated_unit="ghost")


@pytest.mark.parametrize("dtype", ["string", "category", "string[pyarrow]", "large_string[pyarrow]"])
def test_text_units_of_any_dtype_are_read(dtype: str) -> None:
    pytest.importorskip("pyarrow")
    assert_same(from_long(long().astype({"unit": dtype})), from_long())


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "float32", "object", "int64[pyarrow]"])
def test_numbers_of_any_dtype_are_read(dtype: str) -> None:
    pytest.importorskip("pyarrow")
    assert_same(from_long(long().astype({"x": dtype})), from_long())
    assert_same(from_long(long().astype({"time": dtype})), from_long())


def test_decimals_are_read() -> None:
    assert_same(from_long(long(values=np.array([Decimal(str(x)) for x in VALUES.ravel()]))), from_long())


def test_three_periods_are_enough() -> None:
    panel = from_arrays([[1, 2, 3]], [1, 2, 3], treatment_time=2)
    assert (panel.n, panel.T0, panel.h) == (1, 2, 1)


@settings(deadline=None)
@given(st.permutations(range(20)))
def test_any_order_of_rows_gives_the_same_rows(order: list[int]) -> None:
    panel = from_long(long().iloc[order])
    for label, row in zip(panel.donor_labels, panel.donors, strict=True):
        assert row.tolist() == VALUES[UNITS.index(label)].tolist()


# The target


@pytest.mark.parametrize("as_target", [list, tuple, np.array, lambda v: pd.Series(v, index=TIMES)])
def test_a_target_of_its_own_is_the_same_as_a_row(as_target: Callable[[Any], Any]) -> None:
    df = long()
    own = from_long(df[df.unit != "t"], target=as_target(VALUES[0]))
    assert_same(own, from_long(df))


def test_a_series_is_matched_by_its_index() -> None:
    target = pd.Series(VALUES[0], index=TIMES).iloc[[4, 0, 3, 1, 2]]
    assert from_long(target=target).target.tolist() == VALUES[0].tolist()


def test_an_array_is_in_time_order_however_the_frame_is() -> None:
    panel = from_long(long().iloc[::-1], target=VALUES[0])
    assert panel.target.tolist() == VALUES[0].tolist()


def test_arrays_and_bounds_follow_the_given_times() -> None:
    pairs = [(-10.0, 10.0), (-20.0, 20.0), (-30.0, 30.0), (-40.0, 40.0), (-50.0, 50.0)]
    panel = from_arrays(VALUES[1:, ::-1], VALUES[0, ::-1], times=TIMES[::-1], bounds=pairs[::-1], treatment_time=2001)
    assert panel.bounds is not None
    assert panel.bounds.upper.tolist() == [10, 20, 30, 40, 50]
    assert panel.target.tolist() == VALUES[0].tolist()


def test_bounds_of_a_frame_are_in_time_order() -> None:
    panel = from_long(long().iloc[::-1], bounds=[(-10, 10 + i) for i in range(5)])
    assert panel.bounds is not None
    assert panel.bounds.upper.tolist() == [10, 11, 12, 13, 14]


def test_a_target_may_end_before_the_panel() -> None:
    panel = from_long(target=pd.Series(VALUES[0, :4], index=TIMES[:4]))
    np.testing.assert_array_equal(panel.target, [1, 2, 3, 4, np.nan])


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (pd.Series(range(6), index=[*TIMES, 2003]), "target has the period 2003"),
        (pd.Series(range(5), index=pd.date_range("2000", periods=5)), "both in the period 2000"),
        (pd.Series(range(5), index=list("abcde")), "its periods are labels"),
        (pd.Series([1, 2], index=[1998, 1998]), "target has the period 1998 twice"),
        (pd.Series([1, 2, 4], index=[1998, 1999, 2001]), "target is missing in period 2000, before"),
        (pd.Series([], dtype=float), "target is missing in period 1998"),
        ([1, np.nan, 3, 4, 5], "target is missing in period 1999, before"),
        ([1, 2, 3, 4, np.inf], "target is infinite in period 2002"),
        ([1, 2, 3], "target has shape"),
        ([[1, 2, 3, 4, 5]], "target has shape"),
        (3, "target has shape"),
        (list("12345"), "target is not numeric"),
        ({1998: 1}, "target is not numeric"),
        (pd.DataFrame({"y": range(5)}), "target has shape"),
        (pd.Series([1], index=pd.MultiIndex.from_tuples([(1, 2)])), "times"),
        (pd.Series([1, 2], index=[1998, None]), "missing times"),
    ],
)
def test_a_target_that_does_not_fit_is_refused(target: Any, message: str) -> None:
    with pytest.raises(PanelError, match=message):
        from_long(target=target)


def test_a_target_outside_the_bounds_before_the_intervention_is_refused() -> None:
    with pytest.raises(PanelError, match="outside the bounds in period 2000"):
        from_long(bounds=(-5, 2.5))
    assert from_long(bounds=(-5, 3)).target.max() == 5  # afterwards it is an effect, not an error


@pytest.mark.parametrize("changes", [{"treated_unit": None}, {"treated_unit": "t", "target": [1, 2, 3, 4, 5]}])
def test_target_and_treated_unit_are_one_choice(changes: dict[str, Any]) -> None:
    with pytest.raises(PanelError, match="either treated_unit"):
        from_long(**changes)


# The donors


@pytest.mark.parametrize("as_list", [list, tuple, np.array, pd.Series, pd.Index])
def test_donors_selects_in_the_order_of_the_data(as_list: Callable[[Any], Any]) -> None:
    panel = from_long(donors=as_list(["c", "a"]))
    assert panel.donor_labels.tolist() == ["a", "c"]
    np.testing.assert_array_equal(panel.donors, VALUES[[1, 3]])


def test_donors_selects_by_number_when_labels_are_numbers() -> None:
    df = long(units=[10, 11, 12, 13])
    assert from_long(df, treated_unit=10, donors=[13]).donor_labels.tolist() == [13]


def test_units_of_mixed_kinds_are_read_as_text() -> None:
    df = long(units=["t", 1, "01", ("x", 1)])
    panel = from_long(df, donors=["1", ("x", 1)])
    np.testing.assert_array_equal(panel.donors, VALUES[[1, 3]])
    np.testing.assert_array_equal(from_long(df, treated_unit=("x", 1)).target, VALUES[3])


@pytest.mark.parametrize(
    ("donors", "message"),
    [
        (["a", "nobody"], "the unit at position 1 of donors= is not in the data"),
        ([1], "not in the data, whose labels are of kind"),
        (["a", "t"], "cannot be one of its own donors"),
        (["a", "a"], "twice"),
        ([], "no donor is left"),
        ("abc", "list of unit labels"),
        (3, "list of unit labels"),
        ([["a"], ["b"]], "single value"),
        (np.array([["a"]]), "single value"),
        ([None], "not in the data"),
    ],
)
def test_donors_that_cannot_be_selected_are_refused(donors: Any, message: str) -> None:
    with pytest.raises(PanelError, match=message):
        from_long(donors=donors)


@pytest.mark.parametrize("label", ["nobody", 1, None, np.nan, pd.NA, ["t"], UNITS, tuple(UNITS), np.array(UNITS)])
def test_an_unknown_treated_unit_is_refused(label: Any) -> None:
    with pytest.raises(PanelError):
        from_long(treated_unit=label)


def test_units_are_named_as_text() -> None:
    for name in (10, "10", 10.0):
        np.testing.assert_array_equal(from_long(long(units=[10, 11, 12, 13]), treated_unit=name).target, VALUES[0])
    with pytest.raises(PanelError, match="treated unit '010' is not in the data, whose labels are of kind int"):
        from_long(long(units=[10, 11, 12, 13]), treated_unit="010")


def test_a_panel_without_donors_is_refused() -> None:
    with pytest.raises(PanelError, match="no donor is left"):
        from_long(long().query("unit == 't'"))
    with pytest.raises(PanelError, match="no donor is left"):
        from_arrays(np.empty((0, 5)))


# The intervention


@pytest.mark.parametrize(
    ("treatment_time", "message"),
    [
        (1998, "leaves 0 period.s. before"),
        (1999, "leaves 1 period.s. before"),
        (1990, "is not one of the periods, which run from 1998 to 2002"),
        (None, "is not one of the periods"),
        ("soon", "is not one of the periods"),
        (pd.Timestamp("2003"), "is not one of the periods"),
    ],
)
def test_a_treatment_time_that_leaves_too_little_is_refused(treatment_time: Any, message: str) -> None:
    with pytest.raises(PanelError, match=message):
        from_long(treatment_time=treatment_time)


@pytest.mark.parametrize("missing_time", [None, pd.NaT])
@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_treatment_time_is_refused(kind: str, missing_time: Any) -> None:
    with pytest.raises(PanelError):
        from_long(long(KINDS[kind]), treatment_time=missing_time)


def test_one_period_after_the_intervention_is_enough() -> None:
    assert from_long(treatment_time=2002).h == 1


@pytest.mark.parametrize("periods", [0, 1, 2])
def test_fewer_than_three_periods_are_refused(periods: int) -> None:
    with pytest.raises(PanelError, match=f"has {periods} period"):
        from_arrays(np.zeros((2, periods)), np.zeros(periods), treatment_time=1)


@pytest.mark.parametrize(
    ("times", "message"),
    [([1, 2, 3], "3 times"), ([1, 1, 2, 3, 4], "occurs twice"), ([1, 2, 3, 4, None], "missing times"), (5, "list")],
)
def test_times_that_do_not_fit_the_arrays_are_refused(times: Any, message: str) -> None:
    with pytest.raises(PanelError, match=message):
        from_arrays(times=times)


@pytest.mark.parametrize("donors", [1.0, [1, 2, 3], np.zeros((2, 2, 2)), [[1, 2], [3]], "abc", None, {"a": [1]}, []])
def test_donors_that_are_no_matrix_are_refused(donors: Any) -> None:
    with pytest.raises(PanelError, match="donors"):
        from_arrays(donors)


# Nothing of the caller's is changed


def test_input_frames_are_never_modified() -> None:
    df, table, target = long(), wide(), pd.Series(VALUES[0], index=TIMES)
    df.loc[7, "x"] = table.loc["a", 2000] = np.nan
    arguments: dict[str, Any] = {"treatment_time": 2001, "bounds": (-2, 5), "missing": "interpolate"}
    copies = df.copy(deep=True), table.copy(deep=True), target.copy(deep=True)
    from_long(df, **arguments)
    from_long(df, target=target, **arguments)
    Panel.from_wide(table, treated_unit="t", **arguments)
    pd.testing.assert_frame_equal(df, copies[0])
    pd.testing.assert_frame_equal(table, copies[1])
    pd.testing.assert_series_equal(target, copies[2])


def test_input_arrays_are_neither_modified_nor_shared() -> None:
    donors, target = VALUES[1:].copy(), VALUES[0].copy()
    panel = from_arrays(donors, target, bounds=(-1, 5))
    np.testing.assert_array_equal(donors, VALUES[1:])
    donors[:], target[:] = 0, 0
    assert panel.donors.max() == 5
    assert panel.target.tolist() == VALUES[0].tolist()


def test_donors_of_a_panel_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        from_arrays().donors[0, 0] = 1


# Bounds, clipping, scaling


def test_values_are_clipped_in_silence(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        panel = from_arrays([[SECRET, 0, 0, -SECRET, 0]], bounds=(-10, 10))
        text = repr(panel) + str(panel)
    assert panel.donors.tolist() == [[10, 0, 0, -10, 0]]
    assert panel.custodian_diagnostics() == {"donors": 1, "clipped_cells": 2, "filled_cells": 0, "units_alike": 0}
    assert capfd.readouterr() == ("", "")
    assert "clip" not in text


def test_clipping_follows_each_periods_own_bounds() -> None:
    panel = from_arrays([[9, 9, 9, 9, 9]], np.zeros(5), bounds=[(-1, 1), (-1, 2), (-1, 3), (-1, 4), (-1, 50)])
    assert panel.donors.tolist() == [[1, 2, 3, 4, 9]]
    assert panel.custodian_diagnostics()["clipped_cells"] == 4


def test_diagnostics_are_a_copy() -> None:
    panel = from_arrays()
    panel.custodian_diagnostics()["donors"] = 99
    assert panel.custodian_diagnostics()["donors"] == 3


@pytest.mark.parametrize("scaling", ["zero", "center"])
@settings(deadline=None)
@given(
    donors=st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3), min_size=1),
    pair=st.tuples(st.floats(-8e307, 8e307), st.floats(-8e307, 8e307)).filter(lambda p: abs(p[1] - p[0]) > 1e-320),
    share=st.floats(0, 1),
)
def test_scaled_entries_are_always_within_one(
    scaling: Scaling, donors: list[list[float]], pair: tuple[float, float], share: float
) -> None:
    lo, hi = sorted(pair)
    target = np.full(3, np.clip(lo + share * (hi - lo), lo, hi))
    scaled = from_arrays(donors, target, treatment_time=2, bounds=(lo, hi), scaling=scaling).scaled("a test")
    for part in (scaled.X, scaled.Z, scaled.y):
        assert np.abs(part).max() <= 1


def test_scaled_parts_are_pre_post_and_target() -> None:
    scaled = from_arrays(bounds=(-10, 10)).scaled("a test")
    np.testing.assert_array_equal(scaled.X, VALUES[1:, :3] / 10)
    np.testing.assert_array_equal(scaled.Z, VALUES[1:, 3:] / 10)
    np.testing.assert_array_equal(scaled.y, VALUES[0, :3] / 10)


def test_an_algorithm_that_needs_bounds_refuses_by_name() -> None:
    with pytest.raises(PanelError, match=r"Algorithm 99 needs public bounds"):
        from_arrays().scaled("Algorithm 99")


@pytest.mark.parametrize("bounds", [(1, 0), (0, 0), (0, np.nan), (0, np.inf), [(0, 1)] * 4, "wide"])
def test_bounds_that_bound_nothing_are_refused(bounds: Any) -> None:
    with pytest.raises(PanelError, match="bounds"):
        from_arrays(bounds=bounds)


# Missing cells


def with_holes() -> np.ndarray[Any, np.dtype[np.float64]]:
    donors = VALUES[1:].copy()
    donors[0, [0, 2]] = np.nan
    return donors


@pytest.mark.parametrize("hole", [np.nan, None, pd.NA])
def test_a_missing_cell_is_refused_by_position_and_period(hole: Any) -> None:
    df = long().astype({"x": object})
    df.loc[(df.unit == "b") & (df.time == 2000), "x"] = hole
    with pytest.raises(PanelError, match="donor at position 1 has no value in period 2000"):
        from_long(df)


def test_an_absent_row_is_a_missing_cell() -> None:
    with pytest.raises(PanelError, match="donor at position 2 has no value in period 2002"):
        from_long(long().iloc[:-1])


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_cell_is_missing_or_refused_if_these_are(value: float) -> None:
    donors = VALUES[1:].copy()
    donors[1, 4] = value
    with pytest.raises(PanelError, match="donor at position 1 has an infinite value in period 4"):
        from_arrays(donors, bounds=(-10, 10))
    missing = np.where(np.isinf(donors), np.nan, donors)
    for rule in ("interpolate", "midpoint", "kernel"):
        one, other = (from_arrays(given, missing=rule, bounds=(-10, 10)) for given in (donors, missing))
        np.testing.assert_array_equal(one.donors, other.donors)


def test_interpolation_joins_neighbours_and_holds_the_ends() -> None:
    panel = from_arrays(with_holes(), missing="interpolate")
    assert panel.donors[0].tolist() == [4, 4, 6, 8, 10]
    assert panel.custodian_diagnostics()["filled_cells"] == 2


def test_interpolation_looks_at_the_donors_own_row_only() -> None:
    changed = with_holes()
    changed[1:] = 1e6
    a, b = (from_arrays(donors, missing="interpolate") for donors in (with_holes(), changed))
    np.testing.assert_array_equal(a.donors[0], b.donors[0])


def test_midpoint_fills_with_the_middle_of_the_bounds() -> None:
    panel = from_arrays(with_holes(), missing="midpoint", bounds=(-10, 20))
    assert panel.donors[0].tolist() == [5, 4, 5, 8, 10]


def test_midpoint_needs_bounds() -> None:
    with pytest.raises(PanelError, match="give bounds"):
        from_arrays(with_holes(), missing="midpoint")


@pytest.mark.parametrize("missing", ["interpolate", "midpoint"])
def test_a_donor_without_any_value_gets_the_middle_of_the_bounds(missing: str) -> None:
    assert from_arrays([[np.nan] * 5], missing=missing, bounds=(-10, 20)).donors.tolist() == [[5.0] * 5]


def test_a_donor_without_any_value_stays_without_if_there_are_no_bounds() -> None:
    """A refusal would depend on it; a Gram release takes it for a fixed vector."""
    panel = from_arrays([[1, 2, 3, 4, 5], [np.nan] * 5], missing="interpolate")
    np.testing.assert_array_equal(panel.donors, [[1, 2, 3, 4, 5], [np.nan] * 5])
    with pytest.raises(PanelError, match="a donor has no value in any period"):
        SyntheticControl().fit(panel)


@pytest.mark.parametrize("missing", ["drop", ["error"], np.array([1, 2])])
def test_an_unknown_way_with_missing_cells_is_refused(missing: Any) -> None:
    with pytest.raises(PanelError, match="missing must be"):
        from_arrays(missing=missing)


# No donor's value gets out


def secret(**columns: Any) -> pd.DataFrame:
    """Return a frame in which every donor value is the sentinel."""
    df = long(values=np.vstack([VALUES[0], np.full((3, 5), SECRET)]))
    return df.assign(**columns)


def with_cell(value: Any) -> pd.DataFrame:
    df = secret().astype({"x": object})
    df.loc[12, "x"] = value
    return df


LEAKS: dict[str, Callable[[], Any]] = {
    "text": lambda: from_long(with_cell(f"{SECRET} kg")),
    "number as text": lambda: from_long(with_cell(str(SECRET))),
    "all text": lambda: from_long(secret(x=str(SECRET))),
    "category": lambda: from_long(secret(x=pd.Categorical([str(SECRET)] * 20))),
    "list": lambda: from_long(with_cell([SECRET])),
    "complex": lambda: from_long(with_cell(SECRET + 1j)),
    "signalling NaN": lambda: from_long(with_cell(Decimal("sNaN987654"))),
    "missing": lambda: from_long(with_cell(None)),
    "infinite": lambda: from_long(with_cell(np.inf)),
    "midpoint": lambda: from_long(with_cell(None), missing="midpoint"),
    "duplicate": lambda: from_long(pd.concat([secret(), secret().iloc[[12]]])),
    "unknown column": lambda: from_long(secret(), outcome="y"),
    "unknown unit": lambda: from_long(secret(), treated_unit="z"),
    "unknown donor": lambda: from_long(secret(), donors=["z"]),
    "no donor": lambda: from_long(secret(), donors=[]),
    "treatment time": lambda: from_long(secret(), treatment_time=3000),
    "bounds": lambda: from_long(secret(), bounds=(1, 0)),
    "no bounds": lambda: from_long(secret()).scaled("a test"),
    "target": lambda: from_long(secret(), target=[1, np.nan, 2, 3, 4]),
    "narrow": lambda: from_long(secret(), bounds=(0, 1)),
    "wide text": lambda: Panel.from_wide(wide().astype(object).replace(9.0, f"{SECRET}"), treatment_time=2001),
    "ragged": lambda: from_arrays([[SECRET] * 5, [SECRET]]),
    "list of text": lambda: from_arrays([[str(SECRET)] * 5]),
    "flat": lambda: from_arrays([SECRET] * 5),
    "wrong width": lambda: from_arrays([[SECRET] * 4]),
}


@pytest.mark.parametrize("name", LEAKS)
def test_no_error_contains_a_donors_value(name: str) -> None:
    with pytest.raises(DpscError) as caught:
        LEAKS[name]()
    error: BaseException | None = caught.value
    printed = "".join(traceback.format_exception(caught.value, limit=0))
    while error is not None:
        printed += repr(error) + str(error)
        error = error.__cause__ or error.__context__
    assert not told(printed)


def test_no_repr_contains_a_donors_value() -> None:
    panel = from_long(secret(), bounds=(0, 1e6))
    for thing in (panel, panel.scaled("a test")):
        assert not told(repr(thing), str(thing))
    assert "array" not in repr(panel)


# Real sizes, and input of any kind


def test_ten_thousand_units_become_a_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    n, T = 10_000, 110
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n, T))
    ids = np.array([f"unit {i}" for i in range(n)], dtype=object)
    df = long(range(T), ids, values)
    for slow in ("groupby", "apply", "iterrows", "itertuples"):
        monkeypatch.delattr(pd.DataFrame, slow)
    panel = from_long(df, treated_unit="unit 0", treatment_time=100, bounds=(-9, 9))
    np.testing.assert_array_equal(panel.donors, values[1:])


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
    st.decimals(),
    st.complex_numbers(),
    st.binary(max_size=2),
    st.tuples(st.integers()),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.just(pd.Period("2000", "Y")),
)


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(*[st.one_of(st.integers(0, 3), anything)] * 3), max_size=12),
    treatment_time=anything,
    missing=st.sampled_from(["error", "interpolate", "midpoint"]),
    bounds=st.one_of(st.none(), st.tuples(anything, anything)),
)
def test_any_frame_gives_a_panel_or_an_error_of_ours(
    rows: list[tuple[Any, ...]], treatment_time: Any, missing: str, bounds: Any
) -> None:
    df = pd.DataFrame(rows, columns=["unit", "time", "x"], dtype=object)
    try:
        panel = from_long(df, treated_unit=0, treatment_time=treatment_time, missing=missing, bounds=bounds)
    except DpscError:
        return
    assert np.isfinite(panel.donors).all()


@settings(deadline=None)
@given(
    column=st.sampled_from(["unit", "time", "x"]),
    values=st.lists(anything, min_size=20, max_size=20),
    treated_unit=anything,
)
def test_any_column_gives_a_panel_or_an_error_of_ours(column: str, values: list[Any], treated_unit: Any) -> None:
    df = long().assign(**{column: pd.Series(values, dtype=object)})
    try:
        panel = from_long(df, treated_unit=treated_unit if column == "unit" else "t", missing="interpolate")
    except DpscError:
        return
    assert np.isfinite(panel.donors).all()


@settings(deadline=None)
@given(times=st.lists(anything, min_size=5, max_size=5), data=st.data())
def test_any_times_give_a_panel_or_an_error_of_ours(times: list[Any], data: st.DataObject) -> None:
    try:
        panel = from_arrays(times=times, treatment_time=data.draw(st.one_of(anything, st.sampled_from(times))))
    except DpscError:
        return
    assert panel.T0 >= 2
    assert panel.h >= 1
    assert repr(panel)
