"""Periods: their order, and the first treated one."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsc import PanelError
from dpsc.periods.calendar import calendar
from dpsc.periods.dates import as_index, in_order
from dpsc.periods.match import first_treated, typed_period
from dpsc.types import Label

IN_ORDER: dict[str, list[Any]] = {
    "int": [8, 9, 10, 11],
    "float": [0.5, 1.0, 1.5, 10.0],
    "int and float": [0.5, 1, 1.5, 10],
    "digits": ["8", "9", "10", "11"],
    "digits with blanks": [" 8", "9", " 10", "11"],
    "negative digits": ["-2", "-1", "0", "1"],
    "decimal digits": ["0.25", "0.5", "1", "1.25"],
    "long digits": ["20000101120000123", "20000101120000124", "20000101120000125"],
    "numbered": ["t2", "t9", "t10", "t100"],
    "leading zeros": ["w08", "w09", "w10", "w11"],
    "iso": ["1999-12-31", "2000-01-01", "2000-01-02"],
    "quarters": ["1999Q4", "2000Q1", "2000Q2"],
    "fiscal years": ["FY1999", "FY2000", "FY2001"],
    "school years": ["1998-1999", "1999-2000", "2000-2001"],
    "odd digits": ["1", "2", "²"],
    "endless digits": ["t1", "t2", "t" + "9" * 5000],
    "datetime": [dt.datetime(1999, 12, 31), dt.datetime(2000, 1, 1), dt.datetime(2000, 1, 2)],
    "date": [dt.date(1999, 12, 31), dt.date(2000, 1, 1), dt.date(2000, 1, 2)],
    "Timestamp": list(pd.date_range("1999-12-31", periods=3)),
    "tz": list(pd.date_range("1999-12-31", periods=3, tz="Europe/Paris")),
    "datetime64": list(np.array(["1999", "2000", "2001"], dtype="M8[Y]")),
    "Period": list(pd.period_range("1999Q4", periods=3, freq="Q")),
    "Timedelta": list(pd.to_timedelta([1, 2, 10], unit="D")),
    "Decimal": [Decimal(8), Decimal(9), Decimal(10)],
}


@pytest.mark.parametrize("as_objects", [False, True])
@pytest.mark.parametrize("kind", IN_ORDER)
def test_shuffled_times_are_sorted(kind: str, as_objects: bool) -> None:
    times = IN_ORDER[kind]
    shuffled = times[1:][::-1] + times[:1]
    index = as_index(pd.Index(shuffled, dtype=object) if as_objects else shuffled)
    assert list(index[in_order(index)]) == times


@pytest.mark.parametrize("kind", IN_ORDER)
def test_each_kind_finds_its_own_treatment_time(kind: str) -> None:
    times = IN_ORDER[kind]
    assert [first_treated(as_index(times), time) for time in times] == list(range(len(times)))


@settings(deadline=None)
@given(st.lists(st.integers(-(10**20), 10**20), min_size=1, unique=True))
def test_digits_sort_as_their_numbers(numbers: list[int]) -> None:
    index = as_index([str(number) for number in numbers])
    assert [int(label) for label in index[in_order(index)]] == sorted(numbers)


@settings(deadline=None)
@given(st.lists(st.text(), min_size=1, unique=True))
def test_any_text_is_put_in_order_or_refused(labels: list[str]) -> None:
    try:
        order = in_order(as_index(labels))
    except PanelError:
        return
    assert sorted(order.tolist()) == list(range(len(labels)))


@pytest.mark.parametrize(
    "labels",
    [
        ["01/02/2000", "02/02/2000"],
        ["1.2.2000", "2.2.2000"],
        ["01-2000", "02-2000"],
        ["1/2/99", "2/2/99"],
        ["Q1 2000", "Q2 2000"],
        ["Jan", "Feb"],
        ["January 2000", "February 2000"],
        ["2000-Jan", "2000-Feb"],
        ["jan2000", "feb2000"],
        ["dec_2000", "jan_2001"],
        ["31dec2000", "31jan2001"],
        ["janvier 2000", "mars 2000"],
        ["Mon", "Tue"],
    ],
)
def test_text_whose_order_is_not_time_is_refused(labels: list[str]) -> None:
    with pytest.raises(PanelError, match="does not sort in time order"):
        in_order(as_index(labels))


@pytest.mark.parametrize("labels", [["decade 9", "decade 10"], ["mark 1", "mark 2"], ["Monitor 1", "Monitor 2"]])
def test_words_that_begin_like_a_month_are_not_months(labels: list[str]) -> None:
    assert in_order(as_index(labels)).tolist() == [0, 1]


def test_ordered_categories_keep_the_callers_order() -> None:
    index = as_index(pd.Categorical(["Mar", "Jan", "Feb"], categories=["Jan", "Feb", "Mar", "Apr"], ordered=True))
    assert list(index[in_order(index)]) == ["Jan", "Feb", "Mar"]
    assert first_treated(index[in_order(index)], "Mar") == 2
    with pytest.raises(PanelError, match="not one of the periods"):
        first_treated(index[in_order(index)], "Apr")


@pytest.mark.parametrize("ordered", [False, True])
def test_categories_in_alphabetical_order_sort_like_their_labels(ordered: bool) -> None:
    index = as_index(pd.Categorical(["9", "10", "11"], ordered=ordered))
    assert list(index[in_order(index)]) == ["9", "10", "11"]


def test_categories_of_dates_take_a_date_as_text() -> None:
    assert first_treated(as_index(pd.Categorical(pd.date_range("2000", periods=3))), "2000-01-02") == 1


@pytest.mark.parametrize("dtype", ["timestamp[ns][pyarrow]", "date32[pyarrow]"])
def test_arrow_dates_are_dates(dtype: str) -> None:
    pytest.importorskip("pyarrow")
    dates: pd.Series[Any] = pd.Series(pd.date_range("2000", periods=3), dtype=dtype)
    assert first_treated(as_index(dates), "2000-01-02") == 1


@pytest.mark.parametrize(
    "times",
    [
        [1, "2", 3],
        [1, True, 3],
        [pd.Timestamp("2000"), 3],
        [pd.Period("2000", "Y"), pd.Period("2001Q1", "Q")],
        [pd.Timestamp("2000"), pd.Timestamp("2000", tz="UTC")],
        [1, None],
        [1.0, np.nan],
        [pd.NaT],
        [True, False],
        [1j, 2j],
        [(1, 2), (3, 4)],
        [[1], [2]],
        pd.MultiIndex.from_tuples([(1, 2), (3, 4)]),
        pd.interval_range(0, 3),
        [[1, 2], [3, 4]],
        3,
        "abc",
        np.ones((2, 2)),
    ],
)
def test_times_without_one_order_are_refused(times: Any) -> None:
    with pytest.raises(PanelError):
        in_order(as_index(times))


DATES = pd.date_range("2000-01-01", periods=4)
QUARTERS = pd.period_range("2000Q1", periods=6, freq="Q")


@pytest.mark.parametrize(
    ("index", "treatment_time", "position"),
    [
        (pd.Index([1970, 1980, 1990]), "1980", 1),
        (pd.Index([1970, 1980, 1990]), np.int64(1980), 1),
        (pd.Index([2**60, 2**60 + 1, 2**60 + 2]), 2**60 + 1, 1),
        (pd.Index(["1999", "2000", "2001"]), 2000, 1),
        (DATES, dt.date(2000, 1, 3), 2),
        (DATES, dt.datetime(2000, 1, 3), 2),
        (DATES, np.datetime64("2000-01-03"), 2),
        (DATES, pd.Period("2000-01-03", "D"), 2),
        (DATES.tz_localize("UTC"), "2000-01-03", 2),
        (DATES.tz_localize("UTC"), pd.Timestamp("2000-01-03 01:00", tz="Europe/Paris"), 2),
        (QUARTERS, "2000Q3", 2),
        (QUARTERS, "2000-08-15", 2),
        (pd.Index([dt.date(2000, 1, 1), dt.date(2000, 1, 2)]), "2000-01-02", 1),
    ],
)
def test_a_treatment_time_is_found(index: pd.Index[Any], treatment_time: Any, position: int) -> None:
    assert first_treated(index, treatment_time) == position


@pytest.mark.parametrize(
    ("index", "typed", "said"),
    [
        (calendar(["2024-10-28", "2024-11-04", "2024-11-11"]), "2024-11-05", "2024-11-04 and 2024-11-11"),
        (calendar(["2022-03", "2022-04", "2022-06"]), "May 2022", "2022-04 and 2022-06"),
        (pd.Index([1970, 1980, 1990]), 1985, "1980 and 1990"),
        (pd.Index([0.5, 1.5, 2.5]), 1, "0.5 and 1.5"),
        (DATES, "2000-01-02 12:00", "2000-01-02 and 2000-01-03"),
        (DATES.tz_localize("UTC"), pd.Timestamp("2000-01-03 00:30", tz="Europe/Paris"), "2000-01-02 .* and 2000-01-03"),
    ],
)
def test_a_date_between_two_periods_is_refused_and_both_are_named(
    index: pd.Index[Any], typed: Label, said: str
) -> None:
    with pytest.raises(PanelError, match=f"is between the periods {said}"):
        first_treated(index, typed)
    if isinstance(typed, str):
        with pytest.raises(PanelError, match=f"is between the periods {said}"):
            typed_period(typed, index, None)


@pytest.mark.parametrize(
    "treatment_time",
    [None, "x", "", np.nan, np.inf, pd.NaT, pd.NA, [1], np.array([1, 2]), {}, object(), 1j, 10**400, -1, 10**9, b"x"],
)
@pytest.mark.parametrize("kind", IN_ORDER)
def test_a_treatment_time_that_means_nothing_is_refused(kind: str, treatment_time: Any) -> None:
    if str(treatment_time) in IN_ORDER[kind]:
        return
    with pytest.raises(PanelError, match=r"periods, which run from|must be one period|a date that can be read"):
        first_treated(as_index(IN_ORDER[kind]), treatment_time)
