"""What a set of periods is, a calendar or labels, and which of its periods a label stands for.

Quarters, months, ISO weeks and days are a ``PeriodIndex`` (``Q-DEC``, ``M``, ``W-SUN``, ``D``); years are whole
numbers; weekly or other regular dates are days; hours stay a ``DatetimeIndex``. Whatever people write, the same months
are the same calendar. Only the labels of periods are looked at, never donors' values.
"""

from __future__ import annotations

import itertools
import math
import re
from calendar import monthrange
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pandas as pd

from dpsc.checks import is_decimal
from dpsc.errors import PanelError, Parameter, TableError
from dpsc.periods.dates import AS_WRITTEN, Every, Written, as_index, period_name, read, require_format, year_last
from dpsc.types import Integers, Label, PeriodsLike, Positions, Times

NameRow = Callable[[int], str]
TIME = Parameter("time")
_WHOLE = re.compile(r"-?\d+(\.0*)?")
_FREQUENCIES: dict[Every, str] = {"quarter": "Q-DEC", "month": "M", "week": "W-SUN", "day": "D"}
_FROM_SHORT: list[Every] = ["moment", "day", "week", "month", "quarter", "year"]
_MANY_HOLES = 3  # holes that are named; others are counted


def calendar(
    labels: PeriodsLike, name: str = "time", time_format: str | None = None, where: NameRow | None = None
) -> Times:
    """Return the periods that labels stand for, in the order of the labels.

    Parameters
    ----------
    labels
        All periods of one table or series; what kind of calendar it is follows from all of them.
    name : str
        Of the column.
    time_format : str, optional
        How dates are written, if the labels do not show it.
    where : callable, optional
        Names a label by its position, if it is a donor's and must not be quoted.

    Examples
    --------
    >>> calendar(["31/01/2022", "28/02/2022"]).equals(calendar(["Jan 2022", "Feb 2022"]))
    True
    >>> calendar(pd.to_datetime(["2021-12-31", "2022-12-31"])).tolist()
    [2021, 2022]
    """
    return recognised(labels, name, time_format, where=where)[0]


def recognised(
    labels: PeriodsLike,
    name: str = "time",
    time_format: str | None = None,
    column: str | None = None,
    where: NameRow | None = None,
) -> tuple[Times, list[Written | None]]:
    """Return the calendar of labels, and how each was read: as the day, month, ... that is written, None for others.

    ``column`` is where they are in a table, for messages; without it they are in a frame or a list. ``where`` names
    a label by its position, if it is a donor's and must not be quoted.
    """
    index = as_index(labels, name)
    unread: list[Written | None] = [None] * len(index)
    if isinstance(index, pd.CategoricalIndex) or not len(index) or not _may_be_dates(index):
        return index, unread
    values = index.tolist()
    if time_format is None:
        numbers = _numbers(index, values)
        if numbers is not None:
            return numbers.rename(name), unread
    known = all_read(values, time_format, column, where)
    return (index, unread) if known is None else (_of(known, index).rename(name), list(known))


def understood(
    labels: Sequence[Label], column: str, row_name: NameRow, time_format: str | None, *, private: bool = False
) -> Times:
    """Return the periods of a column of a table, or refuse what cannot be periods.

    Parameters
    ----------
    labels
        As the table writes them, in its order; a label may occur several times.
    column : str
        The column of the labels, for messages.
    row_name : callable
        Returns the name of a row, given the position of its label.
    time_format : str, optional
    private : bool
        Whether the labels are donors' and must not be quoted.
    """
    for position, label in enumerate(labels):
        if label is None or label == "" or label != label:
            raise TableError(f"{row_name(position)} has no period in column {column!r} ({TIME}).")
        decimals = label % 1 != 0 if isinstance(label, float) else isinstance(label, str) and _has_decimals(label)
        if decimals and (time_format is None or not isinstance(label, str)):
            raise TableError(
                f"column {column!r} ({TIME}) holds a number with decimals in {row_name(position)}; periods are "
                "whole numbers, dates or labels. Is it the right column?"
            )
    texts = [label.strip() for label in labels if isinstance(label, str)]
    if len(texts) == len(labels):
        labels, different = texts, set(texts)
        whole = sum(_WHOLE.fullmatch(text) is not None for text in different)
        if time_format is None and len(different) / 2 < whole < len(different):
            raise TableError(
                f"column {column!r} ({TIME}) holds whole numbers and, among its distinct values, something "
                "else; periods are whole numbers, dates or labels, all of one kind. Is it the right column?"
            )
    where: NameRow | None = (lambda position: f"the period of {row_name(position)}") if private else None
    return recognised(list(labels), column, time_format, column, where)[0]


