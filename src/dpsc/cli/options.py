"""The options that several commands share, each written once, and how a function becomes a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, get_type_hints

import typer

from dpsc.cli import terminal
from dpsc.custodian.custody.payer import DEFAULT
from dpsc.tables.dialect import Dialect
from dpsc.tables.spec import TableSpec

Command = Callable[..., None]


def command(name: str) -> Callable[[Command], Command]:
    """Make a function the command of that name, in which whatever goes wrong ends as one message.

    A parameter whose type is a dataclass stands for one option per field: options that belong together, or that several
    commands share, are written once, and the function is given one value.
    """

    def made(function: Command) -> Command:
        hints = get_type_hints(function, include_extras=True)
        groups: dict[str, type] = {}
        options = []
        for parameter in inspect.signature(function).parameters.values():
            kind = hints[parameter.name]
            if isinstance(kind, type) and is_dataclass(kind):
                groups[parameter.name] = kind
                inner = get_type_hints(kind, include_extras=True)
                options += [_option(field.name, inner[field.name], field.default) for field in fields(kind)]
            else:
                options.append(_option(parameter.name, kind, parameter.default))

        @wraps(function)
        def run(**given: object) -> None:
            with terminal.errors(name):
                for group, kind in groups.items():
                    given[group] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
                function(**given)

        run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        run.__annotations__ = {option.name: option.annotation for option in options}
        return run

    return made


def _option(name: str, kind: object, default: object) -> inspect.Parameter:
    none = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=none, annotation=kind)


_columns = partial(typer.Option, rich_help_panel="Columns")
_file = partial(typer.Option, rich_help_panel="How the file is written (recognised from its header, or said)")
_moves = partial(typer.Option, rich_help_panel="How much a donor moves")
_ledger = partial(typer.Option, rich_help_panel="Ledger")

Force = Annotated[bool, typer.Option("--force", help="Replace output that is already there.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON alone, for a program to read.")]
IKnow = Annotated[
    bool,
    typer.Option("--i-know", help="Accept an epsilon above 20, or a delta not below one over the number of donors."),
]
Title = Annotated[
    str | None, typer.Option(help="The question, as figures and the report put it: 'Wages, had they not been trained'.")
]
Periods = Annotated[
    str | None,
    _columns(
        help="The periods, declared and not read from the donors: a range such as 2022-01..2024-12, several "
        "ranges or periods with commas, a file with a column of periods, or 'reference' for those of --reference.",
    ),
]
Smoothness = Annotated[
    str | None,
    typer.Option(help="How persistent such series are, from public knowledge: high (default), mild or none."),
]
Reference = Annotated[
    Path | None, typer.Option(help="A table with a public path to subtract: one column of periods, one of numbers.")
]
LedgerUrl = Annotated[
    str | None,
    _ledger(
        "--ledger", help=f"The privacy ledger; by default DPSC_LEDGER, or {DEFAULT} in this folder.", metavar="URL"
    ),
]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Which columns of a table hold what, and how its file is written."""

    time: Annotated[str | None, _columns(help="The column of periods (long tables).")] = None
    outcome: Annotated[str | None, _columns(help="The column of numbers (long tables).")] = None
    time_format: Annotated[str | None, _columns(help="How dates are written, e.g. %d/%m/%Y.")] = None
    sep: Annotated[str | None, _file(help="Between columns: comma, semicolon, tab or pipe.")] = None
    decimal: Annotated[str | None, _file(help="Before decimals: point or comma.")] = None
    thousands: Annotated[str | None, _file(help="Between thousands: comma, point, space, apostrophe or none.")] = None
    encoding: Annotated[str | None, _file(help="utf-8, utf-16, windows-1252, latin-1, ...")] = None
    sheet: Annotated[str | None, _file(help="The sheet of a workbook (.xlsx).")] = None

    def spec(self, unit: str | None = None) -> TableSpec:
        """Return what was said of the table; marks that cannot be are refused."""
        dialect = Dialect(self.sep, self.decimal, self.thousands, self.encoding, self.sheet)
        return TableSpec(unit or "", self.time, self.outcome, time_format=self.time_format, dialect=dialect)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Where an answer goes, and what is written on it."""

    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Where to write, by its ending: a page (.html), a workbook (.xlsx), the numbers (.json), the table "
            "(.csv), the figure (.png, .svg), or a folder with all of them.",
        ),
    ] = None
    title: Title = None
    units: Annotated[str | None, typer.Option(help="What the outcome is measured in, for the report.")] = None
    level: Annotated[float, typer.Option(help="The level of the intervals.")] = 0.95
    force: Force = False
    json: Json = False
