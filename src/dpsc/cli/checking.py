"""What ``dpsc check`` does: examine the donors, say what a release would be like, show it all to the custodian.

Everything here is private, and marked so at the beginning and at the end.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dpsc import files
from dpsc.answers import web
from dpsc.cli import booking, common, public_series, rehearsing
from dpsc.cli.rehearsing import Section
from dpsc.data import formats
from dpsc.data.dates import period_name
from dpsc.data.dialects import Dialect
from dpsc.data.examination import MARK, CustodianExamination, custodian_examine
from dpsc.data.findings import Finding
from dpsc.data.guessing import Said
from dpsc.data.missing import BOUNDS
from dpsc.data.rules import MIDPOINT, Missing
from dpsc.errors import ParameterError
from dpsc.gram.outlook import Outlook, outlook
from dpsc.gram.sources import LARGE


@dataclass(frozen=True)
class Wishes:
    """How the release would be made."""

    periods: str | None
    missing: Missing | None
    bounds: tuple[float, float] | None
    epsilon: float
    delta: float
    target: Path | None
    before: int | None
    averages: int


@dataclass(frozen=True, repr=False)
class Rehearsal:
    """Everything that a rehearsal found. Private: for the custodian only."""

    seen: CustodianExamination
    findings: tuple[Finding, ...]
    outlook: Outlook | None
    commands: tuple[str, ...]
    datasets: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether nothing needs to be corrected."""
        return all(finding.grade != "correct" for finding in self.findings)

    @property
    def sections(self) -> list[Section]:
        """What is shown."""
        return rehearsing.sections(self.seen, self.findings, self.outlook, self.commands, self.datasets)


def run(
    donors: Path, said: Said, dialect: Dialect, wishes: Wishes, out: Path | None, *, force: bool, as_json: bool
) -> bool:
    """Examine the donors, show what was found, write it if that was asked for; return whether all is ready."""
    if wishes.missing == "midpoint" and wishes.bounds is None:
        raise ParameterError("{midpoint} needs {bounds}.", midpoint=MIDPOINT, bounds=BOUNDS)
    if out is not None:
        if out.suffix not in (".html", ".json"):
            raise ParameterError(f"-o {out}: write a page (.html) or its numbers (.json).")
        common.require_free(out, force)
    with common.working("looking at the donors"):
        made = rehearse(donors, said, dialect, wishes)
    if out is not None:
        with common.output_file(out, force) as output:
            files.write(output.place, page(made) if out.suffix == ".html" else as_text(made))
            os.chmod(output.place, 0o600)
    if as_json:
        typer.echo(as_text(made))
        return made.ready
    show(made)
    return made.ready


def rehearse(donors: Path, said: Said, dialect: Dialect, wishes: Wishes) -> Rehearsal:
    """Examine the donors and say what a release would be like. Private: for the custodian only."""
    datasets = tuple(booking.datasets_here() or ())  # first, so that a broken ledger is told at once
    seen = custodian_examine(donors, said, periods=wishes.periods, missing=wishes.missing, dialect=dialect)
    found, T = list(seen.findings), len(seen.periods)
    found += [*_to_be_said(seen), *_order(seen)]
    if not seen.units or T < 2:
        if T == 1:
            found.append(Finding("correct", "periods", 1, "there is one period; a release needs at least 2"))
        return Rehearsal(seen, tuple(found), None, ())
    if wishes.before is not None and wishes.before >= T:
        raise ParameterError(f"--before {wishes.before} leaves no period after the intervention: there are {T}.")
    T0 = wishes.before or max(1, min(T - 1, round(0.75 * T)))
    like = wishes.target is not None and wishes.before is not None
    expected = outlook(
        seen.units, T, wishes.epsilon, wishes.delta, T0=T0, target=_history(wishes.target, seen, T0, said, dialect),
        averages=wishes.averages, like=like,
    )  # fmt: skip
    found += rehearsing.problems_of(expected)
    commands = _commands(donors, seen, wishes, seen.periods[T0] if like else None, datasets)
    return Rehearsal(seen, tuple(sorted(found, key=lambda finding: finding.grade)), expected, commands, datasets)


def _order(seen: CustodianExamination) -> list[Finding]:
    """Say that rows must be together in a file that is too large to be held in memory."""
    inside = formats.files_in(seen.path) if seen.path.is_dir() else [seen.path]
    if not seen.scattered or sum(file.stat().st_size for file in inside) <= LARGE:
        return []
    words = (
        f"the rows of {seen.scattered:,} units do not follow each other, and the file is read as a stream. Sort it by "
        "unit, or add --engine memory"
    )
    return [Finding("correct", "scattered", seen.scattered, words)]


def _history(
    target: Path | None, seen: CustodianExamination, T0: int, said: Said, dialect: Dialect
) -> pd.Series[float] | None:
    """Return the target before the intervention: before the period of that name, or its first T0 values."""
    if target is None:
        return None
    series = public_series.like(target, None, said.time_format, dialect)
    assert series is not None
    names = [period_name(period) for period in series.index]
    first = seen.periods[T0]
    return series.iloc[: names.index(first) if first in names else T0]


_FROM_ROWS = {"--periods": "FIRST..LAST", "--time-format": "FORMAT", "--decimal": "MARK", "--thousands": "MARK"}


def _from_rows(seen: CustodianExamination) -> list[str]:
    """Return the options that only the donors' rows showed; a wide table has its periods in the header."""
    wide = seen.layout is not None and seen.layout.wide
    return [name for name in seen.guessed if name in _FROM_ROWS and not (wide and name == "--periods")]


