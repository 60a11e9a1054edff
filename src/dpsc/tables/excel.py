"""A sheet of an Excel workbook: looked at in little memory, then read once, every cell by itself.

A workbook is a zip file of XML, and libraries believe what it says. A small one can hold a row with the number two
thousand million, and they fill in all rows before it; or a cell of 400 MB. Nothing of the content is kept or quoted.
"""

from __future__ import annotations

import posixpath
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import numpy as np
import pyarrow as pa

from dpsc.errors import DpscError, Parameter, TableError
from dpsc.tables import arrow, formats
from dpsc.tables.arrow import Rows
from dpsc.tables.dialect import Dialect
from dpsc.tables.numbers import Numbers

MOST_ROWS, MOST_COLUMNS, LONGEST_CELL = 1_048_576, 16_384, 32_767  # what Excel itself can hold
MOST_CELLS = 5_000_000  # with the empty ones before the last of each row
MOST_STRINGS = MOST_ROWS
LARGEST = 2**28  # bytes, unpacked
_MOST_PARTS, _MOST_SHEETS = 2000, 500
_LARGEST_DIRECTORY = 2**20  # bytes
_MOST_ELSE = 2_000_000  # elements that are no cells nor in one
_MOST_OTHERS = 250_000  # elements that take libraries long to understand: all but those of rows, texts and pivot tables
_QUICK = (
    {"row", "c", "v", "f", "si", "is", "t", "r", "rPr", "rPh", "rFont", "charset", "family", "b", "i", "strike", "u"}
    | {"color", "sz", "vertAlign", "scheme"}
    | {"n", "s", "x", "d", "e", "m"}
)
_MOST_IN_CELL = 10  # elements, on average
_MOST_ATTRIBUTES, _LONGEST_PASSWORD = 100, 255
_LONGEST_TAG, _MOST_TEXT_BETWEEN = 2**20, 2**25
_CHUNK = 2**16  # bytes
_LONG_TAG = "a tag in it is longer than any of Excel's"
# What openpyxl raises, besides an error of its own, on what is no workbook.
_UNREADABLE = (BadZipFile, LookupError, ValueError, TypeError, AttributeError, SyntaxError, RuntimeError)
_COLUMN = re.compile(r"[A-Za-z]{1,3}")


def require_small(file: IO[bytes]) -> None:
    """Refuse a workbook that is larger, or says that it is larger, than a table in Excel can be."""
    with ZipFile(_Directory(file)) as archive:
        parts = archive.infolist()
        if len(parts) > _MOST_PARTS:
            raise beyond(f"it has more than {_MOST_PARTS:,} parts")
        if sum(part.file_size for part in parts) > LARGEST:
            raise beyond(f"it is larger than {LARGEST // 2**20} MB when unpacked")
        found = _Found()
        for part in parts:
            if part.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or part.flag_bits & 1:
                raise BadZipFile  # no workbook has others, and they may need memory without limit
            with archive.open(part) as content:  # never gives more than the size that was added up
                found.look_at(part.filename, content)
        found.require_sheets_once()


class _Directory:
    """A zip file whose list of parts is not read if it is too long."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if size > _LARGEST_DIRECTORY:
            raise beyond(f"it has more than {_MOST_PARTS:,} parts")
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class _Found:
    """What is counted over all parts of a workbook; every cell passes here, so no sentence is made before it is due."""

    def __init__(self) -> None:
        self._cells = self._strings = self._rows = self._elements = self._others = self._between = 0
        self._column = self._width = self._length = 0
        self._in_cell = self._in_row = False
        self._sheets: Counter[str] = Counter()
        self._targets: Counter[tuple[str, str]] = Counter()
        self._part = ""
        self._xml: set[str] = set()

    def look_at(self, name: str, content: IO[bytes]) -> None:
        """Look at a part; one that is no XML, such as a picture, is no sheet."""
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = self._text, _no_doctype
        self._part, self._rows, self._in_cell, self._in_row, fed = name, 0, False, False, 0
        try:
            while chunk := content.read(_CHUNK):
                parser.Parse(chunk, False)
                fed += len(chunk)
                if fed - parser.CurrentByteIndex > _LONGEST_TAG:
                    raise beyond(_LONG_TAG)
            parser.Parse(b"", True)
        except expat.ExpatError:  # whoever reads it as XML stops here, too
            pass
        if fed:
            self._xml.add(posixpath.normpath(posixpath.join("/", name)))

    def require_sheets_once(self) -> None:
        """Refuse a sheet that stands for many, because each is read."""
        again = {target for (_, target), count in self._targets.items() if count > 1}
        if any(count > 1 for name, count in self._sheets.items() if name) or again & self._xml:
            raise beyond("a sheet of it is named twice")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        if ":" in name:
            name = name.rpartition(":")[2]
        if name == "c":
            self._cell(attributes.get("r", ""))
        elif name == "row":
            self._row(attributes.get("r"))
        elif name == "si":
            self._strings += 1
            self._in_cell, self._length = True, 0
            if self._strings > MOST_STRINGS:
                raise beyond(f"it holds more than {MOST_STRINGS:,} different texts")
        elif name == "sheet":
            self._sheets[next((text for key, text in attributes.items() if key.endswith(":id")), "")] += 1
            if self._sheets.total() > _MOST_SHEETS:
                raise beyond(f"it has more than {_MOST_SHEETS} sheets")
        elif name == "Relationship" and attributes.get("TargetMode") != "External":
            folder = posixpath.dirname(posixpath.dirname(self._part))
            place = posixpath.normpath(posixpath.join("/", folder, attributes.get("Target", "")))
            self._targets[self._part, place] += 1
        if len(attributes) > _MOST_ATTRIBUTES or len(attributes.get("password", "")) > _LONGEST_PASSWORD:
            raise beyond(_LONG_TAG)
        if name not in _QUICK:
            self._others += 1
        most = _MOST_ELSE + _MOST_IN_CELL * (self._cells + self._strings)
        if self._others > _MOST_OTHERS or self._elements > most:
            raise beyond(f"it holds more than {_MOST_OTHERS:,} things that are no cells")

    def _end(self, name: str) -> None:
        if name in ("c", "si") or name.endswith((":c", ":si")):
            self._in_cell = False
        elif name == "row" or name.endswith(":row"):
            self._in_row = False

    def _text(self, text: str) -> None:
        if self._in_cell:
            self._length += len(text)  # of a formula too, and of how Japanese is read
            if self._length > 2 * LONGEST_CELL:
                raise beyond(f"a cell holds more than {LONGEST_CELL:,} characters")
        else:
            self._between += len(text)
            if self._between > _MOST_TEXT_BETWEEN:
                raise beyond("it holds too much text outside of cells")

    def _row(self, number: str | None) -> None:
        if self._in_row:
            raise beyond("one of its rows is within another")
        self._in_row, self._rows, self._column, self._width = True, self._rows + 1, 0, 0
        if number is not None:
            try:
                self._rows = int(float(number)) if len(number) < 20 else MOST_ROWS + 1  # some programs write 1.0
            except (ValueError, OverflowError):
                self._rows = MOST_ROWS + 1
        if not 0 <= self._rows <= MOST_ROWS:
            raise beyond(f"a row has a number above {MOST_ROWS:,}, the last one of Excel")

    def _cell(self, place: str) -> None:
        """Count a cell, and those that are filled in before it."""
        letters = _COLUMN.match(place)
        column = _number(letters[0]) if letters else self._column + 1
        self._cells += max(1, column - self._column)
        self._column = max(self._column, column)
        self._width += self._in_row  # a list of formulas has cells without rows
        self._in_cell, self._length = True, 0
        if column > MOST_COLUMNS or self._width > MOST_COLUMNS:
            raise beyond(f"a row has more than {MOST_COLUMNS:,} columns, the most that Excel has")
        if self._cells > MOST_CELLS:
            raise beyond(f"it holds more than {MOST_CELLS:,} cells, with the empty ones between")


@cache
def _number(letters: str) -> int:
    """Return the number of a column: A is 1, XFD the last one of Excel."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def _no_doctype(*_: Any) -> None:
    raise beyond("it declares a document type, as no program that writes workbooks does")


