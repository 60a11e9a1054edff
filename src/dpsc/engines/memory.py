"""The in-memory engine: donors are an array, blocks of it are worked on by a few threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dpsc.blas import one_thread
from dpsc.bounds import Array
from dpsc.engines.rows import IntegerRows
from dpsc.exact import Integers
from dpsc.kernel import Kernel

BLOCK_CELLS = 1_100_000  # large enough for threads to work apart, small enough to stay near the cache


def gram(
    donors: Array,
    kernel: Kernel,
    reference: Array | None,
    bits: int,
    *,
    block: int | None = None,
    threads: int | None = None,
) -> Integers:
    """Return the exact T × T sum over donors of q q', q the integer vectors of :class:`IntegerRows`.

    A block is multiplied in float64, where every partial sum is a whole number below 2^53 and so exact; blocks are
    added in int64. The result is the same to the last bit for any block size, order of rows and number of threads.
    """
    n, T = donors.shape
    block = max(1, min(block or BLOCK_CELLS // T, n, 2**53 // 4**bits))
    starts = range(0, n, block)
    workers = min(len(starts), threads or len(os.sched_getaffinity(0)))

    def part(worker: int) -> Integers:
        to_integers = IntegerRows(T, block, kernel, reference, bits)
        total, product = np.zeros((T, T), dtype=np.int64), np.empty((T, T))
        for start in starts[worker::workers]:
            q = to_integers(donors[start : start + block])
            total += np.matmul(q, q.T, out=product).astype(np.int64)
        return total

    with one_thread(), ThreadPoolExecutor(workers) as pool:
        return np.asarray(np.sum(list(pool.map(part, range(workers))), axis=0, dtype=np.int64))
