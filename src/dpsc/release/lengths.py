"""A bound on a person that is found privately: noisy counts of people by the length of what they would add.

A length is the root of the sum of squares of what a person adds under the rule's other bounds; a bound on a person cuts
whoever is longer. People are counted between public lengths, ten to a factor of ten, from what the other bounds allow
down to a thousandth of it. Everybody with a cell is in one count, and nobody else in any. Knows no records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from dpsc import checks
from dpsc.errors import Parameter, ParameterError
from dpsc.privacy import discrete, sensitivity
from dpsc.release.table_rule import STEPS, TableRule
from dpsc.types import Array, Integers

SHARE = 0.05  # of the squared mu, or of a pure epsilon, that the counts cost: 2.6% or 5.3% more noise on the table
BINS = 31
UNIT = STEPS  # steps that one person counts, so that the noise of counts is on as fine a grid as the table's
_TO_TEN = 10  # bins to a factor of ten
_CLEAR = 4.0  # standard deviations of all counts' noise together; less, and noise might choose a tiny bound


def require_quantile(quantile: float) -> float:
    """Return a share of people between 0 and 1, or refuse it."""
    name = "person_bound_quantile"
    if not 0 < checks.finite_number(name, quantile, above=0) < 1:
        raise ParameterError(f"{Parameter(name, quantile)} must be between 0 and 1: the share of people left as is.")
    return float(quantile)


def require_lengths(rule: TableRule) -> None:
    """Refuse to look for a bound where there is none to find, or where one is given."""
    it = Parameter("person_bound_quantile")
    if not rule.has_values:
        raise ParameterError(
            f"{it} is for means and totals; to bound a person in a {rule.statistic}, give "
            f"{Parameter('cells_per_person')}."
        )
    if rule.person_bound is not None:
        raise ParameterError(f"give {Parameter('person_bound')} or {it}, not both.")


@dataclass(frozen=True)
class Bins:
    """Between which lengths people are counted, and how far one person moves the counts; all public.

    Attributes
    ----------
    rule : TableRule
        Its bound on a person, if it has one, plays no role.
    """

    rule: TableRule

    @property
    def rules(self) -> tuple[TableRule, ...]:
        """The rule with each bound that may be found, the smallest first, and last the one without."""
        return _bounded_by_each(replace(self.rule, person_bound=None))

    @cached_property
    def ends(self) -> Integers:
        """The largest sum of squares in each bin, in whole steps: whoever is not cut by that bound."""
        return np.array([rule.length_squared for rule in self.rules])

    @property
    def squared_sensitivity(self) -> int:
        """How far replacing one person moves the counts: the squared l2 distance, in steps."""
        return sensitivity.counted(UNIT)[1]

    @property
    def l1_sensitivity(self) -> int:
        """How far replacing one person moves the counts: the l1 distance, in steps."""
        return sensitivity.counted(UNIT)[0]


@lru_cache(maxsize=32)
def _bounded_by_each(free: TableRule) -> tuple[TableRule, ...]:
    """Return the rules of :class:`Bins`, made once for all parts of a panel that have the same one."""
    most = free.half_width * math.sqrt(free.most_cells)
    lengths = (float(f"{most * 10 ** (-k / _TO_TEN):.3g}") for k in range(BINS - 1, 0, -1))
    return *(replace(free, person_bound=length) for length in lengths), free


@dataclass(frozen=True, eq=False)
class NoisyLengths:
    """Noisy counts of people by length, published with the table whose bound was found from them.

    Attributes
    ----------
    quantile : float
        The share of people whose values should be left as they are.
    counts : array
        For each of the public bins, in steps of ``UNIT`` per person.
    law : {"gaussian", "laplace"}
    scale : float
        Of the noise on every count, in steps.
    """

    quantile: float
    counts: Integers
    law: discrete.Kind
    scale: float

    @property
    def people(self) -> Array:
        """The noisy number of people in each bin."""
        return self.counts / UNIT

    @property
    def noise(self) -> float:
        """The standard deviation of the noise on each count, in people."""
        return discrete.deviation(self.law, self.scale) / UNIT

    def bounded(self, rule: TableRule) -> TableRule:
        """Return the rule with the bound that is found: the first public length that enough people do not exceed.

        Post-processing of noisy counts and public numbers. Where people are too few for their noise, nothing is bounded
        further, instead of by what noise says.
        """
        rules, below = Bins(rule).rules, np.cumsum(self.people)
        if below[-1] < fewest(self.quantile, self.noise):
            return rules[-1]
        return rules[int(np.argmax(np.append(below[:-1] >= self.quantile * below[-1], True)))]


def fewest(quantile: float, noise: float) -> float:
    """Return how many people it takes, so that noise alone cannot choose a bound; with less there is none."""
    return _CLEAR * noise * math.sqrt(BINS) / quantile
