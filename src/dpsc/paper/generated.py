"""The paper's generated data: as its text says (``printed``) and as its published code draws them (``published``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import truncnorm

from dpsc.types import Array

Generator = Literal["printed", "published"]
H = 3  # periods to predict, in every experiment of the paper


@dataclass(frozen=True, eq=False)
class Dataset:
    """Donors and a target without an intervention, scaled to [-1, 1], and the signal beneath their noise.

    Attributes
    ----------
    donors, donor_signal : n × T
    target, signal : length T
    T0 : int
        Periods before the intervention.
    sigma : float
        The standard deviation of the noise on each entry.
    """

    donors: Array
    donor_signal: Array
    target: Array
    signal: Array
    T0: int
    sigma: float

    @property
    def X(self) -> Array:
        """Donors before the intervention."""
        return self.donors[:, : self.T0]

    @property
    def Z(self) -> Array:
        """Donors after it."""
        return self.donors[:, self.T0 :]

    @property
    def y(self) -> Array:
        """The target before the intervention."""
        return self.target[: self.T0]

    @property
    def truth(self) -> Array:
        """What a perfect counterfactual would be: the target's signal after the intervention."""
        return self.signal[self.T0 :]

    def rmse(self, answers: Array) -> Array:
        """Return the root mean squared error of each answer (the last axis is time)."""
        error: Array = answers - self.truth
        return np.asarray(np.sqrt(np.einsum("...t,...t->...", error, error) / error.shape[-1]))


def generate(generator: Generator, n: int, T0: int, rng: np.random.Generator, h: int = H) -> Dataset:
    """Draw one data set."""
    return printed(n, T0, h, rng) if generator == "printed" else published(n, T0, h, rng)


def printed(n: int, T0: int, h: int, rng: np.random.Generator) -> Dataset:
    """Draw lines through zero with slopes N(4, 1) on [3, 5] and noise N(0, 0.1) on [-1, 1], as the text says.

    The text does not say how data up to 5 T come to lie in [-1, 1], which its theorems need; we divide by 5 T + 1, the
    largest value that can occur, a public number.
    """
    T = T0 + h
    slopes = truncnorm.rvs(-1, 1, loc=4, size=n + 1, random_state=rng)
    sd = np.sqrt(0.1)
    noise = truncnorm(-1 / sd, 1 / sd, scale=sd)
    signal = np.outer(slopes, np.arange(1, T + 1))
    paths = signal + noise.rvs(size=signal.shape, random_state=rng)
    return _dataset(paths / (5 * T + 1), signal / (5 * T + 1), T0, float(noise.std()) / (5 * T + 1))


def published(n: int, T0: int, h: int, rng: np.random.Generator) -> Dataset:
    """Draw what the authors' code draws.

    Its truncated normals take the bounds in standard deviations, so slopes are in [7, 9] and noise in [-0.1, 0.1];
    there is an intercept; and the signal is centred and scaled by its own extremes (which a private method must not do)
    before noise is added, so entries reach 1.09.
    """
    T = T0 + h
    slopes = truncnorm.rvs(3, 5, loc=4, size=n + 1, random_state=rng)
    intercepts = rng.uniform(-1, 1, size=n + 1)
    signal = intercepts[:, np.newaxis] + np.outer(slopes, np.arange(1, T + 1))
    low, high = signal.min(), signal.max()
    signal = (signal - (low + high) / 2) / ((high - low) / 2)
    noise = truncnorm(-1, 1, scale=0.1)
    return _dataset(signal + noise.rvs(size=signal.shape, random_state=rng), signal, T0, float(noise.std()))


def _dataset(paths: Array, signal: Array, T0: int, sigma: float) -> Dataset:
    """Use the first path as the target."""
    return Dataset(paths[1:], signal[1:], paths[0], signal[0], T0, sigma)
