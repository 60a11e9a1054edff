from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import (
    BudgetError,
    GramRelease,
    Guarantee,
    Ledger,
    LedgerError,
    ObjectivePerturbation,
    OutputPerturbation,
    Release,
)
from dpsc.ledger.book import MERGE
from dpsc.ledger.export import as_csv, as_json
from dpsc.privacy.accounting import Loss
from dpsc.privacy.rounded_gaussian import discrete_gaussian_budget

ROWS = np.random.default_rng(0).normal(size=(60, 5))
HALF = GramRelease(epsilon=0.5, delta=1e-6, scale=1.0)


def gram(epsilon: float, delta: float = 1e-6) -> dict[str, Any]:
    """The terms of a Gram release of 30 periods whose noise is calibrated by the Gaussian curve."""
    loss = discrete_gaussian_budget(epsilon, delta, 465, 4.0**18)
    return {"algorithm": "a Gram release", "guarantee": Guarantee(epsilon, delta, arithmetic="exact", loss=loss)}


def fill(ledger: Ledger, folder: Path) -> None:
    """Three bookings: one confirmed, one failed, one left open."""
    ledger.add_dataset("sales", epsilon=2.0, delta=1e-6, description={"n": 60, "outcome": "sales"}, who="ann")
    with ledger.spending("sales", **ledger.terms(HALF), output=folder / "a.json", who="ann"):
        HALF.release(ROWS, dataset="sales").save(folder / "a.json")
    with pytest.raises(ZeroDivisionError), ledger.spending("sales", **ledger.terms(HALF), who="bob"):
        raise ZeroDivisionError
    ledger.book("sales", **ledger.terms(HALF), who="ann")


def test_an_entry_says_who_did_what_when_and_what_came_of_it(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger, tmp_path)
    done, failed, open_ = ledger.entries("sales")
    assert [e.state for e in (done, failed, open_)] == ["confirmed", "failed", "booked"]
    assert (done.who, failed.who, done.algorithm) == ("ann", "bob", "GramRelease")
    assert done.parameters["epsilon"] == 0.5
    assert done.guarantee == HALF.guarantee == Release.load(tmp_path / "a.json").guarantee
    assert done.time.endswith("+00:00")
    assert done.output == str(tmp_path / "a.json")
    assert ledger.verify() == []


def test_whatever_became_of_a_booking_it_counts(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger, tmp_path)
    one = ledger.entries("sales")[0].guarantee.loss
    three = Loss(mu_squared=3 * (one.mu_squared + 2 * one.rho))
    assert ledger.balance("sales").spent == pytest.approx(three.epsilon(1e-6), rel=1e-5)
    assert ledger.balance("sales").states == {"confirmed": 1, "failed": 1, "booked": 1}


def test_the_booking_is_committed_before_the_body_runs(ledger: Ledger, url: str) -> None:
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    with ledger.spending("sales", **ledger.terms(HALF)) as entry:
        assert [e.state for e in Ledger(url).entries()] == ["booked"]
        assert Ledger(url).entries()[0].hash == entry.hash
    assert [e.state for e in Ledger(url).entries()] == ["confirmed"]


def test_over_budget_is_refused_with_three_numbers_and_books_nothing(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger, tmp_path)
    before, left = ledger.head, ledger.remaining("sales", delta=1e-6)
    with pytest.raises(BudgetError, match=r"Requested.*left at that delta.*too much by") as refusal:
        ledger.book("sales", **gram(1.9))
    assert refusal.value.requested == 1.9
    assert refusal.value.remaining == left
    assert refusal.value.difference == pytest.approx(1.9 - left)
    assert ledger.head == before


def test_what_remains_is_accepted_and_then_nothing_remains(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger, tmp_path)
    left = ledger.remaining("sales", delta=1e-7)
    ledger.book("sales", **gram(left, 1e-7))
    balance = ledger.balance("sales")
    assert 1.99 < balance.spent <= 2.0
    assert balance.remaining < 0.05
    assert ledger.verify() == []


