"""The tables, their version, and how an older ledger becomes a current one. Always inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    select,
    text,
    update,
)

from dpsc.errors import LedgerError
from dpsc.ledger import chain
from dpsc.ledger.history import History
from dpsc.ledger.requests import user

VERSION = 4
WITH_POCKETS = 4  # the first version whose budgets have pockets

tables = MetaData()
_FIRST = CheckConstraint("number >= 1", name="dpsc_entries_number")  # nothing can be put before the first entry
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
    _FIRST,
)


def version(connection: Connection) -> int | None:
    """Return the schema's version, None if there is no ledger here."""
    if not inspect(connection).has_table("dpsc_ledger"):
        return None
    return connection.execute(select(ledger.c.version).where(ledger.c.id == 1)).scalar_one_or_none()


def require_one_ledger(connection: Connection) -> None:
    """Refuse a PostgreSQL database whose search path leads to more than one ledger, or to something else than tables.

    Tables of the same name in a schema that comes first would be booked into, and a view may show anything.
    """
    query = text(
        "SELECT n.nspname, c.relname, c.relkind IN ('r', 'p') FROM pg_catalog.pg_class c "
        "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(true)) "
        "AND c.relname IN ('dpsc_ledger', 'dpsc_entries')"
    )
    found = connection.execute(query).all()
    if len({schema for schema, _, _ in found}) > 1:
        raise LedgerError("the search path of the database leads to more than one ledger; name one schema in the URL.")
    if not all(is_table for _, _, is_table in found):
        raise LedgerError("the ledger's tables are no plain tables; a view may show and keep anything.")


def create(connection: Connection) -> None:
    """Make an empty ledger."""
    tables.create_all(connection)
    connection.execute(ledger.insert().values(id=1, version=VERSION, length=0, hash=chain.START))


def migrate(connection: Connection, found: int) -> None:
    """Bring an older ledger up to date, one version at a time."""
    if found < 1:
        raise LedgerError(f"the ledger says that it has version {found}, which does not exist; restore a backup.")
    if found > VERSION:
        raise LedgerError(
            f"the ledger has version {found}, and this dpsc knows versions up to {VERSION}; upgrade dpsc to use it."
        )
    for old in range(found, VERSION):
        _STEPS[old](connection)
        connection.execute(update(ledger).where(ledger.c.id == 1).values(version=old + 1))


def rows(connection: Connection) -> list[chain.Row]:
    """Return every row of the book, in order."""
    return [chain.Row(*row) for row in connection.execute(select(entries).order_by(entries.c.number))]


def append(connection: Connection, row: chain.Row) -> None:
    """Add a row to the book, move the head, and read both back: a trigger may have changed or dropped them."""
    connection.execute(entries.insert().values(**vars(row)))
    connection.execute(update(ledger).where(ledger.c.id == 1).values(length=row.number, hash=row.hash))
    found = connection.execute(select(entries).where(entries.c.number == row.number)).one_or_none()
    if found is None or chain.Row(*found) != row or _head(connection) != chain.Head(row.number, row.hash):
        raise LedgerError(
            "the ledger's database does not keep what is written into it: a trigger, a rule or a view changes or drops "
            "it. Nothing is booked. Use plain tables."
        )


def _from_1_to_2(connection: Connection) -> None:
    """Add partitions and the head record. Hashes leave out what is None, so the chain of version 1 stays as it was."""
    connection.execute(text('ALTER TABLE dpsc_entries ADD COLUMN "partition" TEXT'))
    connection.execute(text("ALTER TABLE dpsc_ledger ADD COLUMN length INTEGER NOT NULL DEFAULT 0"))
    connection.execute(text(f"ALTER TABLE dpsc_ledger ADD COLUMN hash VARCHAR(64) NOT NULL DEFAULT '{chain.START}'"))
    found = rows(connection)
    head = chain.end_of(found)
    _require_whole(1, chain.problems(found, head))
    connection.execute(update(ledger).where(ledger.c.id == 1).values(length=head.length, hash=head.hash))


def _from_2_to_3(connection: Connection) -> None:
    """Let the table itself refuse numbers below 1. Rows and hashes stay as they are."""
    _require_whole(2, chain.problems(rows(connection), _head(connection)))
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"ALTER TABLE dpsc_entries ADD CONSTRAINT {_FIRST.name} CHECK ({_FIRST.sqltext})"))
        return
    connection.execute(
        text("ALTER TABLE dpsc_entries RENAME TO dpsc_entries_2")
    )  # SQLite adds no constraint to a table
    connection.execute(text("DROP INDEX IF EXISTS ix_dpsc_entries_dataset"))
    entries.create(connection)
    names = ", ".join(f'"{column.name}"' for column in entries.columns)
    connection.execute(text(f"INSERT INTO dpsc_entries ({names}) SELECT {names} FROM dpsc_entries_2"))
    connection.execute(text("DROP TABLE dpsc_entries_2"))


def _from_3_to_4(connection: Connection) -> None:
    """Fix the pockets of every data set by what is booked so far, in one row, also if there is none.

    A program of an older version that has the ledger open does not know this row and books nothing more.
    """
    head = _head(connection)  # locked, before rows are read
    history = History(rows(connection))
    _require_whole(3, chain.problems(history.rows, head) + history.problems)
    append(connection, chain.following(head, "pockets", None, user(), "{}"))


def _head(connection: Connection) -> chain.Head:
    query = select(ledger.c.length, ledger.c.hash).where(ledger.c.id == 1)
    return chain.Head(*connection.execute(query.with_for_update()).one())


def _require_whole(found: int, wrong: Sequence[str]) -> None:
    if wrong:
        raise LedgerError(
            f"the ledger has version {found} and is not migrated, because its chain is broken: {'; '.join(wrong[:3])}. "
            "Restore it from a backup."
        )


_STEPS: dict[int, Callable[[Connection], None]] = {1: _from_1_to_2, 2: _from_2_to_3, 3: _from_3_to_4}
