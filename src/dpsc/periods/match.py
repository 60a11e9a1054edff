"""How a series fits the periods of a panel or a release, and the first treated period as somebody names it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from dpsc.errors import PanelError, Parameter, TableError
from dpsc.periods import calendar
from dpsc.periods.calendar import finder, fits, is_missing, key_of
from dpsc.periods.dates import AS_WRITTEN, Written, period_name, plain, read, year_last
from dpsc.types import Label, PeriodsLike, Positions, Times

_LISTED = 3  # periods that a message names


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
    given: PeriodsLike,
    index: Times,
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
    >>> months = calendar.calendar(["2022-02", "2022-03", "2022-04"])
    >>> fit = matched(pd.to_datetime(["2022-01-31", "2022-02-28", "2022-03-31"]), months)
    >>> fit.positions.tolist(), fit.before, fit.absent.tolist()
    ([-1, 0, 1], ['2022-01'], [2])
    """
    own, known = calendar.recognised(given, time_format=time_format)
    own = plain(own)
    run = f"the {whole} runs from {period_name(index[0])} to {period_name(index[-1])}"
    place = finder(index)
    positions = np.array([place(label, w) for label, w in zip(own, known, strict=True)], dtype=np.intp)
    notes = _on_sundays(own, index)
    if not (positions >= 0).any() and _both_weekly(own, index):
        positions, notes = _by_week(own, index, what, whole)
    _require_once(own, positions, index, what)
    if len(own) and not (positions >= 0).any():
        raise PanelError(f"{what} does not fit the {whole}: {_why_not(own, index, whole)}; {run}.")
    outside = np.flatnonzero(positions < 0).tolist()
    sides = {i: _side(own[i], known[i], index) or ("between" if spare else "") for i in outside}
    before, after, between = (
        [period_name(own[i]) for i in outside if sides[i] == side] for side in ("before", "after", "between")
    )
    foreign = next((own[i] for i in outside if sides[i] == ""), None)
    if foreign is not None:
        raise PanelError(f"{what} does not fit the {whole}: the period {period_name(foreign)} is not in it; {run}.")
    left_out = {
        f"before the {whole} begins": before,
        f"which the {whole} does not have": between,
        f"after the {whole} ends": after,
    }
    for why, names in left_out.items():
        if names:
            notes.append(f"the {what}'s {listed(names)}, {why}, {'is' if len(names) == 1 else 'are'} left out")
    absent = np.setdiff1d(np.arange(len(index)), positions)
    return Match(positions, before, after, between, absent, tuple(notes))


def aligned(series: pd.Series[float], index: Times, **options: Any) -> tuple[pd.Series[float], Match]:
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
    holes = _without_number(before)
    if holes:
        plural = "period" if len(holes) == 1 else "periods"
        raise PanelError(
            f"{what} has no number in {plural} {listed(holes)}, before the intervention: fill in what is missing."
        )


def incomplete(after: pd.Series[float], what: str = "target") -> list[str]:
    """Say which periods from the intervention on have no number; nothing if none has one, which the answer says."""
    holes = _without_number(after)
    if not holes or len(holes) == len(after):
        return []
    return [f"the {what} has no number in {listed(holes)}: no effect is counted there"]


def _without_number(series: pd.Series[float]) -> list[str]:
    return [period_name(period) for period in series.index[~np.isfinite(series.to_numpy(dtype=np.float64))]]


def same(one: Times, other: Times) -> bool:
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


def kind(index: Times) -> str:
    """Name what the periods are, in the plural."""
    every = calendar.frequency(index)
    if every is not None:
        return f"{every}s"
    if isinstance(index, pd.DatetimeIndex | pd.PeriodIndex):
        return "times"
    return "numbers" if pd.api.types.is_numeric_dtype(index) else "labels"


def _why_not(own: Times, index: Times, whole: str) -> str:
    kinds = kind(own), kind(index)
    if kinds[0] != kinds[1]:
        return f"its periods are {kinds[0]} ({period_name(own[0])}), those of the {whole} {kinds[1]}"
    return f"the period {period_name(own[0])} is not in it, nor any other"


def _require_once(own: Times, positions: Positions, index: Times, what: str) -> None:
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


def _side(label: Label, written: Written | None, index: Times) -> str:
    """Tell whether a period that is not there is before, after or in a gap of the others; "" if it does not belong."""
    every = calendar.frequency(index)
    if every is None:
        return ""
    if every == "year" or every == "number":
        if not isinstance(label, int | float | np.number):
            label = None if written is None or every == "number" else written.first.year
        if label is None:
            return ""
        earlier, later = label < index[0], label > index[-1]
    else:
        if written is None or not (fits(written.every, every) or (written.every, every) == ("week", "day")):
            return ""
        day = written.first.toordinal()
        earlier, later = day < index[0].start_time.toordinal(), day > index[-1].end_time.toordinal()
    if earlier or later:
        return "before" if earlier else "after"
    whole = not isinstance(label, float) or label.is_integer()
    return "between" if whole and calendar.step(index) == 1 else ""


def _both_weekly(own: Times, index: Times) -> bool:
    every = {calendar.frequency(own), calendar.frequency(index)}
    return every == {"day"} and calendar.step(own.sort_values()) == calendar.step(index) == 7


