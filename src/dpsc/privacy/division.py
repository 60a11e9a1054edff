"""Divide (epsilon, delta) between the steps of an algorithm, in the unit that composes best."""

from __future__ import annotations

import math
import warnings

from dpsc.errors import DpscWarning
from dpsc.privacy import accounting
from dpsc.privacy.additive import StepBudget
from dpsc.privacy.guarantee import Arithmetic


def divide(epsilon: float, delta: float, split: float, arithmetic: Arithmetic) -> tuple[StepBudget, StepBudget]:
    """Return the budgets of two additive steps; ``split`` is the first one's share.

    delta = 0: epsilon is divided. delta > 0, exact arithmetic: rho is divided, because discrete Gaussian noise is
    proved zCDP. delta > 0, float arithmetic: mu^2 is divided, because two Gaussian mechanisms compose to exactly one.
    """
    if delta == 0:
        return StepBudget("epsilon", split * epsilon), StepBudget("epsilon", (1 - split) * epsilon)
    if arithmetic == "exact":
        rho = accounting.zcdp_rho(epsilon, delta)
        return StepBudget("rho", split * rho), StepBudget("rho", (1 - split) * rho)
    mu = accounting.gaussian_mu(epsilon, delta)
    return StepBudget("mu", math.sqrt(split) * mu), StepBudget("mu", math.sqrt(1 - split) * mu)


def single(epsilon: float, delta: float, arithmetic: Arithmetic) -> StepBudget:
    """Return the budget of one additive step."""
    if delta == 0:
        return StepBudget("epsilon", epsilon)
    if arithmetic == "exact":
        return StepBudget("rho", accounting.zcdp_rho(epsilon, delta))
    return StepBudget("mu", accounting.gaussian_mu(epsilon, delta))


def warn_of_large_delta(delta: float, n: int) -> None:
    """Warn, from public numbers, of a delta that is too large to protect a single donor."""
    if delta >= 1 / n:
        warnings.warn(
            f"delta = {delta:g} is not below 1/n = {1 / n:.2g}: a mechanism that publishes one donor at random would "
            "satisfy it. Choose delta well below 1/n.",
            DpscWarning,
            stacklevel=4,
        )
