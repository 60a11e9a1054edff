from __future__ import annotations

import contextlib
import json
import math
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import Ledger, PrivatePanel, Release, datasets
from dpsc.cli.demo import started_as
from tests.cli.conftest import dpsc, quick

pytestmark = pytest.mark.end_to_end
Told = tuple[Path, subprocess.CompletedProcess[str], Ledger]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The demo run where a ledger is at hand, its folder, and the ledger."""
    here = tmp_path_factory.mktemp("demo")
    ledger = Ledger(here / "book.sqlite", create=True)
    ledger.add_dataset("patients", epsilon=1.0, delta=1e-6)
    environment = {"DPSC_LEDGER": str(here / "book.sqlite"), "COLUMNS": "80"}
    return here / "my demo", dpsc("demo", "--out", "my demo", cwd=here, env=environment), ledger


def test_the_demo_tells_the_story_on_two_screens(told: Told) -> None:
    out, done, ledger = told
    assert (done.returncode, done.stderr) == (0, "")
    assert ledger.entries() == []  # the demo books nothing in it
    lines = done.stdout.splitlines()
    assert len(lines) < 115
    first = done.stdout.index("Open")
    assert all(len(line) <= 80 for line in done.stdout[:first].splitlines())
    for word in ("private", "patients' visits", "spends nothing more", "epsilon 1", "READY", *(
        f"$ dpsc {command}" for command in ("plan", "check", "release", "estimate"))):  # fmt: skip
        assert word in done.stdout
    named = [line.strip() for line in lines[lines.index("Open ") + 1 : lines.index("Try next ") - 1]]
    assert len(named) == 7
    assert all((out.parent / name).stat().st_size > 0 for name in named)
    assert not list(out.parent.glob(".*"))


def test_the_demo_comes_close_to_the_truth_because_donors_help(told: Told) -> None:
    """The numbers on the screen are those of the files, and the truth is the one that was added."""
    out, done, _ = told
    shown = " ".join(done.stdout.split())
    release = Release.load(out / "analyst" / "donors.dpsc.json")
    assert release.guarantee is not None
    assert (release.guarantee.epsilon, release.guarantee.delta, release.n) == (1.0, 1e-6, 1161)
    result = json.loads((out / "analyst" / "answer" / "result.json").read_text("utf-8"))
    assert " ".join(result["answer"]) in shown
    assert result["average_effect"] == pytest.approx(datasets.MINUTES_ADDED, abs=6)
    low, high = result["average_effect_interval"]
    assert f"The truth is +15.00 minutes. The answer is {result['average_effect']:+.2f}" in shown
    assert 0 < low < datasets.MINUTES_ADDED < high
    assert result["verdict"]["grade"] == "yes"
    assert "Do the donors help? Yes" in shown
    target = pd.read_csv(out / "analyst" / "target.csv")["delay"].to_numpy()
    truth = target[17:] - datasets.MINUTES_ADDED
    errors = [float(value) for value in re.findall(r"([\d.]+) minutes\n", done.stdout.split("5. Protect")[0])][-4:]
    counterfactual = np.array([period["counterfactual"] for period in result["periods"]])
    expected = [np.sqrt(np.mean((path - truth) ** 2)) for path in (counterfactual, target[16], target[:17].mean())]
    assert errors[:3] == pytest.approx(expected, abs=0.051)
    assert errors[0] < min(errors[1:])


def test_the_table_of_people_shows_the_effect_that_was_added(told: Told) -> None:
    out, done, _ = told
    part = " ".join(done.stdout[done.stdout.index("5. Protect") : done.stdout.index("6. An answer")].split())
    panel = PrivatePanel.load(out / "analyst" / "destinations.dpsc.json")
    assert panel.guarantee is not None
    assert (panel.guarantee.epsilon, panel.guarantee.adjacency, len(panel.units)) == (1.0, "replace one person", 41)
    result = json.loads((out / "analyst" / "destination" / "result.json").read_text("utf-8"))
    assert " ".join(result["answer"]) in part
    truth, shown = (float(value) for value in re.findall(r"The truth is ([+\d.]+) .*answer is ([-+\d.]+),", part)[0])
    assert shown == pytest.approx(result["average_effect"], abs=0.006)
    assert 12 < truth < 15  # some flights were cut at the bound
    (exact,) = re.findall(r"it would have been ([-+\d.]+)\.", part)
    assert shown == pytest.approx(float(exact), abs=12)
    (rank,) = re.findall(r"rank (\d+) of 41", part)
    assert int(rank) <= 20


def test_the_second_act_says_that_it_cannot_tell(told: Told) -> None:
    _, done, _ = told
    second = done.stdout[done.stdout.index("6. An answer") :]
    assert "Do the donors help? Unclear" in second
    assert f"The truth is {math.log(1.5):+.2f}" in second
    assert "Do not" in second


def test_the_next_commands_work_as_printed(told: Told) -> None:
    out, done, _ = told
    anywhere = done.stdout.replace(shlex.quote(sys.executable), "python")  # its folder may have any length
    assert max(map(len, anywhere.splitlines())) <= 88
    printed = done.stdout[done.stdout.index("Try next") :].replace("\\\n", " ")
    commands = [line.strip() for line in printed.splitlines()[1:]]
    assert len(commands) == 3
    ran = subprocess.run(commands[0], shell=True, cwd=out.parent, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "1,161" in ran.stdout
    estimate, check = (shlex.split(command) for command in commands[1:])
    started = shlex.split(commands[0])[:3]
    assert estimate[:3] == check[:3] == started
    with contextlib.chdir(out.parent):
        code, answer, err = quick(*estimate[3:])
        assert (code, err) == (0, "")
        assert "Do the donors help? Yes" in answer
        assert all(Path(check[word]).is_file() for word in (4, 6))
    assert (check[3], check[5]) == ("check", "--periods")  # what the demo itself has run


def test_the_tour_of_the_readme_runs_in_its_folder(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(told[0])
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8").split("```console\n")[1].split("```")[0]
    tour = [shlex.split(line, comments=True)[2:] for line in readme.replace("\\\n", " ").splitlines()]
    assert [command[0] for command in tour] == ["ledger", "plan", "check", "release", "inspect", "estimate"]
    for command in tour:
        more = ["--runs", "2"] if command[0] == "plan" else []
        if command[-1] == "answer":
            command[-1] = "answer.html"  # a page without its pictures beside it is drawn sooner
        code, _, err = quick(*command, *more)
        assert code == 0, err
    assert Release.load("donors.dpsc.json").n == 1161
    assert Path("answer.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("called", "path", "typed"),
    [
        (".venv/bin/dpsc", "", ".venv/bin/dpsc"),
        ("my venv/bin/dpsc", "", "'my venv/bin/dpsc'"),
        (".venv/bin/dpsc", ".venv/bin", "dpsc"),
        ("other/bin/dpsc", ".venv/bin", "other/bin/dpsc"),
    ],
)
def test_the_program_is_named_as_it_can_be_typed(
    called: str, path: str, typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (".venv/bin", "other/bin"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "dpsc").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [called, "demo"])
    monkeypatch.setenv("PATH", str(tmp_path / path) if path else "")
    assert started_as() == typed


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
