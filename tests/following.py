"""What a walk does, counted from outside: how often the kernel opened a file, and how often a step was called."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_OPEN, _READ, _CLOSE = 0x20, 0x01, 0x08 | 0x10  # of inotify; the others keep two openings in a row apart
_EVENT = struct.Struct("iIII")
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts openings with inotify")


@contextmanager
def opened(*files: Path) -> Iterator[Counter[str]]:
    """Count how often each file is opened, by its name; Arrow opens files in C++, so the kernel is asked."""
    library = ctypes.CDLL(None, use_errno=True)
    watch = library.inotify_init1(os.O_NONBLOCK)
    names = {library.inotify_add_watch(watch, os.fsencode(file), _OPEN | _READ | _CLOSE): file.name for file in files}
    assert min(watch, *names) >= 0, os.strerror(ctypes.get_errno())
    counted: Counter[str] = Counter()
    try:
        yield counted
        try:
            events = os.read(watch, 2**20)
        except BlockingIOError:
            events = b""
        for at in range(0, len(events), _EVENT.size):
            number, what, _, _ = _EVENT.unpack_from(events, at)
            counted[names[number]] += bool(what & _OPEN)
    finally:
        os.close(watch)


def counted(patch: pytest.MonkeyPatch, *steps: tuple[object, str]) -> Counter[str]:
    """Count the calls of functions and methods, given by their module or class, from now on."""
    calls: Counter[str] = Counter()

    def counting(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **named: Any) -> Any:
            calls[name] += 1
            return real(*given, **named)

        return step

    for home, name in steps:
        real = getattr(home, name)
        kind = vars(home).get(name)
        calls[f"{home.__name__.split('.')[-1]}.{name}"] = 0  # type: ignore[attr-defined]
        step: Any = counting(f"{home.__name__.split('.')[-1]}.{name}", real)  # type: ignore[attr-defined]
        patch.setattr(home, name, staticmethod(step) if isinstance(kind, staticmethod | classmethod) else step)
    return calls
