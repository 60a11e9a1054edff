"""What a release promises, as a small value that can be read, stored and added up. It knows no data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from dpsc import checks
from dpsc.errors import ParameterError, ReleaseError
from dpsc.privacy.accounting import Loss
from dpsc.privacy.exact import safely_above

Arithmetic = Literal["exact", "float"]
REPLACE_ONE, REPLACE_PERSON = "replace one donor", "replace one person"
PUBLISHERS_WORD = "the publisher's word, which dpsc cannot check"
GRAM = "discrete Gaussian noise on the Gram matrix of the donors' unit vectors"
_GRAM_OF_0_2_0 = "discrete Gaussian on unit vectors' Gram matrix"  # in files until version 0.2.0
OF_PEOPLE = {REPLACE_ONE, REPLACE_PERSON}  # one budget holds both: where donors are people, one is the other


@dataclass(frozen=True)
class Guarantee:
    """An (epsilon, delta) differential-privacy guarantee and what it rests on.

    Attributes
    ----------
    epsilon, delta : float
    adjacency : str
        Which databases count as neighbours. ``"replace one donor"``: one donor's row may be any other finite row;
        the number of donors, their order, the periods, the target and all parameters are public. ``"replace one
        person"``: all records of one person in any units may be any others, or none; units and periods are public.
    arithmetic : {"exact", "float"}
        ``"exact"``: integer arithmetic and exact samplers. ``"float"``: the proof is about real numbers; the low
        bits of floating-point noise may leak more than it says, and noise beyond about 8 standard deviations
        (36 Laplace scales) is never drawn.
    basis : str
        The theorem, or theorems, behind it.
    loss : Loss
        What is known beyond (epsilon, delta), so that several guarantees add up tightly. By default nothing more.

    Examples
    --------
    >>> step = Guarantee(0.5, basis="a theorem")
    >>> print(step + step)
    (1, 0)-differential privacy, replace one donor, float arithmetic; a theorem
    """

    epsilon: float
    delta: float = 0.0
    adjacency: str = REPLACE_ONE
    arithmetic: Arithmetic = "float"
    basis: str = ""
    loss: Loss = field(default=Loss(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "basis", self.basis.replace(_GRAM_OF_0_2_0, GRAM))
        object.__setattr__(self, "epsilon", checks.epsilon("epsilon", self.epsilon))
        object.__setattr__(self, "delta", checks.delta("delta", self.delta))
        if self.arithmetic not in ("exact", "float"):
            raise ParameterError(f"arithmetic must be 'exact' or 'float', not {self.arithmetic!r}.")
        if self.loss == Loss():
            object.__setattr__(self, "loss", Loss.from_epsilon_delta(self.epsilon, self.delta))
        elif not self.loss.within(self.epsilon, self.delta):
            raise ParameterError(
                f"the losses cost epsilon = {self.loss.epsilon(self.delta):g} at delta = {self.delta:g}; "
                f"a guarantee of epsilon = {self.epsilon:g} would promise too much."
            )

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon that is proved at another delta (infinite if there is none).

        Examples
        --------
        >>> round(Guarantee(1.0, 1e-6, loss=Loss.from_rho(0.02)).epsilon_at(1e-9), 2)
        1.16
        """
        return self.loss.epsilon(checks.delta("delta", delta))

    def __add__(self, other: Guarantee) -> Guarantee:
        """Compose two releases from the same donors: deltas add up, and epsilon is the tightest we can prove there."""
        return composed([self, other]) if isinstance(other, Guarantee) else NotImplemented

    def __radd__(self, other: object) -> Guarantee:
        """Let ``sum`` add guarantees up."""
        return self if other == 0 else NotImplemented

    @property
    def brief(self) -> str:
        """What is promised and to whom, without the mechanism behind it.

        Examples
        --------
        >>> Guarantee(1.0, 1e-6, arithmetic="exact", basis="a theorem").brief
        '(1, 1e-06)-differential privacy for each donor'
        """
        who = {REPLACE_ONE: " for each donor", REPLACE_PERSON: " for each person"}.get(
            self.adjacency, f", {self.adjacency}"
        )
        imprecise = "" if self.arithmetic == "exact" else ", float arithmetic"
        return f"({self.epsilon:g}, {self.delta:g})-differential privacy{who}{imprecise}"

    def __str__(self) -> str:
        basis = f"; {self.basis}" if self.basis else ""
        return (
            f"({self.epsilon:g}, {self.delta:g})-differential privacy, {self.adjacency}, "
            f"{self.arithmetic} arithmetic{basis}"
        )


