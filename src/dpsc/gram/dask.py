"""The Dask engine: pieces of the files are added up by workers, and their exact integers by a tree of workers.

Noise is not drawn here: the sum comes back to the custodian's process, which adds it once. A worker that dies has its
pieces done again by others; integers do not depend on who adds them, or in which order.
"""

from __future__ import annotations

import signal
import threading
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dpsc.data.arrow import Files
from dpsc.data.blocks import CheckedBlock, Completion, Identities
from dpsc.data.cells import floats, known_units, long_rows, starts_of, written_columns
from dpsc.data.formats import batches_of, format_name, naming_file
from dpsc.errors import DpscError, TableError
from dpsc.gram.kernel import Kernel
from dpsc.gram.rows import written
from dpsc.gram.summing import OnRows, add_up, rows_of_a_block
from dpsc.tabular import naming
from dpsc.types import Array, Integers, Write

_SPLIT_EVERY = 8
_KINDS = ("object", "object", "float64")  # of a long table's unit, time and outcome, on their way between workers
Piece = tuple[str, list[int] | None]  # a file, and which of its row groups
_PIECE_CELLS = 5 * 1_100_000  # small enough that workers end together


@dataclass(frozen=True)
class DaskDonors:
    """Donors in files that every worker can read.

    Attributes
    ----------
    files : Files
    scheduler : str, optional
        The address of an existing scheduler, such as ``tcp://10.0.0.1:8786``; without it a local cluster is started.
    workers : int, optional
        Of the local cluster; as many as there are cores by default.
    """

    files: Files
    scheduler: str | None = None
    workers: int | None = None

    @property
    def times(self) -> pd.Index[Any]:
        """The periods, in order."""
        return self.files.times

    @property
    def outcome(self) -> str:
        """What the numbers are called."""
        return self.files.outcome

    def add_up(self, kernel: Kernel, reference: Array | None, bits: int, on_rows: OnRows) -> tuple[Integers, int]:
        """Let the workers add up the rows."""
        job = Job(self.files, kernel, reference, bits)
        with self._client() as client:
            try:
                whole = self._on(client, job, on_rows)
            except (Exception, CancelledError) as problem:
                with naming(self.files.path):
                    raise TableError(_said(problem)) from None
        if whole.problem:
            raise TableError(whole.problem)
        self.files.require_plausible(whole.n)
        return whole.total, whole.n

    def _on(self, client: Any, job: Job, on_rows: OnRows) -> PartialSum:
        """Let a cluster add up the pieces, and what they came to by a tree."""
        futures = [client.submit(piece_sum, job.plain(), piece, pure=False) for piece in job.pieces(client)]
        if not futures:
            return failed(f"{self.files.path} has no rows.")
        for future, rows in zip(futures, job.rows, strict=True):
            future.add_done_callback(lambda done, rows=rows: on_rows(rows) if done.status == "finished" else None)
        while len(futures) > 1:
            groups = (futures[i : i + _SPLIT_EVERY] for i in range(0, len(futures), _SPLIT_EVERY))
            futures = [client.submit(together, group, pure=False) for group in groups]
        last: PartialSum = client.submit(
            complete, futures[0], self.files.path, self.files.layout.unit, pure=False
        ).result()
        return last

    @contextmanager
    def _client(self) -> Iterator[Any]:
        from distributed import Client, LocalCluster

        if self.scheduler is not None:
            try:
                client = Client(self.scheduler, timeout=5)
            except (OSError, ValueError):
                raise DpscError(f"there is no Dask scheduler at {self.scheduler} (--scheduler).") from None
            with client:
                if not client.scheduler_info()["workers"]:
                    raise DpscError(f"the scheduler at {self.scheduler} has no workers; start some with dask worker.")
                yield client
            return
        with _workers_ignore_interrupts():
            cluster = LocalCluster(
                n_workers=self.workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
            )
        with cluster, Client(cluster) as client:
            yield client


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


