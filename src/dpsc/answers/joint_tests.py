"""Tests of several numbers of a study together: differences before the treatment, differences between groups.

All are combinations of the units' periods, and one joint law of the errors answers for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsc.answers.effects import Effect, JointLaw, holm
from dpsc.answers.placebos import Placebos, Sensitivity
from dpsc.answers.words import after, column, number, p_is, percent
from dpsc.types import Array

USUAL_BOUND = 0.36  # standard deviations: the default of fect (Liu, Wang and Xu 2024), from Hartman and Hidalgo (2018)
CHANCE = 0.05  # of calling units equivalent that are not


def all_zero(values: Array, combinations: Array, law: JointLaw) -> float:
    """Return the p-value of the F test that the effects on all combinations are zero.

    With values x and scale matrix V of a Student's t with m degrees of freedom, ``x' V^-1 x / k`` has the law F(k, m),
    k being the rank of V.
    """
    from scipy.stats import f

    scale, degrees = law.together(combinations)
    inverse = np.linalg.pinv(scale, rcond=1e-12, hermitian=True)
    rank = int(np.linalg.matrix_rank(scale, tol=1e-12 * np.abs(np.diag(scale)).max(), hermitian=True))
    return float(f.sf(values @ inverse @ values / rank, rank, degrees))


@dataclass(frozen=True, eq=False, repr=False)
class PreTrend:
    """How far units were from their forecasts before the treatment, when there was nothing to find.

    Attributes
    ----------
    table : DataFrame
        One row per period before the treatment (-1 is the last): the average ``effect``, ``lower``, ``upper``,
        ``p_value``, and ``equivalence_p``, the p-value of two one-sided tests that it is not within the bound.
    average : Effect
        Over all these periods and units.
    p_value : float
        Of the test that all rows are zero together. A large one is no proof that they are.
    bound : float
        What each row is compared with in the equivalence test.
    usual : bool
        Whether the bound is the usual one, 0.36 standard deviations of the outcome before the treatment.
    smallest_bound : float
        The smallest bound for which equivalence would be shown at 5%.
    level : float
        Of the intervals.
    """

    table: pd.DataFrame
    average: Effect
    p_value: float
    bound: float
    usual: bool
    smallest_bound: float
    level: float

    @classmethod
    def of(
        cls,
        effects: pd.DataFrame,
        average: Effect,
        combinations: Array,
        law: JointLaw,
        bound: float,
        *,
        usual: bool,
        level: float,
    ) -> PreTrend:
        """Test the effects on combinations of forecasts of periods before the treatment."""
        values = effects["effect"].to_numpy(dtype=np.float64)
        low, high = law.ends(combinations, 1 - 2 * CHANCE, "both")
        above, below = law.below(combinations, values - bound), 1 - law.below(combinations, values + bound)
        table = effects[["effect", "lower", "upper", "p_value"]].assign(equivalence_p=np.maximum(above, below))
        smallest = float(np.abs([values - high, values - low]).max())
        return cls(table, average, all_zero(values, combinations, law), bound, usual, smallest, level)

    @property
    def equivalence_p(self) -> float:
        """The p-value of the test that not every row is within the bound: the largest of the rows'."""
        return float(self.table["equivalence_p"].max())

    def sentences(self, units: str | None = None) -> list[str]:
        """Say what both tests found, and what they do not show."""
        count, unit = len(self.table), after(units)
        middle, low, high = column([self.average.effect, self.average.lower, self.average.upper], sign=True)
        periods = "the last period" if count == 1 else f"the last {count} periods"
        said = [
            f"Dated {count} period{'s' * (count > 1)} earlier, the same forecast misses the outcome by {middle}{unit} "
            f"on average over {periods} before the treatment ({percent(self.level)} interval {low} to {high})."
        ]
        what = "it is zero" if count == 1 else f"all {count} differences are zero"
        p = f"Pre-trend test that {what}: {p_is(self.p_value)}"
        if self.p_value < CHANCE:
            said.append(f"{p}. Treated units moved away from their forecasts before the treatment.")
        else:
            said.append(f"{p}. No difference before the treatment was found; this is no proof that there is none.")
        within = f"{number(self.bound)}{unit}" + (
            f" ({USUAL_BOUND} standard deviations of the outcome before it)" if self.usual else ""
        )
        p = p_is(self.equivalence_p)
        test = f"Equivalence test that differences before the treatment are at most {within}: {p}"
        if self.equivalence_p < CHANCE:
            said.append(f"{test}. This is evidence that they are smaller than that.")
        else:
            said.append(
                f"{test}. The data cannot show that; the smallest bound for which they can is "
                f"{number(self.smallest_bound)}{unit}."
            )
        return said

    def __str__(self) -> str:
        return " ".join(self.sentences())

    def __repr__(self) -> str:
        return f"<PreTrend: {p_is(self.p_value)}, equivalence {p_is(self.equivalence_p)}>"

    def _repr_html_(self) -> str:
        return f"<p>{self}</p>{self.table.to_html(float_format=number)}"


