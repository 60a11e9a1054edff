"""What a table seems to be: its columns, how its numbers are written, which periods it has and how to declare them.

For ``dpsc check`` only: a release is told, or reads the header alone; it is told its periods, and reads each label by
itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpsc.errors import DpscError, Parameter, TableError
from dpsc.periods import calendar, dates
from dpsc.periods.dates import in_order, plain
from dpsc.periods.declare import completed, declaration
from dpsc.tables.dialect import Dialect
from dpsc.tables.numbers import THOUSANDS, Numbers
from dpsc.tables.spec import MISSING, OUTCOME, TIME, UNIT, TableSpec
from dpsc.types import Positions, Times

_HINTS = {
    "unit": "unit id who name pseudonym patient person people customer client firm company store shop branch region "
    "state county country subject donor household user member case man woman kunde firma filiale land",
    "time": "time date day week month quarter year period when datum tag woche monat quartal jahr mois annee fecha mes",
    "outcome": "outcome value amount cost costs price sales wage income revenue spend y kosten betrag wert umsatz lohn",
}
TIME_FORMAT = Parameter("time_format")
_MOSTLY = 0.8  # of the cells of a column that decides what it holds
_YEAR = re.compile(r"(1[5-9]|2[01])\d\d")
_NUMBERED = re.compile(r"(\D*)(\d+)")
_WITH = {mark: Numbers(mark, THOUSANDS.replace(mark, "")) for mark in ".,"}  # decimals after a point, after a comma
_EITHER = Numbers(".,", THOUSANDS)


def columns(names: Sequence[str], sample: Mapping[str, Any], said: TableSpec) -> TableSpec:
    """Return which columns hold what, as said, and guessed where nothing was said.

    Parameters
    ----------
    names : list of str
        The columns.
    sample : dict of Arrow arrays
        The first rows of every column, as text.
    said : TableSpec
    """
    periods = periods_in(names, said)
    looks_wide = len(periods) >= 2 and 2 * len(periods) >= len(names)
    if said.wide or (said.time is None and said.outcome is None and looks_wide):
        return replace(said, unit=said.unit or _unit(names, sample, periods), wide=True)
    time = said.time or _time(names, sample, said)
    unit = said.unit or _unit(names, sample, {time, said.outcome})
    return replace(said, unit=unit, time=time, outcome=said.outcome or _outcome(names, sample, {unit, time}))


def periods_in(names: Sequence[str], said: TableSpec) -> set[str | None]:
    """Return the names that are periods: dates, years, or at least three with the same beginning and a number."""
    dated = {name for name in names if is_period(name, said.time_format)}
    numbered = [(found[1].lower(), name) for name in names if (found := _NUMBERED.fullmatch(name.strip()))]
    prefix, count = Counter(start for start, _ in numbered).most_common(1)[0] if numbered else ("", 0)
    return {*dated, *(name for start, name in numbered if start == prefix and count >= 3)}


def is_period(label: Any, time_format: str | None = None) -> bool:
    """Tell whether a label is a date of any kind, or a year."""
    text = str(label).strip()
    known = dates.read(label, time_format) or dates.read(label, None, day_first=True)
    return known is not None or dates.year_last(text) is not None or _YEAR.fullmatch(text) is not None


def _time(names: Sequence[str], sample: Mapping[str, Any], said: TableSpec) -> str:
    fitting = []
    for name in names:
        labels = [label for label in pc.unique(sample[name]).to_pylist() if label and label.strip()][:1000]
        dated = sum(is_period(label, said.time_format) for label in labels)
        whole = sum(label.strip().isdigit() for label in labels)
        if name not in (said.unit, said.outcome) and labels:
            good = dated >= _MOSTLY * len(labels) or (_hinted(name, "time") and whole >= _MOSTLY * len(labels))
            if good or (_hinted(name, "time") and len(labels) < len(sample[name]) / 2):
                fitting.append((not good, not _hinted(name, "time"), name))
    if not fitting:
        raise _unclear("the periods", TIME)
    return min(fitting)[2]


def _unit(names: Sequence[str], sample: Mapping[str, Any], taken: set[str | None]) -> str:
    free = [name for name in names if name not in taken]
    hinted = [name for name in free if _hinted(name, "unit")]
    text = [name for name in free if not _holds_decimals(sample[name])]
    if not (hinted or text):
        raise _unclear("the units", UNIT)
    return (hinted or text)[0]


def _outcome(names: Sequence[str], sample: Mapping[str, Any], taken: set[str | None]) -> str:
    free = [name for name in names if name not in taken and _mostly_numbers(sample[name])]
    if not free:
        raise _unclear("the numbers", OUTCOME)
    hinted = [name for name in free if _hinted(name, "outcome")]
    decimals = [name for name in free if _holds_decimals(sample[name])]
    return (hinted or decimals or free[::-1])[0]


def _hinted(name: str, what: str) -> bool:
    words = re.findall(r"[a-zäöüé]+", name.lower())
    return any(word in _HINTS[what].split() for word in words)


def _unclear(what: str, parameter: Parameter) -> TableError:
    return TableError(f"it is not clear which column holds {what}; say {Parameter(parameter.name, 'COLUMN')}.")


def cells_of(column: Any) -> Any:
    """Return the cells of a column of text that hold something."""
    trimmed = pc.utf8_trim_whitespace(column)
    return trimmed.filter(pc.invert(pc.is_in(trimmed, value_set=pa.array([*MISSING, None], trimmed.type))))


def _mostly_numbers(column: Any) -> bool:
    """Tell whether half the cells that hold something are numbers, however they are written."""
    cells = cells_of(column)
    return bool(len(cells)) and 2 * _count(cells, _EITHER) >= len(cells)


def _holds_decimals(column: Any) -> bool:
    cells = cells_of(column)
    return pc.any(pc.match_substring_regex(cells.filter(_fits(cells, _EITHER)), "[.,]")).as_py() is True


def _fits(cells: Any, numbers: Numbers) -> Any:
    """Return which cells are numbers in this way of writing them."""
    return pc.is_valid(numbers.read(cells).texts)


def _count(cells: Any, numbers: Numbers) -> int:
    return int(pc.sum(_fits(cells, numbers)).as_py() or 0)


def two_readings(cells: Any) -> Any:
    """Return which cells are numbers both with a decimal point and with a decimal comma, and not the same."""
    point, comma = (numbers.read(cells).texts for numbers in _WITH.values())
    return pc.fill_null(pc.not_equal(point, comma), False)


def dialect_for(cells: Any, given: Dialect, sep: str | None) -> Dialect:
    """Add to what was said about numbers what the cells show: the mark of decimals, and that between thousands.

    Parameters
    ----------
    cells : Arrow array
        Cells of the first rows that hold something.
    given : Dialect
    sep : str or None
        The separator of a text file, None for others.
    """
    found = given
    if given.decimal is None:
        point, comma = (_fits(cells, numbers) for numbers in _WITH.values())
        both = (point, comma), (comma, point)
        only_point, only_comma = (int(pc.sum(pc.and_not(one, other)).as_py() or 0) for one, other in both)
        if only_comma > only_point:
            found = replace(found, decimal=",")
        elif only_point and sep in (";", "\t", "|"):
            found = replace(found, decimal=".")
    if given.thousands is None and found.numbers(sep).thousands == "":
        wrong, decimal = cells.filter(pc.invert(_fits(cells, found.numbers(sep)))), found.numbers(sep).decimals
        counts = {mark: _count(wrong, Numbers(decimal, mark)) for mark in THOUSANDS if mark not in decimal}
        best = max(counts, key=lambda mark: counts[mark])
        if 2 * counts[best] > len(wrong):
            found = replace(found, thousands=best)
    return found


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
    typed : str
        The periods as somebody would type them.
    time_format : str or None
        How dates are written, if labels are not understood without it.
    problem : str
        Why the labels cannot be understood for sure; empty if they can.
    """

    times: Times
    places: Positions
    read: np.ndarray[Any, np.dtype[np.bool_]]
    typed: str
    time_format: str | None
    problem: str = ""


