"""The proof of docs/proofs/gaussian-noise.md, step by step: in 60 digits, and against the exact law of the noise."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting import pld
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsc import Guarantee, ParameterError
from dpsc.privacy.accounting import Loss, gaussian_delta, gaussian_mu, zcdp_epsilon, zcdp_rho
from dpsc.privacy.rounded_gaussian import (
    TAU,
    discrete_gaussian_budget,
    discrete_gaussian_loss,
    discrete_gaussian_slack,
    released_mu,
)
from dpsc.types import Array
from tests.soak import quick_or_long

GRID = 4.0**18
COORDINATES = 2000 * 2001 // 2
SIGMAS = [1, 1.25, 2, 5, 30, 1e3, 1e6, 2e11]


def log_ratio(x: int, sigma: Any) -> Any:
    """log p(x) - log q(x): the discrete Gaussian against the rounded one, from their definitions."""
    sigma = mpmath.mpf(sigma)
    if sigma < 50:
        sides = range(1, int(40 * sigma))  # beyond, terms are below e^-760
        total = 1 + 2 * mpmath.fsum(mpmath.exp(-(k**2) / (2 * sigma**2)) for k in sides)
    else:  # Poisson summation; the next term is below e^-49000
        total = sigma * mpmath.sqrt(2 * mpmath.pi)
    low, high = (abs(x) - mpmath.mpf("0.5")) / sigma, (abs(x) + mpmath.mpf("0.5")) / sigma
    rounded = (mpmath.erfc(low / mpmath.sqrt(2)) - mpmath.erfc(high / mpmath.sqrt(2))) / 2
    return -(mpmath.mpf(x) ** 2) / (2 * sigma**2) - mpmath.log(total) - mpmath.log(rounded)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_every_integer_is_almost_as_likely_as_under_the_rounded_gaussian(sigma: float) -> None:
    rng = np.random.default_rng(0)
    scales = [0, 1e-9, 0.01, 0.5, 1, 2, 5, 9, 15, *rng.uniform(0, 20, quick_or_long(10, 300))]
    with mpmath.workdps(60):
        s = mpmath.mpf(sigma)
        above, other = 1 / (24 * s**2), 3 * mpmath.exp(-2 * mpmath.pi**2 * s**2)
        for x in [1, 2, *(int(c * sigma) for c in scales)]:
            below = mpmath.mpf(x) ** 2 / (24 * s**4) + other
            assert -below <= log_ratio(x, sigma) <= above
        if sigma >= 30:  # and no constant could be 10% smaller
            assert log_ratio(0, sigma) > 0.99 * above
            assert log_ratio(int(20 * sigma), sigma) < -0.9 * (20**2 / (24 * s**2))


def test_poisson_summation_is_what_the_sum_is() -> None:
    with mpmath.workdps(60):
        for sigma in (1, 1.25, 2, 5):
            s = mpmath.mpf(sigma)
            by_sum = 1 + 2 * mpmath.fsum(mpmath.exp(-(k**2) / (2 * s**2)) for k in range(1, 40 * math.ceil(sigma)))
            waves = mpmath.fsum(mpmath.exp(-2 * mpmath.pi**2 * s**2 * j**2) for j in range(1, 8))
            assert abs(by_sum / (s * mpmath.sqrt(2 * mpmath.pi) * (1 + 2 * waves)) - 1) < 1e-50
            assert 0 < mpmath.log1p(2 * waves) <= 3 * mpmath.exp(-2 * mpmath.pi**2 * s**2)


@pytest.mark.parametrize("sigma", [1, 1.25, 2, 5, 30])
def test_squared_noise_has_the_moment_that_the_tail_bound_uses(sigma: float) -> None:
    noise = np.arange(-60 * math.ceil(sigma), 60 * math.ceil(sigma) + 1)
    law = np.exp(-(noise**2) / (2 * sigma**2))
    moment = np.sum(np.exp(-(noise**2) / (4 * sigma**2))) / np.sum(law)
    assert 0.999 * math.sqrt(2) < moment <= math.sqrt(2) * (1 + 1e-14)


def formula(mu: Any, m: int, resolution: Any, tau: Any) -> tuple[Any, Any]:
    """The slack as the proof states it, in mpmath's precision."""
    mu, resolution, tau = mpmath.mpf(mu), mpmath.mpf(resolution), mpmath.mpf(tau)
    sigma = resolution / mu
    a = m / (24 * sigma**2)
    r = mu + mpmath.sqrt(2 * m * mpmath.log(2) + 4 * mpmath.log(1 / tau))
    return a + r**2 / (24 * sigma**2) + 3 * m * mpmath.exp(-2 * mpmath.pi**2 * sigma**2), tau + 2 * a


