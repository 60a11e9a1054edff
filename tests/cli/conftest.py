"""Files of the kind people have, and two ways to run the command on them: installed, and in this process."""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer import testing

from dpsc.cli import app, terminal
from tests.making import long, save

T0, H, N, EFFECT = 14, 4, 400, 3.0
FOUND = 3.37  # of the effect, without privacy; with epsilon 1 the noise moves it with a standard deviation of 0.2
# The options of all commands are built once: this takes longer than many a command that is refused.
testing._get_command = cache(testing._get_command)  # type: ignore[attr-defined]


def dpsc(
    *arguments: object, cwd: Path | None = None, timeout: float = 300, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does: for what only a process of its own shows. Everything else is `quick`."""
    return subprocess.run(
        [sys.executable, "-m", "dpsc", *map(str, arguments)], capture_output=True, text=True, check=False,
        timeout=timeout, cwd=cwd, encoding="utf-8", env={**os.environ, **(env or {})},
    )  # fmt: skip


def but_progress(stderr: str) -> str:
    """Return what a command of its own process told, without its lines every ten seconds: a machine may be slow."""
    return re.sub(r"^.*: [\d,]+( of [\d,]+)?(, .*)?\n", "", stderr, flags=re.M)


def start(*arguments: object, cwd: Path | None = None) -> subprocess.Popen[str]:
    """Start the command, to be interrupted: a parent in the background may have SIGINT ignored, so set it anew."""
    return subprocess.Popen(
        [sys.executable, "-m", "dpsc", *map(str, arguments)], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, encoding="utf-8", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


def invoked(*arguments: object) -> testing.Result:
    """Run the command in this process, whatever comes of it."""
    return testing.CliRunner().invoke(app, list(map(str, arguments)))


def quick(*arguments: object) -> tuple[int, str, str]:
    """Run the command in this process; return its exit code, stdout and stderr."""
    done = invoked(*arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def unbooked(*said: object) -> tuple[str, ...]:
    """Return what a release says where no ledger is at hand or said."""
    here = Path("dpsc-ledger.sqlite").exists() or "DPSC_LEDGER" in os.environ or "--ledger" in said
    return () if here or "--no-ledger" in said else ("--no-ledger",)


@pytest.fixture(autouse=True, scope="session")
def no_lines_about_progress() -> Iterator[None]:
    """Tell nothing every ten seconds, however slow the machine is; the tests of progress lines ask for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(terminal, "_EVERY", math.inf)
        yield


@pytest.fixture(autouse=True)
def alone(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every command in an empty folder: a ledger that is found there, or in the environment, would be used."""
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    monkeypatch.delenv("DPSC_LEDGER", raising=False)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Monthly costs of patients on two common factors, and a clinic that was treated in the fifteenth month."""
    rng = np.random.default_rng(3)
    factors = np.cumsum(rng.normal(size=(2, T0 + H)), axis=1) + 5
    paths = rng.uniform(0.5, 1.5, (N + 1, 2)) @ factors + 0.2 * rng.normal(size=(N + 1, T0 + H))
    paths[0, T0:] += EFFECT
    names = ["clinic", *(f"patient {i}" for i in range(1, N + 1))]
    panel = long(paths.round(4), names, months(), ("who", "month", "cost"))
    panel = panel.sort_values(["who", "month"], ignore_index=True)
    folder = tmp_path_factory.mktemp("written")
    save(panel, folder / "panel.csv")
    save(panel[panel["who"] != "clinic"], folder / "donors.csv")
    save(panel.loc[panel["who"] == "clinic", ["month", "cost"]], folder / "target.csv")
    return folder


def months() -> list[str]:
    return [str(day.date()) for day in pd.date_range("2020-01-01", periods=T0 + H, freq="MS")]


def shown() -> list[str]:
    """The same months as they are shown."""
    return [month.removesuffix("-01") for month in months()]


@pytest.fixture
def files(written: Path, tmp_path: Path) -> Path:
    """A folder with the panel, its donors and its target as CSV."""
    return Path(shutil.copytree(written, tmp_path, dirs_exist_ok=True))
