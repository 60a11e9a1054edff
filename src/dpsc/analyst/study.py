"""Several treated units, each with its own date, from one release."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.analyst.estimate import estimate
from dpsc.analyst.intervals import JointUncertainty, MixtureUncertainty, how_alike
from dpsc.analyst.targets import Source, about_unit, as_series, require_order
from dpsc.answers.effects import Prices
from dpsc.answers.pooled import group_of_each
from dpsc.answers.result import PrivateResult, Result, UnprovenResult
from dpsc.answers.study import Study
from dpsc.errors import ReleaseError
from dpsc.periods import match
from dpsc.periods.treatment import Treatments
from dpsc.release.matrix import ReleasedMatrix
from dpsc.types import (
    Array,
    AveragesLike,
    DatesLike,
    GroupsLike,
    Integers,
    Label,
    TargetsLike,
    WeightsLike,
    one_thread,
)


def study(
    release: ReleasedMatrix,
    targets: TargetsLike,
    treatment_times: DatesLike,
    weights: WeightsLike | None,
    averages: AveragesLike | None,
    groups: GroupsLike | None,
    level: float,
    title: str,
    treatments: Treatments,
    prices: Prices | None,
) -> Study:
    """Return the study; :meth:`dpsc.Release.study` says what the arguments mean."""
    if not isinstance(targets, Mapping | pd.DataFrame):
        raise ReleaseError("targets must be a mapping of names to series, or a frame with one column per target.")
    require_order(targets, treatment_times)
    dates = _dates(list(targets), treatments.begins(release.times, treatment_times))
    treated = {name: date for name, date in dates.items() if not _is_missing(date)}
    if not treated:
        raise ReleaseError("no target has a treatment time.")
    sizes = _averages(list(targets), averages)
    each = treatments.of(treated)
    results: dict[Label, PrivateResult | UnprovenResult] = {}
    never: dict[Label, pd.Series[float]] = {}  # over the release's periods; those that such a unit lacks are empty
    for name, date in dates.items():
        with about_unit(name):
            if name not in treated:
                never[name] = match.aligned(as_series(release, targets[name]), release.times)[0]
                continue
            how, first = each[name], date if each[name].on is None else None
            results[name] = estimate(release, targets[name], first, level=level, averages=sizes[name], treatment=how)
    return pooled(release, results, never, weights_of(results, weights, sizes, _NO_SIZES), level, title, prices, groups)


_NO_SIZES = (
    "say of how many units each target is the average: averages= in Python, --averages-column on the command line."
)


def pooled(
    release: Source,
    results: Mapping[Label, PrivateResult | UnprovenResult],
    never_treated: Mapping[Label, pd.Series[float]],
    shares: pd.Series[float],
    level: float,
    title: str = "",
    prices: Prices | None = None,
    groups: GroupsLike | None = None,
    others: type[StudyAgain] | None = None,
) -> Study:
    """Return the study of some answers that were read from the same donors, whose weights are ``shares``.

    ``others`` asks the same about other units; those that are made up by default.
    """
    members = [_uncertainty(result) for result in results.values()]
    places = [np.asarray(member.periods) for member in members]
    first = min(own[result.T0] for own, result in zip(places, results.values(), strict=True))
    before = reduce(np.intersect1d, places)
    before = before[before < first]
    reference = _reference(release, before)
    pre = np.array(
        [
            result.target.to_numpy(dtype=np.float64)[np.isin(own, before)] - reference
            for own, result in zip(places, results.values(), strict=True)
        ]
    )
    with one_thread(), np.errstate(all="ignore"):
        part = release.population.over(before)
        alike = how_alike(part, members, pre, (shares / shares.sum()).to_numpy(), before)
    uncertainty = JointUncertainty(members, release.population, alike)
    return Study(
        results=results,
        never_treated=never_treated,
        weights=shares,
        uncertainty=uncertainty,
        level=checks.share("level", level),
        title=title,
        prices=prices,
        groups=None if groups is None else group_of_each(list(results), groups),
        repeats=(others or StudyAgain)(release, results, shares, uncertainty),
    )


@dataclass(frozen=True, eq=False)
class StudyAgain:
    """Asks the same about all units of a study again, with other dates, or about groups of made-up units.

    Parameters
    ----------
    release : Source
        What donors are read from.
    results : mapping
        The answers of the study, by unit.
    shares : Series
        The weights of the units.
    uncertainty : JointUncertainty
        Of the study's effects.
    """

    release: Source
    results: Mapping[Label, PrivateResult | UnprovenResult]
    shares: pd.Series[float]
    uncertainty: JointUncertainty

    @property
    def earliest(self) -> int:
        """How many periods earlier the whole study can be dated: each unit needs two periods before."""
        return min(len(result.repeats.placebo_dates) for result in self.results.values())

    @property
    def spread(self) -> float:
        """The standard deviation of the untreated outcome around each unit's level and what donors do on average."""
        squares, free = 0.0, 0
        for result in self.results.values():
            before = _places(result)[: result.T0]
            usual = self.release.population.mean[before] + _reference(self.release, before)
            apart = result.target.to_numpy(dtype=np.float64)[: result.T0] - usual
            squares += float(((apart - apart.mean()) ** 2).sum())
            free += result.T0 - 1
        return math.sqrt(squares / free)

    def earlier(self, periods: int, *, as_long: bool = False) -> Study:
        """Date every unit's treatment so many periods earlier and forecast as many; if asked no more than it has."""
        found = {}
        for name, result in self.results.items():
            longest = len(result.counterfactual) if as_long else periods
            placebo = result.repeats.placebo(result.repeats.placebo_dates[-periods], longest)
            assert isinstance(placebo, PrivateResult | UnprovenResult)
            found[name] = placebo if as_long else replace(placebo, phases=())  # no period before is left out
        return pooled(self.release, found, {}, self.shares, 0.95)

    def elsewhere(self, groups: int, seed: int) -> tuple[dict[str, Study], bool]:
        """Ask the same about groups of units that are drawn from the release and are as alike as the study's units."""
        alike = self.uncertainty.correlation
        shared = np.random.default_rng(seed).normal(size=(groups, len(self.release.times)))
        drawn = {
            name: result.repeats.pseudo_units(groups, (seed, k), shared, alike)
            for k, (name, result) in enumerate(self.results.items())
        }
        return {str(g + 1): self._of({name: paths[g] for name, paths in drawn.items()}) for g in range(groups)}, False

    def pools(self, level: float) -> dict[str, Study]:
        """Ask every pool of segments that is readable, but for the one that was asked."""
        if not isinstance(self.release, ReleasedMatrix) or self.release.segments is None:
            return {}
        others = {pool.asked: pool for pool in self.release.pools() if pool.asked != self.release.asked}
        found: dict[str, dict[Label, Any]] = {name: {} for name in others}
        for unit, result in self.results.items():
            for name, answer in result.repeats.pools().items():
                found[name][unit] = answer
        return {name: pooled(pool, found[name], {}, self.shares, level) for name, pool in others.items()}

    def _of(self, paths: Mapping[Label, pd.Series[float]]) -> Study:
        found = {}
        for name, result in self.results.items():
            answer = result.repeats.of(paths[name])
            assert isinstance(answer, PrivateResult | UnprovenResult)
            found[name] = answer
        return pooled(self.release, found, {}, self.shares, 0.95)


