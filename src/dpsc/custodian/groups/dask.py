"""People in files, added up by a cluster: workers read pieces, exchange records by person, and add up whole people.

The sum is of integers and does not depend on who adds up whom. No noise is drawn here.
"""

from __future__ import annotations

from asyncio import CancelledError
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd

from dpsc.custodian.donors.people import OnRows, PersonCells
from dpsc.custodian.donors.records import Grid
from dpsc.custodian.gram.dask import PIECE_CELLS, Piece, by_a_tree, client_of, row_groups, rows_of_piece, safe_to_show
from dpsc.custodian.groups.bounding import Bounding
from dpsc.custodian.groups.people_files import FilePeople, require_outcome
from dpsc.errors import DpscError
from dpsc.tables.dialect import Reading
from dpsc.tables.formats import in_file
from dpsc.types import Integers

_KINDS = {"key": np.uint64, "cell": np.int64, "amount": np.int64}  # of a record, as it is sent
_NONE = pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in _KINDS.items()})


@dataclass(frozen=True, eq=False)
class DaskPeople(FilePeople):
    """People in files that every worker can read.

    Attributes
    ----------
    path, spec, grid
        As of :class:`FilePeople`.
    scheduler, workers : optional
        As of :class:`dpsc.custodian.gram.dask.DaskDonors`.
    """

    scheduler: str | None = None
    workers: int | None = None

    @property
    def how(self) -> str:
        """Where the records are kept until they are added up."""
        return "held by the workers of a cluster"

    def add_up(self, summand: Bounding, on_rows: OnRows) -> Integers:
        """Let the workers add up all people."""
        require_outcome(summand, self.spec.outcome is not None)
        pieces = [piece[:2] for piece in row_groups(self.table, self.columns)]
        with client_of(self.scheduler, self.workers) as client, in_file(self.path):
            try:
                total = self._on(client, summand, pieces, on_rows)
            except (Exception, CancelledError) as problem:
                raise safe_to_show(problem) from None
        if isinstance(total, DpscError):
            raise total
        return total

    def _on(self, client: Any, summand: Bounding, pieces: list[Piece], on_rows: OnRows) -> Integers | DpscError:
        import dask.dataframe as dd

        table = self.table
        if not pieces:
            return _sum_of(summand, _NONE)
        read = partial(_records, self.grid, summand, table.schema, self.columns, table.reading)
        frame = dd.from_map(read, pieces, meta=_NONE)
        parts = client.compute(list(frame.shuffle(on="key").to_delayed()))
        sums = [client.submit(_sum_of, summand, part, pure=False) for part in parts]
        share = (self.rows_expected() or 0) // max(1, len(sums))
        total: Integers | DpscError = by_a_tree(client, _together, sums, [share] * len(sums), on_rows).result()
        return total


def _records(
    grid: Grid, summand: Bounding, schema: Any, columns: list[str], reading: Reading, piece: Piece
) -> pd.DataFrame:
    """Read a piece on a worker: the hash of each record's person, its cell, its amount."""
    try:
        batches = [_NONE]
        for rows in rows_of_piece(piece, schema, columns, reading, PIECE_CELLS):
            keys, cells, values = grid.of_rows(rows)
            amounts, kept = summand.amounts(values)
            batches.append(pd.DataFrame(dict(zip(_KINDS, (keys, cells, amounts), strict=True)))[kept])
        return pd.concat(batches, ignore_index=True)
    except Exception as problem:
        raise safe_to_show(problem) from None  # without the original error, whose data Dask would log


def _sum_of(summand: Bounding, records: pd.DataFrame) -> Integers | DpscError:
    """Add up the people of a part. An error is returned, not raised: Dask would log the arguments, the records."""
    try:
        return summand.of(PersonCells.of(*(records[name].to_numpy() for name in _KINDS)))
    except Exception as problem:
        return safe_to_show(problem)


def _together(sums: list[Integers | DpscError]) -> Integers | DpscError:
    """Add up the sums of several parts."""
    fine = [part for part in sums if not isinstance(part, DpscError)]
    return reduce(add, fine) if len(fine) == len(sums) else next(part for part in sums if isinstance(part, DpscError))
