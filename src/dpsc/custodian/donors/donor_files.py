"""Donors in files: columns, periods and rows, in blocks or whole; one file or a folder, of any kind that can be read.

Wide: one row per donor, one column per period. Long: one row per donor and period, in any order. Where the rows of each
donor follow each other, a table of any size is read as a stream, and a donor split between two blocks or files is put
together again; where they do not, they are divided by a hash of their donor first, in a private file.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpsc import checks
from dpsc.custodian.donors import cells
from dpsc.custodian.donors.blocks import (
    CheckedBlock,
    Following,
    Identities,
    in_order,
    not_together,
    row_writer,
)
from dpsc.custodian.donors.divided import Divided
from dpsc.custodian.donors.frames import Matrix, PeriodsFrom, alike, one_row_per_unit
from dpsc.custodian.donors.missing import Bounds, Completion
from dpsc.custodian.donors.people import Keys
from dpsc.custodian.donors.presence import Misfit, custodian_misfit
from dpsc.custodian.donors.records import keys_of
from dpsc.custodian.gram.exact_sum import OnRows, Presence, Summand
from dpsc.errors import Parameter, ParameterError, TableError, UnorderedError
from dpsc.periods import calendar as calendars
from dpsc.periods import dates
from dpsc.release.segments import BY, Segments
from dpsc.tables import arrow, formats, reader
from dpsc.tables.arrow import Rows
from dpsc.tables.formats import in_file
from dpsc.tables.places import Selection
from dpsc.tables.spec import OUTCOME, TIME, UNIT, TableSpec, require_period_names
from dpsc.tables.table_file import fits_in_memory
from dpsc.types import Array, Integers, Labels, OnProgress, Positions, Times, Write, unwatched

Engine = Literal["auto", "memory", "stream", "dask"]
Part: TypeAlias = tuple[str, Any, Write, Positions | None]  # of a table: its file, its units, their cells and segments
_DASK = Parameter("engine", "dask")
_LOOKED_AT = 100_000  # donors, for periods that nobody has


def chosen(path: Path, engine: Engine, scheduler: str | None, workers: int | None) -> Engine:
    """Return which engine is to read files, or refuse what does not go together."""
    checks.one_of("engine", engine, get_args(Engine))
    if scheduler is not None and engine not in ("auto", "dask"):
        raise ParameterError(f"{Parameter('scheduler')} belongs to {_DASK}, not to {engine}.")
    if workers is not None and (scheduler is not None or engine != "dask"):
        raise ParameterError(f"{Parameter('workers')} belongs to {_DASK} without {Parameter('scheduler')}.")
    if engine == "auto" and scheduler is not None:
        engine = "dask"
    if formats.is_workbook(path) and engine in ("stream", "dask"):
        raise ParameterError(
            f"{Parameter('engine', engine)} cannot read Excel workbooks, only {Parameter('engine', 'memory')} "
            f"can. Leave {Parameter('engine', engine)} out, or save {path.name} as CSV."
        )
    if isinstance(path, Selection) and engine == "dask":
        raise ParameterError(f"{_DASK} reads files, not databases; leave it out.")
    if engine == "dask" and not all(map(find_spec, ("dask", "distributed", "cryptography"))):
        raise ParameterError(f"{_DASK} needs Dask: pip install 'dpsc[dask]'.")
    return engine


@dataclass(frozen=True, eq=False)
class Files:
    """A table in one file or in a folder of files, and how it holds donors.

    Attributes
    ----------
    path : Path
    spec : TableSpec
        Its columns, how it is written, and the rules for cells that are missing or given twice.
    bounds : pair of numbers, optional
        Public bounds of the outcome: see :class:`Completion`.
    exclude : tuple of str
        Units to leave out, as they are written.
    periods : Index, optional
        The periods, declared beforehand. Rows outside them are ignored, and no refusal depends on which rows a donor
        has. Without it the periods of a long table are read from it, and every donor needs a row for each.
    held : bool, optional
        Whether the table is read once and held in memory; a long one may then have its rows in any order. By default
        it is if it fits.
    segments : Segments, optional
        Those of the column ``spec.by``.
    """

    path: Path
    spec: TableSpec
    bounds: tuple[float, float] | None = None
    exclude: tuple[str, ...] = ()
    periods: Times | None = None
    held: bool | None = False
    segments: Segments | None = None

    @contextmanager
    def watched(self, on_progress: OnProgress) -> Iterator[None]:
        """Tell how far each reading of the table is, meanwhile."""
        before = vars(self).get("_on_progress", unwatched)
        vars(self)["_on_progress"] = on_progress
        try:
            yield
        finally:
            vars(self)["_on_progress"] = before

    @cached_property
    def table(self) -> reader.Table:
        """The files, and how they are read."""
        spec = self.spec
        named = [spec.unit, *self.by] if spec.wide else [spec.unit, spec.time, spec.outcome, *self.by]
        return reader.open_table(self.path, [spec.unit, spec.time, *self.by], spec.dialect, named)

    @property
    def by(self) -> list[str]:
        """The column of segments, if there is one."""
        return [] if self.segments is None else [self.segments.by]

    @property
    def how(self) -> str:
        """How the table is read; once it is known, whether a file is needed. Private: a donor's rows may decide it."""
        if self.in_memory:
            return "held in memory"
        apart = "_looked_at" in vars(self) and not self._looked_at[1]
        return "kept in a private file meanwhile" if apart else "read as a stream"

    @cached_property
    def columns(self) -> list[str]:
        """The columns to read: the unit, and the periods of a wide table or the time and outcome of a long one."""
        with in_file(self.path):
            names, folders = self.table.schema.names, self.table.folders
            inside = folders & {self.spec.unit, self.spec.time, self.spec.outcome, *self.by}
            if inside:
                raise TableError(
                    f"{min(map(str, inside))!r} is in the names of its folders; write it into the files, as a column."
                )
            reader.require_column(self.table, self.spec.unit, UNIT)
            for name in self.by:
                reader.require_column(self.table, name, BY)
            if not self.spec.wide:
                time, outcome = str(self.spec.time), str(self.spec.outcome)
                reader.require_column(self.table, time, TIME)
                reader.require_column(self.table, outcome, OUTCOME, number=True)
                reader.require_same_columns(self.table, self.path, [self.spec.unit, time, outcome, *self.by], time)
                reader.require_unambiguous(self.table, self.path, [outcome])
                return [self.spec.unit, time, outcome]
            not_periods = {self.spec.unit, *self.by} | folders | self._saved_row_numbers()
            periods = [name for name in names if name not in not_periods]
            if not periods:
                raise TableError(f"there are no columns of periods besides {self.spec.unit!r} ({UNIT}).")
            if self.periods is not None:
                return [self.spec.unit, *self._declared_columns(periods)]
            require_period_names(
                periods,
                f"In a wide table every column except {UNIT} is a period: drop the other columns, or give a long table "
                f"(one row per unit and period) with {TIME} and {OUTCOME}.",
            )
            for name in periods:
                reader.require_column(self.table, name, number=True)
            reader.require_same_columns(self.table, self.path, [self.spec.unit, *periods, *self.by])
            reader.require_unambiguous(self.table, self.path, periods)
            return [self.spec.unit, *periods]

    def _declared_columns(self, names: list[str]) -> list[str]:
        """Return the columns of a wide table that hold the declared periods, in their order; a header is public."""
        assert self.periods is not None
        found = calendars.places(names, self.periods, self.spec.time_format)
        for position, period in enumerate(self.periods):
            if (found == position).sum() != 1:
                which = "no column" if position not in found else "more than one column"
                raise TableError(f"there is {which} for the declared period {dates.period_name(period)}.")
        chosen = [names[int(np.argmax(found == position))] for position in range(len(self.periods))]
        for name in chosen:
            reader.require_column(self.table, name, number=True)
        reader.require_same_columns(self.table, self.path, [self.spec.unit, *chosen, *self.by])
        reader.require_unambiguous(self.table, self.path, chosen)
        return chosen

    def _saved_row_numbers(self) -> set[str]:
        """Return the columns in which pandas saved an index without a name."""
        index = (self.table.schema.pandas_metadata or {}).get("index_columns", [])
        return {name for name in index if isinstance(name, str) and name.startswith("__index_level_")}

    @cached_property
    def _labels(self) -> Any:
        """The different labels of periods as the files write them, in their order, as an Arrow array."""
        if self.spec.wide:
            return pa.array(self.columns[1:])
        return self._looked_at[0]

    @cached_property
    def _looked_at(self) -> tuple[Any, bool, int]:
        """The labels of a long table's periods, whether the rows of each donor follow each other, and how many rows."""
        found, following, count = [], Following(), 0
        for rows in self._rows(self.columns[:2], reader.ROWS_AT_ONCE, "looking at the periods"):
            found.append(arrow.different(rows.batch.column(1)))
            count += rows.batch.num_rows
            if not self.in_memory and following.so_far:
                following.see(cells.units_of(rows)[1])
        reader.require_rows(count, self.path)
        return pc.unique(pa.chunked_array(found).combine_chunks()), following.finish(), count

    def _row_of(self, label: int) -> str:
        """Name the first row that has a label; they are looked for only when there is something to say of it."""
        if self.spec.wide:
            return "the header"
        for rows in self._rows([self.columns[1]], reader.ROWS_AT_ONCE):
            found = pc.index_in(arrow.plain(rows.batch.column(0)), value_set=self._labels)
            position = pc.index(found, pa.scalar(label, found.type)).as_py()
            if position >= 0:
                return rows.row_name(position)
        return "a row"

    @cached_property
    def _ordered(self) -> tuple[Times, list[Any]]:
        """The periods and the labels that are written for them, in the order of time."""
        if self.periods is not None:
            return self.periods, arrow.each(self._labels)
        name = "the header" if self.spec.wide else str(self.spec.time)
        written = self._labels.to_pylist()
        with in_file(self.path):
            private = not self.spec.wide
            index = calendars.understood(written, name, self._row_of, self.spec.time_format, private=private)
            index = index.rename(str(self.spec.time or "time"))
            if not index.is_unique:
                raise TableError("two labels stand for the same period.")
            try:
                order = dates.in_order(index)
            except UnorderedError as problem:
                here = [str(label).strip() for label in index].index(problem.label)
                shown = f"of {self._row_of(here)}" if private else repr(problem.label)
                raise TableError(
                    f"the period {shown} does not sort in time order as text; say how the dates are written, "
                    f"for example {dates.AS_WRITTEN}."
                ) from None
            return dates.plain(index[order]), [written[i] for i in order]

    @property
    def times(self) -> Times:
        """The periods, in order."""
        with formats.nothing_quoted(self.path):
            return self._ordered[0]

    @property
    def periods_from(self) -> PeriodsFrom:
        """Where the periods are from."""
        return "declared" if self.periods is not None else "header" if self.spec.wide else "rows"

    @property
    def outcome(self) -> str:
        """The name of the outcome."""
        return self.spec.name

    @property
    def in_time_order(self) -> list[str]:
        """The columns to read, that of segments last; the periods of a wide table are in time order."""
        columns = [self.columns[0], *self._ordered[1]] if self.spec.wide else self.columns
        return columns + self.by

    @cached_property
    def calendar(self) -> cells.Calendar:
        """Which period the labels of a long table stand for."""
        written, places = self._ordered[1], np.arange(len(self.times))
        if self.periods is not None:
            places = calendars.places(written, self.periods, self.spec.time_format)
            if not (places >= 0).any():
                raise formats.refusal(
                    self.path,
                    "no row of the table has one of the declared periods; if its dates are written in another way, "
                    f"say how with {dates.AS_WRITTEN}.",
                )
        labels = self._labels if self.periods is not None else pa.array(written, self._labels.type)
        declared = self.periods is not None
        return cells.Calendar(labels, places, len(self.times), declared, self.spec.repeated or "missing")

    @cached_property
    def completion(self) -> Completion:
        """How missing cells and values outside the bounds are handled."""
        public = None if self.bounds is None else Bounds.parse(self.bounds, len(self.times))
        return Completion(self.times, self.spec.missing, public, declared=self.periods is not None)

    @cached_property
    def in_memory(self) -> bool:
        """Whether the table is held in memory."""
        if self.held is not None:
            return self.held
        return self.table.sheet is not None or fits_in_memory(self.table.files, wide=self.spec.wide)

    @cached_property
    def _table(self) -> list[Rows]:
        """The rows of a table held in memory; of a long one each different label once."""
        if self.spec.wide:
            return list(self._told("reading into memory"))
        read = self._told("reading into memory", labels=self.columns[:2] + self.by)
        with closing(in_order(cells.coded_rows, read)) as made:
            return [coded for _, coded in made]

    def _told(self, doing: str, names: list[str] | None = None, **how: Any) -> Iterator[Rows]:
        """Read the table, and tell how far this is; all columns by default."""
        of, on_progress = self._rows_expected(), vars(self).get("_on_progress", unwatched)
        for rows in reader.rows_of(self.table, self.columns + self.by if names is None else names, **how):
            yield rows
            on_progress(doing, rows.batch.num_rows, of)

    def _rows(self, names: list[str], size: int, doing: str | None = None) -> Iterator[Rows]:
        """Yield rows with the named columns; a table held in memory is not read again."""
        if not self.in_memory:
            read = reader.rows_of(self.table, names, size)
            yield from read if doing is None else self._told(doing, names, size=size)
            return
        for rows in self._table:
            yield rows._replace(batch=rows.batch.select(names))

    def _rows_expected(self) -> int | None:
        """Return how many rows there are, if that is known: of a database once they were looked at."""
        looked_at = vars(self).get("_looked_at")
        return self.table.rows_expected() if looked_at is None else int(looked_at[2])

    def rows_expected(self) -> int | None:
        """Return how many donors to expect, for a progress bar, if that is known."""
        rows = self._rows_expected()
        return rows if rows is None or self.spec.wide else max(1, rows // max(1, len(self.times)))

    def matrix(self) -> Matrix:
        """Return the whole table as a matrix, units in the order of first appearance; absent cells are NaN."""
        with formats.nothing_quoted(self.path):
            batches = list(self._rows(self.in_time_order, reader.ROWS_AT_ONCE))
            reader.require_rows(sum(rows.batch.num_rows for rows in batches), self.path)
            labels, values, codes = self._of_rows(batches) if self.spec.wide else self._pivoted(batches)
            return Matrix(values, labels, self.times, self.periods_from, codes=codes)

    @cached_property
    def _whole(self) -> Matrix:
        """The matrix of a table held in memory, made once; blocks are copies of its rows."""
        return self.matrix()

    def _pivoted(self, batches: list[Rows]) -> tuple[Labels, Array, Positions | None]:
        """Return the units of a long table, a row for each, and segments: each number is put where it belongs, once."""
        units, when, numbers, segments = [], [], [], []
        for rows in batches:
            with in_file(rows.path):
                units.append(arrow.coded(rows.batch.column(0)))
                if self.segments is not None:
                    segments.append(cells.codes_of(rows.batch.column(3), self.segments))
                numbers.append(arrow.floats(rows.batch.column(2), str(self.spec.outcome), rows))
                when.append(self.calendar.places(rows.batch.column(1)))
        codes, labels = cells.factorize(units)
        places, values = np.concatenate(when), np.concatenate(numbers)
        segment = self._agreed(codes, segments, len(labels))
        if not (named := codes >= 0).all():
            codes, places, values = codes[named], places[named], values[named]
        with in_file(self.path):
            return labels, self.calendar.pivoted(codes, places, values, len(labels), 0), segment

    def _agreed(self, units: Positions, segments: list[Positions], count: int) -> Positions | None:
        """Return the segment of each of so many units from those of its rows, if there are segments."""
        if self.segments is None:
            return None
        named = units >= 0
        return self.segments.agreed(units[named], np.concatenate(segments)[named], count)

    def _of_rows(self, batches: list[Rows]) -> tuple[Labels, Array, Positions | None]:
        """Return the units of a wide table, a row for each, and segments."""
        parts: list[Any] = []
        segments: list[Positions] = [np.empty(0, dtype=np.intp)]
        blocks: list[Array] = [np.empty((len(self.times), 0))]
        for rows in batches:
            kept, units = cells.units_of(rows)
            parts.append(arrow.coded(units))
            if self.segments is not None:
                segments.append(cells.codes_of(rows.batch.columns[-1], self.segments)[kept])
            with in_file(rows.path):
                blocks.append(cells.column_writer(rows, kept)(np.empty((len(self.times), len(units)))))
        codes, labels = cells.factorize(parts)
        values = np.ascontiguousarray(np.hstack(blocks).T)
        segment = self._agreed(codes, segments, len(labels))
        return labels, one_row_per_unit(codes, values, len(labels), self.spec.repeated or "missing")[0], segment

    def blocks(self, size: int, identities: Identities, enough: float = math.inf) -> Iterator[CheckedBlock]:
        """Yield blocks of at most ``size`` donors, periods in time order; the first donors to appear are ``enough``.

        Who they are must not depend on how the table is read, because that depends on where the rows of one donor are.
        """
        if self.in_memory:
            yield from self._held_blocks(size, identities)
            return
        if self.spec.wide:
            parts = self._wide_blocks(size)
        else:
            parts = self._long_blocks(size) if self._looked_at[1] else self._divided_blocks(size, enough)
        for path, units, write, codes in parts:
            yield CheckedBlock(path, units, write, identities, self.completion, segment=codes)

    def _held_blocks(self, size: int, identities: Identities) -> Iterator[CheckedBlock]:
        matrix = self._whole
        units = pa.array(matrix.units)
        for i in range(0, len(units), size):
            rows = row_writer(matrix.values[i : i + size])
            codes = None if matrix.codes is None else matrix.codes[i : i + size]
            yield CheckedBlock(str(self.path), units.slice(i, size), rows, identities, self.completion, i, codes)

    def _wide_blocks(self, size: int) -> Iterator[Part]:
        """Yield donors; one with several rows comes once, where its first row is, with the row made of all of them."""
        count, (twice, values, of_twice) = 0, self.units_with_several_rows
        seen: set[int] = set()
        for rows in self._rows(self.in_time_order, size):
            count += rows.batch.num_rows
            kept, units = cells.units_of(rows)
            write = cells.column_writer(rows, kept)
            codes = segments_of(rows, kept, self.segments)
            if len(twice):
                units, write, codes = _once(units, write, codes, twice, values, of_twice, seen)
            yield rows.path, units, write, codes
        reader.require_rows(count, self.path)

    @cached_property
    def units_with_several_rows(self) -> tuple[Any, Array, Positions | None]:
        """Units of a wide table that have several rows, as text, the row that these make, and segments. Private."""
        named = self._rows([self.columns[0]], reader.ROWS_AT_ONCE, "looking at the units")
        hashes = [keys_of(cells.units_of(rows)[1]) for rows in named]
        found = np.sort(np.concatenate([np.empty(0, dtype=np.uint64), *hashes]))
        suspects = np.unique(found[1:][found[1:] == found[:-1]])
        if not len(suspects):
            return pa.array([], pa.large_string()), np.empty((0, len(self.times))), None
        theirs = []
        for rows in self._rows(self.in_time_order, reader.ROWS_AT_ONCE):
            kept, units = cells.units_of(rows)
            kept[kept] = np.isin(keys_of(units), suspects)
            theirs.append(rows._replace(first=None, batch=rows.batch.filter(pa.array(kept))))
        labels, values, codes = self._of_rows(theirs)
        return pa.array(labels, pa.large_string()), values, codes

    def _long_blocks(self, size: int) -> Iterator[Part]:
        """Put the rows of each donor together; the last donor of a batch waits for its rows in the next batch."""
        waiting: Any = None
        for rows in self._rows(self.columns + self.by, size * max(1, len(self.times))):
            batch = cells.understood(rows, self.calendar, self.segments)
            if waiting is not None:
                batch = cells.joined(waiting, batch)
            starts = cells.starts_of(batch.column(0))
            end = int(starts[-1]) if len(starts) else 0
            if end:
                yield from runs(rows.path, batch.slice(0, end), self.calendar, size, self.segments)
            waiting, path = batch.slice(end), rows.path
        if waiting is not None and waiting.num_rows:
            yield from runs(path, waiting, self.calendar, size, self.segments)

    @cached_property
    def _divided(self) -> Divided:
        """The rows of a long table in any order, divided by donor: the hash of its label, period, number, segment."""
        divided = Divided(3 + len(self.by), self._rows_expected(), in_memory=False)

        def numbers(rows: Rows) -> Integers:
            units, when, values, *segment = cells.understood(rows, self.calendar, self.segments).columns
            whole = (keys_of(units), when.to_numpy(), values.to_numpy(), *(codes.to_numpy() for codes in segment))
            return np.column_stack([column.view(np.int64) for column in whole])

        read = self._rows(self.columns + self.by, reader.ROWS_AT_ONCE, "dividing into a private file")
        with closing(in_order(numbers, read)) as made:
            for _, some in made:
                divided.put(some)
        divided.finish()
        return divided

    def _first(self, enough: int) -> Keys:
        """Return the hashes of the first donors to appear, but for those that are left out."""
        left_out, first = self._left_out(), np.empty(0, dtype=np.uint64)
        for rows in self._rows([self.columns[0]], reader.ROWS_AT_ONCE):
            keys = keys_of(cells.units_of(rows)[1])
            keys = np.concatenate([first, keys[~np.isin(keys, left_out)]])
            first = keys[np.sort(np.unique(keys, return_index=True)[1])]
            if len(first) >= enough:
                break
        return first[:enough]

    def _left_out(self) -> Keys:
        """Return the hashes of the labels to leave out."""
        return keys_of(pa.array(self.exclude, pa.large_string()))

    def _divided_blocks(self, size: int, enough: float) -> Iterator[Part]:
        """Yield donors from rows in any order; each is named by the hash of its label."""
        divided, names = self._divided, [*self.columns, *self.by]
        first = None if math.isinf(enough) else self._first(int(enough)).view(np.int64)

        def together(part: int) -> Any:
            rows = np.concatenate(list(divided.part(part)))
            rows = rows if first is None else rows[np.isin(rows[:, 0], first)]
            keys, when, values, *segment = rows[np.argsort(rows[:, 0], kind="stable")].T.copy()
            columns = [keys.view(np.uint64), when, values.view(np.float64), *segment]
            return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names)

        with closing(in_order(together, range(divided.parts))) as made:
            for _, batch in made:
                yield from runs(str(self.path), batch, self.calendar, size, self.segments)

    def custodian_units_alike(self) -> int:
        """Count units whose labels differ only in case, spaces or Unicode form. Private: for the custodian only."""
        seen: set[Any] = set()
        for rows in self._rows([self.columns[0]], reader.ROWS_AT_ONCE):
            seen.update(pc.unique(cells.units_of(rows)[1]).to_pylist())
        return alike(seen)

    def identities(self) -> Identities:
        """Return an empty record of the units seen."""
        if self.spec.wide or self.in_memory or self._looked_at[1]:
            return Identities(self.spec, self.exclude)
        return Identities(self.spec, tuple(map(str, self._left_out())))

    def finish(self, identities: Identities, n: int) -> None:
        """Make the checks that need all units."""
        with in_file(self.path):
            self.require_plausible(n)
            identities.finish()

    def require_plausible(self, n: int) -> None:
        """Refuse a table in which unit and time seem swapped (more text labels than donors): periods are published."""
        text = pd.api.types.is_object_dtype(self.times) or pd.api.types.is_string_dtype(self.times)
        if self.periods is None and not self.spec.wide and text and len(self.times) > n:
            raise TableError(
                f"column {self.spec.time!r} ({TIME}) has more different labels than column "
                f"{self.spec.unit!r} ({UNIT}) has units; are the two swapped?"
            )


