"""People in groups on the custodian's desk: who is protected is asked first, and the rest is what the command does."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpsc import Ledger, PanelRelease, PrivatePanel
from dpsc.cli import app
from dpsc.web.custodian.app import CustodianDesk
from dpsc.web.custodian.each_person import EachPerson
from dpsc.web.desk import File, Reader
from tests.web.conftest import held
from tests.web.test_custodian_desk import commands, entries, plain, says, written

SAID = {
    "person": "patient",
    "unit": "hospital",
    "time": "month",
    "outcome": "cost",
    "units": "North,South,East,West",
    "periods": "2021-01..2021-12",
    "low": "0",
    "high": "300",
    "cells_per_person": "4",
    "people": "200",
    "change": "10",
}


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visits_text: str) -> CustodianDesk:
    """A desk on which only a file of records lies, and that people are protected."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSC_LEDGER", raising=False)
    for name in ("private", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "visits.csv").write_text(visits_text)
    Ledger(tmp_path / "dpsc-ledger.sqlite", create=True).add_dataset("patients", epsilon=3, delta=1e-6)
    made = CustodianDesk(tmp_path / "private", tmp_path / "out", None)
    made.book.look()
    says(made, protected="person", path="visits.csv", recipient="Dr Ruiz", purpose="yearly report")
    made.data.use_path()
    made.work.wait()
    return made


@pytest.fixture
def ready(empty: CustodianDesk) -> CustodianDesk:
    """A desk on which only Spend must be pressed."""
    says(empty, **SAID, typed_name="patients")
    checked(empty)
    assert (empty.confirm.to_do, empty.problems) == ([], {})
    return empty


def checked(desk: CustodianDesk) -> None:
    desk.data.check()
    desk.work.wait()


def test_a_smaller_budget_needs_another_check_and_a_larger_one_does_not(ready: CustodianDesk) -> None:
    """The check says which cells would be missing, and with more noise there are more of them."""
    for epsilon, delta, again in (
        ("2", "1e-6", False),
        ("1", "1e-7", True),
        ("x", "1e-6", False),
        ("0.05", "1e-6", True),
    ):
        says(ready, epsilon=epsilon, delta=delta)
        assert (ready.confirm.to_do[:1] == ["Check again, under “Check”: something was changed since."]) == again
    before = ready.data.findings()
    checked(ready)
    assert ready.data.current
    assert ready.data.findings() != before


def test_the_columns_are_shown_before_anything_is_said(empty: CustodianDesk) -> None:
    assert set(empty.problems) == {"person"}
    assert "“column of people”" in empty.problems["person"]
    shown = empty.data.understood()
    assert "<th>patient</th><th>hospital</th><th>month</th><th>cost</th>" in shown
    assert "Private, stays on this machine" in shown
    assert "READY" not in shown
    assert empty.confirm.to_do[0] == "Check the records, under “Data”."


def test_from_records_to_a_panel_that_is_booked_once(ready: CustodianDesk) -> None:
    assert "people in &#39;patient&#39;, units in &#39;hospital&#39;" in ready.data.understood()
    found = ready.data.findings()
    assert found.count("PRIVATE: for the custodian only") == 2
    assert "People in the cells" in found
    assert "What must NOT be chosen from this view" in found
    ready.confirm.spend()
    ready.work.wait()
    assert (ready.phase, ready.problems) == ("done", {})
    assert written(ready) == ["visits.dossier.zip", "visits.dpsc.html", "visits.dpsc.json", "visits.record.json"]
    (entry,) = ready.book.open().entries()
    assert (entry.state, entry.purpose) == ("confirmed", "for Dr Ruiz: yearly report")
    made = PrivatePanel.load(ready.confirm.folder / "visits.dpsc.json")
    assert (made.units, len(made.times), made.outcome) == (("North", "South", "East", "West"), 12, "cost")
    promise = PanelRelease(epsilon=1, delta=1e-6, bounds=(0, 300), cells_per_person=4).guarantee_for(
        made.blocks[0].rule
    )
    assert made.guarantee == promise
    record = json.loads((ready.confirm.folder / "visits.record.json").read_text())
    assert record["deployment"]["basic"]["intended_use"] == "yearly report"
    assert "each person" in (ready.confirm.folder / "visits.dpsc.html").read_text()
    assert "the records stay with you" in ready.confirm.handover()
    says(ready, typed_name="patients")
    ready.confirm.spend()
    ready.work.wait()
    assert entries(ready) == ["confirmed"]


