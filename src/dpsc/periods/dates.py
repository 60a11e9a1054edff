"""Labels of periods: what one of them means, and the order of several.

:func:`read` is the only place that understands a label: a day, week, month, quarter or year, in any of the usual ways.
What a whole set of labels is, :mod:`dpsc.periods.calendar` says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from dpsc.errors import PanelError, Parameter, TableError, UnorderedError
from dpsc.types import Column, Label, PeriodsLike, Positions, Times

AS_WRITTEN = Parameter("time_format", "%d/%m/%Y")
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


def _digits(number: str | float | np.number) -> str:
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
            f"{Parameter('time_format')} {time_format!r} is not a way of writing dates; for example {AS_WRITTEN}."
        ) from None


def period_name(label: Label) -> str:
    """Write a period as people do: no time if it is midnight, ISO weeks, all else as pandas shows it in tables.

    Examples
    --------
    >>> [period_name(pd.Period("2024-01-17", freq=freq)) for freq in ("M", "Q", "W", "D")]
    ['2024-01', '2024Q1', '2024-W03', '2024-01-17']
    """
    if isinstance(label, pd.Period) and label.freqstr == "W-SUN":
        year, week, _ = label.start_time.date().isocalendar()
        return f"{year:04d}-W{week:02d}"
    return str(label).removesuffix(" 00:00:00")


_DAY_OR_MONTH_NAME = re.compile(
    r"(?<![a-z])(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?"
    r"|nov(ember)?|dec(ember)?|mon(day)?|tue(s?day)?|wed(nesday)?|thu(rsday)?|fri(day)?|sat(urday)?|sun(day)?)(?![a-z])",
    re.IGNORECASE,
)
_SHORT_YEAR_LAST = re.compile(r"^\d{1,2}([-/. ])\d{1,2}\1\d{2}$")
_YEAR_AT_THE_END = re.compile(r"^((?!.*\d{4}.*\d{4}$).*\D)(1[5-9]|20)\d\d$")


def as_index(times: PeriodsLike, name: str = "time") -> Times:
    """Turn unique times into an index of one kind, or say which kinds are mixed.

    Examples
    --------
    >>> as_index(["9", "10"])
    Index(['9', '10'], dtype='str', name='time')
    """
    try:
        index: Times = pd.Index(times, name=name, tupleize_cols=False).infer_objects()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise PanelError("times must be a list of single labels, one for each period.") from None
    if isinstance(index, pd.CategoricalIndex):
        index = index.remove_unused_categories()
        index = index if _has_own_order(index) else plain(index)
    if isinstance(index, pd.MultiIndex):
        raise PanelError("times must be single labels, not a MultiIndex.")
    if _any_missing(index):
        raise PanelError(f"column {name!r} has missing times; every row needs a period.")
    if index.dtype.kind in "bc" or isinstance(index, pd.IntervalIndex):
        raise PanelError(f"times of kind {index.dtype} cannot be ordered; use numbers, strings or dates.")
    if index.dtype == object:
        kinds = sorted({type(value).__name__ for value in index})
        if len(kinds) > 1:
            raise PanelError(
                f"the times mix kinds ({', '.join(kinds)}); convert them to one kind, "
                "for example with pd.to_datetime or astype(str)."
            )
        if kinds and kinds[0] in ("tuple", "list", "dict", "set", "Period"):  # Periods of one frequency are inferred
            raise PanelError(f"times of kind {kinds[0]} cannot be ordered; use single labels of one frequency.")
    if pd.api.types.is_datetime64_any_dtype(index.dtype):
        return pd.DatetimeIndex(index)  # from Arrow, too
    return index


def require_one_kind(times: Column) -> None:
    """Refuse times of several kinds or zones, row by row: 1 and 1.0 are equal, and the first would name the period."""
    if times.dtype != object:
        return
    kinds = {(type(value), str(getattr(value, "tzinfo", None))) for value in times}
    if len(kinds) > 1:
        raise PanelError("the times mix kinds or time zones; convert them to one, for example with pd.to_datetime.")


def plain(index: Times) -> Times:
    """Return the labels of a categorical index as an index of their own kind, and any other index as it is."""
    return index.astype(index.categories.dtype) if isinstance(index, pd.CategoricalIndex) else index


def in_order(index: Times) -> Positions:
    """Return the positions that sort the times.

    An ordered categorical keeps its order. Strings are sorted naturally, numbers in them by value: ``"t2"``
    before ``"t10"``. Strings whose alphabetical order is not their order in time (names of months and days,
    dates with the year last) are refused.

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
    labels = [str(label).strip() for label in index]
    unordered = _not_in_text_order(labels)
    if unordered is not None:
        raise UnorderedError(unordered)
    keys: list[Any] = _numbers(labels) or [_natural_key(label) for label in labels]
    return np.asarray(sorted(range(len(labels)), key=keys.__getitem__), dtype=np.intp)


def _any_missing(index: Times) -> bool:
    try:
        return bool(index.hasnans)
    except ArithmeticError:  # a signalling NaN among Decimals
        return True


def _holds_strings(index: Times) -> bool:
    return isinstance(index[0], str) and not isinstance(index, pd.CategoricalIndex)


def _has_own_order(index: pd.CategoricalIndex) -> bool:
    """Tell whether the caller chose the order; pandas itself chooses the alphabetical one."""
    return bool(index.ordered) and not index.categories.is_monotonic_increasing


def _not_in_text_order(labels: list[str]) -> str | None:
    """Return a label that names a month or a day, or is a date with the year last; None if there is none."""
    for label in labels:
        if _DAY_OR_MONTH_NAME.search(label) or _SHORT_YEAR_LAST.match(label):
            return label
    years_last = {match[1]: match[0] for match in map(_YEAR_AT_THE_END.match, labels) if match}
    # "FY2001", "FY2002" sort well: the text before the year is always the same.
    return next(iter(years_last.values())) if len(years_last) > 1 else None


def _numbers(labels: list[str]) -> list[Decimal] | None:
    """Return the exact numbers that the labels are, or None if one of them is not a number."""
    try:
        numbers = [Decimal(label) for label in labels]
    except InvalidOperation:
        return None
    return numbers if all(number.is_finite() for number in numbers) else None


def _natural_key(label: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts digits by value (no leading zeros; by length, then by digits) and the rest as text."""
    parts = [part for part in re.split(r"([0-9]+)", label) if part]
    return [(0, len(part.lstrip("0")), part.lstrip("0")) if part[0] in "0123456789" else (1, 0, part) for part in parts]
