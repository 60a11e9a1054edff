"""Where a ledger is: a SQLite file or a PostgreSQL database, shown without its password."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from dpsc.errors import LedgerError


@dataclass(frozen=True, repr=False)
class Address:
    """A checked address. ``path`` is the file of a SQLite ledger; ``url`` may hold a password and is never printed."""

    url: URL
    path: Path | None

    def __repr__(self) -> str:
        return f"<Address {self}>"

    def __str__(self) -> str:
        if self.path is not None:
            return str(self.path)
        # A query may hold a password too (?password=...), so it is not shown at all.
        return self.url.set(query={}).render_as_string(hide_password=True)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that nothing else may be written over: a SQLite ledger and what SQLite keeps beside it."""
        if self.path is None:
            return ()
        return (self.path, *(Path(f"{self.path}{end}") for end in ("-journal", "-wal", "-shm")))

    def without_secrets(self, text: str) -> str:
        """Return a driver's message without any password."""
        options = [v for value in self.url.query.values() for v in ((value,) if isinstance(value, str) else value)]
        for secret in filter(None, [self.url.password and str(self.url.password), *options]):
            text = text.replace(secret, "***")
        return text


def read(address: str | os.PathLike[str]) -> Address:
    """Read a URL, or the path of a SQLite file.

    Examples
    --------
    >>> print(read("postgresql://ann:secret@db.example.org/privacy"))
    postgresql+psycopg://ann:***@db.example.org/privacy
    """
    text = os.fspath(address)
    if not text:
        raise LedgerError(
            "the ledger's address is empty; give a file, or a URL such as postgresql+psycopg://host/name."
        )
    if "://" not in text:
        return _file(Path(text))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise LedgerError(
            "the ledger's URL cannot be read; write sqlite:///ledger.sqlite or postgresql+psycopg://user@host/database "
            "(special characters in a password as %XX)."
        ) from None
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise LedgerError("a ledger in memory would forget what was spent; name a file: sqlite:///ledger.sqlite.")
        return _file(Path(url.database))
    if url.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        return Address(url.set(drivername="postgresql+psycopg"), None)
    raise LedgerError(f"a ledger is a SQLite file or a PostgreSQL database (psycopg 3), not {url.drivername}.")


def _file(path: Path) -> Address:
    path = Path(os.path.abspath(path.expanduser()))
    return Address(URL.create("sqlite", database=str(path)), path)
