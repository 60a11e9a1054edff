"""``dpsc check``: the rehearsal, for the custodian's eyes only. Everything that it shows is private, and marked so."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from json import dumps as to_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.box import SIMPLE_HEAD
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dpsc import checks, files
from dpsc.checks import written_out
from dpsc.cli import terminal
from dpsc.cli.options import (
    A_DELTA,
    A_UNIT,
    COLUMNS,
    DONORS_ARE,
    DonorTableOptions,
    Force,
    Groups,
    IKnow,
    Json,
    Knowledge,
    RowsOptions,
    SegmentOptions,
    command,
    option,
    require_for_people,
)
from dpsc.errors import Parameter, ParameterError
from dpsc.tables.places import Selection
from dpsc.tables.spec import MIDPOINT

if TYPE_CHECKING:
    from dpsc.custodian.check.check_report import Section
    from dpsc.custodian.check.examine import CustodianExamination
    from dpsc.custodian.check.people import CustodianLook
    from dpsc.tables.spec import TableSpec
    from dpsc.types import JsonObject


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the release would be like."""

    epsilon: float = option("The budget of the release.", default=1.0)
    delta: float = option(A_DELTA, default=1e-6)
    before: int | None = option(
        "Instead of --treatment-time: how many periods are before the intervention; three quarters by default.",
        min=2,
    )
    averages: int = option("How many units the target is the average of.", min=1, default=1)
    i_know: IKnow = False

    @property
    def budget(self) -> JsonObject:
        """Epsilon and delta, by name."""
        return {"epsilon": self.epsilon, "delta": self.delta}


@command(
    "check",
    "dpsc check patients.csv --periods 2021-01..2023-12",
    "dpsc check donors.csv --periods target.csv --target target.csv --treatment-time 2023-04 -o check.html",
)
def check(
    where: Annotated[str, typer.Argument(metavar="DONORS", help=DONORS_ARE)],
    unit: Annotated[str | None, typer.Option(help=A_UNIT, metavar="COLUMN", rich_help_panel=COLUMNS)] = None,
    *,
    table: DonorTableOptions,
    rows: RowsOptions,
    segments: SegmentOptions,
    knowledge: Knowledge,
    groups: Groups,
    asked: Asked,
    out: Path | None = option("Also write this private page (.html) or its numbers (.json).", "--out", "-o"),
    force: Force = False,
    json: Json = False,
) -> None:
    """Look at donors before a release: all problems at once, and the command to run. PRIVATE: custodian only.

    Columns that are not named are guessed. Nothing is spent. Exit code: 0 if the donors are ready, 1 if something must
    be corrected first.
    """
    from dpsc.custodian.custody.payer import datasets_here
    from dpsc.custodian.custody.steps import require_reasonable
    from dpsc.custodian.donors.missing import BOUNDS

    donors, said = rows.place(where), segments.spec(groups.spec(table.spec(unit)))
    if said.missing == "midpoint" and table.bounds is None:
        raise ParameterError(f"{MIDPOINT} needs {BOUNDS}.")
    require_reasonable(asked.epsilon, asked.i_know)
    terminal.keep_apart(out, donors, knowledge.like, knowledge.reference)
    if out is not None:
        if out.suffix not in (".html", ".json"):
            raise ParameterError(f"-o {out}: write a page (.html) or its numbers (.json).")
        terminal.require_free(out, force)
    if groups.person is not None:
        require_for_people(asdict(knowledge) | {"before": asked.before})
    datasets = datasets_here()  # first, so that a broken ledger is told at once
    if groups.person is None:
        looked = _at_donors(donors, said, table.bounds, knowledge, asked, datasets or ())
    else:
        looked = _at_people(donors, said, table.bounds, groups, asked)
    seen = looked.seen
    commands = [] if looked.said is None else _to_run(donors, looked.said, asked.budget, new_ledger=not datasets)
    sections = [section.rendered(terminal.as_option) for section in looked.sections(commands)]
    content = _as_json(looked, commands)
    if out is not None:
        with terminal.output_file(out, force) as output:
            text = _page(donors, seen, sections) if out.suffix == ".html" else content
            files.write(output.place, text, mode=0o600)
    if json:
        typer.echo(content)
    else:
        _show(donors, seen, sections)
    if not seen.ready:
        raise typer.Exit(1)


