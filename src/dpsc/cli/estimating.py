"""What ``dpsc estimate`` refuses before it asks the release."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from dpsc.errors import ParameterError
from dpsc.gram.release_file import FORMAT


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


def require_order(release: Path, target: Path) -> None:
    """Refuse files that were given the other way round."""
    with suppress(OSError):
        with target.open("rb") as file:
            looks_like_a_release = FORMAT.encode() in file.read(400)
        if looks_like_a_release and not release.suffix == ".json":
            raise ParameterError("the release comes first, then the target; they are the other way round.")
