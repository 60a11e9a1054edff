"""Donors in blocks of rows, and functions that write a block into the memory where it is added up."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpsc.types import Array, Write

BLOCK_CELLS = 1_000_000  # of a block: large enough for threads to work independently, small enough for the cache
_TILE = 256  # rows transposed together, so that their cache lines are used again


def row_writer(rows: Array) -> Write:
    """Return a function that writes donors which are the rows of an array."""

    def write(memory: Array) -> Array:
        columns = memory[:, : len(rows)]
        for start in range(0, len(rows), _TILE):
            np.copyto(columns[:, start : start + _TILE], rows[start : start + _TILE].T)
        return columns

    return write


def row_blocks(values: Array) -> Iterator[Array]:
    """Yield an array in blocks of rows, so that computing with each needs little memory."""
    size = max(1, BLOCK_CELLS // max(1, values.shape[1]))
    for start in range(0, len(values), size):
        yield values[start : start + size]
