"""One step of a private algorithm: a vector, its sensitivity and a budget give noise of the right kind and size.

A budget is divided between steps in the unit that composes best.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from dpsc.errors import DpscWarning, ParameterError
from dpsc.privacy import discrete
from dpsc.privacy.accounting import Loss, zcdp_rho
from dpsc.privacy.exact import safely_above
from dpsc.privacy.rounded_gaussian import KEPT, discrete_gaussian_slack, released_mu
from dpsc.privacy.source import Source, seeded
from dpsc.types import Array, Integers

GRID_BITS = 23  # of the sensitivity of one integer; the grids of the algorithms are finer
_DRAWS = 100_000
Law = Literal["laplace", "gaussian", "joint laplace"]


@dataclass(frozen=True)
class StepBudget:
    """What one step may spend: an epsilon (pure), a rho (zCDP), or a mu (Gaussian; with a slack for discrete noise)."""

    kind: Literal["epsilon", "rho", "mu"]
    amount: float
    slack: tuple[float, float] = (0.0, 0.0)

    @property
    def loss(self) -> Loss:
        """The same as a privacy loss that adds up."""
        if self.kind == "epsilon":
            return Loss.from_pure(self.amount)
        if self.kind == "rho":
            return Loss.from_rho(self.amount)
        return Loss(mu_squared=self.amount**2, rest_epsilon=self.slack[0], rest_delta=self.slack[1])


@dataclass(frozen=True)
class NoiseLaw:
    """The law of noise that was added, which is public. Its entries are independent, or one joint draw."""

    law: Law
    scale: float
    dimension: int
    ambient: int = 0  # for a joint draw of which only ``dimension`` coordinates are used: how many it has

    def times(self, factor: float) -> NoiseLaw:
        """Return the law after a change of unit."""
        return replace(self, scale=self.scale * factor)

    def half_width(self, level: float) -> float:
        """Return the bound that one entry's size stays below with probability ``level``, the same for all entries."""
        return self.scale * _standard_half_width(self.law, self.dimension, max(self.ambient, self.dimension), level)

    def half_width_of(self, combination: Array, level: float) -> float:
        """Return the same for a linear combination of the entries."""
        ambient = max(self.ambient, self.dimension)
        return self.scale * _standard_half_width_of(self.law, self.dimension, ambient, tuple(combination), level)


def release_integers(
    values: Integers,
    sensitivity: tuple[float, float],
    budget: StepBudget,
    source: Source,
    *,
    largest: float,
    on_progress: Callable[[int], None] = lambda drawn: None,
) -> tuple[Integers, NoiseLaw]:
    """Add discrete noise for the given l1 and l2 sensitivities of these very integers: exact arithmetic.

    An epsilon pays for Laplace noise calibrated in l1, a rho for Gaussian noise calibrated in l2, and so does a mu if
    the grid is so fine that its slack covers what discrete noise costs beyond Gaussian noise
    (docs/proofs/gaussian-noise.md). ``largest`` is a public bound on the size of the integers.
    """
    scale = discrete_scale(sensitivity, budget)
    require_fine_grid(sensitivity[1], values.size, budget)
    law: discrete.Kind = "laplace" if budget.kind == "epsilon" else "gaussian"
    noisy = discrete.add(values, law, scale, source, largest=largest, on_progress=on_progress)
    return noisy, NoiseLaw(law, scale, values.size)


def discrete_scale(sensitivity: tuple[float, float], budget: StepBudget) -> float:
    """Return the scale of discrete noise for the given l1 and l2 sensitivities."""
    l1, l2 = sensitivity
    if budget.kind == "epsilon":
        return safely_above(l1 / budget.amount)
    return safely_above(l2 / (math.sqrt(2 * budget.amount) if budget.kind == "rho" else budget.amount))


