"""From a CSV to an answer through the installed command; the numbers in the outputs, not only the files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, Panel, Release, SyntheticControl
from dpsc.custodian.gram.algorithm import CustodianSum
from dpsc.custodian.gram.sources import FileDonors
from tests.cli.conftest import EFFECT, FOUND, T0, H, N, but_progress, dpsc, months, quick, shown
from tests.making import save

pytestmark = pytest.mark.end_to_end
COLUMNS = ("--unit", "who", "--time", "month", "--outcome", "cost")
FIGURES = {"path.png", "path.svg", "gaps.png", "gaps.svg"}
OUTPUTS = {"result.json", "counterfactual.csv", "reporting.md", "report.html", *FIGURES}


def test_a_custodian_releases_and_an_analyst_estimates(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    released = dpsc(
        "release", "donors.csv", *COLUMNS, "--epsilon", 1, "--delta", 1e-6, "-o", "r.json", "--no-ledger", cwd=files
    )
    assert released.returncode == 0, released.stderr
    assert but_progress(released.stderr) == ""
    assert "(1, 1e-06)-differential privacy" in " ".join(released.stdout.split())
    assert (files / "r.json").stat().st_mode & 0o777 == 0o644
    release = Release.load(files / "r.json")
    assert (release.n, release.T, release.outcome) == (N, T0 + H, "cost")

    asked = ("estimate", "r.json", "target.csv", "--treatment-time", "2021-03-01", "--units", "dollars", "-o", "answer")
    code, _, err = quick(*asked)
    assert (code, err) == (0, "")
    folder = files / "answer"
    assert {file.name for file in folder.iterdir()} == OUTPUTS

    target = pd.read_csv(files / "target.csv")
    expected = release.estimate(target["cost"].to_numpy(), pd.Timestamp("2021-03-01"))
    result = json.loads((folder / "result.json").read_text("utf-8"))
    assert result["private"] is True
    assert result["guarantee"]["epsilon"] == 1
    assert result["average_effect"] == pytest.approx(expected.att)
    assert result["average_effect"] == pytest.approx(FOUND, abs=1.0)
    assert result["average_effect_interval"] == pytest.approx(list(expected.att_interval()))
    table = pd.read_csv(folder / "counterfactual.csv")
    assert table["month"].tolist() == shown()[T0:]
    np.testing.assert_allclose(table["counterfactual"], expected.counterfactual)
    np.testing.assert_allclose(table["counterfactual_lower"], expected.interval()["lower"])
    assert [row["gap"] for row in result["periods"]] == pytest.approx(table["gap"].tolist())
    page = (folder / "report.html").read_text("utf-8")
    assert "dollars" in page
    assert "dpsc estimate r.json target.csv" in page


def test_an_answer_can_be_read_by_a_program_alone(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)

    def answer(*arguments: object) -> Any:
        code, out, err = quick(*arguments, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    described = answer(
        "release", "donors.csv", *COLUMNS, "--epsilon", 1, "--delta", 1e-6, "--no-ledger", "-o", "r.json"
    )
    assert described["donors"] == N
    assert described["periods"] == shown()
    assert described["holes"] == []
    assert answer("estimate", "r.json", "target.csv", "--treatment-time", "2021-03")["treatment_time"] == "2021-03"
    assert answer("inspect", "r.json")["guarantee"]["delta"] == 1e-6
    assert len(answer("plan", "--n", 50, "--before", 5, "--after", 2, "--epsilon", 1, "--runs", 2)["table"]) == 1


@pytest.mark.parametrize("method", ["gram", "output", "objective", "nonprivate"])
def test_fit_does_both_roles_in_one_step(files: Path, method: str) -> None:
    private = [] if method == "nonprivate" else ["--epsilon", 10, "--delta", 1e-6]
    bounds = [] if method == "gram" else ["--bounds", -10, 60]
    written = "result.json" if method in ("output", "objective") else ""  # else a folder with page and figures
    code, out, _ = quick(
        "fit", "--no-ledger",
        files / "panel.csv", *COLUMNS, "--treated-unit", "clinic", "--treatment-time", "2021-03-01",
        "--method", method, *private, *bounds, "-o", files / "fit" / written,
    )  # fmt: skip
    assert code == 0
    result = json.loads((files / "fit" / "result.json").read_text("utf-8"))
    assert result["private"] is (method != "nonprivate")
    assert len(result["periods"]) == H
    assert ("NOT PRIVATE" in out) is (method == "nonprivate")
    if not written:
        page = (files / "fit" / "report.html").read_text("utf-8")
        assert ("NOT PRIVATE" in page) is (method == "nonprivate")
    assert (files / "fit" / "release.dpsc.json").exists() is (method == "gram")
    df = pd.read_csv(files / "panel.csv", parse_dates=["month"])
    panel = Panel.from_long(
        df, unit="who", time="month", outcome="cost", treated_unit="clinic",
        treatment_time=pd.Timestamp("2021-03-01"), bounds=(-10, 60),
    )  # fmt: skip
    without_privacy = SyntheticControl().fit(panel).att
    assert without_privacy == pytest.approx(EFFECT, abs=0.5)
    assert without_privacy == pytest.approx(FOUND, abs=0.01)
    if method == "gram":
        assert result["average_effect"] == pytest.approx(without_privacy, abs=0.8)
        assert result["verdict"]["grade"] == "yes"
        assert Release.load(files / "fit" / "release.dpsc.json").n == N
    if method == "nonprivate":
        assert result["average_effect"] == pytest.approx(without_privacy)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "feather", "wide.csv", "wide.parquet"])
def test_every_kind_of_file_gives_the_same_donors(files: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []
    real = GramRelease.custodian_sum

    def recording(self: GramRelease, donors: FileDonors, **options: Any) -> CustodianSum:
        seen.append(donors.files.matrix().values)
        assert [str(time) for time in donors.times] == shown()
        return real(self, donors, **options)

    monkeypatch.setattr(GramRelease, "custodian_sum", recording)
    table = pd.read_csv(files / "donors.csv")
    columns: tuple[str, ...] = COLUMNS
    if kind.startswith("wide"):
        table = table.pivot(index="who", columns="month", values="cost").reset_index()
        table = table.set_index("who").loc[pd.read_csv(files / "donors.csv")["who"].unique()].reset_index()
        columns = ("--wide", "--unit", "who")
    path = files / f"other.{kind}"
    save(table, path)
    code, _, err = quick(
        "release", "--no-ledger", path, *columns, "--epsilon", 1, "--delta", 1e-6, "-o", files / "r.json"
    )
    assert code == 0, err
    as_csv = pd.read_csv(files / "donors.csv")["cost"].to_numpy().reshape(N, T0 + H)
    np.testing.assert_array_equal(seen[0], as_csv)


def test_the_treated_unit_can_be_left_out_and_a_reference_subtracted(files: Path) -> None:
    reference = pd.DataFrame({"month": months(), "index": np.linspace(1, 2, T0 + H)})
    reference.to_csv(files / "reference.csv", index=False)
    code, _, err = quick(
        "release", "--no-ledger",
        files / "panel.csv", *COLUMNS, "--exclude", "clinic", "--reference", files / "reference.csv",
        "--smoothness", "mild", "--epsilon", 1, "--delta", 1e-6, "-o", files / "r.json",
    )  # fmt: skip
    assert code == 0, err
    release = Release.load(files / "r.json")
    assert release.n == N
    assert release.kernel.phi == 0.9
    np.testing.assert_allclose(release.reference, reference["index"])  # type: ignore[arg-type]


def test_a_fit_answers_at_the_level_that_is_asked_for(files: Path) -> None:
    code, _, err = quick(
        "fit", "--no-ledger",
        files / "panel.csv", *COLUMNS, "--treated-unit", "clinic", "--treatment-time", "2021-03-01",
        "--epsilon", 1, "--delta", 1e-6, "--level", 0.9, "-o", files / "fit.json",
    )  # fmt: skip
    assert code == 0, err
    result = json.loads((files / "fit.json").read_text("utf-8"))
    assert result["level"] == 0.9
    assert result["average_effect"] == pytest.approx(EFFECT, abs=1.5)


def test_a_plan_leaves_curves_and_tells_the_budget_for_an_error(files: Path) -> None:
    code, out, err = quick(
        "plan", "--n", 100, "--before", T0, "--after", H, "--target", files / "target.csv",
        "--error", 50, "--runs", 2, "-o", files / "plan",
    )  # fmt: skip
    assert code == 0, err
    assert "An error of 50: ε = 0.1 is likely enough with 100 donors" in " ".join(out.split())
    assert "something new hits target and donors alike" in " ".join(out.split())
    table = pd.read_csv(files / "plan" / "plan.csv")
    assert table["epsilon"].tolist() == [0.1, 0.5, 1.0, 2.0, 4.0]  # those that the search came to
    assert {"error", "error_in_shock", "without_privacy_in_shock", "last_value_in_shock"} <= set(table.columns)
    assert (files / "plan" / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_the_shell_can_complete_the_commands() -> None:
    asked = {"_DPSC_COMPLETE": "complete_bash", "COMP_WORDS": "dpsc re", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "dpsc"], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["release", "reproduce"]


@pytest.mark.parametrize("engine", ["memory", "stream", "dask"])
def test_every_engine_makes_a_release(files: Path, engine: str) -> None:
    arguments = (
        "release",
        files / "donors.csv",
        *COLUMNS,
        "--epsilon",
        1,
        "--delta",
        1e-6,
        "-o",
        files / "r.json",
        "--no-ledger",
    )
    if engine == "dask":  # it starts processes, and so needs one of its own
        done = dpsc(*arguments, "--engine", engine, "--workers", 1)
        code, err = done.returncode, but_progress(done.stderr)
    else:
        code, _, err = quick(*arguments, "--engine", engine)
    assert (code, err) == (0, "")
    release = Release.load(files / "r.json")
    assert (release.n, release.T, release.outcome) == (N, T0 + H, "cost")
    assert [str(time) for time in release.times] == shown()
    target = pd.read_csv(files / "target.csv")["cost"].to_numpy()
    assert release.estimate(target, pd.Timestamp("2021-03-01")).att == pytest.approx(FOUND, abs=1.0)


def test_units_that_look_alike_are_told_to_the_custodian_who_asks(files: Path) -> None:
    table = pd.read_csv(files / "donors.csv")
    one, other = table["who"].unique()[:2]
    table.assign(who=table["who"].replace({other: f" {one.upper()}"})).to_csv(files / "alike.csv", index=False)
    arguments = [
        "release",
        "--no-ledger",
        files / "alike.csv",
        *COLUMNS,
        "--epsilon",
        1,
        "--delta",
        1e-6,
        "--force",
        "-o",
    ]
    code, out, err = quick(*arguments, files / "r.json")
    assert code == 0, err
    assert "PRIVATE" not in out + err
    code, out, err = quick(*arguments, files / "r.json", "--custodian-notes")
    assert code == 0, err
    assert "PRIVATE, for the custodian only: 2 units have labels" in err
    assert "PRIVATE" not in out
    assert one.upper() not in out + err


def test_custodian_and_analyst_write_months_in_their_own_ways(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The custodian's table lacks a month, which is said; the analyst's goes beyond the release, which is noted."""
    monkeypatch.chdir(files)
    target = pd.read_csv("target.csv")
    months = pd.to_datetime(target["month"]) + pd.offsets.MonthEnd(0)
    target["month"] = months.dt.strftime("%d/%m/%Y")
    beyond = pd.DataFrame({"month": ["31/07/2021"], "cost": [5.0]})
    pd.concat([target, beyond]).to_csv("european.csv", index=False)
    donors = pd.read_csv("donors.csv")
    donors["month"] = pd.to_datetime(donors["month"]).dt.strftime("%b %Y")
    donors[donors["month"] != "May 2020"].to_csv("names.csv", index=False)
    hole = "2020-05 is missing between 2020-04 and 2020-06"
    code, out, err = quick(
        "release", "--no-ledger", "names.csv", *COLUMNS, "--epsilon", 1, "--delta", 1e-6, "-o", "r.json"
    )
    assert code == 0, err
    assert "2020-01 to 2021-06" in out
    assert hole in " ".join(out.replace("│", " ").split())
    assert json.loads(quick("inspect", "r.json", "--json")[1])["holes"] == [hole]
    asked = ("estimate", "r.json", "european.csv", "--treatment-time")
    for typed in ("March 2021", "31/03/2021", "2021-03-15", "202103"):
        code, out, err = quick(*asked, typed, "-o", "answer.csv", "--force")
        assert code == 0, err
        assert Path("answer.csv").read_text("utf-8").splitlines()[1].startswith('"2021-03",')
    answer = json.loads(quick(*asked, "March 2021", "--json")[1])
    assert answer["treatment_time"] == "2021-03"
    assert answer["notes"] == [
        f"in the release, {hole}",
        "the target's 2020-05, which the release does not have, is left out",
        "the target's 2021-07, after the release ends, is left out",
    ]
