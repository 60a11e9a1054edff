"""``dpsc ledger``: make a privacy ledger, look into it, check and export it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import terminal
from dpsc.custodian.custody.payer import DEFAULT

app = typer.Typer(
    name="ledger",
    help="Record what was released, with budgets that cannot be overspent.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Place = Annotated[
    str,
    typer.Option(
        "--ledger",
        envvar="DPSC_LEDGER",
        help="A SQLite file, or postgresql+psycopg://user@host/name.",
        show_default=True,
        metavar="URL",
    ),
]
Name = Annotated[str | None, typer.Argument(help="A data set; all by default.", show_default=False)]


@app.command()
def init(
    name: Annotated[str, typer.Argument(help="A name for the data set.")],
    epsilon: Annotated[float, typer.Option(help="The budget of everything ever released from it, together.")],
    delta: Annotated[float, typer.Option(help="The budget's delta, well below one over the number of donors.")],
    pure: Annotated[
        float, typer.Option(help="The part of epsilon for releases with delta = 0; the rest is for Gaussian noise.")
    ] = 0.0,
    other: Annotated[
        str | None,
        typer.Option(
            help="The part for releases of which only (epsilon, delta) is known, such as fit --method objective.",
            metavar="EPSILON,DELTA",
            show_default=False,
        ),
    ] = None,
    about: Annotated[
        list[str] | None,
        typer.Option(help="A public fact as KEY=VALUE, for example n=500 or outcome=sales; may be repeated."),
    ] = None,
    who: Annotated[str | None, typer.Option(help="Your name; the system's user by default.")] = None,
    i_know: terminal.IKnow = False,
    ledger: Place = DEFAULT,
) -> None:
    """Enter a data set with its budget; makes the ledger if there is none."""
    with terminal.errors("ledger init"):
        from dpsc.cli import bookkeeping
        from dpsc.ledger.budget import Budget

        budget = Budget(epsilon, delta, pure, bookkeeping.pair("--other", other))
        bookkeeping.init(ledger, name, budget, about or [], who, i_know)


@app.command()
def show(
    name: Name = None,
    delta: Annotated[
        float | None, typer.Option(help="Say what is left at this delta; the budget's own by default.")
    ] = None,
    as_json: terminal.Json = False,
    ledger: Place = DEFAULT,
) -> None:
    """Show what each data set has spent and what it has left."""
    with terminal.errors("ledger show"):
        from dpsc.cli import bookkeeping

        bookkeeping.show(ledger, name, delta, as_json)


@app.command()
def entries(name: Name = None, as_json: terminal.Json = False, ledger: Place = DEFAULT) -> None:
    """List the bookings; every one counts as spent, whatever its state."""
    with terminal.errors("ledger entries"):
        from dpsc.cli import bookkeeping

        bookkeeping.entries(ledger, name, as_json)


@app.command()
def verify(
    head: Annotated[str | None, typer.Option(help="A head that was noted earlier: it must still be there.")] = None,
    as_json: terminal.Json = False,
    ledger: Place = DEFAULT,
) -> None:
    """Check the chain of hashes: exit code 1 if an entry was edited or is missing."""
    with terminal.errors("ledger verify"):
        from dpsc.cli import bookkeeping

        if not bookkeeping.verify(ledger, head, as_json):
            raise typer.Exit(1)


@app.command()
def export(
    name: Name = None,
    out: Annotated[Path | None, typer.Option(help="A .csv or .json file; the screen by default.")] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="csv or json; by the file's name, else csv.", metavar="csv|json")
    ] = None,
    ledger: Place = DEFAULT,
) -> None:
    """Write the ledger as CSV (bookings) or JSON (everything, with the chain)."""
    with terminal.errors("ledger export"):
        from dpsc.cli import bookkeeping

        bookkeeping.export(ledger, name, out, format_)
