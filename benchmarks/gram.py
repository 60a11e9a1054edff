"""How good the answers of the Gram release are: calm and in a shock, on panels kept for the report.

    python benchmarks/gram.py [--half report|design] [--runs 30] [--workers 2]

Errors are medians over runs of the root mean squared error after T0, divided by the same of the best donor-free
forecast (last value, line or mean: the best of them for that panel). Tables show geometric means over panels and kinds
of target. A shock hits everybody after T0, with nothing before to announce it. The release gets the target before T0 as
``like``, nothing else. Writes results/gram-HALF.csv (one row per setting), gram-factors.csv, and gram.md.

Panels were split by a coin (panels.half). Look at the report half once, when the estimator is finished.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import panels
import problems
from before import Before

from dpsc import GramRelease

EPSILONS = (0.5, 1.0, 2.0, 4.0)
DELTA = 1e-6
OUT = Path(__file__).parent / "results"
Setting = tuple[Any, ...]


@cache
def before() -> Before:
    """Return version 0.1.0, one process for each of ours."""
    return Before().__enter__()


def one_run(problem: panels.Problem, epsilon: float, run: int, with_before: bool) -> dict[str, float]:
    """Measure the release and, if wanted, version 0.1.0 on one problem."""
    T0, y = problem.T0, problem.target
    like = y[:T0] if np.ptp(y[:T0]) > 0 else None  # a target that does not move gives no guess
    scale = None if like is not None else float(np.median(np.std(problem.donors, axis=1)))
    release = GramRelease(epsilon=epsilon, delta=DELTA, like=like, scale=scale, seed=run).release(problem.donors)
    result = release.estimate(y, T0)
    band, att, totals = result.interval(), result.att_interval(), result.cumulative()
    row = {
        "dpsc": panels.rmse(result.counterfactual, problem.truth),
        **coverage(y[T0:], band["lower"].to_numpy(), band["upper"].to_numpy(), att),
        "totals covered": float(((totals["lower"] <= 0) & (totals["upper"] >= 0)).mean()),
        "log_bayes_factor": float(result.parameters["log_bayes_factor"]),
        "share": release.scale.share,
    }
    if with_before:
        old = before().estimate(problem, epsilon, run)
        row["0.1.0"] = panels.rmse(old["counterfactual"], problem.truth)
        row |= {
            f"{name} of 0.1.0": value
            for name, value in coverage(y[T0:], old["lower"], old["upper"], (old["att_low"], old["att_high"])).items()
        }
    return row


def coverage(observed: Any, lower: Any, upper: Any, att: tuple[float, float]) -> dict[str, float]:
    """Return whether the truth, no effect, is inside, and how wide the intervals are."""
    return {
        "points covered": float(np.mean((lower <= observed) & (observed <= upper))),
        "average covered": float(att[0] <= 0 <= att[1]),
        "width": float(np.mean(np.asarray(upper) - np.asarray(lower))),
        "width of average": att[1] - att[0],
    }


def problem_of(setting: Setting, run: int) -> panels.Problem:
    """Return the problem of a real panel (by name) or of a factor model (by its rank)."""
    make: Any = problems.real_problem if isinstance(setting[0], str) else problems.factor_problem
    return make(*setting, run)  # type: ignore[no-any-return]


def one_setting(setting: Setting, epsilon: float, runs: int) -> dict[str, Any]:
    """Return medians over runs, and how often donors beat the best donor-free forecast, by grade of the verdict."""
    rows = []
    for run in range(runs):
        problem = problem_of(setting, run)
        rows.append(problems.yardsticks(problem) | one_run(problem, epsilon, run, with_before=epsilon == 1.0))
    found: dict[str, Any] = problems.medians(rows)
    frame = pd.DataFrame(rows)
    covered = [name for name in frame if "covered" in name]
    found |= frame[covered].mean().to_dict()
    best = min(problems.FREE, key=lambda name: found[name])
    won, factor = frame["dpsc"] < frame[best], frame["log_bayes_factor"]
    for grade, those in (("yes", factor > 3), ("unclear", factor.abs() <= 3), ("no", factor < -3)):
        found |= {f"verdict {grade}": int(those.sum()), f"won if {grade}": int((won & those).sum())}
    return found | {"donors": len(problem.donors), "runs": runs}


def measure(settings: Iterable[tuple[Setting, float, int]], names: list[str], workers: int) -> pd.DataFrame:
    """Measure settings at their epsilon with their number of runs."""
    jobs = list(settings)
    with ProcessPoolExecutor(workers) as pool:
        futures = [pool.submit(one_setting, *job) for job in jobs]
        rows = []
        for number, ((setting, epsilon, _), future) in enumerate(zip(jobs, futures, strict=True), 1):
            rows.append(dict(zip(names, setting, strict=True)) | {"epsilon": epsilon} | future.result())
            if number % 20 == 0:
                print(f"{number} of {len(jobs)} settings", flush=True)
    return pd.DataFrame(rows)


def real_settings(half: str, runs: int) -> Iterable[tuple[Setting, float, int]]:
    """Yield every setting at epsilon 1, and those with all donors at the others with fewer runs."""
    for setting in problems.real_settings(half):
        for epsilon in EPSILONS:
            if epsilon == 1.0 or setting[2] is None:
                yield setting, epsilon, runs if epsilon == 1.0 else max(2, runs // 2)


def factor_settings(runs: int) -> Iterable[tuple[Setting, float, int]]:
    for setting in problems.factor_settings():
        yield setting, 1.0, max(2, runs // 3) if setting[4] == 10_000 else runs


def main(half: str, runs: int, workers: int) -> None:
    OUT.mkdir(exist_ok=True)
    real = measure(real_settings(half, runs), ["panel", "target", "n", "shock"], workers)
    real["n"] = real["n"].fillna(0).astype(int)
    real.round(6).to_csv(OUT / f"gram-{half}.csv", index=False)
    if half == "report":
        made = measure(factor_settings(runs), ["rank", "kind", "loadings", "levels", "n", "shock"], workers)
        made.round(6).to_csv(OUT / "gram-factors.csv", index=False)
        import gram_tables

        gram_tables.main()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("report", "design"), default="report")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    main(arguments.half, arguments.runs, arguments.workers)
