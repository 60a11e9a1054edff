"""People in files: a table of records, one file or a folder, of any kind that can be read, in any order.

Records are read once, batch by batch. Errors never quote a cell.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dpsc.custodian.donors.blocks import in_order
from dpsc.custodian.donors.people import OnRows
from dpsc.custodian.donors.records import Grid, Records
from dpsc.custodian.groups.bounding import WIDTH, Bounding, add_up
from dpsc.errors import ParameterError
from dpsc.tables import formats, reader
from dpsc.tables.formats import in_file
from dpsc.tables.spec import OUTCOME, PERSON, TIME, UNIT, TableSpec
from dpsc.types import Integers, Times

PEOPLE = "people"  # the outcome's name where people are counted
AT_ONCE = 2**18  # records of a batch
_MOST_HELD = 2**29  # bytes of records; more are kept in a file


@dataclass(frozen=True, eq=False)
class FilePeople:
    """People in one file or in a folder of files: a row for each record, in any order.

    Attributes
    ----------
    path : Path
    spec : TableSpec
        Its columns and how it is written.
    grid : Grid
        The declared units and periods.
    held : bool, optional
        Whether the records are held in memory until they are added up; otherwise they are kept in a private file. By
        default they are held if they are few, going by the sizes of the files.
    """

    path: Path
    spec: TableSpec
    grid: Grid
    held: bool | None = None

    @cached_property
    def table(self) -> reader.Table:
        """The files, and how they are read."""
        labels = [self.spec.person, self.spec.unit, self.spec.time]
        return reader.open_table(self.path, labels, self.spec.dialect, [*labels, self.spec.outcome])

    @cached_property
    def in_memory(self) -> bool:
        """Whether the records are held in memory."""
        if self.held is not None:
            return self.held
        rows = self.rows_expected()
        return rows is not None and rows * WIDTH <= min(_MOST_HELD, formats.free_memory() / 4)

    @cached_property
    def columns(self) -> list[str]:
        """The columns to read: person, unit, period, and the outcome if there is one."""
        spec, table = self.spec, self.table
        with in_file(self.path):
            labels = {str(spec.person): PERSON, spec.unit: UNIT, str(spec.time): TIME}
            for name, parameter in labels.items():
                reader.require_column(table, name, parameter)
            names = list(labels)
            if spec.outcome is not None:
                reader.require_column(table, spec.outcome, OUTCOME, number=True)
                reader.require_unambiguous(table, self.path, [spec.outcome])
                names.append(spec.outcome)
            reader.require_same_columns(table, self.path, [name for name in names if name not in table.folders])
            return names

    @property
    def units(self) -> tuple[str, ...]:
        """The declared units, in their order."""
        return self.grid.units

    @property
    def times(self) -> Times:
        """The declared periods, in order."""
        return self.grid.times

    @property
    def outcome(self) -> str:
        """The name of the outcome."""
        return self.spec.outcome or PEOPLE

    @property
    def how(self) -> str:
        """Where the records are kept until they are added up."""
        return "held in memory" if self.in_memory else "kept in a private file meanwhile"

    def require_columns(self) -> None:
        """Refuse files without the columns that were named; no record is read."""
        with formats.nothing_quoted(self.path):
            self.columns  # noqa: B018

    def rows_expected(self) -> int | None:
        """Return how many records to expect, if that is known."""
        return self.table.rows_expected()

    def records(self) -> Generator[Records, None, None]:
        """Yield the records, batch by batch; several are read at the same time."""
        rows = reader.rows_of(self.table, self.columns, AT_ONCE, labels=self.columns[1:3])
        with closing(in_order(self.grid.of_rows, rows)) as made:
            for _, some in made:
                yield some

    def add_up(self, summand: Bounding, on_rows: OnRows) -> Integers:
        """Return the exact sum over all people."""
        require_outcome(summand, self.spec.outcome is not None)
        with formats.nothing_quoted(self.path), closing(self.records()) as records:
            return add_up(records, summand, on_rows, expected=self.rows_expected(), in_memory=self.in_memory)


def require_outcome(summand: Bounding, is_there: bool) -> None:
    """Refuse to add up values where no column of them is named."""
    if summand.needs_values and not is_there:
        raise ParameterError(f"say which column holds the numbers, {OUTCOME}; only to count people it is not needed.")