class Looked(NamedTuple):
    """What was found, what is said of it given the commands to run, and what these say; they are None without any."""

    seen: CustodianExamination | CustodianLook
    sections: Callable[[list[str]], list[Section]]
    said: JsonObject | None
    content: JsonObject


def _at_donors(
    donors: Path,
    said: TableSpec,
    bounds: tuple[float, float] | None,
    knowledge: Knowledge,
    asked: Asked,
    datasets: Sequence[str],
) -> Looked:
    """Look at donors before a release of them."""
    from dpsc.custodian.check import check_report
    from dpsc.custodian.check.run import rehearse

    with terminal.passes() as tell:
        tell("looking at the donors", 0, None)
        (known,) = knowledge.each(1)
        about: JsonObject = {"before": asked.before, "averages": asked.averages}
        about["on_rows"] = lambda rows: tell("looking at the donors", rows, None)
        made = rehearse(donors, said, asked.epsilon, asked.delta, **known, **about)
    seen, outlook = made.seen, {} if made.outlook is None else asdict(made.outlook) | made.outlook.ranges
    options = seen.spec.parts() | seen.only_in_rows | asked.budget | made.said
    options |= _given(periods=seen.fitting, bounds=bounds)
    examination = asdict(seen) | {
        "path": str(seen.path),
        "options": seen.spec.options(),
        "guessed": [Parameter(name).option for name in seen.guessed],
        "ready": seen.ready,
    }
    content = {"examination": examination | _findings(seen), "outlook": _finite(outlook) or None}
    sections = partial(check_report.sections, made, datasets=datasets)
    return Looked(seen, sections, options if outlook else None, content)


def _at_people(
    records: Path, said: TableSpec, bounds: tuple[float, float] | None, groups: Groups, asked: Asked
) -> Looked:
    """Look at records of people before a release of their table."""
    from dpsc.custodian.check.people import custodian_look
    from dpsc.custodian.check.people_report import sections
    from dpsc.custodian.custody import panels
    from dpsc.custodian.groups.sources import people_in

    chosen = panels.of_options(said, **asked.budget, bounds=bounds, i_know=asked.i_know, **groups.said())
    people = people_in(records, said, chosen.units, chosen.periods)
    rule = panels.opened(people, chosen, None)
    (block,) = panels.rehearsed(people, chosen, None).blocks
    expected = people.rows_expected()
    with terminal.passes() as tell:
        look = custodian_look(people, block, lambda rows: tell("reading records", rows, expected))
    promise = chosen.algorithm.guarantee_for(rule)
    assert promise is not None
    options = said.parts() | _given(bounds=bounds) | groups.said() | asked.budget | _given(periods=look.fitting)
    content = asdict(look) | {"in_cells": look.in_cells.tolist(), "too_few": look.too_few.tolist()}
    return Looked(look, partial(sections, look, promise, said), options, _finite(content | _findings(look)))


def _given(**said: object) -> JsonObject:
    return {name: value for name, value in said.items() if value is not None}


def _findings(seen: CustodianExamination | CustodianLook) -> JsonObject:
    return {"findings": [asdict(finding.rendered(terminal.as_option)) for finding in seen.findings]}


