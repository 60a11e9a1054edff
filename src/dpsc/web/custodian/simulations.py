"""Which effects a release of donors would show, simulated in a thread of its own: it may take seconds."""

from __future__ import annotations

import math
import threading
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dpsc.analyst.plan import default_runs, plan
from dpsc.web.custodian.form import Form

_LADDER, _FIRST_RUNS = (0.1, 0.3, 1.0, 3.0, 10.0), 6  # budgets that are simulated together; at first quickly


class Scenario(NamedTuple):
    """What is simulated: donors, periods, those before the intervention, delta, a public series, units averaged."""

    n: int
    T: int
    before: int
    delta: float
    series: tuple[float, ...] | None
    averages: int = 1


class Effects(NamedTuple):
    """The smallest effects that would be seen with each budget of the ladder, and their unit."""

    sizes: tuple[float, ...]
    unit: str

    def at(self, epsilon: float) -> float:
        """Return the smallest effect at a budget; logarithms are interpolated, so that it never grows with it."""
        return math.exp(float(np.interp(math.log(epsilon), np.log(_LADDER), np.log(self.sizes))))


class Simulations:
    """What was simulated, in a thread: at first quickly, then as ``dpsc plan`` does.

    Only what was asked for last is worked at.

    Attributes
    ----------
    known : dict
        By what was asked; None if it cannot be simulated.
    done : set
        What was simulated with as many panels as ``dpsc plan`` does.
    """

    def __init__(self, form: Form) -> None:
        self._form, self._lock = form, threading.Lock()
        self.known: dict[Scenario, Effects | None] = {}
        self.done: set[Scenario] = set()
        self._wanted: Scenario | None = None
        self._thread: threading.Thread | None = None

    def start(self, asked: Scenario) -> None:
        """Simulate, if that is not known yet, as soon as what is simulated now is done."""
        with self._lock:
            if asked not in self.done:
                self._wanted = asked
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, daemon=True)  # it may be left unfinished
                    self._thread.start()

    def wait(self) -> None:
        """Wait until what was asked for last is known."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._lock:
                asked = self._wanted
                if asked is None or asked in self.done:
                    self._thread = None
                    return
            most = default_runs(asked.T)
            runs = most if asked in self.known else min(_FIRST_RUNS, most)
            try:
                found: Effects | None = _simulated(asked, runs)
            except Exception:  # a series that is too short, for example: nothing is said of effects then
                found = None
            with self._form.changing():
                self.known[asked] = found
                if found is None or runs == most:
                    self.done.add(asked)


@lru_cache(maxsize=64)
def _simulated(asked: Scenario, runs: int) -> Effects:
    target = None if asked.series is None else list(asked.series)
    after = asked.T - asked.before
    expected = plan(
        asked.n, asked.before, after, _LADDER, asked.delta, averages=asked.averages, target=target, runs=runs
    )
    table = expected.table.sort_values("epsilon")
    return Effects(tuple(float(size) for size in table["detectable"]), expected.unit)
