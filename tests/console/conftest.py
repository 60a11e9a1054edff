"""A console in a process of its own, as its user starts it, and a real browser."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest


@dataclass(frozen=True)
class Console:
    """A running console: its address with the token, and its process."""

    address: str
    process: subprocess.Popen[str]
    scratch: Path

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    @property
    def home(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return self.address.rpartition("=")[2]


@contextmanager
def started(scratch: Path) -> Iterator[Console]:
    command = [sys.executable, "-m", "dpsc", "console", "analyst", "--no-browser"]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    log = (scratch / "log").open("w")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield Console(process.stdout.readline().split()[-1], process, scratch)
        finally:
            process.terminate()
            process.wait(timeout=10)
            log.close()


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with started(tmp_path_factory.mktemp("console")) as running:
        yield running
