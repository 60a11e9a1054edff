"""Long work in a thread of its own, pages that follow it, and unexpected errors, named by their kind alone."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

from shiny import Session, reactive

from dpsc.web.server import render

_EVERY = 0.1  # seconds between two looks at the desk


def followed(session: Session, version: Callable[[], Any]) -> reactive.Value[Any]:
    """Return what the desk's version is; it changes with it, and nothing is sent as long as it does not."""
    seen = reactive.value(version())

    async def follow() -> None:
        last = version()
        while True:
            await asyncio.sleep(_EVERY)
            if version() != last:
                last = version()
                async with reactive.lock():
                    seen.set(last)
                    await reactive.flush()

    following = asyncio.create_task(follow())

    @session.on_ended
    def _() -> None:
        following.cancel()

    return seen


class Stopped(Exception):  # noqa: N818 - no error: somebody wished it
    """Somebody asked to stop, in time."""


class Work:
    """One piece of long work at a time. It goes on without a page, and the program does not end before it.

    Attributes
    ----------
    what : str
        In words; empty if nothing is under way.
    rows : int
        How many were read so far.
    expected : int or None
        How many there are, if that is known.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked, self._final = False, False
        self.what, self.rows = "", 0
        self.expected: int | None = None

    @property
    def can_be_stopped(self) -> bool:
        """Whether asking now would stop it."""
        return bool(self.what) and not self._final and not self._asked

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop, in time, and has not ended yet."""
        return bool(self.what) and self._asked

    @property
    def final(self) -> bool:
        """Whether it is past the point of no return."""
        return bool(self.what) and self._final

    def start(self, what: str, step: Callable[[], None]) -> bool:
        """Begin, unless something is under way; ``step`` runs in a thread and must not raise."""
        with self._lock:
            if self.what:
                return False
            self.what, self.rows, self.expected = what, 0, None
            self._asked, self._final = False, False
            self._thread = threading.Thread(target=self._run, args=(step,), name=what)
            self._thread.start()
        return True

    def stop(self) -> bool:
        """Ask to stop; return False if it is too late."""
        with self._lock:
            self._asked = self._asked or not self._final
            return self._asked

    def on_rows(self, rows: int) -> None:
        """Count rows, and stop if that was asked for."""
        if self._asked:
            raise Stopped
        self.rows += rows

    def last_look(self) -> None:
        """Stop if that was asked for; from here on nothing can stop it."""
        with self._lock:
            if self._asked:
                raise Stopped
            self._final = True

    def wait(self, seconds: float | None = None) -> None:
        """Wait until nothing is under way."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _run(self, step: Callable[[], None]) -> None:
        try:
            step()
        finally:
            with self._lock:
                self.what = ""


def said(step: Callable[[], Any]) -> str:
    """Run a step; return what to say if it fails, else nothing."""
    try:
        step()
    except Exception as problem:
        if os.environ.get("DPSC_TRACEBACK"):
            raise
        return f"An unexpected error ({type(problem).__name__}). Its message is not shown; DPSC_TRACEBACK=1 shows it."
    return ""


def shown(panel: Callable[[], str]) -> str:
    """Return a part of the page, or what to show in its place."""
    parts: list[str] = []
    trouble = said(lambda: parts.append(panel()))
    return render("unexpected.html", said=trouble) if trouble else parts[0]
