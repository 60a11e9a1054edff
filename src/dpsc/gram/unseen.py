"""Periods in which a donor was not seen: what the public kernel expects there, given the donor's own other cells.

Each row by itself. The kernel is chosen from public knowledge, so this is a public map of one row.
"""

from __future__ import annotations

import numpy as np

from dpsc.gram.kernel import Kernel
from dpsc.types import Array

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
