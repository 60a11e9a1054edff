"""Adds up people whose records are in any order, more than fit into memory if need be. Knows nothing about noise.

Records are divided by the hash of their person into parts, in memory or in a file that only this user may read. All
records of a person are in one part; each part is then added up by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack, closing
from typing import IO

import numpy as np

from dpsc.custodian.donors.blocks import in_order
from dpsc.custodian.donors.people import OnRows, PersonCells, TableSum
from dpsc.custodian.donors.records import Records
from dpsc.errors import DpscError, Parameter
from dpsc.files import private_folder
from dpsc.types import Integers

_PREFIX = "dpsc-people-"
_OF_A_PART = 2**19  # records, about: few enough to be sorted quickly
_MOST_PARTS = 2**10
_AT_ONCE = 2**20  # records that are divided together
WIDTH = 3 * 8  # bytes of a record: the hash of the person, the cell, the amount


def add_up(
    records: Iterable[Records],
    summand: TableSum,
    on_rows: OnRows = lambda rows: None,
    *,
    expected: int | None = None,
    in_memory: bool = True,
    threads: int | None = None,
) -> Integers:
    """Return the exact sum over all people.

    Parameters
    ----------
    records : iterable of Records
        In any order: each becomes an integer before it is added.
    summand : TableSum
    on_rows : callable
        Is told how many records were read.
    expected : int, optional
        How many records there are, about.
    in_memory : bool
        Whether the records are held; otherwise they are kept in a private file meanwhile.
    threads : int, optional
    """
    with ExitStack() as stack:
        file = None
        if not in_memory:
            file = stack.enter_context((stack.enter_context(private_folder(_PREFIX)) / "records").open("w+b"))
        divided = _Divided(expected, file)
        for some in records:
            amounts, kept = summand.amounts(some.values)
            rows = np.column_stack([some.keys.view(np.int64), some.cells, amounts])
            divided.put(rows if kept.all() else rows[kept])
            on_rows(len(kept))
        divided.finish()
        sums = stack.enter_context(
            closing(in_order(lambda part: summand.of(divided.people(part)), range(divided.parts), threads))
        )
        _, total = next(sums)
        for _, of_part in sums:
            total = total + of_part
        return total


class _Divided:
    """Records in parts: blocks of them in memory or in a file, each sorted by part."""

    def __init__(self, expected: int | None, file: IO[bytes] | None) -> None:
        about = _MOST_PARTS if expected is None else min(max(expected // _OF_A_PART, 2), _MOST_PARTS)
        self._bits = (about - 1).bit_length()
        self.parts, self._file = 2**self._bits, file
        self._waiting: list[Integers] = []
        self._blocks: list[Integers] = []  # without a file
        self._ends: list[Integers] = []  # of the parts of each block
        self._written = 0

    def put(self, records: Integers) -> None:
        """Add records: the hash of the person, the cell, the amount."""
        self._waiting.append(records)
        if sum(map(len, self._waiting)) >= _AT_ONCE:
            self.finish()

    def finish(self) -> None:
        """Divide the records that are waiting."""
        records = np.concatenate([np.empty((0, 3), dtype=np.int64), *self._waiting])
        self._waiting.clear()
        part = (records[:, 0].view(np.uint64) >> np.uint64(64 - self._bits)).astype(np.uint16)
        block = np.take(records, np.argsort(part, kind="stable"), axis=0)
        ends = np.cumsum(np.bincount(part, minlength=self.parts))
        if self._file is None:
            self._blocks.append(block)
            self._ends.append(ends)
        else:
            try:
                self._file.write(block.data)
                self._file.flush()
            except OSError as problem:
                raise DpscError(
                    f"the records cannot be kept in the temporary folder meanwhile: {problem.strerror}. Set TMPDIR to "
                    f"a folder with more room, {WIDTH} bytes for each record, or use {Parameter('engine', 'memory')}."
                ) from None
            self._ends.append(self._written + ends)
            self._written += len(block)

    def people(self, part: int) -> PersonCells:
        """Return the people of a part; one of them may have very many records."""
        waiting, rows = [self._read(0, part)], 0
        for block in range(1, len(self._ends)):
            waiting.append(self._read(block, part))
            rows += len(waiting[-1])
            if rows > _AT_ONCE:
                some = _people(waiting)
                waiting = [np.column_stack([some.keys.view(np.int64)[some.person], some.cells, some.sums])]
                rows = 0
        return _people(waiting)

    def _read(self, block: int, part: int) -> Integers:
        ends = self._ends[block]
        before = self._ends[block - 1][-1] if block and self._file is not None else 0
        first, end = int(ends[part - 1] if part else before), int(ends[part])
        if self._file is None:
            return self._blocks[block][first:end]
        read = os.pread(self._file.fileno(), (end - first) * WIDTH, first * WIDTH)
        return np.frombuffer(read, np.int64).reshape(-1, 3)


def _people(records: list[Integers]) -> PersonCells:
    keys, cells, amounts = np.concatenate(records).T
    return PersonCells.of(np.ascontiguousarray(keys).view(np.uint64), cells, amounts)
