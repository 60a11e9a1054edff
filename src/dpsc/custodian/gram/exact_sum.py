"""Adds up blocks of donors: rows come in, an exact sum of integers comes out, on a few threads."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dpsc.custodian.donors.blocks import BLOCK_CELLS, codes_of, in_order
from dpsc.custodian.gram.integer_rows import IntegerRows, Movements
from dpsc.errors import DpscError
from dpsc.release.kernel import Kernel
from dpsc.release.rowmap import RowMap
from dpsc.release.scale import LEAST, MOST, MOST_COUNTS
from dpsc.types import Array, Integers, Positions, Write, one_thread

OnRows = Callable[[int], None]
BlockSum = Callable[[Write], tuple[Integers, int]]


@dataclass(frozen=True, eq=False)
class Products:
    """The sum of q q' over donors, q the integer vectors of a public map; one sum for each of so many segments."""

    row_map: RowMap
    segments: int = 0

    def __post_init__(self) -> None:
        with one_thread():
            _ = self.row_map.rotation  # made here once, so that all threads and workers have the same, to the last bit

    @property
    def rows_of_a_block(self) -> int:
        """As many as fit the cache and keep every partial sum below 2^53, so exact."""
        return max(1, min(BLOCK_CELLS // self.row_map.T, 1 << max(53 - 2 * self.row_map.grid_bits, 0)))

    @property
    def zero(self) -> Integers:
        """Nothing yet."""
        shape = (self.row_map.size, self.row_map.size)
        return np.zeros((self.segments, *shape) if self.segments else shape, dtype=np.int64)

    def for_blocks(self) -> BlockSum:
        """Return what turns a block into its sum and its number of rows; each thread has its own, with its memory."""
        to_integers = IntegerRows(self.row_map, self.rows_of_a_block)

        def part(block: Write) -> tuple[Integers, int]:
            q = to_integers(block)
            if self.segments:
                return sums_by(codes_of(block), q, self.segments), q.shape[1]
            return block_sum(q), q.shape[1]

        return part


def sums_by(codes: Positions, q: Array, segments: int) -> Integers:
    """Return the sum over the vectors of each segment; every vector is in exactly one."""
    if len(codes) != q.shape[1] or not ((codes >= 0) & (codes < segments)).all():
        raise DpscError("donors were not divided once each; nothing was released. Please report this error in dpsc.")
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(segments + 1))
    q = q[:, order]
    return np.array([block_sum(q[:, one:end]) for one, end in itertools.pairwise(ends)])


def block_sum(q: Array) -> Integers:
    """Multiply a block of integer vectors in float64, where every partial sum is a whole number below 2^53."""
    return np.asarray(np.matmul(q, q.T).astype(np.int64))


def add_up(
    blocks: Iterable[Write],
    summand: Summand,
    on_rows: OnRows = lambda rows: None,
    threads: int | None = None,
    enough: float = math.inf,
) -> tuple[Integers, int]:
    """Add up blocks of rows on a few threads; only a few blocks are in memory.

    A block is written on the thread that adds it up, into memory that is used again. The result is the same to the last
    bit for any division into blocks, order of rows and number of threads. If there are more rows than ``enough``, it is
    the sum over exactly the first ones: where a block ends may depend on a donor, and which donors are added up must
    not.
    """
    own = threading.local()

    def part(block: Write) -> tuple[Integers, int]:
        if not hasattr(own, "sum_of"):
            own.sum_of = summand.for_blocks()
        product, rows = own.sum_of(block)
        return product, rows

    total, n = summand.zero, 0
    with one_thread(), closing(in_order(part, blocks, threads)) as parts:
        for block, (product, rows) in parts:
            if n + rows > enough:
                product, rows = part(_first_rows(block, int(enough) - n))
            total += product
            n += rows
            on_rows(rows)
            if n >= enough:
                break
    return total, n


def _first_rows(block: Write, rows: int) -> Write:
    """Return a block without its last rows."""
    return lambda memory: block(memory)[:, :rows]


@dataclass(frozen=True, eq=False)
class Counts:
    """The numbers of donors whose movement is between two powers of two."""

    T: int
    kernel: Kernel
    reference: Array | None

    @property
    def rows_of_a_block(self) -> int:
        """As many as fit the cache."""
        return max(1, BLOCK_CELLS // self.T)

    @property
    def zero(self) -> Integers:
        """Nobody yet."""
        return np.zeros(MOST_COUNTS, dtype=np.int64)

    def for_blocks(self) -> BlockSum:
        """Return what counts the donors of blocks. A donor that is not finite counts as one that does not move."""
        movements = Movements(self.T, self.rows_of_a_block, self.kernel, self.reference)

        def part(block: Write) -> tuple[Integers, int]:
            _, squares = movements(block)
            squares[np.isnan(squares)] = 0.0
            powers = np.where(np.isinf(squares), MOST, np.floor_divide(np.frexp(squares)[1] - 1, 2))
            powers = np.where(squares == 0, LEAST, powers)
            return np.bincount(np.clip(powers, LEAST, MOST) - LEAST, minlength=MOST_COUNTS), len(squares)

        return part


@dataclass(frozen=True)
class Presence:
    """How many donors have a number in each of so many periods: added up as the donors themselves are. Private."""

    T: int

    @property
    def rows_of_a_block(self) -> int:
        """As many as fit the cache."""
        return max(1, BLOCK_CELLS // self.T)

    @property
    def zero(self) -> Integers:
        """Nobody yet."""
        return np.zeros(self.T, dtype=np.int64)

    def for_blocks(self) -> BlockSum:
        """Return what counts the cells of a block that are there."""
        memory = np.empty((self.T, self.rows_of_a_block))

        def part(block: Write) -> tuple[Integers, int]:
            columns = block(memory)
            return np.isfinite(columns).sum(axis=1), columns.shape[1]

        return part


Summand: TypeAlias = Products | Counts | Presence
"""Integers that add up over donors. What a block adds does not depend on the other blocks."""