@settings(max_examples=quick_or_long(60, 5000))
@given(
    st.floats(-6, 3), st.sampled_from([1, 2, 3, 465, COORDINATES]), st.floats(0, 16), st.sampled_from([TAU, 1e-3, 1e-9])
)
def test_the_slack_is_the_formula_rounded_up(log_mu: float, m: int, log_sigma: float, tau: float) -> None:
    mu = 10**log_mu
    resolution = mu * 10**log_sigma
    stated = discrete_gaussian_slack(mu, m, resolution, tau)
    if mu <= resolution:
        with mpmath.workdps(60):
            for float_, true in zip(stated, formula(mu, m, resolution, tau), strict=True):
                assert true <= float_ <= true * (1 + mpmath.mpf(10) ** -11) + mpmath.mpf(10) ** -299


def test_a_scale_below_one_has_no_proof_and_is_zcdp() -> None:
    assert discrete_gaussian_slack(2.0, 1, 1.999) == (math.inf, math.inf)
    assert discrete_gaussian_slack(2.0, 1, 2.0) < (math.inf, math.inf)
    assert discrete_gaussian_loss(2.0, 1, 1.999) == Loss.from_rho(2.0)


def losses(sigmas: list[float], shift: list[int]) -> tuple[Array, Array]:
    """The law of the privacy loss of integers with independent discrete Gaussian noise that move by a shift."""
    loss, law = np.zeros(1), np.ones(1)
    for sigma, move in zip(sigmas, shift, strict=True):
        noise = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
        p = np.exp(-(noise**2) / (2 * sigma**2))
        loss = np.add.outer(loss, (move**2 - 2 * move * noise) / (2 * sigma**2)).ravel()
        law = np.multiply.outer(law, p / p.sum()).ravel()
    return loss, law


def true_delta(sigmas: list[float], shift: list[int], epsilon: float) -> float:
    """The smallest delta at an epsilon: the sum over outcomes of (p - e^epsilon p')+."""
    loss, law = losses(sigmas, shift)
    return float(np.sum(law * np.clip(-np.expm1(epsilon - loss), 0, None)))


CASES = [  # scales and shift; the last two have scales that differ, as a Gram release has
    ([1.0], [1]),
    ([1.0], [4]),
    ([2.0], [1]),
    ([5.0], [1]),
    ([5.0], [15]),
    ([20.0], [7]),
    ([100.0], [100]),
    ([600.0], [1]),
    ([1.0, 1.0], [1, 1]),
    ([5.0, 5.0], [2, 1]),
    ([8.0, 8.0], [8, 3]),
    ([7.0, 5.0], [3, 0]),
    ([30.0, 21.3], [9, 20]),
]
TAUS = [0.1, 1e-2, 1e-3, 1e-5, 1e-8, 1e-12, TAU]


@pytest.mark.parametrize(("sigmas", "shift"), CASES)
def test_no_pair_is_claimed_that_the_exact_law_breaks(sigmas: list[float], shift: list[int]) -> None:
    """Whatever tau: the claim is compared with the exact sum over all outcomes, in one and two dimensions."""
    mu = math.sqrt(sum((d / s) ** 2 for d, s in zip(shift, sigmas, strict=True)))
    slacks = [discrete_gaussian_slack(mu, len(sigmas), min(sigmas) * mu, tau) for tau in TAUS]
    loss, law = losses(sigmas, shift)
    compared = 0
    for epsilon in np.linspace(0, mu**2 / 2 + 6 * mu, quick_or_long(60, 600)):
        true = float(np.sum(law * np.clip(-np.expm1(epsilon - loss), 0, None)))
        for slack_epsilon, slack_delta in slacks:
            if epsilon >= slack_epsilon:
                assert true <= gaussian_delta(mu, epsilon - slack_epsilon) + slack_delta
                compared += 1
    assert compared > 20


