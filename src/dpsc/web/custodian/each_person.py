"""Each person inside the donors is protected: the table of units and periods is released, and its noise is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from dpsc.analyst.plan_panel import plan_panel
from dpsc.checks import finite_number, options
from dpsc.custodian.check import people_report
from dpsc.custodian.check.people import custodian_look
from dpsc.custodian.custody import panels
from dpsc.custodian.custody.steps import require_small_delta
from dpsc.custodian.groups.algorithm import PanelRelease
from dpsc.custodian.groups.people_files import FilePeople
from dpsc.custodian.groups.sources import people_in
from dpsc.errors import DpscError, Parameter, ParameterError
from dpsc.privacy.guarantee import Guarantee, best_guess
from dpsc.release.panel import require_size
from dpsc.release.table_rule import TableRule
from dpsc.tables import reader
from dpsc.tables.spec import TableSpec
from dpsc.web.custodian.data import DataPage
from dpsc.web.custodian.form import DIALECT, Form
from dpsc.web.custodian.kind import OnRows, Order, Seen
from dpsc.web.desk import File, whole
from dpsc.web.server import render

_TABLE = ("person", "unit", "time", "outcome", "units", "periods", "time_format", *DIALECT)
_BOUNDING = (
    "statistic",
    "low",
    "high",
    "person_bound",
    "person_bound_quantile",
    "cells_per_period",
    "cells_per_person",
)
_NEEDED, _VALUES = ("person", "unit", "time"), ("mean", "total")
_CELLS = ("cells_per_period", "cells_per_person")
_WITHOUT_VALUES = ("statistic", *_CELLS)
_PLANNED = ("statistic", "bounds", "person_bound", *_CELLS)
_COUNTING = TableRule("count", None, None, 1, None, units=3, periods=1)  # before it is known what is released


class EachPerson:
    """What is said about records of people, how people are bounded, and the noise that follows from it.

    Attributes
    ----------
    guess : float or None
        How often an attacker guesses right.
    expected : mapping or None
        What a panel would show, from public numbers only; None as long as some are missing.
    """

    rows, one = "records", "person"
    looks_at_noise = True  # with more of it, more cells have too few people
    fields: tuple[str, ...] = (*_TABLE, *_BOUNDING)
    files: Sequence[File] = ()

    def __init__(self, form: Form, data: DataPage) -> None:
        self._form, self._data = form, data
        self.guess: float | None = None
        self.expected: Mapping[str, float] | None = None
        self.people: int | None = None
        self.change: float | None = None
        self._typed = ""
        self._units: tuple[str, ...] = ()

    # The data ----------------------------------------------------------------------------------------------------

    def check_options(self) -> Mapping[str, object]:
        """Return what was said, as ``dpsc check`` takes it."""
        return self._form.said(*_TABLE, *self._bounds_said, "epsilon", "delta")

    def look(self, data: File, on_rows: OnRows) -> Callable[[], Seen]:
        """Refuse what was not said or makes no sense; return what looks at the records."""
        return partial(self._look, *self._chosen(data, self._said()), on_rows)

    def judge(self) -> None:
        """Look at the units, read once if they are in a file, and at what is said of a usual cell."""
        form, self.people, self.change = self._form, None, None
        for name in ("people", "change"):
            form.problems.pop(name, None)
        if form["units"] != self._typed:
            self._typed, self._units = form["units"], ()
            with form.about("units"):
                self._units = _units(form["units"])
        with form.about("people"):
            if form["people"]:
                self.people = whole("people", form["people"])
        with form.about("change"):
            if form["change"]:
                self.change = finite_number("change", form.number("change"), above=0)

    # The budget --------------------------------------------------------------------------------------------------

    def require_delta(self, delta: float) -> None:
        """Refuse a delta that is too large for any number of people worth protecting."""
        require_small_delta(delta, None, False, "people")

    def forget(self) -> None:
        """Forget what was said about another budget."""
        self.guess = self.expected = None

    def promise(self, epsilon: float, delta: float) -> Guarantee:
        """Return what a panel would promise, and find out what it would show."""
        self.guess, rule = best_guess(epsilon, delta), _COUNTING
        with suppress(DpscError):  # the check says what is wrong
            rule = TableRule(**self._bounding(), units=len(self._units), periods=len(self._data.periods))
            require_size(rule.units, rule.periods)
            self._plan(rule, epsilon, delta)
        promise = PanelRelease(epsilon=epsilon, delta=delta, statistic="count").guarantee_for(rule)
        assert promise is not None
        return promise

    def judge_amount(self) -> None:
        """Say if a usual cell would be missing."""
        fewest = 0.0 if self.expected is None else self.expected["fewest_people"]
        if self.people is not None and fewest > self.people:
            self._form.problems["epsilon"] = (
                f"A usual cell of {self.people:,} people would be missing: at this budget a cell needs "
                f"{math.ceil(fewest):,}."
            )

    def numbers(self) -> str:
        """Show how well an attacker guesses, and the noise of a usual cell, from public numbers only."""
        about = {"guess": self.guess, "expected": self.expected}
        return render("custodian/noise.html", about=lambda value: float(f"{value:.2g}"), **about)

    def plan_options(self) -> Mapping[str, object]:
        """Return what was said, as ``dpsc plan`` takes it."""
        form = self._form
        sizes: dict[str, object] = {"units": len(self._units) or "N", "people": self.people or "N"}
        sizes |= form.said("periods", "time_format") or {"periods": "N"}
        bounds = (name for name in self._bounds_said if name != "person_bound_quantile")  # finds a bound at a release
        return sizes | form.said(*bounds, "epsilon", "delta") | form.said("change")

    # The release -------------------------------------------------------------------------------------------------

    def release_options(self) -> list[str]:
        """Return what was said beside the table, as options of ``dpsc release``."""
        return options(self._form.said(*self._bounds_said, "epsilon", "delta"))

    def order(self, data: File, spec: TableSpec) -> Order:
        """Return the release as it was said, and refuse what makes no sense."""
        chosen, people = self._chosen(data, spec)
        return Order(
            lambda account, _: panels.opened(people, chosen, account.payer),
            lambda tell: chosen.algorithm.custodian_sum(people, on_progress=tell),
            lambda summed, *where: panels.booked(summed, chosen, *where),
        )

    # -------------------------------------------------------------------------------------------------------------

    @property
    def _bounds_said(self) -> tuple[str, ...]:
        """The fields that bound people: shares and numbers of people have no values."""
        return _BOUNDING if self._form["statistic"] in _VALUES else _WITHOUT_VALUES

    def _bounding(self) -> dict[str, Any]:
        """Return how people are bounded, by the names of the parameters of a release."""
        form, said = self._form, self._bounds_said
        found: dict[str, Any] = dict.fromkeys(("bounds", "person_bound", "cells_per_person"))
        found |= {"statistic": form["statistic"], "cells_per_period": 1}
        if "low" in said and (form["low"] or form["high"]):
            found["bounds"] = form.number("low"), form.number("high")
        if "person_bound" in said and form["person_bound"]:
            found["person_bound"] = form.number("person_bound")
        return found | {name: whole(name, form[name]) for name in _CELLS if form[name]}

    def _chosen(self, data: File, spec: TableSpec) -> tuple[panels.PanelChoices, FilePeople]:
        """Return how the panel is made, and of whom; refuse what makes no sense."""
        form, quantile = self._form, "person_bound_quantile"
        _units(spec.units or "")
        found = form.number(quantile) if quantile in self._bounds_said and form[quantile] else None
        how = self._bounding() | {quantile: found}
        chosen = panels.of_options(spec, epsilon=form.number("epsilon"), delta=form.number("delta"), **how)
        people = people_in(data.path, spec, chosen.units, chosen.periods)
        chosen.algorithm.rule_for(people.units, people.times)
        return chosen, people

    def _said(self) -> TableSpec:
        """Return what the fields say of the table."""
        for name in _NEEDED:
            if not self._form[name]:
                raise ParameterError(f"say {Parameter(name)}: the first rows show which columns there are.")
        return TableSpec.of({name: self._form[name] for name in _TABLE})

    def _look(self, chosen: panels.PanelChoices, people: FilePeople, on_rows: OnRows) -> Seen:
        """Run in the thread of a check."""
        form = self._form
        form.read(panels.opened, people, chosen, None)
        (block,) = panels.rehearsed(people, chosen, None).blocks
        look = form.read(custodian_look, people, block, on_rows=on_rows)
        promise, spec = chosen.algorithm.guarantee_for(block.rule), people.spec
        assert promise is not None
        parts = people_report.sections(look, promise, spec, ())[:-1]  # the last is the command
        return Seen(look.findings, look.ready, spec, [part.rendered(form.named) for part in parts])

    def _plan(self, rule: TableRule, epsilon: float, delta: float) -> None:
        """Say what a panel would show, if it is known how many people a usual cell has."""
        people = self.people if rule.counts_people else 1
        if people is None:
            return
        after = min(6, max(1, rule.periods // 3))
        how = {name: getattr(rule, name) for name in _PLANNED}
        planned = plan_panel(
            rule.units, people, rule.periods, after, epsilon=epsilon, delta=delta, change=self.change, **how
        )
        self.expected = {str(name): value for name, value in planned.table.iloc[0].items()}


def _units(text: str) -> tuple[str, ...]:
    """Return the units that were typed, or that are in a file."""
    if not text:
        return ()
    try:
        return reader.typed_units(text)
    except DpscError as problem:
        raise ParameterError(f"{Parameter('units')}: {problem.message}") from None
