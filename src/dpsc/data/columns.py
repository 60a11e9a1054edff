"""Finding a column, its numbers, or a unit, and saying which was meant if it is not there."""

from __future__ import annotations

from collections.abc import Hashable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsc.errors import TableError
from dpsc.tabular.wording import is_number, row_name


def column(table: pd.DataFrame, name: str, option: str, path: Path) -> pd.Series[Any]:
    """Return a column, or refuse and suggest the near one."""
    return table.iloc[:, position([str(label) for label in table.columns], name, option, path)]


def position(names: list[str], name: str, option: str, path: Path) -> int:
    """Return where the one column of that name is."""
    if name not in names:
        near = get_close_matches(name, names, 1) or [other for other in names if other.lower() == name.lower()]
        if not near and any(map(is_number, names)):  # perhaps a row of data: do not repeat it
            raise TableError(f"{path} has no column {name!r} ({option}); does it have a header line?")
        hint = f"Did you mean {near[0]!r}?" if near else f"Its columns are {', '.join(map(repr, names[:12]))}."
        raise TableError(f"{path} has no column {name!r} ({option}). {hint}")
    if names.count(name) > 1:
        raise TableError(f"{path} has {names.count(name)} columns {name!r} ({option}); rename one.")
    return names.index(name)


def numbers(values: pd.Series[Any], name: str, option: str, path: Path) -> pd.Series[float]:
    """Return a column as numbers, or say in which row there is text; the text itself is not repeated."""
    if pd.api.types.is_bool_dtype(values) or not (
        pd.api.types.is_numeric_dtype(values)
        or pd.api.types.is_object_dtype(values)
        or pd.api.types.is_string_dtype(values)
    ):
        raise TableError(f"{path}: column {name!r} ({option}) holds {values.dtype}, not numbers.")
    converted = pd.to_numeric(values, errors="coerce")
    text = converted.isna() & values.notna()
    if text.any():
        row = int(np.argmax(text.to_numpy()))
        raise TableError(
            f"{path}: column {name!r} ({option}) holds text in {row_name(row, path)}; it must hold numbers alone (no "
            "units, no thousands separators). Leave a missing value empty."
        )
    return converted.astype(np.float64)


def unit_position(units: pd.Index[Any], label: Hashable, option: str) -> int:
    """Find a unit by its label, whether the file holds it as a number or as text."""
    matches = np.flatnonzero(units.astype(str) == str(label))
    if len(matches) != 1:
        raise TableError(f"the unit {label!r} ({option}) is not in the data; labels are matched as they are written.")
    return int(matches[0])
