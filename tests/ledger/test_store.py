from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, create_engine, text

from dpsc import GramRelease, Ledger, LedgerError
from dpsc.ledger import address
from tests.ledger.servers import Server

HALF = GramRelease(epsilon=0.5, delta=1e-6, scale=1.0)


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger = Ledger(tmp_path / "book.sqlite", create=True)
        ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    finally:
        os.umask(before)
    assert {path.name for path in tmp_path.iterdir()} == {"book.sqlite"}
    assert stat.S_IMODE((tmp_path / "book.sqlite").stat().st_mode) == 0o600


def test_commits_are_synced_to_the_disk_with_their_folder(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    pragma = ledger._store.read(lambda connection: connection.exec_driver_sql("PRAGMA synchronous").scalar_one())
    assert pragma == 3  # EXTRA


def test_a_ledger_is_only_made_when_asked(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="dpsc ledger init"):
        Ledger(tmp_path / "book.sqlite")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty.sqlite").touch()  # a crash just after the file was made
    with pytest.raises(LedgerError, match="dpsc ledger init"):
        Ledger(tmp_path / "empty.sqlite")
    Ledger(tmp_path / "empty.sqlite", create=True)
    assert Ledger(tmp_path / "empty.sqlite").entries() == []


def test_an_empty_database_is_no_ledger_either(url: str) -> None:
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger(url)


def test_many_can_make_the_same_ledger_at_once(url: str) -> None:
    problems: list[Exception] = []

    def make() -> None:
        try:
            Ledger(url, create=True).add_dataset("sales", epsilon=1, delta=1e-6)
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert [each.name for each in Ledger(url).datasets()] == ["sales"]
    assert Ledger(url).verify() == []


@pytest.mark.parametrize("wrong", ["sqlite://", "sqlite:///:memory:", "mysql://host/name", "", "://", "post gres://x"])
def test_addresses_that_cannot_hold_a_ledger_are_refused(wrong: str) -> None:
    with pytest.raises(LedgerError):
        Ledger(wrong, create=True)


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but a text of some length\n" * 50)
    with pytest.raises(LedgerError, match="The file is not a ledger"):
        Ledger(tmp_path / "notes.txt", create=True)


SECRETS = [
    "postgresql://ann:s3cret-word@127.0.0.1:1/book",
    "postgresql+psycopg://ann:s3cret%2Dword@127.0.0.1:1/book",
    "postgresql://ann@127.0.0.1:1/book?password=s3cret-word",
    "postgresql://ann:s3cret-word@127.0.0.1:1/book?sslmode=s3cret-word",
    "postgresql://ann:s3cret-word@127.0.0.1:notaport/book",
    "mysql://ann:s3cret-word@host/book",
    "nonsense://ann:s3cret-word@host/book",
]


@pytest.mark.parametrize("url", SECRETS)
def test_passwords_are_never_shown(url: str) -> None:
    with pytest.raises(LedgerError) as refused:
        Ledger(url, create=True, patience=1)
    shown = "".join(traceback.format_exception(refused.value)) + repr(refused.value)
    shown = "\n".join(line for line in shown.splitlines() if "Ledger(url" not in line)
    assert not re.search("s3cret", shown), shown


def test_an_address_shows_no_password() -> None:
    one = address.read("postgresql://ann:s3cret-word@host/book?password=s3cret-word&sslmode=require")
    assert "s3cret" not in f"{one} {one!r}"
    assert one.without_secrets("failed with s3cret-word") == "failed with ***"


def test_a_lock_that_stays_is_reported_after_a_while(ledger: Ledger, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    engine = create_engine(url)
    impatient = Ledger(url, patience=0.3)
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    with engine.begin() as other:
        other.execute(text("UPDATE dpsc_ledger SET length = length"))
        with pytest.raises(LedgerError, match=r"locked by another program for 0.3 seconds.*Try again"):
            impatient.book("sales", **ledger.terms(HALF))
    engine.dispose()
    assert pauses  # it tried more than once
    monkeypatch.undo()
    impatient.book("sales", **ledger.terms(HALF))
    assert len(ledger.entries()) == 1


def test_a_lock_that_goes_away_is_waited_for(ledger: Ledger, url: str) -> None:
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    engine = create_engine(url)
    results: list[int] = []
    with engine.begin() as other:
        other.execute(text("UPDATE dpsc_ledger SET length = length"))
        waiting = threading.Thread(target=lambda: results.append(ledger.book("sales", **ledger.terms(HALF)).number))
        waiting.start()
        waiting.join(0.3)
        assert results == []
    waiting.join()
    engine.dispose()
    assert results == [2]


FAULTS: dict[str, tuple[str, list[str]]] = {
    "ledger-full": (r"the ledger at \S+ cannot be used", []),
    "output-full": (r"cannot write \S+a.json: File too large", ["booked"]),
    "read-only-output": (r"the folder \S+out cannot be written: Permission denied. Nothing was booked", []),
    "read-only-ledger": (r"the ledger at \S+ cannot be used: .*(read-only|permissions)", []),
}


@pytest.mark.end_to_end
@pytest.mark.parametrize("fault", FAULTS)
def test_a_disk_that_refuses_gives_a_clear_error_and_spends_at_most_what_was_booked(fault: str) -> None:
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="dpsc-fault-"))  # one that another user may enter too
    message, states = FAULTS[fault]
    try:
        folder.chmod(0o755)
        (folder / "out").mkdir()
        ledger = Ledger(folder / "book.sqlite", create=True)
        ledger.add_dataset("sales", epsilon=1, delta=1e-6)
        if os.geteuid() == 0:
            for path in (folder, folder / "out", folder / "book.sqlite"):
                os.chown(path, 65534, -1)
        script = Path(__file__).with_name("faults.py")
        done = subprocess.run([sys.executable, script, folder, fault], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert re.search(message, done.stdout), done.stdout
        assert "Traceback" not in done.stdout
        folder.chmod(0o755)
        assert [entry.state for entry in ledger.entries()] == states
        assert list((folder / "out").iterdir()) == []
        assert ledger.verify() == []
    finally:
        shutil.rmtree(folder)


@pytest.mark.end_to_end
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("making a small disk needs root; the size limit of the test above stands in for it")
    try:
        ledger = Ledger(disk / "book.sqlite", create=True)
        ledger.add_dataset("sales", epsilon=5, delta=1e-6)
        (disk / "filler").write_bytes(b"x" * 1000)
        with pytest.raises(LedgerError, match=r"full.*Make room"):  # noqa: PT012
            for _ in range(200):
                before = len(ledger.entries())
                ledger.book("sales", **ledger.terms(GramRelease(epsilon=0.01, delta=1e-6, scale=1.0)))
        (disk / "filler").unlink()
        assert len(ledger.entries()) == before > 0
        assert ledger.verify() == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_copy_taken_while_somebody_writes_is_not_half_a_booking(tmp_path: Path) -> None:
    """SQLite's own backup sees whole transactions only."""
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    ledger.book("sales", **ledger.terms(HALF))
    with sqlite3.connect(tmp_path / "book.sqlite") as source, sqlite3.connect(tmp_path / "copy.sqlite") as copy:
        source.backup(copy)
    source.close()
    copy.close()
    assert Ledger(tmp_path / "copy.sqlite").verify(ledger.head.hash) == []


def test_rows_edited_by_hand_are_seen_on_both_databases(ledger: Ledger, tamper: Callable[[str], None]) -> None:
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    tamper("UPDATE dpsc_entries SET time = '1970-01-01' WHERE number = 1")
    assert ledger.verify() == ["entry 1 was edited: its content does not match its hash"]


def test_a_reader_sees_one_state_while_others_book(server: Server) -> None:
    ledger = Ledger(server.url("snapshot"), create=True)
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)

    def read_twice(connection: Connection) -> tuple[int, int]:
        before = ledger._store.head(connection).length
        ledger.book("sales", **ledger.terms(HALF))
        return before, ledger._store.head(connection).length

    assert ledger._store.read(read_twice) == (1, 1)
    assert ledger.head.length == 2


def test_a_clerk_may_book_without_the_right_to_change_what_is_booked(server: Server) -> None:
    owner = server.url("clerks")
    Ledger(owner, create=True).add_dataset("sales", epsilon=1, delta=1e-6)
    with server.connect("clerks") as admin:
        admin.execute("CREATE ROLE clerk LOGIN")
        admin.execute("GRANT USAGE ON SCHEMA clerks TO clerk")
        admin.execute("GRANT SELECT, INSERT ON dpsc_entries TO clerk")
        admin.execute("GRANT SELECT, UPDATE (length, hash) ON dpsc_ledger TO clerk")
    clerk = Ledger(owner.replace("dpsc@", "clerk@"))
    clerk.confirm(clerk.book("sales", **clerk.terms(HALF)))
    assert clerk.verify() == []
    with server.connect("clerks", user="clerk") as connection:
        for statement in (
            "UPDATE dpsc_entries SET who = 'eve'",
            "DELETE FROM dpsc_entries",
            "UPDATE dpsc_ledger SET version = 1",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
            connection.rollback()
