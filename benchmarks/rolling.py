"""Whether two releases of the same donors over overlapping periods, combined, answer better than the newer one alone.

    python benchmarks/rolling.py [--runs 40]

The older file has all periods but the last ones. Both are made with the same smoothness and the same constant, from a
scale that is as good as it can be. ``combined`` is the sum that fits both files best, each with the inverse of its
noise's variance, after the older one was mapped onto the newer one's directions and scaled to the same trace. ``at
once`` is one release made with both budgets, which no combination can beat but by chance. ``older`` is the older file
alone, in the periods that both have. The noise is floating-point noise from a generator. Writes results/rolling.csv
(logarithms of errors over those of the newer file) and rolling.md.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from dpsc import datasets
from dpsc.analyst.intervals import MixtureUncertainty
from dpsc.analyst.models import TargetModels
from dpsc.analyst.simulate import Likeness, Units, simulated
from dpsc.release.kernel import Kernel
from dpsc.release.matrix import GRID_BITS, budget_mu
from dpsc.release.population import Population, symmetric_noise
from dpsc.release.rowmap import RowMap, constant_over_scale, directions_for
from dpsc.types import Array, one_thread

OUT = Path(__file__).parent / "results"
EPSILONS = (0.5, 1.0)
WAYS = ("combined", "at once", "older")
KERNEL = Kernel.named("high")
File = tuple[Array, float, RowMap]


def released(donors: Array, constant: float, mu: float, rng: np.random.Generator) -> File:
    """Return a noisy matrix, the scale of its noise and the map of its rows."""
    (n, T), noise = donors.shape, math.sqrt(2) / mu
    row_map = RowMap(T, KERNEL, None, directions_for(n, T, noise, KERNEL), constant, GRID_BITS)
    vectors = np.vstack([np.full(n, constant), row_map.whitened(donors.T)])
    vectors /= np.linalg.norm(vectors, axis=0)
    return vectors @ vectors.T + symmetric_noise(row_map.size, noise, rng), noise, row_map


def combined(new: File, old: File) -> File:
    """Return the sum that fits both files best, with the noise that it has on average."""
    (S, s, row_map), (older, older_s, older_map) = new, old
    onto = np.zeros((older_map.size, row_map.size))
    onto[0, 0] = 1
    onto[1:, 1:] = older_map.whitened(row_map.back[: older_map.T])
    onto *= math.sqrt(np.trace(older) / np.trace(onto @ S @ onto.T))
    left, sizes, right = np.linalg.svd(onto)
    known, seen, strength = right @ S @ right.T, np.zeros_like(S), np.zeros_like(S)
    k = len(sizes)
    seen[:k, :k] = (left.T @ older @ left)[:k, :k]
    strength[:k, :k] = np.outer(sizes, sizes)
    weights = 1 / s**2 + strength**2 / older_s**2
    best = right.T @ ((known / s**2 + strength * seen / older_s**2) / weights) @ right
    return (best + best.T) / 2, math.sqrt(float(np.mean(1 / weights))), row_map


def forecast(file: File, n: int, y: Array) -> Array:
    S, noise, row_map = file
    return np.asarray(MixtureUncertainty(TargetModels(Population.of(S, n, noise, row_map), y).candidates).forecast)


def measured(units: Units, older_T: int, epsilon: float, run: int) -> dict[str, float]:
    """Return the log errors of each way over that of the newer file."""
    n, T0, mu = len(units.donors), units.T0, budget_mu(epsilon, 1e-6, GRID_BITS)
    columns = np.array(units.donors.T)
    KERNEL.whiten_movement_in_place(columns)
    constant = float(np.median(np.linalg.norm(columns[1:], axis=0))) * constant_over_scale(n, math.sqrt(2) / mu)
    rng, y = np.random.default_rng([run, 5]), units.target[:T0]
    new = released(units.donors, constant, mu, rng)
    old = released(units.donors[:, :older_T], constant, mu, rng)
    at_once = released(units.donors, constant, mu * math.sqrt(2), np.random.default_rng([run, 6]))
    alone = forecast(new, n, y)
    both, once = (forecast(file, n, y) for file in (combined(new, old), at_once))
    found = {"combined": units.error(both), "at once": units.error(once)}
    found = {way: math.log(error / units.error(alone)) for way, error in found.items()}
    if older_T > T0:
        truth = units.target[T0:older_T]
        errors = [np.linalg.norm(each[: len(truth)] - truth) for each in (forecast(old, n, y), alone)]
        found["older"] = math.log(errors[0] / errors[1])
    return found


def planes(run: int, T0: int) -> Units:
    """Return the mean delay of thirty planes, and the other planes; gaps are filled between neighbours."""
    table = datasets.flights()[0]
    wide = table.pivot(index="plane", columns="fortnight", values="delay")
    rows = np.clip(wide.interpolate(axis=1, limit_direction="both").to_numpy(float), -20, 100)
    rng = np.random.default_rng([run, 9])
    rows = rows[rng.permutation(len(rows))]
    target = rows[:30].mean(axis=0)
    losses = 3 * np.mean(np.abs(np.diff(target[:T0]))) * (0.5 + rng.random(len(rows)))
    return Units(target, rows[30:], T0, float(losses[:30].mean()), losses[30:])


def of_factors(n: int) -> Callable[[int, int], Units]:
    return lambda run, T0: simulated(n, T0, 40 - T0, 10, 3, Likeness(0.35, 0.5 * (run % 3)), [run, 1])


PANELS = {  # how, periods of the older file, T0
    "simulated, 500 donors, 40 periods": (of_factors(500), 34, (36, 28)),
    "simulated, 2,000 donors, 40 periods": (of_factors(2000), 34, (36, 28)),
    "delays of 1,161 planes, 26 fortnights": (planes, 22, (23, 18)),
}


def table(found: pd.DataFrame) -> list[str]:
    """Return errors over those of the newer file, calm / shock."""
    lines = [
        "| panels | intervention | ε of each | both combined | one release with both budgets | the older file alone |"
    ]
    lines.append("|---" * 6 + "|")
    for (panel, where, epsilon), part in found.groupby(["panel", "intervention", "epsilon"], sort=False):
        cells = []
        for way in WAYS:
            each = [np.exp(part.loc[part["times"] == times, way].mean()) for times in ("calm", "shock")]
            cells.append("–" if np.isnan(each).any() else f"{each[0]:.2f} / {each[1]:.2f}")
        lines.append(f"| {panel} | {where} | {epsilon:g} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=40)
    runs, rows = parser.parse_args().runs, []
    with one_thread(), np.errstate(all="ignore"):
        for panel, (make, older_T, dates) in PANELS.items():
            for T0 in dates:
                where = "in the new periods" if older_T <= T0 else "in the shared periods"
                for epsilon in EPSILONS:
                    for run in range(runs):
                        calm = make(run, T0)
                        for times, units in (("calm", calm), ("shock", calm.in_shock())):
                            about = {"panel": panel, "intervention": where, "epsilon": epsilon, "times": times}
                            rows.append({**about, "run": run, **measured(units, older_T, epsilon, run)})
                    print(panel, where, epsilon, flush=True)
    found = pd.DataFrame(rows)
    found.round(5).to_csv(OUT / "rolling.csv", index=False)
    spread = found.groupby(["panel", "intervention", "epsilon", "times"])[list(WAYS)].sem()
    said = f"Geometric means over {runs} panels; standard errors {spread.min().min():.2f} to {spread.max().max():.2f}."
    (OUT / "rolling.md").write_text("\n".join(["# Two releases of the same donors", "", *table(found), "", said, ""]))


if __name__ == "__main__":
    main()