def test_slacks_of_several_releases_add_up() -> None:
    """Two releases of one number each, with grids of their own, against the exact law of both."""
    sigmas, shift = [15.0, 30.0], [8, 25]
    mus = [d / s for d, s in zip(shift, sigmas, strict=True)]
    loss, law = losses(sigmas, shift)
    for tau in TAUS:
        slacks = [discrete_gaussian_slack(mu, 1, d, tau) for mu, d in zip(mus, shift, strict=True)]
        slack_epsilon, slack_delta = (sum(each) for each in zip(*slacks, strict=True))
        for epsilon in np.linspace(slack_epsilon, 7, 30):
            claimed = gaussian_delta(math.hypot(*mus), epsilon - slack_epsilon) + slack_delta
            assert float(np.sum(law * np.clip(-np.expm1(epsilon - loss), 0, None))) <= claimed


def test_without_the_slack_the_claim_would_be_false() -> None:
    for sigmas, shift, least in (([5.0], [1], 1.04), ([5.0, 5.0], [1, 1], 1.02), ([20.0], [20], 1.002)):
        mu = math.hypot(*shift) / sigmas[0]
        epsilons = np.linspace(0, mu**2 / 2 + 5 * mu, 200)
        worst = max(true_delta(sigmas, shift, e) / gaussian_delta(mu, e) for e in epsilons)
        assert worst > least


def test_the_slack_vanishes_with_the_square_of_the_scale() -> None:
    one = discrete_gaussian_slack(0.3, 465, 4.0**8)
    other = discrete_gaussian_slack(0.3, 465, 4.0**9)
    assert one[0] / other[0] == pytest.approx(16)
    assert one[1] / other[1] == pytest.approx(16)


