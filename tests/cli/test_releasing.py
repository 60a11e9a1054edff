"""What ``dpsc release`` does, and in which order: booked first, then noise; periods from a range, a list or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsc import Ledger, Release
from dpsc.privacy import discrete
from tests.cli.conftest import months, quick

COLUMNS = ("--unit", "who", "--time", "month", "--outcome", "cost")
BUDGET = ("--epsilon", 1, "--delta", 1e-7)


def init(book: Path, *about: object) -> None:
    code, _, err = quick("ledger", "init", "patients", "--ledger", book, "--epsilon", 2, "--delta", 1e-6, *about)
    assert code == 0, err


def test_the_cost_is_booked_before_any_noise_is_drawn(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book, seen = files / "book.sqlite", []
    init(book)
    real = discrete.add

    def watched(*arguments: Any, **options: Any) -> Any:
        seen.append([entry.state for entry in Ledger(book).entries("patients")])
        return real(*arguments, **options)

    monkeypatch.setattr(discrete, "add", watched)
    code, _, err = quick("release", files / "donors.csv", *COLUMNS, *BUDGET, "--ledger", book, "-o", files / "r.json")
    assert code == 0, err
    assert seen
    assert all(states == ["booked"] for states in seen)
    assert [entry.state for entry in Ledger(book).entries("patients")] == ["confirmed"]


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
    code, _, err = quick("release", files / "donors.csv", *COLUMNS, *BUDGET, "--periods", said, *more, "-o", out)
    assert code == 0, err
    release = Release.load(out)
    assert release.periods_from == "declared"
    assert [str(period)[:10] for period in release.times] == months()
    assert release.n == 400
