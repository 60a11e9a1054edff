"""Neighbours that are known worst cases, all made up, and two-step algorithms run on both of them.

Centres, scales and clipping come from the algorithms' own results and are never computed again here, so that a mistake
in the library shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpsc.answers.result import PrivateResult, UnprovenResult
from dpsc.custodian.donors.panel import Panel
from dpsc.custodian.weights.classic import ridge_weights
from dpsc.custodian.weights.objective import ObjectivePerturbation
from dpsc.custodian.weights.output import OutputPerturbation
from dpsc.custodian.weights.printed import PrintedOutputPerturbation
from dpsc.custodian.weights.projection import ProjectionNoise
from dpsc.evidence.audit import measure
from dpsc.evidence.audit.case import Effort
from dpsc.privacy import discrete, laplace
from dpsc.privacy.source import Source
from dpsc.release.rowmap import RowMap
from dpsc.types import Array

FAR = 50.0  # the size of a hostile donor's values, far beyond the public bounds (-1, 1)
FARTHEST = 1e9  # the movement of a hostile donor, in units of the constant that stands beside rows of a Gram release


@dataclass(frozen=True, eq=False)
class Pair:
    """Two donor pools that differ in the first row, and a public target."""

    donors: Array
    neighbour: Array
    target: Array
    T0: int

    @property
    def pools(self) -> tuple[Array, Array]:
        """Both donor pools."""
        return self.donors, self.neighbour

    def swapped(self) -> Pair:
        """Return the same pair in the other order."""
        return Pair(self.neighbour, self.donors, self.target, self.T0)

    def panel(self, side: int) -> Panel:
        """Return one donor pool as a panel with public bounds (-1, 1)."""
        return Panel.from_arrays(self.pools[side], self.target, treatment_time=self.T0, bounds=(-1, 1))


def fine_bits(row: Sequence[float], target: Sequence[float]) -> Pair:
    """One donor that is zero, against a row whose weight has fine bits, for attacks on the lowest bits of a weight."""
    donors = np.array([[*row, 0.0]])
    return Pair(0 * donors, donors, np.array([*target, 0.0]), len(row))


def _pair(others: Array, row: Array, other_row: Array, T0: int) -> Pair:
    target = np.ones(len(row))
    return Pair(np.vstack([row, others]), np.vstack([other_row, others]), target, T0)


def opposite_rows(T0: int, h: int, *, before: float = 1.0, after: float = 1.0) -> Pair:
    """One donor, x = -x' along y: attains the exact ridge sensitivity and, with Z = ±1, the answer's.

    ``before`` and ``after`` are the sizes of the entries; sizes above one must be clipped.
    """
    row = np.append(np.full(T0, before), np.full(h, after))
    return _pair(np.empty((0, T0 + h)), row, -row, T0)


def zero_row(n: int, T0: int, h: int) -> Pair:
    """All ones against the same with one row of zeros: breaks objective perturbation as printed."""
    ones = np.ones(T0 + h)
    return _pair(np.ones((n - 1, T0 + h)), ones, np.zeros(T0 + h), T0)


def rank_one(n: int, T0: int, h: int) -> Pair:
    """Donors that are all the same, against one that is their mirror image: moves the gradient the furthest."""
    ones = np.ones(T0 + h)
    return _pair(np.ones((n - 1, T0 + h)), ones, -ones, T0)


def weak_crowd(n: int, T0: int, h: int, *, mu: float) -> Pair:
    """Many weak donors that share the weight until a strong one takes it: moves all weights at once, far in l1."""
    weak = np.full((n - 1, T0 + h), (mu / (n * T0)) ** 0.5)
    return _pair(weak, np.ones(T0 + h), np.zeros(T0 + h), T0)


def still_and_moving(row_map: RowMap) -> Pair:
    """One donor that does not move, against one that moves so much that the map's constant is nothing beside it.

    Their vectors are two of the unit vectors: the worst case of the Gram matrix, on its diagonal.
    """
    return _pair(_nobody(row_map), np.zeros(row_map.T), _along(row_map, 0, FARTHEST), row_map.T - 1)


def orthogonal_rows(row_map: RowMap) -> Pair:
    """Two donors that move very much, in two directions of the map, the first and the last."""
    row, other = (_along(row_map, direction, FARTHEST) for direction in (0, -1))
    return _pair(_nobody(row_map), row, other, row_map.T - 1)


def mirrored_rows(row_map: RowMap) -> Pair:
    """Two donors that move as much as the map's constant, one up and one down.

    Their vectors are the diagonals between two unit vectors: as bad as :func:`still_and_moving`, but off the diagonal
    of the Gram matrix.
    """
    row = _along(row_map, 0, 1.0)
    return _pair(_nobody(row_map), row, -row, row_map.T - 1)


def _along(row_map: RowMap, direction: int, size: float) -> Array:
    """Return a row whose whitened movement is in one direction, and so many times as long as the constant."""
    return np.asarray(size * row_map.constant * row_map.back[:, direction])


def _nobody(row_map: RowMap) -> Array:
    return np.empty((0, row_map.T))


Algorithm = OutputPerturbation | ObjectivePerturbation | PrintedOutputPerturbation
Make = Callable[[int | None], Algorithm]  # from a seed
Result = PrivateResult | UnprovenResult
_WIDE = 4096.0


@dataclass(frozen=True, eq=False)
class Step:
    """Additive noise around one of two centres."""

    law: str  # "laplace", "gaussian" or "joint laplace"
    scale: float

    def log_ratio(self, values: Array, centre: Array, neighbour_centre: Array, size: Array | float = 1.0) -> Array:
        """Return the log-likelihood ratio of each row, with the scale multiplied by ``size``."""
        scale = self.scale * np.asarray(size)
        if self.law == "gaussian":
            squares = ((values - neighbour_centre) ** 2 - (values - centre) ** 2).sum(axis=1)
            return np.asarray(squares / (2 * scale**2))
        order = 1 if self.law == "laplace" else 2
        far, near = (np.linalg.norm(values - c, ord=order, axis=1) for c in (neighbour_centre, centre))
        return np.asarray((far - near) / scale)

    def distance(self, change: Array) -> float:
        """Return how many scales apart two centres are, in the norm that the law is calibrated in."""
        return float(np.linalg.norm(change, ord=1 if self.law == "laplace" else 2)) / self.scale

    def draw(self, dimension: int, runs: int, source: Source) -> Array:
        """Draw noise of scale one, in bulk, from the library's samplers."""
        if self.law == "joint laplace":
            return laplace.sample(dimension, 1.0, source, (runs,))
        zeros = np.zeros(runs * dimension, dtype=np.int64)
        kind: discrete.Kind = "laplace" if self.law == "laplace" else "gaussian"
        return (discrete.add(zeros, kind, _WIDE, source, largest=0) / _WIDE).reshape(runs, dimension)


