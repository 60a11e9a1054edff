"""What people add to a table: within the rule whatever their records are, by their own records alone, in any order."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsc import ParameterError
from dpsc.custodian.donors.people import PersonCells
from dpsc.custodian.groups.bounding import Bounding, LengthCounts
from dpsc.evidence.audit.people import NOBODY, Person, added, moves, pairs, summed
from dpsc.release.lengths import UNIT, Bins
from dpsc.release.table_rule import STEPS, Statistic, TableRule
from dpsc.types import Integers
from tests.soak import quick_or_long

BOUNDS = [
    (0.0, 1.0),
    (-1.0, 0.0),
    (-1.0, 1.0),
    (-3.0, 2.0),
    (5.0, 9.0),
    (-9.0, -5.0),
    (1e6, 1e6 + 2),
    (0.0, 1e-100),
    (-1e100, 1e100),
    (-1e-12, 7.0),
    (0.1, 0.3),
]
AWKWARD = [0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, 2.0**53, 1e6 + 1]


@st.composite
def rules(draw: st.DrawFn) -> TableRule:
    """Rules of every statistic; a person bound is a share of what the bounds allow."""
    statistic: Statistic = draw(st.sampled_from(get_args(Statistic)))
    has_values = statistic in ("mean", "total")
    per_period = draw(st.integers(1, 3))
    units, periods = draw(st.integers(3, 6)), draw(st.integers(1, 4))
    most = draw(st.none() | st.integers(1, per_period * periods + 1))
    rule = TableRule(
        statistic, draw(st.sampled_from(BOUNDS)) if has_values else None, None, per_period, most, units, periods
    )
    share = draw(st.none() | st.sampled_from([1.01e-4, 0.5, 1.0, 2.0]) | st.floats(0.01, 1.0))
    if not has_values or share is None:
        return rule
    bound = share * rule.half_width * math.sqrt(rule.most_cells)
    return TableRule(statistic, rule.bounds, bound, per_period, most, units, periods)


def people(rule: TableRule) -> st.SearchStrategy[Person]:
    """Records in any cells, several in some, with values in bounds, at them, beyond them and of no use."""
    within = st.floats(-2, 2).map(lambda share: rule.middle + share * rule.half_width)
    records = st.tuples(st.integers(0, rule.units * rule.periods - 1), st.sampled_from(AWKWARD) | within)
    return st.lists(records, max_size=12).map(
        lambda rows: Person(np.array([r[0] for r in rows], dtype=np.int64), np.array([r[1] for r in rows], dtype=float))
    )


@settings(max_examples=quick_or_long(300, 20_000))
@given(st.data())
def test_what_a_person_adds_is_within_the_rule(data: st.DataObject) -> None:
    rule = data.draw(rules())
    person = data.draw(people(rule))
    table = added(rule, person)
    assert not (table % rule.finer).any()
    assert np.abs(table).max(initial=0) <= STEPS  # so that as many people fit 64 bits as with a large bound
    steps = [int(v) // rule.finer for v in table[0].ravel()]
    lo, hi = min(0, rule.ends_steps[0]), max(0, rule.ends_steps[1])
    assert all(lo <= v <= hi for v in steps)
    assert sum(v**2 for v in steps) <= rule.length_squared
    assert rule.finer * sum(map(abs, steps)) <= rule.l1_sensitivity // 2
    there = table[-1] != 0  # the people, or the sums where nobody is counted
    assert there.sum() <= rule.most_cells
    assert (there.sum(axis=0) <= rule.cells_per_period).all()
    if rule.counts_people:
        assert set(np.unique(table[1])) <= {0, rule.one_person}
        assert not table[0][~there].any()


@settings(max_examples=quick_or_long(300, 20_000))
@given(st.data())
def test_replacing_or_removing_a_person_never_moves_the_tables_further_than_stated(data: st.DataObject) -> None:
    """Among other people: whole people replaced, moved to other units and periods, with more records and with none."""
    rule = data.draw(rules())
    crowd, (one, other) = data.draw(st.lists(people(rule), max_size=3)), data.draw(st.tuples(*[people(rule)] * 2))
    if data.draw(st.booleans()):  # the same person in the next unit
        other = Person((one.cells + 1) % (rule.units * rule.periods), 2 * rule.middle - one.values)
    change = added(rule, one, *crowd) - added(rule, other, *crowd)
    assert np.array_equal(change, added(rule, one) - added(rule, other))
    l1, squared = moves(rule, (one, other))
    assert l1 <= rule.l1_sensitivity
    assert squared <= rule.squared_sensitivity
    l1, squared = moves(rule, (one, NOBODY))
    assert 2 * l1 <= rule.l1_sensitivity  # what makes joining sites at the largest cost right
    assert 2 * squared <= rule.squared_sensitivity


ATTAINED = [
    TableRule("mean", (2.0, 5.0), None, 1, None, 4, 3),
    TableRule("mean", (-1.0, 1.0), 1.5, 2, None, 4, 3),
    TableRule("mean", (-1.0, 1.0), 0.4, 2, None, 4, 3),
    TableRule("mean", (-1.0, 1.0), 0.01, 2, None, 4, 3),
    TableRule("mean", (0.0, 8.0), None, 2, 4, 5, 3),
    TableRule("mean", (1e6, 1e6 + 2), 2.2, 1, 5, 3, 9),
    TableRule("total", (0.0, 5.0), None, 2, None, 4, 3),
    TableRule("total", (-5.0, 0.0), 7.7, 2, None, 4, 3),
    TableRule("total", (-1.0, 1.0), 1.2, 1, None, 4, 3),
    TableRule("total", (-1.0, 1.0), None, 3, 7, 7, 3),
    TableRule("share", None, None, 1, None, 3, 12),
    TableRule("share", None, None, 2, 5, 4, 3),
    TableRule("count", None, None, 2, None, 4, 3),
    TableRule("count", None, None, 1, 7, 3, 12),
]


@pytest.mark.parametrize("rule", ATTAINED, ids=lambda rule: f"{rule.statistic} {rule.bounds} {rule.person_bound}")
def test_two_people_attain_each_bound_so_that_one_10_percent_smaller_is_broken(rule: TableRule) -> None:
    reached = [moves(rule, pair) for pair in pairs(rule)]
    for norm, stated in enumerate((rule.l1_sensitivity, rule.squared_sensitivity)):
        largest = max(moved[norm] for moved in reached)
        assert (0.99 if norm == 0 else 0.99**2) * stated <= largest <= stated


@settings(max_examples=quick_or_long(100, 5000))
@given(st.data())
def test_neither_the_order_of_records_nor_the_people_beside_one_matter(data: st.DataObject) -> None:
    rule = data.draw(rules())
    crowd = data.draw(st.lists(people(rule), min_size=1, max_size=4))
    keys = np.repeat(np.arange(len(crowd), dtype=np.uint64), [len(person.cells) for person in crowd])
    cells, values = (np.concatenate(parts) for parts in zip(*crowd, strict=True))
    order = np.array(data.draw(st.permutations(range(len(keys)))), dtype=np.int64)

    def total(chosen: Integers) -> Integers:
        amounts, kept = Bounding(rule).amounts(values[chosen])
        chosen = chosen[kept]
        return Bounding(rule).of(PersonCells.of(keys[chosen], cells[chosen], amounts[kept]))

    together = total(np.arange(len(keys)))
    assert np.array_equal(together, total(order))
    assert np.array_equal(together, sum(total(np.flatnonzero(keys == key)) for key in range(len(crowd))))


@settings(max_examples=quick_or_long(100, 20_000))
@given(st.data())
def test_replacing_a_person_moves_two_counts_by_length_by_one_and_removing_one_moves_one(data: st.DataObject) -> None:
    rule = data.draw(rules().filter(lambda rule: rule.has_values))
    crowd, (one, other) = data.draw(st.lists(people(rule), max_size=3)), data.draw(st.tuples(*[people(rule)] * 2))
    bins = Bins(rule)
    counts, changed, less = (summed(LengthCounts(bins.rule), who, *crowd) for who in (one, other, NOBODY))
    assert np.abs(counts - changed).sum() * UNIT <= bins.l1_sensitivity
    assert ((counts - changed) ** 2).sum() * UNIT**2 <= bins.squared_sensitivity
    assert 2 * np.abs(counts - less).sum() * UNIT <= bins.l1_sensitivity
    assert (counts - less).min() >= 0


@settings(max_examples=quick_or_long(100, 20_000))
@given(st.data())
def test_a_person_is_counted_at_the_smallest_bound_that_leaves_it_as_it_is(data: st.DataObject) -> None:
    rule = data.draw(rules().filter(lambda rule: rule.has_values))
    bins, person = Bins(rule), data.draw(people(rule))
    counts, free = summed(LengthCounts(bins.rule), person), added(bins.rules[-1], person)[0]
    assert counts.sum() == np.isfinite(person.values).any()
    left = [np.array_equal(added(bounded, person)[0] // bounded.finer, free) for bounded in bins.rules]
    if counts.any():
        place = int(np.argmax(counts))
        assert not any(left[:place])
        assert all(left[place:])


def test_two_people_attain_the_bound_on_counts_so_that_one_10_percent_smaller_is_broken() -> None:
    rule = TableRule("total", (0.0, 5.0), None, 2, None, 4, 3)
    short, long = (Person(np.arange(3), np.full(3, value)) for value in (0.1, 4.0))
    change = summed(LengthCounts(rule), short) - summed(LengthCounts(rule), long)
    assert np.abs(change).sum() * UNIT == Bins(rule).l1_sensitivity
    assert (change**2).sum() * UNIT**2 == Bins(rule).squared_sensitivity


def test_records_far_beyond_all_sense_stay_within_64_bits() -> None:
    """With bounds a million half-widths from zero a record of 1e308 was the smallest number that there is."""
    rule = TableRule("mean", (2.0**20 - 1, 2.0**20 + 1), None, 1, None, 3, 1)
    for value, end in ((1e308, STEPS), (-1e308, -STEPS)):
        amounts, _ = Bounding(rule).amounts(np.array([value]))
        assert abs(int(amounts[0])) < 2**56
        assert added(rule, Person(np.array([1] * 100), np.full(100, value)))[0].ravel().tolist() == [0, end, 0]


def test_records_of_a_person_in_a_cell_are_added_up_before_they_are_clipped() -> None:
    rule = TableRule("total", (0.0, 10.0), None, 1, None, 3, 1)
    person = Person(np.array([2, 2, 2]), np.array([40.0, -38.0, 1.0]))
    assert added(rule, person)[0].ravel() * rule.step == pytest.approx([0, 0, 3])
    share = TableRule("share", None, None, 1, None, 3, 1)
    assert added(share, Person(np.array([2, 2]), np.array([0.0, 7.0])))[0, 2, 0] == STEPS
    assert added(share, Person(np.array([2, 2]), np.array([0.0, 0.0])))[0, 2, 0] == -STEPS


def test_a_person_counts_in_the_first_declared_units_of_a_period_and_in_cells_drawn_by_lot() -> None:
    rule = TableRule("count", None, None, 2, None, 4, 2)
    everywhere = Person(np.arange(8), np.ones(8))
    assert (added(rule, everywhere)[0] != 0).tolist() == [[True] * 2, [True] * 2, [False] * 2, [False] * 2]
    thinned = TableRule("count", None, None, 1, 6, 3, 24)
    crowd = [Person(np.arange(0, 72, 3), np.ones(24))] * 4000  # all in the first unit, in every period
    kept = added(thinned, *crowd)[0, 0] / STEPS
    assert kept.sum() == 4000 * 6
    assert abs(kept / 1000 - 1).max() < 0.15  # no period is left out more than others: 5 standard deviations


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"bounds": (0.0, 1e-101)}, "too close together"),
        ({"bounds": (1.0, 1.0)}, "is not below"),
        ({"bounds": (2.0, 1.0)}, "is not below"),
        ({"bounds": (0.0, 1e101)}, "beyond"),
        ({"bounds": (0.0, 1.0, 2.0)}, "must be two numbers"),
        ({"bounds": 5.0}, "must be two numbers"),
        ({"bounds": (0.0, math.nan)}, "finite"),
        ({"bounds": (0.0, None)}, "finite"),
        ({"bounds": None}, "needs"),
        ({"bounds": (1e9, 1e9 + 1)}, "too close together"),
        ({"person_bound": 0.0}, "above 0"),
        ({"person_bound": 1e-9}, "almost everything"),
        ({"cells_per_period": 0}, "at least 1"),
        ({"cells_per_person": 1.5}, "whole number"),
        ({"periods": 2000, "units": 9, "cells_per_period": 9}, "at most 16,384"),
        ({"statistic": "share"}, "are for means and totals"),
        ({"statistic": "median"}, "is not one of"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(changes: dict[str, object], problem: str) -> None:
    fine = {"statistic": "mean", "bounds": (0.0, 1.0), "person_bound": None, "cells_per_period": 1}
    with pytest.raises(ParameterError, match=problem):
        TableRule(**fine | {"cells_per_person": None, "units": 3, "periods": 4} | changes)  # type: ignore[arg-type]


def test_whole_numbers_of_numpy_do_not_overflow() -> None:
    """Four times the square of the longest vector is beyond 64 bits."""
    sizes = {"cells_per_period": np.int64(8), "cells_per_person": np.int64(2**14), "units": np.int64(9)}
    rule = TableRule("mean", (0, 1), np.float64(1e9), periods=2048.0, **sizes)  # type: ignore[arg-type]
    assert rule.squared_sensitivity == 4 * 2**14 * STEPS**2
    assert rule == TableRule("mean", (0.0, 1.0), 1e9, 8, 2**14, 9, 2048)
