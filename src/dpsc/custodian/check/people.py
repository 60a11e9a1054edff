"""The custodian's rehearsal for people in groups: how many are in which cell, what bounds would cut or leave out.

All of it is private, computed from records without noise, and for the custodian's own screen. Nothing here may reach a
release, a log or an analyst.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpsc.checks import did_you_mean, visible
from dpsc.custodian.check.examine import MARK
from dpsc.custodian.check.findings import Finding, in_order, misfitting
from dpsc.custodian.donors.cells import as_units
from dpsc.custodian.donors.people import OnRows, PersonCells
from dpsc.custodian.donors.presence import Misfit, custodian_misfit
from dpsc.custodian.donors.records import keys_of
from dpsc.custodian.groups.bounding import Bounding
from dpsc.custodian.groups.people_files import FilePeople
from dpsc.errors import Parameter
from dpsc.release.panel import ENOUGH_PEOPLE, Block
from dpsc.release.table_rule import TableRule
from dpsc.tables import formats, reader
from dpsc.tables.arrow import coded
from dpsc.types import Array, Integers

_MOST_LABELS = 10_000  # of undeclared units that are counted
_EXAMPLES = 5
_COUNTS = ("people", "left_out", "below", "above", "shortened", "everybody", "in_several_units", "shortened_people")


class CustodianCounts(Bounding):
    """Counts of people and of what bounds do to them, cell by cell, in integers as a release adds them up. Private."""

    def of(self, people: PersonCells) -> Integers:
        """Return a table for each of ``_COUNTS``, and those of a release; a person is counted in the first cell."""
        rule = self.rule
        counts = np.zeros((len(_COUNTS), rule.periods * rule.units), dtype=np.int64)
        if len(people.cells):
            person, cells = people.person, people.cells
            kept, steps, short = self.bounded(people)
            period = person * rule.periods + cells // rule.units
            several = np.unique(person[1:][period[1:] == period[:-1]])
            value = people.sums - rule.middle_steps
            low, high = rule.ends_steps if rule.has_values else (value.min(), value.max())
            of_cells = (
                cells,
                np.delete(cells, kept),
                cells[value < low],
                cells[value > high],
                cells[kept][short != steps],
            )
            first = cells[people.starts]
            of_people = first, first[several], first[np.unique(person[kept][short != steps])]
            for row, which in enumerate((*of_cells, *of_people)):
                counts[row] = np.bincount(which, minlength=counts.shape[1])
        table = counts.reshape(len(_COUNTS), rule.periods, rule.units).transpose(0, 2, 1)
        return np.concatenate([table, super().of(people)])


@dataclass(frozen=True, repr=False)
class CustodianLook:
    """What records of people hold. Private: for the custodian only.

    Attributes
    ----------
    rule : TableRule
    units : tuple of str
    reading : str
        How the file is written, in words.
    rows, without_person, outside_units, outside_periods : int
        Records, and those that a release leaves out.
    people, in_several_units, shortened : int
        Everybody with a record in the table, those in several units of one period, and those whose values are shrunk.
    in_cells : units × periods
        People in each cell, bounds aside.
    left_out, below, above : int
        A person's cells that do not count, and those whose value is set to a bound.
    enough : int
        How many people a cell needs to be read; 0 if no number of people is released.
    too_few : units × periods
        Whether a cell has fewer.
    noise : float
        The standard deviation of a cell's noise, in the usual cell; at most, if a bound on a person is yet to be found.
    change : float
        How much a unit usually changes from one period to the next.
    findings : tuple of Finding
    fitting : str or None
        The periods that would fit, if in most of the declared ones there is nobody.
    """

    rule: TableRule
    units: tuple[str, ...]
    reading: str
    rows: int
    without_person: int
    outside_units: int
    outside_periods: int
    people: int
    in_several_units: int
    shortened: int
    in_cells: Integers
    left_out: int
    below: int
    above: int
    enough: int
    too_few: np.ndarray[Any, np.dtype[np.bool_]]
    noise: float
    change: float
    finds_bound: bool = False
    findings: tuple[Finding, ...] = field(default=())
    fitting: str | None = None

    @property
    def ready(self) -> bool:
        """Whether nothing needs to be corrected."""
        return all(finding.grade != "correct" for finding in self.findings)

    def __repr__(self) -> str:
        return f"<CustodianLook: {MARK}>"


def custodian_look(people: FilePeople, block: Block, on_rows: OnRows = lambda rows: None) -> CustodianLook:
    """Look at records of people as a whole. Private: for the custodian only.

    Parameters
    ----------
    people : FilePeople
    block : Block
        What a release would be like: its rule and its noise; its numbers are not looked at.
    on_rows : callable
        Told how many records were read; it may stop the reading, by raising.
    """
    rule = block.rule
    found = people.add_up(CustodianCounts(rule), on_rows)
    counts, tables = dict(zip(_COUNTS, found, strict=False)), found[len(_COUNTS) :]
    labels = _Labels(people)
    with formats.nothing_quoted(people.path):
        labels.read()
    values, noises = _exact(rule, block, tables)
    counted = tables[1] // rule.one_person if rule.counts_people else counts["people"]
    enough = int(np.ceil(ENOUGH_PEOPLE * block.deviation / rule.one_person)) if rule.counts_people else 0
    changes = np.diff(values, axis=1)
    known = changes[np.isfinite(changes)]
    look = CustodianLook(
        rule=rule,
        units=people.units,
        reading=people.table.reading.words if people.table.is_text else people.table.kind,
        rows=labels.rows,
        without_person=labels.without_person,
        outside_units=sum(labels.elsewhere.values()),
        outside_periods=labels.other_times,
        people=int(counts["everybody"].sum()),
        in_several_units=int(counts["in_several_units"].sum()),
        shortened=int(counts["shortened_people"].sum()),
        in_cells=counts["people"],
        left_out=int(counts["left_out"].sum()),
        below=int(counts["below"].sum()),
        above=int(counts["above"].sum()),
        enough=enough,
        too_few=counted < enough,
        noise=float(np.nanmedian(noises)) if np.isfinite(noises).any() else float("nan"),
        change=float(np.sqrt(np.mean(known**2))) if len(known) else float("nan"),
        finds_bound=block.lengths is not None,
    )
    misfit = custodian_misfit(look.in_cells.sum(axis=0), people.times, people=True)
    fitting = None if misfit is None or not look.people else misfit.fitting
    return replace(look, findings=in_order(_findings(look, labels, misfit)), fitting=fitting)


def _exact(rule: TableRule, block: Block, tables: Integers) -> tuple[Array, Array]:
    """Return the exact values of cells, and the noise that a release would add to each. Private."""
    noise = block.deviation * rule.part
    if not rule.counts_people:
        return tables[0] * rule.part, np.full(tables[0].shape, noise)
    with np.errstate(all="ignore"):
        people = np.where(tables[1] > 0, tables[1] / rule.one_person, np.nan)
        over = tables[0] * rule.part / people
        return rule.middle + over, noise * np.sqrt(1 + (over / (rule.one_person * rule.part)) ** 2) / people


class _Labels:
    """What is written in the columns of people, units and periods; read by itself. Private."""

    def __init__(self, people: FilePeople) -> None:
        self.people = people
        self.rows = self.without_person = self.other_times = 0
        self.elsewhere: Counter[str] = Counter()
        self.seen: set[str] = set()
        self._written, self._understood = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64)  # identifiers

    def read(self) -> None:
        """Read the labels of all records."""
        files, grid = self.people, self.people.grid
        for rows in reader.rows_of(files.table, files.columns[:3], labels=files.columns[1:3]):
            person, unit, time = rows.batch.columns
            self.rows += len(person)
            self._read_identifiers(as_units(person))
            units = coded(unit)
            counts = np.bincount(units.indices.to_numpy(), minlength=len(units.dictionary))
            for label, count in zip(as_units(units.dictionary).to_pylist(), counts.tolist(), strict=True):
                if label in grid.units:
                    self.seen.add(label)
                elif len(self.elsewhere) < _MOST_LABELS or label in self.elsewhere:
                    self.elsewhere[label or ""] += count
            self.other_times += int((grid.places_of(time) < 0).sum())

    def _read_identifiers(self, people: Any) -> None:
        """Remember hashes of identifiers that are new, as they are written and as people read them."""
        self.without_person += people.null_count
        different = pc.unique(people.drop_null())
        written = keys_of(different)
        places = np.minimum(np.searchsorted(self._written, written), max(0, len(self._written) - 1))
        new = self._written[places] != written if len(self._written) else np.ones(len(written), dtype=bool)
        plain = pc.utf8_normalize(different.filter(pa.array(new)), form="NFKC")
        understood = keys_of(pc.utf8_lower(pc.utf8_trim_whitespace(plain)))
        self._written, first = np.unique(np.append(self._written, written[new]), return_index=True)
        self._understood = np.append(self._understood, understood)[first]

    @property
    def alike(self) -> int:
        """How many identifiers differ only in case, spaces or Unicode form from another one."""
        _, counts = np.unique(self._understood, return_counts=True)
        return int(counts[counts > 1].sum())


def _findings(look: CustodianLook, labels: _Labels, misfit: Misfit | None) -> list[Finding]:
    declared, cells, few = look.units, look.in_cells.size, int(look.too_few.sum())
    found: list[Finding] = []
    if not look.people:
        words = (
            "no record of a person has a declared unit and period, so that the table would hold nothing but noise; are "
            f"{Parameter('units')} and {Parameter('periods')} written as in the table?"
        )
        found.append(Finding("correct", "empty", look.rows, words))
    elif misfit is not None:
        found.append(misfitting(misfit))
    elif few:
        words = (
            f"{few:,} of {cells:,} cells have fewer than {look.enough:,} people. With this noise a cell needs that "
            "many, so these cells would be missing. dpsc plan shows what helps, from public numbers of people"
        )
        found.append(Finding("correct" if few == cells else "look", "few", few, words))
    absent = [unit for unit in declared if unit not in labels.seen]
    if absent and look.people:
        examples = [f"{visible(unit)!r}.{did_you_mean(unit, labels.elsewhere)}" for unit in absent[:_EXAMPLES]]
        words = f"{len(absent)} of the declared units have no record; are they written as in the table?"
        found.append(Finding("look", "absent", len(absent), words, tuple(examples)))
    if labels.alike:
        words = (
            f"{labels.alike:,} identifiers differ from another one only in case, spaces or Unicode form. If two of "
            "them belong to one person, this person is protected less than the guarantee says"
        )
        found.append(Finding("look", "alike", labels.alike, words))
    if look.outside_units:
        most = labels.elsewhere.most_common(_EXAMPLES)
        examples = [f"{visible(unit)[:40]!r}: {count:,} records" for unit, count in most]
        words = f"{look.outside_units:,} records are of units that are not declared. A release leaves them out"
        found.append(Finding("look", "elsewhere", len(labels.elsewhere), words, tuple(examples)))
    if look.outside_periods:
        words = f"{look.outside_periods:,} records are not in the declared periods. A release leaves them out"
        found.append(Finding("look", "times", look.outside_periods, words))
    if look.without_person:
        words = f"{look.without_person:,} records have no identifier. A release leaves them out"
        found.append(Finding("look", "nobody", look.without_person, words))
    return found