@dataclass(frozen=True, eq=False)
class PartialSum:
    """What some of the donors add up to, and who they were; or what went wrong."""

    total: Integers
    n: int
    identities: Identities
    problem: str = ""


def failed(problem: str) -> PartialSum:
    """Return what stands for a sum that could not be made."""
    return PartialSum(np.zeros((0, 0), dtype=np.int64), 0, Identities((), sorted_already=True), problem)


@dataclass(frozen=True, eq=False)
class Instructions:
    """What a worker must know."""

    unit: str
    columns: list[str]  # of a wide table, in time order
    schema: Any
    file_format: Any
    labels: list[Any]  # the periods, in time order
    label_type: Any
    completion: Completion
    exclude: tuple[str, ...]
    wide: bool
    kernel: Kernel
    reference: Array | None
    bits: int


class Job:
    """The pieces of a release, and how many donors each has."""

    def __init__(self, files: Files, kernel: Kernel, reference: Array | None, bits: int) -> None:
        self.files, self.kernel, self.reference, self.bits = files, kernel, reference, bits
        self.rows: list[int] = []

    def plain(self) -> Instructions:
        """Return what a worker must know."""
        files = self.files
        return Instructions(
            unit=files.layout.unit,
            columns=files.in_time_order() if files.layout.wide else files.columns,
            schema=files.dataset.schema,
            file_format=files.dataset.format,
            labels=files.labels_in_time_order(),
            label_type=files.label_type,
            completion=files.completion,
            exclude=files.exclude,
            wide=files.layout.wide,
            kernel=self.kernel,
            reference=self.reference,
            bits=self.bits,
        )

    def pieces(self, client: Any) -> list[Any]:
        """Divide a wide table by files and row groups; bring the rows of a long table's donors together first."""
        pieces = list(_row_groups(self.files))
        where = [(path, groups) for path, groups, _ in pieces]
        if self.files.layout.wide:
            self.rows = [rows or self._share(pieces) for _, _, rows in pieces]
            return where
        partitions = _by_donor(self.plain(), where) if where else []
        self.rows = [self._share(partitions)] * len(partitions)
        return list(client.compute(partitions))

    def _share(self, pieces: list[Any]) -> int:
        """Guess how many donors a piece has that does not say so."""
        return (self.files.rows_expected() or 0) // max(1, len(pieces))


def _row_groups(files: Files) -> Iterator[tuple[str, list[int] | None, int]]:
    """Yield pieces of about equal size: files, or for Parquet runs of row groups."""
    most = max(1, _PIECE_CELLS // max(1, len(files.columns)))
    for fragment in files.fragments():
        if format_name(files.path) != "parquet":
            yield fragment.path, None, 0
            continue
        with naming_file(files.path if files.path.is_file() else Path(fragment.path)):
            groups = fragment.row_groups
        run: list[int] = []
        rows = 0
        for group in groups:
            if run and rows + group.num_rows > most:
                yield fragment.path, run, rows
                run, rows = [], 0
            run.append(group.id)
            rows += group.num_rows
        if run:
            yield fragment.path, run, rows


def _by_donor(instructions: Instructions, pieces: list[Any]) -> list[Any]:
    """Return a long table in partitions that each hold all rows of their donors."""
    import dask.dataframe as dd

    frame = dd.from_map(partial(long_frame, instructions), pieces, meta=_no_rows(instructions.columns))
    return list(frame.shuffle(on=instructions.unit).to_delayed())


def _as_frame(batch: Any, path: str, columns: list[str]) -> pd.DataFrame:
    unit, time, outcome = columns
    units, periods = known_units(batch.column(0), path), batch.column(1)
    return pd.DataFrame(
        {
            unit: units.cast(pa.string()).to_pandas().astype(object),
            time: periods.cast(pa.string()).to_pandas().astype(object),
            outcome: floats(batch.column(2)),
        }
    )


def _no_rows(columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in zip(columns, _KINDS, strict=True)})


