"""Blocks of donors: no excluded unit, no unit twice, cells within the bounds, filled if the rule says so."""

from __future__ import annotations

import os
from array import array
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsc.custodian.donors.cells import starts_of
from dpsc.custodian.donors.missing import Completion
from dpsc.custodian.donors.people import Keys
from dpsc.custodian.donors.records import keys_of
from dpsc.errors import Parameter, TableError
from dpsc.tables.formats import in_file
from dpsc.tables.spec import UNIT, TableSpec
from dpsc.types import Array, Positions, Write

BLOCK_CELLS = 1_000_000  # of a block: large enough for threads to work independently, small enough for the cache
_AHEAD = 4  # items that are read ahead, so that neither reading nor what is made of them has to wait
_TILE = 256  # rows transposed together, so that their cache lines are used again


def row_writer(rows: Array) -> Write:
    """Return a function that writes donors which are the rows of an array."""

    def write(memory: Array) -> Array:
        columns = memory[:, : len(rows)]
        for start in range(0, len(rows), _TILE):
            np.copyto(columns[:, start : start + _TILE], rows[start : start + _TILE].T)
        return columns

    return write


@dataclass(frozen=True, eq=False)
class InSegments:
    """Some donors, and which segment each is in."""

    write: Write
    codes: Positions

    def __call__(self, memory: Array) -> Array:
        """Write the donors."""
        return self.write(memory)


def codes_of(block: Write) -> Positions:
    """Return the segment of each donor of a block whose donors are in segments."""
    assert isinstance(block, InSegments | CheckedBlock)
    return block.codes


def row_blocks(values: Array) -> Iterator[Array]:
    """Yield an array in blocks of rows, so that computing with each needs little memory."""
    size = max(1, BLOCK_CELLS // max(1, values.shape[1]))
    for start in range(0, len(values), size):
        yield values[start : start + size]


Item = TypeVar("Item")
Made = TypeVar("Made")


def in_order(
    make: Callable[[Item], Made], items: Iterable[Item], threads: int | None = None
) -> Generator[tuple[Item, Made], None, None]:
    """Yield items and what is made of each, in order; on several threads, it is made of the next few meanwhile."""
    threads = threads or len(os.sched_getaffinity(0))
    if threads == 1:  # on this thread: a worker of a cluster has one core
        for item in items:
            yield item, make(item)
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[tuple[Item, Future[Made]]] = deque()
        for item in items:
            pending.append((item, pool.submit(make, item)))
            if len(pending) > 2 * threads + _AHEAD:
                first, future = pending.popleft()
                yield first, future.result()
        while pending:
            first, future = pending.popleft()
            yield first, future.result()


class Identities:
    """The units seen so far: leaves out excluded units, and refuses a long table in which a unit comes twice.

    A unit counted twice could move the sum twice as far as the guarantee allows for. Units of a wide table were put
    together before (:attr:`Files.units_with_several_rows`). Of a long one eight bytes per donor are kept: a hash of the
    unit's label. Two donors with the same hash are refused by mistake. This happens in one of 400,000 releases of ten
    million donors, and in one of forty releases of a billion donors.
    """

    def __init__(self, spec: TableSpec, exclude: tuple[str, ...]) -> None:
        self.spec, self.exclude = spec, exclude
        self.hashes = array("Q")  # grows in place
        self.left_out: list[int] = []

    def keep(self, units: Any) -> np.ndarray[Any, Any]:
        """Record the next units and return which of them to use."""
        kept = np.ones(len(units), dtype=bool)
        if self.exclude:
            kept = ~pc.is_in(units.cast(pa.string()), value_set=pa.array(self.exclude)).to_numpy(zero_copy_only=False)
            self.left_out.append(int((~kept).sum()))  # appended, not added: several threads run this
        if not self.spec.wide:
            known = pa.types.is_uint64(units.type)  # rows that were divided name a donor by its hash
            keys = units.to_numpy() if known else keys_of(units)
            self.hashes.frombytes(keys.tobytes())  # in one call, as several threads come here
        return kept

    def finish(self) -> None:
        """Make the checks that need all units."""
        if sum(self.left_out) != len(set(self.exclude)):
            raise TableError(
                f"not every unit of {Parameter('exclude')} is in the data; labels are matched as they are written."
            )
        hashes = np.frombuffer(self.hashes, dtype=np.uint64)
        hashes.sort()  # in place: there may be many
        if (hashes[1:] == hashes[:-1]).any():
            raise not_together(self.spec.unit)


def not_together(unit: str) -> TableError:
    """Return the refusal of a table whose rows were together when it was looked at, and are not when it is read."""
    return TableError(f"the rows of the units ({unit!r}, {UNIT}) moved while they were read; nothing was released.")


class Following:
    """Whether the rows of each unit follow each other. Private."""

    def __init__(self) -> None:
        self.so_far = True
        self._last: Any = None
        self._seen: list[Keys] = []  # a hash for each unit, batch by batch

    def see(self, units: Any) -> None:
        """Look at the next rows. The first ones, seen again, tell at once of a table with a file for each period."""
        if not (self.so_far and len(units)):
            return
        starts = units.take(pa.array(starts_of(units)))
        hashes = np.sort(keys_of(starts if starts[0] != self._last else starts.slice(1)))
        self._last = starts[-1]
        again = bool(self._seen) and np.isin(hashes, self._seen[0]).any()
        self.so_far = not again and not (hashes[1:] == hashes[:-1]).any()
        self._seen.append(hashes)

    def finish(self) -> bool:
        """Return whether they did."""
        if self.so_far and self._seen:
            seen = np.concatenate(self._seen)
            seen.sort()
            self.so_far = not (seen[1:] == seen[:-1]).any()
        self._seen.clear()
        return self.so_far


@dataclass(frozen=True, eq=False)
class CheckedBlock:
    """Some donors of a file, written when and where they are needed (a :data:`~dpsc.types.Write`)."""

    path: str
    units: Any
    raw: Write
    identities: Identities
    completion: Completion
    first: int | None = None  # the position of the first donor among all units, if it is known
    segment: Positions | None = None  # of each unit, if donors are in segments

    def __call__(self, memory: Array) -> Array:
        """Write the donors, checked, into T × size memory; return the part that they fill."""
        with in_file(self.path):
            columns = self.raw(memory)
            if not self._kept.all():
                columns = columns[:, self._kept]
            self.completion.in_place(columns.T, self.first)
        return columns

    @property
    def codes(self) -> Positions:
        """The segment of each donor that is used."""
        assert self.segment is not None
        return np.asarray(self.segment[self._kept])

    @cached_property
    def _kept(self) -> np.ndarray[Any, Any]:
        """Which donors are used; computed once, because ``keep`` records the units."""
        return self.identities.keep(self.units)
