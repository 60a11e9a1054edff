"""What is known about the error of a counterfactual. Knows no mechanism."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from dpsc.types import Array

IntervalKind = Literal["effect", "projection noise", "none"]
"""What an interval covers: the effect, or only the noise of the last step; "none" if there is no interval."""

IntervalPart = Literal["both", "privacy", "model"]


class Uncertainty(Protocol):
    """What is known about the error of a counterfactual: from privacy noise, and from the model if there is one.

    ``combinations`` has one row per number and one column per period: the numbers are linear combinations of the
    periods from the intervention on.
    """

    @property
    def kind(self) -> IntervalKind:
        """What its intervals cover."""
        ...

    def ends(self, combinations: Array, level: float, part: IntervalPart) -> tuple[Array, Array]:
        """Return the lower and the upper end of what the truth may differ by from the counterfactual."""
        ...

    def below(self, combinations: Array, values: Array) -> Array:
        """Return the chance that the truth without an intervention is below the counterfactual plus a value."""
        ...

    def quantile(self, combinations: Array, chances: Array) -> Array:
        """Return what the truth less the counterfactual is below with these chances, one for each combination."""
        ...

    def ends_before(self, level: float) -> tuple[Array, Array]:
        """Return the ends of what each period before the intervention may differ by from the fit."""
        ...


class Unknown:
    """Nothing is known about the error: everything is NaN."""

    kind: IntervalKind = "none"

    def ends(self, combinations: Array, level: float, part: IntervalPart) -> tuple[Array, Array]:
        """Return NaN, for all intervals."""
        return self._nothing(combinations), self._nothing(combinations)

    def below(self, combinations: Array, values: Array) -> Array:
        """Return NaN, for all chances."""
        return self._nothing(combinations)

    def quantile(self, combinations: Array, chances: Array) -> Array:
        """Return NaN, for all quantiles."""
        return self._nothing(combinations)

    def ends_before(self, level: float) -> tuple[Array, Array]:
        """Return NaN, for all periods."""
        return np.array([np.nan]), np.array([np.nan])

    @staticmethod
    def _nothing(combinations: Array) -> Array:
        return np.full(len(combinations), np.nan)
