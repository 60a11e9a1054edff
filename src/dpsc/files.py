"""Writing files whole or not at all: to a temporary name beside the place, then moved there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write(path: Path, content: bytes | str, *, mode: int = 0o644) -> None:
    """Write a file so that nobody ever sees half of it, whatever interrupts."""
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
