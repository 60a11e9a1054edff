"""``dpsc plan``: what sites agree on, what a budget shows, and what a private panel would hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, Release, plan_panel
from dpsc.answers.words import number
from dpsc.ledger.budget import Budget, Cost
from dpsc.release import settings
from tests.cli.conftest import T0, H, quick, shown

PLAN = ("plan", "--before", T0, "--after", H, "--runs", 1)


def test_settings_are_written_and_releases_made_from_them_add_up(files: Path) -> None:
    place = files / "settings.json"
    code, out, err = quick(
        *PLAN, "--n", 300, "--epsilon", 1, "--like", files / "target.csv", "--sites", 2, "--outcome", "cost",
        "--periods", "2021-01-01,2021-02-01", "--settings", place,
    )  # fmt: skip
    assert code == 2
    assert "--periods" in err
    assert not place.exists()
    code, out, err = quick(
        *PLAN, "--n", 300, "--epsilon", 1, "--like", files / "target.csv", "--sites", 2, "--outcome", "cost",
        "--periods", files / "target.csv", "--settings", place,
    )  # fmt: skip
    assert code == 0, err
    assert str(place) in out.replace("\n", "")
    agreed = settings.load(place)
    assert (agreed.outcome, agreed.epsilon, agreed.delta) == ("cost", 1.0, 1e-6)
    assert agreed.periods is not None
    assert len(agreed.periods) == T0 + H
    rng = np.random.default_rng(0)
    parts = [GramRelease.from_settings(place).release(rng.normal(size=(n, T0 + H))) for n in (20, 280)]
    assert Release.merge(parts, disjoint=True).n == 300


def test_periods_are_said_by_their_dates_or_by_how_many_they_are(files: Path) -> None:
    target, date = ("--target", files / "target.csv"), ("--treatment-time", "2021-03")
    plan = ("plan", "--n", 300, "--epsilon", 1, "--runs", 1, "--json")
    counted = quick(*plan, "--before", T0, "--after", H, *target)
    months = f"{shown()[0]}..{shown()[-1]}"
    said: list[tuple[object, ...]] = [
        target + date,
        ("--periods", months, *target, *date),
        ("--periods", T0 + H, "--before", T0, *target),
    ]
    pd.read_csv(files / "target.csv")[:T0].to_csv(files / "until.csv", index=False)
    said.append(("--periods", months, "--target", files / "until.csv", *date))
    assert counted[0] == 0
    for options in said:
        assert quick(*plan, *options) == counted
    for options, message in [
        (("--periods", months, "--before", T0, *date), "give --treatment-time or --before, not both"),
        (("--periods", months, "--before", T0, "--after", H + 1), f"--periods are {T0 + H}, and --before and --after"),
        (("--target", files / "until.csv", *date), "Or say all periods: --periods FIRST..LAST"),
        (date, "--treatment-time needs the periods"),
        (("--periods", months), "--periods FIRST..LAST --treatment-time PERIOD (or --before and --after) is needed"),
    ]:
        code, _, err = quick(*plan, *options)
        assert code == 2
        assert message in " ".join(err.replace("│", " ").split())


def test_the_scale_may_be_given_and_the_reference_written(files: Path) -> None:
    code, out, err = quick(
        *PLAN, "--n", 300, "--epsilon", 1, "--scale", 7.5, "--reference", files / "target.csv", "--periods",
        "reference", "--settings", files / "s.json", "--json",
    )  # fmt: skip
    assert code == 0, err
    assert json.loads(out)["settings"] == str(files / "s.json")
    agreed = settings.load(files / "s.json")
    assert agreed.scale == 7.5
    assert agreed.reference is not None
    assert agreed.reference.shape == (T0 + H,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--n", 100, "--epsilon", 1), "--scale or --like"),
        (("--n", 100, "--n", 200, "--epsilon", 1, "--scale", 1), "one --n"),
        (("--n", 100, "--scale", 1), "one --epsilon"),
        (("--n", 100, "--epsilon", 1, "--scale", -1), "--scale"),
        (("--n", 100, "--epsilon", 1, "--scale", 1, "--reference", "target.csv"), "--periods reference"),
        (("--n", 100, "--epsilon", 1, "--scale", 1, "--rank", 0), "--rank"),
        (("--n", 100, "--epsilon", 1, "--scale", 1, "--sites", 101), "--sites"),
    ],
)
def test_settings_that_cannot_be_agreed_on_are_refused_and_nothing_is_left(
    files: Path, options: tuple[object, ...], message: str
) -> None:
    options = tuple(files / "target.csv" if option == "target.csv" else option for option in options)
    code, _, err = quick(*PLAN, *options, "--settings", files / "s.json")
    assert code == 2
    assert message in err
    assert not (files / "s.json").exists()


def test_settings_are_not_written_over_something_else(files: Path) -> None:
    options = (*PLAN, "--n", 100, "--epsilon", 1, "--like", files / "target.csv", "--settings")
    before = (files / "target.csv").read_bytes()
    assert (quick(*options, files / "target.csv", "--force")[0], (files / "target.csv").read_bytes()) == (2, before)
    (files / "s.json").write_text("mine")
    assert quick(*options, files / "s.json")[0] == 2
    assert (files / "s.json").read_text("utf-8") == "mine"


def test_the_effect_to_be_seen_comes_first_and_the_budget_follows(files: Path) -> None:
    options = (*PLAN, "--n", 400, "--averages", 30, "--target", files / "target.csv")
    code, out, err = quick(*options, "--detect", "50%", "--json")
    assert code == 0, err
    answer = json.loads(out)
    (way,) = (each for each in answer["ways"] if each["change"] == "budget")
    assert (way["n"], way["T0"]) == (400, T0)
    seen = {row["epsilon"]: row["detectable"] for row in answer["table"]}
    near = [e for e in seen if e >= way["epsilon"] * 0.999]
    values = pd.read_csv(files / "target.csv").iloc[:T0, -1]
    assert seen[min(near)] <= 0.5 * abs(values.mean()) * 1.001
    code, out, err = quick(*options, "--detect", "50%")
    assert code == 0, err
    assert out.index("To see an effect of 50%") < out.index("What to expect")
    out = " ".join(out.split())
    assert "an attacker would guess right" in out
    assert f"50% of the target's mean before the intervention, which is {number(abs(values.mean()) / 2)}:" in out


def test_if_no_budget_is_enough_it_says_what_to_change(files: Path) -> None:
    options = (*PLAN, "--n", 30, "--target", files / "target.csv")
    code, out, err = quick(*options, "--detect", "0.000001")
    assert code == 0, err
    assert "no budget up to" in out
    assert "averages more units" in " ".join(out.split())


def test_several_releases_share_a_budget_by_the_ledgers_own_rules() -> None:
    code, out, err = quick(*PLAN, "--n", 300, "--epsilon", 2, "--releases", 8, "--json")
    assert code == 0, err
    rows = json.loads(out)["releases"]
    assert [row["releases"] for row in rows] == [8, 4, 2, 1]
    assert rows[-1]["epsilon"] == 2.0
    budget = Budget(2.0, 1e-6)
    for row in rows:
        promise, more = (GramRelease(epsilon=k * row["epsilon"], delta=1e-6).guarantee for k in (1, 1.001))
        assert promise is not None
        assert more is not None
        assert budget.allows([Cost.of(promise)] * row["releases"])
        assert not budget.allows([Cost.of(more)] * row["releases"])
        assert row["epsilon"] > 2 / row["releases"] * 0.999
    assert [row["detectable"] for row in rows] == sorted((row["detectable"] for row in rows), reverse=True)
    _, shown, _ = quick(*PLAN, "--n", 300, "--epsilon", 2, "--releases", 8)
    for row in rows:  # a number rounded up would be refused by the ledger
        assert f" {row['epsilon']:.10g} " in shown


def test_an_effect_that_each_of_several_releases_must_show_needs_a_budget_of_all() -> None:
    """The two questions could not be asked together."""
    options = (*PLAN, "--n", 3000, "--error", 3, "--runs", 2, "--releases", 8)
    code, out, err = quick(*options, "--json")
    assert code == 0, err
    (way,) = json.loads(out)["ways"]
    assert 0.999 * way["epsilon"] <= Budget(way["budget_of_all"], 1e-6).each(8, 1e-6) <= 1.02 * way["epsilon"]
    told = f"8 releases at ε = {way['epsilon']:.2g} each need a budget of ε = {way['budget_of_all']:g} at δ = 1e-06"
    assert told in " ".join(quick(*options)[1].split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--detect", "5%"), "--target"),
        (("--detect", "much"), "--detect"),
        (("--detect", "1", "--pilot", "pilot.dpsc.json"), "--pilot is for budgets of one release"),
        (("--detect", "-3"), "--detect"),
        (("--detect", "1", "--error", 1), "one of --error and --detect"),
        (("--detect", "1", "--n", 50), "one --n"),
        (("--error", 1, "--epsilon", 1), "leave out --epsilon"),
        (("--releases", 4), "one --epsilon"),
    ],
)
def test_questions_that_cannot_be_answered_are_refused(options: tuple[object, ...], message: str) -> None:
    code, _, err = quick(*PLAN, "--n", 100, *options)
    assert code == 2
    assert message in err


IN_GROUPS = ("plan", "--units", 40, "--people", 800, "--bounds", 0, 100)


def test_a_plan_of_people_in_groups_is_that_of_the_library(files: Path) -> None:
    code, out, err = quick(*IN_GROUPS, "--periods", "2021-01..2023-12", "--change", 2, "--epsilon", 1, "--json")
    assert code == 0, err
    found = json.loads(out)
    wanted = plan_panel(40, 800, 36, 6, epsilon=1.0, bounds=(0.0, 100.0), change=2.0)
    assert found["table"] == wanted.table.to_dict("records")
    assert found["ways"] == wanted.ways(1.0).reset_index().to_dict("records")
    assert found["finding_the_person_bound"] == wanted.finding(1.0)
    code, out, err = quick(*IN_GROUPS, "--periods", 36, "--change", 2)
    assert code == 0, err
    assert "40 units of 800 people, 30 + 6 periods" in out
    assert "units in pairs" in out
    assert "finds one privately: 2.6% more noise" in " ".join(out.split())


def test_a_panel_that_grows_is_planned_for_all_its_releases() -> None:
    code, out, err = quick(*IN_GROUPS, "--periods", 36, "--monthly", 24, "--epsilon", 1, "--json")
    assert code == 0, err
    each = json.loads(out)["table"][0]["epsilon_each"]
    assert 1 / 24 < each < 1  # costs add up in squares


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--people", 9, "--periods", 9), "--bounds"),
        (("--periods", 9, "--bounds", 0, 1), "--people is needed"),
        (("--people", 9, "--bounds", 0, 1), "--periods is needed"),
        (("--people", 9, "--periods", 9, "--bounds", 1, 0), "not below the upper one"),
        (("--people", 9, "--periods", 9, "--bounds", 0, 1, "--person-bound", 0), "above 0"),
        *(
            (("--people", 9, "--periods", 9, "--bounds", 0, 1, option, value), f"--{name} is for donors")
            for option, value, name in (
                ("--n", 300, "n"),
                ("--detect", "5%", "detect"),
                ("--averages", 4, "averages"),
                ("--sites", 2, "sites"),
                ("-o", "plan", "out"),
            )
        ),
    ],
)
def test_a_plan_of_people_in_groups_says_what_it_lacks(options: tuple[object, ...], message: str) -> None:
    code, _, err = quick("plan", "--units", 10, *options)
    assert code == 2
    assert message in err.replace("\n", " ")
