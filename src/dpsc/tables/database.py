"""Rows of a database as a table file: columns, and batches of Arrow. PostgreSQL, SQLite and DuckDB.

One connection, read-only, in one transaction: whoever reads twice reads the same rows. What a driver says is never
shown, because it quotes cells and passwords.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa

from dpsc.errors import DpscError, ParameterError, TableError
from dpsc.tables import formats
from dpsc.tables.dialect import Reading
from dpsc.tables.places import Selection, quoted
from dpsc.tables.table_file import TableFile

_AT_ONCE = 2**16  # rows of SQLite that become a batch
_BATCH = 2**22  # bytes of a batch
_WHY = {  # the first characters of SQLSTATE codes
    "28": "the database did not accept the user or the password.",
    "3D": "there is no such database on the server.",
    "42501": "this user of the database may not read it; ask for the right to select.",
    "42P01": "there is no such table in the database; tables of other schemas are written schema.table.",
    "42703": "the database does not know a column that the query names.",
    "42": "the database does not understand the query.",
    "57014": "the database stopped the query: it took too long.",
    "08": "the connection to the database could not be made, or ended.",
    "57": "the database was shut down while it was read.",
}


class DatabaseFile(TableFile):
    """The rows of a table or of a query, read like a file."""

    def __init__(self, path: Selection) -> None:
        super().__init__(path)
        self._rows = path

    @cached_property
    def _connection(self) -> _Arrow | _SQLite:
        with told(self.path):
            return _ENGINES[self._rows.engine](self._rows.address)

    def close(self) -> None:
        """Leave the connection open: another one would not see the same rows."""

    def schema(self, reading: Reading) -> Any:
        """Return the columns; what is neither a number nor a label for Arrow is read as text."""
        return pa.schema((name, pa.string() if _is_foreign(kind) else kind) for name, kind in self._found)

    @cached_property
    def _found(self) -> list[tuple[str, Any]]:
        with told(self.path):
            return [(field.name, field.type) for field in self._connection.schema(self._rows.source)]

    def count_rows(self) -> int | None:
        """Return None: to count them is to read them."""
        return None

    def batches(self, schema: Any, columns: list[str], size: int, reading: Reading, **_: Any) -> Iterator[Any]:
        """Read the rows in batches of at most ``size``."""
        foreign = {name for name, kind in self._found if _is_foreign(kind)}
        asked = (f"cast({quoted(name)} as text)" if name in foreign else quoted(name) for name in columns)
        read = 0
        with told(self.path, lambda: read):
            batches = self._connection.batches(f"select {', '.join(asked)} from {self._rows.source}", size)
            for rows in _joined(batches, size):
                yield from rows.rename_columns(columns).to_batches(max_chunksize=size)
                read += rows.num_rows


def _joined(batches: Iterator[Any], size: int) -> Iterator[Any]:
    """Put small batches together, as DuckDB's of 2,048 rows, because each takes time of its own."""
    waiting, rows, size_in_bytes = [], 0, 0
    for batch in batches:
        waiting.append(batch)
        rows, size_in_bytes = rows + batch.num_rows, size_in_bytes + batch.nbytes
        if rows >= size or size_in_bytes >= _BATCH:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, rows, size_in_bytes = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting).combine_chunks()


def _is_foreign(kind: Any) -> bool:
    """Tell whether a column is read as text: decimals too, which Python would round one by one."""
    return isinstance(kind, pa.BaseExtensionType) or pa.types.is_nested(kind) or pa.types.is_decimal(kind)


@contextmanager
def told(path: Path, read: Callable[[], int] = lambda: 0) -> Iterator[None]:
    """Say in our words what went wrong in a database, and how far it was read; a driver quotes cells and passwords."""
    try:
        yield
    except (DpscError, GeneratorExit, KeyboardInterrupt):
        raise
    except Exception as problem:
        code = str(getattr(problem, "sqlstate", None) or "")
        known = (why for start, why in _WHY.items() if code.startswith(start))
        why = next(known, "it cannot be read, or not to the end; check address, user, rights, query and server.")
        raise formats.refusal(path, f"{why} {read():,} rows were read before." if read() else why) from None


