"""One block of donors becomes integer vectors of length at most 2^bits, each row by itself."""

from __future__ import annotations

import numpy as np

from dpsc.bounds import Array
from dpsc.kernel import Kernel

_TINY, _HUGE = 1e-200, 1e200


class IntegerRows:
    """Turns blocks of donors into integer vectors, reusing its memory from block to block.

    Parameters
    ----------
    T, block : int
        The number of periods and the most rows of a block.
    kernel : Kernel
    reference : array of length T, optional
    bits : int
        Vectors have length at most 2^bits.
    """

    def __init__(self, T: int, block: int, kernel: Kernel, reference: Array | None, bits: int) -> None:
        self.kernel, self.reference, self.bits = kernel, reference, bits
        self._memory, self._scratch = np.empty(T * block), np.empty(T * block)

    def __call__(self, rows: Array) -> Array:
        """Return a T × rows array of whole float64 numbers, one column a donor, sums of squares at most 4^bits.

        Each row: subtract the public reference path, whiten with the public kernel, scale to length 1, multiply by
        2^bits and truncate toward zero. Truncation makes no vector longer; what rounding before it may add is checked
        in whole numbers and taken off. A row that has no direction (all zero after the reference, or not finite)
        becomes the first unit vector, a public choice. It is a function of the row alone, the same to the last bit in
        any block: every operation is on single cells, and sums over time run in the order of time.
        """
        bits = self.bits
        columns = self._memory[: rows.size].reshape(rows.shape[::-1])
        np.copyto(columns, rows.T)
        with np.errstate(all="ignore"):
            if self.reference is not None:
                columns -= self.reference[:, np.newaxis]
            self.kernel.whiten_in_place(columns, self._scratch[: rows.size].reshape(columns.shape))
            squares = _sum_of_squares(columns)
            extreme = np.flatnonzero(~((squares > _TINY) & (squares < _HUGE)))
            if extreme.size:
                columns[:, extreme] = self._with_care(rows[extreme])
                squares[extreme] = _sum_of_squares(columns[:, extreme])
            columns *= 2.0**bits / np.sqrt(squares)
            np.trunc(columns, out=columns)
            lengths = _sum_of_squares(columns)
        lost = np.flatnonzero(~(lengths > 0))
        columns[:, lost] = 0.0
        columns[0, lost] = 2.0**bits
        long = np.flatnonzero(lengths > 4.0**bits)
        columns[:, long] = np.trunc(columns[:, long] * (1 - 2.0**-20))
        return columns

    def _with_care(self, rows: Array) -> Array:
        """Whiten rows whose squares leave floating point: first scale their largest entry to 1."""
        centred = rows.T - (0.0 if self.reference is None else self.reference[:, np.newaxis])
        columns = np.ascontiguousarray(centred / np.abs(centred).max(axis=0))
        self.kernel.whiten_in_place(columns)
        return columns


def _sum_of_squares(columns: Array) -> Array:
    """Add up squares over time, in the order of time for every column (whole numbers are exact in any order)."""
    return np.asarray(np.einsum("tj,tj->j", columns, columns))
