"""A private panel: a table of units and periods that left the custodian, and everything that an analyst can do with it.

It knows no records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.analyst import panel
from dpsc.answers.effects import Prices
from dpsc.answers.result import PrivateResult, UnprovenResult
from dpsc.answers.study import Study
from dpsc.errors import PanelError, Parameter, ParameterError, ReleaseError
from dpsc.periods.calendar import calendar
from dpsc.periods.treatment import Treatment, Treatments
from dpsc.release import file_format, panel_file
from dpsc.release.panel import NoisyTable, ReleasedPanel, joined
from dpsc.types import Array, DatesLike, GroupsLike, Label, TargetLike, TreatedLike, WeightsLike, to_floats

if TYPE_CHECKING:
    from dpsc.analyst.release import Release
    from dpsc.analyst.releases import Releases


@dataclass(frozen=True, eq=False, repr=False)
class PrivatePanel(ReleasedPanel):
    """A private table of units and periods, made by :class:`dpsc.PanelRelease`: each cell with its noise.

    Attributes
    ----------
    table : NoisyTable
        Units × periods: ``values``, ``noise`` (standard deviations), and ``people`` where they are known. A cell with
        too few people is missing.
    units, times, outcome
        Public, declared by the custodian.
    blocks : tuple of Block
        The releases that it consists of: what one person could add, the law and scale of the noise, the guarantee.
    guarantee : Guarantee or None
        What all of them together promise each person; None if the noise came from a seed or the table was published by
        others, and ``no_guarantee`` then says so.
    publisher : str
        Who promises something, if not dpsc.
    """

    def save(self, path: str | Path) -> None:
        """Write a JSON file, completely or not at all."""
        file_format.write(Path(path), panel_file.dumps(self), unpaid=any(block.unpaid for block in self.blocks))

    @classmethod
    def load(cls, path: str | Path) -> PrivatePanel:
        """Read a JSON file and check it."""
        return file_format.opened(Path(path), lambda text: panel_file.loads(text, cls))[0]

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each unit and period: value, noise and people, for any package that reads panels."""
        return self.table.to_frame()

    def estimate(
        self,
        target: str | int | TargetLike,
        treatment_time: Label = None,
        *,
        exclude: Iterable[str] = (),
        level: float = 0.95,
        title: str = "",
        treatment_end: Label = None,
        gap: int = 0,
        treated: TreatedLike | None = None,
        value_per_unit: float | None = None,
        cost: float | None = None,
        currency: str = "",
    ) -> PrivateResult | UnprovenResult:
        """Return a counterfactual for a unit of the panel, or for a public series; it costs nothing more.

        All other units are donors if they have a number in every period. Periods before the intervention in which the
        target has too few people are not used; after it they have no effect.

        Parameters
        ----------
        target : str, or Series, array, frame
            The name of a unit, or a public series from outside, as for :meth:`dpsc.Release.estimate`.
        treatment_time
            The first treated period; any period with at least 2 before it.
        exclude : names
            Units that are no donors: treated ones, and those that the treatment may have reached.
        level, title, treatment_end, gap, treated, value_per_unit, cost, currency
            As in :meth:`dpsc.Release.estimate`.

        Returns
        -------
        PrivateResult
            As from :meth:`dpsc.Release.estimate`; its ``weights`` are the donors', ``placebos("space")`` are real units
            and ``leave_one_out()`` leaves out each donor in turn.

        Examples
        --------
        >>> rows = np.cumsum(np.random.default_rng(0).normal(size=(9, 12)) + np.sin(np.arange(12)), axis=1)
        >>> table = pd.DataFrame(rows, index=[f"hospital {k}" for k in range(9)], columns=range(2010, 2022))
        >>> panel = PrivatePanel.from_noisy_table(table, noise=0.1, guarantee="published by a friend")
        >>> result = panel.estimate("hospital 3", treatment_time=2018)
        >>> len(result.weights), result.private
        (8, False)
        """
        treatment, prices = Treatment(treatment_end, gap, treated), Prices.of(value_per_unit, cost, currency)
        return panel.estimate(self, target, treatment_time, exclude, level, title, treatment, prices)

    def study(
        self,
        treatment_times: Mapping[str, Label] | None = None,
        *,
        exclude: Iterable[str] = (),
        weights: WeightsLike | None = None,
        groups: GroupsLike | None = None,
        level: float = 0.95,
        title: str = "",
        treatment_ends: DatesLike | None = None,
        gap: int = 0,
        treated: Mapping[Any, TreatedLike] | pd.DataFrame | None = None,
        value_per_unit: float | None = None,
        cost: float | None = None,
        currency: str = "",
    ) -> Study:
        """Return the answers for several treated units, each with its own date, and their pooled effects; all free.

        Parameters
        ----------
        treatment_times : mapping
            The first treated period of each treated unit, by name. None of these units is a donor.
        exclude, level, title
            As in :meth:`estimate`.
        weights : mapping or Series, or "size", optional
            Of the units in pooled effects; equal if left out. "size" counts each unit by its people before its
            treatment, as far as the panel says how many they are: the pooled effect is then that on a usual person.
        groups, treatment_ends, gap, treated, value_per_unit, cost, currency
            As in :meth:`dpsc.Release.study`.
        """
        treatments, prices = Treatments(treatment_ends, gap, treated), Prices.of(value_per_unit, cost, currency)
        return panel.study(self, treatment_times, exclude, weights, groups, level, title, treatments, prices)

    @classmethod
    def join(cls, panels: Iterable[PrivatePanel], *, disjoint: bool = False) -> PrivatePanel:
        """Put releases together: later periods of the same units, or other units with other people.

        Costs of the same units add up. Of units that belong to different people the largest counts.

        Parameters
        ----------
        panels : iterable of PrivatePanel
            Nothing may be in two of them: what is published is final.
        disjoint : bool
            Your word that nobody has records in two of them, not even in different periods; only where units differ. A
            person in two would be promised less than it loses.
        """
        panels = list(panels) if isinstance(panels, Iterable) else []
        if len(panels) < 2 or not all(isinstance(panel, PrivatePanel) for panel in panels):
            raise ReleaseError("join takes a list of all panels, as in PrivatePanel.join([one, other]).")
        if any(panel.publisher for panel in panels):
            raise ReleaseError("tables that others published do not join: nobody knows which people they share.")
        return cls(joined(panels, disjoint=disjoint))

    @classmethod
    def from_noisy_table(
        cls,
        frame: pd.DataFrame,
        *,
        noise: float | str | pd.DataFrame,
        guarantee: str,
        unit: str | None = None,
        time: str | None = None,
        outcome: str | None = None,
    ) -> PrivatePanel:
        """Read a table that others published with known noise: OpenDP, Tumult, Wikimedia's page views, a census.

        Parameters
        ----------
        frame : DataFrame
            A row for each unit and a column for each period; or a row for each cell, with ``unit``, ``time`` and
            ``outcome`` naming the columns. Missing cells stay missing.
        noise : float, str or DataFrame
            The standard deviation of the noise: one number for all cells, the name of its column, or a frame like
            ``frame``. For Laplace noise it is 1.41 times the scale.
        guarantee : str
            Who published it and what they promise, for instance "published by Wikimedia, epsilon 1 per day": answers
            repeat it as the publisher's word.

        Examples
        --------
        >>> views = pd.DataFrame({2021: [10.0, 9, 8], 2022: [11, 9, 9], 2023: [12, 10, 9]}, index=["fr", "de", "it"])
        >>> PrivatePanel.from_noisy_table(views, noise=0.5, guarantee="published by a friend").units
        ('fr', 'de', 'it')
        """
        checks.printable("guarantee", guarantee)
        if not guarantee.strip():
            raise ParameterError(f"{Parameter('guarantee')} says who published the table and what they promise.")
        values, times = _by_unit(frame, unit, time, outcome)
        spread = _noise_like(frame, values, noise, unit, time)
        name = str(values.columns.name or "value") if outcome is None else str(outcome)
        units = tuple(str(label) for label in values.index)
        order = np.argsort(times) if times.is_unique and not times.is_monotonic_increasing else np.arange(len(times))
        numbers = to_floats(values, "the table")[:, order]
        table = NoisyTable(units, times[order].rename(time), name, numbers, spread[:, order])
        return cls((), table, guarantee.strip())


