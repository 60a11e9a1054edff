"""From a semicolon CSV of late-joining patients to a report: the commands of docs/custodian-path.md, as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import Ledger, Release
from dpsc.data.examination import MARK
from tests.cli.conftest import quick
from tests.test_docs import ROOT

N, T, T0 = 600, 36, 27
MONTHS = [f"{day:%d.%m.%Y}" for day in pd.date_range("2021-01-31", periods=T, freq="ME")]


def commands() -> list[list[str]]:
    """Return the commands of the page, without ``dpsc``."""
    page = (ROOT / "docs" / "custodian-path.md").read_text("utf-8")
    blocks = "".join(re.findall(r"```console\n(.*?)```", page, flags=re.DOTALL)).replace("\\\n", " ")
    return [shlex.split(line.removeprefix("$ dpsc ")) for line in blocks.splitlines() if line.startswith("$ dpsc ")]


def patients_and_clinic() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Costs that follow two common factors; a third of the patients joins late; the clinic is an average of forty."""
    rng = np.random.default_rng(8)
    factors = np.cumsum(rng.normal(size=(2, T)), axis=1)
    paths = 300 + 10 * rng.normal(size=(N + 40, 2)) @ factors + 8 * rng.normal(size=(N + 40, T))
    paths += 5 * factors[0]
    clinic = paths[N:].mean(axis=0)
    clinic[T0:] -= 30
    joined = np.where(rng.random(N) < 1 / 3, rng.integers(1, 20, N), 0)
    rows = [
        (f"Patient {i}", month, paths[i, t].round(2))
        for i in range(N)
        for t, month in enumerate(MONTHS)
        if t >= joined[i]
    ]
    return (
        pd.DataFrame(rows, columns=["patient", "month", "cost"]),
        pd.DataFrame({"month": MONTHS, "cost": clinic.round(2)}),
    )


def spreadsheet(table: pd.DataFrame, path: Path) -> None:
    table.to_csv(path, index=False, sep=";", decimal=",")


def test_the_whole_path_as_the_page_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    patients, clinic = patients_and_clinic()
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