@dataclass(frozen=True, eq=False, repr=False)
class GroupEffects:
    """The average effect of each group of units, and whether groups differ.

    Attributes
    ----------
    table : DataFrame
        One row per group: how many ``units``, the average effect over their unit-periods as in
        :meth:`dpsc.Study.effects`, and its ``difference`` from that of all other units, with ``difference_lower``,
        ``difference_upper``, ``difference_p`` and ``adjusted_p`` (by Holm's method, for the number of groups).
    p_value : float
        Of the test that all groups have the same average effect.
    """

    table: pd.DataFrame
    p_value: float

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        units: Sequence[int],
        weights: Array,
        effects: Callable[[Array], list[Effect]],
        law: JointLaw,
    ) -> GroupEffects:
        """Compare groups, each with its weights of all unit-periods; ``effects`` answers for combinations of them."""
        others = weights.sum(axis=0) - weights
        each, rest = (rows / rows.sum(axis=1, keepdims=True) for rows in (weights, others))
        table = pd.DataFrame(effects(each), index=pd.Index(names, name="group"))
        table.insert(0, "units", list(units))
        apart = effects(each - rest)
        columns = {"": "effect", "_lower": "lower", "_upper": "upper", "_p": "p_value"}
        for ending, field in columns.items():
            table[f"difference{ending}"] = [getattr(effect, field) for effect in apart]
        values = table["effect"].to_numpy(dtype=np.float64)
        table["adjusted_p"] = table["difference_p"] if len(names) == 2 else holm(table["difference_p"].tolist())
        return cls(table, all_zero(values[1:] - values[0], each[1:] - each[0], law))

    def sentences(self, units: str | None = None) -> list[str]:
        """Say whether groups differ, and which from the rest."""
        count, unit = len(self.table), after(units)
        test = f"Test that {'both' if count == 2 else f'all {count}'} groups have the same average effect"
        said = f"{test}: {p_is(self.p_value)}"
        if self.p_value >= CHANCE:
            return [f"{said}. No difference between groups was found; this is no proof that there is none."]
        if count == 2:
            one, other = self.table.index
            row = self.table.iloc[0]
            middle, low, high = column([row["difference"], row["difference_lower"], row["difference_upper"]], sign=True)
            return [f"{said}. {one} minus {other}: {middle}{unit}, interval {low} to {high}."]
        clear = [str(name) for name, p in self.table["adjusted_p"].items() if p < CHANCE]
        which = f"after adjustment for {count} comparisons (Holm), these differ from the rest: {', '.join(clear)}"
        none = f"after adjustment for {count} comparisons (Holm), no single group differs from the rest"
        return [f"{said}. Effects differ between groups; {which if clear else none}."]

    def __str__(self) -> str:
        return " ".join(self.sentences())

    def __repr__(self) -> str:
        return f"<GroupEffects: {len(self.table)} groups, {p_is(self.p_value)}>"

    def _repr_html_(self) -> str:
        return f"<p>{self}</p>{self.table.to_html(float_format=number)}"


@dataclass(frozen=True, eq=False)
class StudyTrials:
    """Everything that was tried beside the pooled effects; None where there are too few periods, units or groups."""

    pre_trend: PreTrend | None = None
    groups: GroupEffects | None = None
    in_time: Placebos | None = None
    in_space: Placebos | None = None
    sensitivity: Sensitivity | None = None
