from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpsc import Ledger
from tests.ledger.servers import Server, a_server

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    yield from a_server()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a new ledger: a SQLite file, then a PostgreSQL database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'book.sqlite'}"
    running: Server = request.getfixturevalue("server")
    return running.url(f"ledger{next(_numbers)}")


@pytest.fixture
def ledger(url: str) -> Ledger:
    return Ledger(url, create=True)


@pytest.fixture
def tamper(url: str) -> Callable[[str], None]:
    """Change the database behind the ledger's back."""
    from sqlalchemy import create_engine, text

    def run(statement: str) -> None:
        engine = create_engine(url)
        try:
            with engine.begin() as connection:
                connection.execute(text(statement))
        finally:
            engine.dispose()

    return run