def all_read(
    labels: Sequence[Label], time_format: str | None, column: str | None = None, where: NameRow | None = None
) -> list[Written] | None:
    """Read all labels of one set, or return None if they are not dates; if most are, all must be.

    Which of two numbers is the day is decided once for all of them: by one that is larger than 12.
    """
    if time_format is not None:
        require_format(time_format)
    day_first = _day_first(labels, column) if time_format is None else None
    known = [read(label, time_format, day_first) for label in labels]
    there = [written for written in known if written is not None]
    if len(there) == len(known):
        return None if _are_school_years(labels) else there
    if time_format is None and len(there) <= len(known) / 2:
        return None
    position = known.index(None)
    wrong = repr(str(labels[position])[:40]) if where is None else where(position)
    complaint = (
        "is not a date, though most periods are"
        if time_format is None
        else f"does not match {Parameter('time_format', time_format)}"
    )
    if column is None:
        raise PanelError(
            f"{'the period ' if where is None else ''}{wrong} {complaint}. Write dates as 2024-01-31, or "
            "convert them first, for example with pd.to_datetime(..., format=...)."
        )
    raise TableError(
        f"{wrong} in column {column!r} ({TIME}) {complaint}. Write dates as 2024-01-31, or say how they are "
        f"written, for example {AS_WRITTEN}."
    )


def frequency(index: Times) -> Every | Literal["number"] | None:
    """Return the kind of a calendar, None for labels and hours; numbers are years if all of them can be.

    Examples
    --------
    >>> frequency(calendar(["2022-W01", "2022-W02"])), frequency(pd.Index([1980, 1981])), frequency(pd.Index([1, 2]))
    ('week', 'year', 'number')
    """
    if isinstance(index, pd.PeriodIndex):
        return next((every for every, freq in _FREQUENCIES.items() if freq == index.freqstr), None)
    if pd.api.types.is_integer_dtype(index):
        return "year" if len(index) and index.min() >= 1500 and index.max() < 2200 else "number"
    return None


def ordinals(index: Times) -> Integers:
    """Return the periods of a calendar as whole numbers, one more for the next period."""
    whole = index.asi8 if isinstance(index, pd.PeriodIndex) else index
    return np.asarray(whole, dtype=np.int64)


def step(index: Times) -> int | None:
    """Return after how many days, months, ... an ordered calendar goes on, if most periods follow each other so."""
    if frequency(index) is None or len(index) < 2:
        return None
    distances = np.diff(ordinals(index))
    shortest = int(distances.min())
    if shortest <= 0 or (distances % shortest).any() or (distances == shortest).mean() <= 0.5:
        return None
    return shortest


def holes(index: Times) -> list[str]:
    """Say which periods an ordered calendar lacks; irregular dates and working days are a calendar as they are.

    Examples
    --------
    >>> holes(calendar(["2022-02", "2022-03", "2022-04", "2022-06"]))
    ['2022-05 is missing between 2022-04 and 2022-06']
    """
    regular = step(index)
    if regular is None or are_working_days(index):
        return []
    days = ordinals(index)
    found = []
    for position in np.flatnonzero(np.diff(days) > regular).tolist():
        before, after = index[position], index[position + 1]
        first, last = (period_name(edge) for edge in (before + regular, after - regular))
        one = f"{first} is" if first == last else f"{first} to {last} are"
        found.append(f"{one} missing between {period_name(before)} and {period_name(after)}")
    more = len(found) - _MANY_HOLES
    return found if more <= 0 else [*found[:_MANY_HOLES], f"there are {more} more holes"]


def _may_be_dates(index: Times) -> bool:
    if isinstance(index, pd.PeriodIndex):
        return index.freqstr in _FREQUENCIES.values() or index.freqstr.startswith(("Y", "W", "B"))
    kinds = (pd.api.types.is_integer_dtype, pd.api.types.is_float_dtype, pd.api.types.is_datetime64_any_dtype)
    return any(kind(index) for kind in kinds) or isinstance(index[0], str) or type(index[0]) is date


def _numbers(index: Times, values: list[Any]) -> Times | None:
    """Return whole numbers; None if they are something else, or if all of them can be months or days: 202201."""
    if isinstance(values[0], str):
        stripped = [value.strip() for value in values]
        if not all(_WHOLE.fullmatch(value) for value in stripped):
            return None
        values = [int(value.partition(".")[0]) for value in stripped]
    elif not pd.api.types.is_numeric_dtype(index):
        return None
    elif pd.api.types.is_float_dtype(index):
        if not all(math.isfinite(value) and value.is_integer() and abs(value) < 2**53 for value in values):
            return index
        values = [int(value) for value in values]
    if all(read(value) is not None for value in values):
        return None
    whole: Times = pd.Index(values)
    return whole if pd.api.types.is_integer_dtype(whole) else index  # beyond 64 bits they stay what they were


