"""Donors in files, read block by block with Arrow: CSV, Parquet, Feather, one file or a partitioned folder of them.

Wide: one row a donor, one column a period. Long: one row per donor and period, sorted by donor, so that a donor's rows
follow each other; a donor split between two blocks or files is put together again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from dpsc import tabular
from dpsc.data import periods as periods_of
from dpsc.data.blocks import CheckedBlock, Completion, Identities
from dpsc.data.cells import known_units, long_rows, require_order, starts_of, written_columns
from dpsc.data.formats import arrow_format, batches_of, files_in, format_name, naming_file, partitions_of
from dpsc.data.frames import Missing
from dpsc.errors import TableError
from dpsc.gram.rows import written
from dpsc.tabular import Layout
from dpsc.types import Write

_SAMPLE = 2**20


@dataclass(frozen=True)
class Files:
    """A table in one file or in a folder of files, and how it holds a panel."""

    path: Path
    layout: Layout
    missing: Missing = "error"
    bounds: tuple[float, float] | None = None
    exclude: tuple[str, ...] = ()

    @cached_property
    def dataset(self) -> Any:
        """The files as an Arrow data set; nothing is read but the schema."""
        dataset = self._open(None)
        if format_name(self.path) not in ("csv", "tsv"):
            return dataset
        tabular.require_header(dataset.schema.names, self.path)
        return self._open(self._types(dataset))

    def _open(self, schema: Any) -> Any:
        partitioning = "hive" if self.path.is_dir() else None
        kind = arrow_format(self.path)
        try:
            with naming_file(self.path):
                dataset = ds.dataset(
                    str(self.path), schema, kind, partitioning=partitioning, exclude_invalid_files=False
                )
                _ = dataset.schema.names  # which must be text
        except TableError:
            for file in files_in(self.path) if self.path.is_dir() else []:  # which one is it?
                with naming_file(file):
                    ds.dataset(str(file), format=kind)
            raise
        return dataset

    def _types(self, dataset: Any) -> Any:
        """Say what the columns of a CSV hold, which would be guessed from its first lines: numbers, except in two."""
        text, folders = {self.layout.unit, self.layout.time}, partitions_of(dataset)
        return pa.schema(
            field if field.name in folders else (field.name, pa.string() if field.name in text else pa.float64())
            for field in dataset.schema
        )

    @cached_property
    def columns(self) -> list[str]:
        """The columns to read: the periods of a wide table, or unit, time and outcome of a long one."""
        names = self.dataset.schema.names
        partitions = partitions_of(self.dataset)
        if inside := partitions & {self.layout.unit, self.layout.time, self.layout.outcome}:
            raise TableError(
                f"{self.path}: {min(map(str, inside))!r} is in the names of its folders; write it into the files, as a "
                "column."
            )
        if not self.layout.wide:
            chosen = [self.layout.unit, str(self.layout.time), str(self.layout.outcome)]
            self._require(chosen[0], "--unit")
            self._require(chosen[1], "--time")
            self._require(chosen[2], "--outcome", number=True)
            return chosen
        self._require(self.layout.unit, "--unit")
        saved = {name for name in self._saved_index() if name.startswith("__index_level_")}  # row numbers of a frame
        chosen = [name for name in names if name != self.layout.unit and name not in partitions | saved]
        for name in chosen:
            if not any(character.isdigit() for character in name):
                raise TableError(
                    f"{self.path}: the column {name!r} does not look like a period. --wide takes every column but "
                    "--unit for one; drop the others, or give a long table with --time and --outcome."
                )
            self._require(name, "a period", number=True)
        if not chosen:
            raise TableError(f"{self.path} has no columns of periods besides {self.layout.unit!r} (--unit).")
        return chosen

    def _saved_index(self) -> list[str]:
        """Return the columns that were the index of a pandas frame."""
        index = (self.dataset.schema.pandas_metadata or {}).get("index_columns", [])
        return [name for name in index if isinstance(name, str)]

    @cached_property
    def labels(self) -> list[Any]:
        """The periods as they are written, in the order of the file; a long table's are read once, they are public."""
        if self.layout.wide:
            return list(self.columns)
        _ = self.columns  # checked first
        seen: dict[Any, None] = {}
        for path, batch in self._batches([str(self.layout.time)], 2**20):
            with naming_file(Path(path)):
                seen.update(dict.fromkeys(pc.unique(batch.column(0)).to_pylist()))
        if not seen:
            raise TableError(f"{self.path} has no rows.")
        if None in seen or "" in seen:
            raise TableError(f"{self.path} has rows without a period in column {self.layout.time!r} (--time).")
        return list(seen)

    @cached_property
    def _ordered(self) -> tuple[pd.Index[Any], np.ndarray[Any, Any]]:
        name = "its header" if self.layout.wide else str(self.layout.time)
        parsed = tabular.periods(
            pd.Series(self.labels, dtype=object).infer_objects(), name, self.path, self.layout.time_format
        )
        with tabular.naming(self.path):
            index = periods_of.as_index(list(parsed), str(self.layout.time or "time"))
            if not index.is_unique:
                raise TableError("two labels stand for the same period.")
            order = periods_of.in_order(index)
            return periods_of.plain(index[order]), np.asarray(order)

    @property
    def times(self) -> pd.Index[Any]:
        """The periods, in order."""
        return self._ordered[0]

    @property
    def outcome(self) -> str:
        """What the numbers are called."""
        return self.layout.name

    def rows_expected(self) -> int | None:
        """Return how many donors to expect, for a progress bar: known for Parquet and Feather, a guess for CSV."""
        rows = self._table_rows()
        return rows if rows is None or self.layout.wide else max(1, rows // max(1, len(self.labels)))

    def _table_rows(self) -> int | None:
        if format_name(self.path) in ("parquet", "feather"):
            return sum(self._rows_of(fragment) for fragment in self.fragments())
        files = [Path(name) for name in self.dataset.files]
        if any(file.suffix == ".gz" for file in files):
            return None
        with files[0].open("rb") as file:
            sample = file.read(_SAMPLE)
        lines = max(1, sample.count(b"\n"))
        return int(sum(file.stat().st_size for file in files) / (len(sample) / lines))

    def _rows_of(self, fragment: Any) -> int:
        with naming_file(Path(fragment.path)):
            return int(fragment.count_rows())

    def blocks(self, size: int, identities: Identities) -> Iterator[CheckedBlock]:
        """Yield blocks of at most ``size`` donors, periods in the order of time."""
        for path, units, write in self._wide_blocks(size) if self.layout.wide else self._long_blocks(size):
            yield CheckedBlock(path, units, write, identities, self.completion)

    def require_plausible(self, n: int) -> None:
        """Refuse units taken for periods, which would be published: more labels that are text than donors."""
        text = pd.api.types.is_object_dtype(self.times) or pd.api.types.is_string_dtype(self.times)
        if not self.layout.wide and text and len(self.times) > n:
            raise TableError(
                f"{self.path}: column {self.layout.time!r} (--time) has more different labels than column "
                f"{self.layout.unit!r} (--unit) has units; are the two swapped?"
            )

    def fragments(self) -> list[Any]:
        """Return the files, each as a data set of its own."""
        return list(self.dataset.get_fragments())

    def _batches(self, columns: list[str], size: int) -> Iterator[tuple[str, Any]]:
        for fragment in self.fragments():
            with naming_file(Path(fragment.path)):
                yield from (
                    (fragment.path, batch) for batch in batches_of(fragment, self.dataset.schema, columns, size)
                )

    def _wide_blocks(self, size: int) -> Iterator[tuple[str, Any, Write]]:
        for path, batch in self._batches([self.layout.unit, *self.in_time_order()], size):
            yield path, known_units(batch.column(0), path), written_columns(batch)

    def _long_blocks(self, size: int) -> Iterator[tuple[str, Any, Write]]:
        """Put the rows of each donor together; what the last donor of a batch has so far waits for the next batch."""
        index = self.times
        labels = pa.array(self.labels_in_time_order(), self.label_type)
        T, waiting, previous, last = len(index), None, None, ""
        for path, batch in self._batches(self.columns, size * max(1, len(index))):
            table = pa.Table.from_batches([batch])
            waiting = table if waiting is None else pa.concat_tables([waiting, table], promote_options="permissive")
            units = known_units(waiting.column(0).combine_chunks(), path)
            starts = starts_of(units)
            if len(starts) > 1:
                end = int(starts[-1])
                rows = long_rows(waiting.slice(0, end), starts[:-1], labels, T, path)
                previous = require_order(units, starts[:-1], previous, path, self.layout.unit)
                donors = units.take(pa.array(starts[:-1]))
                for i in range(0, len(rows), size):
                    yield path, donors.slice(i, size), written(rows[i : i + size])
                waiting = waiting.slice(end)
            last = path
        if waiting is not None and waiting.num_rows:
            units = known_units(waiting.column(0).combine_chunks(), last)
            starts = starts_of(units)
            require_order(units, starts, previous, last, self.layout.unit)
            yield last, units.take(pa.array(starts)), written(long_rows(waiting, starts, labels, T, last))

    @property
    def completion(self) -> Completion:
        """How missing cells and bounds are dealt with."""
        return Completion(self.times, self.missing, self.bounds)

    @property
    def label_type(self) -> Any:
        """The Arrow type of the periods as they are written."""
        kind = pa.string() if self.layout.wide else self.dataset.schema.field(str(self.layout.time)).type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def labels_in_time_order(self) -> list[Any]:
        """Return the periods as they are written, in the order of time."""
        return [self.labels[i] for i in self._ordered[1]]

    def in_time_order(self) -> list[str]:
        """Return the columns of a wide table's periods in the order of time."""
        return [self.columns[i] for i in self._ordered[1]]

    def _require(self, name: str, option: str, number: bool = False) -> None:
        schema = self.dataset.schema
        kind = schema.field(tabular.position(schema.names, name, option, self.path)).type
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise TableError(f"{self.path}: column {name!r} ({option}) is not text in UTF-8.")
        if number and not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            raise TableError(
                f"{self.path}: column {name!r} ({option}) holds {kind}, not numbers; it must hold numbers alone (no "
                "units, no thousands separators). Leave a missing value empty."
            )
