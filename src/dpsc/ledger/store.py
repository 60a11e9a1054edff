"""Transactions on the ledger's database: locks, durability, patience, and errors without passwords.

SQLite: a rollback journal and ``synchronous = EXTRA``. With FULL alone the deletion of the journal may not have reached
the disk when power fails; the journal then comes back and undoes a commit, that is, a booking. EXTRA syncs the folder
too. A write-ahead log would gain nothing for a few bookings a day, and does not work on network drives. PostgreSQL:
every writer locks the one row of the head, and ``synchronous_commit`` is on whatever the server's default is. No
connection outlives its transaction: bookings are rare, and an open one would be dangerous across forks.
"""

from __future__ import annotations

import os
import sqlite3
import time
import warnings
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, func, select, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from dpsc.errors import DpscWarning, LedgerError
from dpsc.ledger import chain, schema
from dpsc.ledger.address import Address
from dpsc.ledger.chain import BEGINNING, Head
from dpsc.ledger.history import History

T = TypeVar("T")
_ADVISORY_LOCK = 0x64707363  # "dpsc": one process at a time makes or migrates the tables of a PostgreSQL ledger
_LOCKED = {"55P03", "40001", "40P01"}  # lock not available, serialization failure, deadlock
LOST = "no longer holds all entries that this program has seen in it: an older copy was put in its place"
_WITHOUT_POCKETS = (
    "the ledger at {place} was kept by an earlier version of dpsc, whose budgets could be overspent: it accepted a "
    "release if any of several theorems allowed it, so that somebody who chose the kind of a release after seeing "
    "another one could exceed delta (1.9 times in the case that we know). The ledger cannot show whether anybody did. "
    "From now on the pockets of each budget are fixed (docs/reference/ledger.md). This is said once."
)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


