"""What ``dpsc release`` does, and in which order: booked first, then released; periods from a range, a list, a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsc import GramRelease, Ledger, Release
from dpsc.custodian.gram.algorithm import CustodianSum
from dpsc.privacy import discrete
from dpsc.release.scale import MOST_COUNTS
from tests.cli.conftest import months, quick, shown

COLUMNS = ("--unit", "who", "--time", "month", "--outcome", "cost")
BUDGET = ("--epsilon", 1, "--delta", 1e-7)


def init(book: Path, *about: object) -> None:
    code, _, err = quick("ledger", "init", "patients", "--ledger", book, "--epsilon", 2, "--delta", 1e-6, *about)
    assert code == 0, err


FIT = ("--treated-unit", "clinic", "--treatment-time", "2021-03-01")


@pytest.mark.parametrize("command", [("release", "donors.csv"), ("fit", "panel.csv", *FIT)], ids=["release", "fit"])
@pytest.mark.parametrize("scale", [("--scale", 3), ()], ids=["given", "found"])
def test_the_cost_is_booked_before_the_noise_of_anything_published_is_drawn(
    command: tuple[str, ...], scale: tuple[object, ...], files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the counts that a scale is found from have their noise before: they stay inside until all is booked."""
    book, seen = files / "book.sqlite", []
    init(book)
    real = discrete.add

    def watched(values: Any, *arguments: Any, **options: Any) -> Any:
        seen.append((len(values), [entry.state for entry in Ledger(book).entries("patients")]))
        return real(values, *arguments, **options)

    monkeypatch.setattr(discrete, "add", watched)
    monkeypatch.chdir(files)
    code, _, err = quick(*command, *COLUMNS, *BUDGET, *scale, "--ledger", book, "-o", "out.csv")
    assert code == 0, err
    counted, matrix = ([], seen) if scale else (seen[:1], seen[1:])
    assert counted == ([] if scale else [(MOST_COUNTS, [])])
    assert len(matrix) == 2
    assert all(states == ["booked"] for _, states in matrix)
    assert [entry.state for entry in Ledger(book).entries("patients")] == ["confirmed"]


