"""What ``dpsc ledger`` does: enter data sets, show balances and bookings, check and export the ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from dpsc import files
from dpsc.cli import terminal
from dpsc.custodian.custody.options import require_reasonable, require_small_delta
from dpsc.custodian.custody.payer import explained
from dpsc.errors import ParameterError
from dpsc.ledger import Entry, Ledger
from dpsc.ledger.budget import Budget
from dpsc.ledger.export import as_csv, as_json, balance_to_json, entry_to_json
from dpsc.ledger.history import Balance

BAR = 32


def init(place: str, name: str, budget: Budget, about: Sequence[str], who: str | None, i_know: bool) -> None:
    """Enter a data set with its budget, or say that it is known."""
    facts = _facts(about)
    donors = facts.get("n")
    require_reasonable(budget.epsilon, i_know)
    require_small_delta(budget.delta, donors if isinstance(donors, int) and donors > 0 else None, i_know)
    book = Ledger(place, create=True)
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
    typer.echo(f"{known.name}: epsilon {known.epsilon:g} at delta {known.delta:g} for all releases together.")
    for line in pockets(known.budget):
        typer.echo(f"  {line}")
    if known in before:
        typer.echo(f"Known already: entered by {known.who} on {known.created[:10]} in {book.place}. Nothing changed.")
    else:
        typer.echo(f"Entered in {book.place}, fingerprint {known.fingerprint[:16]}.")


def pair(option: str, given: str | None) -> tuple[float, float]:
    """Read EPSILON,DELTA."""
    if given is None:
        return 0.0, 0.0
    try:
        epsilon, delta = map(float, given.split(","))
    except ValueError:
        raise ParameterError(f"{option} {given} is not of the form EPSILON,DELTA, for example 0.5,1e-7.") from None
    return epsilon, delta


def pockets(budget: Budget) -> list[str]:
    """Say how much of a budget is for which kind of release, where it is divided."""
    held = budget.limits
    if budget.delta == 0 or held.pure + held.other_epsilon == 0:
        return []
    noise = max(0.0, budget.epsilon - float(held.pure + held.other_epsilon))
    parts = [f"of which for Gaussian noise (Gram releases): epsilon {noise:g}" if held.mu_squared else ""]
    parts.append(f"of which for pure releases: epsilon {float(held.pure):g}" if held.pure else "")
    other = f"epsilon {float(held.other_epsilon):g} at delta {float(held.other_delta):g}"
    parts.append(f"of which for other releases: {other}" if held.other_epsilon else "")
    return [part for part in parts if part]


def show(place: str, name: str | None, delta: float | None, to_json: bool) -> None:
    """Print balances."""
    book = Ledger(place)
    names = [name] if name is not None else [each.name for each in book.datasets()]
    head = book.head
    balances = [book.balance(each) for each in names]
    left = {each: book.remaining(each, delta=delta) for each in names} if delta is not None else {}
    if to_json:
        shown = [balance_to_json(b) | _at(delta, left.get(b.dataset.name)) for b in balances]
        _print_json({"ledger": book.place, "head": {"length": head.length, "hash": head.hash}, "datasets": shown})
        return
    console = terminal.console()
    for balance in balances:
        _show_balance(console, balance, delta, left.get(balance.dataset.name))
    if not balances:
        console.print("No data set yet; enter one with dpsc ledger init.")
    console.print(f"{book.place}: {head.length} entries. Note the head elsewhere:", soft_wrap=True)
    console.print(f"  {head.hash}", soft_wrap=True)


def entries(place: str, name: str | None, to_json: bool) -> None:
    """Print bookings."""
    found = Ledger(place).entries(name)
    if to_json:
        _print_json([entry_to_json(entry) for entry in found])
    elif found:
        for entry in found:
            _show_entry(terminal.console(), entry)
    else:
        typer.echo("Nothing is booked.")


def verify(place: str, noted: str | None, to_json: bool) -> bool:
    """Print what is wrong with the chain, and return whether nothing is."""
    book = Ledger(place)
    problems = book.verify(noted)
    now = book.head
    if to_json:
        _print_json({"head": {"length": now.length, "hash": now.hash}, "problems": problems})
    elif problems:
        typer.echo(f"{book.place}: NOT as it was written.", err=True)
        for problem in problems:
            typer.echo(f"  - {problem}", err=True)
    else:
        found = " The noted head is in the chain." if noted is not None else ""
        typer.echo(f"{book.place}: {now.length} entries, the chain is whole.{found} Head:")
        typer.echo(f"  {now.hash}")
    return not problems


def export(place: str, name: str | None, out: Path | None, format_: str | None) -> None:
    """Write the ledger to a file or to the screen."""
    kind = format_ or ((out.suffix.lower().lstrip(".") or "csv") if out is not None else "csv")
    if kind not in ("csv", "json"):
        raise ParameterError(f"the format must be csv or json, not {kind}; say which with --format.")
    book = Ledger(place)
    if name is not None:
        book.dataset(name)
    content = (as_csv if kind == "csv" else as_json)(book, name)
    if out is None:
        typer.echo(content, nl=False)
    else:
        terminal.keep_apart(out, *book.files)
        files.write(out, content, mode=0o600)
        typer.echo(f"{out}: {len(book.entries(name))} bookings as {kind.upper()}.")


def _facts(given: Sequence[str]) -> dict[str, Any]:
    """Read KEY=VALUE; a value that is JSON (a number, a list) is taken as such, anything else as text."""
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


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False))


def _show_balance(console: Console, balance: Balance, delta: float | None, left: float | None) -> None:
    known, share = balance.dataset, balance.share
    at = known.delta if delta is None else delta
    size = balance.remaining if left is None else left
    colour = "green" if share < 0.7 else "yellow" if share < 0.95 else "red"
    full = min(BAR, round(BAR * share)) if share in (0, 1) else min(BAR - 1, max(1, round(BAR * share)))
    dark, light = ("█", "░") if "utf" in console.encoding.lower() else ("#", ".")
    kind = "pure" if at == 0 else "Gram"
    counts = ", ".join(f"{count} {state}" for state, count in sorted(balance.states.items())) or "none"
    console.print(Text.assemble((known.name, "bold"), f"  ({known.adjacency})"))
    console.print(f"  budget   epsilon {known.epsilon:g} at delta {known.delta:g}, for all releases together")
    for line in pockets(known.budget):
        console.print(f"           {line}")
    rest = f"{light * (BAR - full)} {100 * share:.0f}%"
    console.print(Text.assemble("  spent    ", (dark * full, colour), rest))
    console.print(f"           epsilon {balance.spent:.4g} at delta {known.delta:g}")
    console.print(
        f"  left     a {kind} release of up to epsilon {size:g} at delta {at:g}"
        if size > 0
        else Text.assemble("  left     ", ("nothing", "red"), f" for a {kind} release at delta {at:g}")
    )
    console.print(f"  entries  {counts}" + (" (all count as spent)" if balance.states else ""))
    for label, spent in balance.partitions.items():
        console.print(f"           partition {label}: epsilon {spent:.4g}")
    why = explained(balance)
    if why is not None:
        console.print(Text(f"  {why}", "dim"), soft_wrap=True)
    console.print()


def _show_entry(console: Console, entry: Entry) -> None:
    """Print when, what became of it, the cost; by whom and how; where the output is; and what for."""
    colour = {"booked": "yellow", "confirmed": "green", "failed": "red"}[entry.state]
    of = entry.dataset if entry.partition is None else f"{entry.dataset}, partition {entry.partition}"
    cost = f"epsilon {entry.promise['epsilon']:g}, delta {entry.promise['delta']:g}"
    when = entry.time[:16].replace("T", " ")
    console.print(
        Text.assemble(f"{entry.number:>4}  {when}  ", (f"{entry.state:<9}", colour), f"  {cost}"), soft_wrap=True
    )
    console.print(f"      {of}: {entry.algorithm} by {entry.who}", soft_wrap=True)
    if entry.output is not None:
        console.print(f"      output   {entry.output}", soft_wrap=True)
    if entry.purpose is not None:
        console.print(f"      purpose  {entry.purpose}", soft_wrap=True)
