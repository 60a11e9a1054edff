"""Answers from a private panel: its rows are the donors, its treated rows or public series from outside the targets.

Donors are few, so that what they show of their population is uncertain although the table itself is given: the
estimator is told of noise that stands for it. The noise of each cell is known: the donors' is taken off what every unit
has for itself, and the target's is part of its own model and of its intervals. Post-processing of a public table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.analyst import targets
from dpsc.analyst.estimate import Forecast
from dpsc.analyst.models import Candidate, TargetModels
from dpsc.analyst.study import StudyAgain, pooled, weights_of
from dpsc.answers.effects import Prices
from dpsc.answers.result import PrivateResult, UnprovenResult
from dpsc.answers.study import Study
from dpsc.answers.words import number
from dpsc.errors import Parameter, ReleaseError
from dpsc.periods.calendar import holes
from dpsc.periods.dates import period_name
from dpsc.periods.match import first_treated, incomplete, listed
from dpsc.periods.treatment import Treatment, Treatments
from dpsc.privacy.guarantee import Guarantee
from dpsc.release.kernel import Kernel
from dpsc.release.panel import ReleasedPanel
from dpsc.release.population import Population
from dpsc.release.rowmap import RowMap
from dpsc.release.scale import NO_SCALE, Scale
from dpsc.release.table_rule import TableRule
from dpsc.types import Array, GroupsLike, Integers, Label, TargetLike, Times, WeightsLike, one_thread

FEWEST_DONORS = 3
FEWEST_CLOSER = 11  # donors with which answers were closer than forecasts without donors; with 7 they were not
MOST_REPEATED = 100  # donors that the question is repeated for
_KERNEL = Kernel.named("high")
_CONSTANT = 0.7  # R over the median movement of a donor
_FEW = 0.5  # how much of the chance of few rows counts as noise
_LARGEST_NOISE = 1e3  # over the differences between all cells, which have the noise in them
_LEAST_SHARE = 1e-9  # of a direction, over the largest

Found = PrivateResult | UnprovenResult


@dataclass(frozen=True, eq=False)
class DonorRows:
    """Some rows of a panel, and the population that they come from.

    Attributes
    ----------
    panel : ReleasedPanel
    names : tuple of str
        The donors: units with a number in every period.
    """

    panel: ReleasedPanel
    names: tuple[str, ...]
    reference: ClassVar[None] = None  # no path was subtracted
    scale: ClassVar[Scale] = NO_SCALE  # nothing beside the rows says how much donors move

    @classmethod
    def of(cls, panel: ReleasedPanel, others: Iterable[str]) -> DonorRows:
        """Return all units but ``others`` and those that lack a cell; refuse if hardly one is left."""
        _require_readable(panel)
        others = set(others)
        complete = np.flatnonzero(np.isfinite(panel.table.values).all(axis=1))
        names = tuple(panel.units[k] for k in complete if panel.units[k] not in others)
        if len(names) < FEWEST_DONORS:
            lacking = len(panel.units) - len(set(panel.units) & others) - len(names)
            why = f" {lacking} others lack a period, for too few people or because none is released." if lacking else ""
            raise ReleaseError(f"{len(names)} donors are left, and at least {FEWEST_DONORS} are needed.{why}")
        return cls(panel, names)

    def without(self, *names: str) -> DonorRows:
        """Return the others."""
        return DonorRows(self.panel, tuple(other for other in self.names if other not in names))

    @property
    def n(self) -> int:
        """The number of donors."""
        return len(self.names)

    @property
    def times(self) -> Times:
        """The periods."""
        return self.panel.times

    @property
    def outcome(self) -> str:
        """The outcome's name."""
        return self.panel.outcome

    @property
    def guarantee(self) -> Guarantee | None:
        """What the panel promises."""
        return self.panel.guarantee

    @property
    def no_guarantee(self) -> str:
        """Why it promises nothing."""
        return self.panel.no_guarantee

    @cached_property
    def _positions(self) -> Integers:
        place = {unit: k for k, unit in enumerate(self.panel.units)}
        return np.array([place[name] for name in self.names], dtype=np.int64)

    @cached_property
    def values(self) -> Array:
        """Donors × periods."""
        return self.panel.table.values[self._positions]

    @cached_property
    def variances(self) -> Array:
        """Donors × periods: of the noise."""
        return np.asarray(np.nan_to_num(self.panel.table.noise[self._positions]) ** 2)

    @cached_property
    def _row_map(self) -> RowMap:
        T = len(self.times)
        every = RowMap(T, _KERNEL, None, min(T - 1, self.n), 0.0, 0)
        usual = float(np.median(np.linalg.norm(every.whitened(self.values.T), axis=0)))
        if not usual > 0:
            raise ReleaseError("most donors do not change at all, so there is nothing to learn from them.")
        return replace(every, constant=_CONSTANT * usual)

    @cached_property
    def _whitened(self) -> Array:
        """Directions × donors."""
        return self._row_map.whitened(self.values.T)

    @cached_property
    def _counts(self) -> Array:
        """How much each donor counts in the mean; they add up to 1."""
        R = self._row_map.constant
        counts = R**2 / (R**2 + (self._whitened**2).sum(axis=0))
        return np.asarray(counts / counts.sum())

    @cached_property
    def population(self) -> Population:
        """The donors' population, without the noise of cells.

        ``Population.of`` reads the sum of products of n vectors as it reads a noisy one. None is noisy here; the noise
        that it is told of, 0.5 (2 sqrt(n / k) + 1) / sqrt(2 k) in k directions, has the size of what n vectors without
        any common direction show by chance.
        """
        n, k = self.n, self._row_map.size - 1
        vectors = np.vstack([np.full(n, self._row_map.constant), self._whitened])
        vectors /= np.linalg.norm(vectors, axis=0)
        chance = _FEW * (2 * math.sqrt(n / k) + 1) / math.sqrt(2 * k)
        with one_thread(), np.errstate(all="ignore"):
            seen = Population.of(vectors @ vectors.T, n, chance, self._row_map)
        known = min(seen.white, float(self.variances.mean()))
        return replace(seen, bulk=seen.bulk - known * np.eye(len(self.times)), white=seen.white - known)

    @cached_property
    def _loadings(self) -> tuple[Array, Array]:
        """The common directions, T × d, and how each donor loads on them, such that they follow from the donors.

        With Q and f_j, ``common = Q Q'`` and ``sum of counts f_j f_j' = I``: the common covariance is that of the
        donors' common movements Q f_j.
        """
        sizes, V = np.linalg.eigh(self.population.common)
        kept = sizes > _LEAST_SHARE * max(float(sizes[-1]), 1e-300)
        Q = V[:, kept] * np.sqrt(sizes[kept])
        apart = self._whitened - (self._whitened @ self._counts)[:, np.newaxis]
        raw = np.linalg.lstsq(self._row_map.whitened(Q), apart, rcond=None)[0] if kept.any() else np.empty((0, self.n))
        spread, U = np.linalg.eigh((raw * self._counts) @ raw.T)
        root = (U / np.sqrt(np.maximum(spread, 1e-12 * spread.max(initial=1e-300)))) @ U.T
        return Q, root @ raw

    def weights(self, candidate: Candidate, periods: Integers) -> Array:
        """Return how much of each donor's movement is in a candidate's forecast.

        What is predicted of the common movement is ``c^2 common C^-1 left``, C the target's covariance before the
        intervention and ``left`` its path less mean and level. As the common covariance is that of the donors' own
        common movements, it is a sum over donors: mean and common movement together are the donors', each with the
        weight ``count (1 + c^2 f_j' Q' C^-1 left)``.
        """
        Q, loads = self._loadings
        seen = candidate.observed
        left = np.linalg.solve(seen.root.T, seen.errors - seen.level * seen.ones)
        along = candidate.size * (Q[periods[: seen.T0]].T @ left)
        return np.asarray(self._counts * (1 + along @ loads))


