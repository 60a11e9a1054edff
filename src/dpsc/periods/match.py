"""How a series fits the periods of a panel or a release, and the first treated period as somebody names it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.errors import PanelError, Parameter
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
    notes : tuple of str
        What was left out, in words.
    """

    positions: Positions
    before: list[str]
    after: list[str]
    between: list[str]
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
    >>> fit.positions.tolist(), fit.before
    ([-1, 0, 1], ['2022-01'])
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
    return Match(positions, before, after, between, tuple(notes))


def aligned(series: pd.Series[float], index: Times, **options: Any) -> tuple[pd.Series[float], Match]:
    """Return a series over the periods of a release, NaN where it has none, and how it was matched.

    Options are those of :func:`matched`.
    """
    match = matched(series.index, index, **options)
    values = np.full(len(index), np.nan)
    inside = match.positions >= 0
    values[match.positions[inside]] = series.to_numpy(dtype=np.float64)[inside]
    return pd.Series(values, index=index, name=series.name), match


def require_complete(before: pd.Series[float]) -> None:
    """Refuse a series that has no finite value in a period before the intervention; name up to three such periods."""
    holes = _without_number(before)
    if holes:
        plural = "period" if len(holes) == 1 else "periods"
        raise PanelError(
            f"target has no number in {plural} {listed(holes)}, before the intervention: fill in what is missing."
        )


def incomplete(after: pd.Series[float]) -> list[str]:
    """Say which periods from the intervention on have no number; nothing if none has one, which the answer says."""
    holes = _without_number(after)
    if not holes or len(holes) == len(after):
        return []
    return [f"the target has no number in {listed(holes)}: no effect is counted there"]


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


def listed(names: list[str], most: int = _LISTED) -> str:
    """Write names one after the other, of very many the first."""
    more = len(names) - most
    if more > 0:
        return ", ".join(names[:most]) + f" and {more} more"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"


def typed_period(text: str, index: Times, time_format: str | None, name: str = "treatment_time") -> Label:
    """Return the period that somebody typed, or wrote into a table, as :func:`first_treated` finds it."""
    advice = f", or say how dates are written, for example {AS_WRITTEN}"
    found: Label = index[first_treated(index, text, name=name, time_format=time_format, advice=advice)]
    return found


def is_period(index: Times, text: str) -> bool:
    """Tell whether a text is one of the periods.

    Examples
    --------
    >>> is_period(pd.Index([1970, 1980]), "1970"), is_period(pd.Index([1970, 1980]), "1975")
    (True, False)
    """
    try:
        first_treated(index, text)
    except PanelError:
        return False
    return True


def first_treated(
    index: Times,
    treatment_time: Label,
    *,
    name: str = "treatment_time",
    time_format: str | None = None,
    advice: str = "",
) -> int:
    """Return the position of a period in an ordered index; a day in a month means that month.

    What is no period is refused, and so is what can be read in two ways. ``name`` is the parameter that messages are
    about, and ``advice`` what else can be done about two ways.

    Examples
    --------
    >>> first_treated(calendar.calendar(["2022-01", "2022-02", "2022-03"]), "15 Feb 2022")
    1
    >>> first_treated(pd.Index([1970, 1980, 1990]), 1985)
    Traceback (most recent call last):
        ...
    dpsc.errors.PanelError: treatment_time=1985 is between the periods 1980 and 1990; name the one that it means.
    """
    if pd.api.types.is_list_like(treatment_time):
        raise PanelError(f"{Parameter(name)} must be one period, not {checks.shown(treatment_time)}.")
    it = Parameter(name, treatment_time if type(treatment_time) is int else period_name(treatment_time))
    place = finder(index)
    readings = _readings(treatment_time, time_format)
    try:
        found = {place(treatment_time, written) for written in readings} or {place(treatment_time, None)}
    except (TypeError, ValueError, ArithmeticError):
        found = {-1}
    if len(found) > 1:
        one, other = (f"{written.first.day} {written.first:%B %Y}" for written in readings)
        raise PanelError(f"{it} can be {one} or {other}; write it as {period_name(index[max(found)])}{advice}.")
    position = found.pop()
    if position < 0:
        raise PanelError(f"{it} {_why_none(treatment_time, index, readings)}")
    return position


def _why_none(value: Label, index: Times, readings: list[Written]) -> str:
    """Say why something is none of the periods: it is between two of them, no date at all, or something else."""
    try:
        place = _same_kind(index, value, readings)
        position = int(index.searchsorted(place, side="left"))
        if 0 < position < len(index) and bool(index[position - 1] < place < index[position]):
            one, other = period_name(index[position - 1]), period_name(index[position])
            return f"is between the periods {one} and {other}; name the one that it means."
    except (TypeError, ValueError, ArithmeticError):
        pass
    if not readings and calendar.frequency(index) not in (None, "number", "year"):
        return f"is not a date that can be read; write it as {period_name(index[0])}."
    first, last = period_name(index[0]), period_name(index[-1])
    return f"is not one of the periods, which run from {first} to {last}. Name the period itself."


def _readings(value: Label, time_format: str | None) -> list[Written]:
    """Return the ways in which a typed date can be read: two if it does not show whether the day comes first."""
    if is_missing(value):
        return []
    ways = [read(value, time_format)] if time_format is not None and isinstance(value, str) else []
    if not any(ways):
        ways = [read(value)] if year_last(value) is None else [read(value, None, first) for first in (True, False)]
    return [way for way in ways if way is not None]


def _same_kind(index: Times, value: Any, readings: list[Written]) -> Any:
    """Return something typed as something that can be compared with the periods; raise TypeError if there is none."""
    if isinstance(index, pd.DatetimeIndex):
        stamp = pd.Timestamp(value)
        return stamp.tz_localize(index.tz) if index.tz is not None and stamp.tz is None else stamp
    if pd.api.types.is_numeric_dtype(index):
        return float(readings[0].first.year if readings else value)
    if readings and isinstance(index, pd.PeriodIndex):
        return pd.Period(readings[0].first, freq=index.freqstr)
    if readings and type(index[0]) is date:
        return readings[0].first
    raise TypeError
