"""Several treated units, each with its own date: every single answer, and the effects pooled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.answers import pages, plot
from dpsc.answers.effects import Effect, Uncertainty, effects_of
from dpsc.answers.figures import study
from dpsc.answers.report import Files, Written, of_study
from dpsc.answers.result import PrivateResult, UnprovenResult
from dpsc.answers.words import number, percent, signed
from dpsc.periods.dates import period_name
from dpsc.privacy.guarantee import Guarantee
from dpsc.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FIGURES: Mapping[str, plot.Drawing] = {
    "event": study.event,
    "calendar": study.calendar,
    "units": study.small_multiples,
}


@dataclass(frozen=True, eq=False, repr=False)
class Study(Written):
    """The answers for several treated units from one release, and what they say together.

    Attributes
    ----------
    results : mapping
        The answer for each treated unit, by name.
    never_treated : mapping
        Units without a treatment time, with their observed paths: they are there for the reader to see and are not
        used for any number.
    weights : Series
        Of the treated units in pooled numbers, by name.
    uncertainty : Uncertainty
        Of all units' periods from their interventions on, one unit after the other. It knows what units share.
    level : float
    title : str
    """

    results: Mapping[Any, PrivateResult | UnprovenResult]
    never_treated: Mapping[Any, pd.Series[float]]
    weights: pd.Series[float]
    uncertainty: Uncertainty
    level: float = 0.95
    title: str = ""

    @property
    def figures(self) -> Mapping[str, plot.Drawing]:
        """The kinds of figures that :meth:`plot` draws."""
        return _FIGURES

    def plot(
        self,
        kind: str = "event",
        ax: Axes | None = None,
        title: str | None = None,
        figsize: tuple[float, float | None] | None = None,
    ) -> Axes:
        """Draw a figure and return its Axes; a notebook shows it, elsewhere save it with ``.figure.savefig(...)``.

        Parameters
        ----------
        kind : str
            "event" (the average effect k periods after adoption), "calendar" (in each period), or "units" (every unit
            in a panel of its own).
        ax : Axes, optional
            Draw here instead of on a new figure; not for "units".
        title : str, optional
            Instead of the study's own question. To change it later: ``ax.set_title(..., loc="left")``.
        figsize : pair of float, optional
            Of a new figure, in inches.
        """
        return plot.draw(self, kind, ax=ax, title=title, figsize=figsize, shown=True)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the pooled effect in words, and the figure."""
        figure = plot.figure_of(plot.draw(self, "event"))
        return pages.card(self.title or f"Study of {len(self.results)} treated units", self._words(), figure,
                        self.private, self.reason)  # fmt: skip

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
    def notes(self) -> tuple[str, ...]:
        """Warnings to the reader, each after the names of the units that it is about."""
        about: dict[str, list[str]] = {}
        for name, result in self.results.items():
            for note in result.notes:
                about.setdefault(note, []).append(str(name))
        every = len(self.results)
        who = {note: "all units" if len(names) == every > 1 else ", ".join(names) for note, names in about.items()}
        return tuple(f"{names}: {note}" for note, names in who.items())

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

    def att_interval(self, level: float | None = None) -> tuple[float, float]:
        """Return an interval for the average effect over treated units and periods."""
        found = self._pooled(self._per_unit_period[np.newaxis], self._level(level))[0]
        return found.lower, found.upper

    def effects(self, level: float | None = None) -> pd.DataFrame:
        """Return pooled effects: the average over unit-periods, the average over units, and the total.

        Columns as in :meth:`dpsc.answers.result.Result.effects`. The first average counts every treated unit-period
        once (times its unit's weight), the second every unit.
        """
        weights = self._unit_weights * self._seen
        rows = np.array([self._per_unit_period, self._per_unit, weights])
        names = pd.Index(["average over unit-periods", "average over units", "total"], name="effect of")
        return pd.DataFrame(self._pooled(rows, self._level(level)), index=names)

    def by_unit(self, level: float | None = None) -> pd.DataFrame:
        """Return one row per treated unit: its date, how many periods were observed, and its average effect."""
        level = self._level(level)
        rows = {}
        for name, result in self.results.items():
            effect = replace(result, level=level).average
            rows[name] = {"treatment_time": period_name(result.treatment_time),
                          "periods": int(result.observed.notna().sum()), "weight": float(self.weights[name]),
                          **effect._asdict(),
                          "donors_help": result.verdict.grade if result.verdict else None}  # fmt: skip
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("unit")

    def by_event_time(self, level: float | None = None) -> pd.DataFrame:
        """Return the average effect k periods after adoption (k = 0 is the first treated period).

        ``units`` says how many units each rests on: later ones rest on those that adopted early.
        """
        return self._by(self._event_times, "periods after adoption", level)

    def by_calendar_time(self, level: float | None = None) -> pd.DataFrame:
        """Return the average effect in each period over the units that are treated in it; ``units`` says how many."""
        return self._by(self._times, "time", level)

    def to_frame(self) -> pd.DataFrame:
        """Return every unit's table, one below the other, with ``unit`` and ``time`` first."""
        frames = [r.to_frame().rename_axis("time").reset_index().assign(unit=name) for name, r in self.results.items()]
        frame = pd.concat(frames, ignore_index=True)
        return frame[["unit", *(column for column in frame if column != "unit")]]

    def files(self, units: str | None = None, dates_tried: Iterable[Any] = ()) -> Files:
        """Return the files of a report, each made when it is asked for; it lists other dates that were tried."""
        return of_study(self, units, dates_tried)

    def summary(self) -> str:
        """Describe the study in plain text."""
        average, level = self.average, percent(self.level)
        lines = [
            f"{len(self.results)} treated units",
            "",
            self.by_unit()[["treatment_time", "periods", "effect", "lower", "upper", "p_value"]].to_string(
                float_format=number
            ),
            "",
            f"average effect over unit-periods: {number(average.effect)}, {level} interval {number(average.lower)} to "
            f"{number(average.upper)}, p = {average.p_value:.2g}",
        ]
        if self.never_treated:
            lines.append(f"never treated, shown for the reader only: {', '.join(map(str, self.never_treated))}")
        lines += [f"note: {note}" for note in self.notes]
        lines.append(f"guarantee: {self.guarantee}" if self.private else f"no guarantee: {self.reason}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Study of {len(self.results)} units, average effect {number(self.att)}>"

    def _words(self) -> list[str]:
        average, units, level = self.average, len(self.results), percent(self.level)
        lines = [
            f"Over {int(self._seen.sum())} treated periods of {units} unit{'s' if units > 1 else ''}, the average "
            f"effect is {signed(average.effect)}, with a {level} interval from {signed(average.lower)} to "
            f"{signed(average.upper)} (p = {average.p_value:.2g})."
        ]
        if self.never_treated:
            lines.append(f"Never treated, shown for the reader only: {', '.join(map(str, self.never_treated))}.")
        return lines

    @property
    def _first(self) -> PrivateResult | UnprovenResult:
        return next(iter(self.results.values()))

    def _level(self, level: float | None) -> float:
        return self.level if level is None else checks.share("level", level)

    def _pooled(self, combinations: Array, level: float) -> list[Effect]:
        return effects_of(self._observed, self._counterfactual, combinations, self.uncertainty, level)

    def _by(self, keys: pd.Index[Any], name: str, level: float | None) -> pd.DataFrame:
        """Return the weighted average effect of each group of unit-periods with the same key."""
        groups = sorted(set(keys[self._seen]))
        weights = self._unit_weights * self._seen
        rows = np.array([np.where(keys == key, weights, 0.0) for key in groups])
        found = pd.DataFrame(self._pooled(rows / rows.sum(axis=1, keepdims=True), self._level(level)))
        found.insert(0, "units", (rows > 0).sum(axis=1))
        return found.set_axis(pd.Index(groups, name=name), axis=0)

    @cached_property
    def _observed(self) -> Array:
        return np.concatenate([r.observed.to_numpy(dtype=np.float64) for r in self.results.values()])

    @cached_property
    def _counterfactual(self) -> Array:
        return np.concatenate([r.counterfactual.to_numpy(dtype=np.float64) for r in self.results.values()])

    @cached_property
    def _seen(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return ~np.isnan(self._observed)

    @cached_property
    def _times(self) -> pd.Index[Any]:
        first, *others = (r.observed.index for r in self.results.values())
        index: pd.Index[Any] = first.append(others)
        return index

    @cached_property
    def _event_times(self) -> pd.Index[Any]:
        index: pd.Index[Any] = pd.Index(np.concatenate([np.arange(len(r.observed)) for r in self.results.values()]))
        return index

    @cached_property
    def _unit_weights(self) -> Array:
        """Each unit's weight, for each of its periods."""
        return np.concatenate([np.full(len(r.observed), self.weights[name]) for name, r in self.results.items()])

    @property
    def _per_unit_period(self) -> Array:
        weights = self._unit_weights * self._seen
        return np.asarray(weights / max(weights.sum(), 1e-300))

    @property
    def _per_unit(self) -> Array:
        parts = []
        for name, result in self.results.items():
            seen = result.observed.notna().to_numpy(dtype=np.float64)
            parts.append(self.weights[name] * seen / max(1.0, seen.sum()))
        total = sum(float(part.sum()) for part in parts)
        return np.concatenate(parts) / max(total, 1e-300)
