"""Periods that are declared beforehand and not read off the donors, whose rows would tell which periods there are."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpsc.errors import DpscError, PanelError, Parameter
from dpsc.periods import calendar
from dpsc.periods.dates import Written, in_order, period_name, plain
from dpsc.types import PeriodsLike, Times

LARGEST = 100_000  # periods of a range, so that a slip of the pen does not fill the memory
HOW = (
    "write a range such as 2022-01..2024-12, 1980..1987, 2020Q1..2021Q4 or 2022-W01..2022-W52, dates with the step "
    "between them as in '2024-01-01..2024-12-30 by week', several ranges with commas, or give a list"
)
PERIODS = Parameter("periods", "2022-01..2024-12")
_BY = re.compile(r"\s+by\s+", re.IGNORECASE)
_STEP = re.compile(r"(?P<counts>\d+(?:-\d+)*)?\s*(?P<unit>(?:working )?[a-z]+?)?s?")
_COARSER = ("month", "quarter", "year")  # dates that are so far apart stand for these
WORKING_DAY = "working day"


class Step(NamedTuple):
    """How far it is from one period of a range to the next: one distance, or several in turn as in 4-4-5 weeks."""

    counts: tuple[int, ...]
    unit: str

    def __str__(self) -> str:
        if self.counts == (1,):
            return self.unit
        return f"{'-'.join(map(str, self.counts))} {self.unit}{'s' if self.unit else ''}".rstrip()


def declared(periods: PeriodsLike, time_format: str | None = None) -> Times:
    """Return declared periods in the order of time.

    Parameters
    ----------
    periods : str or list
        ``"2022-01..2024-12"`` (both ends included; years or other whole numbers, quarters, months, ISO weeks, days),
        several ranges or periods with commas between, or a list of periods. Periods that do not follow each other have
        a step after the range: ``by week``, ``by 2 weeks``, ``by 28 days``, ``by 4-4-5 weeks``, ``by working day``,
        ``by 10`` of years. The first period is the first of the range, the last one is not after its end. The ranges
        before it that have no step of their own have the same.
    time_format : str, optional
        How dates are written in the table, for example ``%d/%m/%Y``; periods that are not written so are understood as
        people usually write them.

    Examples
    --------
    >>> declared("2021-11..2022-01").strftime("%Y-%m").tolist()
    ['2021-11', '2021-12', '2022-01']
    >>> declared("1980..1982,1985").tolist()
    [1980, 1981, 1982, 1985]
    >>> declared("2024-01-01..2024-01-31 by week").strftime("%d %b").tolist()
    ['01 Jan', '08 Jan', '15 Jan', '22 Jan', '29 Jan']
    """
    try:
        if time_format is not None:
            with suppress(PanelError):
                return _declared(periods, time_format)
        return _declared(periods, None)
    except (ValueError, TypeError, ArithmeticError):
        raise PanelError(f"{Parameter('periods')} cannot be read: {HOW}.") from None


def declaration(times: Times) -> str:
    """Return what declares ordered periods: ranges with their step, or one by one if they are no regular calendar.

    Examples
    --------
    >>> declaration(declared("2024-01-01..2024-06-24 by week,2024-07-08..2024-12-30 by week"))
    '2024-01-01..2024-06-24,2024-07-08..2024-12-30 by week'
    """
    text, step = _range_of(times), rhythm(times)
    places = None if text is None else declared(text).get_indexer(times)
    if places is None or (places < 0).any():
        return ",".join(map(period_name, times))
    starts = [0, *(np.flatnonzero(np.diff(places) != 1) + 1), len(times)]
    ends = [(period_name(times[a]), period_name(times[b - 1])) for a, b in itertools.pairwise(starts)]
    ranges = ",".join(first if first == last else f"{first}..{last}" for first, last in ends)
    return ranges if step is None or ".." not in ranges else f"{ranges} by {step}"


def completed(times: Times) -> Times:
    """Return all periods from the first to the last, or these if they are no regular calendar."""
    text = _range_of(times)
    if text is None:
        return times
    whole, step = declared(text), rhythm(times)
    if not times.isin(whole).all():
        return times
    regular = calendar.holes(times) or step is not None
    return whole if len(whole) == len(times) or regular or len(whole) <= 1.5 * len(times) else times


def rhythm(times: Times) -> Step | None:
    """Return the step of ordered periods; None if each follows the one before, or if they are no regular calendar.

    Examples
    --------
    >>> str(rhythm(declared("2024-01-01..2024-12-23 by 4 weeks"))), rhythm(declared("2024-01..2024-12"))
    ('4 weeks', None)
    """
    every = calendar.frequency(times)
    if every is None or len(times) < 3:
        return None
    if calendar.are_working_days(times):
        return Step((1,), WORKING_DAY) if (np.diff(calendar.ordinals(times)) > 1).any() else None
    apart, unit = calendar.step(times), "" if every == "number" else every
    if apart is not None:
        weeks = every == "day" and apart % 7 == 0
        return None if apart == 1 else Step((apart // 7,), "week") if weeks else Step((apart,), unit)
    distances = np.diff(calendar.ordinals(times))
    in_turn = len(distances) > 3 and bool((distances[3:] == distances[:-3]).all())
    if every != "day" or not in_turn or (distances <= 0).any() or (distances % 7).any():
        return None
    return Step(tuple((distances[:3] // 7).tolist()), "week")


def _range_of(times: Times) -> str | None:
    """Return the range from the first to the last of ordered periods, with their step; None for labels and hours."""
    if not len(times) or calendar.frequency(times) is None:
        return None
    step = rhythm(times)
    text = f"{period_name(times[0])}..{period_name(times[-1])}{'' if step is None else f' by {step}'}"
    try:
        return text if calendar.frequency(declared(text)) == calendar.frequency(times) else None
    except DpscError:
        return None


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
        raise PanelError(
            f"{Parameter('periods')}: give hourly periods as dates with a time of day, not as pandas periods."
        )
    if not len(index) or not index.is_unique:
        raise PanelError(f"{Parameter('periods')} must be different periods, at least one.")
    return plain(index[in_order(index)]).rename("time")


def _ranges(text: str, time_format: str | None) -> Times:
    """Return the periods of ranges, or of single periods beside them, with commas between."""
    if ".." not in text and "," in text:
        return _declared([part.strip() for part in text.split(",")], time_format)
    indexes: list[Times] = []
    step: Step | None = None
    for part in reversed(text.split(",")):  # a step counts for the ranges before it, too
        ends, *by = _BY.split(part)
        if by:
            step = _step(by[0]) if len(by) == 1 and ".." in text else None
            if step is None:
                raise PanelError(f"{Parameter('periods')} {text!r} cannot be read: {HOW}.")
        one = ".." not in ends
        indexes.insert(0, _range(f"{ends}..{ends}" if one else ends, None if one else step, time_format))
    if len({(type(index), getattr(index, "freqstr", "")) for index in indexes}) > 1:
        raise PanelError(f"{Parameter('periods')} {text!r} has ranges of different kinds.")
    index = indexes[0].append(indexes[1:])
    if not index.is_unique:
        raise PanelError(f"{Parameter('periods')} {text!r} has a period twice.")
    if len(index) > LARGEST:
        raise PanelError(f"{Parameter('periods')} {text!r} has more than {LARGEST:,} periods.")
    return index[in_order(index)]


def _step(text: str) -> Step | None:
    """Read a step; None if it is none."""
    found = _STEP.fullmatch(text.strip().lower().replace("business day", WORKING_DAY))
    counts = tuple(map(int, (found["counts"] or "1").split("-"))) if found else ()
    if found is None or not any(found.groups()) or not all(0 < count < LARGEST for count in counts):
        return None
    return Step(counts, found["unit"] or "")


def _range(text: str, step: Step | None, time_format: str | None) -> Times:
    ends = [end.strip() for end in text.split("..")]
    cannot = PanelError(f"{Parameter('periods')} {text!r} cannot be read: {HOW}.")
    if len(ends) != 2 or not all(ends):
        raise cannot
    if re.fullmatch(r"\d{4}-?W53", ends[1].upper()) and date(int(ends[1][:4]), 12, 28).isocalendar().week == 52:
        raise PanelError(f"{Parameter('periods')} {text!r}: the year {ends[1][:4]} has 52 ISO weeks.")
    index, known = calendar.recognised(ends, "time", time_format, "periods")
    every: str = "number"
    if known[0] is None or known[1] is None:
        if not pd.api.types.is_integer_dtype(index):
            raise cannot
        every = str(calendar.frequency(index))
    else:
        if known[0].every != known[1].every or known[0].every == "moment":
            raise cannot
        index, every = _between([written for written in known if written is not None], step)
    first, last = calendar.ordinals(index).tolist()
    if first > last:
        raise PanelError(f"{Parameter('periods')} {text!r} ends before it begins.")
    if last - first >= LARGEST:
        raise PanelError(f"{Parameter('periods')} {text!r} has more than {LARGEST:,} periods.")
    chosen = _stepped(first, last, every, step)
    if chosen is None:
        raise PanelError(
            f"{Parameter('periods')} {text!r}: its periods are {every}s, so they cannot be taken by {step}."
        )
    if isinstance(index, pd.PeriodIndex):
        whole: Times = pd.period_range(index[0], index[1], freq=index.freqstr, name="time")
        return whole.take(np.asarray(chosen) - first)
    return pd.Index(chosen, name="time")


def _between(known: Sequence[Written], step: Step | None) -> tuple[Times, str]:
    """Return the ends of a range and what they are: dates that are months apart stand for months."""
    every = known[0].every
    if every == "day" and step is not None and step.unit in _COARSER:
        every = step.unit  # type: ignore[assignment]
    days: list[date] = [written.first for written in known]
    return calendar.periods_of(every, days), every


def _stepped(first: int, last: int, every: str, step: Step | None) -> list[int] | None:
    """Return the periods of a range, as whole numbers; None if such periods cannot go by that step."""
    if step is None:
        return list(range(first, last + 1))
    if step.unit == WORKING_DAY and every == "day" and step.counts == (1,):
        return [day for day in range(first, last + 1) if (day + 3) % 7 < 5]  # 1 January 1970, day 0, was a Thursday
    if step.unit not in ("", every) and (step.unit, every) != ("week", "day"):
        return None
    length = 7 if step.unit == "week" != every else 1
    found, distances = [first], itertools.cycle(step.counts)
    while (following := found[-1] + length * next(distances)) <= last:
        found.append(following)
    return found
