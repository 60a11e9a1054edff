"""What ``dpsc check --person`` says, in plain sections. Private, as what it is about."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsc.checks import small
from dpsc.custodian.check.check_report import Section, about, graded, percent, warned
from dpsc.custodian.check.people import CustodianLook
from dpsc.errors import Parameter
from dpsc.privacy.guarantee import Guarantee, best_guess
from dpsc.tables.spec import TableSpec

_WORST = 12  # units that are listed
_NEVER = (
    f"Units, periods, {Parameter('bounds')}, {Parameter('person_bound')}, in how many cells a person counts, epsilon. "
    "Choose them from public knowledge. A choice made by looking at these numbers tells something about single people, "
    "and no noise covers it: the guarantee would no longer hold."
)
_MAY = (
    "Typing errors, records that occur twice, identifiers of one person written in two ways, a lost file. Correct by "
    "fixed rules that are the same for everybody, not by looking at single people."
)


def sections(look: CustodianLook, promise: Guarantee, said: TableSpec, commands: Sequence[str]) -> list[Section]:
    """Return everything that is shown, in order."""
    when = f"as it is; add {Parameter('dry_run', True)} to rehearse it first" if look.ready else "when all is corrected"
    return [
        _understood(look, said),
        *graded(look.findings, "until then the released table would be useless"),
        _cells(look),
        _bounds(look),
        *warned(_NEVER, _MAY),
        _expected(look, promise),
        Section("The command to run", when, commands=commands),
    ]


def _understood(look: CustodianLook, said: TableSpec) -> Section:
    numbers = "" if said.outcome is None else f", numbers in {said.outcome!r}"
    columns = f"people in {said.person!r}, units in {said.unit!r}, periods in {said.time!r}{numbers}"
    facts = [
        ("file", look.reading),
        ("columns", columns),
        ("table", f"{len(look.units)} declared units, {look.rule.periods} declared periods"),
        ("people", f"{look.people:,} with a record in a declared unit and period"),
        ("records", f"{look.rows:,} in all, with those of other units and periods"),
    ]
    return Section("What was understood", facts=facts)


def _cells(look: CustodianLook) -> Section:
    """List the units with the fewest people."""
    fewest = look.in_cells.min(axis=1)
    ranked = np.argsort(fewest, kind="stable")[:_WORST]
    rows = [
        (look.units[row], f"{fewest[row]:,}", f"{np.median(look.in_cells[row]):,.0f}", f"{look.too_few[row].sum():,}")
        for row in ranked.tolist()
    ]
    more = len(look.units) - len(rows)
    note = f"only the units with the fewest people, of all {len(look.units)}" if more else ""
    header = ("unit", "fewest", "usual", "cells with too few")
    return Section("People in the cells", note, table=[header, *rows])


def _bounds(look: CustodianLook) -> Section:
    """Say what the bounds would do to people and their cells."""
    cells, rule = int(look.in_cells.sum()), look.rule
    facts = [
        ("in several units", f"{_of(look.in_several_units, look.people)} people have records of several in one period"),
        ("cells left out", f"{_of(look.left_out, cells)} of the sums of one person in one cell do not count"),
    ]
    if rule.has_values:
        facts += [
            ("below the bounds", f"{_of(look.below, cells)} of these sums would be set to the lower bound"),
            ("above the bounds", f"{_of(look.above, cells)} of these sums would be set to the upper bound"),
        ]
        if rule.person_bound is not None:
            facts.append(
                (
                    "made smaller",
                    f"all values of {_of(look.shortened, look.people)} people, because of {Parameter('person_bound')}",
                )
            )
    return Section("What the bounds would cut", "never published", facts=facts)


def _expected(look: CustodianLook, promise: Guarantee) -> Section:
    epsilon, delta = promise.epsilon, promise.delta
    facts = [
        (
            "budget",
            f"epsilon {epsilon:g}, delta {small(delta)}: an attacker who knows all other people guesses "
            f"between two records of a person right at most {best_guess(epsilon, delta):.1%} of the time; a blind "
            "guess 50%",
        )
    ]
    if np.isfinite(look.noise):
        said = f"a standard deviation of {about(look.noise)} in the usual cell"
        if look.finds_bound:
            said = f"at most {said}; a bound on a person that is found privately makes it less"
        facts.append(("noise", said))
    if np.isfinite(look.noise) and look.change > 0 and not look.finds_bound:
        ratio = look.noise / look.change
        facts.append(
            (
                "noise and change",
                f"the noise is {ratio:.2g} times the usual change of a unit from one period to the next, which is "
                f"{about(look.change)}. Up to about 1, answers lose little; above 2, prefer longer "
                "periods or larger units",
            )
        )
    return Section("What the release would be like", facts=facts)


def _of(count: int, whole: int) -> str:
    return f"{count:,} ({percent(count / max(1, whole))})"
