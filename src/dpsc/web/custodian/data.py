"""The pages Data and Check: the donors, public series beside them, and what the check found. Private, all of it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from dpsc.answers.words import sentence
from dpsc.checks import command, options
from dpsc.custodian.check import check_report
from dpsc.custodian.check.examine import MARK, CustodianExamination, custodian_examine
from dpsc.custodian.check.run import Rehearsal, custodian_first_rows, three_quarters
from dpsc.errors import DpscError, Parameter, ParameterError
from dpsc.periods.dates import period_name
from dpsc.tables import reader as tables
from dpsc.tables import series as public_series
from dpsc.tables.spec import TableSpec
from dpsc.web.custodian.form import DIALECT, READING, TABLE, Form, commands
from dpsc.web.desk import File
from dpsc.web.server import render

PublicSeries: TypeAlias = "pd.Series[float] | None"
_HEIGHTS = {sign: f"h{k}" for k, sign in enumerate("·▁▂▃▄▅▆▇█")}


@dataclass(frozen=True, repr=False)
class Checked:
    """What the check found. Private: for the custodian only."""

    key: tuple[object, ...]
    seen: CustodianExamination
    rows: list[list[str]]
    named: Callable[[Parameter], str]

    @cached_property
    def sections(self) -> list[check_report.Section]:
        """What is shown."""
        return [part.rendered(self.named) for part in check_report.sections(Rehearsal(self.seen))]


class DataPage:
    """What is said about the donors, and what they are.

    Attributes
    ----------
    donors, like, reference : File or None
    checked : Checked or None
    series : Series or None
        The similar series, as far as the first treated period.
    periods : list of str
        Those that were said, or else those in the header of a wide table: never what only rows show.
    """

    def __init__(self, form: Form) -> None:
        self._form = form
        self.donors: File | None = None
        self.like: File | None = None
        self.reference: File | None = None
        self.checked: Checked | None = None
        self.series: pd.Series[float] | None = None
        self.periods: list[str] = []
        self._public: dict[tuple[object, ...], PublicSeries | DpscError] = {}  # or why it could not be read
        self._typed: tuple[str, str] = ("", "")
        self._declared: list[str] = []

    @property
    def files(self) -> list[File]:
        """The files that were given."""
        return [file for file in (self.donors, self.like, self.reference) if file is not None]

    @property
    def current(self) -> bool:
        """Whether the check is about what is written in the fields now."""
        return self.checked is not None and self.checked.key == self._key()

    @property
    def before(self) -> int:
        """How many periods are before the intervention: as said, or three quarters of all."""
        first, T = self._form["like_before"], len(self.periods)
        return self.periods.index(first) if first in self.periods[2:] else three_quarters(T)

    # Each step ---------------------------------------------------------------------------------------------------

    def use_file(self, file: File) -> None:
        """Take donors that were dropped on the page, and check them."""
        with self._form.changing():
            self._take(self._kept(file))

    def use_path(self) -> None:
        """Take donors that are on this machine, where they are, and check them."""
        with self._form.changing(), self._form.about("path"):
            path = Path(self._form["path"]).expanduser()
            if not self._form["path"] or not path.exists():
                raise ParameterError(f"there is nothing at {path} on this machine.")
            self._take(File(path, str(path)))

    def use_like(self, file: File | None) -> None:
        """Take a public series that moves about like a donor, or take it away."""
        with self._form.changing():
            self.like = None if file is None else self._kept(file)
            self._form.judge()

    def use_reference(self, file: File | None) -> None:
        """Take a public path that is subtracted from every donor, or take it away."""
        with self._form.changing():
            self.reference = None if file is None else self._kept(file)
            self._form.judge()

    def without_public_files(self) -> None:
        """Take the public series away."""
        self.use_like(None)
        self.use_reference(None)

    def check(self) -> None:
        """Examine the donors, in a thread."""
        form, donors = self._form, self.donors
        with form.changing():
            if donors is None:
                form.problems["donors_file"] = "Drop a file first, or type where it is."
                return
            with form.about("donors_file", *self.files):
                form.bounds()
                step = partial(self._examine, donors, self.said(), self._key())
                form.begin("Looking at the donors", "donors_file", self.files, step, form.judge)

    def judge(self) -> None:
        """Look at the periods that were said and at the public series, each read once."""
        form = self._form
        for name in ("like_before", "like_file", "reference_file"):
            form.problems.pop(name, None)
        self.periods, self.series = self._periods(), None
        with form.about("like_file", *self.files):
            if self.like is not None:
                self.series = self._read_once(public_series.like, self.like.path, form["like_before"] or None)
        with form.about("reference_file", *self.files):
            if self.reference is not None:
                self._read_once(public_series.reference, self.reference.path)

    # What is shown -----------------------------------------------------------------------------------------------

    def understood(self) -> str:
        """Show how the file was understood, and its first rows."""
        return render("custodian/understood.html", **self._found())

    def findings(self) -> str:
        """Show everything that the check found."""
        more = {"mark": MARK, "heights": _HEIGHTS, "ended": sentence}
        return render("custodian/findings.html", **more, **self._found())

    def public_files(self) -> str:
        """Show which public series were given."""
        given = (("Similar series", self.like), ("To subtract", self.reference))
        return render("custodian/public_files.html", files=[(what, file) for what, file in given if file is not None])

    def command(self) -> str:
        """Show the command of the check."""
        return commands(command(["dpsc", "check", self.name], options(self._form.said(*READING))))

    @property
    def name(self) -> str:
        """The file of the donors, as commands name it."""
        return "donors.csv" if self.donors is None else self.donors.name

    def _found(self) -> dict[str, object]:
        verdict = check_report.verdict(() if self.checked is None else self.checked.seen.findings)
        about = {"donors": self.donors, "checked": self.checked, "current": self.current}
        return {**about, "verdict": verdict}

    # -------------------------------------------------------------------------------------------------------------

    def _take(self, donors: File) -> None:
        form = self._form
        if form.work.what:
            form.problems["donors_file"] = "Wait until the work at hand has ended, or stop it."
            return
        if self.donors is not None and form.folder in self.donors.path.parents:
            shutil.rmtree(self.donors.path.parent, ignore_errors=True)  # no longer needed
        self.donors, self.checked = donors, None
        form.problems.pop("path", None)
        self.check()

    def _kept(self, file: File) -> File:
        """Move a dropped file to the desk: the browser's upload goes when the page is loaded again."""
        kept = Path(tempfile.mkdtemp(dir=self._form.folder)) / f"dropped{file.path.suffix}"
        os.replace(file.path, kept)
        return File(kept, file.name)

    def _key(self) -> tuple[object, ...]:
        return (self.donors, *(self._form.fields[name].strip() for name in READING))

    def said(self) -> TableSpec:
        """Return what the fields say of the table."""
        shape, said = self._form["shape"], {name: self._form[name] for name in TABLE}
        if shape == "long" and not said["time"] and not said["outcome"]:
            raise ParameterError(f"{Parameter('time')} must be said if a table is long and does not look like it.")
        if shape == "wide":
            said["time"] = ""
        return TableSpec.of(said | {"wide": shape == "wide"})

    def _examine(self, donors: File, said: TableSpec, key: tuple[object, ...]) -> None:
        """Run in the thread of a check."""
        form = self._form
        form.work.on_rows(0)
        try:
            seen = form.read(custodian_examine, donors.path, said, on_rows=form.work.on_rows)
            rows = form.read(custodian_first_rows, donors.path, said)
        finally:
            form.work.on_rows(0)  # whatever came of it: if somebody asked to stop, it was stopped
        with form.changing():
            self.checked, self._typed = Checked(key, seen, rows, form.named), ("", "")
            for name in seen.only_in_rows:
                form.problems[name] = "Say this from what you know of the data, not from its rows."

    def _periods(self) -> list[str]:
        typed = self._form["periods"], self._form["time_format"]
        if typed != self._typed:  # they may be in a file
            self._typed, self._declared = typed, []
            try:
                if typed[0]:
                    index = tables.typed_periods(typed[0], None, typed[1] or None)
                    self._declared = [period_name(period) for period in index]
            except (DpscError, OSError):
                pass  # the check says what is wrong
        if self._declared or self.checked is None or "periods" in self.checked.seen.only_in_rows:
            return self._declared
        return list(self.checked.seen.periods)

    def _read_once(self, step: Callable[..., PublicSeries], *arguments: object) -> PublicSeries:
        """Read a public file once: a page that waits for it again and again could not be used."""
        arguments = (*arguments, TableSpec.of({name: self._form[name] for name in ("time_format", *DIALECT)}))
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
