"""The numbers of one answer, and of several from one release; words, figures and files are made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
    Prices,
    Uncertainty,
    Unknown,
    contrasts,
    detectable_effect,
    effects_of,
)
from dpsc.errors import ParameterError
from dpsc.periods.dates import period_name
from dpsc.periods.treatment import LEFT_OUT, OFF, ON, Phase
from dpsc.privacy.guarantee import Guarantee, mark_of
from dpsc.types import Array, Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpsc.answers.figures.sheet import Sheet

ONE_DEVIATION = 0.6827  # the chance that a normal error is at most one standard deviation
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
    phases : tuple of str
        What each period from the intervention on is: "on", "left out" (treated and not counted) or "off" (not treated
        any more); empty if all are on.
    prices : Prices or None
        What the outcome is worth and what the intervention cost, if that was said.
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
    phases: tuple[Phase, ...] = ()
    prices: Prices | None = None
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
    def mark(self) -> str:
        """What stands on everything made of it if it carries no guarantee of dpsc; empty if it does."""
        return "" if self.private else mark_of(self.reason)

    @property
    def headline(self) -> str:
        """What this is, in a few words."""
        return self.algorithm if self.private else f"{self.algorithm}, {self.mark}"

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
        """The average effect over the treated periods in which the target was observed, without those left out."""
        return float(self.gaps[self.counted > 0].mean())

    @property
    def is_on(self) -> Array:
        """1 for each period from the intervention on in which the treatment is on and none is left out, else 0."""
        return self._in(ON)

    @property
    def counted(self) -> Array:
        """1 for each period from the intervention on that is in the effect: treated, observed, not left out; else 0."""
        return self.is_on * self._seen()

    @property
    def ended(self) -> bool:
        """Whether the treatment is off in some period after it began."""
        return OFF in self.phases

    @property
    def treatment_end(self) -> str | None:
        """The last treated period, if the treatment ended, as it is written."""
        last = np.flatnonzero([phase != OFF for phase in self.phases])
        return period_name(self.counterfactual.index[last[-1]]) if self.phases and self.phases[-1] == OFF else None

    @property
    def left_out(self) -> Times:
        """The treated periods that are left out: neither fitted nor in the effect."""
        index: Times = self.counterfactual.index[self._in(LEFT_OUT) > 0]
        return index

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
        low, high = self.att_interval(ONE_DEVIATION)
        return (high - low) / 2

    @property
    def total(self) -> Effect:
        """The sum of the effects over the observed periods, as :attr:`average`."""
        return self._effects(self.counted[np.newaxis], self.level)[0]

    def contrasts(self, level: float | None = None) -> pd.DataFrame:
        """Return the effect after the treatment, how it differs from that while treated, and whether it fades.

        Columns as in :meth:`effects`. Rows: ``after the treatment``, the average over the observed periods without
        treatment after it began; ``while treated minus after``; ``second half minus first half of the treated
        periods``. A row is missing where there are no such periods.
        """
        found = contrasts(self.counted, self._in(OFF) * self._seen())
        return frame_of(self._effects(np.array(list(found.values())), self._level(level)) if found else [], list(found))

    def worth(self, level: float | None = None) -> pd.DataFrame:
        """Return what the total effect is worth: ``effect``, ``lower`` and ``upper`` of each line.

        Rows: ``total effect`` (the sum over the treated periods, times how many units the target is the average of, if
        that was said), ``value``, and if there is a cost ``value minus cost`` and ``return``, the value over the cost.
        """
        weights = self.stands_for * self.counted
        return worth_of(self.prices, self._effects(weights[np.newaxis], self._level(level))[0])

    @property
    def stands_for(self) -> int:
        """How many units the target is the average of, if that was said; else 1."""
        return int(self.parameters.get("averages", 1))

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
        rows = np.vstack([self._average(), self.counted, np.diag(self._seen())])
        names = ["average", "total", *map(period_name, self.observed.index)]
        return frame_of(self._effects(rows, self._level(level)), names)

    @property
    def no_percent(self) -> str:
        """Why the average effect is not stated in percent; empty if it is."""
        if self.interval_kind != "effect" or not np.isnan(self.average.percent) or np.isnan(self.att):
            return ""
        return NO_PERCENT

    def cumulative(self, level: float | None = None) -> pd.DataFrame:
        """Return the sum of the effects up to each period, with its interval: ``effect``, ``lower``, ``upper``."""
        rows = np.tril(np.ones((len(self.observed), 1)) * self.counted)
        found = self._effects(rows, self._level(level))
        return pd.DataFrame(found, index=self.observed.index)[["effect", "lower", "upper"]]

    def detectable(self, level: float = 0.05, power: float = 0.8) -> float:
        """Return the smallest average effect that would be seen, before looking at the outcome.

        An effect of this size would have a p-value below ``level`` with chance ``power``, whichever its sign. The
        average is over the observed periods, or over all if none is observed yet. NaN without an interval for the
        effect.
        """
        level, power = checks.share("level", level), checks.share("power", power)
        seen = self.counted if self.counted.any() else self.is_on
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
        treatment = {"treatment": pd.Series(self.phases, self.observed.index)} if self.phases else {}
        return pd.DataFrame(columns | treatment | {str(name): path for name, path in self.baselines.items()})

    def _seen(self) -> Array:
        return np.asarray(self.observed.notna(), dtype=np.float64)

    def _average(self) -> Array:
        return np.asarray(self.counted[np.newaxis] / max(1.0, self.counted.sum()))

    def _in(self, phase: Phase) -> Array:
        phases = self.phases or (ON,) * len(self.counterfactual)
        return np.array([each == phase for each in phases], dtype=np.float64)

    def _effects(self, combinations: Array, level: float) -> list[Effect]:
        observed, path = self.observed.to_numpy(dtype=np.float64), self.counterfactual.to_numpy(dtype=np.float64)
        return effects_of(observed, path, combinations, self.uncertainty, level)

    def _level(self, level: float | None) -> float:
        return self.level if level is None else checks.share("level", level)


def frame_of(found: list[Effect], names: list[str]) -> pd.DataFrame:
    """Return effects as a table with their names."""
    return pd.DataFrame(found, index=pd.Index(names, name="effect of", dtype=object), columns=Effect._fields)


def worth_of(prices: Prices | None, total: Effect) -> pd.DataFrame:
    """Return what a total effect is worth; refuse where no value was stated."""
    if prices is None:
        raise ParameterError("say what one unit of the outcome is worth: value_per_unit=.")
    found = prices.worth(total)
    return frame_of(list(found.values()), list(found))[["effect", "lower", "upper"]]


def _part(part: IntervalPart) -> IntervalPart:
    if part not in ("both", "privacy", "model"):
        raise ParameterError(f"part must be 'both', 'privacy' or 'model', not {part!r}.")
    return part
