"""Every measurement of accuracy in one command: the two-step algorithms, then the Gram release.

    python benchmarks/accuracy.py [--runs 100]

Results go to benchmarks/results; README and docs quote them.
"""

from __future__ import annotations

import argparse

import two_step

import gram

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    two_step.main(min(runs, 40))
    gram.main(runs)
