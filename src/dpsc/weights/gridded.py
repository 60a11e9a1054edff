"""Donors truncated to the grid of exact arithmetic, in half the memory, multiplied in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpsc.data.writing import row_blocks
from dpsc.privacy import exact
from dpsc.privacy.exact import require_no_overflow
from dpsc.types import Array


class GriddedRows:
    """X on the grid, n × T0, with ``X @ v`` and ``X.T @ f`` in float64.

    Entries are multiples of 2^-20 of size at most 1, which float32 holds exactly (24 bits), so that no digit is lost.
    """

    def __init__(self, blocks: Iterable[Array], shape: tuple[int, int]) -> None:
        self.shape = shape
        self._rows = np.empty(shape, dtype=np.float32)
        start = 0
        for rows in blocks:
            self._rows[start : start + len(rows)] = np.ldexp(exact.truncate(rows).astype(np.float64), -exact.ENTRY_BITS)
            start += len(rows)

    def __matmul__(self, v: Array) -> Array:
        return np.concatenate([rows.astype(np.float64) @ v for rows in row_blocks(self._rows)])

    @classmethod
    def of(cls, X: Array) -> GriddedRows:
        """Put an array on the grid."""
        return cls(row_blocks(X), X.shape)

    @property
    def T(self) -> _Transposed:
        """The transposed matrix, for products."""
        return _Transposed(self)

    def second_moments(self) -> Array:
        """Return X'X, added up exactly in integers and rounded once."""
        require_no_overflow(self.shape[0] * 4**exact.ENTRY_BITS, "the sum over donors")
        total = np.zeros((self.shape[1], self.shape[1]), dtype=np.int64)
        for rows in row_blocks(self._rows):
            total += exact.second_moments(np.ldexp(rows.astype(np.float64), exact.ENTRY_BITS))
        return np.ldexp(total.astype(np.float64), -2 * exact.ENTRY_BITS)


class _Transposed:
    def __init__(self, rows: GriddedRows) -> None:
        self._rows = rows

    def __matmul__(self, f: Array) -> Array:
        total = np.zeros(self._rows.shape[1])
        start = 0
        for rows in row_blocks(self._rows._rows):
            total += rows.T.astype(np.float64) @ f[start : start + len(rows)]
            start += len(rows)
        return total
