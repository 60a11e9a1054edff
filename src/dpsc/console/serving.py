"""Starts a console: a port of 127.0.0.1, a token, a private folder for what is uploaded, and no log of any content."""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from dpsc.console.ground import ADDRESS, Guarded
from dpsc.console.quiet import quiet
from dpsc.console.uploads import Capped
from dpsc.errors import DpscError
from dpsc.folders import private_folder

PREFIX = "dpsc-console-"


def serve(
    program: Callable[[Path], ASGIApp],
    *,
    port: int | None,
    browser: bool,
    say: Callable[[str], None] = print,
    at_end: Callable[[], None] = lambda: None,
) -> None:
    """Run a program until it is stopped.

    Parameters
    ----------
    program : callable
        Makes the application, given a private folder.
    port : int, optional
        A free one if left out.
    browser : bool
        Whether to open the page.
    say : callable
        Prints a line.
    at_end : callable
        Finishes what must not be left half done, when the page is closed and before the folder is removed.
    """
    os.environ["SHINY_OTEL_COLLECT"] = "none"  # no telemetry, whatever is installed beside us
    with _bound(port) as listening, private_folder(PREFIX) as folder, _uploads_in(folder):
        used, token = listening.getsockname()[1], secrets.token_urlsafe(32)
        address = f"http://{ADDRESS}:{used}/?token={token}"
        config = uvicorn.Config(
            Guarded(Capped(program(folder)), used, token),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            ws_max_size=2**26,
        )
        say(f"Open {address}")
        say("Only this machine can open it, and only with this address. Stop it with Ctrl-C.")
        if browser:
            _open(address, folder)
        with quiet():
            try:
                uvicorn.Server(config).run(sockets=[listening])
            except KeyboardInterrupt:  # the way to stop it
                pass
            finally:
                at_end()


@contextmanager
def _uploads_in(folder: Path) -> Iterator[None]:
    """Let what Shiny uploads go to a folder, which is gone at the end."""
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = None


def _bound(port: int | None) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((ADDRESS, port or 0))
        listening.listen()  # who opens the address at once waits until the server answers
    except (OSError, OverflowError) as problem:
        listening.close()
        why = getattr(problem, "strerror", None) or problem
        raise DpscError(f"port {port} cannot be used: {why}. Choose another with --port, or leave it out.") from None
    return listening


def _open(address: str, folder: Path) -> None:
    """Open the page through a file that only this user can read: others see the command lines of browsers."""
    page = folder / "open.html"
    page.touch(mode=0o600)
    page.write_text(f'<!doctype html><title>dpsc</title><meta http-equiv="refresh" content="0;url={address}">')
    webbrowser.open(page.as_uri())
