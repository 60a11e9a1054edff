"""Names of data sets and partitions: two that differ only in case, spaces or Unicode form are one to a reader."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from dpsc.checks import read_as

DIFFERS = "differs from it only in case, spaces or Unicode form"


def normalised(name: str) -> str:
    r"""Return the form in which a new name is written down: composed characters, no spaces around it.

    Examples
    --------
    >>> normalised(" Cafe\u0301 ") == "Caf\u00e9"
    True
    """
    return unicodedata.normalize("NFC", name).strip()


def twin(name: str, known: Iterable[str]) -> str | None:
    """Return a known name that is another one and that a reader would take for the same.

    Examples
    --------
    >>> twin("Sales 2020 ", ["costs", "sales 2020"])
    'sales 2020'
    """
    return next((other for other in known if other != name and read_as(other) == read_as(name)), None)
