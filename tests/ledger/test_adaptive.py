"""Whoever chooses what to release after seeing what was released: never more than the budget's delta.

Who wants to tell two neighbours apart needs one number, the logarithm L of how much likelier everything seen so far is
under the first. The best strategy is then found backwards, on a grid of L: after each step, stop, or make the release
that promises most. Gaussian noise of mu adds N(mu^2/2, mu^2) to L. A pure release is at its worst randomised response,
which adds or subtracts epsilon. One of which only (epsilon, delta) is known may also give everything away, with
probability delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy.stats import norm

from dpsc.ledger.budget import Budget, Cost
from dpsc.privacy.accounting import Loss, gaussian_delta
from dpsc.privacy.rounded_gaussian import released_mu
from dpsc.types import Array
from tests.ledger.test_budget import gram, pure

STEP = 0.004
GRID = np.arange(-6.0, 12.0 + STEP / 2, STEP)  # of L; above it the attacker is sure, below it lost
Next = Callable[[Array], Array]  # from what L is worth after a release to what it is worth before


def gaussian_noise(mu: float) -> Next:
    reach = math.ceil((mu**2 / 2 + 8 * mu) / STEP)
    edges = (np.arange(-reach, reach + 2) - 0.5) * STEP
    chances = np.diff(norm.cdf(edges, mu**2 / 2, mu))
    return lambda worth: np.correlate(
        np.concatenate([np.zeros(reach), worth, np.full(reach, worth[-1])]), chances, "valid"
    )


def randomised_response(epsilon: float, delta: float = 0.0) -> Next:
    places = math.floor(epsilon / STEP + 1e-9)
    yes = 1 / (1 + math.exp(-places * STEP))

    def before(worth: Array) -> Array:
        up = np.concatenate([worth[places:], np.full(places, worth[-1])])
        down = np.concatenate([np.zeros(places), worth[: worth.size - places]])
        return np.asarray(delta + (1 - delta) * (yes * up + (1 - yes) * down))

    return before


def worth_at_the_end(epsilon: float) -> Array:
    return np.maximum(0.0, -np.expm1(epsilon - GRID))


def best_strategy(budget: Budget, limits: tuple[float, float, float, float], parts: int = 4, steps: int = 4) -> float:
    """Return the delta of the best adaptive strategy of so many steps, each a number of parts of one of the pockets.

    ``limits``: mu^2, pure, and both of other.
    """
    mu_squared, pure_epsilon, other_epsilon, other_delta = limits
    end = worth_at_the_end(budget.epsilon)
    actions: dict[tuple[int, int], Next] = {}
    for k in range(1, parts + 1):
        share = k / parts
        if mu_squared > 0:
            actions[0, k] = gaussian_noise(math.sqrt(share * mu_squared))
        if mu_squared > 0 and budget.pure == 0:  # pure releases are charged to the first pocket
            actions[3, k] = randomised_response(math.sqrt(2 * share * mu_squared / math.pi))
        if pure_epsilon > 0:
            actions[1, k] = randomised_response(share * pure_epsilon)
        if other_epsilon > 0:
            actions[2, k] = randomised_response(share * other_epsilon, share * other_delta)

    @cache
    def worth(left: tuple[int, int, int], steps: int) -> Array:
        best = end
        if steps > 0:
            for (pocket, size), before in actions.items():
                paying = pocket % 3
                if size <= left[paying]:
                    after = tuple(held - size * (k == paying) for k, held in enumerate(left))
                    best = np.maximum(best, before(worth((after[0], after[1], after[2]), steps - 1)))
        return best

    return float(np.interp(0.0, GRID, worth((parts, parts, parts), steps)))


def limits_of(budget: Budget) -> tuple[float, float, float, float]:
    held = budget.limits
    return float(held.mu_squared), float(held.pure), float(held.other_epsilon), float(held.other_delta)


BUDGETS = [
    Budget(4.0, 1e-6),
    Budget(1.0, 1e-5),
    Budget(4.0, 1e-6, pure=1.0),
    Budget(4.0, 1e-6, pure=3.0),
    Budget(4.0, 1e-6, other=(1.0, 3e-7)),
    Budget(4.0, 1e-6, pure=0.5, other=(0.5, 2e-7)),
    Budget(3.0, 1e-4, pure=1.0, other=(1.0, 5e-5)),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_no_adaptive_strategy_exceeds_the_budget(budget: Budget) -> None:
    found = best_strategy(budget, limits_of(budget))
    assert found <= budget.delta * 1.002  # what the grid of L costs in precision
    if budget == Budget(budget.epsilon, budget.delta):
        assert found > 0.98 * budget.delta  # one release of Gaussian noise: the bound is attained


def test_the_search_finds_budgets_that_can_be_overspent() -> None:
    """If the pockets were not shares of the budget but each could use all of it, or had 10% too much."""
    budget = Budget(4.0, 1e-6, pure=1.0)
    mu_squared = limits_of(Budget(4.0, 1e-6))[0]
    assert best_strategy(budget, (mu_squared, 4.0, 0.0, 0.0)) > 100e-6
    assert best_strategy(Budget(4.0, 1e-6), (1.1 * mu_squared, 0.0, 0.0, 0.0)) > 1.5e-6
    fair = limits_of(budget)
    assert best_strategy(budget, (1.3 * fair[0], fair[1], 0.0, 0.0)) > 1.01e-6


def test_the_kind_of_a_release_cannot_be_chosen_after_seeing_another_one_to_overspend() -> None:
    """0.2.0 accepted a Gram release of 1.2 and then either of these, so their choice gave away almost twice delta."""
    budget = Budget(4.0, 1e-6)
    first, noise, response = gram(1.2), gram(3.742), pure(2.8)
    end = worth_at_the_end(4.0)
    chosen = np.maximum(
        gaussian_noise(released_mu(noise.epsilon, 1e-6))(end), randomised_response(response.epsilon)(end)
    )
    attack = float(np.interp(0.0, GRID, gaussian_noise(released_mu(first.epsilon, 1e-6))(chosen)))
    assert attack == pytest.approx(1.94e-6, rel=0.02)
    assert budget.allows([first, noise])
    assert not budget.allows([first, response])
    assert not budget.allows([response])


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_limits_that_are_searched_are_what_a_ledger_accepts(budget: Budget) -> None:
    mu_squared, pure_epsilon, other_epsilon, other_delta = limits_of(budget)
    full = [
        *([Cost(1.0, 1e-6, Loss(mu_squared=mu_squared / 4))] * 4),
        *([pure(pure_epsilon / 4)] * 4 if pure_epsilon else []),
        *(
            [Cost(other_epsilon, other_delta, Loss.from_epsilon_delta(other_epsilon, other_delta))]
            if other_delta
            else []
        ),
    ]
    assert budget.allows(full)
    assert not budget.allows([*full, Cost(0.1, 1e-6, Loss(mu_squared=1e-6))])
    assert not budget.allows([*full, pure(1e-3)])
    assert not budget.allows([*full, Cost(0.1, 1e-9, Loss.from_epsilon_delta(0.1, 1e-9))])


def test_the_grid_of_the_search_is_fine_enough() -> None:
    for mu in (0.1, 0.5, 1.0):
        for epsilon in (0.5, 2.0):
            once = float(np.interp(0.0, GRID, gaussian_noise(mu)(worth_at_the_end(epsilon))))
            assert once == pytest.approx(gaussian_delta(mu, epsilon), rel=0.03)
