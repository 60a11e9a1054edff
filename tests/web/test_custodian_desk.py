"""What the custodian does on the desk: said, checked, paid for once, stopped in time, handed over."""

from __future__ import annotations

import errno
import json
import re
import shlex
import threading
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from zipfile import ZipFile

import pytest
from typer.testing import CliRunner

from dpsc import GramRelease, Ledger, Release
from dpsc.cli import app
from dpsc.errors import Parameter, rendered
from dpsc.release import dossier
from dpsc.tables.spec import TableSpec
from dpsc.web.custodian import each_donor
from dpsc.web.custodian.app import CustodianDesk, page
from dpsc.web.custodian.form import FIELDS, Stopped, Work
from dpsc.web.desk import File
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
    empty.data.use_file(dropped(tmp_path, donors_text))
    empty.work.wait()
    empty.book.look()
    says(empty, typed_name="patients")
    assert (empty.confirm.to_do, empty.problems) == ([], {})
    return empty


def plain(shown: str) -> str:
    """Return what a panel shows without the marks of what no line may break."""
    return re.sub(r'<span class="whole">(.*?)</span>', r"\1", shown)


def commands(*panels: Callable[[], str]) -> list[str]:
    """Return the commands that panels show."""
    shown = [unescape(plain(panel()).split("<code>")[1].split("</code>")[0]) for panel in panels]
    return [line for text in shown for line in text.replace("\\\n", "").split("\n")]


def entries(desk: CustodianDesk) -> list[str]:
    return [entry.state for entry in desk.book.open().entries()]


def written(desk: CustodianDesk) -> list[str]:
    return sorted(path.name for path in desk.confirm.folder.iterdir())


def test_from_a_file_to_a_release_that_is_booked_once(ready: CustodianDesk) -> None:
    ready.confirm.spend()
    ready.work.wait()
    assert ready.phase == "done"
    ends = ("dossier.zip", "dpsc.html", "dpsc.json", "record.json")
    assert written(ready) == [f"patients.{end}" for end in ends]
    made = Release.load(ready.confirm.folder / "patients.dpsc.json")
    assert (made.n, made.T, made.outcome, made.datasets) == (400, 24, "cost", ("patients",))
    record = json.loads((ready.confirm.folder / "patients.record.json").read_text())
    assert record["deployment"]["basic"]["intended_use"] == "yearly report"
    with ZipFile(ready.confirm.folder / "patients.dossier.zip") as archive:
        assert set(archive.namelist()) == set(dossier.NAMES)
        assert json.loads(archive.read("record.json")) == record
        assert "| purpose | yearly report |" in archive.read("dossier.md").decode("utf-8")
    (entry,) = ready.book.open().entries()
    assert (entry.state, entry.purpose) == ("confirmed", "for Dr Ruiz: yearly report")
    shown = ready.confirm.handover()
    assert "patients.record.json" in shown
    assert "patients.dossier.zip" in shown
    assert "Give Dr Ruiz the release and its page" in shown
    assert "dpsc-ledger.sqlite" in shown
    for _ in range(3):  # a click that comes late finds the work done
        ready.confirm.spend()
    says(ready, typed_name="patients")
    ready.confirm.spend()
    assert entries(ready) == ["confirmed"]
    ready.confirm.begin_anew()
    assert ready.confirm.to_do == ["Type patients to spend."]
    assert ready.confirm.out().name == "patients-2.dpsc.json"


def test_a_column_that_is_named_like_an_option(ready: CustodianDesk, tmp_path: Path, donors_text: str) -> None:
    header, rows = donors_text.split("\n", 1)
    names = header.split(";")
    says(ready, unit="--wide", time="--periods", outcome="cost")
    ready.data.use_file(dropped(tmp_path, ";".join(["--wide", "--periods", *names[2:]]) + "\n" + rows))
    ready.work.wait()
    says(ready, typed_name="patients")
    for panel in (ready.data.command, ready.confirm.commands):
        assert "--unit=--wide --time=--periods" in commands(panel)[0]
    assert "units in &#39;--wide&#39;, periods in &#39;--periods&#39;" in ready.data.understood()
    ready.confirm.spend()
    ready.work.wait()
    assert (ready.phase, ready.problems) == ("done", {})
    made = Release.load(ready.confirm.folder / "patients.dpsc.json")
    assert (made.n, made.T) == (400, 24)


