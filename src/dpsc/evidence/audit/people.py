"""The release of people in groups under attack: the worst people that may be replaced, and what they cost.

People are records of cells and values, made up. What they add comes from the library, bounded as it bounds them; the
bounds and the noise are those that it states.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpsc.analyst.private_panel import PrivatePanel
from dpsc.custodian.donors.people import OnRows, PersonCells
from dpsc.custodian.groups.algorithm import PanelRelease, PeopleSum
from dpsc.custodian.groups.bounding import Bounding, LengthCounts
from dpsc.evidence.audit import measure
from dpsc.evidence.audit.case import SHOWN_DELTA, Case, ClaimedLoss, Effort, Exact, Sampled
from dpsc.evidence.audit.neighbours import FAR, Step
from dpsc.privacy import discrete
from dpsc.release.lengths import UNIT, Bins
from dpsc.release.panel import Block
from dpsc.release.table_rule import STEPS, TableRule
from dpsc.types import Array, Integers, Times

UNITS = ("north", "south", "east", "west")
_LARGEST = 2.0**40
_CROWD = 4000  # people whose median is found clearly at an epsilon of 1


class Person(NamedTuple):
    """The records of one person: cells, numbered ``period * units + unit``, and values."""

    cells: Integers
    values: Array


NOBODY = Person(np.empty(0, dtype=np.int64), np.empty(0))
Pair = tuple[Person, Person]


def added(rule: TableRule, *people: Person) -> Integers:
    """Return what people add to the tables, bounded by the library."""
    return summed(Bounding(rule), *people)


def summed(summand: Bounding, *people: Person) -> Integers:
    """Return what people add to a sum, as the library adds them up."""
    keys = np.repeat(np.arange(len(people), dtype=np.uint64), [len(person.cells) for person in people])
    cells, values = (np.concatenate(parts) for parts in zip(*people, strict=True))
    amounts, kept = summand.amounts(values)
    return summand.of(PersonCells.of(keys[kept], cells[kept], amounts[kept]))


@dataclass(frozen=True)
class Crowd:
    """People whose records are known, as a source of a release."""

    people: Sequence[Person]
    times: Times
    units: tuple[str, ...] = UNITS
    outcome: str = "outcome"

    def rows_expected(self) -> int:
        """Return how many records there are."""
        return sum(len(person.cells) for person in self.people)

    def add_up(self, summand: Bounding, on_rows: OnRows) -> Integers:
        """Return the exact sum over all people."""
        return summed(summand, *self.people)


def pairs(rule: TableRule) -> Iterator[Pair]:
    """Yield the worst people known: some cells in common with opposite values, and the others apart.

    Their values are all in few cells, or spread over all of them, and too long; or they have records everywhere, far
    outside the bounds. Cells can be apart where there are twice as many units as a person may have in a period.
    """
    slots, full = min(rule.cells_per_period, rule.units), rule.length_squared // STEPS**2
    place = np.arange(rule.most_cells)
    period, unit = place // slots * rule.units, place % slots
    few = np.zeros(rule.most_cells)
    few[:full] = STEPS
    few[full : full + 1] = math.isqrt(rule.length_squared - full * STEPS**2)
    for steps in (few, np.full(rule.most_cells, float(STEPS))):
        for common in {0, full, min(full + 1, rule.most_cells), rule.most_cells}:
            there = (steps > 0) | rule.counts_people
            other = period + np.where((place < common) | (rule.units < 2 * slots), unit, slots + unit)
            yield (
                Person((period + unit)[there], _values(rule, steps[there])),
                Person(other[there], _values(rule, -steps[there])),
            )
    everywhere = np.arange(rule.units * rule.periods)
    far = _values(rule, np.full(len(everywhere), FAR * STEPS))
    near = _values(rule, np.full(len(everywhere), -FAR * STEPS))
    yield Person(everywhere, far), Person(everywhere, near)


def _values(rule: TableRule, steps: Array) -> Array:
    """Return values that become so many steps; of the only sign that there is, if values have one."""
    if rule.statistic == "share":
        return (steps > 0).astype(np.float64)
    lo, hi = rule.ends_steps
    signed = np.abs(steps) if lo >= 0 else -np.abs(steps) if hi <= 0 else steps
    return rule.middle + signed * rule.step


def moves(rule: TableRule, pair: Pair) -> tuple[int, int]:
    """Return how far replacing one person by another moves the tables: in l1, and squared in l2."""
    change = [int(v) for v in (added(rule, pair[0]) - added(rule, pair[1])).ravel()]
    return sum(map(abs, change)), sum(v**2 for v in change)


def release(epsilon: float, delta: float) -> Case:
    """Attack a release with the two people who move its tables the furthest."""
    visible = SHOWN_DELTA if delta else 0.0

    def make(seed: int | None, delta: float = delta) -> PanelRelease:
        return PanelRelease(epsilon=epsilon, delta=delta, bounds=(-1, 1), seed=seed)

    rule = make(0).rule_for(UNITS, pd.Index([2001, 2002]))
    pair = max(pairs(rule), key=lambda pair: moves(rule, pair)[1 if delta else 0])
    sums = [_summed(rule, person) for person in pair]

    def exact() -> float:
        """Return the loss of outputs whose noise is the same, because their seed is."""
        one, other = (make(0).release(summed).blocks[0] for summed in sums)
        return _epsilon(Step(one.law, one.scale).distance(_numbers(one) - _numbers(other)), delta)

    example = make(0, visible).release(sums[0]).blocks[0]
    step = Step(example.law, example.scale)

    def bulk(side: int, effort: Effort) -> Array:
        flat = sums[side].total.ravel()
        values = np.tile(flat, (effort.runs, 1))
        noisy = discrete.add(values, example.law, example.scale, effort.source(), largest=_LARGEST)
        return noisy.astype(np.float64)

    def calls(side: int, effort: Effort) -> Array:
        made = (make(effort.seed(), visible).release(sums[side]).blocks[0] for _ in range(effort.calls))
        return np.array([_numbers(block) for block in made])

    centres = [one.total.ravel().astype(np.float64) for one in sums]
    ratio = {"likelihood ratio": lambda v: step.log_ratio(v, *centres)}
    claim, shown = ClaimedLoss(epsilon, delta), ClaimedLoss(epsilon, visible)
    attacks = (
        Exact("exact loss", claim, exact, "the worst of all pairs"),
        Sampled("runs in bulk", shown, bulk, ratio),
        Sampled("calls of release", shown, calls, ratio),
    )
    return Case("panel" if delta else "panel-pure", f"PanelRelease δ{'>' if delta else '='}0", attacks)


def bounds() -> Case:
    """Attack the bounds on how far one person moves the tables, for every statistic and kind of bound."""
    size = {"units": len(UNITS), "periods": 3}
    rules = {
        "mean": TableRule("mean", (2, 5), None, 1, None, **size),
        "mean, length bounded": TableRule("mean", (-1, 1), 1.5, 2, None, **size),
        "mean, length far below the bounds": TableRule("mean", (-1, 1), 0.01, 2, None, **size),
        "mean, thinned": TableRule("mean", (0, 8), None, 2, 4, **size),
        "total": TableRule("total", (0, 5), None, 2, None, **size),
        "total, length bounded": TableRule("total", (-1, 1), 1.2, 1, None, **size),
        "share, thinned": TableRule("share", None, None, 2, 5, **size),
        "count": TableRule("count", None, None, 2, None, **size),
    }
    attacks = _counts_by_length(rules["total, length bounded"])
    for name, rule in rules.items():
        stated = rule.l1_sensitivity / STEPS, math.sqrt(rule.squared_sensitivity) / STEPS
        for norm, sign in enumerate("₁₂"):

            def reach(rule: TableRule = rule, norm: int = norm) -> float:
                moved = max(moves(rule, pair)[norm] for pair in pairs(rule))
                return (math.sqrt(moved) if norm else moved) / STEPS

            attacks.append(Exact(f"{name}, l{norm + 1}", ClaimedLoss(stated[norm], unit=f"Δ{sign} ="), reach))
    return Case("panel-sensitivity", "what a person adds to a panel", tuple(attacks))


def _counts_by_length(rule: TableRule) -> list[Exact]:
    """Attack how far one person moves counts of people by length."""
    bins = Bins(rule)
    pair = next(pair for pair in pairs(bins.rules[0]) if len(pair[0].cells))
    longer = Person(pair[1].cells, 9 * pair[1].values)
    change = summed(LengthCounts(bins.rule), pair[0]) - summed(LengthCounts(bins.rule), longer)
    reached = (np.abs(change).sum(), np.linalg.norm(change))
    stated = bins.l1_sensitivity / UNIT, math.sqrt(bins.squared_sensitivity) / UNIT
    return [
        Exact(f"people by length, {norm}", ClaimedLoss(claim, unit=f"Δ{sign} ="), lambda found=found: float(found))  # type: ignore[misc]
        for norm, sign, claim, found in zip(("l1", "l2"), "₁₂", stated, reached, strict=True)
    ]


def lengths(epsilon: float, delta: float) -> Case:
    """Attack a bound on a person that is found privately, together with the table that follows, through the release.

    Both people are longer than any bound that the crowd leads to, in bins of their own and in cells of their own.
    """
    make = PanelRelease(
        epsilon=epsilon, delta=delta, statistic="total", bounds=(0, 1), person_bound_quantile=0.5, seed=0
    )
    times, cells = pd.Index(range(2001, 2009)), np.arange(8) * len(UNITS)
    usual = [Person(np.array([k % 32]), np.array([0.1])) for k in range(math.ceil(_CROWD / min(1.0, epsilon)))]
    pair = Person(cells, np.ones(8)), Person(cells + 1, np.full(8, 0.5))

    def exact() -> float:
        """Return the loss of outputs whose noise is the same, because their seed is."""
        one, other = (make.release(Crowd([*usual, person], times)).blocks[0] for person in pair)
        if one.rule != other.rule or one.lengths is None or other.lengths is None:
            return math.inf
        table = Step(one.law, one.scale).distance(_numbers(one) - _numbers(other))
        counts = Step(one.law, one.lengths.scale).distance(
            (one.lengths.counts - other.lengths.counts).astype(np.float64)
        )
        return _epsilon(table + counts if delta == 0 else math.hypot(table, counts), delta)

    attack = Exact("exact loss", ClaimedLoss(epsilon, delta), exact, "counts and table, one pair")
    name = "panel-lengths" if delta else "panel-lengths-pure"
    return Case(name, f"PanelRelease δ{'>' if delta else '='}0, bound found privately", (attack,))


def joins(delta: float = 1e-6) -> Case:
    """Attack what joined panels promise: months of the same people, and sites between which somebody moves."""
    cheap, dear = (PanelRelease(epsilon=epsilon, delta=delta, bounds=(-1, 1)) for epsilon in (1.0, 2.0))
    elsewhere = tuple(f"{unit} of elsewhere" for unit in UNITS)
    rule = cheap.rule_for(UNITS, pd.Index([2001, 2002]))
    pair = max(pairs(rule), key=lambda pair: moves(rule, pair)[1])
    empty = [_summed(rule, NOBODY, UNITS, year) for year in (2001, 2003, 2005)]
    months = PrivatePanel.join([cheap.release(part) for part in empty])
    sites = PrivatePanel.join([cheap.release(empty[0]), dear.release(_summed(rule, NOBODY, elsewhere))], disjoint=True)
    replaced = [math.sqrt(moves(rule, pair)[1]) / block.scale for block in sites.blocks]
    removed = [math.sqrt(moves(rule, (pair[0], NOBODY))[1]) / block.scale for block in sites.blocks]
    assert months.guarantee is not None
    assert sites.guarantee is not None
    three, largest = (ClaimedLoss(g.epsilon, g.delta) for g in (months.guarantee, sites.guarantee))
    return Case(
        "panel-joins",
        "panels joined",
        (
            Exact("three months", three, lambda: _epsilon(math.sqrt(3) * replaced[0], three.delta)),
            Exact("a person of the dearer site", largest, lambda: _epsilon(replaced[1], delta)),
            Exact("a person who moves", largest, lambda: _epsilon(math.hypot(*removed), delta)),
        ),
    )


def _summed(rule: TableRule, person: Person, units: tuple[str, ...] = UNITS, year: int = 2001) -> PeopleSum:
    return PeopleSum(added(rule, person), rule, units, pd.Index(range(year, year + rule.periods)), "outcome")


def _numbers(block: Block) -> Array:
    """Return all numbers of a release."""
    people = [] if block.people is None else [block.people.ravel()]
    return np.concatenate([block.sums.ravel(), *people]).astype(np.float64)


def _epsilon(distance: float, delta: float) -> float:
    return distance if delta == 0 else measure.gaussian_epsilon(distance, delta)
