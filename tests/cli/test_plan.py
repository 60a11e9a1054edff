"""``dpsc plan --settings``: what sites agree on, written before anything is spent."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dpsc import GramRelease, Release
from dpsc.gram import settings
from tests.cli.conftest import T0, H, quick

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