@dataclass(frozen=True, eq=False)
class PanelForecast(Forecast):
    """A forecast from a panel's rows; the series has the periods in use only.

    Parameters
    ----------
    positions : array
        The series' periods among the panel's.
    noise : array
        The variance of the noise in each of the panel's periods; zero for a series from outside.
    is_unit : bool
        Whether the target is a unit of the panel: it then moves about as much as the others, and is no average of them.
    """

    positions: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    noise: Array = field(default_factory=lambda: np.empty(0))
    is_unit: bool = True

    @property
    def rows(self) -> DonorRows:
        """The donors."""
        assert isinstance(self.release, DonorRows)
        return self.release

    @property
    def periods(self) -> Integers:
        """The positions in the panel of the periods in use."""
        return self.positions[self.kept]

    def _models(self, y: Array) -> TargetModels:
        models = super()._models(y)
        return replace(models, noise=self.noise[self.periods], averages=1 if self.is_unit else None)

    def _population_model(self, models: TargetModels, question: str) -> tuple[list[Candidate], Any, dict[str, float]]:
        """Return the models with what noise does to them: the target's own, and the donors' by their weights."""
        candidates, light, found = super()._population_model(models, question)
        own, donors = self.noise[self.periods], self.rows.variances[:, self.periods]
        with_noise = [
            replace(c, noise=np.diag(own + self.rows.weights(c, self.periods) ** 2 @ donors)) for c in candidates
        ]
        return with_noise, light, found

    def _weights(self, candidates: list[Candidate], times: Times, T0: int) -> pd.Series[float]:
        """Return the donors' weights, by name."""
        weights = sum(c.weight * self.rows.weights(c, self.periods) for c in candidates)
        return pd.Series(weights, index=pd.Index(self.rows.names, name="donor"), name="weight")

    def others(self) -> dict[str, Found]:
        """Ask the same about each donor, treated when the target was; the treated unit is no donor of theirs.

        Of very many donors some are asked about, by chance.
        """
        if self.rows.n <= FEWEST_DONORS:
            return {}
        chosen = np.sort(np.random.default_rng(0).permutation(self.rows.n)[:MOST_REPEATED])
        return {self.rows.names[k]: self.of_donor(int(k), self.rows.without(self.rows.names[k])) for k in chosen}

    def of_donor(self, k: int, rows: DonorRows) -> Found:
        """Ask the same about the k-th donor, treated when the target was, with other rows as donors."""
        name, seen = self.rows.names[k], self.series.notna().to_numpy()
        path = np.where(seen, self.rows.values[k, self.positions], np.nan)
        return replace(
            self,
            release=rows,
            series=pd.Series(path, self.series.index, name=name),
            noise=self.rows.variances[k],
            notes=(),
            title="",
            asks=False,
            is_unit=True,
        ).result()

    def without_each(self) -> dict[str, Found]:
        """Ask the same without each donor; without those that count most, if there are very many."""
        if self.rows.n <= FEWEST_DONORS:
            return {}
        weights = self.result().weights.to_numpy(dtype=np.float64)
        chosen = np.sort(np.argsort(-np.abs(weights))[:MOST_REPEATED])
        names = [self.rows.names[k] for k in chosen]
        return {name: replace(self, release=self.rows.without(name)).result() for name in names}


