from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsc import GramRelease, Guarantee, ObjectivePerturbation, OutputPerturbation
from dpsc.ledger.budget import Budget, Charge, Cost, groups, total_loss
from dpsc.privacy.accounting import Loss, gaussian_mu, zcdp_delta, zcdp_rho


def gram(epsilon: float, delta: float = 1e-6) -> Cost:
    return Cost(epsilon, delta, Loss.from_rho(zcdp_rho(epsilon, delta)))


def pure(epsilon: float) -> Cost:
    return Cost.of(Guarantee(epsilon))


def gaussian(epsilon: float, delta: float = 1e-6) -> Cost:
    return Cost(epsilon, delta, Loss.from_mu(gaussian_mu(epsilon, delta)))


def test_a_budget_pays_for_exactly_one_release_of_its_own_size() -> None:
    for algorithm in (
        GramRelease(epsilon=1.3, delta=1e-6),
        OutputPerturbation(epsilon=1.3, delta=1e-6),
        OutputPerturbation(epsilon=1.3, delta=1e-6, arithmetic="float"),
        ObjectivePerturbation(epsilon=1.3, delta=1e-6),
    ):
        assert algorithm.guarantee is not None
        cost = Cost.of(algorithm.guarantee)
        assert Budget(1.3, 1e-6).allows([cost])
        assert not Budget(1.3, 1e-6).allows([cost, gram(0.4)])
        assert not Budget(1.2999, 1e-6).allows([cost])


def test_composition_is_tight_and_not_a_sum_of_epsilons() -> None:
    affordable = next(k for k in range(100) if not Budget(2.0, 1e-6).allows([gram(0.5)] * (k + 1)))
    rho = zcdp_rho(0.5, 1e-6)
    assert affordable == max(k for k in range(100) if zcdp_delta(k * rho, 2.0) <= 1e-6)
    assert affordable > 10  # a sum of epsilons would stop at 4


def test_decimals_add_up_as_they_are_written() -> None:
    assert Budget(1.0, 0.0).allows([pure(0.1)] * 10)
    assert Budget(0.3, 0.0).allows([pure(0.1), pure(0.2)])  # in floats 0.1 + 0.2 > 0.3
    assert not Budget(0.3, 0.0).allows([pure(0.1), pure(0.2), pure(1e-10)])


def test_sums_of_losses_are_never_rounded_down() -> None:
    costs = [gram(0.1 + k / 997) for k in range(50)]
    assert Fraction(total_loss(costs).rho) >= sum(Fraction(cost.loss.rho) for cost in costs)
    assert total_loss(costs[:1]) == costs[0].loss


makers = st.sampled_from([gram, pure, gaussian])
bookings = st.lists(st.tuples(makers, st.floats(0.01, 0.6)), max_size=6)


@given(bookings, st.floats(0.05, 4), st.sampled_from([0.0, 1e-9, 1e-6, 1e-3]), st.sampled_from([1e-9, 1e-6, 1e-4]))
def test_what_is_said_to_be_left_is_accepted_and_a_little_more_is_not(
    booked: list[tuple[object, float]], epsilon: float, delta: float, at: float
) -> None:
    budget = Budget(epsilon, delta)
    costs: list[Cost] = []
    for make, size in booked:
        cost = make(size)  # type: ignore[operator]
        costs += [cost] if budget.allows([*costs, cost]) else []
    left = budget.largest(costs, at)
    if left > 0:
        assert budget.allows([*costs, gram(left, at)])
    assert not budget.allows([*costs, gram(left * 1.001 + 1e-4, at)])
    assert budget.spent(costs) <= epsilon
    left = budget.largest(costs, 0.0)
    if left > 0:
        assert budget.allows([*costs, pure(left)])


@given(bookings, st.floats(0.1, 4))
def test_what_is_allowed_is_within_the_budget_by_composing_guarantees(
    booked: list[tuple[object, float]], epsilon: float
) -> None:
    """The same question asked of `Loss.epsilon`, which searches the other way round."""
    costs = [make(size) for make, size in booked]  # type: ignore[operator]
    loss = sum((cost.loss for cost in costs), Loss())
    by_curves = loss.epsilon(1e-6)
    in_plain_sums = (sum(c.epsilon for c in costs), sum(c.delta for c in costs))
    plainly = in_plain_sums[0] if in_plain_sums[1] <= 1e-6 else math.inf
    proved = min(by_curves, plainly)
    if Budget(epsilon, 1e-6).allows(costs):
        assert proved <= epsilon * (1 + 1e-8)
    else:
        assert proved >= epsilon * (1 - 1e-8)


def test_disjoint_partitions_share_a_budget_and_common_releases_count_for_each() -> None:
    budget = Budget(1.0, 1e-6)
    charges = [Charge(gram(0.5)), Charge(gram(0.6), "north"), Charge(gram(0.3), "south")]
    spent = {p: budget.spent(groups(charges, p)[0]) for p in ("north", "south", "west")}
    assert spent["north"] == pytest.approx(budget.spent([gram(0.5), gram(0.6)]))
    assert spent["west"] == pytest.approx(0.5)
    assert max(budget.spent(group) for group in groups(charges, None)) == spent["north"] > spent["south"]


def test_gram_releases_never_need_plain_sums() -> None:
    """Then the ledger of a data set with Gram releases only is one zCDP filter, whoever chooses the sizes and when."""
    sizes = (0.01, 0.1, 0.5, 1.0, 2.0)
    for one in sizes:
        for other in sizes:
            rho = total_loss([gram(one, 5e-7), gram(other, 5e-7)]).rho
            assert zcdp_delta(rho, one + other) <= 1e-6
