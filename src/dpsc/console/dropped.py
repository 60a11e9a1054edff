"""A file that was dropped on a page: where it is kept, and how the user calls it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class File:
    """A file on the desk."""

    path: Path
    name: str


def uploaded(value: Any) -> File | None:
    """Return the file that a field of the page holds; None if it is empty."""
    return File(Path(value[0]["datapath"]), str(value[0]["name"])) if value else None
