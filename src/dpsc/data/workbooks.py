"""A sheet of an Excel workbook: read once, held in memory, every cell by itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa

from dpsc.data import cells, formats, unpacking
from dpsc.data.cells import Rows
from dpsc.data.dialects import Dialect
from dpsc.data.numbers import Numbers
from dpsc.errors import DpscError, Parameter, TableError


@dataclass(frozen=True, eq=False)
class Sheet:
    """A sheet with a header in its first row.

    Attributes
    ----------
    path : Path
    schema : Arrow schema
        Columns of labels are text, all others numbers.
    cells : list of tuples
        The rows below the header, as Excel has them: numbers, texts, dates, None.
    """

    path: Path
    schema: Any
    cells: list[tuple[Any, ...]]

    def get_fragments(self) -> Iterator[Any]:
        """Return no files of a folder: it is one sheet."""
        return iter(())

    def rows(self, names: Sequence[str], size: int, numbers: Numbers) -> Iterator[Rows]:
        """Return the named columns in batches, numbers as float64."""
        for first in range(0, len(self.cells), size):
            part = self.cells[first : first + size]
            columns = [self._column(name, part, first, numbers) for name in names]
            yield Rows(str(self.path), first, pa.RecordBatch.from_arrays(columns, list(names)), numbers)

    def _column(self, name: str, part: list[tuple[Any, ...]], first: int, numbers: Numbers) -> Any:
        place = self.schema.names.index(name)
        written: list[Any] = [row[place] if place < len(row) else None for row in part]
        if pa.types.is_string(self.schema.field(name).type):
            return pa.array([label(cell) for cell in written], pa.string())
        # By their digits: float() refuses a whole number of 400 digits, and in a CSV it is infinite.
        values = np.array([float(str(cell)) if _is_number(cell) else np.nan for cell in written])
        texts = [None if _is_number(cell) else label(cell) for cell in written]  # numbers that are written as text
        if any(text is not None for text in texts):
            read = cells.floats(pa.array(texts, pa.string()), name, Rows(str(self.path), first, None, numbers))
            values = np.where([text is None for text in texts], values, read)
        return pa.array(values)


def open_sheet(path: Path, dialect: Dialect, text: Sequence[str | None]) -> Sheet:
    """Read a sheet: the one that is named, or the only one."""
    if path.is_dir():
        raise formats.refusal(path, "this is a folder of Excel workbooks; give one of them, or save them as CSV.")
    if find_spec("openpyxl") is None:
        raise TableError("reading Excel workbooks needs openpyxl: pip install 'dpsc[xlsx]'.")
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    with formats.readable(path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and the like
        try:
            unpacking.require_small(path)
            with path.open("rb") as file:
                book = load_workbook(file, read_only=True, data_only=True)
                rows = _rows(book, dialect)
        except DpscError:
            raise
        except (
            InvalidFileException, BadZipFile, KeyError, ValueError, TypeError, AttributeError, SyntaxError,
            IndexError, RuntimeError,
        ):  # fmt: skip
            raise EOFError from None  # which is told without quoting the file
    names = [label(cell) or "" for cell in rows[0]] if rows else []
    while names and not names[-1]:
        names.pop()
    if not names:
        raise formats.refusal(path, "the first row of the sheet is empty; it should hold the names of the columns.")
    schema = pa.schema((name, pa.string() if name in text else pa.float64()) for name in names)
    return Sheet(path, schema, rows[1:])


def _rows(book: Any, dialect: Dialect) -> list[tuple[Any, ...]]:
    """Return the rows of a sheet up to the last one that is not empty."""
    known = {sheet.title: sheet for sheet in book.worksheets}
    listed = ", ".join(map(repr, known))
    chosen = dialect.sheet
    if dialect.beside and chosen not in known:
        chosen = None
    if chosen is None and len(known) == 1:
        chosen = next(iter(known))
    if chosen is None:
        raise TableError(f"there are {len(known)} sheets, {listed}; say which: {{it}}.", it=Parameter("sheet", "NAME"))
    if chosen not in known:
        raise TableError(f"there is no sheet {chosen!r} ({{it}}); there are {listed}.", it=Parameter("sheet"))
    known[chosen].reset_dimensions()  # some programs write wrong ones
    rows, characters = [], 0
    for row in known[chosen].iter_rows(values_only=True):
        rows.append(row)
        characters += sum(len(cell) for cell in row if isinstance(cell, str))
        if characters > unpacking.LARGEST:  # texts that many cells share are written once
            raise unpacking.beyond(f"its cells hold more than {unpacking.LARGEST:,} characters together")
    while rows and all(cell is None for cell in rows[-1]):
        rows.pop()
    return rows


def label(cell: Any) -> str | None:
    """Return a cell as text: dates as 2024-01-31, whole numbers without decimals.

    Examples
    --------
    >>> label(datetime(2024, 1, 31)), label(2024.0), label("007"), label(None)
    ('2024-01-31', '2024', '007', None)
    """
    if cell is None:
        return None
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat()
    if isinstance(cell, date):
        return cell.isoformat()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _is_number(cell: Any) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)
