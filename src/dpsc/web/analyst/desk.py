"""The analyst's desk: an open release, a target, a date, and every date that was tried. Knows no page and no donor.

There is one desk per program, so that a page that is loaded again shows what was there before.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from dpsc import files
from dpsc.analyst import ask
from dpsc.analyst.release import Release
from dpsc.answers import compare, document, words
from dpsc.answers.compare import Comparison
from dpsc.answers.placebos import Trials
from dpsc.answers.result import PrivateResult, UnprovenResult
from dpsc.answers.study import Study
from dpsc.errors import DpscError, Parameter, ReleaseError
from dpsc.periods import match
from dpsc.periods.dates import period_name
from dpsc.tables import reader
from dpsc.tables import target_table as several
from dpsc.tables.dialect import Dialect
from dpsc.tables.formats import in_file
from dpsc.web.analyst import pasted
from dpsc.web.page_files import File, directly

DEMO = Path(__file__).parent.parent / "demo"
_LINE = re.compile(r"\bline (\d+)")
FEWEST_BEFORE = 2  # periods before the first treated one

_ON_THE_PAGE = {
    "time": "column of periods",
    "outcome": "column of numbers",
    "unit": "column of units",
    "treatment_time_column": "column of first treated periods",
    "weight_column": "column of weights",
    "time_format": "how dates are written",
    "decimal": "mark before decimals",
    "sep": "separator",
}


@dataclass(frozen=True)
class Said:
    """What was said about how a table of targets is written; empty where nothing was."""

    time: str = ""
    outcome: str = ""
    time_format: str = ""
    decimal: str = ""

    def options_with(self, mark: str | None) -> dict[str, Any]:
        """Return the library's arguments; ``mark`` is before decimals unless something else was said."""
        return {
            "time": self.time or None,
            "outcome": self.outcome or None,
            "time_format": self.time_format or None,
            "dialect": Dialect(decimal=self.decimal or mark),
        }


@dataclass(frozen=True)
class Columns:
    """The columns of a table of several units."""

    unit: str = "unit"
    start: str = "start"
    weight: str = ""


