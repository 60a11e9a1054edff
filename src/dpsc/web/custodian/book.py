"""The ledger as the custodian's page shows it: read when something changes, never while a page is drawn."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from dpsc.custodian.custody.payer import DEFAULT
from dpsc.ledger import Entry, Ledger, address
from dpsc.ledger.chain import Head
from dpsc.ledger.export import as_csv, as_json
from dpsc.ledger.history import Balance
from dpsc.privacy.guarantee import Guarantee

_PATIENCE = 2.0  # seconds that a page waits for a ledger that another program holds
_GRID = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0)


@dataclass(frozen=True)
class Seen:
    """What a ledger held when it was read.

    Attributes
    ----------
    datasets : tuple of str
    balance, after : Balance or None
        Of the data set that pays: now, and after the release at hand.
    left : float
        The largest epsilon of a release at the delta at hand.
    entries : tuple of Entry
    head : Head or None
    """

    datasets: tuple[str, ...] = ()
    balance: Balance | None = None
    after: Balance | None = None
    left: float = 0.0
    entries: tuple[Entry, ...] = ()
    head: Head | None = None

    @property
    def grid(self) -> list[float]:
        """The epsilons on the slider: even steps for the eye, as far as there is room."""
        if self.balance is None:
            return list(_GRID)
        inside = [epsilon for epsilon in _GRID if epsilon <= self.left]
        return sorted({*inside, *([self.left] if 0 < self.left <= _GRID[-1] else [])})


class Shelf:
    """Where the ledger is, and what is done with it.

    Parameters
    ----------
    given : str or None
        The option ``--ledger``; without it DPSC_LEDGER, else the usual file in this folder.
    """

    def __init__(self, given: str | None) -> None:
        self.given = given
        self.url = given or os.environ.get("DPSC_LEDGER") or DEFAULT
        self.place = str(address.read(self.url))

    @property
    def exists(self) -> bool:
        """Whether there is a ledger; one in a database is only known when it is opened."""
        path = address.read(self.url).path
        return path is None or os.path.lexists(path)

    def read(self, dataset: str, promise: Guarantee | None) -> Seen:
        """Look into the ledger; ``promise`` is that of the release at hand."""
        if not self.exists:
            return Seen()
        history = self.open().history()
        names = tuple(history.datasets)
        seen = Seen(names, entries=tuple(history.entries()), head=history.head)
        payer = dataset if dataset in names else names[0] if len(names) == 1 else None
        if payer is None:
            return seen
        seen = replace(seen, balance=history.balance(payer))
        if promise is None:
            return seen
        left = history.remaining(payer, delta=promise.delta)
        return replace(seen, left=left, after=history.balance(payer, after=promise))

    def enter(self, name: str, epsilon: float, delta: float) -> str:
        """Enter a data set with its budget, making the ledger if there is none; return its name."""
        return Ledger(self.url, create=True, patience=_PATIENCE).add_dataset(name, epsilon=epsilon, delta=delta).name

    def verify(self) -> list[str]:
        """Return everything that is wrong with the ledger."""
        return self.open().verify()

    def export(self, kind: str) -> bytes:
        """Return the whole ledger as CSV or JSON."""
        return (as_csv if kind == "csv" else as_json)(self.open()).encode("utf-8")

    def open(self) -> Ledger:
        """Open the ledger for reading."""
        return Ledger(self.url, patience=_PATIENCE)


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
