"""When a treatment is on: from its first period until it ends, or in spells; and periods left out as it begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.errors import PanelError, Parameter, ParameterError
from dpsc.periods.calendar import is_missing
from dpsc.periods.dates import period_name
from dpsc.periods.match import aligned, first_treated
from dpsc.types import Array, Label, Times, to_floats

Phase = Literal["on", "left out", "off"]
"""What a period from the first treated one on is: treated, treated and left out, or not treated any more."""
ON: Phase = "on"
LEFT_OUT: Phase = "left out"
OFF: Phase = "off"


@dataclass(frozen=True, eq=False)
class Treatment:
    """When a treatment is on, beside its first period, as somebody says it.

    Parameters
    ----------
    end : optional
        The last treated period; without one the treatment goes on.
    gap : int
        How many periods from the first treated one on are left out: neither fitted nor counted.
    on : Series, optional
        Instead of the first and the last treated period: 1 in each treated period and 0 in each other one.

    Examples
    --------
    >>> years = pd.Index(range(2010, 2018))
    >>> Treatment(2015, gap=1).phases(years, 3)
    ('left out', 'on', 'on', 'off', 'off')
    >>> spells = Treatment(on=pd.Series([0, 0, 1, 1, 0, 1, 0, 0], index=years))
    >>> spells.begins(years, None), spells.phases(years, 2)
    (2012, ('on', 'on', 'off', 'on', 'off', 'off'))
    """

    end: Label = None
    gap: int = 0
    on: Any = None

    def begins(self, times: Times, treatment_time: Label) -> Label:
        """Return the first treated period, as it was given or as the spells show it."""
        if self.on is None:
            if treatment_time is None:
                raise ParameterError(f"say when the treatment began: {Parameter('treatment_time')}.")
            return treatment_time
        if treatment_time is not None or self.end is not None:
            raise ParameterError(
                f"{Parameter('treated')} says itself when the treatment is on: leave out "
                f"{Parameter('treatment_time')} and {Parameter('treatment_end')}."
            )
        first: Label = times[int(self._spells(times).argmax())]
        return first

    def phases(self, times: Times, T0: int) -> tuple[Phase, ...]:
        """Return what each period from T0 on is; nothing if the treatment is on in all of them and all count."""
        checks.whole_number("gap", self.gap, at_least=0)
        on = np.ones(len(times) - T0, dtype=bool)
        if self.on is not None:
            on = self._spells(times)[T0:] > 0
        elif self.end is not None:
            last = first_treated(times, self.end, name="treatment_end")
            if last < T0:
                raise ParameterError(
                    f"the last treated period, {period_name(times[last])}, is before the first, "
                    f"{period_name(times[T0])}."
                )
            on[last - T0 + 1 :] = False
        found = [ON if treated else OFF for treated in on]
        for k in range(min(self.gap, len(found))):
            found[k] = LEFT_OUT if found[k] == ON else OFF
        if ON not in found:
            raise ParameterError(f"{Parameter('gap', self.gap)} leaves out every treated period.")
        return () if all(phase == ON for phase in found) else tuple(found)

    def _spells(self, times: Times) -> Array:
        """Return 1 or 0 for every period; one that is not named is as the one before it."""
        given = self.on if isinstance(self.on, pd.Series) else pd.Series(self.on)
        if not isinstance(self.on, pd.Series | dict):
            given.index = times[: len(given)] if len(given) <= len(times) else given.index
        values = to_floats(given, "the column of treated periods")
        if not np.isin(values, (0.0, 1.0)).all():
            raise PanelError("the column of treated periods must be 1 in each of them and 0 in each other one.")
        known = aligned(pd.Series(values, index=given.index), times, what="column of treated periods", spare=True)[0]
        spells = known.ffill().fillna(0.0).to_numpy(dtype=np.float64)
        if not spells.any():
            raise PanelError("the column of treated periods is 0 in every period of the release.")
        return np.asarray(spells)


@dataclass(frozen=True, eq=False)
class Treatments:
    """When the treatments of several units are on, beside their first periods, as somebody says it.

    Parameters
    ----------
    ends : mapping or Series, or one period for all, optional
        The last treated periods; the treatment of a unit without one goes on.
    gap : int
        As for one treatment, for each.
    on : mapping of names to Series, or frame, optional
        Instead of first and last treated periods; a unit that is 0 in every period was never treated.
    """

    ends: Any = None
    gap: int = 0
    on: Any = None

    def begins(self, times: Times, treatment_times: Any) -> Any:
        """Return the first treated periods, as they were given or by unit, None for one that was never treated."""
        if self.on is None:
            return treatment_times
        if treatment_times is not None or self.ends is not None:
            raise ParameterError(
                f"{Parameter('treated')} says itself when treatments are on: leave out {Parameter('treatment_times')} "
                f"and {Parameter('treatment_ends')}."
            )
        if not isinstance(self.on, Mapping | pd.DataFrame):
            raise ParameterError(f"{Parameter('treated')} must be a mapping of names to series, or a frame.")
        return {
            name: Treatment(on=series).begins(times, None) if to_floats(series, "treated").any() else None
            for name, series in self.on.items()
        }

    def of(self, names: Iterable[Label]) -> dict[Label, Treatment]:
        """Return the treatment of each unit."""
        names = list(names)
        if self.on is not None:
            return {name: Treatment(gap=self.gap, on=self.on[name]) for name in names if name in self.on}
        if not isinstance(self.ends, Mapping | pd.Series):
            return dict.fromkeys(names, Treatment(self.ends, self.gap))
        given = dict(self.ends)
        unknown = next((name for name in given if name not in names), None)
        if unknown is not None:
            near = checks.did_you_mean(str(unknown), [str(name) for name in names])
            raise ParameterError(f"{Parameter('treatment_ends')} names {unknown!r}, which is not a treated unit.{near}")
        ends = {name: given.get(name) for name in names}
        return {name: Treatment(None if is_missing(end) else end, self.gap) for name, end in ends.items()}


EVER_SINCE = Treatment()
