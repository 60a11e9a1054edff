"""Which method to use for how many donors, which epsilon and which kind of target, and what error to expect.

    python benchmarks/which_method.py [--half report|design] [--real-runs 12] [--made-runs 8]      # five minutes, one core

Real panels with at least 330 units, each with 30, 100 and 300 of them as donors, so that only n changes along the map;
and factor models with 100 to 10,000 donors. Errors are medians over runs of the root mean squared error after T0. The
two-step algorithms get bounds that fit the panel exactly, which no custodian could know, and the better of delta = 0
and delta = 1e-6. Writes results/which_method-HALF.csv; which_method_tables.py makes tables and figure of it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import panels
import problems
from panels import Problem

from dpsc import GramRelease, ObjectivePerturbation, OutputPerturbation, Panel

OUT = Path(__file__).parent / "results"
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
DELTA = 1e-6
TARGETS = {"one unit": "single", "average of 30": "average of 30"}
REAL_SIZES = (30, 100, 300)
MADE_SIZES = (100, 1000, 10_000)
MODELS = tuple((3, kind, mean, True) for kind in ("walk", "ar") for mean in (0.0, 1.0))  # as factor_problem takes them
SHORTER = (5, 10, 20)  # periods before T0, besides the 40 that the factor models have


def averaged(problem: Problem, m: int) -> Problem:
    """Return the same problem for the average of the target and the first m - 1 donors."""
    y = np.vstack([problem.target, problem.donors[: m - 1]]).mean(axis=0)
    return Problem(problem.donors[m - 1 :], y, problem.T0, problem.bounds, y[problem.T0 :])


def made(model: tuple[Any, ...], target: str, n: int, shock: float, run: int, T0: int = 40) -> Problem:
    """Return a factor model with T0 periods before the intervention and ten after it."""
    if target == "one unit":
        whole = problems.factor_problem(*model, n, shock, run)
    else:
        whole = averaged(problems.factor_problem(*model, n + 29, shock, run), 30)
    start = whole.T0 - T0
    return Problem(whole.donors[:, start:], whole.target[start:], T0, whole.bounds, whole.truth)


def gram(problem: Problem, epsilon: float, run: int) -> float:
    """Return the error of the Gram release, which gets the target before T0 as ``like``."""
    y, T0 = problem.target, problem.T0
    like = y[:T0] if np.ptp(y[:T0]) > 0 else None  # a target that does not move gives no guess
    scale = None if like is not None else float(np.median(np.std(problem.donors, axis=1)))
    release = GramRelease(epsilon=epsilon, delta=DELTA, like=like, scale=scale, seed=run).release(problem.donors)
    return panels.rmse(release.estimate(y, T0).counterfactual, problem.truth)


def two_step(problem: Problem, epsilon: float, run: int) -> dict[str, float]:
    """Return the errors of output and objective perturbation, with and without delta."""
    everything = np.vstack([problem.donors, problem.target])
    bounds = (float(everything.min()), float(everything.max()))
    panel = Panel.from_arrays(problem.donors, problem.target, treatment_time=problem.T0, bounds=bounds, missing="error")
    errors = {}
    for name, algorithm in (("output", OutputPerturbation), ("objective", ObjectivePerturbation)):
        for delta in (0.0, DELTA):
            result = algorithm(epsilon=epsilon, delta=delta, seed=run).fit(panel)
            errors[f"{name} {delta:g}"] = panels.rmse(result.counterfactual, problem.truth)
    return errors


def measure(one_a_run: Iterable[Problem], epsilons: Iterable[float]) -> Iterator[dict[str, float]]:
    """Yield, for each epsilon, the medians over the runs."""
    epsilons = tuple(epsilons)
    rows: dict[float, list[dict[str, float]]] = {epsilon: [] for epsilon in epsilons}
    for run, problem in enumerate(one_a_run):
        same = problems.yardsticks(problem)
        same["usual change"] = float(np.median(np.abs(np.diff(problem.target[: problem.T0]))))
        for epsilon in epsilons:
            private = {"gram": gram(problem, epsilon, run)} | two_step(problem, epsilon, run)
            rows[epsilon].append(same | private)
    for epsilon, found in rows.items():
        medians = problems.medians(found)
        for name in ("output", "objective"):
            medians[name] = min(medians.pop(f"{name} 0"), medians.pop(f"{name} {DELTA:g}"))
        yield {"epsilon": epsilon, **medians}


def real_names(half: str) -> list[str]:
    """Return the panels of a half with enough units for every size and target of the map."""
    return [
        name
        for name in panels.SOURCES
        if panels.half(name) == half and problems.possible(name, "average of 30", max(REAL_SIZES))
    ]


def real_rows(half: str, runs: int) -> Iterator[dict[str, Any]]:
    for name in real_names(half):
        for target, drawn in TARGETS.items():
            for n in REAL_SIZES:
                for shock in problems.SHOCKS:
                    some = (problems.real_problem(name, drawn, n, shock, run) for run in range(runs))
                    key = {"family": "real", "panel": name, "target": target, "n": n, "T0": 0, "shock": shock}
                    yield from (key | row for row in measure(some, EPSILONS))
        print(name, flush=True)


def made_rows(runs: int) -> Iterator[dict[str, Any]]:
    for model in MODELS:
        name = f"{model[1]}, loadings around {model[2]:g}"
        for target in TARGETS:
            for n, T0 in [*((n, 40) for n in MADE_SIZES), *((1000, T0) for T0 in SHORTER)]:
                for shock in problems.SHOCKS:
                    some = (made(model, target, n, shock, run, T0) for run in range(runs))
                    key = {"family": "made", "panel": name, "target": target, "n": n, "T0": T0, "shock": shock}
                    yield from (key | row for row in measure(some, EPSILONS if T0 == 40 else (1.0,)))
        print(name, flush=True)


def main(half: str, real_runs: int, made_runs: int) -> None:
    rows = [*real_rows(half, real_runs), *made_rows(made_runs)]
    kept = ["gram", "output", "objective", *problems.FREE, "free", "difference in differences", "ridge", "usual change"]
    table = pd.DataFrame(rows)[["family", "panel", "target", "n", "T0", "shock", "epsilon", *kept]]
    for name in kept:
        table[name] = table[name].map(lambda value: float(f"{value:.4g}"))
    table.to_csv(OUT / f"which_method-{half}.csv", index=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("report", "design"), default="report")
    parser.add_argument("--real-runs", type=int, default=12)
    parser.add_argument("--made-runs", type=int, default=8)
    arguments = parser.parse_args()
    main(arguments.half, arguments.real_runs, arguments.made_runs)
