"""Which period of a calendar a label stands for, and how a series fits the periods of a panel or a release."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd

from dpsc.data import calendars
from dpsc.data.dates import AS_WRITTEN, Every, Written, period_name, read, year_last
from dpsc.data.periods import Positions, plain
from dpsc.errors import PanelError, Parameter, TableError

_LISTED = 3  # periods that a message names


def places(labels: Iterable[Any], index: pd.Index[Any], time_format: str | None = None) -> Positions:
    """Return the position of each label among periods, -1 if it is none of them; nothing is refused.

    Any date in a month, quarter, ISO week or year belongs to it, so that rows by day are averaged by month. A label is
    read by itself, so that what one donor writes does not change how others are read.

    Examples
    --------
    >>> places(["2022-02-15", "Jan 2022", 202203, "total"], calendars.calendar(["2022-01", "2022-02"])).tolist()
    [1, 0, -1, -1]
    """
    place = _place(index)
    return np.array([place(label, read(label, time_format)) for label in labels], dtype=np.intp)


Place = Callable[[Any, Written | None], int]


def _place(index: pd.Index[Any]) -> Place:
    """Return a function that finds a label, which was read, among periods."""
    every = calendars.frequency(index)
    if isinstance(index, pd.DatetimeIndex):
        return _in_hours(index)
    if every in ("year", "number") or pd.api.types.is_numeric_dtype(index):
        return _in_numbers(index, dated=every == "year")
    if every is not None:
        return _in_calendar(index, every)  # type: ignore[arg-type]
    if isinstance(index, pd.PeriodIndex):
        return _in_periods(index)
    known: dict[Hashable, int] = {str(period).strip(): position for position, period in enumerate(index)}
    return lambda label, written: -1 if _is_missing(label) else known.get(str(label).strip(), -1)


def _in_calendar(index: pd.Index[Any], every: Every) -> Place:
    """Find what is as long as a period of the calendar, or shorter; a week in dates that are a week apart, too."""
    known = {_key(every, read(period).first): position for position, period in enumerate(index)}  # type: ignore[union-attr]

    def place(label: Any, written: Written | None) -> int:
        if written is None:
            return -1
        if written.every == "week" and every == "day":
            days = (known.get(("day", written.first.toordinal() + k), -1) for k in range(7))
            found = [position for position in days if position >= 0]
            return found[0] if len(found) == 1 else -1
        return known.get(_key(every, written.first), -1) if _fits(written.every, every) else -1

    return place


def _fits(short: Every, long: Every) -> bool:
    """Tell whether a period is never longer than another and within one of them."""
    inside: dict[Every, int] = {"moment": 0, "day": 1, "month": 2, "quarter": 3, "year": 4}
    if "week" in (short, long):
        return short in ("moment", "day", "week") and long == "week"
    return inside[short] <= inside[long]


def _key(every: Every, day: date) -> tuple[Any, ...]:
    """Return what all days of one period have in common."""
    if every == "day":
        return ("day", day.toordinal())
    if every == "week":
        return ("week", *day.isocalendar()[:2])
    if every == "month":
        return ("month", day.year, day.month)
    return ("quarter", day.year, (day.month - 1) // 3)


def _in_numbers(index: pd.Index[Any], *, dated: bool) -> Place:
    """Find numbers, however they are written, and among years any date."""
    known = {_number(period): position for position, period in enumerate(index)}

    def place(label: Any, written: Written | None) -> int:
        number = _number(label)
        if number in known and number is not None:
            return known[number]
        return known.get(written.first.year, -1) if dated and written is not None else -1

    return place


def _number(label: Any) -> int | float | None:
    """Return a number exactly, however it is written; None for anything else."""
    if isinstance(label, bool | np.bool_):
        return None
    for kind_of_number in (int, float):
        try:
            return kind_of_number(str(label))
        except ValueError:
            continue
    return None


def _in_periods(index: pd.PeriodIndex) -> Place:
    """Find what lies in periods of another frequency, such as quarters of another year than the calendar's."""
    known = {period.ordinal: position for position, period in enumerate(index)}

    def place(label: Any, written: Written | None) -> int:
        if isinstance(label, pd.Period) and label.freqstr == index.freqstr:
            return known.get(label.ordinal, -1)
        if written is None or written.every not in ("moment", "day"):
            return -1
        return known.get(pd.Period(written.first, freq=index.freqstr).ordinal, -1)

    return place


