"""Which periods a table seems to have, and how to declare them.

For the custodian's rehearsal only (:mod:`dpsc.data.examination`): a release is told its periods, and reads each label
by itself.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpsc.data import calendars, dates, placing
from dpsc.data.declared import declared
from dpsc.data.guessing import is_period
from dpsc.data.periods import Positions, in_order, plain
from dpsc.errors import DpscError


@dataclass(frozen=True, eq=False)
class Declaration:
    """Periods, and the options that declare them.

    Attributes
    ----------
    times : Index
        All periods, those that no row has included.
    places : array
        The period of each label, -1 for none.
    read : array of bool
        Whether each label could be read; one that was and has no place is outside the declared periods.
    option : str
        For ``--periods``.
    time_format : str or None
        For ``--time-format``, if labels are not understood without it.
    problem : str
        Why the labels cannot be understood for sure; empty if they can.
    """

    times: pd.Index[Any]
    places: Positions
    read: np.ndarray[Any, np.dtype[np.bool_]]
    option: str
    time_format: str | None
    problem: str = ""


def understand(labels: list[Any], given: tuple[str, pd.Index[Any]] | None, time_format: str | None) -> Declaration:
    """Say which periods the labels stand for: of the given ones, or all from the first to the last."""
    problem = ""
    if time_format is None:
        time_format, problem = _format_of(labels)
    if given is not None:
        option, times = given
    else:
        good, said = _good(labels, time_format)
        problem = problem or said
        times = _complete(good)
        option = _option(times)
    placed = _placed(labels, times, option, time_format, problem)
    return placed if given is not None else replace(placed, read=placed.places >= 0)


def _format_of(labels: list[Any]) -> tuple[str | None, str]:
    """Return how dates with the year last are written, day or month first, and what is unclear about it."""
    texts = [label.strip() for label in labels if isinstance(label, str)]
    pairs = [pair for pair in map(dates.year_last, texts) if pair is not None]
    if 2 * len(pairs) <= len(texts):
        return None, ""
    mark = next(text[-5] for text in texts if dates.year_last(text) is not None)
    day, month = any(one > 12 for one, _ in pairs), any(other > 12 for _, other in pairs)
    if day and month:
        problem = "dates with the day first and with the month first are mixed"
    elif not (day or month):
        problem = "nothing shows whether the day or the month comes first in the dates; say --time-format"
    else:
        problem = ""
    return (f"%m{mark}%d{mark}%Y" if month and not day else f"%d{mark}%m{mark}%Y"), problem


def _good(labels: list[Any], time_format: str | None) -> tuple[pd.Index[Any], str]:
    """Return the calendar of the labels that are periods, and why it is doubtful."""
    whole = [label for label in labels if _is_whole(label)]
    dated = [label for label in labels if not _is_whole(label) and is_period(label, time_format)]
    kept = max((dated, whole), key=len)
    kept = kept if 2 * len(kept) > len(labels) else labels
    if isinstance(kept[0], str):
        kept = [label.strip() for label in kept]
    if time_format is not None:
        kept = [label for label in kept if dates.read(label, time_format) is not None] or kept
    try:
        index = calendars.recognised(kept, "time", time_format, "time")[0].unique()
        return plain(index[in_order(index)]), ""
    except DpscError as unclear:
        index = pd.Index([str(label) for label in kept]).unique()
        return index, str(unclear)


def _complete(times: pd.Index[Any]) -> pd.Index[Any]:
    """Return all periods from the first to the last, or these if they are no regular calendar."""
    ends = _range(times)
    if ends is None:
        return times
    whole = declared(ends)
    return whole if len(whole) == len(times) or calendars.holes(times) or len(whole) <= 1.5 * len(times) else times


def _range(times: pd.Index[Any]) -> str | None:
    if calendars.frequency(times) is None:
        return None
    text = f"{dates.period_name(times[0])}..{dates.period_name(times[-1])}"
    try:
        return text if calendars.frequency(declared(text)) == calendars.frequency(times) else None
    except DpscError:
        return None


def _option(times: pd.Index[Any]) -> str:
    """Return how to write the periods: one range, several, or one by one if they are no regular calendar."""
    if _range(times) is None:
        return ",".join(dates.period_name(period) for period in times)
    places = calendars.ordinals(times)
    starts = [0, *(np.flatnonzero(np.diff(places) != 1) + 1), len(times)]
    return ",".join(_run(times[a:b]) for a, b in itertools.pairwise(starts))


def _run(times: pd.Index[Any]) -> str:
    first, last = dates.period_name(times[0]), dates.period_name(times[-1])
    return first if len(times) == 1 else f"{first}..{last}"


def _placed(labels: list[Any], times: pd.Index[Any], option: str, time_format: str | None, problem: str) -> Declaration:
    """Place labels as a release does, each by itself; without a format if that does as well."""
    plain_places = placing.places(labels, times)
    places, chosen = plain_places, None
    if time_format is not None:
        formatted = placing.places(labels, times, time_format)
        if (formatted >= 0).sum() > (plain_places >= 0).sum():
            places, chosen = formatted, time_format
    numbers = _are_numbers(times)
    read = np.array([place >= 0 or is_period(label, chosen) or (numbers and _is_whole(label))
                     for label, place in zip(labels, places, strict=True)], dtype=bool)  # fmt: skip
    return Declaration(times, places, read, option, chosen, problem)


def _are_numbers(times: pd.Index[Any]) -> bool:
    """Tell whether the periods are whole numbers, so that other whole numbers are periods outside."""
    return bool(pd.api.types.is_integer_dtype(times))


def _is_whole(label: Any) -> bool:
    return str(label).strip().removesuffix(".0").lstrip("-").isdigit()
