"""Periods that are declared beforehand and not read off the donors, whose rows would tell which periods there are."""

from __future__ import annotations

from contextlib import suppress

import pandas as pd

from dpsc.errors import PanelError, Parameter
from dpsc.periods import calendar
from dpsc.periods.dates import in_order, plain
from dpsc.types import PeriodsLike, Times

LARGEST = 100_000  # periods of a range, so that a slip of the pen does not fill the memory
HOW = (
    "write a range such as 2022-01..2024-12, 1980..1987, 2020Q1..2021Q4 or 2022-W01..2022-W52, several of them with "
    "commas, or give a list"
)
PERIODS = Parameter("periods", "2022-01..2024-12")


def declared(periods: PeriodsLike, time_format: str | None = None) -> Times:
    """Return declared periods in the order of time.

    Parameters
    ----------
    periods : str or list
        ``"2022-01..2024-12"`` (both ends included; years or other whole numbers, quarters, months, ISO weeks, days),
        several ranges or periods with commas between, or a list of periods.
    time_format : str, optional
        How dates are written in the table, for example ``%d/%m/%Y``; periods that are not written so are understood as
        people usually write them.

    Examples
    --------
    >>> declared("2021-11..2022-01").strftime("%Y-%m").tolist()
    ['2021-11', '2021-12', '2022-01']
    >>> declared("1980..1982,1985").tolist()
    [1980, 1981, 1982, 1985]
    """
    try:
        if time_format is not None:
            with suppress(PanelError):
                return _declared(periods, time_format)
        return _declared(periods, None)
    except (ValueError, TypeError, ArithmeticError):
        raise PanelError(f"{Parameter('periods')} cannot be read: {HOW}.") from None


def _declared(periods: PeriodsLike, time_format: str | None) -> Times:
    if isinstance(periods, str):
        return _ranges(periods, time_format)
    if not pd.api.types.is_list_like(periods):
        raise PanelError(f"{Parameter('periods')}: {HOW}.")
    values = periods if isinstance(periods, pd.Index) else list(periods)
    if len(values) and all(isinstance(value, str) for value in values):
        index = calendar.understood(list(values), "periods", lambda i: f"period number {i + 1}", time_format)
    else:
        index = calendar.calendar(values)
    if isinstance(index, pd.PeriodIndex) and not index.freqstr.startswith(("Q", "M", "W", "D")):
        raise PanelError(f"{Parameter('periods')}: periods by the hour are given as times.")
    if not len(index) or not index.is_unique:
        raise PanelError(f"{Parameter('periods')} must be different periods, at least one.")
    return plain(index[in_order(index)]).rename("time")


def _ranges(text: str, time_format: str | None) -> Times:
    """Return the periods of ranges, or of single periods beside them, with commas between."""
    if ".." not in text and "," in text:
        return _declared([part.strip() for part in text.split(",")], time_format)
    parts = [part if ".." in part else f"{part}..{part}" for part in text.split(",")]
    indexes = [_range(part, time_format) for part in parts]
    if len({(type(index), getattr(index, "freqstr", "")) for index in indexes}) > 1:
        raise PanelError(f"{Parameter('periods')} {text!r} has ranges of different kinds.")
    index = indexes[0].append(indexes[1:])
    if not index.is_unique:
        raise PanelError(f"{Parameter('periods')} {text!r} has a period twice.")
    if len(index) > LARGEST:
        raise PanelError(f"{Parameter('periods')} {text!r} has more than {LARGEST:,} periods.")
    return index[in_order(index)]


def _range(text: str, time_format: str | None) -> Times:
    ends = [end.strip() for end in text.split("..")]
    cannot = PanelError(f"{Parameter('periods')} {text!r} cannot be read: {HOW}.")
    if len(ends) != 2 or not all(ends):
        raise cannot
    index, known = calendar.recognised(ends, "time", time_format, "periods")
    if known[0] is None or known[1] is None:
        if not pd.api.types.is_integer_dtype(index):
            raise cannot
        first, last = index.tolist()
    else:
        if known[0].every != known[1].every or known[0].every == "moment":
            raise cannot
        index = calendar.periods_of(known[0].every, [written.first for written in known if written is not None])
        first, last = calendar.ordinals(index).tolist()
    if first > last:
        raise PanelError(f"{Parameter('periods')} {text!r} ends before it begins.")
    if last - first >= LARGEST:
        raise PanelError(f"{Parameter('periods')} {text!r} has more than {LARGEST:,} periods.")
    if isinstance(index, pd.PeriodIndex):
        return pd.period_range(index[0], index[1], freq=index.freqstr, name="time")
    return pd.Index(range(first, last + 1), name="time")
