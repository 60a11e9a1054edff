"""Divide (epsilon, delta) between the steps of an algorithm, in the unit that composes best."""

from __future__ import annotations

import math
import warnings

from dpsc.errors import DpscWarning
from dpsc.privacy.accounting import zcdp_rho
from dpsc.privacy.additive import StepBudget
from dpsc.privacy.rounded_gaussian import KEPT, discrete_gaussian_slack, released_mu

GRID_BITS = 23  # of the sensitivity of one integer; the grids of the algorithms are finer


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
