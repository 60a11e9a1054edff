"""The paper's claims on ten data sets instead of one: how often each holds.

python benchmarks/claims.py            # about six minutes on two cores
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from dpsc.evidence.paper.figures import SPECS
from dpsc.evidence.paper.points import RECIPES
from dpsc.evidence.paper.reproduce import reproduce

ROOT = Path(__file__).parent.parent
SEEDS, RUNS = range(10), 500
MARK = {"holds": "**holds**", "does not hold": "does not hold", "undecided": "undecided"}


def main() -> None:
    verdicts: Counter[tuple[str, str, str]] = Counter()
    for seed in reversed(SEEDS):  # the first seed last: the table shows its findings
        with TemporaryDirectory() as folder:
            findings = reproduce(Path(folder), list(SPECS), RECIPES, runs=RUNS, seed=seed)
            verdicts.update((f.claim.name, f.recipe, f.verdict) for f in findings)
            if seed == 0:
                shutil.copy(Path(folder) / "epsilon-sizes.csv", ROOT / "benchmarks" / "results" / "reproduction.csv")
        print("seed", seed, Counter((f.recipe, f.verdict) for f in findings if f.verdict == "holds"), flush=True)

    rows = ["| claim | published (NOT PRIVATE) | printed | ours |", "|---|---|---|---|"]
    for claim in dict.fromkeys(f.claim for f in findings):
        cells = []
        for finding in (f for f in findings if f.claim == claim):
            often = verdicts[claim.name, finding.recipe, "holds"]
            cells.append(f"{MARK[finding.verdict]} ({often}/{len(SEEDS)}): {finding.evidence}")
        rows.append(f"| {claim.sentence} | " + " | ".join(cells) + " |")
    totals = [Counter(f.verdict for f in findings if f.recipe == recipe) for recipe in RECIPES]
    summary = [f"{t['holds']} hold, {t['does not hold']} do not, {t['undecided']} undecided" for t in totals]
    rows.append("| **all** | " + " | ".join(summary) + " |")
    (Path(__file__).parent / "results" / "claims.md").write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
