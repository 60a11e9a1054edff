"""Opens and reads a table on disk, a file or a folder of files. Everything goes through Arrow.

Errors name the file, the column or the row and the next step. They never quote a cell; names of columns are public.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from dpsc.data import calendars, cells, columns, dates, declared, formats
from dpsc.data.cells import Rows
from dpsc.data.columns import OUTCOME, TIME
from dpsc.data.formats import in_file
from dpsc.errors import Parameter, TableError

ROWS_AT_ONCE = 2**20
HEADER = Parameter("periods")


def open_table(path: Path, text: Sequence[str | None]) -> Any:
    """Return a table as an Arrow data set and check its header; nothing else is read.

    The columns ``text`` of a CSV stay as they are written, so that 007 is not 7 and NA is a name; all others hold
    numbers. A type guessed from the first lines may be wrong for later ones.
    """
    if formats.format_name(path) not in ("csv", "tsv"):
        dataset = _open(path, None)
        with in_file(path):
            columns.require_header(dataset.schema.names, text=False)
        return dataset
    with in_file(path):
        names = _header(path)
        columns.require_header(names, text=True)
    schema = pa.schema((name, pa.string() if name in text else pa.float64()) for name in names)
    if path.is_dir():  # names of folders may hold columns too
        found = _open(path, None)
        folders = formats.partitions_of(found)
        schema = pa.schema([*schema, *(field for field in found.schema if field.name in folders)])
    return _open(path, schema)


def _header(path: Path) -> list[str]:
    """Return the names in the first line of a CSV, or of the first CSV of a folder."""
    first = formats.files_in(path)[0] if path.is_dir() else path
    opened: Any = gzip.open if first.suffix == ".gz" else open
    try:
        with formats.readable(first), opened(first, "rt", encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file, delimiter="\t" if formats.format_name(first) == "tsv" else ","), None)
    except (EOFError, csv.Error):
        names = None
    if not names:
        raise formats.refusal(first, "the file is empty." if first.stat().st_size == 0 else "there is no header line.")
    return names


def _open(path: Path, schema: Any) -> Any:
    kind = formats.arrow_format(path)
    try:
        with formats.readable(path):
            partitioning = "hive" if path.is_dir() else None
            dataset = ds.dataset(str(path), schema, kind, partitioning=partitioning, exclude_invalid_files=False)
            _ = dataset.schema.names  # raises if they are not text
    except TableError:
        for file in formats.files_in(path) if path.is_dir() else []:  # find the file that cannot be read
            names = _header(file) if formats.is_text(file) else []
            with formats.readable(file, pa.schema((name, pa.string()) for name in names)):
                ds.dataset(str(file), format=kind)
        raise
    return dataset


def rows_of(dataset: Any, names: list[str], size: int = ROWS_AT_ONCE) -> Iterator[Rows]:
    """Read the named columns of a table, file after file, in batches of at most ``size`` rows."""
    for fragment in dataset.get_fragments():
        first = 0
        for batch in formats.batches_of(fragment, dataset.schema, names, size):
            yield Rows(fragment.path, first, batch)
            first += batch.num_rows


def count_rows(fragment: Any) -> int:
    """Return how many rows a file has."""
    with formats.readable(Path(fragment.path)):
        return int(fragment.count_rows())


def require_same_columns(dataset: Any, path: Path, numbers: Sequence[str], labels: Sequence[str]) -> None:
    """Refuse files of a folder that lack a column, or whose units or periods are of different kinds.

    Each file is read with its own types, so that no file changes how another is read; labels must be comparable.
    """
    if not path.is_dir():
        return
    kinds: dict[str, tuple[str, str]] = {}
    for fragment in dataset.get_fragments():
        with formats.readable(Path(fragment.path)):
            own = fragment.physical_schema
        for name in (*labels, *numbers):
            if name not in own.names:
                raise formats.refusal(
                    fragment.path, f"there is no column {name!r}, which other files of the folder have."
                )
        for name in () if formats.is_text(Path(fragment.path)) else labels:
            kind, first = kinds.setdefault(name, (cells.kind_of(own.field(name).type), fragment.path))
            if kind != cells.kind_of(own.field(name).type):
                raise formats.refusal(
                    fragment.path, f"column {name!r} is of another kind than in {Path(first).name}; make them the same."
                )


def require_column(dataset: Any, name: str, parameter: Parameter = HEADER, *, number: bool = False) -> None:
    """Refuse a column that is not there, or whose type does not fit."""
    kind = dataset.schema.field(columns.find(dataset.schema.names, name, parameter)).type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise TableError(f"column {name!r} is not text in UTF-8.")
    if number and not cells.may_hold_numbers(kind):
        raise TableError(f"column {name!r} holds {kind}, not numbers.")
    if not number and not cells.may_hold_labels(kind):
        raise TableError(f"column {name!r} ({{it}}) holds {kind}, which cannot name units or periods.", it=parameter)


def series(path: Path, time: str | None, outcome: str | None, time_format: str | None = None) -> pd.Series[float]:
    """Read a public series from a file with a column of periods and a column of numbers."""
    if path.is_dir():
        raise formats.refusal(path, f"this is a folder; name a file: {formats.KINDS}.")
    with in_file(path):
        names = open_table(path, []).schema.names
        if (time is None or outcome is None) and len(names) != 2:
            raise TableError(
                f"there are {len(names)} columns; say which hold the periods and the numbers: {{time}}, {{outcome}}.",
                time=TIME, outcome=OUTCOME,
            )  # fmt: skip
        time = names[0] if time is None else time
        outcome = next(name for name in names if name != time) if outcome is None else outcome
        dataset = open_table(path, [time])
        require_column(dataset, time, TIME)
        require_column(dataset, outcome, OUTCOME, number=True)
        batches = list(rows_of(dataset, [time, outcome]))
        labels = [label for rows in batches for label in rows.batch.column(0).to_pylist()]
        require_rows(len(labels), path)
        values = [value for rows in batches for value in cells.floats(rows.batch.column(1), outcome, rows)]
        when = calendars.understood(labels, time, lambda row: formats.row_name(row, path), time_format)
        if not when.is_unique:
            twice = dates.period_name(when[when.duplicated()][0])
            raise TableError(f"the period {twice} occurs twice in column {time!r}.")
        return pd.Series(values, index=when, name=outcome, dtype=float)


def typed_periods(text: str, reference: pd.Series[float] | None, time_format: str | None) -> pd.Index[Any]:
    """Return the periods that somebody typed: a range, a list with commas, a file, or the word "reference"."""
    if text == "reference":
        if reference is None:
            raise TableError(
                "{periods} takes the periods of the reference path; give {reference}.",
                periods=Parameter("periods", "'reference'"), reference=Parameter("reference"),
            )  # fmt: skip
        return declared.declared(reference.index)
    path = Path(text)
    if "," in text or ".." in text or len(text) > 255 or not path.exists():
        return declared.declared([part.strip() for part in text.split(",")] if "," in text else text, time_format)
    with in_file(path):
        names = open_table(path, []).schema.names
        labels = [
            label for rows in rows_of(open_table(path, names), names[:1]) for label in rows.batch.column(0).to_pylist()
        ]
        require_rows(len(labels), path)
        when = calendars.understood(labels, names[0], lambda row: formats.row_name(row, path), time_format)
        return declared.declared(when.unique())


def require_rows(count: int, path: Path) -> None:
    """Refuse a table without rows."""
    if not count:
        raise formats.refusal(path, f"there are no rows{' below the header' if formats.is_text(path) else ''}.")
