"""An answer as files: a page to share, the figures, the table and the numbers. Knows no mechanism and no donor."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from numbers import Number
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from dpsc import checks, files
from dpsc.answers import document, excel, pages, plot
from dpsc.answers.base import Answer, Several
from dpsc.answers.document import Document
from dpsc.answers.placebos import Trials
from dpsc.periods.dates import period_name
from dpsc.privacy.guarantee import Guarantee

PAGE = "report.html"


def report(answer: Written, path: str | Path, **options: Any) -> Path:
    """Write an answer as files. Deprecated: it is a method of the answer, :meth:`Written.report`."""
    checks.deprecated("dpsc.report(answer, path)", "answer.report(path)")
    return answer.report(path, **options)


class Files:
    """The files of one answer, each made when it is asked for: a table needs no placebos.

    Parameters
    ----------
    answer : Answer or Several
    units : str or None
        The outcome's units.
    document : callable
        Returns the answer as plain values.
    figures : mapping of names to kinds of figures
        Of the folder, for people who need pictures.
    page : callable
        Returns the page, given the answer as plain values and the command that gives it again.
    """

    def __init__(
        self,
        answer: Answer | Several,
        units: str | None,
        document: Callable[[], Document],
        figures: Mapping[str, str],
        page: Callable[[Document, str], str],
    ) -> None:
        self.answer, self._units, self._document, self._figures, self._page = answer, units, document, figures, page

    @cached_property
    def content(self) -> Document:
        """The answer as plain values, for programs."""
        return self._document()

    def html(self, command: str = "") -> bytes:
        """Return the page, with its figures inside."""
        return self._page(self.content, command).encode("utf-8")

    def json(self) -> bytes:
        """Return the numbers, for programs."""
        return (json.dumps(self.content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")

    def csv(self) -> bytes:
        """Return the table of periods; its labels may be from somebody else's release."""
        return _csv(self.answer.to_frame(), indexed=isinstance(self.answer, Answer)).encode("utf-8")

    def xlsx(self) -> bytes:
        """Return the workbook."""
        guarantee: Guarantee | None = self.answer.guarantee
        return excel.workbook(self.content, guarantee)

    def picture(self, format: Literal["png", "svg"]) -> bytes:
        """Return the main figure, as "png" or "svg"."""
        return plot.as_bytes(self._drawn(next(iter(self._figures.values()))), format)

    def folder(self, command: str = "") -> dict[str, bytes]:
        """Return the content of every file of a folder, by name."""
        drawn = {name: self._drawn(kind) for name, kind in self._figures.items()}
        pictures = {f"{name}.svg": plot.as_bytes(figure, "svg") for name, figure in drawn.items()}
        pictures |= {f"{name}.png": plot.as_bytes(figure, "png") for name, figure in drawn.items()}
        return {"result.json": self.json(), "counterfactual.csv": self.csv(), PAGE: self.html(command), **pictures}

    def _drawn(self, kind: str) -> Any:
        answer: Any = self.answer  # a result or a study, both of which have figures
        return plot.figure_of(plot.draw(answer, kind, units=self._units))

    def write(self, path: Path, command: str = "") -> Path:
        """Write the page alone if the name ends in .html, else a folder; return the page."""
        if path.suffix.lower() in (".html", ".htm"):
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write(path, self.html(command))
            return path
        path.mkdir(parents=True, exist_ok=True)
        for name, content in self.folder(command).items():
            files.write(path / name, content)
        return path / PAGE


class Written(ABC):
    """What can be written as a page, a folder or a workbook: a result, a study."""

    @abstractmethod
    def files(self, units: str | None = None, dates_tried: Iterable[Any] = ()) -> Files:
        """Return the files of a report, each made when it is asked for; it lists other dates that were tried."""

    def report(
        self, path: str | Path, *, units: str | None = None, command: str = "", dates_tried: Iterable[Any] = ()
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

        Returns
        -------
        Path
            The page. In a folder it is ``report.html``, and beside it are the figures (``.svg``, ``.png``),
            ``counterfactual.csv`` and ``result.json``.

        Examples
        --------
        >>> import tempfile, numpy as np, dpsc
        >>> donors = np.cumsum(np.random.default_rng(0).normal(size=(500, 6)), axis=1)
        >>> result = dpsc.GramRelease(epsilon=1.0, delta=1e-6).release(donors[1:]).estimate(donors[0], treatment_time=4)
        >>> result.report(f"{tempfile.mkdtemp()}/answer.html", units="euros").name
        'answer.html'
        """
        return self.files(units, dates_tried).write(Path(path), command)

    def to_excel(self, path: str | Path, *, units: str | None = None) -> Path:
        """Write a workbook: answer, effects, periods, what was tried, parameters, guarantee. Needs openpyxl."""
        content = self.files(units).xlsx()
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        files.write(Path(path), content)
        return Path(path)


def of_result(result: Answer, trials: Callable[[], Trials], units: str | None = None) -> Files:
    """Return the files of one answer; what was tried beside it is asked for when it is needed."""
    return Files(
        result,
        units,
        lambda: document.of_result(result, trials(), units),
        pages.RESULT_FIGURES,
        lambda content, command: pages.of_result(result, trials(), content, command),
    )


def of_study(study: Several, units: str | None = None, dates_tried: Iterable[Any] = ()) -> Files:
    """Return the files of a study; other dates that somebody asked for are listed."""
    others = tuple(map(period_name, dates_tried))
    return Files(
        study,
        units,
        lambda: document.of_study(study, units, others),
        pages.STUDY_FIGURES,
        lambda content, command: pages.of_study(study, content, command),
    )


def _csv(frame: pd.DataFrame, *, indexed: bool) -> str:
    names = [frame.index.name or "time", *frame.columns] if indexed else frame.columns
    rows = frame.itertuples(index=indexed, name=None)
    return files.csv_text(names, ([v if isinstance(v, Number) else period_name(v) for v in row] for row in rows))