def _to_be_said(seen: CustodianExamination) -> list[Finding]:
    """Ask for what only the rows showed: one donor's rows must not decide what is published, or how others are read."""
    asked = _from_rows(seen)
    if not asked:
        return []
    words = (
        f"say {' and '.join(asked)} and check again. They decide what is published, or how everybody's numbers are "
        "read, so they must come from what you know of the data, not from its rows, where one person could decide them"
    )
    shown = dict(zip(seen.options, seen.options[1:], strict=False))
    return [Finding("correct", "to be said", len(asked), words,
                    tuple(f"the rows show {name} {shown[name]}" for name in asked))]  # fmt: skip


def _without_guesses(seen: CustodianExamination) -> list[str]:
    """Return the options of the command, with gaps for what the custodian must say."""
    options = list(seen.options)
    for name in _from_rows(seen):
        options[options.index(name) + 1] = _FROM_ROWS[name]
    return options


def _commands(
    donors: Path, seen: CustodianExamination, wishes: Wishes, like_before: str | None, datasets: tuple[str, ...]
) -> tuple[str, ...]:
    """Return what to run: a ledger, if there is none, and the release."""
    name = rehearsing.stem(donors)
    budget = ["--epsilon", rehearsing.small(wishes.epsilon), "--delta", rehearsing.small(wishes.delta)]
    options = [*_without_guesses(seen), *budget]
    if wishes.missing is not None:
        options += ["--missing", wishes.missing]
    if wishes.bounds is not None:
        options += ["--bounds", *(f"{end:g}" for end in wishes.bounds)]
    if like_before is not None:
        options += ["--like", str(wishes.target), "--like-before", like_before]
    place, number = Path(f"{name}.dpsc.json"), 2
    while place.exists():
        place, number = Path(f"{name}-{number}.dpsc.json"), number + 1
    release = rehearsing.command(["dpsc", "release", str(donors)], [*options, "-o", str(place)])
    if datasets:
        return (release,)
    return (rehearsing.command(["dpsc", "ledger", "init", name], budget), release)


def as_text(made: Rehearsal) -> str:
    """Return everything as JSON."""
    expected = None if made.outlook is None else {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(made.outlook).items()
    }  # fmt: skip
    seen = replace(made.seen, findings=made.findings).custodian_json() | {"ready": made.ready}
    content: dict[str, Any] = {"private": MARK, "ready": made.ready, "examination": seen, "outlook": expected,
                               "commands": made.commands, "mark": MARK}  # fmt: skip
    return json.dumps(content, ensure_ascii=False, default=str)


def page(made: Rehearsal) -> str:
    """Return everything as a page."""
    return web.render(
        "check.html", mark=MARK, verdict=rehearsing.verdict(made.findings), ready=made.ready, ended=rehearsing.ended,
        file=made.seen.path.name, sections=made.sections,
    )  # fmt: skip


def show(made: Rehearsal) -> None:
    """Print everything on stdout."""
    screen = common.console()
    screen.print(Text(f" {MARK} ", "bold white on red"))
    screen.print()
    verdict = Text.assemble(
        (f"{made.seen.path}  ", "bold"),
        (rehearsing.verdict(made.findings), "bold green" if made.ready else "bold red"),
    )
    screen.print(verdict)
    for section in made.sections:
        screen.print()
        _show_section(screen, section)
    screen.print()
    screen.print(verdict)
    screen.print()
    screen.print(Text(f" {MARK} ", "bold white on red"))


def _show_section(screen: Console, section: Section) -> None:
    screen.print(Text.assemble((section.title, "bold"), (f"  ({section.note})" if section.note else "", "dim")))
    for what in (_facts(section), _strip(section), _table(section), _findings(section)):
        if what is not None:
            screen.print(Padding(what, (0, 0, 0, 2)))
    for text in section.commands:
        screen.print()
        for line in text.splitlines():
            screen.print(Text(f"  {line}"), soft_wrap=True)
    if section.commands:
        screen.print()
    for line in section.lines:
        screen.print(Padding(Text(line), (0, 0, 0, 2)))


def _facts(section: Section) -> Table | None:
    if not section.facts:
        return None
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for name, value in section.facts:
        grid.add_row(Text(name), Text(value))
    return grid


def _strip(section: Section) -> Table | None:
    if not section.strip:
        return None
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(style="dim", no_wrap=True)
    for name, signs, share in section.strip:
        grid.add_row(Text(name), Text.assemble(*((s, "bold red" if s == "█" else "") for s in signs)), Text(share))
    return grid


def _table(section: Section) -> Padding | None:
    if not section.table:
        return None
    header, *rows = section.table
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    for k, name in enumerate(header):
        table.add_column(Text(name), justify="right" if 0 < k < 3 else "left", no_wrap=k < 3)
    for row in rows:
        table.add_row(*map(Text, row))
    return Padding(table, (1, 0, 0, 0) if section.strip else 0)


def _findings(section: Section) -> Table | None:
    if not section.findings:
        return None
    grid = Table.grid(padding=(0, 1))
    for finding in section.findings:
        sign, style = ("✕", "bold red") if finding.grade == "correct" else ("•", "yellow")
        grid.add_row(Text(sign, style), Text(rehearsing.ended(finding.words)))
        for example in finding.examples:
            grid.add_row("", Text(f"  {example}", "dim"))
        more = finding.count - len(finding.examples)
        if finding.examples and more > 0 and finding.kind != "alike":
            grid.add_row("", Text(f"  and {more:,} more", "dim"))
    return grid
