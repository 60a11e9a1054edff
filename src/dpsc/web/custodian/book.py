"""The ledger as the custodian's pages show it: read when something changes, never while a page is drawn."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from dpsc.checks import command, options, small
from dpsc.custodian.custody.payer import DEFAULT
from dpsc.ledger import Entry, Ledger, address
from dpsc.ledger.chain import Head
from dpsc.ledger.export import as_csv, as_json
from dpsc.ledger.history import Balance
from dpsc.ledger.words import cost_of
from dpsc.privacy.guarantee import Guarantee
from dpsc.web.custodian.form import Form, commands
from dpsc.web.server import render

_PATIENCE = 2.0  # seconds that a page waits for a ledger that another program holds
_GRID = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0)


@dataclass(frozen=True)
class Seen:
    """What a ledger held when it was read.

    Attributes
    ----------
    datasets : tuple of str
    balance, after : Balance or None
        Of the data set whose budget is used: now, and after the release at hand.
    cost : str
        Of the release at hand, in words.
    left : float
        The largest epsilon of a release at the delta at hand, which may differ from the budget's.
    over : bool
        Whether the release at hand costs more than there is.
    entries : tuple of Entry
    head : Head or None
    """

    datasets: tuple[str, ...] = ()
    balance: Balance | None = None
    after: Balance | None = None
    cost: str = ""
    left: float = 0.0
    over: bool = False
    entries: tuple[Entry, ...] = ()
    head: Head | None = None

    @property
    def dataset(self) -> str:
        """The name of the data set whose budget is used; empty if there is none yet."""
        return "" if self.balance is None else self.balance.dataset.name

    @property
    def grid(self) -> list[float]:
        """The epsilons on the slider: even steps for the eye, as far as there is room."""
        if self.balance is None or not self.cost:  # no release is at hand
            return list(_GRID)
        inside = [epsilon for epsilon in _GRID if epsilon <= self.left]
        return sorted({*inside, *([self.left] if 0 < self.left <= _GRID[-1] else [])})


class BookPage:
    """The page Book: where the ledger is, and what it held when it was read.

    Parameters
    ----------
    form : Form
    given : str or None
        The option ``--ledger``; without it DPSC_LEDGER, else the usual file in this folder.
    """

    def __init__(self, form: Form, given: str | None) -> None:
        self._form = form
        self.url = given or os.environ.get("DPSC_LEDGER") or DEFAULT
        self.place = str(address.read(self.url))
        self.option = {} if given is None else {"ledger": self.place}
        self.seen = Seen()
        self.verified: list[str] | None = None
        self.exists = False

    def read(self, dataset: str, promise: Guarantee | None) -> None:
        """Look into the ledger, once; ``promise`` is that of the release at hand."""
        path = address.read(self.url).path
        self.exists = path is None or os.path.lexists(path)  # one in a database is only known when it is opened
        if not self.exists:
            self.seen = Seen()
            return
        history = self.open().history()
        names = tuple(history.datasets)
        seen = Seen(names, entries=tuple(history.entries()), head=history.head)
        payer = dataset if dataset in names else names[0] if len(names) == 1 else None
        if payer is not None:
            seen = replace(seen, balance=history.balance(payer))
            if promise is not None:
                left, over = history.remaining(payer, delta=promise.delta), not history.allows(payer, promise)
                cost, after = cost_of(promise, history.dataset(payer)), history.balance(payer, after=promise)
                seen = replace(seen, left=left, over=over, after=after, cost=cost)
        self.seen = seen

    def enter(self, name: str, epsilon: float, delta: float) -> str:
        """Enter a data set with its budget, making the ledger if there is none; return its name."""
        return Ledger(self.url, create=True, patience=_PATIENCE).add_dataset(name, epsilon=epsilon, delta=delta).name

    def look(self) -> None:
        """Read the ledger again."""
        with self._form.changing():
            self.verified = None
            self._form.judge()

    def verify(self) -> None:
        """Check the chain of the ledger."""
        with self._form.changing(), self._form.about("book"):
            self.verified = self.open().verify()

    def export(self, kind: str) -> bytes:
        """Return the whole ledger as CSV or JSON."""
        return (as_csv if kind == "csv" else as_json)(self.open()).encode("utf-8")

    def open(self) -> Ledger:
        """Open the ledger for reading."""
        return Ledger(self.url, patience=_PATIENCE)

    def shown(self) -> str:
        """Show the entries of the ledger."""
        words = {"small": small, "what_to_do": what_to_do}
        return render("custodian/book.html", book=self.seen, verified=self.verified, place=self.place, **words)

    def commands(self) -> str:
        """Show the commands of the book."""
        asked: dict[str, dict[str, str]] = {"entries": {}, "verify": {}, "export": {"out": "ledger.csv"}}
        return commands(*(self.command(what, **more) for what, more in asked.items()))

    def command(self, *what: str, **said: str) -> str:
        """Return a command of ``dpsc ledger``."""
        return command(["dpsc", "ledger", *what], options(said | self.option))


def what_to_do(entry: Entry) -> str:
    """Say what a booking that was not confirmed means, and what can be done about it."""
    if entry.state == "confirmed":
        return ""
    if entry.state == "failed":
        return "The release was not made. What was booked counts as spent, because noise may have been drawn."
    if entry.output is not None and Path(entry.output).exists():
        return (
            f"The program ended before it could confirm this, but {entry.output} is there. Check it with dpsc inspect: "
            "if it opens, it is the release that was paid for, and it may be handed over."
        )
    return (
        "The program ended before the release was written, or it is being made at this moment. What was booked counts "
        "as spent, because noise may have been drawn; a new release costs its own budget."
    )
