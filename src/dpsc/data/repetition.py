"""Cells that are given more than once: one number for each, from its own rows and nothing else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dpsc.data.rules import Repeated
from dpsc.types import Array

Cells = np.ndarray[Any, np.dtype[np.integer[Any]]]


def settled(cells: Cells, values: Array, rule: Repeated) -> tuple[Cells, Array]:
    """Return the cells that several rows give, and one number for each; NaN if it counts as missing.

    A row without a finite number says nothing: a cell with one number besides such rows has that number. ``sum`` and
    ``mean`` do not depend on the order of the rows; ``last`` is the last row with a number.

    Examples
    --------
    >>> rows = np.array([0, 0, 1, 2, 2]), np.array([0.0, 50.0, 7.0, np.nan, 3.0])
    >>> [settled(*rows, rule)[1].tolist() for rule in ("missing", "sum", "mean", "last")]
    [[nan, 3.0], [50.0, 3.0], [25.0, 3.0], [50.0, 3.0]]
    """
    again = pd.Index(cells).duplicated(keep=False)
    found = np.unique(cells[again])
    numbers = np.full(len(found), np.nan)
    told = again & np.isfinite(values)
    where, values = np.searchsorted(found, cells[told]), values[told]
    order = np.argsort(where, kind="stable")
    where, values = where[order], values[order]
    ends = np.append(np.flatnonzero(where[1:] != where[:-1]), len(where) - 1) if len(where) else where
    counts = np.diff(ends, prepend=-1)
    alone = ends if rule == "last" else ends[counts == 1]
    numbers[where[alone]] = values[alone]
    if rule in ("sum", "mean"):
        for end, count in zip(ends[counts > 1], counts[counts > 1], strict=True):
            numbers[where[end]] = _total(values[end - count + 1 : end + 1].tolist(), mean=rule == "mean")
    return found, numbers


def _total(values: list[float], *, mean: bool) -> float:
    """Return a sum or a mean, rounded once, so that the order of the values does not matter; infinite if too large."""
    largest = max(map(abs, values)) or 1.0
    unit = 2.0 ** (math.frexp(largest)[1] - 1)  # a power of two: dividing by it rounds nothing that counts
    total = math.fsum(value / unit for value in values)
    return unit * (total / len(values) if mean else total)
