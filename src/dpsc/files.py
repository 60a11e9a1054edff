"""Files written completely or not at all, CSV for spreadsheets, and private folders.

And folders beside an output, for what is being written; and from which folders new processes import.
"""

from __future__ import annotations

import io
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from numbers import Number
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from dpsc.errors import DpscError, ReleaseError

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


def read(path: Path, what: str, largest: int) -> bytes:
    """Read a file of at most so many bytes, or say that it is not what it should be."""
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except OSError as problem:
        raise ReleaseError(f"cannot read {path}: {problem.strerror or problem}.") from None
    if len(content) > largest:
        raise ReleaseError(f"{path} is not a {what}: it is too large.")
    return content


def as_text(content: bytes, path: Path, what: str) -> str:
    """Return the content of a text file, or say that it is not what it should be."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ReleaseError(f"{path} is not a {what}: it is not text.") from None


def read_text(path: Path, what: str, largest: int) -> str:
    """Read a text file of at most so many bytes, or say that it is not what it should be."""
    return as_text(read(path, what, largest), path, what)


def harmless(value: Any) -> Any:
    """Keep spreadsheets from running a text as a formula, also where they take a semicolon for the end of a cell.

    Examples
    --------
    >>> harmless("=cmd()"), harmless("wave 1;=1+1"), harmless("＝1"), harmless("wave 1"), harmless(-3)
    ("'=cmd()", "wave 1;'=1+1", "'＝1", 'wave 1', -3)
    """
    return _FORMULA.sub("'", value) if isinstance(value, str) else value


def csv_text(names: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a CSV file for people who open it in a spreadsheet: numbers as they are, texts in quotation marks.

    Examples
    --------
    >>> print(csv_text(["time", "gap"], [["w1;=1", 0.5], ['a "b" c', None]]), end="")
    "time","gap"
    "w1;'=1",0.5
    "a ""b"" c",
    """
    return "".join(",".join(map(_csv_cell, row)) + "\n" for row in [list(names), *rows])


def _csv_cell(value: object) -> str:
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, Number):
        return str(value)
    text: str = harmless(str(value))
    return '"' + text.replace('"', '""') + '"'


def zipped(contents: Mapping[str, str]) -> bytes:
    """Return texts as a zip archive, by name; the same texts give the same bytes.

    Examples
    --------
    >>> zipped({"a.txt": "one"}) == zipped({"a.txt": "one"})
    True
    """
    archive = io.BytesIO()
    with ZipFile(archive, "w", ZIP_DEFLATED) as opened:
        for name, text in contents.items():
            entry = ZipInfo(name)
            entry.external_attr = 0o644 << 16  # rights, where an archive is unpacked
            opened.writestr(entry, text.encode("utf-8"), ZIP_DEFLATED)
    return archive.getvalue()


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


_LOCK = "lock"  # a file in each folder, locked while the process lives: the system frees it however the process ends


@contextmanager
def private_folder(prefix: str) -> Iterator[Path]:
    """Yield a new folder that only this user may read; remove it at the end, and first those of processes that died."""
    where = Path(tempfile.gettempdir()).resolve()
    _require_that_nobody_else_can_replace(where)
    with _new_folder(where, prefix, "") as folder:
        yield folder


def private_file() -> IO[bytes]:
    """Return a new file without a name in the temporary folder: no other user can open it; it ends with the process."""
    where = Path(tempfile.gettempdir()).resolve()
    _require_that_nobody_else_can_replace(where)
    return tempfile.TemporaryFile(dir=where)


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Yield a new folder beside a file that is to be written, and remove it at the end, whatever happened.

    What processes that died left here, while they wrote a file of the same name, is removed first.
    """
    new = [parent for parent in path.parents if not parent.exists()]
    try:  # from here on, so that an interruption at any moment leaves nothing
        with ExitStack() as stack:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                folder = stack.enter_context(_new_folder(path.parent, f".{path.name}.", ".part")) / "new"
                folder.mkdir()  # apart from the lock, because all that is in it may be moved
            except OSError as problem:
                raise DpscError(
                    f"cannot write to {path.parent}: {problem.strerror}. Choose another place with -o."
                ) from None
            yield folder
    finally:
        for parent in new:  # if nothing was put into them
            with suppress(OSError):
                parent.rmdir()


@contextmanager
def no_imports_from_here() -> Iterator[None]:
    """Keep Python processes that start here from importing what is in the current folder, where others may write."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("PYTHONSAFEPATH", None)
        else:
            os.environ["PYTHONSAFEPATH"] = before


def _require_that_nobody_else_can_replace(where: Path) -> None:
    """Refuse a folder in which other users can rename what is ours and put theirs in its place."""
    trusted = {0, os.geteuid(), os.stat("/").st_uid}  # the last in a container, where root has another number
    for folder in (where, *where.parents):
        found = folder.stat()
        shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
        if shared or found.st_uid not in trusted:
            raise DpscError(
                f"other users of this machine can change {folder}, so nothing private may be put into the temporary "
                f"folder {where}. Set TMPDIR to a folder that only you can write to."
            )


@contextmanager
def _new_folder(where: Path, prefix: str, suffix: str) -> Iterator[Path]:
    """Yield a new folder, locked, and remove it at the end; first remove those of its kind whose lock is free."""
    import fcntl

    _remove_abandoned(where, prefix, suffix)
    folder = where / f"{prefix}{secrets.token_hex(6)}{suffix}"
    try:
        folder.mkdir(mode=0o700)
        with (folder / "new lock").open("w") as lock:
            with suppress(OSError):  # a file system without locks: there, nothing is taken for abandoned
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.rename(folder / "new lock", folder / _LOCK)  # only now may others look whether it is free
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(where: Path, prefix: str, suffix: str) -> None:
    """Remove folders of a kind that are ours and whose lock is free."""
    name = re.compile(f"{re.escape(prefix)}[0-9a-z_]{{8,12}}{re.escape(suffix)}")  # of 8 characters in version 0.2
    with suppress(OSError):  # a folder that may be written to but not read
        for found in os.listdir(where):
            if name.fullmatch(found):
                with suppress(OSError):  # in use, not a folder, or gone in the meantime
                    _remove_if_abandoned(where / found)


def _remove_if_abandoned(folder: Path) -> None:
    """Remove what is in a folder, and then the folder; never through a link, nor what was put in its place."""
    import fcntl

    with ExitStack() as stack:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        stack.callback(os.close, place)
        found = os.fstat(place)
        if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return
        lock = os.open(_LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
        stack.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for name in sorted(os.listdir(place), key=lambda name: name == _LOCK):  # the lock last, if this is killed too
            if stat.S_ISDIR(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode):
                shutil.rmtree(name, dir_fd=place)
            else:
                os.unlink(name, dir_fd=place)
    os.rmdir(folder)
