"""A file of a table: opened once, when it is first looked at, and from then on read through the same handle."""

from __future__ import annotations

import codecs
import gzip
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from dpsc.errors import TableError
from dpsc.tables import formats
from dpsc.tables.dialect import Reading, names_in
from dpsc.tables.formats import readable
from dpsc.tables.places import Remote
from dpsc.tables.spec import MISSING

_BUFFER = 2**18  # bytes read at once: of a column, or by Python
_LONGEST_HEADER = 2**24
_FIRST_ROWS = 1000
_SAMPLE = 2**20  # bytes from which the number of lines is estimated
_OF_A_CELL, _OF_A_BYTE, _OF_A_PACKED_BYTE = 40, 6, 40  # bytes in memory, at most and while the table is read
_PACKED = 3.0  # bytes for each row
_LINE_ENDS = bytes.maketrans(b"\r", b"\n")
_LARGE_GROUP = 8 * 2**20  # cells of a Parquet row group, 64 MB, above which it is decoded in parts


class TableFile:
    """A file of a table, of any kind but a workbook.

    Attributes
    ----------
    path : Path
    kind : str
        Text (csv, tsv), parquet or feather.
    folders : dict of str
        Columns that are in the names of its folders (region=north), and what they hold.
    """

    def __init__(self, path: Path, folders: Mapping[str, str] | None = None) -> None:
        self.path, self.kind, self.folders = path, formats.kind_of(path), dict(folders or {})
        self.is_text = self.kind in ("csv", "tsv")
        self._handle: Any = None
        self._footer: Any = None
        self._schema: Any = None

    def _opened(self) -> Any:
        if self._handle is None:
            self._handle = self.path.input() if isinstance(self.path, Remote) else pa.OSFile(str(self.path))
        return self._handle

    def close(self) -> None:
        """Close the file; whoever reads on opens it again."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def _packed(self) -> Any:
        """Return the bytes of the file from the first one on, however far others have read."""
        return self._opened().get_stream(0, self._opened().size())

    def stream(self) -> Any:
        """Return the content of a text file for Arrow, unpacked."""
        return pa.CompressedInputStream(self._packed(), "gzip") if self.path.suffix == ".gz" else self._packed()

    def _bytes(self) -> IO[bytes]:
        """Return the content of a text file for Python, unpacked."""
        file: Any = io.BufferedReader(self._packed(), _BUFFER)
        return gzip.GzipFile(fileobj=file) if self.path.suffix == ".gz" else file  # type: ignore[return-value]

    def first_line(self, given: str | None) -> tuple[str, str]:
        """Return the first line of a text file, and its encoding: as given, or as byte-order mark and header show."""
        with readable(self.path, reading=Reading(encoding=given or "utf-8")):
            if given is None and self._bytes().read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                given = "utf-16"
            if given is not None and _has_wide_characters(given):
                text = io.TextIOWrapper(self._bytes(), encoding=given, newline="")
                return text.readline(_LONGEST_HEADER).rstrip("\r\n").removeprefix("\ufeff"), given
            content = re.split(rb"[\r\n]", self._bytes().readline(_LONGEST_HEADER), maxsplit=1)[0]
            try:
                return content.decode("utf-8-sig" if given in (None, "utf-8") else given or ""), given or "utf-8"
            except UnicodeDecodeError:
                if given is not None:
                    raise
            return content.decode("cp1252"), "cp1252"

    def first_rows(self, reading: Reading) -> Iterator[list[str]]:
        """Yield the cells of the first rows of a text file, without its header."""
        with readable(self.path, reading=reading):
            text = io.TextIOWrapper(self._bytes(), encoding=reading.encoding, errors="replace")
            lines = iter(partial(text.readline, _LONGEST_HEADER), "")
            for line in itertools.islice(lines, 1, 1 + _FIRST_ROWS):
                yield names_in(line.rstrip("\r\n"), reading.sep)

    def schema(self, reading: Reading) -> Any:
        """Return the columns as the file itself has them; those of a text file with types guessed from its start."""
        with readable(self.path, reading=reading):
            if self.kind == "parquet":
                self.footer()
                return self._schema
            if self.kind == "feather":
                return self._feather().physical_schema
            schema = formats.csv_batches(self.stream(), reading).schema
            if len(set(schema.names)) < len(schema.names):
                raise pa.ArrowInvalid  # told as any other problem of this file
            return schema

    def footer(self) -> Any:
        """Return what the end of a Parquet file says: columns, rows, sizes."""
        if self._footer is None:
            import pyarrow.parquet as pq

            with readable(self.path), pq.ParquetFile(self._opened()) as file:
                self._footer, self._schema = file.metadata, file.schema_arrow
        return self._footer

    def _feather(self) -> Any:
        return ds.IpcFileFormat().make_fragment(self._opened())

    def count_rows(self) -> int | None:
        """Return how many rows the file has, which a text file does not say."""
        with readable(self.path):
            if self.kind == "feather":
                return int(self._feather().count_rows())
            return int(self.footer().num_rows) if self.kind == "parquet" else None

    def bytes_per_line(self) -> float | None:
        """Estimate how long a line of a text file is; None if it is compressed."""
        if self.path.suffix == ".gz":
            return None
        sample: bytes = self._packed().read(_SAMPLE)
        return len(sample) / max(1, sample.count(b"\n"))

    def batches(
        self,
        schema: Any,
        columns: list[str],
        size: int,
        reading: Reading,
        *,
        threads: bool = True,
        labels: Sequence[str] = (),
        groups: Sequence[int] | None = None,
    ) -> Iterator[Any]:
        """Read the file in batches of at most ``size`` rows; without ``threads``, on one core, as a worker should.

        The columns ``labels`` of a Parquet file stay packed where that is less work: each different label comes once.
        ``groups`` are the row groups to read, if not all.
        """
        own = [name for name in columns if name not in self.folders]
        with readable(self.path, schema, own, reading):
            if self.kind == "parquet":
                batches = self._parquet_batches(own, size, threads, labels, groups)
            elif self.kind == "feather":
                file = self._feather()  # with its own types: those of the first would change how all others are read
                scan = file.scanner(columns=own, batch_size=size, batch_readahead=2, use_threads=threads)
                batches = scan.to_batches()
            else:
                batches = self._text_batches(schema, own, size, reading, threads)
            for batch in batches:
                yield batch if own == columns else self._with_folders(batch, columns)

    def _with_folders(self, batch: Any, columns: list[str]) -> Any:
        """Return rows with the columns that are in the names of folders."""
        arrays = [
            pa.array([self.folders[name]] * batch.num_rows, pa.string()) if name in self.folders else batch.column(name)
            for name in columns
        ]
        return pa.RecordBatch.from_arrays(arrays, columns)

    def _text_batches(
        self, schema: Any, columns: list[str], size: int, reading: Reading, threads: bool
    ) -> Iterator[Any]:
        types = {name: schema.field(name).type for name in columns}
        how: dict[str, Any] = {"column_types": types, "null_values": list(MISSING), "include_columns": columns}
        batches = formats.csv_batches(self.stream(), reading, threads=threads, **how)
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            for first in range(0, batch.num_rows, size):
                yield batch.slice(first, size)
        self._require_one_line_per_row(rows, reading.encoding)

    def _require_one_line_per_row(self, rows: int, encoding: str) -> None:
        """Refuse a quotation mark that is not closed on its line: it swallows the rows up to the next one or the end.

        Lines end where Arrow's rows do: at a line feed, a carriage return, or both.
        """
        if not any(b'"' in part for part in iter(partial(self.stream().read, 2**20), b"")):
            return
        text = self.stream()
        if _has_wide_characters(encoding):
            text = pa.transcoding_input_stream(text, encoding, "utf-8")
        lines, ended = 0, True
        for part in iter(partial(text.read, 2**20), b""):
            ends = np.frombuffer(part.translate(_LINE_ENDS, b" \t\v\f"), np.uint8) == ord("\n")
            lines += int(np.count_nonzero(ends[:-1] < ends[1:])) + int(len(ends) > 0 and ends[0] and not ended)
            ended = bool(ends[-1]) if len(ends) else ended
        lines += not ended
        if lines != rows + 1:
            raise TableError(
                "a quotation mark is not closed on its own line, so that several lines would be read as one; remove "
                "line breaks and single quotation marks from the texts."
            )

    def _parquet_batches(
        self, columns: list[str], size: int, threads: bool, labels: Sequence[str], groups: Sequence[int] | None
    ) -> Iterator[Any]:
        """Read one row group at a time, or part of a large one; a scan would read far ahead and keep all in memory."""
        import pyarrow.parquet as pq

        footer = self.footer()
        if missing := set(columns).difference(self._schema.names):
            raise TableError(f"there is no column {min(missing)!r}, which other files of the folder have.")
        options = {"buffer_size": _BUFFER, "pre_buffer": False, "page_checksum_verification": True}
        packed = [name for name in labels if name in columns and self._is_packed(name)]
        with pq.ParquetFile(self._opened(), metadata=footer, read_dictionary=packed, **options) as file:
            for group in range(footer.num_row_groups) if groups is None else groups:
                if footer.row_group(group).num_rows * len(columns) <= _LARGE_GROUP:
                    tables: Iterable[Any] = [file.read_row_group(group, columns=columns, use_threads=threads)]
                else:
                    parts = file.iter_batches(size, row_groups=[group], columns=columns, use_threads=threads)
                    tables = (pa.Table.from_batches([part]) for part in parts)
                for table in tables:
                    yield from table.select(columns).to_batches(max_chunksize=size)

    def _is_packed(self, name: str) -> bool:
        """Tell whether a Parquet file holds a column of texts as few different ones and which of them each row has."""
        footer = self.footer()
        groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        columns = [group.column(k) for group in groups for k in range(group.num_columns)]
        sizes = [column.total_uncompressed_size for column in columns if column.path_in_schema == name]
        text = pa.types.is_string(self._schema.field(name).type)
        return bool(text and sum(sizes) <= _PACKED * sum(group.num_rows for group in groups))


def _has_wide_characters(encoding: str) -> bool:
    return encoding.startswith(("utf-16", "utf-32"))


def fits_in_memory(files: Sequence[TableFile], *, wide: bool) -> bool:
    """Tell whether a table fits into half of the free memory, going by the sizes of its files and never by a cell.

    These are public, and so is what depends on them: whether a long table may have its rows in any order. Files of
    Parquet say how many rows they have, and how large they are when unpacked.
    """
    size = 0.0
    for file in files:
        if file.kind == "xlsx":
            return True  # read whole in any case
        if file.kind == "sql":
            return False  # to know how large it is, is to read it
        if file.kind == "parquet":
            about = file.footer()
            size += about.num_rows * (about.num_columns if wide else 3) * _OF_A_CELL
            size += sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        else:
            packed = file.kind == "feather" or file.path.suffix == ".gz"
            size += file.path.stat().st_size * (_OF_A_PACKED_BYTE if packed else _OF_A_BYTE)
    return size <= formats.free_memory() / 2