class _Arrow:
    """Through a driver of Arrow's (ADBC), which streams; what is left is given up when the iterator is closed."""

    def __init__(self, opened: Any, *first: str, **options: str) -> None:
        self._open, self._options = opened, options
        weakref.finalize(self, opened.close)
        for statement in first:
            with opened.cursor() as cursor:
                cursor.execute(statement)

    def schema(self, source: str) -> Any:
        with self._open.cursor() as cursor:
            cursor.execute(f"select * from {source} limit 0")
            with cursor.fetch_record_batch() as rows:
                return rows.schema

    def batches(self, statement: str, size: int) -> Iterator[Any]:
        with self._open.cursor() as cursor:
            cursor.adbc_statement.set_options(**self._options)
            cursor.execute(statement)
            with cursor.fetch_record_batch() as rows:
                yield from rows


def _postgres(address: str) -> _Arrow:
    """Connect to a server: its rows of one moment, in the same order whenever they are read, and unable to write."""
    _require_driver("adbc_driver_postgresql", "PostgreSQL")
    from adbc_driver_postgresql import dbapi

    first = (
        "set transaction isolation level repeatable read, read only",
        "set local synchronize_seqscans = off",  # else it begins where another's reading is
        "set local max_parallel_workers_per_gather = 0",
    )
    return _Arrow(dbapi.connect(address), *first, **{"adbc.postgresql.batch_size_hint_bytes": str(_BATCH)})


def _duckdb(address: str) -> _Arrow:
    """Open a file of DuckDB, to be read."""
    _require_driver("duckdb", "DuckDB")
    import adbc_driver_duckdb
    from adbc_driver_manager import dbapi

    options = {"path": _file_of(address), "access_mode": "READ_ONLY", "threads": "2"}
    driver = adbc_driver_duckdb.driver_path()
    return _Arrow(dbapi.connect(driver=driver, entrypoint="duckdb_adbc_init", db_kwargs=options))


def _require_driver(package: str, database: str) -> None:
    if not all(map(find_spec, (package, "adbc_driver_manager"))):
        raise ParameterError(f"{database} needs a driver: pip install 'dpsc[sql]'.")


class _SQLite:
    """A file of SQLite, opened to be read. Its columns have no types: a cell is a number, a text or nothing."""

    def __init__(self, address: str) -> None:
        import sqlite3

        self._open = sqlite3.connect(
            f"file:{quote(_file_of(address))}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        weakref.finalize(self, self._open.close)
        self._open.execute("begin")

    def schema(self, source: str) -> Any:
        rows = self._open.execute(f"select * from {source} limit 0")
        return pa.schema([(name, pa.string()) for name, *_ in rows.description])

    def batches(self, statement: str, size: int) -> Iterator[Any]:
        rows = self._open.execute(statement)
        names = [name for name, *_ in rows.description]
        try:
            while some := rows.fetchmany(min(size, _AT_ONCE)):
                columns = (pa.array(map(_text_of, column), pa.large_string()) for column in zip(*some, strict=True))
                yield pa.RecordBatch.from_arrays(list(columns), names)
        finally:
            rows.close()


def _text_of(cell: object) -> str | None:
    """Return a cell of SQLite as text, by itself, exactly; numbers without decimals are written without them."""
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2.0**63 else repr(cell)
    return None if cell is None else cell.decode() if isinstance(cell, bytes) else str(cell)


def _file_of(address: str) -> str:
    """Return the file of an address: sqlite:///here.db, sqlite:////there/here.db."""
    path = unquote(urlsplit(address).path[1:])
    if not Path(path).is_file():
        raise TableError(f"there is no file {path}; an absolute path has four slashes, as in sqlite:////home/a.db.")
    return path


_ENGINES: dict[str, Callable[..., _Arrow | _SQLite]] = {"postgres": _postgres, "duckdb": _duckdb, "sqlite": _SQLite}
