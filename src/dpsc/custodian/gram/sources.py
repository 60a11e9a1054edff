"""Where donors are, and how they are added up there: in an array, in files, or by a cluster.

A source draws no noise. What it returns is private and stays with the custodian.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from dpsc.custodian.donors.blocks import InSegments, row_blocks, row_writer
from dpsc.custodian.donors.donor_files import Engine, Files, FileSource, chosen
from dpsc.custodian.donors.donors import Donors
from dpsc.custodian.donors.frames import PeriodsFrom, is_frame, read_wide
from dpsc.custodian.donors.missing import Bounds, Completion
from dpsc.custodian.donors.panel import Panel
from dpsc.custodian.gram.exact_sum import OnRows, Summand, add_up
from dpsc.errors import PanelError, Parameter, ParameterError
from dpsc.periods import dates
from dpsc.periods.dates import in_order
from dpsc.periods.declare import declared
from dpsc.release.segments import BY, Segments
from dpsc.tables.formats import nothing_quoted
from dpsc.tables.places import place_of
from dpsc.tables.spec import Missing, TableSpec
from dpsc.types import Array, Integers, PeriodsLike, Positions, Times, Write, to_floats

if TYPE_CHECKING:
    from dpsc.custodian.gram.dask import DaskDonors

_MISSING = Parameter("missing")


@dataclass(frozen=True, eq=False, repr=False)
class ArrayDonors:
    """Donors as an n × T array, periods in order; cells that a release is to complete are NaN."""

    values: Array
    times: Times
    outcome: str
    periods_from: PeriodsFrom = "header"
    segments: Segments | None = None
    codes: Positions | None = None

    def rows_expected(self) -> int:
        """Return how many donors there are."""
        return len(self.values)

    def add_up(self, summand: Summand, on_rows: OnRows, enough: float = math.inf) -> tuple[Integers, int]:
        """Add up the rows."""
        rows = self.values[: int(min(enough, len(self.values)))]
        return sum_of_rows(rows, summand, codes=self.codes, on_rows=on_rows), len(rows)


DonorSource: TypeAlias = ArrayDonors | FileSource
"""Donors that can be added up."""


def sum_of_rows(
    donors: Array,
    summand: Summand,
    *,
    codes: Positions | None = None,
    block: int | None = None,
    threads: int | None = None,
    on_rows: OnRows = lambda rows: None,
) -> Integers:
    """Return the exact sum over the rows of an array; ``codes`` says which segment each is in."""
    n = len(donors)
    block = min(block or n, summand.rows_of_a_block, n)
    blocks: Iterable[Write] = (row_writer(donors[start : start + block]) for start in range(0, n, block))
    if codes is not None:
        blocks = map(InSegments, blocks, (codes[start : start + block] for start in range(0, n, block)))
    return add_up(blocks, summand, on_rows, threads)[0]


@dataclass(frozen=True)
class FileDonors(FileSource):
    """Donors in files, read by this process: whole, or in blocks, so that only a few blocks are in memory."""

    threads: int | None = None

    def add_up(self, summand: Summand, on_rows: OnRows, enough: float = math.inf) -> tuple[Integers, int]:
        """Read the files, as far as there are enough rows, and add them up."""
        identities = self.files.identities()
        with nothing_quoted(self.files.path):
            blocks = self.files.blocks(summand.rows_of_a_block, identities, enough)
            total, n = add_up(blocks, summand, on_rows, self.threads, enough)
        if n < enough:
            self.files.finish(identities, n)
        return total, n


def donors_in(
    path: str | os.PathLike[str],
    spec: TableSpec,
    periods: PeriodsLike | None,
    *,
    labels: str | Iterable[str] | None = None,
    bounds: tuple[float, float] | None = None,
    exclude: Sequence[str] = (),
    engine: Engine = "auto",
    scheduler: str | None = None,
    workers: int | None = None,
) -> FileDonors | DaskDonors:
    """Return the donors of a file or folder that a specification describes; otherwise as :func:`dpsc.scan`."""
    where = place_of(path)
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
    files = Files(
        place,
        spec,
        bounds,
        tuple(exclude),
        index,
        held,
        Segments.declared(spec.by, spec.labels if labels is None else labels),
    )
    if engine != "dask":
        return FileDonors(files)
    from dpsc.custodian.gram.dask import DaskDonors

    return DaskDonors(files, scheduler, workers)


def source_of(
    donors: Any, missing: Missing | None = None, *, by: Any | None = None, labels: str | Iterable[str] | None = None
) -> DonorSource:
    """Return donors of any form as a source; an array of floats is not copied, unless it needs a rule or segments."""
    if missing is not None or by is not None or labels is not None:
        if isinstance(donors, DonorSource | Panel | Donors):
            if missing is not None:
                raise ParameterError(f"{_MISSING} is for frames and arrays; these donors have a rule already.")
            raise ParameterError(f"{BY} is for frames and arrays; say it where these donors are made.")
        read = Donors.from_wide if is_frame(donors) else Donors.from_arrays
        donors = read(donors, missing=missing, by=by, labels=labels)
    if isinstance(donors, DonorSource):
        return donors
    if isinstance(donors, Panel):
        donors = donors.pool
    if isinstance(donors, Donors):
        where = donors.times, donors.outcome, donors.periods_from
        return ArrayDonors(donors.values, *where, donors.segments, donors.codes)
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
