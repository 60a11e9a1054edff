"""How entries of 0.1.0 are read: as before or better, never worse."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsc import Guarantee, Ledger
from dpsc.ledger.budget import GRAM_COORDINATES, Budget, Cost
from dpsc.ledger.history import read_cost
from dpsc.ledger.records import guarantee_to_json
from dpsc.privacy.accounting import (
    Loss,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    zcdp_delta,
    zcdp_epsilon,
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


def test_a_gram_release_of_0_1_0_is_gaussian_noise_with_a_slack_too() -> None:
    for bits in (4, 12, 18, 26):
        cost, rho = read_cost(gram_of_0_1_0(1.0, bits=bits)), zcdp_rho(1.0, 1e-6)
        assert cost.loss == Loss.from_rho(rho)
        assert cost.second is not None
        assert cost.second.mu_squared == 2 * rho
        slack = discrete_gaussian_slack(math.sqrt(2 * rho), GRAM_COORDINATES, 4.0**bits)
        assert (cost.second.rest_epsilon, cost.second.rest_delta) == slack


def without(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != name}


@pytest.mark.parametrize(
    "body",
    [
        new_gram(1.0), output(1.0), floating(1.0), pure(1.0), unknown(1.0),
        gram_of_0_1_0(1.0) | {"algorithm": "Release.merge"},
        gram_of_0_1_0(1.0) | {"parameters": {}},
        gram_of_0_1_0(1.0) | {"parameters": None},
        without(gram_of_0_1_0(1.0), "parameters"), without(gram_of_0_1_0(1.0), "algorithm"),
        *(gram_of_0_1_0(1.0, bits=bits) for bits in (3, 27, 10**9, 18.0, True, "18", None)),
        gram_of_0_1_0(500.0, 1e-2, bits=4) | {"algorithm": "another"},
        booking(Loss.from_rho(zcdp_rho(1.0, 1e-6)) + Loss.from_pure(0.1), 1.3, 1e-6),
    ],
)  # fmt: skip
def test_other_bookings_are_read_as_before(body: dict[str, Any]) -> None:
    assert read_cost(body) == Cost.of_json(body["guarantee"])


def spent_by_0_1_0(budget: Budget, costs: Sequence[Cost]) -> tuple[bool, float]:
    """Whether 0.1.0 allowed these costs, and what it said was spent: its formulas, with its sums."""

    def added(name: str) -> float:
        exact = sum(Fraction(getattr(cost.loss, name)) for cost in costs)
        rounded = float(exact)
        return rounded if Fraction(rounded) >= exact else math.nextafter(rounded, math.inf)

    pure, pure_as_rho, rho = added("pure"), added("pure_as_rho"), added("rho")
    mu, rest_epsilon, rest_delta = math.sqrt(added("mu_squared")), added("rest_epsilon"), added("rest_delta")
    noisy, left, room = rho + added("mu_squared") / 2, budget.delta - rest_delta, budget.epsilon - rest_epsilon
    epsilons, deltas = [math.inf], [1.0]
    if noisy == 0 and left >= 0:
        epsilons += [pure, zcdp_epsilon(pure_as_rho, left) if left > 0 and pure_as_rho > 0 else math.inf]
        deltas += [0.0 if pure <= room else zcdp_delta(pure_as_rho, room) if room >= 0 else 1.0]
    elif left > 0:
        epsilons += [pure + zcdp_epsilon(noisy, left), zcdp_epsilon(pure_as_rho + noisy, left)]
        epsilons += [pure + gaussian_epsilon(mu, left)] if rho == 0 else []
        if room >= 0:
            deltas.append(zcdp_delta(pure_as_rho + noisy, room))
        if room - pure >= 0:
            deltas.append(zcdp_delta(noisy, room - pure))
            deltas += [gaussian_delta(mu, room - pure)] if rho == 0 else []
    ways = [rest_epsilon + min(epsilons)]
    stated = [
        sum(Fraction(str(value)) for value in each) for each in zip(*((c.epsilon, c.delta) for c in costs), strict=True)
    ]
    plainly = stated[1] <= Fraction(str(budget.delta))
    ways += [float(stated[0])] if plainly else []
    allowed = rest_delta + min(deltas) <= budget.delta or (plainly and stated[0] <= Fraction(str(budget.epsilon)))
    return allowed, min([*ways, budget.epsilon] if allowed else ways)


mixtures = st.lists(
    st.tuples(st.sampled_from(KINDS), st.floats(0.01, 1.5), st.sampled_from([1e-9, 1e-7, 1e-6])), min_size=1, max_size=7
)


@settings(max_examples=quick_or_long(50, 3000), deadline=None)
@given(mixtures, st.floats(0.1, 8), st.sampled_from([0.0, 1e-12, 1e-9, 1e-6, 1e-4]))
def test_no_mixture_costs_more_than_0_1_0_said_or_is_refused_where_it_was_allowed(
    made: list[tuple[Any, float, float]], epsilon: float, delta: float
) -> None:
    budget = Budget(epsilon, delta)
    costs = [read_cost(make(size, at)) for make, size, at in made]
    allowed, spent = spent_by_0_1_0(budget, costs)
    assert budget.spent(costs) <= spent * (1 + 1e-14)
    assert budget.allows(costs) >= allowed


@settings(max_examples=quick_or_long(40, 2000), deadline=None)
@given(mixtures, st.floats(0.1, 8), st.sampled_from([1e-9, 1e-6, 1e-4]))
def test_more_entries_never_cost_less(made: list[tuple[Any, float, float]], epsilon: float, delta: float) -> None:
    budget = Budget(epsilon, delta)
    costs = [read_cost(make(size, at)) for make, size, at in made]
    for k in range(1, len(costs)):
        assert budget.spent(costs[:k]) <= budget.spent(costs[: k + 1]) * (1 + 1e-8)
        assert budget.allows(costs[:k]) >= budget.allows(costs[: k + 1])


def test_gram_releases_of_0_1_0_and_of_today_add_up_as_gaussian_noise() -> None:
    costs = [read_cost(gram_of_0_1_0(0.5)), read_cost(new_gram(0.8))]
    mu = math.sqrt(2 * zcdp_rho(0.5, 1e-6) + gaussian_mu(0.8, 1e-6) ** 2)
    assert Budget(5.0, 1e-6).spent(costs) == pytest.approx(gaussian_epsilon(mu, 1e-6), rel=1e-7)
    with_a_rho = [*costs, read_cost(output(0.1))]
    rho = mu**2 / 2 + zcdp_rho(0.1, 1e-6)
    assert Budget(5.0, 1e-6).spent(with_a_rho) == pytest.approx(zcdp_epsilon(rho, 1e-6), rel=1e-7)


@pytest.mark.parametrize(("name", "before"), [("version-1.sqlite", 0.75), ("version-2.sqlite", 0.5681142241025556)])
def test_kept_ledgers_have_spent_no_more_than_they_said(name: str, before: float, tmp_path: Path) -> None:
    shutil.copy(FOLDER / name, tmp_path / name)
    ledger = Ledger(tmp_path / name)
    costs = [Cost.of(entry.guarantee) for entry in ledger.entries("cigarettes")]
    gaussian = math.sqrt(sum(2 * cost.loss.rho for cost in costs))
    stated = sum(cost.loss.pure for cost in costs)
    assert spent_by_0_1_0(Budget(2.0, 1e-6), costs)[1] == pytest.approx(before)
    assert ledger.balance("cigarettes").spent == pytest.approx(stated + gaussian_epsilon(gaussian, 1e-6), rel=1e-7)
    assert ledger.balance("cigarettes").spent < 0.96 * before
