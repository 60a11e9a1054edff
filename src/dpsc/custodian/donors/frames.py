"""Turns data frames into one matrix, one row per unit and one column per period, without a loop over units."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd

from dpsc.checks import did_you_mean, read_as
from dpsc.custodian.donors.missing import settled
from dpsc.errors import PanelError, Parameter
from dpsc.periods import calendar
from dpsc.periods import dates as periods_of
from dpsc.periods.calendar import is_missing, places
from dpsc.periods.dates import period_name
from dpsc.periods.declare import declared
from dpsc.release.segments import Segments
from dpsc.tables.spec import Repeated, require_period_names, require_repeated
from dpsc.types import Array, Column, Labels, PeriodsLike, Positions, Times, to_floats

_WHOLE = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
_MOSTLY_EMPTY = 10**7  # cells, 80 MB: below this a matrix is built even if most of its cells are missing


PeriodsFrom = Literal["declared", "header", "rows", "rows with gaps"]
"""Where periods are from: declared beforehand, the header of a wide table or the shape of an array, or the rows of a
long table, each of which had all of them or not."""


class ArrowTable(Protocol):
    """A table that Arrow can read: of polars, of Arrow itself, of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as Arrow's stream."""
        ...


Frame = pd.DataFrame | ArrowTable


@dataclass(frozen=True, eq=False, repr=False)
class Matrix:
    """Values by unit (in order of first appearance) and period (in the input's order); absent cells are NaN.

    ``counts`` says how many rows have no unit and how many cells are given more than once; ``codes`` which segment each
    unit is in. Private.
    """

    values: Array
    units: Labels
    times: Times
    periods_from: PeriodsFrom = "header"
    counts: dict[str, int] = field(default_factory=dict)
    codes: Positions | None = None


def is_frame(donors: Any) -> bool:
    """Tell whether donors are a table with named columns."""
    return isinstance(donors, pd.DataFrame) or (
        hasattr(donors, "__arrow_c_stream__") and not isinstance(donors, pd.Series)
    )


def pandas_frame(table: Frame, names: Sequence[Hashable] = ()) -> pd.DataFrame:
    """Return a table as a frame of pandas, if it is none: the named columns if all are there, else all.

    Whole numbers stay whole beside missing ones.
    """
    if isinstance(table, pd.DataFrame):
        return table
    if not is_frame(table):
        raise PanelError(
            f"expected a pandas DataFrame, not {type(table).__name__}; tables of polars and Arrow are accepted, too."
        )
    import pyarrow as pa

    whole = {getattr(pa, name.lower())(): pd.api.types.pandas_dtype(name) for name in _WHOLE}
    try:
        arrow = pa.table(table)
        places = [arrow.schema.get_all_field_indices(name) for name in names if isinstance(name, str)]
        if names and all(len(place) == 1 for place in places):
            arrow = arrow.select([place[0] for place in places])
        frame: pd.DataFrame = arrow.to_pandas(types_mapper=whole.get, ignore_metadata=True)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as problem:
        kind = type(problem).__name__
    else:
        return frame
    raise PanelError(f"the table cannot be read ({kind}).")  # here, so that nothing that quotes a cell is chained


def read_long(
    df: Frame,
    unit: Hashable,
    time: Hashable,
    outcome: Hashable,
    periods: PeriodsLike | None = None,
    repeated: Repeated = "missing",
    segments: Segments | None = None,
) -> Matrix:
    """Pivot one row per unit and period into a matrix; rows outside declared periods, or without unit, are left out."""
    require_repeated(repeated)
    by = [] if segments is None else [segments.by]
    df = pandas_frame(df, (unit, time, outcome, *by))
    columns = [column_of(df, name) for name in (unit, time, outcome, *by)]
    if not len(df):
        raise PanelError("the frame has no rows.")
    codes, units = _labels(columns[0])
    named = codes >= 0
    if not named.all():
        codes, columns = codes[named], [column[named] for column in columns]
    segment = None if segments is None else segments.agreed(codes, codes_of(columns[3], segments), len(units))
    values = to_floats(columns[2], f"column {outcome!r}")
    source: PeriodsFrom = "declared"
    if periods is not None:
        index = declared(periods).rename(str(time))
        when = places_of_rows(columns[1], index)
        inside = when >= 0
        codes, when, values = codes[inside], when[inside], values[inside]
    else:
        periods_of.require_one_kind(columns[1])
        when, index = _periods(columns[1], f"column {time!r}")
    shape = len(units), len(index)
    matrix, filled, again = pivot(codes, when, values, shape, repeated, declared=periods is not None)
    if periods is None:
        index = different(calendar.calendar(index, str(time), where=lambda position: f"a label of column {time!r}"))
        source = "rows" if filled == matrix.size else "rows with gaps"
    counts = {"rows_without_unit": int((~named).sum()), "repeated_cells": again}
    return Matrix(matrix, periods_of.plain(units), index, source, counts, segment)


