"""How large the error of a forecast may be, from the release, the public target and the known law of the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import stdtrit

from dpsc.answers.base import IntervalKind, IntervalPart
from dpsc.gram.contents import ReleasedMatrix
from dpsc.types import Array

_PRIOR_WEIGHT = 5.0  # the model's own variance counts as much as this many forecast origins


def forecast_weights(D: Array, T0: int) -> Array:
    """Return D21 D11^-1: each later period as a combination of the first T0."""
    return np.asarray(cho_solve(cho_factor(D[:T0, :T0], lower=True), D[:T0, T0:]).T)


def one_period_ahead(D: Array, y: Array) -> Array:
    """Return the forecast of each value from the values before it; NaN for the first, which has none."""
    L = np.linalg.cholesky(D)
    innovations = np.diag(L) * solve_triangular(L, y, lower=True)
    return np.asarray(np.append(np.nan, (y - innovations)[1:]))


@dataclass(frozen=True, eq=False)
class ForecastUncertainty:
    """Two sources of error of a counterfactual, as covariances over its periods; computed when first needed.

    Parameters
    ----------
    release : ReleasedMatrix
    moments : T × T
        The second moments that the forecast used.
    y : array of length T0
        The target before the intervention, less the reference path.
    simulate : bool
        Whether to simulate what the noise of the release does; only for the default estimator.
    """

    release: ReleasedMatrix
    moments: Array
    y: Array
    simulate: bool
    kind: ClassVar[IntervalKind] = "effect"

    @cached_property
    def model(self) -> Array:
        """How targets differ from what donors have in common: the conditional covariance, on the target's own scale."""
        D, T0 = self.moments, len(self.y)
        scale = float(self.y @ np.linalg.solve(D[:T0, :T0], self.y)) / T0
        return np.asarray(scale * (D[T0:, T0:] - forecast_weights(D, T0) @ D[:T0, T0:]))

    @cached_property
    def privacy(self) -> Array:
        """Error from the noise of the release: mean squared distance of simulated forecasts to that of their truth."""
        T, T0 = len(self.moments), len(self.y)
        if not self.simulate:
            return np.zeros((T - T0, T - T0))
        truth, *others = (forecast_weights(D[:T, :T], T0) @ self.y for D in self.release.replicates)
        errors = np.array(others) - truth
        return np.asarray(errors.T @ errors / len(errors))

    @cached_property
    def calibration(self) -> float:
        """The factor on both variances, from forecasts inside the pre-period; closer to 1 if there are few of them.

        It is the mean squared error of these forecasts, each divided by the variance that model and privacy give it.
        """
        T, T0 = len(self.moments), len(self.y)
        own = ForwardForecasts.of(self.moments[:T0, :T0], self.y, T - T0)
        variance = own.variance
        if self.simulate:
            truth, *others = (
                ForwardForecasts.of(D[:T0, :T0], self.y, T - T0).forecast for D in self.release.replicates
            )
            variance = variance + np.mean((np.array(others) - truth) ** 2, axis=0)
        ratio = float(np.mean(own.squared_error / variance)) if own.origins else 1.0
        return (_PRIOR_WEIGHT + own.origins * ratio) / (_PRIOR_WEIGHT + own.origins)

    def half_widths(self, level: float, part: IntervalPart) -> Array:
        """Return the half-width of each period's interval."""
        return np.asarray(self._quantile(level) * np.sqrt(np.diag(self._covariance(part))))

    def half_width_of(self, combination: Array, level: float, part: IntervalPart) -> float:
        """Return the half-width of the interval of a linear combination of the periods."""
        return self._quantile(level) * math.sqrt(float(combination @ self._covariance(part) @ combination))

    def _covariance(self, part: IntervalPart) -> Array:
        parts = {"model": self.model, "privacy": self.privacy}
        return self.calibration * (parts[part] if part in parts else self.model + self.privacy)

    def _quantile(self, level: float) -> float:
        return float(stdtrit(max(1, len(self.y) - 1), (1 + level) / 2))  # of Student's t


@dataclass(frozen=True, eq=False)
class ForwardForecasts:
    """Forecasts of up to ``horizon`` periods from every origin in the second half of the pre-period, in one row."""

    forecast: Array
    variance: Array
    squared_error: Array
    squared_error_last_value: Array
    origins: int

    @classmethod
    def of(cls, D: Array, y: Array, horizon: int) -> ForwardForecasts:
        """Forecast y from its own beginning with second moments D.

        With L the Cholesky factor of D and z = L^-1 y, the forecast of y_t from the first k values is sum_{j<k} L_tj
        z_j and its variance, in the model, the mean of z_j^2 over j < k times sum_{k<=j<=t} L_tj^2.
        """
        T0 = len(y)
        L = np.linalg.cholesky(D)
        z = solve_triangular(L, y, lower=True)
        smallest = 1e-12 * float(np.mean(y**2)) + 1e-300
        forecast, variance, actual, last = [], [], [], []
        origins = range(max(2, T0 // 2), T0)
        for k in origins:
            block = slice(k, min(k + horizon, T0))
            forecast.append(L[block, :k] @ z[:k])
            variance.append(np.mean(z[:k] ** 2) * (L[block, k:] ** 2).sum(axis=1))
            actual.append(y[block])
            last.append(np.full(len(y[block]), y[k - 1]))
        parts = [np.concatenate(rows) if rows else np.zeros(0) for rows in (forecast, variance, actual, last)]
        return cls(
            forecast=parts[0],
            variance=np.maximum(parts[1], smallest),
            squared_error=(parts[2] - parts[0]) ** 2,
            squared_error_last_value=(parts[2] - parts[3]) ** 2,
            origins=len(origins),
        )

    def rmse(self) -> tuple[float, float]:
        """Return the error of these forecasts, and that of the last value."""
        if not self.origins:
            return 0.0, math.inf
        return math.sqrt(float(self.squared_error.mean())), math.sqrt(float(self.squared_error_last_value.mean()))