def estimate(
    panel: ReleasedPanel,
    target: str | int | TargetLike,
    treatment_time: Label,
    exclude: Iterable[str],
    level: float,
    title: str,
    treatment: Treatment,
    prices: Prices | None,
) -> Found:
    """Return the counterfactual of a unit or a series; :meth:`dpsc.PrivatePanel.estimate` says what options mean."""
    targets.require_order(target, treatment_time)
    left_out = _known(panel, "exclude", exclude)
    first = treatment.begins(panel.times, treatment_time)
    if isinstance(target, str | int):
        target = str(target)
        _known(panel, "target", [target])
        rows = DonorRows.of(panel, {target, *left_out})
        forecast = _of_unit(rows, target, first, left_out, f"{panel.outcome} in {target}")
    else:
        rows = DonorRows.of(panel, left_out)
        series, T0, notes = targets.matched(rows, target, first)
        notes = (*notes, *_left_out(rows, left_out))
        forecast = _forecast(rows, series, T0, np.zeros(len(rows.times)), notes, is_unit=False)
    return _answered(forecast, panel, level, title, treatment, prices)


def _answered(
    forecast: PanelForecast, panel: ReleasedPanel, level: float, title: str, treatment: Treatment, prices: Prices | None
) -> Found:
    """Return the answer of a forecast, about a treatment."""
    phases = treatment.phases(forecast.series.index, forecast.T0)
    said = replace(forecast, level=checks.share("level", level), title=title, phases=phases, prices=prices)
    return _explained(said.result(), panel)