def load(path: str | Path) -> Release | Releases | PrivatePanel:
    """Read a release file of any kind and check it."""
    return load_with_hash(path)[0]


def load_with_hash(path: str | Path) -> tuple[Release | Releases | PrivatePanel, str]:
    """Read a release file of any kind and check it; return also the hash of the file."""
    return file_format.opened(Path(path), parsed)


def parsed(text: str) -> Release | Releases | PrivatePanel:
    """Return the release of any kind that a file holds, checked."""
    from dpsc.analyst.release import Release
    from dpsc.analyst.releases import Releases

    if panel_file.is_panel(text):
        return panel_file.loads(text, PrivatePanel)
    parts, together = file_format.loads_outcomes(text, Release)
    return parts[0] if len(parts) == 1 else Releases(parts, together)


def _by_unit(frame: pd.DataFrame, unit: str | None, time: str | None, outcome: str | None) -> tuple[pd.DataFrame, Any]:
    """Return a table with a row for each unit, and its periods."""
    if not isinstance(frame, pd.DataFrame):
        raise ParameterError(f"{Parameter('frame')} must be a table of pandas, not {checks.shown(frame)}.")
    if unit is None and time is None:
        wide = frame
        try:
            to_floats(wide, "the table")
        except PanelError as problem:
            names = f"{Parameter('unit')}, {Parameter('time')} and {Parameter('outcome')}"
            raise PanelError(
                f"{problem.message} Or, if the table has a row for each cell, give {names}: the names of its columns."
            ) from None
    elif unit is None or time is None or outcome is None:
        raise ParameterError(
            f"give {Parameter('unit')}, {Parameter('time')} and {Parameter('outcome')}, or a table with a row for each "
            "unit and a column for each period."
        )
    else:
        wide = _pivoted(frame, unit, time, outcome)
    return wide, calendar(list(wide.columns), time or "time")


