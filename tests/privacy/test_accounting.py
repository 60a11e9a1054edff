from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting import pld
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsc import GramRelease, Guarantee, ParameterError
from dpsc.privacy import accounting
from dpsc.privacy.accounting import Loss
from tests.soak import quick_or_long

PAIRS = [(0.1, 1e-9), (0.5, 1e-6), (1.0, 1e-6), (1.0, 1e-12), (4.0, 1e-6), (20.0, 1e-5)]


def test_the_known_standard_deviations() -> None:
    assert 1 / accounting.gaussian_mu(1.0, 1e-6) == pytest.approx(4.2247, abs=1e-4)
    assert 1 / math.sqrt(2 * accounting.zcdp_rho(1.0, 1e-6)) == pytest.approx(4.53, abs=0.01)


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_the_analytic_gaussian_agrees_with_dp_accounting(epsilon: float, delta: float) -> None:
    sigma = 1 / accounting.gaussian_mu(epsilon, delta)
    peer = pld.privacy_loss_mechanism.GaussianPrivacyLoss(sigma, sensitivity=1)
    assert peer.get_delta_for_epsilon(epsilon) <= delta * (1 + 1e-6)
    assert peer.get_delta_for_epsilon(epsilon) >= delta * (1 - 1e-5)


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_the_zcdp_conversion_agrees_with_opendp(epsilon: float, delta: float) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    rho = accounting.zcdp_rho(epsilon, delta)
    sigma = 1 / math.sqrt(2 * rho)
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    measurement: Any = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, sigma))
    assert measurement.map(1.0).epsilon(delta) == pytest.approx(epsilon, rel=2e-3)


def test_zcdp_is_never_tighter_than_the_truth_about_the_gaussian() -> None:
    for mu in (0.05, 0.3, 1.0, 3.0):
        for epsilon in (0.1, 1.0, 5.0):
            assert accounting.zcdp_delta(mu**2 / 2, epsilon) >= accounting.gaussian_delta(mu, epsilon)


@settings(max_examples=quick_or_long(60, 2000))
@given(st.floats(1e-4, 30), st.floats(-14, -1))
def test_budgets_and_costs_are_inverse_and_err_on_the_safe_side(epsilon: float, log_delta: float) -> None:
    delta = 10**log_delta
    mu, rho = accounting.gaussian_mu(epsilon, delta), accounting.zcdp_rho(epsilon, delta)
    assert accounting.gaussian_delta(mu, epsilon) <= delta
    assert accounting.zcdp_delta(rho, epsilon) <= delta
    assert accounting.gaussian_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-5)
    assert accounting.zcdp_epsilon(rho, delta) == pytest.approx(epsilon, rel=1e-5)


@pytest.mark.parametrize("one", [Loss.from_rho(0.02), Loss.from_mu(0.2)])
def test_composing_many_gaussian_releases_is_tighter_than_adding_epsilons(one: Loss) -> None:
    k, delta = 16, 1e-6
    single = Guarantee(one.epsilon(delta / k), delta / k, loss=one)
    total = single
    for _ in range(k - 1):
        total = total + single
    assert total.delta == pytest.approx(delta)
    assert total.epsilon < 0.45 * k * single.epsilon


def test_gaussian_composition_agrees_with_dp_accounting() -> None:
    k, sigma, delta = 10, 8.0, 1e-6
    loss = sum([Loss.from_mu(1 / sigma)] * (k - 1), Loss.from_mu(1 / sigma))
    peer = pld.privacy_loss_distribution.from_gaussian_mechanism(sigma, value_discretization_interval=1e-4)
    assert loss.epsilon(delta) == pytest.approx(peer.self_compose(k).get_epsilon_for_delta(delta), rel=1e-3)


def test_many_small_pure_releases_are_cheaper_as_zcdp() -> None:
    loss = sum([Loss.from_pure(0.05)] * 199, Loss.from_pure(0.05))
    assert loss.epsilon(0.0) == pytest.approx(10)
    assert loss.epsilon(1e-6) < 4


