"""The pages Data and Check: the table, and what the check found. Private, all of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dpsc.answers.words import sentence
from dpsc.checks import command, options
from dpsc.custodian.check import check_report
from dpsc.custodian.check.examine import MARK
from dpsc.custodian.check.run import custodian_first_rows
from dpsc.errors import DpscError, ParameterError
from dpsc.periods.dates import period_name
from dpsc.tables import reader as tables
from dpsc.tables.spec import TableSpec
from dpsc.web.custodian.form import DIALECT, Form, commands
from dpsc.web.custodian.kind import Kind, Seen
from dpsc.web.desk import File
from dpsc.web.server import render

_HEIGHTS = {sign: f"h{k}" for k, sign in enumerate("·▁▂▃▄▅▆▇█")}


@dataclass(frozen=True, repr=False)
class Checked:
    """What the check found, and what was said then. Private: for the custodian only."""

    key: tuple[object, ...]
    seen: Seen
    budget: tuple[float, float] | None = None  # epsilon and delta, if the noise decides about what was found


class DataPage:
    """What is said about the table, and what it is.

    Attributes
    ----------
    donors : File or None
        The donors, or the records of people.
    rows : list of list of str
        The names of its columns and its first rows. Private.
    periods : list of str
        Those that were said, or else those in the header of a wide table: never what only rows show.
    """

    def __init__(self, form: Form) -> None:
        self._form = form
        self.donors: File | None = None
        self.rows: list[list[str]] = []
        self._checked: dict[str, Checked] = {}  # of donors and of people
        self.periods: list[str] = []
        self._typed: tuple[str, str] = ("", "")
        self._declared: list[str] = []

    @property
    def files(self) -> list[File]:
        """The files that were given."""
        return [*([] if self.donors is None else [self.donors]), *self._form.kind.files]

    @property
    def checked(self) -> Checked | None:
        """What the last check found, if it was of the kind of release that is chosen now."""
        return self._checked.get(self._form.kind.one)

    @property
    def current(self) -> bool:
        """Whether the check is about what is written in the fields now, and about no more noise than it would be."""
        checked = self.checked
        if checked is None or checked.key != self._key():
            return False
        then, now = checked.budget, self._budget()
        return then is None or now is None or all(less <= more for less, more in zip(then, now, strict=True))

    # Each step ---------------------------------------------------------------------------------------------------

    def use_file(self, file: File) -> None:
        """Take donors that were dropped on the page, and check them."""
        with self._form.changing():
            self._take(self._form.kept(file))

    def use_path(self) -> None:
        """Take donors that are on this machine, where they are, and check them."""
        with self._form.changing(), self._form.about("path"):
            path = Path(self._form["path"]).expanduser()
            if not self._form["path"] or not path.exists():
                raise ParameterError(f"there is nothing at {path} on this machine.")
            self._take(File(path, str(path)))

    def check(self) -> None:
        """Look at the rows, in a thread; the first of them also if not enough was said for more."""
        form, donors, look = self._form, self.donors, None
        with form.changing():
            if donors is None:
                form.problems["donors_file"] = "Drop a file first, or type where it is."
                return
            if form.work.what:
                return
            for name in form.kind.fields:
                form.problems.pop(name, None)
            with form.about("donors_file", *self.files):
                look = form.kind.look(donors, form.work.on_rows)
            said = TableSpec.of({name: form[name] for name in DIALECT})
            step = partial(self._look, donors, said, look, form.kind, self._key(), self._budget())
            form.begin("Looking at the rows", "donors_file", self.files, step, form.judge)

    def judge(self) -> None:
        """Look at the periods that were said, and at what else the kind of release needs."""
        self.periods = self._periods()
        self._form.kind.judge()

    # What is shown -----------------------------------------------------------------------------------------------

    def understood(self) -> str:
        """Show how the file was understood, and its first rows."""
        return render("custodian/understood.html", **self._found())

    def findings(self) -> str:
        """Show everything that the check found."""
        more = {"what": self._form.kind.rows, "mark": MARK, "heights": _HEIGHTS, "ended": sentence}
        return render("custodian/findings.html", **more, **self._found())

    def command(self) -> str:
        """Show the command of the check."""
        return commands(command(["dpsc", "check", self.name], options(self._form.kind.check_options())))

    @property
    def name(self) -> str:
        """The file, as commands name it."""
        return f"{self._form.kind.rows}.csv" if self.donors is None else self.donors.name

    def _found(self) -> dict[str, object]:
        verdict = check_report.verdict(() if self.checked is None else self.checked.seen.findings)
        about = {"donors": self.donors, "rows": self.rows, "checked": self.checked, "current": self.current}
        return {**about, "verdict": verdict}

    # -------------------------------------------------------------------------------------------------------------

    def _take(self, donors: File) -> None:
        form = self._form
        if form.work.what:
            form.problems["donors_file"] = "Wait until the work at hand has ended, or stop it."
            return
        if self.donors is not None and form.folder in self.donors.path.parents:
            shutil.rmtree(self.donors.path.parent, ignore_errors=True)  # no longer needed
        self.donors, self._checked, self.rows = donors, {}, []
        form.problems.pop("path", None)
        self.check()

    def _key(self) -> tuple[object, ...]:
        kind = self._form.kind
        return (self.donors, *(self._form.fields[name].strip() for name in kind.fields))

    def _budget(self) -> tuple[float, float] | None:
        """Return epsilon and delta; None if they are none, or if the check does not depend on them."""
        if self._form.kind.looks_at_noise:
            with suppress(ParameterError):
                return self._form.number("epsilon"), self._form.number("delta")
        return None

    def _look(
        self,
        donors: File,
        said: TableSpec,
        look: Callable[[], Seen] | None,
        kind: Kind,
        key: tuple[object, ...],
        budget: tuple[float, float] | None,
    ) -> None:
        """Run in the thread of a check."""
        form, seen = self._form, None
        form.work.on_rows(0)
        try:
            self.rows = form.read(custodian_first_rows, donors.path, said)
            form.work.on_rows(0)
            seen = None if look is None else look()
        finally:
            form.work.on_rows(0)  # whatever came of it: if somebody asked to stop, it was stopped
        with form.changing():
            self._typed = ("", "")
            if seen is not None:
                self._checked[kind.one] = Checked(key, seen, budget)
                for name in seen.only_in_rows if form.kind is kind else ():
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
