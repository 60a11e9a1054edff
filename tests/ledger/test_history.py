"""How entries of before are read: Gram releases of 0.1.0 as Gaussian noise, and pockets fixed by what was booked."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsc import DpscWarning, Guarantee, Ledger
from dpsc.ledger.budget import GRAM_COORDINATES, Budget, Charge, Cost, fixed_afterwards
from dpsc.ledger.history import read_cost
from dpsc.ledger.records import guarantee_to_json
from dpsc.privacy.accounting import (
    Loss,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    zcdp_delta,
    zcdp_rho,
)
from dpsc.privacy.rounded_gaussian import discrete_gaussian_budget, discrete_gaussian_slack
from tests.soak import quick_or_long

FOLDER = Path(__file__).parent
BASIS = "discrete Gaussian on unit rows' Gram matrix"


def booking(loss: Loss, epsilon: float, delta: float, **changes: Any) -> dict[str, Any]:
    """The body of a booking as 0.1.0 wrote it for a Gram release."""
    guarantee = Guarantee(epsilon, delta, arithmetic="exact", basis=changes.pop("basis", BASIS), loss=loss)
    parameters = {"epsilon": epsilon, "delta": delta, "smoothness": "high", "reference": None, "grid_bits": 18}
    plain = guarantee_to_json(guarantee)
    return {"algorithm": "GramRelease", "parameters": parameters, "guarantee": plain, "output": None, **changes}


def gram_of_0_1_0(epsilon: float, delta: float = 1e-6, bits: Any = 18) -> dict[str, Any]:
    body = booking(Loss.from_rho(zcdp_rho(epsilon, delta)), epsilon, delta)
    return {**body, "parameters": {**body["parameters"], "grid_bits": bits}}


def new_gram(epsilon: float, delta: float = 1e-6) -> dict[str, Any]:
    loss = discrete_gaussian_budget(epsilon, delta, 465, 4.0**18)
    return booking(loss, epsilon, delta, basis="rounded Gaussian")


def output(epsilon: float, delta: float = 1e-6) -> dict[str, Any]:
    return booking(
        Loss.from_rho(zcdp_rho(epsilon, delta)), epsilon, delta, algorithm="OutputPerturbation", basis="ridge"
    )


def floating(epsilon: float, delta: float = 1e-6) -> dict[str, Any]:
    return booking(Loss.from_mu(gaussian_mu(epsilon, delta)), epsilon, delta, basis="ridge")


def pure(epsilon: float, _: float = 0.0) -> dict[str, Any]:
    return booking(Loss.from_pure(epsilon), epsilon, 0.0, basis="ridge")


def unknown(epsilon: float, delta: float = 1e-6) -> dict[str, Any]:
    return booking(Loss(rest_epsilon=epsilon, rest_delta=delta / 10), epsilon, delta, basis="elsewhere")


KINDS = [gram_of_0_1_0, new_gram, output, floating, pure, unknown]


def test_a_gram_release_of_0_1_0_is_gaussian_noise_with_a_slack() -> None:
    for bits in (4, 12, 18, 26):
        cost, rho = read_cost(gram_of_0_1_0(1.0, bits=bits)), zcdp_rho(1.0, 1e-6)
        slack = discrete_gaussian_slack(math.sqrt(2 * rho), GRAM_COORDINATES, 4.0**bits)
        assert cost.loss == Loss(mu_squared=2 * rho, rest_epsilon=slack[0], rest_delta=slack[1])
        assert cost.kind == ("other" if bits == 4 else "Gaussian")


def without(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != name}


@pytest.mark.parametrize(
    "body",
    [
        new_gram(1.0),
        output(1.0),
        floating(1.0),
        pure(1.0),
        unknown(1.0),
        gram_of_0_1_0(1.0) | {"algorithm": "Release.merge"},
        gram_of_0_1_0(1.0) | {"parameters": {}},
        gram_of_0_1_0(1.0) | {"parameters": None},
        without(gram_of_0_1_0(1.0), "parameters"),
        without(gram_of_0_1_0(1.0), "algorithm"),
        *(gram_of_0_1_0(1.0, bits=bits) for bits in (3, 27, 10**9, 18.0, True, "18", None)),
        gram_of_0_1_0(500.0, 1e-2, bits=4) | {"algorithm": "another"},
        booking(Loss.from_rho(zcdp_rho(1.0, 1e-6)) + Loss.from_pure(0.1), 1.3, 1e-6),
    ],
)
def test_other_bookings_are_read_as_before(body: dict[str, Any]) -> None:
    assert read_cost(body) == Cost.of_json(body["guarantee"])


def delta_of(losses: Sequence[Loss], epsilon: float) -> float:
    """The smallest delta that any theorem of 0.2.0 showed, for the sums of losses."""
    pure, pure_as_rho, rho, mu_squared, rest, rest_delta = (
        float(sum(Fraction(each) for each in values)) for values in zip(*map(astuple, losses), strict=True)
    )
    left, noisy = epsilon - rest, rho + mu_squared / 2
    if left < 0:
        return 1.0
    if noisy == 0:
        return rest_delta if pure <= left else rest_delta + zcdp_delta(pure_as_rho, left)
    ways = [zcdp_delta(pure_as_rho + noisy, left)]
    ways += [zcdp_delta(noisy, left - pure)] if left >= pure else []
    if rho == 0:
        ways.append(gaussian_delta(math.sqrt(mu_squared + 3.1416 * pure_as_rho), left))
        ways += [gaussian_delta(math.sqrt(mu_squared), left - pure)] if left >= pure else []
    return rest_delta + min(ways)


def allowed_by_0_2_0(epsilon: float, delta: float, bodies: Sequence[dict[str, Any]]) -> bool:
    """Whether any theorem showed it: plain sums, or the curves for either reading of entries of 0.1.0."""
    stated = [(Fraction(str(b["guarantee"]["epsilon"])), Fraction(str(b["guarantee"]["delta"]))) for b in bodies]
    sums = [sum(each) for each in zip(*stated, strict=True)]
    if sums[0] <= Fraction(str(epsilon)) and sums[1] <= Fraction(str(delta)):
        return True
    readings = [[Loss(**b["guarantee"]["loss"]) for b in bodies], [read_cost(b).loss for b in bodies]]
    return any(delta_of(losses, epsilon) <= delta for losses in readings)


mixtures = st.lists(
    st.tuples(st.sampled_from(KINDS), st.floats(0.01, 1.5), st.sampled_from([1e-9, 1e-7, 1e-6])), min_size=1, max_size=7
)


def booked_before(made: list[tuple[Any, float, float]], epsilon: float, delta: float) -> list[dict[str, Any]]:
    """What 0.2.0 accepted of these, one after the other."""
    bodies: list[dict[str, Any]] = []
    for make, size, at in made:
        body = make(size, at)
        bodies += [body] if allowed_by_0_2_0(epsilon, delta, [*bodies, body]) else []
    return bodies


@settings(max_examples=quick_or_long(100, 5000), deadline=None)
@given(mixtures, mixtures, st.floats(0.1, 8), st.sampled_from([0.0, 1e-12, 1e-9, 1e-6, 1e-4]))
def test_pockets_that_are_fixed_afterwards_hold_what_is_booked_and_allow_no_more_than_before(
    before: list[tuple[Any, float, float]], further: list[tuple[Any, float, float]], epsilon: float, delta: float
) -> None:
    bodies = booked_before(before, epsilon, delta)
    budget = fixed_afterwards(epsilon, delta, [Charge(read_cost(body)) for body in bodies])
    assert budget.limits.pure + budget.limits.other_epsilon <= Fraction(str(epsilon))
    assert budget.spent(map(read_cost, bodies)) <= epsilon
    for make, size, at in further:
        body = make(size, at)
        if budget.allows(map(read_cost, [*bodies, body])):
            assert allowed_by_0_2_0(epsilon, delta * (1 + 1e-9), [*bodies, body])
            bodies.append(body)


partitioned = st.lists(
    st.tuples(
        st.sampled_from(KINDS), st.floats(0.01, 4), st.sampled_from([1e-9, 1e-7, 1e-6]), st.sampled_from([None, *"ab"])
    ),
    max_size=7,
)


@settings(max_examples=quick_or_long(100, 5000), deadline=None)
@given(partitioned, partitioned, st.floats(0.5, 8), st.sampled_from([1e-9, 1e-6, 1e-4]))
def test_what_one_partition_has_spent_gives_no_room_to_another(
    before: list[tuple[Any, float, float, str | None]],
    further: list[tuple[Any, float, float, str | None]],
    epsilon: float,
    delta: float,
) -> None:
    booked: list[tuple[dict[str, Any], str | None]] = []

    def concerned(part: str | None, body: dict[str, Any]) -> list[list[dict[str, Any]]]:
        labels = [part] if part is not None else [None, "a", "b", "new"]
        return [[b for b, p in booked if p in (None, label)] + [body] for label in labels]

    for make, size, at, part in before:
        body = make(size, at)
        if all(allowed_by_0_2_0(epsilon, delta, group) for group in concerned(part, body)):
            booked.append((body, part))
    budget = fixed_afterwards(epsilon, delta, [Charge(read_cost(body), part) for body, part in booked])
    assert budget.limits.pure + budget.limits.other_epsilon <= Fraction(str(epsilon))
    for make, size, at, part in further:
        body = make(size, at)
        if all(budget.allows(map(read_cost, group)) for group in concerned(part, body)):
            assert all(allowed_by_0_2_0(epsilon, delta * (1 + 1e-9), group) for group in concerned(part, body))
            booked.append((body, part))


def test_partitions_of_different_kinds_do_not_lend_each_other_their_limits() -> None:
    """Pure 2.8 for one and a Gram release of 3.99 for the other made room for both for each."""
    charges = [Charge(read_cost(pure(2.8)), "a"), Charge(read_cost(new_gram(3.99)), "b")]
    budget = fixed_afterwards(4.0, 1e-6, charges)
    assert not budget.allows([read_cost(pure(2.8)), read_cost(new_gram(3.99))])
    assert budget.allows([read_cost(pure(2.8)), read_cost(new_gram(1.19))])
    assert not budget.allows([read_cost(new_gram(3.99)), read_cost(pure(0.01))])  # it is full
    many = [Charge(read_cost(pure(0.1)), "a")] * 100  # 5.22 by zCDP
    assert fixed_afterwards(5.5, 1e-6, many).largest([], 0.0) == 5.5
    zcdp = [Charge(read_cost(output(0.9)), "a")] * 10  # 3.13 by zCDP
    assert fixed_afterwards(3.2, 1e-6, zcdp).limits.other_epsilon <= Fraction("3.2")


@settings(max_examples=quick_or_long(40, 2000), deadline=None)
@given(mixtures, st.floats(0.1, 8), st.sampled_from([1e-9, 1e-6, 1e-4]))
def test_more_entries_never_cost_less(made: list[tuple[Any, float, float]], epsilon: float, delta: float) -> None:
    budget = Budget(epsilon, delta, epsilon / 4, (epsilon / 4, delta / 4))
    costs = [read_cost(make(size, at)) for make, size, at in made]
    for k in range(1, len(costs)):
        assert budget.spent(costs[:k]) <= budget.spent(costs[: k + 1]) * (1 + 1e-8)
        assert budget.allows(costs[:k]) >= budget.allows(costs[: k + 1])


def test_the_whole_budget_goes_to_the_only_kind_that_was_booked() -> None:
    def charges(*bodies: dict[str, Any]) -> list[Charge]:
        return [Charge(read_cost(body)) for body in bodies]

    assert fixed_afterwards(2.0, 1e-6, []).limits == Budget(2.0, 1e-6).limits
    assert fixed_afterwards(2.0, 1e-6, charges(new_gram(1.0))).limits == Budget(2.0, 1e-6).limits
    assert fixed_afterwards(2.0, 1e-6, charges(pure(0.5))).largest([Cost.of(Guarantee(0.5))], 0.0) == 1.5
    others = fixed_afterwards(2.0, 1e-6, charges(unknown(0.5, 1e-7)))
    assert others.limits.other_epsilon == 2
    assert others.limits.mu_squared == 0
    mixed = fixed_afterwards(2.0, 1e-6, charges(pure(0.5), new_gram(0.3)))
    assert mixed.limits.pure == Fraction(1, 2)
    assert mixed.limits.mu_squared == Budget(1.5, 1e-6).limits.mu_squared
    with_zcdp = fixed_afterwards(2.0, 1e-6, charges(output(0.01, 1e-9), new_gram(0.3)))
    assert 0 < with_zcdp.limits.mu_squared < 2 * zcdp_rho(2.0, 1e-6) < Budget(2.0, 1e-6).limits.mu_squared


def test_a_full_budget_of_0_2_0_stays_full() -> None:
    """A release then had a few parts in a million more noise to spend than one of today."""
    full = booking(Loss(mu_squared=gaussian_mu(1.0, 1e-6) ** 2, rest_delta=1e-18), 1.0, 1e-6, basis="rounded Gaussian")
    budget = fixed_afterwards(1.0, 1e-6, [Charge(read_cost(full))])
    assert not Budget(1.0, 1e-6).allows([read_cost(full)])
    assert budget.spent([read_cost(full)]) == 1.0
    assert budget.largest([read_cost(full)], 1e-6) == 0


def test_gram_releases_of_0_1_0_and_of_today_add_up_as_gaussian_noise() -> None:
    costs = [read_cost(gram_of_0_1_0(0.5)), read_cost(new_gram(0.8))]
    mu = math.sqrt(2 * zcdp_rho(0.5, 1e-6) + gaussian_mu(0.8, 1e-6) ** 2)
    assert Budget(5.0, 1e-6).spent(costs) == pytest.approx(gaussian_epsilon(mu, 1e-6), rel=1e-5)
    assert not Budget(5.0, 1e-6).allows([*costs, read_cost(output(0.1))])  # zCDP is not Gaussian


@pytest.mark.parametrize(("name", "before"), [("version-1.sqlite", 0.75), ("version-2.sqlite", 0.5681142241025556)])
def test_kept_ledgers_have_spent_no_more_than_they_said(name: str, before: float, tmp_path: Path) -> None:
    shutil.copy(FOLDER / name, tmp_path / name)
    with pytest.warns(DpscWarning, match="said once"):
        ledger = Ledger(tmp_path / name)
    costs = [Cost.of(entry.guarantee) for entry in ledger.entries("cigarettes")]
    gaussian = math.sqrt(sum(2 * cost.loss.rho for cost in costs))
    stated = sum(cost.loss.pure for cost in costs)
    assert ledger.balance("cigarettes").spent == pytest.approx(stated + gaussian_epsilon(gaussian, 1e-6), rel=1e-4)
    assert ledger.balance("cigarettes").spent < 0.96 * before
