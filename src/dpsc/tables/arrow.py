"""Arrow columns as numbers or labels, each cell by itself."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsc.tables import formats
from dpsc.tables.numbers import PLAIN, Numbers
from dpsc.tables.spec import MISSING
from dpsc.types import Array


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
    return is_text(kind) or any(
        test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    )


def floats(column: Any, name: str, rows: Rows) -> Array:
    """Return a column of numbers as float64, rounded as Python rounds; missing cells are NaN."""
    if pa.types.is_decimal(column.type):  # Arrow rounds decimals in its own way
        return np.array(
            [np.nan if number is None else float(number) for number in column.to_pylist()], dtype=np.float64
        )
    if is_text(column.type):
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


def plain(column: Any) -> Any:
    """Return a column without dictionaries and views."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column


def coded(column: Any) -> Any:
    """Return a column as its different labels, in the order of first appearance, and which of them each row has.

    A missing label is one of them. A file may hold a column like this, in another order and with labels of no row.
    """
    if not pa.types.is_dictionary(column.type) or column.null_count or column.dictionary.null_count:
        return plain(column).dictionary_encode("encode")
    used = pc.unique(column.indices).to_numpy()
    if len(used) == len(column.dictionary) and (used[1:] > used[:-1]).all():
        return column
    places = np.empty(len(column.dictionary), dtype=np.int32)
    places[used] = np.arange(len(used), dtype=np.int32)
    codes = pa.array(places[column.indices.to_numpy()])
    return pa.DictionaryArray.from_arrays(codes, column.dictionary.take(pa.array(used)))


def different(column: Any) -> Any:
    """Return the different labels of a column, in the order of first appearance."""
    return plain(coded(column).dictionary)


def each(labels: Any) -> list[Any]:
    """Return labels as Python has them; None for one that Python cannot hold, such as a date in the year 5,000,000."""
    try:
        return list(labels.to_pylist())
    except (ValueError, OverflowError):
        return [None if len(labels) == 1 else each(labels.slice(i, 1))[0] for i in range(len(labels))]


def kind_of(kind: Any) -> str:
    """Return the kind of a column of units or periods; labels of two kinds cannot be compared."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return "text" if is_text(kind) else str(kind)


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
    return kind != pa.float16() and (is_text(kind) or any(test(kind) for test in tests))


def is_text(kind: Any) -> bool:
    """Tell whether a column of this type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
