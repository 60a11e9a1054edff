"""The paper's lambda figure: the vectorised engine against a plain loop and against its random numbers alone.

Printed recipe, n = T0 = 10, twelve lambdas, both algorithms, 500 runs. The loop does what the text says, per run: one
solve, one draw of the weights' noise and one n × h draw of W. Times are the shortest of several rounds, taken in turn.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dpsc.custodian.weights.printed import default_c, divide_budget, perturbed_minimiser, printed_beta
from dpsc.evidence.paper import recipes
from dpsc.evidence.paper.points import LAMBDAS, Point, Recipe, dataset, generator_for
from dpsc.privacy import laplace, sensitivity, source
from dpsc.types import one_thread

RUNS = 500
ROUNDS = 7
SIZES = ((10, 10), (100, 10), (10, 100), (100, 100))


def points(recipe: Recipe, n: int, T0: int) -> list[Point]:
    return [Point(recipe, m, n, T0, v, 50.0, 50.0) for m in ("out", "obj") for v in LAMBDAS]


def loop(n: int, T0: int) -> np.ndarray:
    """One solve and one draw per run: the straightforward version."""
    data = dataset("printed", n, T0, 0)
    X, Z, y = data.X, data.Z, data.y
    h = Z.shape[1]
    errors = np.empty((2 * len(LAMBDAS), RUNS))
    for i, point in enumerate(points("printed", n, T0)):
        noise = source.seeded(i)
        c = default_c(n, T0)
        epsilon0, Delta = divide_budget(50.0, point.lambda_, c)
        for run in range(RUNS):
            if point.method == "out":
                f = np.linalg.solve(X @ X.T + point.lambda_ / 2 * np.eye(n), X @ y)
                f = f + laplace.sample(n, sensitivity.printed_ridge(n, T0, point.lambda_) / 50.0, noise)
            else:
                b = laplace.sample(n, printed_beta(n, T0, epsilon0, 0.0, c), noise)
                f = perturbed_minimiser(X, y, point.lambda_ + Delta, b)
            W = laplace.sample(n * h, sensitivity.post_period(h) / 50.0, noise).reshape(n, h)
            error = (Z + W).T @ f - data.truth
            errors[i, run] = math.sqrt(float(np.mean(error**2)))
    return errors


def vectorised(n: int, T0: int) -> np.ndarray:
    chosen = points("printed", n, T0)
    return recipes.simulate(
        dataset("printed", n, T0, 0), chosen, RUNS, [generator_for(0, point.key) for point in chosen]
    )


def random_numbers(n: int, T0: int) -> object:
    chosen = points("printed", n, T0)
    basis = recipes.basis_of(dataset("printed", n, T0, 0))
    noises = [recipes.noise_of(point, basis) for point in chosen]
    return recipes.draw(noises, basis.Z.shape[1], RUNS, [generator_for(0, point.key) for point in chosen])


def best(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the shortest time of each, in seconds, all taken in turn."""
    times = dict.fromkeys(functions, math.inf)
    for _ in range(rounds):
        for name, function in functions.items():
            started = time.perf_counter()
            function()
            times[name] = min(times[name], time.perf_counter() - started)
    return times


def measure(n: int, T0: int) -> str:
    agree = abs(np.log(loop(n, T0)).mean(axis=1) - np.log(vectorised(n, T0)).mean(axis=1)).max()
    assert agree < 0.3, f"the two engines differ: {agree}"
    fast = best({"all": lambda: vectorised(n, T0), "random": lambda: random_numbers(n, T0)}, 5 * ROUNDS)
    slow = best({"loop": lambda: loop(n, T0)}, 3)
    return (
        f"| n = {n}, T0 = {T0} | {slow['loop']:.2f} s | {fast['all'] * 1e3:.1f} ms | {fast['random'] * 1e3:.1f} ms "
        f"| {slow['loop'] / fast['all']:.0f} | {fast['all'] / fast['random']:.2f} |"
    )


def main() -> None:
    rows = [
        "| size | plain loop | vectorised | its random numbers alone | loop / vectorised | vectorised / random numbers |",
        "|---|---|---|---|---|---|",
    ]
    with one_thread():
        for n, T0 in SIZES:
            rows.append(measure(n, T0))
            print(rows[-1], flush=True)
    text = (
        f"The λ figure with the printed recipe: {2 * len(LAMBDAS)} points of {RUNS} runs, one BLAS thread, shortest of "
        f"several rounds in the same process.\n\n" + "\n".join(rows) + "\n"
    )
    (Path(__file__).parent / "results" / "sweep.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
