"""Answers about several outcomes of the same target, or targets, from one release: side by side, as one report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dpsc import files
from dpsc.answers import document, report
from dpsc.answers import figures as plot
from dpsc.answers.compare import Comparison
from dpsc.answers.document import Document
from dpsc.answers.joint_tests import StudyTrials
from dpsc.answers.placebos import Trials
from dpsc.answers.result import Result
from dpsc.answers.study import Study
from dpsc.periods.match import listed
from dpsc.privacy.guarantee import Guarantee

PAGE = "comparison.html"
Found = Result | Study


@dataclass(frozen=True, eq=False, repr=False)
class Outcomes(Mapping[str, Found]):
    """An answer, or a study, for each of several outcomes; ``found["orders"]`` is that about orders.

    Attributes
    ----------
    results : mapping
        By outcome.
    released : int
        How many outcomes the release holds.
    guarantee : Guarantee or None
        What all of these promise together.
    title : str
    """

    results: Mapping[str, Found]
    released: int
    guarantee: Guarantee | None
    title: str = ""

    def __getitem__(self, outcome: str) -> Found:
        """Return the answer about one outcome."""
        return self.results[outcome]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        return f"<Outcomes: {'; '.join(f'{name}: {found!r}' for name, found in self.items())}>"

    def side_by_side(self, units: Mapping[str, str] | None = None) -> Comparison:
        """Return all of them in one table, one figure and one page, with p-values adjusted for their number.

        ``units`` says what each outcome is measured in.
        """
        units = units or {}
        documents = [(name, _plain(found, units.get(name))) for name, found in self.items()]
        return Comparison(
            tuple(documents),
            self.title or f"Effects on {listed(list(self), most=20)}",
            adjusted=True,
            beside=self._cost(),
            drawn={
                name: partial(plot.draw, found, found._pictures[0], units=units.get(name))
                for name, found in self.items()
            },
            guarantee=self.guarantee,
        )

    def summary(self) -> str:
        """Describe all of them in plain text."""
        shown = self.side_by_side()
        header, *rows = shown.table()[:2]
        widths = [max(len(row[k]) for row in [header, *rows[0]]) for k in range(len(header))]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows[0]]
        ]
        return "\n".join([shown.title, "", *lines, "", shown.sentence()])

    def report(self, path: str | Path, *, units: Mapping[str, str] | None = None, command: str = "") -> Path:
        """Write one page if the name ends in .html, else a folder: all side by side, and each one's own report.

        Returns
        -------
        Path
            The page with all outcomes side by side.
        """
        path, together = Path(path), self.side_by_side(units)
        if path.suffix.lower() in (".html", ".htm"):
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write(path, together.html(command))
            return path
        for name, content in self.folder(units, command):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            files.write(path / name, content)
        return path / PAGE

    def folder(self, units: Mapping[str, str] | None = None, command: str = "") -> Iterator[tuple[str, bytes]]:
        """Yield the name and the content of every file of a folder: those of each outcome in a folder of its own."""
        together, reports = self.side_by_side(units), {}
        yield "comparison.json", together.json()
        yield "comparison.csv", together.csv()
        yield "comparison.svg", together.picture("svg")
        yield "comparison.png", together.picture("png")
        for number, (name, found) in enumerate(self.items(), start=1):
            place = f"{number}-{re.sub(r'[^A-Za-z0-9]+', '-', name)[:40]}".rstrip("-")
            for file, content in found.files((units or {}).get(name)).folder(command):
                yield f"{place}/{file}", content
            reports[name] = f"{place}/{report.PAGE}"
        yield PAGE, together.html(command, reports)

    def _cost(self) -> tuple[str, ...]:
        """Say what each costs, and all outcomes of the release together."""
        own = [f"{found.guarantee.epsilon:.3g} for {name}" for name, found in self.items() if found.guarantee]
        if self.guarantee is None or not own:
            return ()
        return (
            f"Epsilon is {listed(own, most=20)}; the {self.released} outcomes of the release together cost epsilon "
            f"{self.guarantee.epsilon:g} at delta {self.guarantee.delta:g}.",
        )


def _plain(found: Found, units: str | None) -> Document:
    if isinstance(found, Study):
        return document.of_study(found, StudyTrials(), units)
    return document.of_result(found, Trials(), units)
