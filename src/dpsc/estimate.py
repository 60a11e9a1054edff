"""The analyst's side: a release and a public target become a counterfactual. Pure post-processing, free of charge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.stats import t as student

from dpsc import checks, denoise
from dpsc import times as periods_of
from dpsc.bounds import Array
from dpsc.denoise import Denoised
from dpsc.errors import ParameterError, ReleaseError
from dpsc.frames import to_floats
from dpsc.release import Release
from dpsc.result import Part, PrivateResult, UnprovenResult

NO_SIGNAL = "no direction common to the donors rises above the noise: the donors say nothing about this target"
NO_BETTER = "before the intervention, forecasts from the donors were no better than the last value"


@dataclass(frozen=True, eq=False)
class ForecastUncertainty:
    """Two sources of error of a counterfactual, as covariances over its periods, and how much to widen them.

    ``model``: how the target may differ from what the donors have in common. ``privacy``: how the noise of the release
    moves the forecast. ``inflation``: how much worse forecasts inside the pre-period were than the model says.
    """

    model: Array
    privacy: Array
    inflation: float
    degrees_of_freedom: int

    def half_widths(self, level: float, part: Part) -> Array:
        """Return the half-width of each period's interval."""
        variances = np.diag(self._covariance(part))
        return np.asarray(self._quantile(level) * np.sqrt(variances))

    def half_width_of(self, combination: Array, level: float, part: Part) -> float:
        """Return the half-width of the interval of a linear combination of the periods."""
        return self._quantile(level) * math.sqrt(float(combination @ self._covariance(part) @ combination))

    def _covariance(self, part: Part) -> Array:
        if part == "privacy":
            return self.privacy
        return self.inflation * (self.model if part == "model" else self.model + self.privacy)

    def _quantile(self, level: float) -> float:
        return float(student.ppf((1 + level) / 2, self.degrees_of_freedom))


def estimate(
    release: Release,
    target: Any,
    treatment_time: Any,
    *,
    level: float = 0.95,
    lambda_: float | None = None,
    rank: int | None = None,
    threshold: float | None = None,
) -> PrivateResult | UnprovenResult:
    """Return the counterfactual of a target, with intervals, from a release.

    Parameters
    ----------
    release : Release
    target : Series or array
        The treated unit over the release's periods (a Series is matched by period). Complete before the
        intervention; what is missing after it has no gap.
    treatment_time
        The first treated period.
    level : float
        The level of the intervals in the summary and the plots.
    lambda_, rank, threshold : optional
        Instead of the default estimator: plain ridge with the paper's lambda on the scale of the release (donors of
        whitened length one), or robust synthetic control, which keeps ``rank`` directions or those with singular
        values above ``threshold``.
    """
    if sum(option is not None for option in (lambda_, rank, threshold)) > 1:
        raise ParameterError("give at most one of lambda_, rank and threshold.")
    series, T0 = _target(release, target, treatment_time)
    moments, method = _moments(release, lambda_, rank, threshold)
    default = moments is release.denoised
    return _forecast(release, series, T0, moments, method, checks.share("level", level), default)


def _moments(
    release: Release, lambda_: float | None, rank: int | None, threshold: float | None
) -> tuple[Denoised, str]:
    arguments = (release.gram, release.noise_scale, release.kernel)
    if lambda_ is not None:
        ridge = checks.finite_number("lambda_", lambda_, above=0) / 2
        return denoise.plain(*arguments, ridge=ridge), f"ridge, lambda_ = {lambda_:g}"
    if rank is not None:
        return denoise.truncated(*arguments, rank=checks.whole_number("rank", rank, at_least=1)), f"robust, rank {rank}"
    if threshold is not None:
        checks.finite_number("threshold", threshold, at_least=0)
        return denoise.truncated(*arguments, threshold=threshold), f"robust, threshold {threshold:g}"
    return release.denoised, "shrunken factors"


def _forecast(
    release: Release,
    series: pd.Series[float],
    T0: int,
    moments: Denoised,
    method: str,
    level: float,
    default: bool,
) -> PrivateResult | UnprovenResult:
    """Predict the periods from T0 on from those before, and say how sure that is. ``series`` may end early (placebo)."""
    T = len(series)
    reference = np.zeros(T) if release.reference is None else release.reference[:T]
    y = series.to_numpy(dtype=np.float64)[:T0] - reference[:T0]
    D = moments.moments[:T, :T]

    weights = _weights(D, T0)
    path = weights @ y + reference[T0:]
    fitted = moments.signal[:T0, :T0] @ np.linalg.solve(D[:T0, :T0], y) + reference[:T0]

    spread = float(y @ np.linalg.solve(D[:T0, :T0], y)) / T0
    model = spread * (D[T0:, T0:] - weights @ D[:T0, T0:])
    checked = forward_validation(D[:T0, :T0], y, horizon=T - T0)
    privacy = _privacy_covariance(release, y, T0, T) if default else np.zeros_like(model)
    uncertainty = ForecastUncertainty(model, privacy, max(1.0, checked.inflation), max(1, T0 - 1))

    notes = []
    if moments.directions == 0:
        notes.append(NO_SIGNAL)
    if checked.rmse >= checked.rmse_last_value:
        notes.append(NO_BETTER)
    if not default:
        notes.append("intervals of this estimator leave out the noise of the release; the default's include it")

    post = series.index[T0:]
    fields: dict[str, Any] = {
        "target": series,
        "T0": T0,
        "counterfactual": pd.Series(path, index=post, name="counterfactual"),
        "fitted": pd.Series(fitted, index=series.index[:T0], name="fitted"),
        "weights": pd.DataFrame(weights, index=post, columns=series.index[:T0]),
        "algorithm": f"Gram release, {method}",
        "parameters": {
            "n": release.n, "T0": T0, "h": T - T0, "noise_scale": release.noise_scale, "sites": release.sites,
            "phi": release.kernel.phi, "nu": release.kernel.nu, "directions": moments.directions,
            "forward_rmse": checked.rmse, "forward_rmse_last_value": checked.rmse_last_value,
        },
        "uncertainty": uncertainty,
        "level": level,
        "baselines": _baselines(series, T0),
        "notes": tuple(notes),
        "backdate": partial(_backdated, release, series, T0, moments, method, level, default),
    }  # fmt: skip
    if release.guarantee is None:
        return UnprovenResult(**fields, reason=release.no_guarantee)
    return PrivateResult(**fields, guarantee=release.guarantee)


