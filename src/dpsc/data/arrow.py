"""Donors in files: columns, periods and rows, in blocks or whole; one file or a folder, of any kind that can be read.

Wide: one row per donor, one column per period. Long: one row per donor and period, the rows of a donor together
(in any order if the table is held in memory). A donor split between two blocks or files is put together again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpsc.data import calendars, cells, columns, dates, formats, placing, tables
from dpsc.data import periods as periods_of
from dpsc.data.alike import alike
from dpsc.data.blocks import CheckedBlock, Identities, more_than_one_row, not_together
from dpsc.data.bounds import Bounds
from dpsc.data.cells import Rows
from dpsc.data.columns import OUTCOME, TIME, UNIT, Layout
from dpsc.data.dialects import AS_USUAL, UNSAID, Dialect
from dpsc.data.formats import in_file
from dpsc.data.frames import Matrix, PeriodsFrom
from dpsc.data.missing import Completion
from dpsc.data.rules import Missing
from dpsc.data.writing import row_writer
from dpsc.errors import TableError, UnorderedError
from dpsc.types import Array, Write

_SAMPLE = 2**20


@dataclass(frozen=True, eq=False)
class Files:
    """A table in one file or in a folder of files, and how it holds donors.

    Attributes
    ----------
    path : Path
    layout : Layout
    missing, bounds
        What to do with missing cells and with values outside the public bounds: see :class:`Completion`.
    exclude : tuple of str
        Units to leave out, as they are written.
    periods : Index, optional
        The periods, declared beforehand. Rows outside them are ignored, and no refusal depends on which rows a donor
        has. Without it the periods of a long table are read from it, and every donor needs a row for each.
    held : bool
        Whether the table is read once and held in memory; a long one may then have its rows in any order.
    dialect : Dialect
        What was said about separator, marks in numbers, encoding and sheet.
    """

    path: Path
    layout: Layout
    missing: Missing | None = None
    bounds: tuple[float, float] | None = None
    exclude: tuple[str, ...] = ()
    periods: pd.Index[Any] | None = None
    held: bool = False
    dialect: Dialect = UNSAID

    @cached_property
    def table(self) -> tables.Table:
        """The files, and how they are read."""
        layout = self.layout
        named = [layout.unit] if layout.wide else [layout.unit, layout.time, layout.outcome]
        return tables.open_table(self.path, [layout.unit, layout.time], self.dialect, named)

    @property
    def dataset(self) -> Any:
        """The files as an Arrow data set; only the schema is read."""
        return self.table.dataset

    @property
    def as_understood(self) -> str | None:
        """How a text file is read that is not plain CSV: "separator semicolon, encoding utf-8, decimal comma"."""
        text = formats.format_name(self.path) in ("csv", "tsv")
        return self.table.reading.words if text and self.table.reading != AS_USUAL else None

    @cached_property
    def columns(self) -> list[str]:
        """The columns to read: the unit, and the periods of a wide table or the time and outcome of a long one."""
        with in_file(self.path):
            names, folders = self.dataset.schema.names, formats.partitions_of(self.dataset)
            inside = folders & {self.layout.unit, self.layout.time, self.layout.outcome}
            if inside:
                raise TableError(
                    f"{min(map(str, inside))!r} is in the names of its folders; write it into the files, as a column."
                )
            tables.require_column(self.dataset, self.layout.unit, UNIT)
            if not self.layout.wide:
                time, outcome = str(self.layout.time), str(self.layout.outcome)
                tables.require_column(self.dataset, time, TIME)
                tables.require_column(self.dataset, outcome, OUTCOME, number=True)
                tables.require_same_columns(self.dataset, self.path, [outcome], [self.layout.unit, time])
                tables.require_unambiguous(self.table, self.path, [outcome])
                return [self.layout.unit, time, outcome]
            not_periods = {self.layout.unit} | folders | self._saved_row_numbers()
            periods = [name for name in names if name not in not_periods]
            if not periods:
                raise TableError(f"there are no columns of periods besides {self.layout.unit!r} ({{unit}}).", unit=UNIT)
            if self.periods is not None:
                return [self.layout.unit, *self._declared_columns(periods)]
            columns.require_period_names(
                periods,
                "In a wide table every column except {unit} is a period: drop the other columns, or give a long "
                "table (one row per unit and period) with {time} and {outcome}.",
                unit=UNIT, time=TIME, outcome=OUTCOME,
            )  # fmt: skip
            for name in periods:
                tables.require_column(self.dataset, name, number=True)
            tables.require_same_columns(self.dataset, self.path, periods, [self.layout.unit])
            tables.require_unambiguous(self.table, self.path, periods)
            return [self.layout.unit, *periods]

    def _declared_columns(self, names: list[str]) -> list[str]:
        """Return the columns of a wide table that hold the declared periods, in their order; a header is public."""
        assert self.periods is not None
        found = placing.places(names, self.periods, self.layout.time_format)
        for position, period in enumerate(self.periods):
            if (found == position).sum() != 1:
                which = "no column" if position not in found else "more than one column"
                raise TableError(f"there is {which} for the declared period {dates.period_name(period)}.")
        chosen = [names[int(np.argmax(found == position))] for position in range(len(self.periods))]
        for name in chosen:
            tables.require_column(self.dataset, name, number=True)
        tables.require_same_columns(self.dataset, self.path, chosen, [self.layout.unit])
        tables.require_unambiguous(self.table, self.path, chosen)
        return chosen

    def _saved_row_numbers(self) -> set[str]:
        """Return the columns in which pandas saved an index without a name."""
        index = (self.dataset.schema.pandas_metadata or {}).get("index_columns", [])
        return {name for name in index if isinstance(name, str) and name.startswith("__index_level_")}

    @cached_property
    def _labels(self) -> Any:
        """The different labels of periods as the files write them, in their order, as an Arrow array."""
        if self.layout.wide:
            return pa.array(self.columns[1:])
        found = [
            pc.unique(cells.plain(rows.batch.column(0))) for rows in self._rows([self.columns[1]], tables.ROWS_AT_ONCE)
        ]
        tables.require_rows(sum(map(len, found)), self.path)
        return pc.unique(pa.chunked_array(found).combine_chunks())

    def _row_of(self, label: int) -> str:
        """Name the first row that has a label; they are looked for only when there is something to say of it."""
        if self.layout.wide:
            return "the header"
        for rows in self._rows([self.columns[1]], tables.ROWS_AT_ONCE):
            found = pc.index_in(cells.plain(rows.batch.column(0)), value_set=self._labels)
            position = pc.index(found, pa.scalar(label, found.type)).as_py()
            if position >= 0:
                return rows.row_name(position)
        return "a row"

    @cached_property
    def _ordered(self) -> tuple[pd.Index[Any], list[Any]]:
        """The periods and the labels that are written for them, in the order of time."""
        if self.periods is not None:
            return self.periods, self._labels.to_pylist()
        name = "the header" if self.layout.wide else str(self.layout.time)
        written = self._labels.to_pylist()
        with in_file(self.path):
            private = not self.layout.wide
            index = calendars.understood(written, name, self._row_of, self.layout.time_format, private=private)
            index = index.rename(str(self.layout.time or "time"))
            if not index.is_unique:
                raise TableError("two labels stand for the same period.")
            try:
                order = periods_of.in_order(index)
            except UnorderedError as problem:
                here = [str(label).strip() for label in index].index(problem.label)
                shown = f"of {self._row_of(here)}" if private else repr(problem.label)
                raise TableError(
                    f"the period {shown} does not sort in time order as text; say how the dates are written, for "
                    "example {it}.",
                    it=dates.AS_WRITTEN,
                ) from None
            return periods_of.plain(index[order]), [written[i] for i in order]

    @property
    def times(self) -> pd.Index[Any]:
        """The periods, in order."""
        with formats.nothing_quoted(self.path):
            return self._ordered[0]

    @property
    def periods_from(self) -> PeriodsFrom:
        """Where the periods are from."""
        return "declared" if self.periods is not None else "header" if self.layout.wide else "rows"

    @property
    def outcome(self) -> str:
        """The name of the outcome."""
        return self.layout.name

    @property
    def in_time_order(self) -> list[str]:
        """The columns to read; the periods of a wide table are in time order."""
        return [self.columns[0], *self._ordered[1]] if self.layout.wide else self.columns

    @cached_property
    def calendar(self) -> cells.Calendar:
        """Which period the labels of a long table stand for."""
        written, places = self._ordered[1], np.arange(len(self.times))
        if self.periods is not None:
            places = placing.places(written, self.periods, self.layout.time_format)
            if not (places >= 0).any():
                raise formats.refusal(
                    self.path,
                    "no row of the table has one of the declared periods; if its dates are written in another way, "
                    "say how with {it}.",
                    it=dates.AS_WRITTEN,
                )
        labels = self._labels if self.periods is not None else pa.array(written, self._labels.type)
        return cells.Calendar(labels, places, len(self.times), declared=self.periods is not None)

    @cached_property
    def completion(self) -> Completion:
        """How missing cells and values outside the bounds are handled."""
        public = None if self.bounds is None else Bounds.parse(self.bounds, len(self.times))
        return Completion(self.times, self.missing, public, declared=self.periods is not None)

    @cached_property
    def _table(self) -> list[Rows]:
        return list(tables.rows_of(self.table, self.columns))

    def _rows(self, names: list[str], size: int) -> Iterator[Rows]:
        """Yield rows with the named columns; a table held in memory is not read again."""
        if not self.held:
            yield from tables.rows_of(self.table, names, size)
            return
        for rows in self._table:
            yield rows._replace(batch=rows.batch.select(names))

    def rows_expected(self) -> int | None:
        """Return how many donors to expect, for a progress bar: known for Parquet and Feather, estimated for CSV."""
        rows = self._table_rows()
        return rows if rows is None or self.layout.wide else max(1, rows // max(1, len(self.times)))

    def _table_rows(self) -> int | None:
        if formats.format_name(self.path) == "xlsx":
            return len(self.dataset.cells)
        if formats.format_name(self.path) in ("parquet", "feather"):
            return sum(tables.count_rows(fragment) for fragment in self.dataset.get_fragments())
        files = [Path(name) for name in self.dataset.files]
        if any(file.suffix == ".gz" for file in files):
            return None
        with files[0].open("rb") as file:
            sample = file.read(_SAMPLE)
        lines = max(1, sample.count(b"\n"))
        return int(sum(file.stat().st_size for file in files) / (len(sample) / lines))

    def matrix(self) -> Matrix:
        """Return the whole table as a matrix, units in the order of first appearance; absent cells are NaN."""
        with formats.nothing_quoted(self.path):
            return self._matrix()

    def _matrix(self) -> Matrix:
        batches = list(self._rows(self.in_time_order, tables.ROWS_AT_ONCE))
        codes, labels = cells.factorize([self._units(rows) for rows in batches])
        tables.require_rows(len(codes), self.path)
        with in_file(self.path):
            if self.layout.wide:
                if len(labels) < len(codes):
                    row = self._row_name(int(np.argmax(pd.Index(codes).duplicated())))
                    raise more_than_one_row(self.layout, f"{row} names a unit that another row has")
                blocks = [
                    cells.column_writer(rows)(np.empty((len(self.times), rows.batch.num_rows))) for rows in batches
                ]
                values = np.ascontiguousarray(np.hstack(blocks).T)
            else:
                values = self._pivoted(batches, codes, len(labels))
        return Matrix(values, labels, self.times, self.periods_from)

    def _pivoted(self, batches: list[Rows], codes: Any, count: int) -> Array:
        names = self.columns
        when = np.concatenate([self.calendar.places(rows.batch.column(1)) for rows in batches])
        values = np.concatenate([cells.floats(rows.batch.column(2), names[2], rows) for rows in batches])
        return self.calendar.pivoted(codes, when, values, count, self._row_name, 0)

    def _row_name(self, position: int) -> str:
        return "a row" if self.path.is_dir() else formats.row_name(position, self.path)

    def blocks(self, size: int, identities: Identities) -> Iterator[CheckedBlock]:
        """Yield blocks of at most ``size`` donors, periods in time order."""
        if self.held:
            yield from self._held_blocks(size, identities)
            return
        read = self._wide_blocks if self.layout.wide else self._long_blocks
        for path, units, write in read(size):
            yield CheckedBlock(path, units, write, identities, self.completion)

    def _held_blocks(self, size: int, identities: Identities) -> Iterator[CheckedBlock]:
        matrix = self.matrix()
        units = pa.array(matrix.units)
        for i in range(0, len(units), size):
            rows = row_writer(matrix.values[i : i + size])
            yield CheckedBlock(str(self.path), units.slice(i, size), rows, identities, self.completion, i)

    def _wide_blocks(self, size: int) -> Iterator[tuple[str, Any, Write]]:
        count = 0
        for rows in self._rows(self.in_time_order, size):
            count += rows.batch.num_rows
            yield rows.path, self._units(rows), cells.column_writer(rows)
        tables.require_rows(count, self.path)

    def _long_blocks(self, size: int) -> Iterator[tuple[str, Any, Write]]:
        """Put the rows of each donor together; the last donor of a batch waits for its rows in the next batch."""
        waiting: Rows | None = None
        for rows in map(cells.with_floats, self._rows(self.columns, size * max(1, len(self.times)))):
            if waiting is not None:
                same = rows.first is not None and rows.first > 0 and waiting.first is not None
                rows = Rows(rows.path, waiting.first if same else None, cells.joined(waiting.batch, rows.batch))
            units = self._units(rows)
            starts = cells.starts_of(units)
            if len(starts) > 1:
                end = int(starts[-1])
                yield from runs(Rows(rows.path, rows.first, rows.batch.slice(0, end)), self.calendar, size)
                rows = Rows(rows.path, None if rows.first is None else rows.first + end, rows.batch.slice(end))
            waiting = rows
        if waiting is not None and waiting.batch.num_rows:
            yield from runs(waiting, self.calendar, size)

    def _units(self, rows: Rows) -> Any:
        with in_file(rows.path):
            return cells.units_of(rows, self.layout.unit)

    def custodian_units_alike(self) -> int:
        """Count units whose labels differ only in case, spaces or Unicode form. Private: for the custodian only."""
        seen: set[Any] = set()
        for rows in self._rows([self.columns[0]], tables.ROWS_AT_ONCE):
            seen.update(pc.unique(self._units(rows)).to_pylist())
        return alike(seen)

    def identities(self) -> Identities:
        """Return an empty record of the units seen."""
        return Identities(self.layout, self.exclude)

    def finish(self, identities: Identities, n: int) -> None:
        """Make the checks that need all units."""
        with in_file(self.path):
            self.require_plausible(n)
            identities.finish()

    def require_plausible(self, n: int) -> None:
        """Refuse a table in which unit and time seem swapped (more text labels than donors): periods are published."""
        text = pd.api.types.is_object_dtype(self.times) or pd.api.types.is_string_dtype(self.times)
        if self.periods is None and not self.layout.wide and text and len(self.times) > n:
            raise TableError(
                f"column {self.layout.time!r} ({{time}}) has more different labels than column "
                f"{self.layout.unit!r} ({{unit}}) has units; are the two swapped?",
                time=TIME, unit=UNIT,
            )  # fmt: skip


def runs(rows: Rows, calendar: cells.Calendar, size: int) -> Iterator[tuple[str, Any, Write]]:
    """Yield donors from rows of a long table (unit, time, outcome) in which each donor's follow each other."""
    unit, _, outcome = rows.batch.schema.names
    with in_file(rows.path):
        units = cells.units_of(rows, unit)
        starts = cells.starts_of(units)
        donors = units.take(pa.array(starts))
        if pc.count_distinct(donors).as_py() < len(donors):
            raise not_together(unit)
        when = calendar.places(rows.batch.column(1))
        values = cells.floats(rows.batch.column(2), outcome, rows)
    ends = np.append(starts[1:], len(units))
    for i in range(0, len(starts), size):
        here = slice(int(starts[i]), int(ends[min(i + size, len(starts)) - 1]))
        donor = np.repeat(np.arange(len(starts[i : i + size])), ends[i : i + size] - starts[i : i + size])
        with in_file(rows.path):
            matrix = calendar.pivoted(
                donor, when[here], values[here], len(starts[i : i + size]), partial(_later, rows, here.start)
            )
        yield rows.path, donors.slice(i, size), row_writer(matrix)


def _later(rows: Rows, start: int, position: int) -> str:
    return rows.row_name(start + position)
