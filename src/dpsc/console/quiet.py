"""While a console serves, nothing but our own lines reaches the terminal or a log file.

Libraries print tracebacks and warnings, and these may quote what somebody uploaded. So stdout and stderr lead nowhere,
for Python and for libraries in C; what is said in their place names no content. ``DPSC_TRACEBACK=1`` lets all through.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress

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
