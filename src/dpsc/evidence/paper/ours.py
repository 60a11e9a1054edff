"""Our three algorithms on the paper's data, many runs at once.

The two algorithms with weights run once to learn their noise scales, and the Gram release is rehearsed; the many runs
draw noise of the same laws in floating point, from a seed. This shows the size of the errors; like every simulation, it
is not private. Tests compare the errors with those of the algorithms themselves.
"""

from __future__ import annotations

import math

import numpy as np

from dpsc.analyst.mock_release import Rehearsal
from dpsc.custodian.donors.panel import Panel
from dpsc.custodian.weights.classic import ridge_weights
from dpsc.custodian.weights.objective import ObjectivePerturbation
from dpsc.custodian.weights.output import OutputPerturbation
from dpsc.evidence.paper.points import Dataset, Point
from dpsc.privacy import sensitivity
from dpsc.privacy.additive import StepBudget, discrete_scale
from dpsc.privacy.division import divide, single
from dpsc.types import Array, one_thread

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


def simulate(data: Dataset, point: Point, runs: int, rng: np.random.Generator) -> Array:
    """Return the RMSE of every run."""
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
