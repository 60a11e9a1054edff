"""Effects as people state them, with an interval, in percent and with a p-value; what is known about their error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

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


class JointLaw(Uncertainty, Protocol):
    """What is known about the errors of several counterfactuals together: combinations of them have a joint law."""

    def together(self, combinations: Array) -> tuple[Array, float]:
        """Return the scale matrix and the degrees of freedom of the Student's t of several combinations together."""
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


NO_PERCENT = "no percentages: the counterfactual may be zero or less, and a share of it would mean nothing"


class Effect(NamedTuple):
    """One effect, for example the average over the observed periods; what is not known is NaN.

    Attributes
    ----------
    effect, lower, upper : float
        Observed less counterfactual, and its interval.
    percent, percent_lower, percent_upper : float
        The same in percent of the counterfactual; NaN where the counterfactual may be zero or less.
    p_value : float
        The chance of an effect at least this far from zero if there were none, two-sided.
    """

    effect: float
    lower: float
    upper: float
    percent: float
    percent_lower: float
    percent_upper: float
    p_value: float


def effects_of(
    observed: Array, counterfactual: Array, combinations: Array, uncertainty: Uncertainty, level: float
) -> list[Effect]:
    """Return the effect on each linear combination of the periods, one per row of ``combinations``.

    A period that was not observed is NaN and must have no weight; a combination of nothing is NaN.

    The truth without an intervention lies within (counterfactual + low, counterfactual + high); the effect is the
    observed less that. A percentage is observed / counterfactual - 1, which falls as the counterfactual rises, so that
    its interval comes from the same two ends as long as both are above zero.
    """
    seen = np.where(np.isnan(observed), 0.0, combinations)
    weightless = ~seen.any(axis=1)
    actual = seen @ np.nan_to_num(observed)
    without = seen @ counterfactual
    low, high = uncertainty.ends(seen, level, "both")
    below = uncertainty.below(seen, actual - without)
    share = _percent(actual, np.array([without, without + high, without + low]))
    share[:, ~(without + low > 0)] = np.nan
    for_effect = uncertainty.kind == "effect"
    effect, part = actual - without, share if for_effect else np.full_like(share, np.nan)
    columns = np.array([effect, effect - high, effect - low, *part, 2 * np.minimum(below, 1 - below)])
    columns[:, weightless] = np.nan
    return [Effect(*map(float, column)) for column in columns.T]


def detectable_effect(uncertainty: Uncertainty, average: Array, level: float = 0.05, power: float = 0.8) -> float:
    """Return the smallest effect on an average with a p-value below ``level`` in a share ``power`` of cases.

    It holds for either sign of the effect; NaN if the error is not known.
    """
    chances = np.array([level / 2, 1 - level / 2, 1 - power, power])
    low, high, weak, strong = uncertainty.quantile(np.tile(average, (4, 1)), chances).tolist()
    return float(max(high - weak, strong - low))


def _percent(actual: Array, without: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(100 * (actual / without - 1))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for their number by Holm's method; one that is not there counts for nothing.

    If no effect is there, the chance that any adjusted p-value is at most a level is at most that level, however the
    p-values depend on each other; the same holds for the outcomes without an effect, whatever the others have.

    Examples
    --------
    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    known = sorted((p, k) for k, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, k) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[k] = largest
    return adjusted
