"""Read the ledger: turn rows into data sets, bookings and balances, and check that they make sense together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from dpsc.errors import DpscError, LedgerError
from dpsc.ledger import records, schema
from dpsc.ledger.budget import Budget, Charge, Cost, groups
from dpsc.ledger.chain import Row
from dpsc.ledger.records import DataSet, Entry, State

_MALFORMED = (KeyError, TypeError, ValueError, DpscError)


@dataclass(frozen=True)
class Balance:
    """What a data set has spent and has left.

    Attributes
    ----------
    dataset : DataSet
    spent : float
        The smallest epsilon, at the budget's delta, that is proved for everything booked (for the partition that
        has spent most).
    remaining : float
        The largest epsilon of a further Gram release of all donors, at the budget's delta (a pure one for delta = 0).
    states : mapping
        How many bookings are in which state; all count as spent.
    partitions : mapping
        The epsilon spent by each partition, with what was booked for all donors.
    """

    dataset: DataSet
    spent: float
    remaining: float
    states: Mapping[State, int]
    partitions: Mapping[str, float]

    @property
    def share(self) -> float:
        """The spent share of the budget's epsilon."""
        return min(1.0, self.spent / self.dataset.epsilon)


def find_dataset(connection: Connection, name: str) -> DataSet | None:
    """Return a data set if it is there."""
    found = _rows(connection, event="dataset", dataset=name)
    return read_dataset(found[0]) if found else None


def dataset(connection: Connection, name: str) -> DataSet:
    """Return a data set, or say which ones there are."""
    found = find_dataset(connection, name)
    if found is None:
        names = ", ".join(repr(each.name) for each in datasets(connection)) or "none yet"
        raise LedgerError(f"the ledger has no data set {name!r} (it has: {names}); enter it with dpsc ledger init.")
    return found


def datasets(connection: Connection) -> list[DataSet]:
    """Return all data sets."""
    return [read_dataset(row) for row in _rows(connection, event="dataset")]


def entries(connection: Connection, name: str | None) -> list[Entry]:
    """Return bookings with their states."""
    of = {} if name is None else {"dataset": name}
    rows = _rows(connection, **of)
    outcomes = {row.booking: row for row in rows if row.booking is not None}
    return [read_entry(row, outcomes.get(row.number)) for row in rows if row.event == "booked"]


def charges(connection: Connection, name: str) -> list[Charge]:
    """Return what was booked for a data set; every booking counts, whatever its state."""
    return [_charge(row) for row in _rows(connection, event="booked", dataset=name)]


def balance(connection: Connection, name: str) -> Balance:
    """Return what a data set has spent and has left."""
    known, charged = dataset(connection, name), charges(connection, name)
    budget = Budget(known.epsilon, known.delta)
    labels = list(dict.fromkeys(c.partition for c in charged if c.partition is not None))
    return Balance(
        dataset=known,
        spent=max(budget.spent(group) for group in groups(charged, None)),
        remaining=min(budget.largest(group, known.delta) for group in groups(charged, None)),
        states=Counter(entry.state for entry in entries(connection, name)),
        partitions={label: budget.spent(groups(charged, label)[0]) for label in labels},
    )


def read_dataset(row: Row) -> DataSet:
    """Turn a row into a data set."""
    try:
        body = row.content
        known = DataSet(
            name=str(row.dataset),
            epsilon=float(body["epsilon"]),
            delta=float(body["delta"]),
            adjacency=str(body["adjacency"]),
            description=body["description"],
            created=row.time,
            who=row.who,
        )
        if known.fingerprint != body["fingerprint"]:
            raise ValueError("the fingerprint is not that of the description")
    except _MALFORMED as problem:
        raise records.unreadable(row.number, problem) from None
    return known


def read_entry(row: Row, outcome: Row | None) -> Entry:
    """Turn a booking, and its outcome if it has one, into an entry."""
    states: dict[str, State] = {"confirmed": "confirmed", "failed": "failed"}
    try:
        body = row.content
        return Entry(
            number=row.number,
            time=row.time,
            dataset=str(row.dataset),
            who=row.who,
            algorithm=str(body["algorithm"]),
            parameters=dict(body["parameters"]),
            promise=dict(body["guarantee"]),
            partition=row.partition,
            output=body["output"],
            state="booked" if outcome is None else states[outcome.event],
            sha256=None if outcome is None else outcome.content.get("sha256"),
            hash=row.hash,
        )
    except _MALFORMED as problem:
        raise records.unreadable(row.number, problem) from None


def problems(rows: Sequence[Row]) -> list[str]:
    """Return what does not make sense in the ledger, apart from its hashes."""
    found: list[str] = []
    known: dict[str, DataSet] = {}
    charged: dict[str, list[Charge]] = {}
    open_bookings: dict[int, Row] = {}
    for row in rows:
        try:
            if row.event == "dataset":
                if row.dataset in known:
                    found.append(f"entry {row.number} enters {row.dataset!r} a second time")
                else:
                    known[str(row.dataset)] = read_dataset(row)
            elif row.event == "booked":
                if row.dataset not in known:
                    found.append(f"entry {row.number} books for {row.dataset!r}, which was never entered")
                charged.setdefault(str(row.dataset), []).append(_charge(row))
                open_bookings[row.number] = row
            elif row.event in ("confirmed", "failed"):
                if row.booking is None or open_bookings.pop(row.booking, None) is None:
                    found.append(f"entry {row.number} finishes booking {row.booking}, which is not open")
            else:
                found.append(f"entry {row.number} is of an unknown kind")
        except LedgerError as problem:
            found.append(str(problem))
    for name, each in known.items():
        budget = Budget(each.epsilon, each.delta)
        if not all(budget.allows(group) for group in groups(charged.get(name, []), None)):
            found.append(f"more is booked for {name!r} than its budget allows")
    return found


def _charge(row: Row) -> Charge:
    try:
        return Charge(Cost.of_json(row.content["guarantee"]), row.partition)
    except _MALFORMED as problem:
        raise records.unreadable(row.number, problem) from None


def _rows(connection: Connection, **conditions: Any) -> list[Row]:
    query = select(schema.entries).filter_by(**conditions).order_by(schema.entries.c.number)
    return [Row(**row) for row in connection.execute(query).mappings()]
