"""Questions to a release about targets in files: one target, or several in a long table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dpsc.analyst.release import Release
from dpsc.answers.result import Result
from dpsc.answers.study import Study
from dpsc.errors import TableError
from dpsc.periods import match
from dpsc.tables import reader
from dpsc.tables import target_table as several_targets
from dpsc.tables.formats import in_file
from dpsc.tables.spec import UNIT, TableSpec
from dpsc.tables.target_table import Targets
from dpsc.types import Label


def one(
    release: Release,
    target: Path,
    treatment_time: str,
    spec: TableSpec,
    *,
    averages: int | None = None,
    level: float = 0.95,
    title: str = "",
) -> Result:
    """Return the answer for one target."""
    several = f" If it is a table of several units, say which column names them: {UNIT}."
    series = reader.series(target, spec, advice=several)
    with in_file(target):
        first = match.typed_period(treatment_time, release.times, spec.time_format)
        return release.estimate(series, first, averages=averages, level=level, title=title)


def several(
    release: Release,
    targets: Path,
    treatment_time: str | None,
    spec: TableSpec,
    *,
    start: str | None = None,
    weight: str | None = None,
    averages: str | int | None = None,
    level: float = 0.95,
    title: str = "",
) -> Study:
    """Return the answers for the units of a long table, and their pooled effects.

    Each unit's first treated period is in the column ``start``, or it is the same for all: ``treatment_time``.
    How many units each target averages is in the column ``averages``, or it is one number for all.
    """
    column = averages if isinstance(averages, str) else None
    found = several_targets.read(
        targets, spec, start=start, weight=weight, averages=column, start_of_all=treatment_time
    )
    with in_file(targets):
        if isinstance(averages, int):
            found = replace(found, averages=dict.fromkeys(found.series, averages))
        if start is None:
            first = match.typed_period(str(treatment_time), release.times, spec.time_format)
            return release.study(
                found.series, first, weights=found.weights, averages=found.averages, level=level, title=title
            )
        return of_targets(release, found, spec.time_format, level=level, title=title)


def of_targets(
    release: Release, found: Targets, time_format: str | None, *, level: float = 0.95, title: str = ""
) -> Study:
    """Return the answers for targets that were read, each with its own first treated period."""
    starts = {name: _start(name, text, release, time_format) for name, text in found.starts.items()}
    return release.study(found.series, starts, weights=found.weights, averages=found.averages, level=level, title=title)


def _start(unit: str, text: str | None, release: Release, time_format: str | None) -> Label:
    if text is None:
        return None
    try:
        return match.typed_period(text, release.times, time_format, "treatment_time_column")
    except TableError as problem:
        raise TableError(
            f"unit {unit!r}: {problem.message} Leave the cell empty for a unit that was never treated."
        ) from None