def _finite(content: JsonObject) -> JsonObject:
    """Return numbers for JSON, which knows no infinity."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in content.items()}


def _to_run(data: Path, said: JsonObject, budget: JsonObject, *, new_ledger: bool) -> list[str]:
    """Return the command that makes a ledger, if there is none, and the one that makes a release."""
    stem = data.name.split(".")[0].lstrip("-") or "donors"
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    place = next(place for name in names if not (place := Path(f"{name}.dpsc.json")).exists())
    release = checks.command(
        ["dpsc", "release", *(data.typed() if isinstance(data, Selection) else [str(data)])],
        [*checks.options(said), "-o", str(place)],
    )
    return [checks.command(["dpsc", "ledger", "init", stem], checks.options(budget)), release][not new_ledger :]


def _as_json(looked: Looked, commands: list[str]) -> str:
    """Return everything as JSON."""
    from dpsc.custodian.check.examine import MARK

    head = {"private": MARK, "ready": looked.seen.ready}
    return to_json(head | looked.content | {"commands": commands, "mark": MARK}, default=str)


def _page(path: Path, seen: CustodianExamination | CustodianLook, sections: list[Section]) -> str:
    """Return everything as a page."""
    from dpsc.answers import report, words
    from dpsc.custodian.check.check_report import verdict
    from dpsc.custodian.check.examine import MARK

    about = {"verdict": verdict(seen.findings), "ready": seen.ready, "file": path.name}
    return report.render("check.html", mark=MARK, ended=words.sentence, sections=sections, **about)


def _show(path: Path, seen: CustodianExamination | CustodianLook, sections: list[Section]) -> None:
    """Print everything on stdout."""
    from dpsc.custodian.check.check_report import verdict
    from dpsc.custodian.check.examine import MARK

    screen, mark = terminal.console(), Text(f" {MARK} ", "bold white on red")
    said = (verdict(seen.findings), "bold green" if seen.ready else "bold red")
    told = Text.assemble((written_out(f"{path}  "), "bold"), said)
    terminal.blocks(screen, mark, told)
    for section in sections:
        screen.print()
        note = f"  ({section.note})" if section.note else ""
        screen.print(Text.assemble((written_out(section.title), "bold"), (note, "dim")))
        for part in _parts(section):
            screen.print(Padding(part, (0, 0, 0, 2)))
        for text in section.commands:
            screen.print()
            for line in text.splitlines():
                screen.print(_text(f"  {line}"), soft_wrap=True)
        if section.commands:
            screen.print()
        for line in section.lines:
            screen.print(Padding(_text(line), (0, 0, 0, 2)))
    screen.print()
    terminal.blocks(screen, told, mark)


def _parts(section: Section) -> Iterator[Table | Padding]:
    """Return the facts, the strip, the table and the findings of a section, as far as it has them."""
    from dpsc.answers.words import sentence

    if section.facts or section.strip:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(no_wrap=bool(section.strip))
        for name, value in section.facts:
            grid.add_row(_text(name), _text(value))
        for name, signs, share in section.strip:
            strip = Text.assemble(*((sign, "bold red" if sign == "█" else "") for sign in signs))
            grid.add_row(_text(name), strip, Text(share, "dim", no_wrap=True))
        yield grid
    if section.table:
        header, *rows = section.table
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
        for k, name in enumerate(header):
            table.add_column(_text(name), justify="right" if 0 < k < 3 else "left", no_wrap=k < 3)
        for row in rows:
            table.add_row(*map(_text, row))
        yield Padding(table, (1, 0, 0, 0) if section.strip else 0)
    for finding in section.findings:
        grid, correct = Table.grid(padding=(0, 1)), finding.grade == "correct"
        words = _text(sentence(finding.words), "red" if finding.kind == "calendar" else "")
        grid.add_row(Text("✕", "bold red") if correct else Text("•", "yellow"), words)
        for example in finding.examples:
            grid.add_row("", _text(f"  {example}", "dim"))
        more = finding.count - len(finding.examples)
        if finding.examples and more > 0 and finding.kind != "alike":
            grid.add_row("", Text(f"  and {more:,} more", "dim"))
        yield grid


def _text(text: str, style: str = "") -> Text:
    """Return a text that does nothing to a terminal: names of columns and files may hold control characters."""
    return Text(written_out(text), style)
