from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsc import GramRelease, Guarantee, ObjectivePerturbation, OutputPerturbation, ParameterError
from dpsc.ledger.budget import GRAM_BITS, GRAM_COORDINATES, Budget, Charge, Cost, groups
from dpsc.privacy.accounting import Loss, gaussian_delta, gaussian_mu, zcdp_rho
from dpsc.privacy.rounded_gaussian import discrete_gaussian_budget, released_mu
from dpsc.release.matrix import GRID_BITS, MOST_COORDINATES

MOST = GRAM_COORDINATES


def gram(epsilon: float, delta: float = 1e-6, coordinates: int = MOST, bits: int = GRAM_BITS) -> Cost:
    return Cost(epsilon, delta, discrete_gaussian_budget(epsilon, delta, coordinates, 4.0**bits))


def zcdp(epsilon: float, delta: float = 1e-6) -> Cost:
    return Cost(epsilon, delta, Loss.from_rho(zcdp_rho(epsilon, delta)))


def pure(epsilon: float, _: float = 0.0) -> Cost:
    return Cost.of(Guarantee(epsilon))


def gaussian(epsilon: float, delta: float = 1e-6) -> Cost:
    return Cost(epsilon, delta, Loss.from_mu(released_mu(epsilon, delta)))


def unknown(epsilon: float, delta: float = 1e-7) -> Cost:
    return Cost.of(Guarantee(epsilon, delta))


def test_a_budget_pays_for_exactly_one_release_of_its_own_size() -> None:
    for algorithm, pockets in (
        (GramRelease(epsilon=1.3, delta=1e-6, scale=1.0), {}),
        (OutputPerturbation(epsilon=1.3, delta=1e-6), {}),
        (ObjectivePerturbation(epsilon=1.3, delta=1e-6), {"other": (1.3, 1e-6)}),
        (OutputPerturbation(epsilon=1.3), {"pure": 1.3}),
    ):
        assert algorithm.guarantee is not None
        cost = Cost.of(algorithm.guarantee)
        assert Budget(1.3, 1e-6, **pockets).allows([cost])
        assert not Budget(1.3, 1e-6, **pockets).allows([cost, gram(0.4)])
        smaller = {"other": (1.2999, 1e-6)} if "other" in pockets else {"pure": 1.2999} if pockets else {}
        assert not Budget(1.2999, 1e-6, **smaller).allows([cost])
    assert Budget(1.3, 0.0).allows([pure(1.3)])
    assert not Budget(1.3, 0.0).allows([pure(1.3001)])
    assert not Budget(1.3, 0.0).allows([gram(0.1)])


def test_composition_is_tight_and_not_a_sum_of_epsilons() -> None:
    affordable = next(k for k in range(100) if not Budget(2.0, 1e-6).allows([gram(0.5)] * (k + 1)))
    mu = gaussian_mu(0.5, 1e-6)
    by_the_curve = max(k for k in range(100) if gaussian_delta(math.sqrt(k) * mu, 2.0) <= 1e-6)
    assert affordable == by_the_curve > 10  # a sum of epsilons would stop at 4


def test_decimals_add_up_as_they_are_written() -> None:
    assert Budget(1.0, 0.0).allows([pure(0.1)] * 10)
    assert Budget(0.3, 0.0).allows([pure(0.1), pure(0.2)])  # in floats 0.1 + 0.2 > 0.3
    assert not Budget(0.3, 0.0).allows([pure(0.1), pure(0.2), pure(1e-10)])
    assert Budget(4.0, 1e-6, pure=1.0).allows([pure(0.1)] * 10)
    assert Budget(4.0, 1e-6, other=(0.3, 3e-7)).allows([unknown(0.1, 1e-7), unknown(0.2, 2e-7)])


def test_sums_are_exact() -> None:
    costs = [gram(0.1 + k / 997) for k in range(25)]
    held = Budget(9.0, 1e-6).held(costs)
    assert held.mu_squared == sum(Fraction(cost.loss.mu_squared) for cost in costs)
    assert held.slack_delta == sum(Fraction(cost.loss.rest_delta) for cost in costs)
    assert held.slack_epsilon == sum(Fraction(cost.loss.rest_epsilon) for cost in costs)


