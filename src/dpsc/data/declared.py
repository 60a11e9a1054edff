"""Periods that are declared beforehand and not read off the donors, whose rows would tell which periods there are."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
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
    """Return the position of each label among declared periods, -1 if it is none of them; nothing is refused."""
    known = {_key(period, index, None): position for position, period in enumerate(index)}
    if isinstance(index, pd.DatetimeIndex) and all(stamp.is_month_start for stamp in index):  # months, however dated
        known |= {(period + pd.offsets.MonthEnd(0)).value: position for position, period in enumerate(index)}
    return np.array([known.get(_key(label, index, time_format), -1) for label in labels], dtype=np.intp)


def _key(label: Any, index: pd.Index[Any], time_format: str | None) -> Hashable:
    """Return what two ways of writing one period have in common, or None for what is no such period."""
    text = label.strip() if isinstance(label, str) else str(label)
    try:
        if isinstance(index, pd.PeriodIndex):
            return pd.Period(text.replace("-", "").upper(), freq=index.freqstr).ordinal
        if isinstance(index, pd.DatetimeIndex):
            if isinstance(label, str | int | float | np.number):
                whole = text.removesuffix(".0")
                shape = time_format or ("%Y%m" if re.match(r"^\d{6}$", whole) else "ISO8601")
                label = pd.to_datetime(whole, format=shape)
            stamp = pd.Timestamp(label)
            return (stamp if stamp.tz is not None or index.tz is None else stamp.tz_localize(index.tz)).value
        if pd.api.types.is_numeric_dtype(index):
            return float(text) if is_number(text) and not isinstance(label, bool) else None
    except (ValueError, TypeError, ArithmeticError):
        return None
    return text