@pytest.mark.parametrize("command", [("release", "donors.csv"), ("fit", "panel.csv", *FIT)], ids=["release", "fit"])
def test_a_scale_that_was_found_is_not_shown_if_the_booking_is_refused(
    command: tuple[str, ...], files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book, found = files / "book.sqlite", []
    init(book)
    real = GramRelease.custodian_sum

    def recording(self: GramRelease, donors: Any, **options: Any) -> CustodianSum:
        found.append(real(self, donors, **options))
        return found[-1]

    monkeypatch.setattr(GramRelease, "custodian_sum", recording)
    monkeypatch.chdir(files)
    before = set(files.iterdir())
    code, out, err = quick(*command, *COLUMNS, "--epsilon", 2.5, "--delta", 1e-7, "--ledger", book, "-o", "out.csv")
    assert (code, out) == (2, "")
    assert "over budget" in err
    assert found[0].scale.share > 0
    assert f"{found[0].scale.value:.3g}" not in re.findall(r"[\d.]+", err)
    assert set(files.iterdir()) == before
    assert Ledger(book).entries("patients") == []


def test_the_number_of_donors_is_not_held_against_a_release_that_leaves_some_out(files: Path) -> None:
    """The data set has 401 units; without the treated one there are 400, which is no contradiction."""
    book = files / "book.sqlite"
    init(book, "--about", "n=401")
    arguments = ("release", files / "panel.csv", *COLUMNS, *BUDGET, "--ledger", book, "-o", files / "r.json")
    code, _, err = quick(*arguments, "--exclude", "clinic")
    assert code == 0, err
    assert Release.load(files / "r.json").n == 400
    code, _, err = quick("release", files / "donors.csv", *arguments[2:-1], files / "other.json")
    assert code == 2
    assert "n" in err


@pytest.mark.parametrize("how", ["range", "list", "file", "reference"])
def test_periods_are_declared_in_any_of_four_ways(how: str, files: Path) -> None:
    table = pd.read_csv(files / "donors.csv").drop(index=[7, 31])  # which is no longer complete
    table.to_csv(files / "donors.csv", index=False)
    pd.DataFrame({"month": months()}).to_csv(files / "months.csv", index=False)
    pd.DataFrame({"month": months(), "index": range(18)}).to_csv(files / "path.csv", index=False)
    said = {
        "range": "2020-01..2021-06", "list": ",".join(months()), "file": str(files / "months.csv"), "reference": how,
    }[how]  # fmt: skip
    more = ("--reference", files / "path.csv") if how == "reference" else ()
    out = files / "r.json"
    code, _, err = quick(
        "release", "--no-ledger", files / "donors.csv", *COLUMNS, *BUDGET, "--periods", said, *more, "-o", out
    )
    assert code == 0, err
    release = Release.load(out)
    assert release.periods_from == "declared"
    assert [str(period) for period in release.times] == shown()
    assert release.n == 400


@pytest.mark.parametrize("scale", [("--scale", 3), ()], ids=["given", "found"])
def test_a_dry_run_draws_no_noise_books_nothing_and_writes_nothing(
    scale: tuple[object, ...], files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("noise was drawn")

    book = files / "book.sqlite"
    init(book)
    before = sorted(path.name for path in files.iterdir())
    monkeypatch.setattr(discrete, "add", never)
    options = (*COLUMNS, *BUDGET, *scale, "--ledger", book, "-o", files / "out.json", "--dry-run")
    code, out, err = quick("release", files / "donors.csv", *options)
    assert code == 0, err
    text = " ".join(out.split())
    assert "DRY RUN" in text
    assert "400 donors, 18 periods from 2020-01 to 2021-06" in text
    room = "there is room for it left before: a Gram release of up to epsilon 2"
    assert f" of the budget of 'patients'; {room}" in text
    assert "cost: epsilon 1 at delta 1e-7 (epsilon 0.8" in text
    assert Ledger(book).entries("patients") == []
    assert sorted(path.name for path in files.iterdir()) == before
    code, out, _ = quick("release", files / "donors.csv", *options, "--json")
    make = GramRelease(epsilon=1.0, delta=1e-7, scale=3.0 if scale else None)
    share = make.scale_share(400, pd.Index(range(18)))
    assert 0.02 < json.loads(out)["noise_share"] == make.noise_share(400, 18, share) <= make.noise_share(400, 18) < 0.2


def test_a_dry_run_says_to_others_nothing_of_where_the_rows_of_a_donor_are(files: Path) -> None:
    """How a table is read depends on one donor's rows, and on the size of its file: for the custodian alone."""
    table = pd.read_csv(files / "donors.csv")
    first = table.index == table.index[table["who"] == table["who"].iloc[-1]][0]
    pd.concat([table[first], table[~first]]).to_csv(files / "apart.csv", index=False)
    said = (*COLUMNS, *BUDGET, "--periods", "2020-01..2021-06", "--no-ledger", "-o", files / "x.json", "--dry-run")
    runs = [
        quick("release", files / name, *said, "--engine", engine, *more)
        for more in ((), ("--json",))
        for name, engine in (("donors.csv", "stream"), ("apart.csv", "stream"), ("apart.csv", "memory"))
    ]
    assert [code for code, *_ in runs] == [0] * 6
    for same in (runs[:3], runs[3:]):
        assert len({out for _, out, _ in same}) == 1
        assert "PRIVATE, for the custodian only: the table was read as a stream" in same[0][2]
        assert "PRIVATE, for the custodian only: the table was kept in a private file meanwhile" in same[1][2]
        assert "PRIVATE, for the custodian only: the table was held in memory" in same[2][2]


def test_a_dry_run_refuses_what_a_release_refuses(files: Path) -> None:
    code, _, err = quick("release", files / "donors.csv", *COLUMNS, *BUDGET, "-o", files / "donors.csv", "--dry-run")
    assert (code, "read by this command" in err) == (2, True)
    code, _, err = quick("release", files / "donors.csv", *COLUMNS, "--epsilon", 1, "--delta", 0.1, "-o", files / "x",
                         "--dry-run")  # fmt: skip
    assert (code, "--delta" in err) == (2, True)
    table = pd.read_csv(files / "donors.csv")
    table[table["who"].isin(table["who"].unique()[:60])].to_csv(files / "sixty.csv", index=False)
    few = ("release", files / "sixty.csv", *COLUMNS, *BUDGET, "-o", files / "x.json", "--no-ledger")
    for also in ((), ("--dry-run",)):
        code, _, err = quick(*few, *also)
        assert (code, "60 donors are too few to find out privately" in err) == (2, True)


def test_a_release_from_which_nothing_can_be_learned_is_refused_before_it_is_booked(files: Path) -> None:
    book = files / "book.sqlite"
    init(book)
    few = pd.read_csv(files / "donors.csv")
    few = few[few["who"].isin(["patient 1", "patient 2"])]
    few.to_csv(files / "two.csv", index=False)
    options = (
        "release",
        files / "two.csv",
        *COLUMNS,
        *BUDGET,
        "--scale",
        3,
        "--ledger",
        book,
        "-o",
        files / "two.json",
    )
    code, _, err = quick(*options)
    assert code == 2
    assert "nothing could be learned" in err
    assert "2 donors" in err
    assert Ledger(book).entries("patients") == []
    assert not (files / "two.json").exists()
    code, _, err = quick(*options, "--i-know")
    assert code == 0, err
    assert len(Ledger(book).entries("patients")) == 1
