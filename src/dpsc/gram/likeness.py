"""How a target may be like its donors, from its own history alone: assumed before any donor is seen.

What units share builds up over time, as a random walk, or comes and goes, as white noise, or is half of each. What is a
unit's own comes and goes. So a history that keeps its direction is likely to be shared; one that jumps to and fro may
be either, but an average of many units that does is more likely to share its jumps.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.fft import dst

from dpsc.types import Array

# Before the target is seen: chosen on the panels to design on and on factor models (docs/choosing-epsilon.md).
USUAL = 0.35  # signal to noise
_SPREAD = 0.7  # of its logarithm
_FLEETING = (0.0, 0.5, 1.0)  # equally likely
_LOG_RATIOS = np.linspace(math.log(0.02), math.log(50.0), 201)


class Likeness(NamedTuple):
    """What is assumed about units.

    Attributes
    ----------
    signal_to_noise : float
        The standard deviation of what a unit shares over that of what is its own.
    fleeting : float
        The share of what units share, in variance, that comes and goes.
    """

    signal_to_noise: float
    fleeting: float


def likely(history: Array | None, T: int, averages: int, count: int, signal_to_noise: float | None) -> list[Likeness]:
    """Return assumptions that are likely after a history: equal steps of probability, from small to large ratios.

    Parameters
    ----------
    history : array or None
        Of the target; without it, all that is known is what is usual.
    T : int
        The number of periods over which variances are meant.
    averages : int
        How many units the target is the average of: the variance of what is their own is divided by it.
    count : int
        How many assumptions.
    signal_to_noise : float or None
        The ratio, if it is said.
    """
    log_ratios = _LOG_RATIOS if signal_to_noise is None else np.array([math.log(signal_to_noise)])
    log_ratio, fleeting = (each.ravel() for each in np.meshgrid(log_ratios, _FLEETING, indexing="ij"))
    log_weights = -0.5 * ((log_ratio - math.log(USUAL)) / _SPREAD) ** 2
    if history is not None:
        log_weights = log_weights + _log_evidence(np.diff(history), T, np.exp(-2 * log_ratio) / averages, fleeting)
    below = np.cumsum(np.exp(log_weights - log_weights.max()))
    places = np.searchsorted(below, below[-1] * (np.arange(count) + 0.5) / count)
    return [Likeness(math.exp(log_ratio[i]), float(fleeting[i])) for i in places]


def walk_step(T: int) -> float:
    """Return the variance of a random walk's steps if its variance over T periods is one on average."""
    return 6 * T / (T**2 - 1)


def _log_evidence(changes: Array, T: int, own: Array, fleeting: Array) -> Array:
    """Return the log density of a target's changes, up to a constant, whatever its size, for each own variance.

    Sines diagonalise the covariance of changes: one for those of a random walk, ``2 - 2 cos`` for those of white noise.
    """
    N = len(changes)
    squares = dst(changes / np.abs(changes).max(), type=1, norm="ortho") ** 2
    of_white = 2 - 2 * np.cos(np.pi * np.arange(1, N + 1) / (N + 1))
    variances = walk_step(T) * (1 - fleeting[:, np.newaxis]) + np.outer(fleeting + own, of_white)
    return np.asarray(-0.5 * np.log(variances).sum(axis=1) - N / 2 * np.log((squares / variances).sum(axis=1)))
