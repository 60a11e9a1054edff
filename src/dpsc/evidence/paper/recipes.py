"""The three recipes for the noise on the paper's data, many runs at once. From a seed, so nothing here is private.

``published`` and ``printed``: DPSC_out and DPSC_obj, all runs and points at once. Both draw rotation-invariant noise in
R^n, so it may be drawn in the basis of the left singular vectors of X, where ridge regression is diagonal: one
decomposition serves every lambda, epsilon and run. Of the n × h matrix W only W'f counts. It is ||f|| times h
coordinates of the joint draw, so h normals and one chi-square replace n h numbers. The ``published`` recipe made the
paper's figures: its radii are too short, its Gaussian has the wrong variance and its curvature is missing. It runs
here, on generated data, and nowhere else.

``ours``: the two algorithms with weights run once to learn their noise scales, and the Gram release is rehearsed; the
many runs draw noise of the same laws in floating point. Tests compare the errors with those of the algorithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpsc.analyst.simulate import Rehearsal
from dpsc.custodian.donors.panel import Panel
from dpsc.custodian.weights.classic import ridge_weights
from dpsc.custodian.weights.objective import ObjectivePerturbation
from dpsc.custodian.weights.output import OutputPerturbation
from dpsc.custodian.weights.printed import default_c, divide_budget, printed_beta
from dpsc.evidence.paper.points import Dataset, Point
from dpsc.privacy import sensitivity
from dpsc.privacy.additive import StepBudget, discrete_scale, divide, single
from dpsc.types import Array, one_thread

_AT_ONCE = 1000  # runs per block, so that memory does not grow with the number of runs


@dataclass(frozen=True, eq=False)
class Basis:
    """A data set seen from the left singular vectors of X: squared singular values, X y, and Z."""

    squares: Array  # n, zeros where X has no more directions
    Xy: Array  # n
    Z: Array  # n × h


@dataclass(frozen=True, eq=False)
class RecipeNoise:
    """Weights are ``centre + gain * scale * noise``; the answer gets ``||weights||`` times separate noise."""

    centre: Array  # n
    gain: Array  # n
    scale: float
    gaussian: bool
    radius: float  # shape of the Gamma radius of the noise; the theory's Laplace noise has the dimension here
    W_scale: float
    W_dimension: int
    W_radius: float


@lru_cache(maxsize=8)
def basis_of(data: Dataset) -> Basis:
    """Decompose a data set, once."""
    U, s, _ = np.linalg.svd(data.X, full_matrices=True)
    squares = np.pad(s**2, (0, len(U) - len(s)))
    return Basis(squares, U.T @ (data.X @ data.y), U.T @ data.Z)


def noise_of(point: Point, basis: Basis) -> RecipeNoise:
    """Return the noise that a recipe adds at one point."""
    n, h = basis.Z.shape
    published = point.recipe == "published"
    if point.method == "out":
        centre, gain = basis.Xy / (basis.squares + point.lambda_ / 2), np.broadcast_to(1.0, n)
        scale = sensitivity.printed_ridge(n, point.T0, point.lambda_) / point.epsilon1
        gaussian = False
    else:
        c = default_c(n, point.T0)
        epsilon0, Delta = divide_budget(point.epsilon1, point.lambda_, c)
        added = point.delta if published else Delta  # the authors' code adds the privacy delta instead
        ridge = basis.squares + (point.lambda_ + added) / 2
        centre, gain = basis.Xy / ridge, -0.5 / ridge
        scale = printed_beta(n, point.T0, epsilon0, point.delta, c)
        gaussian = point.delta > 0
        if gaussian and published:
            scale = math.sqrt(scale)  # drawn with variance beta
    columns = point.T0 + h if published else h
    return RecipeNoise(
        centre=centre,
        gain=gain,
        scale=scale,
        gaussian=gaussian,
        radius=1 if published else n,
        W_scale=sensitivity.post_period(columns) / point.epsilon2,
        W_dimension=n * columns,
        W_radius=1 if published else n * columns,
    )


@dataclass(frozen=True, eq=False)
class Draws:
    """The random numbers of a batch of points, each from its own generator."""

    normals: Array  # points × runs × n
    radii: Array  # points × runs
    W_normals: Array  # points × runs × h
    W_rest: Array  # points × runs: the squared norm of the coordinates of W that are not drawn
    W_radii: Array  # points × runs


def draw(noises: Sequence[RecipeNoise], h: int, runs: int, rngs: Sequence[np.random.Generator]) -> Draws:
    """Draw everything that is random."""
    n, P = len(noises[0].centre), len(noises)
    draws = Draws(
        np.empty((P, runs, n)), np.ones((P, runs)), np.empty((P, runs, h)), np.empty((P, runs)), np.empty((P, runs))
    )
    for i, (noise, rng) in enumerate(zip(noises, rngs, strict=True)):
        rng.standard_normal(out=draws.normals[i])
        if not noise.gaussian:
            rng.standard_gamma(noise.radius, out=draws.radii[i])
        rng.standard_normal(out=draws.W_normals[i])
        rng.standard_gamma((noise.W_dimension - h) / 2, out=draws.W_rest[i])
        rng.standard_gamma(noise.W_radius, out=draws.W_radii[i])
    draws.W_rest[...] *= 2
    return draws


def answers(basis: Basis, noises: Sequence[RecipeNoise], draws: Draws) -> Array:
    """Return the counterfactuals, points × runs × h."""
    gaussian = np.array([noise.gaussian for noise in noises])[:, np.newaxis]
    length = draws.radii / np.where(gaussian, 1.0, _norm(draws.normals))
    length *= np.array([[noise.scale] for noise in noises])
    weights = draws.normals * length[..., np.newaxis]
    weights *= np.stack([noise.gain for noise in noises])[:, np.newaxis]
    weights += np.stack([noise.centre for noise in noises])[:, np.newaxis]

    W_length = draws.W_radii / np.sqrt(np.einsum("prh,prh->pr", draws.W_normals, draws.W_normals) + draws.W_rest)
    W_length *= np.array([[noise.W_scale] for noise in noises]) * _norm(weights)
    paths = weights @ basis.Z
    paths += draws.W_normals * W_length[..., np.newaxis]
    return np.asarray(paths)


def simulate(data: Dataset, points: Sequence[Point], runs: int, rngs: Sequence[np.random.Generator]) -> Array:
    """Return the RMSE of every run, points × runs."""
    basis = basis_of(data)
    noises = [noise_of(point, basis) for point in points]
    errors = []
    for start in range(0, runs, _AT_ONCE):
        draws = draw(noises, basis.Z.shape[1], min(_AT_ONCE, runs - start), rngs)
        errors.append(data.rmse(answers(basis, noises, draws)))
    return np.concatenate(errors, axis=1)


def _norm(vectors: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("prn,prn->pr", vectors, vectors)))


_CLOSE = 1e-9
_CHECK_EVERY = 20


def onto_balls(points: Array) -> Array:
    """Project each row onto {||f||_1 <= 1}.

    Examples
    --------
    >>> onto_balls(np.array([[2.0, -2.0, 0.1], [0.1, 0.2, 0.3]])).tolist()
    [[0.5, -0.5, 0.0], [0.1, 0.2, 0.3]]
    """
    size = np.abs(points)
    ordered = -np.sort(-size, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, points.shape[1] + 1)
    kept = np.count_nonzero(ordered > excess, axis=1)
    threshold = np.maximum(excess[np.arange(len(points)), kept - 1], 0.0)
    return np.asarray(np.copysign(np.maximum(size - threshold[:, np.newaxis], 0.0), points))


def minimise_over_ball(X: Array, y: Array, nu: float, b: Array) -> Array:
    """Minimise ``||y - X'f||^2 + (nu/2) ||f||^2 + b'f`` over {||f||_1 <= 1} for every row of b.

    Accelerated projected gradient, as in :mod:`dpsc.custodian.weights.minimiser`, without its certificate: a row is
    done when a whole step moves it by less than 1e-9, which leaves it within 1e-9 times L / nu of the minimiser.
    """
    hessian = 2 * X @ X.T + nu * np.eye(len(X))
    linear = b - 2 * X @ y
    L = float(np.linalg.eigvalsh(hessian)[-1])
    root = math.sqrt(nu / L)
    momentum = (1 - root) / (1 + root)

    answer = np.zeros_like(b)
    open_, f = np.arange(len(b)), onto_balls(-linear / L)
    ahead, offset = f, linear / L
    step = np.eye(len(X)) - hessian / L
    for iteration in range(1, 4 * math.ceil(math.log(1 / _CLOSE) / root) + _CHECK_EVERY):
        following = onto_balls(ahead @ step - offset)
        moved = following - f
        ahead, f = following + momentum * moved, following
        if iteration % _CHECK_EVERY == 0:
            residual = onto_balls(f @ step - offset) - f
            done = np.abs(residual).max(axis=1) < _CLOSE
            answer[open_[done]] = f[done]
            keep = ~done
            open_, f, ahead, offset = open_[keep], f[keep], ahead[keep], offset[keep]
            if not len(open_):
                break
    answer[open_] = f
    return answer


MOST_GRAM_RUNS = 50  # of a sweep: its estimate takes longer


def simulate_ours(data: Dataset, point: Point, runs: int, rng: np.random.Generator) -> Array:
    """Return the RMSE of every run of ours."""
    simulator = {"out": output, "obj": objective, "gram": gram_release}[point.method]
    return data.rmse(simulator(data, point, runs, rng))


def panel_of(data: Dataset) -> Panel:
    """Return the data as a panel with the bounds that the paper's theorems assume."""
    return Panel.from_arrays(data.donors, data.target, treatment_time=data.T0, bounds=(-1, 1))


