"""A request to book: who makes it, where its output goes, and how it is refused."""

from __future__ import annotations

import getpass
import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from dpsc.checks import small
from dpsc.errors import BudgetError, LedgerError
from dpsc.files import same_file
from dpsc.ledger import records
from dpsc.ledger.budget import Budget, Charge, Cost, groups


class Refused:
    """A request that the budget does not allow, with what was booked when it was refused."""

    def __init__(self, budget: Budget, charges: list[Charge]) -> None:
        self.budget, self.charges = budget, charges

    def error(self, dataset: str, cost: Cost, partition: str | None) -> BudgetError:
        """Return the error with what was requested, what remains and the difference."""
        left = min(
            cost.epsilon, *(self.budget.largest(group, cost.delta, cost) for group in groups(self.charges, partition))
        )
        of = "" if partition is None else f", partition {partition!r}"
        return BudgetError(
            f"over budget: {dataset!r}{of} has epsilon {self.budget.epsilon:g} at delta {small(self.budget.delta)} in "
            f"all. Requested: epsilon {cost.epsilon:g} at delta {small(cost.delta)}; left at that delta: {left:g}; "
            f"too much by {cost.epsilon - left:.5g}. {self._why(cost)}Nothing was booked.",
            requested=cost.epsilon,
            remaining=left,
        )

    def _why(self, cost: Cost) -> str:
        """Say which part of the budget pays, where that may surprise."""
        budget = self.budget
        if cost.kind == "pure" and budget.delta > 0:
            if budget.pure > 0:
                return f"Epsilon {budget.pure:g} of the budget is for pure releases like this one. "
            return "No part of the budget was kept for pure releases, so they are charged as Gaussian noise. "
        if cost.kind == "other" and budget.other[0] == 0:
            return (
                "Of this release only (epsilon, delta) is known, and no part of the budget was kept for such releases "
                "(dpsc ledger init --other); ask for delta = 0, or for another method. "
            )
        if budget.delta == 0 and cost.delta > 0:
            return "The budget has delta = 0, so only pure releases fit. "
        return ""


def another_description(name: str, known: Mapping[str, object], given: Mapping[str, object]) -> LedgerError:
    """Return the error for data whose description differs from the one that was entered."""
    keys = records.differences(known, given) or sorted(set(known) ^ set(given))
    return LedgerError(
        f"the data set {name!r} was entered with another public description (they differ in {', '.join(keys)}). Other "
        "data need another name and a separate budget."
    )


def require_no_twin(what: str, name: str, known: Collection[str]) -> None:
    """Refuse a new name that a reader would take for a known one: it would have a budget of its own."""
    twin = None if name in known else records.twin(name, known)
    if twin is not None:
        raise LedgerError(
            f"the ledger knows the {what} {twin!r}, and {name!r} {records.DIFFERS}. If the donors are the same, use "
            f"{twin!r}; other donors need a name that differs in more."
        )


def writable(path: Path, ledger: Sequence[Path]) -> str:
    """Refuse, before anything is spent, an output that cannot be written or that would replace the ledger."""
    path = Path(os.path.abspath(path))
    if same_file(path, ledger) is not None:
        raise LedgerError(f"the output {path} is the ledger; write to another place. Nothing was booked.")
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise LedgerError("the output's name is not valid text; choose another.") from None
    if path.is_dir():
        raise LedgerError(f"the output {path} is a folder; name a file in it.")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            return str(path)
    except OSError as problem:
        raise LedgerError(
            f"the folder {path.parent} cannot be written: {problem.strerror or problem}. Nothing was booked."
        ) from None


def user() -> str:
    """Return the name of the operating system's user; the environment is used only if the system does not know it."""
    ways: list[Callable[[], str]] = [getpass.getuser]
    with suppress(ImportError):
        import pwd

        ways.insert(0, lambda: pwd.getpwuid(os.getuid()).pw_name)
    for way in ways:
        with suppress(KeyError, OSError, ImportError):
            return way()
    return "unknown"
