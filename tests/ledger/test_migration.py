"""A ledger of version 1, as it was stored then: no partitions, no head record."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text

from dpsc import GramRelease, Ledger, LedgerError
from dpsc.ledger import schema
from dpsc.privacy.accounting import Loss, zcdp_rho
from tests.ledger.servers import Server

STORED = Path(__file__).parent / "version-1.sqlite"
HEAD = "7bb1e390f40da6d3af7f701a2c65dd28180713f14ac61c1e7d25b6694dcfc408"  # as it could have been noted then


@pytest.fixture
def old(tmp_path: Path) -> Path:
    shutil.copy(STORED, tmp_path / "old.sqlite")
    return tmp_path / "old.sqlite"


def version(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        found = int(connection.execute("SELECT version FROM dpsc_ledger").fetchone()[0])
    connection.close()
    return found


def test_an_old_ledger_is_brought_up_to_date_when_it_is_opened(old: Path) -> None:
    assert version(old) == 1
    ledger = Ledger(old)
    assert version(old) == schema.VERSION == 3
    assert [entry.state for entry in ledger.entries()] == ["confirmed", "failed", "booked"]
    assert ledger.verify(HEAD) == []  # a head that was noted before the migration is still good
    assert ledger.head.hash == HEAD


def test_what_was_spent_stays_spent(old: Path) -> None:
    ledger = Ledger(old)
    loss = Loss.from_rho(zcdp_rho(0.5, 1e-6)) + Loss.from_pure(0.25)
    assert ledger.balance("cigarettes").spent == pytest.approx(loss.epsilon(1e-6))
    assert ledger.remaining("firms", delta=0) == 0.75
    assert ledger.dataset("cigarettes").description["n"] == 38


def test_partitions_can_be_used_afterwards(old: Path) -> None:
    ledger = Ledger(old)
    ledger.book("cigarettes", **ledger.terms(GramRelease(epsilon=1.0, delta=1e-6)), partition="west")
    assert ledger.verify(HEAD) == []
    assert Ledger(old).balance("cigarettes").partitions["west"] > 1.0


def test_a_migration_that_fails_leaves_version_1_as_it_was(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = old.read_bytes()

    def migrate_and_fail(connection: Connection) -> None:
        step(connection)
        raise LedgerError("no power")

    step = schema._STEPS[1]
    monkeypatch.setitem(schema._STEPS, 1, migrate_and_fail)
    with pytest.raises(LedgerError, match="no power"):
        Ledger(old)
    assert old.read_bytes() == before
    assert version(old) == 1


def test_a_tampered_old_ledger_is_not_migrated(old: Path) -> None:
    with sqlite3.connect(old) as connection:
        connection.execute("DELETE FROM dpsc_entries WHERE number = 4")
    connection.close()
    with pytest.raises(LedgerError, match="entry 4 is missing"):
        Ledger(old)
    assert version(old) == 1


def test_a_ledger_from_the_future_is_refused(old: Path) -> None:
    with sqlite3.connect(old) as connection:
        connection.execute("UPDATE dpsc_ledger SET version = 4")
    connection.close()
    with pytest.raises(LedgerError, match="upgrade dpsc"):
        Ledger(old)


def test_an_old_ledger_in_postgresql_is_brought_up_to_date_too(server: Server) -> None:
    url = server.url("old")
    engine, stored = create_engine(url), sqlite3.connect(STORED)
    with engine.begin() as connection:
        for (statement,) in stored.execute("SELECT sql FROM sqlite_master").fetchall():
            connection.execute(text(statement))
        for table in ("dpsc_ledger", "dpsc_entries"):
            rows = stored.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in rows.description]
            into = text(f"INSERT INTO {table} VALUES ({', '.join(f':{name}' for name in names)})")
            connection.execute(into, [dict(zip(names, row, strict=True)) for row in rows])
    stored.close()
    engine.dispose()
    ledger = Ledger(url)
    assert ledger.verify(HEAD) == []
    ledger.book("cigarettes", **ledger.terms(GramRelease(epsilon=1.0, delta=1e-6)), partition="west")
    assert ledger.remaining("firms", delta=0) == 0.75
