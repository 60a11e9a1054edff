"""The answers for several treated units put together: every pooled number is a combination of all units' periods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.answers.base import ONE_DEVIATION, Answer, Drawing, frame_of, worth_of
from dpsc.answers.effects import (
    AFTER,
    LATER_MINUS_EARLIER,
    ON_MINUS_AFTER,
    Effect,
    IntervalKind,
    JointLaw,
    Prices,
    contrasts,
    effects_of,
)
from dpsc.errors import ParameterError
from dpsc.periods.dates import period_name
from dpsc.periods.treatment import OFF, ON
from dpsc.privacy.guarantee import Guarantee, mark_of
from dpsc.types import Array, GroupsLike, Times

EVENT_TIME = "periods since the treatment"
_PERCENTAGE = re.compile(r"\b(\d+)%")


class StudyRepeats(Protocol):
    """Asks the same about all units of a study again; costs nothing."""

    @property
    def earliest(self) -> int:
        """How many periods earlier the whole study can be dated; 0 if a unit has too few periods."""

    @property
    def spread(self) -> float:
        """The standard deviation of the untreated outcome around each unit's level and what donors do on average."""

    def earlier(self, periods: int, *, as_long: bool = False) -> Pooled:
        """Date every unit's treatment so many periods earlier and forecast as many; if asked no more than it has."""

    def elsewhere(self, groups: int, seed: int) -> tuple[Mapping[str, Pooled], bool]:
        """Ask the same about groups of as many units without an effect, and say whether they are real units."""

    def pools(self, level: float) -> Mapping[str, Pooled]:
        """Ask the other pools of segments that are readable, by name; nothing where there are no segments."""


