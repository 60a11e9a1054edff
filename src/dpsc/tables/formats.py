"""Kinds of files: how to recognise them, open them with Arrow, read one in batches, and say why one cannot be read."""

from __future__ import annotations

import codecs
import gzip
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from dpsc.checks import did_you_mean
from dpsc.errors import DpscError, Parameter, TableError
from dpsc.tables.dialect import AS_USUAL, DECIMAL_COMMA, DECIMAL_POINT, ENCODING, Reading, names_in
from dpsc.tables.spec import MISSING

KINDS = "CSV (.csv, .csv.gz), TSV (.tsv), Excel (.xlsx), Parquet (.parquet) or Feather (.feather)"
_ENDINGS = {".csv": "csv", ".txt": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
_ENDINGS |= {".feather": "feather", ".arrow": "feather", ".xlsx": "xlsx", ".xlsm": "xlsx"}
_SHOWN = {"csv": "CSV", "tsv": "TSV", "parquet": "Parquet", "feather": "Feather", "xlsx": "an Excel workbook"}
_BUFFER = 2**18  # bytes of a column read at once
_LONGEST_HEADER = 2**24
_FIRST_ROWS = 1000
_OF_A_CELL, _OF_A_BYTE, _OF_A_PACKED_BYTE = 40, 6, 40  # bytes in memory, at most and while the table is read
_PACKED = 3.0  # bytes for each row
_LARGE_GROUP = 8 * 2**20  # cells of a Parquet row group, 64 MB, above which it is decoded in parts


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
    raise refusal(path, f"something in it cannot be read as donors ({kind}).")


def refusal(path: Path | str, message: str) -> TableError:
    """Return an error about a file."""
    problem = TableError(message)
    problem.file = str(path)
    return problem


def format_name(path: Path) -> str:
    """Return the kind of a file, from its name; all files of a folder must be of one kind."""
    if not path.exists():
        here = [f.name for f in path.parent.iterdir() if not f.name.startswith(".")] if path.parent.is_dir() else []
        raise refusal(path, f"there is no such file.{did_you_mean(path.name, here)}")
    if path.is_dir():
        files = files_in(path)
        if not files:
            raise refusal(path, "this is a folder without files.")
        kinds = {format_name(file): file for file in reversed(files)}
        if len(kinds) > 1:
            one, other = list(kinds.values())[:2]
            raise refusal(
                path, f"the folder holds files of different kinds, {one.name} and {other.name}; keep only one kind."
            )
        return next(iter(kinds))
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending not in _ENDINGS:
        raise refusal(path, f"cannot tell what kind of table this is from its name; use {KINDS}.")
    return _ENDINGS[ending]


def files_in(folder: Path) -> list[Path]:
    """Return the files of a folder that are read: those that are not hidden, nor in a hidden folder."""
    inside = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return [f for f in inside if not any(part.startswith((".", "_")) for part in f.relative_to(folder).parts)]


def is_text(path: Path) -> bool:
    """Tell whether a file is a text file, CSV or TSV."""
    return _ENDINGS.get(Path(path.name.removesuffix(".gz")).suffix.lower()) in ("csv", "tsv")


def is_workbook(path: Path) -> bool:
    """Tell whether a file is an Excel workbook."""
    return _ENDINGS.get(path.suffix.lower()) == "xlsx"


def row_name(position: int, path: Path | str) -> str:
    """Name a row by the number that an editor shows: the header of a CSV is line 1, that of a workbook row 1."""
    if is_workbook(Path(path)):
        return f"row {position + 2}"
    return f"line {position + 2}" if is_text(Path(path)) else f"row {position + 1}"


def first_line(path: Path, given: str | None) -> tuple[str, str]:
    """Return the first line of a text file, and its encoding: as given, or as byte-order mark and header show it."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with readable(path, reading=Reading(encoding=given or "utf-8")), opened(path, "rb") as file:
        if given is None and file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            given = "utf-16"
        file.seek(0)
        if given is not None and _has_wide_characters(given):
            with opened(path, "rt", encoding=given, newline="") as text:
                return text.readline(_LONGEST_HEADER).rstrip("\r\n").removeprefix("\ufeff"), given
        content = re.split(rb"[\r\n]", file.readline(_LONGEST_HEADER), maxsplit=1)[0]
        try:
            return content.decode("utf-8-sig" if given in (None, "utf-8") else given or ""), given or "utf-8"
        except UnicodeDecodeError:
            if given is not None:
                raise
        return content.decode("cp1252"), "cp1252"


def first_rows(path: Path, reading: Reading) -> Iterator[list[str]]:
    """Yield the cells of the first rows of a text file, without its header."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with readable(path, reading=reading), opened(path, "rt", encoding=reading.encoding, errors="replace") as file:
        lines = iter(partial(file.readline, _LONGEST_HEADER), "")
        next(lines, None)
        for line in itertools.islice(lines, _FIRST_ROWS):
            yield names_in(line.rstrip("\r\n"), reading.sep)


def _has_wide_characters(encoding: str) -> bool:
    return encoding.startswith(("utf-16", "utf-32"))


def arrow_format(path: Path, reading: Reading) -> Any:
    """Return the format that Arrow needs to open a file or folder."""
    name = format_name(path)
    return text_format(reading) if name in ("csv", "tsv") else name


def parquet_file(path: Path) -> Any:
    """Open one Parquet file as a data set, which keeps what its footer says: schema, rows, sizes."""
    from pyarrow import fs

    kind, here = ds.ParquetFileFormat(), fs.LocalFileSystem()
    fragment = kind.make_fragment(str(path), here)
    return ds.FileSystemDataset([fragment], fragment.physical_schema, kind, here)


def text_format(reading: Reading) -> Any:
    """Return the format that Arrow needs to open a text file."""
    from pyarrow import csv

    return ds.CsvFileFormat(
        csv.ParseOptions(delimiter=reading.sep),
        convert_options=csv.ConvertOptions(null_values=list(MISSING)),
        read_options=csv.ReadOptions(encoding=reading.encoding),
    )


def partitions_of(dataset: Any) -> set[str]:
    """Return the columns that are in the names of folders (region=north)."""
    first = next(iter(dataset.get_fragments()), None)
    return set() if first is None else set(ds.get_partition_keys(first.partition_expression))


def fits_in_memory(path: Path, *, wide: bool, dataset: Any = None) -> bool:
    """Tell whether a table fits into half of the free memory, going by the sizes of its files and never by a cell.

    These are public, and so is what depends on them: whether a long table may have its rows in any order. Files of
    Parquet say how many rows they have, and how large they are when unpacked; ``dataset`` has them open.
    """
    kind, size = format_name(path), 0.0
    if kind == "xlsx":
        return True  # read whole in any case
    files = files_in(path) if path.is_dir() else [path]
    if kind != "parquet":
        for file in files:
            packed = kind == "feather" or file.suffix == ".gz"
            size += file.stat().st_size * (_OF_A_PACKED_BYTE if packed else _OF_A_BYTE)
        return size <= free_memory() / 2
    dataset = ds.dataset(list(map(str, files)), format="parquet") if dataset is None else dataset
    for fragment in dataset.get_fragments():
        with readable(Path(fragment.path)):
            about = fragment.metadata
        size += about.num_rows * (about.num_columns if wide else 3) * _OF_A_CELL
        size += sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    return size <= free_memory() / 2


def free_memory() -> float:
    """Return how many bytes of memory this machine, or the container that this runs in, has to spare."""
    free = 2.0 * 2**30  # where nothing says: half of a small machine
    with suppress(OSError, KeyError, ValueError):
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = 1024.0 * int(lines["MemAvailable"].split()[0])
    with suppress(OSError, ValueError):  # "max": no limit
        most, used = (int(Path("/sys/fs/cgroup", name).read_text()) for name in ("memory.max", "memory.current"))
        free = min(free, most - used)
    return free


def batches_of(
    fragment: Any,
    schema: Any,
    columns: list[str],
    size: int,
    reading: Reading,
    *,
    threads: bool = True,
    labels: Sequence[str] = (),
) -> Iterator[Any]:
    """Read one file in batches of at most ``size`` rows; without ``threads``, on one core, as a worker should.

    The columns ``labels`` of a Parquet file stay packed where that is less work: each different label comes once.
    """
    path = Path(fragment.path)
    with readable(path, schema, columns, reading):
        if isinstance(fragment, ds.ParquetFileFragment):
            yield from _parquet_batches(fragment, columns, size, threads, labels)
            return
        # Other files keep the types that they have: those of the first would change how all others are read.
        own = schema if is_text(path) else fragment.physical_schema
        rows = 0
        for batch in fragment.scanner(
            schema=own, columns=columns, batch_size=size, batch_readahead=2, use_threads=threads
        ).to_batches():
            rows += batch.num_rows
            yield batch
        if is_text(path):
            _require_one_line_per_row(path, rows, reading.encoding)


def _require_one_line_per_row(path: Path, rows: int, encoding: str) -> None:
    """Refuse a quotation mark that is not closed on its line: it swallows the rows up to the next one or to the end.

    Lines end where Arrow's rows do: at a line feed, a carriage return, or both.
    """
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        if not any(b'"' in part for part in iter(partial(file.read, 2**20), b"")):
            return
    by_bytes = "latin-1"  # every byte is a character, whatever the encoding, and line ends are what they are
    said = encoding if _has_wide_characters(encoding) else by_bytes
    with opened(path, "rt", encoding=said, newline=None) as file:
        lines = sum(bool(line.strip(" \t\n\r\v\f")) for line in file)
    if lines != rows + 1:
        raise TableError(
            "a quotation mark is not closed on its own line, so that several lines would be read as one; remove line "
            "breaks and single quotation marks from the texts."
        )


def _parquet_batches(
    fragment: Any, columns: list[str], size: int, threads: bool, labels: Sequence[str]
) -> Iterator[Any]:
    """Read one row group at a time, or part of a large one; a scan would read far ahead and keep it all in memory."""
    import pyarrow.parquet as pq

    options = {"buffer_size": _BUFFER, "pre_buffer": False, "page_checksum_verification": True}
    packed = [name for name in labels if _is_packed(fragment, name)]
    with pq.ParquetFile(fragment.path, read_dictionary=packed, **options) as file:
        if missing := set(columns).difference(file.schema_arrow.names):
            raise TableError(f"there is no column {min(missing)!r}, which other files of the folder have.")
        for group in fragment.row_groups:
            if group.num_rows * len(columns) <= _LARGE_GROUP:
                tables: Iterable[Any] = [file.read_row_group(group.id, columns=columns, use_threads=threads)]
            else:
                parts = file.iter_batches(size, row_groups=[group.id], columns=columns, use_threads=threads)
                tables = (pa.Table.from_batches([part]) for part in parts)
            for table in tables:
                yield from table.select(columns).to_batches(max_chunksize=size)


def _is_packed(fragment: Any, name: str) -> bool:
    """Tell whether a Parquet file holds a column of texts as few different ones and which of them each row has."""
    groups = [fragment.metadata.row_group(i) for i in range(fragment.metadata.num_row_groups)]
    columns = [group.column(k) for group in groups for k in range(group.num_columns)]
    sizes = [column.total_uncompressed_size for column in columns if column.path_in_schema == name]
    text = pa.types.is_string(fragment.physical_schema.field(name).type)
    return bool(text and sum(sizes) <= _PACKED * sum(group.num_rows for group in groups))


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
        else:
            why = _why_not(path, schema, columns, reading)
        raise why from None


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
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding=encoding) as file:
            for _ in iter(partial(file.read, 2**20), ""):
                pass
    except UnicodeError:
        return False
    except (OSError, EOFError, zlib.error):
        pass
    return True


def _first_mistake(path: Path, schema: Any, columns: Sequence[str], reading: Reading) -> str | TableError:
    """Read a CSV again, slowly, to find the line with too many fields or the cell that is not a number."""
    from pyarrow import csv

    wrong: list[int] = []

    def note(row: Any) -> str:
        wrong.append(row.number)
        return "skip"

    numbers = [name for name in columns if pa.types.is_floating(schema.field(name).type)]
    try:
        reader = csv.open_csv(
            path,
            read_options=csv.ReadOptions(use_threads=False, encoding=reading.encoding),
            parse_options=csv.ParseOptions(delimiter=reading.sep, invalid_row_handler=note),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(schema.names, pa.string()),
                null_values=list(MISSING),
                strings_can_be_null=True,
            ),
        )
        first = 0
        for batch in reader:
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
