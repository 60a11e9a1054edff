"""The public map from a donor's row to a vector: what is kept of a row, and how a constant stands beside it.

Everything here is chosen before the release from public numbers. A vector depends on one donor alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from dpsc import checks
from dpsc.errors import Parameter, ParameterError
from dpsc.release.kernel import Kernel
from dpsc.types import Array

_FEWEST_DIRECTIONS = 3
_DIRECTIONS_PER_DONOR = 0.8  # over the noise's standard deviation
ENOUGH_PER_DIRECTION = 1.25  # the same the other way round: donors that fill a direction, for each unit of noise
SMALL_CONSTANT = 0.7  # R over the scale: at least, and whatever n is in releases of version 0.2.0
_LARGE_CONSTANT = 2.5  # at most
_CONSTANT_GROWS, _POWER = 0.12, 1 / 3  # times that power of donors for each unit of noise
ENOUGH_FOR_CONSTANT = (_LARGE_CONSTANT / _CONSTANT_GROWS) ** (
    1 / _POWER
)  # donors for each unit of noise: more change nothing


@dataclass(frozen=True, eq=False)
class RowMap:
    """How a row of T numbers becomes a vector of length one.

    Less the reference, the row loses its level and is whitened in its ``directions`` smoothest directions, which gives
    w; beside it stands ``constant``, R: the vector is (R, w) / |(R, w)|. With R, the sum of products of these vectors
    holds the donors' mean movement as well as their second moments, in the outcome's own units.

    Attributes
    ----------
    T : int
    kernel : Kernel
    reference : array of length T, optional
    directions : int or None
        How many, at most T - 1. None as in version 0.1.0: rows keep their level, and there is no constant.
    constant : float
        R, 0.7 to 2.5 times a typical |w|: more with more donors; 0 without directions.
    grid_bits : int
        Entries are cut off at 2^-grid_bits.
    """

    T: int
    kernel: Kernel
    reference: Array | None
    directions: int | None
    constant: float
    grid_bits: int

    @property
    def size(self) -> int:
        """The length of a vector."""
        return self.T if self.directions is None else self.directions + 1

    def same_as(self, other: RowMap) -> bool:
        """Return whether both make the same vectors."""

        def plain(of: RowMap) -> tuple[object, ...]:
            return of.T, of.kernel, of.directions, of.constant, of.grid_bits

        one, two = (np.empty(0) if of.reference is None else of.reference for of in (self, other))
        return plain(self) == plain(other) and np.array_equal(one, two)

    @cached_property
    def rotation(self) -> Array | None:
        """The matrix that keeps the smoothest directions of a whitened movement; None if all are kept.

        The k smoothest directions are the cosines cos(pi f (t + 1/2) / T), f = 1..k, which have no level. Its rows are
        orthonormal and span them, as they are after :meth:`Kernel.whiten_movement_in_place`.
        """
        if self.directions is None or self.directions == self.T - 1:
            return None
        movement = self.kernel.root(self.T)
        self.kernel.whiten_movement_in_place(movement)  # orthonormal rows, in the coordinates of the kernel's root
        return np.asarray(self.whitening @ self.kernel.root(self.T) @ movement[1:].T)

    @cached_property
    def whitening(self) -> Array:
        """W, with w = W x for a row x less the reference: ``W K W' = I``, and ``W 1 = 0`` if there are directions."""
        T, k = self.T, self.directions
        if k is None or k == T - 1:
            W = np.eye(T)
            if k is None:
                self.kernel.whiten_in_place(W)
                return W
            self.kernel.whiten_movement_in_place(W)
            return W[1:]
        cosines = np.cos(math.pi * np.outer(np.arange(1, k + 1), np.arange(T) + 0.5) / T)
        root = np.linalg.cholesky(cosines @ self.kernel.matrix(T) @ cosines.T)
        return np.asarray(solve_triangular(root, cosines, lower=True))

    def whitened(self, columns: Array) -> Array:
        """Return W times a matrix with T rows; for all directions by the recursion, without a dense product."""
        if self.directions != self.T - 1:
            return np.asarray(self.whitening @ columns)
        columns = np.array(columns, order="C")
        self.kernel.whiten_movement_in_place(columns)
        return columns[1:]

    def whitened_covariance(self, covariance: Array) -> Array:
        """Return W times a T × T matrix times W'."""
        return self.whitened(self.whitened(covariance).T)

    def smoothest(self, most: int) -> Array | None:
        """Return orthonormal rows that keep the ``most`` smoothest of the whitened directions; None if that is all."""
        k = self.directions
        if k is None or k <= most:
            return None
        if k < self.T - 1:
            return np.eye(most, k)  # w is in order: its first entries depend on the smoothest cosines only
        return RowMap(self.T, self.kernel, None, most, self.constant, self.grid_bits).rotation

    @cached_property
    def back(self) -> Array:
        """The T × k matrix that turns w into the row's movement (the row, in 0.1.0) as far as w shows it.

        Under the kernel the expected movement given w is ``C K W' w``, C taking off the mean over time.
        """
        back = self.kernel.matrix(self.T) @ self.whitening.T
        return np.asarray(back if self.directions is None else back - back.mean(axis=0))