def study(
    panel: ReleasedPanel,
    treatment_times: Mapping[str, Label] | None,
    exclude: Iterable[str],
    weights: WeightsLike | None,
    groups: GroupsLike | None,
    level: float,
    title: str,
    treatments: Treatments,
    prices: Prices | None,
) -> Study:
    """Return the study; :meth:`dpsc.PrivatePanel.study` says what the arguments mean."""
    treatment_times = treatments.begins(panel.times, treatment_times)
    if treatments.on is not None:
        treatment_times = {unit: date for unit, date in treatment_times.items() if date is not None}
    if not isinstance(treatment_times, Mapping) or not treatment_times:
        raise ReleaseError("a study takes the first treated period of each treated unit: {unit: period, ...}.")
    treated = _known(panel, "treatment_times", treatment_times)
    each = treatments.of(treated)
    left_out = {*treated, *_known(panel, "exclude", exclude)}
    rows = DonorRows.of(panel, left_out)
    results: dict[Label, Found] = {}
    for unit in treated:
        with targets.about_unit(unit):
            forecast = _of_unit(rows, unit, treatment_times[unit], left_out, panel.outcome)
            results[unit] = _answered(forecast, panel, level, "", each[unit], None)
    sizes = {unit: _people(panel, str(unit), result.T0) for unit, result in results.items()}
    shares = weights_of(results, weights, sizes, _NO_SIZES)
    return pooled(rows, results, {}, shares, level, title, prices, groups, PanelStudyAgain)


@dataclass(frozen=True, eq=False)
class PanelStudyAgain(StudyAgain):
    """Asks the same about groups of other units of the panel, which are real."""

    def elsewhere(self, groups: int, seed: int) -> tuple[dict[str, Study], bool]:
        """Ask the same about groups of donors, drawn at random, each treated when a unit of the study was.

        The units of a group are no donors of each other, as those of the study are none.
        """
        rows, size = self.release, len(self.results)
        assert isinstance(rows, DonorRows)
        if rows.n - size < FEWEST_DONORS:
            return {}, True
        rng = np.random.default_rng(seed)
        drawn = {tuple(rng.permutation(rows.n)[:size].tolist()): None for _ in range(groups)}
        return {", ".join(rows.names[k] for k in group): self._of_donors(rows, group) for group in drawn}, True

    def _of_donors(self, rows: DonorRows, group: tuple[int, ...]) -> Study:
        left = rows.without(*(rows.names[k] for k in group))
        found: dict[Label, Found] = {}
        for k, (name, result) in zip(group, self.results.items(), strict=True):
            assert isinstance(result.repeats, PanelForecast)
            found[name] = result.repeats.of_donor(k, left)
        return pooled(left, found, {}, self.shares, 0.95)


_NO_SIZES = "this panel does not say how many people are in each unit; give weights={unit: number, ...}."


def _people(panel: ReleasedPanel, unit: str, T0: int) -> float | None:
    """Return how many people were in a unit before its treatment, on average; None if the panel does not say it."""
    if panel.table.people is None:
        return None
    found = panel.table.people[panel.units.index(unit), :T0]
    return max(0.0, float(np.nanmean(found))) if np.isfinite(found).any() else None


def _require_readable(panel: ReleasedPanel) -> None:
    """Refuse a table whose noise is far larger than all it shows, which no noise makes: it was published by others."""
    values, noise = panel.table.values, panel.table.noise[np.isfinite(panel.table.values)]
    if noise.size and noise.max() > _LARGEST_NOISE * float(np.ptp(values[np.isfinite(values)])):
        raise ReleaseError("the noise is far larger than all differences in the table; nothing can be learned from it.")


def _known(panel: ReleasedPanel, name: str, units: Iterable[str]) -> list[str]:
    """Return names of units, or refuse one that the panel does not have."""
    named = [units] if isinstance(units, str) else list(units)
    for unit in named:
        if unit not in panel.units:
            close = checks.did_you_mean(str(unit), panel.units)
            raise ReleaseError(f"{Parameter(name)}: the panel has no unit {str(unit)!r}.{close}")
    return named


