"""Discrete Gaussian noise as rounded Gaussian noise: a Gaussian loss with a slack. Formulas only, no data.

Integers plus discrete Gaussian noise are mu^2 / 2-zCDP, whatever the scale. On a fine grid the noise is almost a
rounded Gaussian, and then the Gaussian curve, which asks for 5 to 8% less noise, holds up to a slack. Everything here
is about ``coordinates`` integers with noise of scales sigma_i >= sigma_0 = resolution / mu, for neighbours whose
integers differ by D with ``sum_i D_i^2 / sigma_i^2 <= mu^2``. The proof is in docs/proofs/gaussian-noise.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

from dpsc import checks
from dpsc.errors import ParameterError
from dpsc.privacy.accounting import Loss, gaussian_mu, zcdp_rho
from dpsc.privacy.exact import safely_above, safely_below

TAU = 1e-30  # the probability that noise is outside the ball of the proof: nothing beside any delta in use
KEPT = (1 - 1e-9, 1 - 1e-4)  # of epsilon and delta for Gaussian noise itself; what is left is for slacks, also others'
_TINY = 1e-300  # an epsilon that underflows counts as this


def discrete_gaussian_slack(mu: float, coordinates: int, resolution: float, tau: float = TAU) -> tuple[float, float]:
    """Return the epsilon and the delta that discrete Gaussian noise may cost beyond the Gaussian curve of mu.

    They are ``a + b`` and ``tau + 2a``, rounded up, with ``a = m / (24 sigma_0^2)``, ``b = r^2 / (24 sigma_0^2) +
    3 m exp(-2 pi^2 sigma_0^2)``, ``r = mu + sqrt(2 m ln 2 + 4 ln(1 / tau))`` and m coordinates. They are infinite for
    sigma_0 < 1, where nothing is proved. Slacks of several releases add up.

    Examples
    --------
    >>> epsilon, delta = discrete_gaussian_slack(0.24, coordinates=2_001_000, resolution=4.0**18)
    >>> f"{epsilon:.1e} {delta:.1e}"
    '2.4e-18 2.0e-18'
    """
    checks.finite_number("mu", mu, above=0)
    m = checks.whole_number("coordinates", coordinates, at_least=1)
    checks.finite_number("resolution", resolution, above=0)
    if mu > resolution:
        return math.inf, math.inf
    precision = mu / resolution  # 1 / sigma_0
    radius = mu + math.sqrt(2 * m * math.log(2) + 4 * math.log(1 / tau))
    a = m * precision * precision / 24
    angle = math.pi / precision
    b = radius * precision * radius * precision / 24 + 3 * m * math.exp(-2 * angle * angle)
    return safely_above(a + b) + _TINY, safely_above(tau + 2 * a)


def discrete_gaussian_loss(mu: float, coordinates: int, resolution: float) -> Loss:
    """Return the loss of a release with discrete Gaussian noise: Gaussian with its slack, or zCDP for sigma_0 < 1."""
    epsilon, delta = discrete_gaussian_slack(mu, coordinates, resolution)
    if math.isinf(epsilon):
        return Loss.from_rho(mu**2 / 2)
    return Loss(mu_squared=mu**2, rest_epsilon=epsilon, rest_delta=delta)


def released_mu(epsilon: float, delta: float) -> float:
    """Return the mu that (epsilon, delta) pays for beside a small part of both that is kept for slacks."""
    return gaussian_mu(epsilon * KEPT[0], delta * KEPT[1])


@lru_cache(maxsize=1024)
def discrete_gaussian_budget(epsilon: float, delta: float, coordinates: int, resolution: float) -> Loss:
    """Return the loss with the least noise that (epsilon, delta) pays for; delta must be above 0.

    It is Gaussian with its slack, or zCDP where the grid is so coarse that the slack takes more than the curve gives.
    In both cases the noise needs ``sigma_0 = resolution / sqrt(loss.mu_squared + 2 * loss.rho)``. The slack is charged
    for the mu of no slack at all, which is a little larger; so the mu of a release is never above
    ``gaussian_mu(epsilon, delta)``.

    Examples
    --------
    >>> loss = discrete_gaussian_budget(1.0, 1e-6, coordinates=465, resolution=4.0**18)
    >>> round(loss.mu_squared**-0.5, 4)  # the noise at resolution 1; zCDP would ask for 4.53
    4.2247
    """
    epsilon, delta = checks.epsilon("epsilon", epsilon), checks.delta("delta", delta)
    if delta == 0:
        raise ParameterError("Gaussian noise needs delta above 0.")
    by_zcdp = Loss.from_rho(zcdp_rho(epsilon, delta))
    most = released_mu(epsilon, delta)
    slack = discrete_gaussian_slack(most, coordinates, resolution)
    if slack[0] >= epsilon or slack[1] >= delta:
        return by_zcdp
    mu = min(most, gaussian_mu(safely_below(epsilon - slack[0]), safely_below(delta - slack[1])))
    return discrete_gaussian_loss(mu, coordinates, resolution) if mu**2 > 2 * by_zcdp.rho else by_zcdp
