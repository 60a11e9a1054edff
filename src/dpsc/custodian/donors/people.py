"""People inside units: what each of them has in each cell of a table. Knows nothing about noise or budgets.

A cell is a unit in a period, numbered ``period * units + unit`` in the declared orders. Everything is private.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpsc.types import Integers

OnRows = Callable[[int], None]
Keys = np.ndarray[Any, np.dtype[np.uint64]]


def mixed(values: Keys) -> Keys:
    """Return a hash of 64 bits for each number (the finalizer of splitmix64)."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class PersonCells:
    """Some people, each with all of their cells.

    Attributes
    ----------
    keys : array
        A hash of each person's identifier as text: one for each person. Two identifiers with the same hash count as
        one person, which is safe.
    starts : array
        Where each person's cells begin.
    cells : array
        Increasing within a person.
    sums : array
        Of the person's records in each cell, as integers.
    """

    keys: Keys
    starts: Integers
    cells: Integers
    sums: Integers

    @cached_property
    def person(self) -> Integers:
        """Whose each cell is, by position."""
        return np.repeat(np.arange(len(self.keys)), np.diff(self.starts, append=len(self.cells)))

    @classmethod
    def of(cls, keys: Keys, cells: Integers, amounts: Integers) -> PersonCells:
        """Add up records, in any order: one key, cell and amount for each."""
        order = np.lexsort((cells, keys))
        keys, cells = keys[order], cells[order]
        new_person = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
        new_cell = new_person | np.append(True, cells[1:] != cells[:-1])[: len(keys)]
        first = np.flatnonzero(new_cell)
        sums = np.add.reduceat(amounts[order], first) if len(first) else np.empty(0, dtype=np.int64)
        return cls(keys[new_person], np.flatnonzero(new_person[first]), cells[first], sums)
