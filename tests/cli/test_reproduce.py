from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import quick, start
from tests.soak import quick_or_long

pytestmark = pytest.mark.end_to_end
RUNS = quick_or_long(4, 200)
FIGURES = ["data", "lambda", "theory", "epsilon-sizes"]  # one of each kind
FIGURES += quick_or_long([], ["epsilon", "delta", "lambda-sizes"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reproduction")
    chosen = quick_or_long([word for name in FIGURES for word in ("--figure", name)], [])  # by default, every figure
    code, shown, err = quick("reproduce", *chosen, "--runs", RUNS, "--out", out)
    assert (code, err) == (0, "")
    assert "NOT PRIVATE" in shown
    return out


def test_every_figure_is_there_in_three_forms(folder: Path) -> None:
    for name in FIGURES:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"{name}.svg").read_text("utf-8")
        assert len(pd.read_csv(folder / f"{name}.csv")) > 10
    assert not list(folder.glob(".*"))


def test_the_tables_hold_every_recipe_the_yardsticks_and_the_bounds(folder: Path) -> None:
    table = pd.read_csv(folder / "theory.csv")
    assert set(table["recipe"]) == {"published", "printed", "ours"}
    assert {"ridge", "last value", "straight line", "donors' mean", "out bound corrected"} <= set(table["series"])
    table = pd.read_csv(folder / "epsilon-sizes.csv")
    assert sorted(table.loc[table["series"] == "out", "epsilon1"].unique() * 2) == [2, 4, 10, 20, 40, 100, 200]
    assert len(table[["n", "T0"]].drop_duplicates()) == 4
    published = table[(table["recipe"] == "published") & table["series"].isin(["out", "obj"])]
    assert set(published["protection"]) == {"NOT PRIVATE"}
    measured = table[table["runs"].notna()]
    assert ((measured["lower"] <= measured["rmse"]) & (measured["rmse"] <= measured["upper"])).all()
    gram = table[(table["series"] == "gram") & (table["n"] == 100) & (table["epsilon1"] == 1)]
    out = table[
        (table["series"] == "out") & (table["n"] == 100) & (table["epsilon1"] == 1) & (table["recipe"] == "ours")
    ]
    assert gram["rmse"].max() < out["rmse"].min() / 10


def test_the_claims_are_judged_for_every_recipe(folder: Path) -> None:
    claims = pd.read_csv(folder / "claims.csv")
    assert claims.groupby("recipe").size().nunique() == 1
    assert set(claims["verdict"]) <= {"holds", "does not hold", "undecided"}
    assert (claims.loc[claims["recipe"] == "published", "protection"] == "NOT PRIVATE").all()
    assert claims["evidence"].str.contains(r"\d").all()


def test_the_page_needs_nothing_from_outside(folder: Path) -> None:
    page = (folder / "report.html").read_text("utf-8")
    assert page.count("data:image/svg+xml;base64,") == len(FIGURES)
    addresses = re.findall(r"(?:src|href)\s*=\s*[\"']?([^\"'>\s]{0,40})", page)
    assert addresses
    assert all(address.startswith("data:") for address in addresses)
    assert "NOT PRIVATE" in page


def test_the_same_seed_gives_the_same_tables_and_another_does_not(folder: Path, tmp_path: Path) -> None:
    for seed, same in (("0", True), ("1", False)):
        out = tmp_path / seed
        code, _, err = quick(
            "reproduce", "--figure", "lambda", "--recipe", "printed", "--runs", RUNS, "--seed", seed, "--out", out
        )
        assert code == 0, err
        mine = pd.read_csv(out / "lambda.csv")
        theirs = pd.read_csv(folder / "lambda.csv")
        theirs = theirs[theirs["recipe"] == "printed"].reset_index(drop=True)
        assert mine["rmse"].equals(theirs["rmse"]) is same


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    command = ["reproduce", "--figure", "lambda", "--recipe", "ours", "--runs", str(max(20, RUNS)), "--out"]
    process = start(*command, tmp_path)
    points = tmp_path / "points.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if points.exists() and len(points.read_text("utf-8").splitlines()) > 2:
            process.send_signal(signal.SIGINT)
            break
        time.sleep(0.002)
    _, said = process.communicate(timeout=60)
    if process.returncode != 0:  # it may have been too quick to interrupt
        assert process.returncode == 2
        assert "--resume" in said
        assert "Traceback" not in said
    before = points.read_text("utf-8").splitlines()[1:]
    code, _, err = quick(*command, tmp_path, "--resume")
    assert code == 0, err
    assert quick(*command, tmp_path / "whole")[0] == 0
    after = points.read_text("utf-8").splitlines()[1:]
    assert after[: len(before)] == before
    whole = pd.read_csv(tmp_path / "whole" / "lambda.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "lambda.csv"), whole)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--figure", "lamda"], "Did you mean 'lambda'?"),
        (["--recipe", "mine"], "published, printed, ours"),
        (["--runs", "1"], "--runs"),
        (["--out", "/proc/nowhere", "--figure", "data"], "/proc/nowhere"),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str) -> None:
    code, _, err = quick("reproduce", *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
