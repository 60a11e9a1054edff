"""What may be wrong with a table of donors, or worth a look: counts, words and the first few with their row numbers.

Private: for the custodian's rehearsal only (:mod:`dpsc.custodian.check.examine`). Rows and cells are quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dpsc.checks import visible
from dpsc.custodian.check.guess import Declaration
from dpsc.custodian.check.lenient_reader import SHOWN, Codes, Gathered
from dpsc.custodian.donors.frames import groups_alike
from dpsc.custodian.donors.presence import Misfit
from dpsc.errors import Parameter, TableError, mentioned, rendered
from dpsc.periods import dates
from dpsc.periods.declare import declaration
from dpsc.release.segments import MOST_SEGMENTS, OTHER, Segments, plain_label
from dpsc.tables.dialect import ENCODING
from dpsc.tables.spec import Repeated
from dpsc.types import Array

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


@dataclass(frozen=True)
class Division:
    """How many units are in each segment. Private.

    Attributes
    ----------
    by : str
    labels : tuple of str
        As declared; if they were not, those that most units name.
    units : tuple of int
        In each of them, and in "other".
    undeclared : tuple of pairs
        The labels that were not declared, and how many units name them; those of most units first.
    several : tuple of int
        Units whose rows name several segments.
    without : int
        How many units name none.
    """

    by: str
    labels: tuple[str, ...]
    units: tuple[int, ...]
    undeclared: tuple[tuple[str, int], ...]
    several: tuple[int, ...]
    without: int

    @property
    def rows(self) -> list[tuple[str, int]]:
        """Each segment and its units."""
        return list(zip((*self.labels, OTHER), self.units, strict=True))


def divided(found: Gathered, by: str, typed: str | None) -> Division:
    """Divide units as a release does."""
    pairs = np.unique(np.concatenate([np.empty((0, 2), dtype=np.int64), *found.in_segment]), axis=0)
    names, n = list(found.segments), len(found.units)
    read = [plain_label(name) for name in names]
    number = {label: k for k, label in enumerate(dict.fromkeys(read))}
    unit, label = pairs[(pairs >= 0).all(axis=1)].T if len(pairs) else np.empty((2, 0), dtype=np.int64)
    label = np.array([number[name] for name in read], dtype=np.int64)[label]
    unit, label = np.unique(np.column_stack([unit, label]), axis=0).T
    count = dict(zip(number, np.bincount(label, minlength=len(number)).tolist(), strict=True))
    ranked = sorted(count, key=lambda name: (-count[name], name))
    if typed is None:
        shown = [name for name in ranked if name != OTHER and "," not in name][: MOST_SEGMENTS - 1]
        segments = Segments.declared(by, sorted(shown) or ["A"])
    else:
        segments = Segments.declared(by, typed)
    assert segments is not None
    codes = np.array([segments.place(name) for name in number], dtype=np.intp)[label]
    of_unit = segments.agreed(unit, codes, n)
    several = np.flatnonzero(np.bincount(np.unique(np.column_stack([unit, codes]), axis=0)[:, 0], minlength=n) > 1)
    return Division(
        by,
        segments.labels[:-1],
        tuple(np.bincount(of_unit, minlength=len(segments.labels)).tolist()),
        tuple((name, count[name]) for name in ranked if name not in segments.labels),
        tuple(several.tolist()),
        n - len(np.unique(unit)),
    )


def segments(cells: Cells, division: Division) -> list[Finding]:
    """Find labels that were not declared, and units with several labels or none: they are in "other"."""
    many, names = sum(units for _, units in division.undeclared), list(cells.found.units)
    found = []
    if division.undeclared:
        words = (
            f"{counted(many, 'unit', 'has', 'have')} a label that was not declared ({Parameter('labels')}), and "
            f"{'is' if many == 1 else 'are'} in {OTHER!r}. Is one of them a declared one, written in another way?"
        )
        said_of = tuple(f"{visible(name)[:40]!r}: {units:,} units" for name, units in division.undeclared[:SHOWN])
        found.append(Finding("look", "undeclared", len(division.undeclared), words, said_of))
    if several := division.several:
        words = f"{counted(len(several), 'unit', 'names', 'name')} several segments. Such a unit is in {OTHER!r}"
        those = tuple(cells.named(names[k]) for k in several[:SHOWN])
        found.append(Finding("look", "several segments", len(several), words, those))
    if division.without:
        words = f"{counted(division.without, 'unit', 'names', 'name')} no segment. Such a unit is in {OTHER!r}"
        found.append(Finding("look", "no segment", division.without, words))
    empty = [name for name, units in zip(division.labels, division.units, strict=False) if not units]
    if empty:
        words = f"no unit is in {', '.join(map(repr, empty))}. Is the label written as in the table?"
        found.append(Finding("look", "empty segment", len(empty), words))
    return found


def small_segments(division: Division, least: int, epsilon: float) -> list[Finding]:
    """Find segments that are too small to say anything by themselves; what to declare must not follow from it."""
    small = [f"{name!r} ({units:,} units)" for name, units in division.rows if 0 < units < least]
    if not small:
        return []
    words = (
        f"too small to say anything by itself at epsilon {epsilon:g}, where a segment needs about {least:,} units: "
        f"{', '.join(small)}. Analysts ask such a segment together with others. Do not change the labels because of "
        "these numbers: they are private"
    )
    return [Finding("look", "small segment", len(small), words)]


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a table that were read. Private.

    Attributes
    ----------
    found : Gathered
    when : Declaration
    unit, label, place, row, value : arrays
        Of each cell: its unit, the label of its period and that period's place (-1 where there is none), its row, its
        number or NaN.
    first_row : array
        Of each unit.
    """

    found: Gathered
    when: Declaration
    unit: Codes
    label: Codes
    place: Codes
    row: Codes
    value: Array
    first_row: Codes

    def at(self, cell: int) -> str:
        """Name the row and the period of a cell."""
        place = self.place[cell]
        period = "" if place < 0 else f" ({dates.period_name(self.when.times[place])})"
        return f"{self.found.row_name(int(self.row[cell]))}{period}"

    def named(self, unit: str) -> str:
        """Name a unit and its first row."""
        row = self.found.row_name(int(self.first_row[self.found.units[unit]]))
        return f"{visible(unit)[:40]!r} ({row})"


