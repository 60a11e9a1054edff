"""Several treated units, each with its own date: every single answer, and the effects pooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from dpsc.answers import document, report
from dpsc.answers import figures as plot
from dpsc.answers.base import Drawing, Pooled
from dpsc.answers.document import Document
from dpsc.answers.effects import Prices
from dpsc.answers.figures import study
from dpsc.answers.report import Reportable
from dpsc.answers.result import PrivateResult, UnprovenResult
from dpsc.answers.words import number, percent, signed

if TYPE_CHECKING:
    pass


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
        return report.card(heading, self._words(), figure, self.private, self.reason)

    def _document(self, units: str | None = None, dates_tried: Sequence[str] = ()) -> Document:
        """Return everything as plain values, for programs."""
        return document.of_study(self, units, dates_tried)

    def _page(self, document: Document, command: str = "", brief: bool = False) -> str:
        """Return the page of a report, or the one that fits on one side, given everything as plain values."""
        if brief:
            return report.brief(self, self._pictures[0], document)
        return report.of_study(self, document, command)

    def _table(self) -> pd.DataFrame:
        """Return one row per unit and period."""
        return self.to_frame()

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
            f"Over {int(self._counted.sum())} treated periods of {units} unit{'s' if units > 1 else ''}, the average "
            f"effect is {signed(average.effect)}, with a {level} interval from {signed(average.lower)} to "
            f"{signed(average.upper)} (p = {average.p_value:.2g})."
        ]
        if self.never_treated:
            lines.append(f"Never treated, shown for the reader only: {', '.join(map(str, self.never_treated))}.")
        return lines
