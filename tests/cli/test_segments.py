"""Segments through the command: declared by the custodian, asked by the analyst, shown by every page."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, Release, scan
from dpsc.release.segments import Segments
from tests.cli.conftest import months, quick
from tests.making import long, save

SIZES = {"basic": 900, "plus": 500, "pro": 20, "gold": 10}
COLUMNS = ("--unit", "who", "--time", "month", "--outcome", "cost", "--periods", "2020-01..2021-06")
BY = ("--by", "plan", "--labels", "basic, plus,pro")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plans that move in ways of their own, and a target of the second one that was treated in 2021-03."""
    rng, there = np.random.default_rng(0), tmp_path_factory.mktemp("plans")
    plans = np.repeat(list(SIZES), list(SIZES.values()))
    factors = {plan: np.cumsum(rng.normal(size=18)) for plan in SIZES}
    paths = np.array([20 + rng.uniform(0.5, 1.5) * factors[plan] + 0.3 * rng.normal(size=18) for plan in plans])
    frame = long(paths.round(3), None, months(), ("who", "month", "cost"))
    save(frame.assign(plan=np.repeat(plans, 18)), there / "bills.csv")
    target = paths[plans == "plus"][:20].mean(axis=0) + 2.0 * (np.arange(18) >= 14)
    save(pd.DataFrame({"month": months(), "cost": target}), there / "target.csv")
    code, _, err = quick(
        "release", there / "bills.csv", *COLUMNS, *BY, "--epsilon", 1, "--delta", 1e-6, "--scale", 2,
        "--no-ledger", "-o", there / "bills.dpsc.json",
    )  # fmt: skip
    assert code == 0, err
    return there


def test_a_release_shows_its_segments_by_their_noisy_sizes(folder: Path) -> None:
    code, out, _ = quick("inspect", folder / "bills.dpsc.json", "--json")
    assert code == 0
    told = json.loads(out)
    assert told["by"] == "plan"
    about = {row["segment"]: row for row in told["segments"]}
    assert list(about) == ["basic", "plus", "pro", "other"]
    for segment, size in (*SIZES.items(), ("other", 10)):
        if segment != "gold":
            assert abs(about[segment]["donors"] - size) < 6 * about[segment]["error"]
    alone = told["noise_in_donors"] / 2  # of four segments
    assert [row["readable"] for row in about.values()] == [row["donors"] >= 2 * alone for row in about.values()]
    assert about["basic"]["readable"]
    code, out, _ = quick("inspect", folder / "bills.dpsc.json")
    assert "by plan: basic about" in " ".join(out.replace("│", " ").split())
    page = (folder / "bills.dpsc.html").read_text("utf-8")
    assert "and to which segment the donor belongs" in page
    assert f"about {about['plus']['donors']:,} donors" in page
    assert "--pool basic" in page
    code, out, _ = quick("inspect", folder / "bills.dpsc.json", "--record")
    assert "the names of the segments (plan: basic, plus, pro, other)" in out


