"""Files dropped on a page, read in a process that can be ended, and files that a page offers.

The process knows no more than its own program does. It is started with the program, because it takes a second, and
again after it was ended.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from shiny import Outputs, render, ui

from dpsc.errors import DpscError, TableError
from dpsc.web import work


@dataclass(frozen=True)
class File:
    """A file on the desk."""

    path: Path
    name: str


def uploaded(value: Any) -> File | None:
    """Return the file that a field of the page holds; None if it is empty."""
    return File(Path(value[0]["datapath"]), str(value[0]["name"])) if value else None


def offer(output: Outputs, name: str, file: str | Callable[[], str], content: Callable[[], bytes]) -> None:
    """Offer what ``content`` makes, under the name of a file, on the link with the id ``name``."""

    @output(id=name)
    @render.download_button(filename=file)
    def _() -> list[bytes]:
        made: list[bytes] = []
        said = work.said(lambda: made.append(content()))
        if said:
            ui.notification_show(said, type="error", duration=None)
            raise _NotMadeError
        return made


class _NotMadeError(Exception):
    """A file could not be made; why was said on the page."""


PATIENCE = 60.0  # seconds without a sign of progress
_CHILD = "from dpsc.web.page_files import serve; serve()"


def directly(step: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Read in this process."""
    return step(*arguments, **options)


class Reader:
    """Calls functions that read files, one at a time, in a process that can be ended.

    Parameters
    ----------
    patience : float
        Seconds without an answer, or without rows, after which the process is ended.
    memory : int, optional
        Bytes that it may take; half of what the machine has if left out. Where the system knows such limits.
    """

    def __init__(self, patience: float = PATIENCE, memory: int | None = None) -> None:
        self._patience, self._memory = patience, memory
        self._lock = threading.Lock()
        self._start()

    def __call__(
        self, step: Callable[..., Any], *arguments: Any, on_rows: Callable[[int], None] | None = None, **options: Any
    ) -> Any:
        """Return what a function of a module returns, or raise what it raises; ``on_rows`` is called here."""
        with self._lock:
            if self._process.poll() is not None:
                self._start()
            try:
                _send(self._process.stdin, (step, arguments, options, on_rows is not None))
                kind, value = self._answer()
                while kind == "rows" and on_rows is not None:
                    on_rows(value)
                    kind, value = self._answer()
            except OSError:
                self.end()
                raise self._stopped from None
            except BaseException:  # also if somebody wished to stop: it would go on reading
                self.end()
                raise
        if kind == "error":
            raise value
        if kind == "unexpected":
            raise type(value, (Exception,), {})
        return value

    def end(self) -> None:
        """End the process, whatever it does."""
        self._ended()

    def _start(self) -> None:
        # -P: what lies in the folder where the program was started is not imported.
        command = [sys.executable, "-P", "-c", _CHILD, str(_half_of_memory() if self._memory is None else self._memory)]
        errors = None if os.environ.get("DPSC_TRACEBACK") else subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        self._ended = weakref.finalize(self, _end, self._process)  # also when the program ends

    def _answer(self) -> tuple[str, Any]:
        timer = threading.Timer(self._patience, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            assert self._process.stdout is not None
            answer: tuple[str, Any] = pickle.load(self._process.stdout)
        except (EOFError, ValueError, pickle.UnpicklingError):  # it is gone
            raise self._stopped from None
        finally:
            timer.cancel()
        return answer

    @property
    def _stopped(self) -> TableError:
        return TableError(
            f"reading this file took more than {self._patience:g} seconds or too much memory, so it was stopped. Is it "
            "the right file?"
        )


def serve() -> None:
    """Answer calls until nobody asks any more; the only argument is how much memory may be taken."""
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what libraries print is no answer
    _limit_memory(int(sys.argv[1]))
    from dpsc.tables import reader  # noqa: F401 - takes most of the second, and is needed for every table

    while True:
        try:
            step, arguments, options, rows_are_told = pickle.load(asked)
        except EOFError:
            return
        if rows_are_told:
            options["on_rows"] = lambda rows: _send(answers, ("rows", rows))
        try:
            answer = "value", step(*arguments, **options)
        except DpscError as problem:
            answer = "error", problem
        except MemoryError:
            return  # as if it had been ended
        except Exception as problem:
            if os.environ.get("DPSC_TRACEBACK"):
                raise
            answer = "unexpected", type(problem).__name__  # its message might quote the file
        _send(answers, answer)


def _send(to: IO[bytes] | None, what: Any) -> None:
    assert to is not None
    pickle.dump(what, to)
    to.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # what was not sent any more
                pipe.close()


def _half_of_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if hasattr(os, "sysconf") else 0


def _limit_memory(largest: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has none
        return
    if largest:
        resource.setrlimit(resource.RLIMIT_DATA, (largest, largest))
