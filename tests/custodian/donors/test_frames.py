"""Reading frames: which numbers are numbers, and which frames are panels."""

from __future__ import annotations

import datetime as dt
import traceback
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsc import Donors, PanelError
from dpsc.custodian.donors.frames import Matrix, read_long, read_wide
from dpsc.custodian.donors.missing import Bounds, Completion
from dpsc.types import to_floats
from tests import making
from tests.making import SECRET, told

TEXT = str(SECRET)


def long(**columns: Any) -> pd.DataFrame:
    return making.long(np.arange(6.0).reshape(2, 3), list("ab"), [1, 2, 3], ("unit", "time", "x")).assign(**columns)


@pytest.mark.parametrize(
    "numbers",
    [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.array([1, 2, 3], dtype=np.uint8),
        np.array([1, 2, 3], dtype=np.float16),
        [Decimal(1), Decimal(2), Decimal(3)],
        [Fraction(1), 2, Decimal(3)],
        pd.Series([1, 2, 3], dtype="Int64"),
        pd.Series([1, 2, 3], dtype="Float64"),
        pd.Series([1, 2, 3], dtype=object),
        pd.Series([1, 2, 3], dtype="category"),
        pd.Series(pd.arrays.SparseArray([1.0, 2.0, 3.0])),
    ],
)
def test_every_kind_of_real_number_is_read(numbers: Any) -> None:
    result = to_floats(numbers, "x")
    assert result.dtype == np.float64
    assert result.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "numbers",
    [
        [1, None, 3],
        [1, pd.NA, 3],
        [Decimal(1), Decimal("NaN"), Decimal(3)],
        np.ma.masked_array([1, 2, 3], mask=[False, True, False]),
        np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False]),
        pd.Series([1, pd.NA, 3], dtype="Int64"),
        pd.Series([1, pd.NA, 3], dtype="Float64"),
        pd.Series([1, None, 3], dtype=object),
        pd.Series([1, None, 3], dtype="category"),
    ],
)
def test_every_kind_of_missing_cell_is_nan(numbers: Any) -> None:
    np.testing.assert_array_equal(to_floats(numbers, "x"), [1.0, np.nan, 3.0])


@pytest.mark.parametrize(
    "booleans", [[True, False], pd.Series([True, False]), pd.Series([True, False], dtype="boolean")]
)
def test_booleans_are_one_and_zero(booleans: Any) -> None:
    assert to_floats(booleans, "x").tolist() == [1.0, 0.0]


@pytest.mark.parametrize("dtype", ["int64[pyarrow]", "double[pyarrow]"])
def test_arrow_numbers_are_read(dtype: str) -> None:
    pytest.importorskip("pyarrow")
    np.testing.assert_array_equal(to_floats(pd.Series([1, None, 3], dtype=dtype), "x"), [1.0, np.nan, 3.0])