@dataclass(frozen=True, eq=False)
class TwoStep:
    """An algorithm on a pair of neighbours."""

    make: Make
    pair: Pair

    def fit_once(self) -> tuple[Result, Step, Step]:
        """Return a seeded result and the laws of its two steps; the answer's scale is for a largest weight of one."""
        result = self.make(0).fit(self.pair.panel(0))
        assert isinstance(result.uncertainty, ProjectionNoise)
        noise = result.uncertainty.noise
        weight_scale = result.parameters.get("weight_scale", result.parameters.get("a"))
        largest = float(np.abs(result.weights).max())
        return result, Step(noise.law, weight_scale), Step(noise.law, noise.scale / largest)

    def exact_epsilon(self, delta: float) -> float:
        """Return the epsilon that the pair costs, from the centres of both steps.

        The same seed gives both neighbours the same noise, so the difference of their outputs is the difference of
        their centres. A change before the intervention moves the weights, a change after it moves the answer.
        """
        _, weights, answer = self.fit_once()
        one, other = self.pair.pools
        between = one.copy()
        between[:, self.pair.T0 :] = other[:, self.pair.T0 :]  # the row changed after the intervention only
        first, changed_after, second = (self._fit_seeded(donors) for donors in (one, between, other))
        path_change = changed_after.counterfactual.to_numpy() - first.counterfactual.to_numpy()
        f_change = second.weights.to_numpy() - changed_after.weights.to_numpy()
        largest = float(np.abs(first.weights).max())
        apart = weights.distance(f_change), answer.distance(path_change / largest)
        if weights.law == "gaussian":
            shift = float(np.hypot(*apart))
            return measure.gaussian_epsilon(shift, delta)
        return sum(apart)

    def _fit_seeded(self, donors: Array) -> Result:
        return self.make(0).fit(replace(self.pair, donors=donors).panel(0))

    def centres(self) -> tuple[Array, Array]:
        """Return the ridge weights of both neighbours, for the public lambda and bounds."""
        lambda_ = self.fit_once()[0].parameters["lambda_"]
        data = [self.pair.panel(side).scaled("audit") for side in (0, 1)]
        one, other = (ridge_weights(d.X, d.y, lambda_) for d in data)
        return one, other

    def log_ratio(self) -> Callable[[Array], Array]:
        """Return the log-likelihood ratio of outputs (weights, answer)."""
        _, weights, answer = self.fit_once()
        centre, neighbour_centre = self.centres()
        Z, other_Z = (self.pair.panel(side).scaled("audit").Z for side in (0, 1))
        n = len(centre)

        def score(outputs: Array) -> Array:
            f, path = outputs[:, :n], outputs[:, n:]
            largest = np.maximum(np.abs(f).max(axis=1), 1e-300)
            return weights.log_ratio(f, centre, neighbour_centre) + answer.log_ratio(path, f @ Z, f @ other_Z, largest)

        return score

    def draw_calls(self, side: int, effort: Effort) -> Array:
        """Return the outputs of real calls of ``fit``, one per row."""
        return call(self.make, self.pair, side, effort)

    def draw_bulk(self, side: int, effort: Effort) -> Array:
        """Return outputs drawn all at once from the library's samplers, with the library's scales."""
        _, weights, answer = self.fit_once()
        source, runs = effort.source(), effort.runs
        centre = self.centres()[side]
        Z = self.pair.panel(side).scaled("audit").Z
        f = centre + weights.scale * weights.draw(len(centre), runs, source)
        largest = np.abs(f).max(axis=1, keepdims=True)
        return np.hstack([f, f @ Z + answer.scale * largest * answer.draw(Z.shape[1], runs, source)])


def call(make: Make, pair: Pair, side: int, effort: Effort) -> Array:
    """Return weights and counterfactuals of ``effort.calls`` real calls of ``fit`` on one neighbour."""
    panel = pair.panel(side)
    rows = []
    for _ in range(effort.calls):
        result = make(effort.seed()).fit(panel)
        rows.append(np.append(result.weights.to_numpy(), result.counterfactual.to_numpy()))
    return np.array(rows)
