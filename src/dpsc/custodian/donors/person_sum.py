"""Adds up people whose records are in any order, more than fit into memory if need be. Knows nothing about noise.

Records are divided by the hash of their person into parts, each of which is then added up by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

import numpy as np

from dpsc.custodian.donors.blocks import in_order
from dpsc.custodian.donors.divided import Divided
from dpsc.custodian.donors.people import OnRows, PersonCells, TableSum
from dpsc.custodian.donors.records import Records
from dpsc.types import Integers

_COLUMNS = 3  # of a record: the hash of the person, the cell, the amount
WIDTH = _COLUMNS * 8  # bytes


def add_up(
    records: Iterable[Records],
    summand: TableSum,
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
    summand : TableSum
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
