"""How often every interval that is printed holds, and how wide it is, on the panels kept for the report.

    python benchmarks/printed.py [--runs 16] [--workers 2]

Epsilon 1, all donors; single units and averages of 10, nobody treated, so that effects are zero and a band should hold
what was observed. Widths are divided by the target's mean absolute change from one period to the next before T0; of a
total, also by the number of periods. Medians of widths, means of coverages. A percentage has the same two ends as
its effect, so it holds whenever this does; so do pooled totals and pooled averages (benchmarks/study.py). Writes
results/printed.csv and printed.md.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import problems

from dpsc import GramRelease

OUT = Path(__file__).parent / "results"
TARGETS = ("single", "average of 10")
NAMES = {
    "before": "band of the fit before the intervention",
    "period": "each period",
    "average": "average effect",
    "running": "running totals",
    "total": "total effect",
    "percent": "percent of the counterfactual, where it is given",
}


def one_run(setting: tuple[Any, ...], run: int) -> list[dict[str, Any]]:
    """Return coverage and width of every kind of interval for one target."""
    problem = problems.real_problem(*setting, run)
    T0, y = problem.T0, problem.target
    if np.ptp(y[:T0]) == 0:
        return []
    result = GramRelease(epsilon=1.0, delta=1e-6, like=y[:T0], seed=run).release(problem.donors).estimate(y, T0)
    usual, h = float(np.mean(np.abs(np.diff(y[:T0])))), len(y) - T0
    before, effects, totals = result.interval_before(), result.effects(), result.cumulative()
    average, total, periods = effects.iloc[0], effects.iloc[1], effects.iloc[2:]
    percent = effects.dropna(subset=["percent_lower", "percent_upper"])
    bands = {
        "before": (before["lower"] - y[:T0], before["upper"] - y[:T0], usual),
        "period": (periods["lower"], periods["upper"], usual),
        "average": (average["lower"], average["upper"], usual),
        "running": (totals["lower"], totals["upper"], usual * np.arange(1, h + 1)),
        "total": (total["lower"], total["upper"], usual * h),
        "percent": (percent["percent_lower"], percent["percent_upper"], np.nan),
    }
    rows = []
    for kind, (lower, upper, unit) in bands.items():
        low, high = np.atleast_1d(lower), np.atleast_1d(upper)
        if len(low):
            rows.append(
                {"kind": kind, "held": float(np.mean((low <= 0) & (high >= 0))), "width": np.mean((high - low) / unit)}
            )
    return [row | {"panel": setting[0], "target": setting[1], "shock": setting[3]} for row in rows]


def one_setting(setting: tuple[Any, ...], runs: int) -> pd.DataFrame:
    rows = pd.DataFrame([row for run in range(runs) for row in one_run(setting, run)])
    keys = ["kind", "panel", "target", "shock"]
    return rows.groupby(keys, sort=False).agg({"held": "mean", "width": "median"}).reset_index()


def table(frame: pd.DataFrame) -> str:
    """Return one row per kind of interval."""
    lines = [
        "| interval | single: calm | shock | width | average of 10: calm | shock | width |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, name in NAMES.items():
        cells = []
        for target in TARGETS:
            part = frame[(frame["kind"] == kind) & (frame["target"] == target)]
            cells += [f"{part.loc[part['shock'] == shock, 'held'].mean():.3f}" for shock in problems.SHOCKS]
            width = part.loc[part["shock"] == 0, "width"].median()
            cells.append("–" if np.isnan(width) else f"{width:.1f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(runs: int, workers: int) -> None:
    settings = [s for s in problems.real_settings("report") if s[1] in TARGETS and s[2] is None]
    with ProcessPoolExecutor(workers) as pool:
        frame = pd.concat(pool.map(partial(one_setting, runs=runs), settings), ignore_index=True)
    frame.round(6).to_csv(OUT / "printed.csv", index=False)
    text = table(frame)
    print(text)
    (OUT / "printed.md").write_text(f"## Every interval that is printed\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    main(arguments.runs, arguments.workers)
