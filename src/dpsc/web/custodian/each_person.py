"""Each person inside the donors is protected: the table of units and periods is released, and its noise is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dpsc.analyst.plan_panel import plan_panel
from dpsc.checks import options, whole_number
from dpsc.custodian.check import people_report
from dpsc.custodian.check.people import custodian_look
from dpsc.custodian.custody import panels
from dpsc.custodian.custody.payer import Account
from dpsc.custodian.custody.steps import require_small_delta
from dpsc.custodian.groups.algorithm import PanelRelease, PeopleSum
from dpsc.custodian.groups.people_files import FilePeople
from dpsc.custodian.groups.sources import people_in
from dpsc.errors import DpscError, Parameter, ParameterError
from dpsc.privacy.guarantee import Guarantee, best_guess
from dpsc.release.panel import Block
from dpsc.release.table_rule import TableRule
from dpsc.tables import reader
from dpsc.tables.spec import TableSpec
from dpsc.web.custodian.data import DataPage
from dpsc.web.custodian.form import DIALECT, Form
from dpsc.web.custodian.kind import OnRows, Seen
from dpsc.web.desk import File, whole
from dpsc.web.server import render

_TABLE = ("person", "unit", "time", "outcome", "units", "periods", "time_format", *DIALECT)
_BOUNDING = ("statistic", "low", "high", "person_bound", "cells_per_period", "cells_per_person")
_NEEDED = ("person", "unit", "time")
_COUNTING = TableRule("count", None, None, 1, None, units=3, periods=1)  # before it is known what is released


@dataclass(frozen=True, repr=False)
class PeopleOrder:
    """A release of people as it was said."""

    chosen: panels.PanelChoices
    people: FilePeople

    def opened(self, account: Account) -> int | None:
        """Look whether the records can be read; return how many there are, if that is known."""
        panels.opened(self.people, self.chosen, account.payer)
        return self.people.rows_expected()

    def added_up(self, on_rows: OnRows) -> PeopleSum:
        """Add up the people. Private."""
        return self.chosen.algorithm.custodian_sum(self.people, on_rows=on_rows)

    def booked(
        self, summed: PeopleSum, account: Account, out: Path, place: Path, finish: Callable[[], None]
    ) -> object:
        """Book, make and write the release."""
        return panels.booked(summed, self.chosen, account, out, place, finish)


class EachPerson:
    """What is said about records of people, how people are bounded, and the noise that follows from it.

    Attributes
    ----------
    guess : float or None
        How often an attacker guesses right.
    expected : mapping or None
        What a panel would show, from public numbers only; None as long as some are missing.
    """

    who = "people"
    fields = (*_TABLE, *_BOUNDING)
    files: tuple[File, ...] = ()

    def __init__(self, form: Form, data: DataPage) -> None:
        self._form, self._data = form, data
        self.guess: float | None = None
        self.expected: Mapping[str, float] | None = None
        self.people: int | None = None
        self.change: float | None = None
        self._typed, self._units = "", ()

    # The data ----------------------------------------------------------------------------------------------------

    def check_options(self) -> Mapping[str, object]:
        """Return what was said, as ``dpsc check`` takes it."""
        return self._form.said(*self.fields, "epsilon", "delta")

    def look(self, data: File, on_rows: OnRows) -> Callable[[], Seen]:
        """Refuse what was not said or makes no sense; return what looks at the records."""
        order = self.order(data, self._said())
        return partial(self._look, order, on_rows)

    def judge(self) -> None:
        """Look at the units, read once if they are in a file, and at what is said of them."""
        form, self.people, self.change = self._form, None, None
        for name in ("people", "change"):
            form.problems.pop(name, None)
        with form.about("people"):
            if form["people"]:
                self.people = whole("people", form["people"])
        with form.about("change"):
            if form["change"]:
                self.change = form.number("change")
                if self.change <= 0:
                    raise ParameterError(f"{Parameter('change')} must be a number above 0.")
