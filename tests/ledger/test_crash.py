"""kill -9 at every step of a release and at random moments: the book is whole and never says too little."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dpsc import GramRelease, Ledger
from tests.soak import quick_or_long

pytestmark = pytest.mark.end_to_end
KILLS = quick_or_long(12, 200)


def crash(url: str, folder: Path, *arguments: str) -> list[dict[str, Any]]:
    script = Path(__file__).with_name("crash.py")
    done = subprocess.run(
        [sys.executable, script, url, folder, *arguments], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_kill_at_every_step_leaves_what_it_should(url: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    found = {
        each["step"]: (each["killed"], each["state"], each["file"]) for each in crash(url, tmp_path / "out", "steps")
    }
    nothing, booked, unconfirmed = (True, None, False), (True, "booked", False), (True, "booked", True)
    assert found == {
        "before the entry": nothing,
        "in the transaction of the entry": nothing,
        "after the entry": booked,
        "while noise is drawn": booked,
        "during the write": booked,
        "before the file is moved": booked,
        "after the file is moved": unconfirmed,
        "before the confirm": unconfirmed,
        "in the transaction of the confirm": unconfirmed,
        "never": (False, "confirmed", True),
    }


def test_kills_at_random_moments_never_leave_a_release_without_its_entry(url: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    found = crash(url, tmp_path / "out", "random", str(KILLS))
    stages = Counter((each["state"], each["file"]) for each in found)
    assert stages.total() == KILLS
    assert stages[None, True] == 0  # the one thing that must never be
    assert stages[None, False] + stages["booked", False] + stages["booked", True] > 0  # some were cut short
    ledger = Ledger(url)
    booked = [entry for entry in ledger.entries() if entry.output and Path(entry.output).exists()]
    assert len(booked) == len(list((tmp_path / "out").glob("*.json")))

    left = GramRelease(epsilon=ledger.remaining("donors", delta=1e-6), delta=1e-6, scale=1.0)
    with ledger.spending("donors", **ledger.terms(left)):  # the book can be used as if nothing had happened
        pass
    assert ledger.entries()[-1].state == "confirmed"
    assert ledger.verify() == []