def output(data: Dataset, point: Point, runs: int, rng: np.random.Generator) -> Array:
    """Simulate :class:`dpsc.OutputPerturbation`: noisy weights, projected onto the l1 ball, then a noisy answer."""
    algorithm = OutputPerturbation(
        epsilon=point.epsilon, delta=point.delta, split=_split(point), lambda_=point.lambda_, seed=0
    )
    scale = algorithm.fit(panel_of(data)).parameters["weight_scale"]
    f = ridge_weights(data.X, data.y, point.lambda_) + scale * _noise(point, (runs, point.n), rng)
    _, for_answer = divide(point.epsilon, point.delta, _split(point))
    return _project(data, onto_balls(f), point, for_answer, rng)


def objective(data: Dataset, point: Point, runs: int, rng: np.random.Generator) -> Array:
    """Simulate :class:`dpsc.ObjectivePerturbation`: minimisers of noisy objectives over the l1 ball, a noisy answer."""
    algorithm = ObjectivePerturbation(
        epsilon=point.epsilon, delta=point.delta, split=_split(point), lambda_=point.lambda_, seed=0
    )
    used = algorithm.fit(panel_of(data)).parameters
    b = used["beta"] * _noise(point, (runs, point.n), rng)
    f = minimise_over_ball(data.X, data.y, used["nu"], b)
    f += used["solver_scale"] * _noise(point, f.shape, rng)
    for_answer = single((1 - _split(point)) * point.epsilon, (1 - _split(point)) * point.delta)
    return _project(data, onto_balls(f), point, for_answer, rng)


def gram_release(data: Dataset, point: Point, runs: int, rng: np.random.Generator) -> Array:
    """Simulate :class:`dpsc.GramRelease` and the default estimate from it."""
    release = Rehearsal(point.epsilon, point.delta)
    with one_thread(), np.errstate(all="ignore"):
        return np.array([release.estimate(data.donors, len(data.donors), data.y, rng).forecast for _ in range(runs)])


def _split(point: Point) -> float:
    return point.epsilon1 / point.epsilon


def _noise(point: Point, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Draw independent noise of scale one: Laplace for delta = 0, Gaussian otherwise."""
    return rng.laplace(size=shape) if point.delta == 0 else rng.standard_normal(shape)


def _project(data: Dataset, f: Array, point: Point, budget: StepBudget, rng: np.random.Generator) -> Array:
    """Answer with released weights; the scale of the noise is proportional to the largest weight."""
    h = data.Z.shape[1]
    scale = discrete_scale(sensitivity.answer(1.0, np.full(h, 2.0)), budget)
    largest = np.abs(f).max(axis=1, keepdims=True)
    return np.asarray(f @ data.Z + scale * largest * _noise(point, (len(f), h), rng))