def test_each_page_shows_the_command_that_does_the_same(ready: CustodianDesk, tmp_path: Path) -> None:
    shown = commands(ready.data.command, ready.budget.commands, ready.confirm.commands)
    assert [line.split()[1] for line in shown] == ["check", "ledger", "plan", "release"]
    for line in shown:
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, (line, done.output)
    made = PrivatePanel.load(tmp_path / "out" / "visits.dpsc.json")
    ready.book.look()
    says(ready, typed_name="patients")
    ready.confirm.spend()
    ready.work.wait()
    assert written(ready) == [
        *("visits-2.dossier.zip", "visits-2.dpsc.html", "visits-2.dpsc.json", "visits-2.record.json"),
        *("visits.dpsc.html", "visits.dpsc.json"),
    ]
    mine = PrivatePanel.load(tmp_path / "out" / "visits-2.dpsc.json")
    (block,), (other,) = mine.blocks, made.blocks
    for name in ("rule", "units", "outcome", "law", "scale", "guarantee", "dataset"):
        assert getattr(block, name) == getattr(other, name), name
    assert list(block.times) == list(other.times)
    first, second = ready.book.open().entries()
    assert (first.purpose, first.promise) == (second.purpose, second.promise)


def test_the_budget_page_and_the_command_say_the_same_noise(ready: CustodianDesk) -> None:
    line = next(line for line in commands(ready.budget.commands) if "dpsc plan" in line)
    done = CliRunner().invoke(app, [*shlex.split(line)[1:], "--json"])
    (row,) = json.loads(done.stdout)["table"]
    assert ready.each_person.expected == pytest.approx(row)
    assert "--periods 2021-01..2021-12 " in line
    shown = ready.budget.numbers()
    assert "73.1%" in shown
    assert f"<strong>{math.ceil(row['fewest_people'])}</strong> How many people a cell needs." in shown
    for said in (
        "noise of a usual cell",
        "The noise divided by the usual change",
        "smallest average effect",
        "A cell with fewer is shown as missing",
    ):
        assert said in shown
    says(ready, change="")
    assert "usual change" not in ready.budget.numbers()
    says(ready, people="")
    assert "say units, periods, bounds and how many people" in ready.budget.numbers()
    says(ready, statistic="count")  # of which no mean is made
    assert "The noise of a usual cell" in ready.budget.numbers()


WRONG = [
    ("person", "", "person"),
    ("person", "nobody", "person"),
    ("person", "hospital", "person"),
    ("unit", "", "unit"),
    ("time", "", "time"),
    ("time", "year", "time"),
    ("outcome", "price", "outcome"),
    ("outcome", "", "outcome"),
    ("units", "", "units"),
    ("units", "North,South", "units"),
    ("periods", "", "periods"),
    ("periods", "2021-13", "periods"),
    ("low", "400", "low"),
    ("low", "", "low"),
    ("high", "much", "high"),
    ("person_bound", "0", "person_bound"),
    ("person_bound", "-3", "person_bound"),
    ("person_bound_quantile", "1", "person_bound_quantile"),
    ("cells_per_period", "0", "cells_per_period"),
    ("cells_per_person", "1.5", "cells_per_person"),
    ("cells_per_person", "none", "cells_per_person"),
]


@pytest.mark.parametrize(("name", "value", "beside"), WRONG)
def test_what_is_wrong_is_said_beside_its_field_and_nothing_is_booked(
    ready: CustodianDesk, name: str, value: str, beside: str
) -> None:
    good = ready.fields[name]
    says(ready, **{name: value})
    checked(ready)
    assert set(ready.problems) == {beside}
    assert "--" not in ready.problems[beside]
    assert ready.confirm.to_do
    ready.confirm.spend()
    assert (ready.phase, ready.work.what, entries(ready), written(ready)) == ("open", "", [], [])
    says(ready, **{name: good})
    checked(ready)
    assert (ready.problems, ready.confirm.to_do) == ({}, [])


def test_what_is_wrong_with_the_budget_is_said_beside_it(ready: CustodianDesk) -> None:
    for name, value, said in (
        ("epsilon", "4", "Over budget: 'patients' has epsilon 3 left"),
        ("epsilon", "30", "protects nobody"),
        ("delta", "0.5", "number of people"),
        ("people", "many", "whole number"),
        ("change", "0", "above 0"),
    ):
        good = ready.fields[name]
        says(ready, **{name: value})
        assert set(ready.problems) == {name}
        assert said in ready.problems[name]
        assert ready.confirm.to_do
        says(ready, **{name: good})
        assert (ready.problems, ready.confirm.to_do) == ({}, [])


