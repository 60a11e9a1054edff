"""The only place where randomness comes from.

``system()`` draws from the operating system's cryptographic generator and is the default everywhere. ``seeded(seed)``
is reproducible, so anyone who knows the seed can subtract its noise: what it makes is not private.
"""

from __future__ import annotations

import os
import warnings
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from dpsc.checks import whole_number
from dpsc.errors import DpscWarning
from dpsc.types import Array


class Source(Protocol):
    """Where floating-point noise comes from."""

    @property
    def private(self) -> bool:
        """Whether noise from here may carry a guarantee."""
        ...

    def normals(self, shape: tuple[int, ...]) -> Array:
        """Draw standard normal variables."""
        ...

    def gammas(self, shape_parameter: float, shape: tuple[int, ...]) -> Array:
        """Draw Gamma variables with scale 1; the shape parameter must be whole for private noise."""
        ...


class _System:
    """The operating system's entropy, turned into normals and gammas by exact transformations of uniforms."""

    private = True

    def normals(self, shape: tuple[int, ...]) -> Array:
        return np.asarray(ndtri(self._uniforms(shape)))

    def gammas(self, shape_parameter: float, shape: tuple[int, ...]) -> Array:
        count, terms = int(np.prod(shape)), whole_number("shape_parameter", shape_parameter, at_least=1)
        total = np.empty(count)
        for i in range(count):  # a sum of exponentials, one draw at a time to save memory
            total[i] = -np.log(self._uniforms((terms,))).sum()
        return total.reshape(shape)

    def _uniforms(self, shape: tuple[int, ...]) -> Array:
        """Draw from the 2^52 midpoints of (0, 1): never 0 or 1, symmetric about one half."""
        bits = np.frombuffer(os.urandom(8 * int(np.prod(shape))), dtype=np.uint64) >> np.uint64(12)
        return ((bits + 0.5) * 2.0**-52).reshape(shape)


class _Seeded:
    """A reproducible generator for experiments. Not private."""

    private = False

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def normals(self, shape: tuple[int, ...]) -> Array:
        return self.generator.standard_normal(shape)

    def gammas(self, shape_parameter: float, shape: tuple[int, ...]) -> Array:
        return self.generator.standard_gamma(shape_parameter, shape)


def system() -> Source:
    """Return the source of private noise."""
    return _System()


def seeded(seed: int) -> Source:
    """Return a source for experiments."""
    return _Seeded(whole_number("seed", seed, at_least=0))


def choose(seed: int | None) -> Source:
    """Return the operating system's entropy unless a seed was given."""
    return system() if seed is None else seeded(seed)


def warn_of_seed(seed: int | None) -> None:
    """Warn whoever calls our caller that what it makes is not private, if its noise comes from a seed."""
    if seed is not None:
        warnings.warn(
            f"seed={seed} makes noise that anyone can compute and take away: the release is NOT PRIVATE and carries no "
            "guarantee. Leave the seed out for data that need protection.",
            DpscWarning,
            stacklevel=4,
        )
