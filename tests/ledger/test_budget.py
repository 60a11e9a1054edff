from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsc import GramRelease, Guarantee, ObjectivePerturbation, OutputPerturbation
from dpsc.gram.contents import GRID_BITS, LARGEST_T
from dpsc.ledger.budget import GRAM_BITS, GRAM_COORDINATES, Budget, Charge, Cost, groups, total_losses
from dpsc.privacy.accounting import Loss, gaussian_delta, gaussian_mu, zcdp_delta, zcdp_rho
from dpsc.privacy.rounded_gaussian import discrete_gaussian_budget, discrete_gaussian_slack

MOST = GRAM_COORDINATES


def gram(epsilon: float, delta: float = 1e-6, coordinates: int = MOST, bits: int = GRAM_BITS) -> Cost:
    return Cost(epsilon, delta, discrete_gaussian_budget(epsilon, delta, coordinates, 4.0**bits))


def zcdp(epsilon: float, delta: float = 1e-6) -> Cost:
    return Cost(epsilon, delta, Loss.from_rho(zcdp_rho(epsilon, delta)))


def old_gram(epsilon: float, delta: float = 1e-6) -> Cost:
    """A booking of 0.1.0: zCDP, and by a second theorem Gaussian."""
    rho = zcdp_rho(epsilon, delta)
    rest = discrete_gaussian_slack(math.sqrt(2 * rho), MOST, 4.0**GRAM_BITS)
    second = Loss(mu_squared=2 * rho, rest_epsilon=rest[0], rest_delta=rest[1])
    return Cost(epsilon, delta, Loss.from_rho(rho), second)


def pure(epsilon: float) -> Cost:
    return Cost.of(Guarantee(epsilon))


def gaussian(epsilon: float, delta: float = 1e-6) -> Cost:
    return Cost(epsilon, delta, Loss.from_mu(gaussian_mu(epsilon, delta)))


def test_a_budget_pays_for_exactly_one_release_of_its_own_size() -> None:
    for algorithm in (
        GramRelease(epsilon=1.3, delta=1e-6, scale=1.0),
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
    def affordable(cost: Cost) -> int:
        return next(k for k in range(100) if not Budget(2.0, 1e-6).allows([cost] * (k + 1)))

    rho, mu = zcdp_rho(0.5, 1e-6), gaussian_mu(0.5, 1e-6)
    by_zcdp = max(k for k in range(100) if zcdp_delta(k * rho, 2.0) <= 1e-6)
    assert affordable(zcdp(0.5)) == by_zcdp > 10  # a sum of epsilons would stop at 4
    assert affordable(gram(0.5)) == max(k for k in range(100) if gaussian_delta(math.sqrt(k) * mu, 2.0) <= 1e-6)
    assert affordable(old_gram(0.5)) > by_zcdp


def test_decimals_add_up_as_they_are_written() -> None:
    assert Budget(1.0, 0.0).allows([pure(0.1)] * 10)
    assert Budget(0.3, 0.0).allows([pure(0.1), pure(0.2)])  # in floats 0.1 + 0.2 > 0.3
    assert not Budget(0.3, 0.0).allows([pure(0.1), pure(0.2), pure(1e-10)])


def test_sums_of_losses_are_never_rounded_down() -> None:
    costs = [gram(0.1 + k / 997) for k in range(25)] + [zcdp(0.1 + k / 997) for k in range(25)]
    (total,) = total_losses(costs)
    for name in ("rho", "mu_squared", "rest_epsilon", "rest_delta"):
        assert Fraction(getattr(total, name)) >= sum(Fraction(getattr(cost.loss, name)) for cost in costs)
    assert total_losses(costs[:1]) == [costs[0].loss]


makers = st.sampled_from([gram, zcdp, pure, gaussian])
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
        for coordinates, bits in (
            (MOST, GRAM_BITS),
            (465, GRAM_BITS),
            (3, 26),
        ):  # any release on this grid or a finer one
            assert budget.allows([*costs, gram(left, at, coordinates, bits)])
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


def test_releases_of_one_kind_never_need_plain_sums() -> None:
    """Then the ledger of a data set with one kind only is one filter, whoever chooses the sizes and when."""
    sizes = (0.01, 0.1, 0.5, 1.0, 2.0)
    for one in sizes:
        for other in sizes:
            for make in (gram, zcdp, gaussian):
                (total,) = total_losses([make(one, 5e-7), make(other, 5e-7)])
                assert total.delta(one + other) <= 1e-6
                assert zcdp_delta(total.rho + total.mu_squared / 2, one + other) >= total.delta(one + other) * (
                    1 - 1e-9
                )


def test_the_gram_release_that_is_offered_is_the_largest_and_finest_that_there_is() -> None:
    assert (LARGEST_T * (LARGEST_T + 1) // 2, GRID_BITS) == (GRAM_COORDINATES, GRAM_BITS)


@pytest.mark.parametrize("delta", [1e-12, 1e-15, 1e-17, 1e-19, 1e-25, 1e-40])
def test_a_tiny_delta_is_offered_what_it_can_pay_for(delta: float) -> None:
    """There a release of many periods is zCDP and one of few is Gaussian; both must be accepted."""
    budget = Budget(2.0, delta)
    for booked in ([], [gram(0.5, delta, 465)], [zcdp(0.5, delta)], [pure(0.5)]):
        left = budget.largest(booked, delta)
        assert left > 1.3
        for coordinates in (3, 465, MOST):
            assert budget.allows([*booked, gram(left, delta, coordinates)])


def test_a_refusal_offers_the_kind_that_was_asked_for() -> None:
    budget, booked = Budget(1.0, 1e-6), [gram(0.7)]
    for like in (gram(0.9), gram(0.9, coordinates=465, bits=12), gaussian(0.9), zcdp(0.9)):
        assert not budget.allows([*booked, like])
        left = budget.largest(booked, 1e-6, like)
        assert 0.6 < left < 0.75
        assert (left == pytest.approx(budget.largest(booked, 1e-6), rel=1e-4)) == (like.loss.rho == 0)
        make = zcdp if like.loss.rho > 0 else gram
        assert budget.allows([*booked, make(left)])
        assert not budget.allows([*booked, make(left * 1.001)])
    unknown = Cost.of(Guarantee(0.9, 1e-7))
    assert budget.largest(booked, 1e-7, unknown) == pytest.approx(0.3, abs=0.01)
    mixed = Cost(0.9, 1e-7, Loss(mu_squared=0.01, rest_epsilon=0.4, rest_delta=1e-8))
    assert budget.largest(booked, 1e-7, mixed) == budget.largest(booked, 1e-7, unknown)
