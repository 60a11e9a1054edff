"""Where people are, and how they are added up there: in a frame, in files, or by a cluster.

A source draws no noise. What it returns is private and stays with the custodian.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from dpsc.custodian.donors.donor_files import Engine, chosen
from dpsc.custodian.donors.frames import Frame
from dpsc.custodian.donors.people import OnRows
from dpsc.custodian.donors.records import Grid, Records
from dpsc.custodian.groups.bounding import Bounding, add_up
from dpsc.custodian.groups.people_files import AT_ONCE, PEOPLE, FilePeople, require_outcome
from dpsc.errors import Parameter, ParameterError
from dpsc.periods import dates
from dpsc.periods.declare import PERIODS, declared
from dpsc.release.panel import require_units
from dpsc.tables.places import place_of
from dpsc.tables.spec import TableSpec
from dpsc.types import Integers, PeriodsLike, Times


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Records of people in units and periods, in memory; for files use :func:`dpsc.scan` with ``person``.

    Build it with :meth:`from_long`. Private, but for the declared units and periods and the outcome's name.
    """

    grid: Grid
    outcome: str
    _records: Records
    _has_outcome: bool = True

    @classmethod
    def from_long(
        cls,
        frame: Frame,
        *,
        person: Hashable,
        unit: Hashable,
        time: Hashable,
        outcome: Hashable | None = None,
        units: Iterable[str],
        periods: PeriodsLike,
    ) -> People:
        """Read one row per record: who, where, when and how much, in any order and any number.

        Rows without a person, and rows outside the declared units and periods, are left out.

        Parameters
        ----------
        frame : DataFrame
            Of pandas, polars or Arrow. Never modified.
        person, unit, time : column names
            Identifiers are read as text, each by itself. Give text: pandas turns large whole numbers beside a missing
            one into floats, which makes one person of two.
        outcome : column name, optional
            Not needed to count people.
        units : list of str
            The units, declared beforehand, as the table writes them.
        periods : str or list
            The periods, declared beforehand: ``"2022-01..2024-12"``, ``"1980..1987"``, or a list.

        Examples
        --------
        >>> import pandas as pd
        >>> visits = pd.DataFrame({"who": ["7", "7", "8"], "clinic": ["A", "B", "A"], "year": [1, 2, 2], "cost": 5.0})
        >>> People.from_long(
        ...     visits, person="who", unit="clinic", time="year", outcome="cost", units=["A", "B", "C"], periods=[1, 2]
        ... )
        People(3 units × 2 periods)
        """
        grid = grid_of(units, periods, None, str(time))
        records = grid.of_frame(frame, person, unit, time, outcome)
        return cls(grid, PEOPLE if outcome is None else str(outcome), records, outcome is not None)

    @property
    def units(self) -> tuple[str, ...]:
        """The declared units, in their order."""
        return self.grid.units

    @property
    def times(self) -> Times:
        """The declared periods, in order."""
        return self.grid.times

    def rows_expected(self) -> int:
        """Return how many records there are."""
        return len(self._records.keys)

    def add_up(self, summand: Bounding, on_rows: OnRows) -> Integers:
        """Return the exact sum over all people."""
        require_outcome(summand, self._has_outcome)
        return add_up(self._blocks(), summand, on_rows, expected=self.rows_expected())

    def _blocks(self) -> Iterator[Records]:
        for start in range(0, self.rows_expected(), AT_ONCE):
            here = slice(start, start + AT_ONCE)
            yield Records(self._records.keys[here], self._records.cells[here], self._records.values[here])

    def __repr__(self) -> str:
        return f"People({len(self.units)} units × {len(self.times)} periods)"


def people_in(
    path: str | os.PathLike[str],
    spec: TableSpec,
    units: Iterable[str] | None,
    periods: PeriodsLike | None,
    *,
    engine: Engine = "auto",
    scheduler: str | None = None,
    workers: int | None = None,
) -> FilePeople:
    """Return the people of a file or folder that a specification describes; otherwise as :func:`dpsc.scan`."""
    where = place_of(path)
    if spec.time_format is not None:
        dates.require_format(spec.time_format)
    engine = chosen(where, engine, scheduler, workers)
    spec.complete()
    grid = grid_of(units, periods, spec.time_format, str(spec.time))
    if engine != "dask":
        return FilePeople(where, spec, grid, None if engine == "auto" else engine == "memory")
    from dpsc.custodian.groups.dask import DaskPeople

    return DaskPeople(where.absolute(), spec, grid, scheduler=scheduler, workers=workers)


def grid_of(units: Iterable[str] | None, periods: PeriodsLike | None, time_format: str | None, time: str) -> Grid:
    """Return the declared units and periods, or say that they must be declared."""
    if units is None or periods is None:
        missing = Parameter("units", "A,B,C") if units is None else PERIODS
        raise ParameterError(
            f"declare {missing}: units and periods of people must be public lists, because those of single people "
            "would otherwise be published."
        )
    names = () if isinstance(units, str) else tuple(units)
    if not names or not all(isinstance(name, str) for name in names):
        raise ParameterError(f"{Parameter('units')} must be a list of names, as the table writes them.")
    require_units(names)
    return Grid(names, declared(periods, time_format).rename(time), time_format)
