"""Several targets in one table, and the endings of -o: through the command, read back from the files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

from dpsc import Ledger, PrivatePanel, Release
from dpsc.answers import excel
from tests.cli.conftest import EFFECT, T0, H, months, quick

COLUMNS = ("--unit", "who", "--time", "month", "--outcome", "cost")
FIT = (*COLUMNS, "--treated-unit", "clinic", "--treatment-time", "2021-03", "--epsilon", 1, "--delta", 1e-6)
STUDY = ("--unit", "region", "--treatment-time-column", "start", "--time", "month", "--outcome", "cost")


@pytest.fixture(scope="module")
def made(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, a target, and a table of three regions: two treated, each at its own time, and one never."""
    folder = tmp_path_factory.mktemp("studies")
    shutil.copytree(written, folder, dirs_exist_ok=True)
    code, _, err = quick("release", folder / "donors.csv", *COLUMNS, "--epsilon", 4, "--delta", 1e-6, "--scale", 3,
                         "--no-ledger", "-o", folder / "r.json")  # fmt: skip
    assert code == 0, err
    donors = pd.read_csv(folder / "donors.csv").pivot(index="who", columns="month", values="cost").to_numpy()
    starts = {"north": T0 - 3, "south": T0, "west": None}
    rows = []
    for k, (name, start) in enumerate(starts.items()):
        path = donors[40 * k : 40 * k + 40].mean(axis=0)
        if start is not None:
            path[start:] += EFFECT
        rows += [
            {"region": name, "month": month[:7], "cost": value, "start": "" if start is None else months()[start][:7],
             "people": 3 if name == "north" else 1}
            for month, value in zip(months(), path, strict=True)
        ]  # fmt: skip
    pd.DataFrame(rows).to_csv(folder / "regions.csv", index=False)
    return folder


