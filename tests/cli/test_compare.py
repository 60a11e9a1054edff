"""Answers side by side, and releases added up: through the commands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dpsc import Release
from tests.cli.conftest import quick

COLUMNS = ("--unit", "who", "--time", "month", "--outcome", "cost")


def release(donors: Path, out: Path, epsilon: float = 1.0) -> None:
    code, _, err = quick(
        "release", "--no-ledger", donors, *COLUMNS, "--epsilon", epsilon, "--delta", 1e-6, "--scale", 3, "-o", out
    )
    assert code == 0, err


@pytest.fixture(scope="module")
def made(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases with two budgets, and an answer from each."""
    folder = tmp_path_factory.mktemp("compared")
    shutil.copytree(written, folder, dirs_exist_ok=True)
    for name, epsilon in (("low", 1.0), ("high", 4.0)):
        release(folder / "donors.csv", folder / f"{name}.dpsc.json", epsilon)
        out = folder / name / "result.json"
        code, _, err = quick("estimate", folder / f"{name}.dpsc.json", folder / "target.csv", "--treatment-time",
                             "2021-03", "-o", out)  # fmt: skip
        assert code == 0, err
    return folder


@pytest.fixture
def files(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


def compared(*arguments: object) -> Any:
    code, out, err = quick("compare", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_two_budgets_are_compared(files: Path) -> None:
    code, out, err = quick("compare", files / "low" / "result.json", files / "high", "-o", files / "both")
    assert code == 0, err
    shown = " ".join(out.split())
    assert "The answers differ in their release and budget." in shown
    assert "ε = 1, δ = 1e-06" in shown
    assert {file.name for file in (files / "both").iterdir()} == {
        f"comparison.{ending}" for ending in ("html", "png", "svg", "csv", "json")
    }
    page = (files / "both" / "comparison.html").read_text("utf-8")
    assert "What differs" in page
    assert "dpsc compare" in page
    document = json.loads((files / "both" / "comparison.json").read_text("utf-8"))
    numbers = {name: json.loads((files / name / "result.json").read_text("utf-8")) for name in ("low", "high")}
    for row in document["answers"]:
        assert row["average effect"] == numbers[row["answer"]]["average_effect"]
        assert [row["from"], row["to"]] == numbers[row["answer"]]["average_effect_interval"]


def test_what_differs_is_said(files: Path) -> None:
    answers = {"same": (), "level": ("--level", 0.9), "earlier": (), "euros": ("--units", "euros")}
    answers |= {"cents": ("--units", "cents")}
    for name, options in answers.items():
        date = "2021-01" if name == "earlier" else "2021-03"
        code, _, err = quick("estimate", files / "low.dpsc.json", files / "target.csv", "--treatment-time", date,
                             *options, "-o", files / name / "result.json")  # fmt: skip
        assert code == 0, err
    low = files / "low"
    assert compared(low, files / "same")["differ_in"] == []
    assert compared(low, files / "level")["differ_in"] == ["level"]
    assert compared(low, files / "euros")["differ_in"] == []  # one does not say its units
    code, _, err = quick("compare", low, files / "euros", "-o", files / "units.svg")
    assert (code, err) == (0, "")
    assert "The outcomes differ" not in (files / "units.svg").read_text("utf-8")
    assert compared(files / "cents", files / "euros")["says"].endswith("compare percentages, not sizes.")
    assert compared(low, files / "earlier")["differ_in"] == ["first treated period"]
    assert compared(low, files / "high", files / "earlier")["differ_in"] == [
        "first treated period",
        "release",
        "budget",
    ]


def test_studies_and_answers_without_privacy_are_compared(files: Path) -> None:
    target = (files / "target.csv").read_text("utf-8").splitlines()
    rows = [f"{line},clinic,2021-03" for line in target[1:]]
    (files / "regions.csv").write_text("\n".join([f"{target[0]},who,start", *rows]) + "\n")
    code, _, err = quick("estimate", files / "low.dpsc.json", files / "regions.csv", "--unit", "who",
                         "--treatment-time-column", "start", "-o", files / "study.json")  # fmt: skip
    assert code == 0, err
    fit = (
        "fit",
        "--no-ledger",
        files / "panel.csv",
        *COLUMNS,
        "--treated-unit",
        "clinic",
        "--treatment-time",
        "2021-03",
    )
    code, _, err = quick(*fit, "--method", "nonprivate", "--bounds", -10, 60, "-o", files / "raw.json")  # fmt: skip
    assert code == 0, err
    three = (files / "study.json", files / "raw.json", files / "low")
    compared(*three, "-o", files / "c.md")
    assert "\n## What differs\n" in (files / "c.md").read_text("utf-8")
    document = compared(*three, "-o", files / "c.html")
    assert [row["budget"] for row in document["answers"]] == ["ε = 1, δ = 1e-06", "NOT PRIVATE", "ε = 1, δ = 1e-06"]
    assert document["answers"][0]["target"] == "1 units"
    assert document["answers"][0]["average effect"] == pytest.approx(document["answers"][2]["average effect"])
    assert "NOT PRIVATE" in (files / "c.html").read_text("utf-8")


@pytest.mark.parametrize("ending", ["png", "svg", "csv", "xlsx"])
def test_a_comparison_is_written_as_its_ending_says(files: Path, ending: str) -> None:
    out = files / f"c.{ending}"
    code, _, err = quick("compare", files / "low", files / "high", "-o", out)
    assert code == 0, err
    first = {"png": b"\x89PNG", "svg": b"<?xml", "csv": b'"answer",', "xlsx": b"PK"}[ending]
    assert out.read_bytes().startswith(first)


def test_what_is_no_answer_is_refused(files: Path) -> None:
    good = files / "low" / "result.json"
    document = json.loads(good.read_text("utf-8"))
    bad = {
        "text": "not json", "list": "[]", "empty": "{}", "deep": "[" * 100_000,
        "number": json.dumps(document | {"average_effect": "1"}),
        "infinite": json.dumps(document | {"average_effect": float("inf")}),
        "interval": json.dumps(document | {"average_effect_interval": [1]}),
        "periods": json.dumps(document | {"periods": [1]}),
        "guarantee": json.dumps(document | {"guarantee": {"epsilon": None}}),
        "grade": json.dumps(document | {"verdict": {"grade": "[red]"}}),
    }  # fmt: skip
    for name, text in bad.items():
        (files / f"{name}.json").write_text(text)
        code, _, err = quick("compare", good, files / f"{name}.json")
        assert code == 2, name
        assert "name the result.json of dpsc estimate" in err, name
    for arguments, said in (((good,), "at least two"), ((good, good), "named twice"), ((good, files / "no"), "cannot")):
        code, _, err = quick("compare", *arguments)
        assert code == 2
        assert said in err
    code, _, err = quick("compare", good, files / "high", "-o", good, "--force")
    assert code == 2
    assert "is read by this command" in err


def test_releases_of_different_donors_are_added_up(files: Path) -> None:
    lines = (files / "donors.csv").read_text("utf-8").splitlines()
    middle = 1 + 18 * 200
    for name, rows in (("a", lines[1:middle]), ("b", lines[middle:])):
        (files / f"{name}.csv").write_text("\n".join([lines[0], *rows]) + "\n")
        release(files / f"{name}.csv", files / f"{name}.dpsc.json")
    one, other, out = (files / f"{name}.dpsc.json" for name in ("a", "b", "merged"))
    code, _, err = quick("merge", one, other, "-o", out)
    assert code == 2
    assert "--disjoint if no donor is in two of them" in " ".join(err.split())
    assert not out.exists()
    code, shown, err = quick("merge", one, other, "--disjoint", "-o", out, "--json")
    assert (code, err) == (0, "")
    assert json.loads(shown)["donors"] == 400
    merged = Release.load(out)
    assert (merged.n, merged.sites) == (400, 2)
    assert merged.matrix.tolist() == (Release.load(one).matrix + Release.load(other).matrix).tolist()
    code, shown, err = quick("merge", one, other, "--disjoint", "-o", out, "--force")
    assert (code, err) == (0, "")
    assert "from 2 sites" in " ".join(shown.split())
    for arguments, said in (
        ((one, one), "given twice"),
        ((one,), "at least two"),
        ((one, files / "low"), "cannot read"),
    ):
        code, _, err = quick("merge", *arguments, "--disjoint", "-o", files / "new.json")
        assert code == 2
        assert said in err
    assert quick("merge", one, other, "--disjoint", "--force", "-o", one)[0] == 2
