"""Adds up blocks of donors: rows come in, an exact sum of integers comes out, on a few threads."""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpsc.blas import one_thread
from dpsc.data.writing import BLOCK_CELLS
from dpsc.gram.mapping import RowMap
from dpsc.gram.rows import IntegerRows
from dpsc.types import Array, Integers, Write

_AHEAD = 4  # blocks that are read ahead, so that neither reading nor adding up has to wait
OnRows = Callable[[int], None]
BlockSum = Callable[[Write], tuple[Integers, int]]


class Summand(Protocol):
    """Integers that add up over donors. What a block adds does not depend on the other blocks."""

    @property
    def rows_of_a_block(self) -> int:
        """The most rows of a block."""
        ...

    @property
    def zero(self) -> Integers:
        """The sum over nobody."""
        ...

    def for_blocks(self) -> BlockSum:
        """Return what turns a block into its sum and its number of rows; each thread has its own, with its memory."""
        ...


@dataclass(frozen=True, eq=False)
class Products:
    """The sum of q q' over donors, q the integer vectors of a public map."""

    row_map: RowMap

    @property
    def rows_of_a_block(self) -> int:
        """As many as fit the cache and keep every partial sum below 2^53, so exact."""
        return max(1, min(BLOCK_CELLS // self.row_map.T, 1 << max(53 - 2 * self.row_map.grid_bits, 0)))

    @property
    def zero(self) -> Integers:
        """Nothing yet."""
        return np.zeros((self.row_map.size, self.row_map.size), dtype=np.int64)

    def for_blocks(self) -> BlockSum:
        """Return what multiplies blocks."""
        to_integers = IntegerRows(self.row_map, self.rows_of_a_block)

        def part(block: Write) -> tuple[Integers, int]:
            q = to_integers(block)
            return block_sum(q), q.shape[1]

        return part


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
    """Add up blocks of rows on a few threads, until there are enough rows; only a few blocks are in memory.

    A block is written on the thread that adds it up, into memory that is used again. The result is the same to the last
    bit for any division into blocks, order of rows and number of threads.
    """
    workers = threads or len(os.sched_getaffinity(0))
    own = threading.local()

    def part(block: Write) -> tuple[Integers, int]:
        if not hasattr(own, "sum_of"):
            own.sum_of = summand.for_blocks()
        product, rows = own.sum_of(block)
        return product, rows

    total, n = summand.zero, 0
    if workers == 1:  # on this thread: a worker of a cluster has one core
        with one_thread():
            for product, rows in map(part, blocks):
                total += product
                n += rows
                on_rows(rows)
                if n >= enough:
                    break
        return total, n
    with one_thread(), ThreadPoolExecutor(workers) as pool:
        pending: deque[Future[tuple[Integers, int]]] = deque()
        for block in blocks:
            pending.append(pool.submit(part, block))
            if len(pending) > 2 * workers + _AHEAD:
                n += _collect(pending, total, on_rows)
            if n >= enough:
                break
        while pending:
            n += _collect(pending, total, on_rows)
    return total, n


def _collect(pending: deque[Future[tuple[Integers, int]]], total: Integers, on_rows: OnRows) -> int:
    part, rows = pending.popleft().result()
    total += part
    on_rows(rows)
    return rows
