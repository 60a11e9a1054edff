"""``dpsc check --person``: who is in which cell, what bounds would cut; private, and the same as counting by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import Ledger
from dpsc.checks import LONGEST_NAME
from tests.cli.conftest import quick
from tests.making import save

COLUMNS = ("--person", "who", "--unit", "region", "--time", "day", "--outcome", "cost")
UNITS, MONTHS = ["north", "south", "west"], ["2022-01", "2022-02", "2022-03"]
TABLE = ("--units", ",".join(UNITS), "--periods", "2022-01..2022-03", "--bounds", 10, 30)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    n = 4000
    who = rng.integers(0, 1200, n)
    region = np.where(rng.random(n) < 0.1, rng.choice([*UNITS, "North", "abroad"], n), np.array(UNITS)[who % 3])
    month = rng.choice([*MONTHS, "2021-12"], n)
    cost = rng.gamma(4, 5, n).round(2)
    return pd.DataFrame({"who": [f"p{i}" for i in who], "region": region, "day": month, "cost": cost})


def checked(frame: pd.DataFrame, folder: Path, *more: object) -> tuple[int, dict[str, Any]]:
    code, out, err = quick("check", save(frame, folder / "visits.csv"), *COLUMNS, *TABLE, *more, "--json")
    assert code in (0, 1), err
    return code, json.loads(out)


def test_it_counts_what_a_loop_counts(frame: pd.DataFrame, tmp_path: Path) -> None:
    code, seen = checked(frame, tmp_path)
    assert (code, seen["ready"]) == (0, True)
    inside = frame[frame["region"].isin(UNITS) & frame["day"].isin(MONTHS)]
    cells = inside.groupby(["who", "day", "region"])["cost"].sum().reset_index()
    people = cells.groupby(["region", "day"]).size().unstack()
    assert seen["in_cells"] == people.loc[UNITS, MONTHS].to_numpy().tolist()
    assert seen["people"] == inside["who"].nunique()
    several = cells.groupby(["who", "day"]).size()
    assert seen["in_several_units"] == several[several > 1].reset_index()["who"].nunique()
    assert seen["left_out"] == (several - 1).sum()
    assert seen["below"] == (cells["cost"] < 10).sum()
    assert seen["above"] == (cells["cost"] > 30).sum()
    assert seen["rows"] == len(frame)
    assert seen["outside_units"] == (~frame["region"].isin(UNITS)).sum()
    assert seen["outside_periods"] == (~frame["day"].isin(MONTHS)).sum()
    assert seen["shortened"] == 0


def test_bounds_on_people_are_counted(frame: pd.DataFrame, tmp_path: Path) -> None:
    seen = checked(frame, tmp_path, "--person-bound", 8, "--cells-per-person", 1)[1]
    assert 0 < seen["shortened"] < seen["people"]
    assert seen["left_out"] == sum(map(sum, seen["in_cells"])) - seen["people"]
    plain = checked(frame, tmp_path)[1]
    assert seen["noise"] < plain["noise"]


@pytest.mark.parametrize("statistic", ["mean", "total"])
def test_ten_times_smaller_a_bound_asks_for_ten_times_less_noise(
    statistic: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    """Sums of people are in finer parts of a step then; most people are longer than both bounds."""
    options = ("--statistic", statistic, "--epsilon", 0.03, "--person-bound")
    large, small = (checked(frame, tmp_path, *options, bound)[1] for bound in (0.8, 0.08))
    assert small["noise"] == pytest.approx(large["noise"] / 10, rel=0.02)
    assert small["too_few"] == large["too_few"]
    assert np.any(large["too_few"]) == (statistic == "mean")
    rehearsal = (
        "release",
        tmp_path / "visits.csv",
        *COLUMNS,
        *TABLE,
        *options[:4],
        "--delta",
        1e-6,
        "--dry-run",
        "--json",
    )
    noises = []
    for bound in (0.8, 0.08):
        code, out, err = quick(*rehearsal, "--person-bound", bound, "-o", tmp_path / "panel.json", "--no-ledger")
        assert code == 0, err
        noises.append(json.loads(out)["noise_of_a_sum"])
    assert noises[1] == pytest.approx(noises[0] / 10, rel=0.02)


def test_noise_before_a_bound_is_found_is_said_to_be_the_most_there_may_be(frame: pd.DataFrame, tmp_path: Path) -> None:
    options = (*COLUMNS, *TABLE, "--person-bound-quantile", 0.5)
    code, out, err = quick("check", save(frame, tmp_path / "visits.csv"), *options)
    assert code == 0, err
    said = " ".join(out.split())
    assert "noise at most a standard deviation of" in said
    assert "noise and change" not in said
    assert "--person-bound-quantile 0.5" in said  # of the command to run


def test_it_says_what_is_wrong_and_what_looks_wrong(frame: pd.DataFrame, tmp_path: Path) -> None:
    odd = frame.assign(who=frame["who"].mask(frame.index < 40, "").mask(frame.index == 50, "P7 "))
    seen = checked(odd, tmp_path, "--units", "north,south,West")[1]
    words = {finding["kind"]: finding for finding in seen["findings"]}
    assert words["nobody"]["count"] == 40
    assert words["alike"]["count"] == 2
    assert "Did you mean 'west'" in words["absent"]["examples"][0]
    assert "'west'" in " ".join(words["elsewhere"]["examples"])
    code, seen = checked(odd, tmp_path, "--periods", "2019-01..2019-03")
    assert code == 1
    assert [finding["kind"] for finding in seen["findings"] if finding["grade"] == "correct"] == ["empty"]
    code, seen = checked(odd, tmp_path, "--epsilon", 0.01)
    assert code == 1
    assert seen["findings"][0]["kind"] == "few"
    assert sum(map(sum, seen["too_few"])) == 9


def test_it_is_marked_private_spends_nothing_and_names_a_command_that_works(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quick("ledger", "init", "visits", "--epsilon", 2, "--delta", 1e-5)
    path = save(frame, tmp_path / "visits.csv")
    code, out, err = quick("check", path, *COLUMNS, *TABLE, "--statistic", "mean", "-o", "page.html")
    assert code == 0, err
    assert out.count("PRIVATE: for the custodian only") == 2
    assert Ledger("dpsc-ledger.sqlite").entries("visits") == []
    page = Path("page.html")
    assert "PRIVATE" in page.read_text("utf-8")
    assert page.stat().st_mode & 0o077 == 0
    (command,) = checked(frame, tmp_path, "--statistic", "mean")[1]["commands"]
    code, _, err = quick(*command.replace("\\\n", " ").split()[1:])
    assert code == 0, err
    assert Path("visits.dpsc.json").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--target", "x.csv"), "--like is for donors"),
        (("--person", "whom"), "no column 'whom'"),
        (("--units", "a" * (LONGEST_NAME + 1) + ",b,c"), "longer than 200 characters"),
        (("--statistic", "count", "--person-bound", 3), "are for means and totals"),
    ],
)
def test_a_mistake_gets_one_sentence(
    more: tuple[object, ...], message: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    code, out, err = quick("check", save(frame, tmp_path / "visits.csv"), *COLUMNS, *TABLE, *more)
    assert (code, out) == (2, "")
    assert message in err
