"""The high-dimensional Laplace distribution, density proportional to exp(-||v|| / a) on R^d (continuous, float)."""

from __future__ import annotations

import numpy as np

from dpsc.checks import finite_number, whole_number
from dpsc.privacy.source import Source
from dpsc.types import Array


def sample(dimension: int, scale: float, source: Source, size: tuple[int, ...] = ()) -> Array:
    """Draw vectors with density proportional to exp(-||v||_2 / scale), as an array ``size + (dimension,)``.

    In polar coordinates the density factors into a uniform direction and a radius with density proportional to
    r^(d-1) exp(-r / scale), which is Gamma(d, scale): its mean is d * scale. (A radius with density
    exp(-r / scale), mean scale, is another law: for d >= 2 its density diverges at the origin and no epsilon holds.)

    Privacy: a function with l2 sensitivity D under replace-one, plus one draw with scale D / epsilon, is
    (epsilon, 0)-differentially private over the reals, because ||v|| - ||v'|| <= ||v - v'|| <= D. In floating point
    the low bits of the result may leak more. Drawing the coordinates independently would break it.
    """
    dimension = whole_number("dimension", dimension, at_least=1)
    scale = finite_number("scale", scale, above=0)
    direction = source.normals((*size, dimension))
    length = np.linalg.norm(direction, axis=-1, keepdims=True)
    radius = scale * source.gammas(dimension, size)
    return np.asarray(direction * (radius[..., np.newaxis] / length))
