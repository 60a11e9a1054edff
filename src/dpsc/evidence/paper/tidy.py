"""The seven figures of the experiment section as tidy tables: the points each needs and what is drawn beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from dpsc.custodian.weights.classic import ridge_weights
from dpsc.custodian.weights.printed import default_c
from dpsc.evidence.paper import points as yardsticks
from dpsc.evidence.paper import theory
from dpsc.evidence.paper.points import (
    DATA,
    DELTA,
    EPSILONS,
    LAMBDAS,
    SIZES,
    AlgorithmName,
    Dataset,
    H,
    Outcome,
    Point,
    Recipe,
)
from dpsc.evidence.paper.sweep import dataset

Name = Literal["data", "lambda", "theory", "epsilon", "delta", "lambda-sizes", "epsilon-sizes"]
SMALL = (10, 10)
EACH = 50.0  # epsilon1 = epsilon2 where lambda varies
COLUMNS = [
    "recipe", "protection", "series", "n", "T0", "h", "lambda", "epsilon1", "epsilon2", "delta",
    "rmse", "lower", "upper", "median", "runs", "seed",
]  # fmt: skip


@dataclass(frozen=True)
class Spec:
    """One figure of the paper."""

    name: Name
    label: str  # the paper's label
    caption: str
    points: Callable[[Recipe], list[Point]]


def over_lambda(recipe: Recipe, sizes: Sequence[tuple[int, int]]) -> list[Point]:
    """Both algorithms over lambda; the Gram release has no lambda to choose and is one point."""
    methods: tuple[AlgorithmName, ...] = ("out", "obj")
    points = [Point(recipe, m, n, T0, lambda_, EACH, EACH) for m in methods for n, T0 in sizes for lambda_ in LAMBDAS]
    return points + [_gram(recipe, n, T0, 2 * EACH) for n, T0 in sizes if recipe == "ours"]


def over_epsilon(recipe: Recipe, sizes: Sequence[tuple[int, int]]) -> list[Point]:
    """Every algorithm over the total epsilon, at lambda = T0."""
    methods: tuple[AlgorithmName, ...] = ("out", "obj")
    points = [_at(recipe, m, n, T0, epsilon, 0.0) for m in methods for n, T0 in sizes for epsilon in EPSILONS]
    return points + [_gram(recipe, n, T0, epsilon) for n, T0 in sizes for epsilon in EPSILONS if recipe == "ours"]


def both_noises(recipe: Recipe) -> list[Point]:
    """Objective perturbation with Laplace and with Gaussian noise."""
    return [_at(recipe, "obj", n, T0, epsilon, d) for d in (0.0, DELTA) for n, T0 in SIZES for epsilon in EPSILONS]


def _at(recipe: Recipe, method: AlgorithmName, n: int, T0: int, epsilon: float, delta: float) -> Point:
    return Point(recipe, method, n, T0, float(T0), epsilon / 2, epsilon / 2, delta)


def _gram(recipe: Recipe, n: int, T0: int, epsilon: float) -> Point:
    return Point(recipe, "gram", n, T0, 0.0, epsilon / 2, epsilon / 2, DELTA)


SPECS: dict[Name, Spec] = {
    spec.name: spec
    for spec in (
        Spec("data", "fig.exp.data", "An example data set: n = 10 donors, T0 = 10, three periods to predict.",
             lambda recipe: []),
        Spec("lambda", "fig.exp.lambda.1", "RMSE over λ at ε₁ = ε₂ = 50, n = T0 = 10.",
             lambda recipe: over_lambda(recipe, [SMALL])),
        Spec("theory", "fig.exp.lambda.2", "Theory against practice at ε₁ = ε₂ = 50, n = T0 = 10.",
             lambda recipe: over_lambda(recipe, [SMALL])),
        Spec("epsilon", "fig.exp.eps.1", "RMSE over the total ε, n = T0 = 10, λ = T0.",
             lambda recipe: over_epsilon(recipe, [SMALL])),
        Spec("delta", "fig.exp.delta", "Objective perturbation with Laplace and Gaussian noise (δ = 1e-6), λ = T0.",
             both_noises),
        Spec("lambda-sizes", "fig.exp.data.1", "RMSE over λ on four sizes, ε₁ = ε₂ = 50.",
             lambda recipe: over_lambda(recipe, SIZES)),
        Spec("epsilon-sizes", "fig.exp.data.2", "RMSE over the total ε on four sizes, λ = T0.",
             lambda recipe: over_epsilon(recipe, SIZES)),
    )
}  # fmt: skip


def table(
    name: Name, recipes: Sequence[Recipe], outcomes: Mapping[Point, Outcome], runs: int, seed: int
) -> pd.DataFrame:
    """Return everything a figure shows, one row per number."""
    if name == "data":
        return _examples(recipes, seed)
    rows = []
    for recipe in recipes:
        points = SPECS[name].points(recipe)
        rows += [_row(point, outcomes[point]) for point in points]
        rows += _yardsticks(recipe, points, seed)
        if name == "theory":
            rows += _bounds(recipe, seed)
    frame = pd.DataFrame(rows).reindex(columns=COLUMNS)
    return frame.assign(h=H, seed=seed)


def _row(point: Point, outcome: Outcome) -> dict[str, Any]:
    lower, upper = outcome.band
    return {
        "recipe": point.recipe, "protection": point.protection, "series": point.method, "n": point.n, "T0": point.T0,
        "lambda": point.lambda_ or np.nan, "epsilon1": point.epsilon1, "epsilon2": point.epsilon2, "delta": point.delta,
        "rmse": outcome.mean, "lower": lower, "upper": upper, "median": outcome.median, "runs": outcome.runs,
    }  # fmt: skip


def _yardsticks(recipe: Recipe, points: Sequence[Point], seed: int) -> list[dict[str, Any]]:
    """Return non-private ridge at every lambda in use and the donor-free forecasts, for every size."""
    rows: list[dict[str, Any]] = []
    lambdas = {(p.n, p.T0): sorted({q.lambda_ for q in points if (q.n, q.T0) == (p.n, p.T0)} - {0.0}) for p in points}
    for (n, T0), values in lambdas.items():
        data = dataset(DATA[recipe], n, T0, seed)
        common = {"recipe": recipe, "protection": "NOT PRIVATE", "n": n, "T0": T0}
        rows += [{**common, "series": "ridge", "lambda": v, "rmse": yardsticks.ridge(data, v)} for v in values]
        for series, rmse in yardsticks.donor_free(data).items():
            protection = "NOT PRIVATE" if "donors" in series else "uses no donors"
            rows.append({**common, "series": series, "protection": protection, "rmse": rmse})
    return rows


def _bounds(recipe: Recipe, seed: int) -> list[dict[str, Any]]:
    """Return the bounds of both accuracy theorems, as printed and corrected, on the data of a recipe."""
    rows = []
    for lambda_ in LAMBDAS:
        setting = setting_of(dataset(DATA[recipe], *SMALL, seed), lambda_, EACH, EACH)
        for method, bound in (("out", theory.output_bound), ("obj", theory.objective_bound)):
            forms: tuple[Literal["as_printed", "corrected"], ...] = ("as_printed", "corrected")
            for form in forms:
                rows.append(
                    {"recipe": recipe, "protection": "a bound", "series": f"{method} bound {form.replace('_', ' ')}",
                     "n": setting.n, "T0": setting.T0, "lambda": lambda_, "epsilon1": EACH, "epsilon2": EACH,
                     "delta": 0.0, "rmse": bound(setting, form)}
                )  # fmt: skip
    return rows


def setting_of(data: Dataset, lambda_: float, epsilon1: float, epsilon2: float, delta: float = 0.0) -> theory.Setting:
    """Return what the accuracy theorems ask about a data set whose signal is known."""
    n, T0 = data.X.shape
    f_reg = ridge_weights(data.X, data.y, lambda_)
    f = np.linalg.lstsq(data.donor_signal.T, data.signal, rcond=None)[0]  # the smallest true weights
    return theory.Setting(
        n=n, T0=T0, h=H, lambda_=lambda_, epsilon1=epsilon1, epsilon2=epsilon2, delta=delta, c=default_c(n, T0),
        signal_norm=float(np.linalg.norm(data.donor_signal[:, T0:], 2)),
        weight_error=float(np.linalg.norm(f_reg - f)), sigma=data.sigma, psi=float(np.abs(f_reg).max()),
    )  # fmt: skip


def _examples(recipes: Sequence[Recipe], seed: int) -> pd.DataFrame:
    frames = []
    for generator in dict.fromkeys(DATA[recipe] for recipe in recipes):
        data = dataset(generator, *SMALL, seed)
        paths = {"target": data.target} | {f"donor {i + 1}": row for i, row in enumerate(data.donors)}
        for unit, path in paths.items():
            times = np.arange(1, len(path) + 1)
            frames.append(pd.DataFrame({"data": generator, "unit": unit, "period": times, "value": path}))
    return pd.concat(frames, ignore_index=True).assign(T0=SMALL[1], seed=seed)