def test_each_kind_is_charged_to_its_pocket() -> None:
    budget = Budget(4.0, 1e-6, pure=1.0, other=(0.5, 1e-7))
    for cost, pocket in (
        (gram(0.1), "mu_squared"),
        (gaussian(0.1), "mu_squared"),
        (pure(0.1), "pure"),
        (zcdp(0.1, 1e-8), "other_epsilon"),  # never as Gaussian noise with mu = sqrt(2 rho)
        (unknown(0.1, 1e-8), "other_epsilon"),
        (Cost(0.5, 1e-7, Loss.from_mu(0.01) + Loss.from_epsilon_delta(0.2, 5e-8)), "other_epsilon"),
        (Cost(0.5, 1e-7, Loss.from_mu(0.01) + Loss.from_pure(0.2)), "mu_squared"),
    ):
        held = budget.held([cost])
        charged = {name for name, value in vars(held).items() if value > 0 and not name.startswith("slack")}
        assert charged - {"other_delta"} == {pocket}


def test_a_pure_loss_is_pure_only_without_a_delta_and_costs_all_of_it() -> None:
    """By advanced composition a hundred of 0.1 cost 1e-10 at delta 0.9: each of these was charged no more."""
    hundred = sum([Loss.from_pure(0.1)] * 99, Loss.from_pure(0.1))
    cheap = Cost(max(1e-10, hundred.epsilon(0.9)), 0.9, hundred)
    assert cheap.kind == "Gaussian"  # by the parts of its loss
    assert not Budget(1.0, 0.0).allows([cheap])
    assert not Budget(1.0, 1e-6, pure=1.0).allows([cheap])
    tolerated = Cost(1.0, 0.0, Loss.from_pure(1.0 + 5e-9))  # until version 0.2.0 a guarantee could be of this
    assert not Budget(1.0, 0.0).allows([tolerated])
    halves = Cost.of(Guarantee(0.3, loss=Loss.from_pure(0.1) + Loss.from_pure(0.2)))  # 0.30000000000000004 in floats
    assert Budget(0.3, 0.0).allows([halves])


def test_the_gaussian_pocket_keeps_what_the_others_leave() -> None:
    def mu(epsilon: float, delta: float) -> float:
        return math.sqrt(Budget(epsilon, delta).limits.mu_squared)

    assert math.sqrt(Budget(4.0, 1e-6, pure=1.0).limits.mu_squared) == mu(3.0, 1e-6)
    divided = math.sqrt(Budget(4.0, 1e-6, pure=0.5, other=(1.0, 3e-7)).limits.mu_squared)
    assert divided == mu(2.5, 7e-7)
    assert Budget(4.0, 1e-6, pure=4.0).limits.mu_squared == 0
    assert mu(4.0, 1e-6) == pytest.approx(0.8379, abs=1e-4)


def test_a_pure_release_is_charged_as_gaussian_noise_where_nothing_is_kept_for_it() -> None:
    """The largest is 0.669 by the closed form, where 0.674 is tight: a budget for Gaussian noise is not for these."""
    budget = Budget(4.0, 1e-6)
    assert budget.largest([], 0.0) == pytest.approx(0.669, abs=1e-3)
    assert budget.allows([pure(0.668)])
    assert not budget.allows([pure(0.68)])
    assert Budget(4.0, 1e-6, pure=1.0).largest([], 0.0) == 1.0
    assert Budget(4.0, 1e-6, pure=1.0).largest([], 1e-6) == 3.0


makers = st.sampled_from([gram, zcdp, pure, gaussian, unknown])
bookings = st.lists(st.tuples(makers, st.floats(0.01, 0.6)), max_size=6)
shares = st.sampled_from([(0.0, 0.0), (0.3, 0.0), (0.0, 0.4), (0.2, 0.3), (1.0, 0.0)])


