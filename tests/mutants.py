"""Break privacy-relevant lines one at a time; the audit or the fast tests must notice. Run by ``make mutants``.

Works on copies of the tree in temporary folders, as many at a time as there are cores. A mutant of mutants.toml that
names the tests which notice it goes through these first. Then come, until something notices, the computed attacks of
the audit, the tests of its own module, the fast tests and the sampled attacks. Prints a table of what noticed each.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FAST_TESTS = (  # those that touch what is mutated, the slow ones last
    "tests/privacy",
    "tests/release/test_kernel.py",
    "tests/release/test_mapping.py",
    *(f"tests/custodian/gram/test_{name}.py" for name in ("rows", "sensitivity", "unseen", "scale", "one_donor")),
    *(f"tests/custodian/gram/test_{name}.py" for name in ("stream", "agreement", "algorithm")),
    "tests/release/test_release.py",
    "tests/custodian/donors/test_missing.py",
    "tests/custodian/donors/test_panel.py",
    "tests/custodian/groups",
    "tests/release/test_panel.py",
    "tests/custodian/weights",
)

AUDIT = """
import sys
from dpsc.evidence.audit.case import Effort, judge
from dpsc.evidence.audit.run import FALSE_ALARM, count
from dpsc.evidence.audit.shipped import cases
all_cases = cases()
effort, error = Effort(40_000, 2_000), FALSE_ALARM / count(all_cases)
attacks = [(case, a) for case in all_cases for a in case.attacks if a.statistical == (sys.argv[1] == "sampled")]
for case, attack in sorted(attacks, key=lambda pair: "bulk" not in pair[1].name):
    finding = judge(case, attack, attack.run(effort, error))
    if finding.verdict == "BROKEN":
        print(f"{finding.mechanism}, {finding.attack}")
        sys.exit(1)
"""


@dataclass(frozen=True)
class Mutant:
    """One line, broken; ``test`` is the file of tests that is known to notice it, if that is not its module's own."""

    kind: str
    what: str
    file: str
    old: str
    new: str
    test: str = ""


MUTANTS = [Mutant(**entry) for entry in tomllib.loads((ROOT / "tests" / "mutants.toml").read_text("utf-8"))["mutant"]]


def main() -> int:
    """Run every mutant, or those from:to on the command line; return how many survived."""
    first, last = (int(word) for word in sys.argv[1].split(":")) if len(sys.argv) > 1 else (0, len(MUTANTS))
    chosen, survivors, started = MUTANTS[first:last], 0, time.monotonic()
    print("| kind | mutant | killed by |\n|---|---|---|", flush=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, killer in zip(chosen, pool.map(kill, chosen), strict=True):
            survivors += killer == ""
            print(f"| {mutant.kind} | {mutant.what} | {killer or '**SURVIVED**'} |", flush=True)
    minutes = (time.monotonic() - started) / 60
    print(f"\n{len(chosen)} mutants, {survivors} survived, {minutes:.0f} minutes.", flush=True)
    return survivors


def kill(mutant: Mutant) -> str:
    """Return what noticed a mutant, or nothing. What is likely to notice it soon goes first."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "*-output", "reproduction", "__pycache__"))
        path = tree / "src" / "dpsc" / mutant.file
        text = path.read_text("utf-8")
        if text.count(mutant.old) != 1:
            raise SystemExit(f"{mutant.what}: the line is not there exactly once; update mutants.toml.")
        path.write_text(text.replace(mutant.old, mutant.new), "utf-8")
        own = Path("tests") / Path(mutant.file).with_name(f"test_{Path(mutant.file).name}")
        return (
            (tested(tree, [mutant.test]) if mutant.test else "")
            or attacked(tree, "computed")
            or (tested(tree, [str(own)]) if (tree / own).exists() else "")
            or tested(tree, FAST_TESTS)
            or attacked(tree, "sampled")
        )


def attacked(tree: Path, which: str) -> str:
    """Return the attack of the audit that breaks a claim, if one does."""
    done = run(tree, [sys.executable, "-W", "ignore", "-c", AUDIT, which])
    if done.returncode == 0:
        return ""
    if "Traceback" in done.stderr:
        return f"audit: it no longer runs ({done.stderr.strip().splitlines()[-1].split(':')[0]})"
    return f"audit: {done.stdout.strip()}"


def tested(tree: Path, tests: Sequence[str]) -> str:
    """Return the first test that fails, if one does."""
    done = run(tree, [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests])
    if done.returncode == 0:
        return ""
    if done.returncode == pytest.ExitCode.USAGE_ERROR:  # a path that is not there would pass for a test that notices
        raise SystemExit(done.stderr)
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if not failed:  # no test failed: pytest itself did, and nothing was noticed
        raise SystemExit(f"pytest could not run: {done.stdout}{done.stderr}")
    return f"test: {failed[0].split('::')[-1].split(' - ')[0].split('[')[0]}"


def run(tree: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run in the copy, with the copy's code."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