def _of(known: list[Written], index: Times) -> Times:
    """Return the calendar of periods that were all read."""
    everies = {written.every for written in known}
    if "week" in everies and len(everies) > 1:
        raise PanelError("the periods mix weeks with others; write all of them in one way.")
    if "moment" in everies:
        if len(everies) > 1 or not _once_a_day(known):
            return index if isinstance(index, pd.DatetimeIndex) else _moments(index, known)
        known, everies = [Written("day", date(w.first.year, w.first.month, w.first.day)) for w in known], {"day"}
    every = max(everies, key=_FROM_SHORT.index)
    days = [written.first for written in known]
    if every == "day":
        every = _every(days)
    return periods_of(every, days)


def periods_of(every: Every, days: Sequence[date]) -> Times:
    """Return the periods of one length in which the days lie."""
    if every == "year":
        return pd.Index([day.year for day in days], dtype=np.int64)
    return pd.PeriodIndex(np.array(days, dtype="M8[D]").astype("M8[s]"), freq=_FREQUENCIES[every])


def _once_a_day(known: list[Written]) -> bool:
    times = {written.first.time() for written in known if isinstance(written.first, datetime)}
    return len(times) == 1 and len({written.first.toordinal() for written in known}) == len(known)


def _moments(index: Times, known: list[Written]) -> Times:
    """Return hours that were written as text, with their zone if they name one."""
    try:
        return pd.DatetimeIndex(pd.to_datetime(index, format="ISO8601"))
    except (ValueError, TypeError):
        return pd.DatetimeIndex([written.first for written in known])


def _every(days: list[date]) -> Every:
    """Tell days from months, quarters and years that are dated by one of their days."""
    if len(set(days)) < 2:
        return "day"
    months = sorted({12 * day.year + day.month for day in days})
    left = [monthrange(day.year, day.month)[1] - day.day for day in days]
    latest = max(day.day for day in days)
    same = all(day.day == latest or (day.day < latest and rest == 0) for day, rest in zip(days, left, strict=True))
    # The first or last day of work is at most three days from the end of its month.
    if len(months) < len(set(days)) or not (same or latest <= 3 or max(left) <= 3):
        return "day"
    apart = math.gcd(*(later - earlier for earlier, later in itertools.pairwise(months)))
    return "year" if apart % 12 == 0 else "quarter" if apart % 3 == 0 else "month"


def are_working_days(index: Times) -> bool:
    """Tell whether ordered days, most of which follow each other, leave out every weekend."""
    return frequency(index) == "day" and step(index) == 1 and bool((np.asarray(index.day_of_week) < 5).all())  # type: ignore[attr-defined]


def _are_school_years(labels: Sequence[Label]) -> bool:
    """Tell 2009-10, 2010-11, ... from months."""
    found = [re.fullmatch(r"\s*(\d{4})[-/](\d\d)\s*", label) if isinstance(label, str) else None for label in labels]
    return len(found) > 1 and all(years and (int(years[1]) + 1) % 100 == int(years[2]) for years in found)


def _has_decimals(label: str) -> bool:
    return is_decimal(label.strip()) and _WHOLE.fullmatch(label.strip()) is None


def _day_first(labels: Sequence[Label], column: str | None) -> bool | None:
    """Tell whether the day or the month comes first in dates such as 31/01/2022; None if there are none."""
    pairs = [pair for pair in map(year_last, labels) if pair is not None]
    if not pairs:
        return None
    first, second = any(one > 12 for one, _ in pairs), any(other > 12 for _, other in pairs)
    if first != second:
        return first
    if first:
        problem = "mix dates with the day first (31/01/2022) and with the month first (01/31/2022)"
        remedy = "Write all of them in one way."
    else:
        problem = (
            "can be read in two ways: 03/04/2022, for example, is 3 April if the day comes first, and 4 March if the "
            "month does"
        )
        remedy = f"Say how they are written: {AS_WRITTEN} or {Parameter('time_format', '%m/%d/%Y')}."
    if column is None:
        remedy = remedy if first else "Convert them first, with pd.to_datetime(..., format='%d/%m/%Y') or '%m/%d/%Y'."
        raise PanelError(f"the dates {problem}. {remedy}")
    raise TableError(f"the dates in column {column!r} ({TIME}) {problem}. {remedy}")


Place = Callable[[Label, Written | None], int]


def places(labels: Iterable[Label], index: Times, time_format: str | None = None) -> Positions:
    """Return the position of each label among periods, -1 if it is none of them; nothing is refused.

    Any date in a month, quarter, ISO week or year belongs to it, so that days may give a cell of a month. A label
    is read by itself, so that what one donor writes does not change how others are read.

    Examples
    --------
    >>> places(["2022-02-15", "Jan 2022", 202203, "total"], calendar(["2022-01", "2022-02"])).tolist()
    [1, 0, -1, -1]
    """
    place = finder(index)
    return np.array([place(label, read(label, time_format)) for label in labels], dtype=np.intp)


