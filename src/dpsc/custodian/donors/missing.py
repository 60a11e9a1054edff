"""Missing cells are filled, repeated ones settled, and values clipped to public bounds, each row by itself.

Under the rule "kernel" cells stay missing here: a Gram release completes them
(:mod:`dpsc.custodian.gram.integer_rows`).

Bounds come from outside the data (a law of nature, a questionnaire's scale, a price list). Nothing here looks at a
value to choose a bound, because a bound computed from donors would reveal something about them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from dpsc.errors import PanelError, Parameter
from dpsc.periods.dates import period_name
from dpsc.tables.spec import INTERPOLATE, KERNEL, MIDPOINT, REPEATED, Missing, Repeated, rule_for
from dpsc.types import Array, BoundsLike, Times

Scaling = Literal["zero", "center"]
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


@dataclass(frozen=True, eq=False)
class Bounds:
    """One public interval per period and the affine map of each onto [-1, 1].

    Attributes
    ----------
    lower, upper : arrays of length T
        The interval of each period, in the outcome's units.
    scaling : {"zero", "center"}
        ``"zero"`` divides by the larger absolute bound: zero stays zero, which a linear model
        without intercept needs. ``"center"`` maps the middle of the interval to zero.
    """

    lower: Array
    upper: Array
    scaling: Scaling = "zero"

    @classmethod
    def parse(cls, bounds: BoundsLike, periods: int, scaling: Scaling = "zero", order: Any = slice(None)) -> Bounds:
        """Read ``(lo, hi)`` or one such pair per period; ``order`` sorts pairs that are not in time order.

        Examples
        --------
        >>> Bounds.parse((0, 300), periods=3).upper
        array([300., 300., 300.])
        """
        if not isinstance(scaling, str) or scaling not in ("zero", "center"):
            raise PanelError(f"scaling must be 'zero' or 'center', not {scaling!r}.")
        try:
            numbers = np.asarray(bounds)
            if numbers.dtype.kind not in "iufO":
                raise TypeError
            pairs = numbers.astype(np.float64)
        except (TypeError, ValueError, ArithmeticError):
            raise PanelError("bounds must be numbers: a pair (lo, hi), or one such pair per period.") from None
        if pairs.shape == (2,):
            pairs = np.broadcast_to(pairs, (periods, 2))
        if pairs.shape != (periods, 2):
            raise PanelError(
                f"bounds have shape {pairs.shape}; expected a pair (lo, hi) or one pair for each "
                f"of the {periods} periods."
            )
        if not np.isfinite(pairs).all():
            raise PanelError(
                "bounds must be finite numbers; NaN or infinity bounds nothing. Take them from "
                "public knowledge, never from the data."
            )
        lower, upper = np.array(pairs[order].T)
        wrong = np.flatnonzero(lower >= upper)
        if wrong.size:
            first = int(wrong[0])
            raise PanelError(
                f"bounds need lo < hi, but period number {first} has ({lower[first]:g}, {upper[first]:g})."
            )
        with np.errstate(over="ignore"):
            width = upper - lower
        if not np.isfinite(width).all():
            raise PanelError("bounds are so wide that hi - lo overflows; use larger units.")
        if not (width / 2 > 0).all():
            raise PanelError("bounds are so narrow that (hi - lo) / 2 is zero; use smaller units.")
        lower.flags.writeable = upper.flags.writeable = False
        return cls(lower, upper, scaling)

    @property
    def offset(self) -> Array:
        """What is subtracted from each period before the division."""
        return self.midpoint if self.scaling == "center" else np.zeros_like(self.lower)

    @property
    def factor(self) -> Array:
        """What each period is divided by."""
        if self.scaling == "center":
            return (self.upper - self.lower) / 2
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    @property
    def midpoint(self) -> Array:
        """The middle of each period's interval."""
        return self.lower + (self.upper - self.lower) / 2

    def clip(self, values: Array, out: Array | None = None) -> Array:
        """Clip values to the bounds (the last axis is time); write into ``out`` if it is given."""
        return np.clip(values, self.lower, self.upper, out=out)

    def scale(self, values: Array, periods: slice = slice(None)) -> Array:
        """Scale values of the given periods, the bounds into [-1, 1] (up to rounding under "center")."""
        return (values - self.offset[periods]) / self.factor[periods]

    def unscale(self, scaled: Array, periods: slice = slice(None)) -> Array:
        """Undo :meth:`scale`."""
        return scaled * self.factor[periods] + self.offset[periods]


