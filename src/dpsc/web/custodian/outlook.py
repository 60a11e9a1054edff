"""Which effects a release would show, simulated from public numbers in a thread of its own: it may take seconds."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dpsc.analyst.plan import plan
from dpsc.custodian.check.run import Outlook, outlook

_LADDER, _RUNS = (0.1, 0.3, 1.0, 3.0, 10.0), 6  # budgets that are simulated together, quickly


class Asked(NamedTuple):
    """What is simulated: donors, periods, periods before the intervention, delta, and a public series."""

    n: int
    T: int
    before: int
    delta: float
    series: tuple[float, ...] | None


class Effects(NamedTuple):
    """The smallest effects that would be seen with each budget of the ladder, and their unit."""

    sizes: tuple[float, ...]
    unit: str

    def at(self, epsilon: float) -> float:
        """Return the smallest effect at a budget; logarithms are interpolated, so that it never grows with it."""
        return math.exp(float(np.interp(math.log(epsilon), np.log(_LADDER), np.log(self.sizes))))


class Simulations:
    """What was simulated. Only what was asked for last is worked at.

    Parameters
    ----------
    changed : callable
        Called when something new is known.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed, self._lock = changed, threading.Lock()
        self._known: dict[Asked, Effects | None] = {}
        self._wanted: Asked | None = None
        self._thread: threading.Thread | None = None

    def outlook(self, asked: Asked, epsilon: float) -> Outlook:
        """Return what is known at once; the smallest effect follows when it is simulated."""
        series = asked.series is not None
        known = replace(outlook(asked.n, asked.T, epsilon, asked.delta, T0=1, like=series), T0=asked.before)
        if not known.worth_having or asked.before < 2:
            return known
        effects = self._effects(asked)
        return known if effects is None else replace(known, detectable=effects.at(epsilon), unit=effects.unit)

    @property
    def working(self) -> bool:
        """Whether something is being simulated."""
        return self._thread is not None

    def wait(self) -> None:
        """Wait until what was asked for last is known."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _effects(self, asked: Asked) -> Effects | None:
        with self._lock:
            if asked not in self._known:
                self._wanted = asked
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, daemon=True)  # it may be left unfinished
                    self._thread.start()
            return self._known.get(asked)

    def _work(self) -> None:
        while True:
            with self._lock:
                asked = self._wanted
                if asked is None or asked in self._known:
                    self._thread = None
                    return
            try:
                found: Effects | None = _simulated(asked)
            except Exception:  # a series that is too short, for example: nothing is said of effects then
                found = None
            with self._lock:
                self._known[asked] = found
            self._changed()


@lru_cache(maxsize=64)
def _simulated(asked: Asked) -> Effects:
    target = None if asked.series is None else list(asked.series)
    after = asked.T - asked.before
    expected = plan(asked.n, asked.before, after, _LADDER, asked.delta, target=target, runs=_RUNS)
    table = expected.table.sort_values("epsilon")
    return Effects(tuple(float(size) for size in table["detectable"]), expected.unit)
