"""What a release of people in groups holds: a table of units and periods, with the noise of each cell."""

from __future__ import annotations

from dataclasses import dataclass

from dpsc.types import Array, Times


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """A table of units and periods whose noise is known: all that a reader needs of it.

    Attributes
    ----------
    units : tuple of str
        One for each row, declared.
    times : Index
        The periods, one for each column.
    outcome : str
    values : units × periods
        NaN where there are too few people.
    noise : units × periods
        The standard deviation of each cell's noise, in the outcome's units; known beforehand or from noisy numbers.
    people : units × periods, optional
        The noisy number of people in each cell, if it is known.
    """

    units: tuple[str, ...]
    times: Times
    outcome: str
    values: Array
    noise: Array
    people: Array | None = None
