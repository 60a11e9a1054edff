"""``dpsc release --person`` and what follows from it: a panel that is booked, grows, is shown, joined and exported."""

from __future__ import annotations

import csv
import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

from dpsc import Ledger, PanelRelease, People, PrivatePanel, load
from dpsc.custodian.groups.bounding import Bounding
from dpsc.custodian.groups.sources import people_in
from dpsc.privacy import discrete
from dpsc.release.file_format import sha256
from dpsc.tables.spec import TableSpec
from tests.cli.conftest import quick, unbooked
from tests.making import SECRET, save, told

UNITS = ["north", "south", "west", "=1+1"]
COLUMNS = ("--person", "who", "--unit", "region", "--time", "day", "--outcome", "cost")
BUDGET = ("--epsilon", 1, "--delta", 1e-6)
YEAR = ("--units", ",".join(UNITS), "--periods", "2022-01..2022-06", "--bounds", 0, 40)


@pytest.fixture(scope="session")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(5)
    who = rng.integers(0, 2400, 20_000)
    day = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 270, len(who)), "D")
    frame = pd.DataFrame({"who": [f"p{i}" for i in who], "region": [UNITS[i % 4] for i in who]})
    frame = frame.assign(day=day.strftime("%Y-%m-%d"), cost=rng.gamma(2, 8, len(who)).round(2))
    frame.loc[7, "cost"] = SECRET
    return save(frame, tmp_path_factory.mktemp("visits") / "visits.csv")


@pytest.fixture(autouse=True)
def book(alone: None) -> Path:
    code, _, err = quick("ledger", "init", "visits", "--epsilon", 4, "--delta", 1e-5)
    assert code == 0, err
    return Path("dpsc-ledger.sqlite")


def release(visits: Path, *more: object, out: str = "panel.dpsc.json") -> tuple[int, str, str]:
    return quick("release", visits, *COLUMNS, *BUDGET, *more, *unbooked(*more), "-o", out)


