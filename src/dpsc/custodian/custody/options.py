"""What a release may choose, alone or beside settings that sites agreed on; budgets that protect nobody are refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsc.custodian.gram.algorithm import GramRelease
from dpsc.errors import Parameter, ParameterError
from dpsc.periods.match import aligned, same
from dpsc.release.kernel import Smoothness
from dpsc.release.matrix import GRID_BITS
from dpsc.release.settings import Settings, load
from dpsc.tables import reader, series
from dpsc.tables.dialect import UNSAID, Dialect
from dpsc.tables.spec import Missing

if TYPE_CHECKING:
    from dpsc.custodian.gram.algorithm import GramRelease


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


@dataclass(frozen=True)
class Choices:
    """How a release is made.

    Attributes
    ----------
    algorithm : GramRelease
    periods : Index or None
        The declared periods.
    outcome : str or None
        The name under which the outcome is published; that of its column if None.
    missing : str or None
        The rule for missing cells.
    """

    algorithm: GramRelease
    periods: pd.Index[Any] | None
    outcome: str | None
    missing: Missing | None


def of_options(
    *,
    settings: Path | None,
    epsilon: float | None,
    delta: float | None,
    smoothness: Smoothness | None,
    reference: Path | None,
    scale: float | None,
    like: Path | None,
    like_before: str | None,
    periods: str | None,
    time_format: str | None,
    grid_bits: int | None,
    missing: Missing | None,
    dialect: Dialect = UNSAID,
) -> Choices:
    """Return what the options say; None stands for an option that was not given."""
    path = series.reference(reference, time_format, dialect)
    similar = series.like(like, like_before, time_format, dialect)
    index = None if periods is None else reader.typed_periods(periods, path, time_format)
    if settings is None:
        if epsilon is None or delta is None:
            it = Parameter("epsilon" if epsilon is None else "delta")
            raise ParameterError("{it} is needed (or a {file} that has it).", it=it, file=Parameter("settings", "FILE"))
        algorithm = GramRelease(
            epsilon=epsilon, delta=delta, smoothness=smoothness or "high", reference=path, scale=scale, like=similar,
            grid_bits=GRID_BITS if grid_bits is None else grid_bits,
        )  # fmt: skip
        return Choices(algorithm, index, None, missing)
    agreed = load(settings)
    agree = {
        "smoothness": smoothness in (None, agreed.smoothness),
        "scale": scale in (None, agreed.scale),
        "like": similar is None,
        "grid_bits": grid_bits in (None, agreed.grid_bits),
        "reference": path is None or _same_path(path, agreed),
        "periods": index is None or agreed.periods is None or same(index, agreed.periods),
    }
    for name, agrees in agree.items():
        if not agrees:
            raise ParameterError(
                f"{{it}} contradicts {settings}, which sites have agreed on: their releases would not add up. Leave it "
                "out.",
                it=Parameter(name),
            )
    algorithm = GramRelease.from_settings(agreed, epsilon=epsilon, delta=delta)
    periods_of_all = index if agreed.periods is None else agreed.periods
    return Choices(algorithm, periods_of_all, agreed.outcome, missing or agreed.missing)


def _same_path(path: pd.Series[float], agreed: Settings) -> bool:
    given = path if agreed.periods is None else aligned(path, agreed.periods)[0]
    return agreed.reference is not None and np.array_equal(given.to_numpy(), agreed.reference)
