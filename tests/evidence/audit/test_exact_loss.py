"""Exact privacy losses agree with other implementations, and with what is known of the printed objective."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import pld

from dpsc.evidence.audit import measure
from dpsc.evidence.audit.broken import printed_objective
from dpsc.evidence.audit.case import Effort, Losses
from dpsc.privacy import accounting
from dpsc.types import Array
from tests.soak import quick_or_long


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1.0, 1e-6), (2.0, 1e-9), (4.0, 1e-6)])
def test_the_gaussian_curve_agrees_with_two_others(epsilon: float, delta: float) -> None:
    mu = accounting.gaussian_mu(epsilon, delta)
    assert measure.epsilon_at(delta, lambda e: measure.gaussian_delta(mu, e)) == pytest.approx(epsilon, rel=1e-6)
    peer = pld.privacy_loss_mechanism.GaussianPrivacyLoss(1 / mu, sensitivity=1)
    assert measure.gaussian_delta(mu, epsilon) == pytest.approx(peer.get_delta_for_epsilon(epsilon), rel=1e-4)
    tighter = measure.epsilon_at(delta, lambda e: measure.gaussian_delta(mu / 0.9, e))
    assert tighter > 1.08 * epsilon  # a scale 10% too small shows


def test_discrete_tables_are_the_continuous_laws_when_fine_and_opendps_when_coarse() -> None:
    laplace = measure.discrete_tables("laplace", 300, 300.0)
    assert measure.table_epsilon(*laplace, 0.0) == pytest.approx(1.0, rel=1e-9)
    peer = pld.privacy_loss_mechanism.LaplacePrivacyLoss(1.0, sensitivity=1)
    assert measure.table_delta(*laplace, 0.5) == pytest.approx(peer.get_delta_for_epsilon(0.5), rel=1e-2)
    gaussian = measure.discrete_tables("gaussian", 300, 1300.0)
    curve = measure.epsilon_at(1e-6, lambda e: measure.gaussian_delta(300 / 1300, e))
    assert measure.table_epsilon(*gaussian, 1e-6) == pytest.approx(curve, rel=1e-3)
    coarse = measure.discrete_tables("laplace", 1, 0.7)
    assert np.exp(coarse[0]).sum() == pytest.approx(1.0)
    assert measure.table_epsilon(*coarse, 0.0) == pytest.approx(1 / 0.7)
    with pytest.raises(ValueError, match="too wide"):
        measure.discrete_tables("gaussian", 1, 1e9)


def losses_delta(losses: Array, epsilon: float) -> float:
    """Estimate delta(epsilon) from privacy losses of outputs drawn from the first of two laws."""
    return float(np.mean(np.maximum(-np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)))


@pytest.mark.statistical
def test_sampled_losses_show_the_truth_and_not_more() -> None:
    mu, delta = 0.8, 1e-3
    rng = np.random.default_rng(0)
    losses = mu**2 / 2 + mu * rng.normal(size=400_000)
    true = measure.epsilon_at(delta, lambda e: measure.gaussian_delta(mu, e))
    shown = measure.from_losses(losses, delta=delta, error=1e-4).epsilon
    assert 0.75 * true < shown <= true
    assert losses_delta(losses, 1.0) == pytest.approx(measure.gaussian_delta(mu, 1.0), rel=0.05)
    assert measure.from_losses(np.zeros(1000), delta=0.0, error=1e-4).epsilon == 0


# n, epsilon1, delta and the delta(epsilon1) that printed DPSC_obj really has, the worse direction, T0 = lambda = 10
KNOWN = [
    (10, 1.0, 1e-6, 1.3e-3),
    (10, 5.0, 1e-6, 0.04),
    (10, 10.0, 0.0, 0.38),
    (10, 50.0, 1e-6, 0.13),
    (100, 10.0, 0.0, 0.81),
    (100, 50.0, 0.0, 0.57),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "epsilon", "delta", "known"), KNOWN)
def test_the_printed_objective_loses_what_is_known(n: int, epsilon: float, delta: float, known: float) -> None:
    case = printed_objective(epsilon, delta, n)
    runs = 20_000 if n == 100 else 200_000
    losses = [a.losses(Effort(runs, 1, seed=0)) for a in case.attacks if isinstance(a, Losses)]
    assert max(losses_delta(sample, epsilon) for sample in losses) == pytest.approx(known, rel=0.12)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_losses_through_the_bijection_are_likelihood_ratios(delta: float) -> None:
    """The mean of e^-L is one for a likelihood ratio, whatever the laws are; a scale 10% off in L breaks that."""
    rng = np.random.default_rng(0)
    n, T0, nu, beta = 3, 4, 6.0, 9.0
    X = rng.uniform(-1, 1, (n, T0))
    neighbour = X.copy()
    neighbour[0] = rng.uniform(-1, 1, T0)
    y = np.ones(T0)
    law = "gaussian" if delta else "laplace"
    size = quick_or_long(100_000, 1_000_000), n
    b = beta * (rng.normal(size=size) if delta else rng.laplace(size=size))

    def off(losses: Array) -> float:
        """How many standard errors the mean of e^-L is from one."""
        terms = np.exp(-losses)
        return abs(float(terms.mean()) - 1) / (float(terms.std()) / math.sqrt(len(terms)))

    for losses in (measure.ball_losses, measure.unconstrained_losses):
        assert off(losses(X, neighbour, y, nu, b, beta, law)) < 4.5
        assert off(losses(X, neighbour, y, nu, b, 0.9 * beta, law)) > 4.5
