"""Rows in any order, divided by whose they are, more than fit into memory if need be. Everything in it is private.

A row is a few whole numbers, the first of which is a hash of whose it is. All rows of one are in one part, in the order
in which they came; each part is then used by itself.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from typing import IO

import numpy as np

from dpsc.errors import DpscError, Parameter
from dpsc.files import private_file
from dpsc.types import Integers

_WORD = 8  # bytes of a number
_OF_A_PART = 2**19  # rows, about: few enough to be sorted quickly
_MOST_PARTS = 2**10


class Divided:
    """Rows in parts: blocks of them in memory or in a private file, each sorted by part.

    Parameters
    ----------
    columns : int
        The numbers of a row.
    expected : int, optional
        How many rows there are, about.
    in_memory : bool
        Whether they are held; otherwise they are in a file without a name, which ends with this process.
    """

    at_once = 2**20  # rows that are divided together

    def __init__(self, columns: int, expected: int | None, *, in_memory: bool) -> None:
        about = _MOST_PARTS if expected is None else min(max(expected // _OF_A_PART, 2), _MOST_PARTS)
        self._bits = (about - 1).bit_length()
        self.parts, self._columns = 2**self._bits, columns
        self._file: IO[bytes] | None = None
        if not in_memory:
            self._file = private_file()
            weakref.finalize(self, self._file.close)
        self._waiting: list[Integers] = []
        self._blocks: list[Integers] = []  # without a file
        self._ends: list[Integers] = []  # of the parts of each block
        self._written = 0

    def put(self, rows: Integers) -> None:
        """Add rows: the hash of whose each is, and the rest."""
        self._waiting.append(rows)
        if sum(map(len, self._waiting)) >= self.at_once:
            self.finish()

    def finish(self) -> None:
        """Divide the rows that are waiting."""
        rows = np.concatenate([np.empty((0, self._columns), dtype=np.int64), *self._waiting])
        self._waiting.clear()
        part = (rows[:, 0].view(np.uint64) >> np.uint64(64 - self._bits)).astype(np.uint16)
        block = np.take(rows, np.argsort(part, kind="stable"), axis=0)
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
                    f"the rows cannot be written to the temporary folder: {problem.strerror}. Set TMPDIR to a "
                    f"folder with more room, {self._columns * _WORD} bytes for each row, or use "
                    f"{Parameter('engine', 'memory')}."
                ) from None
            self._ends.append(self._written + ends)
            self._written += len(block)

    def part(self, part: int) -> Iterator[Integers]:
        """Yield the rows of a part, block by block."""
        for block, ends in enumerate(self._ends):
            before = self._ends[block - 1][-1] if block and self._file is not None else 0
            first, end = int(ends[part - 1] if part else before), int(ends[part])
            if self._file is None:
                yield self._blocks[block][first:end]
            else:
                width = self._columns * _WORD
                read = os.pread(self._file.fileno(), (end - first) * width, first * width)
                yield np.frombuffer(read, np.int64).reshape(-1, self._columns)
