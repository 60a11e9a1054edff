"""Donors who join late or miss periods: the error of an estimate by how their missing cells are treated, at epsilon 1.

    python benchmarks/missing.py [--runs 20] [--workers 2]

Cells are taken out of complete panels of the design half and of a factor model, from donors only: single cells at
random, or all cells before the period in which a donor joins, one as likely as another. "kernel" and "interpolate"
release all donors. "dropped" releases only those who are complete, which is no way to keep the promise to the others
(who is dropped depends on the donors): it is a yardstick. Runs are paired: the same problem, cells and seed. Writes
results/missing.csv and results/missing.md.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import panels
import problems
from panels import Array, Problem

from dpsc import GramRelease
from dpsc.custodian.donors.missing import Completion
from dpsc.custodian.gram.integer_rows import complete_in_place
from dpsc.release.kernel import Kernel

OUT = Path(__file__).parent / "results"
PANELS = ("wages of young men", "income in counties", "murders in counties")
MODEL = "factor model"
SIZES = (100, 500, None)
SHARES = (0.0, 0.1, 0.3, 0.6)
HOW = ("random cells", "late joining")
RULES = ("kernel", "interpolate", "dropped")


def problem_of(name: str, n: int | None, shock: float, run: int) -> Problem:
    """Return an average of 10 units of a real panel, or a unit of a factor model with walks and loadings around 1."""
    if name == MODEL:
        return problems.factor_problem(3, "walk", 1.0, True, n or 3000, shock, run)
    return problems.real_problem(name, "average of 10", n, shock, run)


def with_holes(X: Array, how: str, share: float, rng: np.random.Generator) -> Array:
    """Return donors of whose cells about such a share is missing."""
    n, T = X.shape
    if how == "random cells":
        gone = rng.random((n, T)) < share
    else:
        earliest = max(1, round((2 * share - 1) * T))  # up to a half, some join in any period; above, all do, later
        joined = np.where(rng.random(n) < 2 * share, rng.integers(earliest, T, n), 0)
        gone = np.arange(T) < joined[:, np.newaxis]
    return np.where(gone, np.nan, X)


def one_run(problem: Problem, how: str, share: float, run: int) -> dict[str, float]:
    """Return the error of each rule."""
    X = with_holes(problem.donors, how, share, problems.generator(how, share, run))
    complete = ~np.isnan(X).any(axis=1)
    make = GramRelease(epsilon=1.0, delta=1e-6, like=problem.target[: problem.T0], seed=run)
    row = {"missing": float(np.isnan(X).mean()), "complete": float(complete.mean())} | dict.fromkeys(RULES, np.nan)
    for rule in RULES:
        pool = X[complete] if rule == "dropped" else X.copy()
        if rule == "interpolate":
            Completion(pd.RangeIndex(X.shape[1]), rule, None, declared=True).in_place(pool)
        if len(pool):
            answer = make.release(pool, missing="kernel").estimate(problem.target, problem.T0)
            row[rule] = panels.rmse(answer.counterfactual, problem.truth)
    return row


def one_setting(name: str, n: int | None, shock: float, how: str, share: float, runs: int) -> dict[str, Any]:
    """Return medians over runs, over the best forecast without donors."""
    rows = []
    for run in range(runs):
        problem = problem_of(name, n, shock, run)
        rows.append(problems.yardsticks(problem) | one_run(problem, how, share, run))
    found = problems.medians(rows)
    return {"panel": name, "n": n or 0, "donors": len(problem.donors), "shock": shock, "how": how, "share": share,
            "missing": found["missing"], "complete": found["complete"],
            **{rule: found[rule] / found["free"] for rule in RULES}}  # fmt: skip


def main(runs: int, workers: int) -> None:
    jobs = [
        (name, n, shock, how, share, runs)
        for name in (*PANELS, MODEL)
        for n in SIZES
        if name == MODEL or problems.possible(name, "average of 10", n)
        for shock in problems.SHOCKS
        for how in HOW
        for share in SHARES
        if share > 0 or how == HOW[0]
    ]
    with ProcessPoolExecutor(workers) as pool:
        rows = pd.DataFrame(pool.map(one_setting, *zip(*jobs, strict=True)))
    rows.round(4).to_csv(OUT / "missing.csv", index=False)
    write_tables(rows)


def left_of_common(rule: str, how: str, share: float, path: Array) -> float:
    """Return how much of a movement that all donors share is left in their mean, once their cells are filled."""
    T, donors = len(path), 5000
    X = with_holes(np.tile(path, (donors, 1)), how, share, problems.generator(how, share, "common"))
    X = X[~np.isnan(X).all(axis=1)]
    if rule == "interpolate":
        Completion(pd.RangeIndex(T), rule, None, declared=True).in_place(X)
    columns = X.T.copy()
    complete_in_place(columns, Kernel.named("high"))
    mean, own = columns.mean(axis=1) - columns.mean(), path - path.mean()
    return float(mean @ own / (own @ own))


def common_table(T: int = 36) -> list[str]:
    """Return what is left of a common trend, and of a step two thirds of the way, without noise."""
    paths = {"trend": np.arange(T, dtype=float), "step": (np.arange(T) >= 2 * T // 3).astype(float)}
    cells = [(rule, name) for rule in RULES[:2] for name in paths]
    head = " | ".join(f"{rule}, {name}" for rule, name in cells)
    lines = [f"## What is left of a movement that all donors share, in the mean of {T} periods", ""]
    lines += [f"| missing | {head} |", "|---|" + "---|" * len(cells)]
    for how in HOW:
        for share in SHARES[1:]:
            left = [f"{left_of_common(rule, how, share, paths[name]):.0%}" for rule, name in cells]
            lines.append(f"| {share:.0%}, {how} | {' | '.join(left)} |")
    return [*lines, ""]


def write_tables(rows: pd.DataFrame) -> None:
    """Write geometric means over panels, by what is missing and by the number of donors, and every panel by itself."""

    def mean(those: pd.DataFrame, rule: str) -> str:
        return "–" if those[rule].isna().any() or not len(those) else f"{np.exp(np.log(those[rule]).mean()):.2f}"

    cells = [(rule, shock) for rule in RULES for shock in problems.SHOCKS]
    head = " | ".join(f"{rule}, {'shock' if shock else 'calm'}" for rule, shock in cells)
    lines = []
    for n in SIZES:
        lines += [f"## {'All' if n is None else n} donors: error over the best forecast without donors, epsilon 1", ""]
        lines += [f"| missing | complete donors | {head} |", "|---|---|" + "---|" * len(cells)]
        for how in HOW:
            for share in SHARES[how != HOW[0] :]:
                those = rows[(rows["n"] == (n or 0)) & (rows["how"] == how) & (rows["share"] == share)]
                label = "nothing" if share == 0 else f"{share:.0%}, {how}"
                numbers = [mean(those[those["shock"] == shock], rule) for rule, shock in cells]
                lines.append(f"| {label} | {those['complete'].mean():.0%} | {' | '.join(numbers)} |")
        lines.append("")
    lines += common_table()
    lines += [
        "## Panels, all donors",
        "",
        f"| panel | donors | missing | {head} |",
        "|---|---|---|" + "---|" * len(cells),
    ]
    for name in (*PANELS, MODEL):
        for how in HOW:
            for share in SHARES[how != HOW[0] :]:
                those = rows[
                    (rows["panel"] == name) & (rows["n"] == 0) & (rows["how"] == how) & (rows["share"] == share)
                ]
                label = "nothing" if share == 0 else f"{share:.0%}, {how}"
                numbers = [mean(those[those["shock"] == shock], rule) for rule, shock in cells]
                lines.append(f"| {name} | {those['donors'].max()} | {label} | {' | '.join(numbers)} |")
    (OUT / "missing.md").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    main(arguments.runs, arguments.workers)
