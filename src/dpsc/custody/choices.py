"""What the options of ``dpsc release`` choose, by themselves or beside settings that sites have agreed on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsc.custody import public_series
from dpsc.data import tables
from dpsc.data.dialects import UNSAID, Dialect
from dpsc.data.matching import aligned, same
from dpsc.data.rules import Missing
from dpsc.errors import Parameter, ParameterError
from dpsc.gram.algorithm import GramRelease
from dpsc.gram.contents import GRID_BITS
from dpsc.gram.kernel import Smoothness
from dpsc.gram.settings import Settings, load


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
    path = public_series.reference(reference, time_format, dialect)
    similar = public_series.like(like, like_before, time_format, dialect)
    index = None if periods is None else tables.typed_periods(periods, path, time_format)
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
