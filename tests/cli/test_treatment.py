"""Treatments that end, spells, periods left out and what an effect is worth, through the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

from dpsc import PrivatePanel, Release
from tests.cli.conftest import EFFECT, FOUND, T0, months, quick

READ = ("--time", "month", "--outcome", "cost")
FIRST, LAST = months()[T0][:7], months()[T0 + 1][:7]
WORTH = ("--value-per-unit", 2.5, "--cost", 3, "--currency", "EUR")


@pytest.fixture(scope="module")
def made(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release; a target whose treatment is on, off and on; and two units, each with its own end."""
    folder = tmp_path_factory.mktemp("treatment")
    shutil.copytree(written, folder, dirs_exist_ok=True)
    columns = ("--unit", "who", *READ)
    code, _, err = quick("release", folder / "donors.csv", *columns, "--epsilon", 4, "--delta", 1e-6, "--scale", 3,
                         "--no-ledger", "-o", folder / "r.json")  # fmt: skip
    assert code == 0, err
    target = pd.read_csv(folder / "target.csv")
    target["on"] = [0] * T0 + [1, 1, 0, 1]
    target["cost"] -= np.r_[np.zeros(T0 + 2), EFFECT, 0.0]
    target.to_csv(folder / "spells.csv", index=False)
    units = [
        target.assign(region=name, start=FIRST if starts else "", end=end, on=target["on"] * starts)
        for name, starts, end in (("north", 1, LAST), ("south", 1, ""), ("west", 0, ""))
    ]
    pd.concat(units).to_csv(folder / "regions.csv", index=False)
    return folder


