"""Files: written completely or not at all, read up to a size, whether two of them are one, and CSV for spreadsheets."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from numbers import Number
from pathlib import Path
from typing import Any

from dpsc.errors import ReleaseError

_FORMULA = re.compile(r"(?:^|(?<=[;\t\r\n]))(?=[-=+@＝＋－＠\t\r\n])")  # some signs are as wide as Japanese ones


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


def read_text(path: Path, what: str, largest: int) -> str:
    """Read a text file of at most so many bytes, or say that it is not what it should be."""
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
        text = content.decode("utf-8-sig")
    except OSError as problem:
        raise ReleaseError(f"cannot read {path}: {problem.strerror or problem}.") from None
    except UnicodeDecodeError:
        raise ReleaseError(f"{path} is not a {what}: it is not text.") from None
    if len(content) > largest:
        raise ReleaseError(f"{path} is not a {what}: it is too large.")
    return text


def harmless(value: Any) -> Any:
    """Keep spreadsheets from running a text as a formula, also where they take a semicolon for the end of a cell.

    Examples
    --------
    >>> harmless("=cmd()"), harmless("wave 1;=1+1"), harmless("＝1"), harmless("wave 1"), harmless(-3)
    ("'=cmd()", "wave 1;'=1+1", "'＝1", 'wave 1', -3)
    """
    return _FORMULA.sub("'", value) if isinstance(value, str) else value


def csv_text(names: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    """Return a CSV file for people who open it in a spreadsheet: numbers as they are, texts in quotation marks.

    Examples
    --------
    >>> print(csv_text(["time", "gap"], [["w1;=1", 0.5], ['a "b" c', None]]), end="")
    "time","gap"
    "w1;'=1",0.5
    "a ""b"" c",
    """
    return "".join(",".join(map(_csv_cell, row)) + "\n" for row in [list(names), *rows])


def _csv_cell(value: Any) -> str:
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, Number):
        return str(value)
    text: str = harmless(str(value))
    return '"' + text.replace('"', '""') + '"'


def same_file(path: Path, others: Iterable[Path]) -> Path | None:
    """Return which of the others is the same file as ``path``, under whatever name or link; None if none is."""
    place, identity = os.path.realpath(path), _identity(path)
    for other in others:
        if os.path.realpath(other) == place or (identity is not None and _identity(other) == identity):
            return other
    return None


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what all names and links of a file have in common; None if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


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