def _by_week(own: Times, index: Times, what: str, whole: str) -> tuple[Positions, list[str]]:
    """Match weeks that are dated by different days: Mondays here, Fridays there."""
    known = {key_of("week", period.start_time): position for position, period in enumerate(index)}
    positions = np.array([known.get(key_of("week", period.start_time), -1) for period in own], dtype=np.intp)
    days = [f"{periods[0].start_time.day_name()}s" for periods in (own, index)]
    return positions, [
        f"the {what}'s weeks are dated on {days[0]} and those of the {whole} on {days[1]}: they were matched by ISO "
        "week, from Monday to Sunday"
    ]


def _on_sundays(own: Times, index: Times) -> list[str]:
    """Say how dates on Sundays became ISO weeks, which end on them: some calendars begin their weeks on Sunday."""
    days = {calendar.frequency(periods): periods for periods in (own, index)}
    if set(days) != {"week", "day"} or any(day.start_time.weekday() != 6 for day in days["day"]):
        return []
    return ["weeks that are dated on Sundays were taken for the ISO weeks that end on these days"]


def listed(names: list[str]) -> str:
    """Write names one after the other, of very many the first."""
    more = len(names) - _LISTED
    if more > 0:
        return ", ".join(names[:_LISTED]) + f" and {more} more"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"


def typed_period(text: str, index: Times, time_format: str | None, name: str = "treatment_time") -> Label:
    """Find the period that the user typed; a day in a month means the month, and one that is not there is refused."""
    it = Parameter(name, text)
    position = _position(text, index, time_format, it, f", or say how dates are written, for example {AS_WRITTEN}.")
    if position >= 0:
        found: Label = index[position]
        return found
    dated = calendar.frequency(index) not in (None, "number", "year")
    if dated and not _readings(text, time_format):
        raise TableError(f"{it} is not a date that can be read; write it as {period_name(index[0])}.")
    raise TableError(
        f"{it} is not one of the periods, which run from {period_name(index[0])} to {period_name(index[-1])}. "
        "Name the first treated period itself."
    )


def first_treated(index: Times, treatment_time: Label) -> int:
    """Return the position of the first period at or after ``treatment_time`` in an ordered index.

    A day in a month means that month. A date or number between two periods means the next period; a label must be one
    of the labels.

    Examples
    --------
    >>> first_treated(pd.Index([1970, 1980, 1990]), 1985)
    2
    >>> first_treated(calendar.calendar(["2022-01", "2022-02", "2022-03"]), "15 Feb 2022")
    1
    """
    where = f"the periods run from {period_name(index[0])} to {period_name(index[-1])}"
    it = Parameter("treatment_time", str(treatment_time))
    position = _position(treatment_time, index, None, it, f"; {where}.")
    if position >= 0:
        return position
    if isinstance(index[0], str) or isinstance(index, pd.CategoricalIndex):
        raise PanelError(f"treatment time {treatment_time!r} is not one of the periods; {where}.")
    try:
        value = _same_kind(index, treatment_time)
        inside = bool(index[0] <= value <= index[-1])  # False for NaT
        position = int(index.searchsorted(value, side="left")) if inside else -1
    except (TypeError, ValueError, ArithmeticError):
        why = f"{treatment_time!r} is not of the same kind as the periods ({kind(index)})"
    else:
        if inside:
            return position
        why = f"{treatment_time} is too early or too late"
    if isinstance(index, pd.PeriodIndex) and _is_unreadable(treatment_time):
        why = f"{treatment_time!r} is not a date that can be read"
    raise PanelError(f"treatment time {why}; {where}.")


def _position(value: Label, index: Times, time_format: str | None, it: Parameter, ending: str) -> int:
    """Return the position of a period that somebody typed, -1 if it is none; refuse one with two meanings.

    ``ending`` is how that refusal ends.
    """
    place = finder(index)
    readings = _readings(value, time_format)
    try:
        found = {place(value, written) for written in readings} or {place(value, None)}
    except (TypeError, ValueError, ArithmeticError):
        return -1
    if len(found) > 1:
        one, other = (f"{written.first.day} {written.first:%B %Y}" for written in readings)
        raise PanelError(f"{it} can be {one} or {other}; write it as {period_name(index[max(found)])}{ending}")
    return found.pop()


def _readings(value: Label, time_format: str | None) -> list[Written]:
    """Return the ways in which a typed date can be read: two if it does not show whether the day comes first."""
    if is_missing(value) or pd.api.types.is_list_like(value):
        return []
    ways = [read(value, time_format)] if time_format is not None and isinstance(value, str) else []
    if not any(ways):
        ways = [read(value)] if year_last(value) is None else [read(value, None, first) for first in (True, False)]
    return [way for way in ways if way is not None]


def _is_unreadable(value: Label) -> bool:
    """Whether it is text that is neither a date nor a year."""
    return isinstance(value, str) and not value.strip().isdigit() and not _readings(value, None)


def _same_kind(index: Times, value: Any) -> Any:
    """Return a typed time as something that can be compared with the periods."""
    if isinstance(index, pd.DatetimeIndex):
        stamp = _stamp(value)
        return stamp.tz_localize(index.tz) if index.tz is not None and stamp.tz is None else stamp
    if pd.api.types.is_numeric_dtype(index):
        if isinstance(value, int | np.integer):
            return int(value)
        readings = _readings(value, None) if calendar.frequency(index) == "year" else []
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
