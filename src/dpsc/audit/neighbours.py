"""The pairs of neighbours that are known to be the worst cases. All are made up; the audit never sees real data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsc.data.panel import Panel
from dpsc.gram.mapping import RowMap
from dpsc.types import Array

FAR = 50.0  # the size of a hostile donor's values, far beyond the public bounds (-1, 1)
FARTHEST = 1e9  # the movement of a hostile donor, in units of the constant that stands beside rows of a Gram release


@dataclass(frozen=True, eq=False)
class Pair:
    """Two donor pools that differ in the first row, and a public target."""

    name: str
    donors: Array
    neighbour: Array
    target: Array
    T0: int

    @property
    def pools(self) -> tuple[Array, Array]:
        """Both donor pools."""
        return self.donors, self.neighbour

    def panel(self, side: int) -> Panel:
        """Return one donor pool as a panel with public bounds (-1, 1)."""
        return Panel.from_arrays(self.pools[side], self.target, treatment_time=self.T0, bounds=(-1, 1))


def _pair(name: str, others: Array, row: Array, other_row: Array, T0: int) -> Pair:
    target = np.ones(len(row))
    return Pair(name, np.vstack([row, others]), np.vstack([other_row, others]), target, T0)


def opposite_rows(T0: int, h: int, *, before: float = 1.0, after: float = 1.0) -> Pair:
    """One donor, x = -x' along y: attains the exact ridge sensitivity and, with Z = ±1, the answer's.

    ``before`` and ``after`` are the sizes of the entries; sizes above one must be clipped.
    """
    row = np.append(np.full(T0, before), np.full(h, after))
    return _pair("opposite rows", np.empty((0, T0 + h)), row, -row, T0)


def zero_row(n: int, T0: int, h: int) -> Pair:
    """All ones against the same with one row of zeros: breaks objective perturbation as printed."""
    ones = np.ones(T0 + h)
    return _pair("ones and a zero row", np.ones((n - 1, T0 + h)), ones, np.zeros(T0 + h), T0)


def rank_one(n: int, T0: int, h: int) -> Pair:
    """Donors that are all the same, against one that is their mirror image: moves the gradient the furthest."""
    ones = np.ones(T0 + h)
    return _pair("rank one", np.ones((n - 1, T0 + h)), ones, -ones, T0)


def weak_crowd(n: int, T0: int, h: int, *, mu: float) -> Pair:
    """Many weak donors that share the weight until a strong one takes it: moves all weights at once, far in l1."""
    weak = np.full((n - 1, T0 + h), (mu / (n * T0)) ** 0.5)
    return _pair("weak crowd", weak, np.ones(T0 + h), np.zeros(T0 + h), T0)


def still_and_moving(row_map: RowMap) -> Pair:
    """One donor that does not move, against one that moves so much that the map's constant is nothing beside it.

    Their vectors are two of the unit vectors: the worst case of the Gram matrix, on its diagonal.
    """
    return _pair("still and moving", _nobody(row_map), np.zeros(row_map.T), _along(row_map, 0, FARTHEST), row_map.T - 1)


def orthogonal_rows(row_map: RowMap) -> Pair:
    """Two donors that move very much, in two directions of the map, the first and the last."""
    row, other = (_along(row_map, direction, FARTHEST) for direction in (0, -1))
    return _pair("orthogonal rows", _nobody(row_map), row, other, row_map.T - 1)


def mirrored_rows(row_map: RowMap) -> Pair:
    """Two donors that move as much as the map's constant, one up and one down.

    Their vectors are the diagonals between two unit vectors: as bad as :func:`still_and_moving`, but off the diagonal
    of the Gram matrix.
    """
    row = _along(row_map, 0, 1.0)
    return _pair("mirrored rows", _nobody(row_map), row, -row, row_map.T - 1)


def _along(row_map: RowMap, direction: int, size: float) -> Array:
    """Return a row whose whitened movement is in one direction, and so many times as long as the constant."""
    return np.asarray(size * row_map.constant * row_map.back[:, direction])


def _nobody(row_map: RowMap) -> Array:
    return np.empty((0, row_map.T))


def rows_of_every_kind(T: int, count: int, seed: int) -> Array:
    """Rows that might become too long: of all sizes, sparse, constant, along the grid's diagonals."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, T))
    rows[::5] = np.sign(rows[::5])
    rows[1::5] *= 10.0 ** rng.integers(-250, 250, (len(rows[1::5]), 1))
    rows[2::5] *= rng.random((len(rows[2::5]), T)) < 0.3
    rows[3::5] = np.cumsum(rows[3::5], axis=1)
    rows[4::50] = rows[4::50, :1]
    return rows
