"""Several treated units, each with its own date: every single answer, and the effects pooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.answers import document, report
from dpsc.answers import figures as plot
from dpsc.answers.base import Drawing
from dpsc.answers.document import Document
from dpsc.answers.effects import Prices
from dpsc.answers.figures import study
from dpsc.answers.joint_tests import USUAL_BOUND, GroupEffects, PreTrend, StudyTrials
from dpsc.answers.placebos import Placebos, other_pools, study_in_space, study_in_time
from dpsc.answers.pooled import EVENT_TIME, Pooled, group_of_each
from dpsc.answers.report import Reportable
from dpsc.answers.result import PrivateResult, UnprovenResult
from dpsc.answers.words import number, p_is, percent, signed, study_verdict
from dpsc.errors import ParameterError
from dpsc.types import GroupsLike

MOST_GROUPS, FEWEST_GROUPS, MOST_FORECASTS = 49, 19, 100  # of a report's placebo: 19 groups tell 1 in 20


@dataclass(frozen=True, eq=False, repr=False)
class Study(Pooled, Reportable):
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
    groups : mapping or None
        The group of each treated unit, if groups were given.
    """

    results: Mapping[Any, PrivateResult | UnprovenResult]
    figures: ClassVar[Mapping[str, Drawing]] = {
        "event": study.event,
        "calendar": study.calendar,
        "units": study.small_multiples,
    }
    _pictures: ClassVar = ("event", "units")

    def valued(self, value_per_unit: float, *, cost: float | None = None, currency: str = "") -> Study:
        """Return the same study with what its total effect is worth, as :meth:`Result.valued`."""
        return replace(self, prices=Prices.of(value_per_unit, cost, currency))

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the pooled effect in words, and the figure."""
        figure = plot.figure_of(plot.draw(self, "event"))
        heading = self.title or f"Study of {len(self.results)} treated units"
        return report.card(heading, self._words(), figure, self.mark, self.reason)

    def _document(self, units: str | None = None, dates_tried: Sequence[str] = ()) -> Document:
        """Return everything as plain values, for programs."""
        return document.of_study(self, self.trials(), units, dates_tried)

    def _page(self, document: Document, command: str = "") -> str:
        """Return the page of a report, given everything as plain values."""
        return report.of_study(self, document, command)

    def _table(self) -> pd.DataFrame:
        """Return one row per unit and period."""
        return self.to_frame()

    def pre_trend(self, before: int | None = None, bound: float | None = None) -> PreTrend:
        """Test whether units differed from their forecasts before the treatment, and whether by less than a bound.

        All units are dated ``before`` periods earlier, as in :meth:`by_event_time`. The first test asks whether all
        averages before the treatment are zero together (F test, from the joint law of all units' errors). The second
        asks the opposite, whether each of them is shown to lie within plus or minus ``bound`` (two one-sided tests at
        5%), as the R package fect does (Liu, Wang and Xu, American Journal of Political Science 2024).

        Parameters
        ----------
        before : int, optional
            How many periods; the default is that of :meth:`by_event_time`.
        bound : float, optional
            By default 0.36 standard deviations of the treated units' outcome before the treatment around each unit's
            level and what the donors do on average, as in fect.
        """
        leads = self._leads if before is None else self._dated_earlier(before)
        if leads is None:
            raise ParameterError("every unit needs at least 3 periods before its treatment; some of them are tested.")
        keys = leads._event_times - len(leads._first.counterfactual)
        times, rows = leads._rows(keys)
        effects = pd.DataFrame(leads._pooled(rows, self.level), index=pd.Index(times, name=EVENT_TIME))
        size = USUAL_BOUND * self.repeats.spread if bound is None else checks.finite_number("bound", bound, above=0)
        average = leads._pooled(leads._per_unit_period[np.newaxis], self.level)[0]
        return PreTrend.of(effects, average, rows, leads.uncertainty, size, usual=bound is None, level=self.level)

    def by_group(self, groups: GroupsLike | None = None, level: float | None = None) -> GroupEffects:
        """Return the average effect of each group of units, and tests of whether groups differ.

        Errors that units share are accounted for: the difference between two groups may be known better than either.

        Parameters
        ----------
        groups : mapping or Series, optional
            The group of each treated unit; by default those that were given when the study was made.
        level : float, optional
        """
        given = self.groups if groups is None else groups
        if given is None:
            raise ParameterError("say which unit is in which group: groups={unit: group, ...}.")
        by_unit = list(group_of_each(list(self.results), given).values())
        names = list(dict.fromkeys(by_unit))
        if len(names) < 2:
            raise ParameterError("groups are compared if there are at least two.")
        whose = np.repeat(by_unit, [len(result.observed) for result in self.results.values()])
        rows = np.array([np.where(whose == name, self._unit_weights * self._counted, 0.0) for name in names])
        empty = next((name for name, row in zip(names, rows, strict=True) if not row.any()), None)
        if empty is not None:
            raise ParameterError(f"group {empty!r} has no observed treated period that counts.")
        pooled = partial(self._pooled, level=self._level(level))
        return GroupEffects.of(names, list(map(by_unit.count, names)), rows, pooled, self.uncertainty)

    def placebos(self, kind: Literal["time", "space"] = "time", *, groups: int = 200, seed: int = 0) -> Placebos:
        """Count how often a pooled effect at least as large shows where there is none.

        Parameters
        ----------
        kind : {"time", "space"}
            Pretend that every unit was treated the same number of periods earlier, for every such number (of very many,
            twelve); or ask the same about groups of as many units without any effect: from a private panel other units
            drawn at random, each treated when a unit of the study was; else made-up units, drawn from the release alone
            and as alike as those of the study are.
        groups, seed : int
            How many groups are drawn at most, and the seed of the drawing; it touches neither donors nor the release's
            noise.
        """
        if kind == "time":
            return study_in_time(self)
        if kind == "space":
            return study_in_space(self, checks.whole_number("groups", groups, at_least=1), seed)
        raise ParameterError(f"kind must be 'time' or 'space', not {kind!r}.")

    def trials(self, *, placebos: bool = True) -> StudyTrials:
        """Return every test, and every placebo, which take longer, for reports: computed once."""
        return self._trials if placebos else self._tests

    @cached_property
    def _tests(self) -> StudyTrials:
        return StudyTrials(
            pre_trend=self.pre_trend() if self.repeats.earliest else None,
            groups=None if self.groups is None else self.by_group(),
        )

    @cached_property
    def _trials(self) -> StudyTrials:
        groups = min(MOST_GROUPS, max(FEWEST_GROUPS, MOST_FORECASTS // len(self.results)))
        in_space = study_in_space(self, groups, 0)
        return replace(
            self._tests,
            in_time=study_in_time(self) if self.repeats.earliest else None,
            in_space=in_space if len(in_space.table) else None,
            sensitivity=other_pools(self, _grade),
        )

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
            f"{number(average.upper)}, {p_is(average.p_value)}",
        ]
        if self.never_treated:
            lines.append(f"never treated, shown for comparison only: {', '.join(map(str, self.never_treated))}")
        lines += [f"note: {note}" for note in self.notes]
        lines.append(f"guarantee: {self.guarantee.brief}" if self.guarantee else f"no guarantee: {self.reason}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Study of {len(self.results)} units, average effect {number(self.att)}>"

    def _words(self) -> list[str]:
        average, units, level = self.average, len(self.results), percent(self.level)
        lines = [
            f"Over {int(self._counted.sum())} treated periods of {units} unit{'s' if units > 1 else ''}, the average "
            f"effect is {signed(average.effect)}, with a {level} interval from {signed(average.lower)} to "
            f"{signed(average.upper)} ({p_is(average.p_value)})."
        ]
        if self.never_treated:
            lines.append(f"Never treated, shown for comparison only: {', '.join(map(str, self.never_treated))}.")
        return lines


def _grade(study: Pooled) -> str | None:
    found = study_verdict(study)
    return None if found is None else found.grade
