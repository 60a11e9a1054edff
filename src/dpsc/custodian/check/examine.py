"""The custodian's rehearsal: everything that a custodian should know about a table before donors are released from it.

All of it is private, computed from donors without noise. It is for the custodian's own screen: nothing here may reach a
release, a log or an analyst. All problems are found in one reading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from dpsc.custodian.check import findings, guess, lenient_reader
from dpsc.custodian.check.findings import Division, Filling, Finding, divided
from dpsc.custodian.check.guess import Declaration
from dpsc.custodian.check.lenient_reader import SHOWN, Codes, Gathered, joined
from dpsc.custodian.donors.missing import settled
from dpsc.custodian.donors.presence import Misfit, custodian_between, custodian_misfit, usual
from dpsc.errors import TableError
from dpsc.periods import calendar as calendars
from dpsc.periods import dates, declare
from dpsc.tables import formats, reader
from dpsc.tables.dialect import Reading
from dpsc.tables.spec import NOTHING_SAID, TableSpec
from dpsc.types import Array, Times

MARK = "PRIVATE: for the custodian only, do not pass on"


# What only the rows of a long table show, with what stands for it until it is said. In a wide table the header shows
# the periods.
FROM_ROWS = {
    "periods": "FIRST..LAST",
    "labels": "A,B,C",
    "time_format": "FORMAT",
    "decimal": "MARK",
    "thousands": "MARK",
}


@dataclass(frozen=True, repr=False)
class CustodianExamination:
    """What a table of donors holds. Private: for the custodian only.

    Attributes
    ----------
    path : Path
    spec : TableSpec
        How it was understood: what was said and what was guessed. Without columns if there are no rows to see any.
    reading : str
        How the file is written, in words.
    guessed : tuple of str
        The parts of ``spec`` that were not said.
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
    findings : tuple of Finding
    fitting : str or None
        The periods that would fit, if most of the declared ones hold no donor.
    division : Division or None
        How many units are in each segment, if a column of segments was said.
    """

    path: Path
    spec: TableSpec
    reading: str
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
    findings: tuple[Finding, ...] = ()
    fitting: str | None = None
    division: Division | None = None

    @property
    def ready(self) -> bool:
        """Whether nothing needs to be corrected."""
        return all(finding.grade != "correct" for finding in self.findings)

    @property
    def only_in_rows(self) -> dict[str, str]:
        """The parts of ``spec`` that only the donors' rows showed, with what stands for each until it is said."""
        shown = {
            name: stand_in
            for name, stand_in in FROM_ROWS.items()
            if name in self.guessed and not (self.spec.wide and name == "periods")
        }
        _, by, step = str(self.spec.periods).rpartition(" by ")
        return shown | {"periods": f"{shown['periods']} by {step}"} if by and "periods" in shown else shown

    def __repr__(self) -> str:
        return f"<CustodianExamination: {MARK}>"


def custodian_examine(
    path: Path,
    said: TableSpec = NOTHING_SAID,
    on_rows: Callable[[int], None] = lambda rows: None,
    reference: pd.Series[float] | None = None,
) -> CustodianExamination:
    """Look at a table of donors as a whole. Private: for the custodian only.

    Parameters
    ----------
    path : Path
    said : TableSpec
        What is known of the table; the rest is guessed. Without periods it has all from the first to the last; without
        a rule for missing cells it has "kernel", as in a release with declared periods; cells that several rows give
        are a problem unless it was said what they are.
    on_rows : callable
        Told how many rows were read; it may stop the reading, by raising.
    reference : Series, optional
        The public path, whose periods may be those that are meant.
    """
    given = None if said.periods is None else reader.typed_periods(said.periods, reference, said.time_format)
    seen = _look(path, said, given, on_rows)
    if said.dialect.encoding is not None or all(finding.kind != "encoding" for finding in seen.findings):
        return seen
    seen = _look(path, replace(said, dialect=replace(said.dialect, encoding="cp1252")), given, on_rows)
    return replace(seen, guessed=(*seen.guessed, "encoding"))


