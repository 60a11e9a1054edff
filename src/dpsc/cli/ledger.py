"""``dpsc ledger``: make a privacy ledger, look into it, check and export it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from dpsc import files
from dpsc.checks import small
from dpsc.cli import terminal
from dpsc.cli.options import A_DELTA, IKnow, Json, add_to, command, option
from dpsc.custodian.custody.payer import DEFAULT
from dpsc.errors import ParameterError

if TYPE_CHECKING:
    from dpsc.ledger import Entry
    from dpsc.ledger.budget import Budget
    from dpsc.ledger.history import Balance
    from dpsc.types import JsonObject

app = typer.Typer(
    name="ledger",
    help="Record what was released, with budgets that cannot be overspent.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

_KINDS = "A SQLite file, or postgresql+psycopg://user@host/name."
Place = Annotated[str, typer.Option("--ledger", envvar="DPSC_LEDGER", help=_KINDS, metavar="URL")]
Name = Annotated[str | None, typer.Argument(help="A data set; all by default.", show_default=False)]


BAR = 32
_COPY_THE_HEAD = "Copy the next line, the head, to another place: it shows later whether the ledger was rewritten."


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The budget of everything that is ever released from a data set, and how it is divided."""

    epsilon: float = option("The budget of all releases together.", default=MISSING)
    delta: float = option(A_DELTA, default=MISSING)
    pure: float = option("The part of epsilon for releases with delta = 0.", default=0.0)
    other: str | None = option(
        "The part for fit --method objective, of which only epsilon and delta are known.",
        metavar="EPSILON,DELTA",
    )

    def budget(self) -> Budget:
        """Return it; EPSILON,DELTA is read."""
        from dpsc.ledger.budget import Budget

        if self.other is None:
            return Budget(self.epsilon, self.delta, self.pure, (0.0, 0.0))
        try:
            epsilon, delta = map(float, self.other.split(","))
        except ValueError:
            raise ParameterError(
                f"--other {self.other} is not of the form EPSILON,DELTA, for example 0.5,1e-7."
            ) from None
        return Budget(self.epsilon, self.delta, self.pure, (epsilon, delta))


@command("ledger init", "dpsc ledger init patients --epsilon 2 --delta 1e-6 --about n=600")
def init(
    name: Annotated[str, typer.Argument(help="A name for the data set.")],
    terms: Terms,
    about: list[str] | None = option("A public fact: n=500. May be repeated.", metavar="KEY=VALUE"),
    who: str | None = option("Your name; the system's user by default."),
    i_know: IKnow = False,
    ledger: Place = DEFAULT,
) -> None:
    """Enter a data set with its budget. Makes the ledger if there is none."""
    from dpsc.custodian.custody.steps import require_reasonable, require_small_delta
    from dpsc.ledger import Ledger

    budget = terms.budget()
    facts = _facts(about or [])
    donors = facts.get("n")
    require_reasonable(budget.epsilon, i_know)
    require_small_delta(budget.delta, donors if isinstance(donors, int) and donors > 0 else None, i_know)
    book = Ledger(ledger, create=True)
    before = book.datasets()
    known = book.add_dataset(
        name,
        epsilon=budget.epsilon,
        delta=budget.delta,
        pure=budget.pure,
        other=budget.other,
        description=facts,
        who=who,
    )
    typer.echo(f"{known.name}: epsilon {known.epsilon:g} at delta {small(known.delta)} for all releases together.")
    for line in _pockets(known.budget):
        typer.echo(f"  {line}")
    if known in before:
        typer.echo(f"Known already: entered by {known.who} on {known.created[:10]} in {book.place}. Nothing changed.")
    else:
        typer.echo(f"Entered in {book.place}, fingerprint {known.fingerprint[:16]}.")


@command("ledger show", "dpsc ledger show patients")
def show(
    name: Name = None,
    delta: float | None = option("Say what is left at this delta; by default the budget's own."),
    as_json: Json = False,
    ledger: Place = DEFAULT,
) -> None:
    """Show what each data set has spent and left, its releases, and which file to use."""
    from dpsc.ledger import Ledger
    from dpsc.ledger.export import balance_to_json

    book = Ledger(ledger)
    history = book.history()
    head, names = history.head, [name] if name is not None else list(history.datasets)
    balances = {each: history.balance(each) for each in names}
    left = {} if delta is None else {each: history.remaining(each, delta=delta) for each in names}
    if as_json:
        shown = []
        for each, balance in balances.items():
            at = {} if delta is None else {"remaining_at": {"delta": delta, "epsilon": left[each]}}
            shown.append(balance_to_json(balance, history.entries(each)) | at)
        told = {"ledger": book.place, "head": {"length": head.length, "hash": head.hash}, "datasets": shown}
        terminal.print_json(told, indent=1)
        return
    console = terminal.console()
    for each, balance in balances.items():
        _show_balance(console, balance, history.entries(each), delta, left.get(each))
    if not balances:
        console.print("No data set yet; enter one with dpsc ledger init.")
    console.print(f"{book.place}: {head.length} entries.", soft_wrap=True)
    console.print(_COPY_THE_HEAD)
    console.print(f"  {head.hash}", soft_wrap=True)


@command("ledger entries")
def entries(name: Name = None, as_json: Json = False, ledger: Place = DEFAULT) -> None:
    """List the bookings; every one counts as spent, whatever its state."""
    from dpsc.ledger import Ledger
    from dpsc.ledger.export import entry_to_json

    found = Ledger(ledger).entries(name)
    if as_json:
        terminal.print_json([entry_to_json(entry) for entry in found], indent=1)
    elif found:
        for entry in found:
            _show_entry(terminal.console(), entry)
    else:
        typer.echo("Nothing is booked.")


