"""Effects as people state them, with an interval, in percent and with a p-value; what is known about their error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from dpsc import checks
from dpsc.errors import Parameter, ParameterError
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

    def ends(self, combinations: Array, level: float, part: IntervalPart) -> tuple[Array, Array]:
        """Return the lower and the upper end of what the truth may differ by from the counterfactual."""

    def below(self, combinations: Array, values: Array) -> Array:
        """Return the chance that the truth without an intervention is below the counterfactual plus a value."""

    def quantile(self, combinations: Array, chances: Array) -> Array:
        """Return what the truth minus the counterfactual is below with these chances, one for each combination."""

    def ends_before(self, level: float) -> tuple[Array, Array]:
        """Return the ends of what each period before the intervention may differ by from the fit."""


class JointLaw(Uncertainty, Protocol):
    """What is known about the errors of several counterfactuals together: combinations of them have a joint law."""

    def together(self, combinations: Array) -> tuple[Array, float]:
        """Return the scale matrix and the degrees of freedom of the Student's t of several combinations together."""


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
        Observed minus counterfactual, and its interval.
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

    A period that was not observed is NaN and must have no weight; a combination of nothing is NaN. A difference, which
    has negative weights, is not stated in percent.

    The truth without an intervention lies within (counterfactual + low, counterfactual + high); the effect is the
    observed minus that. A percentage is observed / counterfactual - 1, which falls as the counterfactual rises, so that
    its interval comes from the same two ends as long as both are above zero.
    """
    seen = np.where(np.isnan(observed), 0.0, combinations)
    weightless = ~seen.any(axis=1)
    actual = seen @ np.nan_to_num(observed)
    without = seen @ counterfactual
    low, high = uncertainty.ends(seen, level, "both")
    below = uncertainty.below(seen, actual - without)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = 100 * (actual / np.array([without, without + high, without + low]) - 1)
    share[:, ~(without + low > 0) | (seen < 0).any(axis=1)] = np.nan
    for_effect = uncertainty.kind == "effect"
    effect, part = actual - without, share if for_effect else np.full_like(share, np.nan)
    columns = np.array([effect, effect - high, effect - low, *part, 2 * np.minimum(below, 1 - below)])
    columns[:, weightless] = np.nan
    return [Effect(*map(float, column)) for column in columns.T]


AFTER, ON_MINUS_AFTER = "after the treatment", "while treated minus after"
LATER_MINUS_EARLIER = "second half minus first half of the treated periods"
"""Names of contrasts: of what was seen without the treatment, after it began, and of how the effect develops."""


def contrasts(on: Array, off: Array) -> dict[str, Array]:
    """Return the weights of the periods in each contrast; without those for which there are no periods.

    ``on`` is 1 in the periods that count as treated, ``off`` in those after the treatment. Of an odd number of treated
    periods the middle one is in neither half.

    Examples
    --------
    >>> found = contrasts(np.array([1, 1, 1, 0, 0]), np.array([0, 0, 0, 1, 0]))
    >>> for name, weights in found.items():
    ...     print(name, weights.round(2).tolist())
    after the treatment [0.0, 0.0, 0.0, 1.0, 0.0]
    while treated minus after [0.33, 0.33, 0.33, -1.0, 0.0]
    second half minus first half of the treated periods [-1.0, 0.0, 1.0, 0.0, 0.0]
    """
    found, treated = {}, np.flatnonzero(on)
    if off.any():
        found[AFTER] = off / off.sum()
        if on.any():
            found[ON_MINUS_AFTER] = on / on.sum() - found[AFTER]
    if half := len(treated) // 2:
        found[LATER_MINUS_EARLIER] = np.zeros(len(on))
        found[LATER_MINUS_EARLIER][treated[:half]] = -1 / half
        found[LATER_MINUS_EARLIER][treated[-half:]] = 1 / half
    return found


@dataclass(frozen=True)
class Prices:
    """What one unit of the outcome is worth, and what the intervention cost.

    Parameters
    ----------
    value_per_unit : float
        Of the outcome; negative if less of it is worth something.
    cost : float, optional
    currency : str
    """

    value_per_unit: float
    cost: float | None = None
    currency: str = ""

    @classmethod
    def of(cls, value_per_unit: float | None, cost: float | None, currency: str) -> Prices | None:
        """Check what was said; nothing if nothing was."""
        if value_per_unit is None:
            if cost is not None or currency:
                said = Parameter("cost" if cost is not None else "currency")
                raise ParameterError(
                    f"{said} needs {Parameter('value_per_unit')}: what one unit of the outcome is worth. It is 1 for "
                    "an outcome that is money itself."
                )
            return None
        value = checks.finite_number("value_per_unit", value_per_unit)
        if value == 0:
            raise ParameterError(f"{Parameter('value_per_unit')} must not be 0.")
        spent = None if cost is None else checks.finite_number("cost", cost, at_least=0)
        return cls(value, spent, checks.printable("currency", currency))

    def worth(self, total: Effect) -> dict[str, Effect]:
        """Return the value of a total effect, what is left after the cost, and the value over the cost."""
        value = _scaled(total, self.value_per_unit)
        found = {"total effect": _scaled(total), "value": value}
        if self.cost:
            found["value minus cost"] = value._replace(
                effect=value.effect - self.cost, lower=value.lower - self.cost, upper=value.upper - self.cost
            )
            found["return"] = _scaled(value, 1 / self.cost)
        return found


def _scaled(effect: Effect, by: float = 1.0) -> Effect:
    """Return a multiple of an effect, without what is not said of it: percentages and the p-value."""
    ends: Sequence[float] = sorted((by * effect.lower, by * effect.upper))
    return Effect(by * effect.effect, *ends, *(4 * [float("nan")]))


def detectable_effect(uncertainty: Uncertainty, average: Array, level: float = 0.05, power: float = 0.8) -> float:
    """Return the smallest effect on an average with a p-value below ``level`` in a share ``power`` of cases.

    It holds for either sign of the effect; NaN if the error is not known.
    """
    chances = np.array([level / 2, 1 - level / 2, 1 - power, power])
    low, high, weak, strong = uncertainty.quantile(np.tile(average, (4, 1)), chances).tolist()
    return float(max(high - weak, strong - low))


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
