"""The custodian's rehearsal: everything that a custodian should know about a table before donors are released from it.

All of it is private, computed from donors without noise. It is for the custodian's own screen: nothing here may reach a
release, a log or an analyst. All problems are found in one reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from dpsc.checks import visible
from dpsc.data import calendars, dates, declaring, formats, gathering, guessing, tables
from dpsc.data.alike import groups_alike
from dpsc.data.columns import Layout
from dpsc.data.declaring import Declaration
from dpsc.data.dialects import UNSAID, Dialect, Reading
from dpsc.data.gathering import SHOWN, Gathered
from dpsc.data.guessing import Said
from dpsc.data.rules import Missing, rule_for
from dpsc.errors import TableError
from dpsc.types import Array

MARK = "PRIVATE: for the custodian only, do not pass on"
EXTREME = 100.0  # times the median
Grade = Literal["correct", "look"]


@dataclass(frozen=True)
class Finding:
    """Something about the rows.

    Attributes
    ----------
    grade : {"correct", "look"}
        Whether a release would be refused or wrong, or only worth a look.
    kind : str
        A name for programs.
    count : int
    words : str
        What it is and what follows.
    examples : tuple of str
        The first few, with row numbers.
    """

    grade: Grade
    kind: str
    count: int
    words: str
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Filling:
    """What the rules for missing cells would fill.

    Attributes
    ----------
    cells, units : int
        That are missing, and the units that lack them; without units that have no cell at all.
    between, before, after : int
        Cells between a unit's own cells, before its first and after its last.
    without : int
        Units without any cell.
    """

    cells: int
    units: int
    between: int
    before: int
    after: int
    without: int


@dataclass(frozen=True, repr=False)
class CustodianExamination:
    """What a table of donors holds. Private: for the custodian only.

    Attributes
    ----------
    path, layout, reading
        Where it is and how it was understood; ``reading`` is in words.
    options : tuple of str
        The options of ``dpsc release`` that say how the table is read.
    guessed : tuple of str
        Those of them that were not said.
    rows, units : int
        How many there are.
    whole : bool
        Whether all rows were looked at; of a very large table only the first are.
    periods : tuple of str
    calendar : str
        What kind of periods they are, in words.
    written : str
        A period as the table writes it.
    missing : tuple of int
        For each period, how many units have no number.
    late, leaving, gaps : int
        Units whose first period, or last one, is not that of the table; units that miss periods in between.
    filling : Filling
    scattered : int
        Units whose rows do not follow each other.
    findings : tuple of Finding
    """

    path: Path
    layout: Layout
    reading: str
    options: tuple[str, ...]
    guessed: tuple[str, ...]
    rows: int
    units: int
    whole: bool
    periods: tuple[str, ...] = ()
    calendar: str = ""
    written: str = ""
    missing: tuple[int, ...] = ()
    late: int = 0
    leaving: int = 0
    gaps: int = 0
    filling: Filling = field(default_factory=lambda: Filling(0, 0, 0, 0, 0, 0))
    scattered: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether nothing needs to be corrected."""
        return all(finding.grade != "correct" for finding in self.findings)

    def custodian_json(self) -> dict[str, Any]:
        """Return everything for programs of the custodian."""
        return {**asdict(self), "path": str(self.path), "ready": self.ready}

    def __repr__(self) -> str:
        return f"<CustodianExamination: {MARK}>"


