"""A PostgreSQL ledger whose server dies, whose connection is cut, whose clock is wrong, or that was meddled with."""

from __future__ import annotations

import datetime
import json
import random
import select
import socket
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from dpsc import GramRelease, Ledger, LedgerError
from dpsc.ledger import schema
from dpsc.ledger.chain import Row
from tests.ledger.servers import Server, a_server
from tests.soak import quick_or_long

SMALL = GramRelease(epsilon=0.01, delta=1e-6, scale=1.0)
HALF = GramRelease(epsilon=0.5, delta=1e-6, scale=1.0)


@pytest.fixture(scope="module")
def mortal() -> Iterator[Server]:
    """A server that no other test uses, because it is killed."""
    yield from a_server()


def opened(url: str) -> Ledger:
    ledger = Ledger(url, create=True)
    ledger.add_dataset("sales", epsilon=5, delta=1e-6)
    return ledger


@pytest.mark.end_to_end
def test_a_server_that_is_killed_keeps_every_booking_that_it_answered(mortal: Server) -> None:
    """What was booked without an answer may be there too: it then counts as spent, and nothing was released."""
    moments, answered = random.Random(0), []
    ledger = opened(mortal.url("killed"))
    for lost in range(1, quick_or_long(3, 41)):
        killer = threading.Timer(moments.uniform(0.0, 0.3), mortal.kill)
        killer.start()
        with pytest.raises(LedgerError, match="cannot be used"):  # noqa: PT012
            while True:
                answered.append(ledger.book("sales", **ledger.terms(SMALL)).hash)
        killer.join()
        mortal.start()
        assert ledger.verify() == []
        found = [entry.hash for entry in ledger.entries()]
        assert set(answered) <= set(found)
        assert len(found) <= len(answered) + lost
    ledger.confirm(ledger.book("sales", **ledger.terms(SMALL)))  # it can be used as if nothing had happened