def _backdated(
    release: Release, series: pd.Series[float], T0: int, moments: Denoised, method: str, level: float, default: bool,
    treatment_time: Any | None,
) -> PrivateResult | UnprovenResult:  # fmt: skip
    """Pretend that the intervention came earlier, and forecast the rest of the untreated periods."""
    untreated = series.iloc[:T0]
    if treatment_time is None:
        earlier = max(2, T0 - max(1, min(len(series) - T0, T0 // 3)))
    else:
        earlier = periods_of.first_treated(untreated.index, treatment_time)
    if not 2 <= earlier < T0:
        raise ParameterError(
            "a placebo needs at least 2 periods before its date and 1 between it and the intervention."
        )
    return _forecast(release, untreated, earlier, moments, method, level, default)


def _weights(D: Array, T0: int) -> Array:
    """Return D21 D11^-1: each later period as a combination of the earlier ones."""
    return np.asarray(cho_solve(cho_factor(D[:T0, :T0], lower=True), D[:T0, T0:]).T)


def _privacy_covariance(release: Release, y: Array, T0: int, T: int) -> Array:
    """Return the mean squared distance of forecasts from simulated releases to the forecast from their truth."""
    truth, *simulated = (_weights(D[:T, :T], T0) @ y for D in release.replicates)
    errors = np.array(simulated) - truth
    return np.asarray(errors.T @ errors / len(errors))


@dataclass(frozen=True)
class Validation:
    """How forecasts inside the pre-period did: against the model's own variance, and against the last value."""

    inflation: float
    rmse: float
    rmse_last_value: float


def forward_validation(D: Array, y: Array, horizon: int) -> Validation:
    """Forecast up to ``horizon`` periods from every origin in the second half of the pre-period.

    With L the Cholesky factor of D and z = L^-1 y, the forecast of y_t from the first k values is sum_{j<k} L_tj z_j and
    its variance, in the model, the mean of z_j^2 over j < k times sum_{k<=j<=t} L_tj^2.
    """
    T0 = len(y)
    L = np.linalg.cholesky(D)
    z = solve_triangular(L, y, lower=True)
    standardised, errors, last = [], [], []
    for k in range(max(2, T0 // 2), T0):
        block = slice(k, min(k + horizon, T0))
        error = y[block] - L[block, :k] @ z[:k]
        variance = np.mean(z[:k] ** 2) * (L[block, k:] ** 2).sum(axis=1)
        standardised.append(error**2 / np.maximum(variance, 1e-300))
        errors.append(error**2)
        last.append((y[block] - y[k - 1]) ** 2)
    if not errors:
        return Validation(1.0, 0.0, math.inf)
    return Validation(
        float(np.mean(np.concatenate(standardised))),
        math.sqrt(float(np.mean(np.concatenate(errors)))),
        math.sqrt(float(np.mean(np.concatenate(last)))),
    )


def _target(release: Release, target: Any, treatment_time: Any) -> tuple[pd.Series[float], int]:
    """Match the target to the release's periods and find the first treated one."""
    T0 = periods_of.first_treated(release.times, treatment_time)
    if isinstance(target, pd.Series):
        given = pd.Series(to_floats(target, "target"), index=periods_of.as_index(target.index))
        unknown = given.index.difference(release.times, sort=False)
        if not given.index.is_unique or len(unknown):
            where = f"the period {unknown[0]!r} is not in the release" if len(unknown) else "a period occurs twice"
            raise ReleaseError(f"target does not fit the release: {where}.")
        series = given.reindex(release.times)
    else:
        values = to_floats(target, "target")
        if values.shape != (release.T,):
            raise ReleaseError(f"target has shape {values.shape}; the release has {release.T} periods.")
        series = pd.Series(values, index=release.times)
    if T0 < 2:
        raise ReleaseError(f"treatment time {treatment_time} leaves {T0} period(s) before it; at least 2 are needed.")
    pre = series.iloc[:T0]
    if not np.isfinite(pre).all():
        bad = pre.index[~np.isfinite(pre.to_numpy())][0]
        raise ReleaseError(f"target has no finite value in period {bad}, before the intervention.")
    if np.isinf(series.to_numpy(dtype=np.float64)).any():
        raise ReleaseError("target is infinite in a period after the intervention.")
    return series.rename(release.outcome), T0


def _baselines(series: pd.Series[float], T0: int) -> pd.DataFrame:
    """Return forecasts that need no donors: the last value, and a straight line through the pre-period."""
    positions = np.arange(len(series))
    y = series.to_numpy(dtype=np.float64)[:T0]
    slope, level = np.polyfit(positions[:T0], y, 1)
    return pd.DataFrame(
        {"last value": np.full(len(series) - T0, y[-1]), "line": level + slope * positions[T0:]},
        index=series.index[T0:],
    )
