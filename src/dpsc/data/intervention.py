"""The first treated period, as somebody names it."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from dpsc.data import calendars
from dpsc.data.dates import AS_WRITTEN, Written, period_name, read, year_last
from dpsc.data.matching import kind
from dpsc.data.placing import finder, is_missing
from dpsc.errors import PanelError, Parameter, TableError


def typed_period(text: str, index: pd.Index[Any], time_format: str | None, name: str = "treatment_time") -> Any:
    """Find the period that the user typed; a day in a month means the month, and one that is not there is refused."""
    it = Parameter(name, repr(text), repr(text))
    position = _position(text, index, time_format, it, ", or say how dates are written, for example {as_written}.")
    if position >= 0:
        return index[position]
    dated = calendars.frequency(index) not in (None, "number", "year")
    if dated and not _readings(text, time_format):
        raise TableError(f"{{it}} is not a date that can be read; write it as {period_name(index[0])}.", it=it)
    raise TableError(
        f"{{it}} is not one of the periods, which run from {period_name(index[0])} to {period_name(index[-1])}. "
        "Name the first treated period itself.",
        it=it,
    )


def first_treated(index: pd.Index[Any], treatment_time: Any) -> int:
    """Return the position of the first period at or after ``treatment_time`` in an ordered index.

    A day in a month means that month. A date or number between two periods means the next period; a label must be one
    of the labels.

    Examples
    --------
    >>> first_treated(pd.Index([1970, 1980, 1990]), 1985)
    2
    >>> first_treated(calendars.calendar(["2022-01", "2022-02", "2022-03"]), "15 Feb 2022")
    1
    """
    where = f"the periods run from {period_name(index[0])} to {period_name(index[-1])}"
    it = Parameter("treatment_time", repr(treatment_time), repr(treatment_time))
    position = _position(treatment_time, index, None, it, f"; {where}.")
    if position >= 0:
        return position
    if isinstance(index[0], str) or isinstance(index, pd.CategoricalIndex):
        raise PanelError(f"treatment time {treatment_time!r} is not one of the periods; {where}.")
    try:
        value = _same_kind(index, treatment_time)
        inside = bool(index[0] <= value <= index[-1])  # False for NaT
        position = int(index.searchsorted(value, side="left")) if inside else -1
    except (TypeError, ValueError, ArithmeticError):
        why = f"{treatment_time!r} is not of the same kind as the periods ({kind(index)})"
    else:
        if inside:
            return position
        why = f"{treatment_time} is too early or too late"
    if isinstance(index, pd.PeriodIndex) and _is_unreadable(treatment_time):
        why = f"{treatment_time!r} is not a date that can be read"
    raise PanelError(f"treatment time {why}; {where}.")


def _position(value: Any, index: pd.Index[Any], time_format: str | None, it: Parameter, ending: str) -> int:
    """Return the position of a period that somebody typed, -1 if it is none; refuse one with two meanings.

    ``ending`` is how that refusal ends.
    """
    place = finder(index)
    readings = _readings(value, time_format)
    try:
        found = {place(value, written) for written in readings} or {place(value, None)}
    except (TypeError, ValueError, ArithmeticError):
        return -1
    if len(found) > 1:
        one, other = (f"{written.first.day} {written.first:%B %Y}" for written in readings)
        raise PanelError(
            f"{{it}} can be {one} or {other}; write it as {period_name(index[max(found)])}{ending}",
            it=it, as_written=AS_WRITTEN,
        )  # fmt: skip
    return found.pop()


def _readings(value: Any, time_format: str | None) -> list[Written]:
    """Return the ways in which a typed date can be read: two if it does not show whether the day comes first."""
    if is_missing(value) or pd.api.types.is_list_like(value):
        return []
    ways = [read(value, time_format)] if time_format is not None and isinstance(value, str) else []
    if not any(ways):
        ways = [read(value)] if year_last(value) is None else [read(value, None, first) for first in (True, False)]
    return [way for way in ways if way is not None]


def _is_unreadable(value: Any) -> bool:
    """Whether it is text that is neither a date nor a year."""
    return isinstance(value, str) and not value.strip().isdigit() and not _readings(value, None)


def _same_kind(index: pd.Index[Any], value: Any) -> Any:
    """Return a typed time as something that can be compared with the periods."""
    if isinstance(index, pd.DatetimeIndex):
        stamp = _stamp(value)
        return stamp.tz_localize(index.tz) if index.tz is not None and stamp.tz is None else stamp
    if pd.api.types.is_numeric_dtype(index):
        if isinstance(value, int | np.integer):
            return int(value)
        readings = _readings(value, None) if calendars.frequency(index) == "year" else []
        number = float(readings[0].first.year) if readings else float(value)
        if not np.isfinite(number):
            raise ValueError
        return int(number) if number.is_integer() else number
    if isinstance(index, pd.PeriodIndex):
        if isinstance(value, int | np.integer) and not isinstance(value, bool) and 1 <= value <= 9999:
            value = date(int(value), 1, 1)  # a year
        readings = _readings(value, None)
        return pd.Period(readings[0].first if readings else _stamp(value), freq=index.freqstr)
    if type(index[0]) is date:
        return _stamp(value).date()
    return value


def _stamp(value: Any) -> pd.Timestamp:
    if isinstance(value, int | float | np.number):
        raise TypeError
    return pd.Timestamp(value.start_time if isinstance(value, pd.Period) else value)
