"""Periods in a JSON file: a calendar with its frequency and first period, or labels; what is read is checked.

Files of earlier versions list dates one by one. They are recognised as the calendars that they are.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from typing import Any

import numpy as np
import pandas as pd

from dpsc.checks import LONGEST_NAME, is_printable
from dpsc.data import calendars
from dpsc.data.dates import Every, period_name, read
from dpsc.errors import DpscError, ReleaseError
from dpsc.gram.contents import LARGEST_T

_EVERY = ("year", "quarter", "month", "week", "day")
_LONGEST_STEP = 10_000
_FIXED_OFFSET = re.compile(r"UTC([+-][01][0-9]:[0-5][0-9])?")


def periods_to_json(times: pd.Index[Any]) -> dict[str, Any]:
    """Return what a file says about periods: a calendar, or their kind and labels; always their name."""
    name = None if times.name is None else str(times.name)
    every = calendars.frequency(times)
    if every in _EVERY:
        return {"kind": "calendar", "name": name, "every": every, **_course(times)}
    if isinstance(times, pd.PeriodIndex):
        return {"kind": "period", "name": name, "freq": times.freqstr, "values": [str(t) for t in times]}
    if isinstance(times, pd.DatetimeIndex):
        zone = None if times.tz is None else str(times.tz)
        if zone is not None and not _known_zone(zone):
            raise ReleaseError(
                f"the time zone {zone} has no name that others know; use one such as Europe/Berlin or UTC."
            )
        return {"kind": "datetime", "name": name, "tz": zone, "values": [t.isoformat() for t in times]}
    if pd.api.types.is_integer_dtype(times):
        return {"kind": "integer", "name": name, "values": [int(t) for t in times]}
    if pd.api.types.is_float_dtype(times):
        return {"kind": "number", "name": name, "values": [float(t) for t in times]}
    if all(isinstance(t, str) for t in times):
        return {"kind": "text", "name": name, "values": [str(t) for t in times]}
    if all(type(t) is datetime.date for t in times):
        return {"kind": "date", "name": name, "values": [t.isoformat() for t in times]}
    raise ReleaseError(f"periods of kind {times.dtype} cannot be stored; use numbers, text, dates or pandas periods.")


def _course(times: pd.Index[Any]) -> dict[str, Any]:
    """Return the first period, the number of periods and the step between them; all periods if it is not regular."""
    step = 1 if len(times) == 1 else calendars.step(times)
    if step is None or (np.diff(calendars.ordinals(times)) != step).any():
        return {"values": [period_name(time) for time in times]}
    return {"first": period_name(times[0]), "step": step, "length": len(times)}


def periods_from_json(periods: dict[str, Any]) -> pd.Index[Any]:
    """Read them back, or refuse what is not a list of sensible labels."""
    kind, name = periods["kind"], periods["name"]
    _require(name is None or isinstance(name, str), "the name of the periods is not text")
    if kind == "calendar":
        return _calendar(periods).rename(name)
    values = periods["values"]
    _require(isinstance(values, list) and 1 <= len(values) <= LARGEST_T, f"there are not 1 to {LARGEST_T} periods")
    kinds: dict[Any, type] = {"integer": int, "number": float}
    wanted = kinds.get(kind, str)
    _require(all(type(v) is wanted and _sensible(v) for v in values), "the periods are of an unknown kind")
    times = _index(kind, values, periods)
    _require(not times.hasnans, "a period is missing")
    text = kind == "text"  # whose order is kept even if it is not that of time
    found = times if text and not _in_order(times) else calendars.calendar(times)
    return (found if found.is_unique else times).rename(name)


def _in_order(times: pd.Index[Any]) -> bool:
    try:
        return calendars.calendar(times).is_monotonic_increasing
    except (DpscError, TypeError):
        return False


def _calendar(periods: dict[str, Any]) -> pd.Index[Any]:
    """Read a calendar: a regular one, or one whose periods are listed."""
    every = periods["every"]
    _require(every in _EVERY, "the periods are of an unknown kind")
    if "values" in periods:
        values = periods["values"]
        _require(isinstance(values, list) and 1 <= len(values) <= LARGEST_T, f"there are not 1 to {LARGEST_T} periods")
        return calendars.periods_of(every, [_first_day(value, every) for value in values])
    step, length = periods["step"], periods["length"]
    _require(type(step) is int and 1 <= step <= _LONGEST_STEP, "the step between periods is wrong")
    _require(type(length) is int and 1 <= length <= LARGEST_T, f"there are not 1 to {LARGEST_T} periods")
    first = calendars.periods_of(every, [_first_day(periods["first"], every)])
    times = [first[0] + step * k for k in range(length)]
    last = times[-1] if every == "year" else times[-1].year
    _require(last <= 9999, "the periods end in no sensible year")
    return pd.Index(times) if every == "year" else pd.PeriodIndex(times)


def _first_day(value: Any, every: Every) -> datetime.date:
    """Return the first day of a period as we write it."""
    if every == "year":
        _require(type(value) is str and re.fullmatch(r"[0-9]{4}", value) is not None, "a year is wrong")
        return datetime.date(int(value), 1, 1)
    written = read(value) if type(value) is str and _sensible(value) else None
    _require(written is not None and written.every == every, "a period of the calendar is wrong")
    assert written is not None
    return written.first


def _index(kind: str, values: list[Any], periods: dict[str, Any]) -> pd.Index[Any]:
    if kind == "period":
        _require(_sensible(periods["freq"]), "the frequency is wrong")
        return pd.PeriodIndex(values, freq=periods["freq"])
    if kind == "datetime":
        zone = periods["tz"]
        _require(zone is None or (isinstance(zone, str) and _known_zone(zone)), "the time zone is not known")
        index = pd.DatetimeIndex(pd.to_datetime(values, utc=zone is not None, format="ISO8601"))
        return index if zone is None else index.tz_convert(zone)
    if kind == "date":
        return pd.Index([datetime.date.fromisoformat(v) for v in values], dtype=object)
    _require(kind in ("integer", "number", "text"), "the periods are of an unknown kind")
    plain: pd.Index[Any] = pd.Index(values)
    return plain


def _sensible(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_NAME and is_printable(value)
    return bool(-(2**63) <= value < 2**63)  # False for NaN


def _known_zone(name: str) -> bool:
    """Tell names of time zones from paths of files, which pandas would open."""
    return _FIXED_OFFSET.fullmatch(name) is not None or name in zoneinfo.available_timezones()


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ReleaseError(f"{problem}; the file is not valid.")
