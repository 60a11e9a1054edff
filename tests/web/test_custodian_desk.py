"""What the custodian does on the desk: said, checked, paid for once, stopped in time, handed over."""

from __future__ import annotations

import errno
import json
import shlex
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpsc import GramRelease, Ledger, Release
from dpsc.cli import app
from dpsc.errors import Parameter
from dpsc.web.custodian import panels
from dpsc.web.custodian.desk import CustodianDesk
from dpsc.web.custodian.fields import FIELDS, commands_of, in_words
from dpsc.web.page_files import File
from dpsc.web.work import Stopped, Work
from tests.web.conftest import PERIODS, held


def until(true: Callable[[], bool]) -> None:
    for _ in range(6000):
        if true():
            return
        time.sleep(0.01)
    pytest.fail("it did not happen")


def dropped(folder: Path, text: str, name: str = "patients.csv") -> File:
    place = folder / "upload" / "0.csv"
    place.parent.mkdir(exist_ok=True)
    place.write_text(text)
    return File(place, name)


def says(desk: CustodianDesk, **values: str) -> None:
    for name, value in values.items():
        desk.fill(name, value)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CustodianDesk:
    """A desk in a folder without a ledger."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSC_LEDGER", raising=False)
    for name in ("private", "out"):
        (tmp_path / name).mkdir()
    return CustodianDesk(tmp_path / "private", tmp_path / "out", None)


@pytest.fixture
def ready(empty: CustodianDesk, tmp_path: Path, donors_text: str) -> CustodianDesk:
    """A desk on which only Spend must be pressed."""
    Ledger(tmp_path / "dpsc-ledger.sqlite", create=True).add_dataset("patients", epsilon=2, delta=1e-6)
    says(empty, periods="2021-01..2022-12", decimal="comma", recipient="Dr Ruiz", purpose="yearly report")
    empty.use_file(dropped(tmp_path, donors_text))
    empty.work.wait()
    empty.look_into_book()
    says(empty, typed_name="patients")
    assert (empty.to_do, empty.problems) == ([], {})
    return empty


def entries(desk: CustodianDesk) -> list[str]:
    return [entry.state for entry in desk.shelf.open().entries()]


def written(desk: CustodianDesk) -> list[str]:
    return sorted(path.name for path in desk.folder.iterdir())


def test_from_a_file_to_a_release_that_is_booked_once(ready: CustodianDesk) -> None:
    ready.spend()
    ready.work.wait()
    assert ready.phase == "done"
    assert written(ready) == ["patients.dpsc.html", "patients.dpsc.json", "patients.record.json"]
    made = Release.load(ready.folder / "patients.dpsc.json")
    assert (made.n, made.T, made.outcome, made.datasets) == (400, 24, "cost", ("patients",))
    record = json.loads((ready.folder / "patients.record.json").read_text())
    assert record["deployment"]["basic"]["intended_use"] == "yearly report"
    (entry,) = ready.shelf.open().entries()
    assert (entry.state, entry.purpose) == ("confirmed", "for Dr Ruiz: yearly report")
    shown = panels.handover(ready)
    assert "patients.record.json" in shown
    assert "What to tell Dr Ruiz" in shown
    for _ in range(3):  # a click that comes late finds the work done
        ready.spend()
    says(ready, typed_name="patients")
    ready.spend()
    assert entries(ready) == ["confirmed"]
    ready.begin_anew()
    assert ready.to_do == ["Type patients to spend."]
    assert ready.out.name == "patients-2.dpsc.json"


def test_a_column_that_is_named_like_an_option(ready: CustodianDesk, tmp_path: Path, donors_text: str) -> None:
    header, rows = donors_text.split("\n", 1)
    names = header.split(";")
    says(ready, unit="--wide", time="--periods", outcome="cost")
    ready.use_file(dropped(tmp_path, ";".join(["--wide", "--periods", *names[2:]]) + "\n" + rows))
    ready.work.wait()
    says(ready, typed_name="patients")
    assert "--unit=--wide --time=--periods" in commands_of(ready.facts)["release"]
    assert "“" not in panels.understood(ready).split("columns")[1].split("</dd>")[0]
    ready.spend()
    ready.work.wait()
    assert (ready.phase, ready.problems) == ("done", {})
    made = Release.load(ready.folder / "patients.dpsc.json")
    assert (made.n, made.T) == (400, 24)


def test_many_clicks_at_once_book_once(ready: CustodianDesk) -> None:
    clicks = [threading.Thread(target=ready.spend) for _ in range(8)]
    for click in clicks:
        click.start()
    for click in clicks:
        click.join()
    ready.work.wait()
    assert entries(ready) == ["confirmed"]


NOT_READY = [
    ("typed_name", "Patients"), ("typed_name", ""), ("recipient", " "), ("purpose", ""), ("epsilon", "2.5"),
    ("epsilon", "none"), ("delta", "0.5"), ("periods", "2021-01..2022-06"), ("scale", "-1"), ("n", "many"),
]  # fmt: skip


def test_nothing_is_spent_from_a_desk_that_is_not_ready(ready: CustodianDesk) -> None:
    for name, value in NOT_READY:
        good = ready.fields[name]
        says(ready, **{name: value})
        assert ready.to_do, (name, value)
        ready.spend()
        assert ready.phase == "open"
        assert not ready.work.what
        says(ready, **{name: good})
        assert ready.to_do == []
    assert entries(ready) == []


def test_what_is_wrong_with_the_budget_is_said_beside_its_field(ready: CustodianDesk) -> None:
    says(ready, epsilon="2.5")
    assert ready.problems == {"epsilon": "Over budget: 'patients' has 2 left at delta 1e-6, 0.5 too little."}
    says(ready, epsilon="30")
    assert "protects nobody" in ready.problems["epsilon"]
    assert "--" not in ready.problems["epsilon"]
    says(ready, epsilon="0.01")
    assert "Nothing could be learned" in ready.problems["epsilon"]
    says(ready, epsilon="1", delta="0.1")
    assert "“delta of this release” 0.1 is not below one over the number of donors" in ready.problems["delta"]
    says(ready, delta="1e-6", n="30")
    assert "too few to find out privately how much a donor moves" in ready.problems["scale"]
    says(ready, scale="20")
    assert ready.problems == {}


def test_what_is_wrong_with_a_similar_series_is_said_beside_it_and_goes_with_it(
    ready: CustodianDesk, tmp_path: Path
) -> None:
    series = tmp_path / "series.csv"
    series.write_text("month,cost\n2021-01,much\n2021-02,more\n")
    ready.use_like(File(series, "clinic.csv"))
    assert set(ready.problems) == {"like_file"}
    assert "clinic.csv: column 'cost' holds text" in ready.problems["like_file"]
    assert ready.to_do == ["Correct “similar series”, under “Data”."]
    series.write_text("\n".join(["month,cost", *(f"{period},{100 + k % 5}" for k, period in enumerate(PERIODS))]))
    ready.use_like(File(series, "clinic.csv"))
    assert ready.problems == {}


def test_a_budget_that_somebody_else_spent_meanwhile_is_refused(ready: CustodianDesk) -> None:
    algorithm = GramRelease(epsilon=1.99, delta=1e-6)
    book = ready.shelf.open()
    book.book("patients", **book.terms(algorithm))
    ready.spend()
    ready.work.wait()
    assert "over budget" in ready.problems["spend"].lower()
    assert entries(ready) == ["booked"]
    assert written(ready) == []
    assert ready.phase == "open"


def test_it_can_be_stopped_until_it_is_booked(ready: CustodianDesk, tmp_path: Path) -> None:
    with held(tmp_path / "dpsc-ledger.sqlite"):
        ready.spend()
        ready.stop()
    ready.work.wait()
    assert ready.note == "Stopped. Nothing was booked and nothing was written."
    assert (ready.phase, entries(ready), written(ready)) == ("open", [], [])
    assert "Type patients to spend." in ready.to_do
    says(ready, typed_name="patients")
    ready.spend()
    ready.work.wait()
    assert entries(ready) == ["confirmed"]


def test_after_the_last_look_it_cannot_be_stopped(ready: CustodianDesk, tmp_path: Path) -> None:
    with held(tmp_path / "dpsc-ledger.sqlite", "IMMEDIATE"):  # others may read, and must wait to book
        ready.spend()
        until(lambda: ready.work.final)
        ready.stop()
        assert not ready.work.can_be_stopped
        assert "cannot be stopped any more" in panels.under_way(ready)
    ready.end()
    assert (ready.phase, entries(ready)) == ("done", ["confirmed"])


def test_what_fails_after_booking_is_told(ready: CustodianDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Release, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Release, "save", full)
    ready.spend()
    ready.work.wait()
    assert entries(ready) == ["failed"]
    assert ready.note == "The release was booked, and could not be made: see “Book”."
    assert "counts as spent" in panels.book(ready)


def test_a_program_that_was_killed_leaves_a_booking_that_is_explained(ready: CustodianDesk, tmp_path: Path) -> None:
    book, algorithm = ready.shelf.open(), GramRelease(epsilon=0.5, delta=1e-6)
    for name in ("there.json", "lost.json"):
        book.book("patients", **book.terms(algorithm), output=tmp_path / name)
    (tmp_path / "there.json").write_text("{}")
    ready.look_into_book()
    shown = panels.book(ready)
    assert shown.count("booked, not confirmed") == 2
    assert "there.json is there. Check it with dpsc inspect" in shown
    assert "before the release was written" in shown
    ready.verify()
    assert "the chain is whole" in panels.book(ready)
    assert b"booked" in ready.shelf.export("csv")
    assert json.loads(ready.shelf.export("json"))["format"] == "dpsc-ledger"


def test_a_name_that_is_taken_or_elsewhere_is_refused(ready: CustodianDesk) -> None:
    (ready.folder / "taken.record.json").write_text("keep me")
    for name in ("../elsewhere", ".hidden", "taken", "a/b", "new\nline"):
        says(ready, file_name=name, typed_name="patients")
        ready.spend()
        ready.work.wait()
        assert "file_name" in ready.problems, name
        assert ready.to_do == ["Correct “name of the release”, under “Confirm”."]
    assert entries(ready) == []
    assert written(ready) == ["taken.record.json"]


def test_what_rows_alone_show_must_be_said(empty: CustodianDesk, tmp_path: Path, donors_text: str) -> None:
    empty.use_file(dropped(tmp_path, donors_text))
    empty.work.wait()
    assert set(empty.problems) == {"periods", "decimal"}
    assert empty.outlook is None  # which is from public numbers only
    assert "NOT READY" in panels.understood(empty)
    shown = panels.findings(empty)
    assert "PRIVATE: for the custodian only" in shown
    assert '<section class="never">\n<h3>What must NOT be chosen from this view</h3>' in shown
    assert "say “periods” and “mark before decimals” and check again" in shown.lower()
    assert "P000" in panels.understood(empty)
    says(empty, periods="2021-01..2022-12", decimal="comma")
    assert "changed since" in panels.understood(empty)
    empty.check()
    empty.work.wait()
    assert "changed since" not in panels.understood(empty)
    assert "READY: nothing" in panels.understood(empty)
    assert not (tmp_path / "upload" / "0.csv").exists()  # moved, not copied


def test_what_cells_are_that_several_rows_give_is_said_on_the_page(ready: CustodianDesk) -> None:
    """Until it is said the donors are not ready; then check and release both follow it."""
    donors = ready.donors
    assert donors is not None
    lines = donors.path.read_text().splitlines()
    donors.path.write_text("\n".join([*lines, lines[1]]) + "\n")
    ready.check()
    ready.work.wait()
    assert "1 cell is given by several rows" in panels.findings(ready)
    assert ready.to_do[0] == "Correct what the check found, under “Check”."
    says(ready, repeated="sum")
    assert ready.to_do[0].startswith("Check again")
    ready.check()
    ready.work.wait()
    assert ready.to_do == []
    assert ready._request().source.files.layout.repeated == "sum"
    for name in ("check", "release"):
        assert "--repeated sum" in commands_of(ready.facts)[name]


def test_a_bad_file_is_explained_under_its_own_name(empty: CustodianDesk, tmp_path: Path) -> None:
    for text, said in (("", "empty"), ("a,b,c\n1,2,3\n", "not clear which column")):
        empty.use_file(dropped(tmp_path, text, "letter.csv"))
        empty.work.wait()
        assert said in str(empty.problems)
        assert "letter.csv" in str(empty.problems)
        assert str(tmp_path) not in str(empty.problems)
    says(empty, path=str(tmp_path / "nothing.csv"))
    empty.use_path()
    assert "There is nothing at" in empty.problems["path"]
    assert [path for path in (tmp_path / "private").rglob("*") if path.is_file()] == [empty.donors.path]  # type: ignore[union-attr]


def test_a_file_on_this_machine_is_read_where_it_is(empty: CustodianDesk, tmp_path: Path, donors_text: str) -> None:
    place = tmp_path / "donors.csv"
    place.write_text(donors_text)
    says(empty, path=str(place), periods="2021-01..2022-12", decimal="comma")
    empty.use_path()
    empty.work.wait()
    assert empty.checked is not None
    assert empty.checked.ready
    assert list((tmp_path / "private").iterdir()) == []
    assert place.read_text() == donors_text


def test_a_data_set_gets_its_budget_on_the_page(empty: CustodianDesk, tmp_path: Path) -> None:
    assert "There is no book at" in panels.gauge(empty)
    says(empty, new_name="patients", new_epsilon="40", new_delta="1e-6")
    empty.enter_dataset()
    assert "protects nobody" in empty.problems["new_epsilon"]
    says(empty, new_epsilon="3", new_delta="0.5")
    empty.enter_dataset()
    assert "new_delta" in empty.problems
    says(empty, new_delta="1e-6")
    command = commands_of(empty.facts)["init"]
    empty.enter_dataset()
    assert empty.dataset == "patients"
    assert "new_delta" not in empty.problems
    assert Ledger(tmp_path / "dpsc-ledger.sqlite").dataset("patients").epsilon == 3
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert "Known already" in done.output
    empty.enter_dataset()  # a double click
    assert "new_name" not in empty.problems
    says(empty, epsilon="0,5")
    assert "--epsilon 0.5" in panels.budget_commands(empty)
    says(empty, epsilon="3")
    assert "<dt>left afterwards</dt><dd>nothing" in panels.gauge(empty)
    says(empty, epsilon="1")
    assert empty.book.grid[-1] == 3
    assert "0% of the budget is spent, 33% with this release" in panels.gauge(empty)


def test_two_numbers_come_from_public_inputs_alone(empty: CustodianDesk) -> None:
    assert "73.1%" in panels.numbers(empty)
    says(empty, n="400", periods="2021-01..2022-12")
    assert empty.checked is None
    empty.simulations.wait()
    assert "smallest average effect" in panels.numbers(empty)
    seen = []
    for epsilon in ("0.5", "1", "2", "4"):
        says(empty, epsilon=epsilon)
        assert empty.outlook is not None
        seen.append((empty.outlook.guess, -empty.outlook.detectable))
    assert seen == sorted(seen)
    assert [effect for _, effect in seen] == sorted(effect for _, effect in seen)  # what one sees never grows


def test_each_page_shows_the_command_that_does_the_same(ready: CustodianDesk, tmp_path: Path, donors_text: str) -> None:
    (tmp_path / "patients.csv").write_text(donors_text)
    commands = commands_of(ready.facts)
    for name in ("check", "plan", "show", "release", "entries", "verify"):
        typed = shlex.split(commands[name].replace("\\\n", ""))
        more = ["--runs", "1"] if name == "plan" else []  # not hundreds of made-up panels
        done = CliRunner().invoke(app, [*typed[1:], *more])
        assert done.exit_code == 0, (typed, done.output)
    made = Release.load(tmp_path / "out" / "patients.dpsc.json")
    (entry,) = ready.shelf.open().entries()
    ready.look_into_book()
    says(ready, typed_name="patients", epsilon="0.5")
    ready.spend()
    ready.work.wait()
    mine = Release.load(tmp_path / "out" / "patients-2.dpsc.json")
    assert (mine.n, list(mine.times), mine.outcome, mine.datasets) == (
        made.n, list(made.times), made.outcome, made.datasets
    )  # fmt: skip
    assert ready.shelf.open().entries()[1].purpose == entry.purpose == "for Dr Ruiz: yearly report"


def test_a_ledger_that_is_held_for_long_is_told_and_the_page_goes_on(
    ready: CustodianDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsc.web.custodian.book._PATIENCE", 0.05)
    with held(tmp_path / "dpsc-ledger.sqlite"):
        ready.look_into_book()
        assert "locked by another program" in ready.problems["dataset"]
    ready.look_into_book()
    assert ready.problems == {}


def test_work_is_one_at_a_time_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    work, go = Work(), threading.Event()
    seen: list[bool] = []

    def step() -> None:
        go.wait(60)
        work.on_rows(3)
        work.last_look()
        seen.append(work.stop())

    assert work.start("counting", step)
    assert not work.start("again", step)
    go.set()
    work.wait()
    assert (work.rows, seen, work.what) == (3, [False], "")

    def stopped() -> None:
        work.stop()
        with pytest.raises(Stopped):
            work.on_rows(1)
        with pytest.raises(Stopped):
            work.last_look()
        seen.append(work.final)

    assert work.start("stopping", stopped)
    work.wait()
    assert seen == [False, False]
    assert capsys.readouterr().err == ""


def test_every_field_is_on_the_page_once() -> None:
    page = panels.page()
    for name, field in FIELDS.items():
        assert page.count(f'id="{name}"') == 1, name
        assert page.count(f'<label for="{name}"') == 1, name
        assert field.label in page
    for name in panels.PANELS:
        assert page.count(f'id="{name}"') == 1, name
    assert in_words(f"add {Parameter('engine', 'memory')}") == "add engine='memory'"
    assert in_words("a column named --periods") == "a column named --periods"