def test_a_table_of_people_is_booked_before_its_noise_is_drawn_and_opens_as_a_panel(
    visits: Path, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    real = discrete.add

    def watched(*arguments: Any, **options: Any) -> Any:
        seen.append([entry.state for entry in Ledger(book).entries("visits")])
        return real(*arguments, **options)

    monkeypatch.setattr(discrete, "add", watched)
    code, out, err = release(visits, *YEAR, "--provenance", "visits of <clinics>")
    assert code == 0, err
    assert seen == [["booked"]]
    (entry,) = Ledger(book).entries("visits")
    assert (entry.state, entry.promise["adjacency"]) == ("confirmed", "replace one person")
    panel = load("panel.dpsc.json")
    assert isinstance(panel, PrivatePanel)
    assert (panel.units, len(panel.times), panel.datasets) == (tuple(UNITS), 6, ("visits",))
    assert panel.guarantee is not None
    assert panel.guarantee.epsilon == 1
    assert np.nanmean(panel.table.values) == pytest.approx(21, abs=4)  # sums of a person's visits in a month
    assert "a person counts in at most 1 unit in each period" in re.sub(r"\s+│? *", " ", out)
    page = html.unescape(Path("panel.dpsc.html").read_text("utf-8"))
    for said in ("visits of <clinics>", sha256(Path("panel.dpsc.json")), "replace one person", "=1+1", "ε = 1"):
        assert said in page
    assert not told(page, out, err, Path("panel.dpsc.json").read_text("utf-8"))


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_every_engine_and_the_library_add_up_the_same(visits: Path, engine: str) -> None:
    spec = TableSpec("region", "day", "cost", person="who")
    columns = {"person": "who", "unit": "region", "time": "day", "outcome": "cost"}
    filed = people_in(visits, spec, UNITS, "2022-01..2022-06", engine=engine)  # type: ignore[arg-type]
    frame = pd.read_csv(visits, dtype=str).astype({"cost": float})
    held = People.from_long(frame, **columns, units=UNITS, periods=filed.times)
    summed = Bounding(PanelRelease(epsilon=1, delta=1e-6, bounds=(0, 40)).rule_for(filed.units, filed.times))
    np.testing.assert_array_equal(filed.add_up(summed, lambda rows: None), held.add_up(summed, lambda rows: None))


def test_units_may_be_in_a_file_and_statistics_need_no_bounds(visits: Path) -> None:
    Path("units.csv").write_text("region\n" + "\n".join(UNITS) + "\n", encoding="utf-8")
    columns = COLUMNS[:-2]
    code, out, err = quick(
        "release", "--no-ledger",
        visits, *columns, *BUDGET, "--units", "units.csv", "--periods", "2022-01..2022-06", "--statistic",
        "count", "--cells-per-person", 3, "--json", "--no-page", "-o", "count.dpsc.json",
    )  # fmt: skip
    assert code == 0, err
    said = json.loads(out)
    assert (said["statistic"], said["units"], said["outcome"]) == ("count", UNITS, "people")
    assert said["releases"][0]["cells_per_person"] == 3
    assert not Path("count.dpsc.html").exists()
    options = ("--units", "unit.csv", "--periods", "2022-01..2022-06", "--bounds", 0, 9, "-o", "none.dpsc.json")
    code, _, err = quick("release", "--no-ledger", visits, *COLUMNS, *BUDGET, *options)
    assert code == 2
    assert "unit.csv: there is no such file. Did you mean 'units.csv'?" in " ".join(err.split())


def test_a_dry_run_books_and_writes_nothing(visits: Path, book: Path) -> None:
    code, out, err = release(visits, *YEAR, "--dry-run")
    assert code == 0, err
    assert "there is room for it" in out
    assert "with fewer than about" in " ".join(out.split())
    assert Ledger(book).entries("visits") == []
    assert not Path("panel.dpsc.json").exists()
    said = json.loads(release(visits, *YEAR, "--dry-run", "--json")[1])
    assert said["dry_run"] is True
    assert said["units"] == 4
    code, out, _ = quick(
        "release", visits, *COLUMNS, *YEAR, "--epsilon", 5, "--delta", 1e-6, "--dry-run", "-o", "x.json"
    )
    assert "NO ROOM" in out


def test_a_panel_grows_by_later_periods_at_a_cost_of_their_own(visits: Path, book: Path) -> None:
    assert release(visits, *YEAR)[0] == 0
    before = PrivatePanel.load("panel.dpsc.json")
    code, out, err = quick(
        "release", visits, *COLUMNS, "--epsilon", 0.5, "--delta", 1e-6, "--append", "panel.dpsc.json", "--periods",
        "2022-07", "-o", "panel.dpsc.json", "--force", "--json",
    )  # fmt: skip
    assert code == 0, err
    after = PrivatePanel.load("panel.dpsc.json")
    np.testing.assert_array_equal(after.table.values[:, :6], before.table.values)  # published once
    assert len(after.times) == 7
    assert after.blocks[1].rule.bounds == (0.0, 40.0)
    assert [entry.promise["epsilon"] for entry in Ledger(book).entries("visits")] == [1, 0.5]
    assert after.guarantee is not None
    assert 1 < after.guarantee.epsilon < 1.5
    assert json.loads(out)["periods"][-1] == "2022-07"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--periods", "2022-06..2022-07"), "2022-06 is there twice"),
        (("--periods", "2021-12"), "published until 2022-06"),
        (("--periods", "2022"), "differ in their kind of periods"),
        (("--periods", "2022-07", "--bounds", 0, 50), "another --bounds"),
        (("--periods", "2022-07", "--statistic", "share"), "another --statistic"),
        (("--periods", "2022-07", "--units", "a,b,c"), "other --units"),
        (("--units", ",".join(UNITS)), "declare --periods"),
    ],
)
def test_what_cannot_be_appended_is_refused_before_it_is_booked(
    more: tuple[object, ...], message: str, visits: Path, book: Path
) -> None:
    assert release(visits, *YEAR)[0] == 0
    before = Path("panel.dpsc.json").read_bytes()
    code, out, err = release(visits, *more, "--append", "panel.dpsc.json", "--force")
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert Path("panel.dpsc.json").read_bytes() == before
    assert len(Ledger(book).entries("visits")) == 1


def test_a_bound_over_six_periods_is_said_anew_for_one(visits: Path) -> None:
    assert release(visits, *YEAR, "--person-bound", 30)[0] == 0
    more = ("--periods", "2022-07", "--append", "panel.dpsc.json", "--force")
    code, _, err = release(visits, *more)
    assert code == 2
    assert "--person-bound 30 over 6 periods; say what it is for 1" in err
    assert release(visits, *more, "--person-bound", 15)[0] == 0


