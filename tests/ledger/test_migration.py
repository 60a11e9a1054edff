"""Ledgers of versions 1 and 2, as they were stored then: no partitions and no head record; no check of numbers."""

from __future__ import annotations

import json
import math
import secrets
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import IntegrityError

from dpsc import BudgetError, DpscWarning, GramRelease, Ledger, LedgerError, OutputPerturbation
from dpsc.ledger import chain, records, schema
from dpsc.privacy.accounting import Loss, gaussian_epsilon, zcdp_rho
from tests.ledger.servers import Server

STORED = Path(__file__).parent / "version-1.sqlite"
STORED_2 = Path(__file__).parent / "version-2.sqlite"
HEAD_2 = "6303a6ab39b4a4e86b6edf8a2eac091277ff1d68d7e4b3937c3b5a90b06d9864"
HEAD = "7bb1e390f40da6d3af7f701a2c65dd28180713f14ac61c1e7d25b6694dcfc408"  # as it could have been noted then


opens_an_old_ledger = pytest.mark.filterwarnings("ignore:the ledger at .* was kept by an earlier version")


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
    with pytest.warns(DpscWarning, match="This is said once"):
        ledger = Ledger(old)
    assert version(old) == schema.VERSION == 4
    assert [entry.state for entry in ledger.entries()] == ["confirmed", "failed", "booked"]
    assert ledger.verify(HEAD) == []  # a head that was noted before the migration is still good
    assert ledger.rows()[-2].hash == HEAD  # then the pockets of the one budget with delta > 0 were fixed
    assert (ledger.rows()[-1].event, ledger.rows()[-1].dataset) == ("pockets", None)
    assert Ledger(old).head == ledger.head  # once, and not said again


@opens_an_old_ledger
def test_what_was_spent_stays_spent(old: Path) -> None:
    ledger = Ledger(old)
    as_gaussian = gaussian_epsilon((2 * zcdp_rho(0.5, 1e-6)) ** 0.5, 1e-6)  # less than the 0.5 that was booked
    assert ledger.balance("cigarettes").spent == pytest.approx(0.25 + as_gaussian, rel=1e-4)
    assert ledger.remaining("firms", delta=0) == 0.75
    assert ledger.dataset("cigarettes").description["n"] == 38


@opens_an_old_ledger
def test_partitions_can_be_used_afterwards(old: Path) -> None:
    ledger = Ledger(old)
    ledger.book("cigarettes", **ledger.terms(GramRelease(epsilon=1.0, delta=1e-6, scale=1.0)), partition="west")
    assert ledger.verify(HEAD) == []
    assert Ledger(old).balance("cigarettes").partitions["west"] > 1.0


@opens_an_old_ledger
def test_pockets_of_an_old_ledger_are_fixed_by_what_was_booked(old: Path) -> None:
    """0.25 pure and a Gram release: pure releases have what they have spent, and Gaussian noise gets the rest."""
    ledger = Ledger(old)
    budget = ledger.dataset("cigarettes").budget
    assert budget.limits.pure == Fraction(1, 4)
    assert budget.limits.other_epsilon == 0
    with pytest.raises(BudgetError, match=r"Epsilon 0\.25 of the budget is for pure releases"):
        ledger.book("cigarettes", **ledger.terms(OutputPerturbation(epsilon=0.1)))
    ledger.book("cigarettes", **ledger.terms(GramRelease(epsilon=1.0, delta=1e-6, scale=1.0)))
    assert Ledger(old).dataset("cigarettes").budget == budget  # whatever is booked later
    assert ledger.add_dataset(
        "cigarettes", epsilon=2.0, delta=1e-6, description=ledger.dataset("cigarettes").description
    ) == ledger.dataset("cigarettes")


@opens_an_old_ledger
def test_pockets_are_fixed_once(old: Path) -> None:
    """Somebody who may only add rows cannot have them fixed anew after more was booked."""
    ledger = Ledger(old)
    add(old, chain.following(ledger.head, "pockets", None, "eve", "{}"))
    assert any("pockets, which are fixed already" in problem for problem in ledger.verify())
    with pytest.raises(LedgerError, match="pockets, which are fixed already"):
        ledger.book("cigarettes", **ledger.terms(GramRelease(epsilon=0.1, delta=1e-6, scale=1.0)))


