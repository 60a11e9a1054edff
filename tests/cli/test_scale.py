"""How much a donor moves: given, from a public series, or found; what is said of it, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, Ledger, Release
from dpsc.custodian.gram.algorithm import CustodianSum
from tests.cli.conftest import T0, quick, unbooked
from tests.cli.test_mistakes import BUDGET, COLUMNS, refused

OLD = Path(__file__).parents[1] / "release" / "version-0.1.0.dpsc.json"
FIT = ("--treated-unit", "clinic", "--treatment-time", "2021-03-01")


@pytest.fixture
def few(files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with sixty donors in donors.csv, and the clinic besides in panel.csv."""
    panel = pd.read_csv(files / "panel.csv")
    kept = panel["who"].unique()[:61]
    panel[panel["who"].isin(kept)].to_csv(files / "panel.csv", index=False)
    panel[panel["who"].isin(set(kept) - {"clinic"})].to_csv(files / "donors.csv", index=False)
    monkeypatch.chdir(files)
    return files


def release(*more: object) -> Sequence[object]:
    return ["release", "donors.csv", *COLUMNS, *BUDGET, "-o", "r.json", *more, *unbooked(*more)]


def answered(*arguments: object) -> str:
    code, out, err = quick(*arguments)
    assert code == 0, err
    return " ".join(out.replace("│", " ").split())


def test_too_few_donors_ask_for_a_public_number_before_anything_is_booked(few: Path) -> None:
    Ledger("dpsc-ledger.sqlite", create=True).add_dataset("patients", epsilon=5, delta=1e-5)
    refused(release(), "60 donors are too few", "Give --like, a public series", "or --scale")
    assert Ledger("dpsc-ledger.sqlite").entries() == []
    assert not (few / "r.json").exists()
    for more in (("--scale", 3), ("--like", "target.csv", "--like-before", "2021-03")):
        assert quick(*release("--force", *more))[0] == 0
    assert len(Ledger("dpsc-ledger.sqlite").entries()) == 2


def test_what_the_scale_is_and_where_it_is_from_is_said_in_plain_words(files: Path, few: Path) -> None:
    given = answered(*release("--scale", 2.75))
    assert "a typical donor deviates by 2.75 from its own mean over time; given, as public knowledge" in given
    assert "directions all 17 in which a series of 18 periods can move" not in given
    assert "smoothest of the 17 patterns in which a series of 18 periods can move" in given
    assert "counts of donors" not in given
    described = json.loads(answered("inspect", "r.json", "--json"))
    kept = Release.load("r.json").row_map.directions
    assert described["directions"] == kept
    assert described["scale"] == {"deviation": pytest.approx(2.75), "source": "given", "share": 0.0}

    like = answered(*release("--like", "target.csv", "--like-before", "2021-03", "--force"))
    assert "from a public series, corrected privately with 10% of the budget" in like
    assert json.loads(answered("inspect", "r.json", "--json"))["scale"]["share"] == pytest.approx(0.1)


def test_a_scale_that_is_found_says_what_it_cost(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    found = answered(*release())
    scale = Release.load("r.json").scale
    assert scale.source == "counted"
    assert f"found privately with {100 * scale.share:.2g}% of the budget" in found
    assert "and on counts of donors by how much they move" in found
    values = pd.read_csv("donors.csv").pivot(index="who", columns="month", values="cost").to_numpy()
    typical = float(np.median(values.std(axis=1)))
    deviation = json.loads(answered("inspect", "r.json", "--json"))["scale"]["deviation"]
    assert typical / 3 < deviation < 3 * typical


def test_a_release_of_0_1_0_has_neither() -> None:
    shown = answered("inspect", OLD)
    assert "directions all, and the level: made by dpsc 0.1.0" in shown
    assert "scale none: made by dpsc 0.1.0" in shown
    described = json.loads(answered("inspect", OLD, "--json"))
    assert (described["directions"], described["scale"]["deviation"]) == (None, None)


@pytest.mark.parametrize("command", ["release", "fit"])
def test_a_public_series_is_read_in_the_order_of_time_as_far_as_the_treatment(
    few: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    real = GramRelease.custodian_sum

    def recording(self: GramRelease, donors: Any, **options: Any) -> CustodianSum:
        seen.append(self.like)
        return real(self, donors, **options)

    monkeypatch.setattr(GramRelease, "custodian_sum", recording)
    target = pd.read_csv("target.csv")
    target.sample(frac=1, random_state=0).to_csv("mixed.csv", index=False)
    like = ("--like", "mixed.csv", "--like-before", "2021-03-01")
    arguments = (
        release(*like) if command == "release" else ["fit", "--no-ledger", "panel.csv", *COLUMNS, *FIT, *BUDGET, *like]
    )
    answered(*arguments)
    np.testing.assert_array_equal(seen[0], target["cost"][:T0])


def test_fit_takes_the_treated_unit_and_says_if_that_does_not_move(few: Path) -> None:
    Ledger("dpsc-ledger.sqlite", create=True).add_dataset("patients", epsilon=5, delta=1e-5)
    arguments = ("fit", "panel.csv", *COLUMNS, *FIT, *BUDGET, "-o", "answer.csv")
    answered(*arguments)
    assert Release.load("answer.dpsc.json").scale.source == "like and counted"
    panel = pd.read_csv("panel.csv")
    panel.loc[panel["who"] == "clinic", "cost"] = 7.0
    panel.to_csv("panel.csv", index=False)
    refused((*arguments, "--force"), "60 donors are too few", "--like", "--scale")
    assert len(Ledger("dpsc-ledger.sqlite").entries()) == 1
    answered(*arguments, "--force", "--scale", 3)
    assert Release.load("answer.dpsc.json").scale.source == "given"


def test_mistakes_with_a_scale_or_a_series(few: Path) -> None:
    like = ("--like", "target.csv")
    refused(release("--scale", 0), "--scale must be a finite number above 0")
    refused(release("--scale", 3, *like), "give --scale or --like, not both")
    refused(release("--like-before", 3), "--like-before says where --like ends; give --like too")
    refused(release(*like, "--like-before", "2031-01"), "target.csv: --like-before 2031-01 is not one of the periods")
    refused(release(*like, "--like-before", "2020-02"), "--like must be a series of at least 2 finite numbers")
    for series in ("--like", "--reference"):
        refused(
            release(series, "panel.csv"), "panel.csv: the period 2020-01 occurs twice", "one number for each period"
        )
    refused(release("--like", "none.csv"), "none.csv: there is no such file")
    refused(release(*like, "-o", "target.csv", "--force"), "target.csv is read by this command")
    pd.DataFrame({"month": ["Jan 20", "Feb 20", "Mar 20"], "cost": [1.0, 2.0, 4.0]}).to_csv("m.csv", index=False)
    refused(release("--like", "m.csv"), "m.csv: the period 'Jan 20' does not sort in time order", "--time-format")
    answered(*release("--scale", 3))