def _of_unit(rows: DonorRows, unit: str, treatment_time: Label, left_out: Iterable[str], name: str) -> PanelForecast:
    """Return the forecast of a unit; periods before the intervention in which it has too few people are not used."""
    panel, row = rows.panel, rows.panel.units.index(unit)
    T0 = first_treated(panel.times, treatment_time)
    series = pd.Series(panel.table.values[row], index=panel.times, name=name)
    lacking = [period_name(time) for time, value in series.iloc[:T0].items() if not np.isfinite(value)]
    if T0 - len(lacking) < 2:
        raise ReleaseError(
            f"{unit} has {T0 - len(lacking)} periods with enough people before {period_name(treatment_time)}; at least "
            "2 are needed."
        )
    notes = [f"in the panel, {hole}" for hole in holes(panel.times)]
    if lacking:
        notes.append(f"too few people are in {unit} in {listed(lacking)}: not used")
    notes += incomplete(series.iloc[T0:])
    noise = np.nan_to_num(panel.table.noise[row]) ** 2
    notes += _left_out(rows, {unit, *left_out})
    return _forecast(rows, series, T0, noise, notes, is_unit=True)


def _forecast(
    rows: DonorRows, series: pd.Series[float], T0: int, noise: Array, notes: Iterable[str], *, is_unit: bool
) -> PanelForecast:
    """Return the forecast of a series over the panel's periods, which may have holes before T0."""
    known = np.isfinite(series.to_numpy(dtype=np.float64))
    positions = np.flatnonzero(known | (np.arange(len(series)) >= T0))
    says = {
        "typical_noise": float(np.sqrt(np.median(rows.variances))),
        "own_noise": float(np.sqrt(np.mean(noise[positions]))),
        "until": period_name(rows.times[-1]),
    }
    identities = " + ".join(identity[:8] for identity in rows.panel.identities)
    return PanelForecast(
        rows,
        series.iloc[positions],
        int(known[:T0].sum()),
        None,
        "private panel, population model",
        notes=tuple(notes),
        asks=not is_unit,
        parameters=says | ({"release": identities} if identities else {}),
        positions=positions,
        noise=noise,
        is_unit=is_unit,
    )


def _left_out(rows: DonorRows, others: Iterable[str]) -> list[str]:
    """Say which units are no donors because a cell of theirs is missing, and that few donors are few."""
    lacking = [unit for unit in rows.panel.units if unit not in rows.names and unit not in set(others)]
    notes = []
    if lacking:
        notes.append(f"no donors, because a period of theirs has too few people or is not there: {listed(lacking)}")
    if rows.n < FEWEST_CLOSER:
        notes.append(
            f"there are {rows.n} donors; with 7, forecasts without donors were closer in our measurements, with "
            f"{FEWEST_CLOSER} the answers were"
        )
    return notes


def _explained(result: Found, panel: ReleasedPanel) -> Found:
    """Add what every answer from a panel says: what bounds cut, what privacy adds, where the panel ends."""
    both, model = (np.ptp(result.uncertainty.ends(result._average(), result.level, part)) for part in ("both", "model"))
    notes = list(dict.fromkeys(_bounded(block.rule) for block in panel.blocks))
    if both > 0 and result.observed.notna().any():
        share = round(100 * (1 - model / both))
        notes.append(f"privacy noise makes up {share}% of the width of the average effect's interval")
    notes.append(f"the panel goes up to {period_name(panel.times[-1])}")
    return replace(result, notes=(*result.notes, *filter(None, notes)))


def _bounded(rule: TableRule) -> str:
    """Say what bounds make of the outcome, so that effects are effects on that."""
    said = []
    if rule.has_values and rule.bounds is not None:
        lo, hi = rule.bounds
        said.append(f"a person's value in a cell counts as at least {number(lo)} and at most {number(hi)}")
    if rule.person_bound is not None:
        said.append(f"all values of a person together have a length of at most {number(rule.person_bound)}")
    if rule.is_thinned:
        said.append(f"a person counts in at most {rule.most_cells} cell{'s' * (rule.most_cells > 1)}")
    return f"effects are on the bounded outcome: {', '.join(said)}" if said else ""