def test_many_clicks_at_once_book_once(ready: CustodianDesk) -> None:
    clicks = [threading.Thread(target=ready.confirm.spend) for _ in range(8)]
    for click in clicks:
        click.start()
    for click in clicks:
        click.join()
    ready.work.wait()
    assert entries(ready) == ["confirmed"]


NOT_READY = [
    ("typed_name", "Patients"),
    ("typed_name", ""),
    ("recipient", " "),
    ("purpose", ""),
    ("epsilon", "2.5"),
    ("epsilon", "none"),
    ("delta", "0.5"),
    ("periods", "2021-01..2022-06"),
    ("scale", "-1"),
    ("n", "many"),
]


def test_nothing_is_spent_from_a_desk_that_is_not_ready(ready: CustodianDesk) -> None:
    for name, value in NOT_READY:
        good = ready.fields[name]
        says(ready, **{name: value})
        assert ready.confirm.to_do, (name, value)
        ready.confirm.spend()
        assert ready.phase == "open"
        assert not ready.work.what
        says(ready, **{name: good})
        assert ready.confirm.to_do == []
    assert entries(ready) == []


def test_what_is_wrong_with_the_budget_is_said_beside_its_field(ready: CustodianDesk) -> None:
    says(ready, epsilon="2.5")
    assert ready.problems == {
        "epsilon": "Over budget: 'patients' has epsilon 2 left at delta 1e-6; this release takes 0.5 more."
    }
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
    ready.each_donor.use_like(File(series, "clinic.csv"))
    assert set(ready.problems) == {"like_file"}
    assert "clinic.csv: column 'cost' holds text" in ready.problems["like_file"]
    assert ready.confirm.to_do == ["Correct “similar series”, under “Data”."]
    series.write_text("\n".join(["month,cost", *(f"{period},{100 + k % 5}" for k, period in enumerate(PERIODS))]))
    ready.each_donor.use_like(File(series, "clinic.csv"))
    assert ready.problems == {}
    assert "--before 18 --after 6" in commands(ready.budget.commands)[1]
    says(ready, like_before="2022-09")  # all commands then have the same dates
    check, (_, plan, *_), (release,) = (
        commands(panel) for panel in (ready.data.command, ready.budget.commands, ready.confirm.commands)
    )
    for command in (*check, plan, release):
        assert "--periods 2021-01..2022-12" in command
        assert "--target clinic.csv --treatment-time 2022-09" in command
    assert "--before" not in plan


def test_a_budget_that_somebody_else_spent_meanwhile_is_refused(ready: CustodianDesk) -> None:
    algorithm = GramRelease(epsilon=1.99, delta=1e-6)
    book = ready.book.open()
    book.book("patients", **book.terms(algorithm))
    ready.confirm.spend()
    ready.work.wait()
    assert "over budget" in ready.problems["spend"].lower()
    assert entries(ready) == ["booked"]
    assert written(ready) == []
    assert ready.phase == "open"


def test_it_can_be_stopped_until_it_is_booked(ready: CustodianDesk, tmp_path: Path) -> None:
    with held(tmp_path / "dpsc-ledger.sqlite"):
        ready.confirm.spend()
        ready.stop()
    ready.work.wait()
    assert ready.note == "Stopped. Nothing was booked and nothing was written."
    assert (ready.phase, entries(ready), written(ready)) == ("open", [], [])
    assert "Type patients to spend." in ready.confirm.to_do
    says(ready, typed_name="patients")
    ready.confirm.spend()
    ready.work.wait()
    assert entries(ready) == ["confirmed"]


