"""Releases on a full disk or into a read-only folder. Run by test_store.py in a process of its own.

    python faults.py FOLDER ledger-full | output-full | read-only-output | read-only-ledger

The limit on the size of files stands in for a disk that is full: both make a write fail half way.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

import numpy as np

from dpsc import GramRelease, Ledger
from dpsc.errors import DpscError

SIZE = GramRelease(epsilon=0.5, delta=1e-6, scale=1.0)
ROWS = np.random.default_rng(0).normal(size=(60, 5))


def no_file_above(size: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def main(folder: Path, fault: str) -> None:
    book, out = folder / "book.sqlite", folder / "out" / "a.json"
    SIZE.release(ROWS)
    ledger = Ledger(book)
    if fault.startswith("read-only"):
        (folder if fault == "read-only-ledger" else out.parent).chmod(0o500)
        if os.geteuid() == 0:  # nothing is read-only for root
            os.seteuid(65534)
    if fault == "ledger-full":
        no_file_above(book.stat().st_size // 2)
    try:
        with ledger.spending("sales", **ledger.terms(SIZE), output=out):
            release = SIZE.release(ROWS, dataset="sales")
            if fault == "output-full":
                no_file_above(100)
            release.save(out)
    except DpscError as problem:
        print(problem)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
