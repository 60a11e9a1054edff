"""``dpsc release`` and ``fit`` with a ledger: booked before noise, confirmed after the file, refused over budget."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pandas as pd
import pytest

from dpsc import Ledger
from tests.cli.conftest import dpsc, quick, start
from tests.soak import quick_or_long

COLUMNS = ("--unit", "who", "--time", "month", "--outcome", "cost")


@pytest.fixture
def ledger(files: Path) -> Path:
    path = files / "book.sqlite"
    code, _, err = quick(
        "ledger", "init", "patients", "--ledger", path, "--epsilon", 2, "--delta", 1e-6, "--about", "periods=18"
    )
    assert code == 0, err
    return path


def release(files: Path, ledger: Path, epsilon: float, out: str, *more: object) -> tuple[object, ...]:
    return ("release", files / "donors.csv", *COLUMNS, "--epsilon", epsilon, "--delta", 1e-7, "-o", files / out,
            "--ledger", ledger, "--dataset", "patients", *more)  # fmt: skip


def states(ledger: Path) -> list[str]:
    return [entry.state for entry in Ledger(ledger).entries("patients")]


def test_a_release_is_booked_and_confirmed_and_the_budget_is_kept(files: Path, ledger: Path) -> None:
    code, _, err = quick(*release(files, ledger, 1.5, "one.json"))
    assert code == 0, err
    assert states(ledger) == ["confirmed"]
    code, _, err = quick(*release(files, ledger, 1.9, "two.json"))
    assert code == 2
    assert "left at that delta" in err
    assert not (files / "two.json").exists()
    assert states(ledger) == ["confirmed"]
    left = Ledger(ledger).remaining("patients", delta=1e-7)
    code, _, err = quick(*release(files, ledger, left, "two.json"))
    assert code == 0, err
    assert Ledger(ledger).verify() == []


def test_fit_books_too_and_what_has_no_guarantee_is_refused(files: Path, ledger: Path) -> None:
    common = ("fit", files / "panel.csv", *COLUMNS, "--treated-unit", "clinic", "--treatment-time", "2021-03-01",
              "--ledger", ledger, "--dataset", "patients", "-o", files / "answer.csv")  # fmt: skip
    code, _, err = quick(*common, "--method", "nonprivate", "--bounds", -10, 60)
    assert code == 2
    assert "cannot be booked" in err
    assert not (files / "answer.csv").exists()
    code, _, err = quick(*common, "--epsilon", 1, "--delta", 1e-7)
    assert code == 0, err
    assert states(ledger) == ["confirmed"]


def test_mistakes_spend_nothing(files: Path, ledger: Path) -> None:
    Ledger(ledger).add_dataset("visitors", epsilon=1, delta=1e-6)
    for arguments in (
        release(files, ledger, 1, "r.json", "--outcome", "costs"),
        release(files, ledger, 50, "r.json"),
        release(files, ledger, 1, "r.json", "--dataset", "others"),
        release(files, ledger, 1, "donors.csv", "--force"),
        (*release(files, ledger, 1, "r.json")[:-2],),  # a ledger of two data sets, and none is named
    ):
        code, _, _ = quick(*arguments)
        assert code == 2
    assert states(ledger) == []
    assert not (files / "r.json").exists()


def test_what_is_wrong_with_the_ledger_is_said_before_the_donors_are_read(
    files: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("the donors were read")

    monkeypatch.setattr("dpsc.custodian.donors.donor_files.reader.open_table", read)
    Ledger(ledger).add_dataset("visitors", epsilon=1, delta=1e-6)
    for arguments in (
        release(files, ledger, 1, "r.json", "--dataset", "others"),
        release(files, files / "nowhere.sqlite", 1, "r.json"),
        release(files, ledger, 1, "r.json")[:-2],
    ):
        code, _, _ = quick(*arguments)
        assert code == 2


def test_a_corrupt_file_in_a_folder_spends_nothing(files: Path, ledger: Path) -> None:
    (files / "folder").mkdir()
    for name in ("a", "c"):
        pd.read_csv(files / "donors.csv").to_parquet(files / "folder" / f"{name}.parquet")
    whole = (files / "folder" / "a.parquet").read_bytes()
    (files / "folder" / "b.parquet").write_bytes(whole[: len(whole) // 2])
    arguments = [
        files / "folder" if argument == files / "donors.csv" else argument
        for argument in release(files, ledger, 1, "r.json")
    ]
    code, _, err = quick(*arguments)
    assert code == 2
    assert "b.parquet: it cannot be read" in " ".join(err.split())
    assert states(ledger) == []


def test_what_a_killed_release_left_is_removed_when_it_is_made_again(files: Path, ledger: Path) -> None:
    left = files / ".r.json.0123456789ab.part"
    (left / "new").mkdir(parents=True)
    left.chmod(0o700)
    (left / "lock").touch()
    code, _, err = quick(*release(files, ledger, 1, "r.json", "--scale", 3))
    assert code == 0, err
    assert not list(files.glob(".*.part"))


def test_an_opendp_with_biased_noise_is_refused_before_anything_is_booked(
    files: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scale is given, so that noise would first be drawn after the booking, which counts as spent."""
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.14.1")
    code, _, err = quick(*release(files, ledger, 1, "r.json", "--scale", 3))
    assert code == 2
    assert "OpenDP 0.14.1 is installed" in err
    assert states(ledger) == []
    assert not (files / "r.json").exists()


@pytest.mark.end_to_end
def test_killed_at_any_moment_no_release_is_without_its_entry(files: Path, ledger: Path) -> None:
    began = time.monotonic()
    assert dpsc(*release(files, ledger, 0.05, "first.json", "--scale", 3)).returncode == 0
    usual = time.monotonic() - began
    for round_ in range(quick_or_long(1, 200)):
        moment = random.Random(round_).uniform(0.5, 1.1) * usual
        process = start(*release(files, ledger, 0.05, f"{round_}.json", "--scale", 3))
        time.sleep(moment)
        process.kill()
        process.communicate(timeout=30)
    assert Ledger(ledger).verify() == []
    entries = Ledger(ledger).entries("patients")
    booked = {Path(str(entry.output)).name for entry in entries}
    made = {file.name for file in files.glob("*.json")}
    assert made <= booked
    confirmed = {Path(str(entry.output)).name for entry in entries if entry.state == "confirmed"}
    assert confirmed <= made


def test_text_that_cannot_be_published_is_refused_before_anything_is_booked(files: Path, ledger: Path) -> None:
    code, _, err = quick(*release(files, ledger, 1.0, "one.json", "--provenance", "\x1b[2J"))
    assert code == 2
    assert "--provenance" in err
    table = pd.read_csv(files / "panel.csv").rename(columns={"cost": "co\x1b[2Jst"})
    table.to_csv(files / "panel.csv", index=False)
    table[table["who"] != "clinic"].to_csv(files / "donors.csv", index=False)
    outcome = ("--unit", "who", "--time", "month", "--outcome", "co\x1b[2Jst")
    budget = ("--epsilon", 1, "--delta", 1e-7, "--ledger", ledger, "--dataset", "patients", "-o", files / "out.csv")
    fit = ("fit", files / "panel.csv", "--treated-unit", "clinic", "--treatment-time", "2021-01")
    for command in (("release", files / "donors.csv"), fit):
        code, _, err = quick(*command, *outcome, *budget)
        assert code == 2
        assert "control characters" in err
    assert states(ledger) == []
