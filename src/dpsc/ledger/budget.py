"""What booked guarantees cost together, and what is still affordable. Pure accounting: no database, no data.

A request is accepted if one of two theorems shows that everything booked stays within (epsilon, delta): the curves of
:class:`dpsc.privacy.accounting.Loss`, or plain addition. Sums are exact and rounded up; plain sums add the decimal
numbers as they were written, so that ten times 0.1 is 1. Two losses may be known for an old entry; then the curves of
both sums are tried. More entries never cost less, because each way is a sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpsc.privacy.accounting import Loss, gaussian_epsilon, gaussian_mu, zcdp_epsilon, zcdp_rho
from dpsc.privacy.guarantee import Guarantee
from dpsc.privacy.rounded_gaussian import discrete_gaussian_loss
from dpsc.privacy.searching import largest

GRAM_COORDINATES = 2000 * 2001 // 2  # of a Gram release with as many periods as it may have
GRAM_BITS = 18  # the usual grid of a Gram release
_DIGITS = 5  # of an answer to "how much is left?", rounded down
_PRECISION = 1e-6


@dataclass(frozen=True)
class Cost:
    """The part of a guarantee that adds up. A stored one is not checked again, because that would take a search.

    ``second`` is what the same release costs by a second theorem; one of the two may add up better with others.
    """

    epsilon: float
    delta: float
    loss: Loss
    second: Loss | None = None

    @classmethod
    def of(cls, guarantee: Guarantee) -> Cost:
        """Return the cost of a guarantee."""
        return cls(float(guarantee.epsilon), float(guarantee.delta), guarantee.loss)

    @classmethod
    def of_json(cls, plain: Mapping[str, Any], second: Loss | None = None) -> Cost:
        """Read the cost of a stored guarantee."""
        return cls(float(plain["epsilon"]), float(plain["delta"]), Loss(**plain["loss"]), second)


@dataclass(frozen=True)
class Charge:
    """A cost and the donors it concerns: those of one partition, or all of them (None)."""

    cost: Cost
    partition: str | None = None


@dataclass(frozen=True)
class Budget:
    """What all releases of a data set may cost together."""

    epsilon: float
    delta: float

    def allows(self, costs: Sequence[Cost]) -> bool:
        """Return whether releases from the same donors stay within the budget together."""
        return self._plainly(costs) or any(loss.delta(self.epsilon) <= self.delta for loss in total_losses(costs))

    def _plainly(self, costs: Sequence[Cost]) -> bool:
        epsilon, delta = (sum(map(_written, each)) for each in _stated(costs))
        return epsilon <= _written(self.epsilon) and delta <= _written(self.delta)

    def spent(self, costs: Sequence[Cost]) -> float:
        """Return the smallest epsilon, at the budget's delta, that we can prove for releases from the same donors."""
        if not costs:
            return 0.0
        epsilons, deltas = _stated(costs)
        ways = [loss.epsilon(self.delta) for loss in total_losses(costs)]
        if sum(map(_written, deltas)) <= _written(self.delta):
            ways.append(float(sum(map(_written, epsilons))))
        # The search returns a slightly larger epsilon; what was allowed is within the budget.
        return min(*ways, self.epsilon) if self.allows(costs) else min(ways)

    def largest(self, costs: Sequence[Cost], delta: float, like: Cost | None = None) -> float:
        """Return the largest epsilon that a further release at ``delta`` may have, 0 if none; it will be accepted.

        The release is of the kind of ``like``. By default it is a Gram release, or a pure one for delta = 0.
        """
        kind = _PURE if delta == 0 else _GRAM if like is None else _kind_of(like)
        epsilons, deltas = _stated(costs)
        by_curves = max(_largest_by_curves(self, booked, delta, kind) for booked in total_losses(costs))
        in_delta = sum(map(_written, deltas)) + _written(delta) <= _written(self.delta)
        by_sums = float(_written(self.epsilon) - sum(map(_written, epsilons))) if in_delta else 0.0
        for epsilon in sorted((by_curves, by_sums), reverse=True):
            for size in (_rounded_down(epsilon), _rounded_down(epsilon * (1 - 1e-4))):
                if size > 0 and self.allows([*costs, Cost(size, delta, kind.loss_of(size, delta))]):
                    return size
        return 0.0

    def each(self, releases: int, delta: float) -> float:
        """Return the epsilon at ``delta`` that each of several Gram releases from the same donors may have, 0 if none.

        Together they are accepted by a ledger with this budget and nothing booked.
        """
        delta = min(delta, self.delta)

        def accepted(epsilon: float) -> bool:
            return epsilon > 0 and self.allows([Cost(epsilon, delta, _GRAM.loss_of(epsilon, delta))] * releases)

        start = self.epsilon / releases
        least = start * 1e-6
        if not accepted(least):
            return 0.0
        size = _rounded_down(largest(accepted, start, precision=_PRECISION, known=least))
        return size if accepted(size) else _rounded_down(size * (1 - 1e-4))


