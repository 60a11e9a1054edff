"""The analyst's side: a release and a public target become a counterfactual. Pure post-processing, at no cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.answers.base import Verdict
from dpsc.answers.result import PrivateResult, UnprovenResult, released
from dpsc.blas import one_thread
from dpsc.data import calendars, intervention, matching
from dpsc.data.dates import period_name
from dpsc.data.frames import to_floats
from dpsc.errors import PanelError, ParameterError, ReleaseError
from dpsc.gram import moments
from dpsc.gram.contents import ReleasedMatrix
from dpsc.gram.models import Candidate, donor_free_evidence, plain_model, target_models
from dpsc.gram.uncertainty import MixtureUncertainty
from dpsc.types import Array

WITHOUT_NOISE = "intervals of this estimator do not include the noise of the release; those of the default estimator do"
CLEAR = 3.0  # a log Bayes factor beyond which the pre-period speaks for or against the donors


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

    ``lambda_`` is on the scale of the release, where every donor's vector has length one.
    """
    if sum(option is not None for option in (lambda_, rank, threshold)) > 1:
        raise ParameterError("give at most one of lambda_, rank and threshold.")
    series, T0, notes = _target(release, target, treatment_time)
    moments, method = _plain_moments(release, lambda_, rank, threshold)
    return Forecast(release, series, T0, moments, method, checks.share("level", level), notes).result()


@dataclass(frozen=True, eq=False)
class Forecast:
    """A forecast of the periods from T0 on, from the periods before; it can be repeated for an earlier date.

    Parameters
    ----------
    release : ReleasedMatrix
    series : Series
        The target; it may end before the release does.
    T0 : int
    moments : T × T array, optional
        Second moments to use instead of the population model.
    method : str
        How they were estimated, in words.
    level : float
    notes : tuple of str
        What a reader should know about the target's periods.
    """

    release: ReleasedMatrix
    series: pd.Series[float]
    T0: int
    moments: Array | None
    method: str
    level: float
    notes: tuple[str, ...] = ()

    def result(self) -> PrivateResult | UnprovenResult:
        """Return the forecast and its uncertainty."""
        release, series, T0, T = self.release, self.series, self.T0, len(self.series)
        reference = np.zeros(T) if release.reference is None else release.reference[:T]
        y = series.to_numpy(dtype=np.float64)[:T0] - reference[:T0]
        with one_thread(), np.errstate(all="ignore"):
            candidates, verdict, found = self._population_model(y, T) if self.moments is None else self._plain(y, T)
            uncertainty = MixtureUncertainty(candidates)
            ahead = sum(c.weight * c.observed.one_period_ahead for c in candidates)
            weights = sum(c.weight * c.observed.weights for c in candidates)
        post = series.index[T0:]
        return released(
            release.guarantee,
            release.no_guarantee,
            target=series,
            T0=T0,
            counterfactual=pd.Series(uncertainty.forecast + reference[T0:], index=post, name="counterfactual"),
            fitted=pd.Series(ahead + reference[:T0], index=series.index[:T0], name="fitted"),
            fitted_label="one period ahead",
            weights=pd.DataFrame(weights, index=post, columns=series.index[:T0]),
            algorithm=f"Gram release, {self.method}",
            parameters={
                "n": release.n, "T0": T0, "h": T - T0, "noise_scale": release.noise_scale, "sites": release.sites,
                "phi": release.kernel.phi, "nu": release.kernel.nu, **found,
            },
            uncertainty=uncertainty,
            level=self.level,
            baselines=_baselines(series, T0),
            verdict=verdict,
            notes=self.notes if self.moments is None else (WITHOUT_NOISE, *self.notes),
            backdating=self,
        )  # fmt: skip

    def _population_model(self, y: Array, T: int) -> tuple[list[Candidate], Verdict, dict[str, float]]:
        """Return the models of a target that is one of the donors' population, and whether donors help."""
        population = self.release.population
        candidates, evidence = target_models(population, y, T)
        bayes_factor = evidence - donor_free_evidence(y, population.over(T).size())
        found = {"common_directions": population.directions, "log_bayes_factor": bayes_factor}
        return candidates, _verdict(bayes_factor), found

    def _plain(self, y: Array, T: int) -> tuple[list[Candidate], None, dict[str, float]]:
        """Return one model with given second moments, on the target's own scale."""
        assert self.moments is not None
        D, free_level = self.moments[:T, :T], self.release.row_map.directions is not None
        return [plain_model(D, y, free_level)], None, {}

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
            earlier = intervention.first_treated(untreated.index, treatment_time)
        if not 2 <= earlier < T0:
            raise ParameterError(
                "a placebo needs at least 2 periods before its date and 1 between it and the intervention."
            )
        method = f"{self.method}, PLACEBO at {period_name(untreated.index[earlier])}"
        return replace(self, series=untreated, T0=earlier, method=method).result()


