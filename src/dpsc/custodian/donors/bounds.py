"""Public bounds on the outcome, and the scaling to [-1, 1] that they define.

Bounds come from outside the data (a law of nature, a questionnaire's scale, a price list). Nothing here looks at a
value to choose a bound, because a bound computed from donors would reveal something about them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpsc.errors import PanelError
from dpsc.types import Array

Scaling = Literal["zero", "center"]


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
    def parse(cls, bounds: Any, periods: int, scaling: Scaling = "zero", order: Any = slice(None)) -> Bounds:
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
        if self.scaling == "center":
            return self.lower + (self.upper - self.lower) / 2
        return np.zeros_like(self.lower)

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

    def unscale_difference(self, scaled: Array, periods: slice = slice(None)) -> Array:
        """Undo :meth:`scale` for differences and widths, where the offset cancels."""
        return scaled * self.factor[periods]
