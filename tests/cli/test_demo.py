from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

pytestmark = pytest.mark.end_to_end


def dpsc(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dpsc", *arguments], capture_output=True, text=True, timeout=120)


def test_the_demo_runs_and_names_the_files_it_made(tmp_path: Path) -> None:
    done = dpsc("demo", "--out", str(tmp_path / "demo"))
    assert done.returncode == 0, done.stderr
    for name in ("non-private.png", "dpsc-out-epsilon-1.png", "counterfactuals.csv"):
        assert (tmp_path / "demo" / name).stat().st_size > 0
    table = pd.read_csv(tmp_path / "demo" / "counterfactuals.csv")
    effects = table.groupby("method")["gap"].mean()
    assert effects["non-private"] == pytest.approx(0.2, abs=0.02)
    assert abs(effects["dpsc-out-epsilon-1"]) > 100


def test_the_version_is_printed() -> None:
    assert dpsc("--version").stdout.startswith("dpsc 0.")


def test_help_lists_the_commands() -> None:
    assert "demo" in dpsc("--help").stdout
