"""What privacy losses cost: zCDP and Gaussian curves, and their (epsilon, delta) pairs. Formulas only, no data.

The conversions round outward: a returned epsilon or delta is never smaller, a returned budget never larger, than what
the formula allows (tests compare with 60 digits). Sums and squares of losses are rounded to the nearest float, a
relative error of 1e-16 each, so that two halves are one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr

from dpsc import checks

_SLACK = 1e-9  # the relative precision of the searches below, always rounded to the safe side
_ROUNDING = 2.0**-50  # above the relative error of the few operations in a formula below
_OF_SUMS = 2.0**-48  # above the relative error of a sum of some losses
_TINY = 1e-300  # a delta that underflows counts as this
Condition = Callable[[float], bool]
PI = Fraction(31416, 10000)  # at least pi


@dataclass(frozen=True)
class Loss:
    """The privacy losses of any number of releases from the same donors, by kind, so that they add up tightly.

    Attributes
    ----------
    pure : float
        The sum of the epsilons of pure releases.
    pure_as_rho : float
        The same releases as zCDP: the sum of epsilon^2 / 2 (Bun and Steinke 2016, Proposition 1.4).
    rho : float
        The sum of the rhos of releases that are zCDP (discrete Gaussian noise).
    mu_squared : float
        The sum of mu^2 of releases that are exactly a Gaussian mechanism, mu = sensitivity / sigma, or that are one
        but for a slack, which is in the rest (discrete Gaussian noise: :mod:`dpsc.privacy.rounded_gaussian`). All of
        them are mu^2 / 2-zCDP.
    rest_epsilon, rest_delta : float
        The sums over releases for which nothing finer than (epsilon, delta) is known, and those of the slacks.
    """

    pure: float = 0.0
    pure_as_rho: float = 0.0
    rho: float = 0.0
    mu_squared: float = 0.0
    rest_epsilon: float = 0.0
    rest_delta: float = 0.0

    @classmethod
    def from_pure(cls, epsilon: float) -> Loss:
        """Return the loss of a release that is (epsilon, 0)-differentially private."""
        return cls(pure=epsilon, pure_as_rho=epsilon**2 / 2)

    @classmethod
    def from_rho(cls, rho: float) -> Loss:
        """Return the loss of a release that is rho-zCDP."""
        return cls(rho=rho)

    @classmethod
    def from_mu(cls, mu: float) -> Loss:
        """Return the loss of a Gaussian mechanism with sensitivity mu times its standard deviation."""
        return cls(mu_squared=mu**2)

    @classmethod
    def from_epsilon_delta(cls, epsilon: float, delta: float) -> Loss:
        """Return the loss of a release for which only (epsilon, delta) is known."""
        return cls.from_pure(epsilon) if delta == 0 else cls(rest_epsilon=epsilon, rest_delta=delta)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, checks.finite_number(name, value, at_least=0))

    def __add__(self, other: Loss) -> Loss:
        """Compose, adaptively: all six sums add up (for mu see Dong, Roth and Su 2022, Corollary 3.3)."""
        return Loss(
            self.pure + other.pure,
            self.pure_as_rho + other.pure_as_rho,
            self.rho + other.rho,
            self.mu_squared + other.mu_squared,
            self.rest_epsilon + other.rest_epsilon,
            self.rest_delta + other.rest_delta,
        )

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon we can prove at this delta, infinite if none.

        The best of several theorems, for losses that were fixed beforehand. If kinds or sizes are chosen after earlier
        releases were seen, the best of several theorems is none; that is what the pockets of a ledger are for.

        Examples
        --------
        >>> once = Loss.from_rho(0.02)
        >>> ten_times = sum([once] * 9, once)
        >>> round(once.epsilon(1e-6), 2), round(ten_times.epsilon(1e-6), 2)
        (0.9, 3.13)
        """
        left = _minus(delta, self.rest_delta)
        if left < 0:
            return math.inf
        noisy = self.rho + self.mu_squared / 2
        if noisy == 0:
            ways = [self.pure]
            if left > 0 and self.pure_as_rho > 0:
                ways.append(zcdp_epsilon(self.pure_as_rho, left))
        elif left == 0:
            return math.inf
        else:
            ways = [_plus(self.pure, zcdp_epsilon(noisy, left)), zcdp_epsilon(self.pure_as_rho + noisy, left)]
            if self.rho == 0:
                ways.append(_plus(self.pure, gaussian_epsilon(math.sqrt(self.mu_squared), left)))
        return _plus(self.rest_epsilon, min(ways))

    def within(self, epsilon: float, delta: float) -> bool:
        """Return whether (epsilon, delta) is proved, by a theorem at this very epsilon: no search makes it smaller.

        Only what rounding of sums may have added is forgiven: two halves are one.

        Examples
        --------
        >>> loss = Loss.from_mu(0.2)
        >>> loss.within(loss.epsilon(1e-6), 1e-6), loss.within(loss.epsilon(1e-6) * (1 - 2e-9), 1e-6)
        (True, False)
        """
        epsilon *= 1 + _OF_SUMS
        if self.epsilon(delta) <= epsilon:
            return True
        left, noisy = _minus(delta, self.rest_delta), self.rho + self.mu_squared / 2
        together = _minus(epsilon, self.rest_epsilon)
        beside = _minus(together, self.pure)
        if min(left, self.pure_as_rho + noisy, together) <= 0:
            return False
        ways = [zcdp_delta(self.pure_as_rho + noisy, together)]
        if beside > 0:
            ways.append(zcdp_delta(noisy, beside))
            if self.rho == 0:
                ways.append(gaussian_delta(math.sqrt(self.mu_squared), beside))
        return min(ways) <= left


