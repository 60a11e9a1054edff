"""Public series beside the donors: a path to subtract, and one that shows how much such series move."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pandas as pd

from dpsc.errors import Parameter, ParameterError, TableError, UnorderedError
from dpsc.periods import calendar, dates, match
from dpsc.periods.dates import in_order
from dpsc.tables import formats, reader
from dpsc.tables.formats import in_file
from dpsc.tables.spec import NOTHING_SAID, TableSpec, undecided
from dpsc.types import Times

_ONE = " A public series has one number for each period."


def reference(path: Path | None, donors: TableSpec = NOTHING_SAID) -> pd.Series[float] | None:
    """Read the path to subtract from every donor; ``donors`` is what was said about the donors' table.

    A table with more columns than periods and numbers is read by the names of the donors' columns.
    """
    return None if path is None else _series(path, donors)


def like(
    path: Path | None, before: str | None, donors: TableSpec = NOTHING_SAID, *, alone: bool = False
) -> pd.Series[float] | None:
    """Read a series that moves about like a donor, in the order of time, as far as a period that is named.

    All of it, if that is the period after its last one. ``alone``: what was said is about this table itself.
    """
    if path is None:
        if before is not None:
            raise ParameterError(
                f"{Parameter('like_before')} says where {Parameter('like')} ends; give {Parameter('like')} too."
            )
        return None
    series = reader.series(path, donors) if alone else _series(path, donors)
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
        first = match.typed_period(before, _and_the_next(series.index), donors.time_format, "like_before")
        return series.iloc[: len(series) if first not in series.index else series.index.get_loc(first)]


def _and_the_next(index: Times) -> Times:
    """Return periods and the one after them, in which an intervention may come, if that can be said."""
    if calendar.frequency(index) is None:
        return index
    return index.append(index[-1:] + (calendar.step(index) or 1))


def _series(path: Path, donors: TableSpec) -> pd.Series[float]:
    said = TableSpec(time_format=donors.time_format, dialect=donors.dialect.for_series())
    table = reader.open_series(path, said)
    names = table.schema.names
    if len(names) > 2:
        time = donors.time if donors.time in names else next(name for name in names if name != donors.unit)
        others = [name for name in names if name not in (time, donors.unit)]
        outcome = donors.outcome if donors.outcome in others else others[0] if len(others) == 1 else None
        if outcome is None:
            raise formats.refusal(
                path,
                f"there are {len(names)} columns, and none is named like the donors' numbers, {donors.outcome!r}; give "
                "a table with a column of periods and a column of numbers."
                if donors.outcome
                else undecided(names, None, None),
            )
        said = replace(said, time=time, outcome=outcome)
    if said.time_format is None:
        return reader.series_in(table, path, said, advice=_ONE)
    dates.require_format(said.time_format)
    try:
        return reader.series_in(table, path, said, advice=_ONE)
    except TableError as problem:
        with suppress(TableError):  # another file may write its dates in another way
            return reader.series_in(table, path, replace(said, time_format=None), advice=_ONE)
        raise problem
