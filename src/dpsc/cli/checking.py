"""What ``dpsc check`` does: examine the donors, say what a release would be like, show it all to the custodian.

Everything here is private, and marked so at the beginning and at the end.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dpsc import files
from dpsc.answers import report
from dpsc.checks import written_out
from dpsc.cli import terminal
from dpsc.custodian.check import check_report
from dpsc.custodian.check.check_report import Section
from dpsc.custodian.check.examine import MARK
from dpsc.custodian.check.guess import Said
from dpsc.custodian.check.run import Rehearsal, Wishes, rehearse
from dpsc.custodian.custody.payer import datasets_here
from dpsc.errors import ParameterError
from dpsc.tables.dialect import Dialect


def run(
    donors: Path, said: Said, dialect: Dialect, wishes: Wishes, out: Path | None, *, force: bool, as_json: bool
) -> bool:
    """Examine the donors, show what was found, write it if that was asked for; return whether all is ready."""
    if out is not None:
        if out.suffix not in (".html", ".json"):
            raise ParameterError(f"-o {out}: write a page (.html) or its numbers (.json).")
        terminal.require_free(out, force)
    with terminal.working("looking at the donors"):
        datasets = tuple(datasets_here() or ())  # first, so that a broken ledger is told at once
        made = rehearse(donors, said, dialect, wishes, datasets)
    if out is not None:
        with terminal.output_file(out, force) as output:
            files.write(output.place, page(made) if out.suffix == ".html" else as_text(made), mode=0o600)
    if as_json:
        typer.echo(as_text(made))
        return made.ready
    show(made)
    return made.ready


def as_text(made: Rehearsal) -> str:
    """Return everything as JSON."""
    expected = None if made.outlook is None else {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(made.outlook).items()
    }  # fmt: skip
    seen = replace(made.seen, findings=made.findings).custodian_json() | {"ready": made.ready}
    content: dict[str, Any] = {"private": MARK, "ready": made.ready, "examination": seen, "outlook": expected,
                               "commands": made.commands, "mark": MARK}  # fmt: skip
    return json.dumps(content, default=str)


def page(made: Rehearsal) -> str:
    """Return everything as a page."""
    return report.render(
        "check.html",
        mark=MARK,
        verdict=check_report.verdict(made.findings),
        ready=made.ready,
        ended=check_report.ended,
        file=made.seen.path.name,
        sections=made.sections,
    )


def show(made: Rehearsal) -> None:
    """Print everything on stdout."""
    screen = terminal.console()
    screen.print(Text(f" {MARK} ", "bold white on red"))
    screen.print()
    verdict = Text.assemble(
        (written_out(f"{made.seen.path}  "), "bold"),
        (check_report.verdict(made.findings), "bold green" if made.ready else "bold red"),
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
    screen.print(
        Text.assemble((written_out(section.title), "bold"), (f"  ({section.note})" if section.note else "", "dim"))
    )
    for what in (_facts(section), _strip(section), _table(section), _findings(section)):
        if what is not None:
            screen.print(Padding(what, (0, 0, 0, 2)))
    for text in section.commands:
        screen.print()
        for line in text.splitlines():
            screen.print(_text(f"  {line}"), soft_wrap=True)
    if section.commands:
        screen.print()
    for line in section.lines:
        screen.print(Padding(_text(line), (0, 0, 0, 2)))


def _facts(section: Section) -> Table | None:
    if not section.facts:
        return None
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for name, value in section.facts:
        grid.add_row(_text(name), _text(value))
    return grid


def _strip(section: Section) -> Table | None:
    if not section.strip:
        return None
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(style="dim", no_wrap=True)
    for name, signs, share in section.strip:
        grid.add_row(_text(name), Text.assemble(*((s, "bold red" if s == "█" else "") for s in signs)), Text(share))
    return grid


def _table(section: Section) -> Padding | None:
    if not section.table:
        return None
    header, *rows = section.table
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    for k, name in enumerate(header):
        table.add_column(_text(name), justify="right" if 0 < k < 3 else "left", no_wrap=k < 3)
    for row in rows:
        table.add_row(*map(_text, row))
    return Padding(table, (1, 0, 0, 0) if section.strip else 0)


def _findings(section: Section) -> Table | None:
    if not section.findings:
        return None
    grid = Table.grid(padding=(0, 1))
    for finding in section.findings:
        sign, style = ("✕", "bold red") if finding.grade == "correct" else ("•", "yellow")
        grid.add_row(Text(sign, style), _text(check_report.ended(finding.words)))
        for example in finding.examples:
            grid.add_row("", _text(f"  {example}", "dim"))
        more = finding.count - len(finding.examples)
        if finding.examples and more > 0 and finding.kind != "alike":
            grid.add_row("", Text(f"  and {more:,} more", "dim"))
    return grid


def _text(text: str, style: str = "") -> Text:
    """Return a text that does nothing to a terminal: names of columns and files may hold control characters."""
    return Text(written_out(text), style)
