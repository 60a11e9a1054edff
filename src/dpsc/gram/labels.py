"""Periods in a JSON file: their kind is kept, and what is read is checked."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from typing import Any

import pandas as pd

from dpsc.checks import is_printable
from dpsc.errors import ReleaseError
from dpsc.gram.contents import LARGEST_T

_FIXED_OFFSET = re.compile(r"UTC([+-][01][0-9]:[0-5][0-9])?")


def periods_to_json(times: pd.Index[Any]) -> dict[str, Any]:
    """Return what a file says about periods: their kind, name and labels."""
    name = None if times.name is None else str(times.name)
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


def periods_from_json(periods: dict[str, Any]) -> pd.Index[Any]:
    """Read them back, or refuse what is not a list of sensible labels."""
    kind, values, name = periods["kind"], periods["values"], periods["name"]
    _require(isinstance(values, list) and 1 <= len(values) <= LARGEST_T, f"there are not 1 to {LARGEST_T} periods")
    _require(name is None or isinstance(name, str), "the name of the periods is not text")
    kinds: dict[Any, type] = {"integer": int, "number": float}
    wanted = kinds.get(kind, str)
    _require(all(type(v) is wanted and _sensible(v) for v in values), "the periods are of an unknown kind")
    times = _index(kind, values, periods)
    _require(not times.hasnans, "a period is missing")
    return times.rename(name)


def _index(kind: str, values: list[Any], periods: dict[str, Any]) -> pd.Index[Any]:
    if kind == "period":
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
    return is_printable(value) if isinstance(value, str) else -(2**63) <= value < 2**63  # False for NaN


def _known_zone(name: str) -> bool:
    """Tell names of time zones from paths of files, which pandas would open."""
    return _FIXED_OFFSET.fullmatch(name) is not None or name in zoneinfo.available_timezones()


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ReleaseError(f"{problem}; the file is not valid.")
