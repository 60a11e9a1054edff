"""Kinds of files: how to recognise them, which ones a folder holds, and why one cannot be read."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsc.checks import did_you_mean
from dpsc.errors import DpscError, Parameter, TableError
from dpsc.tables.dialect import AS_USUAL, DECIMAL_COMMA, DECIMAL_POINT, ENCODING, Reading
from dpsc.tables.places import Remote, Selection
from dpsc.tables.spec import MISSING

KINDS = "CSV (.csv, .csv.gz), TSV (.tsv), Excel (.xlsx), Parquet (.parquet) or Feather (.feather)"
_ENDINGS = {".csv": "csv", ".txt": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
_ENDINGS |= {".feather": "feather", ".arrow": "feather", ".xlsx": "xlsx", ".xlsm": "xlsx"}
_GROUPS, _OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_SHOWN = {"csv": "CSV", "tsv": "TSV", "parquet": "Parquet", "feather": "Feather", "xlsx": "an Excel workbook"}


@contextmanager
def in_file(path: Path | str) -> Iterator[None]:
    """Put the file's name in front of errors about its content."""
    try:
        yield
    except DpscError as problem:
        problem.file = problem.file or str(path)
        raise


@contextmanager
def nothing_quoted(path: Path | str) -> Iterator[None]:
    """Replace what libraries say of odd content by the kind of problem: they quote cells."""
    try:
        yield
    except (pa.ArrowException, ValueError, TypeError, OverflowError, NotImplementedError) as problem:
        kind = type(problem).__name__
    else:
        return
    raise refusal(path, f"something in it cannot be read ({kind}).")


def refusal(path: Path | str, message: str) -> TableError:
    """Return an error about a file."""
    problem = TableError(message)
    problem.file = str(path)
    return problem


def format_name(path: Path) -> str:
    """Return the kind of a file, from its name; all files of a folder must be of one kind."""
    with readable(path):
        there = path.exists()
    if not there and isinstance(path, Remote):
        raise refusal(path, "there is no such file or folder in that store.")
    if not there:
        here = [f.name for f in path.parent.iterdir() if not f.name.startswith(".")] if path.parent.is_dir() else []
        raise refusal(path, f"there is no such file.{did_you_mean(path.name, here)}")
    if path.is_dir():
        files = files_in(path)
        if not files:
            raise refusal(path, "this is a folder without files.")
        kinds = {kind_of(file): file for file in reversed(files)}
        if len(kinds) > 1:
            one, other = list(kinds.values())[:2]
            raise refusal(
                path, f"the folder holds files of different kinds, {one.name} and {other.name}; keep only one kind."
            )
        return next(iter(kinds))
    return kind_of(path)


def kind_of(file: Path) -> str:
    """Return the kind of a file, from its name."""
    if isinstance(file, Selection):
        return "sql"
    ending = Path(file.name.removesuffix(".gz")).suffix.lower()
    if ending not in _ENDINGS:
        raise refusal(file, f"cannot tell what kind of table this is from its name; use {KINDS}.")
    return _ENDINGS[ending]


def files_in(folder: Path) -> list[Path]:
    """Return the files of a folder that are read: those that are not hidden, nor in a hidden folder."""
    from pyarrow import fs

    with readable(folder):  # links to folders are followed
        if isinstance(folder, Remote):
            inside = folder.files()
        else:
            found = fs.LocalFileSystem().get_file_info(fs.FileSelector(str(folder), recursive=True))
            inside = [Path(info.path) for info in sorted(found, key=lambda info: info.path) if info.is_file]
    return [f for f in inside if not any(part.startswith((".", "_")) for part in f.relative_to(folder).parts)]


def is_text(path: Path) -> bool:
    """Tell whether a file is a text file, CSV or TSV."""
    return not isinstance(path, Selection) and _ENDINGS.get(Path(path.name.removesuffix(".gz")).suffix.lower()) in (
        "csv",
        "tsv",
    )


def is_workbook(path: Path) -> bool:
    """Tell whether a file is an Excel workbook."""
    return _ENDINGS.get(path.suffix.lower()) == "xlsx"


def row_name(position: int, path: Path | str) -> str:
    """Name a row by the number that an editor shows: the header of a CSV is line 1, that of a workbook row 1."""
    if is_workbook(Path(path)):
        return f"row {position + 2}"
    return f"line {position + 2}" if is_text(Path(path)) else f"row {position + 1}"


def free_memory() -> float:
    """Return how many bytes of memory this machine, or the container or control group that this runs in, can spare."""
    free = 2.0 * 2**30  # where nothing says: half of a small machine
    with suppress(OSError, KeyError, ValueError):
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = 1024.0 * int(lines["MemAvailable"].split()[0])
    inside = Path()
    with suppress(OSError):
        inside = Path(_OWN_GROUP.read_text().rpartition("::")[2].strip().lstrip("/"))
    for group in (inside, *inside.parents):
        with suppress(OSError, ValueError):  # "max": no limit
            most, used = (int(Path(_GROUPS, group, name).read_text()) for name in ("memory.max", "memory.current"))
            free = min(free, most - used)
    return free


