"""What ``dpsc estimate`` does: read one target or several, and ask the release."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from dpsc.answers.result import Result
from dpsc.answers.study import Study
from dpsc.data import intervention, tables
from dpsc.data import several as several_targets
from dpsc.data.dialects import Dialect
from dpsc.data.formats import in_file
from dpsc.errors import ParameterError, TableError
from dpsc.gram.release import Release
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


def one(
    release: Release,
    target: Path,
    treatment_time: str,
    *,
    time: str | None,
    outcome: str | None,
    time_format: str | None,
    dialect: Dialect,
    level: float,
    title: str,
) -> Result:
    """Return the answer for one target."""
    series = tables.series(target, time, outcome, time_format, dialect)
    with in_file(target):
        first = intervention.typed_period(treatment_time, release.times, time_format)
        return release.estimate(series, first, level=level, title=title)


def several(
    release: Release,
    targets: Path,
    *,
    unit: str,
    start: str,
    weight: str | None,
    time: str | None,
    outcome: str | None,
    time_format: str | None,
    dialect: Dialect,
    level: float,
    title: str,
) -> Study:
    """Return the answers for the units of a long table, and their pooled effects."""
    found = several_targets.read(
        targets, unit=unit, start=start, time=time, outcome=outcome, weight=weight, time_format=time_format,
        dialect=dialect,
    )  # fmt: skip
    with in_file(targets):
        starts = {name: _start(name, text, release, time_format) for name, text in found.starts.items()}
        return release.study(found.series, starts, weights=found.weights, level=level, title=title)


def _start(unit: str, text: str | None, release: Release, time_format: str | None) -> Any:
    if text is None:
        return None
    try:
        return intervention.typed_period(text, release.times, time_format, "treatment_time_column")
    except TableError as problem:
        raise TableError(f"unit {unit!r}: {problem} Leave the cell empty for a unit that was never treated.") from None