class Store:
    """The database of a ledger.

    Parameters
    ----------
    address : Address
    create : bool
        Whether to make the ledger if there is none.
    patience : float
        Seconds to wait while another process holds a lock.
    """

    def __init__(self, address: Address, *, create: bool, patience: float) -> None:
        self.address, self.patience = address, patience
        self._one_wait = min(patience / 2, 5.0)  # seconds
        self._engine = self._make_engine()
        self._checked = History()
        self._seen = BEGINNING
        self._open(create)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` on one consistent state of the ledger."""
        return self._run(work, write=False)

    def write(self, work: Callable[[Connection, History], T]) -> T:
        """Run ``work`` alone, with the checked book that it extends; commit durably, or leave nothing behind."""

        def checked(connection: Connection) -> tuple[T, Head]:
            return work(connection, self._locked_and_checked(connection)), self.head(connection)

        result, self._seen = self._run(checked, write=True)
        return result

    def rows(self, connection: Connection) -> list[chain.Row]:
        """Return every row of the book, and remember that they were seen."""
        found = schema.rows(connection)
        if self.continues(found):
            self._seen = chain.end_of(found)
        return found

    def continues(self, rows: list[chain.Row]) -> bool:
        """Return whether rows begin with everything that was seen before; an older copy of the book does not."""
        return chain.end_of(rows[: self._seen.length]) == self._seen

    def head(self, connection: Connection, *, lock: bool = False) -> Head:
        """Return the head record."""
        query = select(schema.ledger.c.length, schema.ledger.c.hash).where(schema.ledger.c.id == 1)
        found = connection.execute(query.with_for_update() if lock else query).one_or_none()
        if found is None:
            raise LedgerError(f"the ledger at {self.address} has lost its head record; restore it from a backup.")
        return Head(*found)

    def _locked_and_checked(self, connection: Connection) -> History:
        """Return the whole book, after checking all of it; nothing is written on top of what ``verify`` would reject.

        Rows that are the same, character by character, as when this object checked them are not checked again.
        """
        head, rows = self.head(connection, lock=True), self.rows(connection)
        if schema.version(connection) != schema.VERSION:
            raise LedgerError(
                f"the ledger at {self.address} is of another version than when it was opened: another dpsc has brought "
                "it up to date. Nothing is booked. Start again, with that dpsc."
            )
        known, self._checked = self._checked, History()  # nothing counts as checked if this fails
        if rows[: len(known.rows)] != known.rows:
            known = History()
        new = rows[len(known.rows) :]
        problems = chain.problems(new, head, known.head)
        known.extend(new)
        problems += known.problems
        if problems:
            raise LedgerError(
                f"the ledger at {self.address} was changed from outside: {'; '.join(problems[:3])}. Nothing is booked. "
                "Run dpsc ledger verify, and restore a backup."
            )
        if not self.continues(rows):
            raise LedgerError(f"the ledger at {self.address} {LOST}. Nothing is booked. Restore the newest copy.")
        self._checked = known
        return known

    def _open(self, create: bool) -> None:
        path = self.address.path
        if path is not None and not path.exists():
            if not create:
                raise self._missing()
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                pass  # another process is making it at this moment
            except OSError as problem:
                raise LedgerError(f"cannot create the ledger {path}: {problem.strerror}.") from None
        if self.read(schema.version) != schema.VERSION:
            found = self._run(lambda connection: self._bring_up_to_date(connection, create), write=True)
            if found < schema.WITH_POCKETS:
                warnings.warn(_WITHOUT_POCKETS.format(place=self.address), DpscWarning, stacklevel=4)

    def _bring_up_to_date(self, connection: Connection, create: bool) -> int:
        """Make the ledger, or migrate it; return the version that it had."""
        if self.address.path is None:
            connection.execute(select(func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
        found = schema.version(connection)
        if found is not None:
            schema.migrate(connection, found)
            return found
        if not create:
            raise self._missing()
        schema.create(connection)
        return schema.VERSION

    def _missing(self) -> LedgerError:
        return LedgerError(f"there is no ledger at {self.address}; make one with dpsc ledger init.")

    def _run(self, work: Callable[[Connection], T], *, write: bool) -> T:
        give_up, pause = time.monotonic() + self.patience, _FIRST_PAUSE
        while True:
            try:
                with self._engine.connect() as plain:
                    connection = plain.execution_options(dpsc_write=write)
                    if self.address.path is None:  # a writer sees what it waited for, a reader one snapshot
                        level = "READ COMMITTED" if write else "REPEATABLE READ"
                        connection = connection.execution_options(isolation_level=level)
                    with connection.begin():
                        if write and self.address.path is None:
                            connection.execute(text("SET LOCAL synchronous_commit = on"))
                            connection.execute(text(f"SET LOCAL lock_timeout = {max(1, int(1000 * self._one_wait))}"))
                            connection.execute(text("SET CONSTRAINTS ALL IMMEDIATE"))  # no trigger waits for the commit
                        if self.address.path is None:
                            schema.require_one_ledger(connection)
                        return work(connection)
            except SQLAlchemyError as problem:
                if not _is_locked(problem):
                    raise self._explained(problem) from None
                if time.monotonic() >= give_up:
                    raise LedgerError(
                        f"the ledger at {self.address} has been locked by another program for {self.patience:g} "
                        "seconds. Nothing was booked. Try again; if it stays locked, find the program that has it open."
                    ) from None
                time.sleep(min(pause * (1 + os.getpid() % 8 / 8), max(0.0, give_up - time.monotonic())))
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _explained(self, problem: SQLAlchemyError) -> LedgerError:
        """Return our error for a database error: its first line, no statement, no password."""
        original = problem.orig if isinstance(problem, DBAPIError) else problem
        reason = self.address.without_secrets(str(original).strip().split("\n")[0]).rstrip(".")
        code = getattr(original, "sqlite_errorcode", 0) & 0xFF
        advice = {
            sqlite3.SQLITE_FULL: " Make room on the disk.",
            sqlite3.SQLITE_READONLY: " The file or its folder is read-only.",
            sqlite3.SQLITE_CANTOPEN: " The file or its folder cannot be opened; check their permissions.",
            sqlite3.SQLITE_NOTADB: " The file is not a ledger.",
            sqlite3.SQLITE_CORRUPT: " Restore it from a backup.",
        }.get(code, "")
        sqlstate = getattr(original, "sqlstate", None)
        if sqlstate == "53100":  # disk full
            advice = " Make room on the server's disk."
        if sqlstate == "42501":  # insufficient privilege
            advice = " Let the owner of the tables open the ledger once if dpsc was upgraded, or grant the rights."
        return LedgerError(f"the ledger at {self.address} cannot be used: {reason}.{advice}")

    def _make_engine(self) -> Engine:
        if self.address.path is not None:
            return self._make_sqlite_engine(str(self.address.path))
        options: dict[str, int] = {} if "connect_timeout" in self.address.url.query else {"connect_timeout": 10}
        try:
            return create_engine(self.address.url, hide_parameters=True, connect_args=options, poolclass=NullPool)
        except ImportError:
            raise LedgerError("a PostgreSQL ledger needs psycopg: pip install 'dpsc[postgres]'.") from None

    def _make_sqlite_engine(self, path: str) -> Engine:
        def connect() -> sqlite3.Connection:
            # mode=rw: opening never makes a file. isolation_level=None: BEGIN is ours, below.
            uri = f"file:{quote(path)}?mode=rw"
            return sqlite3.connect(uri, uri=True, timeout=self._one_wait, isolation_level=None)

        engine = create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)

        @event.listens_for(engine, "connect")
        def durable(connection: sqlite3.Connection, _record: object) -> None:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            # IMMEDIATE: the check of the budget already holds the lock of the write that follows.
            write = connection.get_execution_options().get("dpsc_write")
            connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

        return engine


def _is_locked(problem: SQLAlchemyError) -> bool:
    original = problem.orig if isinstance(problem, DBAPIError) else None
    if isinstance(original, sqlite3.Error):
        return getattr(original, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(original, "sqlstate", None) in _LOCKED