@contextmanager
def readable(
    path: Path, schema: Any = None, columns: Sequence[str] = (), reading: Reading = AS_USUAL
) -> Iterator[None]:
    """Say which file cannot be read, and in a CSV where, without quoting its content."""
    try:
        with in_file(path):
            yield
    except (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeError, KeyError) as problem:
        if isinstance(problem, PermissionError):
            why = refusal(path, "you may not read it; check its permissions.")
        elif isinstance(problem, FileNotFoundError):
            why = refusal(path, "there is no such file.")
        elif isinstance(path, Remote) and isinstance(problem, OSError):
            why = refusal(path, _STORE_SAYS[bool(_REFUSED.search(str(problem)))])
        else:
            why = _why_not(path, schema, columns, reading)
        raise why from None


_REFUSED = re.compile(r"ACCESS_DENIED|HTTP response code 40[13]|Forbidden|Unauthorized|INVALID_ACCESS_KEY|SIGNATURE")
_STORE_SAYS = (
    "the store did not answer, or not to the end; check the address and the network.",
    "the store refused to show it; check the credentials in the environment, and what they may read.",
)


def _why_not(path: Path, schema: Any, columns: Sequence[str], reading: Reading) -> TableError:
    if path.stat().st_size == 0:
        return refusal(path, "the file is empty.")
    where = ""
    if is_text(path) and not _is_written_in(path, reading.encoding):
        return refusal(
            path,
            f"it is not text in {reading.encoding_name}; say in which encoding it is, for example {ENCODING}.",
        )
    if is_text(path) and schema is not None:
        found = _first_mistake(path, schema, columns, reading)
        if isinstance(found, TableError):
            return found
        where = found
    packed = " compressed with gzip" if path.suffix == ".gz" else ""
    kind = _SHOWN[format_name(path)] + packed
    return refusal(path, f"it cannot be read{where}; is it really {kind}, and complete?")


def _is_written_in(path: Path, encoding: str) -> bool:
    try:
        with path.open("rb") as packed:
            content: Any = gzip.GzipFile(fileobj=packed) if path.suffix == ".gz" else packed
            file = io.TextIOWrapper(content, encoding=encoding)
            for _ in iter(partial(file.read, 2**20), ""):
                pass
    except UnicodeError:
        return False
    except (OSError, EOFError, zlib.error):
        pass
    return True


def _first_mistake(path: Path, schema: Any, columns: Sequence[str], reading: Reading) -> str | TableError:
    """Read a CSV again, slowly, to find the line with too many fields or the cell that is not a number."""
    wrong: list[int] = []
    numbers = [name for name in columns if pa.types.is_floating(schema.field(name).type)]
    try:
        with path.open("rb") as packed:
            content = pa.input_stream(packed, compression="gzip" if path.suffix == ".gz" else None)
            texts = dict.fromkeys(schema.names, pa.string())
            how: dict[str, Any] = {"column_types": texts, "null_values": list(MISSING), "strings_can_be_null": True}
            first = 0
            for batch in csv_batches(content, reading, wrong, **how):
                if wrong:
                    return f" near line {wrong[0]}"
                for name in numbers:
                    cell = not_a_number(batch.column(name))
                    if cell is not None:
                        return text_in(name, path, first + cell)
                first += batch.num_rows
    except (pa.ArrowException, OSError, UnicodeError, KeyError):
        pass
    return f" near line {wrong[0]}" if wrong else ""


def csv_batches(
    content: Any, reading: Reading, wrong: list[int] | None = None, *, threads: bool = False, **how: Any
) -> Any:
    """Return Arrow's reader of a text file; ``how`` says how cells are converted.

    Lines with too many or too few fields are refused, or left out and noted in ``wrong``.
    """
    from pyarrow import csv

    def note(row: Any) -> str:
        assert wrong is not None
        wrong.append(row.number)
        return "skip"

    return csv.open_csv(
        content,
        csv.ReadOptions(encoding=reading.encoding, use_threads=threads),
        csv.ParseOptions(delimiter=reading.sep, invalid_row_handler=None if wrong is None else note),
        csv.ConvertOptions(**how),
    )


def not_a_number(column: Any) -> int | None:
    """Return the position of the first cell of a text column that is not a number, if there is one."""
    import pandas as pd

    values = column.to_pandas()
    text = (pd.to_numeric(values, errors="coerce").isna() & values.notna()).to_numpy()
    return int(text.argmax()) if text.any() else None


def text_in(name: str, path: Path | str, row: int | None) -> TableError:
    """Return the error for a cell that is not a number, without quoting the cell."""
    where = "" if row is None else f" in {row_name(row, path)}"
    return refusal(
        path,
        f"column {name!r} holds text{where}; it must hold only numbers, without units. Leave a missing value empty. If "
        "numbers have a decimal comma or marks between thousands, such as 1.234,5 or 1,234.5, say so: "
        f"{DECIMAL_COMMA}, or {Parameter('thousands', 'comma')}.",
    )


def two_readings(name: str, path: Path | str, row: int | None) -> TableError:
    """Return the error for numbers whose marks can be read in two ways, shown on made-up numbers."""
    where = "" if row is None else f" (for example in {row_name(row, path)})"
    return refusal(
        path,
        f"column {name!r} holds numbers that can be read in two ways{where}. A made-up one: 1.234 is one thousand two "
        "hundred thirty-four if decimals follow a comma, and one point two three four if they follow a point; for "
        f"1,234 it is the other way round. Say which it is: {DECIMAL_COMMA} or {DECIMAL_POINT}.",
    )
