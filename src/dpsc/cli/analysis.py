"""One analysis from a file to an answer: everything that determines it, all of it public."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from dpsc.answers.result import NonPrivateResult, PrivateResult, UnprovenResult
from dpsc.data import dates, tables
from dpsc.data.arrow import Files
from dpsc.data.columns import Layout
from dpsc.data.formats import in_file
from dpsc.data.frames import label_of
from dpsc.data.panel import Panel
from dpsc.errors import Parameter, ParameterError
from dpsc.gram.algorithm import GramRelease
from dpsc.gram.release import Release
from dpsc.weights.classic import SyntheticControl
from dpsc.weights.objective import ObjectivePerturbation
from dpsc.weights.output import OutputPerturbation

Method = Literal["gram", "output", "objective", "nonprivate"]
METHODS: tuple[Method, ...] = ("gram", "output", "objective", "nonprivate")
LARGEST_EPSILON = 20.0
_NEEDS_BOUNDS = ("output", "objective")
_CHOICES = {"missing": ("error", "interpolate", "midpoint"), "smoothness": ("high", "mild", "none")}
_ONLY_FOR = {
    "epsilon": ("gram", "output", "objective"), "delta": ("gram", "output", "objective"),
    "smoothness": ("gram",), "reference": ("gram",), "split": ("output", "objective"),
    "lambda": ("output", "objective", "nonprivate"),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """What ``dpsc fit`` does; the fields are its options."""

    data: str
    unit: str
    treated_unit: str
    treatment_time: str
    method: Method = "gram"
    wide: bool = False
    time: str | None = None
    outcome: str | None = None
    time_format: str | None = None
    units: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    bounds: tuple[float, float] | None = None
    missing: Literal["error", "interpolate", "midpoint"] = "error"
    smoothness: Literal["high", "mild", "none"] | None = None
    reference: str | None = None
    split: float | None = None
    lambda_: float | None = None
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ParameterError(f"--method {self.method!r} is not one of {', '.join(METHODS)}.")
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in (None, *allowed):
                raise ParameterError(f"--{name} {getattr(self, name)!r} is not one of {', '.join(allowed)}.")
        for name, methods in _ONLY_FOR.items():
            if getattr(self, "lambda_" if name == "lambda" else name) is not None and self.method not in methods:
                raise ParameterError(f"--{name} belongs to --method {' or '.join(methods)}, not to {self.method}.")
        if self.method in _NEEDS_BOUNDS and self.bounds is None:
            raise ParameterError(
                f"--method {self.method} needs --bounds LO HI, public bounds of the outcome: its noise is calibrated "
                "to them. Take them from what is known of such outcomes, never from the data; --method gram needs none."
            )
        if self.method != "nonprivate" and self.epsilon is None:
            raise ParameterError(f"--method {self.method} needs --epsilon, the privacy budget; start with --epsilon 1.")
        if self.method == "gram" and self.delta is None:
            raise ParameterError("--method gram needs --delta, well below one over the number of donors: --delta 1e-6.")

    @property
    def layout(self) -> Layout:
        """How the table holds the panel."""
        return Layout(self.unit, self.time, self.outcome, self.wide, self.time_format)

    def panel(self) -> Panel:
        """Read the data."""
        files = Files(Path(self.data), self.layout, held=True)
        with in_file(files.path):
            matrix = files.matrix()
            algorithm = self.algorithm()
            panel = Panel.of(
                matrix,
                treated_unit=label_of(matrix.units, self.treated_unit, Parameter("treated_unit", "")),
                treatment_time=dates.typed_period(self.treatment_time, files.times, self.time_format),
                bounds=self.bounds,
                missing=self.missing,
                outcome=files.outcome,
            )
        if isinstance(algorithm, GramRelease):  # found out here, before anything is booked
            with in_file(self.reference or self.data):
                algorithm.reference_for(panel.times)
        return panel

    def algorithm(self) -> SyntheticControl | OutputPerturbation | ObjectivePerturbation | GramRelease:
        """Return the algorithm with its parameters, which knows what it will promise before it sees data."""
        given = {"split": self.split, "lambda_": self.lambda_, "delta": self.delta}
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if self.method == "nonprivate":
            return SyntheticControl(**options)
        options["epsilon"] = self.epsilon
        if self.method == "output":
            return OutputPerturbation(**options)
        if self.method == "objective":
            return ObjectivePerturbation(**options)
        path = None if self.reference is None else Path(self.reference)
        reference = None if path is None else tables.series(path, None, None, self.time_format)
        return GramRelease(**options, smoothness=self.smoothness or "high", reference=reference)

    def run(
        self, panel: Panel, *, on_progress: Callable[[int], None] = lambda drawn: None
    ) -> tuple[NonPrivateResult | PrivateResult | UnprovenResult, Release | None]:
        """Fit; from a Gram release return also the release, which answers further questions for free."""
        algorithm = self.algorithm()
        if isinstance(algorithm, SyntheticControl):
            return algorithm.fit(panel), None
        if isinstance(algorithm, GramRelease):
            release = algorithm.release(panel)
            return release.estimate(panel.target, panel.treatment_time, level=self.level), release
        return replace(algorithm.fit(panel, on_progress=on_progress), level=self.level), None


def require_small_delta(delta: float | None, n: int, i_know: bool) -> None:
    """Refuse a delta that a mechanism which publishes one donor at random would satisfy, unless the caller insists."""
    if delta is not None and delta >= 1 / n and not i_know:
        raise ParameterError(
            f"--delta {delta:g} is not below one over the number of donors, {1 / n:.2g}: a mechanism that publishes "
            "one donor at random would satisfy it. Use --delta 1e-6 or less; to go on all the same add --i-know."
        )


def require_reasonable(epsilon: float | None, i_know: bool) -> None:
    """Refuse a budget that protects little, unless the caller insists."""
    if epsilon is not None and not (isinstance(epsilon, int | float) and math.isfinite(epsilon) and epsilon > 0):
        raise ParameterError(f"--epsilon must be a number above 0, not {epsilon!r}.")
    if epsilon is not None and epsilon > 1e6:
        raise ParameterError("--epsilon above a million is no budget at all; use --method nonprivate.")
    if epsilon is not None and epsilon > LARGEST_EPSILON and not i_know:
        raise ParameterError(
            f"--epsilon {epsilon:g} is above {LARGEST_EPSILON:g} and protects nobody: it lets the odds of any guess "
            f"about a donor change by a factor of e^{epsilon:g}. Budgets around 1 are usual. To go on all the same add "
            "--i-know."
        )
