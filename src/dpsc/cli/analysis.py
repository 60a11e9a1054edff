"""One analysis: everything that determines an answer, all of it public, with our own error messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd

from dpsc.custodian.donors.donor_files import Files
from dpsc.custodian.donors.frames import label_of
from dpsc.custodian.donors.panel import Panel
from dpsc.custodian.gram.algorithm import GramRelease
from dpsc.custodian.weights.classic import SyntheticControl
from dpsc.custodian.weights.objective import ObjectivePerturbation
from dpsc.custodian.weights.output import OutputPerturbation
from dpsc.errors import Parameter, ParameterError
from dpsc.periods import match
from dpsc.release.kernel import Smoothness
from dpsc.tables import reader, series
from dpsc.tables.dialect import Dialect
from dpsc.tables.formats import in_file
from dpsc.tables.spec import KERNEL, Missing, Repeated, TableSpec

Algorithm = SyntheticControl | OutputPerturbation | ObjectivePerturbation | GramRelease

_ONLY_FOR = {
    "epsilon": ("gram", "output", "objective"), "delta": ("gram", "output", "objective"),
    "smoothness": ("gram",), "reference": ("gram",), "scale": ("gram",), "like": ("gram",), "like_before": ("gram",),
    "split": ("output", "objective"), "lambda_": ("output", "objective", "nonprivate"),
}  # fmt: skip


_CHOICES: dict[str, tuple[str, ...]] = {
    "method": ("gram", "output", "objective", "nonprivate"),
    "missing": get_args(Missing),
    "repeated": get_args(Repeated),
    "smoothness": get_args(Smoothness),
}


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """What ``dpsc fit`` does; the fields are its options."""

    data: Path
    unit: str
    treated_unit: str
    treatment_time: str
    method: Literal["gram", "output", "objective", "nonprivate"] = "gram"
    wide: bool = False
    time: str | None = None
    outcome: str | None = None
    time_format: str | None = None
    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    measured_in: str | None = None
    title: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    bounds: tuple[float, float] | None = None
    periods: str | None = None
    missing: Missing | None = None
    repeated: Repeated = "missing"
    smoothness: Smoothness | None = None
    reference: Path | None = None
    scale: float | None = None
    like: Path | None = None
    like_before: str | None = None
    split: float | None = None
    lambda_: float | None = None
    level: float = 0.95

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Analysis:
        """Return the analysis that options describe; None for what was not said."""
        said = {name: value for name, value in given.items() if value is not None}
        for field in fields(cls):
            if field.default is MISSING and field.name not in said:
                raise ParameterError(f"{Parameter(field.name)} is needed.")
        return cls(**said)

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in allowed:
                raise ParameterError(f"{Parameter(name)} {value[:40]!r} is not one of {', '.join(allowed)}.")
        for name, methods in _ONLY_FOR.items():
            if getattr(self, name) is not None and self.method not in methods:
                raise ParameterError(
                    f"{Parameter(name)} belongs to --method {' or '.join(methods)}, not to {self.method}."
                )
        if self.missing == "kernel" and self.method != "gram":
            raise ParameterError(f"{KERNEL} belongs to --method gram, not to {self.method}.")
        if self.method in ("output", "objective") and self.bounds is None:
            raise ParameterError(
                f"--method {self.method} needs --bounds LO HI, public bounds of the outcome: its noise is calibrated "
                "to them. Take them from what is known of such outcomes, never from the data; --method gram needs none."
            )
        if self.method != "nonprivate" and self.epsilon is None:
            raise ParameterError(f"--method {self.method} needs --epsilon, the privacy budget; start with --epsilon 1.")
        if self.method == "gram" and self.delta is None:
            raise ParameterError("--method gram needs --delta, well below one over the number of donors: --delta 1e-6.")
        _ = self.dialect  # refuses marks that cannot be

    @property
    def dialect(self) -> Dialect:
        """What is said about how the table is written."""
        return Dialect(self.sep, self.decimal, self.thousands, self.encoding, self.sheet)

    @property
    def layout(self) -> TableSpec:
        """How the table holds the panel."""
        columns = TableSpec(
            self.unit, self.time, self.outcome, self.wide, self.time_format, self.repeated, self.missing
        )
        return replace(columns, periods=self.periods, dialect=self.dialect).complete()

    def panel(self) -> Panel:
        """Read the data."""
        index = None
        if self.periods is not None:
            index = reader.typed_periods(self.periods, self.reference_path(), self.time_format)
        files = Files(self.data, self.layout, periods=index, held=True, dialect=self.dialect)
        fallback: Missing | None = None if index is None or self.method == "gram" else "interpolate"
        with in_file(self.data):
            matrix = files.matrix()
            return Panel.of(
                matrix,
                treated_unit=label_of(matrix.units, self.treated_unit, Parameter("treated_unit", "")),
                treatment_time=match.typed_period(self.treatment_time, files.times, self.time_format),
                bounds=self.bounds,
                missing=self.missing or fallback,
                outcome=files.outcome,
            )

    def algorithm(self) -> Algorithm:
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
        return GramRelease(
            **options,
            smoothness=self.smoothness or "high",
            reference=self.reference_path(),
            scale=self.scale,
            like=series.like(self.like, self.like_before, self.layout),
        )

    def reference_path(self) -> pd.Series[float] | None:
        """Read the public path to subtract, if there is one."""
        return series.reference(self.reference, self.layout)
