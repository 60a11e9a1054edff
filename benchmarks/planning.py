"""How right a plan is: planned over realised error, on real panels and factor models.

    python benchmarks/planning.py [--half report|design] [--runs 30] [--workers 2]

A plan gets what a custodian can know: n, the periods, the target before the intervention, how many units it averages.
Every run draws a target, plans for it, makes releases for it, and measures their errors against what the target then
did, in calm times and with a shock of three usual changes of this target. Medians over runs, planned over realised, for
each setting; geometric means of these over the targets of a panel, or over the numbers of donors of a factor model. So
for the smallest effect that would be seen, against what the answer itself says (``detectable()``); made populations of
orders, visits and costs are in benchmarks/averages.py.
Writes results/planning-HALF.csv (one row per setting, not kept) and, for the report half, planning.md.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import panels
import problems

from dpsc import GramRelease, plan

OUT = Path(__file__).parent / "results"
EPSILONS = (0.5, 1.0, 2.0)
DELTA = 1e-6
SHOCK = 3.0  # usual changes of the target, as in a plan
CLOSE = (0.7, 1.4)
Make = Callable[[float], panels.Problem]


def pair(make: Make, usual_of_all: float, run: int, averages: int) -> Iterator[dict[str, float]]:
    """Yield planned and realised errors of one target, one row per epsilon and time; none if it does not move."""
    calm = make(0.0)
    history, h = calm.target[: calm.T0], len(calm.truth)
    if np.ptp(history) == 0:
        return
    shock = make(SHOCK * float(np.mean(np.abs(np.diff(history)))) / usual_of_all)
    found = plan(len(calm.donors), calm.T0, h, EPSILONS, DELTA, averages=averages, target=history, runs=6, seed=run)
    for row in found.table.itertuples():
        for problem, planned in ((calm, row.error), (shock, row.error_in_shock)):
            algorithm = GramRelease(epsilon=row.epsilon, delta=DELTA, like=history, seed=run)
            answer = algorithm.release(problem.donors).estimate(problem.target, problem.T0)
            realised = panels.rmse(answer.counterfactual, problem.target[problem.T0 :])
            yield {"shock": float(problem is shock), "epsilon": row.epsilon, "planned": planned, "realised": realised,
                   "planned effect": row.detectable, "effect": answer.detectable()}  # fmt: skip


def measured(setting: tuple[Any, ...], runs: int) -> pd.DataFrame:
    """Return medians over runs of one setting."""
    name, target, n = setting
    rows: list[dict[str, float]] = []
    for run in range(runs):
        if isinstance(name, str):
            usual = float(np.nanmedian(np.abs(np.diff(panels.load(name), axis=1))))
            rows += pair(partial(_real, name, target, n, run), usual, run, problems.AVERAGED[target])
        else:
            calm = problems.factor_problem(*name, n, 0.0, run)
            usual = float(np.median(np.abs(np.diff(np.vstack([calm.target, calm.donors]), axis=1))))
            rows += pair(partial(_made, name, n, run), usual, run, 1)
    numbers = ["planned", "realised", "planned effect", "effect"]
    found = pd.DataFrame(rows).groupby(["epsilon", "shock"])[numbers].median().reset_index()
    label = name if isinstance(name, str) else "factor model " + " ".join(map(str, name[:3]))
    return found.assign(panel=label, target=target, donors=n, runs=runs)


def _real(name: str, target: str, n: int | None, run: int, shock: float) -> panels.Problem:
    return problems.real_problem(name, target, n, shock, run)


def _made(model: tuple[Any, ...], n: int, run: int, shock: float) -> panels.Problem:
    return problems.factor_problem(*model, n, shock, run)


def settings(half: str) -> list[tuple[Any, ...]]:
    """Return every panel of a half with its targets and all donors, and factor models with 100 and 1,000 donors."""
    real = [s[:3] for s in problems.real_settings(half) if s[1] in problems.AVERAGED and s[2] is None and s[3] == 0]
    made = {(s[:4], "single", s[4]) for s in problems.factor_settings() if s[4] < 10_000 and not s[3]}
    return [*real, *sorted(made, key=str)]


def main(half: str, runs: int, workers: int) -> None:
    with ProcessPoolExecutor(workers) as pool:
        frame = pd.concat(pool.map(partial(measured, runs=runs), settings(half)), ignore_index=True)
    frame["ratio"] = frame["planned"] / frame["realised"]
    frame.round(6).to_csv(OUT / f"planning-{half}.csv", index=False)
    text = "\n\n".join(f"## {title}\n\n{rows}" for title, rows in tables(frame).items())
    print(text)
    if half == "report":
        (OUT / "planning.md").write_text(text + "\n")


def tables(frame: pd.DataFrame) -> dict[str, str]:
    """Return the summary, every panel at epsilon 1, and the smallest effects."""
    return {
        "Planned over realised error": summary(frame),
        "By panel": by_panel(frame),
        "The smallest effect seen: planned over what answers say, ε = 1": effects(frame),
    }


def of_panels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per panel or factor model, time and epsilon: the geometric mean over its settings."""
    frame = frame.assign(family=np.where(frame["panel"].str.startswith("factor"), "factor models", "real panels"),
                         time=np.where(frame["shock"] > 0, "shock", "calm"), ratio=np.log(frame["ratio"]))  # fmt: skip
    means = frame.groupby(["family", "panel", "time", "epsilon"])["ratio"].mean()
    return np.exp(means).reset_index()