def beyond(problem: str) -> TableError:
    """Return the refusal of a workbook."""
    return TableError(f"this workbook cannot be read: {problem}. Save the table as CSV.")


@dataclass(frozen=True, eq=False)
class Worksheet:
    """A sheet with a header in its first row.

    Attributes
    ----------
    path : Path
    names : list of str
    cells : list of tuples
        The rows below the header, as Excel has them: numbers, texts, dates, None.
    """

    path: Path
    names: list[str]
    cells: list[tuple[Any, ...]]

    def rows(self, schema: Any, names: Sequence[str], size: int, numbers: Numbers) -> Iterator[Rows]:
        """Return the named columns in batches, those that are no text as float64."""
        for first in range(0, len(self.cells), size):
            part = self.cells[first : first + size]
            columns = [self._column(schema.field(name), part, first, numbers) for name in names]
            yield Rows(str(self.path), first, pa.RecordBatch.from_arrays(columns, list(names)), numbers)

    def _column(self, field: Any, part: list[tuple[Any, ...]], first: int, numbers: Numbers) -> Any:
        place = self.names.index(field.name)
        written: list[Any] = [row[place] if place < len(row) else None for row in part]
        if pa.types.is_string(field.type):
            return pa.array([label(cell) for cell in written], pa.string())
        # By their digits: float() refuses a whole number of 400 digits, and in a CSV it is infinite.
        values = np.array([float(str(cell)) if _is_number(cell) else np.nan for cell in written])
        texts = [None if _is_number(cell) else label(cell) for cell in written]  # numbers that are written as text
        if any(text is not None for text in texts):
            read = arrow.floats(pa.array(texts, pa.string()), field.name, Rows(str(self.path), first, None, numbers))
            values = np.where([text is None for text in texts], values, read)
        return pa.array(values)


def open_sheet(path: Path, dialect: Dialect) -> Worksheet:
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
            with path.open("rb") as file:
                require_small(file)
                file.seek(0)
                book = load_workbook(file, read_only=True, data_only=True)
                rows = _rows(book, dialect)
        except DpscError:
            raise
        except (InvalidFileException, *_UNREADABLE):
            raise EOFError from None  # which is told without quoting the file
    names = [label(cell) or "" for cell in rows[0]] if rows else []
    while names and not names[-1]:
        names.pop()
    if not names:
        raise formats.refusal(path, "the first row of the sheet is empty; it should hold the names of the columns.")
    return Worksheet(path, names, rows[1:])


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
        raise TableError(f"there are {len(known)} sheets, {listed}; say which: {Parameter('sheet', 'NAME')}.")
    if chosen not in known:
        raise TableError(f"there is no sheet {chosen!r} ({Parameter('sheet')}); there are {listed}.")
    known[chosen].reset_dimensions()  # some programs write wrong ones
    rows, characters = [], 0
    for row in known[chosen].iter_rows(values_only=True):
        rows.append(row)
        characters += sum(len(cell) for cell in row if isinstance(cell, str))
        if characters > LARGEST:  # texts that many cells share are written once
            raise beyond(f"its cells hold more than {LARGEST:,} characters together")
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
