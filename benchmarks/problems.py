"""The problems that estimators are measured on, real and made, calm and shocked, and what to measure them against.

Every problem is the same each time it is asked for by the same arguments. Runs are paired: problems that differ only
in ``shock`` are the same but for the shock. Real problems that differ only in ``n`` have the same target and treatment
time, and the fewer donors are some of the more.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd
import panels
from panels import Array, Problem

AVERAGED = {"single": 1, "average of 10": 10, "average of 30": 30}
TARGETS = (*AVERAGED, "top quartile")
SAMPLES = (None, 100, 300)
SHOCKS = (0.0, 3.0)
LONGEST = 6  # periods after T0 on the real panels
NO_BOUNDS = (-np.inf, np.inf)
MUS = 10.0 ** np.arange(-10, 2.1, 0.5)  # ridge penalties, relative to the sum of squares of the donors before T0


def generator(*key: object) -> np.random.Generator:
    """Return a generator that depends on the key alone, in every process and on every machine."""
    return np.random.default_rng(np.frombuffer(sha256(repr(key).encode()).digest(), dtype="<u4"))


def losses(X: Array, T0: int, shock: float, rng: np.random.Generator) -> Array:
    """Return what each unit loses: from T0 on, over two periods, ``shock`` usual changes times a loading in [.5, 1.5].

    Nothing before T0 announces it and it hits every unit: a counterfactual must follow it.
    """
    usual = np.nanmedian(np.abs(np.diff(X, axis=1)))
    steps = np.clip((np.arange(X.shape[1]) - T0 + 1) / 2, 0, 1)
    return np.asarray(shock * usual * rng.uniform(0.5, 1.5, (len(X), 1)) * steps)


def size_of(target: str, units: int) -> int:
    """Return how many of a panel's units the target is the average of."""
    return min(10, units // 8) if target == "top quartile" else AVERAGED[target]


def possible(name: str, target: str, n: int | None) -> bool:
    """Tell whether a panel has three times as many units as the target averages, and n more for donors."""
    units = len(panels.load(name))
    m = size_of(target, units)
    return units >= 3 * m and (n is None or units - m >= n)


def real_settings(half: str) -> Iterator[tuple[str, str, int | None, float]]:
    """Yield what :func:`real_problem` takes before ``run``, for every setting that the panels of a half allow."""
    for name in panels.SOURCES:
        for target in TARGETS:
            for n in SAMPLES:
                if panels.half(name) == half and possible(name, target, n):
                    yield from ((name, target, n, shock) for shock in SHOCKS)


def real_problem(name: str, target: str, n: int | None, shock: float, run: int) -> Problem:
    """Return a problem from a real panel: some units are the target, others (n of them, or all) its donors.

    Parameters
    ----------
    name : str
        A panel of ``panels.SOURCES``.
    target : {"single", "average of 10", "average of 30", "top quartile"}
        How many units drawn at random are averaged. "top quartile": 10 (an eighth of a small panel's units) of the
        quarter with the highest mean before T0, so that the target is not like most donors.
    n : int or None
        How many donors; None takes all units that are left.
    shock : float
        The size of a common shock after T0 in median absolute one-period changes, 0 for none.
    run : int
        Different runs draw different units and treatment times.
    """
    if not possible(name, target, n):
        raise ValueError(f"{name!r} has too few units for target {target!r} and n = {n}.")
    everything = panels.load(name)
    rng = generator(name, target, int(run))
    T0 = int(rng.choice(panels.treatment_times(everything.shape[1])))
    X = (everything - losses(everything, T0, shock, rng))[:, : T0 + LONGEST]
    candidates = np.arange(len(X))
    if target == "top quartile":
        candidates = np.argsort(-everything[:, :T0].mean(axis=1), kind="stable")[: len(X) // 4]
    treated = rng.choice(candidates, size_of(target, len(X)), replace=False)
    others = rng.permutation(np.setdiff1d(np.arange(len(X)), treated))
    y = X[treated].mean(axis=0)
    return Problem(X[others[:n]], y, T0, NO_BOUNDS, y[T0:])


def factor_settings() -> Iterator[tuple[int, str, float, bool, int, float]]:
    """Yield everything that :func:`factor_problem` takes before ``run``."""
    for rank in (1, 3):
        for kind in ("walk", "ar"):
            for mean in (0.0, 1.0):
                for levels in (False, True):
                    for n in (100, 1000, 10_000):
                        yield from ((rank, kind, mean, levels, n, shock) for shock in SHOCKS)


def factor_problem(rank: int, kind: str, mean: float, levels: bool, n: int, shock: float, run: int) -> Problem:
    """Return a factor model with T0 = 40, 10 periods after it, and noise of standard deviation 0.5.

    Parameters
    ----------
    rank, kind
        How many common factors; "walk" (random walks) or "ar" (first order, 0.7).
    mean : float
        The loadings are uniform within 1 of it. With 0 the donors' mean says nothing, with 1 it is a good start.
    levels : bool
        Whether every unit has its own level, normal with 5 times the standard deviation of all paths.
    n, shock, run
        As in :func:`real_problem`; n is a number.
    """
    T0, h = 40, 10
    rng = generator(int(rank), kind, float(mean), int(run))
    common = panels.factors(kind, rank, T0 + h, rng)
    loadings = mean + rng.uniform(-1, 1, (n + 1, rank))
    signal = loadings @ common
    noise = 0.5 * rng.normal(size=signal.shape)
    level = 5 * np.std(signal + noise) * rng.normal(size=(n + 1, 1))
    loss = losses(signal + noise, T0, shock, rng)
    signal = signal + levels * level - loss
    paths = signal + noise
    return Problem(paths[1:], paths[0], T0, NO_BOUNDS, signal[0, T0:])


def mean_before(problem: Problem) -> Array:
    """Forecast with the target's mean before T0."""
    return np.full(len(problem.truth), problem.target[: problem.T0].mean())


def difference_in_differences(problem: Problem) -> Array:
    """Forecast with the donors' mean, moved to the target's level before T0: not private."""
    path = problem.donors.mean(axis=0)
    return np.asarray(mean_before(problem) + path[problem.T0 :] - path[: problem.T0].mean())


def ridge(problem: Problem, *, own_levels: bool = False) -> list[Array]:
    """Forecast with ridge weights on raw donors, one forecast for each of ``MUS``: not private.

    ``own_levels`` takes each row's mean before T0 off, the target's too, and adds the target's again afterwards.
    """
    T0, X, y = problem.T0, problem.donors, problem.target[: problem.T0]
    level = y.mean() if own_levels else 0.0
    if own_levels:
        X = X - X[:, :T0].mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(X[:, :T0].T @ X[:, :T0])
    along = vectors.T @ (y - level)
    forward = X[:, T0:].T @ X[:, :T0] @ vectors
    return [level + forward @ (along / (np.maximum(values, 0) + mu * values.sum())) for mu in MUS]


FREE = {"last value": panels.last_value, "line": panels.line, "mean": mean_before}


def yardsticks(problem: Problem) -> dict[str, float]:
    """Return the error of every yardstick; ridge has one for each penalty, with and without own levels."""
    forecasts: dict[str, Any] = {name: forecast(problem) for name, forecast in FREE.items()}
    forecasts["difference in differences"] = difference_in_differences(problem)
    for kind, own_levels in (("raw ridge", False), ("ridge with own levels", True)):
        forecasts |= {f"{kind} {k}": f for k, f in enumerate(ridge(problem, own_levels=own_levels))}
    return {name: panels.rmse(forecast, problem.truth) for name, forecast in forecasts.items()}


def medians(rows: list[dict[str, float]]) -> dict[str, float]:
    """Return each error's median over runs; ridge at the penalty, one for all runs, with the smallest median.

    ``rows`` are :func:`yardsticks` of each run, with other errors beside them if you like. "ridge" is the better of
    the two kinds, "free" the best forecast without donors.
    """
    found = {str(name): float(value) for name, value in pd.DataFrame(rows).median().items()}
    for kind in ("raw ridge", "ridge with own levels"):
        found[kind] = min(found.pop(f"{kind} {k}") for k in range(len(MUS)))
    found["ridge"] = min(found["raw ridge"], found["ridge with own levels"])
    found["free"] = min(found[name] for name in FREE)
    return found
