"""What somebody could do around the ledger's arithmetic, and no longer can."""

from __future__ import annotations

import itertools
import os
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import IntegrityError

from dpsc import GramRelease, Ledger, LedgerError
from dpsc.ledger import records
from dpsc.ledger.chain import Row
from tests.ledger.servers import Server

HALF = GramRelease(epsilon=0.5, delta=1e-6, scale=1.0)
_schemas = itertools.count()


def forged(number: int, previous: str, epsilon: float = 100.0, name: str = "sales") -> Row:
    """A row with a right hash that enters a data set with a budget of the forger's choice."""
    about: dict[str, object] = {}
    body = {
        "epsilon": epsilon,
        "delta": 1e-6,
        "adjacency": "replace one donor",
        "description": about,
        "fingerprint": records.fingerprint(about),
    }
    return Row(
        number=number,
        time="2026-01-01T00:00:00.000000+00:00",
        event="dataset",
        dataset=name,
        who="eve",
        booking=None,
        partition=None,
        body=records.canonical(body, "body"),
        previous=previous,
    ).sealed()


def insert(row: Row) -> str:
    """The statement that puts a row into the table."""
    values = ", ".join("NULL" if value is None else f"'{value}'" for value in vars(row).values())
    return f"INSERT INTO dpsc_entries VALUES ({values})".replace(":", r"\:")


@pytest.fixture
def without_check(url: str, tamper: Callable[[str], None]) -> Callable[[str], None]:
    """Change the database behind the ledger's back, as in a database that has lost the constraint on numbers."""

    def run(statement: str) -> None:
        if url.startswith("postgresql"):
            tamper("ALTER TABLE dpsc_entries DROP CONSTRAINT IF EXISTS dpsc_entries_number")
            tamper(statement)
            return
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text("PRAGMA ignore_check_constraints = ON"))
            connection.execute(text(statement))
        engine.dispose()

    return run


def test_a_row_before_the_first_is_not_taken_for_the_budget(
    ledger: Ledger, url: str, without_check: Callable[[str], None]
) -> None:
    """A `dataset` row with number -1 became the budget, and epsilon 50 was booked against 1.

    The number of rows and the last hash were right: the forger had left out number 2 and moved the head along.
    """
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    third = forged(3, ledger.head.hash, name="other")
    for row in (forged(-1, "0" * 64), third):
        without_check(insert(row))
    without_check(f"UPDATE dpsc_ledger SET length = 3, hash = '{third.hash}'")
    for book in (ledger, Ledger(url)):
        with pytest.raises(LedgerError, match=r"entry -1 has no place in the ledger.*Nothing is booked"):
            book.book("sales", **book.terms(GramRelease(epsilon=50, delta=1e-6, scale=1.0)))
    assert any("entry -1" in problem for problem in ledger.verify())
    assert ledger.entries() == []


def test_the_table_refuses_numbers_below_1(ledger: Ledger, tamper: Callable[[str], None]) -> None:
    """The database took a row with any number; it checks them itself now."""
    with pytest.raises(IntegrityError):
        tamper(insert(forged(-1, "0" * 64)))
    with pytest.raises(IntegrityError):
        tamper(insert(forged(0, "0" * 64)))


def test_a_clerk_with_the_rights_that_we_grant_cannot_raise_the_budget(server: Server) -> None:
    """With SELECT and INSERT on entries and SELECT and UPDATE on the head, a clerk could make the budget 100."""
    schema = f"walls{next(_schemas)}"
    owner = server.url(schema)
    Ledger(owner, create=True).add_dataset("sales", epsilon=1, delta=1e-6)
    with server.connect(schema) as admin:
        admin.execute(f"CREATE ROLE {schema} LOGIN")
        admin.execute(f"GRANT USAGE ON SCHEMA {schema} TO {schema}")
        admin.execute(f"GRANT SELECT, INSERT ON dpsc_entries TO {schema}")
        admin.execute(f"GRANT SELECT, UPDATE ON dpsc_ledger TO {schema}")
    first = Ledger(owner).rows()[0]
    with server.connect(schema, user=schema) as clerk, pytest.raises(psycopg.errors.CheckViolation):
        clerk.execute(insert(forged(-1, "0" * 64)).replace(r"\:", ":"))
    second = forged(2, first.hash)
    with server.connect(schema, user=schema) as clerk:  # a row that continues the chain
        clerk.execute(insert(second).replace(r"\:", ":"))
        clerk.execute(f"UPDATE dpsc_ledger SET length = 2, hash = '{second.hash}'")
    book = Ledger(owner.replace("dpsc@", f"{schema}@"))
    with pytest.raises(LedgerError, match="enters 'sales' a second time"):
        book.book("sales", **book.terms(GramRelease(epsilon=50, delta=1e-6, scale=1.0)))