def test_every_part_of_a_loss_adds_up() -> None:
    one, other = Loss(1.0, 0.5, 0.25, 0.125, 2.0, 0.0625), Loss(0.5, 0.125, 0.5, 0.25, 1.0, 0.125)
    assert one + other == Loss(1.5, 0.625, 0.75, 0.375, 3.0, 0.1875)
    assert (Loss.from_rho(0.02) + Loss.from_rho(0.03)).epsilon(1e-6) == Loss.from_rho(0.05).epsilon(1e-6)


def test_mixed_losses_are_never_cheaper_than_their_parts() -> None:
    parts = [Loss.from_pure(0.5), Loss.from_rho(0.01), Loss.from_mu(0.1), Loss.from_epsilon_delta(0.3, 1e-7)]
    total = sum(parts[1:], parts[0])
    for part in parts:
        assert total.epsilon(1e-6) >= part.epsilon(1e-6)
    assert total.epsilon(1e-6) <= sum(part.epsilon(2.5e-7) for part in parts)


@pytest.mark.parametrize("nonsense", [{"pure": -1.0}, {"pure": math.nan}, {"rest_delta": -1e-3}, {"rho": math.inf}])
def test_senseless_losses_are_refused(nonsense: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=next(iter(nonsense))):
        Loss(**nonsense)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-12, 1e-30), (1e-11, 1e-100), (1e-6, 1e-100), (1e-3, 1e-40)])
def test_tiny_budgets_err_on_the_safe_side_too(epsilon: float, delta: float) -> None:
    """Against the integral in 60 digits, where the closed form cancels."""
    mpmath.mp.dps = 60
    mu, e = mpmath.mpf(accounting.gaussian_mu(epsilon, delta)), mpmath.mpf(epsilon)
    phi = mpmath.ncdf
    true = phi(mu / 2 - e / mu) - mpmath.exp(e) * phi(-mu / 2 - e / mu)
    assert true <= mpmath.mpf(delta)


def test_noise_without_delta_buys_nothing() -> None:
    assert Loss.from_rho(0.1).epsilon(0.0) == math.inf
    assert Loss.from_epsilon_delta(1.0, 1e-6).epsilon(1e-7) == math.inf


def test_a_guarantee_cannot_promise_less_than_its_losses_cost() -> None:
    with pytest.raises(ParameterError, match="promise too much"):
        Guarantee(1.0, 1e-6, loss=Loss.from_rho(1.0))


@pytest.mark.parametrize("loss", [Loss.from_mu(0.7), Loss.from_rho(0.02), Loss.from_pure(0.5) + Loss.from_mu(0.2)])
def test_a_claim_is_not_forgiven_what_a_search_cannot_tell(loss: Loss) -> None:
    """An epsilon that is found is too large by at most a part of 1e-9; one that is claimed is never too small."""
    found = loss.epsilon(1e-6)
    assert Guarantee(found, 1e-6, loss=loss).epsilon == found
    with pytest.raises(ParameterError, match="promise too much"):
        Guarantee(found * (1 - 2e-9), 1e-6, loss=loss)


def test_a_budget_is_within_itself_although_a_search_finds_more() -> None:
    loss = Loss.from_rho(accounting.zcdp_rho(1.0, 1e-6))
    assert 1.0 < loss.epsilon(1e-6) < 1 + 2e-9
    assert loss.within(1.0, 1e-6)


def test_adding_guarantees_of_different_kinds_is_at_most_the_sum() -> None:
    kinds = [
        Guarantee(0.3),
        Guarantee(0.5, 1e-7),
        Guarantee(Loss.from_rho(0.001).epsilon(1e-9), 1e-9, loss=Loss.from_rho(0.001)),
        Guarantee(Loss.from_mu(0.7).epsilon(1e-6), 1e-6, loss=Loss.from_mu(0.7)),
    ]
    for a in kinds:
        for b in kinds:
            total = a + b
            assert total.epsilon <= (a.epsilon + b.epsilon) * (1 + 1e-9)
            assert np.isclose(total.delta, a.delta + b.delta)


