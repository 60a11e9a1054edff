"""Before a private panel is released: the noise of its cells and the effects that would be seen, from public numbers.

Nothing is simulated: the noise of a cell is known, and two formulas say what errors follow from it. With d the root
mean square change of the target, sigma and s the noise of its cells and of the donors', J units, h periods after the
intervention and m = min(T0, 8) before it:

    error^2 = 0.2 d^2 ((h + 1) / 2)^1.5 + sigma^2 / m + 4 s^2 / (J - 1)
    effect^2 = (4.4 d)^2 ((h + 1) / 2)^0.35 J / (J - 1) + 36 sigma^2 (1 / h + 1 / m) + 64 s^2 / (J - 1)

They were fitted to answers on real panels with noise of 0 to 4 one-period changes; what came was usually 0.7 times as
much, and ranges hold four of five (benchmarks/RESULTS.md, ranges of plan_panel).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from dpsc import checks
from dpsc.analyst.plan import Factors, history_of, usual_change, with_ranges
from dpsc.answers.words import likely, number
from dpsc.errors import Parameter, ParameterError
from dpsc.privacy import discrete
from dpsc.privacy.guarantee import best_guess
from dpsc.release.lengths import UNIT, Bins, fewest
from dpsc.release.panel import ENOUGH_PEOPLE, budget, noise_of, require_size
from dpsc.release.table_rule import Statistic, TableRule
from dpsc.types import TargetLike

_LITTLE = 1.0  # noise of a cell over the usual change: up to this an answer costs little
_EARLIER = 8  # periods before the intervention that count for the level
_FEWEST = 4  # units: a target and three donors
_STEPS = 40
CAME = 0.7  # what errors and smallest effects came to, over the formulas, on the panels to design on
WITHIN: Factors = {"error": (1 / 3, 3.0), "detectable": (0.4, 2.0)}


@dataclass(frozen=True)
class Lengths:
    """How long people's values are, as somebody states it: half of them below one number, nine in ten below another.

    A length is the root of the sum of a person's squares over all cells, each less the middle of the bounds for a mean.
    Lengths are taken to be log-normal.
    """

    half_below: float
    most_below: float

    def __post_init__(self) -> None:
        checks.finite_number("lengths", self.half_below, above=0)
        if not checks.finite_number("lengths", self.most_below, above=0) > self.half_below:
            raise ParameterError(
                f"{Parameter('lengths')}: nine in ten people must be below a larger number than half of them."
            )

    def cut(self, bound: float) -> tuple[float, float]:
        """Return the share of people that a bound cuts, and the share of all lengths that is kept.

        Examples
        --------
        >>> [round(share, 2) for share in Lengths(100, 400).cut(100)]
        [0.5, 0.42]
        """
        spread = math.log(self.most_below / self.half_below) / float(ndtri(0.9))
        at = math.log(bound / self.half_below) / spread
        kept = float(ndtr(at - spread)) + bound / self.half_below * math.exp(-(spread**2) / 2) * float(ndtr(-at))
        return float(ndtr(-at)), kept


@dataclass(frozen=True)
class Wish:
    """What a panel is to be: all public numbers.

    Attributes
    ----------
    units, periods, after : int
    people : int
        In a usual cell.
    statistic, bounds, cells_per_period, cells_per_person
        As for :class:`dpsc.PanelRelease`.
    usual : float
        A usual value of the outcome.
    change : float or None
        How much the target usually changes from one period to the next.
    delta : float
    monthly : int or None
        How many releases share the budget, one period in each.
    lengths : Lengths or None
    """

    units: int
    people: int
    periods: int
    after: int
    statistic: Statistic
    bounds: tuple[float, float] | None
    cells_per_period: int
    cells_per_person: int | None
    usual: float | None
    change: float | None
    delta: float
    monthly: int | None
    lengths: Lengths | None = None

    def rule(self, person_bound: float | None) -> TableRule:
        """Return how people are bounded in one release."""
        return TableRule(
            self.statistic,
            self.bounds,
            person_bound,
            self.cells_per_period,
            self.cells_per_person,
            self.units,
            1 if self.monthly else self.periods,
        )

    def row(self, epsilon: float, person_bound: float | None) -> dict[str, float]:
        """Return what a budget and a bound on a person give."""
        rule = self.rule(person_bound)
        share = epsilon if self.monthly is None else share_of(rule, epsilon, self.delta, self.monthly)
        paid = budget(rule, share, self.delta / (self.monthly or 1))
        steps = discrete.deviation(*noise_of(rule, paid))
        noise, fewest = steps * rule.part, 0.0
        if rule.counts_people:
            usual = rule.middle if self.usual is None else self.usual
            noise *= math.hypot(1, (usual - rule.middle) / (rule.one_person * rule.part)) / self.people
            fewest = ENOUGH_PEOPLE * steps / rule.one_person
        bound = rule.half_width * math.sqrt(rule.most_cells) if person_bound is None else person_bound
        found = {"epsilon": epsilon, "person_bound": bound, "noise": noise, "fewest_people": fewest}
        if self.lengths is not None:
            found |= dict(zip(("people_cut", "kept"), self.lengths.cut(bound), strict=True))
        if self.monthly is not None:
            found |= {"epsilon_each": share}
        if self.change is not None:
            before = self.periods - self.after
            error, seen = expected(self.change, noise, noise, self.units, before, self.after)
            found |= {"noise_over_change": noise / self.change, "error": CAME * error, "detectable": CAME * seen}
        return found | {"guess": best_guess(epsilon, self.delta)}


@dataclass(frozen=True, eq=False)
class PanelPlan:
    """What to expect of a private panel.

    Attributes
    ----------
    table : DataFrame
        One row for each epsilon and bound on a person. ``noise``: the standard deviation of a usual cell's noise, in
        the outcome's units. ``fewest_people``: a cell with fewer is marked as having too few. If the target's usual
        change is known: ``noise_over_change`` (up to about 1 privacy costs little), ``error`` (the likely error of the
        counterfactual), ``detectable`` (the likely smallest average effect with a p-value below 0.05 in 80% of cases),
        and ``error_low``, ``error_high``, ``detectable_low`` and ``detectable_high``: ranges that hold what comes in
        about 80% of cases. ``epsilon_each``: what each of several releases may cost.
        ``people_cut``, ``kept``: the share of people whose values a bound shrinks, and what is left of all of them.
        ``guess``: as in :class:`dpsc.Plan`.
    wish : Wish
        What was asked for.
    """

    table: pd.DataFrame
    wish: Wish

    def ways(self, epsilon: float, person_bound: float | None = None) -> pd.DataFrame:
        """Return what else could be done: one row for each change, with the columns of the table.

        Half the bound on a person cuts more of those who have much. Half the cells for a person are better only if
        hardly anybody has more; periods twice as long, and units put together in pairs, show less.
        """
        wish, bound = self.wish, person_bound
        rows: dict[str, dict[str, float]] = {"as it is": wish.row(epsilon, bound)}
        rows["twice the epsilon"] = wish.row(2 * epsilon, bound)
        if wish.statistic in ("mean", "total"):
            rows["half the bound on a person"] = wish.row(epsilon, rows["as it is"]["person_bound"] / 2)
        cells = wish.cells_per_person or wish.cells_per_period * wish.periods
        if cells > 1 and wish.monthly is None:
            rows["half the cells for a person"] = replace(wish, cells_per_person=cells // 2).row(epsilon, bound)
        if wish.periods >= 6 and wish.monthly is None:
            longer = replace(
                wish,
                periods=wish.periods // 2,
                after=max(1, wish.after // 2),
                cells_per_person=None if wish.cells_per_person is None else -(-wish.cells_per_person // 2),
            )
            rows["periods twice as long"] = longer.row(epsilon, bound)
        if wish.units >= 2 * _FEWEST:
            pairs = replace(wish, units=wish.units // 2, people=2 * wish.people)
            rows["units in pairs"] = pairs.row(epsilon, bound)
        return with_ranges(pd.DataFrame.from_dict(rows, orient="index").rename_axis("change"), WITHIN)

    def finding(self, epsilon: float) -> dict[str, float] | None:
        """Return what it costs to find a bound on a person privately, so that half of all people stay as they are.

        ``more_noise`` on each cell, as a share; ``fewest_people``: with fewer in all, none is found. None for shares
        and counts, which have no such bound.
        """
        wish = self.wish
        if wish.statistic not in ("mean", "total"):
            return None
        each = wish.monthly or 1
        rule = wish.rule(None)
        share = epsilon if wish.monthly is None else share_of(rule, epsilon, wish.delta, each)
        paid, bins = budget(rule, share, wish.delta / each, True), Bins(rule)
        counts, table = (noise_of(what, paid, True) for what in (bins, rule))
        alone = noise_of(rule, budget(rule, share, wish.delta / each))
        return {
            "more_noise": discrete.deviation(*table) / discrete.deviation(*alone) - 1,
            "fewest_people": fewest(0.5, discrete.deviation(*counts) / UNIT),
        }

    def __str__(self) -> str:
        lines = []
        for row in self.table.to_dict("records"):
            each = f" ({number(row['epsilon_each'])} for each release)" if "epsilon_each" in row else ""
            most = f", at most {number(row['person_bound'])} for a person" if self.wish.bounds else ""
            line = f"ε = {row['epsilon']:g}{each}{most}: noise of {number(row['noise'])} on a cell"
            if "detectable" in row:
                over = row["noise_over_change"]
                seen = likely(row["detectable_low"], row["detectable"], row["detectable_high"])
                line += f", {number(over)} usual changes{'' if over <= _LITTLE else ' (much)'}; the smallest average "
                line += f"effect that would be seen four times out of five: {seen}"
            lines.append(f"{line}.")
        return "\n".join(lines)

    __repr__ = __str__


def plan_panel(
    units: int,
    people: int,
    periods: int,
    after: int = 6,
    *,
    epsilon: float | Sequence[float] = (0.5, 1.0, 2.0),
    delta: float = 1e-6,
    statistic: Statistic = "mean",
    bounds: tuple[float, float] | None = None,
    person_bound: float | Sequence[float] | None = None,
    cells_per_period: int = 1,
    cells_per_person: int | None = None,
    usual: float | None = None,
    change: float | None = None,
    target: TargetLike | None = None,
    monthly: int | None = None,
    lengths: tuple[float, float] | None = None,
) -> PanelPlan:
    """Return what to expect of ``PanelRelease(epsilon, delta, statistic, bounds, ...)``; no record is touched.

    Parameters
    ----------
    units, people, periods : int
        How many units, people in a usual cell, and periods.
    after : int
        How many of the periods are from the intervention on.
    epsilon, person_bound : number or several
        Every combination is planned.
    delta, statistic, bounds, cells_per_period, cells_per_person
        As for :class:`dpsc.PanelRelease`.
    usual : float, optional
        A usual value of the outcome: by default the target's mean, or the middle of the bounds.
    change : float, optional
        How much the target usually changes from one period to the next: the root mean square.
    target : Series or array, optional
        A public series like the target's, which tells both.
    monthly : int, optional
        The panel grows: one period is released at a time, and so many releases share the budget. A bound on a person is
        then for one period.
    lengths : pair of numbers, optional
        How long people's values are, from public knowledge: half of the people are below the first number, nine in ten
        below the second. It says how many a bound on a person cuts, and what share of all is kept.

    Examples
    --------
    >>> plan_panel(units=40, people=800, periods=36, bounds=(0, 100), change=1.5, epsilon=1.0)
    ε = 1, at most 300 for a person: noise of 3.169 on a cell, 2.112 usual changes (much); ...
    """
    counts = {"units": (units, _FEWEST), "people": (people, 1), "periods": (periods, 3), "after": (after, 1)}
    for name, (value, least) in counts.items():
        checks.whole_number(name, value, at_least=least)
    require_size(units, periods)
    if periods - after < 2:
        raise ParameterError(f"{Parameter('after')} leaves {periods - after} periods before it; at least 2 are needed.")
    if monthly is not None:
        checks.whole_number("monthly", monthly, at_least=1)
    if usual is not None:
        checks.finite_number("usual", usual)
    if change is not None:
        checks.finite_number("change", change, above=0)
    checks.delta("delta", delta)
    if target is not None:
        history = history_of(target)
        change = usual_change(history) if change is None else change
        usual = float(history.mean()) if usual is None else usual
    wish = Wish(
        units,
        people,
        periods,
        after,
        statistic,
        bounds,
        cells_per_period,
        cells_per_person,
        usual,
        change,
        delta,
        monthly,
        None if lengths is None else Lengths(*lengths),
    )
    epsilons = sorted({checks.epsilon("epsilon", v) for v in np.atleast_1d(epsilon).tolist()})
    person_bounds: list[Any] = [None] if person_bound is None else np.atleast_1d(person_bound).tolist()
    table = pd.DataFrame([wish.row(e, bound) for e in epsilons for bound in person_bounds])
    return PanelPlan(with_ranges(table, WITHIN), wish)


def expected(change: float, own_noise: float, noise: float, units: int, before: int, after: int) -> tuple[float, float]:
    """Return two formulas: the error of a counterfactual, and the smallest average effect seen 4 times out of 5.

    ``change`` is the target's root mean square change from one period to the next, ``own_noise`` and ``noise`` are the
    standard deviations of the noise on its cells and on the donors'.
    """
    d, h, m, others = change, after, min(before, _EARLIER), units - 1
    error = 0.2 * d**2 * ((h + 1) / 2) ** 1.5 + own_noise**2 / m + 4 * noise**2 / others
    seen = (4.4 * d) ** 2 * ((h + 1) / 2) ** 0.35 * (1 + 1 / others)
    seen += 36 * own_noise**2 * (1 / h + 1 / m) + 64 * noise**2 / others
    return math.sqrt(error), math.sqrt(seen)


def share_of(rule: TableRule, epsilon: float, delta: float, releases: int) -> float:
    """Return the epsilon of one of so many releases that together cost ``epsilon``, each with its part of delta."""
    low, high = epsilon / releases / 2, epsilon

    def together(share: float) -> float:
        one = budget(rule, share, delta / releases)
        return sum([one] * (releases - 1), one).epsilon(delta) if delta > 0 else share * releases

    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if together(middle) <= epsilon else (low, middle)
    return low