@pytest.mark.parametrize(("epsilon", "less"), [(0.1, 0.080), (1.0, 0.068), (8.0, 0.053)])
@pytest.mark.parametrize("T", [2, 30, 2000])
def test_noise_is_smaller_than_by_zcdp(epsilon: float, less: float, T: int) -> None:
    loss = discrete_gaussian_budget(epsilon, 1e-6, T * (T + 1) // 2, GRID)
    scale, by_zcdp = 1 / math.sqrt(loss.mu_squared + 2 * loss.rho), 1 / math.sqrt(2 * zcdp_rho(epsilon, 1e-6))
    assert 1 - scale / by_zcdp == pytest.approx(less, abs=5e-4)
    assert (loss.rho, loss.pure) == (0, 0)
    assert 0 < loss.rest_epsilon < 1e-15
    assert 0 < loss.rest_delta < 1e-15


def test_a_coarse_grid_keeps_zcdp_and_a_middling_one_pays_for_its_slack() -> None:
    scales = []
    for bits in range(4, 27):
        loss = discrete_gaussian_budget(1.0, 1e-6, COORDINATES, 4.0**bits)
        assert (loss.rho == 0) == (bits >= 9), bits
        scales.append(1 / math.sqrt(loss.mu_squared + 2 * loss.rho))
    assert scales == sorted(scales, reverse=True)
    assert scales[0] == 1 / math.sqrt(2 * zcdp_rho(1.0, 1e-6))
    assert scales[-1] == 1 / released_mu(1.0, 1e-6) == pytest.approx(1 / gaussian_mu(1.0, 1e-6), rel=1e-5)
    assert 1.0001 * scales[-1] < scales[5] < 0.99 * scales[0]  # 9 bits


@settings(max_examples=quick_or_long(50, 3000), deadline=None)
@given(st.floats(-4, 3), st.floats(-25, -0.5), st.sampled_from([1, 3, 465, COORDINATES]), st.sampled_from(range(4, 27)))
def test_a_budget_pays_for_the_loss_that_it_is_given(log_epsilon: float, log_delta: float, m: int, bits: int) -> None:
    epsilon, delta = 10**log_epsilon, 10**log_delta
    loss = discrete_gaussian_budget(epsilon, delta, m, 4.0**bits)
    assert loss.epsilon(delta) <= epsilon * (1 + 1e-8)
    assert Guarantee(epsilon, delta, loss=loss).epsilon == epsilon
    precision = math.sqrt(loss.mu_squared + 2 * loss.rho)
    assert math.sqrt(2 * zcdp_rho(epsilon, delta)) <= precision * (1 + 1e-15)
    assert precision <= max(gaussian_mu(epsilon, delta), math.sqrt(2 * zcdp_rho(epsilon, delta)))
    if loss.rho == 0:
        slack = discrete_gaussian_slack(math.sqrt(loss.mu_squared), m, 4.0**bits)
        assert (loss.rest_epsilon, loss.rest_delta) == pytest.approx(slack, rel=1e-11, abs=0)


def test_a_discrete_gaussian_that_is_paid_for_keeps_its_promise_exactly() -> None:
    """A budget on small grids, and the exact law of one number with the noise that it pays for."""
    gaussian = 0
    promises = [(1.0, 1e-3, 16), (1.0, 1e-6, 60), (0.5, 1e-4, 9), (3.0, 1e-6, 40), (8.0, 1e-2, 30)]
    for epsilon, delta, resolution in promises:
        loss = discrete_gaussian_budget(epsilon, delta, 1, float(resolution))
        sigma = resolution / math.sqrt(loss.mu_squared + 2 * loss.rho)
        assert true_delta([sigma], [resolution], epsilon) <= delta
        assert true_delta([0.88 * sigma], [resolution], epsilon) > delta
        gaussian += loss.rho == 0
    assert gaussian >= 3


def test_releases_add_up_as_one_of_the_whole() -> None:
    one = discrete_gaussian_budget(1.0, 1e-6, COORDINATES, GRID)
    half = discrete_gaussian_loss(math.sqrt(one.mu_squared / 2), COORDINATES, GRID)
    both = half + half
    assert both.mu_squared == pytest.approx(one.mu_squared, rel=1e-15)
    assert both.rest_epsilon == pytest.approx(one.rest_epsilon, rel=1e-3)
    assert both.epsilon(1e-6) == pytest.approx(1.0, rel=1e-5)
    assert Guarantee(1.0, 1e-6, loss=both).delta == 1e-6


def test_compositions_agree_with_dp_accounting() -> None:
    sigma, move, k = 40_000, 8_000, 6
    peer = pld.privacy_loss_distribution.from_discrete_gaussian_mechanism(
        sigma, sensitivity=move, value_discretization_interval=1e-4
    ).self_compose(k)
    one = discrete_gaussian_loss(move / sigma, 1, move)
    loss = sum([one] * (k - 1), one)
    for delta in (1e-3, 1e-5, 1e-7):
        true = peer.get_epsilon_for_delta(delta)
        assert true * (1 - 1e-3) <= loss.epsilon(delta) <= true * (1 + 1e-3)
        assert loss.epsilon(delta) < zcdp_epsilon(loss.mu_squared / 2, delta) * 0.97


def test_mixtures_that_were_fixed_beforehand_use_the_better_of_both_readings() -> None:
    """Discrete Gaussian noise is mu^2 / 2-zCDP as well, which is what adds up with a rho."""
    gram = discrete_gaussian_budget(1.0, 1e-6, COORDINATES, GRID)
    rho = zcdp_rho(0.3, 1e-6)
    assert (gram + Loss.from_rho(rho)).epsilon(1e-6) == pytest.approx(zcdp_epsilon(gram.mu_squared / 2 + rho, 1e-6))
    assert (gram + Loss.from_pure(0.1)).epsilon(1e-6) == pytest.approx(1.1, rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((0.0, 1, 1.0), "mu"), ((1.0, 0, 1.0), "coordinates"), ((1.0, 1, 0.0), "resolution"), ((1.0, 1, math.inf), "res")],
)
def test_senseless_slacks_are_refused_by_name(arguments: tuple[float, int, float], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        discrete_gaussian_slack(*arguments)


def test_gaussian_noise_without_delta_is_refused() -> None:
    with pytest.raises(ParameterError, match="delta"):
        discrete_gaussian_budget(1.0, 0.0, 1, GRID)