def test_a_bound_found_privately_is_told_with_its_noise_and_is_a_public_number_for_later_periods(visits: Path) -> None:
    code, out, err = release(visits, *YEAR, "--statistic", "total", "--person-bound-quantile", 0.5)
    assert code == 0, err
    said = re.sub(r"\s+│? *", " ", out)
    assert "leaves about 50% of people unchanged and was found from noisy counts of people by length" in said
    assert "which cost 5% of the budget (each has noise with a standard deviation of 27 people)" in said
    first = PrivatePanel.load("panel.dpsc.json").blocks[0]
    bound = first.rule.person_bound
    assert bound is not None
    assert bound < 98  # what the bounds allow; a factor of ten less than 5 standard deviations from being found
    page = html.unescape(Path("panel.dpsc.html").read_text("utf-8"))
    assert f"down to length {bound:g}, where their length (the root of the sum of their squares) was above it" in page
    assert not told(page, out, err, Path("panel.dpsc.json").read_text("utf-8"))
    more = ("--append", "panel.dpsc.json", "--force")
    code, _, err = release(visits, "--periods", "2022-07", *more)
    assert code == 2
    assert f"--person-bound {bound} over 6 periods; say what it is for 1" in err
    code, _, err = release(visits, "--periods", "2022-07..2022-12", *more, "--epsilon", 0.5)
    assert code == 0, err
    code, _, err = release(visits, "--periods", "2023-01", *more, "--person-bound-quantile", 0.5, "--epsilon", 0.5)
    assert code == 0, err
    _, two, three = PrivatePanel.load("panel.dpsc.json").blocks
    assert (two.rule.person_bound, two.lengths) == (bound, None)
    assert three.lengths is not None


