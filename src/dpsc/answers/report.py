"""An answer as files: a page to share, the figures, the table and the numbers. Knows no mechanism and no donor.

Pages are made from templates: nothing is fetched, everything is escaped.
"""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import pandas as pd

from dpsc import checks, files
from dpsc.answers import excel, paragraph, reporting, tables, words
from dpsc.answers import figures as plot
from dpsc.answers.base import Answer, Drawing
from dpsc.answers.document import Document
from dpsc.answers.figures import choices
from dpsc.answers.figures.sheet import NARROW, WIDE
from dpsc.answers.placebos import Trials
from dpsc.answers.pooled import Pooled
from dpsc.errors import Parameter, ParameterError
from dpsc.periods.dates import period_name
from dpsc.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE = "report.html"


class Reportable(ABC):
    """What can be drawn, and written as a page, a folder or a workbook: a result, a study."""

    figures: ClassVar[Mapping[str, Drawing]]
    """The kinds of figures, the usual one first."""
    _pictures: ClassVar[tuple[str, ...]]
    """The kinds of figures that a folder has as files; the first is the main one."""

    @abstractmethod
    def _table(self) -> pd.DataFrame:
        """Return one row per period, whose labels are columns."""

    @abstractmethod
    def _document(self, units: str | None, dates_tried: Sequence[str]) -> Document:
        """Return the answer as plain values; other dates that were tried are in it."""

    @abstractmethod
    def _page(self, document: Document, command: str) -> str:
        """Return the page, given the answer as plain values."""

    def plot(
        self,
        kind: str | None = None,
        ax: Axes | None = None,
        title: str | None = None,
        figsize: tuple[float, float | None] | None = None,
    ) -> Axes:
        """Draw a figure and return its Axes; a notebook shows it, elsewhere save it with ``.figure.savefig(...)``.

        Parameters
        ----------
        kind : str, optional
            Of a result: "overview" (the path and the gaps; the default), "path" (observed and counterfactual), "gaps"
            (their difference, before the intervention too), "cumulative" (what the effects add up to), "placebos"
            (effects at earlier dates), "placebos in space" (effects of other units, or of made-up ones), "sensitivity"
            (effects under other choices), or, from a private panel, "weights" (how much each donor counts). Of a
            study: "event" (the average effect k periods after adoption; the default), "calendar" (in each period), or
            "units" (every unit in a panel of its own).
        ax : Axes, optional
            Draw here instead of on a new figure; of the overview, the path alone. Not for "units".
        title : str, optional
            Instead of the usual one. An empty one leaves out the small print below, too.
        figsize : pair of float, optional
            Of a new figure, in inches.
        """
        return plot.draw(self, kind or next(iter(self.figures)), plot.Sheet(ax, title, figsize, shown=True))

    def paragraph(self, units: str | None = None, dates_tried: Iterable[Any] = ()) -> str:
        """Return methods and results in one paragraph for a paper: the question, the guarantee, the numbers, the tests.

        Parameters
        ----------
        units : str, optional
            The outcome's units.
        dates_tried : iterable of periods, optional
            Treatment times for which you asked before you settled on this one.
        """
        text: str = self.files(units, dates_tried).content()["paragraph"]
        return text

    def to_markdown(self, table: str = "effects") -> str:
        """Return one of the answer's tables in Markdown.

        Parameters
        ----------
        table : str
            Of a result: "effects" (the default), "periods", "without donors", "placebos" (earlier dates), "placebos in
            space", "donors" (their weights) or "sensitivity". Of a study: "effects", "units", "event time" or "calendar
            time". What an answer does not have is refused with the names of what it has.
        """
        return self._named(table).to_markdown()

    def to_latex(self, table: str = "effects") -> str:
        """Return a table as :meth:`to_markdown`, as a LaTeX tabular with the lines of booktabs."""
        return self._named(table).to_latex()

    def _tables(self) -> dict[str, tables.TextTable]:
        """Return every table, by name."""
        return tables.of(self.files().content())

    def _named(self, table: str) -> tables.TextTable:
        found = self._tables()
        if table not in found:
            raise ParameterError(f"this answer has no table {table!r}; it has {', '.join(found)}.")
        return found[table]

    def files(self, units: str | None = None, dates_tried: Iterable[Any] = ()) -> ReportFiles:
        """Return the files of a report, each made when it is asked for; it lists other dates that were tried."""
        return ReportFiles(self, units, tuple(map(period_name, dates_tried)))

    def report(
        self,
        path: str | Path,
        *,
        units: str | None = None,
        command: str = "",
        dates_tried: Iterable[Any] = (),
        brief: bool = False,
    ) -> Path:
        """Write the answer as files: a page for people, the figures, the table, and the numbers for programs.

        Parameters
        ----------
        path : path
            A name that ends in ``.html`` gets the page alone, with its figures inside. Anything else is a folder,
            created if it does not exist. Files of an earlier report are replaced, each completely or not at all.
        units : str, optional
            The outcome's units.
        command : str, optional
            The command that gives this answer again; the page shows it.
        dates_tried : iterable of periods, optional
            Treatment times for which you asked before you settled on this one: the report lists them all.
        brief : bool
            For a board: the question, the answer, a figure, three numbers and what protects the donors, on one side of
            paper. ``path`` ends in ``.html``.

        Returns
        -------
        Path
            The page. In a folder it is ``report.html``, and beside it are the figures (``.svg``, ``.png``),
            ``counterfactual.csv``, ``result.json`` and ``reporting.md``, the items of the TARGET statement.

        Examples
        --------
        >>> import tempfile, numpy as np, dpsc
        >>> donors = np.cumsum(np.random.default_rng(0).normal(size=(500, 6)), axis=1)
        >>> result = dpsc.GramRelease(epsilon=1.0, delta=1e-6).release(donors[1:]).estimate(donors[0], treatment_time=4)
        >>> result.report(f"{tempfile.mkdtemp()}/answer.html", units="euros").name
        'answer.html'
        """
        return self.files(units, dates_tried).write(Path(path), command, brief=brief)

    def to_excel(self, path: str | Path, *, units: str | None = None) -> Path:
        """Write a workbook: answer, tables, what was tried, guarantee, charts drawn from cells. Needs XlsxWriter."""
        content = self.files(units).xlsx()
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        files.write(Path(path), content)
        return Path(path)


