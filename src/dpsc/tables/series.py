"""Public series beside the donors: a path to subtract, and one that shows how much such series move."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pandas as pd

from dpsc.errors import Parameter, ParameterError, TableError, UnorderedError
from dpsc.periods import dates, match
from dpsc.periods.dates import in_order
from dpsc.tables import reader
from dpsc.tables.formats import in_file
from dpsc.tables.spec import NOTHING_SAID, TableSpec


def reference(path: Path | None, donors: TableSpec = NOTHING_SAID) -> pd.Series[float] | None:
    """Read the path to subtract from every donor; ``donors`` is what was said about the donors' table."""
    return None if path is None else _series(path, donors)


def like(path: Path | None, before: str | None, donors: TableSpec = NOTHING_SAID) -> pd.Series[float] | None:
    """Read a series that moves about like a donor, in the order of time, as far as a period that is named."""
    if path is None:
        if before is not None:
            raise ParameterError(
                f"{Parameter('like_before')} says where {Parameter('like')} ends; give {Parameter('like')} too."
            )
        return None
    series = _series(path, donors)
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
        first = match.typed_period(before, series.index, donors.time_format, "like_before")
        return series.iloc[: series.index.get_loc(first)]


def _series(path: Path, donors: TableSpec) -> pd.Series[float]:
    said = TableSpec(time_format=donors.time_format, dialect=donors.dialect.for_series())
    table = reader.open_series(path, said)
    names = table.schema.names
    if len(names) > 2 and donors.outcome in names and donors.unit not in names:  # one of several outcomes
        said = replace(said, time=donors.time if donors.time in names else names[0], outcome=donors.outcome)
    with in_file(path):
        if len(names) != 2 and said.outcome is None:
            raise TableError(
                "there should be two columns, one of periods and one of numbers; or a column for each of several "
                "outcomes, under its name."
            )
    if said.time_format is None:
        return reader.series_in(table, path, said)
    dates.require_format(said.time_format)
    try:
        return reader.series_in(table, path, said)
    except TableError as problem:
        with suppress(TableError):  # another file may write its dates in another way
            return reader.series_in(table, path, replace(said, time_format=None))
        raise problem
