"""The analyst's side: a release and a public target become a counterfactual. Pure post-processing, at no cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.answers.result import PrivateResult, UnprovenResult, released
from dpsc.blas import one_thread
from dpsc.data import periods
from dpsc.data.frames import to_floats
from dpsc.errors import ParameterError, ReleaseError
from dpsc.gram import moments
from dpsc.gram.contents import ReleasedMatrix
from dpsc.gram.moments import Denoised
from dpsc.gram.uncertainty import ForecastUncertainty, ForwardForecasts, forecast_weights, one_period_ahead

NO_SIGNAL = "no direction common to the donors rises above the noise: the donors say nothing about this target"
NO_BETTER = (
    "before the intervention, forecasts from the donors erred by {:.3g} and the last value by {:.3g}: the donors do "
    "not help"
)
WITHOUT_NOISE = "intervals of this estimator do not include the noise of the release; those of the default estimator do"


def estimate(
    release: ReleasedMatrix,
    target: Any,
    treatment_time: Any,
    *,
    level: float = 0.95,
    lambda_: float | None = None,
    rank: int | None = None,
    threshold: float | None = None,
) -> PrivateResult | UnprovenResult:
    """Return the counterfactual of a target, with intervals; :meth:`dpsc.Release.estimate` says what the options mean.

    ``lambda_`` is on the scale of the release, where every donor has whitened length one.
    """
    if sum(option is not None for option in (lambda_, rank, threshold)) > 1:
        raise ParameterError("give at most one of lambda_, rank and threshold.")
    series, T0 = _target(release, target, treatment_time)
    moments, method = _moments(release, lambda_, rank, threshold)
    default = moments is release.denoised
    return Forecast(release, series, T0, moments, method, checks.share("level", level), default).result()


@dataclass(frozen=True, eq=False)
class Forecast:
    """A forecast of the periods from T0 on, from the periods before; it can be repeated for an earlier date.

    Parameters
    ----------
    release : ReleasedMatrix
    series : Series
        The target; it may end before the release does.
    T0 : int
    moments : Denoised
    method : str
        How ``moments`` were estimated, in words.
    level : float
    default : bool
        Whether that is the default estimator, whose intervals include the noise of the release.
    """

    release: ReleasedMatrix
    series: pd.Series[float]
    T0: int
    moments: Denoised
    method: str
    level: float
    default: bool

    def result(self) -> PrivateResult | UnprovenResult:
        """Return the forecast and its uncertainty."""
        release, series, T0, T = self.release, self.series, self.T0, len(self.series)
        reference = np.zeros(T) if release.reference is None else release.reference[:T]
        y = series.to_numpy(dtype=np.float64)[:T0] - reference[:T0]
        D = self.moments.moments[:T, :T]
        with one_thread(), np.errstate(all="ignore"):
            weights = forecast_weights(D, T0)
            path = weights @ y + reference[T0:]
            ahead = one_period_ahead(D[:T0, :T0], y) + reference[:T0]
            rmse, rmse_last_value = ForwardForecasts.of(D[:T0, :T0], y, T - T0).rmse()
            baselines = _baselines(series, T0)
        post = series.index[T0:]
        return released(
            release.guarantee,
            release.no_guarantee,
            target=series,
            T0=T0,
            counterfactual=pd.Series(path, index=post, name="counterfactual"),
            fitted=pd.Series(ahead, index=series.index[:T0], name="fitted"),
            fitted_label="one period ahead",
            weights=pd.DataFrame(weights, index=post, columns=series.index[:T0]),
            algorithm=f"Gram release, {self.method}",
            parameters={
                "n": release.n, "T0": T0, "h": T - T0, "noise_scale": release.noise_scale, "sites": release.sites,
                "phi": release.kernel.phi, "nu": release.kernel.nu, "directions": self.moments.directions,
                "forward_rmse": rmse, "forward_rmse_last_value": rmse_last_value,
            },
            uncertainty=ForecastUncertainty(release, D, y, simulate=self.default),
            level=self.level,
            baselines=baselines,
            notes=self._notes(rmse, rmse_last_value),
            backdating=self,
        )  # fmt: skip

    def _notes(self, rmse: float, rmse_last_value: float) -> tuple[str, ...]:
        notes = {
            NO_SIGNAL: self.moments.directions == 0,
            NO_BETTER.format(rmse, rmse_last_value): rmse >= rmse_last_value,
            WITHOUT_NOISE: not self.default,
        }
        return tuple(note for note, applies in notes.items() if applies)

    @property
    def available(self) -> bool:
        """Whether there are enough periods for a placebo: 2 before its date and 1 after."""
        return self.T0 >= 3

    def placebo(self, treatment_time: Any | None = None) -> PrivateResult | UnprovenResult:
        """Pretend that the intervention came earlier, and forecast the rest of the untreated periods."""
        untreated, T0 = self.series.iloc[: self.T0], self.T0
        if treatment_time is None:
            earlier = max(2, T0 - max(1, min(len(self.series) - T0, T0 // 3)))
        else:
            earlier = periods.first_treated(untreated.index, treatment_time)
        if not 2 <= earlier < T0:
            raise ParameterError(
                "a placebo needs at least 2 periods before its date and 1 between it and the intervention."
            )
        method = f"{self.method}, PLACEBO at {untreated.index[earlier]}"
        return replace(self, series=untreated, T0=earlier, method=method).result()


def _moments(
    release: ReleasedMatrix, lambda_: float | None, rank: int | None, threshold: float | None
) -> tuple[Denoised, str]:
    arguments = (release.noisy_moments, release.noise_scale, release.kernel)
    if lambda_ is not None:
        ridge = checks.finite_number("lambda_", lambda_, above=0) / 2
        smallest = 1e-9 * release.n
        if ridge < smallest:
            raise ParameterError(f"lambda_ must be at least {2 * smallest:g} for a release of {release.n} donors.")
        return moments.plain(release.noisy_moments, release.kernel, ridge=ridge), f"ridge, lambda_ = {lambda_:g}"
    if rank is not None:
        return moments.truncated(*arguments, rank=checks.whole_number("rank", rank, at_least=1)), f"robust, rank {rank}"
    if threshold is not None:
        checks.finite_number("threshold", threshold, at_least=0)
        return moments.truncated(*arguments, threshold=threshold), f"robust, threshold {threshold:g}"
    return release.denoised, "shrunken factors"


def _target(release: ReleasedMatrix, target: Any, treatment_time: Any) -> tuple[pd.Series[float], int]:
    """Match the target to the release's periods and find the first treated one."""
    T0 = periods.first_treated(release.times, treatment_time)
    if isinstance(target, pd.Series):
        given = pd.Series(to_floats(target, "target"), index=periods.as_index(target.index))
        _require_same_kind(given.index, release.times)
        unknown = given.index.difference(release.times, sort=False)
        if not given.index.is_unique or len(unknown):
            where = f"the period {unknown[0]} is not in the release" if len(unknown) else "a period occurs twice"
            raise ReleaseError(
                f"target does not fit the release: {where}; it runs from {release.times[0]} to {release.times[-1]}."
            )
        series = given.reindex(release.times)
        if isinstance(target.index.name, str):
            series.index = series.index.rename(target.index.name)
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


def _require_same_kind(given: pd.Index[Any], times: pd.Index[Any]) -> None:
    kinds = [pd.api.types.infer_dtype(index, skipna=True) for index in (given, times)]
    numbers = {"integer", "floating", "mixed-integer-float"}
    if kinds[0] != kinds[1] and not set(kinds) <= numbers:
        raise ReleaseError(
            f"the target's periods are of kind {kinds[0]} ({given[0]}), the release's of kind {kinds[1]} ({times[0]}); "
            "convert them to the same kind."
        )


def _baselines(series: pd.Series[float], T0: int) -> pd.DataFrame:
    """Return forecasts that need no donors: the last value, and a straight line through the pre-period."""
    positions = np.arange(len(series))
    y = series.to_numpy(dtype=np.float64)[:T0]
    slope, level = np.polyfit(positions[:T0], y, 1)
    return pd.DataFrame(
        {"last value": np.full(len(series) - T0, y[-1]), "line": level + slope * positions[T0:]},
        index=series.index[T0:],
    )