@pytest.fixture
def files(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


def answered(files: Path, *arguments: object) -> dict[str, Any]:
    code, out, err = quick("estimate", files / "r.json", *arguments, "--json")
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def test_the_command_says_what_python_says(files: Path) -> None:
    said = ("--treatment-time", FIRST, "--gap", 1, *WORTH)
    found = answered(files, files / "spells.csv", *READ, *said, "--until", LAST)
    target = pd.read_csv(files / "spells.csv").set_index("month")["cost"]
    expected = Release.load(files / "r.json").estimate(
        target, FIRST, treatment_end=LAST, gap=1, value_per_unit=2.5, cost=3.0, currency="EUR"
    )
    assert found["average_effect"] == pytest.approx(expected.att)
    assert list(found["treatment"].values()) == ["left out", "on", "off", "off"]
    rows = expected.contrasts()
    assert [row["of"] for row in found["contrasts"]["rows"]] == list(rows.index)
    assert [row["effect"] for row in found["contrasts"]["rows"]] == pytest.approx(list(rows["effect"]))
    worth = {row["of"]: row["effect"] for row in found["worth"]["rows"]}
    assert worth == pytest.approx(expected.worth()["effect"].to_dict())
    assert found["paragraph"] == expected.paragraph()
    assert (
        answered(files, files / "spells.csv", *READ, *said, "--treatment-end", LAST)["paragraph"] == found["paragraph"]
    )


def test_a_column_says_when_the_treatment_is_on(files: Path) -> None:
    """The columns of periods and of numbers need not be named beside it."""
    found = answered(files, files / "spells.csv", "--treated-column", "on")
    assert found["average_effect"] == pytest.approx(FOUND, abs=1.5)
    assert [row["treatment"] for row in found["periods"]] == ["on", "on", "off", "on"]
    assert found["average_effect"] == pytest.approx(
        np.mean([row["gap"] for row in found["periods"] if row["treatment"] == "on"])
    )
    study = answered(files, files / "regions.csv", *READ, "--unit", "region", "--treated-column", "on")
    assert study["by_unit"][0]["effect"] == pytest.approx(found["average_effect"])
    assert study["never_treated"] == ["west"]


def test_units_have_ends_of_their_own_in_a_column(files: Path) -> None:
    said = (*READ, "--unit", "region", "--treatment-time-column", "start")
    study = answered(files, files / "regions.csv", *said, "--treatment-end-column", "end", *WORTH)
    assert [(row["treatment_end"], row["periods"]) for row in study["by_unit"]] == [(LAST, 2), (None, 4)]
    assert len(study["worth"]["rows"]) == 4
    for_all = answered(files, files / "regions.csv", *said, "--until", LAST)
    assert [row["periods"] for row in for_all["by_unit"]] == [2, 2]


def test_files_and_screen_have_the_same_numbers(files: Path) -> None:
    said = ("--treatment-time", FIRST, "--until", LAST, *WORTH)
    code, out, err = quick("estimate", files / "r.json", files / "spells.csv", *READ, *said, "-o", files / "out.html")
    assert (code, err) == (0, "")
    page, screen = (files / "out.html").read_text("utf-8"), " ".join(out.split())
    for text in ("The last treated period is", "After the treatment the difference is", "each EUR spent brought"):
        assert text in " ".join(page.split())
        assert text in screen
    assert "<h2>What it is worth</h2>" in page
    assert "treatment off" in quick("estimate", files / "r.json", files / "spells.csv", *READ, *said, "-o",
                                    files / "a.svg")[1] + (files / "a.svg").read_text("utf-8")  # fmt: skip
    assert quick("estimate", files / "r.json", files / "spells.csv", *READ, *said, "-o", files / "a.xlsx")[0] == 0
    book = openpyxl.load_workbook(files / "a.xlsx")
    assert {"after the treatment", "worth"} <= set(book.sheetnames)
    assert quick("estimate", files / "r.json", files / "spells.csv", *READ, *said, "-o", files / "a.tex")[0] == 0
    assert "After the treatment" in (files / "a.tex").read_text("utf-8")


def test_fit_asks_the_same_and_refuses_before_anything_is_paid_for(files: Path) -> None:
    said = (files / "panel.csv", "--unit", "who", *READ, "--treated-unit", "clinic", "--treatment-time", FIRST)
    code, out, err = quick("fit", *said, "--method", "nonprivate", "--lambda", 1, "--until", LAST, *WORTH, "--json")
    assert code == 0, err
    assert [row["treatment"] for row in json.loads(out)["periods"]] == ["on", "on", "off", "off"]
    assert json.loads(out)["worth"]["currency"] == "EUR"
    quick("ledger", "init", "costs", "--epsilon", 4, "--delta", 1e-5)
    before = quick("ledger", "show")
    code, out, err = quick("fit", "--no-ledger", *said, "--epsilon", 1, "--delta", 1e-6, "--until", months()[3][:7])
    assert code == 2
    assert "is before the first" in err
    assert quick("ledger", "show") == before


def test_a_panel_takes_ends_from_its_table_of_units(files: Path) -> None:
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 12)).cumsum(axis=1), columns=range(2010, 2022))
    table = rows.set_axis([f"shop {k}" for k in range(9)])
    PrivatePanel.from_noisy_table(table, noise=0.1, guarantee="published by a friend").save(files / "r.json")
    pd.DataFrame({"shop": ["shop 1", "shop 2"], "start": [2018, 2019], "end": ["2019", ""]}).to_csv(
        files / "shops.csv", index=False
    )
    said = ("--unit", "shop", "--treatment-time-column", "start", "--treatment-end-column", "end")
    found = answered(files, files / "shops.csv", *said)
    assert [(row["treatment_end"], row["periods"]) for row in found["by_unit"]] == [("2019", 2), (None, 3)]
    one = answered(files, "shop 1", "--treatment-time", 2018, "--until", 2019)
    assert list(one["treatment"].values()) == ["on", "on", "off", "off"]
    code, _, err = quick("estimate", files / "r.json", "shop 1", "--treated-column", "on")
    assert code == 2
    assert "--until" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--treated-column", "on", "--treatment-time", FIRST), "leave out --treatment-time"),
        (("--treated-column", "on", "--until", LAST), "--until is one date for all"),
        (("--treated-column", "onn"), "Did you mean 'on'?"),
        (("--treated-column", "cost"), "must be 1 in each of them and 0 in each other one"),
        (("--treatment-time", FIRST, "--until", "soon"), "--treatment-end"),
        (("--treatment-time", FIRST, "--gap", 9), "--gap 9 leaves out every treated period"),
        (("--treatment-time", FIRST, "--cost", 9), "--cost needs --value-per-unit"),
    ],
)
def test_what_makes_no_sense_is_refused(files: Path, options: tuple[object, ...], message: str) -> None:
    outcome = ("--outcome", "on") if "cost" in options else ("--outcome", "cost")
    code, out, err = quick("estimate", files / "r.json", files / "spells.csv", "--time", "month", *outcome, *options)
    assert code == 2, out
    assert message in " ".join(err.split())