def understand(labels: list[Any], given: tuple[str, Times] | None, time_format: str | None) -> Declaration:
    """Say which periods the labels stand for: of the given ones, or all from the first to the last."""
    problem = ""
    if time_format is None:
        time_format, problem = _format_of(labels)
    if given is not None:
        typed, times = given
    else:
        good, said = periods_of(labels, time_format)
        problem = problem or said
        times = completed(good)
        typed = declaration(times)
    placed = _placed(labels, times, typed, time_format, problem)
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
        problem = f"nothing shows whether the day or the month comes first in the dates; say {TIME_FORMAT}"
    else:
        problem = ""
    return (f"%m{mark}%d{mark}%Y" if month and not day else f"%d{mark}%m{mark}%Y"), problem


def periods_of(labels: list[Any], time_format: str | None) -> tuple[Times, str]:
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
        index = calendar.recognised(kept, "time", time_format, "time")[0].unique()
        return plain(index[in_order(index)]), ""
    except DpscError as unclear:
        index = pd.Index([str(label) for label in kept]).unique()
        return index, unclear.message


def _placed(labels: list[Any], times: Times, typed: str, time_format: str | None, problem: str) -> Declaration:
    """Place labels as a release does, each by itself; without a format if that does as well."""
    places, chosen = calendar.places(labels, times), None
    if time_format is not None:
        formatted = calendar.places(labels, times, time_format)
        if (formatted >= 0).sum() > (places >= 0).sum():
            places, chosen = formatted, time_format
    numbers = pd.api.types.is_integer_dtype(times)  # then other whole numbers are periods outside
    outside = [is_period(label, chosen) or (numbers and _is_whole(label)) for label in labels]
    return Declaration(times, places, (places >= 0) | np.array(outside, dtype=bool), typed, chosen, problem)


def _is_whole(label: Any) -> bool:
    return str(label).strip().removesuffix(".0").lstrip("-").isdigit()
