"""Donors, or people, in files: one function for both. It reads nothing yet."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, overload

from dpsc.custodian.donors.donor_files import Engine
from dpsc.custodian.gram.sources import FileDonors, donors_in
from dpsc.custodian.groups.people_files import FilePeople
from dpsc.custodian.groups.sources import people_in
from dpsc.errors import Parameter, ParameterError
from dpsc.tables.dialect import Dialect
from dpsc.tables.places import place_of
from dpsc.tables.spec import Missing, Repeated, TableSpec
from dpsc.types import PeriodsLike

if TYPE_CHECKING:
    from dpsc.custodian.gram.dask import DaskDonors


@overload
def scan(
    path: str | os.PathLike[str],
    *,
    unit: str,
    person: None = ...,
    time: str | None = ...,
    outcome: str | None = ...,
    wide: bool = ...,
    time_format: str | None = ...,
    units: None = ...,
    periods: PeriodsLike | None = ...,
    bounds: tuple[float, float] | None = ...,
    missing: Missing | None = ...,
    repeated: Repeated = ...,
    by: str | None = ...,
    labels: str | Iterable[str] | None = ...,
    exclude: Sequence[str] = ...,
    sep: str | None = ...,
    decimal: str | None = ...,
    thousands: str | None = ...,
    encoding: str | None = ...,
    sheet: str | None = ...,
    engine: Engine = ...,
    scheduler: str | None = ...,
    workers: int | None = ...,
    table: str | None = ...,
    query: str | None = ...,
) -> FileDonors | DaskDonors: ...


@overload
def scan(
    path: str | os.PathLike[str],
    *,
    unit: str,
    person: str,
    time: str | None = ...,
    outcome: str | None = ...,
    time_format: str | None = ...,
    units: Iterable[str] | None = ...,
    periods: PeriodsLike | None = ...,
    sep: str | None = ...,
    decimal: str | None = ...,
    thousands: str | None = ...,
    encoding: str | None = ...,
    sheet: str | None = ...,
    engine: Engine = ...,
    scheduler: str | None = ...,
    workers: int | None = ...,
    table: str | None = ...,
    query: str | None = ...,
) -> FilePeople: ...


def scan(
    path: str | os.PathLike[str],
    *,
    unit: str,
    person: str | None = None,
    time: str | None = None,
    outcome: str | None = None,
    wide: bool = False,
    time_format: str | None = None,
    units: Iterable[str] | None = None,
    periods: PeriodsLike | None = None,
    bounds: tuple[float, float] | None = None,
    missing: Missing | None = None,
    repeated: Repeated = "missing",
    by: str | None = None,
    labels: str | Iterable[str] | None = None,
    exclude: Sequence[str] = (),
    sep: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    engine: Engine = "auto",
    scheduler: str | None = None,
    workers: int | None = None,
    table: str | None = None,
    query: str | None = None,
) -> FileDonors | DaskDonors | FilePeople:
    """Return the donors of a file or folder, of any size, or the people in it if ``person`` names their column.

    Donors are for :meth:`dpsc.GramRelease.release`, people for :meth:`dpsc.PanelRelease.release`. The integers that
    they add up to are the same from every engine, to the last bit.

    Parameters
    ----------
    path : path
        CSV, TSV, Parquet or Feather, one file or a folder of them; or an Excel workbook (.xlsx).
    unit, time, outcome : column names
        Of a long table, one row per unit and period; of people, one row per record.
    person : column name, optional
        Of identifiers, which are read as text. Rows without one, or outside ``units`` and ``periods``, are left out.
    units : list of str, optional
        The declared units of people; ``periods`` are then needed, too.
    wide : bool
        Whether the table has one row per unit and one column per period instead, so that only ``unit`` is named.
    time_format : str, optional
        How dates are written, for example ``%d/%m/%Y``.
    periods, bounds, missing, repeated, by, labels
        As in :meth:`dpsc.Donors.from_long`.
    exclude : list of str
        Labels of the units to leave out, such as the treated unit, as the files write them.
    sep, encoding : str, optional
        Of a text file: ``","``, ``";"``, ``"tab"`` or ``"|"``, and an encoding as Python names it. Without them the
        header line and the byte-order mark show them.
    decimal, thousands : str, optional
        The marks in numbers: ``"."`` or ``","`` before decimals; ``","``, ``"."``, ``"space"`` or ``"apostrophe"``
        between thousands, or ``"none"``. Without them each number of a file with semicolons is read by itself, and
        those of other files have a decimal point and no other mark.
    sheet : str, optional
        The sheet of a workbook, if it has several.
    engine : {"auto", "memory", "stream", "dask"}
        ``"memory"`` holds the whole table; ``"stream"`` reads a table of any size in blocks; ``"dask"`` uses a cluster.
        By default a table is held if it fits into half of the free memory, going by the sizes of its files. Rows may be
        in any order for every engine; a stream keeps those of units that are not together in a private file meanwhile.
    scheduler, workers : optional
        For Dask: the address of an existing scheduler, or how many workers to start here.
    table, query : str, optional
        The table (``"visits"``, ``"clinic.visits"``) or the query whose rows are read, if ``path`` is a database.
    """
    dialect, where = Dialect(sep, decimal, thousands, encoding, sheet), place_of(path, table, query)
    if person is not None:
        given = {"wide": wide, "bounds": bounds, "missing": missing, "by": by, "labels": labels, "exclude": exclude}
        if wrong := next((name for name, value in given.items() if value), "repeated" * (repeated != "missing")):
            raise ParameterError(f"{Parameter(wrong)} is for donors, not for people; leave it out.")
        spec = TableSpec(unit, time, outcome, time_format=time_format, person=person, dialect=dialect)
        return people_in(where, spec, units, periods, engine=engine, scheduler=scheduler, workers=workers)
    if units is not None:
        raise ParameterError(f"{Parameter('units')} belong to {Parameter('person')}, the column that names people.")
    spec = TableSpec(unit, time, outcome, wide, time_format, repeated, missing, by=by, dialect=dialect)
    return donors_in(
        where,
        spec,
        periods,
        labels=labels,
        bounds=bounds,
        exclude=exclude,
        engine=engine,
        scheduler=scheduler,
        workers=workers,
    )
