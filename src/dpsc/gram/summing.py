"""Adds up blocks of donors: rows come in, the exact integer sum of their products comes out, on a few threads."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from dpsc.blas import one_thread
from dpsc.data.writing import BLOCK_CELLS
from dpsc.gram.kernel import Kernel
from dpsc.gram.rows import IntegerRows
from dpsc.types import Array, Integers, Write

_AHEAD = 4  # blocks that are read ahead, so that neither reading nor adding up has to wait
OnRows = Callable[[int], None]


def rows_of_a_block(T: int, bits: int) -> int:
    """Return how many rows a block may have, to fit the cache and keep every partial sum below 2^53, so exact."""
    return max(1, min(BLOCK_CELLS // T, 1 << max(53 - 2 * bits, 0)))


def block_sum(q: Array) -> Integers:
    """Multiply a block of integer vectors in float64, where every partial sum is a whole number below 2^53."""
    return np.asarray(np.matmul(q, q.T).astype(np.int64))


def add_up(
    blocks: Iterable[Write],
    T: int,
    kernel: Kernel,
    reference: Array | None,
    bits: int,
    on_rows: OnRows = lambda rows: None,
    threads: int | None = None,
) -> tuple[Integers, int]:
    """Add up blocks of rows, at most :func:`rows_of_a_block` each, on a few threads; only a few blocks are in memory.

    A block is written on the thread that adds it up, into memory that is used again. The result is the same to the last
    bit for any division into blocks, order of rows and number of threads.
    """
    workers = threads or len(os.sched_getaffinity(0))
    own = threading.local()

    def part(block: Write) -> tuple[Integers, int]:
        if not hasattr(own, "to_integers"):
            own.to_integers = IntegerRows(T, rows_of_a_block(T, bits), kernel, reference, bits)
        q = own.to_integers(block)
        return block_sum(q), q.shape[1]

    total, n = np.zeros((T, T), dtype=np.int64), 0
    if workers == 1:  # on this thread: a worker of a cluster has one core
        with one_thread():
            for product, rows in map(part, blocks):
                total += product
                n += rows
                on_rows(rows)
        return total, n
    with one_thread(), ThreadPoolExecutor(workers) as pool:
        pending: deque[Future[tuple[Integers, int]]] = deque()
        for block in blocks:
            pending.append(pool.submit(part, block))
            if len(pending) > 2 * workers + _AHEAD:
                n += _collect(pending, total, on_rows)
        while pending:
            n += _collect(pending, total, on_rows)
    return total, n


def _collect(pending: deque[Future[tuple[Integers, int]]], total: Integers, on_rows: OnRows) -> int:
    part, rows = pending.popleft().result()
    total += part
    on_rows(rows)
    return rows
