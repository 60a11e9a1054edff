"""DPSC_out and DPSC_obj with the noise of the ``published`` and the ``printed`` recipe, all runs and points at once.

Both algorithms draw rotation-invariant noise in R^n, so it may be drawn in the basis of the left singular vectors of X,
where ridge regression is diagonal: one decomposition serves every lambda, epsilon and run. Of the n × h matrix W only
W'f counts. It is ||f|| times h coordinates of the joint draw, so h normals and one chi-square replace n h numbers.

The ``published`` recipe is what made the paper's figures. It is NOT PRIVATE: its radii are too short, its Gaussian has
the wrong variance and its curvature is missing. It runs here, on generated data, and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpsc.custodian.weights.printed import default_c, divide_budget, printed_beta
from dpsc.evidence.paper.points import Dataset, Point
from dpsc.privacy import sensitivity
from dpsc.types import Array

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
