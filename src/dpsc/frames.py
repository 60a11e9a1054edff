"""Turning data frames into one matrix, units down and periods across, without a loop over units."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from dpsc import times as periods_of
from dpsc.bounds import Array
from dpsc.errors import PanelError


@dataclass(frozen=True, eq=False)
class Matrix:
    """Values by unit (in order of first appearance) and period (in the input's order); absent cells are NaN."""

    values: Array
    units: pd.Index[Any]
    times: pd.Index[Any]


def read_long(df: pd.DataFrame, unit: Hashable, time: Hashable, outcome: Hashable) -> Matrix:
    """Pivot one row per unit and period into a matrix."""
    _require_columns(df, (unit, time, outcome))
    if not len(df):
        raise PanelError("the frame has no rows.")
    unit_codes, units = pd.factorize(df[unit])
    time_codes, times = pd.factorize(df[time])
    for codes, column in ((unit_codes, unit), (time_codes, time)):
        if (codes < 0).any():
            raise PanelError(f"column {column!r} is missing in row {int(np.argmax(codes < 0))} of the frame.")
    values = to_floats(df[outcome], f"column {outcome!r}")
    cells = unit_codes * len(times) + time_codes
    seen = np.bincount(cells, minlength=len(units) * len(times))
    if seen.max() > 1:
        row, column = divmod(int(np.argmax(seen > 1)), len(times))
        raise PanelError(
            f"the unit at position {row} has more than one row for period {times[column]}; "
            "each (unit, time) may occur once."
        )
    matrix = np.full(len(units) * len(times), np.nan)
    matrix[cells] = values
    return Matrix(matrix.reshape(len(units), len(times)), pd.Index(units), periods_of.as_index(times, str(time)))


def read_wide(df: pd.DataFrame, unit: Hashable | None, periods: Sequence[Hashable] | None) -> Matrix:
    """Read one row per unit and one column per period."""
    if unit is not None:
        _require_columns(df, (unit,))
    columns = [c for c in df.columns if c != unit] if periods is None else list(periods)
    _require_columns(df, columns)
    if not len(df):
        raise PanelError("the frame has no rows.")
    if len(set(columns)) < len(columns):
        raise PanelError("two columns have the same period label.")
    units = pd.Index(df.index if unit is None else df[unit])
    if units.hasnans:
        raise PanelError("a row has no unit label.")
    if not units.is_unique:
        raise PanelError(
            f"the unit at position {int(np.argmax(units.duplicated()))} occurs twice; one row a unit is expected."
        )
    values = np.column_stack([to_floats(df[c], f"column {c!r}") for c in columns])
    return Matrix(values, units, periods_of.as_index(columns))


def to_floats(values: Any, what: str) -> Array:
    """Return a fresh float64 array; text, complex numbers and booleans in it are refused without being shown."""
    if isinstance(values, pd.DataFrame | pd.Series):
        dtypes = list(values.dtypes) if isinstance(values, pd.DataFrame) else [values.dtype]
        if any(pd.api.types.is_datetime64_any_dtype(dtype) for dtype in dtypes):
            raise PanelError(f"{what} holds dates, not numbers.")
        values = values.to_numpy(dtype=object) if any(pd.api.types.is_object_dtype(d) for d in dtypes) else values
    if not isinstance(values, pd.DataFrame | pd.Series) and np.iscomplexobj(values):
        raise PanelError(f"{what} holds complex numbers.")
    try:
        if isinstance(values, pd.DataFrame | pd.Series):
            return np.array(values.to_numpy(dtype=np.float64, na_value=np.nan))
        array = np.array(values, dtype=object if _holds_objects(values) else np.float64)
        if array.dtype != object:
            return array
        array[pd.isna(array)] = np.nan
        if any(isinstance(v, str) for v in array.flat):
            raise ValueError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise PanelError(
            f"{what} is not numeric; convert it first, for example with pd.to_numeric. "
            "(Text in numbers: thousands separators, units, 'NA' spelled in a new way.)"
        ) from None


def _holds_objects(values: Any) -> bool:
    return hasattr(values, "dtype") and pd.api.types.is_object_dtype(values)


def _require_columns(df: pd.DataFrame, columns: Iterable[Hashable]) -> None:
    """Refuse an unknown column, naming the nearest one."""
    if not isinstance(df, pd.DataFrame):
        raise PanelError(f"expected a pandas DataFrame, not {type(df).__name__}.")
    for column in columns:
        if column not in df.columns:
            near = get_close_matches(str(column), [str(c) for c in df.columns], n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" The columns are {list(df.columns)[:12]}."
            raise PanelError(f"there is no column {column!r}.{hint}")
