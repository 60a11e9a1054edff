"""Types that all modules share, numbers from whatever a caller has, and BLAS with one thread.

What people give is wide (``TargetLike``), what modules hand each other is narrow (``Times``, ``Array``).

A multi-threaded BLAS waits by spinning, which on a busy machine makes a T × T eigenproblem ten times slower.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any, SupportsFloat, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from dpsc.errors import PanelError

Array = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]
Positions = NDArray[np.intp]
Label: TypeAlias = Hashable
"""One period or one unit, as a table or a caller names it: text, a number, a date of any kind."""
Times: TypeAlias = "pd.Index[Any]"
"""Periods, as numbers, dates, pandas periods or text."""
Labels: TypeAlias = "pd.Index[Any]"
"""Units, as a table names them."""
Column: TypeAlias = "pd.Series[Any]"
"""Cells of a table that were not looked at yet."""
PeriodsLike: TypeAlias = str | Iterable[Hashable]
"""Periods as people give them: ``"2022-01..2024-12"``, a list, or an index."""
TargetLike: TypeAlias = "Column | pd.DataFrame | Mapping[Any, float] | Sequence[float] | NDArray[Any]"
"""A target as people give it: by period, in a small frame, or numbers alone from the first period on."""
TargetsLike: TypeAlias = "Mapping[Any, TargetLike] | pd.DataFrame"
"""Several of them, by name: one entry, or one column, for each unit."""
TreatedLike: TypeAlias = "Column | Mapping[Any, float] | Sequence[float] | NDArray[Any]"
"""1 for each treated period and 0 for each other one, as people give it: by period, or from the first period on."""
DatesLike: TypeAlias = "Label | Mapping[Any, Label] | Sequence[Label] | Column"
"""The first treated periods of several targets: by name, in their order, or one for all."""
WeightsLike: TypeAlias = "Mapping[Any, float] | Column | str"
"""Weights of units, by name, or "size": how many each is the average of, or has people."""
GroupsLike: TypeAlias = "Mapping[Any, Any] | Column"
"""Groups of units, by name."""
AveragesLike: TypeAlias = "int | Mapping[Any, int] | Column"
"""How many units targets are the average of, by name, or one number for all."""
BoundsLike: TypeAlias = "Sequence[SupportsFloat] | Sequence[Sequence[SupportsFloat]] | NDArray[Any]"
"""Public bounds as people give them: ``(lo, hi)``, or one such pair for each period."""
JsonObject: TypeAlias = dict[str, Any]
"""An object of a JSON file that was read; each value is checked where it is used."""
OnProgress = Callable[[str, int, int | None], None]
"""Told what is being done, how many more rows or donors are done, and how many there are if that is known."""
Write = Callable[[Array], Array]
"""Writes a block of donors into T × size memory, one column each, and returns the filled part; may be called again."""


def unwatched(doing: str, rows: int, of: int | None) -> None:
    """Tell nobody (an :data:`OnProgress`)."""


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


def one_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread inside a ``with`` block."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limited


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  # so that its BLAS is loaded when the controller looks for libraries

    return ThreadpoolController()
