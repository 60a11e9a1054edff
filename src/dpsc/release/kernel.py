"""The public covariance kernel that whitens donors before the Gram release.

K[s, t] = (1 - nu) phi^|s - t| + nu 1{s = t}: a persistent series plus white noise. It is chosen before the release
from public knowledge of how smooth such series are, never from the donors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
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

    def whiten_in_place(self, columns: Array) -> None:
        """Multiply each column of a T × rows array by A = L^-1, by the Kalman recursion of the kernel.

        The series u is a hidden AR(1) plus white noise; A turns it into standardised one-step forecast errors. With f_t
        the forecast and g_t the filter's gain, the error is ``u_t - f_t`` and the next forecast ``f_{t+1} =
        (phi - g_t) f_t + g_t u_t``. This takes a few operations per cell instead of T. It goes period by period, so
        that the rows in use stay in the cache, and the result for a column does not depend on the columns beside it.
        """
        forecast, part = np.zeros((2, columns.shape[1]))
        for u, (gain, spread) in zip(columns, self._filter(), strict=False):
            np.multiply(u, gain, out=part)
            np.subtract(u, forecast, out=u)
            np.multiply(u, 1 / math.sqrt(spread), out=u)
            np.multiply(forecast, self.phi - gain, out=forecast)
            np.add(forecast, part, out=forecast)

    def whiten_movement_in_place(self, columns: Array, scratch: Array | None = None) -> None:
        """Whiten each column of a T × rows array and take its level off, in the same recursion.

        With z the whitened column and c the whitened constant one (the same for all columns), the level's estimate from
        the periods before t is ``level = sum_{j<t} c_j z_j / q``, ``q = sum_{j<t} c_j^2``; row t becomes
        ``(z_t - c_t level) / sqrt(1 + c_t^2 / q)``, for t = 1..T-1. These are the recursive residuals of the regression
        of z on c: an orthonormal image of what is left of z once c is projected out. Adding a constant to a column
        changes none of them. Row 0 has nothing to be compared with and becomes zero. ``scratch`` is working memory of
        three such rows.
        """
        forecast, part, level = np.empty((3, columns.shape[1])) if scratch is None else scratch
        forecast.fill(0.0)
        of_one, q = 0.0, 0.0  # the forecast of the constant one, and the sum of its squared standardised errors
        for u, (gain, spread) in zip(columns, self._filter(), strict=False):
            np.multiply(u, gain, out=part)
            np.subtract(u, forecast, out=u)
            np.multiply(forecast, self.phi - gain, out=forecast)
            np.add(forecast, part, out=forecast)
            left = 1 - of_one  # of the constant one
            if q == 0:
                np.multiply(u, 1 / left, out=level)
                u.fill(0.0)
            else:
                np.multiply(level, left, out=part)
                np.subtract(u, part, out=u)
                np.multiply(u, left / (spread * q + left**2), out=part)
                np.add(level, part, out=level)
                np.multiply(u, 1 / math.sqrt(spread + left**2 / q), out=u)
            of_one = (self.phi - gain) * of_one + gain
            q += left**2 / spread

    def _filter(self) -> Iterator[tuple[float, float]]:
        """Yield the gain of the Kalman filter and the variance of its one-step forecast error, period by period."""
        variance = 1 - self.nu  # of the hidden series, given the periods before
        while True:
            spread = variance + self.nu
            gain = self.phi * variance / spread
            yield gain, spread
            variance = self.phi**2 * variance * self.nu / spread + (1 - self.phi**2) * (1 - self.nu)


def correlation(phi: float, T: int) -> Array:
    """Return the T × T matrix phi^|s - t|."""
    lag = np.abs(np.subtract.outer(np.arange(T), np.arange(T)))
    return np.asarray(np.power(phi, lag))