def groups(charges: Iterable[Charge], partition: str | None) -> list[list[Cost]]:
    """Return what was charged to each group of donors that a release from ``partition`` (None: all donors) concerns.

    Partitions are disjoint and their membership is public. Neighbours differ in one donor, who is in one partition, so
    only the releases of that partition and those of all donors can tell them apart.
    """
    charges = list(charges)
    everyone = [c.cost for c in charges if c.partition is None]
    of_each: dict[str, list[Cost]] = {}
    for charge in charges:
        if charge.partition is not None:
            of_each.setdefault(charge.partition, []).append(charge.cost)
    if partition is not None:
        return [everyone + of_each.get(partition, [])]
    return [everyone, *(everyone + own for own in of_each.values())]


def total_losses(costs: Sequence[Cost]) -> list[Loss]:
    """Compose: add up each kind of loss exactly, and round up. Each loss that is returned is proved for the whole.

    The second is with the second loss of every cost that has one. Others need not be tried: the Gaussian curve is for
    sums without any rho, so that replacing only some of them gains nothing.
    """
    first = [cost.loss for cost in costs]
    second = [cost.loss if cost.second is None else cost.second for cost in costs]
    return [_added_up(losses) for losses in ([first] if first == second else [first, second])]


def _added_up(losses: Sequence[Loss]) -> Loss:
    return Loss(*(_sum_upward(getattr(loss, field.name) for loss in losses) for field in fields(Loss)))


def _sum_upward(values: Iterable[float]) -> float:
    exact = sum((Fraction(value) for value in values if value), Fraction(0))
    rounded = float(exact)
    return rounded if Fraction(rounded) >= exact else math.nextafter(rounded, math.inf)


@lru_cache(maxsize=4096)
def _written(value: float) -> Fraction:
    """Return the decimal number that a float was written as: 1/10 for 0.1."""
    return Fraction(str(float(value)))


def _stated(costs: Sequence[Cost]) -> tuple[list[float], list[float]]:
    return [cost.epsilon for cost in costs], [cost.delta for cost in costs]


@dataclass(frozen=True)
class _Kind:
    """A family of releases: what an amount (rho, mu, ...) costs, and which epsilon it gives at a delta."""

    loss: Callable[[float, float], Loss]
    epsilon: Callable[[float, float], float]
    amount: Callable[[float, float], float]

    def loss_of(self, epsilon: float, delta: float) -> Loss:
        return self.loss(self.amount(epsilon, delta), delta)


_PURE = _Kind(lambda epsilon, _: Loss.from_pure(epsilon), lambda epsilon, _: epsilon, lambda epsilon, _: epsilon)
_ZCDP = _Kind(
    lambda rho, _: Loss.from_rho(rho),
    lambda rho, delta: zcdp_epsilon(rho, delta) if rho > 0 else 0.0,
    zcdp_rho,
)
_UNKNOWN = _Kind(Loss.from_epsilon_delta, lambda epsilon, _: epsilon, lambda epsilon, _: epsilon)


def _gaussian(loss: Callable[[float, float], Loss]) -> _Kind:
    return _Kind(loss, lambda mu, delta: gaussian_epsilon(mu, delta) if mu > 0 else 0.0, gaussian_mu)


def _gram_loss(mu: float, delta: float) -> Loss:
    """Return at least what a Gram release on the usual grid costs that (epsilon, delta) pays for, mu the Gaussian's.

    Its own mu is not larger, and fewer periods have less slack. Where the slack of 2000 periods is no longer small
    beside delta (1e-14 and less), a release is zCDP with rho at most mu^2 / 2, or Gaussian with a slack that leaves
    some of its delta, depending on its periods; then both are charged.
    """
    loss = discrete_gaussian_loss(mu, GRAM_COORDINATES, 4.0**GRAM_BITS)
    if _is_small_beside(loss, delta):
        return loss
    return replace(loss, mu_squared=0.0, rho=mu**2 / 2, rest_delta=min(loss.rest_delta, 0.99 * delta))


def _is_small_beside(loss: Loss, delta: float) -> bool:
    """Return whether the rest of a Gaussian loss is no more than a slack."""
    return loss.rest_delta <= 1e-3 * delta and loss.rest_epsilon**2 <= 1e-6 * loss.mu_squared


_GRAM = _gaussian(_gram_loss)


def _kind_of(cost: Cost) -> _Kind:
    """Return the releases like a given one, and smaller: if it has a slack, theirs is taken to be as large."""
    loss = cost.loss
    if loss == Loss.from_rho(loss.rho):
        return _ZCDP
    rest = Loss(rest_epsilon=loss.rest_epsilon, rest_delta=loss.rest_delta)
    if loss == rest + Loss(mu_squared=loss.mu_squared) and _is_small_beside(loss, cost.delta):
        return _gaussian(lambda mu, _: Loss.from_mu(mu) + rest)
    return _UNKNOWN


@lru_cache(maxsize=256)
def _largest_by_curves(budget: Budget, booked: Loss, delta: float, kind: _Kind) -> float:
    """Return about the largest epsilon of a further release of a kind that the curves allow."""

    def affordable(amount: float) -> bool:
        return _added_up([booked, kind.loss(amount, delta)]).delta(budget.epsilon) <= budget.delta

    start = max(budget.epsilon, 1e-9)
    least = start * 1e-9  # less than this counts as nothing
    amount = largest(affordable, start, precision=_PRECISION, known=least) if affordable(least) else 0.0
    return kind.epsilon(amount, delta)


def _rounded_down(value: float) -> float:
    if value <= 0:
        return 0.0
    unit = Fraction(10) ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    return float((Fraction(value) // unit) * unit)
