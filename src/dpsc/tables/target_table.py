"""Several public targets in one long table, each with its first treated period and, if wished, a weight."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dpsc.errors import Parameter, TableError
from dpsc.periods import calendar
from dpsc.periods.dates import period_name
from dpsc.tables import arrow, formats
from dpsc.tables.formats import in_file
from dpsc.tables.reader import Table, open_table, require_column, require_rows, require_unambiguous, rows_of
from dpsc.tables.spec import MISSING, OUTCOME, TIME, UNIT, TableSpec, find, undecided

START, WEIGHT = Parameter("treatment_time_column", ""), Parameter("weight_column", "")
AVERAGES, END = Parameter("averages_column", ""), Parameter("treatment_end_column", "")
TREATED, GROUP = Parameter("treated_column", ""), Parameter("group_column", "")
_OPTIONS = {
    "unit": UNIT,
    "start": START,
    "end": END,
    "time": TIME,
    "value": OUTCOME,
    "weight": WEIGHT,
    "averages": AVERAGES,
    "treated": TREATED,
    "group": GROUP,
}


@dataclass(frozen=True)
class Targets:
    """What a long table says of its units, by name, in the order of the table.

    Attributes
    ----------
    series : dict of Series
    starts : dict of str or None
        The first treated period as it is written; None for a unit that was never treated.
    weights : dict of float, or None
    averages : dict of int, or None
        How many units each target is the average of, if the table says it.
    ends : dict of str or None, or None
        The last treated period as it is written; None for a unit whose treatment goes on.
    treated : dict of Series, or None
        1 for each treated period of a unit and 0 for each other one, instead of starts and ends.
    groups : dict of str, or None
        The group of each treated unit, if the table says it.
    """

    series: dict[str, pd.Series[float]]
    starts: dict[str, str | None]
    weights: dict[str, float] | None
    averages: dict[str, int] | None = None
    ends: dict[str, str | None] | None = None
    treated: dict[str, pd.Series[float]] | None = None
    groups: dict[str, str] | None = None


def read(
    path: Path,
    said: TableSpec,
    *,
    start: str | None,
    end: str | None = None,
    treated: str | None = None,
    weight: str | None = None,
    averages: str | None = None,
    group: str | None = None,
    start_of_all: str | None = None,
) -> Targets:
    """Read a long table of public targets: one row per unit and period; an empty start means never treated.

    Without a column of starts, all units have the one that is given, or ``treated`` names a column of 0 and 1.
    """
    if path.is_dir():
        raise formats.refusal(path, f"this is a folder; name a file: {formats.KINDS}.")
    unit, dialect = said.unit, said.dialect
    with in_file(path):
        columns = {"unit": unit, "start": start, "end": end, "group": group}
        counted = {"weight": weight, "averages": averages, "treated": treated}
        named = {column: name for column, name in (columns | counted).items() if name is not None}
        given = list(named.values())
        if len(set(given)) < len(given):
            *others, last = (str(_OPTIONS[column]) for column in named)
            raise TableError(f"{', '.join(others)} and {last} must name different columns.")
        table = open_table(path, [], dialect, given)
        header = table.schema.names
        for column, name in named.items():
            find(header, name, _OPTIONS[column])
        time, outcome = _the_others(header, given, said.time, said.outcome)
        labels = {"time": time} | {column: name for column, name in named.items() if column in columns}
        numbers = {"value": outcome} | {column: name for column, name in named.items() if column in counted}
        table = table.with_text(list(labels.values()))
        for column, name in (labels | numbers).items():
            require_column(table, name, _OPTIONS[column], number=column in numbers)
        require_unambiguous(table, path, [outcome])
        found = _cells(table, labels | numbers, numbers)
        require_rows(len(found["unit"]), path)
        when = calendar.understood(found["time"], time, lambda row: formats.row_name(row, path), said.time_format)
        starts = [start_of_all] * len(when) if start is None else [_written(label) for label in found["start"]]
        ends = {} if end is None else {"end": [_written(label) for label in found["end"]]}
        frame = pd.DataFrame(found | {"time": list(when), "start": starts} | ends)
        return _targets(frame, labels | numbers, path)


def treated_units(
    path: Path,
    said: TableSpec,
    start: str,
    *,
    end: str | None = None,
    weight: str | None = None,
    group: str | None = None,
) -> Targets:
    """Read when units of a panel were treated: one row per unit.

    A unit with an empty start was never treated, and the treatment of one with an empty end goes on.
    """
    with in_file(path):
        named = {"unit": said.unit, "start": start, "end": end, "weight": weight, "group": group}
        columns = {column: name for column, name in named.items() if name is not None}
        table = open_table(path, list(columns.values()), said.dialect, list(columns.values()))
        for column, name in columns.items():
            find(table.schema.names, name, _OPTIONS[column])
        if weight is not None:
            require_column(table, weight, WEIGHT, number=True)
        starts: dict[str, str | None] = {}
        weights: dict[str, float] = {}
        groups: dict[str, str] = {}
        ends: dict[str, str | None] = {}
        seen: set[str] = set()
        cells = _cells(table, columns, ("weight",))
        for k, (unit, label) in enumerate(zip(cells["unit"], cells["start"], strict=True)):
            name = "" if unit is None else str(unit).strip()
            if name in seen:
                raise TableError(f"unit {name!r} is there twice.")
            seen.add(name)
            if not name or _written(label) is None:
                continue
            starts[name] = _written(label)
            if end is not None:
                ends[name] = _written(cells["end"][k])
            if weight is not None:
                weights[name] = float(cells["weight"][k])
            if group is not None:
                groups[name] = _group(cells["group"][k], name, group)
        if not starts:
            raise TableError(f"no unit has a first treated period: column {start!r} ({START}) is empty.")
        return Targets(
            {},
            starts,
            weights=weights if weight else None,
            groups=groups if group else None,
            ends=ends if end else None,
        )


def _cells(table: Table, columns: Mapping[str, str], numbers: Container[str]) -> dict[str, list[Any]]:
    """Return the cells of columns by what they hold: numbers as floats, others as they are written."""
    found: dict[str, list[Any]] = {column: [] for column in columns}
    for rows in rows_of(table, list(columns.values())):
        for (column, name), cells in zip(columns.items(), rows.batch.columns, strict=True):
            read = arrow.floats(cells, name, rows).tolist() if column in numbers else arrow.plain(cells).to_pylist()
            found[column] += read
    return found


def sample(path: Path, said: TableSpec) -> dict[str, list[str]]:
    """Return the columns of a table by name, with the cells of its first rows as they are written."""
    with in_file(path):
        table = open_table(path, [], said.dialect)
        names = table.schema.names
        found: dict[str, list[str]] = {name: [] for name in names}
        for rows in rows_of(table.with_text(names), names, _SAMPLED):
            for k, name in enumerate(names):
                cells = arrow.plain(rows.batch.column(k)).to_pylist()
                found[name] += ["" if _written(cell) is None else str(_written(cell)) for cell in cells]
            if len(found[names[0]]) >= _SAMPLED:
                break
        return found


def likely(
    columns: Mapping[str, Sequence[str]], is_period: Callable[[str], bool], outcome: str, units: Sequence[str] = ()
) -> dict[str, str]:
    """Return which columns seem to hold units, starts, periods and numbers; what is not seen is left out.

    ``units`` are those of a private panel: its table names units and starts, nothing else.

    Examples
    --------
    >>> table = {"town": ["A", "A", "B", "B"], "year": ["1", "2", "1", "2"], "since": ["2", "2", "", ""],
    ...          "cost": ["7.5", "8.5", "9.5", "3.5"]}
    >>> likely(table, lambda text: text in ("1", "2"), "cost")
    {'unit': 'town', 'start': 'since', 'time': 'year', 'outcome': 'cost'}
    """
    kinds = {name: _kind(cells, is_period) for name, cells in columns.items()}
    of = {kind: [name for name in columns if kinds[name] == kind] for kind in ("period", "number", "text")}
    if units:
        known = {name: sum(cell in units for cell in cells) for name, cells in columns.items()}
        unit = max(known, key=lambda name: known[name], default="")
        starts = [name for name in of["period"] if name != unit]
        return {"unit": unit, **dict(zip(("start",), starts, strict=False))} if known.get(unit) else {}
    dates = [name for name in of["period"] if not _numbers_named(name, outcome)]
    unit = next(iter(_best(of["text"], _UNITS) or _best(of["number"], _UNITS, alone=True)), "")
    if not unit:
        return {}
    once = [name for name in dates if _same_in_each(columns[name], columns[unit])]
    changing = [name for name in dates if name not in once]
    start, time = _best(once, _STARTS), _best(changing, _TIMES)
    left = [name for name in columns if name not in (unit, *once, *changing) and kinds[name] != "text"]
    numbers = [name for name in left if not _same_in_each(columns[name], columns[unit])]
    numbers = [name for name in numbers if _numbers_named(name, outcome)] or numbers
    found = {"unit": unit, "start": next(iter(start), ""), "time": next(iter(time), ""), "outcome": ""}
    found["outcome"] = numbers[0] if numbers else ""
    return {what: name for what, name in found.items() if name}


def _kind(cells: Sequence[str], is_period: Callable[[str], bool]) -> str:
    """Tell what most different cells of a column are: periods, numbers or text."""
    different = list(dict.fromkeys(cell for cell in cells if cell))[:_DIFFERENT]
    if not different:
        return "empty"
    if 2 * sum(map(is_period, different)) > len(different):
        return "period"
    return "number" if 2 * sum(map(_is_number, different)) > len(different) else "text"


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[-+−]?[\d.,'’\s]*\d[\d.,'’\s]*(e[-+]?\d+)?%?", cell, re.IGNORECASE) is not None


def _numbers_named(name: str, outcome: str) -> bool:
    return name.strip().casefold() == outcome.strip().casefold()


def _best(names: Sequence[str], hints: str, *, alone: bool = False) -> list[str]:
    """Return columns, those first whose name is one that people use; ``alone``, no others."""
    named = [name for name in names if re.search(hints, name, re.IGNORECASE)]
    return named if alone else [*named, *(name for name in names if name not in named)]


def _same_in_each(cells: Sequence[str], units: Sequence[str]) -> bool:
    """Tell whether a column has one value for each unit, and units have several rows."""
    pairs = set(zip(units, cells, strict=True))
    return len(pairs) == len(set(units)) < len(units)


_SAMPLED, _DIFFERENT = 5_000, 200  # rows of a table, and different cells of a column, that are looked at
_UNITS = r"unit|region|store|shop|clinic|hospital|state|county|city|town|country|site|market|name|id$"
_STARTS = r"start|treat|adopt|first|since|begin|from|launch|interven"
_TIMES = r"time|date|day|week|month|quarter|year|period"


def _the_others(names: list[str], given: list[str], time: str | None, outcome: str | None) -> tuple[str, str]:
    """Return the columns of periods and of numbers: those that are named, or the two that are left, in this order."""
    left = [name for name in names if name not in (*given, time, outcome)]
    missing = [name for name in (time, outcome) if name is None]
    if missing and len(left) != len(missing):
        raise TableError(undecided(names, time, outcome))
    time = left.pop(0) if time is None else time
    return time, left.pop(0) if outcome is None else outcome


def _written(label: Any) -> str | None:
    """Return a start as text, None if the cell is empty; a column with empty cells may hold whole numbers as floats."""
    if label is None or (isinstance(label, float) and math.isnan(label)) or pd.isna(label):
        return None
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    text = period_name(label).strip()
    return None if text in MISSING else text


def _targets(frame: pd.DataFrame, names: dict[str, str], path: Path) -> Targets:
    """Divide a table by its units; ``names`` says what its columns are called in the file."""
    unit, time, outcome = names["unit"], names["time"], names["value"]
    nameless = frame["unit"].isna() | (frame["unit"].astype(str).str.strip() == "")
    if nameless.any():
        raise TableError(f"{formats.row_name(int(nameless.to_numpy().argmax()), path)} has no unit in column {unit!r}.")
    series: dict[str, pd.Series[float]] = {}
    starts: dict[str, str | None] = {}
    weights: dict[str, float] = {}
    averages: dict[str, int] = {}
    groups: dict[str, str] = {}
    ends: dict[str, str | None] = {}
    treated: dict[str, pd.Series[float]] = {}
    for label, rows in frame.groupby("unit", sort=False):
        name = str(label)
        twice = rows["time"].duplicated()
        if twice.any():
            raise TableError(f"unit {name!r} has the period {period_name(rows['time'][twice].iloc[0])} twice.")
        starts[name] = _same(rows["start"], name, names.get("start", ""), START)
        index = pd.Index(rows["time"], name=time)
        if "treated" in frame:
            treated[name] = pd.Series(rows["treated"].to_numpy(), index=index)
            when = index[rows["treated"].to_numpy() > 0]
            starts[name] = period_name(when[0]) if len(when) else None
        if "end" in frame and starts[name] is not None:
            ends[name] = _same(rows["end"], name, names["end"], END)
        if "weight" in frame and starts[name] is not None:
            weight = _same(rows["weight"], name, names["weight"], WEIGHT)
            if weight is None:
                raise TableError(f"unit {name!r} has no weight in column {names['weight']!r} ({WEIGHT}).")
            weights[name] = float(weight)
        if "averages" in frame and starts[name] is not None:
            number = _same(rows["averages"], name, names["averages"], AVERAGES)
            if number is not None:
                averages[name] = _whole(number, name, names["averages"])
        if "group" in frame and starts[name] is not None:
            groups[name] = _group(_same(rows["group"], name, names["group"], GROUP), name, names["group"])
        series[name] = pd.Series(rows["value"].to_numpy(), index=index, name=outcome)
    if all(date is None for date in starts.values()):
        empty = f"column {names['start']!r} ({START}) is empty" if "start" in names else "none is marked as treated"
        raise TableError(f"no unit has a first treated period: {empty}.")
    return Targets(
        series,
        starts,
        weights=weights if "weight" in frame else None,
        averages=averages if "averages" in frame else None,
        ends=ends if "end" in frame else None,
        treated=treated if "treated" in frame else None,
        groups=groups if "group" in frame else None,
    )


def _group(label: Any, unit: str, column: str) -> str:
    """Return the name of a group; refuse a unit without one."""
    written = _written(label)
    if written is None:
        raise TableError(f"unit {unit!r} has no group in column {column!r} ({GROUP}).")
    return written


def _whole(number: float, unit: str, column: str) -> int:
    """Return how many units a target is the average of."""
    if not (number >= 1 and number == int(number)):
        raise TableError(
            f"unit {unit!r} has {number:g} in column {column!r} ({AVERAGES}): a target averages 1 unit or more."
        )
    return int(number)


def _same(values: pd.Series[Any], unit: str, column: str, it: Parameter) -> Any:
    """Return the one value that all rows of a unit have."""
    found = list(dict.fromkeys(None if pd.isna(value) else value for value in values))
    if len(found) > 1:
        one, other = ("nothing" if value is None else repr(value) for value in found[:2])
        raise TableError(
            f"unit {unit!r} has {one} and {other} in column {column!r} ({it}): all rows of a unit must agree."
        )
    return found[0]
