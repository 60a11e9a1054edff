"""The custodian's desk: donors, what was said about them, the check, the budget, and the release that was made.

There is one desk per program: a page that is loaded again, or a second one, shows the same. Everything here but the
release is private. Long work is done in a thread; a release begins only from a desk that is ready, and once.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dpsc import checks
from dpsc.answers.words import sentence
from dpsc.checks import small
from dpsc.custodian.check import check_report
from dpsc.custodian.check.examine import CustodianExamination
from dpsc.custodian.check.findings import Finding
from dpsc.custodian.check.run import Outlook, Rehearsal, custodian_examined, custodian_first_rows, problems_of
from dpsc.custodian.custody import options as choices
from dpsc.custodian.custody.options import require_reasonable, require_small_delta
from dpsc.custodian.gram.algorithm import GramRelease
from dpsc.custodian.gram.sources import donors_in
from dpsc.errors import DpscError, Parameter, ParameterError
from dpsc.periods.dates import period_name
from dpsc.privacy.guarantee import Guarantee, best_guess
from dpsc.tables import reader as tables
from dpsc.tables import series as public_series
from dpsc.tables.dialect import Dialect
from dpsc.tables.spec import MIDPOINT, TableSpec
from dpsc.web import work as unexpected
from dpsc.web.custodian.book import Seen, Shelf
from dpsc.web.custodian.fields import FIELDS, LABELS, READING, Facts, field_of, named, release_command
from dpsc.web.custodian.outlook import Asked, Simulations
from dpsc.web.custodian.release import Made, Request, beside, make, require_free
from dpsc.web.page_files import File, Reader, directly
from dpsc.web.work import Stopped, Work

_BUDGET = ("dataset", "n", "epsilon", "delta", "scale", "like_before", *READING)
_PAID_BY = {"epsilon": "Budget", "delta": "Budget", "n": "Budget", "scale": "Data", "like_before": "Data",
            "like_file": "Data", "reference_file": "Data", "file_name": "Confirm", "recipient": "Confirm",
            "purpose": "Confirm"}  # fmt: skip
_DIALECT = ("sep", "decimal", "thousands", "encoding", "sheet")
_TABLE = ("unit", "time", "outcome", "time_format", "periods", "missing", "repeated", *_DIALECT)
_TRIED = 100  # names of a release


@dataclass(frozen=True, repr=False)
class Checked:
    """What the check found. Private: for the custodian only."""

    key: tuple[Any, ...]
    seen: CustodianExamination
    findings: tuple[Finding, ...]
    rows: list[list[str]]

    @property
    def ready(self) -> bool:
        """Whether nothing needs to be corrected."""
        return all(finding.grade != "correct" for finding in self.findings)

    @property
    def sections(self) -> list[check_report.Section]:
        """What is shown."""
        return check_report.sections(Rehearsal(self.seen, self.findings))


class CustodianDesk:
    """What lies on the custodian's desk; each step says next to which field something is wrong.

    Parameters
    ----------
    private : Path
        A private folder for what is dropped on the page.
    folder : Path
        Where releases are written.
    ledger : str or None
        The option ``--ledger``.
    reader : Reader, optional
        Reads files in a process that can be ended; without it they are read here.
    """

    def __init__(self, private: Path, folder: Path, ledger: str | None, reader: Reader | None = None) -> None:
        self._reader, self._read = reader, reader or directly
        self._public: dict[tuple[Any, ...], Any] = {}  # what was read of public files, or why it could not be
        self._private, self.folder, self.shelf = private, folder, Shelf(ledger)
        self._lock = threading.RLock()
        self._changes = 0
        self.work = Work()
        self.fields = {name: field.default for name, field in FIELDS.items()}
        self.problems: dict[str, str] = {}
        self.donors: File | None = None
        self.like: File | None = None
        self.reference: File | None = None
        self.checked: Checked | None = None
        self.book = Seen()
        self.verified: list[str] | None = None
        self.made: Made | None = None
        self.note = ""
        self.phase = "open"  # then "working", then "done" until it is begun anew
        self.emptied = 0  # how often the typed name was taken away
        self.guess: float | None = None  # how often an attacker guesses right
        self.simulations = Simulations(self._touch)
        self._asked: tuple[Asked, float] | None = None
        self.look_into_book()

    @property
    def version(self) -> tuple[Any, ...]:
        """Something that differs as soon as a page must show something else."""
        work = self.work
        share = work.rows if not work.expected else 100 * work.rows // work.expected
        return self._changes, work.what, work.stopping, work.final, share

    # Each step ---------------------------------------------------------------------------------------------------

    def fill(self, name: str, value: str) -> None:
        """Take what was written into a field."""
        if self.fields[name] == value:
            return
        with self._changing():
            self.fields[name] = value
            self.problems.pop(name, None)
            if name in _BUDGET:
                self._judge()

    def use_file(self, file: File) -> None:
        """Take donors that were dropped on the page, and check them."""
        with self._changing():
            self._take(self._kept(file))

    def use_path(self) -> None:
        """Take donors that are on this machine, where they are, and check them."""
        with self._changing(), self._about("path"):
            path = Path(self.fields["path"].strip()).expanduser()
            if not self.fields["path"].strip() or not path.exists():
                raise ParameterError(f"there is nothing at {path} on this machine.")
            self._take(File(path, str(path)))

    def use_like(self, file: File | None) -> None:
        """Take a public series that moves about like a donor, or take it away."""
        with self._changing():
            self.like = None if file is None else self._kept(file)
            self._judge()

    def use_reference(self, file: File | None) -> None:
        """Take a public path that is subtracted from every donor, or take it away."""
        with self._changing():
            self.reference = None if file is None else self._kept(file)
            self._judge()

    def without_public_files(self) -> None:
        """Take the public series away."""
        self.use_like(None)
        self.use_reference(None)

    def check(self) -> None:
        """Examine the donors, in a thread."""
        with self._changing():
            donors = self.donors
            if donors is None:
                self.problems["donors_file"] = "Drop a file first, or type where it is."
                return
            with self._about("donors_file"):
                self._bounds()
                asked, key = self._said(), self._key()
                self.note = ""
                self.work.start("Looking at the donors", lambda: self._examine(donors, asked, key))

    def enter_dataset(self) -> None:
        """Give a data set its budget in the ledger, as ``dpsc ledger init`` does."""
        with self._changing(), self._about("new_name"):
            epsilon, delta = self._number("new_epsilon"), self._number("new_delta")
            with self._in_place_of("epsilon", "new_epsilon"):
                require_reasonable(epsilon, False)
            with self._in_place_of("delta", "new_delta"):
                require_small_delta(delta, self._donors_said(), False)
            self.fields["dataset"] = self.shelf.enter(self.fields["new_name"].strip(), epsilon, delta)
            self._judge()

    def look_into_book(self) -> None:
        """Read the ledger again."""
        with self._changing():
            self.verified = None
            self._judge()

    def verify(self) -> None:
        """Check the chain of the ledger."""
        with self._changing(), self._about("book"):
            self.verified = self.shelf.verify()

    def spend(self) -> None:
        """Make the release: only from a desk that is ready, and once."""
        with self._changing():
            if self.phase != "open" or self.work.what or self.to_do:
                return
            with self._about("spend"):
                request, donors = self._request(), self.donors
                assert donors is not None
                self.phase, self.note = "working", ""
                if not self.work.start("Making the release", lambda: self._release(request, donors)):
                    self.phase = "open"

    def stop(self) -> None:
        """Stop what is under way, if it is not too late."""
        with self._changing():
            if self.work.stop() and self._reader is not None:
                self._reader.end()

    def begin_anew(self) -> None:
        """Make room for another release; the last one stays where it was written."""
        with self._changing():
            if self.phase == "done":
                self.phase, self.made, self.note = "open", None, ""
                self._take_name_away()

    def end(self) -> None:
        """Stop what can be stopped, and finish what is booked."""
        self.work.stop()
        self.work.wait()

    # What is there -----------------------------------------------------------------------------------------------

    @property
    def current(self) -> bool:
        """Whether the check is about what is written in the fields now."""
        return self.checked is not None and self.checked.key == self._key()

    @property
    def dataset(self) -> str:
        """The name of the data set that pays; empty if there is none yet."""
        return "" if self.book.balance is None else self.book.balance.dataset.name

    @property
    def to_do(self) -> list[str]:
        """What must be done before the release can be paid for; empty if it can."""
        found = []
        if self.checked is None:
            found.append("Drop the donors, under “Data”.")
        elif not self.current:
            found.append("Check again, under “Check”: something was changed since.")
        elif not self.checked.ready:
            found.append("Correct what the check found, under “Check”.")
        if not self.dataset:
            found.append("Choose the data set that pays, under “Budget”.")
        for name, where in _PAID_BY.items():
            if name in self.problems:
                found.append(f"Correct “{LABELS.get(name, name)}”, under “{where}”.")
        for name in ("recipient", "purpose"):
            if not self.fields[name].strip():
                found.append(f"Say {FIELDS[name].label.lower()}.")
        if self.dataset and self.fields["typed_name"].strip() != self.dataset:
            found.append(f"Type {self.dataset} to spend.")
        return found

    @property
    def count(self) -> int | None:
        """How many donors there are: public, as said, or else as counted by the check."""
        said = self._donors_said()
        return said if said is not None else self.checked.seen.units or None if self.checked is not None else None

    @property
    def periods(self) -> list[str]:
        """The periods that were said, or else those in the header of a wide table: never what only rows show."""
        try:
            if not self.fields["periods"].strip():
                raise ParameterError(f"{Parameter('periods')} is empty.")
            index = tables.typed_periods(self.fields["periods"], None, self.fields["time_format"] or None)
            return [period_name(period) for period in index]
        except (DpscError, OSError):
            seen = None if self.checked is None else self.checked.seen
            return [] if seen is None or "periods" in seen.only_in_rows else list(seen.periods)

    @property
    def outlook(self) -> Outlook | None:
        """What a release would be like, from public numbers only; None as long as some are missing."""
        asked = self._asked
        return None if asked is None else self.simulations.outlook(*asked)

    @property
    def out(self) -> Path:
        """The file that the release would be written to."""
        typed = self.fields["file_name"].strip()
        if typed:
            return self.folder / f"{typed.removesuffix('.json').removesuffix('.dpsc')}.dpsc.json"
        stem = "donors" if self.donors is None else Path(self.donors.name).name.split(".")[0].lstrip("-") or "donors"
        names = [stem, *(f"{stem}-{number}" for number in range(2, _TRIED))]
        places = [self.folder / f"{name}.dpsc.json" for name in names]
        return next((place for place in places if not any(map(os.path.lexists, beside(place)))), places[-1])

    @property
    def facts(self) -> Facts:
        """What lies on the desk, for the commands that do the same."""
        periods = self.periods
        before = self.before(periods)
        return Facts(
            dict(self.fields), self.donors, self.like, self.reference,
            None if self.checked is None else self.checked.seen.spec, self.count, before, max(1, len(periods) - before),
            self.dataset, None if self.shelf.given is None else self.shelf.place, self.out,
        )  # fmt: skip

    # -------------------------------------------------------------------------------------------------------------

    def _take(self, donors: File) -> None:
        if self.work.what:
            self.problems["donors_file"] = "Wait until the work at hand has ended, or stop it."
            return
        if self.donors is not None and self._private in self.donors.path.parents:
            shutil.rmtree(self.donors.path.parent, ignore_errors=True)  # no longer needed
        self.donors, self.checked = donors, None
        self.problems.pop("path", None)
        self.check()

    def _key(self) -> tuple[Any, ...]:
        return (self.donors, *(self.fields[name].strip() for name in READING))

    def _value(self, name: str) -> str | None:
        return self.fields[name].strip() or None

    def _said(self) -> TableSpec:
        """Return what the fields say of the table."""
        shape, said = self.fields["shape"], {name: self._value(name) for name in _TABLE}
        if shape == "long" and said["time"] is None and said["outcome"] is None:
            raise ParameterError(f"{Parameter('time')} must be said if a table is long and does not look like it.")
        if shape == "wide":
            said["time"] = None
        return TableSpec.of(said | {"wide": shape == "wide"})

    def _dialect(self) -> Dialect:
        return TableSpec.of({name: self._value(name) for name in _DIALECT}).dialect

    def _number(self, name: str) -> float:
        text = self.fields[name].strip().replace(",", ".")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise ParameterError(f"{Parameter(name)} must be a number.")
        return value

    def _bounds(self) -> tuple[float, float] | None:
        if not self._value("low") and not self._value("high"):
            if self.fields["missing"] == "midpoint":
                raise ParameterError(f"{MIDPOINT} needs {Parameter('bounds')}.")
            return None
        return self._number("low"), self._number("high")

    def _donors_said(self) -> int | None:
        text = self.fields["n"].strip().replace(",", "")
        return int(text) if text.isdigit() and int(text) > 0 else None

    def before(self, periods: list[str]) -> int:
        """Return how many periods are before the intervention: as said, or three quarters of all."""
        first = self.fields["like_before"].strip()
        T = len(periods)
        return periods.index(first) if first in periods[2:] else max(1, min(T - 1, round(0.75 * T)))

    def _like_series(self) -> pd.Series[float] | None:
        if self.like is None:
            return None
        before, how = self._value("like_before"), self._value("time_format")
        series: pd.Series[float] = self._public_series(public_series.like, self.like.path, before, how, self._dialect())
        return series

    def _public_series(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Read a public file once: a page that waits for it again and again could not be used."""
        key = (step.__name__, *arguments)
        if key not in self._public:
            try:
                self._public[key] = self._read(step, *arguments)
            except DpscError as problem:
                self._public[key] = problem
        if isinstance(self._public[key], DpscError):
            raise self._public[key]
        return self._public[key]

    def _examine(self, donors: File, asked: TableSpec, key: tuple[Any, ...]) -> None:
        """Run in the thread of a check."""

        def step() -> None:
            self.work.on_rows(0)
            try:
                seen, found = self._read(custodian_examined, donors.path, asked, on_rows=self.work.on_rows)
                rows = self._read(custodian_first_rows, donors.path, asked)
            finally:
                self.work.on_rows(0)  # whatever came of it: if somebody asked to stop, it was stopped
            with self._changing():
                self.checked = Checked(key, seen, tuple(found), rows)
                for name in seen.only_in_rows:
                    self.problems[name] = "Say this from what you know of the data, not from its rows."

        try:
            self._in_thread("donors_file", donors, step)
        finally:
            with self._changing():
                self._judge()

    def _release(self, request: Request, donors: File) -> None:
        """Run in the thread of a release."""

        def step() -> None:
            made = make(request, self.work)
            with self._changing():
                self.made, self.phase = made, "done"

        try:
            self._in_thread("spend", donors, step)
        finally:
            with self._changing():
                failed, self.phase = self.phase == "working", "open" if self.phase == "working" else self.phase
                self._take_name_away()
                self._judge()
                if failed and str(request.out) in [entry.output for entry in self.book.entries]:
                    self.note = "The release was booked, and could not be made: see “Book”."

    def _in_thread(self, field: str, donors: File, step: Callable[[], None]) -> None:
        """Run a step of long work; keep what is wrong, and tell no content of what was not expected."""

        def guarded() -> None:
            try:
                with self._about(field, donors):
                    step()
            except Stopped:
                self.note = "Stopped. Nothing was booked and nothing was written."

        trouble = unexpected.said(guarded)
        if trouble:
            with self._changing():
                self.problems[field] = trouble

    def _request(self) -> Request:
        donors, checked = self.donors, self.checked
        assert donors is not None
        assert checked is not None
        spec = checked.seen.spec
        excluded = [label.strip() for label in self.fields["exclude"].split(",") if label.strip()]
        reference = None if self.reference is None else self.reference.path
        chosen = choices.of_options(
            spec,
            epsilon=self._number("epsilon"),
            delta=self._number("delta"),
            reference=reference,
            scale=self._number("scale") if self._value("scale") else None,
            like=None if self.like is None else self.like.path,
            like_before=None if self.like is None else self._value("like_before"),
        )
        source = donors_in(donors.path, spec, chosen.periods, bounds=self._bounds(), exclude=excluded)
        recipient, use = self.fields["recipient"].strip(), self.fields["purpose"].strip()
        for name, text in (("recipient", recipient), ("purpose", use)):
            checks.printable(name, text)
        out = self.out
        require_free(out, self.folder)
        return Request(
            self.shelf.url, chosen, source, reference, self.dataset, f"for {recipient}: {use}", recipient, use, out,
            n_is_public=not excluded, command=release_command(self.facts),
        )  # fmt: skip

    def _judge(self) -> None:
        """Look into the ledger, and say what is wrong with the budget, next to its fields."""
        for name in ("epsilon", "delta", "scale", "n", "like_before", "like_file", "reference_file", "dataset",
                     "book"):  # fmt: skip
            self.problems.pop(name, None)
        promise = series = None
        self.guess = self._asked = None
        with self._about("epsilon"):
            if self.fields["n"].strip() and self._donors_said() is None:
                raise ParameterError(f"{Parameter('n')} must be a whole number above 0.")
            epsilon, delta = self._number("epsilon"), self._number("delta")
            require_reasonable(epsilon, False)
            require_small_delta(delta, self.count, False)
            promise = GramRelease(epsilon=epsilon, delta=delta).guarantee
            self.guess = best_guess(epsilon, delta)
        with self._about("like_file", self.like):
            series = self._like_series()
        n, periods = self.count, self.periods
        if promise is not None and n is not None and len(periods) >= 3:
            values = None if series is None else tuple(series)
            self._asked = Asked(n, len(periods), self.before(periods), promise.delta, values), promise.epsilon
        with self._about("reference_file", self.reference):
            if self.reference is not None:
                how = self._value("time_format"), self._dialect()
                self._public_series(public_series.reference, self.reference.path, *how)
        with self._about("scale"):
            if self._value("scale"):
                GramRelease(epsilon=1, delta=1e-6, scale=self._number("scale"), like=series)
        with self._about("dataset"):
            self.book = self.shelf.read(self.fields["dataset"], promise)
            self.fields["dataset"] = self.dataset
        if promise is not None:
            self._judge_amount(promise)

    def _judge_amount(self, promise: Guarantee) -> None:
        """Say what is wrong with an epsilon that is one."""
        if self.dataset and promise.epsilon > self.book.left:
            self.problems["epsilon"] = (
                f"Over budget: {self.dataset!r} has {self.book.left:g} left at delta {small(promise.delta)}, "
                f"{promise.epsilon - self.book.left:.3g} too little."
            )
            return
        expected = self.outlook
        for finding in [] if expected is None else problems_of(expected):
            if finding.kind == "useless":
                self.problems["epsilon"] = sentence(finding.words)
            elif finding.kind == "scale" and not self._value("scale"):
                self.problems["scale"] = (
                    f"{self.count:,} donors are too few to find out privately how much a donor moves. Say it here, or "
                    "give a public series that moves like a donor."
                )

    def _take_name_away(self) -> None:
        """Let the name be typed again before anything else is spent."""
        self.fields["typed_name"] = ""
        self.emptied += 1

    def _touch(self) -> None:
        with self._changing():
            pass

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            finally:
                self._changes += 1

    @contextmanager
    def _about(self, field: str, file: File | None = None) -> Iterator[None]:
        """Keep what is wrong, in the library's words, beside the field that it is about."""
        self.problems.pop(field, None)
        try:
            yield
        except DpscError as problem:
            text = problem.text(named)
            at = field_of(problem.message) or field
            if field in ("like_file", "reference_file") and at in READING:  # they are about how the donors are written
                at = field
        except OSError as problem:
            text, at = f"{problem.strerror or type(problem).__name__}.", field
        else:
            return
        known = [each for each in (file, self.donors, self.like, self.reference) if each is not None]
        for each in known:
            text = text.replace(str(each.path), each.name)
        with self._changing():
            self.problems[at] = text if text.startswith(tuple(each.name for each in known)) else sentence(text)

    @contextmanager
    def _in_place_of(self, option: str, field: str) -> Iterator[None]:
        """Let a sentence about an option be about another field."""
        try:
            yield
        except DpscError as problem:
            problem.message = problem.message.replace(str(Parameter(option)), str(Parameter(field)))
            raise

    def _kept(self, file: File) -> File:
        """Move a dropped file to the desk: the browser's upload goes when the page is loaded again."""
        kept = Path(tempfile.mkdtemp(dir=self._private)) / f"dropped{file.path.suffix}"
        os.replace(file.path, kept)
        return File(kept, file.name)