def add(place: Path, row: chain.Row) -> None:
    """Add a row and move the head, as somebody may who has no other rights."""
    with sqlite3.connect(place) as connection:
        marks = ", ".join("?" * len(vars(row)))
        connection.execute(f"INSERT INTO dpsc_entries VALUES ({marks})", list(vars(row).values()))
        connection.execute("UPDATE dpsc_ledger SET length = ?, hash = ?", (row.number, row.hash))
    connection.close()


OLD_DATASET = {"epsilon": 4.0, "delta": 1e-6, "adjacency": "replace one donor", "description": {}}


@pytest.mark.parametrize("first", ["pockets", "a data set"])
def test_a_data_set_without_pockets_cannot_be_entered_beside_those_that_have_them(first: str, tmp_path: Path) -> None:
    """A program of 0.2.0 that has the ledger open would go on with its own rule."""
    place = tmp_path / "book.sqlite"
    ledger = Ledger(place, create=True)
    if first == "pockets":
        add(place, chain.following(ledger.head, "pockets", None, "ann", "{}"))
    else:
        ledger.add_dataset("costs", epsilon=1, delta=0)
    body = json.dumps({**OLD_DATASET, "fingerprint": records.fingerprint({})})
    add(place, chain.following(ledger.head, "dataset", "sales", "eve", body))
    assert any("enters 'sales' without pockets" in problem for problem in ledger.verify())
    with pytest.raises(LedgerError, match="enters 'sales' without pockets"):
        ledger.book("sales", **ledger.terms(GramRelease(epsilon=0.1, delta=1e-6, scale=1.0)))


@opens_an_old_ledger
def test_a_ledger_without_data_sets_is_marked_too(tmp_path: Path) -> None:
    """An older program that has it open does not know the mark, and books nothing more."""
    place = tmp_path / "book.sqlite"
    Ledger(place, create=True)
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE dpsc_ledger SET version = 3")
    connection.close()
    assert [row.event for row in Ledger(place).rows()] == ["pockets"]


def test_a_ledger_that_another_version_has_brought_up_to_date_is_not_booked_in(tmp_path: Path) -> None:
    place = tmp_path / "book.sqlite"
    ledger = Ledger(place, create=True)
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE dpsc_ledger SET version = version + 1")
    connection.close()
    with pytest.raises(LedgerError, match="of another version than when it was opened"):
        ledger.book("sales", **ledger.terms(GramRelease(epsilon=0.1, delta=1e-6, scale=1.0)))


@pytest.mark.parametrize("epsilon", [-100.0, 0.0, math.nan, math.inf, "1e5", True])
def test_a_row_with_a_cost_that_there_is_not_gives_nothing_back(epsilon: object, tmp_path: Path) -> None:
    place = tmp_path / "book.sqlite"
    ledger = Ledger(place, create=True)
    ledger.add_dataset("sales", epsilon=1, delta=0)
    promise = {
        "epsilon": epsilon,
        "delta": 0.0,
        "adjacency": "replace one donor",
        "arithmetic": "exact",
        "basis": "x",
        "loss": dict.fromkeys(vars(Loss()), 0.0),
    }
    body = json.dumps({"algorithm": "x", "parameters": {}, "guarantee": promise, "output": None})
    add(place, chain.following(ledger.head, "booked", "sales", "eve", body))
    assert any("entry 2 of the ledger cannot be read" in problem for problem in ledger.verify())
    with pytest.raises(LedgerError, match="entry 2 of the ledger cannot be read"):
        ledger.book("sales", **ledger.terms(OutputPerturbation(epsilon=90.0)))


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
        connection.execute("UPDATE dpsc_ledger SET version = 5")
    connection.close()
    with pytest.raises(LedgerError, match="upgrade dpsc"):
        Ledger(old)


def copy_to(url: str, path: Path) -> None:
    """Copy a stored ledger to PostgreSQL, tables and rows."""
    engine, stored = create_engine(url), sqlite3.connect(path)
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


