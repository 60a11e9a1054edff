"""Opens and reads a table on disk, a file or a folder of files. Everything goes through Arrow.

Errors name the file, the column or the row and the next step. They never quote a cell; names of columns are public.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pyarrow as pa

from dpsc.errors import Parameter, TableError
from dpsc.periods import calendar, dates, declare
from dpsc.tables import arrow, excel, formats, spec
from dpsc.tables import dialect as dialects
from dpsc.tables.arrow import Rows
from dpsc.tables.dialect import AS_USUAL, UNSAID, Dialect, Reading
from dpsc.tables.formats import in_file
from dpsc.tables.places import Remote, Selection
from dpsc.tables.spec import NOTHING_SAID, OUTCOME, TIME, TableSpec
from dpsc.tables.table_file import TableFile
from dpsc.types import Times

ROWS_AT_ONCE = 2**20
HEADER = Parameter("periods")
_MOST_OPEN = 100  # files of a folder, together
_THREE_DECIMALS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")


@dataclass(frozen=True, eq=False)
class Table:
    """A table that was opened: its columns, where its rows are, and how they are read.

    Attributes
    ----------
    schema : Arrow schema
        Columns of labels and columns of numbers, and those that are in the names of folders.
    reading : Reading
    files : list of TableFile
        None for a workbook.
    sheet : Worksheet, optional
        Of a workbook.
    """

    schema: Any
    reading: Reading
    files: Sequence[TableFile] = ()
    sheet: excel.Worksheet | None = None

    @property
    def kind(self) -> str:
        """The kind of its files."""
        return "xlsx" if self.sheet is not None else self.files[0].kind

    @property
    def is_text(self) -> bool:
        """Whether its files are text, CSV or TSV."""
        return self.kind in ("csv", "tsv")

    @property
    def as_understood(self) -> str | None:
        """How text files are read that are not plain CSV: "separator semicolon, encoding utf-8, decimal comma"."""
        return self.reading.words if self.is_text and self.reading != AS_USUAL else None

    @property
    def folders(self) -> set[str]:
        """The columns that are in the names of folders (region=north)."""
        return set(self.files[0].folders) if self.files else set()

    def with_text(self, columns: Sequence[str | None]) -> Table:
        """Return the same table with these columns as they are written, so that 007 is not 7 and NA is a name."""
        if not self.is_text and self.sheet is None:
            return self
        text = (field.with_type(pa.string()) if field.name in columns else field for field in self.schema)
        return replace(self, schema=pa.schema(text))

    def rows_expected(self) -> int | None:
        """Return how many rows there are: known for Parquet and Feather, estimated for CSV; None for others."""
        if self.sheet is not None:
            return len(self.sheet.cells)
        if not self.is_text:
            counts = [file.count_rows() for file in self.files]
            return sum(count for count in counts if count is not None) if None not in counts else None
        about = None if any(file.path.suffix == ".gz" for file in self.files) else self.files[0].bytes_per_line()
        return None if about is None else int(sum(file.path.stat().st_size for file in self.files) / about)

    def each_file(self) -> Iterator[TableFile]:
        """Yield the files; of a folder with very many, only one is open at a time."""
        for file in self.files:
            yield file
            if len(self.files) > _MOST_OPEN:
                file.close()


def open_table(
    path: Path, text: Sequence[str | None], dialect: Dialect = UNSAID, named: Sequence[str | None] = ()
) -> Table:
    """Open a table and check its header; nothing else is read, but for a workbook, which is held in memory.

    The columns ``text`` of a CSV stay as they are written, so that 007 is not 7 and NA is a name; all others hold
    numbers. A type guessed from the first lines may be wrong for later ones. The columns ``named`` must be there.
    """
    kind = formats.format_name(path)
    _require_belonging(kind, dialect)
    if kind == "xlsx" and isinstance(path, Remote):
        raise formats.refusal(path, "workbooks are read from this machine only; download it, or save it as CSV.")
    sheet = excel.open_sheet(path, dialect) if kind == "xlsx" else None
    files = files_at(path) if sheet is None else []
    reading = Reading(numbers=dialect.numbers())
    with in_file(path):
        if sheet is not None:
            names = sheet.names
        elif files[0].is_text:
            names, reading = _header(files[0], dialect, [name for name in named if name is not None])
        else:
            schema = files[0].schema(reading)
            names = schema.names
        spec.require_header(names, text=sheet is not None or files[0].is_text)
    if sheet is not None or files[0].is_text:
        number = pa.float64() if sheet is not None or reading.numbers.plain else pa.string()
        schema = pa.schema((name, pa.string() if name in text else number) for name in names)
    for name in files[0].folders if files else ():
        schema = schema if name in names else schema.append(pa.field(name, pa.string()))
    return Table(schema, reading, files, sheet)


def files_at(path: Path) -> list[TableFile]:
    """Return the file, or the files of a folder in the order of their names, none of them opened yet."""
    if isinstance(path, Selection):
        from dpsc.tables.database import DatabaseFile

        return [DatabaseFile(path)]
    if not path.is_dir():
        return [TableFile(path)]
    return [TableFile(file, _in_names(file.relative_to(path).parent)) for file in formats.files_in(path)]


def _in_names(folders: Path) -> dict[str, str]:
    """Return the columns that names of folders hold."""
    parts = (part.partition("=") for part in folders.parts)
    return {unquote(name): unquote(value) for name, equal, value in parts if equal}


def _require_belonging(kind: str, dialect: Dialect) -> None:
    """Refuse what was said of another kind of file."""
    if dialect.beside:
        return
    text, workbook = kind in ("csv", "tsv"), kind == "xlsx"
    for name in (*(() if text else ("sep", "encoding")), *(() if workbook else ("sheet",))):
        if getattr(dialect, name) is not None:
            what = "Excel workbooks (.xlsx)" if name == "sheet" else "text files (CSV, TSV)"
            raise TableError(f"{Parameter(name)} is for {what}; leave it out.")


def _header(first: TableFile, dialect: Dialect, named: Sequence[str]) -> tuple[list[str], Reading]:
    """Return the names in the first line of a CSV, or of the first CSV of a folder, and how to read it."""
    line, encoding = first.first_line(dialect.encoding)
    if re.fullmatch(r'"?sep=.?\W*', line):
        raise formats.refusal(first.path, "the first line only says which separator is used (sep=); remove that line.")
    reading = dialects.reading_of(line, encoding, dialect, named, tabs=first.kind == "tsv")
    names = dialects.names_in(line, reading.sep)
    if not names:
        empty = first.path.stat().st_size == 0
        raise formats.refusal(first.path, "the file is empty." if empty else "there is no header line.")
    return names, reading


def rows_of(table: Table, names: list[str], size: int = ROWS_AT_ONCE, labels: Sequence[str] = ()) -> Iterator[Rows]:
    """Read the named columns of a table, file after file, in batches of at most ``size`` rows.

    The columns ``labels`` may come as :func:`dpsc.tables.arrow.coded` returns them, if a file holds them like this.
    """
    if table.sheet is not None:
        yield from table.sheet.rows(table.schema, names, size, table.reading.numbers)
        return
    for file in table.each_file():
        first = 0
        for batch in file.batches(table.schema, names, size, table.reading, labels=labels):
            yield Rows(str(file.path), first, batch, table.reading.numbers)
            first += batch.num_rows


def require_same_columns(table: Table, path: Path, names: Sequence[str], time: str | None = None) -> None:
    """Refuse files of a folder that lack a column, or whose periods are of different kinds.

    Each file is read with its own types, so that no file changes how another is read; periods must be comparable.
    """
    if not path.is_dir():
        return
    first: tuple[str, str] | None = None
    for file in table.each_file():
        own = file.schema(table.reading)
        for name in names:
            if name not in own.names:
                raise formats.refusal(file.path, f"there is no column {name!r}, which other files of the folder have.")
        if time is not None and not file.is_text:
            kind = arrow.kind_of(own.field(time).type)
            first = first or (kind, file.path.name)
            if kind != first[0]:
                raise formats.refusal(
                    file.path, f"column {time!r} is of another kind than in {first[1]}; make them the same."
                )


def require_unambiguous(table: Table, path: Path, numbers: Sequence[str]) -> None:
    """Refuse numbers of which nothing shows that their points are before decimals: 1.234, 12.345, ... in all rows.

    Only where points are a custom and nothing more. This looks at the first rows and at nothing else, and it can only
    refuse: however it turns out, a table that is read is read in the same way.
    """
    if not table.reading.doubtful:
        return
    places = [(table.schema.names.index(name), name) for name in numbers]
    found = None
    for row, cells_of_row in enumerate(table.files[0].first_rows(table.reading)):
        for place, name in places:
            cell = cells_of_row[place].strip() if place < len(cells_of_row) else ""
            if "." in cell:
                if not _THREE_DECIMALS.fullmatch(cell):
                    return
                found = found or (name, row)
    if found is not None:
        raise formats.two_readings(found[0], path, found[1])


def require_column(table: Table, name: str, parameter: Parameter = HEADER, *, number: bool = False) -> None:
    """Refuse a column that is not there, or whose type does not fit."""
    kind = table.schema.field(spec.find(table.schema.names, name, parameter)).type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise TableError(f"column {name!r} is not text in UTF-8.")
    if number and not arrow.may_hold_numbers(kind):
        raise TableError(f"column {name!r} holds {kind}, not numbers.")
    if not number and not arrow.may_hold_labels(kind):
        raise TableError(f"column {name!r} ({parameter}) holds {kind}, which cannot name units or periods.")


def series(path: Path, said: TableSpec = NOTHING_SAID, *, advice: str = "") -> pd.Series[float]:
    """Read a public series from a file with a column of periods and a column of numbers.

    ``advice`` ends the refusal of a table that may hold several series.
    """
    return series_in(open_series(path, said), path, said, advice=advice)


def series_beside(
    path: Path, said: TableSpec, beside: str | None, *, advice: str = ""
) -> tuple[pd.Series[float], pd.Series[float] | None]:
    """Read a public series, and beside it another column of numbers by the same periods if it is named."""
    table = open_series(path, said, beside)
    first = series_in(table, path, said, beside, advice=advice)
    if beside is None:
        return first, None
    with in_file(path):
        spec.find(table.schema.names, beside, Parameter("treated_column", ""))
    time = next(name for name in table.schema.names if name == said.time or name not in (beside, first.name))
    return first, series_in(table, path, replace(said, time=time, outcome=beside))


def open_series(path: Path, said: TableSpec, beside: str | None = None) -> Table:
    """Open a file with a public series."""
    if path.is_dir():
        raise formats.refusal(path, f"this is a folder; name a file: {formats.KINDS}.")
    with in_file(path):
        return open_table(path, [], said.dialect, [said.time, said.outcome, beside])


def series_in(
    table: Table, path: Path, said: TableSpec, beside: str | None = None, *, advice: str = ""
) -> pd.Series[float]:
    """Return the public series of a table: see :func:`series`."""
    time, outcome = said.time, said.outcome
    with in_file(path):
        names = [name for name in table.schema.names if name != beside]
        if (time is None or outcome is None) and len(names) != 2:
            raise TableError(f"{spec.undecided(table.schema.names, time, outcome)}{advice}")
        time = names[0] if time is None else time
        outcome = next(name for name in names if name != time) if outcome is None else outcome
        table = table.with_text([time])
        require_column(table, time, TIME)
        require_column(table, outcome, OUTCOME, number=True)
        require_unambiguous(table, path, [outcome])
        batches = list(rows_of(table, [time, outcome]))
        labels = [label for rows in batches for label in rows.batch.column(0).to_pylist()]
        require_rows(len(labels), path)
        values = [value for rows in batches for value in arrow.floats(rows.batch.column(1), outcome, rows)]
        when = calendar.understood(labels, time, lambda row: formats.row_name(row, path), said.time_format)
        if not when.is_unique:
            twice = dates.period_name(when[when.duplicated()][0])
            raise TableError(f"the period {twice} occurs twice in column {time!r}." + advice)
        return pd.Series(values, index=when, name=outcome, dtype=float)


def typed_periods(text: str, reference: pd.Series[float] | None, time_format: str | None) -> Times:
    """Return the periods that somebody typed: a range, a list with commas, a file, or the word "reference"."""
    if text == "reference":
        if reference is None:
            raise TableError(
                f"{Parameter('periods', 'reference')} takes the periods of the reference path; give "
                f"{Parameter('reference')}."
            )
        return declare.declared(reference.index)
    path = Path(text)
    if len(text) > 255 or not path.exists():  # ../target.csv is a file, not a range
        return declare.declared(text, time_format)
    with in_file(path):
        name, labels = _first_column(path)
        require_rows(len(labels), path)
        when = calendar.understood(labels, name, lambda row: formats.row_name(row, path), time_format)
        return declare.declared(when.unique())


def typed_units(text: str) -> tuple[str, ...]:
    """Return the units that somebody typed: a list with commas, or a file whose first column names them."""
    path = Path(text)
    if len(text) > 255 or not path.is_file():
        if "," not in text and path.suffix.lower() in (".csv", ".txt", ".tsv", ".xlsx", ".parquet"):
            formats.format_name(path)  # a panel has more than one unit: this is a file that is not there
        return tuple(unit.strip() for unit in text.split(","))
    with in_file(path):
        labels = [str(label) for label in _first_column(path)[1] if label not in (None, "")]
        require_rows(len(labels), path)
        return tuple(dict.fromkeys(labels))


def _first_column(path: Path) -> tuple[str, list[Any]]:
    """Return the name of the first column of a table, and what is in it."""
    table = open_table(path, [])
    names = table.schema.names
    read = rows_of(table.with_text(names), names[:1])
    return names[0], [label for rows in read for label in rows.batch.column(0).to_pylist()]


def require_rows(count: int, path: Path) -> None:
    """Refuse a table without rows."""
    if not count:
        raise formats.refusal(path, f"there are no rows{' below the header' if formats.is_text(path) else ''}.")
