"""One analysis: everything that determines an answer, all of it public, with our own error messages."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from dpsc import checks
from dpsc.custody import public_series
from dpsc.data import intervention, tables
from dpsc.data.arrow import Files
from dpsc.data.columns import Layout
from dpsc.data.dialects import Dialect
from dpsc.data.formats import in_file
from dpsc.data.frames import label_of
from dpsc.data.panel import Panel
from dpsc.data.rules import KERNEL, Missing, Repeated
from dpsc.errors import Parameter, ParameterError
from dpsc.gram.algorithm import GramRelease
from dpsc.weights.classic import SyntheticControl
from dpsc.weights.objective import ObjectivePerturbation
from dpsc.weights.output import OutputPerturbation

Algorithm = SyntheticControl | OutputPerturbation | ObjectivePerturbation | GramRelease

_ONLY_FOR = {
    "epsilon": ("gram", "output", "objective"), "delta": ("gram", "output", "objective"),
    "smoothness": ("gram",), "reference": ("gram",), "scale": ("gram",), "like": ("gram",), "like_before": ("gram",),
    "split": ("output", "objective"), "lambda": ("output", "objective", "nonprivate"),
}  # fmt: skip


def _as_number(value: object) -> object:
    """Understand 1e-6, which YAML reads as text."""
    if isinstance(value, str):
        with suppress(ValueError):
            return float(value)
    return value


def _as_text(value: object) -> object:
    """Understand names that are numbers, and periods that YAML reads as dates."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _as_path(value: object) -> object:
    text = _as_text(value)
    return Path(text) if isinstance(text, str) else text


def _as_pair(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Number = Annotated[float, BeforeValidator(_as_number)]
Text = Annotated[str, BeforeValidator(_as_text)]
File = Annotated[Path, BeforeValidator(_as_path)]
Pair = Annotated[tuple[Number, Number], BeforeValidator(_as_pair)]


class Analysis(BaseModel):
    """What ``dpsc fit`` does; the fields are its options."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, populate_by_name=True)

    data: File
    unit: Text
    treated_unit: Text
    treatment_time: Text
    method: Literal["gram", "output", "objective", "nonprivate"] = "gram"
    wide: bool = False
    time: Text | None = None
    outcome: Text | None = None
    time_format: Text | None = None
    sep: Text | None = None
    decimal: Text | None = None
    thousands: Text | None = None
    encoding: Text | None = None
    sheet: Text | None = None
    measured_in: Text | None = Field(default=None, alias="units")
    title: Text | None = None
    epsilon: Number | None = None
    delta: Number | None = None
    bounds: Pair | None = None
    periods: Text | None = None
    missing: Missing | None = None
    repeated: Repeated = "missing"
    smoothness: Literal["high", "mild", "none"] | None = None
    reference: File | None = None
    scale: Number | None = None
    like: File | None = None
    like_before: Text | None = None
    split: Number | None = None
    lambda_: Number | None = Field(default=None, alias="lambda")
    level: Number = 0.95

    @classmethod
    def checked(cls, said: Mapping[Any, object]) -> Analysis:
        """Return the analysis that options or a spec file describe, or say what is wrong with it."""
        try:
            return cls.model_validate(said)
        except ValidationError as problem:
            raise _refusal(problem) from None

    @model_validator(mode="after")
    def _options_that_belong_together(self) -> Analysis:
        for name, methods in _ONLY_FOR.items():
            if getattr(self, "lambda_" if name == "lambda" else name) is not None and self.method not in methods:
                belongs = f"{{it}} belongs to --method {' or '.join(methods)}, not to {self.method}."
                raise ParameterError(belongs, it=Parameter(name))
        if self.missing == "kernel" and self.method != "gram":
            raise ParameterError("{it} belongs to --method gram, not to " + f"{self.method}.", it=KERNEL)
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
        return self

    @property
    def dialect(self) -> Dialect:
        """What is said about how the table is written."""
        return Dialect(self.sep, self.decimal, self.thousands, self.encoding, self.sheet)

    @property
    def layout(self) -> Layout:
        """How the table holds the panel."""
        return Layout(self.unit, self.time, self.outcome, self.wide, self.time_format, self.repeated)

    def panel(self) -> Panel:
        """Read the data."""
        index = None
        if self.periods is not None:
            index = tables.typed_periods(self.periods, self.reference_path(), self.time_format)
        files = Files(self.data, self.layout, periods=index, held=True, dialect=self.dialect)
        fallback: Missing | None = None if index is None or self.method == "gram" else "interpolate"
        with in_file(self.data):
            matrix = files.matrix()
            return Panel.of(
                matrix,
                treated_unit=label_of(matrix.units, self.treated_unit, Parameter("treated_unit", "")),
                treatment_time=intervention.typed_period(self.treatment_time, files.times, self.time_format),
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
            like=public_series.like(self.like, self.like_before, self.time_format, self.dialect),
        )

    def reference_path(self) -> pd.Series[float] | None:
        """Read the public path to subtract, if there is one."""
        return public_series.reference(self.reference, self.time_format, self.dialect)


def _refusal(problem: ValidationError) -> ParameterError:
    """Return what is wrong in our own words: the first mistake, or else the first name that is missing."""
    error = min(problem.errors(include_url=False), key=lambda e: e["type"] == "missing" and len(e["loc"]) == 1)
    kind, name, field = error["type"], str(error["loc"][0]), Parameter(str(error["loc"][0]))
    if kind in ("extra_forbidden", "invalid_key"):
        known = [field.alias or name for name, field in Analysis.model_fields.items()]
        return ParameterError(f"{name[:40]!r} is not a field of an analysis.{checks.did_you_mean(name[:40], known)}")
    if name == "bounds":
        return ParameterError("{field} must be two numbers, [lo, hi].", field=field)
    if kind == "missing":
        return ParameterError(f"the analysis does not say {name!r}.")
    if kind == "literal_error":
        allowed = error["ctx"]["expected"].replace("'", "").replace(" or ", ", ")
        return ParameterError(f"{{field}} {str(error['input'])[:40]!r} is not one of {allowed}.", field=field)
    wanted = {"float": "a number", "finite": "a finite number", "bool": "true or false"}.get(kind.split("_")[0], "text")
    return ParameterError(f"{{field}} must be {wanted}.", field=field)
