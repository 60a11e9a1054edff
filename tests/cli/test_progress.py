"""How far a release is: told in Python, shown on a terminal, written in lines elsewhere; and stopped at any moment."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dpsc import GramRelease, Ledger, scan
from dpsc.cli import terminal
from tests.cli.conftest import T0, H, N, quick
from tests.cli.test_mistakes import BUDGET, COLUMNS
from tests.making import long, save

ROWS = N * (T0 + H)


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_python_is_told_of_each_pass_how_many_rows_and_of_how_many(tmp_path: Path, order: str) -> None:
    table = long(np.random.default_rng(0).normal(size=(N, T0 + H)).cumsum(axis=1))
    path = save(table if order == "sorted" else table.sample(frac=1, random_state=0), tmp_path / "donors.parquet")
    told: dict[str, list[int]] = {}
    totals: dict[str, int | None] = {}

    def tell(doing: str, rows: int, of: int | None) -> None:
        told.setdefault(doing, []).append(rows)
        totals[doing] = of

    source = scan(path, unit="who", time="week", outcome="cost", engine="stream")
    GramRelease(epsilon=1.0, delta=1e-6).release(source, on_progress=tell)
    apart = {"dividing into a private file": ROWS} if order == "shuffled" else {}
    looked = {"looking at the periods": ROWS}
    assert {doing: sum(rows) for doing, rows in told.items()} == {
        **looked, **apart, "counting donors": N, "adding up donors": N
    }  # fmt: skip
    assert all(of == sum(told[doing]) for doing, of in totals.items())
    before = len(told["adding up donors"])
    GramRelease(epsilon=1.0, delta=1e-6).release(source)
    assert len(told["adding up donors"]) == before


def test_whoever_is_told_may_stop_the_work(files: Path) -> None:
    class EnoughError(Exception):
        pass

    def stop(doing: str, rows: int, of: int | None) -> None:
        raise EnoughError

    source = scan(files / "donors.csv", unit="who", time="month", outcome="cost")
    with pytest.raises(EnoughError):
        GramRelease(epsilon=1.0, delta=1e-6).release(source, on_progress=stop)


def test_without_a_terminal_a_line_now_and_then_says_it_to_the_custodian(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "_EVERY", 0.0)
    code, out, err = quick("release", files / "donors.csv", *COLUMNS, *BUDGET, "--no-ledger", "-o", files / "r.json")
    assert code == 0, err
    assert f"For the custodian only: adding up donors: {N} of " in err
    assert "adding up" not in out


def test_more_rows_than_expected_have_no_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "_EVERY", 0.0)
    with terminal.passes() as tell:
        for _ in range(3):
            tell("reading", 500, 1000)
    assert [" of 1,000" in line for line in capsys.readouterr().err.splitlines()] == [True, True, False]


@pytest.mark.end_to_end
def test_ctrl_c_on_a_terminal_that_shows_a_bar_leaves_nothing(files: Path) -> None:
    table = "".join(
        (files / "donors.csv").read_text().partition("\n")[2].replace("patient", f"p{i}") for i in range(99)
    )
    (files / "many.csv").write_text("who,month,cost\n" + table)
    Ledger(files / "dpsc-ledger.sqlite", create=True).add_dataset("patients", epsilon=5, delta=1e-5)
    before = set(os.listdir(files))
    process, screen = pty.fork()
    if process == 0:
        os.chdir(files)
        command = [
            "-m",
            "dpsc",
            "release",
            "many.csv",
            *COLUMNS,
            *BUDGET,
            "--ledger",
            "dpsc-ledger.sqlite",
            "--dataset",
            "patients",
            "-o",
            "out.json",
            "--engine",
            "stream",
        ]
        os.execv(sys.executable, [sys.executable, *map(str, command)])
    shown, asked, deadline = "", False, time.monotonic() + 120
    while time.monotonic() < deadline and select.select([screen], [], [], 60)[0]:
        try:
            shown += os.read(screen, 2**16).decode()
        except OSError:  # it has ended
            break
        if not asked and "looking at the periods" in shown:
            os.write(screen, b"\x03")
            asked = True
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 2, shown
    os.close(screen)
    assert "interrupted" in shown
    assert "Traceback" not in shown
    assert set(os.listdir(files)) == before
    assert Ledger(files / "dpsc-ledger.sqlite").entries() == []
