"""A console in a process of its own, as its user starts it, a real browser, and donors for the custodian's."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from dpsc.web.custodian.simulations import Simulations
from tests.conftest import CHROMIUM

expect.set_options(timeout=20_000)  # a busy machine is no error
UNITS = ["North", "South", "East", "West"]
PERIODS = [f"{2021 + k // 12}-{k % 12 + 1:02d}" for k in range(24)]


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
def started(scratch: Path, *program: str, folder: Path | None = None) -> Iterator[Console]:
    command = [sys.executable, "-m", "dpsc", "console", *(program or ("analyst",)), "--no-browser"]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    log = (scratch / "log").open("a")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, cwd=folder
    ) as process:
        assert process.stdout is not None
        try:
            yield Console(process.stdout.readline().split()[-1], process, scratch)
        finally:
            process.terminate()
            process.wait(timeout=60)
            log.close()


@pytest.fixture(scope="session")
def analysts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Console]]:
    """Return the analyst's console; another is started only if a test has ended the one before."""
    with ExitStack() as stack:
        running: list[Console] = []

        def console() -> Console:
            if not running or running[-1].process.poll() is not None:
                running.append(stack.enter_context(started(tmp_path_factory.mktemp("console"))))
            return running[-1]

        yield console


@pytest.fixture(scope="module")
def console(analysts: Callable[[], Console]) -> Console:
    return analysts()


@pytest.fixture(scope="module")  # not longer: its event loop is in the way of others
def browser() -> Iterator[Browser]:
    assert CHROMIUM is not None, "DPSC_NEED_BROWSER=1, and no Chromium was found: apt-get install chromium"
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--disable-gpu"])  # there is none to use
        yield made
        made.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with opened(browser) as made:
        yield made


@contextmanager
def opened(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1200, "height": 900}, reduced_motion="reduce")
    made.set_default_timeout(20_000)
    yield made
    made.close()


@contextmanager
def watched(context: BrowserContext, console: Console) -> Iterator[Page]:
    """Open the page; whatever it asks of another server, and whatever its policy refuses, fails the test."""
    made, wrong = context.new_page(), []

    def seen(request: Any) -> None:
        if not request.url.startswith((console.home + "/", "data:", "blob:")):
            wrong.append(request.url)

    made.on("request", seen)
    made.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.route(lambda url: not url.startswith(console.home + "/"), lambda route: route.abort())
    made.goto(console.address)
    yield made
    assert wrong == []


@pytest.fixture(scope="session")
def donors_text() -> str:
    """A spreadsheet of 400 patients over 24 months, with semicolons and decimal commas."""
    rng = np.random.default_rng(11)
    paths = 100 + 4 * rng.normal(size=(400, 2)) @ np.cumsum(rng.normal(size=(2, 24)), axis=1)
    paths += rng.normal(size=paths.shape)
    rows = [
        f"P{i:03d};{period};{paths[i, k]:.2f}".replace(".", ",") for i in range(400) for k, period in enumerate(PERIODS)
    ]
    return "\n".join(["patient;month;cost", *rows]) + "\n"


@pytest.fixture(scope="session")
def visits_text() -> str:
    """Records of 3,000 patients in four hospitals over 12 months, some of them in several."""
    rng = np.random.default_rng(12)
    rows = [
        f"P{rng.integers(3000)},{UNITS[rng.integers(4)]},2021-{rng.integers(12) + 1:02d},{rng.integers(300)}"
        for _ in range(10_000)
    ]
    return "\n".join(["patient,hospital,month,cost", *rows]) + "\n"


@contextmanager
def held(ledger: Path, how: str = "EXCLUSIVE") -> Iterator[None]:
    """Hold a ledger as another program might, so that whoever wants it must wait."""
    connection = sqlite3.connect(ledger, isolation_level=None)
    connection.execute(f"BEGIN {how}")
    try:
        yield
    finally:
        connection.rollback()
        connection.close()


@pytest.fixture(autouse=True)
def few_panels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Effects are simulated on few panels, and only for tests that wait: a thread left behind slows down the others."""
    for where in ("dpsc.analyst.plan.default_runs", "dpsc.web.custodian.simulations.default_runs"):
        monkeypatch.setattr(where, lambda T: 7)
    if "simulated" not in request.fixturenames:
        monkeypatch.setattr(Simulations, "start", lambda self, asked: None)


@pytest.fixture
def simulated() -> None:
    """Effects are simulated."""