def _plus(one: float, other: float) -> float:
    """Return the sum, never rounded down."""
    total = one + other
    if math.isinf(total) or Fraction(total) >= Fraction(one) + Fraction(other):
        return total
    return math.nextafter(total, math.inf)


def _minus(one: float, other: float) -> float:
    """Return the difference, never rounded up."""
    difference = one - other
    return (
        difference if Fraction(difference) <= Fraction(one) - Fraction(other) else math.nextafter(difference, -math.inf)
    )


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Return a delta such that rho-zCDP implies (epsilon, delta).

    Canonne, Kamath and Steinke (2020), Proposition 7 with rho-zCDP's Rényi bound: for every a > 1,
    ``delta <= exp((a-1)(a rho - epsilon)) / (a-1) * (1 - 1/a)^a``. Each a gives a valid delta, so the search for a good
    one needs no proof. With e = a - 1 no term cancels; their sizes bound the rounding, which is added.
    """
    if rho == 0:
        return 0.0

    def log_delta(log_excess: float) -> float:
        e = math.exp(log_excess)
        gained, paid, log_e, last = e * (1 + e) * rho, e * epsilon, math.log(e), (1 + e) * math.log1p(1 / e)
        return gained - paid - log_e - last + _ROUNDING * (1 + gained + paid + abs(log_e) + last)

    best = minimize_scalar(log_delta, bounds=(-12, 12 + max(0.0, -math.log(rho))), method="bounded")
    return min(1.0, math.exp(min(0.0, float(best.fun))) + _TINY)


@lru_cache(maxsize=1024)
def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon such that rho-zCDP implies (epsilon, delta), for delta in (0, 1)."""
    loose = rho + 2 * math.sqrt(rho * math.log(1 / delta))  # Bun and Steinke 2016, Proposition 1.3
    return smallest(lambda epsilon: zcdp_delta(rho, epsilon) <= delta, loose * (1 + _SLACK), precision=_SLACK)


@lru_cache(maxsize=1024)
def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return the rho that (epsilon, delta) pays for.

    Examples
    --------
    >>> round((2 * zcdp_rho(1.0, 1e-6)) ** -0.5, 2)  # the standard deviation for sensitivity 1
    4.53
    """
    epsilon, delta = float(epsilon), float(delta)  # NumPy's shorter floats would make all of it as short
    return largest(lambda rho: zcdp_delta(rho, epsilon) <= delta, start=epsilon**2 / 2, precision=_SLACK)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of a Gaussian mechanism, mu = sensitivity / sigma (Balle and Wang 2018, Theorem 8).

    What rounding may have taken away is added: the arguments x and -s of the normal distribution are wrong by at most
    ``3 * 2^-53 s``, and the logarithm of the distribution changes at x by at most 1 + |x| for each unit.
    """
    if mu == 0:
        return 0.0
    x, s = mu / 2 - epsilon / mu, mu / 2 + epsilon / mu
    log_first, log_second = float(log_ndtr(x)), float(log_ndtr(-s))
    first, second = math.exp(log_first), math.exp(epsilon + log_second)
    lost = (1 + abs(log_first) + (1 + abs(x)) * s) * first + (1 + epsilon + abs(log_second) + (1 + s) * s) * second
    return min(1.0, max(0.0, first - second) + _ROUNDING * lost + _TINY)


@lru_cache(maxsize=1024)
def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon of a Gaussian mechanism at delta in (0, 1)."""
    loose = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    return smallest(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, loose * (1 + _SLACK), precision=_SLACK)


@lru_cache(maxsize=1024)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the mu that (epsilon, delta) pays for; the noise needs standard deviation sensitivity / mu.

    Examples
    --------
    >>> round(1 / gaussian_mu(1.0, 1e-6), 4)
    4.2247
    """
    epsilon, delta = float(epsilon), float(delta)  # as above
    return largest(lambda mu: gaussian_delta(mu, epsilon) <= delta, start=epsilon, precision=_SLACK)


def smallest(holds: Condition, upper: float, *, precision: float) -> float:
    """Return about the first point at which an increasing condition holds; it must hold at ``upper``."""
    if holds(0.0):
        return 0.0
    lower = 0.0
    while upper - lower > precision * upper:
        middle = (lower + upper) / 2
        lower, upper = (lower, middle) if holds(middle) else (middle, upper)
    return upper


def largest(holds: Condition, start: float, *, precision: float, known: float | None = None) -> float:
    """Return about the last point at which a decreasing condition holds.

    ``known`` is a point where it holds. It may be far below the last one, so the search from there goes by ratios.

    Examples
    --------
    >>> round(largest(lambda x: x**2 <= 2, start=1.0, precision=1e-9), 6)
    1.414214
    """
    lower, upper = known, start
    while holds(upper):
        lower, upper = upper, 2 * upper
    if lower is None:
        lower = upper / 2
        while not holds(lower):
            lower, upper = lower / 2, lower
    while upper - lower > precision * upper:
        middle = (lower + upper) / 2 if known is None else math.sqrt(lower * upper)
        lower, upper = (middle, upper) if holds(middle) else (lower, middle)
    return lower
