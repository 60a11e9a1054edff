"""The same question with other choices: placebos in time and in space, and how much the answer depends on choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NoReturn, Protocol

import numpy as np
import pandas as pd

from dpsc.answers.base import Answer
from dpsc.answers.effects import Effect
from dpsc.answers.pooled import Pooled
from dpsc.answers.words import number
from dpsc.errors import ParameterError
from dpsc.periods.dates import period_name
from dpsc.periods.treatment import Phase
from dpsc.types import Array, Label

ALSO_ASKED = "asked for, too"
OTHER_POOL = "donors: "
_EARLIER = (1, 2, 3, 4)
_MOST_DATES = 12  # of a study
_LATER_STARTS = (0.25, 0.5)  # shares of the periods before the intervention


class Repeats(Protocol):
    """Asks the same release again, with other choices; costs nothing."""

    @property
    def placebo_dates(self) -> list[Any]:
        """Every date at which a placebo is possible."""

    def placebo(self, treatment_time: Label | None = None, longest: int | None = None) -> Answer:
        """Forecast the untreated periods after an earlier date, at most ``longest`` of them."""

    def again(self, *, earlier: int = 0, left_out: int = 0, first: int = 0) -> Answer:
        """Date the intervention earlier, leave out the last periods before it, or start with a later period."""

    def pseudo_units(
        self, count: int, seed: int | Sequence[int], shared: Array | None = None, alike: float = 0.0
    ) -> pd.DataFrame:
        """Draw units like the target, one a column, from the release alone; they may share something with others."""

    def of(self, unit: pd.Series[float]) -> Answer:
        """Ask the same about another unit."""

    def during(self, phases: tuple[Phase, ...]) -> Repeats:
        """Return what asks about a treatment with these phases."""

    def others(self) -> Mapping[str, Answer]:
        """Ask the same about each donor, by name, as if it had been treated; nothing where donors are not public."""

    def without_each(self) -> Mapping[str, Answer]:
        """Ask the same without each donor, by name; nothing where donors are not public."""

    def pools(self) -> Mapping[str, Answer]:
        """Ask the other pools of segments that are readable, by name; nothing where there are no segments."""


class NoRepeats:
    """Refuses, because asking again would touch the donors again."""

    placebo_dates: ClassVar[list[Any]] = []

    def placebo(self, treatment_time: Label | None = None, longest: int | None = None) -> Answer:
        """Refuse."""
        raise ParameterError(
            "a placebo in time is free only from a Gram release; here it would touch the donors again. Fit the "
            "algorithm to a panel with an earlier treatment time, and pay for it if it is private."
        )

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise ParameterError("this is free only from a Gram release; here it would touch the donors again.")

    def during(self, phases: tuple[Phase, ...]) -> Repeats:
        """Return the same."""
        return self

    again = pseudo_units = of = others = without_each = pools = _refuse


@dataclass(frozen=True, eq=False, repr=False)
class Placebos:
    """Effects that are none: of dates before the intervention, of made-up units, or of units that were not treated.

    Of a study they are pooled effects, of the whole study dated earlier, or of groups of as many units.

    Attributes
    ----------
    kind : {"time", "space"}
    real : Effect
        The average effect that they are compared with.
    table : DataFrame
        One row per placebo: ``effect``, ``lower``, ``upper``, ``p_value`` and, in time, how many ``periods``; of real
        units, by name, also ``over_error``, the effect over its standard error.
    over_error : float
        The real effect over its standard error, to be compared with those of real units.
    units : int
        How many units each effect is pooled over; 1 except for studies.
    """

    kind: Literal["time", "space"]
    real: Effect
    table: pd.DataFrame
    over_error: float = math.nan
    units: int = 1

    @property
    def share(self) -> float:
        """The share of placebos at least as large as the real effect; NaN without one.

        In space effects are compared, those of real units over their standard errors, which differ. In time they are of
        different lengths, so that p-values are.
        """
        if np.isnan(self.real.effect) or not len(self.table):
            return float("nan")
        if self.of_real_units:
            return float((self.table["over_error"].abs() >= abs(self.over_error)).mean())
        if self.kind == "space":
            return float((self.table["effect"].abs() >= abs(self.real.effect)).mean())
        return float((self.table["p_value"] <= self.real.p_value).mean())

    @property
    def of_real_units(self) -> bool:
        """Whether they are of units that were not treated."""
        return "over_error" in self.table

    @property
    def rank(self) -> int | None:
        """The place of the real effect among all units, the target included; None without one."""
        if not self.of_real_units or np.isnan(self.share):
            return None
        return 1 + round(self.share * len(self.table))

    def __str__(self) -> str:
        groups, what = (f"groups of {self.units} ", "pooled effect") if self.units > 1 else ("", "effect")
        if self.rank is not None:
            return (
                f"the {what} has rank {self.rank} of {len(self.table) + 1} {groups}units, by effect over standard error"
            )
        where = "earlier dates" if self.kind == "time" else f"{groups}made-up units without any effect"
        if np.isnan(self.share):
            return f"{len(self.table)} {where}; the target was not observed afterwards, so there is no effect"
        count = round(self.share * len(self.table))
        return f"{count or 'none'} of {len(self.table)} {where} show an effect at least as large"

    def __repr__(self) -> str:
        return f"<Placebos: {self}>"

    def _repr_html_(self) -> str:
        return f"<p>{self}.</p>{self.table.to_html(float_format=number)}"


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """The average effect under other choices.

    Attributes
    ----------
    table : DataFrame
        One row per choice: what ``choice`` was made, the ``treatment_time``, how many periods ``before`` it were used,
        and the average ``effect`` from the real intervention on, with ``lower``, ``upper`` and ``p_value``. To date it
        earlier is to leave out the last periods before it; ``ahead`` is the average effect in those periods, which
        anticipation would show. The first row is the answer itself; of a release with segments the next ones are every
        other pool of them that is readable, and ``donors_help`` says for which of them donors help. Of a
        study there are the pools alone, without dates.
    """

    table: pd.DataFrame

    @property
    def dates(self) -> list[str]:
        """Every treatment time that was tried."""
        return list(dict.fromkeys(self.table["treatment_time"]))

    def __str__(self) -> str:
        return self.table.to_string(index=False, float_format=number)

    def __repr__(self) -> str:
        return f"<Sensitivity: {len(self.table)} choices>"

    def _repr_html_(self) -> str:
        return self.table.to_html(index=False, float_format=number)


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut:
    """The average effect without each donor, and how much the answer follows it.

    Attributes
    ----------
    table : DataFrame
        One row per donor, by name, those that count most first: its ``weight``, and ``effect``, ``lower``, ``upper``,
        ``p_value`` without it.
    """

    table: pd.DataFrame

    def __str__(self) -> str:
        low, high = (number(float(end)) for end in (self.table["effect"].min(), self.table["effect"].max()))
        return f"without one of {len(self.table)} donors the average effect is {low} to {high}"

    def __repr__(self) -> str:
        return f"<LeaveOneOut: {self}>"

    def _repr_html_(self) -> str:
        return self.table.to_html(float_format=number)


@dataclass(frozen=True, eq=False)
class Trials:
    """Everything that was tried beside the answer itself; None where it is not free or there are too few periods.

    ``others`` are treatment times for which somebody asked before settling on the one of the answer.
    """

    in_time: Placebos | None = None
    in_space: Placebos | None = None
    sensitivity: Sensitivity | None = None
    donors: LeaveOneOut | None = None
    others: tuple[str, ...] = ()

    def dates(self, treatment_time: Label) -> dict[str, list[str]]:
        """Return every date that was tried and why, the real one first."""
        tried = {period_name(treatment_time): ["the intervention"]}
        for date in self.others:
            if ALSO_ASKED not in tried.setdefault(date, []) and date != period_name(treatment_time):
                tried[date].append(ALSO_ASKED)
        for date in [] if self.sensitivity is None else self.sensitivity.dates[1:]:
            tried.setdefault(date, []).append("dated earlier")
        for date in [] if self.in_time is None else reversed(self.in_time.table.index):
            tried.setdefault(str(date), []).append("placebo")
        return tried


def all_trials(result: Answer, repeats: Repeats, units: int) -> Trials:
    """Return every placebo and every other choice that the release answers for free."""
    if not repeats.placebo_dates:
        return Trials()
    return Trials(
        in_time=placebos_in_time(result, repeats),
        in_space=placebos_in_space(result, repeats, units, seed=0),
        sensitivity=other_choices(result, repeats),
        donors=left_out(result, repeats),
    )


def placebos_in_time(result: Answer, repeats: Repeats) -> Placebos:
    """Return the average effect at every earlier date, over as many periods as the intervention has, or are there.

    Periods in which the treatment is off, or which are left out, have as many between the others as it has.
    """
    rows, longest = {}, 1 + int(np.flatnonzero(result.is_on)[-1])
    for date in repeats.placebo_dates:
        placebo = repeats.placebo(date, longest=longest)
        rows[period_name(date)] = _row(placebo.average) | {"periods": int(placebo.is_on.sum())}
    if not rows:
        raise ParameterError("a placebo needs at least 3 periods before the intervention.")
    return Placebos("time", result.average, pd.DataFrame.from_dict(rows, orient="index"))


def placebos_in_space(result: Answer, repeats: Repeats, units: int, seed: int) -> Placebos:
    """Return the average effect of the other units, treated when the target was; of made-up ones if none is public."""
    real = repeats.others()
    if real:
        rows_by_name = {name: _row(one.average) | {"over_error": _over_error(one)} for name, one in real.items()}
        table = pd.DataFrame.from_dict(rows_by_name, orient="index").rename_axis("unit")
        return Placebos("space", result.average, table, _over_error(result))
    drawn = repeats.pseudo_units(units, seed)
    rows = [_row(repeats.of(path).average) for _, path in drawn.items()]
    return Placebos("space", result.average, pd.DataFrame(rows))


def left_out(result: Answer, repeats: Repeats) -> LeaveOneOut | None:
    """Return the average effect without each donor; None where donors are not public."""
    without = repeats.without_each()
    if not without:
        return None
    weights = result.weights.loc[list(without)].to_numpy(dtype=np.float64)
    rows = {
        name: {"weight": weight} | _row(one.average)
        for (name, one), weight in zip(without.items(), weights, strict=True)
    }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("donor")
    return LeaveOneOut(table.sort_values("weight", key=abs, ascending=False, kind="stable"))


def study_in_time(study: Pooled) -> Placebos:
    """Return the pooled effect with all units dated earlier alike, over as many periods as each has, or are there."""
    most = study.repeats.earliest
    if not most:
        raise ParameterError("a placebo needs at least 3 periods before the treatment of every unit.")
    rows = {}
    for periods in np.unique(np.linspace(1, most, min(most, _MOST_DATES)).round().astype(int)).tolist():
        earlier = study.repeats.earlier(periods, as_long=True)
        counted = sum(int(result.counted.sum()) for result in earlier.results.values())
        if counted:  # periods that are left out may be all there are
            rows[periods] = _row(earlier.average) | {"periods": counted}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("periods earlier")
    return Placebos("time", study.average, table, units=len(study.results))


def study_in_space(study: Pooled, groups: int, seed: int) -> Placebos:
    """Return the pooled effects of groups of other units, or of made-up ones if none is public."""
    found, real = study.repeats.elsewhere(groups, seed)
    rows = {name: _row(one.average) | ({"over_error": _over_error(one)} if real else {}) for name, one in found.items()}
    columns = ["effect", "lower", "upper", "p_value", *(["over_error"] if real else [])]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("units" if real else "group")
    return Placebos("space", study.average, table, _over_error(study) if real else math.nan, len(study.results))


def _over_error(answer: Answer | Pooled) -> float:
    return answer.att / answer.standard_error


def other_choices(result: Answer, repeats: Repeats) -> Sensitivity:
    """Return the average effect with other pools of donors, for earlier dates, from later starts."""
    T0, index = result.T0, result.target.index
    pools = repeats.pools()
    rows = [_choice("as it is", result, result)]
    rows += [_choice(f"{OTHER_POOL}{pool}", other, result) for pool, other in pools.items()]
    for k in _EARLIER:
        if T0 - k >= 2:
            dated = repeats.again(earlier=k)
            ahead = dated.average_over(index[T0 - k : T0]).effect
            rows.append(_choice(f"dated {k} earlier", dated, result) | {"ahead": ahead})
    for share in _LATER_STARTS:
        first = round(share * T0)
        if first >= 1 and T0 - first >= 2:
            choice = f"from {period_name(index[first])} on"
            rows.append(_choice(choice, repeats.again(first=first), result))
    table = pd.DataFrame(rows)
    return Sensitivity(table if pools else table.drop(columns="donors_help"))


def other_pools(study: Pooled, grade: Callable[[Pooled], str | None]) -> Sensitivity | None:
    """Return the pooled effect from every other pool of donors; None where donors are not divided."""
    pools = study.repeats.pools(study.level)
    if not pools:
        return None
    of_each = {"as it is": study} | {f"{OTHER_POOL}{name}": other for name, other in pools.items()}
    rows = [{"choice": name, "donors_help": grade(one)} | _row(one.average) for name, one in of_each.items()]
    return Sensitivity(pd.DataFrame(rows))


def _choice(choice: str, other: Answer, over: Answer) -> dict[str, Any]:
    """Return one row: the average effect over the treated periods of ``over``."""
    effect = other.average_over(over.observed.index[over.is_on > 0])
    said = {"choice": choice, "treatment_time": period_name(other.treatment_time), "before": other.T0}
    grade = None if other.verdict is None else other.verdict.grade
    return said | _row(effect) | {"ahead": float("nan"), "donors_help": grade}


def _row(effect: Effect) -> dict[str, float]:
    return {"effect": effect.effect, "lower": effect.lower, "upper": effect.upper, "p_value": effect.p_value}
