"""Who pays for a release: the options --ledger and --dataset of the commands that release something."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsc.cli.common import require_not_interrupted
from dpsc.errors import ParameterError

if TYPE_CHECKING:
    from dpsc.ledger import Ledger

LedgerOption = Annotated[
    str | None,
    typer.Option("--ledger", envvar="DPSC_LEDGER", help="Book the release in this privacy ledger.", metavar="URL"),
]
DatasetOption = Annotated[str | None, typer.Option("--dataset", help="The data set of the ledger that pays for it.")]


class Account:
    """A data set in a ledger, opened once; without both options nothing is booked.

    Wrong options are refused here, before any data are read. A ledger without a data set is one of them: a custodian
    who has set DPSC_LEDGER expects that every release is booked.
    """

    def __init__(self, place: str | None, dataset: str | None) -> None:
        self._payer: tuple[Ledger, str] | None = None
        if place is None and dataset is None:
            return
        if place is None:
            raise ParameterError("--dataset needs a ledger: say where it is with --ledger or DPSC_LEDGER.")
        if dataset is None:
            raise ParameterError("a ledger is given (--ledger or DPSC_LEDGER): say which data set pays with --dataset.")
        from dpsc.ledger import Ledger

        ledger = Ledger(place)
        ledger.dataset(dataset)
        self._payer = ledger, dataset

    def booking(
        self, algorithm: object, *, output: Path | None, description: Mapping[str, Any]
    ) -> AbstractContextManager[object]:
        """Book what an algorithm promises; the body makes ``output``, which is confirmed at the end."""
        if self._payer is None:
            return nullcontext()
        require_not_interrupted()
        ledger, dataset = self._payer
        return ledger.spending(dataset, **ledger.terms(algorithm), output=output, description=description)