@opens_an_old_ledger
def test_an_old_ledger_in_postgresql_is_brought_up_to_date_too(server: Server) -> None:
    url = server.url("old")
    copy_to(url, STORED)
    ledger = Ledger(url)
    assert ledger.verify(HEAD) == []
    ledger.book("cigarettes", **ledger.terms(GramRelease(epsilon=1.0, delta=1e-6, scale=1.0)), partition="west")
    assert ledger.remaining("firms", delta=0) == 0.75


def checks_numbers(url: str) -> bool:
    """Say whether the database refuses an entry with number 0."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            connection.execute(text("UPDATE dpsc_entries SET number = 0 WHERE number = 1"))
    except IntegrityError:
        return True
    finally:
        engine.dispose()
    return False


@pytest.fixture(params=["sqlite", "postgresql"])
def second(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ledger of version 2."""
    if request.param == "sqlite":
        shutil.copy(STORED_2, tmp_path / "second.sqlite")
        return f"sqlite:///{tmp_path / 'second.sqlite'}"
    url: str = request.getfixturevalue("server").url("second" + secrets.token_hex(4))
    copy_to(url, STORED_2)
    return url


@opens_an_old_ledger
def test_a_ledger_of_version_2_keeps_its_rows_and_learns_to_refuse_numbers(second: str) -> None:
    ledger = Ledger(second)
    assert ledger.verify(HEAD_2) == []
    assert [row.hash for row in ledger.rows() if row.event != "pockets"][-1] == HEAD_2
    assert [entry.state for entry in ledger.entries()] == ["confirmed", "failed", "booked"]
    assert [entry.purpose for entry in ledger.entries()] == [None] * 3
    assert ledger.balance("cigarettes").spent == pytest.approx(0.5252311, rel=1e-4)  # 0.568 by zCDP
    assert checks_numbers(second)
    ledger.book("cigarettes", **ledger.terms(GramRelease(epsilon=0.5, delta=1e-6, scale=1.0)), purpose="new")
    assert Ledger(second).verify(HEAD_2) == []


@opens_an_old_ledger
def test_data_sets_of_version_2_that_read_the_same_stay_two(second: str) -> None:
    ledger = Ledger(second)
    assert [ledger.dataset(name).name for name in ("Firms ", "firms")] == ["Firms ", "firms"]
    assert ledger.add_dataset("Firms ", epsilon=1, delta=0).name == "Firms "
    assert (ledger.remaining("Firms ", delta=0), ledger.remaining("firms", delta=0)) == (1.0, 0.75)
    with pytest.raises(LedgerError, match="differs from it only"):
        ledger.add_dataset("FIRMS", epsilon=1, delta=0)


def test_a_ledger_of_version_2_that_was_changed_is_not_migrated(second: str) -> None:
    """The row with number -1 that became the budget: it is named, and the ledger stays as it was."""
    engine = create_engine(second)
    with engine.begin() as connection:
        connection.execute(text("UPDATE dpsc_entries SET number = -1 WHERE number = 1"))
    with pytest.raises(LedgerError, match=r"version 2 and is not migrated.*entry -1 has no place"):
        Ledger(second)
    with engine.begin() as connection:
        assert connection.execute(text("SELECT version FROM dpsc_ledger")).scalar_one() == 2
        assert connection.execute(text("SELECT count(*) FROM dpsc_entries")).scalar_one() == 8
    engine.dispose()


@opens_an_old_ledger
def test_only_the_owner_of_the_tables_brings_them_up_to_date(server: Server) -> None:
    url = server.url("owned")
    copy_to(url, STORED_2)
    with server.connect("owned") as admin:
        admin.execute("CREATE ROLE guest LOGIN")
        admin.execute("GRANT USAGE ON SCHEMA owned TO guest")
        admin.execute("GRANT SELECT, INSERT ON dpsc_entries TO guest")
        admin.execute("GRANT SELECT, UPDATE ON dpsc_ledger TO guest")
    guest = url.replace("dpsc@", "guest@")
    with pytest.raises(LedgerError, match=r"Let the owner of the tables open the ledger once"):
        Ledger(guest)
    Ledger(url)
    assert Ledger(guest).verify(HEAD_2) == []