EDITS = {
    "a cheaper booking": "UPDATE dpsc_entries SET body = replace(body, '0.5', '0.1') WHERE number = 2",
    "a larger budget": "UPDATE dpsc_entries SET body = replace(body, '1.0', '9.0') WHERE number = 1",
    "a booking of somebody else": "UPDATE dpsc_entries SET dataset = 'other' WHERE number = 2",
    "another partition": "UPDATE dpsc_entries SET partition = 'x' WHERE number = 2",
    "an earlier time": "UPDATE dpsc_entries SET time = '1970-01-01' WHERE number = 1",
    "another hash": "UPDATE dpsc_entries SET hash = previous WHERE number = 2",
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("fresh", [True, False])
def test_an_edited_row_is_refused_before_anything_is_booked(
    edit: str, fresh: bool, ledger: Ledger, url: str, tamper: Callable[[str], None]
) -> None:
    """Only the number of rows and the last hash were compared, so that what was booked could be made cheaper.

    Also by the very object that had checked the rows before they were edited.
    """
    ledger.add_dataset("sales", epsilon=1.0, delta=1e-6)
    entry = ledger.book("sales", **ledger.terms(HALF))
    ledger.confirm(ledger.book("sales", **ledger.terms(GramRelease(epsilon=0.1, delta=1e-6, scale=1.0))))
    tamper(EDITS[edit])
    book = Ledger(url) if fresh else ledger
    before = book.rows()
    for change in (
        lambda: book.book("sales", **book.terms(GramRelease(epsilon=0.1, delta=1e-6, scale=1.0))),
        lambda: book.add_dataset("costs", epsilon=1, delta=1e-6),
        lambda: book.fail(entry, "late"),
    ):
        with pytest.raises(LedgerError, match="changed from outside"):
            change()
    assert book.rows() == before


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_row_rewritten_with_a_hash_of_its_own_is_refused(
    number: int, ledger: Ledger, tamper: Callable[[str], None]
) -> None:
    """Its hash is right then; that the next row, or the head, names another one is all that shows it."""
    ledger.add_dataset("sales", epsilon=1.0, delta=1e-6)
    for _ in range(3):
        ledger.book("sales", **ledger.terms(GramRelease(epsilon=0.1, delta=1e-6, scale=1.0)), who="ann")
    forged_hash = replace(ledger.rows()[number - 1], who="eve").sealed().hash
    tamper(f"UPDATE dpsc_entries SET who = 'eve', hash = '{forged_hash}' WHERE number = {number}")
    with pytest.raises(LedgerError, match="changed from outside"):
        ledger.book("sales", **ledger.terms(GramRelease(epsilon=0.1, delta=1e-6, scale=1.0)))
    assert len(ledger.verify()) == 1


def test_a_booking_moved_to_another_data_set_is_refused(ledger: Ledger, tamper: Callable[[str], None]) -> None:
    for name in ("sales", "costs"):
        ledger.add_dataset(name, epsilon=1.0, delta=1e-6)
    ledger.book("sales", **ledger.terms(HALF))
    tamper("UPDATE dpsc_entries SET dataset = 'costs' WHERE number = 3")
    with pytest.raises(LedgerError, match="entry 3 was edited"):
        ledger.book("sales", **ledger.terms(HALF))


def test_a_row_put_back_is_booked_on_again(ledger: Ledger, tamper: Callable[[str], None]) -> None:
    ledger.add_dataset("sales", epsilon=1.0, delta=1e-6, who="ann")
    tamper("UPDATE dpsc_entries SET who = 'eve'")
    with pytest.raises(LedgerError, match="entry 1 was edited"):
        ledger.book("sales", **ledger.terms(HALF))
    tamper("UPDATE dpsc_entries SET who = 'ann'")
    ledger.book("sales", **ledger.terms(HALF))
    assert ledger.verify() == []


def test_what_was_checked_is_not_hashed_again(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.add_dataset("sales", epsilon=1.0, delta=1e-6)
    hashed: list[int] = []
    real = Row.computed_hash

    def recorded(row: Row) -> str:
        hashed.append(row.number)
        return real(row)

    monkeypatch.setattr(Row, "computed_hash", recorded)
    for _ in range(4):
        ledger.book("sales", **ledger.terms(GramRelease(epsilon=0.1, delta=1e-6, scale=1.0)))
    assert hashed == [1, 2, 2, 3, 3, 4, 4, 5]  # each row when it is written, and once more when it is found there


TWINS = ["Sales", " sales", "sales ", "SALES", "sa les", "ｓａｌｅｓ"]


@pytest.mark.parametrize("name", TWINS)
def test_a_name_that_reads_the_same_is_not_a_second_data_set(name: str, tmp_path: Path) -> None:
    """Each of these had a budget of its own, for the same donors, without a word."""
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    if name.strip() == "sales":  # the same name, with spaces around it
        assert ledger.add_dataset(name, epsilon=1, delta=1e-6).name == "sales"
        ledger.book(name, **ledger.terms(HALF))
        assert ledger.entries("sales")[0].dataset == "sales"
    else:
        with pytest.raises(LedgerError, match=r"the data set 'sales', and .* differs from it only in case"):
            ledger.add_dataset(name, epsilon=1, delta=1e-6)
        with pytest.raises(LedgerError, match="use 'sales', which differs from it only"):
            ledger.book(name, **ledger.terms(HALF))
    assert [each.name for each in ledger.datasets()] == ["sales"]


def test_letters_that_are_two_in_capitals_are_the_same(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    ledger.add_dataset("Hauptstraße", epsilon=1, delta=1e-6)
    with pytest.raises(LedgerError, match="differs from it only in case"):
        ledger.add_dataset("HAUPTSTRASSE", epsilon=1, delta=1e-6)


def test_unicode_forms_of_a_name_are_one(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    assert ledger.add_dataset("cafe\u0301", epsilon=1, delta=1e-6).name == "caf\u00e9"
    assert ledger.dataset("caf\u00e9") == ledger.dataset("cafe\u0301")
    assert ledger.add_dataset("caf\u00e9", epsilon=1, delta=1e-6).name == "caf\u00e9"
    assert len(ledger.datasets()) == 1


def test_a_partition_that_reads_the_same_does_not_cost_nothing(tmp_path: Path) -> None:
    """After `north` had spent its budget, `North` could spend it again."""
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    ledger.add_dataset("sales", epsilon=0.5, delta=1e-6)
    ledger.book("sales", **ledger.terms(HALF), partition="north")
    with pytest.raises(LedgerError, match="the partition 'north', and 'North' differs"):
        ledger.book("sales", **ledger.terms(HALF), partition="North")
    ledger.book("sales", **ledger.terms(HALF), partition="south")


@pytest.mark.parametrize("name", ["book.sqlite", "link.sqlite", "twin.sqlite", "book.sqlite-journal"])
def test_the_output_of_a_booking_is_not_the_ledger(name: str, tmp_path: Path) -> None:
    """`output=` could be the ledger itself, under its own name or another, and the release was saved over it."""
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    (tmp_path / "link.sqlite").symlink_to("book.sqlite")
    os.link(tmp_path / "book.sqlite", tmp_path / "twin.sqlite")
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    with pytest.raises(LedgerError, match="is the ledger"):
        ledger.book("sales", **ledger.terms(HALF), output=tmp_path / name)
    assert ledger.entries() == []


def test_a_purpose_is_kept(ledger: Ledger) -> None:
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    ledger.book("sales", **ledger.terms(HALF), purpose="for the yearly report")
    with ledger.spending("sales", **ledger.terms(GramRelease(epsilon=0.1, delta=1e-6, scale=1.0))):
        pass
    assert [entry.purpose for entry in ledger.entries()] == ["for the yearly report", None]
    with pytest.raises(LedgerError, match="purpose"):
        ledger.book("sales", **ledger.terms(HALF), purpose="\x1b[2J")


PASSWORDS = [
    "postgresql://ann:s3cret-word@host/book",
    "postgresql:/ann:s3cret-word@host/book",  # as a path
    "postgresql://ann:s3cret@word s3cret@host/book",
    "host=db user=ann password=s3cret-word",
    "postgresql://ann@host/book?password=s3cret-word&x=1",
]


@pytest.mark.parametrize("secret", PASSWORDS)
def test_a_password_in_the_wrong_place_is_neither_shown_nor_kept(secret: str, tmp_path: Path) -> None:
    """Names, texts and paths are quoted in errors and kept in the book; a URL in one of them kept its password."""
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    for mistake in (
        lambda: ledger.dataset(secret),
        lambda: ledger.add_dataset(secret, epsilon=1, delta=1e-6),
        lambda: ledger.add_dataset("costs", epsilon=1, delta=1e-6, description={"source": secret}),
        lambda: ledger.book("sales", **ledger.terms(HALF), purpose=secret),
        lambda: ledger.book("sales", **ledger.terms(HALF), who=secret),
        lambda: ledger.book("sales", **ledger.terms(HALF), output=tmp_path / secret),
    ):
        with pytest.raises(LedgerError) as refused:
            mistake()
        assert "s3cret" not in "".join(traceback.format_exception_only(refused.value)) + repr(refused.value)
    assert b"s3cret" not in (tmp_path / "book.sqlite").read_bytes()
