"""Several public targets in one long table, each with its first treated period and, if wished, a weight."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dpsc.errors import Parameter, TableError
from dpsc.periods import calendar
from dpsc.periods.dates import period_name
from dpsc.tables import arrow, formats
from dpsc.tables.formats import in_file
from dpsc.tables.reader import open_table, require_column, require_rows, require_unambiguous, rows_of
from dpsc.tables.spec import MISSING, OUTCOME, TIME, UNIT, TableSpec, find

START, WEIGHT = Parameter("treatment_time_column", ""), Parameter("weight_column", "")
AVERAGES, END = Parameter("averages_column", ""), Parameter("treatment_end_column", "")
TREATED = Parameter("treated_column", "")
_OPTIONS = {
    "unit": UNIT,
    "start": START,
    "end": END,
    "time": TIME,
    "value": OUTCOME,
    "weight": WEIGHT,
    "averages": AVERAGES,
    "treated": TREATED,
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
    """

    series: dict[str, pd.Series[float]]
    starts: dict[str, str | None]
    weights: dict[str, float] | None
    averages: dict[str, int] | None = None
    ends: dict[str, str | None] | None = None
    treated: dict[str, pd.Series[float]] | None = None


def read(
    path: Path,
    said: TableSpec,
    *,
    start: str | None,
    end: str | None = None,
    treated: str | None = None,
    weight: str | None = None,
    averages: str | None = None,
    start_of_all: str | None = None,
) -> Targets:
    """Read a long table of public targets: one row per unit and period; an empty start means never treated.

    Without a column of starts, all units have the one that is given, or ``treated`` names a column of 0 and 1.
    """
    if path.is_dir():
        raise formats.refusal(path, f"this is a folder; name a file: {formats.KINDS}.")
    unit, dialect = said.unit, said.dialect
    with in_file(path):
        columns = {"unit": unit, "start": start, "end": end}
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
        found: dict[str, list[Any]] = {column: [] for column in labels | numbers}
        for rows in rows_of(table, list((labels | numbers).values())):
            for k, (column, name) in enumerate((labels | numbers).items()):
                cell = rows.batch.column(k)
                found[column] += (
                    arrow.floats(cell, name, rows).tolist() if column in numbers else arrow.plain(cell).to_pylist()
                )
        require_rows(len(found["unit"]), path)
        when = calendar.understood(found["time"], time, lambda row: formats.row_name(row, path), said.time_format)
        starts = [start_of_all] * len(when) if start is None else [_written(label) for label in found["start"]]
        ends = {} if end is None else {"end": [_written(label) for label in found["end"]]}
        frame = pd.DataFrame(found | {"time": list(when), "start": starts} | ends)
        return _targets(frame, labels | numbers, path)


def spans_of_units(
    path: Path, said: TableSpec, start: str, end: str | None = None
) -> tuple[dict[str, str], dict[str, str | None] | None]:
    """Read when units of a panel were treated, one row per unit: first and, if its column is named, last periods.

    A unit with an empty start was never treated, and the treatment of one with an empty end goes on.
    """
    columns = [str(said.unit), start, *([] if end is None else [end])]
    with in_file(path):
        table = open_table(path, columns, said.dialect, columns)
        for name, it in zip(columns, (UNIT, START, END), strict=False):
            find(table.schema.names, name, it)
        found: dict[str, str | None] = {}
        last: dict[str, str | None] = {}
        for rows in rows_of(table, columns):
            units, starts, *ends = (arrow.plain(rows.batch.column(k)).to_pylist() for k in range(len(columns)))
            for unit, label, until in zip(units, starts, *(ends or [[None] * len(units)]), strict=True):
                name = "" if unit is None else str(unit).strip()
                if name in found:
                    raise TableError(f"unit {name!r} is there twice.")
                found[name], last[name] = _written(label), _written(until)
        treated = {unit: label for unit, label in found.items() if unit and label is not None}
        if not treated:
            raise TableError(f"no unit has a first treated period: column {start!r} ({START}) is empty.")
        return treated, None if end is None else {unit: last[unit] for unit in treated}


def _the_others(names: list[str], given: list[str], time: str | None, outcome: str | None) -> tuple[str, str]:
    """Return the columns of periods and of numbers: those that are named, or the two that are left, in this order."""
    left = [name for name in names if name not in (*given, time, outcome)]
    missing = [name for name in (time, outcome) if name is None]
    if missing and len(left) != len(missing):
        raise TableError(
            f"there are {len(names)} columns; say which hold the periods and the numbers: {TIME}, {OUTCOME}."
        )
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
    )


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