@dataclass(frozen=True, eq=False, repr=False)
class Pooled:
    """The answers for several treated units, and what they say together; :class:`dpsc.Study` explains the fields."""

    results: Mapping[Any, Answer]
    never_treated: Mapping[Any, pd.Series[float]]
    weights: pd.Series[float]
    uncertainty: JointLaw
    level: float = 0.95
    title: str = ""
    prices: Prices | None = None
    groups: Mapping[Any, str] | None = None
    repeats: StudyRepeats = field(kw_only=True)
    figures: ClassVar[Mapping[str, Drawing]] = {}

    @property
    def guarantee(self) -> Guarantee | None:
        """The release's guarantee."""
        return self._first.guarantee

    @property
    def reason(self) -> str:
        """Why there is no guarantee; empty if there is one."""
        return self._first.reason

    @property
    def private(self) -> bool:
        """Whether it carries a guarantee."""
        return self.guarantee is not None

    @property
    def mark(self) -> str:
        """What stands on everything made of it if it carries no guarantee of dpsc; empty if it does."""
        return "" if self.private else mark_of(self.reason)

    @property
    def interval_kind(self) -> IntervalKind:
        """What intervals cover."""
        return self.uncertainty.kind

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings to the reader, each after the names of the units that it is about, those about most units first.

        Notes that differ in their only percentage are one, with the smallest and the largest.
        """
        about: dict[str, list[tuple[str, str]]] = {}
        for name, result in self.results.items():
            for note in result.notes:
                alike = _PERCENTAGE.sub("%", note) if len(_PERCENTAGE.findall(note)) == 1 else note
                about.setdefault(alike, []).append((str(name), note))
        said = []
        for found in sorted(about.values(), key=len, reverse=True):
            (names, notes), note = zip(*found, strict=True), found[0][1]
            if len(set(notes)) > 1:
                shares = sorted(int(share) for each in notes for share in _PERCENTAGE.findall(each))
                note = _PERCENTAGE.sub(f"{shares[0]}% to {shares[-1]}%", note)
            said.append(f"{'all units' if len(found) == len(self.results) > 1 else ', '.join(names)}: {note}")
        return tuple(said)

    @property
    def average(self) -> Effect:
        """The average effect over treated units and periods, with its interval, in percent, and its p-value."""
        return self._pooled(self._per_unit_period[np.newaxis], self.level)[0]

    @property
    def att(self) -> float:
        """The average effect over treated units and periods."""
        return self.average.effect

    @property
    def p_value(self) -> float:
        """The chance of an average effect at least this far from zero if there were none."""
        return self.average.p_value

    @property
    def standard_error(self) -> float:
        """Of the average effect: half the length of its 68% interval."""
        low, high = self.att_interval(ONE_DEVIATION)
        return (high - low) / 2

    def att_interval(self, level: float | None = None) -> tuple[float, float]:
        """Return an interval for the average effect over treated units and periods."""
        found = self._pooled(self._per_unit_period[np.newaxis], self._level(level))[0]
        return found.lower, found.upper

    def effects(self, level: float | None = None) -> pd.DataFrame:
        """Return pooled effects: the average over unit-periods, the average over units, and the total.

        Columns as in :meth:`Answer.effects`. The first average counts every treated unit-period
        once (times its unit's weight), the second every unit.
        """
        rows = np.array([self._per_unit_period, self._per_unit, self._unit_weights * self._counted])
        names = ["average over unit-periods", "average over units", "total"]
        return frame_of(self._pooled(rows, self._level(level)), names)

    @property
    def ended(self) -> bool:
        """Whether the treatment of some unit is off in some period after it began."""
        return any(result.ended for result in self.results.values())

    def contrasts(self, level: float | None = None) -> pd.DataFrame:
        """Return :meth:`Answer.contrasts` averaged over the units that have such periods, by their weights."""
        parts = [contrasts(r.counted, r._in(OFF) * r._seen()) for r in self.results.values()]
        rows = {}
        for name in (AFTER, ON_MINUS_AFTER, LATER_MINUS_EARLIER):
            having = np.array([name in part for part in parts]) * self.weights.to_numpy(dtype=np.float64)
            if having.sum() > 0:
                own = [
                    p.get(name, np.zeros(len(r.observed))) for p, r in zip(parts, self.results.values(), strict=True)
                ]
                rows[name] = np.concatenate([w * part for w, part in zip(having / having.sum(), own, strict=True)])
        return frame_of(self._pooled(np.array(list(rows.values())), self._level(level)) if rows else [], list(rows))

    def worth(self, level: float | None = None) -> pd.DataFrame:
        """Return what the total effect is worth, as :meth:`Answer.worth`.

        Each unit counts as many times as it says that it averages, or once, whatever its weight.
        """
        rows = np.concatenate([result.stands_for * result.counted for result in self.results.values()])
        return worth_of(self.prices, self._pooled(rows[np.newaxis], self._level(level))[0])

    def by_unit(self, level: float | None = None) -> pd.DataFrame:
        """Return one row per treated unit: its date, how many periods were observed, and its average effect."""
        level = self._level(level)
        rows = {}
        for name, result in self.results.items():
            effect = replace(result, level=level).average
            rows[name] = {
                "treatment_time": period_name(result.treatment_time),
                **({"treatment_end": result.treatment_end} if self.ended else {}),
                "periods": int(result.counted.sum()),
                "weight": float(self.weights[name]),
                **effect._asdict(),
                "donors_help": result.verdict.grade if result.verdict else None,
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("unit")

    def by_event_time(self, level: float | None = None, before: int | None = None) -> pd.DataFrame:
        """Return the average effect k periods after the treatment began (k = 0 is the first treated period).

        ``units`` says how many units each rests on: later ones rest on those that were treated early. Rows with k < 0
        are before the treatment: the same forecast, dated earlier, with nothing of the periods that it is compared
        with. Their intervals are as honest as those after; without anticipation their truth is zero.

        Parameters
        ----------
        level : float, optional
        before : int, optional
            How many periods before: by default as many as the longest treatment has, at most a third of the shortest
            time before one; 0 for none.
        """
        after = self._by(self._event_times, EVENT_TIME, level)
        leads = self._leads if before is None else self._dated_earlier(before)
        if leads is None:
            return after
        periods = len(leads._first.counterfactual)
        return pd.concat([leads._by(leads._event_times - periods, EVENT_TIME, self._level(level)), after])

    def by_calendar_time(self, level: float | None = None) -> pd.DataFrame:
        """Return the average effect in each period over the units that are treated in it; ``units`` says how many."""
        return self._by(self._times, "time", level)

    def to_frame(self) -> pd.DataFrame:
        """Return every unit's table, one below the other, with ``unit`` and ``time`` first."""
        frames = [r.to_frame().rename_axis("time").reset_index().assign(unit=name) for name, r in self.results.items()]
        frame = pd.concat(frames, ignore_index=True)
        if "treatment" in frame:
            frame["treatment"] = frame["treatment"].fillna(ON)
        return frame[["unit", *(column for column in frame if column != "unit")]]

    @property
    def _first(self) -> Answer:
        return next(iter(self.results.values()))

    def _level(self, level: float | None) -> float:
        return self.level if level is None else checks.share("level", level)

    def _pooled(self, combinations: Array, level: float) -> list[Effect]:
        return effects_of(self._observed, self._counterfactual, combinations, self.uncertainty, level)

    def _rows(self, keys: Times) -> tuple[list[Any], Array]:
        """Return the keys of unit-periods, and what averages those with the same one: a row for each."""
        groups = sorted(set(keys[self._counted > 0]))
        weights = self._unit_weights * self._counted
        rows = np.array([np.where(keys == key, weights, 0.0) for key in groups])
        return groups, rows / rows.sum(axis=1, keepdims=True)

    def _by(self, keys: Times, name: str, level: float | None) -> pd.DataFrame:
        """Return the weighted average effect of each group of unit-periods with the same key."""
        groups, rows = self._rows(keys)
        found = pd.DataFrame(self._pooled(rows, self._level(level)))
        found.insert(0, "units", (rows > 0).sum(axis=1))
        return found.set_axis(pd.Index(groups, name=name), axis=0)

    @cached_property
    def _leads(self) -> Pooled | None:
        """The study dated earlier, by as many periods as usual."""
        longest = max(len(result.observed) for result in self.results.values())
        shortest = min(result.T0 for result in self.results.values())
        return self._dated_earlier(min(self.repeats.earliest, longest, max(1, shortest // 3)))

    def _dated_earlier(self, periods: int) -> Pooled | None:
        periods = checks.whole_number("before", periods, at_least=0)
        most = self.repeats.earliest
        if periods > most:
            raise ParameterError(f"this study can be dated at most {most} periods earlier, not {periods}.")
        return self.repeats.earlier(periods) if periods else None

    @cached_property
    def _observed(self) -> Array:
        return np.concatenate([r.observed.to_numpy(dtype=np.float64) for r in self.results.values()])

    @cached_property
    def _counterfactual(self) -> Array:
        return np.concatenate([r.counterfactual.to_numpy(dtype=np.float64) for r in self.results.values()])

    @cached_property
    def _counted(self) -> Array:
        return np.concatenate([result.counted for result in self.results.values()])

    @cached_property
    def _times(self) -> Times:
        first, *others = (r.observed.index for r in self.results.values())
        index: Times = first.append(others)
        return index

    @cached_property
    def _event_times(self) -> Times:
        index: Times = pd.Index(np.concatenate([np.arange(len(r.observed)) for r in self.results.values()]))
        return index

    @cached_property
    def _unit_weights(self) -> Array:
        """Each unit's weight, for each of its periods."""
        return np.concatenate([np.full(len(r.observed), self.weights[name]) for name, r in self.results.items()])

    @property
    def _per_unit_period(self) -> Array:
        weights = self._unit_weights * self._counted
        return np.asarray(weights / max(weights.sum(), 1e-300))

    @property
    def _per_unit(self) -> Array:
        parts = []
        for name, result in self.results.items():
            parts.append(self.weights[name] * result.counted / max(1.0, result.counted.sum()))
        total = sum(float(part.sum()) for part in parts)
        return np.concatenate(parts) / max(total, 1e-300)


def group_of_each(units: list[Any], groups: GroupsLike) -> dict[Any, str]:
    """Return the group of every treated unit; refuse where one has none."""
    given = dict(groups.items())
    missing = next((unit for unit in units if unit not in given or pd.isna(given[unit])), None)
    if missing is not None:
        raise ParameterError(f"groups have no group for {str(missing)!r}.")
    return {unit: period_name(given[unit]) for unit in units}
