"""The custodian's rehearsal: everything that a custodian should know about a table before donors are released from it.

All of it is private, computed from donors without noise. It is for the custodian's own screen: nothing here may reach a
release, a log or an analyst. All problems are found in one reading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dpsc.custodian.check import findings, guess, lenient_reader
from dpsc.custodian.check.findings import Filling, Finding
from dpsc.custodian.check.guess import Declaration, Said
from dpsc.custodian.check.lenient_reader import Codes, Gathered, joined
from dpsc.custodian.donors.missing import settled
from dpsc.errors import TableError
from dpsc.periods import calendar as calendars
from dpsc.periods import dates
from dpsc.tables import formats, reader
from dpsc.tables.dialect import UNSAID, Dialect, Reading
from dpsc.tables.spec import Missing, Repeated, TableSpec, require_repeated, rule_for
from dpsc.types import Array

MARK = "PRIVATE: for the custodian only, do not pass on"


@dataclass(frozen=True, repr=False)
class CustodianExamination:
    """What a table of donors holds. Private: for the custodian only.

    Attributes
    ----------
    path, layout, reading
        Where it is and how it was understood; ``reading`` is in words. No layout if there are no rows to see it from.
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
    layout: TableSpec | None
    reading: str
    options: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()
    rows: int = 0
    units: int = 0
    whole: bool = True
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
    repeated: Repeated | None = None,
    dialect: Dialect = UNSAID,
    on_rows: Callable[[int], None] = lambda rows: None,
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
    repeated : {"missing", "sum", "mean", "last"}, optional
        What a cell is that several rows give, if that was said; "missing" if not, and then it is a problem.
    dialect : Dialect
        What was said about how the file is written.
    on_rows : callable
        Told how many rows were read; it may stop the reading, by raising.
    """
    seen = _look(path, said or Said(), periods, missing, repeated, dialect, on_rows)
    if dialect.encoding is not None or all(finding.kind != "encoding" for finding in seen.findings):
        return seen
    seen = _look(path, said or Said(), periods, missing, repeated, replace(dialect, encoding="cp1252"), on_rows)
    return replace(seen, guessed=(*seen.guessed, "--encoding"))


def _look(
    path: Path,
    said: Said,
    periods: str | None,
    missing: Missing | None,
    repeated: Repeated | None,
    dialect: Dialect,
    on_rows: Callable[[int], None],
) -> CustodianExamination:
    rule = rule_for(missing, declared=True)
    require_repeated(repeated or "missing")
    given = None if periods is None else (periods, reader.typed_periods(periods, None, said.time_format))
    table = lenient_reader.open_as_text(path, dialect, said)
    with formats.in_file(path):
        try:
            sample = lenient_reader.first_rows(table)
        except TableError as problem:
            return _nothing(path, table, findings.unreadable(problem))
        if not any(len(column) for column in sample.values()):
            return _nothing(path, table, Finding("correct", "empty", 1, "there are no rows"))
        layout = guess.layout(table.schema.names, sample, said)
    in_header = _period_columns(table.schema.names, layout, given, said) if layout.wide else []
    text = formats.format_name(path) in ("csv", "tsv")
    shown = [guess.cells_of(sample[name]) for name in (in_header or [str(layout.outcome)])]
    full = guess.dialect_for(pa.concat_arrays([c.cast(pa.large_string()) for c in shown]), dialect,
                                table.reading.sep if text else None)  # fmt: skip
    numbers = full.numbers(table.reading.sep if text else None)
    found = lenient_reader.gather(table, layout, in_header, numbers, on_rows)
    reading = _reading(path, replace(table.reading, numbers=numbers), text)
    if not found.labels or not found.units:
        empty = Finding("correct", "empty", 1, "there are no rows with a unit and a period")
        return CustodianExamination(
            path, layout, reading, rows=found.rows, findings=(empty, *findings.cells_that_are_wrong(found))
        )
    labels = list(found.labels)
    when = guess.understand(labels, given, said.time_format)
    options, guessed = _options(said, layout, dialect, full, when, periods is not None)
    return _examined(
        found, when, rule, repeated, layout,
        CustodianExamination(
            path, layout, reading, options, guessed, found.rows, len(found.units), found.all_rows,
            tuple(dates.period_name(period) for period in when.times), _calendar(when.times), str(labels[0]),
        ),
    )  # fmt: skip


def _nothing(path: Path, table: reader.Table, why: Finding) -> CustodianExamination:
    return CustodianExamination(path, None, _reading(path, table.reading, formats.is_text(path)), findings=(why,))


def _period_columns(
    names: list[str], layout: TableSpec, given: tuple[str, pd.Index[Any]] | None, said: Said
) -> list[str]:
    """Return the columns of a wide table that are periods; a release with declared periods ignores all others."""
    others = [name for name in names if name != layout.unit]
    if given is not None:
        placed = guess.understand(list(others), given, said.time_format).places
        return [name for name, place in zip(others, placed, strict=True) if place >= 0] or others
    known = guess.periods_in(others, said)
    return [name for name in others if name in known] or others


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
    said: Said, layout: TableSpec, dialect: Dialect, full: Dialect, when: Declaration, periods_said: bool
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
            pairs.append((f"--{name}", guess.word(value), getattr(dialect, name) is not None))
    options = tuple(part for name, value, _ in pairs for part in (name, value) if part is not None)
    return options, tuple(name for name, _, known in pairs if not known)


def _examined(
    found: Gathered,
    when: Declaration,
    rule: Missing,
    repeated: Repeated | None,
    layout: TableSpec,
    known: CustodianExamination,
) -> CustodianExamination:
    units, labels, values = joined(found.unit).astype(np.int64), joined(found.label), joined(found.value)
    rows, of_row = joined(found.row), joined(found.of_row)
    places = np.append(when.places, -1)[labels]
    n, T = len(found.units), len(when.times)
    names = list(found.units)
    first_row = findings.first_rows(of_row, n)

    there = (units >= 0) & (places >= 0) & np.isfinite(values)
    given, told = units[there] * T + places[there], values[there]
    keys, order = _distinct(given)
    numbers = told[order]
    if len(keys) < len(given):
        those, settle = settled(given, told, repeated or "missing")
        numbers[np.searchsorted(keys, those)] = settle
        keys, numbers = keys[np.isfinite(numbers)], numbers[np.isfinite(numbers)]
    have = np.bincount(keys % T, minlength=T)
    has_cell, starts = _distinct(keys // T)
    ends = np.append(starts[1:], len(keys)) - 1
    first, last, count = keys[starts] % T, keys[ends] % T, ends - starts + 1
    seen = np.cumsum(have > 0)  # a period that nobody has makes nobody late
    filling = Filling(
        int((T - count).sum()), int((count < T).sum()), int((last - first + 1 - count).sum()), int(first.sum()),
        int((T - 1 - last).sum()), n - len(has_cell),
    )  # fmt: skip
    constant = _constant(numbers, starts, count, has_cell)

    def at(cell: int) -> str:
        period = "" if places[cell] < 0 else f" ({dates.period_name(when.times[places[cell]])})"
        return f"{found.row_name(int(rows[cell]))}{period}"

    everything = [
        *findings.cells_that_are_wrong(found),
        *findings.labels_that_are_wrong(found, when, labels, at),
        *findings.repeated(found, units, labels, places, values, rows, there, repeated),
        *findings.alike(found, names, first_row),
        *findings.nobody(have, when, layout),
        *findings.refused_cells(filling, rule),
        *findings.numbers_to_look_at(values, there | (np.isinf(values) & (units >= 0) & (places >= 0)), at),
        *findings.units_to_look_at("constant", constant, "the same number in every period. A "
                           "release takes each for a fixed public vector", names, first_row, found),
        *findings.units_to_look_at("no cell", np.setdiff1d(np.arange(n), has_cell), "no number in any period, and "
                           "still counts as a donor", names, first_row, found),
    ]  # fmt: skip
    return replace(
        known, missing=tuple((n - have).tolist()), late=int((seen[first] > 1).sum()),
        leaving=int((seen[last] < seen[-1]).sum()), gaps=int((seen[last] - seen[first] + 1 > count).sum()),
        filling=filling, scattered=_scattered(of_row, n, layout),
        findings=tuple(sorted(everything, key=lambda finding: finding.grade)),
    )  # fmt: skip


def _distinct(keys: Codes) -> tuple[Codes, Codes]:
    """Return the different keys in order, and where each is first; quickly, if they are in order."""
    if len(keys) < 2 or (keys[1:] < keys[:-1]).any():
        distinct, first = np.unique(keys, return_index=True)
        return distinct, first
    first = np.flatnonzero(np.append(True, keys[1:] > keys[:-1]))
    return keys[first], first


def _scattered(of_row: Codes, n: int, layout: TableSpec) -> int:
    if layout.wide or not len(of_row):
        return 0
    starts = of_row[np.append(True, of_row[1:] != of_row[:-1])]
    return int((np.bincount(starts[starts >= 0], minlength=n) > 1).sum())


def _constant(numbers: Array, starts: Codes, count: Codes, has_cell: Codes) -> Codes:
    if not len(numbers):
        return np.empty(0, dtype=np.int64)
    same = np.minimum.reduceat(numbers, starts) == np.maximum.reduceat(numbers, starts)
    return np.asarray(has_cell[same & (count > 1)])
