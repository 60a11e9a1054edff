"""What somebody pastes from a spreadsheet or a text, as a table that the library reads like any other file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from dpsc.errors import TableError

_NUMBER = re.compile(r"[-+−(]?[\d.,'’\s]*\d[\d.,'’\s]*(e[-+]?\d+)?[%)]?", re.IGNORECASE)
LARGEST = 10**6  # characters


def as_table(text: str, periods: Sequence[str]) -> str:
    r"""Return pasted text as a table with a header and semicolons, so that each number shows what its marks are.

    A column of numbers gets the periods of the release, from the first on; an empty cell in it is a missing number. A
    row, or two rows, as many spreadsheets have them, are turned round.

    Examples
    --------
    >>> print(as_table("1,5\n2,5", ["2020", "2021", "2022"]).strip())
    period;value
    2020;1,5
    2021;2,5
    >>> as_table("cost\n1\n\n3\n", ["2020", "2021", "2022"]).split()
    ['period;cost', '2020;1', '2021;', '2022;3']
    >>> print(as_table("2020\t2021\t2022\n1\t2\t3", ["2020", "2021", "2022"]).splitlines()[1])
    2020;1
    """
    if len(text) > LARGEST:
        raise TableError(f"this is more than {LARGEST:,} characters; drop it as a file.")
    rows = _rows(text)
    if len(rows) <= 2 and len(rows[0]) > 2 and len({len(row) for row in rows}) == 1:
        rows = [list(column) for column in zip(*rows, strict=True)]
    width = max(map(len, rows))
    if width == 1:
        return _text(_with_periods(rows, periods))
    rows = [row + [""] * (width - len(row)) for row in rows]
    if width == 2 and _is_number(rows[0][1]):
        rows.insert(0, ["period", "value"])
    return _text(rows)


def decimal_mark(table: str) -> str | None:
    r"""Return the mark that some number shows to be before decimals: all of a public column are written alike.

    Examples
    --------
    >>> decimal_mark("1,234\n1,5"), decimal_mark("1.234\n0.5"), decimal_mark("1,234\n2,345")
    (',', '.', None)
    """
    cells = [cell for cell in re.split(r"[\n;]", table) if _is_number(cell.strip())]
    shown = {mark for mark in ",." for cell in cells if _before_decimals(cell.strip(), mark)}
    return shown.pop() if len(shown) == 1 else None


def begins_with_a_number(text: str) -> bool:
    r"""Tell whether pasted text has no header: its first line ends with a number.

    Examples
    --------
    >>> begins_with_a_number("2020\t1,5\n2021\t2"), begins_with_a_number("year\twage\n2020\t1")
    (True, False)
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    return _is_number(re.split(r"[\t;]", first)[-1].strip())


def _before_decimals(cell: str, mark: str) -> bool:
    """Tell whether a mark cannot be between groups of three digits."""
    whole, found, rest = cell.rpartition(mark)
    return bool(found) and (not re.match(r"\d{3}(?!\d)", rest) or whole.strip("+-−(") in ("0", ""))


def _rows(text: str) -> list[list[str]]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    written = [k for k, line in enumerate(lines) if line.strip()]
    if not written:
        raise TableError("there is nothing in it yet.")
    first, lines = lines[written[0]], lines[: written[-1] + 1]
    has_names = re.search(r"[^\W\d_]", first) is not None
    sep = next((sep for sep in "\t;" if sep in text), "," if has_names and "," in first else "\t")
    rows = [[cell.strip() for cell in row] or [""] for row in csv.reader(lines, delimiter=sep)]
    return rows if max(map(len, rows)) == 1 else [row for row in rows if any(row)] or [[""]]


def _with_periods(rows: list[list[str]], periods: Sequence[str]) -> list[list[str]]:
    """Return a column of numbers beside the periods that they stand for."""
    cells = [row[0] for row in rows]
    if not cells[0]:
        raise TableError("the first cell is empty; begin with a number or a header, or paste the periods too.")
    name = "value" if _is_number(cells[0]) else cells.pop(0)
    if len(cells) > len(periods):
        raise TableError(
            f"these are {len(cells)} numbers without periods, and the release has {len(periods)} periods, {periods[0]} "
            f"to {periods[-1]}; paste the periods too, in a column before the numbers."
        )
    return [["period", name], *([period, cell] for period, cell in zip(periods, cells, strict=False))]


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None


def _text(rows: list[list[str]]) -> str:
    written = io.StringIO()
    csv.writer(written, delimiter=";", lineterminator="\n").writerows(rows)
    return written.getvalue()
