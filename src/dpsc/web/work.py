"""Long work: in a thread that pages follow, and files read in a process that can be ended.

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
from typing import IO, Any, TypeVar

from dpsc.errors import DpscError, TableError

T = TypeVar("T")


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


def said(step: Callable[[], object]) -> str:
    """Run a step; return what to say if it fails, else nothing."""
    try:
        step()
    except Exception as problem:
        if os.environ.get("DPSC_TRACEBACK"):
            raise
        return f"An unexpected error ({type(problem).__name__}). Its message is not shown; DPSC_TRACEBACK=1 shows it."
    return ""


@dataclass(frozen=True)
class File:
    """A file on the desk."""

    path: Path
    name: str


PATIENCE = 60.0  # seconds without a sign of progress
_CHILD = "from dpsc.web.work import serve; serve()"


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
        self, step: Callable[..., T], *arguments: object, on_rows: Callable[[int], None] | None = None, **more: object
    ) -> T:
        """Return what a function of a module returns, or raise what it raises; ``on_rows`` is called here."""
        with self._lock:
            if self._process.poll() is not None:
                self._start()
            try:
                _send(self._process.stdin, (step, arguments, more, on_rows is not None))
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
        answer: T = value
        return answer

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


def _send(to: IO[bytes] | None, what: object) -> None:
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
