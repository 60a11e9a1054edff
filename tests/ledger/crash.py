"""Releases that are killed, at named steps and at random moments. Run by test_crash.py in a process of its own.

    python crash.py URL FOLDER steps
    python crash.py URL FOLDER random KILLS

Every release runs in a forked child, so that nothing is imported again; the hooks that kill it are here and not in the
library. Prints what was found after each kill.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from dpsc import GramRelease, Ledger, Release, files
from dpsc.ledger import schema
from dpsc.ledger.store import Store
from dpsc.privacy import discrete

NAME = "donors"
SIZE = GramRelease(epsilon=0.05, delta=1e-6, scale=1.0)
ROWS = np.random.default_rng(0).normal(size=(400, 5))


def release(ledger: Ledger, path: Path) -> None:
    with ledger.spending(NAME, **ledger.terms(SIZE), output=path):
        SIZE.release(ROWS, dataset="sales").save(path)


def die(*_: Any, **__: Any) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def after(call: Callable[..., Any], times: int) -> Callable[..., Any]:
    """Let a function do its work, and die when it has done so for the given time."""
    calls = iter(range(1, 100))

    def run(*arguments: Any, **options: Any) -> Any:
        done = call(*arguments, **options)
        return die() if next(calls) == times else done

    return run


class OsThat:
    """The module `os`, but for one function."""

    def __init__(self, **functions: Callable[..., Any]) -> None:
        self.functions = functions

    def __getattr__(self, name: str) -> Any:
        return self.functions.get(name) or getattr(os, name)


def half_written(handle: int) -> NoReturn:
    os.ftruncate(handle, os.fstat(handle).st_size // 2)
    die()


STEPS: dict[str, Callable[[], None]] = {
    "before the entry": lambda: setattr(Store, "write", die),
    "in the transaction of the entry": lambda: setattr(schema, "append", after(schema.append, 1)),
    "after the entry": lambda: setattr(GramRelease, "release", die),
    "while noise is drawn": lambda: setattr(discrete, "add", after(discrete.add, 1)),
    "during the write": lambda: setattr(files, "os", OsThat(fsync=half_written)),
    "before the file is moved": lambda: setattr(files, "os", OsThat(replace=die)),
    "after the file is moved": lambda: setattr(files, "os", OsThat(replace=after(os.replace, 1))),
    "before the confirm": lambda: setattr(Ledger, "confirm", die),
    "in the transaction of the confirm": lambda: setattr(schema, "append", after(schema.append, 2)),
    "never": lambda: None,
}


def in_child(ledger: Ledger, path: Path, prepare: Callable[[], None], kill_after: float | None = None) -> bool:
    """Make a release in a child and say whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            prepare()
            release(ledger, path)
            os._exit(0)
        finally:
            os._exit(1)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return os.WIFSIGNALED(status)


def check(ledger: Ledger, folder: Path, last: Path) -> dict[str, Any]:
    """What must hold after any crash: a whole chain, and no release that is not in the book."""
    assert ledger.verify() == []
    entries = {entry.output: entry for entry in ledger.entries(NAME)}
    assert {str(path) for path in folder.glob("*.json")} <= set(entries)
    if last.exists():
        assert Release.load(last).guarantee == entries[str(last)].guarantee
    for path in folder.glob(".*.part"):
        assert str(folder / path.name[1:].split(".json.")[0]) + ".json" in entries
    for output, entry in entries.items():
        assert entry.state == "booked" or (entry.state == "confirmed" and Path(str(output)).exists())
    state = entries[str(last)].state if str(last) in entries else None
    return {"state": state, "file": last.exists()}


def main(url: str, folder: Path, mode: str, kills: int) -> None:
    ledger = Ledger(url, create=True)
    ledger.add_dataset(NAME, epsilon=5.0, delta=1e-6)
    SIZE.release(ROWS)  # what is loaded when it is first used is now there in every child
    found = []
    if mode == "steps":
        for number, (step, prepare) in enumerate(STEPS.items()):
            path = folder / f"{number}.json"
            killed = in_child(ledger, path, prepare)
            found.append({"step": step, "killed": killed, **check(ledger, folder, path)})
    else:
        moments = random.Random(kills)
        started = time.monotonic()
        for number in range(3):
            in_child(ledger, folder / f"whole-{number}.json", lambda: None)
        longest = 1.3 * (time.monotonic() - started) / 3
        for number in range(kills):
            path = folder / f"{number}.json"
            killed = in_child(ledger, path, lambda: None, moments.uniform(0, longest))
            found.append({"killed": killed, **check(ledger, folder, path)})
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 0)
