"""What a release of people in groups holds: noisy sums by unit and period, and the table that follows from them.

A panel consists of blocks, each released once: a site's units over some periods. Blocks of the same units follow each
other in time, and their costs add up; units of different sites belong to different people. Knows no records.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.errors import Parameter, ReleaseError
from dpsc.periods import calendar
from dpsc.periods.dates import period_name
from dpsc.privacy import discrete, exact
from dpsc.privacy.accounting import Loss
from dpsc.privacy.guarantee import (
    PUBLISHERS_WORD,
    REPLACE_PERSON,
    Guarantee,
    composed,
    weakest,
)
from dpsc.privacy.rounded_gaussian import discrete_gaussian_budget, discrete_gaussian_slack
from dpsc.release.lengths import BINS, SHARE, Bins, NoisyLengths, require_lengths
from dpsc.release.matrix import LARGEST_NUMBER, LARGEST_T, require_one_of, require_public_labels, require_text
from dpsc.release.table_rule import TableRule
from dpsc.types import Array, Integers, Times
from dpsc.version import __version__

FEWEST_UNITS, MOST_UNITS = 3, 10_000
MOST_CELLS = 1_000_000  # of a panel, published or not
ENOUGH_PEOPLE = 4.0  # standard deviations of their noise; one in 30,000 empty cells passes


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """A table of units and periods whose noise is known: all that a reader needs of it.

    Attributes
    ----------
    units : tuple of str
        One for each row, declared.
    times : Index
        The periods, one for each column.
    outcome : str
    values : units × periods
        NaN where there are too few people.
    noise : units × periods
        The standard deviation of each cell's noise, in the outcome's units; known beforehand or from noisy numbers.
    people : units × periods, optional
        The noisy number of people in each cell, if it is known.
    """

    units: tuple[str, ...]
    times: Times
    outcome: str
    values: Array
    noise: Array
    people: Array | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each unit and period: value, noise, and people where they are known."""
        name = "period" if self.times.name is None else str(self.times.name)
        columns = {
            "unit": np.repeat(np.array(self.units, dtype=object), len(self.times)),
            name: np.tile(np.asarray(self.times, dtype=object), len(self.units)),
            "value": self.values.ravel(),
            "noise": self.noise.ravel(),
        }
        return pd.DataFrame(columns if self.people is None else columns | {"people": self.people.ravel()})