class Wire:
    """A way to the server that is cut as soon as a word was sent, before the answer to it comes back."""

    def __init__(self, server: Server, word: bytes) -> None:
        self.place, self.word, self.armed = str(server.folder / ".s.PGSQL.5432"), word, False
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.threads = [threading.Thread(target=self._accept)]
        self.threads[0].start()

    def url(self, name: str) -> str:
        port = self.listening.getsockname()[1]
        return f"postgresql+psycopg://dpsc@127.0.0.1:{port}/postgres?options=-csearch_path%3D{name}&sslmode=disable"

    def close(self) -> None:
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        for thread in self.threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listening.accept()
                self.threads.append(threading.Thread(target=self._connect, args=(client,)))
                self.threads[-1].start()

    def _connect(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.socket(socket.AF_UNIX) as server:  # either end may be gone first
            server.connect(self.place)
            while True:
                for source in select.select([client, server], [], [])[0]:
                    sent = source.recv(65536)
                    (server if source is client else client).sendall(sent)
                    if not sent:
                        return
                    if source is client and self.armed and self.word in sent:
                        server.recv(65536)  # it is done; the answer is not passed on
                        return


@pytest.mark.end_to_end
@pytest.mark.parametrize(("word", "booked"), [(b"COMMIT\0", 1), (b"INSERT INTO dpsc_entries", 0)])
def test_a_connection_that_is_cut_never_loses_a_booking_whose_release_is_made(
    server: Server, word: bytes, booked: int
) -> None:
    """Cut after the commit was sent, the booking is there though nobody was told; cut before, it is not."""
    direct = opened(server.url(f"cut{booked}"))
    wire = Wire(server, word)
    ledger = Ledger(wire.url(f"cut{booked}"))
    wire.armed, made = True, []
    with pytest.raises(LedgerError, match="cannot be used") as refused, ledger.spending("sales", **ledger.terms(HALF)):
        made.append("a release")
    wire.close()
    assert made == []
    assert "Nothing" not in str(refused.value)  # nobody knows
    assert direct.verify() == []
    assert [entry.state for entry in direct.entries()] == ["booked"] * booked


def test_nothing_depends_on_the_clock(ledger: Ledger, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    years = [2026, 1970, 9999, 1, 2026]
    coming = iter(year for year in [2026, *years] for _ in range(2))
    clock = SimpleNamespace(now=lambda tz: datetime.datetime(next(coming), 1, 1, tzinfo=tz))
    monkeypatch.setattr("dpsc.ledger.chain.datetime", SimpleNamespace(datetime=clock, UTC=datetime.UTC))
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    next(coming)
    for _ in years:
        ledger.confirm(ledger.book("sales", **ledger.terms(SMALL)))
    monkeypatch.undo()
    entries = ledger.entries()
    assert [int(entry.time[:4]) for entry in entries] == years
    assert [(entry.number, entry.state) for entry in entries] == [(k, "confirmed") for k in (2, 4, 6, 8, 10)]
    assert ledger.verify() == []
    assert Ledger(url).remaining("sales") == ledger.remaining("sales") < 1


NOTHING = "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"
OTHER = "CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.who = 'eve'; RETURN NEW; END $$"
MEDDLING = {
    "trigger that drops": [
        NOTHING,
        "CREATE TRIGGER drops BEFORE INSERT ON dpsc_entries FOR EACH ROW EXECUTE FUNCTION nothing()",
        "CREATE TRIGGER drops BEFORE UPDATE ON dpsc_ledger FOR EACH ROW EXECUTE FUNCTION nothing()",
    ],
    "trigger that changes": [
        OTHER,
        "CREATE TRIGGER changes BEFORE INSERT ON dpsc_entries FOR EACH ROW EXECUTE FUNCTION other()",
    ],
    "trigger that waits": [
        "CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "DELETE FROM dpsc_entries WHERE number > 1; "
        "UPDATE dpsc_ledger SET length = 1, hash = NEW.previous; RETURN NULL; END $$",
        "CREATE CONSTRAINT TRIGGER undoes AFTER INSERT ON dpsc_entries DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION undo()",
    ],
    "rule": [
        "CREATE RULE drops AS ON INSERT TO dpsc_entries DO INSTEAD NOTHING",
        "CREATE RULE drops AS ON UPDATE TO dpsc_ledger DO INSTEAD NOTHING",
    ],
    "view": [
        "ALTER TABLE dpsc_entries RENAME TO kept",
        "CREATE VIEW dpsc_entries AS SELECT * FROM kept WHERE number = 1",
        "CREATE RULE drops AS ON INSERT TO dpsc_entries DO INSTEAD NOTHING",
        "CREATE RULE drops AS ON UPDATE TO dpsc_ledger DO INSTEAD NOTHING",
    ],
}


@pytest.mark.parametrize("how", MEDDLING)
def test_a_database_that_does_not_keep_a_booking_makes_no_release(server: Server, how: str) -> None:
    """Any number of releases were made, and the book stayed whole and empty."""
    name = f"meddled_{how.split()[-1]}"
    ledger = opened(server.url(name))
    with server.connect(name) as admin:
        for statement in MEDDLING[how]:
            admin.execute(statement)
    made = []
    for again in (ledger, ledger):
        with (
            pytest.raises(LedgerError, match=r"does not keep|no plain tables"),
            again.spending("sales", **again.terms(HALF)),
        ):
            made.append("a release")
    assert made == []


def test_a_second_ledger_in_front_of_the_first_is_not_booked_into(server: Server) -> None:
    """A schema that comes first in the search path held an older copy, whose budget was whole."""
    behind = server.url("behind")
    ledger = opened(behind)
    both = behind.replace("behind", "front%2Cbehind")
    later = Ledger(both)
    later.book("sales", **later.terms(HALF))
    server.url("front")
    with server.connect("front") as admin:
        for table in ("dpsc_ledger", "dpsc_entries"):
            admin.execute(f"CREATE TABLE front.{table} AS SELECT * FROM behind.{table}")
    for attempt in (lambda: Ledger(both), lambda: later.book("sales", **later.terms(HALF)), later.verify):
        with pytest.raises(LedgerError, match="more than one ledger"):
            attempt()
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("body", ["[" * 100_000, '{"a":' * 100_000, "9" * 400, "9" * 5000, '{"guarantee":1e999}', "{}"])
def test_a_row_that_holds_anything_is_a_problem_in_words(ledger: Ledger, body: str) -> None:
    """Who may only add rows could end every command in a traceback."""
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    entry = ledger.book("sales", **ledger.terms(SMALL))
    amount = body if body.startswith("9") else None
    promise = {**entry.promise, "loss": {**entry.promise["loss"], "mu_squared": "AMOUNT"}}
    if amount is not None:
        body = json.dumps({"guarantee": promise, "algorithm": "x", "parameters": {}, "output": None})
        body = body.replace('"AMOUNT"', amount)
    row = Row(3, "now", "booked", "sales", "eve", None, None, body, entry.hash).sealed()
    ledger._store._run(lambda connection: schema.append(connection, row), write=True)
    assert ["entry 3 of the ledger cannot be read" in problem for problem in ledger.verify()] == [True]
    with pytest.raises(LedgerError, match="entry 3 of the ledger cannot be read"):
        ledger.book("sales", **ledger.terms(SMALL))


@pytest.mark.parametrize("version", [0, -5, schema.VERSION + 1])
def test_a_version_that_there_is_not_is_refused(ledger: Ledger, url: str, tamper: Any, version: int) -> None:
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    tamper(f"UPDATE dpsc_ledger SET version = {version}")
    with pytest.raises(LedgerError, match=f"has version {version}"):
        Ledger(url)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("DELETE FROM dpsc_entries WHERE number = 2", "entry 2 is missing"),
        ("DELETE FROM dpsc_entries WHERE number = 3", "entry 3 is missing at the end"),
        ("UPDATE dpsc_entries SET number = 5 - number WHERE number > 1", "was edited"),
        ("UPDATE dpsc_entries SET partition = 'north' WHERE number = 2", "entry 2 was edited"),
        ("UPDATE dpsc_entries SET booking = 2 WHERE number = 3", "entry 3 was edited"),
        ("UPDATE dpsc_ledger SET length = 2", "does not match the last entry"),
        ("UPDATE dpsc_ledger SET hash = previous FROM dpsc_entries WHERE number = 3", "does not match the last entry"),
        ("DELETE FROM dpsc_ledger", "has lost its head record"),
    ],
)
def test_edited_rows_stop_the_next_booking(server: Server, change: str, problem: str) -> None:
    name = f"edited{zlib.crc32(change.encode())}"
    ledger = opened(server.url(name))
    for _ in range(2):
        ledger.book("sales", **ledger.terms(SMALL))
    with server.connect(name) as admin:
        admin.execute("ALTER TABLE dpsc_entries DROP CONSTRAINT dpsc_entries_pkey")  # numbers may cross
        admin.execute(change)
    for each in (ledger, ledger):  # the second time nothing counts as checked
        with pytest.raises(LedgerError, match=problem):
            each.book("sales", **each.terms(SMALL))


def test_commits_wait_for_the_disk_whatever_the_server_says(server: Server) -> None:
    name = "asynchronous"
    url = server.url(name).replace(f"search_path%3D{name}", f"search_path%3D{name}%20-csynchronous_commit%3Doff")
    ledger = opened(url)
    asked = "SHOW synchronous_commit"
    assert ledger._store._run(lambda connection: connection.exec_driver_sql(asked).scalar_one(), write=False) == "off"
    assert ledger._store._run(lambda connection: connection.exec_driver_sql(asked).scalar_one(), write=True) == "on"
