"""Private folders: what is in them is gone when the program ends, or when the next one starts if it was killed.

And folders beside an output, for what is being written.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpsc.errors import DpscError


@contextmanager
def private_folder(prefix: str) -> Iterator[Path]:
    """Yield a new folder that only this user may read; remove it at the end, and first those of processes that died."""
    _remove_abandoned(prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix))  # mode 0700
    try:
        with _locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(prefix: str) -> None:
    """Remove folders whose lock is free: the system frees it when a process ends, however it ends."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with _locked(folder):
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # in use, or gone in the meantime
            continue


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    import fcntl

    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Yield a new folder beside a file that is to be written, and remove it at the end, whatever happened."""
    folder = path.parent / f".{path.name}.{secrets.token_hex(6)}.part"
    new = [parent for parent in path.parents if not parent.exists()]
    try:  # from here on, so that an interruption at any moment leaves nothing
        try:
            folder.mkdir(parents=True, mode=0o700)
        except OSError as problem:
            raise DpscError(
                f"cannot write to {path.parent}: {problem.strerror}. Choose another place with -o."
            ) from None
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for parent in new:  # if nothing was put into them
            with suppress(OSError):
                parent.rmdir()
