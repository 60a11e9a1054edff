"""The Dask engine: workers add up pieces of the files, and a tree of workers adds up these exact integer sums.

Its connections are encrypted and need a certificate that exists in this process alone, so that no other user of the
machine can connect. What scheduler and workers may write, and import, is in a private folder, which is removed at the
end; what a killed process leaves there is removed by the next one.

Noise is not drawn here: the sum comes back to the custodian's process, which adds the noise once. If a worker dies,
others do its pieces again; a sum of integers does not depend on who adds them, or in which order.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpsc.custodian.donors.blocks import BLOCK_CELLS, CheckedBlock, Identities, row_writer
from dpsc.custodian.donors.cells import Calendar, column_writer, understood, units_of
from dpsc.custodian.donors.donor_files import FileSource, Part, runs, segments_of
from dpsc.custodian.donors.missing import Completion
from dpsc.custodian.gram.exact_sum import OnRows, Summand, add_up
from dpsc.errors import DpscError, Parameter, TableError
from dpsc.files import no_imports_from_here, private_folder
from dpsc.release.segments import Segments
from dpsc.tables.arrow import Rows
from dpsc.tables.dialect import Reading
from dpsc.tables.formats import in_file
from dpsc.tables.places import place_of
from dpsc.tables.reader import Table
from dpsc.tables.spec import TableSpec
from dpsc.tables.table_file import TableFile
from dpsc.types import Integers

_PREFIX = "dpsc-dask-"
_CLOSED = {
    "distributed.p2p.storage.disk": False,  # rows on their way between workers stay in memory
    "distributed.worker.memory.target": False,  # and so do results that wait
    "distributed.worker.memory.spill": False,
    "distributed.scheduler.http.routes": [],  # pages that anybody on the machine could open
    "distributed.worker.http.routes": [],
}


@contextmanager
def local_client(workers: int | None) -> Iterator[Any]:
    """Start a cluster with so many workers, all cores by default, and yield a client of it."""
    import dask
    from distributed import Client, LocalCluster, Security

    security = Security.temporary()
    with (
        private_folder(_PREFIX) as scratch,
        _off_the_path_at_the_end(scratch),
        no_imports_from_here(),
        dask.config.set(_CLOSED | {"temporary-directory": str(scratch)}),
    ):
        with _workers_ignore_interrupts(), _explained():
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                protocol="tls://",
                security=security,
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                silence_logs=50,
            )
        with cluster, Client(cluster, security=security) as client:
            yield client


@contextmanager
def _off_the_path_at_the_end(scratch: Path) -> Iterator[None]:
    """Take what is in a folder off ``sys.path``, where Dask puts it, before it is removed and others may make it."""
    try:
        yield
    finally:
        sys.path[:] = [path for path in sys.path if not str(path).startswith(str(scratch))]


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except RuntimeError:
        raise DpscError(
            "the workers of a local Dask cluster could not be started. In a script, put everything that runs below "
            "if __name__ == '__main__': workers run the script's first level again."
        ) from None


@contextmanager
def _workers_ignore_interrupts() -> Iterator[None]:
    """Let processes that start here leave Ctrl-C to the process that started them, which ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_SPLIT_EVERY = 8
_ROW = "row"  # the position of a row in the table
_KINDS = ("object", "int64", "float64", "int64", "int64")  # of a long table's unit, period, number, segment and row
Piece = tuple[str, list[int] | None]  # a file, and which of its row groups
_MOST_ROWS = 2**40  # of a piece
PIECE_CELLS = 5 * BLOCK_CELLS  # small enough that workers finish at about the same time