@pytest.mark.parametrize(
    "values",
    [
        [TEXT],
        [1.0, TEXT],
        np.array([TEXT]),
        np.array([TEXT.encode()]),
        [TEXT.encode()],
        pd.Series([TEXT]),
        pd.Series([TEXT], dtype=object),
        pd.Series([TEXT], dtype="string"),
        pd.Series([TEXT], dtype="category"),
        pd.Series([1.0, TEXT + "x"], dtype=object),
        pd.DataFrame({"a": [1.0], "b": [TEXT]}),
        [SECRET + 1j],
        pd.Series([SECRET + 1j]),
        pd.Series([SECRET + 1j], dtype=object),
        [[1.0, SECRET], [1.0]],
        [{"x": SECRET}],
        {"x": SECRET},
        pd.Series([[SECRET]]),
        [Decimal("sNaN987654321")],
        [10**400],
        [dt.datetime(2000, 1, 1)],
        np.array(["2000"], dtype="M8[D]"),
        np.array([1], dtype="m8[D]"),
        pd.Series(pd.date_range("2000", periods=1)),
        pd.Series(pd.to_timedelta([1])),
        pd.Series(pd.period_range("2000", periods=1, freq="Y")),
        np.zeros(2, dtype=[("a", float)]),
    ],
)
def test_what_is_not_a_number_is_refused_and_not_shown(values: Any) -> None:
    with pytest.raises(PanelError, match="not numeric") as caught:
        to_floats(values, "x")
    assert not told(repr(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_numbers_are_copied() -> None:
    mine = np.array([1.0, 2.0])
    to_floats(mine, "x")[0] = 7
    assert mine[0] == 1


def test_units_keep_their_order_of_appearance_and_absent_cells_are_nan() -> None:
    matrix = read_long(long(unit=list("bbbaaa")).drop(index=4), "unit", "time", "x")
    assert matrix.units.tolist() == ["b", "a"]
    np.testing.assert_array_equal(matrix.values, [[0, 1, 2], [3, np.nan, 5]])


def test_a_matrix_does_not_print_its_values() -> None:
    assert not told(repr(Matrix(np.array([[SECRET]]), pd.Index(["a"]), pd.Index([1]))))


@pytest.mark.parametrize(
    "units",
    [
        [1, 1, 1, 2, 2, 2],
        [True] * 3 + [False] * 3,
        ["a"] * 3 + [1] * 3,
        [("a", 1)] * 3 + [("b", 1)] * 3,
        pd.array([1, 1, 1, 2, 2, 2], dtype="Int64"),
        pd.array(list("aaabbb"), dtype="string"),
        pd.Categorical(list("aaabbb"), categories=["z", "b", "a"]),
        np.repeat(pd.date_range("2000", periods=2), 3),
    ],
)
def test_units_of_any_kind_are_labels(units: Any) -> None:
    matrix = read_long(long(unit=units), "unit", "time", "x")
    assert matrix.units.tolist() == list(pd.unique(pd.Series(units)))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame(), "no column 'unit'"),
        (long().iloc[:0], "no rows"),
        (long().set_index(["unit", "time"]), "no column 'unit'"),
        (long().rename(columns={"unit": "Unit"}), "Did you mean 'Unit'"),
        (pd.concat([long(), long()[["x"]]], axis=1), "'x' names more than one column"),
        (pd.concat([long(), long()[["unit"]]], axis=1), "'unit' names more than one column"),
        (pd.concat([long(), long()[["time"]]], axis=1), "'time' names more than one column"),
        (pd.concat({"unit": long(), "time": long(), "x": long()}, axis=1), "more than one column"),
        (long(time=[1, 2, None, 1, 2, 3]), "column 'time' is missing in row 2"),
        (long(time=pd.Series([[1]] * 6)), "column 'time' holds lists"),
        (long(x=list("abcdef")), "column 'x' is not numeric"),
        ({"unit": [1]}, "expected a pandas DataFrame, not dict"),
        (None, "expected a pandas DataFrame, not NoneType"),
    ],
)
def test_a_long_frame_that_is_no_panel_is_refused(frame: Any, message: str) -> None:
    with pytest.raises(PanelError, match=message):
        read_long(frame, "unit", "time", "x")


def test_columns_under_a_multiindex_are_named_by_tuples() -> None:
    frame = pd.concat({"k": long()}, axis=1)
    assert read_long(frame, ("k", "unit"), ("k", "time"), ("k", "x")).values.shape == (2, 3)


@pytest.mark.parametrize("name", [["unit"], None, {}, slice(None)])
def test_a_column_name_that_is_none_is_refused(name: Any) -> None:
    with pytest.raises(PanelError, match="column"):
        read_long(long(), name, "time", "x")


def test_units_and_times_that_nearly_never_meet_are_refused_before_memory_runs_out() -> None:
    rows = np.arange(200_000)
    with pytest.raises(PanelError, match="right columns"):
        read_long(pd.DataFrame({"unit": rows, "time": rows, "x": 0.0}), "unit", "time", "x")


def wide(columns: Any = (1, 2, 3), index: Any = ("a", "b")) -> pd.DataFrame:
    return pd.DataFrame(np.arange(6.0).reshape(2, 3), index=list(index), columns=columns)


def test_units_of_a_wide_frame_are_its_index_or_a_column() -> None:
    by_index = read_wide(wide(), None, None)
    by_column = read_wide(wide().rename_axis("who").reset_index(), "who", None)
    assert by_index.units.tolist() == by_column.units.tolist() == ["a", "b"]
    np.testing.assert_array_equal(by_index.values, by_column.values)


