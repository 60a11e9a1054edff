"""Answers side by side: two releases, two budgets, two targets, two dates. Reads what ``result.json`` holds."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from dpsc import checks, files
from dpsc.answers import excel, report, tables, words
from dpsc.answers import figures as plot
from dpsc.answers.document import Document
from dpsc.answers.effects import holm
from dpsc.answers.figures import choices
from dpsc.answers.words import column, p_text
from dpsc.errors import ReleaseError
from dpsc.periods.match import listed
from dpsc.privacy.guarantee import Guarantee, mark_of
from dpsc.version import __version__

NO_REPORTS: Mapping[str, str] = MappingProxyType({})

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Comparison:
    """Several answers, each under a name.

    Attributes
    ----------
    answers : tuple of pairs
        A name, and the content of its ``result.json``.
    title : str
    adjusted : bool
        Whether they answer several questions about one intervention, so that p-values are adjusted for their number.
    beside : tuple of str
        Sentences to say beside what differs.
    drawn : mapping
        What draws the figure of each answer, by name, where answers themselves are at hand.
    guarantee : Guarantee or None
        What all of them promise together, if they are from one release.
    """

    answers: tuple[tuple[str, Document], ...]
    title: str
    adjusted: bool = False
    beside: tuple[str, ...] = ()
    drawn: Mapping[str, Callable[..., Axes]] = field(default_factory=dict)
    guarantee: Guarantee | None = None

    @property
    def names(self) -> list[str]:
        """The names of the answers."""
        return [name for name, _ in self.answers]

    def facts(self) -> dict[str, list[Any]]:
        """Return what each answer is about: outcome, target, date, release, donors, budget, level, units, method."""
        facts = {what: [of(document) for _, document in self.answers] for what, of in _FACTS.items()}
        return {"outcome": facts.pop("outcome"), "target": self._targets(), **facts}

    def differences(self) -> dict[str, list[str]]:
        """Return the facts that differ, as text; units that were not said may be the same."""
        facts = {what: [_text(value) for value in values] for what, values in self.facts().items()}
        if len(self._units) < 2:
            del facts["units"]
        return {what: values for what, values in facts.items() if len(set(values)) > 1}

    @property
    def _units(self) -> set[str]:
        return {document["units"] for _, document in self.answers if document.get("units")}

    @property
    def _outcomes(self) -> set[str]:
        return {document["outcome"] for _, document in self.answers}

    def sentence(self) -> str:
        """Say what differs."""
        return " ".join([*(self._shown() if self._adjusts else [self._differing()]), *self.beside])

    def _shown(self) -> list[str]:
        """Say on which outcomes an effect shows, by adjusted p-values, and why they are adjusted."""
        levels = {document["level"] for _, document in self.answers}
        at = 1 - (levels.pop() or 0.95) if len(levels) == 1 else 0.05
        seen = {name: row["adjusted p-value"] for name, row in zip(self.names, self._numbers(), strict=True)}
        there = [name for name, p in seen.items() if p is not None and p < at]
        others = [name for name, p in seen.items() if p is not None and p >= at]
        said = f"At a level of {words.percent(at)}, "
        if there:
            also = f"; on {listed(others, most=20)} none does" if others else ""
            said += f"an effect shows on {listed(there, most=20)}{also}."
        else:
            said += "no effect shows on any of the outcomes."
        return [*([said] if there or others else []), _ADJUSTED.format(len(self.answers))]

    def _differing(self) -> str:
        differing = list(self.differences())
        if not differing:
            return "The answers do not differ in target, date, release, budget or method."
        other = (
            " Their outcomes or units differ: compare percentages, not sizes."
            if len(self._outcomes) > 1 or len(self._units) > 1
            else ""
        )
        return f"The answers differ in their {listed(differing, most=20)}.{other}"

    @property
    def _adjusts(self) -> bool:
        return self.adjusted and len(self.answers) > 1

    def table(self) -> tables.TextTable:
        """Return the average effects, with the same digits down a column if they are effects on the same outcome."""
        rows, alike = self._numbers(), len(self._outcomes) == 1
        numbers: dict[str, list[str]] = {}
        for name in ("average effect", "from", "to"):
            groups = [rows] if alike else [[row] for row in rows]
            numbers[name] = [
                text
                for group in groups
                for text in column(
                    [row[name] for row in group], sign=True, like=[row["average effect"] for row in group]
                )
            ]
        share = column([row["percent"] for row in rows], sign=True, decimals=1)
        others = {
            "percent": [text if text == "–" else f"{text}%" for text in share],
            "p-value": [p_text(row["p-value"]) for row in rows],
            **({"p-value, adjusted": [p_text(row["adjusted p-value"]) for row in rows]} if self._adjusts else {}),
            "donors help": [row["donors help"] or "–" for row in rows],
        }
        known = {name: cells for name, cells in others.items() if set(cells) != {"–"}}
        return tables.table({"outcome" if self.adjusted else "answer": self.names} | numbers | known)

    def differing(self) -> tables.TextTable:
        """Return the facts that differ; a table without rows if none does."""
        differing = self.differences()
        if self.adjusted:  # they are of different outcomes, and each says its part of the budget
            known = ("outcome", "target", "units", "budget")
            differing = {what: values for what, values in differing.items() if what not in known}
        name = "outcome" if self.adjusted else "answer"
        return tables.table({name: self.names if differing else []} | differing, labels=1 + len(differing))

    def content(self) -> Document:
        """Return everything as plain values."""
        facts = self.facts()
        rows = [
            {"answer": name, **{what: values[k] for what, values in facts.items()}, **numbers}
            for k, (name, numbers) in enumerate(zip(self.names, self._numbers(), strict=True))
        ]
        return {"title": self.title, "answers": rows, "differ_in": list(self.differences()), "says": self.sentence()}

    def json(self) -> bytes:
        """Return the numbers, for programs."""
        return (json.dumps(self.content(), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")

    def csv(self) -> bytes:
        """Return the table."""
        frame = pd.DataFrame(self._flat())
        return files.csv_text(frame.columns, frame.itertuples(index=False, name=None)).encode("utf-8")

    def markdown(self) -> bytes:
        """Return the tables in Markdown."""
        return tables.markdown(self.title, self.sentence(), self._tables()).encode("utf-8")

    def latex(self) -> bytes:
        """Return the tables in LaTeX."""
        return tables.latex(self.title, self.sentence(), self._tables()).encode("utf-8")

    def xlsx(self) -> bytes:
        """Return a workbook: the table with its chart, and the tables of each answer that is at hand."""
        whole = dict(self.answers) if self.drawn else {}
        return excel.side_by_side(self._flat(), whole, alike=len(self._outcomes) == 1)

    def picture(self, format: Literal["png", "svg"]) -> bytes:
        """Return the figure."""
        return plot.as_bytes(plot.figure_of(self._drawn(plot.Sheet(title=self.title))), format)

    def html(self, command: str = "", reports: Mapping[str, str] = NO_REPORTS) -> bytes:
        """Return a page with the figure and the table; ``reports`` are the addresses of the answers' own pages."""
        page = report.render(
            "compare.html",
            title=self.title,
            says=self.sentence(),
            tables=self._tables(),
            image=report.image(self._drawn),  # the page asks the question
            marks=[mark_of(document["no_guarantee"] or "") for _, document in self.answers if not document["private"]],
            answers=dict(self.answers),
            each={name: report.image(draw) for name, draw in self.drawn.items()},
            reports=reports,
            guarantee=self.guarantee,
            meaning=[] if self.guarantee is None else words.meaning(self.guarantee),
            command=command,
            version=__version__,
            date=datetime.now(UTC).strftime("%Y-%m-%d"),
        )
        return page.encode("utf-8")

    def _tables(self) -> dict[str, tables.TextTable]:
        found = {"side by side": self.table(), "what differs": self.differing()}
        return {name: table for name, table in found.items() if table.rows}

    def _flat(self) -> list[dict[str, Any]]:
        """Return one row per answer, without lists in its cells."""
        return [
            {name: ", ".join(map(str, value)) if isinstance(value, list) else value for name, value in row.items()}
            for row in self.content()["answers"]
        ]

    def _targets(self) -> list[str]:
        """Name what was observed: a study by its units, a target by its average over the periods that all have."""
        single = [document for _, document in self.answers if document.get("kind") != "study"]
        times = [{row.get("time") for row in document["periods"] if row["observed"] is not None} for document in single]
        common = set.intersection(*times) if times else set()
        return [_target(document, common) for _, document in self.answers]

    def _drawn(self, sheet: plot.Sheet) -> Axes:
        return choices.compared(self.answers, sheet)

    def _numbers(self) -> list[dict[str, Any]]:
        adjusted = holm([document.get("p_value") for _, document in self.answers])
        return [
            {
                "average effect": document["average_effect"],
                "from": (document["average_effect_interval"] or [None, None])[0],
                "to": (document["average_effect_interval"] or [None, None])[1],
                "percent": (document.get("percent") or {}).get("effect"),
                "percent from": (document.get("percent") or {}).get("lower"),
                "percent to": (document.get("percent") or {}).get("upper"),
                "p-value": document.get("p_value"),
                **({"adjusted p-value": p} if self._adjusts else {}),
                "donors help": (document.get("verdict") or {}).get("grade"),
            }
            for (_, document), p in zip(self.answers, adjusted, strict=True)
        ]


