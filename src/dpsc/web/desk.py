"""What both desks do alike: one state for every page that is open, and what is wrong is said beside its field.

There is one desk per program: a page that is loaded again, or a second one, shows the same. Files are read in a process
that can be ended and knows no more than its own program does. It is started with the program, because it takes a
second, and again after it was ended.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, ClassVar, TypeVar

from dpsc import checks
from dpsc.answers import words
from dpsc.errors import DpscError, Parameter, TableError

T = TypeVar("T")
_WHOLE = re.compile(r"\d{1,12}|\d{1,3}([, '\u00a0\u202f]\d{3}){1,3}", re.ASCII)  # 5000, 5,000, 5 000

_DECIMAL = re.compile(r"-?\d{1,15}([.,]\d{1,15})?", re.ASCII)


def trouble_of(step: Callable[[], object]) -> str:
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


class Desk:
    """A desk; each step changes it as a whole, and says next to which field something is wrong.

    Parameters
    ----------
    folder : Path
        Private; what was dropped on a page is kept here until the program ends.
    reader : Reader, optional
        Reads files in a process that can be ended; without it they are read here.

    Attributes
    ----------
    labels : mapping
        The names of parameters as the fields of the page are called.
    problems : dict
        What is wrong, by the name of the field that it is about.
    """

    labels: ClassVar[Mapping[str, str]] = {}

    def __init__(self, folder: Path, reader: Reader | None = None) -> None:
        self.folder, self.reader = folder, reader
        self.problems: dict[str, str] = {}
        self._lock = threading.RLock()
        self._changes = 0

    def read(self, step: Callable[..., T], *arguments: object, **options: Any) -> T:
        """Return what a function that reads a file returns; what it holds may be wrong in any way."""
        read = step if self.reader is None else partial(self.reader, step)
        return read(*arguments, **options)

    @property
    def version(self) -> tuple[object, ...]:
        """Something that differs as soon as a page must show something else."""
        return (self._changes,)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Let one step at a time change the desk."""
        with self._lock:
            try:
                yield
            finally:
                self._changes += 1

    @contextmanager
    def about(self, field: str, *files: File | None) -> Iterator[None]:
        """Keep what is wrong beside the field that it is about; files have the names under which they were dropped."""
        self.problems.pop(field, None)
        try:
            yield
        except DpscError as problem:
            self._tell(*self.explained(problem, field), files)
        except OSError as problem:
            self._tell(field, problem.strerror or type(problem).__name__, files)

    def explained(self, problem: DpscError, field: str) -> tuple[str, str]:
        """Return the field that an error is about, and the library's words with the names of the page's fields."""
        return field, problem.text(self.named)

    def named(self, parameter: Parameter) -> str:
        """Write a parameter as the field of the page that sets it."""
        label = self.labels.get(parameter.name)
        if label is None:
            return parameter.python
        return f"“{label}” {parameter.typed}".rstrip()

    def _tell(self, field: str, text: str, files: tuple[File | None, ...]) -> None:
        known = [file for file in files if file is not None]
        for file in known:
            text = text.replace(str(file.path), file.name)
        text = text.replace(f"{self.folder}/", "")
        with self.changing():
            self.problems[field] = text if text.startswith(tuple(each.name for each in known)) else words.sentence(text)


PATIENCE = 60.0  # seconds without a sign of progress
_CHILD = "from dpsc.web.desk import serve; serve()"


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
        here = os.environ | {"TMPDIR": tempfile.gettempdir()}  # what it leaves when it is ended goes with our folder
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=here
        )
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


def decimal(name: str, text: str) -> float:
    """Return a number with a point or a comma before decimals, as it was written into a field."""
    written = text.strip()
    number = float(written.replace(",", ".")) if _DECIMAL.fullmatch(written) else written
    return checks.finite_number(name, number)


def whole(name: str, text: str) -> int:
    """Return a whole number of at least 1, as it was written into a field.

    Examples
    --------
    >>> whole("averages", "5000"), whole("averages", "5,000"), whole("averages", "5 000")
    (5000, 5000, 5000)
    """
    written = text.strip()
    number = int(re.sub(r"\D", "", written)) if _WHOLE.fullmatch(written) else written
    return checks.whole_number(name, number, at_least=1)
