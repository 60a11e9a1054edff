"""Arrow columns as donors: their units, and their cells as rows or columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpsc.custodian.donors.frames import pivot
from dpsc.errors import TableError
from dpsc.periods.declare import PERIODS
from dpsc.release.segments import Segments
from dpsc.tables import formats
from dpsc.tables.arrow import Rows, coded, floats, is_text, plain
from dpsc.tables.spec import Repeated
from dpsc.types import Array, Labels, Positions, Write


def understood(rows: Rows, calendar: Calendar, segments: Segments | None = None) -> Any:
    """Return rows of a long table as a batch: unit as text, position of the period, number, and segment if there are.

    Rows without a unit are left out; a period outside the calendar is -1, and so is no segment.
    """
    names = rows.batch.schema.names
    with formats.in_file(rows.path):
        kept, units = units_of(rows)
        columns = [
            pa.array(calendar.places(rows.batch.column(1))),
            pa.array(floats(rows.batch.column(2), names[2], rows)),
        ]
    if segments is not None:
        columns.append(pa.array(codes_of(rows.batch.column(3), segments)))
    if len(units) < len(kept):
        columns = [column.filter(pa.array(kept)) for column in columns]
    return pa.RecordBatch.from_arrays([units, *columns], names)


def coded_rows(rows: Rows) -> Rows:
    """Return rows of a long table with each different unit and period once: see :func:`dpsc.tables.arrow.coded`."""
    unit, time, outcome, *segment = rows.batch.columns
    columns = [coded(unit), coded(time), outcome, *map(coded, segment)]
    return rows._replace(batch=pa.RecordBatch.from_arrays(columns, rows.batch.schema.names))


def joined(one: Any, other: Any) -> Any:
    """Return two batches of a long table as one."""
    columns = [pa.concat_arrays(pair) for pair in zip(one.columns, other.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, one.schema.names)


def column_writer(rows: Rows, kept: np.ndarray[Any, Any]) -> Write:
    """Return a function that writes some rows of a wide table, whose first column is the unit: those that are kept."""

    def write(memory: Array) -> Array:
        columns = memory[:, : int(kept.sum())]
        last = 1 + len(columns)  # beyond it is at most the column of segments
        names = rows.batch.schema.names[1:last]
        for period, column, name in zip(columns, rows.batch.columns[1:last], names, strict=True):
            values = floats(column, name, rows)
            period[:] = values if len(period) == len(values) else values[kept]
        return columns

    return write


def units_of(rows: Rows) -> tuple[np.ndarray[Any, Any], Any]:
    """Return which rows have a unit in their first column, and these units as text, each read by itself."""
    units = as_units(rows.batch.column(0))
    kept = np.array(units.is_valid().to_numpy(zero_copy_only=False))
    return kept, units if kept.all() else units.drop_null()


def as_units(labels: Any) -> Any:
    """Return labels of units as text, each read by itself; null stands for none.

    Whole numbers are written without decimals, so that it does not matter whether a column holds them as floats.
    """
    units = plain(labels)
    if pa.types.is_floating(units.type):
        units = pc.if_else(pc.is_nan(units), None, units)
        whole = pc.fill_null(pc.and_(pc.equal(pc.floor(units), units), pc.less(pc.abs(units), 2.0**63)), False)
        digits = pc.if_else(whole, units, 0.0).cast(pa.int64()).cast(pa.large_string())
        units = pc.if_else(whole, digits, units.cast(pa.large_string()))
    if pa.types.is_boolean(units.type):
        units = pc.if_else(units, "True", "False")  # as Python writes them, and CSV files of pandas
    written = is_text(units.type)
    units = units.cast(pa.large_string())  # 32-bit offsets would not be enough for many rows
    if not written:  # no number is an empty text
        return units
    # Not pc.if_else, which before Arrow 24 made other texts of a part of an array (apache/arrow, issue 41479).
    return pc.replace_with_mask(units, pc.equal(units, ""), pa.scalar(None, units.type))


def codes_of(labels: Any, segments: Segments) -> Positions:
    """Return the segment of each row of a column of labels, -1 for none; each is read by itself."""
    column = coded(labels)
    texts = as_units(column.dictionary).to_pylist()
    return np.asarray(np.array([segments.place(text) for text in texts], np.intp)[column.indices.to_numpy()])


def factorize(parts: list[Any]) -> tuple[Positions, Labels]:
    """Return the position of each row's unit, -1 for none, and the units in the order of first appearance.

    A part is a dictionary of labels in the order of first appearance, and which of them each row has
    (:func:`dpsc.tables.arrow.coded`): only the different labels are read.
    """
    if not parts:
        return np.empty(0, dtype=np.intp), pd.Index([])
    labels = [as_units(part.dictionary) for part in parts]
    every = pa.chunked_array(labels).combine_chunks().dictionary_encode()
    places = np.asarray(pc.fill_null(every.indices, -1).to_numpy(), np.intp)
    ends = np.cumsum([len(part) for part in labels])
    codes = [of[part.indices.to_numpy()] for of, part in zip(np.split(places, ends[:-1]), parts, strict=True)]
    return np.concatenate(codes), pd.Index(every.dictionary.to_pandas().array, tupleize_cols=False)


def starts_of(units: Any) -> Positions:
    """Return the first row of each group of consecutive rows with the same unit."""
    if len(units) < 2:
        return np.arange(len(units))
    changes = pc.not_equal(units.slice(1), units.slice(0, len(units) - 1)).to_numpy(zero_copy_only=False)
    return np.append(0, np.flatnonzero(changes) + 1)


@dataclass(frozen=True, eq=False)
class Calendar:
    """Which period each label of a long table stands for.

    Attributes
    ----------
    labels : Arrow array
        As they are written, different from each other.
    positions : array
        The period of each label, -1 for one that is outside the declared periods.
    T : int
        The number of periods.
    declared : bool
        Whether the periods were declared beforehand. If not, every donor needs a row for every period: a period that
        one donor alone has would otherwise be published.
    repeated : {"missing", "sum", "mean", "last"}
        What a cell is that several rows give.
    """

    labels: Any
    positions: Positions
    T: int
    declared: bool
    repeated: Repeated

    def places(self, labels: Any) -> Positions:
        """Return the period of each label, -1 for one that is outside."""
        if pa.types.is_dictionary(labels.type):
            return np.asarray(self.places(labels.dictionary)[labels.indices.to_numpy()])
        found = pc.index_in(plain(labels).cast(self.labels.type), value_set=self.labels)
        known = np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.intp)
        return np.where(known < 0, -1, self.positions[known])

    def pivoted(self, donors: Positions, when: Positions, values: Array, count: int, first: int | None = None) -> Array:
        """Return rows of a long table as a matrix of so many donors, absent cells NaN, each donor by itself.

        With declared periods rows outside are ignored. Without, an absent row is refused; ``first`` is the position of
        the first donor, if it is known.
        """
        inside = when >= 0
        if not (self.declared or inside.all()):
            raise TableError("two labels of periods cannot be told apart.")
        if not inside.all():
            donors, when, values = donors[inside], when[inside], values[inside]
        matrix, given, _ = pivot(donors, when, values, (count, self.T), self.repeated, declared=self.declared)
        if not self.declared and given < matrix.size:
            there = np.zeros(matrix.shape, dtype=bool)
            there[donors, when] = True
            short = int(np.argmin(there.all(axis=1)))
            donor = "a donor" if first is None else f"the donor at position {first + short}"
            raise TableError(
                f"{donor} does not have a row for every period. Say which periods there are, for example with "
                f"{PERIODS}; what is missing is then filled."
            )
        return matrix