@dataclass(frozen=True)
class DaskDonors(FileSource):
    """Donors in files that every worker can read.

    Attributes
    ----------
    files : Files
    scheduler : str, optional
        The address of an existing scheduler, such as ``tcp://10.0.0.1:8786``; without it a local cluster is started.
    workers : int, optional
        Of the local cluster; as many as there are cores by default.
    """

    scheduler: str | None = None
    workers: int | None = None

    def add_up(self, summand: Summand, on_rows: OnRows, enough: float = math.inf) -> tuple[Integers, int]:
        """Let the workers add up all rows; which would come first, so that they are enough, is not known."""
        with client_of(self.scheduler, self.workers) as client, in_file(self.files.path):
            try:
                whole = self._on(client, summand, on_rows)
            except (Exception, CancelledError) as problem:
                raise safe_to_show(problem) from None
        with in_file(self.files.path):
            if whole.problem is not None:
                raise whole.problem
            self.files.require_plausible(whole.n)
        return whole.total, whole.n

    def _on(self, client: Any, summand: Summand, on_rows: OnRows) -> PartialSum:
        """Let a cluster add up the pieces, and then their sums by a tree."""
        instructions = self.instructions(summand)
        pieces = self._pieces(client, instructions)
        if not pieces:
            return failed(TableError("there are no rows."))
        sums = [client.submit(piece_sum, instructions, piece, pure=False) for piece, _ in pieces]
        whole = by_a_tree(client, together, sums, [rows for _, rows in pieces], on_rows)
        last: PartialSum = client.submit(complete, whole, self.files.path, pure=False).result()
        return last

    def instructions(self, summand: Summand) -> Instructions:
        """Return what a worker must know."""
        files = self.files
        return Instructions(
            spec=files.spec,
            columns=files.in_time_order,
            schema=files.table.schema,
            reading=files.table.reading,
            calendar=None if files.spec.wide else files.calendar,
            completion=files.completion,
            exclude=files.exclude,
            summand=summand,
            set_aside=files.units_with_several_rows[0] if files.spec.wide else None,
            segments=files.segments,
        )

    def _pieces(self, client: Any, instructions: Instructions) -> list[tuple[Any, int]]:
        """Divide a wide table by files and row groups; in a long table, first bring the rows of each donor together.

        Return also how many donors each piece has, about if its file does not say.
        """
        files, pieces = self.files, list(row_groups(self.files.table, self.files.columns))
        if files.spec.wide:
            share, apart = self._share(len(pieces)), files.units_with_several_rows
            where: list[tuple[Any, int]] = [((path, groups), rows or share) for path, groups, rows in pieces]
            return [*where, (apart, len(apart[0]))] if len(apart[0]) else where
        partitions = _by_donor(instructions, [piece[:2] for piece in pieces]) if pieces else []
        return [(partition, self._share(len(partitions))) for partition in client.compute(partitions)]

    def _share(self, pieces: int) -> int:
        return (self.rows_expected() or 0) // max(1, pieces)


def by_a_tree(client: Any, add_up: Callable[[Any], Any], sums: list[Any], rows: Sequence[int], on_rows: OnRows) -> Any:
    """Let workers add up sums, a few at a time, and tell how many rows each had when it is done."""
    for future, count in zip(sums, rows, strict=True):
        future.add_done_callback(lambda done, count=count: on_rows(count) if done.status == "finished" else None)
    while len(sums) > 1:
        groups = (sums[i : i + _SPLIT_EVERY] for i in range(0, len(sums), _SPLIT_EVERY))
        sums = [client.submit(add_up, group, pure=False) for group in groups]
    return sums[0]


@contextmanager
def client_of(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """Yield a client of an existing cluster, or of one that is started for it."""
    if scheduler is None:
        with local_client(workers) as client:
            yield client
        return
    from distributed import Client

    try:
        client = Client(scheduler, timeout=5)
    except (OSError, ValueError):
        raise DpscError(
            f"there is no Dask scheduler at {scheduler} ({Parameter('scheduler', '')}), or none that accepts this "
            "user's certificate."
        ) from None
    except TypeError:
        raise DpscError(
            f"the scheduler at {scheduler} needs a certificate: name the files in the environment, in "
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and ..._KEY."
        ) from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise DpscError(f"the scheduler at {scheduler} has no workers; start some with dask worker.")
        yield client


@dataclass(frozen=True, eq=False)
class PartialSum:
    """The sum over some donors and their identities, or an error."""

    total: Integers
    n: int
    identities: Identities | None
    problem: DpscError | None = None


def failed(problem: DpscError) -> PartialSum:
    """Return an error in place of a sum."""
    return PartialSum(np.zeros((0, 0), dtype=np.int64), 0, None, problem)


@dataclass(frozen=True, eq=False)
class Instructions:
    """What a worker must know."""

    spec: TableSpec
    columns: list[str]  # the unit, then the periods of a wide table in time order or time and outcome of a long one
    schema: Any
    reading: Reading
    calendar: Calendar | None  # of a long table
    completion: Completion
    exclude: tuple[str, ...]
    summand: Summand
    set_aside: Any = None  # units of a wide table that have several rows
    segments: Segments | None = None


def row_groups(table: Table, columns: list[str]) -> Iterator[tuple[str, list[int] | None, int]]:
    """Yield pieces of about equal size, and how many rows each has: files, or for Parquet runs of row groups."""
    most = max(1, PIECE_CELLS // max(1, len(columns)))
    for file in table.each_file():
        path = str(file.path)
        if file.kind != "parquet":
            yield path, None, 0
            continue
        footer = file.footer()
        run: list[int] = []
        rows = 0
        for group in range(footer.num_row_groups):
            more = footer.row_group(group).num_rows
            if run and rows + more > most:
                yield path, run, rows
                run, rows = [], 0
            run.append(group)
            rows += more
        if run:
            yield path, run, rows


def _by_donor(instructions: Instructions, pieces: list[Any]) -> list[Any]:
    """Return a long table in partitions that each hold all rows of their donors."""
    import dask.dataframe as dd

    read = partial(long_frame, instructions)
    frame = dd.from_map(read, pieces, range(len(pieces)), meta=_no_rows(instructions.columns))
    return list(frame.shuffle(on=instructions.spec.unit).to_delayed())


def _no_rows(columns: list[str]) -> pd.DataFrame:
    kinds = _KINDS[: len(columns)] + _KINDS[-1:]
    return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in zip(_names(columns), kinds, strict=True)})