def finder(index: Times) -> Place:
    """Return a function that finds a label, which was read, among periods; made once for each calendar in use."""
    return _finder(_Same(index))


@dataclass(frozen=True, eq=False)
class _Same:
    """A calendar that equals itself only, so that no labels need to be compared."""

    index: Times

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.index is other.index

    def __hash__(self) -> int:
        return id(self.index)


@lru_cache(maxsize=8)
def _finder(same: _Same) -> Place:
    index = same.index
    every = frequency(index)
    if isinstance(index, pd.DatetimeIndex):
        return _in_hours(index)
    if every in ("year", "number") or pd.api.types.is_numeric_dtype(index):
        return _in_numbers(index, dated=every == "year")
    if isinstance(index, pd.PeriodIndex):
        return _in_periods(index) if every is None or every == "number" else _in_calendar(index, every)
    known: dict[Hashable, int] = {str(period).strip(): position for position, period in enumerate(index)}
    return lambda label, written: -1 if is_missing(label) else known.get(str(label).strip(), -1)


def _in_calendar(index: pd.PeriodIndex, every: Every) -> Place:
    """Find what is as long as a period of the calendar, or shorter; a week in dates that are a week apart, too."""
    known = {key_of(every, start): position for position, start in enumerate(index.start_time.date)}

    def place(label: Label, written: Written | None) -> int:
        if written is None:
            return -1
        if written.every == "week" and every == "day":
            days = (known.get(("day", written.first.toordinal() + k), -1) for k in range(7))
            found = [position for position in days if position >= 0]
            return found[0] if len(found) == 1 else -1
        return known.get(key_of(every, written.first), -1) if fits(written.every, every) else -1

    return place


def fits(short: Every, long: Every) -> bool:
    """Tell whether a period is never longer than another and within one of them."""
    inside: dict[Every, int] = {"moment": 0, "day": 1, "month": 2, "quarter": 3, "year": 4}
    if "week" in (short, long):
        return short in ("moment", "day", "week") and long == "week"
    return inside[short] <= inside[long]


def key_of(every: Every, day: date) -> tuple[str | int, ...]:
    """Return what all days of one period have in common."""
    if every == "day":
        return ("day", day.toordinal())
    if every == "week":
        return ("week", *day.isocalendar()[:2])
    if every == "month":
        return ("month", day.year, day.month)
    return ("quarter", day.year, (day.month - 1) // 3)


def _in_numbers(index: Times, *, dated: bool) -> Place:
    """Find numbers, however they are written, and among years any date."""
    known = {_number(period): position for position, period in enumerate(index)}

    def place(label: Label, written: Written | None) -> int:
        number = _number(label)
        if number in known and number is not None:
            return known[number]
        return known.get(written.first.year, -1) if dated and written is not None else -1

    return place


def _number(label: Label) -> int | float | None:
    """Return a number exactly, however it is written; None for anything else."""
    if isinstance(label, bool | np.bool_):
        return None
    for kind_of_number in (int, float):
        try:
            return kind_of_number(str(label))
        except ValueError:
            continue
    return None


def _in_periods(index: pd.PeriodIndex) -> Place:
    """Find what lies in periods of another frequency, such as quarters of another year than the calendar's."""
    known = {period.ordinal: position for position, period in enumerate(index)}

    def place(label: Label, written: Written | None) -> int:
        if isinstance(label, pd.Period) and label.freqstr == index.freqstr:
            return known.get(label.ordinal, -1)
        if written is None or written.every not in ("moment", "day"):
            return -1
        return known.get(pd.Period(written.first, freq=index.freqstr).ordinal, -1)

    return place


def _in_hours(index: pd.DatetimeIndex) -> Place:
    """Find moments: in their zone if the periods have one, by the clock on the wall otherwise."""

    def key(label: Any, written: Written | None) -> Hashable:
        if written is None or written.every not in ("moment", "day"):
            return None
        first = written.first
        moment = first if isinstance(first, datetime) else datetime(first.year, first.month, first.day)
        if index.tz is None:
            return moment
        try:
            own = pd.Timestamp(label.strip() if isinstance(label, str) else label)
            own = pd.Timestamp(moment).tz_localize(index.tz) if own.tz is None else own
            return own.tz_convert(UTC).to_pydatetime(warn=False)
        except (ValueError, TypeError, ArithmeticError, AttributeError):
            return None

    known = {key(period, read(period)): position for position, period in enumerate(index)}
    known.pop(None, None)
    return lambda label, written: known.get(key(label, written), -1)


def is_missing(label: Label) -> bool:
    """Tell whether there is no label."""
    return label is None or label is pd.NaT or label is pd.NA or (isinstance(label, float) and label != label)
