"""Units whose labels differ only in how they are written: perhaps one person, who would then count as two."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any


def same_name(label: Any) -> str:
    """Return a label without what people do not notice: case, spaces around and between, Unicode form.

    Examples
    --------
    >>> same_name("  Ann  LEE") == same_name("ann lee")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", str(label)).casefold().split())


def alike(labels: Iterable[Any]) -> int:
    """Count the different labels that another label equals but for how it is written. Private.

    Examples
    --------
    >>> alike(["Ann", "ann ", "Bob", "bob", "BOB", "Cem"])
    5
    """
    groups: dict[str, set[Any]] = {}
    for label in labels:
        groups.setdefault(same_name(label), set()).add(label)
    return sum(len(group) for group in groups.values() if len(group) > 1)