def promised(
    epsilon: float, delta: float, seed: int | None, *, basis: str, loss: Loss, adjacency: str = REPLACE_ONE
) -> Guarantee | None:
    """Return what an algorithm with exact arithmetic will promise; None if its noise comes from a seed."""
    if seed is not None:
        return None
    return Guarantee(epsilon, delta, adjacency=adjacency, arithmetic="exact", basis=basis, loss=loss)


def composed(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return what several releases from the same donors, or people, promise together; see ``+``."""
    first = guarantees[0]
    if len(guarantees) == 1:
        return first
    for other in guarantees:
        if first.adjacency != other.adjacency:
            raise ParameterError(
                f"cannot compose guarantees for different neighbours: {first.adjacency!r} and {other.adjacency!r}."
            )
    added, delta = sum(g.epsilon for g in guarantees), sum(g.delta for g in guarantees)
    loss = sum((g.loss for g in guarantees[1:]), first.loss)
    if added < loss.epsilon(delta):  # a mixture of kinds for which plain addition is the tightest we know
        loss = Loss.from_epsilon_delta(added, delta)
    return Guarantee(
        epsilon=loss.epsilon(delta),
        delta=delta,
        adjacency=first.adjacency,
        arithmetic="exact" if all(g.arithmetic == "exact" for g in guarantees) else "float",
        basis=", ".join(filter(None, dict.fromkeys(g.basis for g in guarantees))),
        loss=loss,
    )


def together(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return what several releases from the same donors promise together, at the largest of their deltas."""
    all_of_them, delta = composed(guarantees), max(g.delta for g in guarantees)
    basis = f"{all_of_them.basis} ({len(guarantees)} releases of the same donors)"
    loss = sum((g.loss for g in guarantees), Loss())
    epsilon = loss.epsilon(delta)
    if math.isinf(epsilon):
        return replace(all_of_them, basis=basis)
    return replace(all_of_them, epsilon=epsilon, delta=delta, basis=basis, loss=loss)


def weakest(guarantees: Sequence[Guarantee], whose: str, *, slacks_add: bool) -> Guarantee:
    """Return a guarantee that holds for the donors, or people, of each of several disjoint sites.

    ``slacks_add`` if one may move from a site to another, and so touch what is charged beyond the curves of both.
    """
    if len({g.adjacency for g in guarantees}) > 1:
        raise ReleaseError("the releases have guarantees for different neighbours and cannot be merged.")
    losses = [g.loss for g in guarantees]
    worst = Loss(*(max(parts) for parts in zip(*(vars(loss).values() for loss in losses), strict=True)))
    if slacks_add:
        rest = sum(loss.rest_epsilon for loss in losses), sum(loss.rest_delta for loss in losses)
        worst = replace(worst, rest_epsilon=safely_above(rest[0]), rest_delta=safely_above(rest[1]))
    delta, stated = max(g.delta for g in guarantees), max(g.epsilon for g in guarantees)
    if worst.rest_delta >= delta:  # slacks of many sites, beside a delta that is as small
        delta += worst.rest_delta
    return Guarantee(
        epsilon=stated if worst in losses else max(stated, worst.epsilon(delta)),
        delta=delta,
        adjacency=guarantees[0].adjacency,
        arithmetic="exact" if all(g.arithmetic == "exact" for g in guarantees) else "float",
        basis=f"{', '.join(dict.fromkeys(g.basis for g in guarantees))} ({whose})",
        loss=worst,
    )


def mark_of(reason: str) -> str:
    """Return what stands on everything without a guarantee of dpsc, by the reason why it has none.

    Examples
    --------
    >>> mark_of("the noise came from a seed"), mark_of(f"published by a friend ({PUBLISHERS_WORD})")
    ('NOT PRIVATE', "PROTECTED BY THE PUBLISHER'S WORD")
    """
    return "PROTECTED BY THE PUBLISHER'S WORD" if rests_on_its_publisher(reason) else "NOT PRIVATE"


def rests_on_its_publisher(reason: str) -> bool:
    """Return whether a reason why there is no guarantee is that of a table with noise of others: so it ends."""
    return reason.removesuffix(")").endswith(PUBLISHERS_WORD)


def best_guess(epsilon: float, delta: float) -> float:
    """Return how often the best guess is right which of two equally likely records a donor has, at most.

    Whoever guesses knows everything about all other donors. For any test, (epsilon, delta) bounds its power by
    ``e^epsilon * level + delta`` on both sides, so that the mean of both chances of being right is at most
    ``(e^epsilon + delta) / (1 + e^epsilon)``.

    Examples
    --------
    >>> round(best_guess(1.0, 0.0), 3)
    0.731
    """
    factor = math.exp(min(epsilon, 700.0))
    return (factor + delta) / (1 + factor)
