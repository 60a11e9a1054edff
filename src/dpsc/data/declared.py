"""Periods that are declared beforehand and not read off the donors, whose rows would tell which periods there are."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dpsc.data import dates
from dpsc.data.columns import is_number
from dpsc.data.periods import Positions, as_index, in_order, plain
from dpsc.errors import PanelError, Parameter

LARGEST = 100_000  # periods of a range, so that a slip of the pen does not fill the memory
HOW = "write a range such as 2022-01..2024-12, 1980..1987 or 2020Q1..2021Q4, or give a list"
PERIODS = Parameter("periods", "'2022-01..2024-12'")


def declared(periods: Any, time_format: str | None = None) -> pd.Index[Any]:
    """Return declared periods in the order of time.

    Parameters
    ----------
    periods : str or list
        ``"2022-01..2024-12"`` (both ends included; years or other whole numbers, months, days, quarters), or a list of
        periods.
    time_format : str, optional
        How dates are written, for example ``%d/%m/%Y``.

    Examples
    --------
    >>> declared("2021-11..2022-01").strftime("%Y-%m").tolist()
    ['2021-11', '2021-12', '2022-01']
    """
    try:
        return _declared(periods, time_format)
    except (ValueError, TypeError, ArithmeticError):
        raise PanelError(f"{{it}} cannot be read: {HOW}.", it=Parameter("periods")) from None


def _declared(periods: Any, time_format: str | None) -> pd.Index[Any]:
    if isinstance(periods, str):
        return _range(periods, time_format)
    if not pd.api.types.is_list_like(periods):
        raise PanelError(f"{{it}}: {HOW}.", it=Parameter("periods"))
    values = list(periods)
    if values and all(isinstance(value, str) for value in values):
        values = list(dates.understood(values, "periods", lambda i: f"period number {i + 1}", time_format))
    elif isinstance(periods, pd.Index):
        values = periods  # type: ignore[assignment]
    index = as_index(values)
    if isinstance(index, pd.PeriodIndex) and not index.freqstr.startswith(("Y", "Q", "M", "D")):
        raise PanelError("{it}: periods by the week or the hour are given as dates.", it=Parameter("periods"))
    if not len(index) or not index.is_unique:
        raise PanelError("{it} must be different periods, at least one.", it=Parameter("periods"))
    return plain(index[in_order(index)])


def _range(text: str, time_format: str | None) -> pd.Index[Any]:
    ends = [end.strip() for end in text.split("..")]
    if len(ends) != 2 or not all(ends):
        raise PanelError(f"{{it}} {text!r} cannot be read: {HOW}.", it=Parameter("periods"))
    first, last = dates.understood(ends, "periods", lambda i: f"end number {i + 1} of the range", time_format)
    if isinstance(first, str | pd.Period) != isinstance(last, str | pd.Period) or isinstance(first, str):
        raise PanelError(f"{{it}} {text!r} cannot be read: {HOW}.", it=Parameter("periods"))
    if first > last:
        raise PanelError(f"{{it}} {text!r} ends before it begins.", it=Parameter("periods"))
    if isinstance(first, pd.Period):
        index: pd.Index[Any] = pd.period_range(first, last, freq="Q", name="time")
    elif isinstance(first, pd.Timestamp):
        days = "%d" in time_format if time_format else bool(re.match(r"^\d{4}-\d{1,2}-\d", ends[0]))
        index = pd.date_range(first, last, freq="D" if days else "MS", name="time")
    else:
        if last - first >= LARGEST:
            raise PanelError(f"{{it}} {text!r} has more than {LARGEST:,} periods.", it=Parameter("periods"))
        index = pd.Index(range(int(first), int(last) + 1), name="time")
    return index


def places(labels: Iterable[Any], index: pd.Index[Any], time_format: str | None = None) -> Positions:
    """Return the position of each label among declared periods, -1 if it is none of them; nothing is refused.

    Any date in a declared month or quarter belongs to it, so that rows by day are averaged by month.
    """
    key = partial(_key, index=index, time_format=time_format, months=_are_months(index))
    known = {key(period, time_format=None): position for position, period in enumerate(index)}
    known.pop(None, None)
    return np.array([known.get(key(label), -1) for label in labels], dtype=np.intp)


def _are_months(index: pd.Index[Any]) -> bool:
    return isinstance(index, pd.DatetimeIndex) and len(index) > 1 and bool(index.is_month_start.all())


def _key(label: Any, *, index: pd.Index[Any], time_format: str | None, months: bool) -> Hashable:
    """Return what all ways of writing one period have in common, or None for what is no such period."""
    if label is None or label is pd.NaT:
        return None
    try:
        if isinstance(index, pd.PeriodIndex):
            if isinstance(label, pd.Period) and label.freqstr == index.freqstr:
                return label.ordinal
            if isinstance(label, str) and re.match(r"^\s*\d{4}-?[Qq][1-4]\s*$", label):
                return pd.Period(label.strip().replace("-", "").upper(), freq=index.freqstr).ordinal
            return pd.Period(_moment(label, time_format), freq=index.freqstr).ordinal
        if isinstance(index, pd.DatetimeIndex):
            moment = _moment(label, time_format)
            if moment.tzinfo is not None:  # what the clock on the wall shows, where periods have no zone
                moment = moment.astimezone(UTC) if index.tz is not None else moment.replace(tzinfo=None)
            elif index.tz is not None:
                moment = pd.Timestamp(moment).tz_localize(index.tz).to_pydatetime().astimezone(UTC)
            return (moment.year, moment.month) if months else moment
        if pd.api.types.is_numeric_dtype(index):
            return float(label) if not isinstance(label, bool) and is_number(str(label)) else None
        return str(label).strip() if label is not None else None
    except (ValueError, TypeError, ArithmeticError):
        return None


def _moment(label: Any, time_format: str | None) -> datetime:
    """Return a date as people write it: text, a number such as 202201, or a date of any kind."""
    if isinstance(label, str | int | float | np.number) and not isinstance(label, bool):
        text = str(label).strip().removesuffix(".0")
        if time_format is not None:
            return datetime.strptime(text, time_format)
        if re.match(r"^\d{6}$", text):
            return datetime(int(text[:4]), int(text[4:]), 1)
        parts = re.match(r"^(\d{4})-(\d{1,2})(?:-(\d{1,2}))?$", text)
        if parts:
            return datetime(int(parts[1]), int(parts[2]), int(parts[3] or 1))
        if not isinstance(label, str):
            raise ValueError
        return datetime.fromisoformat(text)
    if isinstance(label, pd.Period):
        label = label.start_time
    return pd.Timestamp(label).to_pydatetime(warn=False)
