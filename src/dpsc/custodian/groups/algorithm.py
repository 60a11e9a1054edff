"""The panel release: a private table of units and periods made of people, which anybody can read and which grows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Protocol

import numpy as np

from dpsc import checks
from dpsc.analyst.private_panel import PrivatePanel
from dpsc.answers.result import SEEDED
from dpsc.custodian.donors.people import OnRows
from dpsc.custodian.groups.bounding import Bounding, LengthCounts
from dpsc.errors import ParameterError
from dpsc.privacy import discrete
from dpsc.privacy import source as randomness
from dpsc.privacy.accounting import Loss
from dpsc.privacy.guarantee import REPLACE_PERSON, Guarantee, promised
from dpsc.release.lengths import UNIT, Bins, NoisyLengths, require_lengths, require_quantile
from dpsc.release.matrix import require_public_labels
from dpsc.release.panel import Block, budget, noise_of, require_size, require_units
from dpsc.release.table_rule import Statistic, TableRule
from dpsc.types import Integers, OnProgress, Times, unwatched

_LARGEST_SUM = 2.0**61  # in steps: 2^37 people at the bounds of one cell


class PeopleSource(Protocol):
    """People whose records can be added up: in a frame, in files, or by a cluster."""

    @property
    def units(self) -> tuple[str, ...]:
        """The declared units, in their order."""
        ...

    @property
    def times(self) -> Times:
        """The declared periods, in order."""
        ...

    @property
    def outcome(self) -> str:
        """The name of the outcome."""
        ...

    def rows_expected(self) -> int | None:
        """Return how many records a progress bar should expect, if that is known."""
        ...

    def add_up(self, summand: Bounding, on_rows: OnRows) -> Integers:
        """Return the exact sum over all people."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class PeopleSum:
    """The exact sum over people, without noise. Private: it stays with the custodian, never printed or saved.

    Counts of people by length, if a bound was found from them, already carry their noise; they are published only with
    the release.
    """

    total: Integers
    rule: TableRule
    units: tuple[str, ...]
    times: Times
    outcome: str
    lengths: NoisyLengths | None = None
    lengths_paid_by: tuple[float, float, int | None] | None = None  # epsilon, delta and seed


