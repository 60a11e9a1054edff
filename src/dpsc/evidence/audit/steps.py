"""Two-step algorithms under audit, with additive noise of a known law or a perturbed objective.

Centres, scales and clipping come from the algorithms' own results and are never computed again here, so that a mistake
in the library shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsc.custodian.weights.classic import ridge_weights
from dpsc.evidence.audit import measure
from dpsc.evidence.audit.case import Effort
from dpsc.evidence.audit.search import Pair
from dpsc.evidence.paper.ours import minimise_over_ball
from dpsc.privacy import discrete, laplace
from dpsc.privacy.source import Source
from dpsc.types import Array

_ON_THE_SPHERE = 1e-7


def log_density(b: Array, beta: float, law: str) -> Array:
    """Return the logarithm of the density of each row of noise, up to a constant."""
    if law == "gaussian":
        return np.asarray(-(b**2).sum(axis=1) / (2 * beta**2))
    if law == "laplace":  # independent entries
        return np.asarray(-np.abs(b).sum(axis=1) / beta)
    return np.asarray(-np.linalg.norm(b, axis=1) / beta)


def unconstrained_losses(X: Array, neighbour: Array, y: Array, nu: float, b: Array, beta: float, law: str) -> Array:
    """Return log p(f) / p'(f) for the minimisers f over R^n that the noise b, one row per run, leads to on X.

    ``b = 2 X (y - X'f) - nu f`` determines f and is determined by it, with Jacobian det(2 X X' + nu I).
    """
    f = minimisers(X, y, nu, b)
    b_neighbour = -gradients(neighbour, y, nu, f)
    volume = _log_det(_hessian(X, nu)) - _log_det(_hessian(neighbour, nu))
    return log_density(b, beta, law) - log_density(b_neighbour, beta, law) + volume


def minimisers(X: Array, y: Array, nu: float, b: Array) -> Array:
    """Minimise ``||y - X'f||^2 + (nu/2) ||f||^2 + b'f`` over R^n for every row of b."""
    return np.asarray(np.linalg.solve(_hessian(X, nu), (2 * X @ y - b).T).T)


def ball_losses(X: Array, neighbour: Array, y: Array, nu: float, b: Array, beta: float, law: str) -> Array:
    """Return the privacy losses of (minimiser over the l1 ball, normal vector): what the proof is about.

    The noise that leads to the same pair on the neighbour is ``b + g(alpha) - g'(alpha)``; on a face with tangent
    basis V the Jacobians are 1 / det(V'AV).
    """
    alpha = minimise_over_ball(X, y, nu, b)
    moved = b + gradients(X, y, nu, alpha) - gradients(neighbour, y, nu, alpha)
    losses = log_density(b, beta, law) - log_density(moved, beta, law)
    on_sphere = np.abs(alpha).sum(axis=1) > 1 - _ON_THE_SPHERE
    signs = np.where(on_sphere[:, np.newaxis], np.sign(np.where(np.abs(alpha) < _ON_THE_SPHERE, 0.0, alpha)), 0.0)
    faces, of_run = np.unique(signs, axis=0, return_inverse=True)
    volumes = np.array([_face_volume(X, nu, face) - _face_volume(neighbour, nu, face) for face in faces])
    return np.asarray(losses + volumes[of_run.ravel()])


def _face_volume(X: Array, nu: float, signs: Array) -> float:
    """Return log det(V'AV) on the face with these signs, or inside the ball if all signs are zero."""
    A = _hessian(X, nu)
    support = np.flatnonzero(signs)
    if not support.size:
        return _log_det(A)
    basis = np.linalg.svd(signs[support][np.newaxis])[2][1:].T
    return _log_det(basis.T @ A[np.ix_(support, support)] @ basis) if support.size > 1 else 0.0


def gradients(X: Array, y: Array, nu: float, f: Array) -> Array:
    """Return the gradient of ``||y - X'f||^2 + (nu/2) ||f||^2`` at every row of f."""
    return np.asarray(2 * (f @ X - y) @ X.T + nu * f)


def _hessian(X: Array, nu: float) -> Array:
    return np.asarray(2 * X @ X.T + nu * np.eye(len(X)))


def _log_det(A: Array) -> float:
    return float(np.linalg.slogdet(A)[1])


Make = Callable[[int | None], Any]  # from a seed to an algorithm with a ``fit``
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

    def fit_once(self) -> tuple[Any, Step, Step]:
        """Return a seeded result and the laws of its two steps; the answer's scale is for a largest weight of one."""
        result = self.make(0).fit(self.pair.panel(0))
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
            return measure.epsilon_at(delta, lambda epsilon: measure.gaussian_delta(shift, epsilon))
        return sum(apart)

    def _fit_seeded(self, donors: Array) -> Any:
        pair = Pair("", donors, donors, self.pair.target, self.pair.T0)
        return self.make(0).fit(pair.panel(0))

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


def exponentials(shape: tuple[int, ...], source: Source) -> Array:
    """Draw exponential variables of mean one, the sizes of Laplace noise: half the squares of two normals."""
    return np.asarray((source.normals((2, *shape)) ** 2).sum(axis=0) / 2)


def call(make: Make, pair: Pair, side: int, effort: Effort) -> Array:
    """Return weights and counterfactuals of ``effort.calls`` real calls of ``fit`` on one neighbour."""
    panel = pair.panel(side)
    rows = []
    for _ in range(effort.calls):
        result = make(effort.seed()).fit(panel)
        rows.append(np.append(result.weights.to_numpy(), result.counterfactual.to_numpy()))
    return np.array(rows)