def _in_hours(index: pd.DatetimeIndex) -> Place:
    """Find moments: in their zone if the periods have one, by the clock on the wall otherwise."""

    def key(label: Any, written: Written | None) -> Hashable:
        if written is None or written.every not in ("moment", "day"):
            return None
        first = written.first
        moment = first if isinstance(first, datetime) else datetime(first.year, first.month, first.day)
        if index.tz is None:
            return moment
        try:
            own = pd.Timestamp(label.strip() if isinstance(label, str) else label)
            own = pd.Timestamp(moment).tz_localize(index.tz) if own.tz is None else own
            return own.tz_convert(UTC).to_pydatetime(warn=False)
        except (ValueError, TypeError, ArithmeticError, AttributeError):
            return None

    known = {key(period, read(period)): position for position, period in enumerate(index)}
    known.pop(None, None)
    return lambda label, written: known.get(key(label, written), -1)


@dataclass(frozen=True, eq=False)
class Match:
    """How given periods fit those of a panel or a release.

    Attributes
    ----------
    positions : array
        The period of each given one, -1 for one that is not there.
    before, after : list of str
        Given periods that are earlier than the first, and later than the last.
    between : list of str
        Given periods that the calendar leaves out: its holes, and weekends among working days.
    absent : array
        Positions of the periods that are not given.
    notes : tuple of str
        What was left out, in words.
    """

    positions: Positions
    before: list[str]
    after: list[str]
    between: list[str]
    absent: Positions
    notes: tuple[str, ...] = ()


def matched(
    given: Any,
    index: pd.Index[Any],
    *,
    what: str = "target",
    whole: str = "release",
    time_format: str | None = None,
    spare: bool = False,
) -> Match:
    """Match the periods of a series to those of a release, however both write them.

    Parameters
    ----------
    given : Index or list
        The periods of the series, in any order.
    index : Index
        The periods of the release, in order.
    what, whole : str
        What the two are called in messages.
    time_format : str, optional
        How the given ones are written, if they do not show it.
    spare : bool
        Whether any period that the release does not have may simply be left out.

    Raises
    ------
    PanelError
        If two of them are the same period, if they are of another kind or longer, or if none fits.

    Examples
    --------
    >>> months = calendars.calendar(["2022-02", "2022-03", "2022-04"])
    >>> fit = matched(pd.to_datetime(["2022-01-31", "2022-02-28", "2022-03-31"]), months)
    >>> fit.positions.tolist(), fit.before, fit.absent.tolist()
    ([-1, 0, 1], ['2022-01'], [2])
    """
    own, known = calendars.recognised(given, time_format=time_format)
    own = plain(own)
    run = f"the {whole} runs from {period_name(index[0])} to {period_name(index[-1])}"
    place = _place(index)
    positions = np.array([place(label, w) for label, w in zip(own, known, strict=True)], dtype=np.intp)
    notes: list[str] = []
    if not (positions >= 0).any() and _both_weekly(own, index):
        positions, notes = _by_week(own, index, what, whole)
    _require_once(own, positions, index, what)
    if len(own) and not (positions >= 0).any():
        raise PanelError(f"{what} does not fit the {whole}: {_why_not(own, index, whole)}; {run}.")
    outside = np.flatnonzero(positions < 0)
    sides = {int(i): _side(own[i], known[i], index) or ("between" if spare else "") for i in outside}
    before, after, between = (
        [period_name(own[i]) for i in outside if sides[int(i)] == side] for side in ("before", "after", "between")
    )
    foreign = next((own[i] for i in outside if sides[int(i)] == ""), None)
    if foreign is not None:
        raise PanelError(f"{what} does not fit the {whole}: the period {period_name(foreign)} is not in it; {run}.")
    for names, where in ((before, f"before the {whole} begins"), (after, f"after the {whole} ends"),
                         (between, f"which the {whole} does not have")):  # fmt: skip
        if names:
            notes.append(f"the {what}'s {_listed(names)}, {where}, {'is' if len(names) == 1 else 'are'} left out")
    absent = np.setdiff1d(np.arange(len(index)), positions)
    return Match(positions, before, after, between, absent, tuple(notes))


