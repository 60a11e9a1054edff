"""Which columns of a table hold what, and how its numbers are written, guessed from its header and its first rows.

For the custodian's rehearsal only (:mod:`dpsc.data.examination`): a release is told, or reads the header alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpsc.data import dates
from dpsc.data.columns import MISSING, OUTCOME, TIME, UNIT, Layout, is_number
from dpsc.data.dialects import Dialect
from dpsc.data.numbers import THOUSANDS, Numbers
from dpsc.errors import Parameter, TableError

_HINTS = {
    "unit": "unit id who name pseudonym patient person people customer client firm company store shop branch region "
    "state county country subject donor household user member case man woman kunde firma filiale land",
    "time": "time date day week month quarter year period when datum tag woche monat quartal jahr mois annee fecha mes",
    "outcome": "outcome value amount cost costs price sales wage income revenue spend y kosten betrag wert umsatz lohn",
}
_MOSTLY = 0.8  # of the cells of a column that decides what it holds
_YEAR = re.compile(r"(1[5-9]|2[01])\d\d")
_NUMBERED = re.compile(r"(\D*)(\d+)")
_WORD = {",": "comma", ".": "point", " ": "space", "'": "apostrophe", "": "none", ";": "semicolon", "\t": "tab",
         "|": "pipe", "cp1252": "windows-1252", "iso8859-1": "latin-1"}  # fmt: skip


@dataclass(frozen=True)
class Said:
    """What the user said about the columns; None or False for what was not said."""

    unit: str | None = None
    time: str | None = None
    outcome: str | None = None
    wide: bool = False
    time_format: str | None = None


def layout(names: Sequence[str], sample: Mapping[str, Any], said: Said) -> Layout:
    """Return which columns hold what, as said, and guessed where nothing was said.

    Parameters
    ----------
    names : list of str
        The columns.
    sample : dict of Arrow arrays
        The first rows of every column, as text.
    said : Said
    """
    if said.wide or (said.time is None and said.outcome is None and _is_wide(names, said)):
        return Layout(said.unit or _unit(names, sample, periods_in(names, said)), wide=True,
                      time_format=said.time_format, outcome=said.outcome)  # fmt: skip
    time = said.time or _time(names, sample, said)
    unit = said.unit or _unit(names, sample, {time, said.outcome})
    return Layout(unit, time, said.outcome or _outcome(names, sample, {unit, time}), time_format=said.time_format)


def _is_wide(names: Sequence[str], said: Said) -> bool:
    found = periods_in(names, said)
    return len(found) >= 2 and 2 * len(found) >= len(names)


def periods_in(names: Sequence[str], said: Said) -> set[str | None]:
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


def _time(names: Sequence[str], sample: Mapping[str, Any], said: Said) -> str:
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
    free = [name for name in names if name not in taken and share_of_numbers(sample[name]) >= 0.5]
    hinted = [name for name in free if _hinted(name, "outcome")]
    decimals = [name for name in free if _holds_decimals(sample[name])]
    if not free:
        raise _unclear("the numbers", OUTCOME)
    return (hinted or decimals or free[::-1])[0]


def _hinted(name: str, what: str) -> bool:
    words = re.findall(r"[a-zäöüé]+", name.lower())
    return any(word in _HINTS[what].split() for word in words)


def _unclear(what: str, parameter: Parameter) -> TableError:
    return TableError(f"it is not clear which column holds {what}; say {{it}} COLUMN.", it=parameter)


def cells_of(column: Any) -> Any:
    """Return the cells of a column of text that hold something."""
    trimmed = pc.utf8_trim_whitespace(column)
    return trimmed.filter(pc.invert(pc.is_in(trimmed, value_set=pa.array([*MISSING, None], trimmed.type))))


def share_of_numbers(column: Any) -> float:
    """Return which share of the cells that hold something are numbers, however they are written."""
    cells = cells_of(column)
    return 0.0 if not len(cells) else pc.sum(fits(cells, Numbers(".,", THOUSANDS))).as_py() / len(cells)


def _holds_decimals(column: Any) -> bool:
    cells = cells_of(column)
    numbers = cells.filter(fits(cells, Numbers(".,", THOUSANDS)))
    return bool(len(numbers)) and pc.any(pc.match_substring_regex(numbers, "[.,]")).as_py() is True


def fits(cells: Any, numbers: Numbers) -> Any:
    """Return which cells are numbers in this way of writing them."""
    if not numbers.plain:
        return pc.is_valid(numbers.read(cells).texts)
    return pa.array([is_number(cell) for cell in cells.to_pylist()], pa.bool_())


def two_readings(cells: Any) -> Any:
    """Return which cells are numbers both with a decimal point and with a decimal comma, and not the same."""
    point, comma = (Numbers(mark, THOUSANDS.replace(mark, "")).read(cells).texts for mark in ".,")
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
        point, comma = (fits(cells, Numbers(mark, THOUSANDS.replace(mark, ""))) for mark in ".,")
        only_point, only_comma = (int(pc.sum(pc.and_not(a, b)).as_py() or 0) for a, b in ((point, comma),
                                                                                     (comma, point)))  # fmt: skip
        if only_comma > only_point:
            found = replace(found, decimal=",")
        elif only_point and (sep == ";" or sep in ("\t", "|")):
            found = replace(found, decimal=".")
    if given.thousands is None and found.numbers(sep).thousands == "":
        wrong = cells.filter(pc.invert(fits(cells, found.numbers(sep))))
        decimal = found.numbers(sep).decimals
        counts = {mark: int(pc.sum(fits(wrong, Numbers(decimal, mark))).as_py() or 0) for mark in THOUSANDS
                  if mark not in decimal}  # fmt: skip
        best = max(counts, key=lambda mark: counts[mark])
        if 2 * counts[best] > len(wrong):
            found = replace(found, thousands=best)
    return found


def word(mark: str) -> str:
    """Return what an option takes for a mark or an encoding."""
    return _WORD.get(mark, mark)