def test_a_single_loss_costs_its_own_budget_exactly() -> None:
    for epsilon, delta in PAIRS:
        for loss in (
            Loss.from_rho(accounting.zcdp_rho(epsilon, delta)),
            Loss.from_mu(accounting.gaussian_mu(epsilon, delta)),
            Loss.from_pure(epsilon),
            Loss.from_epsilon_delta(epsilon, delta),
        ):
            assert loss.epsilon(delta) == pytest.approx(epsilon, rel=1e-7)
        assert Loss.from_pure(epsilon).epsilon(0.0) == epsilon
        assert Loss.from_epsilon_delta(epsilon, delta).epsilon(delta * 0.99) == math.inf


def true_gaussian_delta(mu: float, epsilon: float) -> Any:
    m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)

    def normal(z: Any) -> Any:
        return mpmath.erfc(-z / mpmath.sqrt(2)) / 2

    return normal(m / 2 - e / m) - mpmath.exp(e) * normal(-m / 2 - e / m)


def test_gaussian_delta_is_never_below_the_truth() -> None:
    """In 100 digits: from tiny to huge mu, and along epsilon = mu^2 / 2 + z mu, where large numbers cancel."""
    rng = np.random.default_rng(0)
    with mpmath.workdps(100):
        for mu in 10 ** rng.uniform(-8, 2.5, 1500):
            for epsilon in (mu * (mu / 2 + rng.uniform(-20, 30)), 10 ** rng.uniform(-10, 4)):
                if epsilon > 0:
                    true = true_gaussian_delta(mu, epsilon)
                    stated = accounting.gaussian_delta(float(mu), float(epsilon))
                    assert stated >= min(true, 1)
                    if true > 1e-20 and mu > 1e-3:
                        assert stated <= true * (1 + 1e-9)


def test_zcdp_delta_is_never_below_the_least_that_the_formula_gives() -> None:
    """At the extremes of a, one rounding used to cost more than the margin."""
    rng = np.random.default_rng(0)
    with mpmath.workdps(40):

        def log_delta(rho: Any, epsilon: Any, log_excess: Any) -> Any:
            e = mpmath.exp(log_excess)
            return e * ((1 + e) * rho - epsilon) - mpmath.log(e) + (1 + e) * mpmath.log(e / (1 + e))

        for _ in range(150):
            rho = float(10 ** rng.uniform(-12, 3))
            epsilon = float(rng.choice([10 ** rng.uniform(-10, 3), rho + rng.uniform(-3, 12) * math.sqrt(rho)]))
            low, high = mpmath.mpf(-14), mpmath.mpf(14) + max(0.0, -math.log(rho))
            golden = (mpmath.sqrt(5) - 1) / 2
            for _ in range(60):  # the logarithm is convex enough for a golden-section search
                a, b = high - golden * (high - low), low + golden * (high - low)
                low, high = (low, b) if log_delta(rho, epsilon, a) < log_delta(rho, epsilon, b) else (a, high)
            least = mpmath.exp(min(0, log_delta(rho, epsilon, (low + high) / 2)))
            if epsilon > 0:
                assert accounting.zcdp_delta(rho, epsilon) >= least


def test_inverses_are_on_the_safe_side_of_the_truth() -> None:
    with mpmath.workdps(100):
        for epsilon in (1e-8, 1e-3, 0.5, 1.0, 20.0, 500.0, 3e4):
            for delta in (1e-100, 1e-30, 1e-9, 1e-6, 0.01, 0.9):
                mu = accounting.gaussian_mu(epsilon, delta)
                assert true_gaussian_delta(mu, epsilon) <= delta
                assert true_gaussian_delta(mu, accounting.gaussian_epsilon(mu, delta)) <= delta
                rho = accounting.zcdp_rho(epsilon, delta)
                assert accounting.zcdp_delta(rho, accounting.zcdp_epsilon(rho, delta)) <= delta


def test_a_delta_too_small_for_floating_point_is_not_zero() -> None:
    assert 0 < accounting.gaussian_delta(0.01, 5.0) <= 1e-290
    assert 0 < accounting.zcdp_delta(1e-6, 5.0) <= 1e-290


