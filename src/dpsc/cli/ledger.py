"""``dpsc ledger``: make a privacy ledger, look into it, check and export it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from dpsc.ledger import Entry, Ledger
    from dpsc.ledger.history import Balance

app = typer.Typer(
    name="ledger",
    help="Keep the book of what was released: budgets that cannot be overspent.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

DEFAULT = "dpsc-ledger.sqlite"
BAR = 32

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
# For the commands that release something; see `booking`.
LedgerOption = Annotated[
    str | None,
    typer.Option("--ledger", envvar="DPSC_LEDGER", help="Book the release in this privacy ledger.", metavar="URL"),
]
DatasetOption = Annotated[str | None, typer.Option("--dataset", help="The data set of the ledger that pays for it.")]
Name = Annotated[str | None, typer.Argument(help="A data set; all by default.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]


@contextmanager
def booking(
    place: str | None,
    dataset: str | None,
    algorithm: Any,
    *,
    output: Path | None,
    description: dict[str, Any] | None = None,
) -> Iterator[None]:
    """Book what an algorithm is about to release into ``output``, for the commands that have --ledger and --dataset.

    Without both nothing is booked. A ledger without a data set is refused: a custodian who has set DPSC_LEDGER expects
    every release to be in the book.
    """
    book = opened(place, dataset)
    if book is None or dataset is None:
        yield
        return
    with book.spending(dataset, **book.terms(algorithm), output=output, description=description):
        yield


def opened(place: str | None, dataset: str | None) -> Ledger | None:
    """Return the ledger that is to be booked in, or None; wrong options are refused before data are read."""
    if place is None and dataset is None:
        return None
    from dpsc.errors import ParameterError
    from dpsc.ledger import Ledger

    if place is None:
        raise ParameterError("--dataset needs a ledger: say where it is with --ledger or DPSC_LEDGER.")
    if dataset is None:
        raise ParameterError("a ledger is given (--ledger or DPSC_LEDGER): say which data set pays with --dataset.")
    book = Ledger(place)
    book.dataset(dataset)
    return book


@app.command()
def init(
    name: Annotated[str, typer.Argument(help="A name for the data set.")],
    epsilon: Annotated[float, typer.Option(help="The budget of everything ever released from it, together.")],
    delta: Annotated[float, typer.Option(help="The budget's delta, well below 1 / number of donors.")],
    about: Annotated[
        list[str] | None,
        typer.Option(help="A public fact as KEY=VALUE, for example n=500 or outcome=sales; may be repeated."),
    ] = None,
    who: Annotated[str | None, typer.Option(help="Your name; the system's user by default.")] = None,
    ledger: Place = DEFAULT,
) -> None:
    """Enter a data set with its budget; makes the ledger if there is none."""
    from dpsc.cli.common import errors

    with errors("ledger init"):
        from dpsc.ledger import Ledger

        book = Ledger(ledger, create=True)
        known = book.add_dataset(name, epsilon=epsilon, delta=delta, description=_facts(about or []), who=who)
        typer.echo(f"{known.name}: epsilon {known.epsilon:g} at delta {known.delta:g} for all releases together.")
        typer.echo(f"Entered in {book.place}, fingerprint {known.fingerprint[:16]}.")


@app.command()
def show(
    name: Name = None,
    delta: Annotated[
        float | None, typer.Option(help="Say what is left at this delta; the budget's own by default.")
    ] = None,
    as_json: AsJson = False,
    ledger: Place = DEFAULT,
) -> None:
    """Show what each data set has spent and what it has left."""
    from dpsc.cli.common import errors

    with errors("ledger show"):
        from dpsc.ledger import Ledger
        from dpsc.ledger.export import balance_to_json

        book = Ledger(ledger)
        names = [name] if name is not None else [each.name for each in book.datasets()]
        head = book.head
        balances = [book.balance(each) for each in names]
        left = {each: book.remaining(each, delta=delta) for each in names} if delta is not None else {}
        if as_json:
            shown = [balance_to_json(b) | _at(delta, left.get(b.dataset.name)) for b in balances]
            _print_json({"ledger": book.place, "head": {"length": head.length, "hash": head.hash}, "datasets": shown})
            return
        console = _console()
        for balance in balances:
            _show_balance(console, balance, delta, left.get(balance.dataset.name))
        if not balances:
            console.print("No data set yet; enter one with dpsc ledger init.")
        if any(balance.states for balance in balances):
            console.print("[dim]Losses compose to less than their sum, so spent and left may exceed the budget.[/]\n")
        console.print(f"{book.place}: {head.length} entries. Note the head elsewhere:", soft_wrap=True)
        console.print(f"  {head.hash}", soft_wrap=True)


@app.command()
def entries(name: Name = None, as_json: AsJson = False, ledger: Place = DEFAULT) -> None:
    """List the bookings; every one counts as spent, whatever became of it."""
    from dpsc.cli.common import errors

    with errors("ledger entries"):
        from dpsc.ledger import Ledger
        from dpsc.ledger.export import entry_to_json

        found = Ledger(ledger).entries(name)
        if as_json:
            _print_json([entry_to_json(entry) for entry in found])
        elif found:
            _show_entries(_console(), found, one_dataset=name is not None)
        else:
            _console().print("Nothing is booked.")


@app.command()
def verify(
    head: Annotated[str | None, typer.Option(help="A head that was noted earlier: it must still be there.")] = None,
    as_json: AsJson = False,
    ledger: Place = DEFAULT,
) -> None:
    """Check the chain of hashes: exit code 1 if an entry was edited or is missing."""
    from dpsc.cli.common import errors

    with errors("ledger verify"):
        from dpsc.ledger import Ledger

        book = Ledger(ledger)
        problems = book.verify(head)
        now = book.head
        if as_json:
            _print_json({"head": {"length": now.length, "hash": now.hash}, "problems": problems})
        elif problems:
            typer.echo(f"{book.place}: NOT as it was written.", err=True)
            for problem in problems:
                typer.echo(f"  - {problem}", err=True)
        else:
            noted = " The noted head is in the chain." if head is not None else ""
            typer.echo(f"{book.place}: {now.length} entries, the chain is whole.{noted} Head:")
            typer.echo(f"  {now.hash}")
        if problems:
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
    """Write the book as CSV (bookings) or JSON (everything, with the chain)."""
    from dpsc.cli.common import errors

    with errors("ledger export"):
        from dpsc import files
        from dpsc.errors import ParameterError
        from dpsc.ledger import Ledger
        from dpsc.ledger.export import as_csv, as_json

        kind = format_ or ((out.suffix.lower().lstrip(".") or "csv") if out is not None else "csv")
        if kind not in ("csv", "json"):
            raise ParameterError(f"the format must be csv or json, not {kind}; say which with --format.")
        book = Ledger(ledger)
        if name is not None:
            book.dataset(name)
        content = (as_csv if kind == "csv" else as_json)(book, name)
        if out is None:
            typer.echo(content, nl=False)
        else:
            files.write(out, content, mode=0o600)
            typer.echo(f"{out}: {len(book.entries(name))} bookings as {kind.upper()}.")


def _facts(given: Sequence[str]) -> dict[str, Any]:
    """Read KEY=VALUE; a value that is JSON (a number, a list) is taken as such, anything else as text."""
    from dpsc.errors import ParameterError

    facts: dict[str, Any] = {}
    for fact in given:
        key, equals, value = fact.partition("=")
        if not equals or not key.strip():
            raise ParameterError(f"--about {fact} is not of the form KEY=VALUE.")
        try:
            facts[key.strip()] = json.loads(value)
        except ValueError:
            facts[key.strip()] = value
    return facts


def _at(delta: float | None, left: float | None) -> dict[str, Any]:
    return {} if delta is None else {"remaining_at": {"delta": delta, "epsilon": left}}


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False))


def _show_balance(console: Console, balance: Balance, delta: float | None, left: float | None) -> None:
    from rich.markup import escape

    known, share = balance.dataset, balance.share
    at = known.delta if delta is None else delta
    size = balance.remaining if left is None else left
    colour = "green" if share < 0.7 else "yellow" if share < 0.95 else "red"
    full = min(BAR, round(BAR * share)) if share in (0, 1) else min(BAR - 1, max(1, round(BAR * share)))
    dark, light = ("█", "░") if "utf" in console.encoding.lower() else ("#", ".")
    kind = "pure" if at == 0 else "Gram"
    counts = ", ".join(f"{count} {state}" for state, count in sorted(balance.states.items())) or "none"
    console.print(f"[bold]{escape(known.name)}[/]  ({escape(known.adjacency)})")
    console.print(f"  budget   epsilon {known.epsilon:g} at delta {known.delta:g}, for all releases together")
    console.print(f"  spent    [{colour}]{dark * full}[/]{light * (BAR - full)} {100 * share:.0f}%")
    console.print(f"           epsilon {balance.spent:.4g} at delta {known.delta:g}")
    console.print(
        f"  left     a {kind} release of up to epsilon {size:g} at delta {at:g}"
        if size > 0
        else f"  left     [red]nothing[/] for a {kind} release at delta {at:g}"
    )
    console.print(f"  entries  {counts}" + (" (all count as spent)" if balance.states else ""))
    for label, spent in balance.partitions.items():
        console.print(f"           partition {escape(label)}: epsilon {spent:.4g}")
    console.print()


def _show_entries(console: Console, found: Sequence[Entry], *, one_dataset: bool) -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0, show_edge=False)
    parts = any(entry.partition for entry in found)
    columns = ["no.", "time (UTC)", "data set", "part", "who", "algorithm", "eps, delta", "state"]
    shown = [c for c in columns if not (c == "data set" and one_dataset) and not (c == "part" and not parts)]
    for column in shown:
        fixed = column in ("no.", "time (UTC)", "eps, delta", "state")
        table.add_column(column, justify="right" if column == "no." else "left", no_wrap=fixed, overflow="fold")
    colours = {"booked": "yellow", "confirmed": "green", "failed": "red"}
    for entry in found:
        cells = {
            "no.": str(entry.number),
            "time (UTC)": entry.time[:16].replace("T", " "),
            "data set": escape(entry.dataset),
            "part": escape(entry.partition or ""),
            "who": escape(entry.who),
            "algorithm": escape(entry.algorithm),
            "eps, delta": f"{entry.promise['epsilon']:g}, {entry.promise['delta']:g}",
            "state": f"[{colours[entry.state]}]{entry.state}[/]",
        }
        table.add_row(*(cells[column] for column in shown))
    console.print(table)