def aligned(series: pd.Series[float], index: pd.Index[Any], **options: Any) -> tuple[pd.Series[float], Match]:
    """Return a series over the periods of a release, NaN where it has none, and how it was matched.

    Options are those of :func:`matched`.
    """
    match = matched(series.index, index, **options)
    values = np.full(len(index), np.nan)
    inside = match.positions >= 0
    values[match.positions[inside]] = series.to_numpy(dtype=np.float64)[inside]
    return pd.Series(values, index=index, name=series.name), match


def require_complete(before: pd.Series[float], what: str = "target") -> None:
    """Refuse a series that has no finite value in a period before the intervention; name up to three such periods."""
    holes = [period_name(period) for period in before.index[~np.isfinite(before.to_numpy(dtype=np.float64))]]
    if holes:
        plural = "period" if len(holes) == 1 else "periods"
        raise PanelError(f"{what} has no finite value in {plural} {_listed(holes)}, before the intervention.")


def same(one: pd.Index[Any], other: pd.Index[Any]) -> bool:
    """Tell whether two calendars are the same periods in the same order, however they are written."""
    if len(one) != len(other):
        return False
    if one.equals(other):
        return True
    try:
        match = matched(other, one)
    except PanelError:
        return False
    return not match.notes and bool((match.positions == np.arange(len(one))).all())


_KINDS = {
    "year": "years", "quarter": "quarters", "month": "months", "week": "weeks", "day": "days", "number": "numbers"
}  # fmt: skip


def kind(index: pd.Index[Any]) -> str:
    """Name what the periods are, in the plural."""
    every = calendars.frequency(index)
    if every is not None:
        return _KINDS[every]
    if isinstance(index, pd.DatetimeIndex | pd.PeriodIndex):
        return "times"
    return "numbers" if pd.api.types.is_numeric_dtype(index) else "labels"


def _why_not(own: pd.Index[Any], index: pd.Index[Any], whole: str) -> str:
    kinds = kind(own), kind(index)
    if kinds[0] != kinds[1]:
        return f"its periods are {kinds[0]} ({period_name(own[0])}), those of the {whole} {kinds[1]}"
    return f"the period {period_name(own[0])} is not in it, nor any other"


def _require_once(own: pd.Index[Any], positions: Positions, index: pd.Index[Any], what: str) -> None:
    if not own.is_unique:
        raise PanelError(f"{what} has the period {period_name(own[own.duplicated()][0])} twice.")
    inside = positions[positions >= 0]
    if len(np.unique(inside)) < len(inside):
        crowded = int(np.bincount(inside).argmax())
        two = [period_name(period) for period in own[positions == crowded][:2]]
        raise PanelError(
            f"{what} has {two[0]} and {two[1]}, both in the period {period_name(index[crowded])}; give one number for "
            "each period."
        )


def _side(label: Any, written: Written | None, index: pd.Index[Any]) -> str:
    """Tell whether a period that is not there is before, after or in a gap of the others; "" if it does not belong."""
    every = calendars.frequency(index)
    if every is None:
        return ""
    if every in ("year", "number"):
        if not isinstance(label, int | float | np.number):
            label = None if written is None or every == "number" else written.first.year
        if label is None:
            return ""
        earlier, later = label < index[0], label > index[-1]
    else:
        if written is None or not (_fits(written.every, every) or (written.every, every) == ("week", "day")):
            return ""
        day = written.first.toordinal()
        earlier, later = day < index[0].start_time.toordinal(), day > index[-1].end_time.toordinal()
    if earlier or later:
        return "before" if earlier else "after"
    whole = not isinstance(label, float) or label.is_integer()
    return "between" if whole and calendars.step(index) == 1 else ""


