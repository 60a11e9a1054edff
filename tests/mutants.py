"""Break privacy-relevant lines one at a time; the audit or the fast tests must notice. Run by ``make mutants``.

Works on copies of the tree in temporary folders. For each mutant of mutants.toml the audit's attacks run first, the
computed ones before the sampled ones, until one is broken; a mutant that survives them all goes to the fast tests.
Prints the table of docs/audit.md. Words on the command line choose mutants.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAST_TESTS = (  # those that touch what is mutated, the slow ones last
    "tests/mechanisms", "tests/engines", "tests/test_exact.py", "tests/test_accounting.py", "tests/test_guarantee.py",
    "tests/test_bounds.py", "tests/test_release.py", "tests/test_panel.py", "tests/algorithms",
    "tests/test_sensitivity.py",
)  # fmt: skip

AUDIT = """
import sys
from dpsc.audit.case import Effort, judge
from dpsc.audit.run import FALSE_ALARM, count
from dpsc.audit.shipped import cases
all_cases = cases()
effort, error = Effort(40_000, 2_000), FALSE_ALARM / count(all_cases)
attacks = [(case, attack) for case in all_cases for attack in case.attacks]
for case, attack in sorted(attacks, key=lambda pair: (pair[1].statistical, "bulk" not in pair[1].name)):
    finding = judge(case, attack, attack.run(effort, error))
    if finding.verdict == "BROKEN":
        print(f"{finding.mechanism}, {finding.attack}")
        sys.exit(1)
"""


@dataclass(frozen=True)
class Mutant:
    """One line, broken."""

    kind: str
    what: str
    file: str
    old: str
    new: str


MUTANTS = [Mutant(**entry) for entry in tomllib.loads((ROOT / "tests" / "mutants.toml").read_text("utf-8"))["mutant"]]


def main() -> int:
    """Run every mutant; return how many survived."""
    wanted = sys.argv[1:]
    survivors = 0
    print("| kind | mutant | killed by | s |\n|---|---|---|---|", flush=True)
    for mutant in MUTANTS:
        if wanted and not any(word in f"{mutant.kind} {mutant.what}" for word in wanted):
            continue
        started = time.monotonic()
        killer = kill(mutant)
        survivors += killer == ""
        seconds = time.monotonic() - started
        print(f"| {mutant.kind} | {mutant.what} | {killer or '**SURVIVED**'} | {seconds:.0f} |", flush=True)
    print(f"\n{len(MUTANTS)} mutants, {survivors} survived.", flush=True)
    return survivors


def kill(mutant: Mutant) -> str:
    """Return what noticed a mutant, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "*-output", "reproduction", "__pycache__"))
        path = tree / "src" / "dpsc" / mutant.file
        text = path.read_text("utf-8")
        if text.count(mutant.old) != 1:
            raise SystemExit(f"{mutant.what}: the line is not there exactly once; update {Path(__file__).name}.")
        path.write_text(text.replace(mutant.old, mutant.new), "utf-8")
        done = run(tree, [sys.executable, "-W", "ignore", "-c", AUDIT])
        if done.returncode == 1 and "Traceback" not in done.stderr:
            return f"audit: {done.stdout.strip()}"
        if done.returncode != 0:
            return f"audit: it no longer runs ({done.stderr.strip().splitlines()[-1].split(':')[0]})"
        options = ["-x", "-q", "-p", "no:cacheprovider"]
        done = run(tree, [sys.executable, "-m", "pytest", *options, *FAST_TESTS])
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if done.returncode == 0:
            return ""
        return f"test: {failed[0].split('::')[-1].split(' - ')[0] if failed else 'collection'}"


def run(tree: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run in the copy, with the copy's code."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