def places_of_rows(labels: Column, index: Times) -> Positions:
    """Return the declared period of each row, -1 for none; a label that cannot be read is none and is not refused.

    Labels of different kinds may be equal and yet be read differently (1 and True, one moment in two time zones), so
    that only labels of one kind and one spelling are read together: what one donor writes does not change others.
    """
    if labels.dtype != object:
        codes, distinct = pd.factorize(labels)
        found = places(list(distinct), index)
        return np.where(codes >= 0, np.append(found, -1)[codes], -1)
    read: dict[tuple[type, str], int] = {}
    rows = np.full(len(labels), -1, dtype=np.intp)
    for row, label in enumerate(labels):
        try:
            key = type(label), str(label)
            if key not in read:
                read[key] = int(places([label], index)[0])
            rows[row] = read[key]
        except (TypeError, ValueError, ArithmeticError, OverflowError):
            continue
    return rows


def different(times: Times) -> Times:
    """Refuse periods of which two are the same, perhaps written in two ways."""
    if not times.is_unique:
        raise PanelError(f"two labels stand for the same period, {period_name(times[times.duplicated()][0])}.")
    return times


def pivot(
    units: Positions,
    times: Positions,
    values: Array,
    shape: tuple[int, int],
    repeated: Repeated,
    *,
    declared: bool,
) -> tuple[Array, int, int]:
    """Put values into a matrix by unit and period, absent cells NaN.

    Return also how many cells there is a row for, and how many there are several rows for.
    """
    if not declared and shape[0] * shape[1] > max(_MOSTLY_EMPTY, 100 * len(values)):
        raise PanelError(
            f"the table names {shape[0]} units and {shape[1]} periods, so nearly every cell is missing; are "
            f"{Parameter('unit')} and {Parameter('time')} the right columns?"
        )
    cells = units * shape[1] + times
    matrix, given = np.full(shape[0] * shape[1], np.nan), np.zeros(shape[0] * shape[1], dtype=bool)
    matrix[cells], given[cells] = values, True
    filled, again = int(np.count_nonzero(given)), 0
    if filled < len(cells):
        those, numbers = settled(cells, values, repeated)
        matrix[those], again = numbers, len(those)
    return matrix.reshape(shape), filled, again


def one_row_per_unit(units: Positions, values: Array, count: int, repeated: Repeated) -> tuple[Array, int]:
    """Return a row for each of so many units from rows of a wide table, and how many cells had several."""
    if len(units) == count:
        return values, 0
    T = values.shape[1]
    given = np.repeat(units, T), np.tile(np.arange(T), len(units)), values.ravel()
    matrix, _, again = pivot(*given, (count, T), repeated, declared=True)
    return matrix, again


def read_wide(
    df: Frame,
    unit: Hashable | None,
    periods: Sequence[Hashable] | None,
    repeated: Repeated = "missing",
    segments: Segments | None = None,
) -> Matrix:
    """Read one row per unit and one column per period; rows without a unit are left out."""
    require_repeated(repeated)
    df = pandas_frame(df)
    labels = df.index.to_flat_index() if unit is None else column_of(df, unit)
    by = None if segments is None else column_of(df, segments.by)
    if periods is None:
        columns = df.columns.drop(
            [name for name in (unit, None if segments is None else segments.by) if name is not None]
        )
    elif isinstance(periods, str) or not pd.api.types.is_list_like(periods):
        raise PanelError("periods= must be a list of column names.")
    else:
        columns = pd.Index(list(periods), tupleize_cols=False)
    if isinstance(columns, pd.MultiIndex):
        raise PanelError("the columns are a MultiIndex; select one level, so that each column is a period.")
    if periods is None and not isinstance(columns, pd.CategoricalIndex):
        require_period_names(
            [name for name in columns if isinstance(name, str)],
            "If the frame is long (one row per unit and period), use from_long; if that column names the units, give "
            "unit= or make it the index; if it is a period, name the periods with periods=[...].",
        )
    values = [to_floats(column_of(df, name), f"column {name!r}") for name in columns]
    if not len(df) or not values:
        raise PanelError(f"the frame has {len(df)} rows and {len(values)} period columns.")
    if not columns.is_unique:
        raise PanelError("two columns have the same period label.")
    codes, units = _labels(labels)
    named = codes >= 0
    matrix, again = one_row_per_unit(codes[named], np.column_stack(values)[named], len(units), repeated)
    segment = None
    if segments is not None and by is not None:
        segment = segments.agreed(codes[named], codes_of(by, segments)[named], len(units))
    counts = {"rows_without_unit": int((~named).sum()), "repeated_cells": again}
    index = different(calendar.calendar(columns))
    return Matrix(matrix, periods_of.plain(units), index, counts=counts, codes=segment)