def _plain_moments(
    release: ReleasedMatrix, lambda_: float | None, rank: int | None, threshold: float | None
) -> tuple[Array | None, str]:
    arguments = (release.noisy_moments, release.noise_scale, release.row_map)
    if lambda_ is not None:
        ridge = checks.finite_number("lambda_", lambda_, above=0) / 2
        smallest = 1e-9 * release.n
        if ridge < smallest:
            raise ParameterError(f"lambda_ must be at least {2 * smallest:g} for a release of {release.n} donors.")
        return moments.plain(release.noisy_moments, release.row_map, ridge=ridge), f"ridge, lambda_ = {lambda_:g}"
    if rank is not None:
        return moments.truncated(*arguments, rank=checks.whole_number("rank", rank, at_least=1)), f"robust, rank {rank}"
    if threshold is not None:
        checks.finite_number("threshold", threshold, at_least=0)
        return moments.truncated(*arguments, threshold=threshold), f"robust, threshold {threshold:g}"
    return None, "population model"


def _verdict(log_bayes_factor: float) -> Verdict:
    """Say whether the donors explain the target's past better than its own past does."""
    factor = math.exp(min(abs(log_bayes_factor), 16.0))
    times = "more than a million" if factor > 1e6 else f"about {float(f'{factor:.2g}'):,.0f}"
    if log_bayes_factor > CLEAR:
        return Verdict(
            "yes",
            "the donors track this target",
            f"with the donors, the target's path before the intervention is {times} times as likely as without them.",
        )
    if log_bayes_factor < -CLEAR:
        return Verdict(
            "no",
            "the donors do not track this target",
            f"without donors, the target's path before the intervention is {times} times as likely as with them. The "
            "donors still guard against something new that hits everybody.",
        )
    return Verdict(
        "unclear",
        "the time before the intervention cannot tell",
        "the target's path before the intervention is about as likely with the donors as without them.",
    )


def _target(release: ReleasedMatrix, target: Any, treatment_time: Any) -> tuple[pd.Series[float], int, tuple[str, ...]]:
    """Match the target to the release's periods and find the first treated one; say what was left out."""
    T0 = intervention.first_treated(release.times, treatment_time)
    notes = tuple(f"in the release, {hole}" for hole in calendars.holes(release.times))
    if isinstance(target, pd.Series):
        try:
            given = pd.Series(to_floats(target, "target"), index=target.index)
            series, match = matching.aligned(given, release.times)
        except PanelError as problem:
            raise ReleaseError(problem.message, **problem.parameters) from None
        notes += match.notes
        if isinstance(target.index.name, str):
            series.index = series.index.rename(target.index.name)
    else:
        values = to_floats(target, "target")
        if values.shape != (release.T,):
            raise ReleaseError(f"target has shape {values.shape}; the release has {release.T} periods.")
        series = pd.Series(values, index=release.times)
    if T0 < 2:
        raise ReleaseError(f"treatment time {treatment_time} leaves {T0} period(s) before it; at least 2 are needed.")
    try:
        matching.require_complete(series.iloc[:T0])
    except PanelError as problem:
        raise ReleaseError(problem.message) from None
    if np.isinf(series.to_numpy(dtype=np.float64)).any():
        raise ReleaseError("target is infinite in a period after the intervention.")
    return series.rename(release.outcome), T0, notes


def _baselines(series: pd.Series[float], T0: int) -> pd.DataFrame:
    """Return forecasts that need no donors: the last value, and a straight line through the pre-period."""
    positions = np.arange(len(series))
    y = series.to_numpy(dtype=np.float64)[:T0]
    slope, level = np.polyfit(positions[:T0], y, 1)
    return pd.DataFrame(
        {"last value": np.full(len(series) - T0, y[-1]), "line": level + slope * positions[T0:]},
        index=series.index[T0:],
    )
