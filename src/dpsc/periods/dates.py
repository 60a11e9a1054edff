"""What people write for one period: a day, week, month, quarter or year, in any of the usual ways.

:func:`read` is the only place that understands a label; what a whole set of them is, :mod:`dpsc.periods.calendar` says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from dpsc.errors import Parameter, TableError
from dpsc.types import Label

AS_WRITTEN = Parameter("time_format", "'%d/%m/%Y'")
Every = Literal["moment", "day", "week", "month", "quarter", "year"]
"""How long a period is; a moment is a time of day."""


class Written(NamedTuple):
    """A period as somebody wrote it: how long it is, and its first day (of a moment, the time by the local clock)."""

    every: Every
    first: date


def read(label: Label, time_format: str | None = None, day_first: bool | None = None) -> Written | None:
    """Understand one label; None if it is not a date. It never depends on other labels.

    Parameters
    ----------
    label
        Text, a number such as 202201 or 20220131, or a date of any kind. A year alone is a number and not read here.
    time_format : str, optional
        How text and numbers are written; nothing else is then understood.
    day_first : bool, optional
        Whether 03/04/2022 is in April or in March. Unknown, a date with the month as a number and the year last is not
        read, except with dots, where the day comes first everywhere.

    Examples
    --------
    >>> read("Jan 2022") == read("2022-01") == read("2022M01") == read(202201)
    True
    >>> read("31/01/2022"), read("31/01/2022", day_first=True)
    (None, Written(every='day', first=datetime.date(2022, 1, 31)))
    """
    try:
        if isinstance(label, str | int | float | np.number) and not isinstance(label, bool | np.bool_ | np.timedelta64):
            text = (label if isinstance(label, str) else _digits(label)).strip().lower()
            if time_format is not None:
                return _formatted(text, time_format)
            return _written(text, day_first)
        return _dated(label)
    except (ValueError, TypeError, ArithmeticError, AttributeError):
        return None


def _digits(number: Any) -> str:
    return str(int(number)) if float(number).is_integer() else ""


def _formatted(text: str, time_format: str) -> Written:
    moment = datetime.strptime(text, time_format)
    codes = set(re.findall(r"%[-#]?([a-zA-Z])", time_format))
    if codes & set("HIMSfcX"):
        return _moment(moment)
    if codes & set("djuwaAxDF"):
        return Written("day", moment.date())
    return Written("month" if codes & set("mbBh") else "year", moment.date())


def _dated(label: Any) -> Written | None:
    """Read a date, a time or a pandas period."""
    if isinstance(label, pd.Period):
        kind, start = label.freqstr, label.start_time
        fixed: dict[str, Every] = {"Q-DEC": "quarter", "M": "month", "W-SUN": "week", "D": "day", "B": "day"}
        if kind in fixed:
            return Written(fixed[kind], start.date())
        if kind.startswith("Y"):
            return Written("year", date(label.year, 1, 1))
        if kind.startswith("W-"):
            return Written("day", label.end_time.date())  # such weeks are dated by their last day
        return _moment(start.to_pydatetime(warn=False))
    if type(label) is date:
        return Written("day", label)
    stamp = pd.Timestamp(label)
    return None if pd.isna(stamp) else _moment(stamp.to_pydatetime(warn=False))


def _moment(moment: datetime) -> Written:
    """Read a time by what the clock on the wall shows; midnight is the whole day."""
    moment = moment.replace(tzinfo=None)
    if (moment.hour, moment.minute, moment.second, moment.microsecond) == (0, 0, 0, 0):
        return Written("day", moment.date())
    return Written("moment", moment)


_NAMES = "january february march april may june july august september october november december"
_MONTHS = {name[:long]: k for k, name in enumerate(_NAMES.split(), start=1) for long in (3, len(name))} | {"sept": 9}
_BETWEEN = r"[ \-/_.,]*"


def _day(year: str, month: str, day: str) -> Written:
    number = int(month) if month.isdigit() else _MONTHS[month]
    return Written("day", date(int(year), number, int(day)))


def _month(year: str, month: str) -> Written:
    return Written("month", _day(year, month, "1").first)


def _quarter(year: str, quarter: str) -> Written:
    return Written("quarter", date(int(year), 3 * int(quarter) - 2, 1))


def _week(year: str, week: str) -> Written:
    return Written("week", date.fromisocalendar(int(year), int(week), 1))


def _time(text: str) -> Written:
    return _moment(pd.Timestamp(text).to_pydatetime(warn=False))


def _from_to(first: str, last: str) -> Written:
    """Read a week as pandas writes it; one that does not begin on a Monday is dated by its last day."""
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    if end - start != timedelta(days=6):
        raise ValueError
    return Written("week", start) if start.weekday() == 0 else Written("day", end)


_PATTERNS: list[tuple[str, Callable[..., Written]]] = [
    (r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})", _day),
    (r"(?P<text>\d{4}-\d{1,2}-\d{1,2}[ t]\d{1,2}:\d{2}\S*)", _time),
    (r"(?P<year>\d{4})[-/](?P<month>\d{1,2})", _month),
    (r"(?P<year>(?:1[89]|2[01])\d{2})(?P<month>\d{2})", _month),
    (r"(?P<year>(?:1[89]|2[01])\d{2})(?P<month>\d{2})(?P<day>\d{2})", _day),
    (r"(?P<year>\d{4})[- ]?m(?P<month>\d{1,2})", _month),
    (r"(?P<month>\d{1,2})[-/](?P<year>\d{4})", _month),
    (rf"(?P<month>[a-z]{{3,}}){_BETWEEN}(?P<year>\d{{4}})", _month),
    (rf"(?P<year>\d{{4}}){_BETWEEN}(?P<month>[a-z]{{3,}})", _month),
    (r"(?P<year>\d{4})[- /]?q(?P<quarter>[1-4])", _quarter),
    (r"q(?P<quarter>[1-4])[- /]?(?P<year>\d{4})", _quarter),
    (r"(?P<quarter>[1-4])q[- /]?(?P<year>\d{4})", _quarter),
    (r"(?P<year>\d{4})[- ]?w(?P<week>\d{1,2})", _week),
    (r"w(?P<week>\d{1,2})[- /](?P<year>\d{4})", _week),
    (rf"(?P<day>\d{{1,2}}){_BETWEEN}(?P<month>[a-z]{{3,}}){_BETWEEN}(?P<year>\d{{4}})", _day),
    (r"(?P<month>[a-z]{3,})[. ]+(?P<day>\d{1,2})[ ,]+(?P<year>\d{4})", _day),
    (r"(?P<year>\d{4})[- ](?P<month>[a-z]{3,})[- ](?P<day>\d{1,2})", _day),
    (r"(?P<first>\d{4}-\d\d-\d\d)/(?P<last>\d{4}-\d\d-\d\d)", _from_to),
]
_WAYS = [(re.compile(pattern), meaning) for pattern, meaning in _PATTERNS]
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})")


def _written(text: str, day_first: bool | None) -> Written | None:
    year_last = _YEAR_LAST.fullmatch(text)
    if year_last:
        one, mark, other, year = year_last.groups()
        if day_first is None and mark != ".":
            return None
        return _day(year, one, other) if day_first is False else _day(year, other, one)
    for pattern, meaning in _WAYS:
        found = pattern.fullmatch(text)
        if found:
            try:
                return meaning(**found.groupdict())
            except KeyError:  # a word that is not the name of a month
                return None
    return None


def year_last(label: Label) -> tuple[int, int] | None:
    """Return the two numbers in front of the year, of which one is the day and the other the month."""
    found = _YEAR_LAST.fullmatch(label.strip()) if isinstance(label, str) else None
    return None if found is None or found[2] == "." else (int(found[1]), int(found[3]))


def require_format(time_format: str) -> None:
    """Refuse a way of writing dates that cannot be understood."""
    try:
        pd.to_datetime(["2000"], format=time_format, errors="coerce")
        datetime.strptime(datetime(2000, 1, 1).strftime(time_format), time_format)
    except (ValueError, TypeError):
        raise TableError(
            f"{{it}} {time_format!r} is not a way of writing dates; for example {{as_written}}.",
            it=Parameter("time_format"), as_written=AS_WRITTEN,
        ) from None  # fmt: skip


def period_name(label: Label) -> str:
    """Write a period as people do: no time if it is midnight, ISO weeks, quarters with a dash.

    Examples
    --------
    >>> [period_name(pd.Period("2024-01-17", freq=freq)) for freq in ("M", "Q", "W", "D")]
    ['2024-01', '2024-Q1', '2024-W03', '2024-01-17']
    """
    if isinstance(label, pd.Period):
        if label.freqstr == "W-SUN":
            year, week, _ = label.start_time.date().isocalendar()
            return f"{year:04d}-W{week:02d}"
        return str(label).replace("Q", "-Q")
    return str(label).removesuffix(" 00:00:00")
