"""Several outcomes of the same donors in one release: a matrix with noise of its own for each, and one guarantee.

Every outcome has its part of mu squared, so that what all of them cost together is what the release promises.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from dpsc.checks import did_you_mean, shown
from dpsc.errors import Parameter, ParameterError, ReleaseError
from dpsc.periods.match import same
from dpsc.privacy.accounting import Loss
from dpsc.privacy.guarantee import Guarantee
from dpsc.release.matrix import ReleasedMatrix

MOST_OUTCOMES = 20
R = TypeVar("R", bound=ReleasedMatrix)


def require_outcomes(names: Sequence[Any]) -> None:
    """Refuse what are no names of several outcomes."""
    if not all(isinstance(name, str) and name.strip() for name in names):
        raise ParameterError("outcomes are given by their names, which are texts.")
    if len(set(names)) < len(names):
        raise ParameterError(f"{Parameter('outcome')} must name different outcomes.")
    if not 2 <= len(names) <= MOST_OUTCOMES:
        raise ParameterError(f"a release of several outcomes has 2 to {MOST_OUTCOMES} of them, not {len(names)}.")


def shares_of(stated: Mapping[str, Any]) -> dict[str, float]:
    """Return which part of mu squared each outcome gets, from numbers in the same proportions.

    Examples
    --------
    >>> shares_of({"orders": 2, "revenue": 1, "visits": 1})
    {'orders': 0.5, 'revenue': 0.25, 'visits': 0.25}
    """
    for share in stated.values():
        if isinstance(share, bool) or not isinstance(share, int | float) or not (share > 0 and math.isfinite(share)):
            raise ParameterError(f"{Parameter('share')} must be a number above 0, not {shown(share)}.")
    total = math.fsum(stated.values())
    return {name: float(share) / total for name, share in stated.items()}


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedOutcomes(Mapping[str, R], Generic[R]):
    """Releases of several outcomes of the same donors, by name, from one file.

    Attributes
    ----------
    parts : tuple of releases
        One for each outcome. Its own guarantee is what it alone costs.
    guarantee : Guarantee or None
        What all of them promise together; None if their noise came from a seed.
    """

    parts: tuple[R, ...]
    guarantee: Guarantee | None

    def __post_init__(self) -> None:
        try:
            require_outcomes([part.outcome for part in self.parts])
        except ParameterError as problem:  # of a file, which may be from anybody
            raise ReleaseError(problem.message) from None
        first = self.parts[0]
        for part in self.parts:
            alike = part.n == first.n and part.segments == first.segments and same(part.times, first.times)
            if not alike or part.sites > 1:
                raise ReleaseError("outcomes of one release are of the same donors, periods and segments, at one site.")
            if (part.guarantee is None) != (self.guarantee is None):
                raise ReleaseError("either all outcomes of a release have a guarantee, or none has.")
        if self.guarantee is not None:
            self._require_paid(self.guarantee)

    def _require_paid(self, guarantee: Guarantee) -> None:
        """Refuse a claim for all outcomes together that is less than theirs add up to.

        Each part's noise pays for its own claim: this was checked when it was made. Replacing a donor changes all of
        them, so their losses add up (composition), and the claim for all must state at least the sum of each kind of
        loss, with an epsilon and a delta that this sum costs (checked by :class:`Guarantee` itself).
        """
        claims = [part.guarantee for part in self.parts if part.guarantee is not None]
        added, stated = sum((claim.loss for claim in claims), Loss()), guarantee.loss
        fine = all(getattr(stated, name) >= value for name, value in vars(added).items())
        if not fine or {claim.adjacency for claim in claims} != {guarantee.adjacency}:
            raise ReleaseError("the noise of the outcomes is too small for the guarantee of all of them together.")

    def __repr__(self) -> str:
        promise = self.guarantee if self.guarantee is not None else f"no guarantee: {self.parts[0].no_guarantee}"
        first = self.parts[0]
        names = ", ".join(self)
        return f"<{type(self).__name__} of {names}: {first.n} donors × {first.T} periods, together {promise}>"

    @cached_property
    def _by_name(self) -> dict[str, R]:
        return {part.outcome: replace(part, part_of=self._cost_of(part)) for part in self.parts}

    def _cost_of(self, part: R) -> str:
        """Say what one outcome costs, and what all of them together."""
        if part.guarantee is None or self.guarantee is None:
            return ""
        return (
            f"epsilon {part.guarantee.epsilon:.3g} is for {part.outcome} alone; the {len(self.parts)} outcomes of the "
            f"release ({', '.join(self)}) together cost epsilon {self.guarantee.epsilon:g}, at delta "
            f"{self.guarantee.delta:g}"
        )

    def __iter__(self) -> Iterator[str]:
        return (part.outcome for part in self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __contains__(self, outcome: object) -> bool:
        return outcome in self._by_name

    def __getitem__(self, outcome: str) -> R:
        """Return the release of one outcome, which knows what all of them cost together."""
        if outcome not in self._by_name:
            hint = did_you_mean(str(outcome), list(self)) or f" They are {', '.join(self)}."
            raise ParameterError(f"the release has no outcome {shown(outcome)}.{hint}")
        return self._by_name[outcome]
