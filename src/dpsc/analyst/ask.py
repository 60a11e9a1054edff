"""Questions to a release about targets in files, one or several in a long table, or about units of a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dpsc import checks
from dpsc.analyst.private_panel import PrivatePanel
from dpsc.analyst.release import Release
from dpsc.analyst.releases import Releases
from dpsc.answers.result import Result
from dpsc.answers.study import Study
from dpsc.errors import PanelError, ReleaseError, TableError
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
    pool: str | None = None,
    level: float = 0.95,
    title: str = "",
) -> Result:
    """Return the answer for one target; ``pool`` is typed as for the command."""
    several = f" If it is a table of several units, say which column names them: {UNIT}."
    series = reader.series(target, spec, advice=several)
    with in_file(target):
        first = match.typed_period(treatment_time, release.times, spec.time_format)
        return _of(release, pool).estimate(series, first, averages=averages, level=level, title=title)


def _of(release: Release, pool: str | None) -> Release:
    """Return the release of which the segments that were typed answer."""
    if pool is None:
        return release
    return release.of(pool if release.segments is None else release.segments.typed(pool))


def several(
    release: Release,
    targets: Path,
    treatment_time: str | None,
    spec: TableSpec,
    *,
    start: str | None = None,
    weight: str | None = None,
    averages: str | int | None = None,
    pool: str | None = None,
    level: float = 0.95,
    title: str = "",
) -> Study:
    """Return the answers for the units of a long table, and their pooled effects.

    Each unit's first treated period is in the column ``start``, or it is the same for all: ``treatment_time``.
    How many units each target averages is in the column ``averages``, or it is one number for all.
    """
    release = _of(release, pool)
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


def column_of(
    outcome: str, release: Releases, table: Path, spec: TableSpec, others: Sequence[str | None], *, alone: bool
) -> TableSpec:
    """Return how the column of one outcome is read in a table with a column for each outcome.

    ``others`` are columns that hold something else. The periods are in the only one that is left, if it was not said.
    If one outcome ``alone`` is asked about, a table without any of them has its numbers under another name.
    """
    names = reader.open_series(table, spec).schema.names
    if alone and not any(name in names for name in release):
        return replace(spec, outcome=None)
    left = [name for name in names if name not in (*release, *others)]
    time = left[0] if spec.time is None and len(left) == 1 else spec.time
    return replace(spec, time=time, outcome=outcome)


def of_targets(
    release: Release, found: Targets, time_format: str | None, *, level: float = 0.95, title: str = ""
) -> Study:
    """Return the answers for targets that were read, each with its own first treated period."""
    starts = {name: _start(name, text, release, time_format) for name, text in found.starts.items()}
    return release.study(found.series, starts, weights=found.weights, averages=found.averages, level=level, title=title)


def of_panel(
    panel: PrivatePanel,
    target: str,
    treatment_time: str,
    spec: TableSpec,
    *,
    exclude: Sequence[str] = (),
    level: float = 0.95,
    title: str = "",
) -> Result:
    """Return the answer for a unit of a panel, or for a public series in a file."""
    if target in panel.units:
        first = match.typed_period(treatment_time, panel.times, spec.time_format)
        return panel.estimate(target, first, exclude=exclude, level=level, title=title)
    file = Path(target)
    if not file.exists():
        near = checks.did_you_mean(target, panel.units)
        raise ReleaseError(f"{target!r} is no unit of the panel, and there is no such file.{near}")
    series = reader.series(file, spec)
    with in_file(file):
        first = match.typed_period(treatment_time, panel.times, spec.time_format)
        return panel.estimate(series, first, exclude=exclude, level=level, title=title)


def units_of_panel(
    panel: PrivatePanel,
    starts: Mapping[str, str],
    time_format: str | None,
    *,
    exclude: Sequence[str] = (),
    level: float = 0.95,
    title: str = "",
) -> Study:
    """Return the answers for units of a panel, each with its first treated period as it was written."""
    dates = {name: _start(name, text, panel, time_format) for name, text in starts.items()}
    return panel.study(dates, exclude=exclude, level=level, title=title)


def _start(unit: str, text: str | None, release: Release | PrivatePanel, time_format: str | None) -> Label:
    if text is None:
        return None
    try:
        return match.typed_period(text, release.times, time_format, "treatment_time_column")
    except PanelError as problem:
        raise TableError(
            f"unit {unit!r}: {problem.message} Leave the cell empty for a unit that was never treated."
        ) from None
