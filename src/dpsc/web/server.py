"""Starts a console on 127.0.0.1 with a token, and connects its pages with the desk. It prints nothing but our lines.

Libraries print tracebacks and warnings, and these may quote what somebody uploaded. So stdout and stderr lead nowhere,
for Python and for libraries in C; what is said in their place names no content. ``DPSC_TRACEBACK=1`` lets all through.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import re
import secrets
import socket
import sys
import tempfile
import warnings
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

import uvicorn
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from shiny import App, Inputs, Outputs, Session, reactive, ui
from shiny import render as outputs
from starlette.types import ASGIApp

from dpsc import about
from dpsc.answers import words
from dpsc.errors import DpscError
from dpsc.files import private_folder
from dpsc.web.desk import Desk, File, trouble_of
from dpsc.web.guard import ADDRESS, Capped, Guarded

_INLINE_SCRIPT = re.compile(r"<script>.*?</script>", re.DOTALL)  # Shiny has one, for spinners; none is allowed to run
_WWW = Path(__file__).parent / "www"
_LONGEST_WHOLE = 24  # characters; places of files are longer, and must be broken on a phone
_EVERY = 0.1  # seconds between two looks at the desk
Say = Callable[[str], None]
HIDDEN = "dpsc console: an error was not shown here, because it might quote a donor; DPSC_TRACEBACK=1 shows it."


@contextmanager
def quiet() -> Iterator[Say]:
    """Close stdout and stderr, and yield what prints a line on stderr all the same."""
    if os.environ.get("DPSC_TRACEBACK"):
        yield lambda line: print(line, file=sys.stderr, flush=True)
        return
    with _kept(1), _kept(2) as real, warnings.catch_warnings():
        warnings.simplefilter("ignore")

        def say(line: str) -> None:
            with suppress(OSError):  # the terminal may be gone
                os.write(real, f"{line}\n".encode(errors="replace"))

        closed = _Closed(say)
        handler = _KindsAlone(say)
        root = logging.getLogger()
        root.addHandler(handler)
        try:
            with redirect_stdout(closed), redirect_stderr(closed):
                yield say
        finally:
            root.removeHandler(handler)


class _Closed(io.TextIOBase):
    """A stream that keeps nothing; the first time that something is written, it says so."""

    def __init__(self, say: Say) -> None:
        self._say, self._said = say, False

    def writable(self) -> bool:
        """Return True: writing is no error."""
        return True

    def write(self, text: str) -> int:
        """Drop the text."""
        if not self._said and text.strip():
            self._said = True
            self._say(HIDDEN)
        return len(text)


class _KindsAlone(logging.Handler):
    """Says of an error that a library logs only of which kind it is."""

    def __init__(self, say: Say) -> None:
        super().__init__(logging.ERROR)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Say the kind."""
        kind = record.exc_info[0] if record.exc_info and record.exc_info[0] else None
        self._say(f"dpsc console: {kind.__name__ if kind else 'server error'}")


@contextmanager
def _kept(descriptor: int) -> Iterator[int]:
    """Let a descriptor lead nowhere, and yield another that leads where it did."""
    kept = os.dup(descriptor)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
    try:
        yield kept
    finally:
        os.dup2(kept, descriptor)
        os.close(kept)


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


def application(page: str, serve: Callable[[Inputs, Outputs, Session], None]) -> App:
    """Return the application that shows a page; ``serve`` connects each that is opened."""
    app = App(ui.page_html(page), serve, static_assets={"/console": _WWW})
    app.sanitize_errors = True
    assert not callable(app.ui)
    app.ui["html"] = _INLINE_SCRIPT.sub("", app.ui["html"])
    return app