def custodian_examine(
    path: Path,
    said: Said | None = None,
    *,
    periods: str | None = None,
    missing: Missing | None = None,
    dialect: Dialect = UNSAID,
) -> CustodianExamination:
    """Look at a table of donors as a whole. Private: for the custodian only.

    Parameters
    ----------
    path : Path
    said : Said, optional
        The columns, as far as they are said; the others are guessed.
    periods : str, optional
        As for ``dpsc release --periods``; by default all from the first to the last.
    missing : {"error", "interpolate", "midpoint", "kernel"}, optional
        "kernel" by default, as in a release with declared periods.
    dialect : Dialect
        What was said about how the file is written.
    """
    said = said or Said()
    rule = rule_for(missing, declared=True)
    given = None if periods is None else (periods, tables.typed_periods(periods, None, said.time_format))
    table = gathering.open_as_text(path, dialect, said)
    with formats.in_file(path):
        try:
            sample = gathering.first_rows(table)
        except TableError as problem:
            return _unreadable(path, said, dialect, table, str(problem))
        layout = guessing.layout(table.schema.names, sample, said)
    in_header = [name for name in table.schema.names if name != layout.unit] if layout.wide else []
    if layout.wide:
        in_header = [name for name in in_header if _is_declared(name, given, said)] or in_header
    text = formats.format_name(path) in ("csv", "tsv")
    shown = [guessing.cells_of(sample[name]) for name in (in_header or [str(layout.outcome)])]
    full = guessing.dialect_for(pa.concat_arrays([c.cast(pa.large_string()) for c in shown]), dialect,
                                table.reading.sep if text else None)  # fmt: skip
    numbers = full.numbers(table.reading.sep if text else None)
    found = gathering.gather(table, layout, in_header, numbers)
    reading = _reading(path, replace(table.reading, numbers=numbers), text)
    if not found.labels or not found.units:
        words = found.unreadable or "there are no rows with a unit and a period"
        return CustodianExamination(
            path, layout, reading, (), (), found.rows, len(found.units), False,
            findings=(Finding("correct", "unreadable", 1, words), *_cells_that_are_wrong(found)),
        )  # fmt: skip
    labels = list(found.labels)
    when = declaring.understand(labels, given, said.time_format)
    options, guessed = _options(said, layout, dialect, full, when, periods is not None)
    return _examined(
        found, when, rule,
        CustodianExamination(
            path, layout, reading, options, guessed, found.rows, len(found.units), found.all_rows,
            tuple(dates.period_name(period) for period in when.times), _calendar(when.times), str(labels[0]),
        ),
    )  # fmt: skip


def _unreadable(path: Path, said: Said, dialect: Dialect, table: tables.Table, why: str) -> CustodianExamination:
    layout = Layout(said.unit or "?", wide=True)
    reading = _reading(path, table.reading, formats.is_text(path))
    return CustodianExamination(path, layout, reading, (), (), 0, 0, False,
                                findings=(Finding("correct", "unreadable", 1, why),))  # fmt: skip


def _is_declared(name: str, given: tuple[str, pd.Index[Any]] | None, said: Said) -> bool:
    if given is None:
        return any(character.isdigit() for character in name)
    return bool(declaring.understand([name], given, said.time_format).read[0])


def _reading(path: Path, reading: Reading, text: bool) -> str:
    if text:
        return reading.words
    kind = {"xlsx": "an Excel workbook", "parquet": "Parquet", "feather": "Feather"}[formats.format_name(path)]
    return f"{kind}, whose columns have types of their own" if kind != "an Excel workbook" else kind


def _calendar(times: pd.Index[Any]) -> str:
    every = calendars.frequency(times)
    if every is None:
        return "hours" if isinstance(times, pd.DatetimeIndex) else "labels, in their order as text"
    step = calendars.step(times)
    plural = {"number": "whole numbers"}.get(every, f"{every}s")
    return plural if step in (1, None) else f"{plural}, every {step}"