def test_periods_select_columns_of_a_wide_frame() -> None:
    matrix = read_wide(wide().assign(note="text"), None, [3, 1])
    assert matrix.times.tolist() == [3, 1]
    assert matrix.values.tolist() == [[2, 0], [5, 3]]


def test_a_multiindex_of_units_is_a_set_of_tuples() -> None:
    matrix = read_wide(wide().set_index(pd.MultiIndex.from_tuples([("a", 1), ("b", 1)])), None, None)
    assert matrix.units.tolist() == [("a", 1), ("b", 1)]


def test_ordered_categories_as_columns_keep_their_order() -> None:
    columns = pd.CategoricalIndex(["lo", "mid", "hi"], categories=["lo", "mid", "hi"], ordered=True)
    assert isinstance(read_wide(wide(columns), None, None).times, pd.CategoricalIndex)


@pytest.mark.parametrize(
    ("frame", "unit", "periods", "message"),
    [
        (None, None, None, "expected a pandas DataFrame"),
        (pd.DataFrame(), None, None, "0 rows"),
        (wide()[[]], None, None, "0 period columns"),
        (wide(), None, [], "0 period columns"),
        (wide(), "who", None, "no column 'who'"),
        (wide(), ["who"], None, "column name"),
        (wide(), None, [1, 9], "no column 9"),
        (wide(), None, ["1", "2"], "no column '1'. Did you mean 1?"),
        (wide(), None, [1, 2, 2], "same period label"),
        (wide(), None, "123", "list of column names"),
        (wide(), None, 3, "list of column names"),
        (wide(), None, [[1], [2]], "column name"),
        (wide([1, 2, 2]), None, None, "more than one column"),
        (wide([1, 2, None]), None, None, "missing times"),
        (wide(pd.MultiIndex.from_product([["x"], [1, 2, 3]])), None, None, "MultiIndex"),
        (wide().assign(note="text"), None, None, "column 'note' does not look like a period"),
        (wide().assign(note2="text"), None, None, "column 'note2' is not numeric"),
    ],
)
def test_a_wide_frame_that_is_no_panel_is_refused(frame: Any, unit: Any, periods: Any, message: str) -> None:
    with pytest.raises(PanelError, match=message.replace("?", r"\?")):
        read_wide(frame, unit, periods)


@settings(deadline=None)
@given(st.lists(st.one_of(st.just(np.nan), st.floats(-1e308, 1e308)), min_size=3, max_size=12))
def test_interpolation_is_the_straight_line_of_numpy(row: list[float]) -> None:
    values = np.array([row])
    known = np.flatnonzero(~np.isnan(values[0]))
    if not known.size:
        return
    expected = 4 * np.interp(np.arange(len(row)), known, values[0, known] / 4)
    Completion(pd.RangeIndex(len(row)), "interpolate", None).in_place(values)
    np.testing.assert_allclose(values[0], expected, rtol=1e-9, atol=1e-300 + 1e-9 * np.abs(expected).max())


@settings(deadline=None)
@given(st.integers(0, 2), st.floats(-1e9, 1e9))
def test_a_filled_row_depends_on_no_other_row(other: int, value: float) -> None:
    before = np.array([[1.0, np.nan, 5.0], [np.nan, 2.0, np.nan], [7.0, 8.0, 9.0]])
    after = before.copy()
    after[other] = [value, np.nan, -value]
    for matrix in (before, after):
        Completion(pd.RangeIndex(3), "interpolate", None).in_place(matrix)
    same = [row for row in range(3) if row != other]
    np.testing.assert_array_equal(before[same], after[same])


def test_midpoint_fills_with_each_periods_own_middle() -> None:
    values = np.full((1, 3), np.nan)
    bounds = Bounds.parse([(0, 2), (0, 4), (-6, 0)], 3)
    assert Completion(pd.RangeIndex(3), "midpoint", bounds).in_place(values) == 3
    assert values.tolist() == [[1.0, 2.0, -3.0]]


def test_rows_with_masks_of_their_own_keep_them() -> None:
    rows = [np.ma.masked_array([1.0, 2.0], mask=[False, True]), np.ma.masked_array([3.0, 4.0])]
    for masked in (rows, tuple(rows), [rows[0], [3.0, 4.0]]):
        np.testing.assert_array_equal(to_floats(masked, "x"), [[1.0, np.nan], [3.0, 4.0]])


