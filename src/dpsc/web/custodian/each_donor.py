"""Each donor is protected: donors are looked at and added up, and which effects would be seen is simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import pandas as pd

from dpsc.analyst.plan import MOST_AVERAGED, in_range
from dpsc.answers.words import sentence
from dpsc.checks import options
from dpsc.custodian.check import check_report
from dpsc.custodian.check.examine import custodian_examine
from dpsc.custodian.check.run import Outlook, Rehearsal, outlook, problems_of, three_quarters
from dpsc.custodian.custody import steps
from dpsc.custodian.gram.algorithm import GramRelease
from dpsc.custodian.gram.sources import donors_in
from dpsc.errors import DpscError, Parameter, ParameterError
from dpsc.privacy.guarantee import Guarantee, best_guess
from dpsc.tables import series as public_series
from dpsc.tables.spec import TableSpec
from dpsc.web.custodian.data import DataPage
from dpsc.web.custodian.form import DIALECT, Form
from dpsc.web.custodian.kind import OnRows, Order, Seen
from dpsc.web.custodian.simulations import Scenario, Simulations
from dpsc.web.desk import File, whole
from dpsc.web.server import render

PublicSeries: TypeAlias = "pd.Series[float] | None"
_TABLE = ("unit", "time", "outcome", "periods", "time_format", *DIALECT, "missing", "repeated", "by", "labels")


class EachDonor:
    """What is said about donors, public series beside them, and what a release of them would show.

    Attributes
    ----------
    like, reference : File or None
    series : Series or None
        The similar series, as far as the first treated period.
    guess : float or None
        How often an attacker guesses right.
    averages : int or None
        How many people the target is the average of; None if what was said is no such number.
    """

    rows, one = "donors", "donor"
    looks_at_noise = False
    fields: tuple[str, ...] = ("shape", *_TABLE, "low", "high")

    def __init__(self, form: Form, data: DataPage) -> None:
        self._form, self._data = form, data
        self.simulations = Simulations(form)
        self.like: File | None = None
        self.reference: File | None = None
        self.series: pd.Series[float] | None = None
        self.guess: float | None = None
        self.averages: int | None = None
        self._public: dict[tuple[object, ...], PublicSeries | DpscError] = {}  # or why it could not be read
        self._asked: Scenario | None = None
        self._known: Outlook | None = None

    # The data ----------------------------------------------------------------------------------------------------

    @property
    def files(self) -> Sequence[File]:
        """The public files that were given."""
        return [file for file in (self.like, self.reference) if file is not None]

    def use_like(self, file: File | None) -> None:
        """Take a public series that moves about like a donor, or take it away."""
        with self._form.changing():
            self.like = None if file is None else self._form.kept(file)
            self._form.judge()

    def use_reference(self, file: File | None) -> None:
        """Take a public path that is subtracted from every donor, or take it away."""
        with self._form.changing():
            self.reference = None if file is None else self._form.kept(file)
            self._form.judge()

    def without_public_files(self) -> None:
        """Take the public series away."""
        self.use_like(None)
        self.use_reference(None)

    def public_files(self) -> str:
        """Show which public series were given."""
        given = (("Similar series", self.like), ("To subtract", self.reference))
        return render("custodian/public_files.html", files=[(what, file) for what, file in given if file is not None])

    def check_options(self) -> Mapping[str, object]:
        """Return what was said, as ``dpsc check`` takes it."""
        return {**self._form.said(*self.fields), **self._similar()}

    def look(self, data: File, on_rows: OnRows) -> Callable[[], Seen]:
        """Return what examines the donors."""
        self._form.bounds()
        return partial(self._examine, data, self._said(), on_rows)

    def judge(self) -> None:
        """Look at the public series, each read once, and at what is said beside them."""
        form, self.series, self.averages = self._form, None, None
        for name in ("like_before", "like_file", "reference_file", "scale", "n", "averages"):
            form.problems.pop(name, None)
        with form.about("like_file", *self._data.files):
            if self.like is not None:
                self.series = self._read_once(public_series.like, self.like.path, form["like_before"] or None)
        with form.about("reference_file", *self._data.files):
            if self.reference is not None:
                self._read_once(public_series.reference, self.reference.path)
        with form.about("scale"):
            if form["scale"]:
                GramRelease(epsilon=1, delta=1e-6, scale=form.number("scale"), like=self.series)
        with form.about("averages"):
            number = whole("averages", form["averages"] or "1")
            if number > MOST_AVERAGED:
                raise ParameterError(f"{Parameter('averages')} must be at most {MOST_AVERAGED:,}, not {number:,}.")
            self.averages = number
        with form.about("n"):
            if form["n"] and self._n_said is None:
                raise ParameterError(f"{Parameter('n')} must be a whole number above 0.")

    # The budget --------------------------------------------------------------------------------------------------

    @property
    def before(self) -> int:
        """How many periods are before the intervention: as said, or three quarters of all."""
        first, periods = self._form["like_before"], self._data.periods
        return periods.index(first) if first in periods[2:] else three_quarters(len(periods))

    @property
    def n(self) -> int | None:
        """How many donors there are: public, as said, or else as counted by the check."""
        checked = self._data.checked
        return self._n_said or (None if checked is None else checked.seen.units)

    @property
    def _n_said(self) -> int | None:
        text = self._form["n"].replace(",", "")
        return int(text) if text.isdigit() and int(text) > 0 else None

    def require_delta(self, delta: float) -> None:
        """Refuse a delta that is not below one over the number of donors."""
        steps.require_small_delta(delta, self.n, False)

    def promise(self, epsilon: float, delta: float) -> Guarantee:
        """Say what a release would promise; the smallest effect follows when it is simulated."""
        promise = GramRelease(epsilon=epsilon, delta=delta).guarantee
        assert promise is not None
        self.guess = best_guess(epsilon, delta)
        self._simulate(promise)
        return promise

    def forget(self) -> None:
        """Forget what was said about another budget."""
        self.guess = self._asked = self._known = None

    def judge_amount(self) -> None:
        """Say what is wrong with a budget that there is."""
        form = self._form
        for finding in [] if self._known is None else problems_of(self._known):
            if finding.kind == "useless":
                form.problems["epsilon"] = sentence(finding.words)
            elif finding.kind == "scale" and not form["scale"]:
                form.problems["scale"] = (
                    f"{self.n:,} donors are too few to find out privately how much a donor moves. Say it here, or give "
                    "a public series that moves like a donor."
                )

    def outlook(self) -> Outlook | None:
        """Return what a release would be like, from public numbers only; None as long as some are missing."""
        effects = None if self._asked is None else self.simulations.known.get(self._asked)
        if self._known is None or effects is None:
            return self._known
        return replace(self._known, detectable=effects.at(self._known.epsilon), unit=effects.unit)

    def numbers(self) -> str:
        """Show how well an attacker guesses and which effects would be seen, from public numbers only."""
        about = {"series": self.like, "averages": self.averages, "in_range": in_range}
        asked, made = self._asked, self.simulations
        about["working"] = asked is not None and asked not in made.known
        about["first_look"] = asked in made.known and asked not in made.done
        return render("custodian/numbers.html", guess=self.guess, expected=self.outlook(), **about)

    def plan_options(self) -> Mapping[str, object]:
        """Return what was said, as ``dpsc plan`` takes it."""
        form, before, similar = self._form, self.before, self._similar()
        when: dict[str, object] = {"before": before, "after": max(1, len(self._data.periods) - before)}
        if "treatment_time" in similar:
            when = form.said("periods", "time_format")
        many = {} if self.averages in (None, 1) else {"averages": self.averages}
        return {"n": self.n or "N", **when, **form.said("epsilon", "delta"), **many, **similar}

    # The release -------------------------------------------------------------------------------------------------

    def release_options(self) -> list[str]:
        """Return what was said beside the table, as options of ``dpsc release``."""
        form = self._form
        given = {**form.said("epsilon", "delta", "low", "scale"), **self._similar()}
        if self.reference is not None:
            given["reference"] = self.reference.name
        return [*options(given), *(part for label in self._excluded for part in options({"exclude": label}))]

    def order(self, data: File, spec: TableSpec) -> Order:
        """Return the release as it was said, and refuse what makes no sense."""
        form = self._form
        like, reference = (None if each is None else each.path for each in (self.like, self.reference))
        chosen = steps.of_options(
            spec,
            epsilon=form.number("epsilon"),
            delta=form.number("delta"),
            reference=reference,
            scale=form.number("scale") if form["scale"] else None,
            like=like,
            like_before=None if like is None else form["like_before"] or None,
        )
        excluded = self._excluded
        source = donors_in(data.path, spec, chosen.periods, bounds=form.bounds(), exclude=excluded)
        return Order(
            lambda _, tell: steps.opened(source, chosen, reference, tell),
            lambda tell: steps.added_up(source, chosen, tell, i_know=False),
            lambda summed, *where: chosen.booked(summed, *where, n_is_public=not excluded),
        )

    # -------------------------------------------------------------------------------------------------------------

    def _similar(self) -> dict[str, object]:
        """Return the similar series, and how far it counts, by the names of the commands' options."""
        if self.like is None:
            return {}
        said: dict[str, object] = {"target": self.like.name}
        return said | ({"treatment_time": self._form["like_before"]} if self._form["like_before"] else {})

    @property
    def _excluded(self) -> list[str]:
        return [label.strip() for label in self._form["exclude"].split(",") if label.strip()]

    def _said(self) -> TableSpec:
        """Return what the fields say of the table."""
        shape, said = self._form["shape"], {name: self._form[name] for name in _TABLE}
        if shape == "long" and not said["time"] and not said["outcome"]:
            raise ParameterError(f"{Parameter('time')} must be said if a table is long and does not look like it.")
        if shape == "wide":
            said["time"] = ""
        return TableSpec.of(said | {"wide": shape == "wide"})

    def _examine(self, data: File, said: TableSpec, on_rows: OnRows) -> Seen:
        """Run in the thread of a check."""
        form = self._form
        seen = form.read(custodian_examine, data.path, said, on_rows=on_rows)
        parts = [part.rendered(form.named) for part in check_report.sections(Rehearsal(seen))]
        only_in_rows, units = tuple(seen.only_in_rows), seen.units or None
        return Seen(seen.findings, seen.ready, seen.spec, parts, only_in_rows, seen.periods, units)

    def _simulate(self, promise: Guarantee) -> None:
        """Say what is known at once; the smallest effect follows when it is simulated."""
        T, before = len(self._data.periods), self.before
        if self.n is None or T < 3:
            return
        first = outlook(self.n, T, 1, promise.epsilon, promise.delta, like=self.series is not None)
        self._known = replace(first, T0=before)
        if first.worth_having and before >= 2 and self.averages is not None:
            values = None if self.series is None else tuple(self.series)
            self._asked = Scenario(self.n, T, before, promise.delta, values, self.averages)
            self.simulations.start(self._asked)

    def _read_once(self, step: Callable[..., PublicSeries], *arguments: object) -> PublicSeries:
        """Read a public file once: a page that waits for it again and again could not be used."""
        columns = ("unit", "time", "outcome", "time_format", *DIALECT)
        arguments = (*arguments, TableSpec.of({name: self._form[name] for name in columns}))
        key = (step.__name__, *arguments)
        if key not in self._public:
            try:
                self._public[key] = self._form.read(step, *arguments)
            except DpscError as problem:
                self._public[key] = problem
        found = self._public[key]
        if isinstance(found, DpscError):
            raise found
        return found