def segments_of(rows: Rows, kept: np.ndarray[Any, Any], segments: Segments | None) -> Positions | None:
    """Return the segment of each row of a wide table that is kept; its last column has it, if there are segments."""
    if segments is None:
        return None
    codes = cells.codes_of(rows.batch.columns[-1], segments)[kept]
    return np.where(codes < 0, segments.other, codes)


def runs(
    path: str, batch: Any, calendar: cells.Calendar, size: int, segments: Segments | None = None
) -> Iterator[Part]:
    """Yield donors from rows of a long table, as understood, in which each donor's follow each other."""
    units = batch.column(0)
    starts = cells.starts_of(units)
    donors = units.take(pa.array(starts))
    with in_file(path):
        if pc.count_distinct(donors).as_py() < len(donors):
            raise not_together(batch.schema.names[0])
    when, values = (batch.column(k).to_numpy(zero_copy_only=False) for k in (1, 2))
    ends = np.append(starts[1:], len(units))
    for i in range(0, len(starts), size):
        here = slice(int(starts[i]), int(ends[min(i + size, len(starts)) - 1]))
        donor = np.repeat(np.arange(len(starts[i : i + size])), ends[i : i + size] - starts[i : i + size])
        with in_file(path):
            matrix = calendar.pivoted(donor, when[here], values[here], len(starts[i : i + size]))
        codes = None
        if segments is not None:
            codes = segments.agreed(donor, batch.column(3).to_numpy()[here], len(starts[i : i + size]))
        yield path, donors.slice(i, size), row_writer(matrix), codes


