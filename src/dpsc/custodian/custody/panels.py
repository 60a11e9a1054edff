"""A panel of people in steps: choose, open, add up, book what it costs, draw noise, join, write.

A panel that grows gets later periods of the same units, each bounded and booked by itself. What may be refused is
refused before anything is booked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsc.analyst.private_panel import PrivatePanel
from dpsc.custodian.custody.steps import require_reasonable, require_small_delta
from dpsc.custodian.donors.people import OnRows, PersonCells
from dpsc.custodian.donors.presence import Misfit, custodian_misfit
from dpsc.custodian.groups.algorithm import PanelRelease, PeopleSum
from dpsc.custodian.groups.bounding import Bounding
from dpsc.custodian.groups.people_files import FilePeople
from dpsc.errors import Parameter, ParameterError, ReleaseError
from dpsc.periods.dates import period_name
from dpsc.release.panel import Block
from dpsc.release.table_rule import TableRule
from dpsc.tables import reader
from dpsc.tables.spec import TableSpec
from dpsc.types import Integers, Times

if TYPE_CHECKING:
    from dpsc.custodian.custody.payer import Account, Output


@dataclass(frozen=True)
class PanelChoices:
    """How a panel is made.

    Attributes
    ----------
    algorithm : PanelRelease
    units : tuple of str or None
        As declared.
    periods : Index or None
    grown : PrivatePanel or None
        What the new periods are added to.
    """

    algorithm: PanelRelease
    units: tuple[str, ...] | None
    periods: Times | None
    grown: PrivatePanel | None = None


def of_options(
    said: TableSpec,
    *,
    epsilon: float | None,
    delta: float | None,
    bounds: tuple[float, float] | None,
    grown: PrivatePanel | None = None,
    i_know: bool = False,
    **how: Any,
) -> PanelChoices:
    """Return what was said of a panel and of the table of records; ``how`` are parameters of :class:`PanelRelease`.

    What is not said of periods that are added is as it was before.
    """
    if epsilon is None or delta is None:
        raise ParameterError(f"{Parameter('epsilon' if epsilon is None else 'delta')} is needed.")
    require_reasonable(epsilon, i_know)
    require_small_delta(delta, None, i_know, "people")
    units = None if said.units is None else reader.typed_units(said.units)
    periods = None if said.periods is None else reader.typed_periods(said.periods, None, said.time_format)
    how = {name: value for name, value in ({"bounds": bounds} | how).items() if value is not None}
    if grown is not None:
        before = _site(grown, units)[-1]
        units, how = before.units, _as_before(before.rule, how, periods)
    return PanelChoices(PanelRelease(epsilon=epsilon, delta=delta, **how), units, periods, grown)


def _site(grown: PrivatePanel, units: tuple[str, ...] | None) -> tuple[Block, ...]:
    """Return the releases of the units that get new periods."""
    if not grown.blocks:
        raise ReleaseError("a table that others published does not grow.")
    sites = [site for site in grown.sites if units in (None, site[0].units)]
    if not sites:
        raise ReleaseError(f"the panel has other {Parameter('units')}; leave this out to keep those of the panel.")
    if len(sites) > 1:
        raise ReleaseError(f"the panel has several sites; say whose {Parameter('units')} get new periods.")
    return sites[0]


def _as_before(rule: TableRule, how: dict[str, Any], periods: Times | None) -> dict[str, Any]:
    """Return the parameters of a release that is like another one; bounds over all periods fit as many periods.

    A bound that was found privately is public since it was released, and is used again as any other number.
    """
    if "person_bound_quantile" in how:
        rule = replace(rule, person_bound=None)
    for name in ("person_bound", "cells_per_person"):
        known = getattr(rule, name)
        if known is not None and name not in how and periods is not None and len(periods) != rule.periods:
            raise ParameterError(
                f"the panel has {Parameter(name, known)} over {rule.periods} periods; say what it is for "
                f"{len(periods)}."
            )
    names = ("statistic", "bounds", "person_bound", "cells_per_period", "cells_per_person")
    before = {name: value for name in names if (value := getattr(rule, name)) is not None}
    for name in ("statistic", "bounds"):
        if name in how and how[name] != before.get(name):
            raise ParameterError(f"the panel has another {Parameter(name)}; leave this out to keep that of the panel.")
    return before | how


def opened(people: FilePeople, chosen: PanelChoices, payer: str | None) -> TableRule:
    """Look whether the records can be read and the panel can grow by them; return how people are bounded."""
    rule = chosen.algorithm.rule_for(people.units, people.times)
    people.require_columns()
    if chosen.grown is not None:
        PrivatePanel.join([chosen.grown, rehearsed(people, chosen, payer)], disjoint=True)
        last = _site(chosen.grown, people.units)[-1].times[-1]
        if not isinstance(last, str) and not people.times[0] > last:
            raise ReleaseError(
                f"the panel is published until {period_name(last)}, and a panel grows forward: declare only later "
                f"{Parameter('periods')}, not {period_name(people.times[0])}."
            )
    return rule


def rehearsed(people: FilePeople, chosen: PanelChoices, payer: str | None) -> PrivatePanel:
    """Return a panel of nobody, with noise as the real one will have it; it is never written."""
    return chosen.algorithm.release(_Nobody(people.units, people.times, people.outcome), dataset=payer)


@dataclass(frozen=True)
class _Nobody:
    """People of whom there is none."""

    units: tuple[str, ...]
    times: Times
    outcome: str

    def rows_expected(self) -> int:
        return 0

    def add_up(self, summand: Bounding, on_rows: OnRows) -> Integers:
        return summand.of(PersonCells.of(np.empty(0, np.uint64), *np.empty((2, 0), np.int64)))


def custodian_misfit_of(summed: PeopleSum) -> Misfit | None:
    """Say that in many of the declared periods there is nobody, and which would fit; None if they fit. Private."""
    somebody = (summed.total[-1] != 0).sum(axis=0)  # units of each period
    return custodian_misfit(somebody, summed.times, people=True)


def booked(
    summed: PeopleSum, chosen: PanelChoices, account: Account, output: Output, *, provenance: str = ""
) -> PrivatePanel:
    """Book what the release costs, make it, join it and write it: see :meth:`Account.making`."""

    def make() -> PrivatePanel:
        made = chosen.algorithm.release(summed, provenance=provenance, dataset=account.payer)
        return made if chosen.grown is None else PrivatePanel.join([chosen.grown, made], disjoint=True)

    what = {"description": {"outcome": summed.outcome}, "promise": chosen.algorithm.guarantee_for(summed.rule)}
    return account.making(make, chosen.algorithm, output, **what)