def long_frame(instructions: Instructions, piece: Any) -> pd.DataFrame:
    """Read a piece of a long table on a worker: units and periods as text, numbers as they are."""
    try:
        batches = _batches(instructions, piece, instructions.columns, _PIECE_CELLS)
        parts = [_as_frame(batch, path, instructions.columns) for path, batch in batches]
    except Exception as problem:
        raise TableError(_said(problem)) from None  # without what it was working on, which Dask would log
    return pd.concat(parts, ignore_index=True) if parts else _no_rows(instructions.columns)


def piece_sum(instructions: Instructions, piece: Any) -> PartialSum:
    """Add up one piece, on a worker; what goes wrong is told and not raised: Dask logs arguments, the donors."""
    try:
        return _piece_sum(instructions, piece)
    except Exception as problem:
        return failed(_said(problem))


def _said(problem: BaseException | None) -> str:
    """Return what may be told of a problem: our own words, or its kind; others quote what they were working on."""
    kind = type(problem).__name__
    while problem is not None:
        if isinstance(problem, DpscError):
            return str(problem)
        problem = problem.__cause__
    return f"a piece failed on a worker ({kind})."


def _piece_sum(instructions: Instructions, piece: Any) -> PartialSum:
    T = len(instructions.completion.times)
    identities = Identities(instructions.exclude, sorted_already=not instructions.wide)
    size = rows_of_a_block(T, instructions.bits)
    read = _wide_piece if instructions.wide else _long_piece
    blocks = (
        CheckedBlock(path, units, write, identities, instructions.completion)
        for path, units, write in read(instructions, piece, size)
    )
    total, n = add_up(blocks, T, instructions.kernel, instructions.reference, instructions.bits, threads=1)
    return PartialSum(total, n, identities)


def _batches(instructions: Instructions, piece: Piece, columns: list[str], size: int) -> Iterator[tuple[str, Any]]:
    from pyarrow import fs

    path, groups = piece
    make = instructions.file_format.make_fragment
    fragment = (
        make(path, fs.LocalFileSystem()) if groups is None else make(path, fs.LocalFileSystem(), row_groups=groups)
    )
    with naming_file(Path(path)):
        for batch in batches_of(fragment, instructions.schema, columns, size, threads=False):
            yield path, batch


def _wide_piece(instructions: Instructions, piece: Piece, size: int) -> Iterator[tuple[str, Any, Write]]:
    for path, batch in _batches(instructions, piece, [instructions.unit, *instructions.columns], size):
        yield path, known_units(batch.column(0), path), written_columns(batch)


def _long_piece(instructions: Instructions, frame: pd.DataFrame, size: int) -> Iterator[tuple[str, Any, Write]]:
    """Return the donors of a partition; their rows may come in any order."""
    if not len(frame):
        return
    frame = frame.sort_values(instructions.unit, kind="stable")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    units = known_units(table.column(0).combine_chunks(), "a partition")
    starts = starts_of(units)
    labels = pa.array(instructions.labels, instructions.label_type).cast(pa.string())
    rows = long_rows(table, starts, labels, len(labels), "a partition")
    donors = units.take(pa.array(starts))
    for i in range(0, len(rows), size):
        yield "a partition", donors.slice(i, size), written(rows[i : i + size])


def together(parts: list[PartialSum]) -> PartialSum:
    """Add up what several pieces came to."""
    if wrong := [part for part in parts if part.problem]:
        return wrong[0]
    first = parts[0].identities
    identities = Identities(first.exclude, sorted_already=first.sorted_already)
    for part in parts:
        identities.hashes += part.identities.hashes
        identities.left_out += part.identities.left_out
    total = np.sum([part.total for part in parts], axis=0, dtype=np.int64)
    return PartialSum(np.asarray(total), sum(part.n for part in parts), identities)


def complete(part: PartialSum, path: Path, unit: str) -> PartialSum:
    """Check who was seen, on a worker: what identifies donors need not travel further."""
    if part.problem:
        return part
    try:
        part.identities.finish(path, unit)
    except DpscError as problem:
        return failed(str(problem))
    return PartialSum(part.total, part.n, Identities((), sorted_already=True))
