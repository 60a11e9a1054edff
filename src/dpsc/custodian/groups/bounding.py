"""What each person adds to a table: clipped, thinned, and of bounded length, each person by itself. Private.

Records are divided by the hash of their person into parts, more than fit into memory if need be, each of which is then
added up by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpsc.custodian.donors.blocks import in_order
from dpsc.custodian.donors.divided import Divided
from dpsc.custodian.donors.people import Keys, OnRows, PersonCells, mixed
from dpsc.custodian.donors.records import Records
from dpsc.release.lengths import BINS, Bins
from dpsc.release.table_rule import TableRule
from dpsc.types import Array, Integers

_LARGEST_RECORD = 2**10  # times what the bounds allow: a correction may be as large, and sums fit into 64 bits
_BELOW_ONE = 1 - 2.0**-40


@dataclass(frozen=True)
class Bounding:
    """Adds up people under a rule. Records become integers one by one, before they are added: no order matters."""

    rule: TableRule

    @property
    def needs_values(self) -> bool:
        """Whether it matters what a record's value is: not to count people."""
        return self.rule.statistic != "count"

    def amounts(self, values: Array) -> tuple[Integers, np.ndarray[Any, np.dtype[np.bool_]]]:
        """Return the integers of records' values, each by itself, and which records count."""
        if self.rule.statistic == "count":
            return np.ones(len(values), dtype=np.int64), np.ones(len(values), dtype=bool)
        kept = np.isfinite(values)
        numbers = np.where(kept, values, 0.0)
        if self.rule.statistic == "share":
            return (numbers != 0).astype(np.int64), kept
        largest = float(_LARGEST_RECORD * (abs(self.rule.middle_steps) + max(map(abs, self.rule.ends_steps))))
        with np.errstate(over="ignore"):
            return np.rint(np.clip(numbers / self.rule.step, -largest, largest)).astype(np.int64), kept

    def of(self, people: PersonCells) -> Integers:
        """Return what some people add: sums, and for means and shares how many people, by unit and period."""
        rule = self.rule
        total = np.zeros((rule.tables, rule.periods * rule.units), dtype=np.int64)
        if len(people.cells):
            kept, _, steps = self.bounded(people)
            cells = people.cells[kept]
            np.add.at(total[0], cells, steps * rule.finer)
            if rule.counts_people:
                total[1] = np.bincount(cells, minlength=total.shape[1]) * rule.one_person
        return np.ascontiguousarray(total.reshape(rule.tables, rule.periods, rule.units).transpose(0, 2, 1))

    def bounded(self, people: PersonCells) -> tuple[Integers, Integers, Integers]:
        """Return the positions of the cells that count, and what each adds before and after a person is shortened."""
        kept = self._kept(people.person, people.keys, people.cells)
        steps = self._steps(people.sums[kept])
        return kept, steps, self._shortened(people.person[kept], steps)

    def _kept(self, person: Integers, keys: Keys, cells: Integers) -> Integers:
        """Return the positions of the cells that count: a person's first units of a period, then as many as may be.

        Which cells are left out if a person has too many is decided by a hash of person and cell: the first ones would
        look like a decline.
        """
        rule = self.rule
        kept: Integers = np.flatnonzero(_rank(person * rule.periods + cells // rule.units) < rule.cells_per_period)
        if not rule.is_thinned:
            return kept
        lot = mixed(keys[person[kept]] ^ mixed(cells[kept].astype(np.uint64)))
        order = np.lexsort((cells[kept], lot, person[kept]))
        return np.sort(kept[order[_rank(person[kept][order]) < rule.most_cells]])

    def _steps(self, sums: Integers) -> Integers:
        """Return what each cell's sum adds, clipped; for means and shares around the middle of the bounds."""
        rule = self.rule
        if rule.statistic == "count":
            return np.full(len(sums), rule.ends_steps[1])
        if rule.statistic == "share":
            return np.where(sums > 0, rule.ends_steps[1], rule.ends_steps[0])
        return np.clip(sums - rule.middle_steps, *rule.ends_steps)

    def _shortened(self, person: Integers, steps: Integers) -> Integers:
        """Shrink the numbers of people whose squares add up to too much; toward zero, so that it is surely enough."""
        if self.rule.length_squared >= self.rule.most_cells * max(map(abs, self.rule.ends_steps)) ** 2:
            return steps
        first = np.flatnonzero(np.append(True, person[1:] != person[:-1]))
        whose = np.cumsum(np.append(False, person[1:] != person[:-1]))
        while True:
            squares = np.add.reduceat(steps**2, first)
            if (squares <= self.rule.length_squared).all():
                return steps
            factor = np.sqrt(self.rule.length_squared / np.maximum(squares, 1)) * _BELOW_ONE
            steps = np.where(
                (squares > self.rule.length_squared)[whose], np.trunc(steps * factor[whose]).astype(np.int64), steps
            )


class LengthCounts(Bounding):
    """Counts people by the length of what they add before a bound on it: each by its own records, in one bin."""

    @cached_property
    def _ends(self) -> Integers:
        return Bins(self.rule).ends

    def of(self, people: PersonCells) -> Integers:
        """Return how many people are in each bin; whoever has no cell is in none."""
        kept = self._kept(people.person, people.keys, people.cells)
        person, steps = people.person[kept], self._steps(people.sums[kept])  # not shortened
        first = np.flatnonzero(np.append(True, person[1:] != person[:-1])[: len(person)])
        squares = np.add.reduceat(steps**2, first) if len(first) else np.empty(0, dtype=np.int64)
        return np.bincount(np.searchsorted(self._ends, squares), minlength=BINS)


def _rank(groups: Integers) -> Integers:
    """Return the place of each item in its group; the items of a group follow each other."""
    positions = np.arange(len(groups))
    new = np.append(True, groups[1:] != groups[:-1])[: len(groups)]
    return np.asarray(positions - np.maximum.accumulate(np.where(new, positions, 0)))


_COLUMNS = 3  # of a record: the hash of the person, the cell, the amount
WIDTH = _COLUMNS * 8  # bytes


def add_up(
    records: Iterable[Records],
    summand: Bounding,
    on_rows: OnRows = lambda rows: None,
    *,
    expected: int | None = None,
    in_memory: bool = True,
    threads: int | None = None,
) -> Integers:
    """Return the exact sum over all people.

    Parameters
    ----------
    records : iterable of Records
        In any order: each becomes an integer before it is added.
    summand : Bounding
    on_rows : callable
        Is told how many records were read.
    expected : int, optional
        How many records there are, about.
    in_memory : bool
        Whether the records are held; otherwise they are kept in a private file meanwhile.
    threads : int, optional
    """
    divided = Divided(_COLUMNS, expected, in_memory=in_memory)
    for some in records:
        amounts, kept = summand.amounts(some.values)
        rows = np.column_stack([some.keys.view(np.int64), some.cells, amounts])
        divided.put(rows if kept.all() else rows[kept])
        on_rows(len(kept))
    divided.finish()
    with closing(in_order(lambda part: summand.of(_people_of(divided, part)), range(divided.parts), threads)) as sums:
        _, total = next(sums)
        for _, of_part in sums:
            total = total + of_part
        return total


def _people_of(divided: Divided, part: int) -> PersonCells:
    """Return the people of a part; one of them may have very many records."""
    waiting: list[Integers] = [np.empty((0, _COLUMNS), dtype=np.int64)]
    rows = 0
    for some in divided.part(part):
        waiting.append(some)
        rows += len(some)
        if rows > divided.at_once:
            people = _people(waiting)
            waiting = [np.column_stack([people.keys.view(np.int64)[people.person], people.cells, people.sums])]
            rows = 0
    return _people(waiting)


def _people(records: list[Integers]) -> PersonCells:
    keys, cells, amounts = np.concatenate(records).T
    return PersonCells.of(np.ascontiguousarray(keys).view(np.uint64), cells, amounts)
