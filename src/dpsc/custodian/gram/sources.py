"""Where donors are, and how they are added up there: in an array, in files, or by a cluster.

A source draws no noise. What it returns is private and stays with the custodian.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload, runtime_checkable

import numpy as np
import pandas as pd

from dpsc.custodian.donors.blocks import row_blocks, row_writer
from dpsc.custodian.donors.donor_files import Engine, Files, FileSource, chosen
from dpsc.custodian.donors.donors import Donors
from dpsc.custodian.donors.frames import PeriodsFrom, is_frame, read_wide
from dpsc.custodian.donors.missing import Bounds, Completion
from dpsc.custodian.donors.panel import Panel
from dpsc.custodian.gram.exact_sum import OnRows, Summand, add_up
from dpsc.custodian.groups.people_files import FilePeople
from dpsc.custodian.groups.sources import people_in
from dpsc.errors import PanelError, Parameter, ParameterError
from dpsc.periods import dates
from dpsc.periods.dates import in_order
from dpsc.periods.declare import declared
from dpsc.tables.dialect import Dialect
from dpsc.tables.formats import nothing_quoted
from dpsc.tables.spec import Missing, Repeated, TableSpec
from dpsc.types import Array, Integers, PeriodsLike, Times, to_floats

if TYPE_CHECKING:
    from dpsc.custodian.gram.dask import DaskDonors

_MISSING = Parameter("missing")


@runtime_checkable
class DonorSource(Protocol):
    """Donors that can be added up."""

    @property
    def times(self) -> Times:
        """The periods, in order."""
        ...

    @property
    def outcome(self) -> str:
        """The name of the outcome."""
        ...

    @property
    def periods_from(self) -> PeriodsFrom:
        """Where the periods are from."""
        ...

    def rows_expected(self) -> int | None:
        """Return how many donors a progress bar should expect, if that is known."""
        ...

    def add_up(self, summand: Summand, on_rows: OnRows, enough: float = math.inf) -> tuple[Integers, int]:
        """Return the exact sum over all donors, or over the first ones if these are enough, and their number."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class ArrayDonors:
    """Donors as an n × T array, periods in order; cells that a release is to complete are NaN."""

    values: Array
    times: Times
    outcome: str
    periods_from: PeriodsFrom = "header"

    def rows_expected(self) -> int:
        """Return how many donors there are."""
        return len(self.values)

    def add_up(self, summand: Summand, on_rows: OnRows, enough: float = math.inf) -> tuple[Integers, int]:
        """Add up the rows."""
        rows = self.values[: int(min(enough, len(self.values)))]
        return sum_of_rows(rows, summand, on_rows=on_rows), len(rows)


def sum_of_rows(
    donors: Array,
    summand: Summand,
    *,
    block: int | None = None,
    threads: int | None = None,
    on_rows: OnRows = lambda rows: None,
) -> Integers:
    """Return the exact sum over the rows of an array."""
    n = len(donors)
    block = min(block or n, summand.rows_of_a_block, n)
    blocks = (row_writer(donors[start : start + block]) for start in range(0, n, block))
    return add_up(blocks, summand, on_rows, threads)[0]


