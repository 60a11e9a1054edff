"""The options that several commands share, each written once, and how a function becomes a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, is_dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

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
        return run

    return made


def _parameter(name: str, kind: object, default: object) -> inspect.Parameter:
    """Return a parameter as typer knows it; a switch has no opposite: there is no --no-force."""
    if isinstance(default, Field):
        about, default = default.metadata, default.default
        if about:
            names = about["names"] or ((f"--{name.replace('_', '-')}",) if default is False else ())
            kind = Annotated[kind, typer.Option(*names, **about["how"])]
    none = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=none, annotation=kind)


def option(help: str, *names: str, default: Any = None, panel: str | None = None, **how: Any) -> Any:
    """Return a field that is an option, of a command or a dataclass; with the default ``MISSING`` it must be given."""
    metadata = {"names": names, "how": {"help": help, "rich_help_panel": panel, **how}}
    return field(default=default, metadata=metadata)


COLUMNS, _LEDGER = "Columns", "Ledger"
columns, _ledger = partial(option, panel=COLUMNS), partial(option, panel=_LEDGER)
_file = partial(option, panel="How the file is written (recognised from its header, or said)")
_database = partial(option, panel="Donors in a database (postgresql://..., sqlite:///..., duckdb:///...)")
_treated, _worth = partial(option, panel="When it was on"), partial(option, panel="What it is worth")
_in_groups = partial(option, panel="People in groups")
_segments = partial(option, panel="Segments of donors")
moves = partial(option, panel="How much a donor moves")

DONORS_ARE = (
    "The donors, or records of people: CSV, TSV, Excel, Parquet or Feather, a folder of them, here or in an object "
    "store (s3://...); or a database (postgresql://..., sqlite:///..., duckdb:///...)."
)
Force = Annotated[bool, typer.Option("--force", help="Replace output that is already there.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON alone, for a program to read.")]
IKnow = Annotated[
    bool,
    typer.Option("--i-know", help="Accept an epsilon above 20, or a delta that is too large."),
]
Title = Annotated[str | None, typer.Option(help="The question, for figures and report: 'Wages without the training'.")]
Periods = Annotated[
    str | None,
    typer.Option(
        help="The periods, declared and not read from the donors: a range such as 2022-01..2024-12, dates with the "
        "step between them as in '2024-01-01..2024-12-30 by week', several ranges or periods with commas, a file with "
        "a column of periods, or 'reference' for those of --reference.",
        rich_help_panel=COLUMNS,
    ),
]
_BY_DEFAULT = f"The privacy ledger; by default DPSC_LEDGER, or {DEFAULT} in this folder."
LedgerUrl = Annotated[str | None, typer.Option("--ledger", help=_BY_DEFAULT, metavar="URL", rich_help_panel=_LEDGER)]


@dataclass(frozen=True, kw_only=True)
class RowsOptions:
    """Which rows are read, if they are in a database."""

    rows_of: str | None = _database("The table that holds them: visits, or clinic.visits.", "--table")
    query: str | None = _database("Instead of --table, a query for the rows.")
    query_file: Path | None = _database("Instead of --table, a file that holds a query.")

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

    time: str | None = columns("The column of periods (long tables).")
    outcome: list[str] | None = columns(
        "The column of numbers (long tables). Commands that take several outcomes take it several times."
    )
    time_format: str | None = columns("How dates are written, e.g. %d/%m/%Y.")
    sep: str | None = _file("What separates columns: comma, semicolon, tab or pipe.")
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
        "Public bounds of the outcome; a number beyond them becomes the bound, silently.",
        metavar="LO HI",
    )
    missing: str | None = option(
        "What to do about missing cells: error refuses them (default without --periods), kernel fills in what is "
        "to be expected after the donor's other cells (default with --periods; Gram releases only), interpolate, or "
        "midpoint of --bounds."
    )
    repeated: str | None = option(
        "What a cell is that several rows give: missing (default), sum (bills), mean (readings) or last (corrections)."
    )


@dataclass(frozen=True, kw_only=True)
class SegmentOptions:
    """By what donors are divided, and into which segments."""

    by: str | None = _segments(
        "The column of segments: age band, plan, region. The release then holds a matrix for each, at no further cost, "
        "and analysts may ask the donors of the target's own kind."
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
        "protected, not each unit, and what is released is the table of units and periods."
    )
    units: str | None = _in_groups("The units, declared: a list with commas, or a file with a column of them.")
    statistic: str | None = _in_groups(
        "What is released of the people in a cell: mean (default), total, share or count."
    )
    person_bound: float | None = _in_groups(
        "A bound on all values of a person together (the root of the sum of their squares), from public knowledge. A "
        "small bound takes less noise and cuts more values."
    )
    person_bound_quantile: float | None = _in_groups(
        "Find that bound privately instead, so that about this share of people stay as they are, for example 0.5; a "
        "twentieth of the budget pays for it."
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
        "A public series that moves about as much as a donor, such as the target: a table with a column of periods and "
        "a column of numbers. If it has more columns, those named like the donors' count.",
        "--target",
        "--like",
    )
    like_before: str | None = moves(
        "The first treated period of that series; only what is before it says how much donors move. check and plan "
        "also take it as the date of the intervention.",
        "--treatment-time",
        "--like-before",
    )
    scale: list[float] | None = moves(
        "Instead of such a series, how much a donor's moves, from public knowledge: its standard deviation over the "
        "whole time. A factor of two matters little. With neither, it is found privately if there are enough donors. "
        "Of several outcomes, once for each, in their order."
    )
    smoothness: str | None = moves(
        "How persistent such series are, from public knowledge: high (default), mild or none."
    )
    reference: Path | None = moves("A public series to subtract from every donor, in a table of the same kind.")

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
    dataset: str | None = _ledger(
        "The data set of the ledger whose budget is used; needed if there are several.", "--dataset"
    )
    partition: str | None = _ledger("The group of donors whose budget is used, if groups are disjoint and public.")
    purpose: str | None = _ledger("What the release is for, kept in the ledger.")
    no_ledger: bool = _ledger(
        "Book nothing. Needed where there is no ledger; a user at a terminal is asked.", default=False
    )

    def account(self) -> terminal.Account:
        """Open the ledger, if there is one."""
        terms = {"partition": self.partition, "purpose": self.purpose}
        return terminal.Account(self.ledger, self.dataset, **terms, no_ledger=self.no_ledger)


@dataclass(frozen=True, kw_only=True)
class TreatmentOptions:
    """When the treatment ends, which of its periods are left out, and what its effect is worth."""

    treatment_end: str | None = _treated(
        "The last treated period, of the target or of all units, if the treatment ended: what was seen after it, and "
        "whether the effect fades, is then reported too.",
        "--treatment-end",
        "--until",
    )
    gap: int = _treated(
        "How many periods to leave out, from the first treated one on. They are neither fitted nor part of the effect.",
        default=0,
        min=0,
    )
    value_per_unit: float | None = _worth(
        "What one unit of the outcome is worth in one period, for each unit that the target averages; negative if less "
        "of the outcome is worth something; 1 if the outcome is money."
    )
    cost: float | None = _worth("What the intervention cost: the return is the value for each unit of it.", min=0)
    currency: str | None = _worth("The currency of value and cost, e.g. EUR.")

    def said(self) -> dict[str, Any]:
        """Return what was said, by the names of parameters."""
        return asdict(self) | {"currency": self.currency or ""}


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """Where an answer goes, and what is written on it."""

    out: Path | None = option(
        "By its ending a page (.html), a workbook (.xlsx), the numbers (.json), the table of periods (.csv), the "
        "figure (.png, .svg), a paragraph with all tables (.md, .tex), or a folder with page, figures and numbers.",
        "--out",
        "-o",
    )
    title: Title = None
    units: str | None = option(
        "What the outcome is measured in, for the report; of several outcomes orders=pieces,revenue=EUR."
    )
    brief: bool = option(
        "The page for a board: question, answer, one figure, three numbers and what was protected, on one side of "
        "paper. -o ends in .html.",
        default=False,
    )
    level: float = option("The level of the intervals: 0.95 for 95%.", default=0.95)
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
