"""What ``dpsc estimate`` refuses before it asks the release."""

from __future__ import annotations

from dpsc.errors import ParameterError


def require_one_question(
    treatment_time: str | None, treatment_time_column: str | None, unit: str | None, weight_column: str | None
) -> None:
    """Refuse options that do not say whether one target or several are asked about."""
    if treatment_time is not None and treatment_time_column is not None:
        raise ParameterError(
            "--treatment-time is for one target, --treatment-time-column for a table of several; give one of them."
        )
    if treatment_time is None and treatment_time_column is None:
        raise ParameterError(
            "say when the intervention came: --treatment-time 2021-03 for one target, or for a table of several "
            "--unit COLUMN --treatment-time-column COLUMN."
        )
    if treatment_time_column is not None and unit is None:
        raise ParameterError("--treatment-time-column needs --unit, the column that names the units.")
    for option, value in (("--unit", unit), ("--weight-column", weight_column)):
        if treatment_time_column is None and value is not None:
            raise ParameterError(f"{option} is for several targets; it needs --treatment-time-column too.")