def summary(frame: pd.DataFrame) -> str:
    """Return how many panels, and how many single settings, are planned about right."""
    lines = ["| family | time | ε | median | panels within 0.7 to 1.4 | settings within 0.7 to 1.4 | settings within a factor of 2 |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    for (family, time, epsilon), part in of_panels(frame).groupby(["family", "time", "epsilon"]):
        those = frame[frame["panel"].isin(part["panel"]) & (frame["shock"] == (time == "shock"))]
        each = those[np.isclose(those["epsilon"], epsilon)]["ratio"]
        close = part["ratio"].between(*CLOSE)
        lines.append(f"| {family} | {time} | {epsilon:g} | {part['ratio'].median():.2f} | {close.sum()} of {len(close)} "
                     f"| {each.between(*CLOSE).mean():.0%} | {each.between(0.5, 2).mean():.0%} |")  # fmt: skip
    return "\n".join(lines)


def effects(frame: pd.DataFrame) -> str:
    """Return how the planned smallest effect compares with that of the answers, by target, in calm times."""
    frame = frame[(frame["epsilon"] == 1) & (frame["shock"] == 0)]
    frame = frame.assign(family=np.where(frame["panel"].str.startswith("factor"), "factor models", "real panels"))
    frame["ratio"] = frame["planned effect"] / frame["effect"]
    lines = ["| family | target | median | within 0.7 to 1.4 | within a factor of 2 |", "|---|---|---|---|---|"]
    for (family, target), part in frame.groupby(["family", "target"]):
        close, near = (part["ratio"].between(*ends).mean() for ends in (CLOSE, (0.5, 2)))
        lines.append(f"| {family} | {target} | {part['ratio'].median():.2f} | {close:.0%} | {near:.0%} |")
    return "\n".join(lines)


def by_panel(frame: pd.DataFrame) -> str:
    """Return the ratio of every panel and factor model at epsilon 1."""
    wide = of_panels(frame).query("epsilon == 1").pivot_table(index=["family", "panel"], columns="time", values="ratio")
    rows = [f"| {panel} | {row['calm']:.2f} | {row['shock']:.2f} |" for (_, panel), row in wide.iterrows()]
    return "\n".join(["| planned / realised, ε = 1 | calm | shock |", "|---|---|---|", *rows])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("report", "design"), default="report")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    main(arguments.half, arguments.runs, arguments.workers)