def _pivoted(frame: pd.DataFrame, unit: str, time: str, column: str) -> pd.DataFrame:
    for name in (unit, time, column):
        if not isinstance(name, str) or name not in frame.columns:
            near = checks.did_you_mean(str(name), frame.columns)
            raise ParameterError(f"the table has no column {checks.shown(name)}.{near}")
    if frame.duplicated([unit, time]).any():
        raise ParameterError("the table has two rows for the same unit and period.")
    return frame.pivot(index=unit, columns=time, values=column)


def _noise_like(
    frame: pd.DataFrame, values: pd.DataFrame, noise: float | str | pd.DataFrame, unit: str | None, time: str | None
) -> Array:
    if isinstance(noise, str):
        if unit is None or time is None:
            raise ParameterError(f"{Parameter('noise')} names a column only where {Parameter('unit')} does.")
        spread = to_floats(_pivoted(frame, unit, time, noise), "the noise")
    elif isinstance(noise, pd.DataFrame):
        if not (noise.index.is_unique and noise.columns.is_unique):
            raise ParameterError(f"{Parameter('noise')} has two rows for the same unit, or two columns for one period.")
        spread = to_floats(noise.reindex(index=values.index, columns=values.columns), "the noise")
    else:
        spread = np.full(values.shape, checks.finite_number("noise", noise, at_least=0))
    known = np.isfinite(spread) & (spread >= 0)
    if not known[np.isfinite(to_floats(values, "the table"))].all():
        raise ParameterError(f"{Parameter('noise')} must be a number of at least 0 for every cell that has a value.")
    return np.where(known, spread, np.nan)
