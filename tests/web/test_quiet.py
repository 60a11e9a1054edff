"""Nothing that somebody uploaded reaches a terminal or a log file, whoever prints it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest
from starlette.types import Message, Receive, Scope, Send

from dpsc.web import desk, guard, server

EVERYWHERE = """
import logging, os, subprocess, sys, threading, traceback, warnings
from dpsc.web.server import quiet
with quiet() as say:
    print("SECRET"), print("SECRET", file=sys.stderr), sys.__stderr__.write("SECRET"), sys.__stdout__.write("SECRET")
    os.write(1, b"SECRET"), os.write(2, b"SECRET")
    subprocess.run(["echo", "SECRET"])
    warnings.warn("SECRET")
    try:
        raise ValueError("SECRET")
    except ValueError:
        traceback.print_exc()
        logging.getLogger("uvicorn.error").exception("SECRET")
        logging.getLogger("asyncio").error("SECRET")
    thread = threading.Thread(target=lambda: int("SECRET"))
    thread.start(), thread.join()
    for stream in (sys.__stdout__, sys.__stderr__):
        stream.flush()
    say("our own line")
print("afterwards")
"""


@pytest.mark.parametrize("shown", [False, True])
def test_whoever_prints_nothing_is_quoted(shown: bool) -> None:
    environment = {**os.environ, **({"DPSC_TRACEBACK": "1"} if shown else {})}
    done = subprocess.run(
        [sys.executable, "-c", EVERYWHERE], capture_output=True, text=True, check=True, env=environment
    )
    assert ("SECRET" in done.stdout + done.stderr) is shown
    assert "our own line" in done.stderr
    assert done.stdout.endswith("afterwards\n")
    if not shown:
        assert done.stderr.splitlines() == [
            server.HIDDEN,
            "dpsc console: ValueError",
            "dpsc console: server error",
            "our own line",
        ]


def sent(pieces: list[bytes], announced: int | None) -> tuple[list[int], int]:
    """Send a request to an application with a limit of 1000 bytes; return its status, and how much came through."""
    through, statuses, waiting = 0, [], list(pieces)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal through
        while (message := await receive())["type"] == "http.request":
            through += len(message["body"])
            if not message["more_body"]:
                await send({"type": "http.response.start", "status": 200, "headers": []})
                return

    async def receive() -> Message:
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    headers = [] if announced is None else [(b"content-length", str(announced).encode())]
    asyncio.run(guard.Capped(app, largest=1000)({"type": "http", "headers": headers}, receive, send))
    return statuses, through


def test_what_is_too_large_is_refused_whatever_its_headers_say() -> None:
    assert sent([b"x" * 1000], 1000) == ([200], 1000)
    assert sent([b"x" * 1001], 1001) == ([413], 0)
    assert sent([b"x" * 600, b"x" * 600], None) == ([], 600)  # in pieces, without a length
    assert sent([b"x" * 600, b"x" * 600], 10) == ([], 600)


def test_the_page_names_the_kind_of_an_unexpected_error_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its message may quote a cell: int('SECRET') does."""
    monkeypatch.delenv("DPSC_TRACEBACK", raising=False)
    for said in (desk.trouble_of(lambda: int("SECRET")), server.shown(lambda: str(int("SECRET")))):
        assert "ValueError" in said
        assert "SECRET" not in said
    assert desk.trouble_of(lambda: int("1")) == ""
    assert server.shown(lambda: "a part of the page") == "a part of the page"
