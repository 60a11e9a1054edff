"""Who pays for a release, at the terminal: its options, its question, and what is said afterwards."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dpsc.cli.terminal import require_not_interrupted
from dpsc.custodian.custody import payer
from dpsc.custodian.custody.payer import DEFAULT

if TYPE_CHECKING:
    from dpsc.ledger import Ledger

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


class Account(payer.Account):
    """A data set in a ledger; a user at a terminal is asked which, if it has several."""

    def tell(self) -> None:
        """Say on stderr what the release cost and what is spent and left, or that nothing was booked."""
        if self.ledger is None and not self._silent:
            typer.echo(
                "\nNothing was booked: there is no ledger, so nobody adds up what is released about these donors. To "
                "keep a book,\n  dpsc ledger init NAME --epsilon 2 --delta 1e-6\n"
                f"makes {DEFAULT} in this folder, which later releases from here are booked in. --no-ledger silences "
                "this.",
                err=True,
            )
        elif self.ledger is not None and self.entry is not None:
            typer.echo("\n" + "\n".join(self.told()), err=True)

    def _last_look(self) -> None:
        require_not_interrupted()

    def _one_of(self, ledger: Ledger, names: Sequence[str]) -> str:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return super()._one_of(ledger, names)
        listed = ", ".join(map(repr, names))
        return ledger.dataset(typer.prompt(f"Which data set pays? The ledger has {listed}", err=True)).name