Mask = np.ndarray[Any, np.dtype[np.bool_]]


_IGNORED = "A release ignores such rows"
_SAID: dict[str, tuple[Grade, str, str]] = {  # what is counted, and what is said of it
    "fields": ("correct", "line", "{have} too many or too few fields. A release refuses the table"),
    "text": ("correct", "cell", "{are} no number. A release refuses the table; leave a missing value empty"),
    "ambiguous": ("correct", "cell", f"{{are}} a number in two ways, such as 1.234; say {Parameter('decimal')}"),
    "no unit": ("correct", "row", f"{{have}} no unit. {_IGNORED}: nobody is counted for them"),
    "no period": ("correct", "row", f"{{have}} no period. {_IGNORED}"),
    "unread period": ("correct", "row", f"{{have}} a period that cannot be read. {_IGNORED}"),
    "outside": ("look", "row", f"{{are}} outside the declared periods. {_IGNORED}"),
    "missing": ("correct", "cell", f"{{are}} missing, and {Parameter('missing', 'error')} refuses the table"),
    "negative": ("look", "number", "{are} below zero, the others are not"),
    "infinite": ("look", "number", "{are} infinite; taken for missing"),
    "extreme": (
        "look",
        "number",
        "{are} more than {times:g} times the median of {median:.4g}. Are cents and euros mixed?",
    ),
    "constant": (
        "look",
        "unit",
        "{have} the same number in every period. A release counts such units as donors and learns nothing from them: "
        "each is replaced by one public series, the same for all",
    ),
    "no cell": ("look", "unit", "{have} no number in any period. A release counts such units as donors all the same"),
}


def said(kind: str, count: int, examples: Iterable[str] = (), **values: float) -> list[Finding]:
    """Return a finding if there is anything to count."""
    if not count:
        return []
    grade, what, words = _SAID[kind]
    words = words.format(are=counted(count, what, "is", "are"), have=counted(count, what, "has", "have"), **values)
    return [Finding(grade, kind, count, words, tuple(examples))]


def counted(count: int, what: str, one: str, several: str) -> str:
    """Say how many there are, with a verb."""
    return f"1 {what} {one}" if count == 1 else f"{count:,} {what}s {several}"


def unreadable(problem: TableError) -> Finding:
    """Say why a table cannot be read."""
    kind = "encoding" if ENCODING in mentioned(problem.message) else "unreadable"
    return Finding("correct", kind, 1, problem.message)


def cells_that_are_wrong(found: Gathered) -> list[Finding]:
    """Find cells that are no numbers, and rows without unit or period."""
    problems = [] if found.unreadable is None else [unreadable(found.unreadable)]
    problems += said("fields", len(found.wrong_lines), (f"line {line}" for line in found.wrong_lines[:SHOWN]))
    for kind in ("text", "ambiguous", "no unit", "no period"):
        problems += said(kind, found.counts[kind], found.examples.get(kind, ()))
    return problems


def labels_that_are_wrong(cells: Cells) -> list[Finding]:
    """Find rows whose period cannot be read or was not declared."""
    when, written, findings = cells.when, list(cells.found.labels), []
    if when.problem:
        findings.append(Finding("correct", "dates", 1, f"the periods are not clear: {when.problem.rstrip('.')}"))
    for kind, labels in (("unread period", ~when.read), ("outside", when.read & (when.places < 0))):
        those = np.flatnonzero((cells.label >= 0) & np.append(labels, False)[cells.label]).tolist()
        names = (f"{cells.at(k)} says {visible(str(written[cells.label[k]]))[:40]!r}" for k in those[:SHOWN])
        findings += said(kind, len(those), names)
    return findings