class Page:
    """An open page: what is done on it takes steps at the desk, and its parts show what lies there.

    Parameters
    ----------
    desk : Desk
    input, output, session
        Of Shiny.
    """

    def __init__(self, desk: Desk, input: Inputs, output: Outputs, session: Session) -> None:
        self._desk, self._input, self._output = desk, input, output
        self.changes = _followed(session, desk)

    def when(self, step: Callable[..., None], *names: str, ignore_init: bool = True) -> None:
        """Take a step with what fields hold, whenever one of them changes."""
        fields = [self._input[name] for name in names]

        @reactive.effect
        @reactive.event(*fields, ignore_init=ignore_init)
        async def _() -> None:
            given = [field() for field in fields]
            said = await asyncio.to_thread(trouble_of, lambda: step(*given))  # the server answers while a file is read
            if said:
                ui.notification_show(said, type="error", duration=None)
            await _put(self.changes, self._desk.version)

    def pressed(self, step: Callable[[], None], name: str) -> None:
        """Take a step whenever a button is pressed."""
        self.when(lambda _: step(), name)

    def dropped(self, step: Callable[[File], None], name: str) -> None:
        """Take a step with a file whenever one is dropped."""

        def take(value: Any) -> None:
            if value:
                step(File(Path(value[0]["datapath"]), str(value[0]["name"])))

        self.when(take, name)

    def show(self, name: str, panel: Callable[[], str]) -> None:
        """Show a part of the page, and what is unexpected in its place."""

        @self._output(id=name)
        @outputs.ui
        def _() -> ui.HTML:
            self.changes()
            return ui.HTML(shown(panel))

    def offer(self, name: str, file: str | Callable[[], str], content: Callable[[], bytes]) -> None:
        """Offer what ``content`` makes, under the name of a file, on the link with the id ``name``."""

        @self._output(id=name)
        @outputs.download_button(filename=file)
        def _() -> list[bytes]:
            made: list[bytes] = []
            said = trouble_of(lambda: made.append(content()))
            if said:
                ui.notification_show(said, type="error", duration=None)
                raise _NotMadeError
            return made


class _NotMadeError(Exception):
    """A file could not be made; why was said on the page."""


def shown(panel: Callable[[], str]) -> str:
    """Return a part of the page, or what to show in its place."""
    parts: list[str] = []
    trouble = trouble_of(lambda: parts.append(panel()))
    return render("unexpected.html", said=trouble) if trouble else parts[0]


def _followed(session: Session, desk: Desk) -> reactive.Value[tuple[object, ...]]:
    """Return what the desk's version is; it changes with it, and nothing is sent as long as it does not."""
    seen = reactive.value(desk.version)

    async def follow() -> None:
        last = desk.version
        while True:
            await asyncio.sleep(_EVERY)
            if desk.version != last:
                last = desk.version
                async with reactive.lock():
                    await _put(seen, last)
                    await reactive.flush()

    following = asyncio.create_task(follow())

    @session.on_ended
    def _() -> None:
        following.cancel()

    return seen


async def _put(value: reactive.Value[tuple[object, ...]], new: tuple[object, ...]) -> None:
    """Change a value, and let Shiny say what waits for it before the new parts are sent; else they stay grey."""
    value.set(new)
    await asyncio.sleep(0)  # https://github.com/posit-dev/py-shiny/issues/1381


def render(template: str, **values: object) -> str:
    """Fill a template of ``dpsc/web/templates``."""
    return _environment().get_template(template).render(words=words, story=about.STORY, **values)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    loader = ChoiceLoader([PackageLoader("dpsc.web"), PackageLoader("dpsc.answers")])
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, auto_reload=False)
    made.filters["whole"] = lambda text: made.filters["safe"](_whole(text))
    return made


def _whole(text: str) -> str:
    """Return a text as HTML in which no line ends inside 1e-6 or --option; what is copied stays the same."""
    return re.sub(r"\S*-\S+", _unbroken, escape(text))


def _unbroken(word: re.Match[str]) -> str:
    return f'<span class="whole">{word[0]}</span>' if len(word[0]) <= _LONGEST_WHOLE else word[0]
