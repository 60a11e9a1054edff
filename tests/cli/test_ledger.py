from __future__ import annotations

import csv
import json
import sqlite3
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpsc import BudgetError, DpscError, GramRelease, Ledger, ObjectivePerturbation, OutputPerturbation
from dpsc.cli import app
from dpsc.cli.terminal import Account
from tests.cli.conftest import dpsc

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def book(tmp_path: Path) -> str:
    """A ledger with two bookings, made through the command and the library."""
    place = str(tmp_path / "book.sqlite")
    init = [
        "ledger",
        "init",
        "sales",
        "--epsilon",
        "2",
        "--delta",
        "1e-6",
        "--about",
        "n=60",
        "--about",
        "outcome=sales",
    ]
    done = CliRunner().invoke(app, [*init, "--ledger", place, "--who", "ann"])
    assert done.exit_code == 0, done.output
    ledger = Ledger(place)
    assert ledger.dataset("sales").description == {"n": 60, "outcome": "sales"}
    with ledger.spending("sales", **ledger.terms(GramRelease(epsilon=0.5, delta=1e-6)), who="ann"):
        pass
    ledger.book("sales", **ledger.terms(GramRelease(epsilon=0.4, delta=1e-6)), who="[red]bob", partition="north")
    return place


def run(*arguments: str, book: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["ledger", *arguments, "--ledger", book], env={"COLUMNS": "80"})
    assert done.exit_code == code, done.output
    return done.output


def test_show_draws_the_spent_share_and_says_what_is_left(book: str) -> None:
    shown = run("show", book=book)
    spent = Ledger(book).balance("sales")
    assert 0.2 < spent.share < 0.5
    assert f"{100 * spent.share:.0f}%" in shown
    bar = next(line for line in shown.splitlines() if "█" in line or "##" in line)
    full = bar.count("█") + bar.count("#")
    assert full == round(32 * spent.share)
    assert f"up to epsilon {spent.remaining:g} at delta 1e-6" in shown
    assert Ledger(book).head.hash in shown
    assert max(map(len, shown.splitlines())) <= max(80, len(book) + 60)


def test_show_answers_for_another_delta_and_as_json(book: str) -> None:
    left = Ledger(book).remaining("sales", delta=1e-8)
    assert f"up to epsilon {left:g} at delta 1e-8" in run("show", "sales", "--delta", "1e-8", book=book)
    shown = json.loads(run("show", "sales", "--delta", "1e-8", "--json", book=book))
    assert shown["datasets"][0]["remaining_at"] == {"delta": 1e-8, "epsilon": left}
    assert shown["datasets"][0]["partitions"]["north"] == Ledger(book).balance("sales").partitions["north"]


def test_entries_are_listed_in_80_columns_and_markup_is_text(book: str) -> None:
    shown = run("entries", book=book)
    assert "[red]bob" in shown.replace("\n", "") or "[red]" in shown
    assert "confirmed" in shown
    assert "booked" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert [entry["state"] for entry in json.loads(run("entries", "--json", book=book))] == ["confirmed", "booked"]


def test_verify_exits_with_1_when_it_finds_something(book: str) -> None:
    head = Ledger(book).head.hash
    assert "chain is whole" in run("verify", "--head", head, book=book)
    assert "rewritten" in run("verify", "--head", "ab" * 32, book=book, code=1)
    with sqlite3.connect(book) as connection:
        connection.execute("UPDATE dpsc_entries SET who = 'eve' WHERE number = 2")
    connection.close()
    assert "entry 2 was edited" in run("verify", book=book, code=1)
    assert json.loads(run("verify", "--json", book=book, code=1))["problems"]


def test_export_writes_csv_and_json_for_the_owner_only(book: str, tmp_path: Path) -> None:
    for name in ("book.csv", "book.json"):
        run("export", "--out", str(tmp_path / name), book=book)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    with (tmp_path / "book.csv").open() as file:
        assert [row["epsilon"] for row in csv.DictReader(file)] == ["0.5", "0.4"]
    assert len(json.loads((tmp_path / "book.json").read_text())["chain"]) == 4
    assert run("export", book=book).startswith('"number","time","dataset"')
    assert json.loads(run("export", "sales", "--format", "json", book=book))["format"] == "dpsc-ledger"
    assert "csv or json" in run("export", "--out", str(tmp_path / "book.xlsx"), book=book, code=2)


def test_the_real_command_finds_its_ledger_in_the_environment(book: str) -> None:
    done = dpsc("ledger", "show", "sales", env={"DPSC_LEDGER": book, "COLUMNS": "80"})
    assert done.returncode == 0, done.stderr
    assert "budget   epsilon 2 at delta 1e-6" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "sails"], "it has: 'sales'"),
        (
            ["init", "sales", "--epsilon", "3", "--delta", "1e-6", "--about", "n=60", "--about", "outcome=sales"],
            "promise",
        ),
        (["init", "sales", "--epsilon", "2", "--delta", "1e-6", "--about", "n=61"], "differ in n"),
        (["init", "other", "--epsilon", "0", "--delta", "1e-6"], "epsilon"),
        (["init", "other", "--epsilon", "1", "--delta", "1e-6", "--about", "n"], "KEY=VALUE"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments: list[str], words: str, book: str) -> None:
    shown = run(*arguments, book=book, code=2)
    assert words in shown
    assert len(shown.strip().splitlines()) == 1


