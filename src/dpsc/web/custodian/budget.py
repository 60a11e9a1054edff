"""The page Budget: what is left, what this release would cost, and what it would show, from public numbers only.

Which effects a release would show is simulated in a thread of its own: it may take seconds.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dpsc.analyst.plan import MOST_AVERAGED, default_runs, plan
from dpsc.answers.words import sentence
from dpsc.checks import command, options, small
from dpsc.custodian.check.run import Outlook, outlook, problems_of
from dpsc.custodian.custody.payer import explained
from dpsc.custodian.custody.steps import require_reasonable, require_small_delta
from dpsc.custodian.gram.algorithm import GramRelease
from dpsc.errors import DpscError, Parameter, ParameterError
from dpsc.privacy.guarantee import Guarantee, best_guess
from dpsc.web.custodian.book import BookPage
from dpsc.web.custodian.data import DataPage
from dpsc.web.custodian.form import Form, commands
from dpsc.web.desk import averages
from dpsc.web.server import render

_LITTLE = 0.001  # an epsilon that is good for nothing
_LADDER, _FIRST_RUNS = (0.1, 0.3, 1.0, 3.0, 10.0), 6  # budgets that are simulated together; at first quickly


class BudgetPage:
    """What the release at hand costs, and what it is worth.

    Attributes
    ----------
    n : int or None
        How many donors there are: public, as said, or else as counted by the check.
    guess : float or None
        How often an attacker guesses right.
    averages : int or None
        How many people the target is the average of; None if what was said is no such number.
    """

    def __init__(self, form: Form, data: DataPage, book: BookPage) -> None:
        self._form, self._data, self._book = form, data, book
        self.simulations = Simulations(form)
        self.n: int | None = None
        self.guess: float | None = None
        self.averages: int | None = None
        self._asked: Scenario | None = None
        self._known: Outlook | None = None

    def enter_dataset(self) -> None:
        """Give a data set its budget in the ledger, as ``dpsc ledger init`` does."""
        form = self._form
        with form.changing(), form.about("new_name"):
            epsilon, delta = form.number("new_epsilon"), form.number("new_delta")
            with _in_place_of("epsilon", "new_epsilon"):
                require_reasonable(epsilon, False)
            with _in_place_of("delta", "new_delta"):
                require_small_delta(delta, self._said(), False)
            form.fields["dataset"] = self._book.enter(form["new_name"], epsilon, delta)
            form.judge()

    def judge(self) -> None:
        """Look into the ledger, once, and say what is wrong with the budget, next to its fields."""
        form, promise = self._form, None
        for name in ("epsilon", "delta", "scale", "n", "averages", "dataset", "book"):
            form.problems.pop(name, None)
        checked = self._data.checked
        self.n = self._said() or (None if checked is None else checked.seen.units or None)
        self.guess = self._asked = self._known = self.averages = None
        with form.about("averages"):
            number = averages(form["averages"] or "1")
            if number > MOST_AVERAGED:
                raise ParameterError(f"{Parameter('averages')} must be at most {MOST_AVERAGED:,}, not {number:,}.")
            self.averages = number
        with form.about("epsilon"):
            if form["n"] and self._said() is None:
                raise ParameterError(f"{Parameter('n')} must be a whole number above 0.")
            epsilon, delta = form.number("epsilon"), form.number("delta")
            require_reasonable(epsilon, False)
            require_small_delta(delta, self.n, False)
            promise = GramRelease(epsilon=epsilon, delta=delta).guarantee
            assert promise is not None
            self.guess = best_guess(epsilon, delta)
            self._simulate(promise)
        with form.about("scale"):
            if form["scale"]:
                GramRelease(epsilon=1, delta=1e-6, scale=form.number("scale"), like=self._data.series)
        with form.about("dataset"):
            self._book.read(form.fields["dataset"], promise)
            form.fields["dataset"] = self._book.seen.dataset
        if promise is not None:
            self._judge_amount(promise)

    def outlook(self) -> Outlook | None:
        """Return what a release would be like, from public numbers only; None as long as some are missing."""
        effects = None if self._asked is None else self.simulations.known.get(self._asked)
        if self._known is None or effects is None:
            return self._known
        return replace(self._known, detectable=effects.at(self._known.epsilon), unit=effects.unit)

    # What is shown -----------------------------------------------------------------------------------------------

    def gauge(self) -> str:
        """Show what is spent, what this release would add, and what is left."""
        book, seen = self._book, self._book.seen
        about = {"datasets": seen.datasets, "exists": book.exists, "place": book.place}
        if seen.balance is None:
            return render("custodian/gauge.html", balance=None, **about)
        then = seen.balance if seen.after is None else seen.after
        budget = seen.balance.dataset.epsilon
        spent, after = (min(100.0, round(100 * each.spent / budget, 2)) for each in (seen.balance, then))
        told = f"{spent:.0f}% of the budget is spent, {after:.0f}% with this release"
        width = {"spent": spent, "then": after, "told": told, "why": explained(then)}
        return render("custodian/gauge.html", small=small, **about, **width, **self.costs())

    def costs(self) -> dict[str, object]:
        """Return what is spent, and what would be after this release."""
        seen = self._book.seen
        return {"balance": seen.balance, "after": seen.after, "left": seen.left, "over": seen.over, "room": _room}

    def numbers(self) -> str:
        """Show how well an attacker guesses and which effects would be seen, from public numbers only."""
        about = {"series": self._data.like, "averages": self.averages, "about": lambda value: float(f"{value:.2g}")}
        asked, made = self._asked, self.simulations
        about["working"] = asked is not None and asked not in made.known
        about["first_look"] = asked in made.known and asked not in made.done
        return render("custodian/numbers.html", guess=self.guess, expected=self.outlook(), **about)

    def commands(self) -> str:
        """Show the commands of the budget."""
        form, data, book, known = self._form, self._data, self._book, self._book.seen.datasets
        before = data.before
        sizes = {"n": self.n or "N", "before": before, "after": max(1, len(data.periods) - before)}
        target = {} if data.like is None else {"target": data.like.name}
        many = {} if self.averages in (None, 1) else {"averages": self.averages}
        plan = options(sizes | form.said("epsilon", "delta") | many | target)
        lines = [book.command("show"), command(["dpsc", "plan"], plan)]
        if not known or form["new_name"] not in ("", *known):
            new = {"epsilon": form["new_epsilon"], "delta": form["new_delta"]}
            lines.insert(0, book.command("init", form["new_name"] or "NAME", **new))
        return commands(*lines)

    # -------------------------------------------------------------------------------------------------------------

    def _said(self) -> int | None:
        text = self._form["n"].replace(",", "")
        return int(text) if text.isdigit() and int(text) > 0 else None

    def _simulate(self, promise: Guarantee) -> None:
        """Say what is known at once; the smallest effect follows when it is simulated."""
        T, before, series = len(self._data.periods), self._data.before, self._data.series
        if self.n is None or T < 3:
            return
        first = outlook(self.n, T, 1, promise.epsilon, promise.delta, like=series is not None)
        self._known = replace(first, T0=before)
        if first.worth_having and before >= 2 and self.averages is not None:
            values = None if series is None else tuple(series)
            self._asked = Scenario(self.n, T, before, promise.delta, values, self.averages)
            self.simulations.start(self._asked)

    def _judge_amount(self, promise: Guarantee) -> None:
        """Say what is wrong with an epsilon that is one."""
        form, seen = self._form, self._book.seen
        if seen.dataset and promise.epsilon > seen.left:
            form.problems["epsilon"] = (
                f"Over budget: {seen.dataset!r} has {seen.left:g} left at delta {small(promise.delta)}, "
                f"{promise.epsilon - seen.left:.3g} too little."
            )
            return
        for finding in [] if self._known is None else problems_of(self._known):
            if finding.kind == "useless":
                form.problems["epsilon"] = sentence(finding.words)
            elif finding.kind == "scale" and not form["scale"]:
                form.problems["scale"] = (
                    f"{self.n:,} donors are too few to find out privately how much a donor moves. Say it here, or give "
                    "a public series that moves like a donor."
                )


@contextmanager
def _in_place_of(option: str, field: str) -> Iterator[None]:
    """Let a sentence about an option be about another field."""
    try:
        yield
    except DpscError as problem:
        problem.message = problem.message.replace(str(Parameter(option)), str(Parameter(field)))
        raise


def _room(epsilon: float) -> str:
    """Say how large a release is possible."""
    return f"a release of up to epsilon {epsilon:g}" if epsilon >= _LITTLE else "nothing"


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