@command("ledger verify", "dpsc ledger verify --head 5f0c...")
def verify(
    head: str | None = option("A head that you copied earlier, which must still be in the ledger."),
    as_json: Json = False,
    ledger: Place = DEFAULT,
) -> None:
    """Check the chain of hashes: exit code 1 if an entry was edited or is missing."""
    from dpsc.ledger import Ledger

    book = Ledger(ledger)
    problems = book.verify(head)
    now = book.head
    if as_json:
        terminal.print_json({"head": {"length": now.length, "hash": now.hash}, "problems": problems}, indent=1)
    elif problems:
        typer.echo(f"{book.place}: NOT as it was written: entries were changed or are missing.", err=True)
        for problem in problems:
            typer.echo(f"  - {problem}", err=True)
    else:
        found = " The head that you gave is in the chain." if head is not None else ""
        typer.echo(f"{book.place}: {now.length} entries, the chain is whole.{found} Head:")
        typer.echo(f"  {now.hash}")
    if problems:
        raise typer.Exit(1)


@command("ledger export", "dpsc ledger export --out ledger.csv")
def export(
    name: Name = None,
    out: Path | None = option("A .csv or .json file; the screen by default."),
    format_: str | None = option("By default after the file's name, else csv.", "--format", metavar="csv|json"),
    ledger: Place = DEFAULT,
) -> None:
    """Write the ledger as CSV (bookings) or JSON (everything, with the chain)."""
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
        terminal.keep_apart(out, *book.files)
        files.write(out, content, mode=0o600)
        typer.echo(f"{out}: {len(book.entries(name))} bookings as {kind.upper()}.")


add_to(app, init, show, entries, verify, export)


def _facts(given: Sequence[str]) -> JsonObject:
    """Read KEY=VALUE; a value that is JSON (a number, a list) is taken as such, anything else as text."""
    facts: JsonObject = {}
    for fact in given:
        key, equals, value = fact.partition("=")
        if not equals or not key.strip():
            raise ParameterError(f"--about {fact} is not of the form KEY=VALUE.")
        try:
            facts[key.strip()] = json.loads(value)
        except ValueError:
            facts[key.strip()] = value
    return facts


def _pockets(budget: Budget) -> list[str]:
    """Say how much of a budget is for which kind of release, where it is divided."""
    held = budget.limits
    if budget.delta == 0 or held.pure + held.other_epsilon == 0:
        return []
    noise = max(0.0, budget.epsilon - float(held.pure + held.other_epsilon))
    parts = [f"of which for Gaussian noise (Gram releases): epsilon {noise:g}" if held.mu_squared else ""]
    parts.append(f"of which for pure releases: epsilon {float(held.pure):g}" if held.pure else "")
    other = f"epsilon {float(held.other_epsilon):g} at delta {small(float(held.other_delta))}"
    parts.append(f"of which for other releases: {other}" if held.other_epsilon else "")
    return [part for part in parts if part]


def _show_balance(
    console: Console, balance: Balance, entries: Sequence[Entry], delta: float | None, left: float | None
) -> None:
    from dpsc.ledger.words import explained, released, room_for, spent_of, which_file

    known, share = balance.dataset, balance.share
    colour = "green" if share < 0.7 else "yellow" if share < 0.95 else "red"
    full = min(BAR, round(BAR * share)) if share in (0, 1) else min(BAR - 1, max(1, round(BAR * share)))
    dark, light = ("█", "░") if "utf" in console.encoding.lower() else ("#", ".")
    counts = ", ".join(f"{count} {state}" for state, count in sorted(balance.states.items())) or "none"
    console.print(Text.assemble((known.name, "bold"), f"  ({known.adjacency})"))
    console.print(f"  budget   epsilon {known.epsilon:g} at delta {small(known.delta)}, for all releases together")
    for line in _pockets(known.budget):
        console.print(f"           {line}")
    rest = f"{light * (BAR - full)} {100 * share:.0f}%"
    console.print(Text.assemble("  spent    ", (dark * full, colour), rest))
    console.print(f"           {spent_of(balance)}")
    room = room_for(balance, left, delta)
    console.print(Text.assemble("  left     ", (room, "red" if room == "nothing" else "")))
    console.print(f"  entries  {counts}" + (" (all count as spent)" if balance.states else ""))
    for label, spent in balance.partitions.items():
        console.print(f"           partition {label}: epsilon {spent:.4g}")
    listed = [released(entry) for entry in entries if entry.contents is not None]
    if listed:
        console.print("  releases")
    for line in (*listed, *which_file(entries)):
        console.print(Padding(Text(line), (0, 0, 0, 4)))
    why = explained(balance)
    if why is not None:
        console.print(Padding(Text(why, "dim"), (0, 0, 0, 2)))
    console.print()


def _show_entry(console: Console, entry: Entry) -> None:
    """Print when, what became of it, the cost; by whom and how; where the output is; and what for."""
    colour = {"booked": "yellow", "confirmed": "green", "failed": "red"}[entry.state]
    of = entry.dataset if entry.partition is None else f"{entry.dataset}, partition {entry.partition}"
    cost = f"epsilon {entry.promise['epsilon']:g}, delta {small(entry.promise['delta'])}"
    when = entry.time[:16].replace("T", " ")
    console.print(
        Text.assemble(f"{entry.number:>4}  {when}  ", (f"{entry.state:<9}", colour), f"  {cost}"), soft_wrap=True
    )
    console.print(f"      {of}: {entry.algorithm} by {entry.who}", soft_wrap=True)
    if entry.output is not None:
        console.print(f"      output   {entry.output}", soft_wrap=True)
    if entry.purpose is not None:
        console.print(f"      purpose  {entry.purpose}", soft_wrap=True)