def test_a_password_is_not_in_what_a_command_prints() -> None:
    url = "postgresql+psycopg://ann:s3cret-word@127.0.0.1:1/book?password=s3cret-word"
    done = CliRunner().invoke(app, ["ledger", "show"], env={"DPSC_LEDGER": url})
    assert done.exit_code == 2
    assert "127.0.0.1" in done.stderr
    assert "s3cret" not in done.stdout + done.stderr
    for arguments in (["init", "x", "--epsilon", "1", "--delta", "1e-6"], ["verify"], ["entries"], ["export"]):
        assert "s3cret" not in run(*arguments, book=url, code=2)
    shown = CliRunner().invoke(app, ["ledger", "show", "--help"], env={"DPSC_LEDGER": url}).output
    assert "DPSC_LEDGER" in shown
    assert "s3cret" not in shown


def test_commands_book_through_one_context(book: str, tmp_path: Path) -> None:
    algorithm, out = GramRelease(epsilon=0.2, delta=1e-6, scale=1.0), tmp_path / "a.json"
    with Account(book, "sales").booking(algorithm, output=out, description={"n": 60}):
        algorithm.release([[1.0, 2.0], [2.0, 1.0]] * 30, dataset="sales").save(out)
    assert Ledger(book).entries()[-1].state == "confirmed"
    with Account(None, None).booking(algorithm, output=out, description={}):
        pass
    assert len(Ledger(book).entries()) == 3
    Ledger(book).add_dataset("costs", epsilon=1, delta=1e-6)
    for place, name, words in (
        (book, None, "Say with dataset whose budget is used"),
        (None, "sales", "where it is with ledger or DPSC_LEDGER"),
    ):
        with pytest.raises(DpscError, match=words):
            Account(place, name)


def test_a_budget_is_divided_when_it_is_entered(tmp_path: Path) -> None:
    place = str(tmp_path / "book.sqlite")
    init = ["init", "visits", "--epsilon", "4", "--delta", "1e-6"]
    shown = run(*init, "--pure", "1", "--other", "0.5,1e-7", book=place)
    assert "for Gaussian noise (Gram releases): epsilon 2.5" in shown
    assert "for pure releases: epsilon 1" in shown
    assert "for other releases: epsilon 0.5 at delta 1e-7" in shown
    assert "for pure releases: epsilon 1" in run("show", book=place)
    kept = json.loads(run("show", "--json", book=place))["datasets"][0]
    assert (kept["pure"], kept["other"]) == (1.0, [0.5, 1e-7])
    assert Ledger(place).remaining("visits", delta=0) == 1.0
    again = run(*init, "--pure", "1", "--other", "0.5,1e-7", book=place)
    assert "Known already" in again
    assert "does not change" in run(*init, "--pure", "2", "--other", "0.5,1e-7", book=place, code=2)
    plain = run("init", "orders", "--epsilon", "4", "--delta", "1e-6", book=place)
    assert "of which" not in plain


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--pure", "5"), "more than the budget"),
        (("--other", "1"), "EPSILON,DELTA"),
        (("--other", "x,y"), "EPSILON,DELTA"),
        (("--other", "1,0"), "both an epsilon and a delta"),
        (("--pure", "-1"), "pure"),
    ],
)
def test_a_budget_that_cannot_be_divided_so_is_refused(options: tuple[str, str], said: str, tmp_path: Path) -> None:
    place = str(tmp_path / "book.sqlite")
    assert said in run("init", "visits", "--epsilon", "4", "--delta", "1e-6", *options, book=place, code=2)


def test_a_refusal_says_which_part_of_the_budget_pays(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book.sqlite", create=True)
    ledger.add_dataset("visits", epsilon=2, delta=1e-6)
    ledger.add_dataset("orders", epsilon=2, delta=1e-6, pure=0.5)
    ledger.add_dataset("costs", epsilon=2, delta=0)
    for name, algorithm, said in (
        ("visits", OutputPerturbation(epsilon=1.0), "charged as Gaussian noise"),
        ("visits", ObjectivePerturbation(epsilon=1.0, delta=1e-6), r"only \(epsilon, delta\) is known"),
        ("orders", OutputPerturbation(epsilon=1.0), r"left at that delta: 0\.5; .*Epsilon 0\.5 of the budget is"),
        ("costs", GramRelease(epsilon=1.0, delta=1e-6), "delta = 0, so only pure releases fit"),
    ):
        with pytest.raises(BudgetError, match=said):
            ledger.book(name, **ledger.terms(algorithm))
    ledger.book("visits", **ledger.terms(OutputPerturbation(epsilon=1.0, delta=1e-6)))
    ledger.book("orders", **ledger.terms(OutputPerturbation(epsilon=0.5)))
    ledger.book("costs", **ledger.terms(ObjectivePerturbation(epsilon=2.0)))
