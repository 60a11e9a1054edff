"""Which period of a calendar a label stands for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd

from dpsc.data import calendars
from dpsc.data.dates import Every, Written, read
from dpsc.data.periods import Positions

Place = Callable[[Any, Written | None], int]


def places(labels: Iterable[Any], index: pd.Index[Any], time_format: str | None = None) -> Positions:
    """Return the position of each label among periods, -1 if it is none of them; nothing is refused.

    Any date in a month, quarter, ISO week or year belongs to it, so that days may give a cell of a month. A label
    is read by itself, so that what one donor writes does not change how others are read.

    Examples
    --------
    >>> places(["2022-02-15", "Jan 2022", 202203, "total"], calendars.calendar(["2022-01", "2022-02"])).tolist()
    [1, 0, -1, -1]
    """
    place = finder(index)
    return np.array([place(label, read(label, time_format)) for label in labels], dtype=np.intp)


def finder(index: pd.Index[Any]) -> Place:
    """Return a function that finds a label, which was read, among periods."""
    every = calendars.frequency(index)
    if isinstance(index, pd.DatetimeIndex):
        return _in_hours(index)
    if every in ("year", "number") or pd.api.types.is_numeric_dtype(index):
        return _in_numbers(index, dated=every == "year")
    if every is not None:
        return _in_calendar(index, every)  # type: ignore[arg-type]
    if isinstance(index, pd.PeriodIndex):
        return _in_periods(index)
    known: dict[Hashable, int] = {str(period).strip(): position for position, period in enumerate(index)}
    return lambda label, written: -1 if is_missing(label) else known.get(str(label).strip(), -1)


def _in_calendar(index: pd.Index[Any], every: Every) -> Place:
    """Find what is as long as a period of the calendar, or shorter; a week in dates that are a week apart, too."""
    known = {key_of(every, read(period).first): position for position, period in enumerate(index)}  # type: ignore[union-attr]

    def place(label: Any, written: Written | None) -> int:
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


def key_of(every: Every, day: date) -> tuple[Any, ...]:
    """Return what all days of one period have in common."""
    if every == "day":
        return ("day", day.toordinal())
    if every == "week":
        return ("week", *day.isocalendar()[:2])
    if every == "month":
        return ("month", day.year, day.month)
    return ("quarter", day.year, (day.month - 1) // 3)


def _in_numbers(index: pd.Index[Any], *, dated: bool) -> Place:
    """Find numbers, however they are written, and among years any date."""
    known = {_number(period): position for position, period in enumerate(index)}

    def place(label: Any, written: Written | None) -> int:
        number = _number(label)
        if number in known and number is not None:
            return known[number]
        return known.get(written.first.year, -1) if dated and written is not None else -1

    return place


def _number(label: Any) -> int | float | None:
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

    def place(label: Any, written: Written | None) -> int:
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


def is_missing(label: Any) -> bool:
    """Tell whether there is no label."""
    return label is None or label is pd.NaT or label is pd.NA or (isinstance(label, float) and label != label)