def _look(path: Path, said: TableSpec, declared: Times | None, on_rows: Callable[[int], None]) -> CustodianExamination:
    given = None if said.periods is None or declared is None else (said.periods, declared)
    table = lenient_reader.open_as_text(path, said)
    with formats.in_file(path):
        try:
            sample = lenient_reader.first_rows(table)
        except TableError as problem:
            return _nothing(path, said, table, findings.unreadable(problem))
        if not any(len(column) for column in sample.values()):
            return _nothing(path, said, table, Finding("correct", "empty", 1, "there are no rows"))
        spec = guess.columns([name for name in table.schema.names if name != said.by], sample, said)
    in_header = _period_columns(table.schema.names, spec, given) if spec.wide else []
    sep = table.reading.sep if formats.format_name(path) in ("csv", "tsv") else None
    shown = [guess.cells_of(sample[name]) for name in (in_header or [str(spec.outcome)])]
    cells = pa.concat_arrays([column.cast(pa.large_string()) for column in shown])
    spec = replace(spec, dialect=guess.dialect_for(cells, said.dialect, sep))
    numbers = spec.dialect.numbers(sep)
    found = lenient_reader.gather(table, spec, in_header, numbers, on_rows)
    reading = _reading(path, replace(table.reading, numbers=numbers), sep is not None)
    if not found.labels or not found.units:
        empty = Finding("correct", "empty", 1, "there are no rows with a unit and a period")
        wrong = findings.cells_that_are_wrong(found)
        return CustodianExamination(path, spec, reading, rows=found.rows, findings=(empty, *wrong))
    labels = list(found.labels)
    when = guess.understand(labels, given, said.time_format)
    spec = replace(spec, time_format=said.time_format or when.time_format, periods=when.typed)
    division = None if spec.by is None else divided(found, spec.by, spec.labels)
    if division is not None:
        spec = replace(spec, labels=",".join(division.labels))
    known = CustodianExamination(
        path,
        spec,
        reading,
        guessed=tuple(name for name in spec.parts() if name not in said.parts()),
        rows=found.rows,
        units=len(found.units),
        whole=found.all_rows,
        periods=tuple(dates.period_name(period) for period in when.times),
        calendar=_calendar(when.times),
        written=str(labels[0]),
        division=division,
    )
    return _examined(found, when, known)


def _nothing(path: Path, said: TableSpec, table: reader.Table, why: Finding) -> CustodianExamination:
    return CustodianExamination(path, said, _reading(path, table.reading, formats.is_text(path)), findings=(why,))


def _period_columns(names: list[str], spec: TableSpec, given: tuple[str, Times] | None) -> list[str]:
    """Return the columns of a wide table that are periods; a release with declared periods ignores all others."""
    others = [name for name in names if name not in (spec.unit, spec.by)]
    if given is not None:
        placed = guess.understand(list(others), given, spec.time_format).places
        return [name for name, place in zip(others, placed, strict=True) if place >= 0] or others
    known = guess.periods_in(others, spec)
    return [name for name in others if name in known] or others


def _reading(path: Path, reading: Reading, text: bool) -> str:
    if text:
        return reading.words
    kind = formats.format_name(path)
    if kind in ("parquet", "feather"):
        return f"{kind.capitalize()}, whose columns have types of their own"
    return {"xlsx": "an Excel workbook", "sql": "rows of a database"}[kind]


def _calendar(times: Times) -> str:
    every = calendars.frequency(times)
    if every is None:
        return "hours" if isinstance(times, pd.DatetimeIndex) else "labels, in their order as text"
    step = declare.rhythm(times)
    if step is not None and step.unit == declare.WORKING_DAY:
        return f"{step.unit}s"
    if step is not None:
        return f"periods, one every {step}" if len(step.counts) == 1 else f"periods, {step} apart"
    return {"number": "whole numbers"}.get(every, f"{every}s")


