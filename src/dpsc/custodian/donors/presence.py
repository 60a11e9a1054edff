"""Which declared periods hold anybody, and which periods would. Private: for the custodian's own screen.

A calendar that does not fit is never refused: one donor could decide about a refusal, which would tell something about
that donor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpsc.errors import Parameter
from dpsc.periods.declare import completed, declaration, declared
from dpsc.types import Integers, Times

_MANY = 0.2  # of the declared periods; if working days were declared as days, two of seven are empty
_STRAY = 0.01  # of the numbers in the fullest period: a period with fewer is perhaps a typing error

_OTHERS = "Perhaps the rows have other periods. Declare the periods from what you know of the data"


class Misfit(NamedTuple):
    """Periods many of which hold nobody: what to say, and which periods would fit; none if that cannot be told."""

    words: str
    fitting: str | None

    @property
    def note(self) -> str:
        """All of it in words."""
        fits = "" if self.fitting is None else f". These fit the rows: {Parameter('periods', self.fitting)}"
        return f"{self.words}{fits or '; dpsc check shows more'}"


def custodian_misfit(have: Integers, times: Times, *, people: bool = False, seen: Times | None = None) -> Misfit | None:
    """Say what is wrong with declared periods many of which are empty; None if others would not fit better. Private.

    Parameters
    ----------
    have : array
        How many numbers each period has.
    times : Index
        The declared periods.
    people : bool
        Whether these are records of people.
    seen : Index, optional
        All periods of the rows, in order, also those that were not declared; otherwise they are not known.
    """
    empty = int((have == 0).sum())
    if empty <= _MANY * len(have):
        return None
    seen = times[usual(have)] if seen is None else seen
    fits = fitting(seen)
    if 2 * empty <= len(have) and (fits is None or len(declared(fits)) > len(have) - empty / 2):
        return None
    lack = "record of anybody: they would hold only noise" if people else "donor: a release would fill them all"
    words = f"{empty:,} of the {len(have):,} declared periods have no {lack}. {_OTHERS}"
    return Misfit(words, fits)


def custodian_between(outside: int, rows: int, seen: Times) -> Misfit | None:
    """Say that most rows are between declared periods, which are too far apart; None if most are not. Private."""
    if 2 * outside <= rows:
        return None
    words = f"{outside:,} of {rows:,} rows lie between the declared periods, and a release ignores them. {_OTHERS}"
    return Misfit(words, fitting(seen))


def fitting(seen: Times) -> str | None:
    """Return what declares the periods that were seen, those between them included if they are few."""
    if len(seen) < 2:
        return None
    whole = completed(seen)
    return declaration(whole if len(whole) <= 2 * len(seen) else seen)


def usual(counts: Integers) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Tell which labels are not perhaps typing errors, from how many numbers have each."""
    return np.asarray(counts > _STRAY * counts.max())
