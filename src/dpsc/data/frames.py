"""Turning data frames into one matrix, units down and periods across, without a loop over units."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd

from dpsc.data import periods as periods_of
from dpsc.data.bounds import Bounds
from dpsc.errors import PanelError
from dpsc.types import Array

Missing = Literal["error", "interpolate", "midpoint"]

_MOSTLY_EMPTY = 10**7  # cells, 80 MB: below this a matrix is built however few of its cells have a row


@dataclass(frozen=True, eq=False, repr=False)
class Matrix:
    """Values by unit (in order of first appearance) and period (in the input's order); absent cells are NaN."""

    values: Array
    units: pd.Index[Any]
    times: pd.Index[Any]


def read_long(df: pd.DataFrame, unit: Hashable, time: Hashable, outcome: Hashable) -> Matrix:
    """Pivot one row per unit and period into a matrix."""
    columns = [_column(df, name) for name in (unit, time, outcome)]
    if not len(df):
        raise PanelError("the frame has no rows.")
    unit_codes, units = _labels(columns[0], f"column {unit!r}")
    time_codes, times = _labels(columns[1], f"column {time!r}")
    values = to_floats(columns[2], f"column {outcome!r}")
    size = len(units) * len(times)
    if size > max(_MOSTLY_EMPTY, 100 * len(df)):
        raise PanelError(
            f"{len(df)} rows name {len(units)} units and {len(times)} periods, so nearly every cell is missing; "
            f"are {unit!r} and {time!r} the right columns?"
        )
    cells = unit_codes * len(times) + time_codes
    seen = np.bincount(cells, minlength=size)
    if seen.max() > 1:
        row, column = divmod(int(np.argmax(seen > 1)), len(times))
        raise PanelError(
            f"the unit at position {row} has more than one row for period {times[column]}; "
            "each (unit, time) may occur once."
        )
    matrix = np.full(size, np.nan)
    matrix[cells] = values
    return Matrix(
        matrix.reshape(len(units), len(times)), periods_of.plain(units), periods_of.as_index(times, str(time))
    )


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
    words = [name for name in columns if isinstance(name, str) and not any(c.isdigit() for c in name)]
    if periods is None and words and not isinstance(columns, pd.CategoricalIndex):
        raise PanelError(
            f"the column {words[0]!r} does not look like a period. If the frame is long (one row per unit and period), "
            "use Panel.from_long; if that column names the units, give unit= or make it the index; if it is a period, "
            "name the periods with periods=[...]."
        )
    values = [to_floats(_column(df, name), f"column {name!r}") for name in columns]
    if not len(df) or not values:
        raise PanelError(f"the frame has {len(df)} rows and {len(values)} period columns.")
    if not columns.is_unique:
        raise PanelError("two columns have the same period label.")
    codes, units = _labels(labels, "the index" if unit is None else f"column {unit!r}")
    if len(units) < len(codes):
        repeated = int(np.argmax(pd.Index(codes).duplicated()))
        raise PanelError(f"the unit at position {repeated} occurs twice; one row a unit is expected.")
    return Matrix(np.column_stack(values), periods_of.plain(units), periods_of.as_index(columns))


def to_floats(values: Any, what: str) -> Array:
    """Return a fresh float64 array; anything but real numbers and booleans is refused without being shown."""
    try:
        numbers = _real_numbers(values)
    except (TypeError, ValueError, ArithmeticError):
        numbers = None
    if numbers is None:  # raised out here because the exception above, which may quote a cell, would be chained
        raise PanelError(
            f"{what} is not numeric; convert it first, for example with pd.to_numeric. "
            "(Text in numbers: thousands separators, units, 'NA' spelled in a new way.)"
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


def fill_missing(values: Array, missing: Missing, bounds: Bounds | None, times: pd.Index[Any]) -> int:
    """Fill missing donor cells in place, each from its own row or from public numbers; return how many."""
    if not isinstance(missing, str) or missing not in ("error", "interpolate", "midpoint"):
        raise PanelError(f"missing must be 'error', 'interpolate' or 'midpoint', not {missing!r}.")
    infinite = np.isinf(values)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise PanelError(
            f"the donor at position {row} has an infinite value in period {times[column]}; "
            "correct it, or make it missing and choose missing='interpolate' or 'midpoint'."
        )
    holes = np.isnan(values)
    count = int(holes.sum())
    if not count:
        return 0
    if missing == "error":
        row, column = np.argwhere(holes)[0]
        raise PanelError(
            f"the donor at position {row} has no value in period {times[column]}; "
            "choose missing='interpolate' or missing='midpoint', or complete the data."
        )
    if missing == "midpoint" and bounds is None:
        raise PanelError("missing='midpoint' fills with the middle of the bounds; give bounds=(lo, hi).")
    if missing == "interpolate":
        affected = np.flatnonzero(holes.any(axis=1))
        values[affected] = _interpolate(values[affected])
        holes = np.isnan(values)  # rows with no value at all
    if bounds is None and holes.any():
        raise PanelError(
            f"the donor at position {int(np.argmax(holes.any(axis=1)))} has no value at all, so there is nothing to "
            "interpolate; leave it out with donors=, or give bounds=(lo, hi) to fill it with their middle."
        )
    if bounds is not None:
        np.copyto(values, bounds.midpoint, where=holes)
    return count


def _interpolate(values: Array) -> Array:
    """Fill a row's holes on the straight line between its neighbours, ends held; a row of holes stays one."""
    periods = values.shape[1]
    here, known = np.arange(periods), ~np.isnan(values)
    left = np.maximum.accumulate(np.where(known, here, -1), axis=1)
    right = np.minimum.accumulate(np.where(known, here, periods)[:, ::-1], axis=1)[:, ::-1]
    first = np.minimum(np.where(left < 0, right, left), periods - 1)
    last = np.where(right == periods, left, right)
    share = np.where(last > first, (here - first) / np.maximum(last - first, 1), 0.0)
    filled: Array = np.take_along_axis(values, first, 1) * (1 - share) + np.take_along_axis(values, last, 1) * share
    return filled


def _labels(values: pd.Series[Any] | pd.Index[Any], what: str) -> tuple[periods_of.Positions, pd.Index[Any]]:
    """Return the distinct labels in order of first appearance, and which of them each row has."""
    try:
        codes, labels = pd.factorize(values)
    except TypeError:
        raise PanelError(f"{what} holds lists or other values that cannot be labels.") from None
    if (codes < 0).any():
        raise PanelError(f"{what} is missing in row {int(np.argmax(codes < 0))} of the frame.")
    return codes, pd.Index(labels, tupleize_cols=False)


def _column(df: pd.DataFrame, name: Hashable) -> pd.Series[Any]:
    """Return one column, or refuse and name the nearest one."""
    if not isinstance(df, pd.DataFrame):
        raise PanelError(f"expected a pandas DataFrame, not {type(df).__name__}.")
    if not pd.api.types.is_hashable(name):
        raise PanelError(f"a column name is expected, not a {type(name).__name__}.")
    if name not in df.columns:
        names = {str(column): column for column in df.columns}
        near = get_close_matches(str(name), names, n=1)
        hint = f"Did you mean {names[near[0]]!r}?" if near else f"The columns are {list(names.values())[:12]}."
        hint = "It is in the index; call df.reset_index() first." if name in df.index.names else hint
        raise PanelError(f"there is no column {name!r}. {hint}")
    column = df[name]
    if not isinstance(column, pd.Series):
        raise PanelError(f"{name!r} names more than one column.")
    return column
