"""`Ledger`: book a release before noise is drawn, and confirm it when its file is in place. It never sees donors."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection

from dpsc import checks
from dpsc.errors import LedgerError
from dpsc.ledger import address, chain, records, schema, words
from dpsc.ledger.budget import Budget, groups
from dpsc.ledger.chain import Head, Row
from dpsc.ledger.contents import contents_of, promises_something_else, release_in
from dpsc.ledger.history import Balance, History, read_cost, read_dataset, read_entry
from dpsc.ledger.records import DataSet, Entry
from dpsc.ledger.requests import Refused, another_description, require_no_twin, user, writable
from dpsc.ledger.store import LOST, Store
from dpsc.privacy.guarantee import OF_PEOPLE, REPLACE_ONE, Guarantee

MERGE = "Release.merge"


class Ledger:
    """A record of what was released from which data set, with a budget that is checked before noise is drawn.

    Parameters
    ----------
    url : str or path
        A SQLite file (``ledger.sqlite`` or ``sqlite:///ledger.sqlite``) or a PostgreSQL database
        (``postgresql+psycopg://user@host/name``).
    create : bool
        Whether to make the ledger if there is none. Only its owner may read the file of a new ledger.
    patience : float
        Seconds to wait while another process holds the lock.

    Examples
    --------
    >>> import tempfile
    >>> from dpsc import GramRelease
    >>> folder = Path(tempfile.mkdtemp())
    >>> ledger = Ledger(folder / "ledger.sqlite", create=True)
    >>> made = ledger.add_dataset("sales", epsilon=2.0, delta=1e-6, description={"n": 500, "outcome": "sales"})
    >>> algorithm = GramRelease(epsilon=1.0, delta=1e-6)
    >>> with ledger.spending("sales", **ledger.terms(algorithm), output=folder / "sales.dpsc.json"):
    ...     algorithm.release([[1.0, 2.0], [3.0, 1.0]] * 250, dataset="sales").save(folder / "sales.dpsc.json")
    >>> ledger.remaining("sales", delta=1e-6) > 1.6  # more than 2 - 1, because losses do not simply add up
    True
    """

    terms = staticmethod(records.public_terms)

    def __init__(self, url: str | os.PathLike[str], *, create: bool = False, patience: float = 30.0) -> None:
        checks.finite_number("patience", patience, above=0)
        self._store = Store(address.read(url), create=create, patience=float(patience))

    def __repr__(self) -> str:
        return f"<Ledger at {self._store.address}>"

    @property
    def place(self) -> str:
        """Where the ledger is, without any password."""
        return str(self._store.address)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of a SQLite ledger, which nothing may be written over; none for PostgreSQL."""
        return self._store.address.files

    def add_dataset(
        self,
        name: str,
        *,
        epsilon: float,
        delta: float,
        pure: float = 0.0,
        other: tuple[float, float] = (0.0, 0.0),
        description: Mapping[str, object] | None = None,
        adjacency: str = REPLACE_ONE,
        who: str | None = None,
    ) -> DataSet:
        """Enter a data set and its budget, which cannot be changed afterwards.

        Parameters
        ----------
        name : str
        epsilon, delta : float
            The budget of everything that is ever released from it, together.
        pure : float
            The part of epsilon that is for pure releases (delta = 0), whose epsilons add up. The rest is for Gaussian
            noise, and without this part pure releases are charged as Gaussian noise. A budget with delta = 0 is for
            pure releases alone.
        other : tuple of float
            The parts of epsilon and delta for releases of which only (epsilon, delta) is known, as for
            ``ObjectivePerturbation`` with delta > 0.
        description : mapping, optional
            What is public about it: number of donors, periods, outcome, bounds. Never anything computed from donors.
        adjacency : str
            Which databases count as neighbours.
        who : str, optional
            The user of the operating system by default.

        Returns
        -------
        DataSet
            Entering the same again changes nothing. Refused: another budget or description under the same name, and a
            name that differs from a known one only in case, spaces or Unicode form.
        """
        written = records.name("the data set's name", name)
        checks.epsilon("epsilon", epsilon)
        checks.delta("delta", delta)
        about = dict(description or {})
        budget = Budget(float(epsilon), float(delta), float(pure), (float(other[0]), float(other[1])))
        budget.require_sound()
        body = {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "pure": budget.pure,
            "other": list(budget.other),
            "adjacency": records.text("adjacency", adjacency),
            "description": about,
            "fingerprint": records.fingerprint(about),
        }

        def work(connection: Connection, history: History) -> DataSet:
            known = history.datasets.get(name) or history.datasets.get(written)
            if known is None:
                require_no_twin("data set", written, history.datasets)
                return read_dataset(self._append(connection, history, "dataset", written, who, body))
            if known.fingerprint != body["fingerprint"]:
                raise another_description(name, known.description, about)
            older = known.budget.fixed is not None and budget == Budget(known.epsilon, known.delta)
            if known.adjacency != adjacency or (known.budget != budget and not older):
                raise LedgerError(
                    f"the data set {name!r} already has a budget of ({known.epsilon:g}, {known.delta:g}) for "
                    f"{known.adjacency}, of which epsilon {known.budget.pure:g} is for pure releases. A budget is a "
                    "promise and does not change; other data need another name."
                )
            return known

        return self._store.write(work)

    @contextmanager
    def spending(
        self,
        dataset: str,
        guarantee: Guarantee | None,
        *,
        algorithm: str,
        parameters: Mapping[str, object] | None = None,
        who: str | None = None,
        output: str | os.PathLike[str] | None = None,
        partition: str | None = None,
        purpose: str | None = None,
        description: Mapping[str, object] | None = None,
    ) -> Iterator[Entry]:
        """Book a release that the body makes, and confirm it at the end.

        The booking is on disk before the body starts. When the body ends and ``output`` is in place, it is confirmed.
        If the body or the whole process fails, the booking stays and counts as spent: noise may have been drawn.

        Parameters
        ----------
        dataset : str
        guarantee : Guarantee
            What the release will promise: the algorithm's ``guarantee``.
        algorithm : str
        parameters : mapping, optional
            The public parameters.
        who : str, optional
            The user of the operating system by default.
        output : path, optional
            The file that the body makes.
        partition : str, optional
            A label of a group of donors, if the release is from them only. Groups are disjoint and their membership is
            public; what is booked for one costs the others nothing.
        purpose : str, optional
            What the release is for, in your words.
        description : mapping, optional
            What is public about the data at hand; refused if it contradicts what the data set was entered with.
        """
        entry = self.book(
            dataset,
            guarantee,
            algorithm=algorithm,
            parameters=parameters,
            who=who,
            output=output,
            partition=partition,
            purpose=purpose,
            description=description,
        )
        try:
            yield entry
        except BaseException as problem:
            with suppress(LedgerError):  # the booking counts anyway, and the problem of the body matters more
                self.fail(entry, type(problem).__name__)
            raise
        self.confirm(entry)

    def book(
        self,
        dataset: str,
        guarantee: Guarantee | None,
        *,
        algorithm: str,
        parameters: Mapping[str, object] | None = None,
        who: str | None = None,
        output: str | os.PathLike[str] | None = None,
        partition: str | None = None,
        purpose: str | None = None,
        description: Mapping[str, object] | None = None,
    ) -> Entry:
        """Write and commit the cost of a release that is about to be made; see :meth:`spending`."""
        promise = records.require_guarantee(guarantee)
        place = None if output is None else writable(Path(output), self.files)
        written = None if partition is None else records.name("partition", partition)
        body: dict[str, object] = {
            "algorithm": records.text("algorithm", algorithm),
            "parameters": dict(parameters or {}),
            "guarantee": records.guarantee_to_json(promise),
            "output": place,
        }
        if purpose is not None:
            body["purpose"] = records.text("purpose", purpose)
        records.canonical(body, "parameters")
        cost = read_cost(body)

        def work(connection: Connection, history: History) -> Entry | Refused:
            known = history.dataset(dataset)
            if known.adjacency != promise.adjacency and not {known.adjacency, promise.adjacency} <= OF_PEOPLE:
                raise LedgerError(
                    f"the budget of {dataset!r} is for neighbours that {known.adjacency}, the guarantee for neighbours "
                    f"that {promise.adjacency}; they cannot be added up."
                )
            if records.differences(known.description, description or {}):
                raise another_description(dataset, known.description, description or {})
            charges = history.charges(known.name)
            labels = {charge.partition for charge in charges if charge.partition is not None}
            part = partition if partition in labels else written
            if part is not None:
                require_no_twin("partition", part, labels)
            if algorithm == MERGE and labels:
                raise LedgerError(
                    f"the sites of {dataset!r} are already booked as partitions; merging their releases costs nothing."
                )
            if not all(known.budget.allows([*group, cost]) for group in groups(charges, part)):
                return Refused(known.budget, charges)
            return read_entry(self._append(connection, history, "booked", known.name, who, body, partition=part), None)

        outcome = self._store.write(work)
        if isinstance(outcome, Refused):  # computed here, when the lock is free again
            raise outcome.error(dataset, cost, written)
        return outcome

    def confirm(self, entry: Entry) -> None:
        """Record that the output of a booking is in place, with the SHA-256 of the file and what a release covers.

        A dpsc release whose guarantee differs from the booked one is not confirmed.
        """
        body: dict[str, object] = {}
        if entry.output is not None:
            try:
                content = Path(entry.output).read_bytes()
                body["sha256"] = hashlib.sha256(content).hexdigest()
            except OSError as problem:
                self.fail(entry, "no output")
                raise LedgerError(
                    f"{entry.output} is not in place ({problem.strerror}); entry {entry.number} stays booked and "
                    "counts as spent, because noise may have been drawn."
                ) from None
            release = release_in(content)
            if promises_something_else(release, entry.promise):
                self.fail(entry, "another guarantee")
                raise LedgerError(
                    f"{entry.output} does not promise what entry {entry.number} was booked for. Do not publish it: "
                    "delete it, or book what it costs. The entry counts as spent."
                )
            body["contents"] = contents_of(release)
        try:
            self._finish(entry, "confirmed", body)
        except LedgerError as problem:
            raise LedgerError(
                f"entry {entry.number} is booked and counts as spent, but could not be confirmed: {problem}"
            ) from None

    def fail(self, entry: Entry, reason: str) -> None:
        """Record that a booking failed. It still counts as spent."""
        self._finish(entry, "failed", {"reason": records.text("reason", reason)})

    def dataset(self, name: str) -> DataSet:
        """Return a data set, or say which ones there are."""
        return self.history().dataset(name)

    def datasets(self) -> list[DataSet]:
        """Return all data sets, in the order in which they were entered."""
        return list(self.history().datasets.values())

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """Return the bookings of a data set, or all, with their states."""
        history = self.history()
        return history.entries(None if dataset is None else history.dataset(dataset).name)

    def remaining(self, dataset: str, *, delta: float | None = None, partition: str | None = None) -> float:
        """Return the largest epsilon that a further Gram release at ``delta`` may have; 0 if none.

        The default is the budget's delta. For delta = 0 the answer is about a pure release. It is rounded down: a
        release of this size is accepted, unless another one is booked before it.
        """
        return self.history().remaining(dataset, delta=delta, partition=partition)

    def allows(self, dataset: str, guarantee: Guarantee, *, partition: str | None = None) -> bool:
        """Return whether a release with this guarantee would be accepted now; books nothing."""
        return self.history().allows(dataset, guarantee, partition=partition)

    def balance(self, dataset: str, *, after: Guarantee | None = None, partition: str | None = None) -> Balance:
        """Return what a data set, or one partition, has spent and has left, or would have after a release."""
        return self.history().balance(dataset, after=after, partition=partition)

    def would_cost(self, dataset: str, guarantee: Guarantee, *, partition: str | None = None) -> list[str]:
        """Say, line by line, what a release would cost and leave, and what was released before; books nothing."""
        return words.would_cost(self.history(), dataset, records.require_guarantee(guarantee), partition=partition)

    def told(self, entry: Entry) -> list[str]:
        """Say, line by line, what a booking has cost, what is left, and which file to use if there are several."""
        return words.told(self.history(), entry, self.place)

    def history(self) -> History:
        """Read the ledger once, for whoever asks several things of the same state of it.

        Whether it was edited is for :meth:`verify`, and for whoever books.
        """
        history = History(self.rows())
        if history.unreadable is not None:
            raise history.unreadable
        return history

    @property
    def head(self) -> Head:
        """The length and the last hash of the chain. A copy kept elsewhere shows if the whole ledger was rewritten."""
        return self._store.read(self._store.head)

    def verify(self, noted: str | None = None) -> list[str]:
        """Return everything that is wrong with the ledger, in words; an empty list if nothing is.

        Parameters
        ----------
        noted : str, optional
            A head hash that was noted elsewhere earlier: it must still be in the chain.
        """

        def work(connection: Connection) -> list[str]:
            rows = schema.rows(connection)
            history = History(rows)
            found = chain.problems(rows, self._store.head(connection)) + history.problems + history.overspent()
            if not found and not self._store.continues(rows):
                found.append(f"it {LOST}")
            if noted is not None and noted.lower() not in {chain.START, *(row.hash for row in rows)}:
                found.append("the noted head is not in the chain: the ledger was rewritten, or this is another ledger")
            return found

        return self._store.read(work)

    def rows(self) -> list[Row]:
        """Return the rows of the ledger as they are stored, for export."""
        return self._store.read(self._store.rows)

    def _finish(self, entry: Entry, event: str, body: Mapping[str, object]) -> None:
        def work(connection: Connection, history: History) -> None:
            booked = history.booking(entry.number)
            if booked is None or booked.hash != entry.hash:
                raise LedgerError(f"entry {entry.number} is not a booking of this ledger.")
            if entry.number in history.outcomes:
                raise LedgerError(f"entry {entry.number} was confirmed or has failed already.")
            self._append(connection, history, event, entry.dataset, entry.who, body, booking=entry.number)

        self._store.write(work)

    def _append(
        self,
        connection: Connection,
        history: History,
        event: str,
        dataset: str,
        who: str | None,
        body: Mapping[str, object],
        *,
        booking: int | None = None,
        partition: str | None = None,
    ) -> Row:
        by, text = user() if who is None else records.text("who", who), records.canonical(body, event)
        row = chain.following(history.head, event, dataset, by, text, booking=booking, partition=partition)
        schema.append(connection, row)
        return row