def _places(result: Result) -> Integers:
    """Return the positions of a result's periods among those of the release."""
    places = _uncertainty(result).periods
    return np.arange(len(result.target)) if places is None else np.asarray(places)


def _reference(release: Source, periods: Integers) -> Array:
    return np.zeros(len(periods)) if release.reference is None else release.reference[periods]


def _uncertainty(result: Result) -> MixtureUncertainty:
    assert isinstance(result.uncertainty, MixtureUncertainty)
    return result.uncertainty


def _is_missing(date: Any) -> bool:
    return date is None or (np.ndim(date) == 0 and bool(pd.isna(date)))


def _dates(names: list[Label], treatment_times: Any) -> dict[Label, Label]:
    """Return each target's date; one date is for all."""
    if isinstance(treatment_times, pd.Series):
        treatment_times = treatment_times.to_dict()
    if not isinstance(treatment_times, Mapping):
        if np.ndim(treatment_times) == 0:
            return dict.fromkeys(names, treatment_times)
        treatment_times = list(treatment_times)
        if len(treatment_times) != len(names):
            raise ReleaseError(
                f"targets and treatment times differ in number: {len(names)} and {len(treatment_times)}."
            )
        return dict(zip(names, treatment_times, strict=True))
    unknown = [name for name in treatment_times if name not in names]
    if len(unknown) == len(treatment_times) > 0:
        raise ReleaseError(
            f"no target is named {unknown[0]!r}. Targets are one column (or entry) for each unit; pivot a long "
            "table first: table.pivot(index=time, columns=unit, values=outcome)."
        )
    if unknown:
        close = checks.did_you_mean(str(unknown[0]), [str(name) for name in names])
        raise ReleaseError(f"treatment_times names {unknown[0]!r}, which is not a target.{close}")
    return {name: treatment_times.get(name) for name in names}


def _averages(names: list[Label], averages: AveragesLike | None) -> dict[Label, int | None]:
    """Return how many units each target is the average of: one number is for all, None where it is not known."""
    if not isinstance(averages, Mapping | pd.Series):
        return dict.fromkeys(names, averages)
    given = dict(averages.items())
    unknown = next((name for name in given if name not in names), None)
    if unknown is not None:
        raise ReleaseError(f"averages names {unknown!r}, which is not a target.")
    known = {name: number for name, number in given.items() if not _is_missing(number)}
    whole = {name: int(number) if float(number).is_integer() else number for name, number in known.items()}
    return {name: whole.get(name) for name in names}


def weights_of(
    names: Iterable[Label],
    weights: WeightsLike | None,
    sizes: Mapping[Label, float | None],
    lacking: str,
) -> pd.Series[float]:
    """Return the weight of every treated unit: equal if none is given, or its size; refuse where that is not known."""
    names = list(names)
    if weights is None:
        return pd.Series(1.0, index=pd.Index(names, tupleize_cols=False))
    if isinstance(weights, str):
        if weights != "size":
            raise ReleaseError(f'weights must be numbers by unit, or "size", not {weights!r}.')
        unknown = next((name for name in names if sizes.get(name) is None), None)
        if unknown is not None:
            raise ReleaseError(f"the size of {str(unknown)!r} is not known. {lacking[0].upper()}{lacking[1:]}")
        weights = {name: float(sizes[name] or 0) for name in names}
    given = dict(weights)
    missing = [name for name in names if name not in given]
    if missing:
        raise ReleaseError(f"weights have no number for {missing[0]!r}.")
    values = pd.Series({name: float(given[name]) for name in names})
    if not (np.isfinite(values) & (values >= 0)).all() or values.sum() == 0:
        raise ReleaseError("weights must be numbers of at least 0, not all of them 0.")
    return values
