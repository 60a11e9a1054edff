"""Questions to a release about targets in files, one or several in a long table, or about units of a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpsc.analyst.private_panel import PrivatePanel
from dpsc.analyst.release import Release
from dpsc.analyst.releases import Releases
from dpsc.answers.effects import Prices
from dpsc.answers.study import Study
from dpsc.errors import PanelError, Parameter, TableError
from dpsc.periods import match
from dpsc.tables import reader
from dpsc.tables import target_table as several_targets
from dpsc.tables.spec import TableSpec
from dpsc.tables.target_table import Targets
from dpsc.types import Label, Times


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What may be said beside a target and its first treated period, as it is written.

    Attributes
    ----------
    level, title
        Of the answer.
    treatment_end : str, optional
        The last treated period, for one target or for all.
    gap : int
    value_per_unit, cost, currency : optional
        What the effect is worth.
    """

    level: float = 0.95
    title: str = ""
    treatment_end: str | None = None
    gap: int = 0
    value_per_unit: float | None = None
    cost: float | None = None
    currency: str = ""

    def __post_init__(self) -> None:
        Prices.of(self.value_per_unit, self.cost, self.currency)  # refused before a file is opened

    @property
    def said(self) -> dict[str, Any]:
        """What was said of the treatment and its worth, by the names of parameters."""
        names = ("treatment_end", "gap", "value_per_unit", "cost", "currency")
        return {name: getattr(self, name) for name in names if getattr(self, name) not in (None, 0, "")}

    def for_one(self, times: Times, time_format: str | None) -> dict[str, Any]:
        """Return the options of an estimate."""
        end = self.treatment_end
        typed = None if not end else match.typed_period(end, times, time_format, "treatment_end")
        return self._for_all | {"treatment_end": typed}

    def for_several(
        self, times: Times, time_format: str | None, ends: Mapping[str, str | None] | None = None
    ) -> dict[str, Any]:
        """Return the options of a study; ``ends`` are the last treated periods of its units, as they are written."""
        if ends is None:
            return self._for_all | {"treatment_ends": self.for_one(times, time_format)["treatment_end"]}
        dates = {name: _period(name, text, times, time_format, "treatment_end_column") for name, text in ends.items()}
        return self._for_all | {"treatment_ends": {name: date for name, date in dates.items() if date is not None}}

    @property
    def _for_all(self) -> dict[str, Any]:
        names = ("level", "title", "gap", "value_per_unit", "cost", "currency")
        return {name: getattr(self, name) for name in names}


NOTHING_MORE = Wishes()


def pooled(release: Release, pool: str | None) -> Release:
    """Return the release of which the segments answer that were typed as for the command."""
    if pool is None:
        return release
    return release.of(pool if release.segments is None else release.segments.typed(pool))


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
    if spec.time is None and len(left) > 1:
        cells, times = several_targets.sample(table, spec), release.parts[0].times
        found = {name: sum(match.is_period(times, cell) for cell in set(cells[name])) for name in left}
        left = [name for name in left if found[name] == max(found.values())]
    if spec.time is None and len(left) > 1:
        which = " or ".join(map(repr, left))
        raise TableError(f"which column holds the periods, {which}? Say it: {Parameter('time')}.")
    return replace(spec, time=left[0] if spec.time is None and left else spec.time, outcome=outcome)


def of_targets(
    asked: Release | PrivatePanel,
    found: Targets,
    time_format: str | None,
    wishes: Wishes = NOTHING_MORE,
    *,
    by_size: bool = False,
    exclude: Sequence[str] = (),
) -> Study:
    """Return the answers for targets that were read, or for units of a panel, each with its own date."""
    dates = None
    if found.treated is None:
        dates = {name: _period(name, text, asked.times, time_format) for name, text in found.starts.items()}
    said = wishes.for_several(asked.times, time_format, found.ends)
    said |= {"weights": "size" if by_size else found.weights, "groups": found.groups}
    if isinstance(asked, PrivatePanel):
        return asked.study(dates, exclude=exclude, **said)
    return asked.study(found.series, dates, averages=found.averages, treated=found.treated, **said)


def _period(
    unit: str, text: str | None, times: Times, time_format: str | None, column: str = "treatment_time_column"
) -> Label:
    if text is None:
        return None
    which = "that was never treated" if column == "treatment_time_column" else "whose treatment goes on"
    try:
        return match.typed_period(text, times, time_format, column)
    except PanelError as problem:
        raise TableError(f"unit {unit!r}: {problem.message} Leave the cell empty for a unit {which}.") from None
