"""Before any budget is spent: the error to expect from public numbers alone.

Donors are simulated, from a factor model with stated properties or from the target's own history; no real donor is
touched.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.blas import one_thread
from dpsc.data.frames import to_floats
from dpsc.errors import ParameterError
from dpsc.gram.kernel import Kernel, Smoothness
from dpsc.gram.moments import denoise, symmetric_noise
from dpsc.gram.uncertainty import forecast_weights
from dpsc.privacy import accounting
from dpsc.types import Array

_SIMULATED_DONORS = 2000  # their Gram matrix, scaled up, stands for that of more
_RIDGES = 10.0 ** np.arange(-6, 2.1, 0.5)


@dataclass(frozen=True, eq=False)
class Plan:
    """Expected errors of a Gram release over budgets and numbers of donors.

    Attributes
    ----------
    table : DataFrame
        One row per n and epsilon. ``error``: median root mean squared error of the counterfactual, in the target's
        units if it was given, else as a share of its size before the intervention. ``without_privacy``: the same
        for ridge at its best lambda on the raw donors. ``last_value``: the same for the target's last value.
    """

    table: pd.DataFrame

    def epsilon_for(self, error: float, n: int | None = None) -> float:
        """Return the epsilon at which the expected error falls to ``error``; infinity if no planned one is enough.

        Between planned budgets, logarithms are interpolated.
        """
        checks.finite_number("error", error, above=0)
        sizes = self.table["n"].unique()
        if n is None and len(sizes) > 1:
            raise ParameterError(f"the plan is for several n ({', '.join(map(str, sizes))}); say which.")
        rows = self.table[self.table["n"] == (sizes[0] if n is None else n)].sort_values("epsilon")
        if rows.empty:
            raise ParameterError(f"the plan has no n = {n}.")
        # The expected error falls with epsilon; an increase is chance in the simulation.
        errors = np.minimum.accumulate(rows["error"].to_numpy())
        epsilons = rows["epsilon"].to_numpy()
        if error >= errors[0]:
            return float(epsilons[0])
        if error < errors[-1]:
            return math.inf
        return float(np.exp(np.interp(-math.log(error), -np.log(errors), np.log(epsilons))))

    def __repr__(self) -> str:
        return self.table.to_string(index=False, float_format=lambda v: f"{v:.3g}")


def plan(
    n: int | Sequence[int],
    T0: int,
    h: int,
    epsilon: float | Sequence[float] = (0.5, 1.0, 2.0, 4.0),
    delta: float = 1e-6,
    *,
    smoothness: Smoothness = "high",
    rank: int = 3,
    signal_to_noise: float = 5.0,
    target: Any | None = None,
    runs: int = 100,
    seed: int = 0,
    on_progress: Callable[[], None] | None = None,
) -> Plan:
    """Return the errors to expect from ``GramRelease(epsilon, delta, smoothness)``.

    Parameters
    ----------
    n, epsilon : number or several
    T0, h : int
        The number of periods before the intervention, and from it on.
    rank, signal_to_noise
        Assumptions about the donors: the number of common factors, and their size relative to each donor's own
        variation (standard deviations).
    target : Series or array, optional
        The target before the intervention, public. The common factors then use the changes of this series,
        reshuffled in blocks; without it they are random walks.
    runs, seed : int
        Of the simulation.
    on_progress : callable, optional
        Called after each simulated panel.

    Examples
    --------
    >>> expected = plan(n=[300, 3000], T0=20, h=5, epsilon=1.0, runs=5)
    >>> expected.table["n"].tolist()
    [300, 3000]
    """
    sizes = [checks.whole_number("n", v, at_least=1) for v in np.atleast_1d(n).tolist()]
    epsilons = [checks.epsilon("epsilon", v) for v in np.atleast_1d(epsilon).tolist()]
    if checks.delta("delta", delta) == 0:
        raise ParameterError("delta must be above 0 for a Gram release.")
    checks.whole_number("T0", T0, at_least=2)
    checks.whole_number("h", h, at_least=1)
    for name, value, most in (("rank", rank, 100), ("runs", runs, 100_000), ("T0 + h", T0 + h, 2000)):
        if checks.whole_number(name, value, at_least=1) > most:
            raise ParameterError(f"{name} must be at most {most:,}, not {value:,}.")
    checks.finite_number("signal_to_noise", signal_to_noise, above=0)
    history = None if target is None else _history(target)
    kernel = Kernel.named(smoothness)
    scales = {e: 1 / math.sqrt(accounting.zcdp_rho(e, delta)) for e in epsilons}

    errors: dict[tuple[int, float], list[tuple[float, float, float]]] = {}
    with one_thread():
        for size, run in itertools.product(sizes, range(runs)):
            rng = np.random.default_rng([checks.whole_number("seed", seed, at_least=0), run])  # one target for all n
            gram, raw, y, truth = _simulate(size, T0, h, rank, signal_to_noise, history, kernel, rng)
            unit = math.sqrt(float(np.mean(y**2))) if history is None else 1.0
            plain = min(_rmse(_ridge(raw, y, T0, mu), truth) for mu in _RIDGES * float(np.trace(raw)))
            last = _rmse(np.full(h, y[-1]), truth)
            noise = symmetric_noise(T0 + h, 1.0, rng)
            for e, scale in scales.items():
                D = denoise(gram + scale * noise, size, scale, kernel).moments
                error = _rmse(forecast_weights(D, T0) @ y, truth)
                errors.setdefault((size, e), []).append((error / unit, plain / unit, last / unit))
            if on_progress is not None:
                on_progress()
    rows = [(size, e, *np.median(values, axis=0)) for (size, e), values in errors.items()]
    return Plan(pd.DataFrame(rows, columns=["n", "epsilon", "error", "without_privacy", "last_value"]))


def _history(target: Any) -> Array:
    values = to_floats(target, "target")
    values = values[np.isfinite(values)]
    if values.ndim != 1 or len(values) < 3:
        raise ParameterError("target needs at least 3 finite values.")
    return values


def _simulate(
    n: int, T0: int, h: int, rank: int, signal_to_noise: float, history: Array | None, kernel: Kernel,
    rng: np.random.Generator,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Return the Gram matrix of whitened unit rows, that of the raw rows, the target before, and the truth after T0."""
    T, m = T0 + h, min(n, _SIMULATED_DONORS)
    factors = _factors(rank, T, history, rng)
    mine, own = rng.uniform(-1, 1, (1, rank)), rng.normal(size=(1, T))  # the target first: the same for all n
    common = np.vstack([mine, rng.uniform(-1, 1, (m, rank))]) @ factors
    level = 0.0
    if history is not None:  # changes of the target's own size, around its own level
        level = float(np.mean(history))
        common *= np.sqrt(np.mean(np.diff(history) ** 2) / np.mean(np.diff(common[0]) ** 2 + 1e-300))
    alone = np.sqrt(np.mean(common**2)) / signal_to_noise
    paths = level + common + alone * np.vstack([own, rng.normal(size=(m, T))])
    columns = np.ascontiguousarray(paths[1:].T)
    kernel.whiten_in_place(columns)
    columns /= np.linalg.norm(columns, axis=0)
    raw = paths[1:].T @ paths[1:]
    return columns @ columns.T * (n / m), raw * (n / m), paths[0, :T0], level + common[0, T0:]


def _factors(rank: int, T: int, history: Array | None, rng: np.random.Generator) -> Array:
    """Return random walks, or paths made of blocks of the target's own changes with random signs."""
    if history is None:
        return np.cumsum(rng.normal(size=(rank, T)), axis=1)
    changes = np.diff(history)
    block = max(1, len(changes) // 4)
    pieces = math.ceil(T / block)
    starts = rng.integers(0, len(changes), (rank, pieces))
    positions = (starts[:, :, np.newaxis] + np.arange(block)) % len(changes)
    signs = rng.choice([-1.0, 1.0], (rank, pieces, 1))
    steps = (signs * changes[positions]).reshape(rank, -1)[:, :T]
    return np.asarray(np.cumsum(steps, axis=1))


def _ridge(raw: Array, y: Array, T0: int, mu: float) -> Array:
    return np.asarray(raw[T0:, :T0] @ np.linalg.solve(raw[:T0, :T0] + mu * np.eye(T0), y))


def _rmse(forecast: Array, truth: Array) -> float:
    return math.sqrt(float(np.mean((forecast - truth) ** 2)))
