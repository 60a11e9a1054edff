"""Turns a block of donors into integer vectors of length at most 2^bits, each row by itself.

Each row by itself. The kernel is chosen from public knowledge, so this is a public map of one row.
"""

from __future__ import annotations

from threading import Lock

import numpy as np
from numpy.typing import NDArray

from dpsc.release.kernel import Kernel
from dpsc.release.rowmap import RowMap
from dpsc.types import Array, Write

_TOGETHER = 2048  # columns, so that what is kept of them between the two passes stays in the cache


def complete_in_place(columns: Array, kernel: Kernel) -> None:
    """Fill missing cells of a T × rows array, one column per donor, and take the level's estimate off each column.

    A column is a level of its own plus a path of the kernel. The level is estimated by generalised least squares from
    the cells that are there, and a missing cell gets its conditional mean given them. Of all ways to fill a column this
    one moves least: :meth:`Kernel.whiten_movement_in_place` then gives the shortest vector. A column with one cell
    becomes zero, and one with none stays missing.

    Every operation is on single cells, in one order, so that the result for a column does not depend on the columns
    beside it.
    """
    missing = np.flatnonzero(np.isnan(columns).any(axis=0))
    for start in range(0, len(missing), _TOGETHER):
        those = missing[start : start + _TOGETHER]
        part = columns[:, those]
        _complete(part, kernel)
        columns[:, those] = part


def _complete(u: Array, kernel: Kernel) -> None:
    """Run the Kalman filter of the kernel over the periods, and its smoother back.

    The hidden AR(1) series has the forecast a with variance P, from the cells before. The constant one is filtered
    beside it, with the forecast b: a level m changes forecasts by m b and errors by m (1 - b), so the level is known
    only at the end. r collects what later errors say about the hidden series: its smoothed value is ``a - m b + P r``.
    """
    seen = ~np.isnan(u)
    first = u[np.argmax(seen, axis=0), np.arange(u.shape[1])]
    u -= first  # a donor that does not move is then exactly zero
    np.copyto(u, 0.0, where=~seen)
    a, b, above, below, r = np.zeros((5, u.shape[1]))
    P = np.full(u.shape[1], 1 - kernel.nu)
    kept = np.empty((4, *u.shape))  # a, b, P and the weight of the cell: one over the variance of its forecast's error
    new = (1 - kernel.phi**2) * (1 - kernel.nu)
    for t, cell in enumerate(u):
        weight = seen[t] / (P + kernel.nu)
        kept[:, t] = a, b, P, weight
        error, of_one, gain = cell - a, 1 - b, P * weight
        above += weight * of_one * error
        below += weight * of_one * of_one
        a = kernel.phi * (a + gain * error)
        b = kernel.phi * (b + gain * of_one)
        P = kernel.phi**2 * P * (1 - gain) + new
    level = above / below  # not a number for a donor without a cell
    u -= level
    for t in range(len(u) - 1, -1, -1):
        a, b, P, weight = kept[:, t]
        hidden = a - level * b
        r = weight * (u[t] - hidden) + kernel.phi * (1 - P * weight) * r
        np.copyto(u[t], hidden + P * r, where=~seen[t])


_TINY, _HUGE = 1e-200, 1e200
_ROTATION_BITS = 26  # products of two such integers, and sums of them over time, stay below 2^53: exact in any order
_ONE_AT_A_TIME = Lock()  # many short calls on several threads would only wait for each other


