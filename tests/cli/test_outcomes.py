"""Several outcomes with the commands: one release, one booking, one file, and answers side by side."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from dpsc import GramRelease, PanelError, ParameterError, Releases, load, scan
from dpsc.custodian.custody import steps
from dpsc.ledger import Ledger
from dpsc.types import unwatched
from tests.cli.conftest import quick, unbooked

pytestmark = pytest.mark.usefixtures("drawn")
COLUMNS = ("--unit", "who", "--time", "month", "--periods", "2020-01..2021-06")
BOTH = ("--outcome", "cost", "--outcome", "visits")
BUDGET = ("--epsilon", 2, "--delta", 1e-6)


@pytest.fixture
def shop(files: Path) -> Path:
    """Donors and a target with two outcomes; the second moves like the first, 40 times as much, and has holes."""
    for name in ("donors.csv", "target.csv"):
        frame = pd.read_csv(files / name)
        frame["visits"] = (40 * frame["cost"]).round(2)
        if name == "donors.csv":
            frame.loc[frame["who"] == "patient 7", "visits"] = None
        frame.to_csv(files / name, index=False)
    return files


def release(files: Path, *more: object, out: str = "both.dpsc.json") -> tuple[int, str, str]:
    return quick("release", files / "donors.csv", *COLUMNS, *BOTH, *BUDGET, *more, *unbooked(*more), "-o", files / out)


def test_one_booking_pays_for_all_outcomes_and_names_them(shop: Path) -> None:
    ledger = Ledger(f"sqlite:///{shop / 'ledger.sqlite'}", create=True)
    ledger.add_dataset("clinics", epsilon=3, delta=1e-6)
    code, shown, err = release(shop, "--ledger", ledger.place, "--share", 3, "--share", 1)
    assert code == 0, err
    (entry,) = ledger.entries()
    assert entry.parameters["outcomes"] == "cost (3), visits (1)"
    assert entry.guarantee.epsilon == 2
    made = load(shop / "both.dpsc.json")
    assert isinstance(made, Releases)
    assert made.guarantee is not None
    assert made.guarantee.loss == entry.guarantee.loss
    squares = {name: part.guarantee.loss.mu_squared for name, part in made.items() if part.guarantee is not None}
    assert squares["cost"] == pytest.approx(3 * squares["visits"], rel=1e-4)
    assert {part.n for part in made.parts} == {400}  # a donor without a number counts, too
    assert made["cost"].datasets == made["visits"].datasets == ("clinics",)
    assert "cost and visits" in shown
    assert "alone" in shown


def test_a_dry_run_says_what_each_outcome_gets_and_books_nothing(shop: Path) -> None:
    code, shown, err = release(shop, "--dry-run", "--json")
    assert code == 0, err
    told = json.loads(shown)
    assert told["guarantee"].startswith("(2, 1e-06)")
    assert {name: own["guarantee"][:6] for name, own in told["outcomes"].items()} == {
        "cost": "(1.371",
        "visits": "(1.371",
    }
    assert not (shop / "both.dpsc.json").exists()
    assert "cost, noise: as large as" in release(shop, "--dry-run")[1]


@pytest.fixture
def made(shop: Path) -> Path:
    code, _, err = release(shop)
    assert code == 0, err
    return shop


def test_all_outcomes_are_answered_side_by_side_in_one_report(made: Path) -> None:
    asked = ("estimate", made / "both.dpsc.json", made / "target.csv", "--treatment-time", "2021-03")
    code, shown, err = quick(*asked, "-o", made / "report")
    assert code == 0, err
    assert "adjusted" in shown
    assert "Holm's method" in " ".join(shown.split())
    assert "the 2 outcomes of the release together cost epsilon 2 at delta 1e-06" in " ".join(shown.split())
    page = html.unescape((made / "report" / "comparison.html").read_text(encoding="utf-8"))
    assert "Effects on cost and visits" in page
    assert "p-value, adjusted" in page
    content = json.loads((made / "report" / "comparison.json").read_text(encoding="utf-8"))
    cost, visits = content["answers"]
    assert visits["average effect"] == pytest.approx(40 * cost["average effect"], rel=0.5)
    for row in (cost, visits):
        assert row["adjusted p-value"] >= row["p-value"]
    own = json.loads((made / "report" / "1-cost" / "result.json").read_text(encoding="utf-8"))
    assert own["average_effect"] == cost["average effect"]
    assert any("epsilon 1.37 is for cost alone" in note for note in own["notes"])
    assert (made / "report" / "2-visits" / "report.html").is_file()
    for ending in ("html", "xlsx", "csv", "md", "tex", "png", "json"):
        assert quick(*asked, "-o", made / f"answer.{ending}")[0] == 0
    sheets = openpyxl.load_workbook(made / "answer.xlsx").sheetnames
    assert {"1 cost path", "2 visits without donors"} <= set(sheets)  # the names of outcomes are whole
    assert json.loads(quick(*asked, "--json")[1])["answers"][0]["answer"] == "cost"


def test_one_outcome_is_chosen_by_its_name(made: Path) -> None:
    asked = ("estimate", made / "both.dpsc.json", made / "target.csv", "--treatment-time", "2021-03")
    code, shown, err = quick(*asked, "--outcome", "visits", "--json")
    assert code == 0, err
    assert json.loads(shown)["outcome"] == "visits"
    alone = pd.read_csv(made / "target.csv")[["month", "visits"]].rename(columns={"visits": "number"})
    alone.to_csv(made / "alone.csv", index=False)
    again = quick("estimate", made / "both.dpsc.json", made / "alone.csv", *asked[3:], "--outcome", "visits", "--json")
    assert json.loads(again[1])["average_effect"] == json.loads(shown)["average_effect"]
    code, _, err = quick(*asked, "--outcome", "visit")
    assert code == 2
    assert "no outcome 'visit'. Did you mean 'visits'" in err
    code, _, err = quick("estimate", made / "both.dpsc.json", made / "alone.csv", *asked[3:])
    assert code == 2  # a column without a name of an outcome is not taken for both
    code, _, err = quick(*asked, "--units", "euros")
    assert "choose one with --outcome" in err
    code, _, err = quick(*asked, "--units", "cost=euros", "-o", made / "units.csv")
    assert (code, err) == (0, "")
    assert ',"euros",' in (made / "units.csv").read_text("utf-8").splitlines()[1]


def test_units_of_a_table_are_answered_for_each_outcome(made: Path) -> None:
    donors = pd.read_csv(made / "donors.csv")
    some = donors[donors["who"].isin(["patient 1", "patient 2"])].assign(start="2021-03")
    some.to_csv(made / "units.csv", index=False)
    code, shown, err = quick(
        "estimate", made / "both.dpsc.json", made / "units.csv", "--unit", "who", "--treatment-time-column", "start",
        "--json",
    )  # fmt: skip
    assert code == 0, err
    assert [row["answer"] for row in json.loads(shown)["answers"]] == ["cost", "visits"]


def test_inspect_page_record_and_audit_know_all_outcomes(made: Path) -> None:
    path = made / "both.dpsc.json"
    told = json.loads(quick("inspect", path, "--json")[1])
    assert [own["outcome"] for own in told["outcomes"]] == ["cost", "visits"]
    assert told["guarantee"]["epsilon"] == 2
    assert quick("inspect", path, "--page", made / "again.html")[0] == 0
    page = (made / "again.html").read_text(encoding="utf-8")
    assert page == (made / "both.dpsc.html").read_text(encoding="utf-8")
    for said in ("A private release of cost and visits", "cost alone", "visits alone", "epsilon 1.37", "ε = 2"):
        assert said in page
    record = json.loads(quick("inspect", path, "--record")[1])["deployment"]
    assert record["privacy_loss"]["privacy_parameters"] == {"epsilon": 2.0, "delta": 1e-6}
    assert "cost and visits" in record["basic"]["name"]
    assert "2 outcomes of the same donors" in record["implementation"]["composition"]
    code, shown, _ = quick("audit", path, "--json")
    assert code == 0
    checks = {check["what"]: check["verdict"] for check in json.loads(shown)["checks"]}
    assert checks["claim"] == checks["cost: claim"] == checks["visits: claim"] == "holds"
    code, _, err = quick("merge", path, path, "--disjoint", "-o", made / "merged.dpsc.json")
    assert code == 2
    assert "one file for each outcome" in err


def test_knowledge_is_given_for_each_outcome(shop: Path) -> None:
    code, shown, err = release(shop, "--scale", 1.5, "--scale", 60, "--json")
    assert code == 0, err
    scales = [own["scale"] for own in json.loads(shown)["outcomes"]]
    assert [round(scale["deviation"], 2) for scale in scales] == [1.5, 60]
    assert {scale["source"] for scale in scales} == {"given"}
    like = ("--like", shop / "target.csv", "--like-before", "2021-03")
    code, shown, err = release(shop, *like, "--json", out="like.dpsc.json")
    assert code == 0, err
    cost, visits = (own["scale"] for own in json.loads(shown)["outcomes"])
    assert {cost["source"], visits["source"]} == {"like and counted"}
    assert 20 < visits["deviation"] / cost["deviation"] < 80
    pd.read_csv(shop / "target.csv")[["month", "cost"]].to_csv(shop / "one.csv", index=False)
    code, _, err = release(shop, "--like", shop / "one.csv", out="one.dpsc.json")
    assert code == 2
    assert "a column for each" in err


@pytest.mark.parametrize(
    ("more", "match"),
    [
        (("--outcome", "cost"), "different outcomes"),
        (("--share", 1), "--share is given 1 times for 2 outcomes"),
        (("--share", 1, "--share", 0), "above 0"),
        (("--scale", 1), "--scale is given 1 times for 2 outcomes"),
        (("--bounds", 0, 9), "--bounds is for one outcome"),
        (("--settings", "sites.json"), "--settings is for one outcome"),
        (("--outcome", "nothing"), "no column 'nothing'"),
        (("--person", "who", "--units", "a,b"), "with its share of the budget"),
    ],
)
def test_what_does_not_go_with_several_outcomes_is_refused_before_anything_is_booked(
    shop: Path, more: tuple[object, ...], match: str
) -> None:
    quick("ledger", "init", "clinics", "--epsilon", 3, "--delta", 1e-6)
    code, _, err = release(shop, *more)
    assert code == 2
    assert match in " ".join(err.split())
    assert not (shop / "both.dpsc.json").exists()
    assert Ledger("dpsc-ledger.sqlite").entries() == []


def test_share_belongs_to_several_outcomes(shop: Path) -> None:
    code, _, err = quick(
        "release", shop / "donors.csv", *COLUMNS, "--outcome", "cost", "--share", 1, *BUDGET, "-o", shop / "x.dpsc.json"
    )
    assert code == 2
    assert "belongs to several outcomes" in err


@pytest.mark.parametrize("command", ["check", "plan", "fit"])
def test_other_commands_do_not_keep_the_last_of_several_outcomes_silently(shop: Path, command: str) -> None:
    asked: dict[str, tuple[object, ...]] = {
        "check": (),
        "plan": ("--n", 100, "--before", 8, "--after", 4, *BOTH),
        "fit": (shop / "panel.csv", "--unit", "who", "--time", "month", *BOTH),
    }
    if command == "check":
        return
    code, _, err = quick(command, *asked[command])
    assert code == 2
    assert "--outcome is given 2 times" in err


def test_donors_that_change_between_outcomes_are_refused(shop: Path) -> None:
    """A file that is written anew between two readings, or that has another donor then."""
    make = GramRelease(epsilon=2.0, delta=1e-6)
    how: dict[str, Any] = {"unit": "who", "time": "month", "periods": "2020-01..2021-06"}
    donors = {name: scan(shop / "donors.csv", outcome=name, **how) for name in ("cost", "visits")}
    one = {name: steps.Choices(make, None, None, None) for name in donors}
    chosen = steps.SeveralChoices.of(one, None)

    def changing(name: str, source: Any, part: steps.Choices) -> Any:
        summed = steps.added_up(source, part, unwatched, i_know=False)
        os.utime(shop / "donors.csv", (1, len(name)))
        return summed

    with pytest.raises(ParameterError, match="changed while"):
        steps.each_added_up(donors, chosen, changing)

    other = pd.read_csv(shop / "donors.csv")
    other[other["who"] != "patient 3"].to_csv(shop / "fewer.csv", index=False)
    fewer = {**donors, "visits": scan(shop / "fewer.csv", outcome="visits", **how)}
    with pytest.raises(PanelError, match="different numbers of donors"):
        make.release(fewer)
