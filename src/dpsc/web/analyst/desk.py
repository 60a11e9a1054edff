"""The analyst's desk: an open release, a target, a date, and every date that was tried. Knows no page and no donor."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pandas as pd

from dpsc import files
from dpsc.analyst import ask
from dpsc.analyst.release import Release
from dpsc.answers import compare, document
from dpsc.answers.compare import Comparison
from dpsc.answers.placebos import Trials
from dpsc.answers.result import PrivateResult, UnprovenResult
from dpsc.answers.study import Study
from dpsc.errors import DpscError, ReleaseError
from dpsc.periods import match
from dpsc.periods.dates import period_name
from dpsc.tables import reader
from dpsc.tables import target_table as several
from dpsc.tables.formats import in_file
from dpsc.tables.spec import TableSpec
from dpsc.web.analyst import pasted
from dpsc.web.desk import Desk, File, Reader

DEMO = Path(__file__).parent.parent / "demo"
_LINE = re.compile(r"\bline (\d+)")
FEWEST_BEFORE = 2  # periods before the first treated one
SAID = ("time", "outcome", "time_format", "decimal")  # of how a table is written


@dataclass(frozen=True)
class Columns:
    """The columns of a table of several units."""

    unit: str = "unit"
    start: str = "start"
    weight: str = ""


class AnalystDesk(Desk):
    """What lies on the analyst's desk.

    Attributes
    ----------
    result, other_result : result or None
        What the release, and a second one, answer; None as long as something is missing.
    comparison : Comparison or None
        Both side by side.
    study : Study or None
        The answer about several units.
    """

    labels: ClassVar = {
        "time": "column of periods",
        "outcome": "column of numbers",
        "unit": "column of units",
        "treatment_time_column": "column of first treated periods",
        "weight_column": "column of weights",
        "time_format": "how dates are written",
        "decimal": "mark before decimals",
        "sep": "separator",
    }

    def __init__(self, folder: Path, reader: Reader | None = None) -> None:
        super().__init__(folder, reader)
        self.release: Release | None = None
        self.release_file: File | None = None
        self.other: Release | None = None
        self.other_file: File | None = None
        self.target: pd.Series[float] | None = None
        self.target_file: File | None = None
        self.pasted = ""
        self.said: dict[str, str] = {}  # how the table is written, by the names of parameters
        self.position: int | None = None
        self.units = ""
        self.columns = Columns()
        self.long_file: File | None = None
        self.result: PrivateResult | UnprovenResult | None = None
        self.other_result: PrivateResult | UnprovenResult | None = None
        self.comparison: Comparison | None = None
        self.study: Study | None = None
        self._shown_mark: str | None = None  # before decimals, in a table of several targets that was pasted
        self._tried: dict[str, list[str]] = {}
        self._studied: list[str] = []
        self._results: dict[tuple[int, int, str], PrivateResult | UnprovenResult] = {}

    # Each step ---------------------------------------------------------------------------------------------------

    def open_release(self, file: File) -> None:
        """Open a release; a target that is there already is asked about again."""
        with self.changing(), self.about("release", file):
            release = self.read(Release.load, file.path)
            date = self.date
            self.release, self.release_file = release, self._kept(file)
            self.position = self.periods.index(date) if date in self.periods[FEWEST_BEFORE:] else None
            self._results.clear()
            self._read_again()

    def open_other(self, file: File) -> None:
        """Open a second release, to compare."""
        with self.changing(), self.about("other", file):
            self.other, self.other_file = self.read(Release.load, file.path), self._kept(file)
            self._results.clear()
            self._ask()

    def open_demo(self) -> None:
        """Open a release and the target of ``dpsc demo``, made once by benchmarks/demo_files.py."""
        with self.changing():
            self.pasted, self.target_file = "", None
            self.open_release(File(DEMO / "flights.dpsc.json", "flights.dpsc.json"))
            self.drop_target(File(DEMO / "delays-of-thirty-planes.csv", "delays-of-thirty-planes.csv"))

    def drop_target(self, file: File) -> None:
        """Read the target from a file."""
        with self.changing():
            self.pasted, self.target_file = "", self._kept(file)
            self._read_target()

    def paste_target(self, text: str) -> None:
        """Read the target from what was pasted."""
        if text != self.pasted:
            with self.changing():
                self.pasted, self.target_file = text, None
                self._read_target()

    def say(self, said: Mapping[str, str], units: str) -> None:
        """Say how targets are written, and in which units they are."""
        with self.changing():
            self.units = units.strip()
            said = {name: value for name, value in said.items() if value}
            if said != self.said:
                self.said = said
                self._read_again()
            self._ask()

    def choose(self, position: int) -> None:
        """Choose the first treated period, by its position; it is listed as tried."""
        if self.release is not None and FEWEST_BEFORE <= position < self.release.T:
            with self.changing():
                self.position = position
                self._ask()

    def drop_several(self, file: File) -> None:
        """Read several targets from a long table."""
        with self.changing():
            self.long_file, self._shown_mark = self._kept(file), None
            self._read_several()

    def paste_several(self, text: str) -> None:
        """Read several targets from what was pasted."""
        with self.changing(), self.about("several"):
            table = pasted.as_table(text, self.periods)
            self.long_file = File(self._write("several-targets.csv", table), "several-targets.csv")
            self._shown_mark = pasted.decimal_mark(table)
            self._read_several()

    def name_columns(self, columns: Columns) -> None:
        """Say which columns a table of several targets has."""
        if columns != self.columns:
            with self.changing():
                self.columns = columns
                if self.long_file is not None:
                    self._read_several()

    # What is there -----------------------------------------------------------------------------------------------

    @property
    def periods(self) -> list[str]:
        """The periods of the release, as they are written."""
        return [] if self.release is None else [period_name(label) for label in self.release.times]

    @property
    def date(self) -> str:
        """The first treated period, as it is written; empty if none was chosen."""
        return "" if self.position is None else self.periods[self.position]

    @property
    def tried(self) -> list[str]:
        """Every date that was tried for this target, in order."""
        key = "" if self.target is None else str(tuple(self.target.to_numpy()))
        return self._tried.setdefault(key, [])

    @property
    def all_tried(self) -> list[str]:
        """Every date that was tried, for any target and in any table of several units, in order."""
        single = [date for dates in self._tried.values() for date in dates]
        return list(dict.fromkeys([*single, *self._studied]))

    @property
    def shown(self) -> pd.Series[float] | None:
        """The target over the periods of the release, before any date is chosen."""
        if self.release is None or self.target is None:
            return None
        return match.aligned(self.target, self.release.times)[0].rename(self.release.outcome)

    @property
    def how_several_are_read(self) -> dict[str, str]:
        """How a table of several targets is read, by the names of parameters."""
        start, weight = {"treatment_time_column": self.columns.start}, {"weight_column": self.columns.weight}
        said = self._table(self._shown_mark, self.columns.unit).parts() | start | weight | {"units": self.units}
        return {name: str(value) for name, value in said.items() if value}

    def target_table(self) -> bytes:
        """Return the target as it was understood, as a CSV file."""
        assert self.target is not None
        names = "period", str(self.target.name)
        rows = zip(map(period_name, self.target.index), self.target.to_numpy(), strict=True)
        return files.csv_text(names, rows).encode("utf-8")

    def explained(self, problem: DpscError, field: str) -> tuple[str, str]:
        """Say of what was pasted in which of its lines something is wrong: it may have been given a header."""
        if field != "target" or self.target_file is not None:
            return super().explained(problem, field)
        problem.file = None
        text = problem.text(self.named)
        if pasted.begins_with_a_number(self.pasted):
            text = _LINE.sub(lambda found: f"line {int(found[1]) - 1}", text)
        return field, text

    # -------------------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """Ask what can be asked of what lies on the desk now."""
        self.result = self._answer(self.release, "target")
        self.other_result = self._answer(self.other, "other")
        self.comparison = None
        if self.result is None:
            return
        if self.date not in self.tried:
            self.tried.append(self.date)
        if self.other_result is not None and self.release_file is not None and self.other_file is not None:
            one, other = self.release_file.name, self.other_file.name
            names = (one, other if other != one else f"{other} (second)")
            both = (self.result, self.other_result)
            found = [document.of_result(result, Trials(), self.units or None) for result in both]
            self.comparison = compare.of(list(zip(names, found, strict=True)))

    def _answer(self, release: Release | None, field: str) -> PrivateResult | UnprovenResult | None:
        if release is None or self.release is None or self.target is None or self.position is None:
            return None
        key = (id(release), self.position, str(tuple(self.target.to_numpy())))
        if key not in self._results:
            with self.about(field):
                self._results[key] = release.estimate(self.target, self.release.times[self.position])
        return self._results.get(key)

    def _read_again(self) -> None:
        if self.pasted.strip() or self.target_file is not None:
            self._read_target()
        if self.long_file is not None:
            self._read_several()

    def _read_target(self) -> None:
        self.target = None
        self.problems.pop("target", None)
        if self.target_file is not None or self.pasted.strip():
            with self.about("target", self.target_file):
                times = self._opened.times
                path, mark = self._target_as_file()
                target = self.read(reader.series, path, self._table(mark))
                match.aligned(target, times)
                self.target = target
        self._ask()

    def _table(self, mark: str | None, unit: str = "") -> TableSpec:
        """Return what was said of a table; ``mark`` is before decimals unless something else was said."""
        return TableSpec.of({"decimal": mark, **self.said, "unit": unit})

    def _target_as_file(self) -> tuple[Path, str | None]:
        """Return the file of the target, and which mark before decimals its numbers show if they were pasted."""
        if self.target_file is not None:
            return self.target_file.path, None
        table = pasted.as_table(self.pasted, self.periods)
        return self._write("pasted.csv", table), pasted.decimal_mark(table)

    def _read_several(self) -> None:
        self.study = None
        with self.about("several", self.long_file):
            release, file, columns = self._opened, self.long_file, self.columns
            if file is None:
                return
            said = self._table(self._shown_mark, columns.unit)
            found = self.read(several.read, file.path, said, start=columns.start, weight=columns.weight or None)
            with in_file(file.path):
                self.study = ask.of_targets(release, found, said.time_format)
            self._studied += [period_name(result.treatment_time) for result in self.study.results.values()]

    @property
    def _opened(self) -> Release:
        if self.release is None:
            raise ReleaseError("open a release first: it says which periods there are.")
        return self.release

    def _kept(self, file: File) -> File:
        """Copy a file to the desk: the browser's upload goes when the page is loaded again."""
        if file.path.parent in (DEMO, self.folder):
            return file
        number = len(list(self.folder.iterdir()))
        kept = self.folder / f"{number}{file.path.suffix}"
        shutil.copyfile(file.path, kept)
        return replace(file, path=kept)

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, "utf-8")
        return path
