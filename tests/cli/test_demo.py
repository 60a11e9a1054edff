from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from dpsc import Release

pytestmark = pytest.mark.end_to_end


def dpsc(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dpsc", *arguments], capture_output=True, text=True, timeout=120)


def test_the_demo_runs_and_names_the_files_it_made(tmp_path: Path) -> None:
    done = dpsc("demo", "--out", str(tmp_path / "demo"))
    assert done.returncode == 0, done.stderr
    for name in ("non-private.png", "gram-release.png", "counterfactuals.csv", "donors.dpsc.json"):
        assert (tmp_path / "demo" / name).stat().st_size > 0
        assert name in done.stdout
    table = pd.read_csv(tmp_path / "demo" / "counterfactuals.csv")
    effects = table.groupby("method")["gap"].mean()
    assert effects["non-private"] == pytest.approx(0.2, abs=0.02)
    assert effects["gram-release"] == pytest.approx(0.2, abs=0.15)
    assert abs(effects["dpsc-out-as-printed"]) > 1000
    assert Release.load(tmp_path / "demo" / "donors.dpsc.json").guarantee is not None


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = dpsc("demo", "--out", str(tmp_path / "file"))
    assert done.returncode == 2
    assert "file" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_is_printed() -> None:
    assert dpsc("--version").stdout.startswith("dpsc 0.")


def test_help_lists_the_commands() -> None:
    assert "demo" in dpsc("--help").stdout
