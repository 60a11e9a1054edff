"""Settings that sites agree on: releases add up, and an option that contradicts them is refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import Release
from dpsc.release.settings import Settings
from tests.cli.conftest import T0, H, months, quick
from tests.cli.test_mistakes import COLUMNS, refused

PATH = np.linspace(1, 2, T0 + H)
AGREED = Settings(
    scale=3.0, directions=6, smoothness="mild", periods=pd.DatetimeIndex(months()), reference=PATH,
    outcome="cost a month", grid_bits=16, epsilon=1.0, delta=1e-6,
)  # fmt: skip


@pytest.fixture
def sites(files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the donors of two sites, one with few, and the settings they agreed on."""
    table = pd.read_csv(files / "donors.csv")
    names = table["who"].unique()
    table[table["who"].isin(names[:40])].to_csv(files / "small.csv", index=False)
    table[table["who"].isin(names[40:])].rename(columns={"cost": "costs"}).to_csv(files / "large.csv", index=False)
    pd.DataFrame({"month": months(), "path": PATH}).to_csv(files / "path.csv", index=False)
    pd.DataFrame({"month": months(), "path": PATH + 1}).to_csv(files / "other.csv", index=False)
    AGREED.save(files / "settings.json")
    monkeypatch.chdir(files)
    return files


def small(*more: object) -> Sequence[object]:
    return ["release", "--no-ledger", "small.csv", *COLUMNS, "--settings", "settings.json", "-o", "small.json", *more]


def test_releases_made_from_the_same_settings_add_up(sites: Path) -> None:
    """The sites differ in size, in the name of the column and in the budget."""
    code, out, err = quick(*small())
    assert code == 0, err
    assert "declared beforehand" in " ".join(out.split())
    large = (
        "release",
        "--no-ledger",
        "large.csv",
        *COLUMNS[:-1],
        "costs",
        "--settings",
        "settings.json",
        "-o",
        "large.json",
    )
    code, _, err = quick(*large, "--epsilon", 2, "--delta", 1e-7)
    assert code == 0, err
    releases = [Release.load(f"{name}.json") for name in ("small", "large")]
    budgets = [(r.guarantee.epsilon, r.guarantee.delta) for r in releases if r.guarantee is not None]
    assert budgets == [(1.0, 1e-6), (2.0, 1e-7)]
    merged = Release.merge(releases, disjoint=True)
    assert (merged.n, merged.outcome, merged.row_map.directions, merged.grid_bits) == (400, "cost a month", 6, 16)
    np.testing.assert_array_equal(merged.reference, PATH)


def test_what_a_plan_writes_a_release_reads(sites: Path) -> None:
    code, _, err = quick(
        "plan", "--n", 400, "--sites", 2, "--before", T0, "--after", H, "--epsilon", 1, "--target", "target.csv",
        "--periods", "reference", "--reference", "path.csv", "--outcome", "cost", "--runs", 1,
        "--settings", "plan.json",
    )  # fmt: skip
    assert code == 0, err
    releases = []
    for name, column in (("small", "cost"), ("large", "costs")):
        about = (*COLUMNS[:-1], column, "--settings", "plan.json", "-o", f"{name}.json")
        code, _, err = quick("release", "--no-ledger", f"{name}.csv", *about)
        assert code == 0, err
        releases.append(Release.load(f"{name}.json"))
    merged = Release.merge(releases, disjoint=True)
    assert (merged.n, merged.scale.source, merged.outcome) == (400, "given", "cost")


@pytest.mark.parametrize(
    ("option", "agreeing", "contradicting"),
    [
        ("--smoothness", "mild", "high"),
        ("--scale", 3, 4),
        ("--like", None, "target.csv"),
        ("--grid-bits", 16, 18),
        ("--reference", "path.csv", "other.csv"),
        ("--periods", "2020-01..2021-06", "2020-01..2021-05"),
    ],
)
def test_an_option_besides_settings_must_not_contradict_them(
    sites: Path, option: str, agreeing: object | None, contradicting: object
) -> None:
    refused(small(option, contradicting), f"{option} contradicts settings.json", "Leave it out")
    assert not Path("small.json").exists()
    if agreeing is not None:
        assert quick(*small(option, agreeing))[0] == 0


def test_what_settings_do_not_say_is_left_to_the_site(sites: Path) -> None:
    replace(AGREED, periods=None, reference=None, outcome=None, epsilon=None).save("settings.json")
    refused(small(), "the settings suggest no --epsilon; give one")
    refused(small("--epsilon", 1, "--reference", "path.csv"), "--reference contradicts settings.json")
    code, _, err = quick(*small("--epsilon", 1, "--periods", "2020-01..2021-05"))
    assert code == 0, err
    release = Release.load("small.json")
    assert (release.T, release.outcome) == (T0 + H - 1, "cost")


def test_a_budget_that_nobody_gives_or_that_protects_nobody(sites: Path) -> None:
    without = ["release", "--no-ledger", "small.csv", *COLUMNS, "--scale", 3, "-o", "small.json"]
    refused(without, "--epsilon is needed (or a --settings FILE that has it)")
    refused([*without, "--epsilon", 1], "--delta is needed")
    replace(AGREED, epsilon=50.0).save("settings.json")
    refused(small(), "--epsilon 50 is above 20", "--i-know")
    assert quick(*small("--epsilon", 1))[0] == 0


def test_files_that_are_no_settings(sites: Path) -> None:
    refused([*small(), "--settings", "none.json"], "cannot read none.json")
    refused([*small(), "--settings", "target.csv"], "target.csv: this is not valid JSON")
    assert quick(*small())[0] == 0
    refused([*small(), "--settings", "small.json", "-o", "again.json"], "small.json: this is not a dpsc settings file")
    refused(small("-o", "settings.json", "--force"), "settings.json is read by this command")


def test_the_rule_for_missing_cells_may_be_in_the_settings_and_an_option_comes_first(sites: Path) -> None:
    table = pd.read_csv(sites / "small.csv")
    table.loc[7, "cost"] = np.nan
    table.to_csv(sites / "small.csv", index=False)
    replace(AGREED, periods=None, reference=None).save(sites / "settings.json")
    refused(small(), "has no value in period")
    replace(AGREED, periods=None, reference=None, missing="kernel").save(sites / "settings.json")
    refused(small("--missing", "error"), "has no value in period")
    code, _, err = quick(*small())
    assert code == 0, err
