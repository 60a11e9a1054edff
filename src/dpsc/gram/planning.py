"""Before any budget is spent: the error to expect from public numbers alone.

Donors are simulated, released and read as real ones are; no real donor is touched.
"""

from __future__ import annotations

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
from dpsc.gram.contents import LARGEST_T
from dpsc.gram.kernel import Kernel, Smoothness
from dpsc.gram.rehearsal import Rehearsal
from dpsc.gram.simulation import simulated
from dpsc.types import Array

_ERRORS = ("error", "without_privacy", "last_value")
_IN_SHOCK = tuple(f"{name}_in_shock" for name in _ERRORS)


@dataclass(frozen=True, eq=False)
class Plan:
    """Expected errors of a Gram release over budgets and numbers of donors.

    Attributes
    ----------
    table : DataFrame
        One row per n and epsilon. ``error``: median root mean squared error of the counterfactual, in the target's
        units if it was given, else as a share of its standard deviation before the intervention. ``without_privacy``:
        the same for ridge on the raw donors at its best lambda. ``last_value``: the same for the target's last value.
        ``error_in_shock``, ``without_privacy_in_shock``, ``last_value_in_shock``: the same if something new hits target
        and donors alike right after the intervention.
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
        errors, epsilons = rows["error"].to_numpy(), rows["epsilon"].to_numpy()
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
    averages: int = 1,
    sites: int = 1,
    smoothness: Smoothness = "high",
    rank: int = 3,
    signal_to_noise: float = 2.0,
    target: Any | None = None,
    runs: int | None = None,
    seed: int = 0,
    on_progress: Callable[[], None] | None = None,
) -> Plan:
    """Return the errors to expect from ``GramRelease(epsilon, delta, smoothness, like=target)``.

    Parameters
    ----------
    n, epsilon : number or several
    T0, h : int
        The number of periods before the intervention, and from it on.
    averages : int
        How many units the target is the average of.
    sites : int
        How many sites the n donors are at; each makes a release of its own, from common settings, and these are merged.
    rank, signal_to_noise
        Assumptions about the donors: the number of common factors, and their size relative to each donor's own
        variation (standard deviations).
    target : Series or array, optional
        The target before the intervention, public. The common factors then use the changes of this series,
        reshuffled in blocks; without it they are random walks.
    runs, seed : int
        Of the simulation; by default :func:`default_runs`, which takes some seconds.
    on_progress : callable, optional
        Called after each simulated panel and n.

    Notes
    -----
    The same panels, shocks and noise serve all n and all epsilons: fewer donors are some of the more. An error that
    still rises with n or epsilon is chance, so the smallest one planned with at most as many donors and at most as
    large a budget is reported instead.

    Examples
    --------
    >>> expected = plan(n=[300, 3000], T0=20, h=5, epsilon=1.0, runs=5)
    >>> expected.table["n"].tolist()
    [300, 3000]
    """
    sizes = list(dict.fromkeys(checks.whole_number("n", v, at_least=1) for v in np.atleast_1d(n).tolist()))
    epsilons = list(dict.fromkeys(checks.epsilon("epsilon", v) for v in np.atleast_1d(epsilon).tolist()))
    if checks.delta("delta", delta) == 0:
        raise ParameterError("delta must be above 0 for a Gram release.")
    checks.whole_number("T0", T0, at_least=2)
    checks.whole_number("h", h, at_least=1)
    runs = default_runs(T0 + h) if runs is None else runs
    limits = {
        "rank": (rank, 100),
        "runs": (runs, 100_000),
        "T0 + h": (T0 + h, LARGEST_T),
        "averages": (averages, 10_000),
    }
    for name, (value, most) in {**limits, "sites": (sites, min(sizes))}.items():
        if checks.whole_number(name, value, at_least=1) > most:
            raise ParameterError(f"{name} must be at most {most:,}, not {value:,}.")
    checks.finite_number("signal_to_noise", signal_to_noise, above=0)
    checks.whole_number("seed", seed, at_least=0)
    Kernel.named(smoothness)
    changes = None if target is None else _changes(target)
    releases = {e: Rehearsal(e, delta, smoothness, sites) for e in epsilons}

    private: dict[tuple[int, float], list[Array]] = {(size, e): [] for size in sizes for e in epsilons}
    plain: dict[int, list[Array]] = {size: [] for size in sizes}
    last_value = []
    with one_thread(), np.errstate(all="ignore"):
        for run in range(runs):
            calm = simulated(max(sizes), T0, h, averages, rank, signal_to_noise, changes, [seed, run])
            both, y = (calm, calm.in_shock()), calm.target[:T0]
            unit = float(np.std(y)) if changes is None else 1.0
            last_value.append([units.error(y[-1]) / unit for units in both])
            for size in sizes:
                few = [units.first(size) for units in both]
                plain[size].append(np.array([units.ridge_errors() for units in few]) / unit)
                for e, release in releases.items():
                    noise = [np.random.default_rng([seed, run, 2]) for _ in few]
                    found = [release.counterfactual(u.donors, size, y, rng) for u, rng in zip(few, noise, strict=True)]
                    errors = [u.error(forecast) / unit for u, forecast in zip(few, found, strict=True)]
                    private[size, e].append(np.array(errors))
                if on_progress is not None:
                    on_progress()

    def best(n: int, epsilon: float) -> tuple[Array, Array]:
        """Return the least errors with at most so many donors and so large a budget; ridge has one penalty for all."""
        with_privacy = [np.median(private[m, e], axis=0) for m, e in private if m <= n and e <= epsilon]
        without = [np.median(plain[m], axis=0).min(axis=1) for m in sizes if m <= n]
        return np.min(with_privacy, axis=0), np.min(without, axis=0)

    free = np.median(last_value, axis=0)
    rows = [(size, e, *np.column_stack([*best(size, e), free]).ravel()) for size in sizes for e in epsilons]
    return Plan(pd.DataFrame(rows, columns=["n", "epsilon", *_ERRORS, *_IN_SHOCK]))


def default_runs(T: int) -> int:
    """Return how many panels to simulate by default: fewer if they are long."""
    return max(5, min(24, 2400 // T))


def _changes(target: Any) -> Array:
    values = to_floats(target, "target")
    values = values[np.isfinite(values)]
    if values.ndim != 1 or len(values) < 3:
        raise ParameterError("target needs at least 3 finite values.")
    changes = np.diff(values)
    if not changes.any():
        raise ParameterError("target does not change before the intervention, so it says nothing about errors.")
    return changes
