"""The exact privacy loss of objective perturbation, run by run, through the bijection between noise and minimiser."""

from __future__ import annotations

import numpy as np

from dpsc.paper.ball import minimise_over_ball
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