@dataclass(frozen=True)
class FileDonors(FileSource):
    """Donors in files, read by this process: whole, or in blocks, so that only a few blocks are in memory."""

    threads: int | None = None

    def add_up(self, summand: Summand, on_rows: OnRows, enough: float = math.inf) -> tuple[Integers, int]:
        """Read the files, as far as there are enough rows, and add them up."""
        identities = self.files.identities()
        with nothing_quoted(self.files.path):
            blocks = self.files.blocks(summand.rows_of_a_block, identities)
            total, n = add_up(blocks, summand, on_rows, self.threads, enough)
        if n < enough:
            self.files.finish(identities, n)
        return total, n


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
    exclude: Sequence[str] = ...,
    sep: str | None = ...,
    decimal: str | None = ...,
    thousands: str | None = ...,
    encoding: str | None = ...,
    sheet: str | None = ...,
    engine: Engine = ...,
    scheduler: str | None = ...,
    workers: int | None = ...,
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
    exclude: Sequence[str] = (),
    sep: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    engine: Engine = "auto",
    scheduler: str | None = None,
    workers: int | None = None,
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
    periods, bounds, missing, repeated
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
        ``"memory"`` holds the whole table and accepts rows in any order; ``"stream"`` reads a table of any size in
        blocks and needs the rows of each unit together; ``"dask"`` uses a cluster. By default a table is held if it
        fits into half of the free memory, going by the sizes of its files.
    scheduler, workers : optional
        For Dask: the address of an existing scheduler, or how many workers to start here.
    """
    dialect = Dialect(sep, decimal, thousands, encoding, sheet)
    if person is not None:
        given = {"wide": wide, "bounds": bounds, "missing": missing, "exclude": exclude}
        if wrong := next((name for name, value in given.items() if value), "repeated" * (repeated != "missing")):
            raise ParameterError(f"{Parameter(wrong)} is for donors, not for people; leave it out.")
        spec = TableSpec(unit, time, outcome, time_format=time_format, person=person, dialect=dialect)
        return people_in(path, spec, units, periods, engine=engine, scheduler=scheduler, workers=workers)
    if units is not None:
        raise ParameterError(f"{Parameter('units')} belong to {Parameter('person')}, the column that names people.")
    spec = TableSpec(unit, time, outcome, wide, time_format, repeated, missing, dialect=dialect)
    return donors_in(
        path,
        spec,
        periods,
        bounds=bounds,
        exclude=exclude,
        engine=engine,
        scheduler=scheduler,
        workers=workers,
    )


def donors_in(
    path: str | os.PathLike[str],
    spec: TableSpec,
    periods: PeriodsLike | None,
    *,
    bounds: tuple[float, float] | None = None,
    exclude: Sequence[str] = (),
    engine: Engine = "auto",
    scheduler: str | None = None,
    workers: int | None = None,
) -> FileDonors | DaskDonors:
    """Return the donors of a file or folder that a specification describes; otherwise as :func:`scan`."""
    where = Path(path)
    if isinstance(exclude, str) or not all(isinstance(label, str) for label in exclude):
        raise ParameterError(f"{Parameter('exclude')} must be a list of labels, as the files write them.")
    if spec.time_format is not None:
        dates.require_format(spec.time_format)
    engine = chosen(where, engine, scheduler, workers)
    index = None if periods is None else declared(periods, spec.time_format)
    Completion(pd.Index([]), spec.missing, None if bounds is None else Bounds.parse(bounds, 1))
    spec.complete()
    # The workers of a cluster may run in another folder.
    place = where.absolute() if engine == "dask" else where
    held = None if engine == "auto" else engine == "memory"
    files = Files(place, spec, bounds, tuple(exclude), index, held)
    if engine != "dask":
        return FileDonors(files)
    from dpsc.custodian.gram.dask import DaskDonors

    return DaskDonors(files, scheduler, workers)


def source_of(donors: Any, missing: Missing | None = None) -> DonorSource:
    """Return donors of any form as a source; an array of floats is not copied, unless there is a rule to fill it."""
    if missing is not None:
        if isinstance(donors, (DonorSource, Panel, Donors)) and not isinstance(donors, pd.DataFrame):
            raise ParameterError(f"{_MISSING} is for frames and arrays; these donors have a rule already.")
        read = Donors.from_wide if isinstance(donors, pd.DataFrame) else Donors.from_arrays
        donors = read(donors, missing=missing)
    if isinstance(donors, DonorSource) and not is_frame(donors):
        return donors
    if isinstance(donors, Panel):
        donors = donors.pool
    if isinstance(donors, Donors):
        return ArrayDonors(donors.values, donors.times, donors.outcome, donors.periods_from)
    if is_frame(donors):
        matrix = read_wide(donors, None, None)
        order = in_order(matrix.times)
        values, times = matrix.values[:, order], matrix.times[order]
    else:
        plain = type(donors) is np.ndarray and donors.dtype == np.float64
        values = donors if plain else to_floats(donors, "donors")
        if values.ndim != 2 or 0 in values.shape:
            raise PanelError(f"donors must be an n × T array, not of shape {values.shape}.")
        times = pd.RangeIndex(values.shape[1], name="time")
    if not all(np.isfinite(part).all() for part in row_blocks(values)):
        raise PanelError(
            "the donors have missing or infinite cells; missing='kernel' takes what the public kernel expects there. "
            "Donors.from_long, from_wide or from_arrays says where they are, or fills them in other ways."
        )
    return ArrayDonors(values, times, "outcome")