class Movements:
    """Whitens blocks of donors and takes their level off, reusing its memory from block to block."""

    def __init__(self, T: int, block: int, kernel: Kernel, reference: Array | None) -> None:
        self.kernel, self.reference = kernel, reference
        self._memory, self._scratch = np.empty((T, block)), np.empty((3, block))
        self._expect_holes = False

    def __call__(self, write: Write) -> tuple[Array, Array]:
        """Return a T × rows array, one column per donor and nothing in its first row, and the squared lengths.

        Missing cells are first completed, each donor by itself. A donor without any cell stays missing. It is a
        function of the donor alone, the same to the last bit in any block: every operation is on single cells, sums
        over time too. The array is overwritten by the next call.
        """
        with _ONE_AT_A_TIME, np.errstate(all="ignore"):
            columns, squares = self._moved(write)
            if not self._expect_holes and np.isnan(squares).any():  # looking for holes first would cost all others time
                self._expect_holes = True
                columns, squares = self._moved(write)
            return columns, squares

    def _moved(self, write: Write) -> tuple[Array, Array]:
        columns = write(self._memory)
        self._centre(columns)
        if self._expect_holes:
            complete_in_place(columns, self.kernel)
        self.kernel.whiten_movement_in_place(columns, self._scratch[:, : columns.shape[1]])
        return columns, sum_of_squares(columns)

    def with_care(self, write: Write, chosen: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return chosen donors whose squares overflow: their largest entry is first scaled to 1; and these scales."""
        columns = write(np.empty_like(self._memory))[:, chosen]
        self._centre(columns)
        scales = np.fmax.reduce(np.abs(columns), axis=0)  # of the cells that are there
        columns /= scales
        complete_in_place(columns, self.kernel)
        self.kernel.whiten_movement_in_place(columns)
        return columns, scales

    def _centre(self, columns: Array) -> None:
        if self.reference is not None:
            columns -= self.reference[:, np.newaxis]


class IntegerRows:
    """Turns blocks of donors into integer vectors by a public map, reusing its memory from block to block."""

    def __init__(self, row_map: RowMap, block: int) -> None:
        self.map = row_map
        self._movements = Movements(row_map.T, block, row_map.kernel, row_map.reference)
        rotation = row_map.rotation
        self._rotation = None if rotation is None else np.trunc(rotation * 2.0**_ROTATION_BITS)

    def __call__(self, write: Write) -> Array:
        """Return an array of whole float64 numbers, one column per donor, sums of squares at most 4^bits.

        Each donor: subtract the public reference path, complete missing cells by the public kernel, take off the level
        and whiten, keep the smoothest directions, put the public constant first, scale to length 1, multiply by 2^bits
        and truncate toward zero. Truncation makes no vector longer; what rounding before it may add is checked in whole
        numbers and removed. A donor that is infinite or has no cell becomes the first unit vector, as one that does not
        move, and so would one that is still too long. It is a function of the donor alone, the same to the last bit in
        any block. The array is overwritten by the next call.
        """
        bits, constant = self.map.grid_bits, self.map.constant
        with np.errstate(all="ignore"):
            columns, squares = self._movements(write)
            columns[0] = constant
            extreme = np.flatnonzero(~(squares < _HUGE))
            if extreme.size:
                careful, scales = self._movements.with_care(write, extreme)
                columns[:, extreme], columns[0, extreme] = careful, constant / scales
                squares[extreme] = sum_of_squares(careful)
            if self._rotation is not None:
                columns = self._rotated(columns, squares)
                squares = sum_of_squares(columns[1:])
            columns *= 2.0**bits / np.sqrt(squares + columns[0] ** 2)
            np.trunc(columns, out=columns)
            lengths = np.einsum("tj,tj->j", columns, columns)  # whole numbers: exact in any order
            long = np.flatnonzero(lengths > 4.0**bits)
            shorter = np.trunc(columns[:, long] * (1 - 2.0**-20))
            columns[:, long], lengths[long] = shorter, np.einsum("tj,tj->j", shorter, shorter)
        lost = np.flatnonzero(~((lengths > 0) & (lengths <= 4.0**bits)))
        columns[:, lost] = 0.0
        columns[0, lost] = 2.0**bits
        return columns

    def _rotated(self, columns: Array, squares: Array) -> Array:
        """Keep the smoothest directions, by a product of whole numbers.

        A column of length at most 2^26 times a row of length at most 2^26: by Cauchy and Schwarz every partial sum is a
        whole number of size at most 2^52, so that the product is exact, whoever multiplies in whatever order.
        """
        lengths = np.sqrt(squares)
        moved = np.where(squares > _TINY, 1 / lengths, 0.0)
        whole = np.trunc(columns[1:] * (moved * 2.0**_ROTATION_BITS))
        kept = np.empty((self.map.size, columns.shape[1]))
        kept[0] = columns[0]
        np.matmul(self._rotation, whole, out=kept[1:])  # type: ignore[arg-type]
        kept[1:] *= lengths * 4.0**-_ROTATION_BITS
        return kept


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