class ReportFiles:
    """The files of one answer, each made when it is asked for: a table needs no placebos."""

    def __init__(self, answer: Any, units: str | None = None, dates_tried: Sequence[str] = ()) -> None:
        self._answer, self._units, self._dates_tried = answer, units, dates_tried  # a result or a study
        self._content: Document | None = None

    def content(self) -> Document:
        """Return the answer as plain values, for programs; put together once."""
        if self._content is None:
            self._content = dict(self._answer._document(self._units, self._dates_tried))
        return self._content

    def html(self, command: str = "", brief: bool = False) -> bytes:
        """Return the page, with its figures inside; a brief one fits on one side of paper."""
        answer, content = self._answer, self.content()
        page: str = _brief(answer, content) if brief else answer._page(content, command)
        return page.encode("utf-8")

    def json(self) -> bytes:
        """Return the numbers, for programs."""
        return (json.dumps(self.content(), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")

    def reporting(self) -> bytes:
        """Return the items that a paper reports, filled with what the answer knows."""
        return reporting.form(self.content()).to_markdown().encode("utf-8")

    def markdown(self) -> bytes:
        """Return the paragraph and every table in Markdown."""
        content = self.content()
        return tables.markdown(content["title"], content["paragraph"], tables.of(content)).encode("utf-8")

    def latex(self) -> bytes:
        """Return the paragraph and every table in LaTeX."""
        content = self.content()
        return tables.latex(content["title"], content["paragraph"], tables.of(content)).encode("utf-8")

    def csv(self) -> bytes:
        """Return the table of periods; its labels may be from somebody else's release."""
        frame: pd.DataFrame = self._answer._table()
        rows = frame.itertuples(index=False, name=None)
        texts = ([v if isinstance(v, Number) else period_name(v) for v in row] for row in rows)
        return files.csv_text(frame.columns, texts).encode("utf-8")

    def xlsx(self) -> bytes:
        """Return the workbook."""
        return excel.workbook(self.content(), self._answer.guarantee)

    def picture(self, format: Literal["png", "svg"]) -> bytes:
        """Return the main figure, as "png" or "svg"."""
        return plot.as_bytes(self._drawn(self._answer._pictures[0]), format)

    def folder(self, command: str = "") -> Iterator[tuple[str, bytes]]:
        """Yield the name and the content of every file of a folder, the numbers first; drawing takes longer."""
        yield "result.json", self.json()
        yield "counterfactual.csv", self.csv()
        yield reporting.NAME, self.reporting()
        for kind in self._answer._pictures:
            figure = self._drawn(kind)
            yield f"{kind}.svg", plot.as_bytes(figure, "svg")
            yield f"{kind}.png", plot.as_bytes(figure, "png")
        yield PAGE, self.html(command)

    def _drawn(self, kind: str) -> Figure:
        return plot.figure_of(plot.draw(self._answer, kind, units=self._units))

    def write(self, path: Path, command: str = "", *, brief: bool = False) -> Path:
        """Write the page alone if the name ends in .html, else a folder; return the page."""
        if path.suffix.lower() in (".html", ".htm"):
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write(path, self.html(command, brief))
            return path
        if brief:
            raise ParameterError(f"{Parameter('brief', True)} makes one page: name a file that ends in .html.")
        path.mkdir(parents=True, exist_ok=True)
        for name, content in self.folder(command):
            files.write(path / name, content)
        return path / PAGE


def report(answer: Reportable, path: str | Path, **options: Any) -> Path:
    """Write an answer as files. Deprecated: it is a method of the answer, :meth:`Reportable.report`."""
    checks.deprecated("dpsc.report(answer, path)", "answer.report(path)")
    return answer.report(path, **options)


def _brief(answer: Any, document: Document) -> str:
    """Return the page for a board: question, answer, one figure, three numbers, and what protects the donors."""
    drawn = partial(plot.draw, answer, answer._pictures[0], units=document["units"])
    return render(
        "brief.html",
        numbers=words.three_numbers(answer.average, document["total"], document["units"], document["level"]),
        protection=paragraph.protection(answer.guarantee, answer.reason),
        image=image(drawn),
        **_shared(document, answer, ""),
    )


def of_result(result: Answer, trials: Trials, document: Document, command: str) -> str:
    """Return the page of one answer."""
    seen = bool(result.counted.any())
    for_effect = result.interval_kind == "effect"
    units = document["units"]
    kinds = ["path", *(["gaps"] if seen else []), *(["cumulative"] if seen and for_effect else [])]
    images = {kind: image(partial(plot.draw, result, kind, units=units)) for kind in kinds}
    for name, placebos in (("in_time", trials.in_time), ("in_space", trials.in_space)):
        if placebos is not None and seen:
            images[name] = image(partial(choices.placebos, result, placebos, units=units))
    if trials.donors is not None:
        images["weights"] = image(partial(choices.weights, result, units=units))
    if trials.sensitivity is not None and seen:
        images["sensitivity"] = image(partial(choices.sensitivity, result, trials.sensitivity, units=units))
    return render(
        "result.html",
        result=result,
        seen=seen,
        for_effect=for_effect,
        average=result.average,
        images=images,
        **_shared(document, result, command),
    )


def of_study(study: Pooled, document: Document, command: str) -> str:
    """Return the page of a study."""
    return render(
        "study.html",
        study=study,
        average=study.average,
        weighted=study.weights.nunique() > 1,
        images={kind: image(partial(plot.draw, study, kind, units=document["units"])) for kind in ("event", "units")},
        **_shared(document, study, command),
    )


def _shared(document: Document, answer: Answer | Pooled, command: str) -> dict[str, Any]:
    guarantee = answer.guarantee
    return {
        "document": document,
        "mark": answer.mark,
        "verdict": answer.verdict if isinstance(answer, Answer) else words.study_verdict(answer),
        "tables": tables.of(document),
        "guarantee": guarantee,
        "meaning": [] if guarantee is None else words.meaning(guarantee),
        "parameters": words.in_words(document["parameters"]),
        "level": words.percent(document["level"]) if document["level"] is not None else "",
        "words": words,
        "command": command,
        "version": __version__,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


class Picture(NamedTuple):
    """A figure for a page, as the addresses of two images: for a desk, and for a phone."""

    wide: str
    narrow: str


def image(draw: Callable[..., Axes]) -> Picture:
    """Draw a figure for a page, which says its title and its small print."""
    figures = (plot.figure_of(draw(sheet=plot.Sheet(title="", figsize=(width, None)))) for width in (WIDE, NARROW))
    return Picture(*(inline(plot.as_bytes(figure, "svg")) for figure in figures))


def render(template: str, **values: Any) -> str:
    """Fill a template of ``dpsc/answers/templates``."""
    return _environment().get_template(template).render(**values)


def inline(image: bytes, kind: Literal["svg+xml", "png"] = "svg+xml") -> str:
    """Return the content of a file as the address of an image that is part of the page."""
    return f"data:image/{kind};base64,{base64.b64encode(image).decode('ascii')}"


def card(heading: str, lines: Sequence[str], figure: Figure, mark: str, reason: str) -> str:
    """Return what a notebook shows of an object: a heading, a few sentences, and a figure."""
    image = inline(plot.as_bytes(figure, "png", dpi=144), "png")
    return render("card.html", heading=heading, lines=lines, image=image, mark=mark, reason=reason)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("dpsc.answers"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