def of(answers: Sequence[tuple[str, Document]], title: str = "") -> Comparison:
    """Return answers side by side."""
    return Comparison(tuple(answers), title or _QUESTION)


_QUESTION = "Do the answers agree?"
_ADJUSTED = (
    "The more outcomes are looked at, the more often one of them seems to be affected by chance. So p-values are also "
    "shown adjusted for their number, {}, by Holm's method, which holds however the outcomes depend on each other."
)


_FACTS: dict[str, Callable[[Document], Any]] = {
    "outcome": lambda document: document["outcome"],
    "first treated period": lambda document: document["treatment_time"],
    "release": lambda document: document["parameters"].get("release"),
    "donors": lambda document: document["parameters"].get("n"),
    "segments of donors": lambda document: document["parameters"].get("pool"),
    "budget": lambda document: _budget(document["guarantee"], document["no_guarantee"]),
    "level": lambda document: document["level"],
    "units": lambda document: document.get("units"),
    "method": lambda document: document["method"],
}


def _target(document: Document, times: set[Any]) -> str:
    if document.get("kind") == "study":
        return f"{len(document['by_unit'])} units"
    seen = [row for row in document["periods"] if row["observed"] is not None]
    values = [row["observed"] for row in seen if row.get("time") in times or not times]
    return f"average {words.number(sum(values) / len(values))}" if values else "not observed"


