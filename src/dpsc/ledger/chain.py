"""The hash chain: every row carries the hash of the row before it, so that an edited or missing row shows.

There is one chain for the whole ledger, not one per data set: it also covers which data sets there are, with their
budgets, and there is one head to note elsewhere. Bookings are rare, so that they wait for each other costs nothing.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields

from dpsc.types import JsonObject

START = "0" * 64
_MOST_DIGITS = 20


@dataclass(frozen=True)
class Row:
    """One row of the ledger, as it is stored. Times and numbers are kept as text, the same in every database.

    Attributes
    ----------
    event : str
        ``dataset`` (a data set and its budget), ``pockets`` (of all data sets entered before 0.3.0, fixed by what was
        booked by then), ``booked``, ``confirmed`` or ``failed``.
    booking : int or None
        For an outcome: the number of the booking that it is about.
    body : str
        Canonical JSON, by event.
    """

    number: int
    time: str
    event: str
    dataset: str | None
    who: str
    booking: int | None
    partition: str | None
    body: str
    previous: str
    hash: str = ""

    def sealed(self) -> Row:
        """Return the row with its hash."""
        return Row(**{**vars(self), "hash": self.computed_hash()})

    def computed_hash(self) -> str:
        """Return the hash that the content should have.

        Fields that are None are left out, so that a column added by a later version changes no old hash.
        """
        content = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "hash"}
        present = {name: value for name, value in content.items() if value is not None}
        text = json.dumps(present, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def content(self) -> JsonObject:
        """The body as values; a ValueError if it has none, whoever wrote it."""
        try:
            loaded = json.loads(self.body, parse_int=_whole)
        except RecursionError:
            raise ValueError("the body is too deep") from None
        if not isinstance(loaded, dict):
            raise ValueError("the body is not a mapping")
        return loaded


@dataclass(frozen=True)
class Head:
    """The length and the last hash of the chain: what to note elsewhere."""

    length: int
    hash: str


BEGINNING = Head(0, START)


def following(
    head: Head,
    event: str,
    dataset: str | None,
    who: str,
    body: str,
    *,
    booking: int | None = None,
    partition: str | None = None,
) -> Row:
    """Return the row that comes next, with the time of now; nothing depends on the time."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
    return Row(head.length + 1, now, event, dataset, who, booking, partition, body, head.hash).sealed()


def end_of(rows: Sequence[Row]) -> Head:
    """Return the head that a chain of rows should have."""
    return Head(len(rows), rows[-1].hash if rows else START)


def problems(rows: Sequence[Row], head: Head, after: Head = BEGINNING) -> list[str]:
    """Return what is wrong with the chain, in words; rows in the order of their numbers, those that come after one."""
    found = []
    number, previous = after.length, after.hash
    for row in rows:
        if row.number < 1:
            found.append(f"entry {row.number} has no place in the ledger, which begins with entry 1")
            continue
        if row.number <= number:
            found.append(f"entry {row.number} is there twice")
        elif row.number > number + 1:
            found.append(f"{_named(number + 1, row.number - 1)} missing")
        if row.hash != row.computed_hash():
            found.append(f"entry {row.number} was edited: its content does not match its hash")
        elif row.previous != previous and row.number == number + 1:
            found.append(f"entry {row.number} does not follow entry {number}: one of them was replaced or moved")
        number, previous = row.number, row.hash
    if number < head.length:
        found.append(f"{_named(number + 1, head.length)} missing at the end")
    elif (number, previous) != (head.length, head.hash):
        found.append(f"the head record ({head.length} entries) does not match the last entry ({number})")
    return found


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError("a number of the body is too long")
    return int(digits)


def _named(first: int, last: int) -> str:
    return f"entry {first} is" if first == last else f"entries {first}-{last} are"