def test_after_the_last_look_it_cannot_be_stopped(ready: CustodianDesk, tmp_path: Path) -> None:
    with held(tmp_path / "dpsc-ledger.sqlite", "IMMEDIATE"):  # others may read, and must wait to book
        ready.confirm.spend()
        until(lambda: ready.work.final)
        ready.stop()
        assert not ready.work.can_be_stopped
        assert "cannot be stopped any more" in ready.under_way()
    ready.end()
    assert (ready.phase, entries(ready)) == ("done", ["confirmed"])


def test_what_fails_after_booking_is_told(ready: CustodianDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Release, path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Release, "save", full)
    ready.confirm.spend()
    ready.work.wait()
    assert entries(ready) == ["failed"]
    assert ready.note == "The release was booked but could not be made: see “Ledger”."
    assert "counts as spent" in ready.book.shown()


def test_a_program_that_was_killed_leaves_a_booking_that_is_explained(ready: CustodianDesk, tmp_path: Path) -> None:
    book, algorithm = ready.book.open(), GramRelease(epsilon=0.5, delta=1e-6)
    for name in ("there.json", "lost.json"):
        book.book("patients", **book.terms(algorithm), output=tmp_path / name)
    (tmp_path / "there.json").write_text("{}")
    ready.book.look()
    shown = ready.book.shown()
    assert shown.count("booked, not confirmed") == 2
    assert "there.json is there. Check it with dpsc inspect" in shown
    assert "before the release was written" in shown
    ready.book.verify()
    assert "the chain is whole" in ready.book.shown()
    assert b"booked" in ready.book.export("csv")
    assert json.loads(ready.book.export("json"))["format"] == "dpsc-ledger"


def test_a_name_that_is_taken_or_elsewhere_is_refused(ready: CustodianDesk) -> None:
    (ready.confirm.folder / "taken.record.json").write_text("keep me")
    for name in ("../elsewhere", ".hidden", "taken", "a/b", "new\nline"):
        says(ready, file_name=name, typed_name="patients")
        ready.confirm.spend()
        ready.work.wait()
        assert "file_name" in ready.problems, name
        assert ready.confirm.to_do == ["Correct “name of the release”, under “Confirm”."]
    assert entries(ready) == []
    assert written(ready) == ["taken.record.json"]


def test_what_rows_alone_show_must_be_said(empty: CustodianDesk, tmp_path: Path, donors_text: str) -> None:
    empty.data.use_file(dropped(tmp_path, donors_text))
    empty.work.wait()
    assert set(empty.problems) == {"periods", "decimal"}
    assert empty.each_donor.outlook() is None  # which is from public numbers only
    assert "NOT READY" in empty.data.understood()
    shown = empty.data.findings()
    assert "PRIVATE: for the custodian only" in shown
    assert '<section class="never">\n<h3>What must NOT be chosen from this view</h3>' in shown
    assert "say “periods” and “mark before decimals” and check again" in shown.lower()
    assert "P000" in empty.data.understood()
    says(empty, periods="2021-01..2022-12", decimal="comma")
    assert "changed since" in empty.data.understood()
    empty.data.check()
    empty.work.wait()
    assert "changed since" not in empty.data.understood()
    assert "READY: nothing" in empty.data.understood()
    assert not (tmp_path / "upload" / "0.csv").exists()  # moved, not copied