def test_what_belongs_to_donors_alone_is_not_used(ready: CustodianDesk, tmp_path: Path) -> None:
    series = tmp_path / "series.csv"
    series.write_text("month,cost\n2021-01,much\n2021-02,more\n")
    ready.each_donor.use_like(File(series, "clinic.csv"))
    says(ready, missing="midpoint", repeated="sum", exclude="North", scale="-1", n="none", averages="0", shape="wide")
    assert (ready.problems, ready.confirm.to_do) == ({}, [])
    shown = " ".join(commands(ready.data.command, ready.budget.commands, ready.confirm.commands))
    for word in ("--missing", "--repeated", "--exclude", "--scale", "--n ", "--averages", "--wide", "--like"):
        assert word not in shown
    says(ready, protected="donor")
    assert {"like_file", "scale", "averages"} <= set(ready.problems)
    assert ready.confirm.to_do[0] == "Check the donors, under “Data”."
    assert "--person" not in ready.confirm.commands()
    says(ready, protected="person")
    assert (ready.problems, ready.confirm.to_do) == ({}, [])


def test_a_bound_on_a_person_may_be_found_privately(ready: CustodianDesk) -> None:
    says(ready, person_bound_quantile="0.5")
    checked(ready)
    assert (ready.problems, ready.confirm.to_do) == ({}, [])
    assert "--person-bound-quantile 0.5" in " ".join(commands(ready.confirm.commands)[0].split())
    assert "quantile" not in ready.budget.commands()
    ready.confirm.spend()
    ready.work.wait()
    (block,) = PrivatePanel.load(ready.confirm.folder / "visits.dpsc.json").blocks
    assert block.lengths is not None
    assert block.lengths.quantile == 0.5
    assert block.rule == block.lengths.bounded(block.rule)
    (entry,) = ready.book.open().entries()
    assert entry.promise["epsilon"] == 1


def test_shares_and_numbers_of_people_have_no_bounds(ready: CustodianDesk) -> None:
    for statistic in ("share", "count"):
        says(ready, statistic=statistic, person_bound="5")
        checked(ready)
        assert ready.problems == {}
        assert "--bounds" not in ready.confirm.commands()
        assert "--person-bound" not in ready.confirm.commands()


def test_units_may_be_in_a_file(ready: CustodianDesk, tmp_path: Path) -> None:
    (tmp_path / "hospitals.txt").write_text("hospital\nNorth\nSouth\nEast\n")
    says(ready, units="hospitals.txt")
    checked(ready)
    assert ready.problems == {}
    assert "--units 3 " in plain(ready.budget.commands())
    assert "--units hospitals.txt" in plain(ready.confirm.commands())
    (tmp_path / "empty.txt").write_text("hospital\n")
    says(ready, units="empty.txt")
    assert "no rows" in ready.problems["units"]


def test_records_are_looked_at_in_a_process_of_their_own(ready: CustodianDesk) -> None:
    before = ready.data.findings()
    ready.reader = Reader()
    try:
        checked(ready)
        assert ready.data.findings() == before
    finally:
        ready.reader.end()


def test_cells_without_enough_people_are_told_before_anything_is_booked(ready: CustodianDesk) -> None:
    says(ready, epsilon="0.01")
    checked(ready)
    assert "48 of 48 cells have fewer than" in ready.data.findings()
    assert set(ready.problems) == {"epsilon"}
    assert "A usual cell of 200 people would be missing" in ready.problems["epsilon"]
    assert ready.confirm.to_do[0] == "Correct what the check found, under “Check”."
    says(ready, epsilon="1", people="20")
    assert "A usual cell of 20 people would be missing" in ready.problems["epsilon"]


def test_it_can_be_stopped_until_it_is_booked(ready: CustodianDesk, tmp_path: Path) -> None:
    with held(tmp_path / "dpsc-ledger.sqlite"):
        ready.confirm.spend()
        ready.stop()
    ready.work.wait()
    assert ready.note == "Stopped. Nothing was booked and nothing was written."
    assert (ready.phase, entries(ready), written(ready)) == ("open", [], [])


def test_nothing_is_asked_of_the_records_for_the_numbers_of_the_budget(empty: CustodianDesk) -> None:
    says(empty, **SAID)
    assert empty.data.checked is None
    assert isinstance(empty.kind, EachPerson)
    assert empty.kind.expected is not None
    before = empty.budget.numbers()
    checked(empty)
    assert empty.budget.numbers() == before