def _names(columns: list[str]) -> list[str]:
    """Return the names of the columns of a long table and of its rows' positions."""
    own = _ROW
    while own in columns:
        own += "_"
    return [*columns, own]


def long_frame(instructions: Instructions, piece: Any, number: int) -> pd.DataFrame:
    """Read a piece of a long table on a worker: its rows as understood, and their positions in the whole table."""
    assert instructions.calendar is not None
    try:
        read = _rows(instructions, piece, PIECE_CELLS)
        batches = [understood(rows, instructions.calendar, instructions.segments) for rows in read]
    except Exception as problem:
        raise safe_to_show(problem) from None  # without the original error, whose data Dask would log
    if not batches:
        return _no_rows(instructions.columns)
    frame: pd.DataFrame = pa.Table.from_batches(batches).to_pandas()
    frame[instructions.spec.unit] = frame[instructions.spec.unit].astype(object)
    return frame.assign(**{_names(instructions.columns)[-1]: number * _MOST_ROWS + np.arange(len(frame))})


def piece_sum(instructions: Instructions, piece: Any) -> PartialSum:
    """Add up one piece, on a worker. An error is returned, not raised: Dask would log the arguments, the donors."""
    try:
        return _piece_sum(instructions, piece)
    except Exception as problem:
        return failed(safe_to_show(problem))


def safe_to_show(problem: BaseException | None) -> DpscError:
    """Return an error without donors' values: our own, or only the type of another, whose text may quote them."""
    kind = type(problem).__name__
    while problem is not None:
        if isinstance(problem, DpscError):
            return problem
        problem = problem.__cause__
    return TableError(f"a piece failed on a worker ({kind}).")


def _piece_sum(instructions: Instructions, piece: Any) -> PartialSum:
    identities = Identities(instructions.spec, instructions.exclude)
    size = instructions.summand.rows_of_a_block
    read = _wide_piece if instructions.spec.wide else _long_piece
    blocks = (
        CheckedBlock(path, units, write, identities, instructions.completion, segment=codes)
        for path, units, write, codes in read(instructions, piece, size)
    )
    total, n = add_up(blocks, instructions.summand, threads=1)
    return PartialSum(total, n, identities)


def _rows(instructions: Instructions, piece: Piece, size: int) -> Iterator[Rows]:
    return rows_of_piece(piece, instructions.schema, instructions.columns, instructions.reading, size)


def rows_of_piece(piece: Piece, schema: Any, columns: list[str], reading: Reading, size: int) -> Iterator[Rows]:
    """Read a piece of a table on a worker, on one core."""
    path, groups = piece
    first, file = 0 if groups is None else None, TableFile(place_of(path))
    for batch in file.batches(schema, columns, size, reading, threads=False, groups=groups):
        yield Rows(path, first, batch, reading.numbers)
        first = None if first is None else first + batch.num_rows


def _wide_piece(instructions: Instructions, piece: Any, size: int) -> Iterator[Part]:
    """Return the donors of a piece but for those with several rows, which are a piece of their own."""
    if not isinstance(piece[0], str):
        units, values, codes = piece
        for i in range(0, len(units), size):
            here = None if codes is None else codes[i : i + size]
            yield "", units.slice(i, size), row_writer(values[i : i + size]), here
        return
    for rows in _rows(instructions, piece, size):
        kept, units = units_of(rows)
        if len(instructions.set_aside):
            once = pc.invert(pc.is_in(units, value_set=instructions.set_aside))
            kept[kept], units = once.to_numpy(zero_copy_only=False), units.filter(once)
        yield rows.path, units, column_writer(rows, kept), segments_of(rows, kept, instructions.segments)


def _long_piece(instructions: Instructions, frame: pd.DataFrame, size: int) -> Iterator[Part]:
    """Return the donors of a partition, each one's rows in the order of the table."""
    if not len(frame):
        return
    *columns, row = _names(instructions.columns)
    frame = frame.sort_values([instructions.spec.unit, row])[columns]
    batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    assert instructions.calendar is not None
    yield from runs("", batch, instructions.calendar, size, instructions.segments)


def together(parts: list[PartialSum]) -> PartialSum:
    """Add up the sums of several pieces."""
    if wrong := [part for part in parts if part.problem is not None]:
        return wrong[0]
    seen = [part.identities for part in parts if part.identities is not None]
    identities = Identities(seen[0].spec, seen[0].exclude)
    for other in seen:
        identities.hashes += other.hashes
        identities.left_out += other.left_out
    total = np.sum([part.total for part in parts], axis=0, dtype=np.int64)
    return PartialSum(np.asarray(total), sum(part.n for part in parts), identities)


def complete(part: PartialSum, path: Path) -> PartialSum:
    """Check the identities on a worker, so that they are not sent further."""
    if part.identities is None:
        return part
    try:
        with in_file(path):
            part.identities.finish()
    except DpscError as problem:
        return failed(problem)
    return PartialSum(part.total, part.n, None)
