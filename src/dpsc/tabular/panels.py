"""Panels, donors and public paths from tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsc.data import frames
from dpsc.data import periods as times
from dpsc.data.bounds import Bounds
from dpsc.data.columns import column, numbers, unit_position
from dpsc.data.frames import Missing
from dpsc.data.tables import read
from dpsc.errors import TableError
from dpsc.tabular.layout import Layout
from dpsc.tabular.periods import periods
from dpsc.tabular.wording import naming, row_name


def panel_frame(path: Path, layout: Layout) -> pd.DataFrame:
    """Read a table and check it: long with three columns, or wide with units as its index and periods as columns."""
    table = read(path, text=[layout.unit] if layout.time is None else [layout.unit, layout.time])
    unit = column(table, layout.unit, "--unit", path)
    nobody = (unit.isna() | (unit.astype(str) == "")).to_numpy()
    if nobody.any():
        raise TableError(
            f"{path}: {row_name(int(np.argmax(nobody)), path)} has no unit in column {layout.unit!r} (--unit)."
        )
    if layout.wide:
        return _from_wide(table, unit, path, layout)
    time, outcome = str(layout.time), str(layout.outcome)
    when = periods(column(table, time, "--time", path), time, path, layout.time_format)
    values = numbers(column(table, outcome, "--outcome", path), outcome, "--outcome", path)
    long = pd.DataFrame({layout.unit: unit.array, time: when.array, outcome: values.array})
    repeated = long.duplicated([layout.unit, time]).to_numpy()
    if repeated.any():
        raise TableError(
            f"{path}: {row_name(int(np.argmax(repeated)), path)} repeats a unit and period that another row has; each "
            f"may occur once. Are {layout.unit!r} (--unit) and {layout.time!r} (--time) the right columns?"
        )
    labels = long[time].drop_duplicates()
    text = pd.api.types.is_object_dtype(labels) or pd.api.types.is_string_dtype(labels)
    if text and len(labels) > long[layout.unit].nunique():
        raise TableError(
            f"{path}: column {time!r} (--time) has more different labels than column {layout.unit!r} (--unit) has "
            "units; are the two swapped?"
        )
    return long


def _from_wide(table: pd.DataFrame, unit: pd.Series[Any], path: Path, layout: Layout) -> pd.DataFrame:
    labels = [label for label in table.columns if str(label) != layout.unit]
    if not labels:
        raise TableError(f"{path} has no columns besides {layout.unit!r} (--unit); --wide needs one column a period.")
    if unit.duplicated().any():
        row = int(np.argmax(unit.duplicated().to_numpy()))
        raise TableError(
            f"{path}: {row_name(row, path)} names a unit that another row has; --wide means one row a unit. For one "
            "row per unit and period give --time and --outcome instead."
        )
    words = [str(label) for label in labels if not any(character.isdigit() for character in str(label))]
    if words:
        raise TableError(
            f"{path}: the column {words[0]!r} does not look like a period. --wide takes every column but --unit for "
            "one; drop the others, or give a long table with --time and --outcome."
        )
    when = periods(pd.Index(labels, dtype=object), "its header", path, layout.time_format)
    values = {
        moment: numbers(table[label], str(label), "a period", path).to_numpy()
        for moment, label in zip(when, labels, strict=True)
    }
    if len(values) < len(labels):
        raise TableError(f"{path}: two columns stand for the same period.")
    return pd.DataFrame(values, index=pd.Index(unit.array, tupleize_cols=False))


def donors(
    path: Path, layout: Layout, *, bounds: tuple[float, float] | None, missing: Missing, exclude: Sequence[str] = ()
) -> pd.DataFrame:
    """Return donors, one row each and one column a period in time order, clipped to the bounds if there are any."""
    table = panel_frame(path, layout)
    with naming(path):
        matrix = (
            frames.read_wide(table, None, None)
            if layout.wide
            else frames.read_long(table, layout.unit, layout.time, layout.outcome)
        )
        order = times.in_order(matrix.times)
        index = times.plain(matrix.times[order])
        kept = np.ones(len(matrix.units), dtype=bool)
        for label in exclude:
            kept[unit_position(matrix.units, label, "--exclude")] = False
        if not kept.any():
            raise TableError("no donor is left.")
        values = matrix.values[np.ix_(np.flatnonzero(kept), order)]
        public = None if bounds is None else Bounds.parse(bounds, len(index))
        frames.fill_missing(values, missing, public, index)
        if public is not None:
            values = public.clip(values)
    return pd.DataFrame(values, columns=index)


def series(path: Path, time: str | None, outcome: str | None, time_format: str | None = None) -> pd.Series[float]:
    """Return a public path from a table with a column of periods and one of numbers."""
    table = read(path)
    if (time is None or outcome is None) and len(table.columns) != 2:
        raise TableError(
            f"{path} has {len(table.columns)} columns; say which hold the periods and the numbers: --time, --outcome."
        )
    names = [str(name) for name in table.columns]
    time = names[0] if time is None else time
    outcome = next(name for name in names if name != time) if outcome is None else outcome
    when = periods(column(table, time, "--time", path), time, path, time_format)
    values = numbers(column(table, outcome, "--outcome", path), outcome, "--outcome", path)
    if when.duplicated().any():
        raise TableError(f"{path}: the period {when[when.duplicated()].iloc[0]} occurs twice in column {time!r}.")
    with naming(path):
        return pd.Series(values.to_numpy(), index=times.as_index(list(when), str(time)), name=outcome)
