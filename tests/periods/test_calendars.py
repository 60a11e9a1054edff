"""The same periods, however they are written: one calendar, on the custodian's side and on the analyst's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsc import PanelError
from dpsc.periods.calendar import calendar, frequency, holes, places, step, understood
from dpsc.periods.dates import period_name, read
from dpsc.periods.match import aligned, first_treated, matched, require_complete, same, typed_period


def dated(form: str, how: str = "end") -> Callable[[pd.PeriodIndex], Any]:
    return lambda periods: list(periods.to_timestamp(how=how).strftime(form))  # type: ignore[arg-type]


def by_day(freq: str) -> Callable[[pd.PeriodIndex], Any]:
    return lambda periods: pd.date_range(periods[0].start_time, periods=len(periods), freq=freq)


MONTHS: dict[str, Callable[[pd.PeriodIndex], Any]] = {
    "2022-01": dated("%Y-%m"),
    "2022/01": dated("%Y/%m"),
    "01/2022": dated("%m/%Y"),
    "202201": dated("%Y%m"),
    "202201, a number": lambda periods: [int(period.strftime("%Y%m")) for period in periods],
    "2022M01": dated("%YM%m"),
    "2022m1": lambda periods: [f"{period.year}m{period.month}" for period in periods],
    "Jan 2022": dated("%b %Y"),
    "jan2022": lambda periods: [period.strftime("%b%Y").lower() for period in periods],
    "January 2022": dated("%B %Y"),
    "2022 Jan": dated("%Y %b"),
    "2022-Jan": dated("%Y-%b"),
    "2022-01-31": dated("%Y-%m-%d"),
    "2022-01-01": dated("%Y-%m-%d", "start"),
    "2022-01-15": lambda periods: [period.strftime("%Y-%m-15") for period in periods],
    "2022-01-01 00:00:00": dated("%Y-%m-%d %H:%M:%S", "start"),
    "2022-01-01T00:00:00": dated("%Y-%m-%dT%H:%M:%S", "start"),
    "2022/01/31": dated("%Y/%m/%d"),
    "20220131": dated("%Y%m%d"),
    "31/01/2022": dated("%d/%m/%Y"),
    "01/31/2022": dated("%m/%d/%Y"),
    "31-01-2022": dated("%d-%m-%Y"),
    "31.01.2022": dated("%d.%m.%Y"),
    "01.01.2022": dated("%d.%m.%Y", "start"),
    "31 Jan 2022": dated("%d %b %Y"),
    "31jan2022": dated("%d%b%Y"),
    "31 January 2022": dated("%d %B %Y"),
    "January 31, 2022": dated("%B %d, %Y"),
    "month ends": by_day("ME"),
    "month starts": by_day("MS"),
    "last days of work": by_day("BME"),
    "first days of work": by_day("BMS"),
    "the last moment": lambda periods: periods.to_timestamp(how="end"),
    "in a zone": lambda periods: periods.to_timestamp().tz_localize("Europe/Berlin"),
    "dates": lambda periods: [period.end_time.date() for period in periods],
    "datetime64": lambda periods: periods.to_timestamp().to_numpy(),
    "PeriodIndex": lambda periods: periods,
    "Period objects": lambda periods: pd.Index(list(periods), dtype=object),
    "a category": lambda periods: pd.Categorical(periods.to_timestamp()),
}
QUARTERS: dict[str, Callable[[pd.PeriodIndex], Any]] = {
    "2022Q1": lambda periods: [str(period) for period in periods],
    "2022-Q1": lambda periods: [str(period).replace("Q", "-Q") for period in periods],
    "2022 q1": lambda periods: [str(period).replace("Q", " q") for period in periods],
    "Q1 2022": lambda periods: [f"Q{period.quarter} {period.year}" for period in periods],
    "1Q2022": lambda periods: [f"{period.quarter}Q{period.year}" for period in periods],
    "ends": dated("%d/%m/%Y"),
    "starts": by_day("QS"),
    "PeriodIndex": lambda periods: periods,
}
WEEKS: dict[str, Callable[[pd.PeriodIndex], Any]] = {
    "2022-W03": lambda periods: [period_name(period) for period in periods],
    "2022W3": lambda periods: ["{}W{}".format(*period.start_time.isocalendar()[:2]) for period in periods],
    "as pandas writes it": lambda periods: [str(period) for period in periods],
    "PeriodIndex": lambda periods: periods,
}
YEARS: dict[str, Callable[[pd.PeriodIndex], Any]] = {
    "2022": lambda periods: [period.year for period in periods],
    "2022.0": lambda periods: [float(period.year) for period in periods],
    "text": lambda periods: [str(period.year) for period in periods],
    "31 Dec 2022": dated("%d %b %Y"),
    "ends": by_day("YE"),
    "starts": by_day("YS"),
    "middle": lambda periods: [date(period.year, 6, 30) for period in periods],
    "PeriodIndex": lambda periods: periods,
    "a year that ends in June": lambda periods: pd.PeriodIndex(periods.year.astype(str), freq="Y-JUN"),
}
FAMILIES = {"M": MONTHS, "Q-DEC": QUARTERS, "W-SUN": WEEKS, "Y-DEC": YEARS}
FORMS = [(freq, form) for freq, forms in FAMILIES.items() for form in forms]


@pytest.mark.parametrize(("freq", "form"), FORMS)
def test_every_written_form_is_the_same_calendar(freq: str, form: str) -> None:
    periods = pd.period_range("2021-11-15", periods=17, freq=freq)
    expected = pd.Index(periods.year) if freq == "Y-DEC" else periods
    found = calendar(FAMILIES[freq][form](periods))
    assert found.equals(expected), found
    assert type(found) is type(expected)
    assert holes(found) == []


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_two_forms_of_the_same_periods_match(data: st.DataObject) -> None:
    """Also if one of them begins earlier, ends later or is in another order."""
    freq = data.draw(st.sampled_from(sorted(FAMILIES)))
    one, other = (data.draw(st.sampled_from(sorted(FAMILIES[freq]))) for _ in range(2))
    start = data.draw(st.dates(date(1950, 1, 1), date(2050, 1, 1)))
    length, offset, more = (data.draw(st.integers(*limits)) for limits in ((14, 30), (0, 5), (0, 5)))
    periods = pd.period_range(start, periods=length, freq=freq)
    longer = pd.period_range(periods[0] - offset, periods[-1] + more, freq=freq)
    order = data.draw(st.permutations(range(len(longer))))
    written = FAMILIES[freq][other](longer)
    match = matched([written[i] for i in order], calendar(FAMILIES[freq][one](periods)))
    assert match.positions.tolist() == [i - offset if 0 <= i - offset < length else -1 for i in order]
    assert (len(match.before), len(match.after), len(match.between)) == (offset, more, 0)
    assert len(match.notes) == (offset > 0) + (more > 0)


@pytest.mark.parametrize("freq", ["7D", "14D", "10D", "D", "B"])
@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d %b %Y"])
def test_regular_days_are_dates(freq: str, form: str) -> None:
    days = pd.date_range("2022-01-03", periods=40, freq=freq)
    expected = pd.PeriodIndex(days, freq="D")
    found = calendar(days.strftime(form))
    assert found.equals(expected)
    assert found.equals(calendar(days))
    assert [period_name(day) for day in found] == list(days.strftime("%Y-%m-%d"))
    assert step(found) == {"7D": 7, "14D": 14, "10D": 10, "D": 1, "B": 1}[freq]
    assert holes(found) == []


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["t1", "t2"], ["t1", "t2"]),
        (["2009-10", "2010-11", "2011-12"], ["2009-10", "2010-11", "2011-12"]),  # school years
        (["1998-1999", "1999-2000"], ["1998-1999", "1999-2000"]),
        (["FY1999", "FY2000"], ["FY1999", "FY2000"]),
        (["wave 2001", "wave 2002"], ["wave 2001", "wave 2002"]),
        ([1, 2, 3], [1, 2, 3]),
        (["08", "09", "10"], [8, 9, 10]),
        ([202212, 202213], [202212, 202213]),
        ([0.5, 1.0], [0.5, 1.0]),
        ([2**70, 2**70 + 1], [2**70, 2**70 + 1]),
    ],
)
def test_what_is_no_calendar_stays_what_it_is(labels: list[Any], expected: list[Any]) -> None:
    assert calendar(labels).tolist() == expected


def test_hours_stay_times() -> None:
    hours = pd.date_range("2022-10-30", periods=30, freq="h", tz="Europe/Berlin")
    assert calendar(hours).equals(hours)
    text = calendar(["2022-01-01 10:00", "2022-01-01 11:00"])
    assert text.equals(pd.DatetimeIndex(["2022-01-01 10:00", "2022-01-01 11:00"]))
    assert places(["2022-01-01 11:00", "2022-01-01"], text).tolist() == [1, -1]
    noon = calendar(pd.date_range("2022-01-01 12:00", periods=5, freq="D"))
    assert noon.equals(pd.period_range("2022-01-01", periods=5, freq="D"))


# Day or month first


def test_a_date_with_two_readings_is_refused_and_both_are_shown() -> None:
    unclear = ["01/02/2022", "01/03/2022", "01/12/2022"]
    with pytest.raises(PanelError, match=r"3 April if the day comes first, and 4 March .*%d/%m/%Y.*%m/%d/%Y") as caught:
        understood(unclear, "month", str, None)
    assert not any(label in str(caught.value) for label in unclear)  # the dates of a table may be donors'
    with pytest.raises(PanelError, match=r"pd\.to_datetime"):
        calendar(unclear)
    days, months = (understood(unclear, "month", str, form) for form in ("%d/%m/%Y", "%m/%d/%Y"))
    assert [period_name(month) for month in days] == ["2022-02", "2022-03", "2022-12"]
    assert [period_name(day) for day in months] == ["2022-01-02", "2022-01-03", "2022-01-12"]
    with pytest.raises(PanelError, match="mix dates"):
        calendar(["31/01/2022", "01/31/2022"])


def test_one_day_above_twelve_decides_for_the_whole_column() -> None:
    assert [period_name(day) for day in calendar(["03/04/2022", "13/04/2022"])] == ["2022-04-03", "2022-04-13"]
    assert [period_name(day) for day in calendar(["03/04/2022", "03/13/2022"])] == ["2022-03-04", "2022-03-13"]


def test_a_donors_label_is_read_by_itself() -> None:
    """A column whose donors decide how dates are read would let one donor change how all others count."""
    months = calendar(["2022-01", "2022-02", "2022-03", "2022-04"])
    assert places(["03/04/2022", "13/04/2022"], months).tolist() == [-1, -1]
    assert places(["03/04/2022", "13/04/2022"], months, "%d/%m/%Y").tolist() == [3, 3]
    assert places(["03/04/2022", "13/04/2022"], months, "%m/%d/%Y").tolist() == [2, -1]


def test_a_slip_among_dates_is_refused() -> None:
    with pytest.raises(PanelError, match=r"'2020-02-31' is not a date"):
        calendar(["2020-01-31", "2020-02-31", "2020-03-31"])
    with pytest.raises(PanelError, match="mix weeks"):
        calendar(["2020-W01", "2020-W02", "2020-01"])


def test_a_format_says_how_long_a_period_is() -> None:
    assert read("1/22", "%m/%y") == read("2022-01")
    assert read("22", "%y") == ("year", date(2022, 1, 1))
    assert read("31 12 22", "%d %m %y") == read("2022-12-31")


# A calendar with a hole


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["2022-03", "2022-04", "2022-05", "2022-06"], []),
        (["2022-02", "2022-03", "2022-04", "2022-06"], ["2022-05 is missing between 2022-04 and 2022-06"]),
        (
            ["31/01/2022", "28/02/2022", "31/03/2022", "31/07/2022", "31/08/2022"],
            ["2022-04 to 2022-06 are missing between 2022-03 and 2022-07"],
        ),
        (["2021Q3", "2021Q4", "2022Q2", "2022Q3"], ["2022Q1 is missing between 2021Q4 and 2022Q2"]),
        (["2020-W52", "2021-W01", "2021-W02", "2021-W03"], ["2020-W53 is missing between 2020-W52 and 2021-W01"]),
        ([1980, 1981, 1982, 1984], ["1983 is missing between 1982 and 1984"]),
        ([1970, 1980, 1990, 2000], []),
        ([1970, 1980, 1985, 1999], []),  # irregular
        (
            ["2022-01-03", "2022-01-10", "2022-01-17", "2022-01-31"],
            ["2022-01-24 is missing between 2022-01-17 and 2022-01-31"],
        ),
        (["a", "b", "d"], []),
    ],
)
def test_a_hole_is_named(labels: list[Any], said: list[str]) -> None:
    assert holes(calendar(labels)) == said


def test_many_holes_are_counted() -> None:
    days = pd.date_range("2022-01-01", periods=60).delete(range(5, 60, 7))
    named = holes(calendar(days))
    assert named[2:] == ["2022-01-20 is missing between 2022-01-19 and 2022-01-21", "there are 5 more holes"]


# A target and a release


RELEASE = calendar(["2022-01", "2022-02", "2022-03", "2022-04", "2022-06", "2022-07", "2022-08"])


def test_a_target_is_cut_completed_and_told_so() -> None:
    target = pd.Series(range(8), index=pd.date_range("2021-11-30", periods=8, freq="ME"), dtype=float)
    series, match = aligned(target, RELEASE)
    np.testing.assert_array_equal(series, [2, 3, 4, 5, 7, np.nan, np.nan])
    assert series.index.equals(RELEASE)
    assert match.notes == (
        "the target's 2021-11 and 2021-12, before the release begins, are left out",
        "the target's 2022-05, which the release does not have, is left out",
    )
    require_complete(series.iloc[:5])
    with pytest.raises(PanelError, match="no number in periods 2022-07 and 2022-08, before"):
        require_complete(series)
    with pytest.raises(PanelError, match="in periods 2022-01, 2022-02, 2022-03 and 4 more, before"):
        require_complete(series * np.nan)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["2022Q1", "2022Q2"], r"its periods are quarters \(2022Q1\), those of the release months"),
        ([2021, 2022], "its periods are years"),
        (["a", "b"], "its periods are labels"),
        (range(7), "its periods are numbers"),
        (pd.date_range("2022-01-03", periods=9, freq="7D"), "both in the period 2022-01; give one number for each"),
        (["2022-01", "Jan 2022"], "2022-01 twice"),
        (["2020-01", "2020-02"], r"the period 2020-01 is not in it, nor any other; .* from 2022-01 to 2022-08"),
        (["2022-W01", "2022-W02"], "its periods are weeks"),
    ],
)
def test_a_target_of_another_kind_is_refused(given: Any, problem: str) -> None:
    with pytest.raises(PanelError, match=problem):
        matched(given, RELEASE)


def test_days_between_dates_that_are_a_week_apart_are_refused() -> None:
    weekly = calendar(pd.date_range("2022-01-03", periods=9, freq="7D"))
    with pytest.raises(PanelError, match="the period 2022-01-04 is not in it"):
        matched(pd.date_range("2022-01-03", periods=20), weekly)


def test_a_calendar_of_days_does_not_take_months_for_their_first_day() -> None:
    days = calendar(pd.date_range("2022-01-01", periods=100))
    with pytest.raises(PanelError, match="its periods are months"):
        matched(["2022-01", "2022-02"], days)
    assert matched(["2022-01-01", "2022-02-01"], days).positions.tolist() == [0, 31]


def test_weeks_and_dates_a_week_apart_are_the_same_weeks() -> None:
    iso = calendar([f"2022-W{week:02d}" for week in range(1, 11)])
    for day in range(7):
        dates = calendar(pd.date_range("2022-01-03", periods=10, freq="7D") + pd.Timedelta(days=day))
        for one, other in ((iso, dates), (dates, iso)):
            match = matched(one, other)
            assert match.positions.tolist() == list(range(10))
            assert len(match.notes) == (day == 6)  # a Sunday may also begin a week: that is said, and sites differ
        assert same(iso, dates) == (day < 6)
        other_days = calendar(pd.date_range("2022-01-03", periods=10, freq="7D"))
        match = matched(other_days, dates)
        assert match.positions.tolist() == list(range(10))
        assert len(match.notes) == (day > 0)  # the week begins on Monday: that is said
    assert not same(iso, iso[1:])


def test_working_days_leave_out_weekends() -> None:
    work = calendar(pd.bdate_range("2022-01-03", periods=20))
    match = matched(pd.date_range("2022-01-03", periods=26), work)
    assert (match.positions >= 0).sum() == 20
    assert match.between[:2] == ["2022-01-08", "2022-01-09"]


def test_dates_belong_to_years() -> None:
    assert places(["2001-12-31", "2002", date(2000, 1, 1), 199901, "total"], calendar([2000, 2001, 2002])).tolist() == [
        1,
        2,
        0,
        -1,
        -1,
    ]
    assert frequency(calendar([1, 2])) == "number"
    assert places(["2001-12-31"], calendar([1, 2])).tolist() == [-1]


# The intervention


@pytest.mark.parametrize(
    "typed",
    [
        "2022-03", "March 2022", "mar 2022", "202203", "2022M3", "31/03/2022", "03/31/2022", "2022-03-15", "03/03/2022",
        "15.03.2022", pd.Timestamp("2022-03-15"), date(2022, 3, 1), pd.Period("2022-03"), np.datetime64("2022-03-09"),
        202203,
    ],
)  # fmt: skip
def test_a_treatment_time_is_understood(typed: Any) -> None:
    assert first_treated(RELEASE, typed) == 2
    if isinstance(typed, str):
        assert typed_period(typed, RELEASE, None) == pd.Period("2022-03")


def test_a_treatment_time_with_two_meanings_is_refused_unless_it_is_said_how_it_is_written() -> None:
    with pytest.raises(PanelError, match="can be 4 March 2022 or 3 April 2022"):
        typed_period("04/03/2022", RELEASE, None)
    with pytest.raises(PanelError, match="can be 4 March 2022 or 3 April 2022"):
        first_treated(RELEASE, "04/03/2022")
    assert typed_period("04/03/2022", RELEASE, "%d/%m/%Y") == pd.Period("2022-03")
    assert typed_period("2022-03", RELEASE, "%d/%m/%Y") == pd.Period("2022-03")


@pytest.mark.parametrize("typed", ["2022-05", "2021-12", "2022-09-01", "2022Q1", "2022"])
def test_a_treatment_time_that_is_not_there_is_refused_with_the_range(typed: str) -> None:
    with pytest.raises(PanelError, match=r"2022-01|is between the periods 2022-04 and 2022-06"):
        typed_period(typed, RELEASE, None)


def test_years_weeks_and_quarters_take_a_day_in_them() -> None:
    assert typed_period("31/12/2001", calendar([2000, 2001]), None) == 2001
    assert period_name(typed_period("2022-01-20", calendar(["2022-W02", "2022-W03"]), None)) == "2022-W03"
    assert period_name(typed_period("Feb 2022", calendar(["Q1 2022", "Q2 2022"]), None)) == "2022Q1"
    weekly = calendar(["2022-01-10", "2022-01-17", "2022-01-24"])
    assert period_name(typed_period("2022-W03", weekly, None)) == "2022-01-17"
