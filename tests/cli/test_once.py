"""Nothing is done twice: what is booked is the very object that runs, and each file of a walk is opened once.

The two walks are those of the architecture: a release of donors, and an estimate from a release. Openings are counted
by the kernel, whoever opens a file.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsc import GramRelease, Ledger, ObjectivePerturbation, OutputPerturbation
from dpsc import files as writing
from dpsc.analyst import estimate, targets
from dpsc.cli import render
from dpsc.custodian.custody import steps
from dpsc.ledger import schema
from dpsc.periods import calendar
from dpsc.release import describe, file_format
from dpsc.release.population import Population
from dpsc.tables import reader
from tests import following
from tests.cli.conftest import quick
from tests.making import save

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
        "release",
        "--no-ledger",
        files / "donors.csv",
        *COLUMNS,
        "--epsilon",
        1,
        "--delta",
        0.5,
        "--i-know",
        "-o",
        files / "r.json",
    )
    assert code == 0, err
    assert err.count("is not below 1/n") == 1


TABLES = ["long.csv", "long.parquet", "long", "wide.csv", "wide.parquet", "wide"]
RELEASE = [
    (steps, "opened"),
    (GramRelease, "custodian_sum"),
    (GramRelease, "release"),
    (file_format, "dumps"),
    (file_format, "sha256"),
    (describe, "page"),
    (Population, "of"),
    (calendar, "_in_calendar"),
]


def require_once(opened: Counter[str]) -> None:
    assert opened
    too_often = {name: times for name, times in opened.items() if times > 1}
    assert not too_often


@pytest.fixture(scope="module")
def tables(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The donors as each kind of table: long and wide, text and Parquet, in one file and in a folder of two."""
    folder = tmp_path_factory.mktemp("tables")
    long = pd.read_csv(written / "donors.csv")
    wide = long.pivot(index="who", columns="month", values="cost").reset_index()
    for name, table in (("long", long), ("wide", wide)):
        save(table, folder / f"{name}.csv")
        save(table, folder / f"{name}.parquet")
        (folder / name).mkdir()
        save(table[: len(table) // 2], folder / name / "first.csv")
        save(table[len(table) // 2 :], folder / name / "second.csv")
    return folder


@pytest.fixture(scope="module")
def made(tables: Path) -> Path:
    """A release of these donors."""
    code, _, err = quick(
        "release",
        tables / "long.csv",
        *COLUMNS,
        "--epsilon",
        1,
        "--delta",
        1e-6,
        "--no-ledger",
        "-o",
        tables / "made.dpsc.json",
    )
    assert code == 0, err
    return tables / "made.dpsc.json"


@following.LINUX
@pytest.mark.parametrize("engine", ["memory", "stream"])
@pytest.mark.parametrize("name", TABLES)
def test_a_release_opens_each_file_and_takes_each_step_once(
    tables: Path, tmp_path: Path, name: str, engine: str, book: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    donors, out = tables / name, tmp_path / "r.dpsc.json"
    steps = following.counted(monkeypatch, *RELEASE)
    rows = following.counted(monkeypatch, (schema, "rows"))
    columns = COLUMNS if name.startswith("long") else ("--wide", "--unit", "who")
    with following.opened(*(sorted(donors.iterdir()) if donors.is_dir() else [donors])) as opened:
        code, _, err = quick(
            "release", donors, *columns, "--periods", "2020-01..2021-06", "--engine", engine,
            "--epsilon", 1, "--delta", 1e-6, *book, "-o", out,
        )  # fmt: skip
    assert code == 0, err
    assert steps == dict.fromkeys(steps, 1)
    assert rows["schema.rows"] <= 4  # the payer, the booking, its confirmation, what is left
    require_once(opened)


ESTIMATE = [
    (file_format, "loads_outcomes"),
    (reader, "series_beside"),
    (targets, "matched"),
    (estimate, "estimate"),
    (Population, "of"),
    (render, "write"),
]


@following.LINUX
@pytest.mark.parametrize("form", ["folder", "r.json", "r.html", "r.csv", "r.png"])
def test_an_estimate_opens_each_file_and_takes_each_step_once(
    files: Path, made: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, written = files / "target.csv", Counter[str]()
    real = writing.write
    monkeypatch.setattr(writing, "write", lambda path, *given: (written.update([path.name]), real(path, *given))[1])
    steps = following.counted(monkeypatch, *ESTIMATE)
    with following.opened(made, target) as opened:
        code, _, err = quick("estimate", made, target, "--treatment-time", "2021-03-01", "-o", files / form)
    assert code == 0, err
    assert steps == dict.fromkeys(steps, 1)
    assert set(written.values()) == {1}
    assert len(list((files / form).iterdir()) if form == "folder" else [form]) == len(written)
    require_once(opened)


@following.LINUX
def test_a_study_opens_each_file_once(files: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = pd.read_csv(files / "panel.csv")
    several = save(panel[panel["who"].isin(["clinic", "patient 1"])], files / "several.csv")
    steps = following.counted(monkeypatch, (file_format, "loads_outcomes"), (Population, "of"), (render, "write"))
    with following.opened(made, several) as opened:
        code, _, err = quick(
            "estimate", made, several, "--unit", "who", "--treatment-time", "2021-03-01", "-o", files / "study.json"
        )
    assert code == 0, err
    assert steps == dict.fromkeys(steps, 1)
    require_once(opened)
