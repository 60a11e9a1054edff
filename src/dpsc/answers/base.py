"""The numbers of one answer, and of several from one release; words, figures and files are made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.answers.effects import (
    NO_PERCENT,
    Effect,
    IntervalKind,
    IntervalPart,
    Uncertainty,
    Unknown,
    detectable_effect,
    effects_of,
)
from dpsc.errors import ParameterError
from dpsc.periods.dates import period_name
from dpsc.privacy.guarantee import Guarantee
from dpsc.types import Array, Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpsc.answers.figures.sheet import Sheet

_ONE_DEVIATION = 0.6827  # the chance that a normal error is at most one standard deviation
Drawing = Callable[[Any, "Sheet", str | None], "Axes"]
"""Draws an answer on a sheet, in units."""


@dataclass(frozen=True)
class Verdict:
    """Do the donors help? An answer in three grades, from the target's own past.

    Attributes
    ----------
    grade : {"yes", "unclear", "no"}
    headline : str
        The answer in a few words.
    reason : str
        A sentence that says why.
    check_first : bool
        Whether the reason is something to check before the answer is read, such as units of measurement.
    """

    grade: Literal["yes", "unclear", "no"]
    headline: str
    reason: str
    check_first: bool = False

    @property
    def comes_first(self) -> bool:
        """Whether it stands before the answer: the donors do not carry it, or something must be checked."""
        return self.check_first or self.grade == "no"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answer:
    """The observed target, a counterfactual after the intervention, and everything known about how it was made.

    Attributes
    ----------
    target : Series
        By period, before and after the intervention.
    T0 : int
        The number of periods before the intervention.
    counterfactual : Series
        By period from the intervention on.
    weights : Series or DataFrame
    algorithm : str
    guarantee : Guarantee or None
    reason : str
        Why there is no guarantee; empty if there is one.
    parameters : mapping
        The public numbers used.
    uncertainty : Uncertainty
        The source of the intervals.
    level : float
        The level of the intervals in summaries and figures.
    fitted : Series
        By period before the intervention; empty if there is no fit.
    title : str
        The question in a few words, for figures and reports; empty for the usual one.
    baselines : DataFrame
        Forecasts without donors, one column each; without columns if there are none.
    verdict : Verdict or None
        Whether the donors help; None if it is not known.
    notes : tuple of str
        Warnings to the reader.
    """

    target: pd.Series[float]
    T0: int
    counterfactual: pd.Series[float]
    weights: pd.Series[float] | pd.DataFrame
    algorithm: str
    guarantee: Guarantee | None
    reason: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    uncertainty: Uncertainty = field(default_factory=Unknown)
    level: float = 0.95
    fitted: pd.Series[float] = field(default_factory=lambda: pd.Series(dtype=np.float64, name="fitted"))
    title: str = ""
    baselines: pd.DataFrame = field(default_factory=pd.DataFrame)
    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()
    figures: ClassVar[Mapping[str, Drawing]] = {}

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"parameters": dict(self.parameters)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"parameters": MappingProxyType(state["parameters"])})

    @property
    def private(self) -> bool:
        """Whether it carries a guarantee."""
        return self.guarantee is not None

    @property
    def headline(self) -> str:
        """What this is, in a few words."""
        return self.algorithm if self.private else f"{self.algorithm}, NOT PRIVATE"

    @property
    def observed(self) -> pd.Series[float]:
        """The target from the intervention on."""
        return self.target.iloc[self.T0 :]

    @property
    def treatment_time(self) -> Any:
        """The first treated period."""
        return self.target.index[self.T0]

    @property
    def gaps(self) -> pd.Series[float]:
        """The effect in each period: observed minus counterfactual."""
        return (self.observed - self.counterfactual).rename("gap")

    @property
    def att(self) -> float:
        """The average effect over the periods in which the target was observed."""
        return float(self.gaps.mean())

    @property
    def interval_kind(self) -> IntervalKind:
        """What :meth:`interval` and :meth:`att_interval` cover: "effect", "projection noise", or "none"."""
        return self.uncertainty.kind

    def interval(self, level: float | None = None, part: IntervalPart = "both") -> pd.DataFrame:
        """Return an interval around the counterfactual of each period; its bounds are NaN if nothing is known.

        From a Gram release, ``"both"`` covers the untreated outcome: it combines how targets differ from donors
        (``"model"``) with the error from the release's noise (``"privacy"``, too narrow alone). From the two-step
        algorithms, only the error from the noise of the projection step is known, so the interval covers what the
        released weights give on the donors themselves. It does not include how good those weights are: it is not an
        interval for the effect.
        """
        path = self.counterfactual
        lower, upper = self.uncertainty.ends(np.eye(len(path)), self._level(level), _part(part))
        return pd.DataFrame({"lower": path + lower, "upper": path + upper})

    def att_interval(self, level: float | None = None, part: IntervalPart = "both") -> tuple[float, float]:
        """Return an interval for the average effect over the observed periods; ``part`` as in :meth:`interval`.

        From the two-step algorithms it shows projection noise only and is not an interval for the effect.
        """
        lower, upper = self.uncertainty.ends(self._average(), self._level(level), _part(part))
        return self.att - float(upper[0]), self.att - float(lower[0])

    @property
    def average(self) -> Effect:
        """The average effect over the observed periods, with its interval, in percent, and its p-value."""
        return self._effects(self._average(), self.level)[0]

    @property
    def standard_error(self) -> float:
        """Of the average effect: half the length of its 68% interval."""
        low, high = self.att_interval(_ONE_DEVIATION)
        return (high - low) / 2

    @property
    def total(self) -> Effect:
        """The sum of the effects over the observed periods, as :attr:`average`."""
        return self._effects(self._seen().sum() * self._average(), self.level)[0]

    def average_over(self, times: Times) -> Effect:
        """Return the average effect over some of the periods, those of them that were observed."""
        chosen = self._seen() * self.observed.index.isin(times)
        return self._effects(chosen[np.newaxis] / max(1.0, chosen.sum()), self.level)[0]

    @property
    def p_value(self) -> float:
        """The chance of an average effect at least this far from zero if there were none; NaN if it is not known."""
        return self.average.p_value

    def effects(self, level: float | None = None) -> pd.DataFrame:
        """Return effects as people state them: the average, the total, and each period.

        Columns: ``effect``, ``lower`` and ``upper`` (its interval), ``percent`` of the counterfactual with
        ``percent_lower`` and ``percent_upper``, and ``p_value``, the chance of an effect at least this far from zero
        if there were none. Percentages are missing where the counterfactual may be zero or less: :attr:`no_percent`
        says so.
        """
        level, average = self._level(level), self._average()
        rows = np.vstack([average, self._seen().sum() * average, np.diag(self._seen())])
        names = ["average", "total", *map(period_name, self.observed.index)]
        return pd.DataFrame(self._effects(rows, level), index=pd.Index(names, name="effect of"))

    @property
    def no_percent(self) -> str:
        """Why the average effect is not stated in percent; empty if it is."""
        if self.interval_kind != "effect" or not np.isnan(self.average.percent) or np.isnan(self.att):
            return ""
        return NO_PERCENT

    def cumulative(self, level: float | None = None) -> pd.DataFrame:
        """Return the sum of the effects up to each period, with its interval: ``effect``, ``lower``, ``upper``."""
        rows = np.tril(np.ones((len(self.observed), 1)) * self._seen())
        found = self._effects(rows, self._level(level))
        return pd.DataFrame(found, index=self.observed.index)[["effect", "lower", "upper"]]

    def detectable(self, level: float = 0.05, power: float = 0.8) -> float:
        """Return the smallest average effect that would be seen, before looking at the outcome.

        An effect of this size would have a p-value below ``level`` with chance ``power``, whichever its sign. The
        average is over the observed periods, or over all if none is observed yet. NaN without an interval for the
        effect.
        """
        level, power = checks.share("level", level), checks.share("power", power)
        seen = self._seen() if self._seen().any() else np.ones(len(self.counterfactual))
        return detectable_effect(self.uncertainty, seen / seen.sum(), level, power)

    def interval_before(self, level: float | None = None) -> pd.DataFrame:
        """Return, for each period before the intervention, an interval around the fit; NaN if nothing is known."""
        lower, upper = self.uncertainty.ends_before(self._level(level))
        return pd.DataFrame({"lower": self.fitted + lower, "upper": self.fitted + upper}, index=self.fitted.index)

    def before_frame(self) -> pd.DataFrame:
        """One row per period before the intervention: observed, fit with its interval, gap; empty without a fit."""
        if not self.fitted.notna().any():
            return pd.DataFrame()
        band, observed = self.interval_before(), self.target.iloc[: self.T0]
        columns = {"observed": observed, "fit": self.fitted, "fit_lower": band["lower"], "fit_upper": band["upper"]}
        return pd.DataFrame(columns | {"gap": observed - self.fitted}).dropna(axis=1, how="all")

    def to_frame(self) -> pd.DataFrame:
        """One row per period from the intervention on: observed, counterfactual, gap, running total, baselines.

        The counterfactual, the gap and the total have their intervals beside them, under names such as ``gap_lower``.
        """
        columns = {"observed": self.observed, "counterfactual": self.counterfactual, "gap": self.gaps}
        if self.interval_kind != "none":
            band, total = self.interval(), self.cumulative()
            low, high = band["lower"], band["upper"]
            with_ends = {
                "counterfactual": (self.counterfactual, low, high),
                "gap": (self.gaps, self.observed - high, self.observed - low),
                "total": (total["effect"], total["lower"], total["upper"]),
            }
            columns = {"observed": self.observed}
            for name, parts in with_ends.items():
                columns |= zip((name, f"{name}_lower", f"{name}_upper"), parts, strict=True)
        return pd.DataFrame(columns | {str(name): path for name, path in self.baselines.items()})

    def _seen(self) -> Array:
        return np.asarray(self.observed.notna(), dtype=np.float64)

    def _average(self) -> Array:
        return np.asarray(self._seen()[np.newaxis] / max(1.0, self._seen().sum()))

    def _effects(self, combinations: Array, level: float) -> list[Effect]:
        observed, path = self.observed.to_numpy(dtype=np.float64), self.counterfactual.to_numpy(dtype=np.float64)
        return effects_of(observed, path, combinations, self.uncertainty, level)

    def _level(self, level: float | None) -> float:
        return self.level if level is None else checks.share("level", level)


def _part(part: IntervalPart) -> IntervalPart:
    if part not in ("both", "privacy", "model"):
        raise ParameterError(f"part must be 'both', 'privacy' or 'model', not {part!r}.")
    return part


@dataclass(frozen=True, eq=False, repr=False)
class Pooled:
    """The answers for several treated units, and what they say together; :class:`dpsc.Study` explains the fields."""

    results: Mapping[Any, Answer]
    never_treated: Mapping[Any, pd.Series[float]]
    weights: pd.Series[float]
    uncertainty: Uncertainty
    level: float = 0.95
    title: str = ""
    figures: ClassVar[Mapping[str, Drawing]] = {}

    @property
    def guarantee(self) -> Guarantee | None:
        """The release's guarantee."""
        return self._first.guarantee

    @property
    def reason(self) -> str:
        """Why there is no guarantee; empty if there is one."""
        return self._first.reason

    @property
    def private(self) -> bool:
        """Whether it carries a guarantee."""
        return self.guarantee is not None

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings to the reader, each after the names of the units that it is about."""
        about: dict[str, list[str]] = {}
        for name, result in self.results.items():
            for note in result.notes:
                about.setdefault(note, []).append(str(name))
        every = len(self.results)
        who = {note: "all units" if len(names) == every > 1 else ", ".join(names) for note, names in about.items()}
        return tuple(f"{names}: {note}" for note, names in who.items())

    @property
    def average(self) -> Effect:
        """The average effect over treated units and periods, with its interval, in percent, and its p-value."""
        return self._pooled(self._per_unit_period[np.newaxis], self.level)[0]

    @property
    def att(self) -> float:
        """The average effect over treated units and periods."""
        return self.average.effect

    @property
    def p_value(self) -> float:
        """The chance of an average effect at least this far from zero if there were none."""
        return self.average.p_value

    def att_interval(self, level: float | None = None) -> tuple[float, float]:
        """Return an interval for the average effect over treated units and periods."""
        found = self._pooled(self._per_unit_period[np.newaxis], self._level(level))[0]
        return found.lower, found.upper

    def effects(self, level: float | None = None) -> pd.DataFrame:
        """Return pooled effects: the average over unit-periods, the average over units, and the total.

        Columns as in :meth:`Answer.effects`. The first average counts every treated unit-period
        once (times its unit's weight), the second every unit.
        """
        weights = self._unit_weights * self._seen
        rows = np.array([self._per_unit_period, self._per_unit, weights])
        names = pd.Index(["average over unit-periods", "average over units", "total"], name="effect of")
        return pd.DataFrame(self._pooled(rows, self._level(level)), index=names)

    def by_unit(self, level: float | None = None) -> pd.DataFrame:
        """Return one row per treated unit: its date, how many periods were observed, and its average effect."""
        level = self._level(level)
        rows = {}
        for name, result in self.results.items():
            effect = replace(result, level=level).average
            rows[name] = {
                "treatment_time": period_name(result.treatment_time),
                "periods": int(result.observed.notna().sum()),
                "weight": float(self.weights[name]),
                **effect._asdict(),
                "donors_help": result.verdict.grade if result.verdict else None,
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("unit")

    def by_event_time(self, level: float | None = None) -> pd.DataFrame:
        """Return the average effect k periods after adoption (k = 0 is the first treated period).

        ``units`` says how many units each rests on: later ones rest on those that adopted early.
        """
        return self._by(self._event_times, "periods after adoption", level)

    def by_calendar_time(self, level: float | None = None) -> pd.DataFrame:
        """Return the average effect in each period over the units that are treated in it; ``units`` says how many."""
        return self._by(self._times, "time", level)

    def to_frame(self) -> pd.DataFrame:
        """Return every unit's table, one below the other, with ``unit`` and ``time`` first."""
        frames = [r.to_frame().rename_axis("time").reset_index().assign(unit=name) for name, r in self.results.items()]
        frame = pd.concat(frames, ignore_index=True)
        return frame[["unit", *(column for column in frame if column != "unit")]]

    @property
    def _first(self) -> Answer:
        return next(iter(self.results.values()))

    def _level(self, level: float | None) -> float:
        return self.level if level is None else checks.share("level", level)

    def _pooled(self, combinations: Array, level: float) -> list[Effect]:
        return effects_of(self._observed, self._counterfactual, combinations, self.uncertainty, level)

    def _by(self, keys: Times, name: str, level: float | None) -> pd.DataFrame:
        """Return the weighted average effect of each group of unit-periods with the same key."""
        groups = sorted(set(keys[self._seen]))
        weights = self._unit_weights * self._seen
        rows = np.array([np.where(keys == key, weights, 0.0) for key in groups])
        found = pd.DataFrame(self._pooled(rows / rows.sum(axis=1, keepdims=True), self._level(level)))
        found.insert(0, "units", (rows > 0).sum(axis=1))
        return found.set_axis(pd.Index(groups, name=name), axis=0)

    @cached_property
    def _observed(self) -> Array:
        return np.concatenate([r.observed.to_numpy(dtype=np.float64) for r in self.results.values()])

    @cached_property
    def _counterfactual(self) -> Array:
        return np.concatenate([r.counterfactual.to_numpy(dtype=np.float64) for r in self.results.values()])

    @cached_property
    def _seen(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return ~np.isnan(self._observed)

    @cached_property
    def _times(self) -> Times:
        first, *others = (r.observed.index for r in self.results.values())
        index: Times = first.append(others)
        return index

    @cached_property
    def _event_times(self) -> Times:
        index: Times = pd.Index(np.concatenate([np.arange(len(r.observed)) for r in self.results.values()]))
        return index

    @cached_property
    def _unit_weights(self) -> Array:
        """Each unit's weight, for each of its periods."""
        return np.concatenate([np.full(len(r.observed), self.weights[name]) for name, r in self.results.items()])

    @property
    def _per_unit_period(self) -> Array:
        weights = self._unit_weights * self._seen
        return np.asarray(weights / max(weights.sum(), 1e-300))

    @property
    def _per_unit(self) -> Array:
        parts = []
        for name, result in self.results.items():
            seen = result.observed.notna().to_numpy(dtype=np.float64)
            parts.append(self.weights[name] * seen / max(1.0, seen.sum()))
        total = sum(float(part.sum()) for part in parts)
        return np.concatenate(parts) / max(total, 1e-300)
