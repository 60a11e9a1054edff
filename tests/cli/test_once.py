"""Nothing is built twice: what is booked is the very object that runs, and a ledger is opened once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpsc import GramRelease, Ledger, ObjectivePerturbation, OutputPerturbation
from tests.cli.conftest import quick

COLUMNS = ("--unit", "who", "--time", "month", "--outcome", "cost")


@pytest.fixture
def book(files: Path) -> list[object]:
    Ledger(files / "book.sqlite", create=True).add_dataset("patients", epsilon=40, delta=1e-5, other=(10, 1e-6))
    return ["--ledger", files / "book.sqlite", "--dataset", "patients"]


def calls(kind: type, method: str, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that fills with the object on which, or with which, a method is called from now on."""
    found: list[object] = []
    real = getattr(kind, method)

    def recording(first: object, *given: Any, **named: Any) -> Any:
        found.append(first)
        return real(first, *given, **named)

    static = isinstance(vars(kind)[method], staticmethod)
    monkeypatch.setattr(kind, method, staticmethod(recording) if static else recording)
    return found


@pytest.mark.parametrize(
    ("method", "kind", "runs"),
    [
        ("gram", GramRelease, "release"),
        ("output", OutputPerturbation, "fit"),
        ("objective", ObjectivePerturbation, "fit"),
    ],
)
def test_fit_books_the_algorithm_that_runs_and_makes_no_other(
    files: Path, book: list[object], method: str, kind: type, runs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithms, ledgers = calls(kind, "__init__", monkeypatch), calls(Ledger, "__init__", monkeypatch)
    booked, ran = calls(Ledger, "terms", monkeypatch), calls(kind, runs, monkeypatch)
    code, _, err = quick(
        "fit", files / "panel.csv", *COLUMNS, "--treated-unit", "clinic", "--treatment-time", "2021-03-01",
        "--method", method, "--epsilon", 10, "--delta", 1e-6, "--bounds", -10, 60, *book, "-o", files / "fit.csv",
    )  # fmt: skip
    assert code == 0, err
    assert len(algorithms) == len(booked) == len(ran) == len(ledgers) == 1
    assert algorithms[0] is booked[0] is ran[0]


def test_release_opens_the_ledger_once_and_makes_one_algorithm(
    files: Path, book: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithms, ledgers = calls(GramRelease, "__init__", monkeypatch), calls(Ledger, "__init__", monkeypatch)
    code, _, err = quick(
        "release", files / "donors.csv", *COLUMNS, "--epsilon", 1, "--delta", 1e-6, *book, "-o", files / "r.json"
    )
    assert code == 0, err
    assert len(algorithms) == len(ledgers) == 1


@pytest.mark.filterwarnings("always::dpsc.errors.DpscWarning")
def test_a_large_delta_that_the_user_insists_on_is_warned_of_once(files: Path) -> None:
    code, _, err = quick(
        "release", files / "donors.csv", *COLUMNS, "--epsilon", 1, "--delta", 0.5, "--i-know", "-o", files / "r.json"
    )
    assert code == 0, err
    assert err.count("is not below 1/n") == 1