def label_of(units: Labels, typed: str, parameter: Parameter) -> Hashable:
    """Return the unit that the user typed, whether the file holds it as a number or as text."""
    matches = np.flatnonzero(units.astype(str) == typed)
    if len(matches) != 1:
        raise PanelError(
            f"the unit {typed!r} ({parameter}) is not in the data; labels are matched as they are written."
        )
    label: Hashable = units[matches[0]]
    return label


def _labels(values: Column | Labels) -> tuple[Positions, Labels]:
    """Return the unit of each row among the different units, -1 for none, and these in order of first appearance.

    A label is read as text and by itself: 7, 7.0 and "7" are one unit, "007" is another, whatever other rows hold.
    """
    if values.dtype == object:  # in which 1, 1.0 and True are equal and yet different labels
        codes, written = np.arange(len(values)), list(values)
    else:
        codes, distinct = pd.factorize(values)
        written = list(distinct)
    texts, _ = pd.factorize(np.array([text_of(label) for label in written], dtype=object))
    codes = np.append(texts, -1)[codes]
    if (codes < 0).all():
        raise PanelError("no row of the frame has a unit.")
    first = np.flatnonzero((codes >= 0) & ~pd.Index(codes).duplicated())
    labels = values.iloc[first] if isinstance(values, pd.Series) else values[first]
    return codes, pd.Index(labels, tupleize_cols=False).rename(None)


def codes_of(labels: Column, segments: Segments) -> Positions:
    """Return the segment of each row, -1 for none; each label is read by itself."""
    if labels.dtype == object:  # in which 1, 1.0 and True are equal and yet different labels
        return np.array([segments.place(text_of(label)) for label in labels], np.intp)
    codes, different = pd.factorize(labels)
    return np.array([*(segments.place(text_of(label)) for label in different), -1], np.intp)[codes]


def text_of(label: Any) -> str | None:
    """Return a label as text, whole numbers without decimals, bytes as UTF-8; None if there is none."""
    if isinstance(label, bytes):
        label = label.decode("utf-8", "backslashreplace")
    if isinstance(label, str):
        return label or None
    if is_missing(label):
        return None
    if isinstance(label, float | np.floating):
        number = float(label)
        return str(int(number)) if number.is_integer() and abs(number) < 2.0**63 else str(number)
    return str(label)


def _periods(values: Column, what: str) -> tuple[Positions, Times]:
    """Return the position of each row's label among the different labels, and these in order of first appearance."""
    try:
        codes, labels = pd.factorize(values)
    except TypeError:
        raise PanelError(f"{what} holds lists or other values that cannot be labels.") from None
    if (codes < 0).any():
        raise PanelError(f"{what} is missing in row {int(np.argmax(codes < 0))} of the frame.")
    return codes, pd.Index(labels, tupleize_cols=False)


def column_of(df: pd.DataFrame, name: Hashable) -> Column:
    """Return one column, or refuse and suggest a similar name."""
    if not pd.api.types.is_hashable(name):
        raise PanelError(f"a column name is expected, not a {type(name).__name__}.")
    if name not in df.columns:
        hint = did_you_mean(str(name), df.columns) or f" The columns are {list(df.columns)[:12]}."
        hint = " It is in the index; call df.reset_index() first." if name in df.index.names else hint
        raise PanelError(f"there is no column {name!r}.{hint}")
    column = df[name]
    if not isinstance(column, pd.Series):
        raise PanelError(f"{name!r} names more than one column.")
    return column


def alike(labels: Iterable[Any]) -> int:
    """Count the different labels that another label equals but for how it is written. Private.

    Two of them are perhaps one person, who would then count as two.

    Examples
    --------
    >>> alike(["Ann", "ann ", "Bob", "bob", "BOB", "Cem"])
    5
    """
    return sum(map(len, groups_alike(labels)))


def groups_alike(labels: Iterable[Any]) -> list[list[Any]]:
    """Return the groups of different labels that are equal but for how they are written. Private.

    Examples
    --------
    >>> groups_alike(["Ann", "Cem", "ann ", "Ann"])
    [['Ann', 'ann ']]
    """
    groups: dict[str, dict[Any, None]] = {}
    for label in labels:
        groups.setdefault(read_as(label), {})[label] = None
    return [list(group) for group in groups.values() if len(group) > 1]
