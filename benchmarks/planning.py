"""How right a plan is: planned over realised error, on real panels and factor models.

    python benchmarks/planning.py [--half report|design] [--workers 2]

Realised errors are those of results/gram-HALF.csv and gram-factors.csv (benchmarks/gram.py). A plan gets what a
custodian can know: n, the periods, the target before the intervention, how many units it averages. Plans of three
targets per setting; their median. Writes results/planning-HALF.csv and, for the report half, planning.md.
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
import problems

from dpsc import plan

OUT = Path(__file__).parent / "results"
EPSILONS = (0.5, 1.0, 2.0)
KEYS = ["panel", "target", "n", "epsilon"]


def planned(setting: tuple[Any, ...]) -> pd.DataFrame:
    """Return the plan of a setting: median over the targets of three runs."""
    name, target, n = setting
    tables = []
    for run in range(3):
        problem = (
            problems.real_problem(name, target, n, 0.0, run)
            if isinstance(name, str)
            else problems.factor_problem(*name, n, 0.0, run)
        )
        history = problem.target[: problem.T0]
        if np.ptp(history) > 0:
            averages = problems.AVERAGED[target]
            found = plan(len(problem.donors), problem.T0, len(problem.truth), EPSILONS, averages=averages, target=history,
                         runs=6, seed=run)  # fmt: skip
            tables.append(found.table)
    median = pd.concat(tables).groupby("epsilon")[["error", "error_in_shock"]].median().reset_index()
    label = name if isinstance(name, str) else "factor model " + " ".join(map(str, name))
    return median.assign(panel=label, target=target, n=0 if n is None or not isinstance(name, str) else n, donors=n)


def settings(half: str) -> list[tuple[Any, ...]]:
    real = [s[:3] for s in problems.real_settings(half) if s[1] in problems.AVERAGED and s[2] is None and s[3] == 0]
    made = {(s[:4], "single", s[4]) for s in problems.factor_settings() if s[4] < 10_000 and not s[3]}
    return [*real, *sorted(made, key=str)]


def realised(half: str) -> pd.DataFrame:
    real = pd.read_csv(OUT / f"gram-{half}.csv")
    real = real[real["n"] == 0][["panel", "target", "epsilon", "shock", "dpsc"]].assign(donors=np.nan)
    made = pd.read_csv(OUT / "gram-factors.csv")
    names = [f"factor model {r.rank} {r.kind} {r.loadings} {r.levels}" for r in made.itertuples()]
    made = made.assign(panel=names, target="single", donors=made["n"])
    return pd.concat([real, made[real.columns]], ignore_index=True)


def main(half: str, workers: int) -> None:
    with ProcessPoolExecutor(workers) as pool:
        plans = pd.concat(pool.map(planned, settings(half)), ignore_index=True)
    truth, rows = realised(half), []
    for row in plans.itertuples():
        same = truth[(truth["panel"] == row.panel) & (truth["target"] == row.target)
                     & np.isclose(truth["epsilon"], row.epsilon)]  # fmt: skip
        same = same if row.donors is None or np.isnan(row.donors) else same[same["donors"] == row.donors]
        for shock, error in ((0.0, row.error), (3.0, row.error_in_shock)):
            found = same.loc[same["shock"] == shock, "dpsc"]
            if len(found):
                rows.append({"panel": row.panel, "target": row.target, "epsilon": row.epsilon, "donors": row.donors,
                             "shock": shock, "planned / realised": error / float(found.iloc[0])})  # fmt: skip
    frame = pd.DataFrame(rows)
    frame.round(4).to_csv(OUT / f"planning-{half}.csv", index=False)
    text = table(frame)
    print(text)
    if half == "report":
        (OUT / "planning.md").write_text("## Planned over realised error\n\n" + text + "\n")


def table(frame: pd.DataFrame) -> str:
    frame = frame.assign(family=np.where(frame["panel"].str.startswith("factor"), "factor models", "real panels"),
                         time=np.where(frame["shock"] > 0, "shock", "calm"))  # fmt: skip
    lines = ["| family | time | ε | median | within 0.7 to 1.4 | within a factor of 2 |", "|---|---|---|---|---|---|"]
    for (family, time, epsilon), part in frame.groupby(["family", "time", "epsilon"]):
        ratio = part["planned / realised"]
        lines.append(f"| {family} | {time} | {epsilon:g} | {ratio.median():.2f} | {ratio.between(0.7, 1.4).mean():.0%} "
                     f"| {ratio.between(0.5, 2).mean():.0%} |")  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("report", "design"), default="report")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    main(arguments.half, arguments.workers)
