"""The fields that every answer has, so that words and figures need not know its class. Knows no mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.errors import ParameterError
from dpsc.privacy.guarantee import Guarantee
from dpsc.types import Array

IntervalKind = Literal["effect", "projection noise", "none"]
"""What an interval covers: the effect, or only the noise of the last step; "none" if there is no interval."""

IntervalPart = Literal["both", "privacy", "model"]


class Uncertainty(Protocol):
    """What is known about the error of a counterfactual: from privacy noise, and from the model if there is one."""

    @property
    def kind(self) -> IntervalKind:
        """What its intervals cover."""
        ...

    def ends(self, combinations: Array, level: float, part: IntervalPart) -> tuple[Array, Array]:
        """Return the lower and the upper end of what the truth may differ by from the counterfactual.

        ``combinations`` has one row per interval and one column per period: the intervals are for linear combinations
        of the periods.
        """
        ...


@dataclass(frozen=True)
class Verdict:
    """Do the donors help? An answer in three grades, from the target's own past.

    Attributes
    ----------
    grade : {"yes", "unclear", "no"}
    headline : str
        The answer in a few words.
    reason : str
        A sentence that says why.
    """

    grade: Literal["yes", "unclear", "no"]
    headline: str
    reason: str


class Unknown:
    """Nothing is known about the error: the ends are NaN."""

    kind: IntervalKind = "none"

    def ends(self, combinations: Array, level: float, part: IntervalPart) -> tuple[Array, Array]:
        """Return NaN, for all intervals."""
        nothing = np.full(len(combinations), np.nan)
        return nothing, nothing


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answer:
    """The observed target, a counterfactual after the intervention, and everything known about how it was made.

    Attributes
    ----------
    target : Series
        By period, before and after the intervention.
    T0 : int
        The number of periods before the intervention.
    counterfactual : Series
        By period from the intervention on.
    weights : Series or DataFrame
    algorithm : str
    guarantee : Guarantee or None
    reason : str
        Why there is no guarantee; empty if there is one.
    parameters : mapping
        The public numbers used.
    uncertainty : Uncertainty
        The source of the intervals.
    level : float
        The level of the intervals in summaries and figures.
    fitted : Series
        By period before the intervention; empty if there is no fit.
    fitted_label : str
        What ``fitted`` is, for a legend.
    baselines : DataFrame
        Forecasts without donors, one column each; without columns if there are none.
    verdict : Verdict or None
        Whether the donors help; None if it is not known.
    notes : tuple of str
        Warnings to the reader.
    """

    target: pd.Series[float]
    T0: int
    counterfactual: pd.Series[float]
    weights: pd.Series[float] | pd.DataFrame
    algorithm: str
    guarantee: Guarantee | None
    reason: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    uncertainty: Uncertainty = field(default_factory=Unknown)
    level: float = 0.95
    fitted: pd.Series[float] = field(default_factory=lambda: pd.Series(dtype=np.float64, name="fitted"))
    fitted_label: str = ""
    baselines: pd.DataFrame = field(default_factory=pd.DataFrame)
    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"parameters": dict(self.parameters)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"parameters": MappingProxyType(state["parameters"])})

    @property
    def private(self) -> bool:
        """Whether it carries a guarantee."""
        return self.guarantee is not None

    @property
    def headline(self) -> str:
        """What this is, in a few words."""
        return self.algorithm if self.private else f"{self.algorithm}, NOT PRIVATE"

    @property
    def observed(self) -> pd.Series[float]:
        """The target from the intervention on."""
        return self.target.iloc[self.T0 :]

    @property
    def treatment_time(self) -> Any:
        """The first treated period."""
        return self.target.index[self.T0]

    @property
    def gaps(self) -> pd.Series[float]:
        """The effect in each period: observed minus counterfactual."""
        return (self.observed - self.counterfactual).rename("gap")

    @property
    def att(self) -> float:
        """The average effect over the periods in which the target was observed."""
        return float(self.gaps.mean())

    @property
    def interval_kind(self) -> IntervalKind:
        """What :meth:`interval` and :meth:`att_interval` cover: "effect", "projection noise", or "none"."""
        return self.uncertainty.kind

    def interval(self, level: float | None = None, part: IntervalPart = "both") -> pd.DataFrame:
        """Return an interval around the counterfactual of each period; its bounds are NaN if nothing is known.

        From a Gram release, ``"both"`` covers the untreated outcome: it combines how targets differ from donors
        (``"model"``) with the error from the release's noise (``"privacy"``, too narrow alone). From the two-step
        algorithms, only the error from the noise of the projection step is known, so the interval covers what the
        released weights give on the donors themselves. It does not include how good those weights are: it is not an
        interval for the effect.
        """
        path = self.counterfactual
        lower, upper = self.uncertainty.ends(np.eye(len(path)), self._level(level), _part(part))
        return pd.DataFrame({"lower": path + lower, "upper": path + upper})

    def att_interval(self, level: float | None = None, part: IntervalPart = "both") -> tuple[float, float]:
        """Return an interval for the average effect over the observed periods; ``part`` as in :meth:`interval`.

        From the two-step algorithms it shows projection noise only and is not an interval for the effect.
        """
        seen = self.observed.notna().to_numpy()
        average = seen[np.newaxis] / max(1, seen.sum())
        lower, upper = self.uncertainty.ends(average, self._level(level), _part(part))
        return self.att - float(upper[0]), self.att - float(lower[0])

    def to_frame(self) -> pd.DataFrame:
        """One row per period from the intervention on: observed, counterfactual with its interval, gap, baselines."""
        columns = {"observed": self.observed, "counterfactual": self.counterfactual}
        if self.interval_kind != "none":
            band = self.interval()
            columns |= {"lower": band["lower"], "upper": band["upper"]}
        return pd.DataFrame(columns | {"gap": self.gaps} | {str(name): path for name, path in self.baselines.items()})

    def _level(self, level: float | None) -> float:
        return self.level if level is None else checks.share("level", level)


def _part(part: IntervalPart) -> IntervalPart:
    if part not in ("both", "privacy", "model"):
        raise ParameterError(f"part must be 'both', 'privacy' or 'model', not {part!r}.")
    return part
