"""The public covariance kernel that whitens donors before the Gram release.

K[s, t] = (1 - nu) phi^|s - t| + nu 1{s = t}: a persistent series plus white noise. It is chosen before the release
from public knowledge of how smooth such series are, never from the donors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpsc.checks import shown
from dpsc.errors import ParameterError
from dpsc.types import Array

Smoothness = Literal["high", "mild", "none"]


@dataclass(frozen=True)
class Kernel:
    """phi is the persistence from one period to the next, nu the share of variance without persistence.

    Examples
    --------
    >>> Kernel.named("high")
    Kernel(phi=0.95, nu=0.2)
    """

    phi: float
    nu: float

    @classmethod
    def named(cls, smoothness: Smoothness) -> Kernel:
        """Return the kernel for the smoothness "high", "mild" or "none"."""
        kernels = {"high": cls(0.95, 0.2), "mild": cls(0.9, 0.5), "none": cls(0.0, 1.0)}
        if not isinstance(smoothness, str) or smoothness not in kernels:
            raise ParameterError(f"smoothness must be 'high', 'mild' or 'none', not {shown(smoothness)}.")
        return kernels[smoothness]

    def matrix(self, T: int) -> Array:
        """Return K for T periods."""
        return (1 - self.nu) * correlation(self.phi, T) + self.nu * np.eye(T)

    def root(self, T: int) -> Array:
        """Return the lower triangular L with K = L L'. Whitening multiplies by its inverse A."""
        return np.linalg.cholesky(self.matrix(T))

    def whiten_in_place(self, columns: Array, scratch: Array | None = None) -> None:
        """Multiply each column of a T × rows array by A = L^-1, by the Kalman recursion of the kernel.

        The series u is a hidden AR(1) plus white noise; A turns it into standardised one-step forecast errors. With f_t
        the forecast and g_t the filter's gain, the error is ``u_t - f_t`` and the next forecast ``f_{t+1} =
        (phi - g_t) f_t + g_t u_t``. This takes a few operations per cell instead of T. It goes period by period, so
        that the rows in use stay in the cache, and the result for a column does not depend on the columns beside it.
        ``scratch`` is working memory of two such rows.
        """
        if self.nu == 1:
            return
        forecast, part = np.empty((2, columns.shape[1])) if scratch is None else scratch
        forecast.fill(0.0)
        variance = 1 - self.nu  # of the hidden series, given the periods before
        for u in columns:
            spread = variance + self.nu
            gain = self.phi * variance / spread
            np.multiply(u, gain, out=part)
            np.subtract(u, forecast, out=u)
            np.multiply(u, 1 / math.sqrt(spread), out=u)
            np.multiply(forecast, self.phi - gain, out=forecast)
            np.add(forecast, part, out=forecast)
            variance = self.phi**2 * variance * self.nu / spread + (1 - self.phi**2) * (1 - self.nu)


def correlation(phi: float, T: int) -> Array:
    """Return the T × T matrix phi^|s - t|."""
    lag = np.abs(np.subtract.outer(np.arange(T), np.arange(T)))
    return np.asarray(np.power(phi, lag))
