"""Donors and a target, in order, with public bounds.

A ``Panel`` belongs to the custodian. It holds raw donor rows, so it never prints them, and only a method whose name
says who may call it returns counts of them. It knows nothing about noise or privacy budgets.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dpsc.custodian.donors.blocks import row_blocks
from dpsc.custodian.donors.donors import Donors, array_matrix, require_public_periods
from dpsc.custodian.donors.frames import Frame, Matrix, PeriodsFrom, read_long, read_wide, text_of
from dpsc.custodian.donors.missing import Bounds, Scaling
from dpsc.errors import PanelError
from dpsc.periods import dates as periods_of
from dpsc.periods.dates import period_name
from dpsc.periods.match import aligned, first_treated
from dpsc.tables.spec import INTERPOLATE, MIDPOINT, Missing, Repeated
from dpsc.types import Array, BoundsLike, Label, Labels, PeriodsLike, TargetLike, Times, to_floats


@dataclass(frozen=True, eq=False, repr=False)
class ScaledPanel:
    """What the paper calls X_pre, X_post and y_pre: entries in [-1, 1] after scaling with public bounds.

    The whole of X is scaled when it is first needed; ``X_blocks`` scales one block of rows at a time.
    ``Z_lower`` and ``Z_upper`` are the scaled bounds of the periods of Z, which may be narrower than [-1, 1].
    """

    donors: Array
    bounds: Bounds
    T0: int
    Z: Array
    y: Array
    Z_lower: Array
    Z_upper: Array

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of X, n × T0."""
        return len(self.donors), self.T0

    @cached_property
    def X(self) -> Array:
        """Donors before the intervention."""
        X = np.empty(self.shape)
        start = 0
        for rows in self.X_blocks():
            X[start : start + len(rows)] = rows
            start += len(rows)
        return X

    def X_blocks(self) -> Iterator[Array]:
        """Yield the rows of X in blocks."""
        pre = slice(None, self.T0)
        for rows in row_blocks(self.donors):
            yield np.clip(self.bounds.scale(rows[:, pre], pre), -1.0, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Panel:
    """Donor outcomes over time, a target, and the time the target was treated.

    Build one with :meth:`from_long`, :meth:`from_wide` or :meth:`from_arrays`.

    Attributes
    ----------
    pool : Donors
        Private. The donors, whose values, labels, bounds and rule the panel shows as its own.
    target : Series
        Public. The treated unit, indexed by time; may be missing after the intervention.
    T0 : int
        The number of periods before the intervention.
    """

    pool: Donors
    target: pd.Series[float]
    T0: int

    @classmethod
    def from_long(
        cls,
        df: Frame,
        *,
        unit: Hashable,
        time: Hashable,
        outcome: Hashable,
        treatment_time: Label,
        treated_unit: Hashable | None = None,
        target: TargetLike | None = None,
        periods: PeriodsLike | None = None,
        donors: Sequence[Hashable] | None = None,
        bounds: BoundsLike | None = None,
        scaling: Scaling = "zero",
        missing: Missing | None = None,
        repeated: Repeated = "missing",
    ) -> Panel:
        """Read one row per unit and period.

        Parameters
        ----------
        df : DataFrame
            Of pandas, polars or Arrow. Never modified.
        unit, time, outcome : column names
            The columns of units, periods and numbers.
        treatment_time
            The first treated period; a day in a month means that month.
        treated_unit : label, optional
            The unit of the frame that was treated. Give this or ``target``.
        target : Series or array, optional
            The treated unit as a series of its own, indexed by time, or in time order.
        periods : str or list, optional
            The periods, declared beforehand: see :meth:`dpsc.Donors.from_long`.
        donors : labels, optional
            The units to use as donors; by default all except the treated unit.
        bounds : pair or one pair per period in time order, optional
            Public bounds of the outcome. Donor values outside are clipped silently.
        scaling : {"zero", "center"}
            See :class:`~dpsc.custodian.donors.missing.Bounds`.
        missing : {"error", "interpolate", "midpoint", "kernel"}, optional
            What to do with missing donor cells: see :meth:`dpsc.Donors.from_long`.
        repeated : {"missing", "sum", "mean", "last"}
            What a cell is that several rows give, the treated unit's too: see :meth:`dpsc.Donors.from_long`.

        Examples
        --------
        >>> df = pd.DataFrame({"who": list("aaabbbccc"), "year": [1, 2, 3] * 3, "x": range(9)})
        >>> Panel.from_long(df, unit="who", time="year", outcome="x",
        ...                 treated_unit="a", treatment_time=3, bounds=(0, 10))
        Panel(2 donors × 3 periods, 2 before and 1 after treatment at 3, bounded)
        """
        matrix = read_long(df, unit, time, outcome, periods, repeated)
        return cls.of(
            matrix,
            treatment_time=treatment_time,
            treated_unit=treated_unit,
            target=target,
            donors=donors,
            bounds=bounds,
            scaling=scaling,
            missing=missing,
            outcome=str(outcome),
        )

    @classmethod
    def from_wide(
        cls,
        df: Frame,
        *,
        treatment_time: Label,
        unit: Hashable | None = None,
        periods: Sequence[Hashable] | None = None,
        treated_unit: Hashable | None = None,
        target: TargetLike | None = None,
        donors: Sequence[Hashable] | None = None,
        bounds: BoundsLike | None = None,
        scaling: Scaling = "zero",
        missing: Missing | None = None,
        repeated: Repeated = "missing",
        outcome: str = "outcome",
    ) -> Panel:
        """Read one row per unit and one column per period.

        The column ``unit`` names the units; without it, the index does. ``periods`` names the columns to use; all
        except ``unit`` by default. The other parameters are those of :meth:`from_long`.

        Examples
        --------
        >>> df = pd.DataFrame({"who": ["a", "b"], 1999: [1, 2], 2000: [2, 3], 2001: [3, 5]})
        >>> Panel.from_wide(df, unit="who", treated_unit="a", treatment_time=2001)
        Panel(1 donors × 3 periods, 2 before and 1 after treatment at 2001, unbounded)
        """
        matrix = read_wide(df, unit, periods, repeated)
        return cls.of(
            matrix,
            treatment_time=treatment_time,
            treated_unit=treated_unit,
            target=target,
            donors=donors,
            bounds=bounds,
            scaling=scaling,
            missing=missing,
            outcome=outcome,
        )

    @classmethod
    def from_arrays(
        cls,
        donors: Any,
        target: TargetLike,
        *,
        treatment_time: Label,
        bounds: BoundsLike | None = None,
        times: Sequence[Any] | None = None,
        scaling: Scaling = "zero",
        missing: Missing | None = None,
        outcome: str = "outcome",
    ) -> Panel:
        """Read donors as an n × T array and the target as a vector of length T.

        Without ``times`` the periods are 0, 1, ..., T-1, so ``treatment_time`` is T0. The target and one pair
        of bounds per period are in the order of ``times``, like the columns of ``donors``.

        Examples
        --------
        >>> Panel.from_arrays(np.zeros((5, 10)), np.ones(10), treatment_time=7, bounds=(-1, 1))
        Panel(5 donors × 10 periods, 7 before and 3 after treatment at 7, bounded)
        """
        return cls.of(
            array_matrix(donors, times),
            treatment_time=treatment_time,
            target=target,
            bounds=bounds,
            scaling=scaling,
            missing=missing,
            outcome=outcome,
            by_column=True,
        )

    @classmethod
    def of(
        cls,
        matrix: Matrix,
        *,
        treatment_time: Label,
        treated_unit: Hashable | None = None,
        target: TargetLike | None = None,
        donors: Sequence[Hashable] | None = None,
        bounds: BoundsLike | None = None,
        scaling: Scaling = "zero",
        missing: Missing | None = None,
        outcome: str = "outcome",
        by_column: bool = False,
    ) -> Panel:
        """Check, order the periods and separate the target from the donors; the matrix may be changed.

        With ``by_column``, target and bounds are in the order of the matrix's columns; otherwise in time order.
        """
        if len(matrix.times) < 3:
            raise PanelError(
                f"the panel has {len(matrix.times)} period(s); at least 2 before and 1 after the treatment are needed."
            )
        order = periods_of.in_order(matrix.times)
        times = matrix.times[order]
        T0 = first_treated(times, treatment_time)
        if T0 < 2:
            raise PanelError(f"treatment time {treatment_time} leaves {T0} period(s) before it; at least 2 are needed.")
        times = periods_of.plain(times)
        given: Any = order if by_column else slice(None)
        if (treated_unit is None) == (target is None):
            raise PanelError("give either treated_unit (a unit of the frame) or target (a series), not both or none.")
        if target is None:
            row = matrix.values[_treated_row(matrix.units, treated_unit), order]
            series = pd.Series(row, index=times, name=str(outcome))
        else:
            series = _target_series(target, given, times).rename(str(outcome))
        rows = _donor_rows(matrix.units, treated_unit, donors)
        pool = Donors.of(
            matrix, rows=rows, bounds=bounds, scaling=scaling, missing=missing, outcome=outcome, by_column=by_column
        )
        _check_target(series, T0, pool.bounds)
        return cls(pool, series, T0)

    def __repr__(self) -> str:
        bounded = "unbounded" if self.bounds is None else "bounded"
        return (
            f"Panel({self.n} donors × {self.T} periods, {self.T0} before and {self.h} after "
            f"treatment at {period_name(self.treatment_time)}, {bounded})"
        )

    @property
    def donors(self) -> Array:
        """Private. One row per donor; see :class:`dpsc.Donors`."""
        return self.pool.values

    @property
    def donor_labels(self) -> Labels:
        """Private. The unit of each row."""
        return self.pool.labels

    @property
    def bounds(self) -> Bounds | None:
        """The bounds of the outcome; public."""
        return self.pool.bounds

    @property
    def outcome(self) -> str:
        """What the numbers are called."""
        return self.pool.outcome

    @property
    def periods_from(self) -> PeriodsFrom:
        """Where the periods are from; public."""
        return self.pool.periods_from

    @property
    def missing(self) -> Missing:
        """The rule for missing donor cells; public."""
        return self.pool.missing

    @property
    def n(self) -> int:
        """The number of donors; public."""
        return int(self.donors.shape[0])

    @property
    def T(self) -> int:
        """The number of periods."""
        return int(self.donors.shape[1])

    @property
    def h(self) -> int:
        """The number of periods from the intervention on."""
        return self.T - self.T0

    @property
    def times(self) -> Times:
        """The periods, in order."""
        return self.target.index

    @property
    def treatment_time(self) -> Any:
        """The first treated period."""
        return self.times[self.T0]

    @property
    def pre(self) -> slice:
        """The periods before the intervention."""
        return slice(None, self.T0)

    @property
    def post(self) -> slice:
        """The periods from the intervention on."""
        return slice(self.T0, None)

    @np.errstate(all="ignore")
    def scaled(self, algorithm: str) -> ScaledPanel:
        """Scale to [-1, 1] with the public bounds, or refuse in the name of the algorithm that needs them."""
        require_public_periods(self.periods_from)
        self.require_filled(algorithm)
        if self.bounds is None:
            raise PanelError(
                f"{algorithm} needs public bounds on the outcome: its noise is calibrated to them. Build the "
                "panel with bounds=(lo, hi), chosen from public knowledge and never from the data."
            )
        # A panel that was rebuilt by hand may hold anything; noise is calibrated to what these clips leave.
        if np.isnan(self.donors.min()):
            raise PanelError("a donor has a missing value; build the panel with Panel.from_arrays, which can fill it.")
        y = np.clip(self.bounds.scale(self.target.to_numpy(dtype=np.float64)[self.pre], self.pre), -1.0, 1.0)
        lower = np.maximum(self.bounds.scale(self.bounds.lower), -1.0)[self.post]
        upper = np.minimum(self.bounds.scale(self.bounds.upper), 1.0)[self.post]
        Z = np.clip(self.bounds.scale(self.donors[:, self.post], self.post), lower, upper)
        return ScaledPanel(self.donors, self.bounds, self.T0, Z, y, lower, upper)

    def require_filled(self, algorithm: str) -> None:
        """Refuse, in the name of an algorithm that needs every cell, a panel whose cells may be missing.

        It depends on the rule alone, never on whether a cell is missing: that is private.
        """
        if self.missing == "kernel":
            raise PanelError(
                f"{algorithm} needs every cell, and this panel leaves missing ones to the kernel of a Gram "
                f"release (the default if periods are declared); build it with {INTERPOLATE} or {MIDPOINT}."
            )

    def custodian_diagnostics(self) -> dict[str, int]:
        """Count what was clipped and filled, and units that look alike. Private: see :class:`dpsc.Donors`.

        Examples
        --------
        >>> panel = Panel.from_arrays([[0, 5, 0]], [0, 0, 0], treatment_time=2, bounds=(-1, 1))
        >>> panel.custodian_diagnostics()
        {'donors': 1, 'clipped_cells': 1, 'filled_cells': 0, 'units_alike': 0}
        """
        return self.pool.custodian_diagnostics()


def require_panel(panel: Any) -> None:
    """Refuse what is not a panel, and say how to build one."""
    if not isinstance(panel, Panel):
        raise PanelError(
            f"this takes a Panel, not a {type(panel).__name__}; build one with Panel.from_long(df, unit=..., time=..., "
            "outcome=..., treated_unit=..., treatment_time=...), Panel.from_wide or Panel.from_arrays."
        )


def _target_series(target: TargetLike, given: Any, times: Times) -> pd.Series[float]:
    """Return the target over the panel's periods, from a series by its index or from an array in the given order."""
    if not isinstance(target, pd.Series):
        values = to_floats(target, "target")
        if values.shape != (len(times),):
            raise PanelError(f"target has shape {values.shape}; expected one value for each of {len(times)} periods.")
        return pd.Series(values[given], index=times)
    series, match = aligned(pd.Series(to_floats(target, "target"), index=target.index), times, whole="panel")
    unknown = [*match.before, *match.between, *match.after]
    if unknown:
        raise PanelError(
            f"target has the period {unknown[0]}, which the donors do not have; the donors' periods run from "
            f"{period_name(times[0])} to {period_name(times[-1])}."
        )
    return series


def _rows_of(units: Labels, labels: list[Hashable]) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return the positions of the labels among the units, as text, -1 for one that is not there."""
    if not all(map(pd.api.types.is_hashable, labels)):
        raise PanelError("a unit's label is a single value, not a list or an array.")
    wanted = pd.Index([text_of(label) for label in labels], dtype=object)
    if not wanted.is_unique:
        raise PanelError("donors= names a unit twice.")
    return np.asarray(pd.Index([text_of(unit) for unit in units], dtype=object).get_indexer(wanted), dtype=np.intp)


def _treated_row(units: Labels, treated_unit: Hashable) -> int:
    row = int(_rows_of(units, [treated_unit])[0])
    if row < 0:
        raise PanelError(f"treated unit {treated_unit!r} is not in the data, whose labels are of kind {units.dtype}.")
    return row


def _donor_rows(
    units: Labels, treated_unit: Hashable | None, donors: Sequence[Hashable] | None
) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return the positions of the donors: those selected, or all but the treated unit."""
    treated = None if treated_unit is None else _treated_row(units, treated_unit)
    if donors is None:
        rows = np.delete(np.arange(len(units)), [] if treated is None else [treated])
    elif isinstance(donors, str) or not pd.api.types.is_list_like(donors):
        raise PanelError("donors= must be a list of unit labels.")
    else:
        rows = _rows_of(units, list(donors))
        if (rows < 0).any():
            raise PanelError(
                f"the unit at position {int(np.argmax(rows < 0))} of donors= is not in the data, "
                f"whose labels are of kind {units.dtype}."
            )
        if treated in rows:
            raise PanelError("the treated unit cannot be one of its own donors.")
        rows = np.sort(rows)
    if not rows.size:
        raise PanelError("no donor is left; a panel needs at least one unit besides the target.")
    return rows


def _check_target(target: pd.Series[float], T0: int, bounds: Bounds | None) -> None:
    """Refuse a target with holes before the intervention, infinities, or values outside the bounds."""
    values = target.to_numpy(dtype=np.float64)
    if np.isinf(values).any():
        raise PanelError(f"target is infinite in period {period_name(target.index[np.isinf(values)][0])}.")
    holes = np.flatnonzero(np.isnan(values[:T0]))
    if holes.size:
        raise PanelError(
            f"target is missing in period {period_name(target.index[holes[0]])}, before the intervention; "
            "every pre-period value is needed."
        )
    if bounds is not None:
        pre = slice(None, T0)
        outside = np.flatnonzero((values[pre] < bounds.lower[pre]) | (values[pre] > bounds.upper[pre]))
        if outside.size:
            raise PanelError(
                f"the target is outside the bounds in period {period_name(target.index[outside[0]])}, before the "
                "intervention; bounds that the target exceeds are too narrow for its donors too. Widen them."
            )