@pytest.fixture
def files(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


def table(files: Path, **columns: Any) -> Path:
    changed = pd.read_csv(files / "regions.csv", dtype={"start": str}).assign(**columns)
    changed.to_csv(files / "changed.csv", index=False)
    return files / "changed.csv"


def refused(*arguments: object, said: tuple[str, ...]) -> None:
    code, out, err = quick(*arguments)
    assert code == 2, (out, err)
    for text in said:
        assert text in " ".join(err.split())


def test_regions_with_their_own_dates_become_a_study(files: Path) -> None:
    options = ("--weight-column", "people", "--units", "dollars", "--title", "Costs, had no clinic opened")
    code, out, err = quick("estimate", files / "r.json", files / "regions.csv", *STUDY, *options, "-o", files / "out")
    assert (code, err) == (0, "")
    folder = files / "out"
    assert {file.name for file in folder.iterdir()} == {
        "result.json", "counterfactual.csv", "reporting.md", "report.html", "event.svg", "event.png", "units.svg",
        "units.png",
    }  # fmt: skip
    document = json.loads((folder / "result.json").read_text("utf-8"))
    regions = pd.read_csv(files / "regions.csv")
    targets = {name: rows.set_index("month")["cost"] for name, rows in regions.groupby("region")}
    starts = {"north": months()[T0 - 3][:7], "south": months()[T0][:7]}
    expected = Release.load(files / "r.json").study(targets, starts, weights={"north": 3.0, "south": 1.0})
    assert document["average_effect"] == pytest.approx(expected.att)
    assert document["average_effect_interval"] == pytest.approx(list(expected.att_interval()))
    assert document["average_effect"] == pytest.approx(EFFECT, abs=1.0)
    assert [row["unit"] for row in document["by_unit"]] == ["north", "south"]
    assert [row["treatment_time"] for row in document["by_unit"]] == list(starts.values())
    leads = [row["periods_after"] for row in document["by_event_time"]].index(0)
    assert [row["units"] for row in document["by_event_time"][leads:]] == [2] * H + [1] * 3
    assert [row["units"] for row in document["by_event_time"][:leads]] == [2] * leads
    assert leads == len(document["pre_trend"]["periods"]) >= 2
    assert document["never_treated"] == ["west"]
    assert [row["for"] for row in document["dates_tried"]] == [["north"], ["south"]]
    page = (folder / "report.html").read_text("utf-8")
    for text in ("<h1>Costs, had no clinic opened</h1>", "average over unit-periods", "Units count by their weights",
                 "Never treated: west. They are shown for comparison only", "What was protected",
                 "--treatment-time-column start"):  # fmt: skip
        assert text in page
    long = pd.read_csv(folder / "counterfactual.csv")
    assert list(long.columns[:2]) == ["unit", "time"]
    np.testing.assert_allclose(long["gap_lower"], expected.to_frame()["gap_lower"])
    shown = " ".join(out.split())
    for text in (
        "2 treated units",
        "by time since the treatment",
        "pre-trend test",
        "average over units",
        "never treated west",
    ):
        assert text in shown


def test_a_study_is_read_by_a_program_alone(files: Path) -> None:
    code, out, err = quick("estimate", files / "r.json", files / "regions.csv", *STUDY, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["kind"] == "study"
    assert {row["weight"] for row in document["by_unit"]} == {1.0}


def test_starts_may_be_numbers_with_empty_cells(tmp_path: Path) -> None:
    """A column of years with a gap is a column of floats in Parquet; 2008.0 is the year 2008."""
    rng = np.random.default_rng(0)
    years = list(range(2000, 2012))
    rows = 20 + np.cumsum(rng.normal(size=(303, 12)), axis=1)
    frame = pd.DataFrame({"who": np.repeat(np.arange(303), 12), "year": years * 303, "x": rows.ravel()})
    frame[frame["who"] >= 3].to_csv(tmp_path / "donors.csv", index=False)
    code, _, err = quick("release", "--no-ledger", tmp_path / "donors.csv",
                         "--unit", "who", "--time", "year", "--outcome", "x",
                         "--epsilon", 1, "--delta", 1e-6, "--scale", 2, "-o", tmp_path / "r.json")  # fmt: skip
    assert code == 0, err
    few = frame[frame["who"] < 3]
    few = few.assign(start=few["who"].map({0: 2008.0, 1: 2009.0, 2: np.nan}))
    few.to_parquet(tmp_path / "few.parquet")
    code, out, err = quick("estimate", tmp_path / "r.json", tmp_path / "few.parquet", "--unit", "who",
                           "--treatment-time-column", "start", "--json")  # fmt: skip
    assert code == 0, err
    assert [row["treatment_time"] for row in json.loads(out)["by_unit"]] == ["2008", "2009"]


def test_mistakes_in_a_table_of_targets_are_named(files: Path) -> None:
    release, regions = files / "r.json", pd.read_csv(files / "regions.csv", dtype={"start": str})
    run = ("estimate", release)
    starts, people = regions["start"].tolist(), regions["people"].tolist()
    refused(*run, table(files, start=["2020-11", *starts[1:]]), *STUDY,
            said=("changed.csv", "unit 'north' has '2020-11' and '2020-12' in column 'start'"))  # fmt: skip
    refused(*run, table(files, start=[np.nan, *starts[1:]]), *STUDY, said=("'north' has nothing and '2020-12'",))
    refused(*run, table(files, start=""), *STUDY, said=("no unit has a first treated period",))
    wrong = ["2035-01" if name == "north" else start for name, start in zip(regions["region"], starts, strict=True)]
    refused(*run, table(files, start=wrong), *STUDY,
            said=("unit 'north'", "2035-01 is not one of the periods", "never treated"))  # fmt: skip
    refused(*run, table(files, people=[2, *people[1:]]), *STUDY, "--weight-column", "people",
            said=("unit 'north' has 2.0 and 3.0 in column 'people'",))  # fmt: skip
    refused(*run, table(files, people=-1), *STUDY, "--weight-column", "people", said=("weights must be numbers",))
    refused(*run, table(files, month=["2020-02", *regions["month"][1:]]), *STUDY, said=("the period 2020-02 twice",))
    refused(*run, files / "regions.csv", *STUDY, "--weight-column", "peple", said=("no column 'peple'", "people"))
    refused(*run, table(files, region=["", *regions["region"][1:]]), *STUDY, said=("line 2 has no unit",))


def test_one_question_at_a_time(files: Path) -> None:
    run = ("estimate", files / "r.json", files / "regions.csv")
    refused(*run, said=("say when the intervention came", "--treatment-time-column"))
    refused(*run, "--treatment-time", "2021-03", *STUDY, said=("Give one of them",))
    refused(*run, "--treatment-time-column", "start", said=("needs --unit",))
    refused(*run, "--treatment-time", "2021-03", "--weight-column", "people", said=("needs --unit",))


def test_how_many_units_targets_average_may_be_said_for_all_or_for_each(files: Path) -> None:
    """A number for all is what a column says that holds it in every row; an empty cell says nothing."""
    release, regions = files / "r.json", pd.read_csv(files / "regions.csv", dtype={"start": str})

    def width(*options: object, table: Path = files / "regions.csv") -> float:
        code, out, err = quick("estimate", release, table, *STUDY, *options, "--json")
        assert code == 0, err
        average = json.loads(out)["effects"][0]
        return float(average["upper"] - average["lower"])

    forty = table(files, people=40)
    assert width("--averages", 40) == width("--averages-column", "people", table=forty) < width("--averages", 1)
    people = ["" if name == "north" else 40 for name in regions["region"]]
    assert width("--averages-column", "people", table=table(files, people=people)) != width("--averages", 40)
    refused("estimate", release, table(files, people=0.5), *STUDY, "--averages-column", "people",
            said=("unit 'north' has 0.5 in column 'people'", "1 unit or more"))  # fmt: skip
    refused("estimate", release, forty, *STUDY, "--averages", 2, "--averages-column", "people", said=("not both",))
    refused("estimate", release, forty, "--treatment-time", "2021-03", "--averages-column", "people",
            said=("needs --unit",))  # fmt: skip


def test_groups_and_sizes_are_columns(files: Path) -> None:
    regions = pd.read_csv(files / "regions.csv")["region"]
    run = ("estimate", files / "r.json", table(files, country="France", place=regions), *STUDY)
    averages = ("--averages-column", "people")
    code, out, err = quick(*run, *averages, "--weight-by-size", "--group-column", "place", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert [row["weight"] for row in document["by_unit"]] == [3.0, 1.0]
    assert [row["group"] for row in document["groups"]["effects"]] == ["north", "south"]
    code, out, err = quick(*run, "--group-column", "place")
    assert code == 0, err
    assert "by group" in out
    assert "that all have the same effect" in " ".join(out.split())
    refused(*run, "--group-column", "country", said=("at least two",))
    refused(*run, "--weight-by-size", said=("size of 'north' is not known", "--averages"))
    refused(*run, "--weight-by-size", "--weight-column", "people", said=("not both",))
    refused(*run, "--group-column", "nothing", said=("nothing",))
    empty = table(
        files, country=[None if name == "north" else "France" for name in pd.read_csv(files / "regions.csv")["region"]]
    )
    refused("estimate", files / "r.json", empty, *STUDY, "--group-column", "country", said=("'north' has no group",))


def test_units_of_a_private_panel_have_weights_and_groups_too(tmp_path: Path, every_group: None) -> None:
    rng = np.random.default_rng(0)
    rows = 50 + np.cumsum(rng.normal(size=16)) + rng.normal(size=(12, 16))
    values = pd.DataFrame(rows, index=[f"shop {k}" for k in range(12)], columns=range(2000, 2016))
    panel = PrivatePanel.from_noisy_table(values, noise=0.1, guarantee="published by a friend")
    panel.save(tmp_path / "panel.json")
    (tmp_path / "treated.csv").write_text(
        "unit,start,size,place\nshop 1,2011,3,hills\nshop 2,2012,1,coast\nshop 3,,,\n", encoding="utf-8"
    )
    run = ("estimate", tmp_path / "panel.json", tmp_path / "treated.csv", "--unit", "unit",
           "--treatment-time-column", "start")  # fmt: skip
    code, out, err = quick(*run, "--weight-column", "size", "--group-column", "place", "--json")
    assert code == 0, err
    document = json.loads(out)
    weights, groups = {"shop 1": 3.0, "shop 2": 1.0}, {"shop 1": "hills", "shop 2": "coast"}
    expected = panel.study({"shop 1": 2011, "shop 2": 2012}, weights=weights, groups=groups)
    assert document["average_effect"] == pytest.approx(expected.att)
    assert [row["group"] for row in document["groups"]["effects"]] == ["hills", "coast"]
    assert document["placebos"]["in_space"]["units"] >= 20
    refused(*run, "--weight-by-size", said=("does not say how many people",))
    refused(*run, "--averages-column", "size", said=("are for targets of a Gram release",))


def test_all_units_may_have_one_date(files: Path) -> None:
    """What --treatment-time says for all is what a column says that holds it in every row."""
    out, columns = files / "study.json", ("--unit", "region", "--time", "month", "--outcome", "cost")
    run = ("estimate", files / "r.json", table(files, start="2021-03"), "-o", out, "--force")
    answers = []
    for dates in (("--treatment-time", "2021-03"), ("--treatment-time-column", "start")):
        code, _, err = quick(*run, *columns, *dates)
        assert code == 0, err
        answers.append(json.loads(out.read_text()))
    assert answers[0]["by_unit"] == answers[1]["by_unit"]
    assert len(answers[0]["by_unit"]) == 3
    refused(*run, *columns, "--treatment-time", "2035-01", said=("2035-01 is not one of the periods",))


@pytest.mark.parametrize("ending", ["html", "xlsx", "json", "csv", "png", "svg", "md", "tex"])
def test_the_ending_says_what_is_written(files: Path, ending: str) -> None:
    out = files / "new" / f"answer.{ending}"
    run = ("estimate", files / "r.json", files / "target.csv", "--treatment-time", "2021-03", "-o", out)
    code, shown, err = quick(*run)
    assert (code, err) == (0, "")
    assert f"Open {out}" in "".join(shown.splitlines()[-2:])
    assert [file.name for file in out.parent.iterdir()] == [out.name]
    first = {"html": b"<!doctype", "xlsx": b"PK", "json": b"{", "csv": b'"month",', "png": b"\x89PNG", "svg": b"<?xml"}
    first |= {"md": b"# What would", "tex": rb"\section*{What would"}
    assert out.read_bytes().startswith(first[ending])
    refused(*run, said=("already exists", "--force"))


def test_an_ending_that_is_not_written_is_refused(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ("estimate", files / "r.json", files / "target.csv", "--treatment-time", "2021-03", "-o")
    refused(*run, files / "answer.pdf", said=("a .pdf file is not written", "prints to PDF"))
    monkeypatch.setattr(excel, "find_spec", lambda name: None)
    refused(*run, files / "answer.xlsx", said=("pip install 'dpsc[xlsx]'",))
    assert not list(files.glob("answer*"))


@pytest.mark.parametrize(
    ("method", "name", "kept"),
    [("gram", "a.svg", "a.dpsc.json"), ("gram", "a.json", "a.dpsc.json"), ("output", "a.xlsx", "a.json"),
     ("output", "a.json", None), ("nonprivate", "a.csv", None)],
)  # fmt: skip
def test_a_fit_keeps_what_is_paid_for_beside_a_file(files: Path, method: str, name: str, kept: str | None) -> None:
    out = files / "fit" / name
    arguments = FIT if method != "nonprivate" else FIT[:-4]
    code, _, err = quick("fit", files / "panel.csv", *arguments, "--method", method, "--no-ledger", "-o", out,
                         *(() if method == "gram" else ("--bounds", -10, 60)), "--title", "What if")  # fmt: skip
    assert code == 0, err
    assert {file.name for file in out.parent.iterdir()} == {name, *([kept] if kept else [])}
    if method == "gram":
        assert Release.load(out.with_suffix(".dpsc.json")).guarantee is not None
    elif kept:
        assert json.loads((out.parent / kept).read_text("utf-8"))["title"] == "What if"
    if name.endswith(".xlsx"):
        assert openpyxl.load_workbook(out)["answer"]["B2"].value == "What if"


def test_a_fit_is_refused_before_it_pays(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = files / "book.sqlite"
    Ledger(book, create=True).add_dataset("patients", epsilon=5, delta=1e-5)
    run = ("fit", files / "panel.csv", *FIT, "--ledger", book, "-o")
    (files / "there.dpsc.json").write_text("somebody's")
    refused(*run, files / "there.html", said=("there.dpsc.json already exists",))
    refused(*run, files / "answer.pdf", said=("is not written",))
    (files / "panel.json").write_text("{}")
    shutil.copy(files / "panel.csv", files / "data.dpsc.json")
    refused(*run, files / "data.html", "--force", "--like", files / "data.dpsc.json", said=("read by this command",))
    with monkeypatch.context() as patched:
        patched.setattr(excel, "find_spec", lambda name: None)
        refused(*run, files / "answer.xlsx", said=("dpsc[xlsx]",))
    assert Ledger(book).entries() == []


def test_a_page_that_cannot_be_made_leaves_the_release(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = files / "book.sqlite"
    Ledger(book, create=True).add_dataset("patients", epsilon=5, delta=1e-5)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a font that is missing")

    monkeypatch.setattr("dpsc.answers.figures.draw", fail)
    code, _, err = quick("fit", files / "panel.csv", *FIT, "--ledger", book, "-o", files / "fit.html")
    assert code == 1
    assert f"what was computed is in {files / 'fit.dpsc.json'}" in err
    assert not (files / "fit.html").exists()
    (entry,) = Ledger(book).entries()
    assert Release.load(files / "fit.dpsc.json").guarantee == entry.guarantee
    assert entry.output == str(files / "fit.dpsc.json")