def _budget(guarantee: Mapping[str, Any] | None, reason: str | None) -> str:
    if guarantee is None:
        return mark_of(reason or "")
    return f"ε = {guarantee['epsilon']:.4g}, δ = {guarantee['delta']:g}"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return str(value[0]) if len(value) == 1 else f"{len(value)} dates from {min(value)} to {max(value)}"
    return "–" if value is None else f"{value:,}" if isinstance(value, int | float) else str(value)


def checked(document: Any, where: str) -> Document:
    """Return the content of a ``result.json``, or say that it is none: it may be from anywhere."""
    refusal = ReleaseError(f"{where} is not an answer of dpsc: name the result.json of dpsc estimate or dpsc fit.")
    if not isinstance(document, dict):
        raise refusal
    numbers = (document.get("average_effect"), document.get("p_value"), document.get("level"))
    interval = document.get("average_effect_interval")
    periods, guarantee, percent, verdict = (document.get(k) for k in ("periods", "guarantee", "percent", "verdict"))
    whole = (
        all(isinstance(document.get(name), str) for name in ("outcome", "method"))
        and len(document["outcome"]) <= checks.LONGEST_TEXT
        and isinstance(document.get("private"), bool)
        and isinstance(document.get("treatment_time"), str | list)
        and isinstance(document.get("parameters"), dict)
        and all(_is_number(value) for value in numbers)
        and (interval is None or (isinstance(interval, list) and len(interval) == 2 and all(map(_is_number, interval))))
        and isinstance(periods, list)
        and all(isinstance(row, dict) and "observed" in row and _is_number(row["observed"]) for row in periods)
        and (guarantee is None or _has_numbers(guarantee, "epsilon", "delta"))
        and (
            percent is None
            or (_has_numbers(percent, "effect") and all(_is_number(percent.get(k)) for k in ("lower", "upper")))
        )
        and (verdict is None or (isinstance(verdict, dict) and verdict.get("grade") in ("yes", "unclear", "no")))
        and (document.get("kind") != "study" or isinstance(document.get("by_unit"), list))
    )
    if not whole:
        raise refusal
    return document


def _has_numbers(value: Any, *names: str) -> bool:
    return isinstance(value, dict) and all(value.get(name) is not None and _is_number(value[name]) for name in names)


def _is_number(value: Any) -> bool:
    """Tell whether a value is a finite number, or not there."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value))