class Desk:
    """What lies on the analyst's desk; each step says next to which field something is wrong.

    Parameters
    ----------
    folder : Path
        Private; files that were dropped are kept here until the program ends.
    read : callable
        Calls a function that reads a file: in this process, or in one that can be ended.
    """

    def __init__(self, folder: Path, read: Callable[..., Any] = directly) -> None:
        self._folder, self._read = folder, read
        self.release: Release | None = None
        self.release_file: File | None = None
        self.other: Release | None = None
        self.other_file: File | None = None
        self.target: pd.Series[float] | None = None
        self.target_file: File | None = None
        self.pasted = ""
        self.said = Said()
        self.position: int | None = None
        self.units = ""
        self.columns = Columns()
        self.long_file: File | None = None
        self.study: Study | None = None
        self.problems: dict[str, str] = {}
        self.version = 0  # how often something was done; every page shows the same
        self._shown_mark: str | None = None  # before decimals, in a table of several targets that was pasted
        self._tried: dict[str, list[str]] = {}
        self._studied: list[str] = []
        self._results: dict[Any, PrivateResult | UnprovenResult] = {}

    # Each step ---------------------------------------------------------------------------------------------------

    def open_release(self, file: File) -> None:
        """Open a release; a target that is there already is asked about again."""
        with self._about("release", file):
            release = self._read(Release.load, file.path)
            date = self.date
            self.release, self.release_file = release, self._kept(file)
            self.position = self.periods.index(date) if date in self.periods[FEWEST_BEFORE:] else None
            self._results.clear()
            self._read_again()

    def open_other(self, file: File) -> None:
        """Open a second release, to compare."""
        with self._about("other", file):
            self.other, self.other_file = self._read(Release.load, file.path), self._kept(file)
            self._results.clear()

    def open_demo(self) -> None:
        """Open a release and the target of ``dpsc demo``, made once by benchmarks/demo_files.py."""
        self.pasted, self.target_file = "", None
        self.open_release(File(DEMO / "flights.dpsc.json", "flights.dpsc.json"))
        self.drop_target(File(DEMO / "delays-of-thirty-planes.csv", "delays-of-thirty-planes.csv"))

    def drop_target(self, file: File) -> None:
        """Read the target from a file."""
        self.pasted, self.target_file = "", self._kept(file)
        self._read_target()

    def paste_target(self, text: str) -> None:
        """Read the target from what was pasted."""
        if text == self.pasted:
            return
        self.pasted, self.target_file = text, None
        self._read_target()

    def say(self, said: Said, units: str) -> None:
        """Say how targets are written, and in which units they are."""
        self.units = units.strip()
        if said != self.said:
            self.said = said
            self._read_again()

    def choose(self, position: int) -> None:
        """Choose the first treated period, by its position; it is listed as tried."""
        if self.release is None or not FEWEST_BEFORE <= position < self.release.T:
            return
        self.position = position
        if self.result is not None and self.date not in self.tried:
            self.tried.append(self.date)

    def drop_several(self, file: File) -> None:
        """Read several targets from a long table."""
        self.long_file, self._shown_mark = self._kept(file), None
        self._read_several()

    def paste_several(self, text: str) -> None:
        """Read several targets from what was pasted."""
        with self._about("several"):
            table = pasted.as_table(text, self.periods)
            self.long_file = File(self._write("several-targets.csv", table), "several-targets.csv")
            self._shown_mark = pasted.decimal_mark(table)
            self._read_several()

    def name_columns(self, columns: Columns) -> None:
        """Say which columns a table of several targets has."""
        if columns != self.columns:
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
    def result(self) -> PrivateResult | UnprovenResult | None:
        """The answer; None as long as something is missing."""
        return self._answer(self.release, "target")

    @property
    def comparison(self) -> Comparison | None:
        """The answers of two releases to the same question."""
        both = self.result, self._answer(self.other, "other")
        if both[0] is None or both[1] is None or self.release_file is None or self.other_file is None:
            return None
        one, other = self.release_file.name, self.other_file.name
        names = (one, other if other != one else f"{other} (second)")
        found = [document.of_result(result, Trials(), self.units or None) for result in both if result is not None]
        return compare.of(list(zip(names, found, strict=True)))

    @property
    def how_several_are_read(self) -> dict[str, str]:
        """How a table of several targets is read, as options of the command; empty where nothing was said."""
        said, columns = self.said, self.columns
        mark = said.decimal or self._shown_mark or ""
        return {
            "unit": columns.unit, "treatment-time-column": columns.start, "weight-column": columns.weight,
            "time": said.time, "outcome": said.outcome, "time-format": said.time_format,
            "decimal": {".": "point", ",": "comma"}.get(mark, ""), "units": self.units,
        }  # fmt: skip

    def target_table(self) -> bytes:
        """Return the target as it was understood, as a CSV file."""
        assert self.target is not None
        names = "period", str(self.target.name)
        rows = zip(map(period_name, self.target.index), self.target.to_numpy(), strict=True)
        return files.csv_text(names, rows).encode("utf-8")

    # -------------------------------------------------------------------------------------------------------------

    def _answer(self, release: Release | None, field: str) -> PrivateResult | UnprovenResult | None:
        if release is None or self.release is None or self.target is None or self.position is None:
            return None
        key = (id(release), self.position, str(tuple(self.target.to_numpy())))
        if key not in self._results:
            with self._about(field):
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
        if self.target_file is None and not self.pasted.strip():
            return
        with self._about("target", self.target_file):
            if self.release is None:
                raise ReleaseError("open a release first: it says which periods there are.")
            options = self.said.options_with(None)
            if self.target_file is not None:
                path = self.target_file.path
            else:
                table = pasted.as_table(self.pasted, self.periods)
                path = self._write("pasted.csv", table)
                options = self.said.options_with(pasted.decimal_mark(table))
            target = self._read(reader.series, path, **options)
            match.aligned(target, self.release.times)
            self.target = target
            if self.position is not None:
                self.choose(self.position)

    def _read_several(self) -> None:
        self.study = None
        with self._about("several", self.long_file):
            if self.release is None:
                raise ReleaseError("open a release first: it says which periods there are.")
            if self.long_file is None:
                return
            found = self._read(
                several.read, self.long_file.path, unit=self.columns.unit, start=self.columns.start,
                weight=self.columns.weight or None, **self.said.options_with(self._shown_mark),
            )  # fmt: skip
            with in_file(self.long_file.path):
                self.study = ask.of_targets(self.release, found, self.said.time_format or None)
            self._studied += [period_name(result.treatment_time) for result in self.study.results.values()]

    @contextmanager
    def _about(self, field: str, file: File | None = None) -> Iterator[None]:
        """Keep what is wrong, in the library's words, beside the field that it is about."""
        self.problems.pop(field, None)
        try:
            yield
        except DpscError as problem:
            if file is None:
                problem.file = None
            text = problem.text(_on_the_page)
            if field == "target" and file is None and pasted.begins_with_a_number(self.pasted):
                text = _LINE.sub(lambda found: f"line {int(found[1]) - 1}", text)  # it was given a header
            place, name = (self._folder, "") if file is None else (file.path, file.name)
            text = text.replace(str(place), name)
            self.problems[field] = text if name and text.startswith(name) else words.sentence(text)

    def _kept(self, file: File) -> File:
        """Copy a file to the desk: the browser's upload goes when the page is loaded again."""
        if file.path.parent in (DEMO, self._folder):
            return file
        number = len(list(self._folder.iterdir()))
        kept = self._folder / f"{number}{file.path.suffix}"
        shutil.copyfile(file.path, kept)
        return replace(file, path=kept)

    def _write(self, name: str, text: str) -> Path:
        path = self._folder / name
        path.write_text(text, "utf-8")
        return path


def _on_the_page(parameter: Parameter) -> str:
    """Write a parameter as the field of the page that sets it."""
    label = _ON_THE_PAGE.get(parameter.name)
    if label is None:
        return parameter.python
    return f"“{label}” {parameter.typed}".rstrip()
