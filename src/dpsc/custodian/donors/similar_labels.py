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
    return sum(map(len, groups_alike(labels)))


def groups_alike(labels: Iterable[Any]) -> list[list[Any]]:
    """Return the groups of different labels that are equal but for how they are written. Private.

    Examples
    --------
    >>> groups_alike(["Ann", "Cem", "ann ", "Ann"])
    [['Ann', 'ann ']]
    """
    groups: dict[str, dict[Any, None]] = {}
    for label in labels:
        groups.setdefault(read_as(label), {})[label] = None
    return [list(group) for group in groups.values() if len(group) > 1]
