"""Units whose labels differ only in how they are written: perhaps one person, who would then count as two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpsc.checks import read_as


def alike(labels: Iterable[Any]) -> int:
    """Count the different labels that another label equals but for how it is written. Private.

    Examples
    --------
    >>> alike(["Ann", "ann ", "Bob", "bob", "BOB", "Cem"])
    5
    """
    groups: dict[str, set[Any]] = {}
    for label in labels:
        groups.setdefault(read_as(label), set()).add(label)
    return sum(len(group) for group in groups.values() if len(group) > 1)
