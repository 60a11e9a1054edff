"""Every measurement of accuracy in one command: the two-step algorithms, the Gram release, its parts, its smoothness.

    python benchmarks/accuracy.py [--runs 30]

Results go to benchmarks/results; README and docs quote them.
"""

from __future__ import annotations

import argparse

import ablation
import gram
import missing
import smoothness
import two_step

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30)
    runs = parser.parse_args().runs
    two_step.main(runs)
    gram.main("report", runs, workers=2)
    ablation.main(max(2, runs // 3), workers=2)
    smoothness.main(max(2, runs // 2), workers=2)
    missing.main(max(2, runs // 2), workers=2)
