"""Who pays for a release: which ledger and which data set, and what to say about it afterwards."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsc.cli.common import require_not_interrupted
from dpsc.errors import LedgerError, ParameterError

if TYPE_CHECKING:
    from dpsc.ledger import Entry, Ledger
    from dpsc.ledger.history import Balance

DEFAULT = "dpsc-ledger.sqlite"
_PANEL = "Ledger"

LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger", help=f"The privacy ledger; by default DPSC_LEDGER, or {DEFAULT} in this folder.", metavar="URL",
        rich_help_panel=_PANEL,
    ),
]  # fmt: skip
DatasetOption = Annotated[
    str | None,
    typer.Option("--dataset", help="The data set of the ledger that pays; needed if it has several.",
                 rich_help_panel=_PANEL),
]  # fmt: skip
PartitionOption = Annotated[
    str | None,
    typer.Option(help="The group of donors, if they are one of several disjoint groups with public membership.",
                 rich_help_panel=_PANEL),
]  # fmt: skip
PurposeOption = Annotated[
    str | None, typer.Option(help="What the release is for, kept in the ledger.", rich_help_panel=_PANEL)
]
NoLedgerOption = Annotated[
    bool, typer.Option("--no-ledger", help="Book nothing, and say nothing about it.", rich_help_panel=_PANEL)
]


class Account:
    """A data set in a ledger, opened once. Wrong options are refused here, before any data are read.

    Parameters
    ----------
    place : str, optional
        The ledger; by default what DPSC_LEDGER says, or the ledger in the working folder: a custodian who keeps one
        expects that every release is booked.
    dataset : str, optional
        By default the only one that the ledger has. If it has several, the user is asked.
    partition, purpose : str, optional
        Kept with the booking.
    no_ledger : bool
        Book nothing, whatever ledger there is.
    """

    def __init__(
        self,
        place: str | None,
        dataset: str | None,
        *,
        partition: str | None = None,
        purpose: str | None = None,
        no_ledger: bool = False,
    ) -> None:
        self._ledger: Ledger | None = None
        self._entry: Entry | None = None
        self._silent, self._partition, self._purpose = no_ledger, partition, purpose
        given = {"--ledger": place, "--dataset": dataset, "--partition": partition, "--purpose": purpose}
        options = [option for option, value in given.items() if value is not None]
        if no_ledger and options:
            raise ParameterError(f"{options[0]} and --no-ledger contradict each other; leave one of them out.")
        found = None if no_ledger else place or os.environ.get("DPSC_LEDGER") or (DEFAULT if _is_here() else None)
        if found is None:
            if options:
                raise ParameterError(
                    f"{options[0]} needs a ledger: say where it is with --ledger or DPSC_LEDGER, or make {DEFAULT} "
                    "here with dpsc ledger init."
                )
            return
        from dpsc.ledger import Ledger

        self._ledger = Ledger(found)
        self._dataset = _only_or_chosen(self._ledger) if dataset is None else self._ledger.dataset(dataset).name

    @property
    def payer(self) -> str | None:
        """The name that a release carries of the donors who are charged for it: the data set, or its partition."""
        if self._ledger is None:
            return None
        return self._dataset if self._partition is None else f"{self._dataset}, partition {self._partition}"

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the ledger, which nothing may be written over."""
        return () if self._ledger is None else self._ledger.files

    @contextmanager
    def booking(self, algorithm: object, *, output: Path | None, description: Mapping[str, Any]) -> Iterator[None]:
        """Book what an algorithm promises, let the body make ``output``, and confirm it at the end."""
        if self._ledger is None:
            yield
            return
        if getattr(algorithm, "guarantee", None) is None:
            raise LedgerError(
                f"this run has no guarantee, so it has no price and cannot be booked in {self._ledger.place}. For a "
                "look of your own, which you hand on to nobody, add --no-ledger."
            )
        require_not_interrupted()
        with self._ledger.spending(
            self._dataset, **self._ledger.terms(algorithm), output=output, description=description,
            partition=self._partition, purpose=self._purpose,
        ) as entry:  # fmt: skip
            yield
        self._entry = entry

    def would_cost(self, algorithm: object) -> str:
        """Say what a booking would cost and whether the ledger has room for it; books nothing."""
        if self._ledger is None:
            return "there is no ledger; nothing would be booked"
        promise = getattr(algorithm, "guarantee", None)
        if promise is None:
            return "a run without a guarantee cannot be booked"
        left = self._ledger.remaining(self._dataset, partition=self._partition)
        room = "there is room for it" if promise.epsilon <= left else "there is NO ROOM for it"
        return f"epsilon {promise.epsilon:g} of {self._dataset!r}, where up to {left:g} is left: {room}"

    def tell(self) -> None:
        """Say on stderr what the release cost and what is spent and left, or that nothing was booked."""
        if self._ledger is None and not self._silent:
            typer.echo(
                "\nNothing was booked: there is no ledger, so nobody adds up what is released about these donors. To "
                "keep a book,\n  dpsc ledger init NAME --epsilon 2 --delta 1e-6\n"
                f"makes {DEFAULT} in this folder, which later releases from here are booked in. --no-ledger silences "
                "this.",
                err=True,
            )
        elif self._ledger is not None and self._entry is not None:
            try:
                typer.echo("\n" + "\n".join(_told(self._ledger, self._entry)), err=True)
            except LedgerError as problem:  # the release is made and booked, whatever can be read now
                typer.echo(f"\nBooked as entry {self._entry.number}. What is left cannot be shown: {problem}", err=True)