@pytest.mark.parametrize(
    "algorithm",
    [
        GramRelease(epsilon=1, delta=1e-6, scale=1.0, seed=1),
        OutputPerturbation(epsilon=1, seed=1),
        ObjectivePerturbation(epsilon=1, seed=1),
        OutputPerturbation.as_printed(epsilon1=0.5, epsilon2=0.5, lambda_=1.0, seed=1),
        ObjectivePerturbation.as_printed(epsilon1=0.5, epsilon2=0.5, lambda_=1.0),
    ],
)
def test_what_has_no_guarantee_cannot_be_booked(algorithm: object, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    ledger.add_dataset("sales", epsilon=10, delta=1e-6)
    with pytest.raises(LedgerError, match="no guarantee"):
        ledger.book("sales", **ledger.terms(algorithm))
    assert ledger.entries() == []


def test_the_promise_before_is_the_promise_after() -> None:
    from tests.making import make_panel

    for algorithm in (
        OutputPerturbation(epsilon=1.0, delta=1e-6),
        OutputPerturbation(epsilon=1.0),
        ObjectivePerturbation(epsilon=1.0, split=0.3),
        OutputPerturbation.as_printed(epsilon1=0.5, epsilon2=0.4, lambda_=1.0),
    ):
        assert algorithm.guarantee is not None
        assert algorithm.fit(make_panel(n=40)).guarantee == algorithm.guarantee


def test_sites_are_partitions_and_their_merge_is_free(ledger: Ledger, tmp_path: Path) -> None:
    ledger.add_dataset("clinics", epsilon=1.0, delta=1e-6)
    releases = []
    for site, rows, epsilon in (("north", ROWS[:30], 1.0), ("south", ROWS[30:], 0.5)):
        algorithm = GramRelease(epsilon=epsilon, delta=1e-6, scale=1.0, directions=3)
        with ledger.spending("clinics", **gram(epsilon), partition=site):
            releases.append(algorithm.release(rows))
    merged = Release.merge(releases, disjoint=True)
    assert ledger.balance("clinics").spent == pytest.approx(1.0)
    assert ledger.balance("clinics").partitions == pytest.approx({"north": 1.0, "south": 0.5})
    with pytest.raises(LedgerError, match="costs nothing"):
        ledger.book("clinics", merged.guarantee, algorithm=MERGE)
    with pytest.raises(BudgetError):  # all donors, and the north has nothing left
        ledger.book("clinics", **ledger.terms(HALF))
    ledger.book("clinics", **ledger.terms(HALF), partition="south")


def test_a_merge_of_sites_that_are_not_in_the_book_costs_its_weakest_guarantee_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    ledger.add_dataset("clinics", epsilon=1.0, delta=1e-6)
    agreed: Any = {"delta": 1e-6, "scale": 1.0, "directions": 3}
    sites = [GramRelease(epsilon=e, **agreed).release(r) for e, r in ((1.0, ROWS[:30]), (0.5, ROWS[30:]))]
    ledger.book("clinics", Release.merge(sites, disjoint=True).guarantee, algorithm=MERGE)
    assert ledger.balance("clinics").spent == pytest.approx(1.0)


def test_the_same_name_with_another_description_or_budget_is_refused(ledger: Ledger) -> None:
    about = {"n": 60, "outcome": "sales", "bounds": [0, 300]}
    first = ledger.add_dataset("sales", epsilon=1, delta=1e-6, description=about)
    assert ledger.add_dataset("sales", epsilon=1, delta=1e-6, description=dict(reversed(about.items()))) == first
    with pytest.raises(LedgerError, match="differ in n"):
        ledger.add_dataset("sales", epsilon=1, delta=1e-6, description=about | {"n": 61})
    with pytest.raises(LedgerError, match="promise"):
        ledger.add_dataset("sales", epsilon=2, delta=1e-6, description=about)
    with pytest.raises(LedgerError, match="differ in n"):
        ledger.book("sales", **ledger.terms(HALF), description={"n": 61, "periods": 12})
    ledger.book("sales", **ledger.terms(HALF), description={"n": 60, "periods": 12})
    assert len(ledger.datasets()) == 1


@pytest.mark.parametrize("value", [ROWS, pd.Series([1.0]), {"a": ROWS}, [np.float64(1)], float("nan"), {1: 2}])
def test_nothing_that_may_hold_donors_is_written_down(value: object, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    with pytest.raises(LedgerError, match="description"):
        ledger.add_dataset("sales", epsilon=1, delta=1e-6, description={"x": value})
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    with pytest.raises(LedgerError, match="parameters"):
        ledger.book("sales", HALF.guarantee, algorithm="GramRelease", parameters={"x": value})
    assert ledger.entries() == []


def test_a_reference_path_is_not_written_down(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    assert (
        ledger.terms(GramRelease(epsilon=1, delta=1e-6, scale=1.0, reference=ROWS[0]))["parameters"]["reference"]
        == "given"
    )


def test_other_neighbours_and_unknown_data_sets_are_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    with pytest.raises(LedgerError, match="neighbours"):
        ledger.book("sales", Guarantee(0.1, adjacency="add or remove one donor"), algorithm="x")
    with pytest.raises(LedgerError, match="it has: 'sales'"):
        ledger.book("sails", HALF.guarantee, algorithm="x")


def test_an_output_that_cannot_be_written_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    for output in (tmp_path / "nowhere" / "a.json", tmp_path, tmp_path / "\udcff.json"):
        with pytest.raises(LedgerError, match=r"folder|valid text"):
            ledger.book("sales", **ledger.terms(HALF), output=output)
    assert ledger.entries() == []


def test_an_output_that_never_came_is_not_confirmed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    with (
        pytest.raises(LedgerError, match="not in place"),
        ledger.spending("sales", **ledger.terms(HALF), output=tmp_path / "a.json"),
    ):
        pass
    assert [e.state for e in ledger.entries()] == ["failed"]


def test_a_release_that_promises_less_privacy_than_was_booked_is_not_confirmed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    for number, other in enumerate(
        (GramRelease(epsilon=0.9, delta=1e-6, scale=1.0), GramRelease(epsilon=0.5, delta=1e-6, scale=1.0, seed=1))
    ):
        path = tmp_path / f"{number}.json"
        with (
            pytest.raises(LedgerError, match="does not promise what entry"),
            ledger.spending("sales", **ledger.terms(HALF), output=path),
        ):
            other.release(ROWS, dataset="sales").save(path)
    assert [e.state for e in ledger.entries()] == ["failed", "failed"]
    with ledger.spending(
        "sales", **ledger.terms(GramRelease(epsilon=0.1, delta=1e-6, scale=1.0)), output=tmp_path / "a.csv"
    ):
        (tmp_path / "a.csv").write_bytes(b"\xff\xfe whatever a fit writes")
    assert ledger.entries()[-1].state == "confirmed"


def test_a_booking_is_finished_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    entry = ledger.book("sales", **ledger.terms(HALF))
    ledger.confirm(entry)
    with pytest.raises(LedgerError, match="already"):
        ledger.fail(entry, "late")
    other = Ledger(tmp_path / "other.sqlite", create=True)
    with pytest.raises(LedgerError, match="not a booking of this ledger"):
        other.confirm(entry)


TAMPERING = {
    "an edited cost": ("UPDATE dpsc_entries SET body = replace(body, '0.5', '0.1') WHERE number = 2", "entry 2 was ed"),
    "another user": ("UPDATE dpsc_entries SET who = 'eve' WHERE number = 4", "entry 4 was edited"),
    "a raised budget": ("UPDATE dpsc_entries SET body = replace(body, '2.0', '9.0') WHERE number = 1", "entry 1 was"),
    "a removed row": ("DELETE FROM dpsc_entries WHERE number = 4", "entry 4 is missing"),
    "the last row removed": ("DELETE FROM dpsc_entries WHERE number = 6", "entry 6 is missing at the end"),
    "all rows removed": ("DELETE FROM dpsc_entries", "entries 1-6 are missing"),
    "another partition": ("UPDATE dpsc_entries SET partition = 'x' WHERE number = 6", "entry 6 was edited"),
    "a moved head": ("UPDATE dpsc_ledger SET length = 5", "head record"),
}


@pytest.mark.parametrize("name", TAMPERING)
def test_verify_finds(name: str, ledger: Ledger, tamper: Callable[[str], None], tmp_path: Path) -> None:
    fill(ledger, tmp_path)
    assert ledger.verify() == []
    statement, finding = TAMPERING[name]
    tamper(statement)
    assert any(finding in problem for problem in ledger.verify()), ledger.verify()


def test_verify_finds_two_rows_in_exchanged_order(
    ledger: Ledger, tamper: Callable[[str], None], tmp_path: Path
) -> None:
    fill(ledger, tmp_path)
    for one, other in ((2, 99), (4, 2), (99, 4)):
        tamper(f"UPDATE dpsc_entries SET number = {other} WHERE number = {one}")
    assert len(ledger.verify()) >= 2


def test_verify_finds_a_rewritten_end_if_the_head_was_noted(
    ledger: Ledger, url: str, tamper: Callable[[str], None], tmp_path: Path
) -> None:
    fill(ledger, tmp_path)
    noted, before = ledger.head.hash, ledger.rows()[-2]
    assert ledger.verify(noted) == []
    tamper("DELETE FROM dpsc_entries WHERE number = 6")
    tamper(f"UPDATE dpsc_ledger SET length = {before.number}, hash = '{before.hash}'")
    assert Ledger(url).verify() == []  # a chain alone cannot know: docs/reference/ledger.md
    assert any("noted head" in problem for problem in Ledger(url).verify(noted))


def test_an_older_copy_under_an_open_ledger_is_not_booked_in_again(tmp_path: Path) -> None:
    """What was booked in between would have been booked a second time."""
    place = tmp_path / "book.sqlite"
    ledger = Ledger(place, create=True)
    ledger.add_dataset("sales", epsilon=1, delta=1e-6)
    copy = place.read_bytes()
    ledger.book("sales", **ledger.terms(HALF))
    place.write_bytes(copy)
    for _ in range(2):  # a refusal does not make it forget
        with pytest.raises(LedgerError, match="an older copy was put in its place"):
            ledger.book("sales", **ledger.terms(HALF))
    assert any("older copy" in problem for problem in ledger.verify())
    assert place.read_bytes() == copy


def test_an_older_copy_is_noticed_by_whoever_only_read_the_newer_one(tmp_path: Path) -> None:
    place = tmp_path / "book.sqlite"
    writer = Ledger(place, create=True)
    writer.add_dataset("sales", epsilon=1, delta=1e-6)
    copy = place.read_bytes()
    reader = Ledger(place)
    writer.book("sales", **writer.terms(HALF))
    assert reader.remaining("sales") < 1
    place.write_bytes(copy)
    with pytest.raises(LedgerError, match="an older copy was put in its place"):
        reader.book("sales", **reader.terms(HALF))


def test_nothing_is_booked_in_a_ledger_that_misses_rows(
    ledger: Ledger, tamper: Callable[[str], None], tmp_path: Path
) -> None:
    fill(ledger, tmp_path)
    tamper("DELETE FROM dpsc_entries WHERE number = 6")
    with pytest.raises(LedgerError, match="changed from outside"):
        ledger.book("sales", **ledger.terms(HALF))


def test_an_unreadable_entry_stops_booking(ledger: Ledger, tamper: Callable[[str], None], tmp_path: Path) -> None:
    fill(ledger, tmp_path)
    tamper("UPDATE dpsc_entries SET body = 'nonsense' WHERE number = 2")
    with pytest.raises(LedgerError, match="entry 2 of the ledger cannot be read"):
        ledger.book("sales", **ledger.terms(HALF))


def test_exports_hold_every_booking_and_the_chain(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger, tmp_path)
    ledger.add_dataset("=1+1", epsilon=1, delta=1e-6)
    ledger.book("=1+1", **ledger.terms(HALF))
    (tmp_path / "book.csv").write_text(as_csv(ledger))
    table = pd.read_csv(tmp_path / "book.csv")
    assert table["state"].tolist() == ["confirmed", "failed", "booked", "booked"]
    assert table["epsilon"].tolist() == [0.5] * 4
    assert table["dataset"].tolist()[-1] == "'=1+1"  # a spreadsheet does not run it
    book = json.loads(as_json(ledger))
    assert book["head"]["hash"] == ledger.head.hash == book["chain"][-1]["hash"]
    assert [each["name"] for each in book["datasets"]] == ["sales", "=1+1"]
    assert len(json.loads(as_json(ledger, "sales"))["entries"]) == 3


def test_texts_that_could_rewrite_a_terminal_are_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    for name in ("", "a\x1b[2J", "a\nb", "x" * 501):
        with pytest.raises(LedgerError, match="name"):
            ledger.add_dataset(name, epsilon=1, delta=1e-6)
