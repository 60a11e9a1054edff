"""Public series beside the donors: a path to subtract, and one that shows how much such series move."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pandas as pd

from dpsc.errors import Parameter, ParameterError, TableError, UnorderedError
from dpsc.periods import dates, match
from dpsc.periods.dates import in_order
from dpsc.tables import reader
from dpsc.tables.dialect import UNSAID, Dialect
from dpsc.tables.formats import in_file


def reference(path: Path | None, time_format: str | None, dialect: Dialect = UNSAID) -> pd.Series[float] | None:
    """Read the path to subtract from every donor; ``dialect`` is what was said about the donors' table."""
    return None if path is None else _series(path, time_format, dialect)


def like(
    path: Path | None, before: str | None, time_format: str | None, dialect: Dialect = UNSAID
) -> pd.Series[float] | None:
    """Read a series that moves about like a donor, in the order of time, as far as a period that is named."""
    if path is None:
        if before is not None:
            raise ParameterError(f"{Parameter('like_before')} says where {Parameter('like')} ends; give it too.")
        return None
    series = _series(path, time_format, dialect)
    with in_file(path):
        try:
            series = series.iloc[in_order(series.index)]
        except UnorderedError as problem:
            raise TableError(
                f"the period {problem.label!r} does not sort in time order as text; say how dates are written: "
                f"{dates.AS_WRITTEN}."
            ) from None
        if before is None:
            return series
        first = match.typed_period(before, series.index, time_format, "like_before")
        return series.iloc[: series.index.get_loc(first)]


def _series(path: Path, time_format: str | None, dialect: Dialect) -> pd.Series[float]:
    with in_file(path):
        if path.is_file() and len(reader.open_table(path, [], dialect.for_series()).schema.names) != 2:
            raise TableError("there should be two columns, one of periods and one of numbers.")
    if time_format is None:
        return reader.series(path, None, None, None, dialect.for_series())
    dates.require_format(time_format)
    try:
        return reader.series(path, None, None, time_format, dialect.for_series())
    except TableError as problem:
        with suppress(TableError):  # another file may write its dates in another way
            return reader.series(path, None, None, None, dialect.for_series())
        raise problem
