"""What people look at: answers that carry a guarantee, answers that carry none, and why.

A result is frozen. A number computed from donors without a mechanism exists only on ``NonPrivateResult``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.bounds import Array
from dpsc.guarantee import Guarantee

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDED = "made with a seed, which anyone can use to remove the noise: not private, for experiments only"


class NoiseLaw(Protocol):
    """The public law of the noise on an answer."""

    def half_width(self, level: float) -> float:
        """Return what the size of one entry stays below with probability ``level``."""
        ...

    def half_width_of(self, combination: Array, level: float) -> float:
        """Return the same for a linear combination of the entries."""
        ...


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Result:
    """What every answer has: the observed target and a counterfactual after the intervention."""

    target: pd.Series[float]
    T0: int
    counterfactual: pd.Series[float]
    weights: pd.Series[float]

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

    def to_frame(self) -> pd.DataFrame:
        """One row a period from the intervention on: observed, counterfactual, gap."""
        return pd.DataFrame({"observed": self.observed, "counterfactual": self.counterfactual, "gap": self.gaps})

    def plot(self) -> Figure:
        """Draw the observed and the counterfactual path, with the gaps below."""
        from dpsc import plot

        return plot.path(self)

    def summary(self) -> str:
        """Describe the answer in plain text."""
        return "\n".join([self._headline(), "", self.to_frame().to_string(float_format=_number), "", self._footer()])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._headline()}, average effect {_number(self.att)}>"

    def _headline(self) -> str:
        raise NotImplementedError

    def _footer(self) -> str:
        return f"average effect (att): {_number(self.att)}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NonPrivateResult(_Result):
    """An answer computed from raw donors. It protects nobody and is not for publication where donors are people.

    Attributes
    ----------
    weights, counterfactual, fitted : Series
        By donor label; by period from the intervention on; by period before it.
    method : str
    """

    fitted: pd.Series[float]
    method: str

    @property
    def rmse_pre(self) -> float:
        """Root mean squared distance to the target before the intervention."""
        return _rms(self.target.iloc[: self.T0] - self.fitted)

    @property
    def rmse_post(self) -> float:
        """Root mean squared gap from the intervention on: effect and error together."""
        return _rms(self.gaps)

    def _headline(self) -> str:
        return f"synthetic control ({self.method}), NOT PRIVATE"

    def _footer(self) -> str:
        return (
            f"average effect (att): {_number(self.att)}\n"
            f"fit before the intervention (rmse): {_number(self.rmse_pre)}; "
            f"gap after it (rms): {_number(self.rmse_post)}\n"
            "no privacy guarantee: computed from raw donors"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _ReleasedResult(_Result):
    """An answer made with noise: released weights (by donor position) and every public parameter used."""

    algorithm: str
    parameters: Mapping[str, Any]
    noise: NoiseLaw
    noise_unit: Array

    def interval(self, level: float = 0.95) -> pd.DataFrame:
        """Return, by period, where the counterfactual would be without the noise of the projection step.

        The part of the uncertainty that privacy noise on the answer causes, from its known law given the released
        weights; no donor is touched. Each period's interval covers, with probability ``level``, what the released
        weights give on the donors themselves. How far those weights are from the best ones, and how well any weights
        predict, is not in it: it is not an interval for the effect.
        """
        half = self.noise.half_width(checks.share("level", level)) * self.noise_unit
        return pd.DataFrame({"lower": self.counterfactual - half, "upper": self.counterfactual + half})

    def att_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the same for the average effect."""
        seen = self.observed.notna().to_numpy()
        half = self.noise.half_width_of(self.noise_unit * seen / seen.sum(), checks.share("level", level))
        return self.att - half, self.att + half

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    def _parameter_line(self) -> str:
        return "parameters: " + ", ".join(f"{k} = {_number(v)}" for k, v in self.parameters.items())


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrivateResult(_ReleasedResult):
    """An answer with a guarantee: everything on it passed through a mechanism or is public.

    Attributes
    ----------
    weights : Series
        The released weights, by the donor's position in the panel. Labels stay with the custodian.
    counterfactual : Series
        By period from the intervention on. There is no pre-period fit: it would touch the donors again.
    guarantee : Guarantee
    parameters : mapping
        The public numbers used, enough to redo the arithmetic by hand.
    """

    guarantee: Guarantee

    def _headline(self) -> str:
        return self.algorithm

    def _footer(self) -> str:
        return f"{super()._footer()}\nguarantee: {self.guarantee}\n{self._parameter_line()}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UnprovenResult(_ReleasedResult):
    """An answer with noise but without a guarantee, and the reason why there is none."""

    reason: str

    @property
    def guarantee(self) -> None:
        """There is none; see ``reason``."""
        return None

    def _headline(self) -> str:
        return f"{self.algorithm}, NOT PRIVATE"

    def _footer(self) -> str:
        return f"{super()._footer()}\nno guarantee: {self.reason}\n{self._parameter_line()}"


def _rms(values: pd.Series[float]) -> float:
    return float(np.sqrt(np.nanmean(np.square(values.to_numpy(dtype=np.float64)))))


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
