"""What may be wrong with a table of donors, or worth a look: counts, words and the first few with their row numbers.

Private: for the custodian's rehearsal only (:mod:`dpsc.custodian.check.examine`). Rows and cells are quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dpsc.checks import visible
from dpsc.custodian.check.guess import Declaration
from dpsc.custodian.check.lenient_reader import SHOWN, Codes, Gathered
from dpsc.custodian.donors.frames import groups_alike
from dpsc.errors import Parameter, TableError, mentioned, rendered
from dpsc.periods import dates
from dpsc.tables.dialect import ENCODING
from dpsc.tables.spec import Missing, Repeated
from dpsc.types import Array

DECIMAL, PERIODS = Parameter("decimal"), Parameter("periods")
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

    def rendered(self, write: Callable[[Parameter], str]) -> Finding:
        """Return it with its parameters as ``write`` writes them."""
        examples = tuple(rendered(example, write) for example in self.examples)
        return replace(self, words=rendered(self.words, write), examples=examples)


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


At = Callable[[int], str]  # names the row and the period of a cell
Mask = np.ndarray[Any, np.dtype[np.bool_]]


def first_rows(of_row: Codes, n: int) -> Codes:
    """Return the first row of each unit."""
    first = np.full(n, len(of_row))
    seen = of_row >= 0
    np.minimum.at(first, of_row[seen], np.flatnonzero(seen))
    return first


def unreadable(problem: TableError) -> Finding:
    """Say why a table cannot be read."""
    kind = "encoding" if ENCODING in mentioned(problem.message) else "unreadable"
    return Finding("correct", kind, 1, problem.message)


def cells_that_are_wrong(found: Gathered) -> list[Finding]:
    """Find cells that are no numbers, and rows without unit or period."""
    about: list[tuple[str, int, str]] = [
        ("text", found.text, "{cells} no number. A release refuses the table; leave a missing value empty"),
        ("ambiguous", found.ambiguous, "{cells} a number in two ways, such as 1.234; say " + str(DECIMAL)),
        ("no unit", found.no_unit, "{rows} no unit. A release ignores such rows: nobody is counted for them"),
        ("no period", found.no_period, "{rows} no period. A release ignores such rows"),
    ]
    problems = [] if found.unreadable is None else [unreadable(found.unreadable)]
    if found.wrong_lines:
        count, lines = len(found.wrong_lines), tuple(f"line {line}" for line in found.wrong_lines[:SHOWN])
        words = f"{_have(count, 'line')} too many or too few fields. A release refuses the table"
        problems.append(Finding("correct", "fields", count, words, lines))
    for kind, count, words in about:
        if count:
            filled = words.format(cells=_are(count, "cell"), rows=_have(count, "row"))
            problems.append(Finding("correct", kind, count, filled, tuple(found.examples.get(kind, ()))))
    return problems


def labels_that_are_wrong(found: Gathered, when: Declaration, labels: Codes, at: At) -> list[Finding]:
    """Find rows whose period cannot be read or was not declared."""
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
            words = f"{_have(len(cells), 'row')} a period that cannot be read. A release ignores such rows"
            findings.append(Finding("correct", kind, len(cells), words, examples))
        else:
            words = f"{_are(len(cells), 'row')} outside the declared periods. A release ignores such rows"
            findings.append(Finding("look", kind, len(cells), words, examples))
    return findings


_RULES = {
    "missing": "takes them for missing",
    "sum": "adds them up, as for bills",
    "mean": "averages them, as for readings",
    "last": "takes the last row, as for corrections",
}


def repeated(
    found: Gathered,
    units: Codes,
    labels: Codes,
    places: Codes,
    values: Array,
    rows: Codes,
    there: Mask,
    rule: Repeated | None,
) -> list[Finding]:
    """Find cells that several rows give: a problem, unless it was said what they are."""
    cells = np.flatnonzero(there)
    keys = units[cells] * (int(places.max()) + 1) + places[cells]
    earlier, later = (cells[those] for those in pairs_of_equals(keys))
    if not len(later):
        return []
    few = np.lexsort((places[later], rows[later]))[: SHOWN * (int(places.max()) + 1)]
    pairs = {(int(rows[later[k]]), int(rows[earlier[k]])): bool(values[later[k]] == values[earlier[k]]) for k in few}
    examples = tuple(
        f"{found.row_name(row)} repeats {found.row_name(other)}" + (", the same number" if same else ", another number")
        for (row, other), same in list(pairs.items())[:SHOWN]
    )
    count = len(np.unique(units[later] * (int(places.max()) + 1) + places[later]))
    same, finer = int((values[later] == values[earlier]).sum()), int((labels[later] != labels[earlier]).sum())
    besides = [f"{same:,} with the same number"] if same else []
    besides += [f"{finer:,} on another date in the period"] if finer else []
    words = (
        f"{_are(count, 'cell')} given by several rows. Units: {len(np.unique(units[later])):,}, rows beyond the first: "
        f"{len(later):,}{' (' + ', '.join(besides) + ')' if besides else ''}"
    )
    if rule is not None:
        return [Finding("look", "twice", count, f"{words}. {Parameter('repeated', rule)} {_RULES[rule]}", examples)]
    rules = "; ".join(f"{Parameter('repeated', name)} {does}" for name, does in _RULES.items())
    words += (
        ". If they are of several people, give each an identifier of their own. If not, say what such cells are: "
        f"{rules}. A release takes them for missing unless you say so"
    )
    return [Finding("correct", "twice", count, words, examples)]


def pairs_of_equals(keys: Codes) -> tuple[Codes, Codes]:
    """Return the positions of keys that occur again, and of those that repeat them."""
    if (keys[1:] > keys[:-1]).all():
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    return order[again], order[again + 1]


def alike(found: Gathered, names: list[str], first_row: Codes) -> list[Finding]:
    """Find units that differ only in how they are written."""
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


def nobody(have: Codes, when: Declaration, *, wide: bool) -> list[Finding]:
    """Find periods that are missing for everybody."""
    empty = [dates.period_name(when.times[k]) for k in np.flatnonzero(have == 0).tolist()]
    if not empty:
        return []
    listed = ", ".join(empty[:12]) + (f" and {len(empty) - 12} more" if len(empty) > 12 else "")
    what = "A release refuses the table" if wide else "A release would fill it for everybody"
    words = (
        f"{listed}: missing for EVERYBODY. Was a file lost? {what}; if there is nothing to find, declare the periods "
        f"without it, as a list ({PERIODS})"
    )
    return [Finding("correct", "nobody", len(empty), words)]


def refused_cells(filling: Filling, rule: Missing | None) -> list[Finding]:
    """Find missing cells, if these are refused."""
    count = filling.cells + filling.without
    if rule != "error" or not count:
        return []
    words = f"{_are(count, 'cell')} missing, and {Parameter('missing', 'error')} refuses the table"
    return [Finding("correct", "missing", count, words)]


def numbers_to_look_at(values: Array, there: Mask, at: At) -> list[Finding]:
    """Find negative, infinite and extreme numbers."""
    findings = []

    def note(kind: str, mask: Mask, words: Callable[[int], str]) -> None:
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
            "extreme",
            large,
            lambda count: (
                f"{_are(count, 'number')} more than {EXTREME:g} times the median of {typical:.4g}. Are cents "
                "and euros mixed?"
            ),
        )
    return findings


def units_to_look_at(
    kind: str, units: Codes, what: str, names: Sequence[str], first_row: Codes, found: Gathered
) -> list[Finding]:
    """Name units of one kind."""
    if not len(units):
        return []
    examples = tuple(
        f"{visible(names[unit])[:40]!r} ({found.row_name(int(first_row[unit]))})" for unit in units[:SHOWN]
    )
    return [Finding("look", kind, len(units), f"{_have(len(units), 'unit')} {what}", examples)]


def _are(count: int, what: str) -> str:
    return f"1 {what} is" if count == 1 else f"{count:,} {what}s are"


def _have(count: int, what: str) -> str:
    return f"1 {what} has" if count == 1 else f"{count:,} {what}s have"
