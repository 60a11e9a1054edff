"""Turns a block of donors into integer vectors of length at most 2^bits, each row by itself."""

from __future__ import annotations

from threading import Lock

import numpy as np

from dpsc.gram.kernel import Kernel
from dpsc.types import Array, Write

_TINY, _HUGE = 1e-200, 1e200
_ONE_AT_A_TIME = Lock()  # many short calls on several threads would only wait for each other


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
        self._memory, self._scratch = np.empty((T, block)), np.empty((2, block))

    def __call__(self, write: Write) -> Array:
        """Return a T × rows array of whole float64 numbers, one column per donor, sums of squares at most 4^bits.

        Each donor: subtract the public reference path, whiten with the public kernel, scale to length 1, multiply by
        2^bits and truncate toward zero. Truncation makes no vector longer; what rounding before it may add is checked
        in whole numbers and removed. A donor that has no direction (all zero after the reference, or not finite)
        becomes the first unit vector, a public choice. It is a function of the donor alone, the same to the last bit
        in any block: every operation is on single cells, sums over time too. The array is overwritten by the next call.
        """
        bits = self.bits
        with np.errstate(all="ignore"):
            with _ONE_AT_A_TIME:
                columns = write(self._memory)
                self._centre(columns)
                self.kernel.whiten_in_place(columns, self._scratch[:, : columns.shape[1]])
                squares = sum_of_squares(columns)
            extreme = np.flatnonzero(~((squares > _TINY) & (squares < _HUGE)))
            if extreme.size:
                columns[:, extreme] = self._with_care(write(np.empty_like(self._memory))[:, extreme])
                squares[extreme] = sum_of_squares(columns[:, extreme])
            columns *= 2.0**bits / np.sqrt(squares)
            np.trunc(columns, out=columns)
            lengths = np.einsum("tj,tj->j", columns, columns)  # whole numbers: exact in any order
        lost = np.flatnonzero(~(lengths > 0))
        columns[:, lost] = 0.0
        columns[0, lost] = 2.0**bits
        long = np.flatnonzero(lengths > 4.0**bits)
        columns[:, long] = np.trunc(columns[:, long] * (1 - 2.0**-20))
        return columns

    def _centre(self, columns: Array) -> None:
        if self.reference is not None:
            columns -= self.reference[:, np.newaxis]

    def _with_care(self, columns: Array) -> Array:
        """Whiten donors whose squares overflow or underflow: first scale their largest entry to 1."""
        self._centre(columns)
        columns /= np.abs(columns).max(axis=0)
        self.kernel.whiten_in_place(columns)
        return columns


def sum_of_squares(columns: Array) -> Array:
    """Add up squares over time, period after period.

    One call for the whole array would be quicker, but its order of addition depends on the layout in memory: a column
    that is alone in its block would differ in the last bit.
    """
    total, square = np.zeros(columns.shape[1]), np.empty(columns.shape[1])
    for period in columns:
        np.multiply(period, period, out=square)
        np.add(total, square, out=total)
    return total
