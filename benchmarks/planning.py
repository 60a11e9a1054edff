"""How right a plan is: what came of it, on real panels and factor models, and how often that was in the planned range.

    python benchmarks/planning.py [--runs 4] [--workers 2] [--tables]

A plan gets what a custodian can know: n, the periods, the target before the intervention, how many units it averages.
Every run draws a target, plans for it, makes releases for it, and measures their errors against what the target then
did, in calm times and with a shock of three usual changes of this target; and the smallest effect that would be seen
against what the answer says of it (``detectable()``). A pilot is a release with a third as much squared budget as the
release at epsilon 1 that follows it, a quarter of both; what it says of the smallest effect is known before the outcome.

The width of ranges was chosen after both halves had been seen, wider than what holds 80% on the design half, where a
plan's assumptions were chosen. Made populations of orders, visits and costs are in benchmarks/averages.py.
Writes results/planning.csv (one row per release) and planning.md; --tables makes the latter from the former.
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
from dpsc.analyst.plan import AFTER_PILOT, BELIEVED, WITHIN

OUT = Path(__file__).parent / "results"
EPSILONS = (0.5, 1.0, 2.0)
PILOT = 0.554347  # with delta 1e-6: a third of the squared mu at epsilon 1
DELTA = 1e-6
SHOCK = 3.0  # usual changes of the target, as in a plan
PANELS = 8  # that a plan simulates
KINDS = {"design": "real panels, design half", "report": "**real panels, kept apart**", "made": "factor models"}
Make = Callable[[float], panels.Problem]


def pair(make: Make, usual_of_all: float, run: int, averages: int) -> Iterator[dict[str, float]]:
    """Yield what was planned and what came for one target, one row per epsilon and time; none if it does not move."""
    calm = make(0.0)
    history, h = calm.target[: calm.T0], len(calm.truth)
    if np.ptp(history) == 0:
        return
    shock = make(SHOCK * float(np.mean(np.abs(np.diff(history)))) / usual_of_all)
    public: dict[str, Any] = {"averages": averages, "target": history, "runs": PANELS, "seed": run}
    found = plan(len(calm.donors), calm.T0, h, (*EPSILONS, PILOT), DELTA, **public).table.set_index("epsilon")
    for problem, error in ((calm, "error"), (shock, "error_in_shock")):

        def answer(epsilon: float, seed: int, problem: panels.Problem = problem) -> Any:
            algorithm = GramRelease(epsilon=epsilon, delta=DELTA, like=history, seed=seed)
            return algorithm.release(problem.donors).estimate(problem.target, problem.T0)

        pilot = answer(PILOT, run + 1000).detectable()
        for epsilon in EPSILONS:
            made = answer(epsilon, run)
            realised = panels.rmse(made.counterfactual, problem.target[problem.T0 :])
            yield {"run": run, "shock": float(problem is shock), "epsilon": epsilon,
                   "planned": found.loc[epsilon, error], "realised": realised,
                   "planned effect": found.loc[epsilon, "detectable"], "effect": made.detectable(),
                   "planned for pilot": found.loc[PILOT, "detectable"], "pilot": pilot}  # fmt: skip


def measured(setting: tuple[Any, ...], runs: int) -> pd.DataFrame:
    """Return the rows of one setting."""
    half, name, target, n = setting
    rows: list[dict[str, float]] = []
    for run in range(runs):
        if isinstance(name, str):
            usual = float(np.nanmedian(np.abs(np.diff(panels.load(name), axis=1))))
            rows += pair(partial(_real, name, target, n, run), usual, run, problems.AVERAGED[target])
        else:
            calm = problems.factor_problem(*name, n, 0.0, run)
            usual = float(np.median(np.abs(np.diff(np.vstack([calm.target, calm.donors]), axis=1))))
            rows += pair(partial(_made, name, n, run), usual, run, 1)
    label = name if isinstance(name, str) else "factor model " + " ".join(map(str, name[:3]))
    return pd.DataFrame(rows).assign(half=half, panel=label, target=target)


def _real(name: str, target: str, n: int | None, run: int, shock: float) -> panels.Problem:
    return problems.real_problem(name, target, n, shock, run)


def _made(model: tuple[Any, ...], n: int, run: int, shock: float) -> panels.Problem:
    return problems.factor_problem(*model, n, shock, run)


def settings() -> list[tuple[Any, ...]]:
    """Return every panel with its targets and all donors, and factor models with 100 and 1,000 donors."""
    real = [
        (half, *s[:3])
        for half in ("design", "report")
        for s in problems.real_settings(half)
        if s[1] in problems.AVERAGED and s[2] is None and s[3] == 0
    ]
    made = {("made", s[:4], "single", s[4]) for s in problems.factor_settings() if s[4] < 10_000 and not s[3]}
    return [*real, *sorted(made, key=str)]


def tables(frame: pd.DataFrame) -> dict[str, str]:
    """Return how often errors and smallest effects are in their range, by kind, target and panel, and what pilots do."""
    frame = frame.assign(error=frame["realised"] / frame["planned"], seen=frame["effect"] / frame["planned effect"])
    at_one = frame[frame["epsilon"] == 1]
    real = frame[frame["half"] != "made"].replace({"half": KINDS})
    return {
        "What came over what was planned": table(frame.replace({"half": KINDS}), ["half", "epsilon"]),
        "By what is averaged": table(real, ["half", "target"]),
        "By panel, epsilon 1": table(at_one, ["half", "panel"]),
        "The smallest effect with a pilot": pilots(frame),
    }


def table(frame: pd.DataFrame, keys: list[str]) -> str:
    """Return quantiles of what came over what was planned, and how often it was in the range."""
    lines = [f"| {' | '.join(keys)} | releases | error: 10%, median, 90% | in its range | smallest effect: 10%, median, 90% | in its range |",
             "|---" * (len(keys) + 5) + "|"]  # fmt: skip
    for key, part in frame.groupby(keys, sort=True):
        cells = [quantiles(part["error"]), within(part["error"], "error"), quantiles(part["seen"]),
                 within(part["seen"], "detectable")]  # fmt: skip
        lines.append(f"| {' | '.join(map(str, key))} | {len(part):,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def quantiles(ratios: pd.Series[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in ratios.quantile([0.1, 0.5, 0.9]))


def within(ratios: pd.Series[float], name: str) -> str:
    return f"{ratios.between(*WITHIN[name]).mean():.0%}"


def pilots(frame: pd.DataFrame) -> str:
    """Return what a pilot takes off the range of the smallest effect, by how much of what it says is believed."""
    lines = ["| believed | design half: 10% to 90% | kept apart: 10% to 90% | in the range after a pilot: design half | kept apart |",
             "|---" * 5 + "|"]  # fmt: skip
    for part in (0.0, 0.5, BELIEVED, 1.0):
        left = frame["seen"] * (frame["pilot"] / frame["planned for pilot"]) ** -part
        ends = {half: left[frame["half"] == half].quantile([0.1, 0.9]) for half in ("design", "report")}
        inside = " | ".join(f"{left[frame['half'] == half].between(*AFTER_PILOT).mean():.0%}" for half in ends)
        spans = " | ".join(f"{low:.2f} to {high:.2f}, {high / low:.1f} times" for low, high in ends.values())
        lines.append(f"| {part:g} | {spans} | {inside} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tables", action="store_true", help="only make tables of what was measured")
    arguments = parser.parse_args()
    if not arguments.tables:
        with ProcessPoolExecutor(arguments.workers) as pool:
            rows = pd.concat(pool.map(partial(measured, runs=arguments.runs), settings()), ignore_index=True)
        rows.to_csv(OUT / "planning.csv", index=False, float_format="%.5g")
    text = "\n\n".join(f"## {title}\n\n{each}" for title, each in tables(pd.read_csv(OUT / "planning.csv")).items())
    (OUT / "planning.md").write_text(text + "\n")
    print(text)
