"""Periods: putting them in order, and finding the first treated one.

Times may be integers, floats, strings, ``datetime``/``Timestamp`` or ``Period``. They are never converted
to another kind, so results carry the caller's own labels.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from dpsc.errors import PanelError

_MONTH_NAME = re.compile(r"\b(jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)([a-z]*)\b", re.IGNORECASE)
_YEAR_LAST = re.compile(r"^\d{1,2}\D+(\d{1,2}\D+)?\d{4}$")


def as_index(times: Any, name: str = "time") -> pd.Index[Any]:
    """Turn unique times into an index of one kind, or say which kinds are mixed.

    Examples
    --------
    >>> as_index(["9", "10"])
    Index(['9', '10'], dtype='str', name='time')
    """
    index: pd.Index[Any] = pd.Index(times, name=name)
    if index.hasnans:
        raise PanelError(f"column {name!r} has missing times; every row needs a period.")
    if isinstance(index, pd.MultiIndex):
        raise PanelError("times must be single labels, not a MultiIndex.")
    if pd.api.types.is_bool_dtype(index) or isinstance(index, pd.IntervalIndex):
        raise PanelError(f"times of kind {index.dtype} cannot be ordered; use numbers, strings or dates.")
    if index.dtype == object:
        kinds = sorted({type(value).__name__ for value in index})
        if len(kinds) > 1:
            raise PanelError(
                f"the times mix kinds ({', '.join(kinds)}); convert them to one kind, "
                "for example with pd.to_datetime or astype(str)."
            )
        if isinstance(index[0], pd.Period):
            return pd.PeriodIndex(index, name=name)
    return pd.Index(index)


def in_order(index: pd.Index[Any]) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return the positions that sort the times.

    Strings are sorted naturally, numbers inside them by value: ``"t2"`` before ``"t10"``. Strings whose
    alphabetical order is not their order in time (month names, dates with the year last) are refused.

    Examples
    --------
    >>> in_order(as_index(["t10", "t2", "t1"])).tolist()
    [2, 1, 0]
    """
    if not _holds_strings(index):
        try:
            return np.asarray(index.argsort(), dtype=np.intp)
        except TypeError:
            raise PanelError(f"times of kind {index.dtype} cannot be put in order.") from None
    labels = [str(label) for label in index]
    unordered = next((s for s in labels if _MONTH_NAME.search(s) or _YEAR_LAST.match(s.strip())), None)
    if unordered is not None:
        raise PanelError(
            f"the period label {unordered!r} does not sort in time order as text; convert the times first, "
            "for example with pd.to_datetime(..., format=...) or pd.PeriodIndex(...)."
        )
    keys = [_natural_key(label) for label in labels]
    return np.asarray(sorted(range(len(labels)), key=keys.__getitem__), dtype=np.intp)


def first_treated(index: pd.Index[Any], treatment_time: Any) -> int:
    """Return the position of the first period at or after ``treatment_time`` in an ordered index.

    A date or number between two periods means the next period; a string must be one of the labels.

    Examples
    --------
    >>> first_treated(pd.Index([1970, 1980, 1990]), 1985)
    2
    """
    where = f"the panel runs from {index[0]} to {index[-1]}"
    if _holds_strings(index):
        matches = np.flatnonzero(np.asarray(index == str(treatment_time)))
        if not matches.size:
            raise PanelError(f"treatment time {treatment_time!r} is not one of the periods; {where}.")
        return int(matches[0])
    try:
        value = _same_kind(index, treatment_time)
        position = int(index.searchsorted(value, side="left"))
    except (TypeError, ValueError):
        raise PanelError(
            f"treatment time {treatment_time!r} is not of the same kind as the periods ({index.dtype}); {where}."
        ) from None
    if value < index[0] or value > index[-1]:
        raise PanelError(f"treatment time {treatment_time} is outside the panel; {where}.")
    return position


def _holds_strings(index: pd.Index[Any]) -> bool:
    return isinstance(index[0], str)


def _natural_key(label: str) -> list[tuple[int, int, str]]:
    parts = re.split(r"(\d+)", label)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]


def _same_kind(index: pd.Index[Any], value: Any) -> Any:
    if isinstance(index, pd.PeriodIndex):
        return value if isinstance(value, pd.Period) else pd.Period(value, freq=index.freqstr)
    if isinstance(index, pd.DatetimeIndex):
        if isinstance(value, int | float):
            raise TypeError
        stamp = pd.Timestamp(value.start_time if isinstance(value, pd.Period) else value)
        return stamp.tz_localize(index.tz) if index.tz is not None and stamp.tz is None else stamp
    if pd.api.types.is_numeric_dtype(index):
        number = float(value)
        if not np.isfinite(number):
            raise ValueError
        return int(number) if number.is_integer() else number
    return value