def _both_weekly(own: pd.Index[Any], index: pd.Index[Any]) -> bool:
    every = {calendars.frequency(own), calendars.frequency(index)}
    return every == {"day"} and calendars.step(own.sort_values()) == calendars.step(index) == 7


def _by_week(own: pd.Index[Any], index: pd.Index[Any], what: str, whole: str) -> tuple[Positions, list[str]]:
    """Match weeks that are dated by different days: Mondays here, Fridays there."""
    known = {_key("week", period.start_time): position for position, period in enumerate(index)}
    positions = np.array([known.get(_key("week", period.start_time), -1) for period in own], dtype=np.intp)
    days = [f"{periods[0].start_time.day_name()}s" for periods in (own, index)]
    return positions, [
        f"the {what}'s weeks are dated on {days[0]} and those of the {whole} on {days[1]}: they were matched by ISO "
        "week, from Monday to Sunday"
    ]


def _listed(names: list[str]) -> str:
    more = len(names) - _LISTED
    if more > 0:
        return ", ".join(names[:_LISTED]) + f" and {more} more"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"


def typed_period(text: str, index: pd.Index[Any], time_format: str | None, name: str = "treatment_time") -> Any:
    """Find the period that the user typed; a day in a month means the month, and one that is not there is refused."""
    it = Parameter(name, repr(text), repr(text))
    position = _position(text, index, time_format, it)
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
    where = f"the panel runs from {period_name(index[0])} to {period_name(index[-1])}"
    it = Parameter("treatment_time", repr(treatment_time), repr(treatment_time))
    try:
        position = _position(treatment_time, index, None, it)
    except PanelError as problem:
        raise PanelError(f"{problem}; {where}.") from None
    if position >= 0:
        return position
    if isinstance(index[0], str) or isinstance(index, pd.CategoricalIndex):
        raise PanelError(f"treatment time {treatment_time!r} is not one of the periods; {where}.")
    try:
        value = _same_kind(index, treatment_time)
        inside = bool(index[0] <= value <= index[-1])  # False for NaT
        position = int(index.searchsorted(value, side="left")) if inside else -1
    except (TypeError, ValueError, ArithmeticError):
        raise PanelError(
            f"treatment time {treatment_time!r} is not of the same kind as the periods ({kind(index)}); {where}."
        ) from None
    if not inside:
        raise PanelError(f"treatment time {treatment_time} is outside the panel; {where}.")
    return position


def _position(value: Any, index: pd.Index[Any], time_format: str | None, it: Parameter) -> int:
    """Return the position of a period that somebody typed, -1 if it is none; refuse one with two meanings."""
    place = _place(index)
    readings = _readings(value, time_format)
    try:
        found = {place(value, written) for written in readings or [None]}
    except (TypeError, ValueError, ArithmeticError):
        return -1
    if len(found) > 1:
        one, other = (f"{written.first.day} {written.first:%B %Y}" for written in readings)
        raise PanelError(
            f"{{it}} can be {one} or {other}; write it as {period_name(index[max(found)])}, or say how dates are "
            "written, for example {as_written}.",
            it=it, as_written=AS_WRITTEN,
        )  # fmt: skip
    return found.pop()


def _readings(value: Any, time_format: str | None) -> list[Written]:
    """Return the ways in which a typed date can be read: two if it does not show whether the day comes first."""
    if _is_missing(value) or pd.api.types.is_list_like(value):
        return []
    ways = [read(value, time_format)] if time_format is not None and isinstance(value, str) else []
    if not any(ways):
        ways = [read(value)] if year_last(value) is None else [read(value, None, first) for first in (True, False)]
    return [way for way in ways if way is not None]


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


def _is_missing(label: Any) -> bool:
    return label is None or label is pd.NaT or label is pd.NA or (isinstance(label, float) and label != label)