@dataclass(frozen=True, eq=False, repr=False)
class Block:
    """One release: noisy sums of people bounded by a rule, and for means and shares noisy numbers of people.

    Attributes
    ----------
    rule : TableRule
    units, times, outcome
        Public.
    sums : units × periods
        In parts of the rule's steps.
    people : units × periods, optional
        Each person counts ``rule.one_person``; for means and shares.
    law, scale
        Of the noise on every number, in parts of a step.
    guarantee : Guarantee or None
        None if the noise came from a seed; ``no_guarantee`` then says so.
    lengths : NoisyLengths, optional
        What the rule's bound on a person was found from, if it was found privately.
    identity : str
        A random number that names it.
    dataset : str
        The data set of a ledger that paid for it, empty if it was not booked.
    """

    rule: TableRule
    units: tuple[str, ...]
    times: Times
    outcome: str
    sums: Integers
    people: Integers | None
    law: discrete.Kind
    scale: float
    guarantee: Guarantee | None
    no_guarantee: str = ""
    lengths: NoisyLengths | None = None
    identity: str = field(default_factory=lambda: secrets.token_hex(16))
    dataset: str = ""
    provenance: str = ""
    unpaid: bool = False  # nobody said which data set of a ledger pays for it; not stored
    made_by: str = f"dpsc {__version__}"
    made_on: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d"))

    def __post_init__(self) -> None:
        promise = self.guarantee
        require_one_of(promise, self.no_guarantee)
        promised = () if promise is None else (promise.basis, promise.adjacency)
        for text in (self.no_guarantee, self.dataset, self.provenance, self.made_by, self.made_on, *promised):
            require_text(text)
        require_public_labels(self.outcome, self.times)
        require_units(self.units)
        shape = len(self.units), len(self.times)
        if shape != (self.rule.units, self.rule.periods) or self.sums.shape != shape:
            raise ReleaseError("the numbers do not fit the units and periods.")
        if (self.people is None) == self.rule.counts_people or (self.people is not None and self.people.shape != shape):
            raise ReleaseError("the numbers of people do not fit the statistic.")
        if self.lengths is not None:
            require_lengths(free := replace(self.rule, person_bound=None))
            if len(self.lengths.counts) != BINS or self.lengths.law != self.law:
                raise ReleaseError("the counts of people by length are of another kind.")
            if self.lengths.bounded(free) != self.rule:
                raise ReleaseError("the bound on a person does not follow from the counts of people by length.")
        if promise is not None:
            self._require_paid(promise)

    def _require_paid(self, promise: Guarantee) -> None:
        """Refuse a claim that the noise does not pay for.

        Gaussian noise needs mu^2 >= sum D^2 / s^2, Laplace noise epsilon >= sum D1 / s. D and D1 are the sensitivities
        of the table, and of counts by length if there are some; s are the scales (made larger by 1e-12, more than
        rounding takes away). A claim of rho counts as mu^2 = 2 rho, and an epsilon is claimed as zCDP, epsilon^2 / 2,
        as well.
        """
        if promise.adjacency != REPLACE_PERSON:
            raise ReleaseError(
                f"the noise of a panel protects neighbours that {REPLACE_PERSON}, and the file claims something else."
            )
        loss, lengths = promise.loss, self.lengths
        drawn: list[tuple[TableRule | Bins, float]] = [(self.rule, self.scale)]
        if lengths is not None:
            drawn.append((Bins(self.rule), lengths.scale))
        if self.law == "laplace":
            spent = sum(what.l1_sensitivity / scale for what, scale in drawn)
            paid = min(loss.pure, math.sqrt(2 * loss.pure_as_rho)) >= spent
        else:
            paid = loss.mu_squared + 2 * loss.rho >= sum(what.squared_sensitivity / scale**2 for what, scale in drawn)
            if loss.mu_squared > 0:
                slack = discrete_gaussian_slack(math.sqrt(loss.mu_squared), *_grid(self.rule, lengths is not None))
                paid = paid and loss.rest_epsilon >= slack[0] and loss.rest_delta >= slack[1]
        if not paid:
            raise ReleaseError("the noise scale is too small for the guarantee: there is less noise than it claims.")

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on every number, in parts of a step."""
        return discrete.deviation(self.law, self.scale)

    def table(self) -> NoisyTable:
        """Return values with the noise of each; a mean or share is missing where there are too few people.

        With S the noisy sum of values less the middle of the bounds and C the noisy number of people, a mean is
        ``middle + S / C``. Both have noise of s parts of a step, and each person counts c in C; so the mean's noise is
        about ``s sqrt(1 + ((mean - middle) / c)^2) / C``.
        """
        rule, noise = self.rule, self.deviation * self.rule.part
        if self.people is None:
            values = self.sums * rule.part
            return NoisyTable(self.units, self.times, self.outcome, values, np.full(values.shape, noise))
        people = self.people / rule.one_person
        enough = self.people >= ENOUGH_PEOPLE * self.deviation
        counted = np.where(enough, people, np.nan)
        over = self.sums * rule.part / counted
        spread = noise * np.sqrt(1 + (over / (rule.one_person * rule.part)) ** 2) / counted
        return NoisyTable(self.units, self.times, self.outcome, rule.middle + over, spread, people)


def numbers(rule: TableRule) -> int:
    """Return how many numbers get noise."""
    return rule.tables * rule.units * rule.periods


def resolution(what: TableRule | Bins) -> float:
    """Return how many parts of a step a person moves all numbers together at most: the l2 sensitivity, rounded up."""
    return exact.safely_above(math.sqrt(what.squared_sensitivity))


def _grid(rule: TableRule, counted: bool) -> tuple[int, float]:
    """Return how many numbers get noise, and the resolution that their slack is charged for.

    If people are counted by length, their counts too, and the table may have any bound that could be found: the
    coarsest grid is charged, whatever it will be.
    """
    if not counted:
        return numbers(rule), resolution(rule)
    bins = Bins(rule)
    return numbers(rule) + BINS, min(*map(resolution, bins.rules), resolution(bins))


def budget(rule: TableRule, epsilon: float, delta: float, counted: bool = False) -> Loss:
    """Return the loss with the least noise that (epsilon, delta) pays for; Laplace noise for delta = 0.

    If people are ``counted`` by length, it is for the counts as well, and the same whatever bound they lead to.
    """
    if delta == 0:
        return Loss.from_pure(epsilon)
    return discrete_gaussian_budget(epsilon, delta, *_grid(rule, counted))


def noise_of(what: TableRule | Bins, loss: Loss, counted: bool = False) -> tuple[discrete.Kind, float]:
    """Return the law and the scale of the noise, in parts of a step, that a loss pays for.

    Of a loss that is for counts by length as well, counts take ``SHARE`` and the table what is left.
    """
    share = (SHARE if isinstance(what, Bins) else 1 - SHARE) if counted else 1.0
    if loss.pure > 0:
        return "laplace", exact.safely_above(what.l1_sensitivity / (share * loss.pure))
    return "gaussian", exact.safely_above(resolution(what) / math.sqrt(share * (loss.mu_squared + 2 * loss.rho)))


def require_units(units: Sequence[str]) -> None:
    """Refuse units that no table can be read with."""
    if not FEWEST_UNITS <= len(units) <= MOST_UNITS:
        raise ReleaseError(
            f"a panel has {FEWEST_UNITS} to {MOST_UNITS:,} {Parameter('units')}, not {len(units):,}: each is compared "
            "with the others."
        )
    for unit in units:
        require_text(unit, checks.LONGEST_NAME)
        if not unit.strip():
            raise ReleaseError(f"one of the {Parameter('units')} has no name.")
    if len({checks.read_as(unit) for unit in units}) < len(units):
        raise ReleaseError(f"two of the {Parameter('units')} have the same name.")


def require_size(units: int, periods: int) -> None:
    """Refuse a table that is too large, from public numbers."""
    if periods > LARGEST_T:
        raise ReleaseError(f"a panel has at most {LARGEST_T:,} periods, not {periods:,}.")
    if units * periods > MOST_CELLS:
        raise ReleaseError(f"a panel has at most {MOST_CELLS:,} cells, not {units:,} units × {periods:,} periods.")


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedPanel:
    """The fields of :class:`dpsc.PrivatePanel`, which describes them, and the table that follows from them."""

    blocks: tuple[Block, ...]
    published: NoisyTable | None = None
    publisher: str = ""

    def __post_init__(self) -> None:
        require_text(self.publisher)
        if self.published is None:
            _require_fitting(self.blocks)
            return
        if self.blocks or not self.publisher:
            raise ReleaseError("a table of another publisher names the publisher, and holds no release of dpsc.")
        require_units(self.published.units)
        require_size(*self.published.values.shape)
        if any((np.abs(numbers) > LARGEST_NUMBER).any() for numbers in (self.published.values, self.published.noise)):
            raise ReleaseError(f"the table, or its noise, has numbers beyond {LARGEST_NUMBER:g}.")
        require_public_labels(self.published.outcome, self.published.times)

    @property
    def rule(self) -> TableRule | None:
        """How people were bounded in the first block; nothing is known of a table of somebody else."""
        return self.blocks[0].rule if self.blocks else None

    @property
    def outcome(self) -> str:
        """The outcome's name."""
        return self.table.outcome

    @property
    def units(self) -> tuple[str, ...]:
        """The declared units of all sites."""
        return self.table.units

    @property
    def times(self) -> Times:
        """The periods that are published so far."""
        return self.table.times

    @cached_property
    def table(self) -> NoisyTable:
        """Values, noise and people; missing where no block has a cell, or too few people are in it."""
        if self.published is not None:
            return self.published
        tables = [block.table() for block in self.blocks]
        units = tuple(dict.fromkeys(unit for table in tables for unit in table.units))
        times = _all_times(self.blocks)
        rows = {unit: row for row, unit in enumerate(units)}
        values, noise, people = (np.full((len(units), len(times)), np.nan) for _ in range(3))
        for table in tables:
            cells = np.ix_(np.array([rows[unit] for unit in table.units]), times.get_indexer(table.times))
            values[cells], noise[cells] = table.values, table.noise
            if table.people is not None:
                people[cells] = table.people
        return NoisyTable(units, times, tables[0].outcome, values, noise, None if tables[0].people is None else people)

    @cached_property
    def sites(self) -> tuple[tuple[Block, ...], ...]:
        """Blocks of the same units; people of different sites are different."""
        return _sites(self.blocks)

    @property
    def no_guarantee(self) -> str:
        """Why there is no guarantee, empty if there is one."""
        if self.published is not None:
            noisy = (self.published.noise > 0).any()
            return f"{self.publisher} ({PUBLISHERS_WORD if noisy else 'the table has no noise'})"
        return next((block.no_guarantee for block in self.blocks if block.guarantee is None), "")

    @cached_property
    def guarantee(self) -> Guarantee | None:
        """What all blocks together promise each person: costs of a site add up, and the largest of the sites counts.

        That people of two sites are different holds for good or not at all. A person who moves from one site to another
        is removed here and added there, which costs at most half the square of a replacement in each
        (``sensitivity.table_squared``), so never more than the larger one. What Gaussian noise costs beyond its curve
        is charged for all sites. Proof: docs/proofs/people-in-groups.md.
        """
        if self.no_guarantee:
            return None
        sums = [composed([block.guarantee for block in site if block.guarantee]) for site in self.sites]
        return sums[0] if len(sums) == 1 else weakest(sums, "per person, of one site", slacks_add=True)

    @property
    def identities(self) -> tuple[str, ...]:
        """Random numbers that name the blocks: none counts twice."""
        return tuple(block.identity for block in self.blocks)

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets of a ledger that paid, if it was booked."""
        return tuple(dict.fromkeys(block.dataset for block in self.blocks if block.dataset))

    @property
    def provenances(self) -> list[str]:
        """What the custodians said of where the records are from."""
        return list(dict.fromkeys(block.provenance for block in self.blocks if block.provenance))

    def __repr__(self) -> str:
        promise = self.guarantee if self.guarantee is not None else f"no guarantee: {self.no_guarantee}"
        return f"<{type(self).__name__}: {len(self.units)} units × {len(self.times)} periods, {promise}>"


def _sites(blocks: Sequence[Block]) -> tuple[tuple[Block, ...], ...]:
    """Return the blocks of each list of units."""
    by_units: dict[tuple[str, ...], list[Block]] = {}
    for block in blocks:
        by_units.setdefault(block.units, []).append(block)
    return tuple(map(tuple, by_units.values()))


def _times_of(blocks: Sequence[Block]) -> Times:
    """Return the periods of all blocks, one after the other."""
    return blocks[0].times.append([block.times for block in blocks[1:]])


def _all_times(blocks: Sequence[Block]) -> Times:
    """Return all periods in order; those that are text in the order of the blocks."""
    times = _times_of(blocks).unique()
    return times if all(isinstance(time, str) for time in times) else times.sort_values()


_SHARED: dict[str, Callable[[Block], object]] = {
    "outcome": lambda block: block.outcome,
    "statistic": lambda block: block.rule.statistic,
    "bounds": lambda block: block.rule.bounds,
    "kind of periods": lambda block: (calendar.frequency(block.times), block.times.dtype),
}


def _require_fitting(blocks: Sequence[Block]) -> None:
    """Refuse blocks that are no panel together: other statistics, cells published twice, units that overlap."""
    if not blocks:
        raise ReleaseError("a panel needs at least one release.")
    shared = [(what, of(blocks[0]), of) for what, of in _SHARED.items()]
    for block in blocks[1:]:
        for what, first, of in shared:
            if of(block) != first:
                raise ReleaseError(f"the releases differ in their {what}, so they cannot be joined into one panel.")
    if len({block.identity for block in blocks}) < len(blocks):
        raise ReleaseError("the same release is given twice.")
    sites = _sites(blocks)
    for site in sites:
        times = _times_of(site)
        if not times.is_unique:
            raise ReleaseError(
                f"the period {period_name(times[times.duplicated()][0])} is there twice: what is published is final, "
                "and nothing is published twice."
            )
    units = [checks.read_as(unit) for site in sites for unit in site[0].units]
    if len(set(units)) < len(units):
        raise ReleaseError(
            "the releases share some units and not all: a panel grows by periods with the same units in the same "
            "order, or by sites with units of their own."
        )
    datasets = [name for site in sites for name in {block.dataset for block in site if block.dataset}]
    if len(set(datasets)) < len(datasets):
        twice = next(name for name in datasets if datasets.count(name) > 1)
        raise ReleaseError(f"two sites are of the data set {twice!r}; sites must have different people.")
    require_size(len(units), len(_all_times(blocks)))


def joined(panels: Sequence[ReleasedPanel], *, disjoint: bool) -> tuple[Block, ...]:
    """Return the blocks of several panels, if they fit; panels of different units need the word that people differ."""
    blocks = tuple(block for panel in panels for block in panel.blocks)
    if len({block.units for block in blocks}) > 1 and disjoint is not True:
        raise ReleaseError(
            f"the releases have different units: give {Parameter('disjoint', True)} if you know that nobody has "
            "records in two of them, not even in different periods; nothing in the files can show it."
        )
    _require_fitting(blocks)
    return blocks
