"""What each part of the custodian's page shows, as HTML, given what lies on the desk. Private, but for the release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpsc.answers.words import sentence as ended
from dpsc.checks import small
from dpsc.custodian.check.check_report import verdict
from dpsc.custodian.check.examine import MARK
from dpsc.custodian.custody.payer import explained
from dpsc.web import guard
from dpsc.web.custodian.book import what_to_do
from dpsc.web.custodian.desk import CustodianDesk
from dpsc.web.custodian.fields import FIELDS, commands_of, in_words
from dpsc.web.server import render

_LITTLE = 0.001  # an epsilon that is good for nothing
_HEIGHTS = {sign: f"h{k}" for k, sign in enumerate("·▁▂▃▄▅▆▇█")}


def page() -> str:
    """Return the page as it is before anything happened."""
    megabytes = guard.LARGEST // 2**20
    return render("custodian/page.html", fields=FIELDS, largest=guard.LARGEST, megabytes=megabytes,
                  too_large=ended(guard.TOO_LARGE))  # fmt: skip


def under_way(desk: CustodianDesk) -> str:
    """Show how far the work is."""
    return render("custodian/under_way.html", work=desk.work, note=desk.note, phase=desk.phase)


def understood(desk: CustodianDesk) -> str:
    """Show how the file was understood, and its first rows."""
    return render("custodian/understood.html", **_checked(desk))


def public_files(desk: CustodianDesk) -> str:
    """Show which public series were given."""
    given = (("Similar series", desk.like), ("To subtract", desk.reference))
    return render("custodian/public_files.html", files=[(what, file) for what, file in given if file is not None])


def check_command(desk: CustodianDesk) -> str:
    """Show the command of the check."""
    return _commands(desk, "check")


def findings(desk: CustodianDesk) -> str:
    """Show everything that the check found."""
    return render("custodian/findings.html", mark=MARK, heights=_HEIGHTS, ended=ended, **_checked(desk))  # fmt: skip


def gauge(desk: CustodianDesk) -> str:
    """Show what is spent, what this release would add, and what is left."""
    book = desk.book
    values: dict[str, Any] = {"spent": 0, "then": 0, "told": "", "why": None}
    if book.balance is not None:
        budget = book.balance.dataset.epsilon
        then = book.balance if book.after is None else book.after
        spent, after = (min(100.0, round(100 * each.spent / budget, 2)) for each in (book.balance, then))
        told = f"{spent:.0f}% of the budget is spent, {after:.0f}% with this release"
        values = {"spent": spent, "then": after, "told": told, "why": explained(then)}
    return render(
        "custodian/gauge.html", balance=book.balance, after=book.after, left=book.left, over=_over(desk), small=small,
        datasets=book.datasets, exists=desk.shelf.exists, place=desk.shelf.place, room=_room, **values,
    )  # fmt: skip


def numbers(desk: CustodianDesk) -> str:
    """Show how well an attacker guesses and which effects would be seen, from public numbers only."""
    return render("custodian/numbers.html", guess=desk.guess, expected=desk.outlook, series=desk.like,
                  working=desk.simulations.working, about=lambda value: float(f"{value:.2g}"))  # fmt: skip


def budget_commands(desk: CustodianDesk) -> str:
    """Show the commands of the budget."""
    known = desk.book.datasets
    new = () if known and desk.fields["new_name"].strip() in ("", *known) else ("init",)
    return _commands(desk, *new, "show", "plan")


def cost(desk: CustodianDesk) -> str:
    """Show what the release costs and what remains."""
    return render(
        "custodian/cost.html", balance=desk.book.balance, after=desk.book.after, over=_over(desk), donors=desk.donors,
        place=desk.shelf.place, out=desk.out, epsilon=desk.facts["epsilon"], delta=desk.facts["delta"], room=_room,
    )  # fmt: skip


def to_do(desk: CustodianDesk) -> str:
    """Show what must be done before anything can be spent."""
    return render("custodian/to_do.html", phase=desk.phase, to_do=desk.to_do, epsilon=desk.facts["epsilon"])


def release_command(desk: CustodianDesk) -> str:
    """Show the command of the release."""
    return _commands(desk, "release")


def handover(desk: CustodianDesk) -> str:
    """Show the files of the release, and what to say about them."""
    return render("custodian/handover.html", made=desk.made)


def book(desk: CustodianDesk) -> str:
    """Show the entries of the ledger."""
    return render("custodian/book.html", book=desk.book, verified=desk.verified, place=desk.shelf.place, small=small,
                  what_to_do=what_to_do)  # fmt: skip


def book_commands(desk: CustodianDesk) -> str:
    """Show the commands of the book."""
    return _commands(desk, "entries", "verify", "export")


def _checked(desk: CustodianDesk) -> dict[str, Any]:
    found = () if desk.checked is None else desk.checked.findings
    return {"donors": desk.donors, "checked": desk.checked, "current": desk.current, "in_words": in_words,
            "verdict": verdict(found)}  # fmt: skip


def _over(desk: CustodianDesk) -> bool:
    after = desk.book.after
    return after is not None and after.spent > after.dataset.epsilon


def _room(epsilon: float) -> str:
    """Say how large a release is possible."""
    return f"a release of up to epsilon {epsilon:g}" if epsilon >= _LITTLE else "nothing"


def _commands(desk: CustodianDesk, *names: str) -> str:
    commands = commands_of(desk.facts)
    return render("custodian/commands.html", commands=[commands[name] for name in names])


PANELS: Mapping[str, Callable[[CustodianDesk], str]] = {
    "under_way": under_way, "understood": understood, "public_files": public_files, "check_command": check_command,
    "findings": findings, "gauge": gauge, "numbers": numbers, "budget_commands": budget_commands, "cost": cost,
    "to_do": to_do, "release_command": release_command, "handover": handover, "book": book,
    "book_commands": book_commands, "check_command_again": check_command,
}  # fmt: skip
