"""The options that several commands share, each written once, and how a function becomes a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, is_dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from dpsc import files
from dpsc.cli import terminal
from dpsc.custodian.custody.payer import DEFAULT
from dpsc.errors import Parameter, ParameterError
from dpsc.tables.places import place_of
from dpsc.tables.spec import TableSpec

if TYPE_CHECKING:
    from dpsc.types import JsonObject

Command = Callable[..., None]


def command(name: str, *examples: str) -> Callable[[Command], Command]:
    """Make a function the command of that name, in which whatever goes wrong ends as one message.

    A parameter whose type is a dataclass stands for one option per field: options that belong together, or that several
    commands share, are written once, and the function is given one value. Examples stand below the help, and on the
    command's page of the documentation.
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
                options += [_parameter(each.name, inner[each.name], each) for each in fields(kind)]
            else:
                options.append(_parameter(parameter.name, kind, parameter.default))

        @wraps(function)
        def run(**given: object) -> None:
            with terminal.errors(name):
                for group, kind in groups.items():
                    given[group] = kind(**{each.name: given.pop(each.name) for each in fields(kind)})
                function(**given)

        run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        run.__annotations__ = {option.name: option.annotation for option in options}
        run.__dict__["examples"] = examples
        return run

    return made


def add_to(app: typer.Typer, *commands: Command) -> None:
    """Add commands to a program, each with its examples below its help."""
    for each in commands:
        lines: tuple[str, ...] = each.__dict__["examples"]
        app.command(epilog="\n\n".join(["For example:", *lines]) if lines else None)(each)


def _parameter(name: str, kind: object, default: object) -> inspect.Parameter:
    """Return a parameter as typer knows it; a switch has no opposite: there is no --no-force."""
    if isinstance(default, Field):
        about, default = default.metadata, default.default
        if about:
            names = about["names"] or ((f"--{name.replace('_', '-')}",) if default is False else ())
            kind = Annotated[kind, typer.Option(*names, **{"metavar": _takes(kind)} | about["how"])]
    none = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=none, annotation=kind)


def _takes(kind: object) -> str | None:
    """Return the word for what an option of this type takes; a switch takes nothing."""
    inner = get_args(kind)
    if inner:
        return next(filter(None, map(_takes, inner)), None)
    return {Path: "FILE", int: "N", float: "NUMBER", str: "TEXT"}.get(kind)  # type: ignore[call-overload,no-any-return]


def option(help: str, *names: str, default: Any = None, panel: str | None = None, **how: Any) -> Any:
    """Return a field that is an option, of a command or a dataclass; with the default ``MISSING`` it must be given."""
    metadata = {"names": names, "how": {"help": help, "rich_help_panel": panel, **how}}
    return field(default=default, metadata=metadata)


COLUMNS, _LEDGER, FILE_FORMAT = "Columns", "Ledger", "How the file is written, if not recognised"
columns, _ledger = partial(option, panel=COLUMNS), partial(option, panel=_LEDGER)
_file = partial(option, panel=FILE_FORMAT)
_database = partial(option, panel="Donors in a database")
_treated, _worth = partial(option, panel="When it was on"), partial(option, panel="What it is worth")
_in_groups = partial(option, panel="People in groups")
_segments = partial(option, panel="Segments of donors")
moves = partial(option, panel="How much a donor moves")

DONORS_ARE = (
    "The donors, or records of people: CSV, TSV, Excel, Parquet or Feather, or a folder of them, here or in an object "
    "store (s3://...); or a database (postgresql://..., sqlite:///..., duckdb:///...)."
)
A_UNIT = "The column that names the units."
A_DELTA = "Well below one over the number of donors."
A_STATISTIC = "What is released of the people in a cell: mean (default), total, share or count."
Force = Annotated[bool, typer.Option("--force", help="Replace existing output.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON alone.")]
IKnow = Annotated[
    bool,
    typer.Option("--i-know", help="Accept an epsilon above 20, or too large a delta."),
]
Title = Annotated[
    str | None, typer.Option(metavar="TEXT", help="The title of report and figures: 'Wages without the training'.")
]
Periods = Annotated[
    str | None,
    typer.Option(
        help="All periods, declared, not read from donors: 2022-01..2024-12, '2024-01-01..2024-12-30 by week', "
        "a list with commas, a file with a column of them, or 'reference' for those of --reference.",
        metavar="PERIODS",
        rich_help_panel=COLUMNS,
    ),
]
_BY_DEFAULT = f"The ledger; by default DPSC_LEDGER, or {DEFAULT} in this folder."
LedgerUrl = Annotated[str | None, typer.Option("--ledger", help=_BY_DEFAULT, metavar="URL", rich_help_panel=_LEDGER)]