def require_fine_grid(l2: float, dimension: int, budget: StepBudget) -> None:
    """Refuse, from public numbers, a grid on which discrete Gaussian noise would cost more slack than was charged."""
    if budget.kind == "mu":
        slack = discrete_gaussian_slack(budget.amount, dimension, l2) if l2 > 0 else (math.inf, math.inf)
        if slack[0] > budget.slack[0] or slack[1] > budget.slack[1]:
            raise ParameterError(
                "the bounds leave too few digits for exact Gaussian noise; widen those of the periods after the "
                "intervention, or choose delta = 0."
            )


@lru_cache(maxsize=64)
def _standard_half_width(law: Law, dimension: int, ambient: int, level: float) -> float:
    return float(np.quantile(np.abs(_standard_draws(law, dimension, ambient)), level))


@lru_cache(maxsize=256)
def _standard_half_width_of(
    law: Law, dimension: int, ambient: int, combination: tuple[float, ...], level: float
) -> float:
    draws = _standard_draws(law, dimension, ambient)
    return float(np.quantile(np.abs(draws @ np.array(combination)), level))


@lru_cache(maxsize=4)
def _standard_draws(law: Law, dimension: int, ambient: int) -> Array:
    """Draw from a law with scale 1, with a fixed seed, to compute quantiles; this is not noise for privacy."""
    source, runs = seeded(0), _DRAWS
    shape = (runs, dimension)
    if law == "gaussian":
        return source.normals(shape)
    if law == "laplace":
        return source.gammas(1, shape) - source.gammas(1, shape)
    # The used coordinates are a share of a uniform direction, times the radius in all dimensions.
    used = source.normals(shape)
    unused = 2 * source.gammas((ambient - dimension) / 2, (runs,)) if ambient > dimension else 0.0
    length = np.sqrt((used**2).sum(axis=1) + unused)
    return np.asarray(used * (source.gammas(ambient, (runs,)) / length)[:, np.newaxis])


def divide(epsilon: float, delta: float, split: float) -> tuple[StepBudget, StepBudget]:
    """Return the budgets of two additive steps; ``split`` is the first one's share.

    delta = 0: epsilon is divided. delta > 0: mu^2 is divided, because two Gaussian mechanisms compose to exactly one;
    or rho, for a delta so small that the slack of discrete noise does not fit beside it.
    """
    if delta == 0:
        return StepBudget("epsilon", split * epsilon), StepBudget("epsilon", (1 - split) * epsilon)
    mu = released_mu(epsilon, delta)
    steps = _on_a_fine_grid(math.sqrt(split) * mu), _on_a_fine_grid(math.sqrt(1 - split) * mu)
    slacks = [sum(each) for each in zip(steps[0].slack, steps[1].slack, strict=True)]
    if slacks[0] <= (1 - KEPT[0]) * epsilon and slacks[1] <= (1 - KEPT[1]) * delta:
        return steps
    rho = zcdp_rho(epsilon, delta)
    return StepBudget("rho", split * rho), StepBudget("rho", (1 - split) * rho)


def single(epsilon: float, delta: float) -> StepBudget:
    """Return the budget of one additive step; Gaussian noise may be on a coarse grid, where zCDP is proved."""
    return StepBudget("rho", zcdp_rho(epsilon, delta)) if delta else StepBudget("epsilon", epsilon)


def _on_a_fine_grid(mu: float) -> StepBudget:
    """Return the budget of a step of discrete Gaussian noise, which is charged its slack.

    If noise is for m integers that move by ``2^GRID_BITS sqrt(m)`` in l2 or more, the slack is at most that of one
    integer that moves by ``2^GRID_BITS``: a is then no larger, and ``r^2 / m`` falls with m.
    """
    return StepBudget("mu", mu, discrete_gaussian_slack(mu, 1, 2.0**GRID_BITS))


def warn_of_large_delta(delta: float, n: int) -> None:
    """Warn, from public numbers, of a delta that is too large to protect a single donor."""
    if delta >= 1 / n:
        warnings.warn(
            f"delta = {delta:g} is not below 1/n = {1 / n:.2g}: a mechanism that publishes one donor at random would "
            "satisfy it. Choose delta well below 1/n.",
            DpscWarning,
            stacklevel=4,
        )