def test_the_answer_says_which_segments_answered_and_lists_every_pool_that_was_tried(folder: Path) -> None:
    asked = ("estimate", folder / "bills.dpsc.json", folder / "target.csv", "--treatment-time", "2021-03")
    code, out, err = quick(*asked, "--pool", "plus", "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    release = Release.load(folder / "bills.dpsc.json")
    series = pd.read_csv(folder / "target.csv")["cost"].to_numpy()
    expected = release.estimate(series, "2021-03", pool="plus")
    assert answer["average_effect"] == pytest.approx(expected.att)
    assert answer["average_effect"] == pytest.approx(2.0, abs=1.0)
    assert answer["method"] == "Gram release, population model, donors of plan plus"
    assert answer["parameters"]["pool"] == "plan plus"
    assert "the donors of plan plus, about" in answer["paragraph"]
    pools = [row for row in answer["sensitivity"] if row["choice"].startswith("donors: ")]
    others = [one.asked for one in release.pools() if one.asked != "plan plus"]
    assert others[:2] == ["all segments of plan", "plan basic"]
    assert [row["choice"] for row in pools] == [f"donors: {pool}" for pool in others]
    assert pools[0]["effect"] == pytest.approx(release.estimate(series, "2021-03").att)
    assert pools[1]["effect"] == pytest.approx(release.estimate(series, "2021-03", pool="basic").att)
    assert answer["sensitivity"][0]["donors_help"] == "yes"
    assert answer["dates_tried"][0] == {"treatment_time": "2021-03", "for": ["the intervention"]}
    code, out, _ = quick(*asked, "--pool", "basic=0.25,plus=0.75", "-o", folder / "answer.html")
    page = (folder / "answer.html").read_text("utf-8")
    assert "donors of plan basic (25%) and plus (75%)" in page
    assert "donors: plan plus" in page


def test_a_segment_that_is_too_small_for_its_noise_is_answered_with_a_warning(folder: Path) -> None:
    frame = pd.read_csv(folder / "bills.csv").pivot(index=["who", "plan"], columns="month", values="cost")
    make = GramRelease(epsilon=1.0, delta=1e-6, scale=2.0, seed=0)
    plans = pd.Series(frame.index.get_level_values("plan"), name="plan")
    release = make.release(frame.to_numpy(), by=plans, labels=["basic", "plus", "pro"])
    series = pd.read_csv(folder / "target.csv")["cost"].to_numpy()
    (note,) = [note for note in release.estimate(series, 14, pool="pro").notes if "plan pro has about" in note]
    assert "it says little" in note
    assert not any("says little" in note for note in release.estimate(series, 14, pool="plus").notes)


def test_a_study_is_asked_of_a_pool_too(folder: Path) -> None:
    target = pd.read_csv(folder / "target.csv")
    table = pd.concat([target.assign(unit=name, cost=target["cost"] + k) for k, name in enumerate("ab")])
    save(table, folder / "several.csv")
    code, out, err = quick(
        "estimate", folder / "bills.dpsc.json", folder / "several.csv", "--unit", "unit", "--time", "month",
        "--outcome", "cost", "--treatment-time", "2021-03", "--pool", "plus", "--json",
    )  # fmt: skip
    assert code == 0, err
    study = json.loads(out)
    release = Release.load(folder / "bills.dpsc.json")
    one = release.estimate(target["cost"].to_numpy(), "2021-03", pool="plus")
    assert study["by_unit"][0]["effect"] == pytest.approx(one.att)
    assert study["parameters"]["pool"] == "plan plus"
    tried = {row["choice"]: row["effect"] for row in study["sensitivity"]}
    assert tried["as it is"] == study["average_effect"]
    whole = release.study(dict.fromkeys("ab", target["cost"].to_numpy()), "2021-03")
    assert tried["donors: all segments of plan"] == pytest.approx(whole.att)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pool", "pla"), "no segment 'pla' of 'plan'"),
        (("--pool", "basic=1,plus"), "every segment a share, or none"),
    ],
)
def test_a_pool_that_is_none_is_refused(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    asked = ("estimate", folder / "bills.dpsc.json", folder / "target.csv", "--treatment-time", "2021-03")
    code, _, err = quick(*asked, *arguments)
    assert code == 2
    assert message in " ".join(err.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "plan"), "declare --labels A,B,C"),
        (("--labels", "a,b"), "--labels belong to --by"),
        (("--by", "plan", "--labels", "a,a"), "different segments"),
        (("--by", "plan", "--labels", "a", "--person", "who"), "--by is for donors, not for people"),
    ],
)
def test_segments_that_are_not_declared_are_refused_before_anything_is_read(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    budget = ("--epsilon", 1, "--delta", 1e-6, "--no-ledger", "-o", folder / "x.json")
    code, _, err = quick("release", folder / "bills.csv", *COLUMNS, *arguments, *budget)
    assert code == 2
    assert message in " ".join(err.split())
    assert not (folder / "x.json").exists()


def test_the_custodian_sees_who_is_in_which_segment_and_what_was_not_declared(folder: Path) -> None:
    frame = pd.read_csv(folder / "bills.csv")
    first = frame["who"].unique()[:3]
    frame.loc[frame.index[frame["who"] == first[0]][:2], "plan"] = "plus"  # two segments
    frame.loc[frame["who"] == first[1], "plan"] = " "
    frame.loc[frame.index[frame["who"] == first[2]][1:], "plan"] = None  # said once
    save(frame, folder / "messy.csv")
    code, out, err = quick("check", folder / "messy.csv", *COLUMNS, *BY, "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    division = told["examination"]["division"]
    assert dict(zip(("basic", "plus", "pro", "other"), division["units"], strict=True)) == {
        "basic": 898, "plus": 500, "pro": 20, "other": 12,
    }  # fmt: skip
    assert division["undeclared"] == [["gold", 10]]
    found = {finding["kind"]: finding for finding in told["examination"]["findings"]}
    assert found["undeclared"]["examples"] == ["'gold': 10 units"]
    assert found["several segments"]["count"] == found["no segment"]["count"] == 1
    assert found["several segments"]["examples"] == [f"'{first[0]}' (line 2)"]
    small = found["small segment"]["words"]
    assert "'pro' (20 units), 'other' (12 units)" in small
    assert "Do not change the labels because of these numbers" in small
    summed = GramRelease(epsilon=1.0, delta=1e-6, scale=2.0).custodian_sum(
        scan(folder / "messy.csv", unit="who", time="month", outcome="cost", periods="2020-01..2021-06", by="plan",
             labels="basic,plus,pro")
    )  # fmt: skip
    assert [round(float(np.trace(block)) / 4.0**18) for block in summed.total] == division["units"]
    code, out, _ = quick("check", folder / "messy.csv", *COLUMNS, *BY)
    assert "Segments by 'plan'" in out
    assert "too small: ask it with others" in out
    (command,) = [line for line in told["commands"] if line.startswith("dpsc release")]
    assert "--by plan --labels basic,plus,pro" in " ".join(command.replace("\\", " ").split())


def test_labels_that_only_rows_show_are_not_taken_from_them(folder: Path) -> None:
    code, out, _ = quick("check", folder / "bills.csv", *COLUMNS, "--by", "plan", "--json")
    assert code == 1
    told = json.loads(out)
    (finding,) = [each for each in told["examination"]["findings"] if each["kind"] == "to be said"]
    assert finding["examples"] == ["the rows show --labels basic,gold,plus,pro"]
    assert any("--by plan --labels A,B,C" in line for line in told["commands"])
    wide_table = pd.read_csv(folder / "bills.csv").pivot(index=["who", "plan"], columns="month", values="cost")
    save(wide_table.reset_index(), folder / "wide.csv")
    code, out, _ = quick("check", folder / "wide.csv", "--unit", "who", "--wide", *BY, "--json")
    assert json.loads(out)["examination"]["division"]["units"] == [900, 500, 20, 10]
    code, _, err = quick("check", folder / "bills.csv", *COLUMNS, "--by", "tariff")
    assert code == 2
    assert "no column 'tariff' (--by)" in " ".join(err.split())


def test_a_plan_says_how_small_a_segment_may_be(folder: Path) -> None:
    asked = ("plan", "--n", 3000, "--before", 14, "--after", 4, "--epsilon", 1, "--epsilon", 2, "--runs", 1)
    code, out, err = quick(*asked, "--segments", 5, "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert [row["n"] for row in told["table"]] == [600, 600, 3000, 3000]
    one, two = told["segments"]
    share = GramRelease(epsilon=1.0, delta=1e-6).noise_share(3000, 18)
    assert one == {"epsilon": 1.0, "smallest": math.ceil(2 * share * 3000)}
    assert two["smallest"] < 0.6 * one["smallest"]
    code, out, _ = quick(*asked, "--segments", 5)
    said = " ".join(out.split())
    assert f"fewer donors than about {one['smallest']:,} at ε = 1, {two['smallest']:,} at ε = 2" in said
    assert "2.4 times the noise of 3,000 undivided donors" in said


def test_sites_take_their_segments_from_the_settings(folder: Path) -> None:
    place = folder / "settings.json"
    asked = ("plan", "--n", 1430, "--before", 14, "--after", 4, "--epsilon", 1, "--runs", 1, "--scale", 2, "--sites", 2)
    code, _, err = quick(*asked, *BY)
    assert code == 2
    assert "--by and --labels are for --settings" in " ".join(err.split())
    code, _, err = quick(*asked, *BY, "--settings", place)
    assert code == 0, err
    release = ("release", folder / "bills.csv", *COLUMNS, "--settings", place, "--no-ledger", "--no-page")
    code, _, err = quick(*release, "-o", folder / "site.dpsc.json")
    assert code == 0, err
    assert Release.load(folder / "site.dpsc.json").segments == Segments("plan", ("basic", "plus", "pro", "other"))
    code, _, err = quick(*release, "--by", "plan", "--labels", "plus,basic", "-o", folder / "site2.dpsc.json")
    assert code == 2
    assert "--by contradicts" in " ".join(err.split())
