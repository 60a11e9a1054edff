"""From a semicolon CSV of late-joining patients to a report: the commands of docs/custodian-path.md, as they stand."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pandas as pd
import pytest

from dpsc import Ledger, Release
from dpsc.data.examination import MARK
from tests.cli.conftest import quick
from tests.pages import ROOT

PRACTICE = runpy.run_path(str(ROOT / "docs" / "practice.py"))  # the reader's own files
N, spreadsheet = PRACTICE["N"], PRACTICE["spreadsheet"]


def commands() -> list[list[str]]:
    """Return the commands of the page, without ``dpsc``."""
    page = (ROOT / "docs" / "custodian-path.md").read_text("utf-8")
    blocks = "".join(re.findall(r"```console\n(.*?)```", page, flags=re.DOTALL)).replace("\\\n", " ")
    return [shlex.split(line.removeprefix("$ dpsc ")) for line in blocks.splitlines() if line.startswith("$ dpsc ")]


def test_the_whole_path_as_the_page_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tables = PRACTICE["tables"]()
    patients, clinic = tables["patients"], tables["clinic"]
    spreadsheet(clinic, tmp_path / "clinic.csv")
    wrong = patients.astype({"cost": object})
    wrong.loc[40, "cost"] = "see file"
    wrong.loc[80, "patient"] = str(wrong.loc[80, "patient"]).upper()
    spreadsheet(pd.concat([wrong, wrong.iloc[[3]]]), tmp_path / "patients.csv")

    first, again, plan, init, dry, release, inspect, estimate = commands()
    code, out, err = quick(*first)
    assert (code, err) == (1, "")
    said = " ".join(out.split())
    for problem in ("NOT READY: 4 things", "line 42 (", "says 'see file'", "another row has", "differ only in case"):
        assert problem in said
    spreadsheet(patients, tmp_path / "patients.csv")
    assert [word for word in again if word in first] == first
    assert set(again) - set(first) == {"--periods", "2021-01..2023-12", "--decimal", "comma"}  # said, not read off
    code, out, err = quick(*again)
    assert (code, err) == (0, "")
    assert f"{N:,} units" in out
    assert "joined late" in out
    printed = [shlex.split(line)[1:] for line in out.replace("\\\n", " ").splitlines() if line.startswith("  dpsc ")]
    assert printed == [init, release]  # what the rehearsal prints is what the page shows
    assert dry == [*release, "--dry-run"]

    made = tmp_path / "patients.dpsc.json"
    for command, words in (
        (plan, "Smallest effect seen"),
        (init, "patients"),
        (dry, "DRY RUN"),
        (release, "Written to patients.dpsc.json"),
        (inspect, "declared beforehand"),
        (estimate, "report.html"),
    ):
        assert made.exists() is (command in (inspect, estimate))
        code, out, err = quick(*command)
        assert code == 0, (command, err)
        assert words in out, command
        assert MARK not in out + err
    assert Release.load(made).n == N
    assert [entry.state for entry in Ledger("dpsc-ledger.sqlite").entries("patients")] == ["confirmed"]
    assert "Without the intervention, cost would have averaged" in (tmp_path / "report.html").read_text("utf-8")
