"""What it takes: from the effect that must be seen, or the error that may be made, to a budget, donors or periods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpsc.gram.planning import Plan, plan

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_MORE_DONORS = (1, 2, 5, 10)
_LONGER = 2
_USUAL = 4.0  # a larger budget is said to be large


@dataclass(frozen=True)
class Way:
    """One way to reach it.

    Attributes
    ----------
    change : {"budget", "donors", "periods"}
        What is different from what was planned.
    epsilon : float
    n, T0, averages : int
    """

    change: str
    epsilon: float
    n: int
    T0: int
    averages: int


@dataclass(frozen=True)
class Taking:
    """The plan for the donors that are there, and the ways to reach what is wished; no way, if none was found."""

    expected: Plan
    ways: list[Way]


def what_it_takes(
    n: int,
    T0: int,
    h: int,
    *,
    error: float | None = None,
    detect: float | None = None,
    averages: int = 1,
    runs: int | None = None,
    on_progress: Callable[[], None] | None = None,
    **options: Any,
) -> Taking:
    """Return the smallest budget that reaches an error, or shows an effect; and if none does, what to change.

    Parameters
    ----------
    n, T0, h, averages
        As in :func:`dpsc.plan`.
    error, detect : float
        One of them: the typical error wished, or the average effect that must be seen (p below 0.05 in 80% of cases).
    options
        Of :func:`dpsc.plan`.
    """

    def planned(sizes: list[int], T0: int, averages: int) -> Plan:
        return plan(sizes, T0, h, EPSILONS, averages=averages, runs=runs, on_progress=on_progress, **options)

    def smallest(of: Plan, size: int) -> float:
        return of.epsilon_for(error, size, detect=detect)

    expected = planned([k * n for k in _MORE_DONORS], T0, averages)
    here = smallest(expected, n)
    ways = [Way("budget", here, n, T0, averages)] if here <= EPSILONS[-1] else []
    if here > _USUAL:
        more = next((k * n for k in _MORE_DONORS[1:] if smallest(expected, k * n) <= _USUAL), None)
        if more is not None:
            ways.append(Way("donors", smallest(expected, more), more, T0, averages))
        longer = smallest(planned([n], _LONGER * T0, averages), n)
        if longer <= min(_USUAL, here):
            ways.append(Way("periods", longer, n, _LONGER * T0, averages))
    only = expected.table[expected.table["n"] == n].reset_index(drop=True)
    return Taking(Plan(only, expected.unit), ways)