def divided(epsilon: float, delta: float, parts: tuple[float, float]) -> Budget:
    if delta == 0:
        return Budget(epsilon, delta)
    return Budget(epsilon, delta, parts[0] * epsilon, (parts[1] * epsilon, parts[1] * delta))


def accepted(budget: Budget, booked: list[tuple[object, float]]) -> list[Cost]:
    costs: list[Cost] = []
    for make, size in booked:
        cost = make(size)  # type: ignore[operator]
        costs += [cost] if budget.allows([*costs, cost]) else []
    return costs


@given(
    bookings,
    st.floats(0.05, 4),
    st.sampled_from([0.0, 1e-9, 1e-6, 1e-3]),
    st.sampled_from([1e-9, 1e-6, 1e-4]),
    shares,
)
def test_what_is_said_to_be_left_is_accepted_and_a_little_more_is_not(
    booked: list[tuple[object, float]], epsilon: float, delta: float, at: float, parts: tuple[float, float]
) -> None:
    budget = divided(epsilon, delta, parts)
    costs = accepted(budget, booked)
    left = budget.largest(costs, at)
    assert left <= epsilon
    if left > 0:
        for coordinates, bits in ((MOST, GRAM_BITS), (465, GRAM_BITS), (3, 26)):  # any on this grid or a finer one
            assert budget.allows([*costs, gram(left, at, coordinates, bits)])
    if left < epsilon * (1 - 1e-3):
        assert not budget.allows([*costs, gram(left * 1.001 + 2e-3 * epsilon, at)])
    assert budget.spent(costs) <= epsilon
    left = budget.largest(costs, 0.0)
    assert left <= epsilon
    if left > 0:
        assert budget.allows([*costs, pure(left)])
    if left < epsilon * (1 - 1e-3):
        assert not budget.allows([*costs, pure(left * 1.001 + 1e-4)])


@given(bookings, st.floats(0.1, 4), shares)
def test_what_is_allowed_is_within_the_budget_by_composing_guarantees(
    booked: list[tuple[object, float]], epsilon: float, parts: tuple[float, float]
) -> None:
    """By the theorems for releases that were fixed beforehand, which may only be better."""
    costs = accepted(divided(epsilon, 1e-6, parts), booked)
    as_others = [
        cost.loss if cost.loss.rho == 0 else Loss.from_epsilon_delta(cost.epsilon, cost.delta) for cost in costs
    ]
    assert sum(as_others, Loss()).epsilon(1e-6) <= epsilon * (1 + 1e-8)


def test_disjoint_partitions_share_a_budget_and_common_releases_count_for_each() -> None:
    budget = Budget(1.0, 1e-6)
    charges = [Charge(gram(0.5)), Charge(gram(0.6), "north"), Charge(gram(0.3), "south")]
    spent = {p: budget.spent(groups(charges, p)[0]) for p in ("north", "south", "west")}
    assert spent["north"] == pytest.approx(budget.spent([gram(0.5), gram(0.6)]))
    assert spent["west"] == pytest.approx(0.5)
    assert max(budget.spent(group) for group in groups(charges, None)) == spent["north"] > spent["south"]


def test_the_gram_release_that_is_offered_is_the_largest_and_finest_that_there_is() -> None:
    assert (MOST_COORDINATES, GRID_BITS) == (GRAM_COORDINATES, GRAM_BITS)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9, 1e-12])
def test_slacks_leave_room_for_many_releases(delta: float) -> None:
    budget = Budget(4.0, delta)
    each = budget.each(20, delta)
    assert budget.allows([gram(each, delta)] * 20)
    assert not budget.allows([gram(each * 1.001, delta)] * 20)
    assert budget.each(1, delta) == 4.0