def test_sums_with_tiny_rests_are_rounded_outward() -> None:
    """1 + 1e-17 is 1 in floats, and 1e-6 - 1e-23 is 1e-6: both would forget the rest."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        pure, rest, tiny = rng.uniform(0.01, 3), 10 ** rng.uniform(-20, 0), 10 ** rng.uniform(-26, -9)
        exact = Fraction(pure) + Fraction(rest)
        stated = Fraction(Loss(pure=pure, pure_as_rho=pure**2 / 2, rest_epsilon=rest, rest_delta=tiny).epsilon(tiny))
        assert exact <= stated <= exact * Fraction(1 + 1e-15)
        least = Loss(mu_squared=0.0625, rest_delta=tiny).epsilon(1e-6)
        assert Fraction(accounting.gaussian_delta(0.25, least)) <= Fraction(1e-6) - Fraction(tiny)


def two_answers(epsilon: float, at: float) -> float:
    """The delta of randomised response, which is what a pure release can reveal at most."""
    return max(0.0, (math.exp(epsilon) - math.exp(at)) / (1 + math.exp(epsilon)))


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 40.0])
def test_a_pure_release_reveals_no_more_than_a_gaussian_one(epsilon: float) -> None:
    mu = math.sqrt(float(accounting.PI) / 2) * epsilon
    for at in np.linspace(0, epsilon, 50):
        assert two_answers(epsilon, at) <= accounting.gaussian_delta(mu, at) * (1 + 1e-12)
    if epsilon <= 0.5:  # and mu could not be 5% smaller
        assert two_answers(epsilon, 0) > accounting.gaussian_delta(0.95 * mu, 0.0)


def test_pure_releases_beside_gaussian_noise_cost_at_least_what_they_reveal() -> None:
    """Against the exact sum over the answers of k randomised responses, beside one Gaussian."""

    def gaussian(mu: float, epsilon: float) -> float:
        if epsilon >= 0:
            return accounting.gaussian_delta(mu, epsilon)
        return -math.expm1(epsilon) + math.exp(epsilon) * accounting.gaussian_delta(mu, -epsilon)

    gained = 0
    for k, pure, mu in (
        (1, 0.1, 0.001),
        (1, 0.1, 0.24),
        (3, 0.05, 0.24),
        (20, 0.01, 0.24),
        (8, 0.2, 1.0),
        (40, 0.003, 0.06),
    ):
        loss = sum([Loss.from_pure(pure)] * k, Loss.from_mu(mu))
        together = math.sqrt(mu**2 + float(accounting.PI) * loss.pure_as_rho)  # as a ledger counts them
        by_zcdp = accounting.zcdp_epsilon(mu**2 / 2 + loss.pure_as_rho, 1e-6)
        added = k * pure + accounting.gaussian_epsilon(mu, 1e-6)
        gained += accounting.gaussian_epsilon(together, 1e-6) < 0.99 * min(added, by_zcdp)
        yes = math.exp(pure) / (1 + math.exp(pure))
        for epsilon in np.linspace(0, k * pure + 5 * mu, 40):
            true = sum(
                math.comb(k, j) * yes**j * (1 - yes) ** (k - j) * gaussian(mu, epsilon - (2 * j - k) * pure)
                for j in range(k + 1)
            )
            assert accounting.gaussian_delta(together, epsilon) >= true * (1 - 1e-9)
            if 1e-12 < true < 1 and loss.epsilon(true) < math.inf:
                assert loss.epsilon(true) >= epsilon * (1 - 1e-6)
    assert gained >= 2


@pytest.mark.parametrize("number", [np.float32(0.5), np.array(0.5), Fraction(1, 2)])
def test_a_budget_of_another_kind_of_number_is_the_same_budget(number: Any) -> None:
    """NumPy's short floats made all arithmetic as short, and the search for mu never ended."""
    exact = accounting.gaussian_mu(0.5, 1e-6), accounting.zcdp_rho(0.5, 1e-6)
    if not isinstance(number, np.ndarray):  # which no cache takes
        assert (accounting.gaussian_mu(number, 1e-6), accounting.zcdp_rho(number, 1e-6)) == exact
    for stated in (Guarantee(number, 1e-6).epsilon, Loss(mu_squared=number).mu_squared):
        assert type(stated) is float
        assert stated == 0.5
    assert GramRelease(epsilon=number, delta=1e-6).mu == GramRelease(epsilon=0.5, delta=1e-6).mu
