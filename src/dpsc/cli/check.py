"""``dpsc check``: the rehearsal, for the custodian's eyes only. Everything that it shows is private, and marked so."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from json import dumps as to_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dpsc import checks, files
from dpsc.checks import written_out
from dpsc.cli import terminal
from dpsc.cli.options import COLUMNS, DonorTable, Force, IKnow, Json, command, option
from dpsc.errors import Parameter, ParameterError

if TYPE_CHECKING:
    from dpsc.custodian.check.check_report import Section
    from dpsc.custodian.check.run import Rehearsal, Wishes
    from dpsc.types import JsonObject


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the release would be like."""

    epsilon: float = option("The privacy budget that the release would have.", default=1.0)
    delta: float = option("Well below one over the number of donors.", default=1e-6)
    target: Path | None = option("The target, a public series; what to expect is then in its units.")
    before: int | None = option("Periods before the intervention; three quarters of all by default.", min=2)
    averages: int = option("How many units the target is the average of.", min=1, default=1)
    i_know: IKnow = False


@command("check")
def check(
    donors: Annotated[Path, typer.Argument(help="The donors: CSV, TSV, Excel, Parquet or Feather, or a folder.")],
    unit: Annotated[str | None, typer.Option(help="The column that names the units.", rich_help_panel=COLUMNS)] = None,
    *,
    table: DonorTable,
    asked: Asked,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write this private page (.html) or its numbers (.json).")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Look at donors before a release: all problems at once, and the command to run. PRIVATE: custodian only.

    Columns that are not named are guessed. Nothing is spent, and nothing is written unless -o says so. Ends with 0 if
    the donors are ready, with 1 if something must be corrected first.
    """
    from dpsc.custodian.check import check_report
    from dpsc.custodian.check.run import Wishes, rehearse
    from dpsc.custodian.custody.options import require_reasonable
    from dpsc.custodian.custody.payer import datasets_here

    said = table.spec(unit)
    wishes = Wishes(table.bounds, asked.epsilon, asked.delta, asked.target, asked.before, asked.averages)
    require_reasonable(asked.epsilon, asked.i_know)
    terminal.keep_apart(out, donors, asked.target)
    if out is not None:
        if out.suffix not in (".html", ".json"):
            raise ParameterError(f"-o {out}: write a page (.html) or its numbers (.json).")
        terminal.require_free(out, force)
    with terminal.working("looking at the donors"):
        datasets = datasets_here()  # first, so that a broken ledger is told at once
        made = rehearse(donors, said, wishes)
    commands = [] if made.outlook is None else _commands(donors, made, wishes, new_ledger=not datasets)
    parts = check_report.sections(made, commands, datasets or ())
    sections = [section.rendered(terminal.as_option) for section in parts]
    if out is not None:
        with terminal.output_file(out, force) as output:
            text = _page(made, sections) if out.suffix == ".html" else _as_json(made, commands)
            files.write(output.place, text, mode=0o600)
    if json:
        typer.echo(_as_json(made, commands))
    else:
        _show(made, sections)
    if not made.ready:
        raise typer.Exit(1)


def _commands(donors: Path, made: Rehearsal, wishes: Wishes, *, new_ledger: bool) -> list[str]:
    """Return what to run: a ledger, if there is none, and the release, with gaps for what must be said."""
    stem = donors.name.split(".")[0].lstrip("-") or "donors"
    budget = {"epsilon": wishes.epsilon, "delta": wishes.delta}
    said: JsonObject = made.seen.spec.parts() | made.seen.only_in_rows | budget
    if wishes.bounds is not None:
        said["bounds"] = wishes.bounds
    if made.like_before is not None:
        said |= {"like": str(wishes.target), "like_before": made.like_before}
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    place = next(place for name in names if not (place := Path(f"{name}.dpsc.json")).exists())
    release = checks.command(["dpsc", "release", str(donors)], [*checks.options(said), "-o", str(place)])
    return [checks.command(["dpsc", "ledger", "init", stem], checks.options(budget)), release][not new_ledger :]


def _as_json(made: Rehearsal, commands: list[str]) -> str:
    """Return everything as JSON."""
    from dpsc.custodian.check.examine import MARK

    outlook = {} if made.outlook is None else asdict(made.outlook)
    for name, value in outlook.items():
        if isinstance(value, float) and not math.isfinite(value):
            outlook[name] = None
    seen = asdict(made.seen) | {
        "path": str(made.seen.path),
        "options": made.seen.spec.options(),
        "guessed": [Parameter(name).option for name in made.seen.guessed],
        "findings": [asdict(finding.rendered(terminal.as_option)) for finding in made.findings],
        "ready": made.ready,
    }
    content = {
        "private": MARK,
        "ready": made.ready,
        "examination": seen,
        "outlook": outlook or None,
        "commands": commands,
    }
    return to_json(content | {"mark": MARK}, default=str)


def _page(made: Rehearsal, sections: list[Section]) -> str:
    """Return everything as a page."""
    from dpsc.answers import report, words
    from dpsc.custodian.check.check_report import verdict
    from dpsc.custodian.check.examine import MARK

    return report.render(
        "check.html",
        mark=MARK,
        verdict=verdict(made.findings),
        ready=made.ready,
        ended=words.sentence,
        file=made.seen.path.name,
        sections=sections,
    )


def _show(made: Rehearsal, sections: list[Section]) -> None:
    """Print everything on stdout."""
    from dpsc.custodian.check.check_report import verdict
    from dpsc.custodian.check.examine import MARK

    screen = terminal.console()
    screen.print(Text(f" {MARK} ", "bold white on red"))
    screen.print()
    told = Text.assemble(
        (written_out(f"{made.seen.path}  "), "bold"),
        (verdict(made.findings), "bold green" if made.ready else "bold red"),
    )
    screen.print(told)
    for section in sections:
        screen.print()
        _show_section(screen, section)
    screen.print()
    screen.print(told)
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
    from dpsc.answers.words import sentence

    if not section.findings:
        return None
    grid = Table.grid(padding=(0, 1))
    for finding in section.findings:
        sign, style = ("✕", "bold red") if finding.grade == "correct" else ("•", "yellow")
        grid.add_row(Text(sign, style), _text(sentence(finding.words)))
        for example in finding.examples:
            grid.add_row("", _text(f"  {example}", "dim"))
        more = finding.count - len(finding.examples)
        if finding.examples and more > 0 and finding.kind != "alike":
            grid.add_row("", Text(f"  and {more:,} more", "dim"))
    return grid


def _text(text: str, style: str = "") -> Text:
    """Return a text that does nothing to a terminal: names of columns and files may hold control characters."""
    return Text(written_out(text), style)