@dataclass(frozen=True, kw_only=True)
class RowsOptions:
    """Which rows are read, if they are in a database."""

    rows_of: str | None = _database("The table: visits, or clinic.visits.", "--table", metavar="TABLE")
    query: str | None = _database("Instead of --table, a query.")
    query_file: Path | None = _database("Instead of --table, a file with a query.")

    def place(self, donors: str) -> Path:
        """Return where the donors are: a path, an address of an object store, or rows of a database."""
        query = self.query
        if self.query_file is not None:
            if query is not None:
                raise ParameterError(f"{Parameter('query')} and {Parameter('query_file')} exclude each other.")
            query = files.read_text(self.query_file, "file with a query", 2**20)
        return place_of(donors, self.rows_of, query)


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Which columns of a table hold what, and how its file is written."""

    time: str | None = columns("The column of periods, of a long table.", metavar="COLUMN")
    outcome: list[str] | None = columns(
        "The column of numbers, of a long table; several for release and estimate.",
        metavar="COLUMN",
    )
    time_format: str | None = columns("How dates are written, such as %d/%m/%Y.")
    sep: str | None = _file("The mark between columns: comma, semicolon, tab or pipe.")
    decimal: str | None = _file("The mark before decimals: point or comma.")
    thousands: str | None = _file("The mark between thousands: comma, point, space, apostrophe or none.")
    encoding: str | None = _file("The encoding of a text file: utf-8, utf-16, windows-1252, latin-1, ...")
    sheet: str | None = _file("The sheet of a workbook (.xlsx).")

    def spec(self, unit: str | None = None) -> TableSpec:
        """Return what was said of the table; bounds are not part of it. It has one outcome at most."""
        if len(self.outcome or ()) > 1:
            raise ParameterError(f"{Parameter('outcome')} is given {len(self.outcome or ())} times; give it once here.")
        return self.specs(unit)[0]

    def specs(self, unit: str | None = None) -> list[TableSpec]:
        """Return it for each outcome."""
        said = asdict(self) | {"unit": unit, "bounds": None}
        return [TableSpec.of(said | {"outcome": outcome}) for outcome in self.outcome or (None,)]


@dataclass(frozen=True, kw_only=True)
class DonorTableOptions(TableOptions):
    """The same of a table of donors, with its periods and what to do with cells that are missing or given twice."""

    wide: bool = columns("One row per unit, one column per period.", default=False)
    periods: Periods = None
    bounds: tuple[float, float] | None = option(
        "Public bounds of the outcome. A number beyond them becomes the bound, silently.",
        metavar="LO HI",
    )
    missing: str | None = option(
        "Missing cells: error refuses them (default without --periods); kernel fills in what a "
        "donor's other cells suggest (default with --periods; Gram releases only); interpolate; midpoint of --bounds."
    )
    repeated: str | None = option(
        "Several rows for one cell: missing (default), sum (bills), mean (readings) or last (corrections)."
    )


@dataclass(frozen=True, kw_only=True)
class SegmentOptions:
    """By what donors are divided, and into which segments."""

    by: str | None = _segments(
        "The column of segments: age band, plan, region. Analysts may then ask donors of the target's own kind, at no "
        "further cost.",
        metavar="COLUMN",
    )
    labels: str | None = _segments(
        "The segments, declared: basic,plus,pro. Donors with another label, several, or none are in 'other'."
    )

    def spec(self, table: TableSpec) -> TableSpec:
        """Add what was said of segments to what was said of their table."""
        return replace(table, by=self.by, labels=self.labels)


@dataclass(frozen=True, kw_only=True)
class Groups:
    """People inside units, each of whom is protected: the table of units and periods is released itself."""

    person: str | None = _in_groups(
        "The column that names people, if a row is a record of a person in a unit and period. Each person is then "
        "protected, and the table of units and periods is released.",
        metavar="COLUMN",
    )
    units: str | None = _in_groups("The units, declared: a list with commas, or a file with a column of them.")
    statistic: str | None = _in_groups(A_STATISTIC)
    person_bound: float | None = _in_groups(
        "A public bound on all values of a person together (the root of the sum of their squares). A small bound takes "
        "less noise and cuts more values."
    )
    person_bound_quantile: float | None = _in_groups(
        "Find that bound privately instead, so that about this share of people stay as they are: 0.5. It takes a "
        "twentieth of the budget."
    )
    cells_per_period: int | None = _in_groups("In how many units a person counts in one period; 1 by default.")
    cells_per_person: int | None = _in_groups("In how many cells a person counts over all periods.")

    def said(self) -> JsonObject:
        """Return what was said of how people are bounded."""
        how = {name: value for name, value in asdict(self).items() if name not in ("person", "units")}
        return {name: value for name, value in how.items() if value is not None}

    def spec(self, table: TableSpec) -> TableSpec:
        """Add what was said of people to what was said of their table."""
        if self.person is None and (said := next(iter(self.said()), None)):
            raise ParameterError(f"{Parameter(said)} belongs to {Parameter('person')}, the column that names people.")
        return replace(table, person=self.person, units=self.units)


def require_for_people(said: JsonObject) -> None:
    """Refuse what was said of donors where people in groups are protected."""
    for name, value in said.items():
        if value not in (None, False):
            raise ParameterError(f"{Parameter(name)} is for donors, not for people in groups; leave it out.")


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What is known publicly of how such series move."""

    like: Path | None = moves(
        "A public series that moves about as much as a donor, such as the target: a table of periods and numbers. Of "
        "more columns, those named as the donors' are taken.",
        "--target",
        "--like",
        metavar="FILE",
    )
    like_before: str | None = moves(
        "The first treated period. Only what is before it says how much donors move.",
        "--treatment-time",
        "--like-before",
        metavar="PERIOD",
    )
    scale: list[float] | None = moves(
        "Instead of such a series: how much a donor's moves (standard deviation over all periods), from public "
        "knowledge; a factor of two matters little. With neither, it is found privately if donors are enough. Needed "
        "for donors that move by more than 1e12. Once for each outcome."
    )
    smoothness: str | None = moves("How slowly such series move, from public knowledge: high (default), mild or none.")
    reference: Path | None = moves("A public series to subtract from every donor, such as prices.")

    def each(self, outcomes: int) -> list[JsonObject]:
        """Return what is known of each of so many outcomes, by the names of parameters."""
        scales: list[float | None] = [*self.scale] if self.scale else [None] * outcomes
        if len(scales) != outcomes:
            many = f"{outcomes} outcomes" if outcomes > 1 else "one outcome"
            raise ParameterError(f"{Parameter('scale')} is given {len(scales)} times for {many}.")
        return [asdict(self) | {"scale": scale} for scale in scales]


