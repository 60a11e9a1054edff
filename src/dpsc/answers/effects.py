"""Effects as people state them: with an interval, in percent of the counterfactual, and with a p-value."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpsc.answers.uncertainty import Uncertainty
from dpsc.types import Array

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
    columns = np.array([
        actual - without,
        actual - without - high,
        actual - without - low,
        *(share if for_effect else np.full_like(share, np.nan)),
        2 * np.minimum(below, 1 - below),
    ])  # fmt: skip
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
