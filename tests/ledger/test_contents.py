"""What was released before from the same donors: read from the files that were confirmed, told, and compared."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, Ledger
from dpsc.ledger.contents import contents_of, release_in, to_use
from dpsc.ledger.export import as_csv, as_json
from dpsc.ledger.records import Contents, Entry
from dpsc.release import file_format, panel_file
from dpsc.types import Array, JsonObject
from tests.making import make_private_panel

DELTA = 1e-6


@pytest.fixture(scope="module")
def rows() -> Array:
    return np.cumsum(np.random.default_rng(0).normal(size=(300, 12)), axis=1)


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    ledger.add_dataset("patients", epsilon=4.0, delta=DELTA)
    return ledger


def release(book: Ledger, rows: Array, first: str, name: str, epsilon: float = 1.0) -> Entry:
    """Book and make a release of the months from ``first`` on."""
    months = pd.period_range(first, periods=rows.shape[1], freq="M")
    make = GramRelease(epsilon=epsilon, delta=DELTA, scale=3.0)
    out = Path(book.place).parent / name
    with book.spending("patients", **book.terms(make), output=out) as entry:
        make.release(pd.DataFrame(rows, columns=months), outcome="cost", dataset="patients").save(out)
    return entry


def test_a_release_is_known_with_its_periods_when_the_next_one_is_planned(book: Ledger, rows: Array) -> None:
    promise = GramRelease(epsilon=1.0, delta=DELTA).guarantee
    assert promise is not None
    assert not any("released on" in line for line in book.would_cost("patients", promise))
    old = release(book, rows[:, :9], "2022-01", "old.dpsc.json")
    assert not any("released on" in line for line in book.told(old))
    known = book.entries("patients")[0].contents
    assert known == Contents("cost", "2022-01", "2022-09", 9, 300, 1)
    before = f"released on {old.time[:10]} for 2022-01 to 2022-09 (cost), as old.dpsc.json, at epsilon 1 and delta 1e-6"
    together = book.balance("patients", after=promise).spent
    planned = book.would_cost("patients", promise)
    assert f"data of these donors were {before}" in planned
    assert f"together with this release: epsilon {together:.4g} of 4 at delta 1e-6" in planned
    new = release(book, rows, "2022-01", "new.dpsc.json")
    told = book.told(new)
    assert f"Data of these donors were {before}." in told
    assert any(line.startswith("Analysts should use new.dpsc.json:") for line in told)
    assert not any("--same-donors" in line for line in told)
    assert book.balance("patients").spent == together


def test_an_export_says_which_periods_each_file_covers_and_which_to_use(book: Ledger, rows: Array) -> None:
    release(book, rows[:, :9], "2022-01", "old.dpsc.json")
    release(book, rows, "2022-01", "new.dpsc.json")
    found = [(row["first"], row["last"], row["use"]) for row in csv.DictReader(io.StringIO(as_csv(book)))]
    assert found == [("2022-01", "2022-09", "no"), ("2022-01", "2022-12", "yes")]
    listed = json.loads(as_json(book))["datasets"][0]["releases"]
    assert [(each["n"], each["periods"], each["use"]) for each in listed] == [(300, 9, False), (300, 12, True)]
    assert listed[0]["sha256"] == book.entries()[0].sha256


def test_what_is_not_known_is_told_as_far_as_it_is(book: Ledger, tmp_path: Path) -> None:
    make = GramRelease(epsilon=1.0, delta=DELTA)
    book.book("patients", **book.terms(make), output=tmp_path / "lost.json")
    with book.spending("patients", **book.terms(make), output=tmp_path / "answer.csv"):
        (tmp_path / "answer.csv").write_text("a table")
    assert make.guarantee is not None
    lost, answer = [line for line in book.would_cost("patients", make.guarantee) if "released on" in line]
    assert lost.endswith("as lost.json, at epsilon 1 and delta 1e-6, of which no file was confirmed")
    assert answer.endswith("as answer.csv, at epsilon 1 and delta 1e-6")
    assert all(entry.contents is None for entry in book.entries())


def test_another_partition_was_not_released_before(book: Ledger) -> None:
    make = GramRelease(epsilon=1.0, delta=DELTA)
    book.book("patients", **book.terms(make), partition="north")
    assert make.guarantee is not None
    said = {part: "\n".join(book.would_cost("patients", make.guarantee, partition=part)) for part in (None, "north")}
    assert all("partition north" in text for text in said.values())
    assert "released on" not in "\n".join(book.would_cost("patients", make.guarantee, partition="south"))


def test_what_a_file_covers_is_read_from_releases_of_every_kind(rows: Array) -> None:
    """Quarters and years as a calendar, waves as text; several outcomes; of a panel that grew its newest part."""
    make = GramRelease(epsilon=1.0, delta=DELTA, scale=3.0)

    def of(times: object) -> JsonObject | None:
        made = make.release(pd.DataFrame(rows, columns=pd.Index(times)))  # type: ignore[call-overload]
        return contents_of(release_in(file_format.dumps(made).encode()))

    for times, first, last in (
        (pd.period_range("2020Q1", periods=12, freq="Q"), "2020Q1", "2022Q4"),
        (range(1990, 2014, 2), "1990", "2012"),
        ([f"wave {k}" for k in range(1, 13)], "wave 1", "wave 12"),
    ):
        found = of(times)
        assert found is not None
        assert (found["first"], found["last"], found["periods"], found["n"]) == (first, last, 12, 300)
    known = {"cost": {"scale": 3.0}, "days": {"scale": 3.0}}
    both = GramRelease(epsilon=1.0, delta=DELTA).release({"cost": rows, "days": rows + 1}, each=known)
    told = contents_of(release_in(file_format.dumps_outcomes(both.parts, both.guarantee).encode()))
    assert told is not None
    assert told["outcome"] == "cost, days"
    panel = make_private_panel()
    block = json.loads(panel_file.dumps(panel))["blocks"][0]
    two = {"format": "dpsc-panel", "blocks": [{}, block]}
    grown = contents_of(release_in(json.dumps(two).encode()))
    assert grown is not None
    assert (grown["parts"], grown["n"], grown["periods"]) == (2, None, len(panel.times))


@pytest.mark.parametrize("wrong", [{"periods": None}, {"n": "many"}, {"outcome": "two\nlines"}, {"outcome": 1}])
def test_a_file_that_does_not_say_what_it_covers_is_confirmed_without_it(wrong: JsonObject, rows: Array) -> None:
    made = GramRelease(epsilon=1.0, delta=DELTA, scale=3.0).release(rows[:, :4])
    body = release_in(file_format.dumps(made).encode())
    assert body is not None
    assert contents_of(body) is not None
    assert contents_of(body | wrong) is None


@pytest.mark.parametrize(
    ("one", "other", "whole"),
    [
        (("2022-01", "2022-12", 12), ("2022-01", "2022-09", 9), True),
        (("2022-01", "2022-12", 12), ("2021-12", "2022-09", 10), False),
        (("2022-W09", "2022-W11", 3), ("2022-W10", "2022-W11", 2), True),
        (("9", "12", 4), ("10", "11", 2), True),
        (("2022-01", "2022-12", 12), ("2022-02-01", "2022-02-28", 28), False),
        (("wave 1", "wave 12", 12), ("wave 1", "wave 9", 9), False),  # nobody says in which order they are
        (("wave 1", "wave 9", 9), ("wave 1", "wave 9", 9), True),
    ],
)
def test_a_file_has_all_periods_of_another_if_their_order_is_known(
    one: tuple[str, str, int], other: tuple[str, str, int], whole: bool
) -> None:
    assert Contents("cost", *one, 300, 1).has_all_of(Contents("cost", *other, 300, 1)) is whole
    assert not Contents("visits", *one, 300, 1).has_all_of(Contents("cost", *other, 300, 1))


def test_the_file_to_use_has_all_periods_and_the_least_noise(book: Ledger, rows: Array) -> None:
    """A newer file with more noise does not replace an older one; of two that are alike the newer one does."""
    release(book, rows[:, :9], "2022-01", "exact.dpsc.json", epsilon=1.5)
    release(book, rows, "2022-01", "long.dpsc.json")
    assert [entry.number for entry in to_use(book.entries())] == [2, 4]
    again = release(book, rows, "2022-01", "again.dpsc.json")
    assert [entry.number for entry in to_use(book.entries())] == [2, again.number]
    said = "Analysts should use exact.dpsc.json for 2022-01 to 2022-09 and again.dpsc.json for 2022-01 to 2022-12."
    told = book.told(again)
    place = next(k for k, line in enumerate(told) if line.endswith(said))
    assert told[place + 1].endswith("less noise together: dpsc merge --same-donors.")