def test_what_cells_are_that_several_rows_give_is_said_on_the_page(
    ready: CustodianDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is said the donors are not ready; then check and release both follow it."""
    donors = ready.data.donors
    assert donors is not None
    lines = donors.path.read_text().splitlines()
    donors.path.write_text("\n".join([*lines, lines[1]]) + "\n")
    ready.data.check()
    ready.work.wait()
    assert "1 cell is given by several rows" in ready.data.findings()
    assert ready.confirm.to_do[0] == "Correct what the check found, under “Check”."
    says(ready, repeated="sum")
    assert ready.confirm.to_do[0].startswith("Check again")
    ready.data.check()
    ready.work.wait()
    assert ready.confirm.to_do == []
    opened: list[TableSpec] = []
    monkeypatch.setattr(each_donor, "donors_in", lambda path, spec, *_, **__: opened.append(spec))
    ready.confirm.request()
    assert [spec.repeated for spec in opened] == ["sum"]
    for panel in (ready.data.command, ready.confirm.commands):
        assert "--repeated sum" in commands(panel)[0]


def test_a_bad_file_is_explained_under_its_own_name(empty: CustodianDesk, tmp_path: Path) -> None:
    for text, said in (("", "empty"), ("a,b,c\n1,2,3\n", "not clear which column")):
        empty.data.use_file(dropped(tmp_path, text, "letter.csv"))
        empty.work.wait()
        assert said in str(empty.problems)
        assert "letter.csv" in str(empty.problems)
        assert str(tmp_path) not in str(empty.problems)
    says(empty, path=str(tmp_path / "nothing.csv"))
    empty.data.use_path()
    assert "There is nothing at" in empty.problems["path"]
    assert [path for path in (tmp_path / "private").rglob("*") if path.is_file()] == [empty.data.donors.path]  # type: ignore[union-attr]


def test_a_file_on_this_machine_is_read_where_it_is(empty: CustodianDesk, tmp_path: Path, donors_text: str) -> None:
    place = tmp_path / "donors.csv"
    place.write_text(donors_text)
    says(empty, path=str(place), periods="2021-01..2022-12", decimal="comma")
    empty.data.use_path()
    empty.work.wait()
    assert empty.data.checked is not None
    assert empty.data.checked.seen.ready
    assert list((tmp_path / "private").iterdir()) == []
    assert place.read_text() == donors_text


def test_a_data_set_gets_its_budget_on_the_page(empty: CustodianDesk, tmp_path: Path) -> None:
    assert "There is no ledger at" in empty.budget.gauge()
    says(empty, new_name="patients", new_epsilon="40", new_delta="1e-6")
    empty.budget.enter_dataset()
    assert "protects nobody" in empty.problems["new_epsilon"]
    says(empty, new_epsilon="3", new_delta="0.5")
    empty.budget.enter_dataset()
    assert "new_delta" in empty.problems
    says(empty, new_delta="1e-6")
    command = commands(empty.budget.commands)[0]
    empty.budget.enter_dataset()
    assert empty.book.seen.dataset == "patients"
    assert "new_delta" not in empty.problems
    assert Ledger(tmp_path / "dpsc-ledger.sqlite").dataset("patients").epsilon == 3
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert "Known already" in done.output
    empty.budget.enter_dataset()  # a double click
    assert "new_name" not in empty.problems
    says(empty, epsilon="0,5")
    assert "--epsilon 0.5" in plain(empty.budget.commands())
    says(empty, epsilon="3")
    assert "<dt>left afterwards</dt><dd>nothing" in empty.budget.gauge()
    says(empty, epsilon="1")
    assert empty.book.seen.grid[-1] == 3
    assert "0% of the budget is spent, 33% with this release" in empty.budget.gauge()
    assert '<span class="whole">1e-6</span>' in empty.budget.gauge()  # a browser would end a line after 1e-
    says(empty, new_name="<b>-x")
    assert "&lt;b&gt;-x" in empty.budget.commands()
    assert "<b>" not in empty.budget.commands()


def test_two_numbers_come_from_public_inputs_alone(simulated: None, empty: CustodianDesk) -> None:
    assert "73.1%" in empty.budget.numbers()
    says(empty, n="400", periods="2021-01..2022-12")
    assert empty.data.checked is None
    empty.each_donor.simulations.wait()
    assert "smallest average effect" in empty.budget.numbers()
    seen = []
    for epsilon in ("0.5", "1", "2", "4"):
        says(empty, epsilon=epsilon)
        expected = empty.each_donor.outlook()
        assert expected is not None
        seen.append((expected.guess, -expected.detectable))
    assert seen == sorted(seen)
    assert [effect for _, effect in seen] == sorted(effect for _, effect in seen)  # what one sees never grows


def test_the_budget_page_and_the_command_say_the_same_number_for_averages(
    simulated: None, empty: CustodianDesk
) -> None:
    says(empty, n="400", periods="2021-01..2022-12", averages="1 000")
    empty.each_donor.simulations.wait()
    line = next(line for line in commands(empty.budget.commands) if "dpsc plan" in line)
    assert "--averages 1000" in line
    done = CliRunner().invoke(app, [*shlex.split(line)[1:], "--json"])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["table"]
    expected = empty.each_donor.outlook()
    assert expected is not None
    assert expected.detectable == pytest.approx(row["detectable"])
    shown = empty.budget.numbers()
    assert "a target that averages 1,000 people." in shown
    assert "A first look" not in shown
    for written in ("0", "2.5", "many", "10001"):
        says(empty, averages=written)
        assert set(empty.problems) & {"averages", "epsilon"} == {"averages"}
        assert empty.problems["averages"].startswith("“people that the target averages” must be")
        unknown = empty.each_donor.outlook()
        assert unknown is not None
        assert unknown.detectable is None or unknown.detectable != unknown.detectable
        assert "--averages" not in empty.budget.commands()
        assert "correct how many people the target averages" in empty.budget.numbers()
    says(empty, averages="")
    assert "averages" not in empty.problems
    assert empty.each_donor.averages == 1


def test_each_page_shows_the_command_that_does_the_same(ready: CustodianDesk, tmp_path: Path, donors_text: str) -> None:
    (tmp_path / "patients.csv").write_text(donors_text)
    shown = commands(ready.data.command, ready.budget.commands, ready.confirm.commands, ready.book.commands)
    assert [line.split()[1] for line in shown] == ["check", "ledger", "plan", "release", "ledger", "ledger", "ledger"]
    for line in shown:
        typed = shlex.split(line)
        more = ["--runs", "1"] if typed[1] == "plan" else []  # not hundreds of made-up panels
        done = CliRunner().invoke(app, [*typed[1:], *more])
        assert done.exit_code == 0, (typed, done.output)
    made = Release.load(tmp_path / "out" / "patients.dpsc.json")
    (entry,) = ready.book.open().entries()
    ready.book.look()
    says(ready, typed_name="patients", epsilon="0.5")
    ready.confirm.spend()
    ready.work.wait()
    mine = Release.load(tmp_path / "out" / "patients-2.dpsc.json")
    assert (mine.n, list(mine.times), mine.outcome, mine.datasets) == (
        made.n,
        list(made.times),
        made.outcome,
        made.datasets,
    )
    assert ready.book.open().entries()[1].purpose == entry.purpose == "for Dr Ruiz: yearly report"


def test_a_ledger_that_is_held_for_long_is_told_and_the_page_goes_on(
    ready: CustodianDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsc.web.custodian.book._PATIENCE", 0.05)
    with held(tmp_path / "dpsc-ledger.sqlite"):
        ready.book.look()
        assert "locked by another program" in ready.problems["dataset"]
    ready.book.look()
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


def test_every_field_is_on_the_page_once(empty: CustodianDesk) -> None:
    shown = page()
    for name, field in FIELDS.items():
        assert shown.count(f'id="{name}"') == 1, name
        if name != "protected":  # a group of two, with a legend
            assert shown.count(f'<label for="{name}"') == 1, name
        assert field.label in shown
    for name in empty.panels:
        assert shown.count(f'id="{name}"') == 1, name
    assert rendered(f"add {Parameter('engine', 'memory')}", empty.named) == "add engine='memory'"
    assert (
        rendered(f"a column --periods, say {Parameter('periods')}", empty.named) == "a column --periods, say “periods”"
    )


def test_the_page_that_spends_says_what_was_released_before(ready: CustodianDesk) -> None:
    assert "released on" not in ready.confirm.cost()
    book, make = ready.book.open(), GramRelease(epsilon=1.0, delta=1e-6)
    with book.spending("patients", **book.terms(make)):
        pass
    ready.book.look()
    assert make.guarantee is not None
    (before,) = [line for line in book.would_cost("patients", make.guarantee) if "released on" in line]
    assert f"{before[0].upper()}{before[1:]}." in plain(ready.confirm.cost())
    assert "by all releases together" in ready.confirm.cost()