BOUNDS = Parameter("bounds", ("lo", "hi"))


@dataclass(frozen=True, eq=False)
class Completion:
    """Fills or refuses missing cells and clips to the bounds.

    Attributes
    ----------
    times : Index
        The periods.
    missing : {"error", "interpolate", "midpoint", "kernel"}, optional
        Default: "kernel" if the periods were declared, else refuse.
    bounds : Bounds or None
    declared : bool
        Whether the periods were declared beforehand, which decides the default rule and nothing else.

    Notes
    -----
    Under every rule but "error", infinite values count as missing, and a donor without any value stays without if there
    are no bounds: it has no direction, and a Gram release adds a fixed public vector for it. Nothing is refused then.
    """

    times: Times
    missing: Missing | None
    bounds: Bounds | None
    declared: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", rule_for(self.missing, self.declared))
        if self.missing == "midpoint" and self.bounds is None:
            raise PanelError(f"{MIDPOINT} fills with the middle of the bounds; give {BOUNDS}.")

    @np.errstate(all="ignore")  # set here, as threads do not inherit it: a warning would reveal donors' values
    def in_place(self, rows: Array, first: int | None = None) -> int:
        """Complete donors that are the rows of an array, and return how many cells were filled or left for the kernel.

        ``first`` is the position of the first row among all donors, if it is known.
        """
        # A sum is finite only if every cell is; adding up is quicker than looking at every cell.
        complete = bool(np.isfinite(rows.sum()) or np.isfinite(rows).all())
        filled = 0 if complete else self._fill(rows, first)
        if self.bounds is not None:
            self.bounds.clip(rows, out=rows)
        return filled

    def _fill(self, rows: Array, first: int | None) -> int:
        infinite, holes = np.isinf(rows), np.isnan(rows)
        if self.missing != "error":
            rows[infinite] = np.nan
            holes |= infinite
        elif infinite.any():
            raise PanelError(
                f"{self._first(infinite, first)} has an infinite value in {self._period(infinite)}; correct it, "
                f"or choose {KERNEL}, {INTERPOLATE} or {MIDPOINT}, which take it for missing."
            )
        else:
            raise PanelError(
                f"{self._first(holes, first)} has no value in {self._period(holes)}, or several rows for it, "
                f"which count as none unless {REPEATED} says otherwise; choose {KERNEL}, {INTERPOLATE} or "
                f"{MIDPOINT}, or correct the data."
            )
        count = int(holes.sum())
        if self.missing == "kernel":
            return count
        if self.missing == "interpolate":
            affected = np.flatnonzero(holes.any(axis=1))
            rows[affected] = _interpolate(rows[affected])
            holes = np.isnan(rows)  # rows with no value at all
        if self.bounds is not None:
            np.copyto(rows, self.bounds.midpoint, where=holes)
        return count

    def _first(self, cells: Any, first: int | None) -> str:
        row = int(np.argmax(cells.any(axis=1)))
        return "a donor" if first is None else f"the donor at position {first + row}"

    def _period(self, cells: Any) -> str:
        row = int(np.argmax(cells.any(axis=1)))
        return f"period {period_name(self.times[int(np.argmax(cells[row]))])}"


def _interpolate(values: Array) -> Array:
    """Fill missing cells by straight lines, constant at the ends; a row without any value stays as it is."""
    periods = values.shape[1]
    here, known = np.arange(periods), ~np.isnan(values)
    left = np.maximum.accumulate(np.where(known, here, -1), axis=1)
    right = np.minimum.accumulate(np.where(known, here, periods)[:, ::-1], axis=1)[:, ::-1]
    first = np.minimum(np.where(left < 0, right, left), periods - 1)
    last = np.where(right == periods, left, right)
    share = np.where(last > first, (here - first) / np.maximum(last - first, 1), 0.0)
    filled: Array = np.take_along_axis(values, first, 1) * (1 - share) + np.take_along_axis(values, last, 1) * share
    return filled
