"""Results: answers that carry a guarantee, and answers that carry none and say why.

A result is frozen. A number computed from donors without a mechanism exists only on ``NonPrivateResult``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Required, Self, TypedDict, Unpack, cast

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.answers import document, report, tables, words
from dpsc.answers import figures as plot
from dpsc.answers.base import Answer, Drawing, Verdict
from dpsc.answers.document import Document
from dpsc.answers.effects import Prices, Uncertainty
from dpsc.answers.figures import choices
from dpsc.answers.figures import result as one
from dpsc.answers.placebos import (
    LeaveOneOut,
    NoRepeats,
    Placebos,
    Repeats,
    Sensitivity,
    Trials,
    all_trials,
    left_out,
    other_choices,
    placebos_in_space,
    placebos_in_time,
)
from dpsc.answers.report import Reportable
from dpsc.answers.words import donors_help, number, parameter_text, percent, sentence
from dpsc.errors import Parameter, ParameterError
from dpsc.periods.dates import period_name
from dpsc.periods.treatment import Phase, Treatment
from dpsc.privacy.guarantee import Guarantee
from dpsc.types import Label, TreatedLike

SEEDED = "made with a seed, which anyone can use to remove the noise: not private, for experiments only"
MADE_UP = 50  # units without any effect, for reports


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result(Answer, Reportable):
    """An answer with a summary, figures, placebos, and a table of what other choices would have given."""

    figures: ClassVar[Mapping[str, Drawing]] = {
        "overview": one.overview,
        "path": one.path,
        "gaps": one.gaps,
        "cumulative": one.cumulative,
        "placebos": lambda of, sheet, units: choices.placebos(of, of.placebos(), sheet, units),
        "placebos in space": lambda result, sheet, units: choices.placebos(
            result, result.placebos("space"), sheet, units
        ),
        "weights": choices.weights,
        "sensitivity": lambda of, sheet, units: choices.sensitivity(of, of.sensitivity(), sheet, units),
    }
    _pictures: ClassVar = ("path", "gaps")

    repeats: Repeats = field(default_factory=NoRepeats)

    def during(self, treatment_end: Label = None, *, gap: int = 0, treated: TreatedLike | None = None) -> Self:
        """Return the same answer about a treatment that ends, comes in spells, or has periods that are left out.

        The forecast stays the same: it rests on what was before the first treated period, whatever came after.

        Parameters
        ----------
        treatment_end : optional
            The last treated period. The effect is that of the treated periods; :meth:`contrasts` has what was seen
            after, and whether the effect fades.
        gap : int
            How many periods are left out, the first treated one and those that follow: they are neither fitted nor in
            the effect. To leave out periods before it, too, date the treatment earlier.
        treated : Series of 0 and 1, optional
            Instead of the last treated period: 1 in each treated period, which may come in spells.
        """
        said = Treatment(treatment_end, gap, treated)
        if treated is not None and (first := said.begins(self.target.index, None)) != self.treatment_time:
            raise ParameterError(
                f"{Parameter('treated')} begins with {period_name(first)}, but this answer is about a treatment from "
                f"{period_name(self.treatment_time)} on."
            )
        phases = said.phases(self.target.index, self.T0)
        return replace(self, phases=phases, repeats=self.repeats.during(phases))

    def valued(self, value_per_unit: float, *, cost: float | None = None, currency: str = "") -> Self:
        """Return the same answer with what its total effect is worth, for :meth:`worth`, words and reports.

        Parameters
        ----------
        value_per_unit : float
            What one unit of the outcome is worth in one period, for each unit that the target is the average of;
            negative if less of the outcome is worth something.
        cost : float, optional
            Of the intervention: then there is also the return, the value for each unit of money that it cost.
        currency : str
            Of both, for words: "EUR".
        """
        return replace(self, prices=Prices.of(value_per_unit, cost, currency))

    def placebos(self, kind: Literal["time", "space"] = "time", *, units: int = 200, seed: int = 0) -> Placebos:
        """Count how often an effect at least as large shows where there is none.

        Parameters
        ----------
        kind : {"time", "space"}
            Pretend that the intervention came earlier, at every possible date; or ask the same about units without any
            effect: from a private panel each donor in turn, else made-up ones, drawn from the release alone.
        units, seed : int
            How many units are made up. The seed is that of the drawing; it touches neither donors nor the release's
            noise.
        """
        if kind == "time":
            return placebos_in_time(self, self.repeats)
        if kind == "space":
            return placebos_in_space(self, self.repeats, checks.whole_number("units", units, at_least=1), seed)
        raise ParameterError(f"kind must be 'time' or 'space', not {kind!r}.")

    def placebos_in_space(self, units: int = 200, seed: int = 0) -> Placebos:
        """Return placebos in space. Deprecated: ``placebos("space")``."""
        checks.deprecated("result.placebos_in_space(units)", 'result.placebos("space", units=units)')
        return self.placebos("space", units=units, seed=seed)

    def placebo_in_time(self, treatment_time: Label | None = None) -> Result:
        """Return the answer for one earlier date. Deprecated: :meth:`placebos` tries every one."""
        checks.deprecated("result.placebo_in_time(date)", "result.placebos(), which tries every date")
        return cast("Result", self.repeats.placebo(treatment_time))

    def sensitivity(self) -> Sensitivity:
        """Return the effect under other choices: an earlier date, periods left out, a later start."""
        return other_choices(self, self.repeats)

    def leave_one_out(self) -> LeaveOneOut:
        """Return the effect without each donor in turn, and how much each counts; for private panels alone."""
        found = left_out(self, self.repeats)
        if found is None:
            raise ParameterError("donors are left out one by one only where they are units of a private panel.")
        return found

    def trials(self) -> Trials:
        """Return every placebo and other choice that is free, for reports: computed once."""
        return self._trials

    @cached_property
    def _trials(self) -> Trials:
        return all_trials(self, self.repeats, units=MADE_UP)

    def _document(self, units: str | None = None, dates_tried: Sequence[str] = ()) -> Document:
        """Return everything as plain values, for programs."""
        return document.of_result(self, replace(self.trials(), others=tuple(dates_tried)), units)

    def _page(self, document: Document, command: str = "") -> str:
        """Return the page of a report, given everything as plain values."""
        return report.of_result(self, self.trials(), document, command)

    def _tables(self) -> dict[str, tables.TextTable]:
        """Return every table, by name; donors that were not left out one by one are there with their weights alone."""
        found = super()._tables()
        if "donors" not in found and isinstance(self.weights, pd.Series):
            weights = self.weights[self.weights != 0].sort_values(key=abs, ascending=False, kind="stable")
            rows = [{"donor": period_name(name), "weight": float(value)} for name, value in weights.items()]
            found["donors"] = tables.donors_table(rows)
        return found

    def _table(self) -> pd.DataFrame:
        """Return one row per period, whose labels are the first column."""
        frame = self.to_frame()
        return frame.reset_index(names=frame.index.name or "time", allow_duplicates=True)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the question, the answer in words, and the figure."""
        light = [] if self.verdict is None else [words.donors_help(self.verdict)]
        first = self.verdict is not None and self.verdict.comes_first
        lines = [*light, *words.answer(self)] if first else [*words.answer(self), *light]
        figure = plot.draw(self, "overview")
        return report.card(self.title or one.question(self), lines, plot.figure_of(figure), self.mark, self.reason)

    def summary(self) -> str:
        """Describe the answer in plain text."""
        frame = self.to_frame()
        table = frame.set_axis(pd.Index([period_name(time) for time in frame.index], name=frame.index.name))
        return "\n".join([self.headline, "", table.to_string(float_format=number), "", *self._facts()])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline}, average effect {number(self.att)}>"

    def _facts(self) -> list[str]:
        """Return the lines below the table."""
        effect = f"average effect (att): {number(self.att)}"
        if self.interval_kind != "none":
            low, high = self.att_interval()
            effect += f", {percent(self.level)} interval {number(low)} to {number(high)}"
        promise = f"guarantee: {self.guarantee.brief}" if self.guarantee else f"no guarantee: {self.reason}"
        parameters = ", ".join(f"{name} = {parameter_text(value)}" for name, value in self.parameters.items())
        used = [f"parameters: {parameters}"] if parameters else []
        light = [] if self.verdict is None else [f"{donors_help(self.verdict)} {sentence(self.verdict.reason)}"]
        return [effect, *light, *(f"note: {note}" for note in self.notes), promise, *used]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NonPrivateResult(Result):
    """An answer computed from raw donors. It protects no donor: do not publish it if donors are people.

    Attributes
    ----------
    weights, counterfactual, fitted : Series
        By donor label; by period from the intervention on; by period before it.
    method : str
    """

    method: str
    guarantee: None = field(default=None, init=False)
    reason: str = field(default="it was computed from the raw donors", init=False)

    @property
    def rmse_pre(self) -> float:
        """Root mean squared distance to the target before the intervention."""
        return _rms(self.target.iloc[: self.T0] - self.fitted)

    @property
    def rmse_post(self) -> float:
        """Root mean squared gap from the intervention on: effect and error together."""
        return _rms(self.gaps)

    def _facts(self) -> list[str]:
        effect, *rest = super()._facts()
        before, after = number(self.rmse_pre), number(self.rmse_post)
        return [effect, f"fit before the intervention (rmse): {before}; gap after it (rms): {after}", *rest]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrivateResult(Result):
    """An answer with a guarantee: everything on it passed through a mechanism or is public.

    Attributes
    ----------
    weights : Series or DataFrame
        Two-step algorithms: the released weights by the donor's position in the panel; labels stay with the
        custodian. Private panel: how much the answer follows each donor, by name. Gram release: each period after the
        intervention as a combination of those before (the same forecast in another form, which names no donor).
    counterfactual : Series
        By period from the intervention on.
    fitted, baselines, verdict, notes
        From a Gram release: forecasts one period ahead before the intervention, forecasts without donors, whether the
        donors help, and warnings. The two-step algorithms have no pre-period fit: it would touch the donors again.
    guarantee : Guarantee
    parameters : mapping
        The public numbers used, enough to redo the arithmetic by hand.
    """

    guarantee: Guarantee
    reason: str = field(default="", init=False)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UnprovenResult(Result):
    """An answer with noise but without a guarantee, and the reason why there is none."""

    guarantee: None = field(default=None, init=False)
    reason: str


class Findings(TypedDict, total=False):
    """What an algorithm that adds noise has found; the fields of a result."""

    target: Required[pd.Series[float]]
    T0: Required[int]
    counterfactual: Required[pd.Series[float]]
    weights: Required[pd.Series[float] | pd.DataFrame]
    algorithm: Required[str]
    parameters: Required[Mapping[str, Any]]
    uncertainty: Required[Uncertainty]
    notes: Required[tuple[str, ...]]
    level: float
    fitted: pd.Series[float]
    title: str
    baselines: pd.DataFrame
    verdict: Verdict | None
    repeats: Repeats
    phases: tuple[Phase, ...]
    prices: Prices | None


def released(guarantee: Guarantee | None, reason: str, **findings: Unpack[Findings]) -> PrivateResult | UnprovenResult:
    """Return a result with its guarantee or, if that is None, a result without one and with the reason."""
    if guarantee is None:
        return UnprovenResult(**findings, reason=reason)
    return PrivateResult(**findings, guarantee=guarantee)


def _rms(values: pd.Series[float]) -> float:
    return float(np.sqrt(np.nanmean(np.square(values.to_numpy(dtype=np.float64)))))
