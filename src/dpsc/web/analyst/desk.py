"""The analyst's desk: an open release, a target, a date, and every date that was tried. Knows no page and no donor."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pandas as pd

from dpsc import files
from dpsc.analyst import ask
from dpsc.analyst.ask import Wishes
from dpsc.analyst.private_panel import PrivatePanel, load
from dpsc.analyst.release import Release
from dpsc.analyst.releases import Releases
from dpsc.answers import compare, document
from dpsc.answers.compare import Comparison
from dpsc.answers.outcomes import Outcomes
from dpsc.answers.placebos import Trials
from dpsc.answers.result import PrivateResult, Result, UnprovenResult
from dpsc.answers.study import Study
from dpsc.errors import DpscError, ReleaseError, TableError
from dpsc.periods import match
from dpsc.periods.dates import period_name
from dpsc.tables import reader
from dpsc.tables import target_table as several
from dpsc.tables.formats import in_file
from dpsc.tables.spec import TableSpec
from dpsc.types import Label
from dpsc.web.analyst import pasted
from dpsc.web.desk import Desk, File, Reader, decimal, whole

DEMO = Path(__file__).parent.parent / "demo"
_LINE = re.compile(r"\bline (\d+)")
FEWEST_BEFORE = 2  # periods before the first treated one
SAID = ("time", "outcome", "time_format", "decimal")  # of how a table is written


@dataclass(frozen=True)
class Columns:
    """The columns of a table of several units; empty for what it does not have."""

    unit: str = ""
    start: str = ""
    time: str = ""
    outcome: str = ""
    end: str = ""
    treated: str = ""
    weight: str = ""
    averages: str = ""
    group: str = ""

    @property
    def others(self) -> dict[str, str]:
        """Those that hold neither units nor first periods, nor periods and numbers, by the names of parameters."""
        names = ("end", "treated", "weight", "averages", "group")
        return {name: getattr(self, name) for name in names if getattr(self, name)}


def _one_of(released: Release | Releases | PrivatePanel | None, outcome: str) -> Release | PrivatePanel | None:
    """Return what a file holds; of several outcomes the one of that name, or the first."""
    if not isinstance(released, Releases):
        return released
    return released[outcome] if outcome in released else released[next(iter(released))]


def _columns_of(path: Path, said: TableSpec) -> list[str]:
    return list(reader.open_series(path, said).schema.names)


class Question(NamedTuple):
    """What must be checked before answers are shown: other units, say.

    Attributes
    ----------
    texts : list of str
    about : tuple
        The releases and the numbers that it is about.
    to_correct : bool
        Whether somebody said that the target must be corrected.
    """

    texts: list[str]
    about: tuple[str, bytes]
    to_correct: bool


PARTS = ("target", "other", "several")  # of the page, which may ask before they answer


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
    averages : int or None
        How many people the target is the average of, if that was said.
    pool : str
        The segments of donors that answer, as they were typed; all if it is empty.
    wishes : Wishes
        When the treatment ended, which of its periods are left out, and what its effect is worth.
    outcomes_together : Outcomes or None
        The answers about all outcomes of the release for which the target's file has a column.
    questions : dict of Question
        What is asked before an answer, by the part of the page; there is no answer as long as it is asked.
    """

    labels: ClassVar = {
        "time": "column of periods",
        "outcome": "column of numbers",
        "unit": "units",
        "treatment_time_column": "first treated periods",
        "weight_column": "weights",
        "averages": "how many people the target averages",
        "pool": "segments that answer",
        "averages_column": "how many people are averaged",
        "treatment_end": "last treated period",
        "gap": "periods left out",
        "value_per_unit": "what one unit of the outcome is worth",
        "cost": "what it cost",
        "currency": "currency",
        "treatment_end_column": "last treated periods",
        "treated_column": "1 in treated periods",
        "group_column": "groups",
        "time_format": "how dates are written",
        "decimal": "mark before decimals",
        "sep": "separator",
    }

    def __init__(self, folder: Path, reader: Reader | None = None) -> None:
        super().__init__(folder, reader)
        self.release: Release | PrivatePanel | None = None
        self.released: Release | Releases | PrivatePanel | None = None  # what its file holds
        self.release_file: File | None = None
        self.other: Release | PrivatePanel | None = None
        self.other_released: Release | Releases | PrivatePanel | None = None
        self.other_file: File | None = None
        self.target: pd.Series[float] | None = None
        self.target_file: File | None = None
        self.unit = ""
        self.pasted = ""
        self.said: dict[str, str] = {}  # how the table is written, by the names of parameters
        self.position: int | None = None
        self.units = ""
        self.averages_written = ""
        self.averages: int | None = None
        self.pool = ""
        self.wishes = ask.NOTHING_MORE
        self.questions: dict[str, Question] = {}
        self.columns = Columns()
        self.columns_there: tuple[str, ...] = ()
        self.several_pasted = ""
        self.long_file: File | None = None
        self.result: PrivateResult | UnprovenResult | None = None
        self.other_result: PrivateResult | UnprovenResult | None = None
        self.comparison: Comparison | None = None
        self.outcomes_together: Outcomes | None = None
        self.study: Study | None = None
        self._shown_mark: str | None = None  # before decimals, in a table of several targets that was pasted
        self._tried: dict[str, list[str]] = {}
        self._studied: list[str] = []
        self._results: dict[tuple[object, ...], PrivateResult | UnprovenResult] = {}
        self._beside: dict[str, pd.Series[float]] = {}  # targets of all outcomes, from the same file
        self._right: dict[tuple[str, bytes], bool] = {}  # whether numbers are right that were asked about

    # Each step ---------------------------------------------------------------------------------------------------

    def open_release(self, file: File) -> None:
        """Open a release; a target that is there already is asked about again."""
        with self.changing(), self.about("release", file):
            released = self.read(load, file.path)
            date, unit = self.date, self.unit
            self.released, self.release, self.release_file = released, _one_of(released, ""), self._kept(file)
            self.other = _one_of(self.other_released, self.outcome)
            self.position = self.periods.index(date) if date in self.periods[FEWEST_BEFORE:] else None
            self._results.clear()
            self.say_pool(self.pool)
            if unit:
                self.target, self.unit = None, ""
                self.choose_unit(unit)
            self._read_again()

    def choose_outcome(self, outcome: str) -> None:
        """Take another outcome of the release; what is on the desk stays if it has a column for it."""
        if outcome in self.outcomes and outcome != self.outcome:
            with self.changing():
                self.release, self.other = _one_of(self.released, outcome), _one_of(self.other_released, outcome)
                self._results.clear()
                self.pasted = ""
                self.target_file = self.target_file if self._has_column(self.target_file, outcome) else None
                self.long_file = self.long_file if self._has_column(self.long_file, outcome) else None
                self._read_target()
                self.columns_there = ()
                self._look_at_columns()
                self._read_several()

    def open_other(self, file: File) -> None:
        """Open a second release, to compare."""
        with self.changing(), self.about("other", file):
            self.other_released, self.other_file = self.read(load, file.path), self._kept(file)
            self.other = _one_of(self.other_released, self.outcome)
            self._results.clear()
            self._ask()

    def open_demo(self) -> None:
        """Open a release and the target of ``dpsc demo``, made once by benchmarks/demo_files.py."""
        with self.changing():
            self.pasted, self.target_file = "", None
            self._put_away_several()
            self.say_averages("")
            self.open_release(File(DEMO / "flights.dpsc.json", "flights.dpsc.json"))
            self.drop_target(File(DEMO / "delays-of-thirty-planes.csv", "delays-of-thirty-planes.csv"))

    def drop_target(self, file: File) -> None:
        """Read the target from a file."""
        with self.changing():
            self.pasted, self.target_file = "", self._kept(file)
            self._read_target()

    def paste_target(self, text: str) -> None:
        """Read the target from what was pasted; nothing is one that was taken away."""
        if text.strip() != self.pasted.strip():
            with self.changing():
                self.pasted, self.target_file = text, None
                self._read_target()

    def choose_unit(self, unit: str) -> None:
        """Take a unit of the panel for the target."""
        panel = self.release
        if isinstance(panel, PrivatePanel) and unit in panel.units:
            with self.changing():
                self.pasted, self.target_file, self.unit = "", None, unit
                self.problems.pop("target", None)
                row = panel.table.values[panel.units.index(unit)]
                self.target = pd.Series(row, panel.times, name=panel.outcome)
                self._ask()

    def say(self, said: Mapping[str, str], units: str) -> None:
        """Say how targets are written, and in which units they are."""
        with self.changing():
            self.units = units.strip()
            said = {name: value for name, value in said.items() if value}
            if said != self.said:
                self.said = said
                self._read_again()
            self._ask()

    def say_averages(self, text: str) -> None:
        """Say how many people the target is the average of; empty if that is not known."""
        with self.changing():
            self.averages_written, self.averages = text, None
            with self.about("averages"):
                self.averages = whole("averages", text) if text.strip() else None
            self._ask()

    def say_pool(self, text: str) -> None:
        """Say which segments of donors answer; empty for all, and for a release that is not divided."""
        with self.changing():
            self.pool = ""
            with self.about("pool"):
                if text.strip() and isinstance(self.release, Release) and self.release.segments is not None:
                    self.release.of(self.release.segments.typed(text.strip()))
                    self.pool = text.strip()
            self._ask()
            if self.long_file is not None:
                self._read_several()

    def say_treatment(self, end: str, gap: str, value: str, cost: str, currency: str) -> None:
        """Say when the treatment ended, which of its periods are left out, and what its effect is worth."""
        with self.changing():
            self.wishes = ask.NOTHING_MORE
            with self.about("treatment"):
                self.wishes = Wishes(
                    treatment_end=end or None,
                    gap=whole("gap", gap) if gap.strip("0 ") else 0,
                    value_per_unit=decimal("value_per_unit", value) if value.strip() else None,
                    cost=decimal("cost", cost) if cost.strip() else None,
                    currency=currency.strip(),
                )
            self._ask()
            if self.long_file is not None:
                self._read_several()

    def numbers_are(self, right: bool, part: str) -> None:
        """Answer a question: the numbers are right and the answer is wished, or they will be corrected."""
        if part in self.questions:
            with self.changing():
                self._right[self.questions[part].about] = right
                self._ask()
                if part == "several":
                    self._read_several()

    def choose(self, position: int) -> None:
        """Choose the first treated period, by its position; it is listed as tried."""
        if self.release is not None and FEWEST_BEFORE <= position < len(self.periods):
            with self.changing():
                self.position = position
                self._ask()

    def drop_several(self, file: File) -> None:
        """Read several targets from a long table."""
        with self.changing():
            self.long_file, self._shown_mark, self.several_pasted = self._kept(file), None, ""
            self._look_at_columns()
            self._read_several()

    def paste_several(self, text: str) -> None:
        """Read several targets from what was pasted; nothing is a table that was taken away."""
        if text.strip() == self.several_pasted.strip():
            return
        with self.changing():
            self._put_away_several()
            self.several_pasted = text
            if text.strip():
                with self.about("several"):
                    table = pasted.as_table(text, self.periods)
                    self.long_file = File(self._write("several-targets.csv", table), "several-targets.csv")
                    self._shown_mark = pasted.decimal_mark(table)
                    self._look_at_columns()
                    self._read_several()

    def name_column(self, what: str, column: str) -> None:
        """Say which column of a table of several targets holds what."""
        if what in Columns.__dataclass_fields__ and column in ("", *self.columns_there):
            with self.changing():
                self.columns = replace(self.columns, **{what: column})
                self._read_several()

    # What is there -----------------------------------------------------------------------------------------------

    @property
    def periods(self) -> list[str]:
        """The periods of the release, as they are written."""
        return [] if self.release is None else [period_name(label) for label in self.release.times]

    @property
    def panel_units(self) -> tuple[str, ...]:
        """The units that can be the target; none where the donors are people."""
        return self.release.units if isinstance(self.release, PrivatePanel) else ()

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The outcomes of the release, if it has several."""
        return tuple(self.released) if isinstance(self.released, Releases) else ()

    @property
    def outcome(self) -> str:
        """Which of them is asked about; empty if there is only one."""
        return self.release.outcome if self.release is not None and self.outcomes else ""

    @property
    def other_outcome(self) -> str:
        """The outcome of the second release that is compared, if it has several."""
        return self.other.outcome if self.other is not None and isinstance(self.other_released, Releases) else ""

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
    def how_several_are_read(self) -> dict[str, Any]:
        """How a table of several targets is read, by the names of parameters."""
        start = {} if self.columns.treated else {"treatment_time_column": self.columns.start}
        names = {"end": "treatment_end"}
        others = {f"{names.get(name, name)}_column": column for name, column in self.columns.others.items()}
        more = {"units": self.units, "pool": self.pool, **self._wishes_of_several.said}
        said = self._table_of_several().parts() | start | others | more
        said |= {"outcome": self.outcome} if self.outcome else {}
        return {name: value for name, value in said.items() if value}

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
        self.result, self.other_result = self._answer(self.release, "target"), self._answer(self.other, "other")
        if self._asks("target", {} if self.result is None else {"": self.result}):
            self.result = None
        if self._asks("other", {} if self.other_result is None else {"": self.other_result}):
            self.other_result = None
        self.comparison, self.outcomes_together = None, None
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
        if isinstance(self.released, Releases) and len(self._beside) > 1:
            each = {name: self._answer(self.released[name], "target", target) for name, target in self._beside.items()}
            known = {name: one for name, one in each.items() if one is not None}
            if not any(one.verdict and one.verdict.check_first for one in known.values()):  # these are asked by itself
                self.outcomes_together = Outcomes(known, len(self.released), self.released.guarantee)

    def _answer(
        self, release: Release | PrivatePanel | None, field: str, target: pd.Series[float] | None = None
    ) -> PrivateResult | UnprovenResult | None:
        target = self.target if target is None else target
        if release is None or self.release is None or target is None or self.position is None:
            return None
        self.problems.pop(field, None)
        asked = self.unit + str(tuple(target.to_numpy()))
        key = (id(release), self.position, asked, self.averages, self.pool, self.wishes)
        if key not in self._results:
            with self.about("treatment" if self.wishes.said else field):
                first, said = self.release.times[self.position], self.wishes.for_one(self.release.times, None)
                if isinstance(release, Release):
                    answer = self._pooled(release).estimate(target, first, averages=self.averages, **said)
                else:
                    answer = release.estimate(self.unit or target, first, **said)
                self._results[key] = answer
        return self._results.get(key)

    def _pooled(self, release: Release) -> Release:
        """Return the release of which the segments answer that were said; a second one may have none."""
        if not self.pool or release.segments is None:
            return release
        return release.of(release.segments.typed(self.pool))

    def _asks(self, part: str, found: Mapping[Label, Result]) -> bool:
        """Tell whether something about these answers must be checked before they are shown, and keep what it is."""
        self.questions.pop(part, None)
        unclear = {name: each.verdict for name, each in found.items() if each.verdict and each.verdict.check_first}
        releases = " ".join(sorted({str(each.parameters.get("release")) for each in found.values()}))
        about = releases, b"".join(each.target.to_numpy().tobytes() for each in found.values())
        if not unclear or self._right.get(about):
            return False
        texts = [f"{name}: {verdict.reason}" if name else verdict.reason for name, verdict in unclear.items()]
        self.questions[part] = Question(texts, about, about in self._right)
        return True

    def _read_again(self) -> None:
        if self.pasted.strip() or self.target_file is not None:
            self._read_target()
        if self.long_file is not None:
            self._look_at_columns()
            self._read_several()

    def _read_target(self) -> None:
        self.target, self.unit, self._beside = None, "", {}
        self.problems.pop("target", None)
        if self.target_file is not None or self.pasted.strip():
            with self.about("target", self.target_file):
                times = self._opened.times
                path, mark = self._target_as_file()
                target = self.read(reader.series, path, self._of_outcome(path, self._table(mark)))
                match.aligned(target, times)
                self.target = target
                if isinstance(self.released, Releases) and self.target_file is not None:
                    self._beside = self._all_outcomes(self.released, path)
        self._ask()

    def _all_outcomes(self, released: Releases, path: Path) -> dict[str, pd.Series[float]]:
        """Return the targets of all outcomes that have a column in a file, if they can be read."""
        there, found = self.read(_columns_of, path, self._table(None)), {}
        for name in released:
            with suppress(DpscError):
                if name in there:
                    spec = self.read(ask.column_of, name, released, path, self._table(None), (), alone=True)
                    found[name] = self.read(reader.series, path, spec)
        return found

    def _table(self, mark: str | None) -> TableSpec:
        """Return what was said of a table; ``mark`` is before decimals unless something else was said."""
        return TableSpec.of({"decimal": mark, **self.said})

    @property
    def _wishes_of_several(self) -> Wishes:
        """What was said of the treatment, but for its end where a column says that of each unit."""
        own_ends = self.columns.end or self.columns.treated
        return replace(self.wishes, treatment_end=None) if own_ends else self.wishes

    def _table_of_several(self) -> TableSpec:
        """Return what is known of the table of several units; a panel's names units and starts, nothing else."""
        columns = {"unit": self.columns.unit, "time": self.columns.time, "outcome": self.columns.outcome}
        return TableSpec.of({"decimal": self._shown_mark, **self.said, **columns})

    def _put_away_several(self) -> None:
        self.long_file, self._shown_mark, self.several_pasted, self.study = None, None, "", None
        self.columns, self.columns_there = Columns(), ()
        self.questions.pop("several", None)
        self.problems.pop("several", None)

    def _look_at_columns(self) -> None:
        """Choose the columns that seem to hold what is needed; another table with the same columns keeps them."""
        with self.about("several", self.long_file):
            release, file = self._opened, self.long_file
            if file is None:
                return
            there = self.read(several.sample, file.path, self._table(self._shown_mark))
            if tuple(there) != self.columns_there:
                units = self.panel_units
                found = several.likely(there, partial(match.is_period, release.times), release.outcome, units)
                self.columns_there, self.columns = tuple(there), Columns(**found)

    def _of_outcome(self, path: Path, said: TableSpec, *others: str | None) -> TableSpec:
        """Return how a table is read that may have a column for each outcome of the release."""
        if not isinstance(self.released, Releases) or said.outcome is not None:
            return said
        return self.read(ask.column_of, self.outcome, self.released, path, said, others, alone=True)

    def _has_column(self, file: File | None, name: str) -> bool:
        found: list[str] = []
        if file is not None:
            with self.about("target", file):
                found = self.read(_columns_of, file.path, self._table(None))
        return name in found

    def _target_as_file(self) -> tuple[Path, str | None]:
        """Return the file of the target, and which mark before decimals its numbers show if they were pasted."""
        if self.target_file is not None:
            return self.target_file.path, None
        table = pasted.as_table(self.pasted, self.periods)
        return self._write("pasted.csv", table), pasted.decimal_mark(table)

    def _read_several(self) -> None:
        self.study = None
        self.questions.pop("several", None)
        with self.about("several", self.long_file):
            release, file, columns = self._opened, self.long_file, self.columns
            if file is None:
                return
            for name, label in (("unit", "units"), ("start", "first treated periods")):
                if not getattr(columns, name) and not (name == "start" and columns.treated):
                    raise TableError(f"which column holds the {label}? Choose it under “Columns of the table”.")
            said = self._table_of_several()
            if isinstance(release, PrivatePanel):
                of_units = {name: column for name, column in columns.others.items() if name in ("end", "group")}
                found = self.read(several.treated_units, file.path, said, columns.start, **of_units)
            else:
                start = None if columns.treated else columns.start
                said = self._of_outcome(file.path, said, columns.unit, columns.start, *columns.others.values())
                found = self.read(several.read, file.path, said, start=start, **columns.others)
                release = self._pooled(release)
            with in_file(file.path):
                study = ask.of_targets(release, found, said.time_format, self._wishes_of_several)
            if self._asks("several", study.results):
                return
            self.study = study
            self._studied += [period_name(result.treatment_time) for result in self.study.results.values()]

    @property
    def _opened(self) -> Release | PrivatePanel:
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
