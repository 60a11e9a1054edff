"""Where a table is: a file or folder on this machine, in an object store, or the rows of a database. Reads no row.

What is elsewhere is named like a path, so that all code that reads files reads it too.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path, PosixPath
from types import SimpleNamespace
from typing import IO, Any
from urllib.parse import SplitResult, unquote, urlsplit

from dpsc.checks import LONGEST_TEXT
from dpsc.errors import Parameter, ParameterError, without_passwords

DATABASES = ("postgresql", "postgres", "sqlite", "duckdb")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_AS = "\n) as dpsc_rows"  # on a line of its own, as a query may end with a comment
_TABLE, _QUERY = Parameter("table"), Parameter("query")


class Remote(PosixPath):
    """A file or a folder of an object store, by its address. Credentials are those of the environment."""

    def __str__(self) -> str:
        scheme, address, rest = super().__str__().partition(":/")
        return f"{scheme}://{rest}" if address else scheme

    def __fspath__(self) -> str:
        return str(self)

    @property
    def store(self) -> tuple[Any, str]:
        """The file system of Arrow that holds it, and its name there."""
        filesystem, start = _store(str(Path(*self.parts[:2])))
        return filesystem, "/".join([start.rstrip("/"), *self.parts[2:]])

    def _info(self) -> Any:
        filesystem, name = self.store
        return filesystem.get_file_info(name)

    def exists(self, **_: Any) -> bool:
        """Tell whether there is anything of this name."""
        from pyarrow import fs

        return bool(self._info().type != fs.FileType.NotFound)

    def is_dir(self, **_: Any) -> bool:
        """Tell whether it is a folder."""
        from pyarrow import fs

        return bool(self._info().type == fs.FileType.Directory)

    def is_file(self, **_: Any) -> bool:
        """Tell whether it is a file."""
        return self.exists() and not self.is_dir()

    def stat(self, **_: Any) -> Any:
        """Return its size; of a remote file no more is known."""
        return SimpleNamespace(st_size=self._info().size or 0)

    def absolute(self) -> Remote:
        """Return it: an address is absolute."""
        return self

    def input(self) -> Any:
        """Open it, to be read at any place."""
        filesystem, name = self.store
        return filesystem.open_input_file(name)

    def open(self, *_: Any, **__: Any) -> IO[Any]:  # type: ignore[override]
        """Open it for Python, to read its bytes."""
        file: IO[Any] = self.input()
        return file

    def files(self) -> list[Path]:
        """Return all files of the folder and of those in it, in the order of their names."""
        from pyarrow import fs

        filesystem, name = self.store
        found = sorted(filesystem.get_file_info(fs.FileSelector(name, recursive=True)), key=lambda info: info.path)
        inside = (info.path.lstrip("/").removeprefix(name.lstrip("/")) for info in found if info.is_file)
        return [self / file.lstrip("/") for file in inside]


@cache
def _store(start: str) -> tuple[Any, str]:
    """Return the file system of an address that ends with the bucket, and the bucket's name in it."""
    import pyarrow as pa
    from pyarrow import fs

    scheme, _, rest = start.partition(":/")
    address = f"{scheme}://{rest}"
    try:
        found, name = fs.FileSystem.from_uri(address)
        return found, name
    except pa.ArrowInvalid:
        pass
    try:
        import fsspec

        return fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem(scheme))), rest
    except (ImportError, ValueError):
        raise ParameterError(
            f"cannot read from {scheme}://; what Arrow knows (s3://, gs://) can be read, and what fsspec knows if it "
            "and the package for that store are installed."
        ) from None


class Selection(PosixPath):
    """The rows of a table of a database, or of a query: what comes after "from" in a statement.

    The address may hold a password and is never shown.
    """

    address: str
    source: str
    _shown: str

    @classmethod
    def of(cls, address: str, table: str | None, query: str | None) -> Selection:
        """Return the rows of a table or of a query."""
        if (table is None) == (query is None):
            raise ParameterError(f"say which rows of the database: {_TABLE} or {_QUERY}, one of them.")
        parts = _parts_of(address)
        where = f"{parts.scheme}://{parts.hostname or ''}{unquote(parts.path)}"
        if query is not None:
            source, rows = f"({query.strip().rstrip(';')}{_AS}", "a query"
        else:
            source, rows = ".".join(map(quoted, (table or "").split("."))), f"table {table}"
        selection = cls(table if table is not None else "query")
        selection.address, selection.source, selection._shown = address, source, f"{rows} of {where}"[:LONGEST_TEXT]
        return selection

    @property
    def engine(self) -> str:
        """Which database it is."""
        return self.address.partition(":")[0].replace("postgresql", "postgres")

    def __str__(self) -> str:
        return self._shown

    def __fspath__(self) -> str:
        return self._shown

    @property
    def suffix(self) -> str:
        """None, whatever the table is called."""
        return ""

    def typed(self) -> list[str]:
        """Return what is typed for it in a command, but for a password."""
        name, source = ("--query", self.source[1 : -len(_AS)]) if self.source.endswith(_AS) else ("--table", self.name)
        return [without_passwords(self.address), name, without_passwords(source)]

    def exists(self, **_: Any) -> bool:
        """Say yes: the database will say if not."""
        return True

    def is_dir(self, **_: Any) -> bool:
        """Say no."""
        return False

    def absolute(self) -> Selection:
        """Return it: an address is absolute."""
        return self


def _parts_of(address: str) -> SplitResult:
    """Return the parts of an address, or refuse one that a password tears apart, without quoting it."""
    try:
        parts = urlsplit(address)
    except ValueError:
        parts = SplitResult("", "", "@", "", "")
    if "@" in parts.path and parts.scheme not in ("sqlite", "duckdb"):  # a file may be called so
        raise ParameterError("the address of the database cannot be read; write special characters in it as %XX.")
    return parts


def quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def place_of(where: str | os.PathLike[str], table: str | None = None, query: str | None = None) -> Path:
    """Return where a table is, from a path or an address.

    Examples
    --------
    >>> print(place_of("s3://bucket/visits"), place_of("postgresql://me:secret@host/clinic", table="visits"))
    s3://bucket/visits table visits of postgresql://host/clinic
    """
    if isinstance(where, Remote | Selection):
        return where
    text = os.fspath(where)
    scheme = found[1].lower() if (found := _ADDRESS.match(text)) else None
    if scheme in DATABASES:
        return Selection.of(text, table, query)
    if table is not None or query is not None:
        raise ParameterError(
            f"{_TABLE if query is None else _QUERY} is for a database: {', '.join(f'{name}://' for name in DATABASES)}."
        )
    if scheme is None:
        return Path(text)
    if without_passwords(text) != text:
        raise ParameterError("leave the password out of the address; credentials are those of the environment.")
    return Remote(text)
