"""What the public choice of smoothness does to the error, on the design half and on factor models of four kinds.

    python benchmarks/smoothness.py [--runs 20] [--workers 2]

Writes results/smoothness.csv: error over that of non-private ridge at its best penalty, at epsilon 1.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, get_args

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import panels
import problems

from dpsc import GramRelease
from dpsc.release.kernel import Smoothness

OUT = Path(__file__).parent / "results"
MADE = ("walk", "ar", "white", "seasonal")


def problem_of(family: str, run: int) -> panels.Problem:
    """Return an average of 10 units of a real panel, or one unit of a factor model with loadings around 1."""
    if family not in MADE:
        return problems.real_problem(family, "average of 10", None, 0.0, run)
    rng = problems.generator(family, run)
    common = panels.factors(family, 3, 50, rng)
    signal = (1 + rng.uniform(-1, 1, (1001, 3))) @ common
    paths = signal + 0.5 * rng.normal(size=signal.shape)
    return panels.Problem(paths[1:], paths[0], 40, problems.NO_BOUNDS, signal[0, 40:])


def one_family(family: str, runs: int) -> dict[str, Any]:
    rows = []
    for run in range(runs):
        problem = problem_of(family, run)
        row = problems.yardsticks(problem)
        for smoothness in get_args(Smoothness):
            make = GramRelease(
                epsilon=1.0, delta=1e-6, smoothness=smoothness, like=problem.target[: problem.T0], seed=run
            )
            answer = make.release(problem.donors).estimate(problem.target, problem.T0)
            row[smoothness] = panels.rmse(answer.counterfactual, problem.truth)
        rows.append(row)
    found = problems.medians(rows)
    label = family if family not in MADE else f"factor model, {family}, 1,000 donors"
    return {"panel": label} | {name: found[name] / found["ridge"] for name in get_args(Smoothness)}


def main(runs: int, workers: int) -> None:
    families = [name for name in panels.SOURCES if panels.half(name) == "design"] + list(MADE)
    with ProcessPoolExecutor(workers) as pool:
        rows = pd.DataFrame(pool.map(one_family, families, [runs] * len(families)))
    means = {name: float(np.exp(np.log(rows[name]).mean())) for name in get_args(Smoothness)}
    rows.loc[len(rows)] = {"panel": "all of them, geometric mean"} | means
    rows.round(4).to_csv(OUT / "smoothness.csv", index=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    main(arguments.runs, arguments.workers)