def _examined(found: Gathered, when: Declaration, known: CustodianExamination) -> CustodianExamination:
    spec, n, T = known.spec, len(found.units), len(when.times)
    of_row, label = joined(found.of_row), joined(found.label)
    cells = findings.Cells(
        found,
        when,
        unit=joined(found.unit).astype(np.int64),
        label=label,
        place=np.append(when.places, -1)[label],
        row=joined(found.row),
        value=joined(found.value),
        first_row=_first_rows(of_row, n),
    )
    placed = (cells.unit >= 0) & (cells.place >= 0)
    there = placed & np.isfinite(cells.value)
    given, told = cells.unit[there] * T + cells.place[there], cells.value[there]
    keys, order = _distinct(given)
    numbers = told[order]
    if len(keys) < len(given):
        those, settle = settled(given, told, spec.repeated or "missing")
        numbers[np.searchsorted(keys, those)] = settle
        keys, numbers = keys[np.isfinite(numbers)], numbers[np.isfinite(numbers)]
    have = np.bincount(keys % T, minlength=T)
    has_cell, starts = _distinct(keys // T)
    ends = np.append(starts[1:], len(keys))[: len(starts)] - 1
    first, last, count = keys[starts] % T, keys[ends] % T, ends - starts + 1
    seen = np.cumsum(have > 0)  # a period that nobody has makes nobody late
    filling = Filling(
        int((T - count).sum()),
        int((count < T).sum()),
        int((last - first + 1 - count).sum()),
        int(first.sum()),
        int((T - 1 - last).sum()),
        n - len(has_cell),
    )
    misfit = _misfit(cells, there, when.times, spec.time_format)
    constant, empty = _constant(numbers, starts, count, has_cell), np.setdiff1d(np.arange(n), has_cell)
    names, shown = list(found.units), spec.parts()
    everything = [
        *findings.cells_that_are_wrong(found),
        *findings.labels_that_are_wrong(cells),
        *findings.repeated(cells, there, spec.repeated),
        *findings.alike(cells),
        *([] if known.division is None else findings.segments(cells, known.division)),
        *(findings.nobody(have, when, wide=spec.wide) if misfit is None else [findings.misfitting(misfit)]),
        *findings.said("missing", filling.cells + filling.without if spec.missing == "error" else 0),
        *findings.numbers_to_look_at(cells, there | (placed & np.isinf(cells.value))),
        *findings.said("constant", len(constant), (cells.named(names[k]) for k in constant[:SHOWN])),
        *findings.said("no cell", len(empty), (cells.named(names[k]) for k in empty[:SHOWN])),
        *findings.to_be_said({name: shown[name] for name in known.only_in_rows}),
    ]
    if T == 1:
        everything.append(Finding("correct", "periods", 1, "there is one period; a release needs at least 2"))
    return replace(
        known,
        missing=tuple((n - have).tolist()),
        late=int((seen[first] > 1).sum()),
        leaving=int((seen[last] < seen[-1]).sum()),
        gaps=int((seen[last] - seen[first] + 1 > count).sum()),
        filling=filling,
        findings=findings.in_order(everything),
        fitting=None if misfit is None else misfit.fitting,
    )


def _misfit(cells: findings.Cells, there: findings.Mask, times: Times, time_format: str | None) -> Misfit | None:
    """Say whether the rows have other periods; which would fit follows from labels that are no typing errors."""
    labels, known = list(cells.found.labels), cells.label[cells.label >= 0]
    counts = np.bincount(known, minlength=len(labels))
    seen = guess.periods_of([labels[k] for k in np.flatnonzero(usual(counts)).tolist()], time_format)[0]
    have = np.bincount(cells.place[there], minlength=len(times))
    misfit = custodian_misfit(have, times, seen=seen)
    if misfit is not None or not isinstance(times, pd.PeriodIndex):
        return misfit
    first, last = times[0].start_time.toordinal(), times[-1].end_time.toordinal()
    days = [None if (written := dates.read(label, time_format)) is None else written.first for label in labels]
    inside = np.array([day is not None and first <= day.toordinal() <= last for day in days])
    outside = inside[known] & (cells.place[cells.label >= 0] < 0)
    return custodian_between(int(outside.sum()), len(known), seen)


def _first_rows(of_row: Codes, n: int) -> Codes:
    """Return the first row of each unit."""
    first = np.full(n, len(of_row))
    seen = of_row >= 0
    np.minimum.at(first, of_row[seen], np.flatnonzero(seen))
    return first


def _distinct(keys: Codes) -> tuple[Codes, Codes]:
    """Return the different keys in order, and where each is first; quickly, if they are in order."""
    if len(keys) < 2 or (keys[1:] < keys[:-1]).any():
        distinct, first = np.unique(keys, return_index=True)
        return distinct, first
    first = np.flatnonzero(np.append(True, keys[1:] > keys[:-1]))
    return keys[first], first


def _constant(numbers: Array, starts: Codes, count: Codes, has_cell: Codes) -> Codes:
    if not len(numbers):
        return np.empty(0, dtype=np.int64)
    same = np.minimum.reduceat(numbers, starts) == np.maximum.reduceat(numbers, starts)
    return np.asarray(has_cell[same & (count > 1)])
