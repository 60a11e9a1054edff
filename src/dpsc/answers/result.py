"""What people look at: answers that carry a guarantee, answers that carry none, and why.

A result is frozen. A number computed from donors without a mechanism exists only on ``NonPrivateResult``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.errors import ParameterError
from dpsc.privacy.guarantee import Guarantee
from dpsc.types import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDED = "made with a seed, which anyone can use to remove the noise: not private, for experiments only"


IntervalPart = Literal["both", "privacy", "model"]


class Uncertainty(Protocol):
    """What is known of the error of a counterfactual: from privacy noise, and from the model where there is one."""

    def half_widths(self, level: float, part: IntervalPart) -> Array:
        """Return the half-width of each period's interval."""
        ...

    def half_width_of(self, combination: Array, level: float, part: IntervalPart) -> float:
        """Return the half-width of the interval of a linear combination of the periods."""
        ...


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Result:
    """What every answer has: the observed target and a counterfactual after the intervention."""

    target: pd.Series[float]
    T0: int
    counterfactual: pd.Series[float]
    weights: pd.Series[float] | pd.DataFrame

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
        """Return a figure of the observed and the counterfactual path, with the gaps below.

        A notebook shows it; elsewhere save it with ``.savefig("path.png")``.
        """
        from dpsc.answers import plot

        return plot.overview(self)

    def summary(self) -> str:
        """Describe the answer in plain text."""
        return "\n".join([self.headline, "", self.to_frame().to_string(float_format=_number), "", self._footer()])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline}, average effect {_number(self.att)}>"

    @property
    def headline(self) -> str:
        """What this is, in a few words."""
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

    @property
    def headline(self) -> str:
        """What this is, in a few words."""
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
    """An answer made with noise, and every public parameter used; what only a Gram release offers is None elsewhere."""

    algorithm: str
    parameters: Mapping[str, Any]
    uncertainty: Uncertainty
    level: float = 0.95
    fitted: pd.Series[float] | None = None
    baselines: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()
    backdate: Callable[[Any], Any] | None = None

    def interval(self, level: float | None = None, part: IntervalPart = "both") -> pd.DataFrame:
        """Return an interval around the counterfactual of each period.

        From a Gram release: ``"both"`` covers the untreated outcome, from how targets differ from donors (``"model"``)
        and what the release's noise does (``"privacy"``, too narrow alone). From the two-step algorithms: only
        what the noise of the projection step does is known, so the interval covers what the released weights give on
        the donors themselves. How good those weights are is not in it: it is not an interval for the effect.
        """
        half = self.uncertainty.half_widths(self._level(level), _part(part))
        return pd.DataFrame({"lower": self.counterfactual - half, "upper": self.counterfactual + half})

    def att_interval(self, level: float | None = None, part: IntervalPart = "both") -> tuple[float, float]:
        """Return an interval for the average effect over the observed periods; ``part`` as in :meth:`interval`.

        From the two-step algorithms it shows projection noise only and is not an interval for the effect.
        """
        seen = self.observed.notna().to_numpy()
        half = self.uncertainty.half_width_of(seen / max(1, seen.sum()), self._level(level), _part(part))
        return self.att - half, self.att + half

    def placebo_in_time(self, treatment_time: Any | None = None) -> Any:
        """Pretend the intervention came earlier and forecast the untreated periods after it: gaps should be small.

        Without a date the placebo leaves as many periods as the real intervention, at most a third of those before it.
        """
        if self.backdate is None:
            raise ParameterError(
                "a placebo in time is free only from a Gram release; here it would touch the donors again. Fit the "
                "algorithm to a panel with an earlier treatment time, and pay for it."
            )
        return self.backdate(treatment_time)

    def to_frame(self) -> pd.DataFrame:
        """One row a period from the intervention on: observed, counterfactual with its interval, gap."""
        frame = super().to_frame()
        band = self.interval()
        frame.insert(2, "lower", band["lower"])
        frame.insert(3, "upper", band["upper"])
        return frame if self.baselines is None else frame.join(self.baselines)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"parameters": dict(self.parameters)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"parameters": MappingProxyType(state["parameters"])})

    def _level(self, level: float | None) -> float:
        return self.level if level is None else checks.share("level", level)

    def _footer(self) -> str:
        low, high = self.att_interval()
        effect = (
            f"average effect (att): {_number(self.att)}, {self.level:.0%} interval {_number(low)} to {_number(high)}"
        )
        notes = "".join(f"\nnote: {note}" for note in self.notes)
        parameters = ", ".join(f"{k} = {_number(v)}" for k, v in self.parameters.items())
        return f"{effect}{notes}\n{self._promise()}\nparameters: {parameters}"

    def _promise(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrivateResult(_ReleasedResult):
    """An answer with a guarantee: everything on it passed through a mechanism or is public.

    Attributes
    ----------
    weights : Series or DataFrame
        Two-step algorithms: the released weights by the donor's position in the panel; labels stay with the
        custodian. Gram release: each period after the intervention as a combination of those before (the same
        forecast seen from the other side, and it names no donor).
    counterfactual : Series
        By period from the intervention on.
    fitted, baselines, notes
        From a Gram release: forecasts one period ahead before the intervention, forecasts without donors, and what to
        beware of.
        The two-step algorithms have no pre-period fit: it would touch the donors again.
    guarantee : Guarantee
    parameters : mapping
        The public numbers used, enough to redo the arithmetic by hand.
    """

    guarantee: Guarantee

    @property
    def headline(self) -> str:
        """What this is, in a few words."""
        return self.algorithm

    def _promise(self) -> str:
        return f"guarantee: {self.guarantee}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UnprovenResult(_ReleasedResult):
    """An answer with noise but without a guarantee, and the reason why there is none."""

    reason: str

    @property
    def guarantee(self) -> None:
        """There is none; see ``reason``."""
        return None

    @property
    def headline(self) -> str:
        """What this is, in a few words."""
        return f"{self.algorithm}, NOT PRIVATE"

    def _promise(self) -> str:
        return f"no guarantee: {self.reason}"


def _part(part: IntervalPart) -> IntervalPart:
    if part not in ("both", "privacy", "model"):
        raise ParameterError(f"part must be 'both', 'privacy' or 'model', not {part!r}.")
    return part


def _rms(values: pd.Series[float]) -> float:
    return float(np.sqrt(np.nanmean(np.square(values.to_numpy(dtype=np.float64)))))


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
