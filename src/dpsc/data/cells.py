"""Columns of Arrow as donors: their units, and their cells as rows or columns of numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsc.data.formats import format_name
from dpsc.errors import TableError
from dpsc.types import Array, Write


def written_columns(batch: Any) -> Write:
    """Return how to write a batch of a wide table, whose first column is the unit."""

    def write(memory: Array) -> Array:
        columns = memory[:, : batch.num_rows]
        for period, column in zip(columns, batch.columns[1:], strict=True):
            period[:] = floats(column)
        return columns

    return write


def long_rows(table: Any, starts: np.ndarray[Any, Any], labels: Any, T: int, path: str) -> Array:
    """Return rows of one donor after another as a donors × T array, missing cells NaN."""
    donor = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, table.num_rows)))
    when = table.column(1).combine_chunks()
    period = pc.index_in(when.cast(labels.type), value_set=labels).to_numpy(zero_copy_only=False)
    values = floats(table.column(2).combine_chunks())
    cells = donor * T + period.astype(np.int64)
    if len(cells) > 1 and np.bincount(cells).max() > 1:
        raise TableError(f"{path}: a donor has more than one row for a period; each (unit, time) may occur once.")
    rows = np.full(len(starts) * T, np.nan)
    rows[cells] = values
    return rows.reshape(len(starts), T)


def floats(column: Any) -> Array:
    """Return a column of numbers in float64, missing ones NaN, rounded as Python rounds them."""
    if pa.types.is_decimal(column.type):  # which Arrow rounds in its own way
        return np.array(
            [np.nan if number is None else float(number) for number in column.to_pylist()], dtype=np.float64
        )
    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=False)  # a safe one refuses long whole numbers, and quotes them
    return np.asarray(column.to_numpy(zero_copy_only=False))


def known_units(units: Any, path: str) -> Any:
    """Return the column of units; refuse rows that belong to nobody."""
    if pa.types.is_dictionary(units.type):
        units = units.dictionary_decode()
    nobody = units.null_count
    if pa.types.is_floating(units.type):
        nobody = nobody or pc.any(pc.is_nan(units)).as_py()
    elif pa.types.is_string(units.type) or pa.types.is_large_string(units.type):
        nobody = nobody or pc.any(pc.equal(units, "")).as_py()
    if nobody:
        raise TableError(f"{path} has rows without a unit (--unit).")
    return units


def starts_of(units: Any) -> np.ndarray[Any, Any]:
    """Return where each donor's rows begin."""
    if len(units) < 2:
        return np.arange(len(units))
    changes = pc.not_equal(units.slice(1), units.slice(0, len(units) - 1)).to_numpy(zero_copy_only=False)
    return np.append(0, np.flatnonzero(changes) + 1)


def require_order(units: Any, starts: np.ndarray[Any, Any], previous: Any, path: str, unit: str) -> Any:
    """Refuse a table that is not sorted by donor: a donor might come back later. Return the last donor."""
    firsts = units.take(pa.array(starts))
    ordered = len(firsts) < 2 or pc.all(pc.less(firsts.slice(0, len(firsts) - 1), firsts.slice(1))).as_py()
    if ordered and previous is not None:
        ordered = pc.less(previous, firsts[0]).as_py()
    if not ordered:
        raise TableError(
            f"{path} is not sorted by {unit!r} (--unit), so a donor's rows may be anywhere. Use --engine dask, or sort "
            f"the table first; a single file that fits into memory with {_how_to_sort(Path(path), unit)}"
        )
    return firsts[len(firsts) - 1]


def _how_to_sort(path: Path, unit: str) -> str:
    code = (
        f"import pandas as p; p.read_{'parquet' if format_name(path) == 'parquet' else 'csv'}('{path.name}')"
        f".sort_values('{unit}').to_parquet('sorted.parquet')"
    )
    return f'python -c "{code}"'