def _once(
    units: Any,
    write: Write,
    codes: Positions | None,
    twice: Any,
    values: Array,
    of_twice: Positions | None,
    seen: set[int],
) -> tuple[Any, Write, Positions | None]:
    """Leave out rows of units that were seen before, and write their whole row where they are first seen."""
    places = pc.fill_null(pc.index_in(units, value_set=twice), -1).to_numpy(zero_copy_only=False)
    kept = np.ones(len(units), dtype=bool)
    for row in np.flatnonzero(places >= 0).tolist():
        kept[row] = places[row] not in seen
        seen.add(int(places[row]))
    whole = places[kept] >= 0

    def once(memory: Array) -> Array:
        columns = write(memory)[:, kept]
        columns[:, whole] = values[places[kept][whole]].T
        return columns

    if codes is not None and of_twice is not None:
        codes = codes[kept]
        codes[whole] = of_twice[places[kept][whole]]
    return units.filter(pa.array(kept)), once, codes


@dataclass(frozen=True)
class FileSource(ABC):
    """Donors in files."""

    files: Files

    @abstractmethod
    def add_up(self, summand: Summand, on_rows: OnRows, enough: float = math.inf) -> tuple[Integers, int]:
        """Add up the donors of the files, or as many as are enough."""

    def custodian_misfit(self) -> Misfit | None:
        """Say which periods would fit the rows if many declared ones have no donor; None if they fit. Private."""
        if self.periods_from != "declared":
            return None
        files = self.files
        if files.completion.missing != "kernel":  # another rule fills the cells that are looked for
            files = replace(files, spec=replace(files.spec, missing="kernel"), bounds=None)
        have, _ = replace(self, files=files).add_up(Presence(len(files.times)), lambda rows: None, _LOOKED_AT)
        return custodian_misfit(have, files.times)

    @property
    def times(self) -> Times:
        """The periods, in order."""
        return self.files.times

    @property
    def outcome(self) -> str:
        """The name of the outcome."""
        return self.files.outcome

    @property
    def periods_from(self) -> PeriodsFrom:
        """Where the periods are from."""
        return self.files.periods_from

    def rows_expected(self) -> int | None:
        """Return how many donors to expect, if that is known."""
        return self.files.rows_expected()

    @property
    def segments(self) -> Segments | None:
        """The declared segments, if there are any."""
        return self.files.segments