MOMENT = pd.Timestamp("2022-01-31 23:30", tz="UTC")


@pytest.mark.parametrize(
    ("labels", "written", "periods"),
    [
        ([0, 1, 2, 3], True, "0..3"),
        ([0, 1, 2, 3], np.True_, "0..3"),
        ([202201, 202202, 202203], Decimal(202202), "2022-01..2022-03"),
        ([pd.Timestamp("2022-01-15", tz="UTC"), MOMENT], MOMENT.tz_convert("Europe/Berlin"), "2022-01..2022-02"),
        ([202201, 202202, 202203], [202202], "2022-01..2022-03"),
        ([202201, 202202, 202203], None, "2022-01..2022-03"),
    ],
    ids=["a truth value", "numpy's", "a decimal number", "another time zone", "a list", "nothing"],
)
def test_what_one_donor_writes_for_a_period_does_not_change_others(
    labels: list[Any], written: Any, periods: str
) -> None:
    """Equal labels of different kinds were read as the first of them, for everybody."""
    rows = [(unit, label, 10.0 * unit + k) for unit in range(3) for k, label in enumerate(labels)]
    honest = pd.DataFrame(rows, columns=["unit", "time", "y"]).astype({"time": object})
    other = honest.copy()
    times = list(other["time"])
    times[1] = written  # the first donor's second label
    other["time"] = pd.Series(times, dtype=object)
    options: dict[str, Any] = {"unit": "unit", "time": "time", "outcome": "y", "periods": periods, "repeated": "mean"}
    one, two = (Donors.from_long(table, **options) for table in (honest, other))
    np.testing.assert_array_equal(one.values[1:], two.values[1:])
    assert np.isfinite(two.values[1:]).sum() == np.isfinite(one.values[1:]).sum() > 0


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "duckdb"])
def test_a_table_of_any_library_is_read_as_a_frame_of_pandas(kind: str) -> None:
    import duckdb
    import polars
    import pyarrow

    columns: dict[str, Any] = {
        "unit": [2**60, 2**60, 2**60 + 1, 2**60 + 1, None],  # floats would merge these
        "time": [dt.date(2020, 1, 1), dt.date(2020, 2, 1)] * 2 + [dt.date(2020, 1, 1)],
        "x": [1.0, 2.0, 3.0, None, 5.0],
    }
    arrow = pyarrow.table(columns)
    frame = pd.DataFrame(columns | {"unit": pd.array(columns["unit"], dtype="Int64")})
    relation = duckdb.sql("FROM arrow")
    table = {"pandas": frame, "polars": polars.DataFrame(columns), "arrow": arrow, "duckdb": relation}[kind]
    made = Donors.from_long(table, unit="unit", time="time", outcome="x", periods="2020-01..2020-02")
    np.testing.assert_array_equal(made.values, [[1.0, 2.0], [3.0, np.nan]])
    assert list(map(str, made.labels)) == [str(2**60), str(2**60 + 1)]
    assert made.custodian_diagnostics()["rows_without_unit"] == 1
    with pytest.raises(PanelError, match=r"there is no column 'who'\. The columns are \['unit', 'time', 'x'\]"):
        Donors.from_long(table, unit="who", time="time", outcome="x")

    one_column = pd.DataFrame({"unit": ["a", "b"], "2001": [1, 2], "2002": [3.0, 4.5]})
    others: dict[str, Any] = {"pandas": one_column, "polars": polars.from_pandas(one_column)}
    wide = others.get(kind, pyarrow.table(one_column))
    np.testing.assert_array_equal(Donors.from_wide(wide, unit="unit").values, [[1.0, 3.0], [2.0, 4.5]])


def test_a_table_that_arrow_cannot_turn_into_a_frame_is_not_quoted() -> None:
    class Broken:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ValueError(f"bad cell {TEXT}")

    with pytest.raises(PanelError, match="the table cannot be read") as caught:
        Donors.from_long(Broken(), unit="unit", time="time", outcome="x")
    assert not told("".join(traceback.format_exception(caught.value)))
