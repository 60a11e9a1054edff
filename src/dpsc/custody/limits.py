"""Budgets that protect nobody: refused, unless the user insists with --i-know."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpsc.errors import ParameterError

if TYPE_CHECKING:
    from dpsc.gram.algorithm import GramRelease

LARGEST_EPSILON = 20.0
FEWEST_DONORS = 100  # assumed where their number is not known: a delta that is too large for them is too large


def require_reasonable(epsilon: float | None, i_know: bool) -> None:
    """Refuse an epsilon that protects little."""
    if epsilon is None:
        return
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ParameterError(f"--epsilon must be a number above 0, not {epsilon!r}.")
    if epsilon > 1e6:
        raise ParameterError("--epsilon above a million is no budget at all; use --method nonprivate.")
    if epsilon > LARGEST_EPSILON and not i_know:
        raise ParameterError(
            f"--epsilon {epsilon:g} is above {LARGEST_EPSILON:g} and protects nobody: it lets the odds of any guess "
            f"about a donor change by a factor of e^{epsilon:g}. Budgets around 1 are usual. To go on anyway, add "
            "--i-know."
        )


def require_small_delta(delta: float | None, n: int | None, i_know: bool) -> None:
    """Refuse a delta that is not below 1 / n: publishing one donor at random would satisfy it."""
    if n is None:
        if delta is not None and delta >= 1 / FEWEST_DONORS and not i_know:
            raise ParameterError(
                f"--delta {delta:g} is too large: it should be well below one over the number of donors. Use --delta "
                "1e-6 or less. To go on anyway, add --i-know."
            )
        return
    if delta is not None and delta >= 1 / n and not i_know:
        raise ParameterError(
            f"--delta {delta:g} is not below one over the number of donors, {1 / n:.2g}: a mechanism that publishes "
            "one donor at random would satisfy it. Use --delta 1e-6 or less. To go on anyway, add --i-know."
        )


def require_worth_having(algorithm: GramRelease, n: int, T: int, i_know: bool) -> None:
    """Refuse a release from which nothing could be learned, before it is booked; n is public."""
    share = algorithm.noise_share(n, T)
    if share >= 1 and not i_know:
        raise ParameterError(
            f"nothing could be learned from this release: with {n:,} donors and --epsilon {algorithm.epsilon:g} its "
            f"noise is {share:.0%} of what all donors say together. Use more donors or a larger --epsilon (dpsc plan "
            "tells how large). Nothing was booked or written. To go on anyway, add --i-know."
        )
