"""Each thing happens once per step on the consoles: files opened, rows of the ledger read, questions asked."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dpsc import Ledger, Release
from dpsc.answers.figures.sheet import WIDE
from dpsc.custodian.check import lenient_reader
from dpsc.ledger import schema
from dpsc.release.population import Population
from dpsc.tables import reader
from dpsc.web.analyst import app
from dpsc.web.analyst.desk import AnalystDesk
from dpsc.web.custodian.app import CustodianDesk
from dpsc.web.desk import File
from tests.web.conftest import PERIODS, UNITS

RELEASE = Path(__file__).parent / "wages.dpsc.json"
_watched: list[tuple[str, Counter[str]]] = []


def _opened(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _watched and isinstance(arguments[0], str | bytes):
        folder, found = _watched[-1]
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if path.startswith(folder):
            found[os.path.relpath(path, folder)] += 1


sys.addaudithook(_opened)  # a hook stays for good; without a folder to watch it does nothing


@contextmanager
def opened_in(folder: Path) -> Iterator[Counter[str]]:
    """Count how often each file of a folder is opened."""
    found: Counter[str] = Counter()
    _watched.append((str(folder), found))
    try:
        yield found
    finally:
        _watched.pop()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count calls of what is costly."""
    found: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def counting(*given: Any, **named: Any) -> Any:
            found[name] += 1
            return real(*given, **named)

        monkeypatch.setattr(
            owner, name, staticmethod(counting) if isinstance(vars(owner)[name], classmethod) else counting
        )

    for owner, name in (
        (schema, "rows"),
        (reader, "open_table"),
        (reader, "typed_periods"),
        (lenient_reader, "open_as_text"),
        (Population, "of"),
        (Release, "estimate"),
    ):
        count(owner, name)
    return found


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, donors_text: str) -> CustodianDesk:
    """A custodian's desk that is ready to spend, with everything that can be a file in one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSC_LEDGER", raising=False)
    for name in ("private", "out", "upload"):
        (tmp_path / name).mkdir()
    Ledger(tmp_path / "dpsc-ledger.sqlite", create=True).add_dataset("patients", epsilon=2, delta=1e-6)
    (tmp_path / "donors.csv").write_text(donors_text)
    (tmp_path / "periods.csv").write_text("\n".join(["period", *PERIODS]))
    for name in ("like", "reference"):
        rows = [f"{period};{100 + k % 5}" for k, period in enumerate(PERIODS)]
        (tmp_path / "upload" / f"{name}.csv").write_text("\n".join(["month;cost", *rows]))
    made = CustodianDesk(tmp_path / "private", tmp_path / "out", None)
    for name, value in {
        "periods": str(tmp_path / "periods.csv"),
        "decimal": "comma",
        "recipient": "Dr Ruiz",
        "purpose": "yearly report",
        "path": str(tmp_path / "donors.csv"),
        "typed_name": "patients",
    }.items():
        made.fill(name, value)
    made.each_donor.use_like(File(tmp_path / "upload" / "like.csv", "like.csv"))
    made.each_donor.use_reference(File(tmp_path / "upload" / "reference.csv", "path.csv"))
    made.data.use_path()
    made.work.wait()
    made.each_donor.simulations.wait()
    assert (made.confirm.to_do, made.problems) == ([], {})
    return made


def test_to_draw_the_custodians_panels_nothing_is_read(
    desk: CustodianDesk, tmp_path: Path, calls: Counter[str]
) -> None:
    with opened_in(tmp_path) as opened:
        assert all(isinstance(panel(), str) for panel in desk.panels.values())
    assert not opened
    assert not calls


def test_a_typed_digit_reads_the_ledger_once_and_no_file(
    desk: CustodianDesk, tmp_path: Path, calls: Counter[str]
) -> None:
    with opened_in(tmp_path) as opened:
        desk.fill("epsilon", "0.5")
    assert not opened
    assert calls == {"rows": 1}


def test_what_is_said_about_no_budget_reads_nothing(desk: CustodianDesk, tmp_path: Path, calls: Counter[str]) -> None:
    with opened_in(tmp_path) as opened:
        desk.fill("recipient", "Dr Roy")
        assert desk.version
        assert desk.confirm.to_do == []
    assert not opened
    assert not calls


def test_a_release_reads_the_ledger_for_each_of_its_steps_and_its_own_file_once(
    desk: CustodianDesk, tmp_path: Path, calls: Counter[str]
) -> None:
    with opened_in(tmp_path) as opened:
        desk.confirm.spend()
        desk.work.wait()
    assert desk.phase == "done"
    assert calls["rows"] == 5  # opened, booked, confirmed, told, shown
    assert calls["of"] == 1  # the population of the release that was written, for its page and its record
    assert calls["typed_periods"] == 1
    assert opened["out/donors.dpsc.json"] == 2  # confirmed by its hash, and read for page and record
    calls.clear()
    for panel in desk.panels.values():
        panel()
    assert not calls


def test_people_are_read_when_they_are_checked_and_never_for_a_typed_digit(
    desk: CustodianDesk, tmp_path: Path, calls: Counter[str], visits_text: str
) -> None:
    (tmp_path / "visits.csv").write_text(visits_text)
    (tmp_path / "hospitals.csv").write_text("\n".join(["hospital", *UNITS]))
    columns = {"person": "patient", "unit": "hospital", "time": "month", "outcome": "cost"}
    bounds = {"low": "0", "high": "300", "people": "200", "decimal": "point"}
    for name, value in ({"protected": "person", "units": "hospitals.csv"} | columns | bounds).items():
        desk.fill(name, value)
    desk.fill("path", str(tmp_path / "visits.csv"))
    desk.data.use_path()
    desk.work.wait()
    assert desk.problems == {}
    calls.clear()
    with opened_in(tmp_path) as opened:
        desk.fill("epsilon", "0.5")
        desk.fill("people", "300")
    assert not opened
    assert calls == {"rows": 2}
    with opened_in(tmp_path) as opened:
        assert "noise of a usual cell" in desk.budget.numbers()
        assert all(isinstance(panel(), str) for panel in desk.panels.values())
    assert not opened
    assert calls == {"rows": 2}


def test_the_analyst_asks_once_for_each_date_and_draws_without_reading(tmp_path: Path, calls: Counter[str]) -> None:
    desk = AnalystDesk(tmp_path)
    desk.open_release(File(RELEASE, "wages.dpsc.json"))
    desk.open_other(File(RELEASE, "wages.dpsc.json"))
    with opened_in(tmp_path) as opened:
        desk.paste_target("\n".join(f"{year}\t{year - 1979}" for year in range(1980, 1988)))
    assert opened["pasted.csv"] <= 4  # written, its header, the first line, the rows
    for position in (5, 6, 5):
        desk.choose(position)
    desk.say({}, "dollars")
    assert calls["estimate"] == 4  # two dates, two releases
    with opened_in(tmp_path) as opened:
        for panel in (app.release, app.target, app.answer, app.export, app.comparison):
            assert panel(desk, WIDE)
    assert not opened
    assert calls["estimate"] == 4
