from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pandas as pd
import pytest

from dpsc import Ledger, Release
from tests.cli.conftest import dpsc, quick

pytestmark = pytest.mark.end_to_end


def test_the_demo_tells_the_story_and_names_files_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a ledger is at hand: the demo books nothing in it."""
    out, book = tmp_path / "demo", tmp_path / "book.sqlite"
    ledger = Ledger(book, create=True)
    ledger.add_dataset("patients", epsilon=1.0, delta=1e-6)
    monkeypatch.setenv("DPSC_LEDGER", str(book))
    done = dpsc("demo", "--out", out)
    assert ledger.entries() == []
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    named = re.findall(rf"^  ({re.escape(str(out))}\S+)$", done.stdout, flags=re.MULTILINE)
    assert len(named) == 4
    assert all(Path(name).stat().st_size > 0 for name in named)
    for word in (
        "custodian",
        "analyst",
        "private",
        "spends nothing more",
        "epsilon 1",
        "$ dpsc plan",
        "$ dpsc release",
    ):
        assert word in done.stdout

    donors = pd.read_csv(out / "custodian" / "donors.csv")
    assert donors["man"].nunique() == 515
    release = Release.load(out / "analyst" / "donors.dpsc.json")
    assert release.guarantee is not None
    assert (release.guarantee.epsilon, release.guarantee.delta, release.n) == (1.0, 1e-6, 515)
    result = json.loads((out / "analyst" / "answer" / "result.json").read_text("utf-8"))
    assert result["average_effect"] == pytest.approx(math.log(1.5), abs=0.35)
    assert f"Do the donors help? {result['verdict']['grade'].capitalize()}:" in done.stdout
    page = (out / "analyst" / "answer" / "report.html").read_text("utf-8")
    assert "dpsc estimate analyst/donors.dpsc.json analyst/target.csv --treatment-time 1985" in page
    low, high = result["average_effect_interval"]
    assert low < math.log(1.5) < high
    assert not list(tmp_path.glob(".*"))


def test_the_demo_does_not_replace_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for out in (tmp_path / "file", tmp_path):
        code, _, err = quick("demo", "--out", out)
        assert code == 2
        assert str(out) in err.replace("\n", "")
        assert "Traceback" not in err


def test_the_version_is_printed() -> None:
    assert dpsc("--version").stdout.startswith("dpsc 0.")


def test_help_lists_the_commands_and_every_command_has_help() -> None:
    listed = dpsc("--help").stdout
    for command in ("demo", "plan", "release", "inspect", "estimate", "fit", "reproduce"):
        assert command in listed
        assert f"{command} [OPTIONS]" in quick(command, "--help")[1]