def explained(balance: Balance) -> str | None:
    """Return why epsilons come to less than their sum, where they do."""
    added, known = balance.added, balance.dataset
    if len(added) > 1 and balance.spent < 0.999 * sum(added):
        terms = " + ".join(f"{epsilon:g}" for epsilon in added) if len(added) <= 4 else f"the sum of {sum(added):g}"
        what = f"{terms} comes to {balance.spent:.4g}"
    elif added and balance.spent + balance.remaining > 1.001 * known.epsilon:
        what = f"spent and left come to more than {known.epsilon:g}"
    else:
        return None
    why = (
        f"all releases rarely reveal the most they can at the same time, and delta {known.delta:g} covers the rare case"
    )
    return f"Why {what}: {why}."


def _told(ledger: Ledger, entry: Entry) -> list[str]:
    balance, label = ledger.balance(entry.dataset), entry.partition
    known = balance.dataset
    of = "" if label is None else f", partition {label!r}"
    spent = balance.spent if label is None else balance.partitions[label]
    left = ledger.remaining(known.name, partition=label)
    kind = "pure" if known.delta == 0 else "Gram"
    lines = [
        f"Booked as entry {entry.number} of {known.name!r}{of} in {ledger.place}.",
        f"  cost   epsilon {entry.promise['epsilon']:g} at delta {entry.promise['delta']:g}",
        f"  spent  epsilon {spent:.4g} of {known.epsilon:g} at delta {known.delta:g}",
        f"  left   a {kind} release of up to epsilon {left:g} at delta {known.delta:g}" if left else "  left   nothing",
    ]
    why = explained(balance) if spent == balance.spent else None
    return [*lines, why] if why is not None else lines


def datasets_here() -> list[str] | None:
    """Return the data sets of the ledger that a release from here is booked in; None if there is no ledger."""
    place = os.environ.get("DPSC_LEDGER") or (DEFAULT if _is_here() else None)
    if place is None:
        return None
    from dpsc.ledger import Ledger

    return [known.name for known in Ledger(place).datasets()]


def _is_here() -> bool:
    return os.path.lexists(DEFAULT)  # a broken link is no reason to book nothing


def _only_or_chosen(ledger: Ledger) -> str:
    names = [known.name for known in ledger.datasets()]
    if len(names) == 1:
        return names[0]
    if not names:
        raise ParameterError(
            f"the ledger at {ledger.place} has no data set yet: enter these donors with dpsc ledger init, or add "
            "--no-ledger to book nothing."
        )
    listed = ", ".join(map(repr, names))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ParameterError(
            f"the ledger at {ledger.place} has several data sets: {listed}. Say with --dataset which of them pays."
        )
    return ledger.dataset(typer.prompt(f"Which data set pays? The ledger has {listed}", err=True)).name
