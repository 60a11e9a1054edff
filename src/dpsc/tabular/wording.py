"""How errors about tables are worded: the file first, rows as an editor counts them, options of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpsc.errors import PanelError, ReleaseError, TableError


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file before what the library says of its content, in the command's own words."""
    try:
        yield
    except TableError as problem:
        raise TableError(str(problem) if str(path) in str(problem) else f"{path}: {problem}") from None
    except (PanelError, ReleaseError) as problem:
        raise TableError(f"{path}: {in_options(str(problem))}") from None


def in_options(message: str) -> str:
    """Turn Python arguments in a message into the options that set them."""
    for pattern, option in (
        (r"missing='(\w+)'", r"--missing \1"),
        (r"bounds=\(lo, hi\)", "--bounds LO HI"),
        (r"\bdonors=", "--exclude"),
        (r"\blambda_\b", "--lambda"),
        (r"\bgrid_bits=(\d+)", r"--grid-bits \1"),
        (r"\bgrid_bits\b", "--grid-bits"),
        (
            r"convert the times first, for example with .*",
            "say how the dates are written, for example --time-format %d/%m/%Y.",
        ),
    ):
        message = re.sub(pattern, option, message)
    return message


def is_text(path: Path) -> bool:
    """Tell whether a file has lines."""
    return bool(re.search(r"\.(csv|tsv|txt)(\.gz)?$", path.name.lower()))


def row_name(position: int, path: Path) -> str:
    """Name a row as an editor would: the header of a CSV is line 1."""
    if is_text(path):
        return f"line {position + 2}"
    return f"row {position + 1}"


def is_number(name: str) -> bool:
    """Tell whether a name of a column, or a label, reads as a number."""
    try:
        float(name)
    except ValueError:
        return False
    return True


def is_decimal(name: str) -> bool:
    """Tell whether it reads as a number with decimals, also if pandas put ``.1`` behind a repeated one."""
    return is_number(name) and bool(
        re.search(r"[.eE]", re.sub(r"\.\d{1,2}$", "", name) if name.count(".") > 1 else name)
    )
