"""Tables as spreadsheets write them, through every command that reads one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import Release
from dpsc.cli.fit import Analysis, Asked
from dpsc.tables.spec import TableSpec
from tests.cli.conftest import N, months, quick
from tests.cli.test_mistakes import BUDGET, COLUMNS, refused
from tests.making import long


@pytest.fixture
def german(files: Path) -> Path:
    """The same tables with semicolons, decimal commas and Windows-1252, and the target as a workbook."""
    for name in ("donors", "panel", "target"):
        table = pd.read_csv(files / f"{name}.csv").rename(columns={"cost": "Größe"})
        if "who" in table:
            table["who"] = table["who"].str.replace("patient", "Patientin Müller")
        table.to_csv(files / f"{name}.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    with pd.ExcelWriter(files / "target.xlsx") as book:
        pd.DataFrame({"a": []}).to_excel(book, sheet_name="notes", index=False)
        table["month"] = pd.to_datetime(table["month"])
        table.to_excel(book, sheet_name="data", index=False)
    return files


COLUMNS_THERE = (*COLUMNS[:-1], "Größe")


def release(files: Path, *more: object) -> list[object]:
    return ["release", "--no-ledger", files / "donors.csv", *COLUMNS_THERE, *BUDGET, "-o", files / "r.json", *more]


def test_from_semicolons_and_decimal_commas_to_an_answer(german: Path) -> None:
    refused(
        release(german), "donors.csv: column 'Größe' holds numbers that can be read in two ways",
        "1.234 is one thousand two hundred thirty-four", "Say which it is: --decimal comma or --decimal point.",
    )  # fmt: skip
    code, _, err = quick(*release(german, "--decimal", ","))
    assert code == 0, err
    assert Release.load(german / "r.json").n == N
    assert "was read with separator semicolon, encoding windows-1252, decimal comma." in err
    asked = ["estimate", german / "r.json"]
    when = ["--treatment-time", months()[14], "--json"]
    answers = []
    for target in (["target.csv", "--decimal", "comma"], ["target.xlsx", "--sheet", "data"]):
        code, out, err = quick(*asked, german / target[0], *target[1:], *when)
        assert code == 0, err
        answers.append(json.loads(out))
    assert answers[0] == answers[1]
    refused([*asked, german / "target.xlsx", *when], "there are 2 sheets, 'notes', 'data'", "--sheet NAME")
    refused(release(german, "--decimal", "comma", "--sep", ":"), "--sep ':' is not one of comma (,), semicolon (;)")
    refused(release(german, "--encoding", "utf-8", "--force"), "it is not text in utf-8", "--encoding windows-1252")


def test_a_public_series_beside_the_donors_is_read_as_it_is(german: Path) -> None:
    """What is said of the donors does not change how a plain CSV beside them is read."""
    target = pd.read_csv(german / "target.csv", sep=";", decimal=",", encoding="cp1252")
    target.to_csv(german / "plain.csv", index=False)
    for name in ("plain.csv", "target.csv", "target.xlsx"):
        said = ("--decimal", "comma", "--sep", "semicolon", "--encoding", "windows-1252")
        if name == "target.xlsx":
            refused(release(german, *said, "--reference", german / name), "there are 2 sheets")
            continue
        code, _, err = quick(*release(german, *said, "--reference", german / name, "--force"))
        assert code == 0, err


def test_the_donors_way_of_writing_dates_is_not_forced_on_a_series_beside_them(german: Path) -> None:
    """Donors dated 31/01/2020 beside a target of 2020-01 used to be refused, in check and in release."""
    donors = pd.read_csv(german / "donors.csv", sep=";", decimal=",", encoding="cp1252")
    donors["month"] = pd.to_datetime(donors["month"]).dt.strftime("%d/%m/%Y")
    donors.to_csv(german / "donors.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    said = ("--decimal", "comma", "--time-format", "%d/%m/%Y", "--periods", f"{months()[0][:7]}..{months()[-1][:7]}")
    like = ("--like", german / "target.csv", "--like-before", months()[14])
    code, _, err = quick(*release(german, *said, *like))
    assert code == 0, err
    assert Release.load(german / "r.json").scale.source == "like and counted"
    refused(release(german, "--decimal", "comma", "--time-format", "%Q", *like, "--force"), "is not a way of writing")


def test_a_fit_reads_the_file_as_it_is_written(german: Path) -> None:
    when = ("--treated-unit", "clinic", "--treatment-time", months()[14])
    how = ("--sep", ";", "--decimal", ",", "--encoding", "windows-1252")
    fit = ["fit", german / "panel.csv", *COLUMNS_THERE, *when, "--method", "nonprivate", "--lambda", 1]
    code, out, err = quick(*fit, *how, "--json")
    assert code == 0, err
    assert json.loads(out)["method"]
    refused([*fit, "--decimal", ",", "--thousands", ","], "are the same mark")


def test_a_plan_reads_a_workbook(german: Path) -> None:
    plan = ["plan", "--n", 300, "--before", 14, "--after", 4, "--epsilon", 1, "--runs", 1, "--json"]
    code, out, err = quick(*plan, "--target", german / "target.xlsx", "--sheet", "data")
    assert code == 0, err
    assert json.loads(out)["unit"] == "Größe"
    assert json.loads(quick(*plan, "--target", german / "target.csv", "--decimal", ",")[1]) == json.loads(out)


@pytest.mark.parametrize(("method", "rule"), [("gram", "kernel"), ("nonprivate", "interpolate")])
def test_with_declared_periods_only_a_gram_release_leaves_cells_missing(tmp_path: Path, method: str, rule: str) -> None:
    values = np.random.default_rng(0).normal(size=(6, 5))
    table = long(values, units=list("abcdef"), times=range(1, 6), names=("who", "year", "x")).drop(index=8)
    table.to_csv(tmp_path / "x.csv", index=False)
    asked = Asked(panel=tmp_path / "x.csv", treated_unit="a", treatment_time="4", method=method)
    if method == "gram":
        asked = replace(asked, epsilon=1.0, delta=1e-6)
    panel = Analysis(asked, TableSpec("who", "year", "x", periods="1..5")).read()
    assert panel.missing == rule
    assert np.isnan(panel.donors).sum() == (method == "gram")


def test_a_fit_takes_cells_that_several_rows_give_as_it_is_told(tmp_path: Path) -> None:
    table = long(np.arange(30.0).reshape(6, 5), list("abcdef"), range(1, 6), ("who", "year", "x"))
    pd.concat([table, table.iloc[[7]]]).to_csv(tmp_path / "x.csv", index=False)
    asked = Asked(panel=tmp_path / "x.csv", treated_unit="a", treatment_time="4", method="nonprivate")
    spec = TableSpec("who", "year", "x", periods="1..5")
    summed = Analysis(asked, replace(spec, repeated="sum")).read()
    assert summed.donors[0].tolist() == [5.0, 6.0, 14.0, 8.0, 9.0]
    said = ["fit", tmp_path / "x.csv", *COLUMNS, "--repeated", "first"]
    refused(said, "--repeated must be 'missing', 'sum', 'mean' or 'last', not 'first'")
