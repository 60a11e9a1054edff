"""From a semicolon CSV to a report: the commands of docs/tutorials/from-csv-to-report.md, as they stand."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from dpsc import Ledger, Release
from dpsc.custodian.check.examine import MARK
from tests import pages
from tests.cli.conftest import quick
from tests.pages import ROOT
from tests.soak import quick_or_long


def test_the_whole_path_as_the_page_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    pages.prepare()
    _, *steps = pages.steps((ROOT / "docs" / "tutorials" / "from-csv-to-report.md").read_text("utf-8"))
    first, again, plan, init, dry, release, inspect, estimate = (shlex.split(step.source)[1:] for step in steps)
    outputs = []
    made = tmp_path / "patients.dpsc.json"
    for step in steps:
        command = shlex.split(step.source)[1:]
        assert made.exists() is (command in (inspect, estimate))
        fewer = command == plan and quick_or_long(True, False)  # not hundreds of made-up panels
        code, out, err = quick(*command, *(["--runs", "1"] if fewer else []))
        assert code == (1 if command == first else 0), (command, err)
        assert fewer or pages.missing_line(step.shown, out) is None, out
        assert (MARK in out + err) is (command in (first, again))
        outputs.append(out)

    assert set(again) - set(first) == {"patients.csv", "--periods", "2021-01..2023-12", "--decimal", "comma"}
    out = outputs[1].replace("\\\n", " ")
    printed = [shlex.split(line)[1:] for line in out.splitlines() if line.startswith("  dpsc ")]
    assert printed == [init, release]  # what the rehearsal prints is what the page shows
    assert dry == [*release, "--dry-run"]
    assert "Smallest effect seen" in outputs[2]
    assert "declared beforehand" in outputs[6]
    assert Release.load(made).n == 600
    assert [entry.state for entry in Ledger("dpsc-ledger.sqlite").entries("patients")] == ["confirmed"]
    assert "Without the intervention, cost would have averaged" in (tmp_path / "report.html").read_text("utf-8")
