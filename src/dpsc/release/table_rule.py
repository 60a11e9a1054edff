"""What one person may add to a table of units and periods: public integers, and how far a person can move their sum.

A cell is a unit in a period. A person's records in a cell are added up; the sum is clipped to public bounds and turned
into whole steps, 2^24 of them to the half-width of the bounds. A person counts in at most ``most_cells`` cells, and the
squares of all its numbers add up to at most ``length_squared``. What people add is published in parts of a step,
``finer`` of them to a step, so that noise is on a fine grid for a small bound on a person, too. All this follows from
the person's own records and public numbers. Knows no records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, get_args

from dpsc import checks
from dpsc.errors import Parameter, ParameterError
from dpsc.privacy import sensitivity

Statistic = Literal["mean", "total", "share", "count"]
GRID_BITS = 24
STEPS: int = 2**GRID_BITS  # to the half-width of the bounds
MOST_CELLS: int = 2**14  # of a person: squares of so many numbers add up to less than 2^63
LARGEST_BOUND = 1e100
_FAR = 2**20  # half-widths between zero and the middle of the bounds
_LEAST_BOUND = 1e-4  # of the bound on a person, over what the bounds allow


@dataclass(frozen=True)
class TableRule:
    """How people are bounded; all public.

    Attributes
    ----------
    statistic : {"mean", "total", "share", "count"}
        Of people in a cell: the mean or total of their values, the share of those for whom any record is not zero, or
        how many have a record.
    bounds : pair of numbers, optional
        Of a person's value in a cell; for a mean and a total.
    person_bound : float, optional
        Of the length of all values of a person together, for a mean less the middle of the bounds; by default what the
        bounds allow.
    cells_per_period : int
        In how many units a person may count in one period.
    cells_per_person : int, optional
        In how many cells a person may count in all.
    units, periods : int
        The size of the table.
    """

    statistic: Statistic
    bounds: tuple[float, float] | None
    person_bound: float | None
    cells_per_period: int
    cells_per_person: int | None
    units: int
    periods: int

    def __post_init__(self) -> None:
        checks.one_of("statistic", self.statistic, get_args(Statistic))
        for name in ("cells_per_period", "cells_per_person", "units", "periods"):
            if name != "cells_per_person" or self.cells_per_person is not None:  # Python's integers do not overflow
                object.__setattr__(self, name, checks.whole_number(name, getattr(self, name), at_least=1))
        self._require_bounds()
        if self.most_cells > MOST_CELLS:
            raise ParameterError(
                f"a person could count in {self.most_cells:,} cells; at most {MOST_CELLS:,} are possible. Give "
                f"{Parameter('cells_per_person')}."
            )
        if self.person_bound is not None:
            if not self.has_values:
                raise ParameterError(
                    f"{Parameter('person_bound')} is for means and totals; to bound a person in a {self.statistic}, "
                    f"give {Parameter('cells_per_person')}."
                )
            object.__setattr__(self, "person_bound", checks.finite_number("person_bound", self.person_bound, above=0))
            most = self.half_width * math.sqrt(self.most_cells)
            if self.person_bound < _LEAST_BOUND * most:
                raise ParameterError(
                    f"{Parameter('person_bound', self.person_bound)} would cut almost everything: within the "
                    f"bounds, a person's values have a length of up to {most:g}."
                )

    def _require_bounds(self) -> None:
        if not self.has_values:
            if self.bounds is not None:
                raise ParameterError(f"{Parameter('bounds')} are for means and totals, not for a {self.statistic}.")
            return
        if self.bounds is None:
            raise ParameterError(
                f"a {self.statistic} needs {Parameter('bounds')}: the smallest and the largest value of a person in a "
                "cell, from public knowledge; values outside are set to them."
            )
        if not isinstance(self.bounds, tuple | list) or len(self.bounds) != 2:
            raise ParameterError(f"{Parameter('bounds')} must be two numbers.")
        lo, hi = (checks.finite_number("bounds", bound) for bound in self.bounds)
        object.__setattr__(self, "bounds", (lo, hi))
        if not lo < hi:
            raise ParameterError(f"{Parameter('bounds')}: the lower one, {lo:g}, is not below the upper one, {hi:g}.")
        if max(abs(lo), abs(hi)) > LARGEST_BOUND:
            raise ParameterError(f"{Parameter('bounds')} must not be beyond {LARGEST_BOUND:g}.")
        if hi - lo < 1 / LARGEST_BOUND or (self.middle and abs(self.middle) > _FAR * self.half_width):
            raise ParameterError(
                f"{Parameter('bounds')} are too close together for their size; subtract a public number first."
            )

    @property
    def has_values(self) -> bool:
        """Whether the outcome's size counts, and not only whether it is there."""
        return self.statistic in ("mean", "total")

    @property
    def counts_people(self) -> bool:
        """Whether a second table tells how many people are in each cell: means and shares need it."""
        return self.statistic in ("mean", "share")

    @property
    def tables(self) -> int:
        """How many tables are released: sums, and for means and shares people."""
        return 2 if self.counts_people else 1

    @cached_property
    def _ends(self) -> tuple[Fraction, Fraction]:
        lo, hi = (0, 1) if self.bounds is None else self.bounds
        return Fraction(lo), Fraction(hi)

    @property
    def middle(self) -> float:
        """What is subtracted from a value before it is added up; zero for totals and counts."""
        return float(sum(self._ends) / 2) if self.counts_people else 0.0

    @cached_property
    def _half_width(self) -> Fraction:
        lo, hi = self._ends
        return (hi - lo) / 2 if self.counts_people else max(abs(lo), abs(hi))

    @property
    def half_width(self) -> float:
        """The largest size of what a person adds to a cell."""
        return float(self._half_width)

    @property
    def step(self) -> float:
        """The outcome's amount that one step stands for."""
        return self.half_width / STEPS

    @cached_property
    def finer(self) -> int:
        """In how many parts a step is published: a power of 2, so many that a person still adds at most ``STEPS``."""
        return int(2 ** max(0, ((STEPS**2 // self.length_squared).bit_length() - 1) // 2))

    @property
    def part(self) -> float:
        """The outcome's amount that one part of a step stands for: the unit of what is published."""
        return self.step / self.finer

    @cached_property
    def middle_steps(self) -> int:
        """The middle of the bounds in steps."""
        return round(sum(self._ends) / 2 / self._half_width * STEPS) if self.counts_people else 0

    @cached_property
    def ends_steps(self) -> tuple[int, int]:
        """The smallest and the largest number of steps that a person adds to a cell."""
        if self.counts_people:
            return -STEPS, STEPS
        lo, hi = self._ends
        return math.ceil(lo / self._half_width * STEPS), math.floor(hi / self._half_width * STEPS)

    @property
    def most_cells(self) -> int:
        """In how many cells a person counts at most: P."""
        most = min(self.cells_per_period, self.units) * self.periods
        return most if self.cells_per_person is None else min(self.cells_per_person, most)

    @property
    def is_thinned(self) -> bool:
        """Whether some of a person's cells may be left out."""
        return self.most_cells < min(self.cells_per_period, self.units) * self.periods

    @cached_property
    def length_squared(self) -> int:
        """The largest sum of squares of a person's numbers: Q."""
        allowed = self.most_cells * STEPS**2
        if self.person_bound is None:
            return allowed
        return min(allowed, math.floor((Fraction(self.person_bound) / self._half_width) ** 2 * STEPS**2))

    @cached_property
    def _constant(self) -> int:
        return math.isqrt(self.length_squared // self.most_cells) if self.counts_people else 0

    @property
    def one_person(self) -> int:
        """What a person adds to the count of people in a cell, in parts: c, as large as a value may be on average."""
        return self.finer * self._constant

    @property
    def has_one_sign(self) -> bool:
        """Whether no two people can have values of different sign in a cell."""
        lo, hi = self.ends_steps
        return lo >= 0 or hi <= 0

    @cached_property
    def squared_sensitivity(self) -> int:
        """How far replacing one person moves all released sums: the squared l2 distance, in parts of a step."""
        return self.finer**2 * sensitivity.table_squared(
            self.length_squared, STEPS, self._constant, self.most_cells, one_sign=self.has_one_sign
        )

    @cached_property
    def l1_sensitivity(self) -> int:
        """How far replacing one person moves all released sums: the l1 distance, in parts of a step."""
        return self.finer * sensitivity.table_l1(self.length_squared, STEPS, self._constant, self.most_cells)