_RULES = {
    "missing": "takes them for missing",
    "sum": "adds them up, as for bills",
    "mean": "averages them, as for readings",
    "last": "takes the last row, as for corrections",
}


def repeated(cells: Cells, there: Mask, rule: Repeated | None) -> list[Finding]:
    """Find cells that several rows give: a problem, unless it was said what they are."""
    units, values, rows, T = cells.unit, cells.value, cells.row, int(cells.place.max()) + 1
    keys, positions = units * T + cells.place, np.flatnonzero(there)
    earlier, later = (positions[those] for those in pairs_of_equals(keys[there]))
    if not len(later):
        return []
    few = np.lexsort((cells.place[later], rows[later]))[: SHOWN * T]
    pairs = {(int(rows[later[k]]), int(rows[earlier[k]])): bool(values[later[k]] == values[earlier[k]]) for k in few}
    name = cells.found.row_name
    examples = tuple(
        f"{name(row)} repeats {name(other)}" + (", the same number" if same else ", another number")
        for (row, other), same in list(pairs.items())[:SHOWN]
    )
    count, same = len(np.unique(keys[later])), int((values[later] == values[earlier]).sum())
    finer = int((cells.label[later] != cells.label[earlier]).sum())
    besides = [f"{same:,} with the same number"] if same else []
    besides += [f"{finer:,} on another date in the period"] if finer else []
    words = (
        f"{counted(count, 'cell', 'is', 'are')} given by several rows. Units: {len(np.unique(units[later])):,}, rows "
        f"beyond the first: {len(later):,}{' (' + ', '.join(besides) + ')' if besides else ''}. "
    )
    if rule is not None:
        words += f"{Parameter('repeated', rule)} {_RULES[rule]}"
        return [Finding("look", "twice", count, words, examples)]
    rules = "; ".join(f"{Parameter('repeated', name)} {does}" for name, does in _RULES.items())
    words += (
        "If they are of several people, give each an identifier of their own. If not, say what such cells are: "
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


def alike(cells: Cells) -> list[Finding]:
    """Find units that differ only in how they are written."""
    groups = groups_alike(cells.found.units)
    if not groups:
        return []
    examples = tuple(" and ".join(map(cells.named, group[:3])) for group in groups[:SHOWN])
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
    words = f"{listed}: missing for EVERYBODY. Was a file lost? {what}"
    if len(empty) < len(have):
        others = Parameter("periods", declaration(when.times[have > 0]))
        words += f"; if there is nothing to find, declare the periods without it, {others}"
    return [Finding("correct", "nobody", len(empty), words)]


def misfitting(misfit: Misfit) -> Finding:
    """Say that most of the declared periods are empty, and which periods would fit."""
    fits = () if misfit.fitting is None else (f"these fit the rows: {Parameter('periods', misfit.fitting)}",)
    return Finding("correct", "calendar", 1, misfit.words, fits)


def numbers_to_look_at(cells: Cells, there: Mask) -> list[Finding]:
    """Find negative, infinite and extreme numbers."""
    values, findings = cells.value, []
    with np.errstate(invalid="ignore"):
        sizes = np.abs(values[there & np.isfinite(values) & (values != 0)])
        median = float(np.median(sizes)) if len(sizes) else 0.0
        negative = there & (values < 0)
        if negative.sum() > 0.2 * there.sum():  # numbers are below zero as a matter of course
            negative = np.zeros_like(there)
        large = there & np.isfinite(values) & (np.abs(values) > EXTREME * median) & (median > 0)
    for kind, mask in (("negative", negative), ("infinite", there & np.isinf(values)), ("extreme", large)):
        those = np.flatnonzero(mask).tolist()
        numbers = (f"{cells.at(k)} says {values[k]:.10g}" for k in those[:SHOWN])
        findings += said(kind, len(those), numbers, times=EXTREME, median=median)
    return findings


def to_be_said(shown: Mapping[str, str | bool]) -> list[Finding]:
    """Ask for what only the rows showed: one donor's rows must not decide what is published, or how others are read."""
    asked, names = [Parameter(*each) for each in shown.items()], [str(Parameter(name)) for name in shown]
    they_decide, they, them = ("They decide", "they", "them") if len(asked) > 1 else ("It decides", "it", "it")
    words = (
        f"say {' and '.join(names)} and check again. {they_decide} what is published, or how everybody's numbers are "
        f"read, so {they} must come from what you know of the data, not from its rows, where one person could decide "
        f"{them}"
    )
    examples = tuple(f"the rows show {it}" for it in asked)
    return [Finding("correct", "to be said", len(asked), words, examples)] if asked else []


def in_order(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return first what must be corrected, then what is worth a look."""
    return tuple(sorted(found, key=lambda finding: finding.grade))
