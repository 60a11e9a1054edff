"""Donors without a target: what a custodian holds and turns into a release. Knows nothing about noise or budgets."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from dpsc.custodian.donors.blocks import row_blocks
from dpsc.custodian.donors.frames import Frame, Matrix, PeriodsFrom, alike, codes_of, read_long, read_wide
from dpsc.custodian.donors.missing import Bounds, Completion, Scaling
from dpsc.custodian.donors.presence import Misfit, custodian_misfit
from dpsc.errors import PanelError
from dpsc.periods import calendar
from dpsc.periods import dates as periods_of
from dpsc.periods.dates import period_name
from dpsc.periods.declare import PERIODS
from dpsc.release.segments import BY, Segments
from dpsc.tables.spec import Missing, Repeated, rule_for
from dpsc.types import Array, BoundsLike, Integers, Labels, PeriodsLike, Positions, Times, to_floats


@dataclass(frozen=True, eq=False, repr=False)
class Donors:
    """Donor outcomes over time.

    Build one with :meth:`from_long`, :meth:`from_wide` or :meth:`from_arrays`; for donors in files use
    :func:`dpsc.scan`, for donors together with a target :class:`dpsc.Panel`.

    Attributes
    ----------
    values : array, n × T
        Private. One row per donor, in the order of first appearance in the input (that order, like n, counts as
        public); missing cells filled, or still missing under the rule "kernel"; values clipped to the bounds if there
        are any.
    times : Index
        The periods, in order.
    labels : Index
        Private. The unit of each row.
    bounds : Bounds or None
        Public. Chosen without looking at the donors.
    outcome : str
        What the numbers are called.
    periods_from : str
        Where the periods are from; a release says it.
    missing : {"error", "interpolate", "midpoint", "kernel"}
        The rule for missing cells; public.
    segments : Segments or None
        The declared segments, public.
    codes : array or None
        Private. Which of them each donor is in.
    """

    values: Array
    times: Times
    labels: Labels
    bounds: Bounds | None = None
    outcome: str = "outcome"
    periods_from: PeriodsFrom = "header"
    missing: Missing = "error"
    segments: Segments | None = None
    codes: Positions | None = None
    _diagnostics: dict[str, int] = field(default_factory=dict)
    _have: Integers | None = None

    @classmethod
    def from_long(
        cls,
        df: Frame,
        *,
        unit: Hashable,
        time: Hashable,
        outcome: Hashable,
        periods: PeriodsLike | None = None,
        bounds: BoundsLike | None = None,
        missing: Missing | None = None,
        repeated: Repeated = "missing",
        by: Hashable | None = None,
        labels: str | Iterable[str] | None = None,
    ) -> Donors:
        """Read one row per unit and period; every unit is a donor.

        Labels of units are read as text, each by itself: give text, because pandas turns large whole numbers beside a
        missing one into floats, which merges them. Rows without a label are left out; a unit none of whose rows can be
        used still counts as a donor.

        Parameters
        ----------
        df : DataFrame
            Of pandas, polars or Arrow. Never modified.
        unit, time, outcome : column names
            The columns of units, periods and numbers.
        periods : str or list, optional
            The periods, declared beforehand: ``"2022-01..2024-12"``, ``"1980..1987"``, or a list. Rows outside are
            ignored, and nothing is refused because of the rows that a donor has. Without it the periods are read from
            the rows; a private release then needs a row for every unit and period, because a period that one donor
            alone has would be published.
        bounds : pair or one pair per period in time order, optional
            Public bounds of the outcome. Values outside are clipped silently.
        missing : {"error", "interpolate", "midpoint", "kernel"}, optional
            What to do with missing cells: refuse; interpolate along the donor's own row, ends held constant; the
            middle of the bounds, which is also what a donor without any value gets; or leave them missing, so that a
            Gram release takes what its public kernel expects there given the donor's own other cells. Default:
            "kernel" if the periods were declared, else refuse.
        repeated : {"missing", "sum", "mean", "last"}
            What a cell is that several rows give, be it by two days of one month: missing; their sum, as of bills;
            their mean, as of readings; or the last of them, as of corrections. Rows without a number do not count.
        by : column name, optional
            Of donors' segments (age band, plan, region): a release then holds a matrix for each, at no further cost.
        labels : str or list of str, optional
            The segments, declared beforehand: ``"basic,plus"``, or a list. A donor is in "other" if its rows name
            another one, several, or none.

        Examples
        --------
        >>> df = pd.DataFrame({"who": list("aaabbb"), "year": [1, 2, 3] * 2, "x": range(6)})
        >>> Donors.from_long(df, unit="who", time="year", outcome="x")
        Donors(2 donors × 3 periods, unbounded)
        """
        segments = Segments.declared(by, labels)
        matrix = read_long(df, unit, time, outcome, periods, repeated, segments)
        return cls.of(matrix, bounds=bounds, missing=missing, outcome=str(outcome), segments=segments)

    @classmethod
    def from_wide(
        cls,
        df: Frame,
        *,
        unit: Hashable | None = None,
        periods: Sequence[Hashable] | None = None,
        bounds: BoundsLike | None = None,
        missing: Missing | None = None,
        repeated: Repeated = "missing",
        outcome: str = "outcome",
        by: Hashable | None = None,
        labels: str | Iterable[str] | None = None,
    ) -> Donors:
        """Read one row per unit and one column per period.

        The column ``unit`` names the units; without it, the index does. ``periods`` names the columns to use; all
        except ``unit`` by default. Two rows of one unit give each of its cells twice. The other parameters are those of
        :meth:`from_long`.
        """
        segments = Segments.declared(by, labels)
        matrix = read_wide(df, unit, periods, repeated, segments)
        return cls.of(matrix, bounds=bounds, missing=missing, outcome=outcome, segments=segments)

    @classmethod
    def from_arrays(
        cls,
        donors: Any,
        *,
        times: Sequence[Any] | None = None,
        bounds: BoundsLike | None = None,
        missing: Missing | None = None,
        outcome: str = "outcome",
        by: Sequence[Any] | None = None,
        labels: str | Iterable[str] | None = None,
    ) -> Donors:
        """Read an n × T array; without ``times`` the periods are 0, 1, ..., T-1. ``by`` has a label for each row."""
        matrix = array_matrix(donors, times)
        given = None if by is None else pd.Series(by, name=getattr(by, "name", None))
        segments = Segments.declared(None if given is None else given.name or "segment", labels)
        if given is not None and segments is not None:
            if len(given) != len(matrix.values):
                raise PanelError(f"{BY} has {len(given)} labels for {len(matrix.values)} donors.")
            codes = codes_of(given, segments)
            matrix = replace(matrix, codes=np.where(codes < 0, segments.other, codes))
        return cls.of(matrix, bounds=bounds, missing=missing, outcome=outcome, by_column=True, segments=segments)

    @classmethod
    def of(
        cls,
        matrix: Matrix,
        *,
        rows: Positions | None = None,
        bounds: BoundsLike | None = None,
        scaling: Scaling = "zero",
        missing: Missing | None = None,
        outcome: str = "outcome",
        by_column: bool = False,
        segments: Segments | None = None,
    ) -> Donors:
        """Take rows of a matrix (all by default), order the periods, fill and clip; the matrix may be changed.

        With ``by_column``, bounds per period are in the order of the matrix's columns; otherwise in time order.
        """
        order = periods_of.in_order(matrix.times)
        times = periods_of.plain(matrix.times[order])
        given: Any = order if by_column else slice(None)
        public = None if bounds is None else Bounds.parse(bounds, len(times), scaling, given)
        rule = rule_for(missing, matrix.periods_from == "declared")
        completion = Completion(times, rule, public, declared=matrix.periods_from == "declared")
        rows = np.arange(len(matrix.values)) if rows is None else rows

        values = matrix.values  # copied only where rows or columns move
        if len(rows) < len(values) or (order != np.arange(len(order))).any():
            values = values[np.ix_(rows, order)]
        clipped = filled = first = 0
        have = np.zeros(len(times), dtype=np.int64)
        for part in row_blocks(values):
            if public is not None:
                clipped += int(((part < public.lower) | (part > public.upper)).sum())
            have += np.isfinite(part).sum(axis=0)
            filled += completion.in_place(part, first)
            first += len(part)
        values.flags.writeable = False
        diagnostics = {"donors": len(rows), "clipped_cells": clipped, "filled_cells": filled, **matrix.counts}
        codes = None if matrix.codes is None else matrix.codes[rows]
        units, source = matrix.units[rows], matrix.periods_from
        return cls(values, times, units, public, outcome, source, rule, segments, codes, diagnostics, have)

    def __repr__(self) -> str:
        bounded = "unbounded" if self.bounds is None else "bounded"
        return f"Donors({len(self.values)} donors × {len(self.times)} periods, {bounded})"

    def custodian_diagnostics(self) -> dict[str, int]:
        """Count what was clipped, filled or repeated, and units that look alike. Private: for the custodian only.

        Two labels look alike if they differ only in case, spaces or Unicode form. If they are one person, that person
        counts as two donors, and the guarantee does not hold for them.
        """
        return {**self._diagnostics, "units_alike": alike(self.labels)}

    def custodian_misfit(self) -> Misfit | None:
        """Say which periods would fit if many declared ones have no donor; None if they fit. Private.

        Nothing is refused, because one donor could decide about a refusal.

        Examples
        --------
        >>> weeks = [f"2024-01-{day:02}" for day in (1, 8, 15, 22, 29)]
        >>> df = pd.DataFrame({"who": ["a"] * 5 + ["b"] * 5, "week": weeks * 2, "x": range(10)})
        >>> columns = {"unit": "who", "time": "week", "outcome": "x"}
        >>> Donors.from_long(df, **columns, periods="2024-01-01..2024-01-29").custodian_misfit().fitting
        '2024-01-01..2024-01-29 by week'
        """
        if self.periods_from != "declared" or self._have is None:
            return None
        return custodian_misfit(self._have, self.times)


def array_matrix(donors: Any, times: Sequence[Any] | None) -> Matrix:
    """Return a copy of an n × T array as a matrix."""
    values = to_floats(donors, "donors")
    if values.ndim != 2:
        raise PanelError(f"donors must be an n × T array, not {values.ndim}-dimensional.")
    index = calendar.calendar(range(values.shape[1]) if times is None else times)
    if len(index) != values.shape[1]:
        raise PanelError(f"donors have {values.shape[1]} columns but there are {len(index)} times.")
    if not index.is_unique:
        raise PanelError(f"the time {period_name(index[index.duplicated()][0])} occurs twice.")
    return Matrix(values, pd.RangeIndex(values.shape[0]), index)


def require_public_periods(periods_from: PeriodsFrom) -> None:
    """Refuse to release anything over periods that the rows of single donors may have added."""
    if periods_from == "rows with gaps":
        raise PanelError(
            "the periods were read from the donors, and not every unit has a row for each: a period that one "
            f"donor alone has would be published. Declare them, for example with {PERIODS}."
        )