def test_a_slack_that_is_not_small_is_refused() -> None:
    """A coarse grid: its slack does not fit beside the noise, and nothing was kept for releases of other kinds."""
    coarse = gram(0.5, bits=11)
    assert coarse.kind == "other"
    assert not Budget(4.0, 1e-6).allows([coarse])
    assert Budget(4.0, 1e-6, other=(0.5, 1e-6)).allows([coarse])
    assert gram(0.5, bits=13).kind == "Gaussian"
    assert not Budget(4.0, 1e-6).allows([gram(0.1, bits=13)] * 1000)
    tiny = gram(0.5, 1e-17)
    assert not Budget(4.0, 1e-17).allows([tiny])
    assert Budget(4.0, 1e-17).largest([], 1e-17) == 0
    assert Budget(4.0, 1e-17, other=(4.0, 1e-17)).allows([zcdp(0.5, 1e-18)])


def test_a_refusal_offers_the_kind_that_was_asked_for() -> None:
    budget, booked = Budget(1.0, 1e-6), [gram(0.7)]
    for like in (gram(0.9), gram(0.9, coordinates=465, bits=14), gaussian(0.9)):
        assert not budget.allows([*booked, like])
        left = budget.largest(booked, 1e-6, like)
        assert left == pytest.approx(budget.largest(booked, 1e-6), rel=1e-4)
        assert 0.6 < left < 0.75
        assert budget.allows([*booked, gram(left)])
        assert not budget.allows([*booked, gram(left * 1.001)])
    assert budget.largest(booked, 1e-7, zcdp(0.9)) == 0
    with_others = Budget(1.0, 1e-6, other=(0.3, 1e-7))
    assert with_others.largest([], 1e-7, unknown(0.9)) == with_others.largest([], 1e-7, zcdp(0.9)) == 0.3
    assert with_others.largest([], 2e-7, unknown(0.9, 2e-7)) == 0


@pytest.mark.parametrize(
    ("pockets", "said"),
    [
        ({"pure": 1.5}, "more than the budget"),
        ({"pure": 0.7, "other": (0.4, 1e-7)}, "more than the budget"),
        ({"other": (0.4, 1e-5)}, "more than the budget"),
        ({"other": (0.4, 0.0)}, "both an epsilon and a delta"),
        ({"pure": -0.1}, "pure"),
        ({"pure": math.nan}, "pure"),
    ],
)
def test_pockets_that_do_not_fit_are_refused(pockets: dict[str, object], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Budget(1.0, 1e-6, **pockets).require_sound()  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="delta = 0"):
        Budget(1.0, 0.0, pure=0.5).require_sound()


KINDS: dict[str, Callable[[float], Cost]] = {"Gram": gram, "pure": pure, "Gaussian": gaussian, "other": unknown}


@given(
    st.sampled_from([0.5, 1.0, 2.0, 4.0]),
    st.sampled_from([(0.0, (0.0, 0.0)), (0.25, (0.0, 0.0)), (0.0, (0.125, 2e-7)), (0.25, (0.125, 2e-7))]),
    st.lists(
        st.tuples(
            st.sampled_from(sorted(KINDS)),
            st.sampled_from([0.05, 0.1, 0.25, 0.3, 0.5, 1.0, 4.0]),
            st.sampled_from([None, "north", "south"]),
        ),
        max_size=5,
    ),
    st.sampled_from([1e-6, 1e-7, 4e-6, 0.0]),
)
def test_nothing_left_is_ever_more_than_the_budget(
    epsilon: float, pockets: tuple[float, tuple[float, float]], wanted: list[tuple[str, float, str | None]], at: float
) -> None:
    """Books with whatever is accepted: what is left and what is spent never exceed the budget, at any delta."""
    pure_part, other = pockets
    budget = Budget(epsilon, 1e-6, pure=pure_part * epsilon, other=(other[0] * epsilon, other[1]))
    booked: list[Charge] = []
    for kind, size, part in wanted:
        cost = KINDS[kind](size)
        if all(budget.allows([*group, cost]) for group in groups(booked, part)):
            booked.append(Charge(cost, part))
    for part in (None, "north"):
        for group in groups(booked, part):
            assert 0 <= budget.largest(group, at) <= epsilon
            assert 0 <= budget.largest(group, 1e-6) <= epsilon
            assert budget.spent(group) <= epsilon
