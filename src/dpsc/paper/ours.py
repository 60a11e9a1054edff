"""Our three algorithms on the paper's data, many runs at once.

The two algorithms with weights run once to learn their noise scales, and the Gram release is rehearsed; the many runs
draw noise of the same laws in floating point, from a seed. This shows the size of the errors; like every simulation, it
is not private. Tests compare the errors with those of the algorithms themselves.
"""

from __future__ import annotations

import numpy as np

from dpsc.blas import one_thread
from dpsc.data.panel import Panel
from dpsc.gram.rehearsal import Rehearsal
from dpsc.paper.ball import minimise_over_ball, onto_balls
from dpsc.paper.generated import Dataset
from dpsc.paper.points import Point
from dpsc.privacy import sensitivity
from dpsc.privacy.additive import StepBudget, discrete_scale
from dpsc.privacy.division import divide, single
from dpsc.types import Array
from dpsc.weights.classic import ridge_weights
from dpsc.weights.objective import ObjectivePerturbation
from dpsc.weights.output import OutputPerturbation

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
    _, for_answer = divide(point.epsilon, point.delta, _split(point), "exact")
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
    for_answer = single((1 - _split(point)) * point.epsilon, (1 - _split(point)) * point.delta, "exact")
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
