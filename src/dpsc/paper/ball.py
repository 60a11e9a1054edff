"""For experiments: project many points onto the l1 ball, and minimise many perturbed ridge objectives over it."""

from __future__ import annotations

import math

import numpy as np

from dpsc.types import Array

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

    Accelerated projected gradient, as in :mod:`dpsc.weights.minimiser`, without its certificate: a row is done
    when a whole step moves it by less than 1e-9, which leaves it within 1e-9 times L / nu of the minimiser.
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
