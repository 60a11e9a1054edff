"""Write files completely or not at all: first under a temporary name in the same folder. And cells of a CSV file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any


def write(path: Path, content: bytes | str, *, mode: int = 0o644) -> None:
    """Write a file so that half of it is never visible, even after an interruption."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def harmless(value: Any) -> Any:
    """Keep spreadsheets from running a text in a CSV file as a formula.

    Examples
    --------
    >>> harmless("=cmd()"), harmless("wave 1"), harmless(-3)
    ("'=cmd()", 'wave 1', -3)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power failure too, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # some network file systems cannot; the file itself is synced
        pass
    finally:
        os.close(handle)
