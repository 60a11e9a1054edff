"""Who pays for a release: which ledger and which data set, and what to say about it afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from dpsc.errors import LedgerError, Parameter, ParameterError

if TYPE_CHECKING:
    from dpsc.analyst.private_panel import PrivatePanel
    from dpsc.analyst.release import Release
    from dpsc.analyst.releases import Releases
    from dpsc.ledger import Entry, Ledger
    from dpsc.privacy.guarantee import Guarantee

Output: TypeAlias = tuple[Path, Path, Callable[[], None]]
"""A file, where it is written first, and what moves it to its place."""
Made = TypeVar("Made", bound="Release | Releases | PrivatePanel")
DEFAULT, NO_LEDGER = "dpsc-ledger.sqlite", Parameter("no_ledger", True)


class Account:
    """A data set in a ledger, opened once. Wrong options are refused here, before any data are read.

    Parameters
    ----------
    place : str, optional
        The ledger; by default what DPSC_LEDGER says, or the ledger in the working folder: a custodian who keeps one
        expects that every release is booked.
    dataset : str, optional
        By default the only one that the ledger has.
    partition, purpose : str, optional
        Kept with the booking.
    no_ledger : bool
        Book nothing, whatever ledger there is.
    last_look : callable
        Stops, by raising, if that was asked for: afterwards the release is booked.
    """

    def __init__(
        self,
        place: str | None,
        dataset: str | None,
        *,
        partition: str | None = None,
        purpose: str | None = None,
        no_ledger: bool = False,
        last_look: Callable[[], None] = lambda: None,
    ) -> None:
        self.ledger: Ledger | None = None
        self.entry: Entry | None = None
        self._silent, self._partition, self._purpose, self._last_look = no_ledger, partition, purpose, last_look
        given = {"ledger": place, "dataset": dataset, "partition": partition, "purpose": purpose}
        said = [Parameter(name) for name, value in given.items() if value is not None]
        if no_ledger and said:
            raise ParameterError(f"{said[0]} and {NO_LEDGER} contradict each other; leave one of them out.")
        found = None if no_ledger else place or _usual_place()
        if found is None:
            if said:
                raise ParameterError(
                    f"{said[0]} needs a ledger: say where it is with {Parameter('ledger')} or DPSC_LEDGER, or make "
                    f"{DEFAULT} here with dpsc ledger init."
                )
            return
        from dpsc.ledger import Ledger

        self.ledger = Ledger(found)
        self.dataset = self._only_dataset(self.ledger) if dataset is None else self.ledger.dataset(dataset).name

    @property
    def payer(self) -> str | None:
        """The name that a release carries of the donors who are charged for it: the data set, or its partition."""
        if self.ledger is None:
            return None
        return self.dataset if self._partition is None else f"{self.dataset}, partition {self._partition}"

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the ledger, which nothing may be written over."""
        return () if self.ledger is None else self.ledger.files

    @contextmanager
    def booking(
        self,
        algorithm: object,
        *,
        output: Path | None,
        description: Mapping[str, Any],
        promise: Guarantee | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> Iterator[None]:
        """Book what an algorithm promises, or this run of it, let the body make ``output``, and confirm it.

        ``parameters`` are public, and kept beside those of the algorithm.
        """
        if self.ledger is None:
            yield
            return
        promise = getattr(algorithm, "guarantee", None) if promise is None else promise
        if promise is None:
            raise LedgerError(
                f"this run has no guarantee, so its cost is not known and it cannot be booked in {self.ledger.place}. "
                f"To look at it yourself, without passing it on, add {NO_LEDGER}."
            )
        if promise.arithmetic == "exact":
            from dpsc.privacy.discrete import require_unbiased

            require_unbiased()  # before the booking: what is booked counts as spent
        self._last_look()
        terms = self.ledger.terms(algorithm, promise)
        with self.ledger.spending(
            self.dataset,
            **terms | {"parameters": terms["parameters"] | dict(parameters or {})},
            output=output,
            description=description,
            partition=self._partition,
            purpose=self._purpose,
        ) as entry:
            yield
        self.entry = entry

    def making(self, make: Callable[[], Made], algorithm: object, output: Output, **what: Any) -> Made:
        """Book a release, make it, and write it."""
        out, place, finish = output
        with self.booking(algorithm, output=out, **what):  # before the release exists
            made = make()
            made.save(place)
            finish()
        return made

    def would_cost(self, promise: Guarantee | None) -> list[str]:
        """Say what a booking would cost, whether there is room for it, and what was released before; books nothing."""
        if self.ledger is None:
            why = (
                ""
                if self._silent
                else f"; there is no ledger: make one with dpsc ledger init, or add {NO_LEDGER.option}"
            )
            return [f"cost: nothing would be booked{why}"]
        if promise is None:
            return ["cost: a run without a guarantee cannot be booked"]
        return self.ledger.would_cost(self.dataset, promise, partition=self._partition)

    def told(self) -> list[str]:
        """Say what the release cost, what is spent and left, and what was released before."""
        ledger, entry = self.ledger, self.entry
        assert ledger is not None
        assert entry is not None
        try:
            return ledger.told(entry)
        except LedgerError as problem:  # the release is made and booked, whatever can be read now
            return [f"Booked as entry {entry.number}. What is left cannot be shown: {problem}"]

    def _only_dataset(self, ledger: Ledger) -> str:
        names = [known.name for known in ledger.datasets()]
        if len(names) == 1:
            return names[0]
        if not names:
            raise ParameterError(
                f"the ledger at {ledger.place} has no data set yet: enter these donors with dpsc ledger init, or add "
                f"{NO_LEDGER} to book nothing."
            )
        return self._one_of(ledger, names)

    def _one_of(self, ledger: Ledger, names: Sequence[str]) -> str:
        raise ParameterError(
            f"the ledger at {ledger.place} has several data sets: {', '.join(map(repr, names))}. Say with "
            f"{Parameter('dataset')} whose budget is used."
        )


def datasets_here() -> list[str] | None:
    """Return the data sets of the ledger that a release from here is booked in; None if there is no ledger."""
    place = _usual_place()
    if place is None:
        return None
    from dpsc.ledger import Ledger

    return [known.name for known in Ledger(place).datasets()]


def _usual_place() -> str | None:
    here = DEFAULT if os.path.lexists(DEFAULT) else None  # a broken link is no reason to book nothing
    return os.environ.get("DPSC_LEDGER") or here
