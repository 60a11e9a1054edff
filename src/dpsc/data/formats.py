"""Kinds of files: which they are, how Arrow opens them, and reading one of them in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from dpsc import tabular
from dpsc.errors import TableError

_ENDINGS = {".csv": "csv", ".txt": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet", ".feather": "feather",
            ".arrow": "feather"}  # fmt: skip
_BUFFER = 2**18  # bytes of a column read at once
_LARGE_GROUP = 8 * 2**20  # cells of a Parquet row group, 64 MB, above which it is decoded in parts


def format_name(path: Path) -> str:
    """Tell the kind of file from its name; in a folder all must be of one kind."""
    if path.is_dir():
        files = files_in(path)
        if not files:
            raise TableError(f"{path} is a folder without files.")
        kinds = {format_name(file): file for file in reversed(files)}
        if len(kinds) > 1:
            one, other = list(kinds.values())[:2]
            raise TableError(
                f"{path} holds files of different kinds, {one.name} and {other.name}; move the others away."
            )
        return next(iter(kinds))
    if not path.exists():
        tabular.read(path)  # which says that it is not there, and what is near
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending not in _ENDINGS:
        raise TableError(f"{path}: cannot tell what kind of table this is from its name; use {tabular.KINDS}.")
    return _ENDINGS[ending]


def files_in(folder: Path) -> list[Path]:
    """Return the files of a folder that are read: those that are not hidden, nor in a hidden folder."""
    inside = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return [f for f in inside if not any(part.startswith((".", "_")) for part in f.relative_to(folder).parts)]


def arrow_format(path: Path) -> Any:
    """Return what Arrow must know to open a file or folder."""
    name = format_name(path)
    if name in ("csv", "tsv"):
        from pyarrow import csv

        parse = csv.ParseOptions(delimiter="\t" if name == "tsv" else ",")
        return ds.CsvFileFormat(parse, convert_options=csv.ConvertOptions(null_values=list(tabular.MISSING)))
    return name


def partitions_of(dataset: Any) -> set[str]:
    """Return what the names of the folders say (region=north)."""
    first = next(iter(dataset.get_fragments()), None)
    return set() if first is None else set(ds.get_partition_keys(first.partition_expression))


def batches_of(fragment: Any, schema: Any, columns: list[str], size: int, *, threads: bool = True) -> Iterator[Any]:
    """Read one file in batches of at most ``size`` rows; without ``threads`` on one core, as a worker should."""
    if not isinstance(fragment, ds.ParquetFileFragment):
        yield from fragment.scanner(
            schema=schema, columns=columns, batch_size=size, batch_readahead=2, use_threads=threads
        ).to_batches()
        return
    # A row group at a time, or less if it is large: a scan would read ahead of what is used, and keep it all.
    import pyarrow.parquet as pq

    kinds = pa.schema([schema.field(name) for name in columns])
    options = {"buffer_size": _BUFFER, "pre_buffer": False, "page_checksum_verification": True}
    with pq.ParquetFile(fragment.path, **options) as file:
        if missing := set(columns).difference(file.schema_arrow.names):
            raise TableError(f"{fragment.path} has no column {min(missing)!r}, which other files of the folder have.")
        for group in fragment.row_groups:
            if group.num_rows * len(columns) <= _LARGE_GROUP:
                tables: Iterable[Any] = [file.read_row_group(group.id, columns=columns, use_threads=threads)]
            else:
                parts = file.iter_batches(size, row_groups=[group.id], columns=columns, use_threads=threads)
                tables = (pa.Table.from_batches([part]) for part in parts)
            for table in tables:
                chosen = table.select(columns)
                yield from (chosen if chosen.schema == kinds else chosen.cast(kinds)).to_batches(max_chunksize=size)


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Say which file cannot be read, without repeating what is in it."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError, KeyError) as problem:
        if isinstance(problem, FileNotFoundError | PermissionError):
            raise TableError(f"{path}: {problem.strerror or 'cannot be opened'}.") from None
        if tabular.is_text(path):
            raise TableError(
                f"{path} cannot be read; does every line have as many fields as the header, and do the columns of "
                "numbers hold numbers alone (no units, no thousands separators)?"
            ) from None
        raise TableError(f"{path} cannot be read; is it whole, and of the kind that its name says?") from None
