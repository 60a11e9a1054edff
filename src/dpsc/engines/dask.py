"""The Dask engine: pieces of the files are added up by workers, and their exact integers by a tree of workers.

Noise is not drawn here: the sum comes back to the custodian's process, which adds it once. A worker that dies has its
pieces done again by others; integers do not depend on who adds them, or in which order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dpsc.bounds import Array
from dpsc.engines.arrow import (
    Files,
    batches_of,
    format_name,
    long_rows,
    naming_file,
    require_units,
    written_columns,
)
from dpsc.engines.blocks import OnRows, add_up, rows_of_a_block
from dpsc.engines.checked import CheckedBlock, Completion, Identities
from dpsc.engines.rows import Write, written
from dpsc.errors import DpscError, TableError
from dpsc.exact import Integers
from dpsc.kernel import Kernel

_SPLIT_EVERY = 8
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

    def gram(self, kernel: Kernel, reference: Array | None, bits: int, on_rows: OnRows) -> tuple[Integers, int]:
        """Let the workers add up the rows."""
        job = Job(self.files, kernel, reference, bits)
        with self._client() as client:
            futures = [client.submit(piece_sum, job.plain(), piece, pure=False) for piece in job.pieces(client)]
            for future, rows in zip(futures, job.rows, strict=True):
                future.add_done_callback(lambda _, rows=rows: on_rows(rows))
            while len(futures) > 1:
                groups = (futures[i : i + _SPLIT_EVERY] for i in range(0, len(futures), _SPLIT_EVERY))
                futures = [client.submit(together, group, pure=False) for group in groups]
            whole = client.submit(complete, futures[0], self.files.path, self.files.layout.unit, pure=False).result()
        if whole.problem:
            raise TableError(whole.problem)
        self.files.require_plausible(whole.n)
        return whole.total, whole.n

    @contextmanager
    def _client(self) -> Iterator[Any]:
        from distributed import Client, LocalCluster

        if self.scheduler is not None:
            try:
                client = Client(self.scheduler, timeout=5)
            except OSError:
                raise DpscError(f"there is no Dask scheduler at {self.scheduler} (--scheduler).") from None
            with client:
                yield client
            return
        with (
            LocalCluster(
                n_workers=self.workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client


@dataclass(frozen=True, eq=False)
class Part:
    """What some of the donors add up to, and who they were; or what went wrong."""

    total: Integers
    n: int
    identities: Identities
    problem: str = ""


def failed(problem: str) -> Part:
    """Return what stands for a sum that could not be made."""
    return Part(np.zeros((0, 0), dtype=np.int64), 0, Identities((), sorted_already=True), problem)


@dataclass(frozen=True, eq=False)
class Instructions:
    """What a worker must know."""

    unit: str
    columns: list[str]  # of a wide table, in time order
    schema: Any
    file_format: Any
    labels: list[Any]  # of a long table, in time order
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
            completion=files.completion,
            exclude=files.exclude,
            wide=files.layout.wide,
            kernel=self.kernel,
            reference=self.reference,
            bits=self.bits,
        )

    def pieces(self, client: Any) -> list[Any]:
        """Divide a wide table by files and row groups; bring the rows of a long table's donors together first."""
        if self.files.layout.wide:
            pieces = list(_row_groups(self.files))
            self.rows = [rows or self._share(pieces) for _, _, rows in pieces]
            return [(path, groups) for path, groups, _ in pieces]
        partitions = _by_donor(self.files)
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


def _by_donor(files: Files) -> list[Any]:
    """Return a long table in partitions that each hold all rows of their donors."""
    import dask.dataframe as dd

    kind = format_name(files.path)
    where = str(files.path)
    if kind == "parquet":
        frame = dd.read_parquet(where, columns=files.columns)
    elif kind in ("csv", "tsv"):
        pattern = f"{where}/**/*" if files.path.is_dir() else where
        frame = dd.read_csv(pattern, usecols=files.columns, sep="\t" if kind == "tsv" else ",",
                            dtype={files.layout.unit: str})[files.columns]  # fmt: skip
    else:
        raise DpscError(f"{where}: long Feather files are read by --engine stream or memory, not by dask.")
    return list(frame.shuffle(on=files.layout.unit).to_delayed())


def piece_sum(instructions: Instructions, piece: Any) -> Part:
    """Add up one piece, on a worker; what goes wrong is told and not raised: Dask logs arguments, the donors."""
    try:
        return _piece_sum(instructions, piece)
    except Exception as problem:
        said = (
            str(problem)
            if isinstance(problem, DpscError)
            else f"a piece failed on a worker ({type(problem).__name__})."
        )
        return failed(said)


def _piece_sum(instructions: Instructions, piece: Any) -> Part:
    T = len(instructions.completion.times)
    identities = Identities(instructions.exclude, sorted_already=not instructions.wide)
    size = rows_of_a_block(T, instructions.bits)
    read = _wide_piece if instructions.wide else _long_piece
    blocks = (
        CheckedBlock(path, units, write, identities, instructions.completion)
        for path, units, write in read(instructions, piece, size)
    )
    total, n = add_up(blocks, T, instructions.kernel, instructions.reference, instructions.bits, threads=1)
    return Part(total, n, identities)


def _wide_piece(
    instructions: Instructions, piece: tuple[str, list[int] | None], size: int
) -> Iterator[tuple[str, Any, Write]]:
    from pyarrow import fs

    path, groups = piece
    make = instructions.file_format.make_fragment
    fragment = (
        make(path, fs.LocalFileSystem()) if groups is None else make(path, fs.LocalFileSystem(), row_groups=groups)
    )
    with naming_file(Path(path)):
        for batch in batches_of(
            fragment, instructions.schema, [instructions.unit, *instructions.columns], size, threads=False
        ):
            require_units(batch.column(0), path)
            yield path, batch.column(0), written_columns(batch)


def _long_piece(instructions: Instructions, frame: pd.DataFrame, size: int) -> Iterator[tuple[str, Any, Write]]:
    """Return the donors of a partition; their rows may come in any order."""
    if not len(frame):
        return
    frame = frame.sort_values(instructions.unit, kind="stable")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    units = table.column(0).combine_chunks()
    labels = frame[instructions.unit].to_numpy()
    starts = np.append(0, np.flatnonzero(labels[1:] != labels[:-1]) + 1)
    rows = long_rows(table, starts, pa.array(instructions.labels), len(instructions.labels), "a partition")
    donors = units.take(pa.array(starts))
    for i in range(0, len(rows), size):
        yield "a partition", donors.slice(i, size), written(rows[i : i + size])


def together(parts: list[Part]) -> Part:
    """Add up what several pieces came to."""
    if wrong := [part for part in parts if part.problem]:
        return wrong[0]
    first = parts[0].identities
    identities = Identities(first.exclude, sorted_already=first.sorted_already)
    for part in parts:
        identities.hashes += part.identities.hashes
        identities.left_out += part.identities.left_out
    total = np.sum([part.total for part in parts], axis=0, dtype=np.int64)
    return Part(np.asarray(total), sum(part.n for part in parts), identities)


def complete(part: Part, path: Path, unit: str) -> Part:
    """Check who was seen, on a worker: what identifies donors need not travel further."""
    if part.problem:
        return part
    try:
        part.identities.finish(path, unit)
    except DpscError as problem:
        return failed(str(problem))
    return Part(part.total, part.n, Identities((), sorted_already=True))