def directions_for(n: int, T: int, noise_scale: float, kernel: Kernel) -> int:
    """Return how many directions n donors can fill: more would bring in more noise than they show.

    ``noise_scale`` is the standard deviation of the noise on the diagonal for vectors of length one. Without a kernel
    no direction counts as smooth, so all are kept.
    """
    if kernel.phi == 0:
        return T - 1
    return min(T - 1, max(_FEWEST_DIRECTIONS, round(_DIRECTIONS_PER_DONOR * n / noise_scale)))


def constant_over_scale(n: int, noise_scale: float) -> float:
    """Return R over the scale for n donors.

    A donor counts by ``R^2 / (R^2 + |w|^2)``. The larger R, the nearer is the weighted mean to the plain one, which
    averages of thousands follow: the difference falls like 1 / R^2. But its noise grows like R s / n. Both together
    are smallest where R grows with the cube root of n / s.

    n is public, the number of all donors' labels (or of enough of them): with usable rows alone one donor more or less
    would change every vector. ``noise_scale`` is as in :func:`directions_for`. Two digits are kept, so that the number
    is the same whatever machine computes it, and people can agree on it.
    """
    grown = _CONSTANT_GROWS * (n / noise_scale) ** _POWER
    return float(round(max(SMALL_CONSTANT, min(_LARGE_CONSTANT, grown)), 2))


def require_constant(constant: float) -> None:
    """Refuse a constant, as a share of the scale, that is not a positive number of sensible size."""
    checks.finite_number("constant", constant, above=0)
    if not 1e-3 <= constant <= 1e3:
        raise ParameterError(f"{Parameter('constant')} must be between 0.001 and 1,000.")


def constant_for(scale: float, over_scale: float) -> float:
    """Return the constant R for donors that typically move by ``scale``.

    It is rounded to 20 binary digits, so that sites that agree on the scale have the same one, whatever machine they
    use.
    """
    digits, power = math.frexp(over_scale * scale)
    return math.ldexp(round(digits * 2**20), power - 20)


def whitened_size(deviation: float, T: int, kernel: Kernel) -> float:
    """Return the expected |w| of a series over T periods whose values deviate so much from their mean.

    A path of the kernel, with variance v, has ``|w|^2 = (T - 1) v`` on average and deviates from its mean over time by
    ``v trace(C K C) / T``, squared, C taking off that mean.
    """
    K = kernel.matrix(T)
    return deviation * math.sqrt((T - 1) / ((np.trace(K) - K.sum() / T) / T))


def movement(path: Array, kernel: Kernel) -> float:
    """Return the size |w| of a path's whitened movement over all its directions.

    Of a path of T0 periods it grows with their number: over T periods expect sqrt((T - 1) / (T0 - 1)) times as much.
    """
    column = (path - path[0])[:, np.newaxis]  # a path that does not move then has a movement of 0, without rounding
    kernel.whiten_movement_in_place(column)
    return float(np.linalg.norm(column))
