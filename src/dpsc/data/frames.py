"""Turns data frames into one matrix, one row per unit and one column per period, without a loop over units."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd

from dpsc.checks import did_you_mean
from dpsc.data import calendars
from dpsc.data import periods as periods_of
from dpsc.data.columns import require_period_names
from dpsc.data.dates import period_name
from dpsc.data.declared import declared
from dpsc.data.placing import places
from dpsc.errors import PanelError, Parameter
from dpsc.types import Array

_MOSTLY_EMPTY = 10**7  # cells, 80 MB: below this a matrix is built even if most of its cells are missing


PeriodsFrom = Literal["declared", "header", "rows", "rows with gaps"]
"""Where periods are from: declared beforehand, the header of a wide table or the shape of an array, or the rows of a
long table, each of which had all of them or not."""


@dataclass(frozen=True, eq=False, repr=False)
class Matrix:
    """Values by unit (in order of first appearance) and period (in the input's order); absent cells are NaN."""

    values: Array
    units: pd.Index[Any]
    times: pd.Index[Any]
    periods_from: PeriodsFrom = "header"


def read_long(
    df: pd.DataFrame, unit: Hashable, time: Hashable, outcome: Hashable, periods: Any | None = None
) -> Matrix:
    """Pivot one row per unit and period into a matrix; rows outside declared periods are left out."""
    columns = [_column(df, name) for name in (unit, time, outcome)]
    if not len(df):
        raise PanelError("the frame has no rows.")
    if periods is None:
        periods_of.require_one_kind(columns[1])
    unit_codes, units = _labels(columns[0], f"column {unit!r}")
    values = to_floats(columns[2], f"column {outcome!r}")
    if periods is not None:
        index = declared(periods)
        when = _places_of_rows(columns[1], index)
        inside = when >= 0
        shape = (len(units), len(index))
        matrix, _ = pivot(unit_codes[inside], when[inside], values[inside], shape, average=True)
        return Matrix(matrix, periods_of.plain(units), index.rename(str(time)), "declared")
    time_codes, times = _labels(columns[1], f"column {time!r}")
    matrix, repeated = pivot(unit_codes, time_codes, values, (len(units), len(times)))
    if repeated is not None:
        raise PanelError(
            f"the unit at position {unit_codes[repeated]} has more than one row for period "
            f"{period_name(times[time_codes[repeated]])}; each (unit, time) may occur once."
        )
    complete = len(values) == matrix.size
    source: PeriodsFrom = "rows" if complete else "rows with gaps"
    calendar = calendars.calendar(times, str(time), where=lambda position: f"a label of column {time!r}")
    return Matrix(matrix, periods_of.plain(units), different(calendar), source)


def _places_of_rows(labels: pd.Series[Any], index: pd.Index[Any]) -> periods_of.Positions:
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


def different(times: pd.Index[Any]) -> pd.Index[Any]:
    """Refuse periods of which two are the same, perhaps written in two ways."""
    if not times.is_unique:
        raise PanelError(f"two labels stand for the same period, {period_name(times[times.duplicated()][0])}.")
    return times


def pivot(
    units: periods_of.Positions,
    times: periods_of.Positions,
    values: Array,
    shape: tuple[int, int],
    *,
    average: bool = False,
) -> tuple[Array, int | None]:
    """Put values into a matrix by unit and period, absent cells NaN; return also the first row that repeats a cell.

    With ``average`` a cell with several finite values gets their mean, and no row counts as repeated.
    """
    if not average and shape[0] * shape[1] > max(_MOSTLY_EMPTY, 100 * len(values)):
        raise PanelError(
            f"the table names {shape[0]} units and {shape[1]} periods, so nearly every cell is missing; are {{unit}} "
            "and {time} the right columns?",
            unit=Parameter("unit"), time=Parameter("time"),
        )  # fmt: skip
    cells = units * shape[1] + times
    matrix = np.full(shape[0] * shape[1], np.nan)
    matrix[cells] = values
    repeated = None
    if len(cells) > 1 and np.bincount(cells).max() > 1:
        if average:
            shared = pd.Index(cells).duplicated(keep=False)
            for cell, group in pd.Series(values[shared]).groupby(cells[shared]):
                known = [value for value in group if math.isfinite(value)]
                largest = max(map(abs, known), default=0.0) or 1.0  # so that no sum overflows
                # The sum is correctly rounded, so that the order of the rows does not matter.
                mean = math.fsum(value / largest for value in known) / max(1, len(known))
                matrix[cell] = largest * mean if known else np.nan
        else:
            repeated = int(np.argmax(pd.Index(cells).duplicated()))
    return matrix.reshape(shape), repeated


def read_wide(df: pd.DataFrame, unit: Hashable | None, periods: Sequence[Hashable] | None) -> Matrix:
    """Read one row per unit and one column per period."""
    if not isinstance(df, pd.DataFrame):
        raise PanelError(f"expected a pandas DataFrame, not {type(df).__name__}.")
    labels = df.index.to_flat_index() if unit is None else _column(df, unit)
    if periods is None:
        columns = df.columns if unit is None else df.columns.drop([unit])
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
    values = [to_floats(_column(df, name), f"column {name!r}") for name in columns]
    if not len(df) or not values:
        raise PanelError(f"the frame has {len(df)} rows and {len(values)} period columns.")
    if not columns.is_unique:
        raise PanelError("two columns have the same period label.")
    codes, units = _labels(labels, "the index" if unit is None else f"column {unit!r}")
    if len(units) < len(codes):
        repeated = int(np.argmax(pd.Index(codes).duplicated()))
        raise PanelError(f"the unit at position {repeated} occurs twice; one row per unit is expected.")
    return Matrix(np.column_stack(values), periods_of.plain(units), different(calendars.calendar(columns)))


def to_floats(values: Any, what: str) -> Array:
    """Return a new float64 array; refuse anything but real numbers and booleans, without showing it."""
    try:
        numbers = _real_numbers(values)
    except (TypeError, ValueError, ArithmeticError):
        numbers = None
    if numbers is None:  # raised here, so that the exception above, which may quote a cell, is not chained
        raise PanelError(
            f"{what} is not numeric; convert it first, for example with pd.to_numeric. "
            "(Common causes: thousands separators, units, an unusual spelling of 'NA'.)"
        )
    return numbers


def _real_numbers(values: Any) -> Array | None:
    """Return a float64 array, or None for text, dates, complex numbers and other objects."""
    if isinstance(values, pd.DataFrame):
        columns = [to_floats(column, f"column {name!r}") for name, column in values.items()]
        return np.column_stack(columns) if columns else np.empty((len(values), 0))
    if isinstance(values, pd.Series):
        if pd.api.types.is_numeric_dtype(values.dtype) and values.dtype.kind != "c":
            with np.errstate(over="ignore"):
                return np.array(values.to_numpy(dtype=np.float64, na_value=np.nan))
        values = values.to_numpy(dtype=object)
    if isinstance(values, list | tuple) and any(isinstance(row, np.ma.MaskedArray) for row in values):
        values = np.ma.array(values)
    if isinstance(values, np.ma.MaskedArray):
        values = np.where(np.ma.getmaskarray(values), np.nan, values.data.astype(object))
    array = np.asarray(values)
    if array.dtype == object:
        array = np.where(pd.isna(array), np.nan, array)
        if not all(issubclass(kind, Real | Decimal | np.bool_) for kind in set(map(type, array.flat))):
            return None
    elif array.dtype.kind not in "biuf":
        return None
    with np.errstate(over="ignore"):
        return np.array(array, dtype=np.float64)


def label_of(units: pd.Index[Any], typed: str, parameter: Parameter) -> Hashable:
    """Return the unit that the user typed, whether the file holds it as a number or as text."""
    matches = np.flatnonzero(units.astype(str) == typed)
    if len(matches) != 1:
        raise PanelError(
            f"the unit {typed!r} ({{it}}) is not in the data; labels are matched as they are written.", it=parameter
        )
    label: Hashable = units[matches[0]]
    return label


def _labels(values: pd.Series[Any] | pd.Index[Any], what: str) -> tuple[periods_of.Positions, pd.Index[Any]]:
    """Return the position of each row's label among the distinct labels, and these in order of first appearance."""
    try:
        codes, labels = pd.factorize(values)
    except TypeError:
        raise PanelError(f"{what} holds lists or other values that cannot be labels.") from None
    if (codes < 0).any():
        raise PanelError(f"{what} is missing in row {int(np.argmax(codes < 0))} of the frame.")
    return codes, pd.Index(labels, tupleize_cols=False)


def _column(df: pd.DataFrame, name: Hashable) -> pd.Series[Any]:
    """Return one column, or refuse and suggest a similar name."""
    if not isinstance(df, pd.DataFrame):
        raise PanelError(f"expected a pandas DataFrame, not {type(df).__name__}.")
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
