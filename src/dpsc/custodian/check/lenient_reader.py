"""Reads a table without refusing anything in its rows: cells as numbers beside what cannot be read, with row numbers.

For the custodian's rehearsal only (:mod:`dpsc.custodian.check.examine`): everything here is private, cells are quoted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpsc.checks import visible
from dpsc.custodian.check import guess
from dpsc.custodian.donors import cells
from dpsc.errors import TableError
from dpsc.release.segments import BY
from dpsc.tables import arrow, excel, formats, spec
from dpsc.tables import reader as tables
from dpsc.tables.arrow import Rows
from dpsc.tables.numbers import Numbers
from dpsc.tables.spec import MISSING, OUTCOME, TIME, UNIT, TableSpec
from dpsc.types import Array

SHOWN = 5  # examples of each kind
MOST_CELLS = 12_000_000  # that are looked at, so that memory stays bounded
_FIRST = 20_000  # rows from which columns and marks are guessed
_AT_ONCE = 2**18
Codes = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]


@dataclass
class Gathered:
    """All cells of a table that are numbers, and what is wrong with the others. Private.

    Attributes
    ----------
    units, labels : list
        The different units and labels of periods, in the order of first appearance.
    of_row : list of arrays
        The unit of each row, -1 where there is none.
    unit, label, row, value : lists of arrays
        Of each cell: its unit, the label of its period (-1 where there is none), its row, its number or NaN.
    counts : Counter
        How many cells are "text" or "ambiguous", no number or two; how many rows have "no unit" or "no period".
    examples : dict
        The first few of each, in words.
    segments : dict
        The different labels of segments, in the order of first appearance.
    in_segment : list of arrays
        Units and the labels of segments that their rows name, each pair once per batch of rows: 2 columns.
    wrong_lines : list of int
        Lines of a text file with too many or too few fields; they were left out.
    """

    units: dict[str, int] = field(default_factory=dict)
    labels: dict[Any, int] = field(default_factory=dict)
    of_row: list[Codes] = field(default_factory=list)
    unit: list[Codes] = field(default_factory=list)
    label: list[Codes] = field(default_factory=list)
    row: list[Codes] = field(default_factory=list)
    value: list[Array] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    segments: dict[str, int] = field(default_factory=dict)
    in_segment: list[Codes] = field(default_factory=list)
    all_rows: bool = True
    unreadable: TableError | None = None
    wrong_lines: list[int] = field(default_factory=list)
    examples: dict[str, list[str]] = field(default_factory=dict)
    parts: list[tuple[int, str]] = field(default_factory=list)  # where each file begins

    def row_name(self, row: int) -> str:
        """Name a row by the number that an editor shows, and by its file if there are several."""
        first, path = self.parts[bisect_right(self.parts, (row, "\uffff")) - 1]
        position = row - first
        for line in self.wrong_lines:
            position += line <= position + 2
        name = formats.row_name(position, path)
        return name if len(self.parts) == 1 else f"{Path(path).name}, {name}"

    def note(self, kind: str, first: int, mask: Any, about: Callable[[int], str] = lambda row: "") -> None:
        """Count the rows of a mask, of which the first is row ``first``, and keep some as examples."""
        rows, known = np.flatnonzero(mask), self.examples.setdefault(kind, [])
        self.counts[kind] += len(rows)
        known += [f"{self.row_name(first + row)}{about(row)}" for row in rows[: SHOWN - len(known)].tolist()]


def open_as_text(path: Path, said: TableSpec) -> tables.Table:
    """Open a table with every column as it is written."""
    columns = [(said.unit, UNIT), (said.time, TIME), (None if said.wide else said.outcome, OUTCOME), (said.by, BY)]
    named = [name or None for name, _ in columns]
    table = tables.open_table(path, [], said.dialect, named)
    with formats.in_file(path):
        for name, parameter in columns:
            if name:
                spec.find(table.schema.names, name, parameter)
    return table.with_text(table.schema.names)


def first_rows(table: tables.Table) -> dict[str, Any]:
    """Return the first rows of every column, as text."""
    names, path = table.schema.names, _text_file(table)
    reading = tables.rows_of(table, names, _FIRST) if path is None else _skipping(path, table, names, [])
    try:
        rows = next(reading, None)
    except pa.ArrowException:
        rows = None
    if rows is None:  # say why
        rows = next((some for some in tables.rows_of(table, names, _FIRST) if some.batch.num_rows), None)
    if rows is None:
        return {name: pa.array([], pa.string()) for name in names}
    return {name: _as_text(rows.batch.column(k).slice(0, _FIRST)) for k, name in enumerate(names)}


def _as_text(column: Any) -> Any:
    column = arrow.plain(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column
    if pa.types.is_floating(column.type):
        return pa.array([excel.label(value) for value in column.to_pylist()], pa.string())
    return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())


def joined(parts: list[Any]) -> Any:
    """Return arrays as one, and empty the list, so that they are not held twice."""
    whole = np.concatenate(parts) if parts else np.empty(0)
    parts.clear()
    return whole


def gather(
    table: tables.Table,
    said: TableSpec,
    periods: list[str],
    numbers: Numbers,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> Gathered:
    """Read a table; ``periods`` are the columns of a wide one. What cannot be read at all is said, not raised.

    If lines of a text file have too many or too few fields, it is read again without them. ``on_rows`` is told how many
    rows were read; it may stop the reading, by raising.
    """
    names = [said.unit, *periods] if said.wide else [said.unit, str(said.time), str(said.outcome)]
    names += [said.by] if said.by else []

    def gathered(batches: Iterator[Rows], wrong: list[int]) -> Gathered:
        found = Gathered(wrong_lines=wrong)
        try:
            for rows in batches:
                if said.by:
                    _take_segments(found, rows)
                    rows = rows._replace(batch=rows.batch.select(names[:-1]))
                _take(found, rows, numbers, said.wide)
                on_rows(rows.batch.num_rows)
                if sum(map(len, found.value)) >= MOST_CELLS:
                    found.all_rows = False
                    break
        except TableError as problem:
            found.unreadable = problem
        except pa.ArrowException:
            found.unreadable = TableError("it cannot be read.")
        return found

    found = gathered(tables.rows_of(table, names, max(1, 3 * _AT_ONCE // len(names))), [])
    path = _text_file(table)
    if found.unreadable is None or path is None:
        return found
    wrong: list[int] = []
    again = gathered(_skipping(path, table, names, wrong), wrong)
    return again if wrong and again.unreadable is None else found


def _text_file(table: tables.Table) -> Path | None:
    """Return the file of a table that is one text file."""
    return table.files[0].path if table.is_text and len(table.files) == 1 else None


def _skipping(path: Path, table: tables.Table, names: list[str], wrong: list[int]) -> Iterator[Rows]:
    texts = dict.fromkeys(table.schema.names, pa.string())
    content, first = table.files[0].stream(), 0
    for batch in formats.csv_batches(content, table.reading, wrong, column_types=texts, include_columns=names):
        yield Rows(str(path), first, batch, table.reading.numbers)
        first += batch.num_rows


def _take(found: Gathered, rows: Rows, numbers: Numbers, wide: bool) -> None:
    """Add rows, whose first column is the unit; then come a period and a number, or a number for each period."""
    first, batch, known = found.rows, rows.batch, found.labels
    if not found.parts or found.parts[-1][1] != rows.path:
        found.parts.append((first, rows.path))
    kept, units = cells.units_of(rows)
    coded = units.dictionary_encode()
    new = [found.units.setdefault(unit, len(found.units)) for unit in coded.dictionary.to_pylist()]
    unit = np.full(len(kept), -1, dtype=np.int32)
    unit[kept] = np.array(new, dtype=np.int32)[coded.indices.to_numpy()]
    found.note("no unit", first, unit < 0)
    found.rows += len(unit)
    found.of_row.append(unit)
    if wide:
        labels = (np.full(len(unit), known.setdefault(name, len(known))) for name in batch.schema.names[1:])
        columns = zip(labels, batch.columns[1:], strict=True)
    else:
        columns = zip([_codes(batch.column(1), known)], [batch.column(2)], strict=True)
    for label, column in columns:
        if not wide:
            found.note("no period", first, label < 0)
        values = _numbers(found, column, rows.path, numbers, first, label)
        there = np.flatnonzero(~np.isnan(values)) if wide else np.arange(len(values))
        found.unit.append(unit[there])
        found.label.append(label[there].astype(np.int32))
        found.row.append((first + there).astype(np.int32))
        found.value.append(values[there])


def _take_segments(found: Gathered, rows: Rows) -> None:
    """Add which segments the units of rows name, in the last column; the same units are numbered in the same way."""
    kept, units = cells.units_of(rows)
    unit = _codes(units, found.units)
    label = _codes(cells.as_units(rows.batch.columns[-1]).filter(pa.array(kept)), found.segments)
    found.in_segment.append(np.unique(np.column_stack([unit, label]), axis=0))


def _codes(column: Any, known: dict[Any, int]) -> Codes:
    """Return the position of each label among those known, which grow; -1 where there is none."""
    column = arrow.plain(column)
    coded = column.dictionary_encode()
    new = []
    for value in coded.dictionary.to_pylist():
        empty = value is None or value != value or (isinstance(value, str) and not value.strip())
        new.append(-1 if empty else known.setdefault(value, len(known)))
    indices = pc.fill_null(coded.indices, len(new)).to_numpy(zero_copy_only=False)
    return np.asarray(np.array([*new, -1], dtype=np.int64)[indices])


def _numbers(found: Gathered, column: Any, path: str, numbers: Numbers, first: int, label: Codes) -> Array:
    """Return the cells of a column as numbers, NaN where there is none, and note what is no number."""
    column = arrow.plain(column)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        if not arrow.may_hold_numbers(column.type):
            raise TableError(f"a column that should hold numbers holds {column.type}.")
        return arrow.floats(column, "", Rows("", None, None))
    trimmed = pc.utf8_trim_whitespace(column)
    # Arrow itself reads plain CSV, and to it a cell with nothing but a space is not empty.
    raw = column if numbers.plain and formats.is_text(Path(path)) else trimmed
    column = pc.if_else(pc.is_in(raw, value_set=pa.array(MISSING, raw.type)), None, trimmed)

    def says(row: int) -> str:
        period = f" ({visible(str(list(found.labels)[label[row]]))})" if label[row] >= 0 else ""
        return f"{period} says {visible(column[row].as_py())[:40]!r}"

    if len(numbers.decimals) > 1:
        found.note("ambiguous", first, guess.two_readings(column).to_numpy(zero_copy_only=False), says)
    read = column if numbers.plain else numbers.read(column).texts
    try:
        values = read.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        values = pd.to_numeric(read.to_pandas(), errors="coerce").to_numpy(dtype=np.float64)
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).sum() > column.null_count:
        there = pc.is_valid(column).to_numpy(zero_copy_only=False)
        found.note("text", first, np.isnan(values) & there, says)
    return values
