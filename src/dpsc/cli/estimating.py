"""What ``dpsc estimate`` refuses before it asks the release."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from dpsc.errors import ParameterError
from dpsc.release.file_format import FORMAT


def require_one_question(treatment_time: str | None, unit: str | None, columns: Mapping[str, str | None]) -> None:
    """Refuse options that do not say whether one target or several are asked about; ``columns`` are for several."""
    treatment_time_column = columns["--treatment-time-column"]
    if treatment_time is not None and treatment_time_column is not None:
        raise ParameterError(
            "--treatment-time is one date, for one target or for all units of a table; --treatment-time-column holds "
            "a date for each unit. Give one of them."
        )
    if treatment_time is None and treatment_time_column is None:
        raise ParameterError(
            "say when the intervention came: --treatment-time 2021-03, or for a table of several units with dates of "
            "their own --unit COLUMN --treatment-time-column COLUMN."
        )
    for option, value in columns.items():
        if unit is None and value is not None:
            raise ParameterError(f"{option} is for several targets; it needs --unit, the column that names the units.")


def require_order(release: Path, target: Path) -> None:
    """Refuse files that were given the other way round."""
    with suppress(OSError):
        with target.open("rb") as file:
            looks_like_a_release = FORMAT.encode() in file.read(400)
        if looks_like_a_release and not release.suffix == ".json":
            raise ParameterError("the release comes first, then the target; they are the other way round.")
