"""Arrow columns as donors: their units, and their cells as rows or columns of numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpsc.data import formats
from dpsc.data.columns import MISSING, UNIT, repeated_cell
from dpsc.data.declared import PERIODS
from dpsc.data.frames import pivot
from dpsc.data.numbers import PLAIN, Numbers
from dpsc.errors import TableError
from dpsc.types import Array, Write

Positions = np.ndarray[Any, np.dtype[np.intp]]


class Rows(NamedTuple):
    """Some rows of one file, the position of the first one in it (None if it is not known), how it writes numbers."""

    path: str
    first: int | None
    batch: Any
    numbers: Numbers = PLAIN

    def row_name(self, position: int) -> str:
        """Name a row by the number that an editor shows."""
        return "a row" if self.first is None else formats.row_name(self.first + position, self.path)


def may_hold_numbers(kind: Any) -> bool:
    """Tell whether a column of this type may hold numbers, possibly written as text."""
    return _is_text(kind) or any(
        test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    )


def floats(column: Any, name: str, rows: Rows) -> Array:
    """Return a column of numbers as float64, rounded as Python rounds; missing cells are NaN."""
    if pa.types.is_decimal(column.type):  # Arrow rounds decimals in its own way
        return np.array(
            [np.nan if number is None else float(number) for number in column.to_pylist()], dtype=np.float64
        )
    if _is_text(column.type):
        column = pc.utf8_trim_whitespace(plain(column))
        column = pc.if_else(pc.is_in(column, value_set=pa.array(MISSING, column.type)), None, column)
        if rows.numbers.plain:
            wrong, ambiguous = formats.not_a_number(column), None
        else:
            column, wrong, ambiguous = rows.numbers.read(column)
        for position, refused in ((wrong, formats.text_in), (ambiguous, formats.two_readings)):
            if position is not None:
                raise refused(name, rows.path, None if rows.first is None else rows.first + position)
    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=False)  # a safe cast refuses large whole numbers and quotes them
    return np.asarray(column.to_numpy(zero_copy_only=False))


def with_floats(rows: Rows) -> Rows:
    """Return rows of a long table (unit, time, outcome) with plain columns and the outcome in float64."""
    unit, time, outcome = rows.batch.schema.names
    columns = [plain(rows.batch.column(0)), plain(rows.batch.column(1))]
    with formats.in_file(rows.path):
        values = pa.array(floats(rows.batch.column(2), outcome, rows))
    return Rows(rows.path, rows.first, pa.RecordBatch.from_arrays([*columns, values], [unit, time, outcome]))


def joined(one: Any, other: Any) -> Any:
    """Return two batches of a long table as one; text with 64-bit offsets, so that it stays one however long it is."""
    columns = []
    for first, second in zip(one.columns, other.columns, strict=True):
        if _is_text(first.type):
            first, second = first.cast(pa.large_string()), second.cast(pa.large_string())
        columns.append(pa.concat_arrays([first, second]))
    return pa.RecordBatch.from_arrays(columns, one.schema.names)


def plain(column: Any) -> Any:
    """Return a column without dictionaries and views."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column


def kind_of(kind: Any) -> str:
    """Return the kind of a column of units or periods; labels of two kinds cannot be compared."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return "text" if _is_text(kind) else str(kind)


def may_hold_labels(kind: Any) -> bool:
    """Tell whether a column of this kind may hold units or periods."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = (
        pa.types.is_null,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_boolean,
        pa.types.is_temporal,
    )
    return kind != pa.float16() and (_is_text(kind) or any(test(kind) for test in tests))


def column_writer(rows: Rows) -> Write:
    """Return a function that writes some rows of a wide table, whose first column is the unit."""

    def write(memory: Array) -> Array:
        columns = memory[:, : rows.batch.num_rows]
        names = rows.batch.schema.names[1:]
        for period, column, name in zip(columns, rows.batch.columns[1:], names, strict=True):
            period[:] = floats(column, name, rows)
        return columns

    return write


def units_of(rows: Rows, name: str) -> Any:
    """Return the first column, the units; refuse rows without a unit."""
    units = plain(rows.batch.column(0))
    if pa.types.is_floating(units.type):
        units = pc.add(units, 0.0)  # -0.0 and 0.0 are one unit
    missing = pc.is_null(units, nan_is_null=True)
    if _is_text(units.type):
        missing = pc.or_(missing, pc.fill_null(pc.equal(units, ""), True))
    if pc.any(missing).as_py():
        row = rows.row_name(int(np.argmax(missing.to_numpy(zero_copy_only=False))))
        raise TableError(f"{row} has no unit in column {name!r} ({{unit}}).", unit=UNIT)
    return units


def factorize(parts: list[Any]) -> tuple[Positions, pd.Index[Any]]:
    """Return the position of each row's unit, and the units in the order of first appearance."""
    if not parts:
        return np.empty(0, dtype=np.intp), pd.Index([])
    if _is_text(parts[0].type):  # 32-bit offsets would not be enough for many rows
        parts = [part.cast(pa.large_string()) for part in parts]
    coded = pa.chunked_array(parts).combine_chunks().dictionary_encode()
    return coded.indices.to_numpy().astype(np.intp), pd.Index(coded.dictionary.to_pandas().array, tupleize_cols=False)


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
    """

    labels: Any
    positions: Positions
    T: int
    declared: bool

    def as_text(self) -> Calendar:
        """Return the same for labels that were turned into text."""
        return replace(self, labels=self.labels.cast(pa.string()))

    def places(self, labels: Any) -> Positions:
        """Return the period of each label, -1 for one that is outside."""
        found = pc.index_in(plain(labels).cast(self.labels.type), value_set=self.labels)
        known = np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.intp)
        return np.where(known < 0, -1, self.positions[known])

    def pivoted(
        self,
        donors: Positions,
        when: Positions,
        values: Array,
        count: int,
        row_name: Callable[[int], str],
        first: int | None = None,
    ) -> Array:
        """Return rows of a long table as a matrix of so many donors, absent cells NaN.

        With declared periods rows outside are ignored and rows of one cell are averaged, each donor by itself. Without,
        both a repeated and an absent row are refused; ``first`` is the position of the first donor, if it is known.
        """
        inside = when >= 0
        if not (self.declared or inside.all()):
            raise TableError("two labels of periods cannot be told apart.")
        if not inside.all():
            donors, when, values = donors[inside], when[inside], values[inside]
        matrix, repeated = pivot(donors, when, values, (count, self.T), average=self.declared)
        if self.declared:
            return matrix
        if repeated is not None:
            raise repeated_cell(row_name(repeated))
        if len(values) < count * self.T:
            short = int(np.argmin(np.bincount(donors, minlength=count)))
            donor = "a donor" if first is None else f"the donor at position {first + short}"
            raise TableError(
                f"{donor} does not have a row for every period. Say which periods there are, for example with "
                "{periods}; what is missing is then filled.",
                periods=PERIODS,
            )
        return matrix


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