@dataclass(frozen=True)
class PanelRelease:
    """Release the table of units and periods itself, with noise that hides each person in it.

    For donors that are few and made of many people: regions, hospitals, shops. Everything that bounds a person follows
    from the person's own records and public numbers.

    Parameters
    ----------
    epsilon, delta : float
        The whole budget. With delta = 0 the noise is Laplace instead of Gaussian: for a mean at epsilon 1, 0.67 times
        as much as at delta = 1e-6 if a person counts in one cell, 1.3 times in 4 cells, 4 times in 36.
    statistic : {"mean", "total", "share", "count"}
        Of the people in a cell, which is a unit in a period. A person's records in a cell are added up. ``"mean"`` and
        ``"total"`` are of their values, ``"share"`` is of people with any record that is not zero, ``"count"`` is how
        many people have a record.
    bounds : pair of numbers
        Of a person's value in a cell, from public knowledge: values beyond are set to them. For means and totals.
    person_bound : float, optional
        A bound on the length of all values of a person together, less the middle of the bounds for a mean: the root of
        the sum of squares. A smaller one cuts more and asks for less noise. By default what ``bounds`` allow. People
        who are cut are pulled toward zero for a total, and toward the middle of the bounds for a mean.
    person_bound_quantile : float, optional
        Instead of ``person_bound``: find it privately, so that about this share of people stay as they are, 0.5 for
        instance. A twentieth of the budget pays for noisy counts of people by length, which are published with the
        release; the bound is one of 30 public lengths. With too few people there is none, and the file says so.
    cells_per_period : int
        In how many units a person counts in one period: the first ones in the declared order.
    cells_per_person : int, optional
        In how many cells a person counts over all periods, chosen by a hash of person and cell.
    seed : int, optional
        For experiments only; the release then carries no guarantee.
    """

    _: KW_ONLY
    epsilon: float
    delta: float
    statistic: Statistic = "mean"
    bounds: tuple[float, float] | None = None
    person_bound: float | None = None
    cells_per_period: int = 1
    cells_per_person: int | None = None
    person_bound_quantile: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.epsilon("epsilon", self.epsilon))
        object.__setattr__(self, "delta", checks.delta("delta", self.delta))
        rule = self._rule(3, 1)
        if self.person_bound_quantile is not None:
            require_lengths(rule)
            object.__setattr__(self, "person_bound_quantile", require_quantile(self.person_bound_quantile))

    def rule_for(self, units: tuple[str, ...], times: Times) -> TableRule:
        """Return how people are bounded in a table of these units and periods, before a bound is found privately."""
        require_units(units)
        require_size(len(units), len(times))
        return self._rule(len(units), len(times))

    def _rule(self, units: int, periods: int) -> TableRule:
        return TableRule(
            self.statistic,
            self.bounds,
            self.person_bound,
            self.cells_per_period,
            self.cells_per_person,
            units,
            periods,
        )

    def guarantee_for(self, rule: TableRule) -> Guarantee | None:
        """Return what a release of a table will promise, before noise is drawn; None if the noise is from a seed."""
        basis = f"discrete {'Laplace' if self.delta == 0 else 'Gaussian'} noise on sums over people of bounded length"
        basis += ", and on counts of people by length" if self._is_counted else ""
        loss = self._loss(rule)
        return promised(self.epsilon, self.delta, self.seed, basis=basis, loss=loss, adjacency=REPLACE_PERSON)

    def custodian_sum(self, people: PeopleSource, *, on_progress: OnProgress = unwatched) -> PeopleSum:
        """Add up people exactly, without noise: private, only for :meth:`release`.

        This is the long part of a release. Nothing is published yet, so it may fail or be repeated.
        """
        rule = self.rule_for(people.units, people.times)
        require_public_labels(people.outcome, people.times)  # before anything is booked
        self._require_room(rule)
        lengths, expected = None, people.rows_expected()
        if self.person_bound_quantile is not None:
            counts = people.add_up(LengthCounts(rule), lambda rows: on_progress("counting people", rows, expected))
            lengths = self.noisy_lengths(counts, rule)
            rule = lengths.bounded(rule)
        about = rule, people.units, people.times, people.outcome
        total = people.add_up(Bounding(rule), lambda rows: on_progress("reading records", rows, expected))
        return PeopleSum(total, *about, lengths, self._payer if self._is_counted else None)

    def noisy_lengths(self, counts: Integers, rule: TableRule) -> NoisyLengths:
        """Return counts of people by length with their noise, to be published only with a release.

        Private: the counts. Neighbours: all records of one person replaced by any others, or by none. Every person with
        a cell is in one bin, by its own records, so that two counts change by one at most
        (:func:`dpsc.privacy.sensitivity.counted`). The noise costs ``SHARE`` of the budget. The bound that follows is
        then public for the table (adaptive composition). It would break if the bins were read off people.
        """
        assert self.person_bound_quantile is not None
        law, scale = noise_of(Bins(rule), self._loss(rule), True)
        apart = None if self.seed is None else self.seed + 2**64  # other noise than the table has
        noisy = discrete.add(counts * UNIT, law, scale, randomness.choose(apart), largest=_LARGEST_SUM)
        return NoisyLengths(self.person_bound_quantile, noisy, law, scale)

    @np.errstate(all="ignore")
    def release(
        self,
        people: PeopleSource | PeopleSum,
        *,
        provenance: str = "",
        outcome: str | None = None,
        dataset: str | None = "",
        on_progress: OnProgress = unwatched,
    ) -> PrivatePanel:
        """Turn people into a private panel.

        Parameters
        ----------
        people : People or PeopleSum
            :class:`dpsc.People`, people in files (:func:`dpsc.scan` with ``person``), or the result of
            :meth:`custodian_sum`.
        provenance : str
            Free text for the readers of the release. It is published as it is.
        outcome : str, optional
            The outcome's name; that of the column by default.
        dataset : str, optional
            The name under which the people are booked in a ledger, published with the release. None says that no
            ledger is kept; if nothing is said, ``save`` warns of it.
        on_progress : callable
            Is told what is being done, how many more records are read, and of how many if that is known. It may stop
            the work, by raising. Private.

        Notes
        -----
        Private: the records. Neighbours: all records of one person replaced by any others, or by none; units, periods
        and all parameters are public. Each person adds integers that follow from its own records and the rule, and the
        rule bounds how far replacing one person moves their sum (:func:`dpsc.privacy.sensitivity.table_squared`,
        ``table_l1``). Every number gets discrete Gaussian noise of scale sensitivity / mu, or discrete Laplace noise of
        scale l1 sensitivity / epsilon. It would break if people were bounded together, if which records count depended
        on other people's, or if cells without people were left out. A bound on a person that is found privately comes
        from noisy counts of people by length (``counted``), which take a stated share of mu^2 or of epsilon; the table
        takes what is left. Proof: docs/proofs/people-in-groups.md.
        """
        checks.about_a_release(provenance, outcome, dataset)
        summed = people if isinstance(people, PeopleSum) else self.custodian_sum(people, on_progress=on_progress)
        rule = self._rule_of(summed)
        randomness.warn_of_seed(self.seed)
        law, scale = noise_of(rule, self._loss(rule), self._is_counted)
        noisy = discrete.add(summed.total, law, scale, randomness.choose(self.seed), largest=_LARGEST_SUM)
        block = Block(
            rule=rule,
            units=summed.units,
            times=summed.times,
            outcome=summed.outcome if outcome is None else str(outcome),
            sums=noisy[0],
            people=noisy[1] if rule.counts_people else None,
            law=law,
            scale=scale,
            guarantee=self.guarantee_for(rule),
            no_guarantee="" if self.seed is None else SEEDED,
            lengths=summed.lengths,
            dataset="" if dataset is None else str(dataset),
            unpaid=dataset == "" and self.seed is None,
            provenance=str(provenance),
        )
        return PrivatePanel((block,))

    def _rule_of(self, summed: PeopleSum) -> TableRule:
        """Return how the people of a sum were bounded; refuse a sum that another algorithm made."""
        rule, lengths = self.rule_for(summed.units, summed.times), summed.lengths
        if self.person_bound_quantile != (None if lengths is None else lengths.quantile):
            raise ParameterError("the bound on a person of this sum was found in another way.")
        if lengths is not None:
            if summed.lengths_paid_by != self._payer:
                raise ParameterError("the bound on a person of this sum was found with another epsilon, delta or seed.")
            rule = lengths.bounded(rule)
        if rule != summed.rule:
            raise ParameterError("this sum was made with another statistic or other bounds.")
        return rule

    def _require_room(self, rule: TableRule) -> None:
        """Refuse, from public numbers, a table whose noise does not fit beside its sums."""
        loss = self._loss(rule)
        for what in (rule, Bins(rule)) if self._is_counted else (rule,):
            discrete.require_room(noise_of(what, loss, self._is_counted)[1], _LARGEST_SUM)

    def _loss(self, rule: TableRule) -> Loss:
        """Return what a release costs: all of it, counts by length included."""
        return budget(rule, self.epsilon, self.delta, self._is_counted)

    @property
    def _is_counted(self) -> bool:
        """Whether people are counted by length."""
        return self.person_bound_quantile is not None

    @property
    def _payer(self) -> tuple[float, float, int | None]:
        """What the noise on counts depends on; the noise on the table must depend on the same."""
        return self.epsilon, self.delta, self.seed