@dataclass(frozen=True, kw_only=True)
class Payer:
    """Which data set of which ledger pays, and what for."""

    ledger: LedgerUrl = None
    dataset: str | None = _ledger("The data set whose budget is used; needed if the ledger has several.", "--dataset")
    partition: str | None = _ledger("The group of donors whose budget is used, if groups are disjoint and public.")
    purpose: str | None = _ledger("What the release is for; kept in the ledger.")
    no_ledger: bool = _ledger(
        "Book nothing. Needed where there is no ledger and nobody at a terminal to ask.", default=False
    )

    def account(self) -> terminal.Account:
        """Open the ledger, if there is one."""
        terms = {"partition": self.partition, "purpose": self.purpose}
        stop = terminal.require_not_interrupted
        return terminal.Account(self.ledger, self.dataset, **terms, no_ledger=self.no_ledger, last_look=stop)


@dataclass(frozen=True, kw_only=True)
class TreatmentOptions:
    """When the treatment ends, which of its periods are left out, and what its effect is worth."""

    treatment_end: str | None = _treated(
        "The last treated period, if the treatment ended. The answer then says whether the effect fades.",
        "--until",
        "--treatment-end",
        metavar="PERIOD",
    )
    gap: int = _treated(
        "How many periods to leave out, from the first treated one on: neither fitted nor part of the effect.",
        default=0,
        min=0,
    )
    value_per_unit: float | None = _worth(
        "What one unit of the outcome is worth, per period and per unit that the target averages: 1 if it is money, "
        "negative if less of it is better."
    )
    cost: float | None = _worth("What the intervention cost. The return is value over cost.", min=0)
    currency: str | None = _worth("The currency of value and cost, such as EUR.")

    def said(self) -> dict[str, Any]:
        """Return what was said, by the names of parameters."""
        return asdict(self) | {"currency": self.currency or ""}


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """Where an answer goes, and what is written on it."""

    out: Path | None = option(
        "By its ending a page (.html), a workbook (.xlsx), numbers (.json), the table of periods (.csv), a figure "
        "(.png, .svg), a paragraph with all tables (.md, .tex); without one, a folder with page, figures and numbers.",
        "--out",
        "-o",
    )
    title: Title = None
    units: str | None = option("What the outcome is measured in: EUR; of several outcomes orders=pieces,revenue=EUR.")
    brief: bool = option(
        "One side of paper for a board: question, answer, figure, three numbers, what was protected. -o ends in .html.",
        default=False,
    )
    level: float = option("The level of the intervals.", default=0.95)
    force: Force = False
    json: Json = False

    def __post_init__(self) -> None:
        if self.brief and (self.out is None or self.out.suffix.lower() not in (".html", ".htm")):
            raise ParameterError("--brief makes one page: name a file that ends in .html with -o.")

    def units_of(self, outcomes: Collection[str]) -> dict[str, str]:
        """Return the units of each of several outcomes."""
        said = [part.partition("=") for part in (self.units or "").split(",") if part.strip()]
        found = {name.strip(): units.strip() for name, _, units in said}
        if not all(name in outcomes and units for name, units in found.items()):
            first = next(iter(outcomes))
            raise ParameterError(
                f"--units of several outcomes are given by name: {first}=EUR; or choose one with --outcome."
            )
        return found
