"""The tables, their version, and how an older ledger becomes a current one. Always inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, Text, inspect, select, text, update

from dpsc.errors import LedgerError
from dpsc.ledger import chain

VERSION = 2

tables = MetaData()
ledger = Table(
    "dpsc_ledger",
    tables,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
    Column("length", Integer, nullable=False),
    Column("hash", String(64), nullable=False),
)
entries = Table(
    "dpsc_entries",
    tables,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("dataset", Text, index=True),
    Column("who", Text, nullable=False),
    Column("booking", Integer),
    Column("partition", Text),
    Column("body", Text, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)


def version(connection: Connection) -> int | None:
    """Return the schema's version, None if there is no ledger here."""
    if not inspect(connection).has_table("dpsc_ledger"):
        return None
    return connection.execute(select(ledger.c.version).where(ledger.c.id == 1)).scalar_one_or_none()


def create(connection: Connection) -> None:
    """Make an empty ledger."""
    tables.create_all(connection)
    connection.execute(ledger.insert().values(id=1, version=VERSION, length=0, hash=chain.START))


def migrate(connection: Connection, found: int) -> None:
    """Bring an older ledger up to date, one version at a time."""
    if found > VERSION:
        raise LedgerError(
            f"the ledger has version {found}, and this dpsc knows versions up to {VERSION}; upgrade dpsc to use it."
        )
    for old in range(found, VERSION):
        _STEPS[old](connection)
        connection.execute(update(ledger).where(ledger.c.id == 1).values(version=old + 1))


def rows(connection: Connection) -> list[chain.Row]:
    """Return every row of the ledger, in order."""
    found = connection.execute(select(entries).order_by(entries.c.number))
    return [chain.Row(**row) for row in found.mappings()]


def _from_1_to_2(connection: Connection) -> None:
    """Add partitions and the head record. Hashes leave out what is None, so the chain of version 1 stays as it was."""
    connection.execute(text('ALTER TABLE dpsc_entries ADD COLUMN "partition" TEXT'))
    connection.execute(text("ALTER TABLE dpsc_ledger ADD COLUMN length INTEGER NOT NULL DEFAULT 0"))
    connection.execute(text(f"ALTER TABLE dpsc_ledger ADD COLUMN hash VARCHAR(64) NOT NULL DEFAULT '{chain.START}'"))
    found = rows(connection)
    head = chain.Head(len(found), found[-1].hash if found else chain.START)
    wrong = chain.problems(found, head)
    if wrong:
        raise LedgerError(
            f"the ledger has version 1 and is not migrated, because its chain is broken: {wrong[0]}. Restore it from a "
            "backup."
        )
    connection.execute(update(ledger).where(ledger.c.id == 1).values(length=head.length, hash=head.hash))


_STEPS: dict[int, Callable[[Connection], None]] = {1: _from_1_to_2}
