"""What booked guarantees cost together, and what is still affordable. Pure accounting: no database, no data.

A budget is divided into pockets when its data set is entered, and each release is charged to the pocket of its kind:
Gaussian noise (squares of mu add up), pure releases (epsilons add up), and releases of which only (epsilon, delta) is
known (both add up). The limits never change, so what is released next, its kind and its size may be chosen after
everything before was seen: docs/proofs/ledger.md. Sums are exact; epsilons and deltas add up as they were written, so
that ten times 0.1 is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal

from dpsc import checks
from dpsc.errors import ParameterError
from dpsc.privacy.accounting import PI, Loss, gaussian_epsilon, gaussian_mu, zcdp_rho
from dpsc.privacy.exact import safely_below
from dpsc.privacy.guarantee import Guarantee
from dpsc.privacy.rounded_gaussian import KEPT, discrete_gaussian_budget, released_mu
from dpsc.types import JsonObject

Kind = Literal["Gaussian", "pure", "other"]
GRAM_COORDINATES = 2000 * 2001 // 2 + 81  # of a Gram release with as many periods and counts as it may have
GRAM_BITS = 18  # the usual grid of a Gram release
_DIGITS = 5  # of an answer to "how much is left?", rounded down
_KEPT = tuple(kept + 0.01 * (1 - kept) for kept in KEPT)  # a little more than a release: a budget pays for one its size
_ALL_BUT_ROUNDING = 1 - Fraction(1, 2**48)  # of a sum in floats; the written epsilon is rounded up enough
_NOTHING = 1e-3  # less than this part of the budget counts as nothing left


@dataclass(frozen=True)
class Cost:
    """The part of a guarantee that adds up. A stored one is not checked again, because that would take a search."""

    epsilon: float
    delta: float
    loss: Loss

    @classmethod
    def of(cls, guarantee: Guarantee) -> Cost:
        """Return the cost of a guarantee."""
        return cls(float(guarantee.epsilon), float(guarantee.delta), guarantee.loss)

    @classmethod
    def of_json(cls, plain: JsonObject) -> Cost:
        """Read the cost of a stored guarantee; a negative one would give budget back."""
        epsilon, delta = checks.epsilon("epsilon", plain["epsilon"]), checks.delta("delta", plain["delta"])
        return cls(float(epsilon), float(delta), Loss(**plain["loss"]))

    @property
    def kind(self) -> Kind:
        """Which theorem adds it up: what has more than a slack beside Gaussian noise is known as (epsilon, delta)."""
        loss = self.loss
        if self.delta == 0 and loss == Loss(pure=loss.pure, pure_as_rho=loss.pure_as_rho):
            return "pure"
        slack = loss.rest_epsilon <= (1 - KEPT[0]) * self.epsilon and loss.rest_delta <= (1 - KEPT[1]) * self.delta
        return "Gaussian" if loss.rho == 0 and slack else "other"


@dataclass(frozen=True)
class Charge:
    """A cost and the donors it concerns: those of one partition, or all of them (None)."""

    cost: Cost
    partition: str | None = None


@dataclass(frozen=True)
class Pockets:
    """What is in the pockets, or may be: exact sums."""

    mu_squared: Fraction = Fraction(0)
    slack_epsilon: Fraction = Fraction(0)
    slack_delta: Fraction = Fraction(0)
    pure: Fraction = Fraction(0)
    other_epsilon: Fraction = Fraction(0)
    other_delta: Fraction = Fraction(0)

    def __add__(self, more: Pockets) -> Pockets:
        return Pockets(*(one + other for one, other in zip(astuple(self), astuple(more), strict=True)))

    def within(self, limits: Pockets) -> bool:
        """Return whether no pocket holds more than its limit."""
        return all(held <= limit for held, limit in zip(astuple(self), astuple(limits), strict=True))


@dataclass(frozen=True)
class Budget:
    """What all releases of a data set may cost together, and how much of it is for which kind.

    Attributes
    ----------
    epsilon, delta : float
    pure : float
        The part of epsilon for pure releases. Without it they are charged as Gaussian noise. All of it for delta = 0.
    other : tuple of float
        The parts of epsilon and delta for releases of which only (epsilon, delta) is known.
    fixed : Pockets, optional
        The limits of a data set that was entered before there were pockets: :func:`fixed_afterwards`.
    """

    epsilon: float
    delta: float
    pure: float = 0.0
    other: tuple[float, float] = (0.0, 0.0)
    fixed: Pockets | None = None

    def require_sound(self) -> None:
        """Refuse pockets that do not fit into the budget."""
        parts = {"pure": self.pure, "the epsilon of other": self.other[0], "the delta of other": self.other[1]}
        for name, part in parts.items():
            checks.finite_number(name, part, at_least=0)
        if self.delta == 0 and any(parts.values()):
            raise ParameterError("a budget with delta = 0 is for pure releases alone; leave out the pockets.")
        if _written(self.pure) + _written(self.other[0]) > _written(self.epsilon) or self.other[1] > self.delta:
            raise ParameterError(f"the pockets hold more than the budget of ({self.epsilon:g}, {self.delta:g}).")
        if (self.other[0] > 0) != (self.other[1] > 0):
            raise ParameterError("the pocket for other releases needs both an epsilon and a delta above 0.")

    @cached_property
    def limits(self) -> Pockets:
        """How much each pocket may hold.

        With P for ``pure`` and (E, D) for ``other``, the whole is (epsilon, delta)-differentially private if the
        Gaussian pocket, slacks included, keeps (epsilon - P - E, delta - D).
        """
        if self.fixed is not None:
            return self.fixed
        if self.delta == 0:
            return Pockets(pure=_written(self.epsilon))
        epsilon, delta = self._gaussian
        noise = gaussian_mu(epsilon * _KEPT[0], delta * _KEPT[1]) ** 2 if min(epsilon, delta) > 0 else 0.0
        slacks = (Fraction(epsilon * (1 - _KEPT[0])), Fraction(delta * (1 - _KEPT[1])))
        return Pockets(Fraction(noise), *slacks, _written(self.pure), *map(_written, self.other))

    @property
    def _gaussian(self) -> tuple[float, float]:
        """The (epsilon, delta) that the Gaussian pocket keeps, slacks included."""
        epsilon = max(0.0, float(_written(self.epsilon) - _written(self.pure) - _written(self.other[0])))
        delta = max(0.0, float(_written(self.delta) - _written(self.other[1])))
        return epsilon, delta

    def allows(self, costs: Iterable[Cost]) -> bool:
        """Return whether releases from the same donors stay within the budget together."""
        return self.held(costs).within(self.limits)

    def held(self, costs: Iterable[Cost]) -> Pockets:
        """Return what costs put into which pockets."""
        return sum(map(self._charged, costs), Pockets())

    def _charged(self, cost: Cost) -> Pockets:
        """Return what a release costs: by its kind, and a pure one as Gaussian noise if there is no pocket for it.

        Each pure part of it is Gaussian with mu^2 <= pi epsilon^2 / 2 (docs/proofs/gaussian-noise.md).
        """
        loss, kind = cost.loss, cost.kind
        if kind == "other":
            return Pockets(other_epsilon=_written(cost.epsilon), other_delta=_written(cost.delta))
        if kind == "pure" and self._has_pure:
            return Pockets(pure=max(_written(cost.epsilon), Fraction(loss.pure) * _ALL_BUT_ROUNDING))
        noise = Fraction(loss.mu_squared) + PI * Fraction(loss.pure_as_rho)
        return Pockets(noise, Fraction(loss.rest_epsilon), Fraction(loss.rest_delta))

    @property
    def _has_pure(self) -> bool:
        return self.pure > 0 or self.delta == 0

    def spent(self, costs: Iterable[Cost]) -> float:
        """Return how much of epsilon is spent: the epsilons that add up, and that of the Gaussian noise."""
        held = self.held(costs)
        plain, delta = float(held.pure + held.other_epsilon), self._gaussian[1]
        noisy = _epsilon(float(held.mu_squared), delta) if held.mu_squared and delta else 0.0
        proved = self.fixed is not None or held.within(self.limits)
        return min(plain + noisy, self.epsilon) if proved else plain + noisy

    def largest(self, costs: Sequence[Cost], delta: float, like: Cost | None = None) -> float:
        """Return the largest epsilon that a further release at ``delta`` may have, 0 if none; it will be accepted.

        The release is of the kind of ``like``. By default it is a Gram release, or a pure one for delta = 0. It is
        never larger than the budget.
        """
        held, limits = self.held(costs), self.limits
        kind: Kind = "pure" if delta == 0 else "Gaussian" if like is None else like.kind
        if kind == "other":
            return self._rounded(limits.other_epsilon - held.other_epsilon, costs, lambda size: _other(size, delta))
        if kind == "pure" and self._has_pure:
            return self._rounded(limits.pure - held.pure, costs, _pure)
        room = max(0.0, safely_below(float(limits.mu_squared - held.mu_squared)))
        if kind == "pure":
            return self._rounded(Fraction(math.sqrt(2 * room / float(PI))), costs, _pure)
        noise = Fraction(_epsilon(room, delta)) if room > 0 else Fraction(0)
        return self._rounded(noise, costs, lambda size: _gaussian(size, delta, like), least=_NOTHING)

    def each(self, releases: int, delta: float) -> float:
        """Return the epsilon at ``delta`` that each of several Gram releases from the same donors may have, 0 if none.

        Together they are accepted by a ledger with this budget and nothing booked.
        """
        delta, room = min(delta, self.delta), float(self.limits.mu_squared) / releases
        noise = Fraction(_epsilon(room, delta)) if room > 0 else Fraction(0)
        return self._rounded(noise, [], lambda size: _gaussian(size, delta), releases)

    def _rounded(
        self,
        found: Fraction,
        booked: Sequence[Cost],
        further: Callable[[float], Cost],
        times: int = 1,
        least: float = 1e-6,
    ) -> float:
        """Return about the epsilon that was found, rounded down to one that is accepted."""
        most = min(found, _written(self.epsilon))
        for size in (_rounded_down(most), _rounded_down(most * Fraction(9999, 10000))):
            if size > least * self.epsilon and self.allows([*booked, *[further(size)] * times]):
                return size
        return 0.0


def needed(releases: int, epsilon: float, delta: float) -> float:
    """Return the epsilon of a budget at ``delta`` that several Gram releases need, rounded up to three digits.

    Examples
    --------
    >>> needed(1, 0.5, 1e-6), needed(8, 0.5, 1e-6)
    (0.5, 1.54)
    """
    costs = [_gaussian(epsilon, delta)] * releases
    found = Budget(1.0, delta).spent(costs)
    for more in range(3):
        unit = Fraction(10) ** (math.floor(math.log10(found)) - 2)
        budget = float((math.ceil(Fraction(found) * (1 - Fraction(1, 10**6)) / unit) + more) * unit)
        if Budget(budget, delta).allows(costs):
            break
    return budget


def fixed_afterwards(epsilon: float, delta: float, charges: Sequence[Charge]) -> Budget:
    """Return the budget of a data set that was entered before there were pockets, from what was booked by then.

    Bookings of one kind have the whole budget for their kind; for none it is Gaussian noise. Where kinds are mixed, the
    pockets of pure and other releases are closed at what the donors who have spent most there have spent, as far as the
    budget goes, and the rest is for Gaussian noise. Donors who have spent more than these limits, which another theorem
    allowed, can spend nothing more. Each limit follows one of the theorems of then, of which any was enough.
    """
    if delta == 0:
        return Budget(epsilon, delta)
    together = groups(charges, None)
    held = [Budget(epsilon, delta, pure=epsilon).held(group) for group in together]
    kinds = {cost.kind for group in together for cost in group} or {"Gaussian"}
    if len(kinds) > 1:
        pure = min(max(each.pure for each in held), _written(epsilon))
        other = min(max(each.other_epsilon for each in held), _written(epsilon) - pure)
        other_delta = min(max(each.other_delta for each in held), _written(delta))
        fair = Budget(epsilon, delta, _rounded_up(pure), (_rounded_up(other), _rounded_up(other_delta)))
        limits = replace(fair.limits, pure=pure, other_epsilon=other, other_delta=other_delta)
    else:
        fair = Budget(
            epsilon,
            delta,
            pure=epsilon if kinds == {"pure"} else 0.0,
            other=(epsilon, delta) if kinds == {"other"} else (0.0, 0.0),
        )
        limits = fair.limits
    rho = max(sum(Fraction(cost.loss.rho) for cost in group) for group in together)
    if rho > 0:  # beside zCDP everything was added up as zCDP, which allows less than the Gaussian curve
        left = max(Fraction(0), 2 * (Fraction(zcdp_rho(epsilon, delta)) - rho))
        limits = replace(limits, mu_squared=min(limits.mu_squared, left))
    return replace(fair, fixed=limits)


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


def _pure(epsilon: float) -> Cost:
    return Cost(epsilon, 0.0, Loss.from_pure(epsilon))


def _other(epsilon: float, delta: float) -> Cost:
    return Cost(epsilon, delta, Loss.from_epsilon_delta(epsilon, delta))


def _gaussian(epsilon: float, delta: float, like: Cost | None = None) -> Cost:
    """Return what a Gram release costs, of as many periods as it may have; or a release with the slack of ``like``."""
    if like is None:
        return Cost(epsilon, delta, discrete_gaussian_budget(epsilon, delta, GRAM_COORDINATES, 4.0**GRAM_BITS))
    slack = Loss(rest_epsilon=like.loss.rest_epsilon, rest_delta=like.loss.rest_delta)
    return Cost(epsilon, delta, Loss.from_mu(released_mu(epsilon, delta)) + slack)


def _epsilon(mu_squared: float, delta: float) -> float:
    """Return the epsilon at which a release of this much noise is made: the inverse of ``released_mu``."""
    return gaussian_epsilon(math.sqrt(mu_squared), delta * KEPT[1]) / KEPT[0]


@lru_cache(maxsize=4096)
def _written(value: float) -> Fraction:
    """Return the decimal number that a float was written as: 1/10 for 0.1."""
    return Fraction(str(float(value)))


def _rounded_up(value: Fraction) -> float:
    return float(value) if _written(float(value)) >= value else math.nextafter(float(value), math.inf)


def _rounded_down(value: Fraction) -> float:
    if value <= 0:
        return 0.0
    unit = Fraction(10) ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    return float((value // unit) * unit)
