"""Do the donors help? The target's own past, with the donors and without them.

The analyst's side: a release and a public target become a counterfactual. Pure post-processing, at no cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.analyst import targets
from dpsc.analyst.intervals import INFLATION, NOISE_COUNTS, MixtureUncertainty
from dpsc.analyst.models import Candidate, TargetModels, donor_free_evidence, plain_model
from dpsc.analyst.targets import Source
from dpsc.answers.base import Verdict
from dpsc.answers.effects import Prices
from dpsc.answers.result import PrivateResult, UnprovenResult, released
from dpsc.answers.words import verdict
from dpsc.errors import ParameterError
from dpsc.periods.dates import period_name
from dpsc.periods.match import first_treated
from dpsc.periods.treatment import EVER_SINCE, OFF, ON, Phase, Treatment
from dpsc.release import population as moments
from dpsc.release.matrix import ReleasedMatrix
from dpsc.types import Array, Integers, Label, TargetLike, Times, one_thread

WITHOUT_NOISE = "intervals of this estimator do not include the noise of the release; those of the default estimator do"


def estimate(
    release: ReleasedMatrix,
    target: TargetLike,
    treatment_time: Label,
    *,
    level: float = 0.95,
    title: str = "",
    lambda_: float | None = None,
    rank: int | None = None,
    threshold: float | None = None,
    averages: int | None = None,
    treatment: Treatment = EVER_SINCE,
    prices: Prices | None = None,
) -> PrivateResult | UnprovenResult:
    """Return the counterfactual of a target, with intervals; :meth:`dpsc.Release.estimate` says what the options mean.

    ``lambda_`` is on the scale of the release, where every donor's vector has length one.
    """
    if sum(option is not None for option in (lambda_, rank, threshold)) > 1:
        raise ParameterError("give at most one of lambda_, rank and threshold.")
    targets.require_averages(averages)
    targets.require_order(target, treatment_time)
    first = treatment.begins(release.times, treatment_time)
    series, T0, notes = targets.matched(release, target, first)
    moments, method = _plain_moments(release, lambda_, rank, threshold)
    notes = notes if moments is None else (*notes, WITHOUT_NOISE)
    notes = (*notes, release.part_of) if release.part_of else notes
    forecast = Forecast(
        release,
        series,
        T0,
        moments,
        f"Gram release, {method}{_pool(release)}",
        checks.share("level", level),
        title,
        (*notes, *_too_small(release)),
        averages=averages,
        parameters=_parameters(release),
    )
    return replace(forecast, phases=treatment.phases(series.index, T0), prices=prices).result()


@dataclass(frozen=True, eq=False)
class Forecast:
    """A forecast of the periods from T0 on, from the periods before; it can be repeated with other choices.

    Parameters
    ----------
    release : Source
        What donors are read from.
    series : Series
        The target; it may end before the release does.
    T0 : int
    moments : T × T array, optional
        Second moments to use instead of the population model.
    method : str
        How they were estimated, in words.
    level : float
    title : str
        The question, for figures and reports.
    notes : tuple of str
        Warnings to the reader.
    first, left_out : int
        Use only the periods from ``first`` on, without the last ``left_out`` before the intervention.
    averages : int, optional
        How many units the target is the average of, if that is known.
    asks : bool
        Whether to ask about units of measurement.
    parameters : mapping
        What is said about the release.
    phases : tuple of str
        What each period from the intervention on is; empty if the treatment is on in all.
    prices : Prices, optional
        What the outcome is worth.
    """

    release: Source
    series: pd.Series[float]
    T0: int
    moments: Array | None
    method: str
    level: float = 0.95
    title: str = ""
    notes: tuple[str, ...] = ()
    first: int = 0
    left_out: int = 0
    averages: int | None = None
    asks: bool = True
    parameters: Mapping[str, Any] = field(default_factory=dict)
    phases: tuple[Phase, ...] = ()
    prices: Prices | None = None

    @cached_property
    def kept(self) -> Integers:
        """The positions of the periods in use."""
        return np.asarray(np.r_[self.first : self.T0 - self.left_out, self.T0 : len(self.series)])

    @cached_property
    def untreated(self) -> pd.Series[float]:
        """The target in the periods before the intervention that are in use, and any before them."""
        return self.series.iloc[: self.T0 - self.left_out]

    @property
    def periods(self) -> Integers:
        """The positions in the release of the periods in use."""
        return self.kept

    def result(self) -> PrivateResult | UnprovenResult:
        """Return the forecast and its uncertainty."""
        release, series = self.release, self.series.iloc[self.kept]
        T0, T = self.T0 - self.left_out - self.first, len(series)
        reference = np.zeros(T) if release.reference is None else release.reference[self.periods]
        y = series.to_numpy(dtype=np.float64)[:T0] - reference[:T0]
        with one_thread(), np.errstate(all="ignore"):
            models = self._models(y)
            question = targets.question_of_units(release, models, reference[:T0]) if self.asks else ""
            candidates, light, found = (
                self._population_model(models, question) if self.moments is None else self._plain(y)
            )
            uncertainty = MixtureUncertainty(candidates, self.periods)
            forecast, fit = uncertainty.forecast, uncertainty.fit
            weights = self._weights(candidates, series.index, T0)
        post, known = series.index[T0:], {} if self.averages is None else {"averages": self.averages}
        return released(
            release.guarantee,
            release.no_guarantee,
            target=series,
            T0=T0,
            counterfactual=pd.Series(forecast + reference[T0:], index=post, name="counterfactual"),
            fitted=pd.Series(fit + reference[:T0], index=series.index[:T0], name="fitted"),
            weights=weights,
            algorithm=self.method,
            parameters={"n": release.n, "T0": T0, "h": T - T0} | known | dict(self.parameters) | found,
            uncertainty=uncertainty,
            level=self.level,
            title=self.title,
            baselines=_baselines(series, T0),
            verdict=light,
            notes=(*self.notes, question) if question else self.notes,
            repeats=self,
            phases=self.phases,
            prices=self.prices,
        )

    def _models(self, y: Array) -> TargetModels:
        return TargetModels(self.release.population.over(self.periods), y, self.averages)

    def _weights(self, candidates: list[Candidate], times: Times, T0: int) -> pd.DataFrame | pd.Series[float]:
        """Return each later period as a combination of those before: the same forecast in another form."""
        weights = sum(c.weight * c.observed.weights for c in candidates)
        return pd.DataFrame(weights, index=times[T0:], columns=times[:T0])

    def _population_model(
        self, models: TargetModels, question: str
    ) -> tuple[list[Candidate], Verdict, dict[str, float]]:
        """Return the models of a target that is one of the donors' population, and whether donors help."""
        bayes_factor = models.log_evidence - donor_free_evidence(models.y)
        found = {"common_directions": models.population.directions, "log_bayes_factor": bayes_factor}
        return models.candidates, verdict(bayes_factor, question), found

    def _plain(self, y: Array) -> tuple[list[Candidate], None, dict[str, float]]:
        """Return one model with given second moments, on the target's own scale."""
        assert self.moments is not None
        free_level = not self.release.population.has_level
        return [plain_model(self.moments[np.ix_(self.kept, self.kept)], y, free_level)], None, {}

    @property
    def placebo_dates(self) -> list[Label]:
        """Every earlier period with at least 2 before it, and one after it that is not left out."""
        unseen = self.phases.index(ON) if self.phases else 0
        return list(self.series.index[self.first + 2 : self.T0 - self.left_out - unseen])

    def placebo(
        self, treatment_time: Label | None = None, longest: int | None = None
    ) -> PrivateResult | UnprovenResult:
        """Pretend that the intervention came earlier, and forecast the untreated periods after, at most ``longest``."""
        untreated, T0 = self.untreated, self.T0 - self.left_out
        if treatment_time is None:
            earlier = max(2, T0 - max(1, min(len(self.series) - self.T0, T0 // 3)))
        else:
            earlier = first_treated(untreated.index, treatment_time)
        if not self.first + 2 <= earlier < T0:
            raise ParameterError(
                "a placebo needs at least 2 periods before its date and 1 between it and the intervention."
            )
        method = f"{self.method}, PLACEBO at {period_name(untreated.index[earlier])}"
        end = T0 if longest is None else min(T0, earlier + longest)
        over, phases = end - earlier, self.phases
        return replace(
            self,
            series=untreated.iloc[:end],
            T0=earlier,
            left_out=0,
            method=method,
            notes=(),
            title="",
            asks=False,
            phases=(phases + (OFF,) * over)[:over] if phases else (),
        ).result()

    def again(self, *, earlier: int = 0, left_out: int = 0, first: int = 0) -> PrivateResult | UnprovenResult:
        """Repeat it with the intervention dated earlier, the last periods before it left out, or from a later start."""
        T0 = self.T0 - earlier
        if T0 - left_out - first < 2:
            raise ParameterError("at least 2 periods before the intervention must be left.")
        return replace(self, T0=T0, left_out=left_out, first=first, phases=()).result()

    def pseudo_units(
        self, count: int, seed: int | Sequence[int], shared: Array | None = None, alike: float = 0.0
    ) -> pd.DataFrame:
        """Draw units like the target, one a column, from what the release says about donors; touches no donor.

        A share ``alike`` of their variance is due to ``shared``, normal numbers for each unit and period that other
        targets' units are made from, too.
        """
        rng = np.random.default_rng(seed)
        result = self.result()
        assert isinstance(result.uncertainty, MixtureUncertainty)
        candidates = result.uncertainty.candidates
        drawn = rng.choice(len(candidates), size=count, p=[c.weight for c in candidates])
        T = len(self.series)
        reference = np.zeros(T) if self.release.reference is None else self.release.reference[:T]
        paths = np.empty((count, T))
        for k in np.unique(drawn):
            path, level = candidates[k].observed.path, candidates[k].observed.level
            covariance = INFLATION * (path.covariance + (NOISE_COUNTS - 1) * candidates[k].noise)
            root = np.linalg.cholesky(covariance + 1e-12 * np.trace(covariance) * np.eye(T))
            normals = rng.normal(size=(int((drawn == k).sum()), T))
            if shared is not None:
                normals = math.sqrt(alike) * shared[drawn == k, :T] + math.sqrt(1 - alike) * normals
            paths[drawn == k] = path.mean + level + reference + normals @ root.T
        return pd.DataFrame(paths.T, index=self.series.index)

    def others(self) -> Mapping[str, PrivateResult | UnprovenResult]:
        """Return nothing: donors are not public."""
        return {}

    without_each = others

    def during(self, phases: tuple[Phase, ...]) -> Forecast:
        """Return the same forecast for a treatment with these phases."""
        return replace(self, phases=phases)

    def pools(self) -> Mapping[str, PrivateResult | UnprovenResult]:
        """Ask every pool of segments that is readable, but for the one that was asked."""
        release = self.release
        if not isinstance(release, ReleasedMatrix) or self.moments is not None:
            return {}
        method = self.method.removesuffix(_pool(release))
        return {
            pool.asked: replace(
                self, release=pool, method=method + _pool(pool), notes=(), parameters=_parameters(pool)
            ).result()
            for pool in release.pools()
            if pool.asked != release.asked
        }

    def of(self, unit: pd.Series[float]) -> PrivateResult | UnprovenResult:
        """Ask the same about another unit over the same periods, which is in the donors' units of measurement."""
        return replace(self, series=unit, asks=False).result()


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


def _parameters(release: ReleasedMatrix) -> dict[str, float | str]:
    """Return what a result says about the release that it is from."""
    pool: dict[str, float | str] = {}
    if release.segments is not None:
        pool = {"pool": release.asked, "pool_donors": float(f"{release.donors:.2g}") if release.pool else release.n}
    return pool | {
        "noise_scale": release.noise_scale,
        "sites": release.sites,
        "phi": release.kernel.phi,
        "nu": release.kernel.nu,
        "release": " + ".join(identity[:8] for identity in release.identities),
    }


def _pool(release: ReleasedMatrix) -> str:
    """Say which segments answer, as a part of the method."""
    return f", donors of {release.asked}" if release.asked else ""


def _too_small(release: ReleasedMatrix) -> list[str]:
    """Warn of a pool of segments that has too few donors to say anything."""
    if not release.pool or release.readable:
        return []
    about = f"about {release.donors:,.0f} donors, within about {2 * release.donors_error:,.0f} of the true number"
    return [
        f"{release.asked} has {about}, and the noise is as large as {release.noise_in_donors:,.0f} donors who move "
        "alike: it says little, so ask more segments together"
    ]


def _baselines(series: pd.Series[float], T0: int) -> pd.DataFrame:
    """Return forecasts that need no donors: the last value, and a straight line through the pre-period."""
    positions = np.arange(len(series))
    y = series.to_numpy(dtype=np.float64)[:T0]
    slope, level = np.polyfit(positions[:T0], y, 1)
    return pd.DataFrame(
        {"last value": np.full(len(series) - T0, y[-1]), "line": level + slope * positions[T0:]},
        index=series.index[T0:],
    )
