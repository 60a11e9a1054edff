"""Which parts of the estimator earn their keep: each is taken away or changed, on the panels of the design half.

    python benchmarks/ablation.py [--runs 12] [--workers 2]

Writes results/ablation.csv and ablation.md: by how many percent the error changes against the estimator as it is
(geometric mean over panels and targets, epsilon 1), in calm times and in a shock, with all donors and with 100; and how
many points 95% intervals cover and how wide they are, over all of these.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import panels
import problems

from dpsc import GramRelease
from dpsc.analyst import models
from dpsc.release import population, rowmap, scale
from dpsc.release.population import Attenuation

OUT = Path(__file__).parent / "results"


@contextmanager
def changed(module: Any, name: str, value: Any) -> Iterator[None]:
    """Give a name of a module another value for a while."""
    old = getattr(module, name)
    setattr(module, name, value)
    population._bulk_shapes.cache_clear()
    try:
        yield
    finally:
        setattr(module, name, old)
        population._bulk_shapes.cache_clear()


def not_weakened(mean: Any, covariance: Any) -> Attenuation:
    k = len(mean)
    return Attenuation(np.eye(k), np.ones(k), np.ones(k))


def without_lost_directions(matrix: Any, *arguments: Any) -> Any:
    found = ORIGINAL(matrix, *arguments)
    return replace(found, direction_error=0 * found.direction_error)


ORIGINAL: Callable[..., Any] = population.Population.of
SIZE_ONE = [(models, "_SIZES", np.array([1.0])), (models, "_LOADED_SIZES", np.array([False]))]
CHANGES: dict[str, list[tuple[Any, str, Any]]] = {
    "as it is": [],
    "constant 0.7 of the scale, as in 0.2.0": [(rowmap, "_LARGE_CONSTANT", 0.7)],
    "constant 2.5 of the scale": [(rowmap, "SMALL_CONSTANT", 2.5)],
    "constant that grows twice as fast": [(rowmap, "_CONSTANT_GROWS", 0.24)],
    "half as many directions": [(rowmap, "_DIRECTIONS_PER_DONOR", 0.4)],
    "twice as many directions": [(rowmap, "_DIRECTIONS_PER_DONOR", 1.6)],
    "all directions": [(rowmap, "_DIRECTIONS_PER_DONOR", 1e9)],
    "scale from the target alone, nothing counted": [(scale, "_MISFIT", 1e9)],
    "moments left as weakened": [(Attenuation, "of", staticmethod(not_weakened))],
    "lost directions not given back": [(population.Population, "of", staticmethod(without_lost_directions))],
    "mean like a donor's path only": [(population, "_MEAN_TRENDS", (0.0,)), (population, "_MEAN_WALKS", (0.0,))],
    "mean perhaps without a walk": [(population, "_MEAN_WALKS", (0.0, 0.1, 1.0))],
    "mean of best evidence instead of an average": [(population, "_LEAST_WEIGHT", 1.0)],
    "bulk of one shape": [(population, "_BULK_PERSISTENCE", (0.0,))],
    "six rounds of directions and bulk": [(population, "_ROUNDS", 6)],
    "size c fixed at 1": SIZE_ONE,
    "idiosyncratic share b fixed at 1": [(models, "_OWN_SHARES", np.array([1.0]))],
    "both fixed at 1": [*SIZE_ONE, (models, "_OWN_SHARES", np.array([1.0]))],
    "loading on the mean fixed at 1": [(models, "_LOADED_SIZES", np.zeros(len(models._SIZES), bool))],
}


def one_setting(setting: tuple[Any, ...], runs: int) -> dict[str, float]:
    """Return the median error, the share of points covered and the median width of intervals, under every change."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in CHANGES}
    for run in range(runs):
        problem = problems.real_problem(*setting, run)
        T0, y = problem.T0, problem.target
        like = y[:T0] if np.ptp(y[:T0]) > 0 else problem.donors[0, :T0]
        for name, changes in CHANGES.items():
            with ExitStack() as stack:
                for change in changes:
                    stack.enter_context(changed(*change))
                release = GramRelease(epsilon=1.0, delta=1e-6, like=like, seed=run).release(problem.donors)
                result = release.estimate(y, T0)
                band = result.interval()
            covered = np.mean((band["lower"] <= y[T0:]) & (y[T0:] <= band["upper"]))
            width = float(np.mean(band["upper"] - band["lower"]))
            found[name].append((panels.rmse(result.counterfactual, problem.truth), float(covered), width))
    row = {}
    for name, values in found.items():
        errors, covered_points, widths = zip(*values, strict=True)
        row |= {
            name: np.median(errors),
            f"covered, {name}": np.mean(covered_points),
            f"width, {name}": np.median(widths),
        }
    return row


def main(runs: int, workers: int) -> None:
    settings = [s for s in problems.real_settings("design") if s[2] in (None, 100)]
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(one_setting, settings, [runs] * len(settings)))
    rows = pd.DataFrame(found)
    for place, name in enumerate(("panel", "target", "n", "shock")):
        rows.insert(place, name, [s[place] or 0 for s in settings])
    rows.round(6).to_csv(OUT / "ablation.csv", index=False)
    (OUT / "ablation.md").write_text("\n".join(table(rows)) + "\n", encoding="utf-8")


def table(rows: pd.DataFrame) -> list[str]:
    """Return changes of the error in percent, with coverage and width of 95% intervals."""
    lines = ["| change | all donors: calm | shock | 100 donors: calm | shock | all four (± one standard error) | covered | width |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for name in CHANGES:
        logs = np.log(rows[name] / rows["as it is"])
        cells = [
            math.expm1(logs[(rows["n"] == n) & (rows["shock"] == shock)].mean())
            for n in (0, 100)
            for shock in (0.0, 3.0)
        ]
        of_panels = logs.groupby(rows["panel"]).mean()
        error = float(of_panels.std() / math.sqrt(len(of_panels)))
        total = f"{math.expm1(of_panels.mean()):+.1%} ± {error:.1%}"
        width = float((rows[f"width, {name}"] / rows["width, as it is"]).median())
        shown = ["–"] * 4 + ["–"] if name == "as it is" else [f"{c:+.1%}" for c in cells] + [total]
        lines.append(f"| {name} | " + " | ".join(shown) + f" | {rows[f'covered, {name}'].mean():.3f} | {width:.2f} |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    main(arguments.runs, arguments.workers)