def test_a_dry_run_with_a_bound_to_find_draws_no_counts(visits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(*arguments: Any) -> None:
        raise AssertionError("records were counted by length")

    from dpsc.custodian.groups.bounding import LengthCounts

    monkeypatch.setattr(LengthCounts, "amounts", drawn)
    code, out, err = release(visits, *YEAR, "--person-bound-quantile", 0.5, "--dry-run")
    assert code == 0, err
    assert "noise: at most a standard deviation of" in out


def test_an_append_that_fails_leaves_the_old_file(visits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert release(visits, *YEAR)[0] == 0
    before = Path("panel.dpsc.json").read_bytes()

    def broken(self: PrivatePanel, path: Path) -> None:
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(PrivatePanel, "save", broken)
    code, _, err = release(visits, "--periods", "2022-07", "--append", "panel.dpsc.json", "--force")
    assert code == 2, err
    assert Path("panel.dpsc.json").read_bytes() == before
    assert not list(Path().glob(".panel*"))


BAD = [
    (("--person", "whom"), "no column 'whom' (--person)"),
    (("--units", "north,south"), "3 to 10,000 --units"),
    (("--bounds", 40, 0), "is not below the upper one"),
    (("--person-bound", 0), "--person-bound must be a finite number above 0"),
    (("--person-bound-quantile", 1.5), "--person-bound-quantile 1.5 must be between 0 and 1"),
    (("--person-bound-quantile", 0.5, "--person-bound", 9), "give --person-bound or --person-bound-quantile, not both"),
    (("--cells-per-person", 0), "--cells-per-person must be a whole number of at least 1"),
    (("--statistic", "median"), "is not one of mean, total, share, count"),
    (("--statistic", "share"), "are for means and totals"),
    (("--wide",), "--wide"),
    (("--missing", "kernel"), "not for records of people"),
    (("--exclude", "north"), "not for people in groups"),
    (("--scale", 2), "not for people in groups"),
    (("--settings", "x.json"), "not for people in groups"),
    (("--epsilon", 30), "protects nobody"),
    (("--delta", 0.5), "number of people"),
    (("--periods", "2022-01..2022"), "cannot be read"),
]


@pytest.mark.parametrize(("more", "message"), BAD, ids=[" ".join(map(str, more)) for more, _ in BAD])
def test_a_mistake_gets_one_sentence_and_books_nothing(
    more: tuple[object, ...], message: str, visits: Path, book: Path
) -> None:
    code, out, err = release(visits, *YEAR, *more)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not told(err)
    assert Ledger(book).entries("visits") == []
    assert not list(Path().glob("panel*"))


def test_units_and_periods_must_be_declared(visits: Path, book: Path) -> None:
    for missing in ("--units", "--periods"):
        at = YEAR.index(missing)
        code, _, err = release(visits, *YEAR[:at], *YEAR[at + 2 :])
        assert code == 2
        assert f"declare {missing}" in err
    code, _, err = quick(
        "release", visits, "--unit", "who", *COLUMNS[4:], *BUDGET, "--statistic", "mean", "-o", "x.json"
    )
    assert "--statistic belongs to --person" in err
    code, _, err = quick("release", visits, "--unit", "who", *COLUMNS[4:], *BUDGET, "--append", "x", "-o", "x.json")
    assert "--append belongs to --person" in err
    assert Ledger(book).entries("visits") == []


def test_a_panel_is_inspected_and_exported_without_formulas(visits: Path) -> None:
    assert release(visits, *YEAR)[0] == 0
    code, _, err = quick("inspect", "panel.dpsc.json", "--table", "cells.csv", "--page", "again.html")
    assert code == 0, err
    assert Path("again.html").read_bytes() == Path("panel.dpsc.html").read_bytes()
    panel = load("panel.dpsc.json")
    assert isinstance(panel, PrivatePanel)
    with open("cells.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["unit", "day", "value", "noise", "people"]
    assert [float(row["value"]) for row in rows] == panel.table.values.ravel().tolist()
    assert {row["unit"] for row in rows} == {"north", "south", "west", "'=1+1"}
    assert quick("inspect", "panel.dpsc.json", "--table", "cells.xlsx")[0] == 0
    sheet = openpyxl.load_workbook("cells.xlsx")["panel"]
    assert sheet.max_row == 25
    assert not [cell for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]
    record = json.loads(quick("inspect", "panel.dpsc.json", "--record", "--custodian", "us")[1])
    assert record["deployment"]["privacy_loss"]["privacy_unit"].startswith("Person")
    code, _, err = quick("inspect", "panel.dpsc.json", "--table", "cells.pdf")
    assert (code, "write a .csv" in err) == (2, True)
    code, _, err = quick("inspect", "panel.dpsc.json", "--table", "panel.dpsc.json", "--force")
    assert (code, "is read by this command" in err) == (2, True)


def test_what_the_page_says_to_run_works(visits: Path, capsys: Any) -> None:
    assert release(visits, *YEAR)[0] == 0
    page = Path("panel.dpsc.html").read_text("utf-8")
    shell, python, checks = (html.unescape(text) for text in re.findall("<pre>(.*?)</pre>", page, flags=re.DOTALL))
    for line in [*shell.splitlines(), *checks.splitlines()]:
        code, out, err = quick(*line.split()[1:])
        assert code == 0, (line, out, err)
    exec(python, {})
    assert "average effect" in capsys.readouterr().out.lower()
    code, out, _ = quick("audit", "panel.dpsc.json", "--sha256", "0" * 64, "--json")
    checked = {check["what"]: check["verdict"] for check in json.loads(out)["checks"]}
    assert checked == {"SHA-256": "broken", "file": "holds", "claim": "holds", "noise": "cannot be told"}
    assert code != 0


def test_a_table_that_others_published_is_shown_and_never_booked_or_joined(visits: Path, book: Path) -> None:
    assert release(visits, *YEAR)[0] == 0
    table = pd.DataFrame(np.arange(12.0).reshape(4, 3), index=UNITS, columns=[2020, 2021, 2022])
    PrivatePanel.from_noisy_table(table, noise=0.5, guarantee="published by an office").save("office.dpsc.json")
    code, out, err = quick("inspect", "office.dpsc.json", "--page", "office.html", "--table", "office.csv")
    assert code == 0, err
    assert "by others" in out
    assert "the publisher's word" in html.unescape(Path("office.html").read_text("utf-8"))
    assert "do not join" in quick("merge", "office.dpsc.json", "panel.dpsc.json", "-o", "all.dpsc.json")[2]
    assert "no guarantee to register" in quick("inspect", "office.dpsc.json", "--record")[2]
    more = ("--append", "office.dpsc.json", "--periods", "2022-07")
    assert "does not grow" in release(visits, *more, out="more.dpsc.json")[2]
    assert quick("audit", "office.dpsc.json")[0] == 0
    assert len(Ledger(book).entries("visits")) == 1


def test_sites_join_by_units_with_the_custodians_word(visits: Path) -> None:
    assert release(visits, *YEAR, "--no-ledger")[0] == 0
    other = ("--units", "a,b,c", *YEAR[2:], "--no-ledger")
    assert release(visits, *other, out="other.dpsc.json")[0] == 0
    files = ("panel.dpsc.json", "other.dpsc.json")
    code, _, err = quick("merge", *files, "-o", "all.dpsc.json")
    assert (code, "different units: give --disjoint" in err) == (2, True)
    code, out, err = quick("merge", *files, "--disjoint", "-o", "all.dpsc.json")
    assert code == 0, err
    assert "2 sites with different people" in " ".join(out.split())
    joined = load("all.dpsc.json")
    assert isinstance(joined, PrivatePanel)
    assert joined.units == (*UNITS, "a", "b", "c")
    assert joined.guarantee is not None
    assert joined.guarantee.epsilon == pytest.approx(1, rel=1e-3)