def _options(
    said: Said, layout: Layout, dialect: Dialect, full: Dialect, when: Declaration, periods_said: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the options that say how the table is read, and those of them that were guessed."""
    pairs: list[tuple[str, str | None, bool]] = [("--unit", layout.unit, said.unit is not None)]
    if layout.wide:
        pairs.append(("--wide", None, said.wide))
    else:
        pairs.append(("--time", layout.time, said.time is not None))
    if layout.outcome is not None:
        pairs.append(("--outcome", layout.outcome, said.outcome is not None))
    how = said.time_format or when.time_format
    if how is not None:
        pairs.append(("--time-format", how, said.time_format is not None))
    pairs.append(("--periods", when.option, periods_said))
    for name in ("sep", "decimal", "thousands", "encoding", "sheet"):
        value = getattr(full, name)
        if value is not None:
            shown = {"\t": "tab", ";": "semicolon", "|": "pipe"}.get(value, guessing.word(value))
            pairs.append((f"--{name}", shown or "none", getattr(dialect, name) is not None))
    options = tuple(part for name, value, _ in pairs for part in (name, value) if part is not None)
    return options, tuple(name for name, _, known in pairs if not known)


def _examined(found: Gathered, when: Declaration, rule: Missing, known: CustodianExamination) -> CustodianExamination:
    units = np.concatenate(found.unit).astype(np.int64)
    labels, values = np.concatenate(found.label), np.concatenate(found.value)
    rows, of_row = np.concatenate(found.row), np.concatenate(found.of_row)
    places = np.append(when.places, -1)[labels]
    n, T = len(found.units), len(when.times)
    names = list(found.units)
    first_row = _first_rows(of_row, n)

    there = (units >= 0) & (places >= 0) & np.isfinite(values)
    keys, order = np.unique(units[there] * T + places[there], return_index=True)
    numbers = values[there][order]
    have = np.bincount(keys % T, minlength=T)
    has_cell, starts = np.unique(keys // T, return_index=True)
    ends = np.append(starts[1:], len(keys)) - 1
    first, last, count = keys[starts] % T, keys[ends] % T, ends - starts + 1
    filling = Filling(
        int((T - count).sum()), int((count < T).sum()), int((last - first + 1 - count).sum()), int(first.sum()),
        int((T - 1 - last).sum()), n - len(has_cell),
    )  # fmt: skip
    constant = _constant(numbers, starts, count, has_cell)

    def at(cell: int) -> str:
        period = "" if places[cell] < 0 else f" ({dates.period_name(when.times[places[cell]])})"
        return f"{found.row_name(int(rows[cell]))}{period}"

    findings = [
        *_cells_that_are_wrong(found),
        *_labels_that_are_wrong(found, when, labels, at),
        *_repeated(found, known.layout, units, labels, places, values, of_row, at),
        *_alike(found, names, first_row),
        *_nobody(have, when, known.layout),
        *_refused_cells(filling, rule),
        *_numbers_to_look_at(values, there | (np.isinf(values) & (units >= 0) & (places >= 0)), at),
        *_units_to_look_at("constant", constant, n, "never move: the same number in every period. They have no "
                           "direction; a release takes each for a fixed public vector", names, first_row, found),
        *_units_to_look_at("no cell", np.setdiff1d(np.arange(n), has_cell), n, "have no number in any period. They "
                           "count as donors all the same", names, first_row, found),
    ]  # fmt: skip
    return replace(
        known, missing=tuple((n - have).tolist()), late=int((first > 0).sum()), leaving=int((last < T - 1).sum()),
        gaps=int((last - first + 1 > count).sum()), filling=filling, scattered=_scattered(of_row, n, known.layout),
        findings=tuple(sorted(findings, key=lambda finding: finding.grade)),
    )  # fmt: skip


def _first_rows(of_row: Array, n: int) -> Array:
    first = np.full(n, len(of_row))
    seen = of_row >= 0
    np.minimum.at(first, of_row[seen], np.flatnonzero(seen))
    return first


def _scattered(of_row: Array, n: int, layout: Layout) -> int:
    if layout.wide or not len(of_row):
        return 0
    starts = of_row[np.append(True, of_row[1:] != of_row[:-1])]
    return int((np.bincount(starts[starts >= 0], minlength=n) > 1).sum())


def _constant(numbers: Array, starts: Array, count: Array, has_cell: Array) -> Array:
    if not len(numbers):
        return np.empty(0, dtype=np.int64)
    same = np.minimum.reduceat(numbers, starts) == np.maximum.reduceat(numbers, starts)
    return has_cell[same & (count > 1)]


def _cells_that_are_wrong(found: Gathered) -> list[Finding]:
    about: list[tuple[str, int, str]] = [
        ("text", found.text, "{cells} no number. A release refuses the table; leave a missing value empty"),
        ("ambiguous", found.ambiguous, "{cells} a number in two ways, such as 1.234; say --decimal"),
        ("no unit", found.no_unit, "{rows} no unit. A release refuses the table"),
        ("no period", found.no_period, "{rows} no period. A release ignores them"),
    ]
    problems = [Finding("correct", "unreadable", 1, found.unreadable)] if found.unreadable else []
    for kind, count, words in about:
        if count:
            filled = words.format(cells=_are(count, "cell"), rows=_have(count, "row"))
            problems.append(Finding("correct", kind, count, filled, tuple(found.examples.get(kind, ()))))
    return problems


def _labels_that_are_wrong(
    found: Gathered, when: Declaration, labels: Array, at: Callable[[int], str]
) -> list[Finding]:
    findings = []
    if when.problem:
        findings.append(Finding("correct", "dates", 1, f"the periods are not clear: {when.problem.rstrip('.')}"))
    written = list(found.labels)
    unread, outside = ~when.read, when.read & (when.places < 0)
    for kind, those in (("unread period", unread), ("outside", outside)):
        cells = np.flatnonzero((labels >= 0) & np.append(those, False)[labels])
        if not len(cells):
            continue
        examples = tuple(f"{at(int(cell))} says {visible(str(written[labels[cell]]))[:40]!r}" for cell in cells[:SHOWN])
        if kind == "unread period":
            words = f"{_have(len(cells), 'row')} a period that cannot be read. A release ignores them"
            findings.append(Finding("correct", kind, len(cells), words, examples))
        else:
            words = f"{_are(len(cells), 'row')} outside the declared periods. A release ignores them"
            findings.append(Finding("look", kind, len(cells), words, examples))
    return findings


def _repeated(
    found: Gathered, layout: Layout, units: Array, labels: Array, places: Array, values: Array, of_row: Array,
    at: Callable[[int], str],
) -> list[Finding]:  # fmt: skip
    """Find units with two rows for one period, or two rows of a wide table."""
    if layout.wide:
        known = np.flatnonzero(of_row >= 0)
        again = known[pd.Index(of_row[known]).duplicated()]
        if not len(again):
            return []
        first = _first_rows(of_row, len(found.units))
        examples = tuple(
            f"{found.row_name(int(row))} repeats {found.row_name(int(first[of_row[row]]))}" for row in again[:SHOWN]
        )
        words = f"{_have(len(again), 'row')} a unit that another row has. A release refuses the table"
        return [Finding("correct", "twice", len(again), words, examples)]
    findings = []
    whole = np.flatnonzero((units >= 0) & (labels >= 0))
    keys = units[whole] * (len(found.labels) + 1) + labels[whole]
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(again):
        later, earlier = whole[order[again + 1]], whole[order[again]]
        same = int((values[later] == values[earlier]).sum())
        few = np.argsort(later, kind="stable")[:SHOWN]
        examples = tuple(
            f"{found.row_name(int(later[k]))} repeats {found.row_name(int(earlier[k]))}"
            + (", the same number" if values[later[k]] == values[earlier[k]] else ", another number")
            for k in few
        )
        words = (
            f"{_have(len(again), 'row')} a unit and period that another row has ({same:,} with the same number). A "
            "release takes the average of them"
        )
        findings.append(Finding("correct", "twice", len(again), words, examples))
    inside = np.flatnonzero((units >= 0) & (places >= 0))
    finer = len(inside) - len(np.unique(units[inside] * (int(places.max()) + 1) + places[inside])) - len(again)
    if finer > 0:
        words = (
            f"{_are(finer, 'row')} within a period that the unit has another row for, such as two days of one month. A "
            "release takes their average"
        )
        findings.append(Finding("look", "finer", finer, words))
    return findings


def _alike(found: Gathered, names: list[str], first_row: Array) -> list[Finding]:
    groups = groups_alike(names)
    if not groups:
        return []
    row_of = {name: found.row_name(int(first_row[k])) for k, name in enumerate(names)} if len(names) < 10**6 else {}
    examples = tuple(
        " and ".join(f"{visible(name)[:40]!r}" + (f" ({row_of[name]})" if name in row_of else "") for name in group[:3])
        for group in groups[:SHOWN]
    )
    count = sum(map(len, groups))
    words = (
        f"{count:,} units have names that differ only in case, spaces or Unicode form. If two are one person, the "
        "guarantee does not hold for that person"
    )
    return [Finding("correct", "alike", count, words, examples)]


def _nobody(have: Array, when: Declaration, layout: Layout) -> list[Finding]:
    empty = [dates.period_name(when.times[k]) for k in np.flatnonzero(have == 0)]
    if not empty:
        return []
    listed = ", ".join(empty[:12]) + (f" and {len(empty) - 12} more" if len(empty) > 12 else "")
    what = "A release refuses the table" if layout.wide else "A release would fill it for everybody"
    words = (
        f"{listed}: missing for EVERYBODY. Was a file lost? {what}; if there is nothing to find, declare the periods "
        "without it, as a list (--periods)"
    )
    return [Finding("correct", "nobody", len(empty), words)]


def _refused_cells(filling: Filling, rule: Missing) -> list[Finding]:
    count = filling.cells + filling.without
    if rule != "error" or not count:
        return []
    words = f"{_are(count, 'cell')} missing, and --missing error refuses the table"
    return [Finding("correct", "missing", count, words)]


def _numbers_to_look_at(values: Array, there: Array, at: Callable[[int], str]) -> list[Finding]:
    findings = []

    def note(kind: str, mask: Array, words: Callable[[int], str]) -> None:
        cells = np.flatnonzero(mask)
        if len(cells):
            examples = tuple(f"{at(int(cell))} says {values[cell]:.10g}" for cell in cells[:SHOWN])
            findings.append(Finding("look", kind, len(cells), words(len(cells)), examples))

    with np.errstate(invalid="ignore"):
        sizes = np.abs(values[there & np.isfinite(values) & (values != 0)])
        typical = float(np.median(sizes)) if len(sizes) else 0.0
        negative = there & (values < 0)
        if negative.sum() <= 0.2 * there.sum():  # otherwise numbers are below zero as a matter of course
            note("negative", negative, lambda count: f"{_are(count, 'number')} below zero, the others are not")
        note("infinite", there & np.isinf(values), lambda count: f"{_are(count, 'number')} infinite; taken for missing")
        large = there & np.isfinite(values) & (np.abs(values) > EXTREME * typical) & (typical > 0)
        note(
            "extreme", large,
            lambda count: f"{_are(count, 'number')} more than {EXTREME:g} times the median of {typical:.4g}. Are cents "
            "and euros mixed?",
        )  # fmt: skip
    return findings


def _units_to_look_at(
    kind: str, units: Array, n: int, what: str, names: Sequence[str], first_row: Array, found: Gathered
) -> list[Finding]:
    if not len(units):
        return []
    examples = tuple(
        f"{visible(names[unit])[:40]!r} ({found.row_name(int(first_row[unit]))})" for unit in units[:SHOWN]
    )
    return [Finding("look", kind, len(units), f"{len(units):,} of {n:,} units {what}", examples)]


def _are(count: int, what: str) -> str:
    return f"1 {what} is" if count == 1 else f"{count:,} {what}s are"


def _have(count: int, what: str) -> str:
    return f"1 {what} has" if count == 1 else f"{count:,} {what}s have"
