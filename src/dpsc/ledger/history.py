"""The book as read row by row: data sets, what each was charged, what became of bookings, and what makes no sense."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dpsc import checks
from dpsc.errors import DpscError, LedgerError
from dpsc.ledger import records
from dpsc.ledger.budget import GRAM_COORDINATES, Budget, Charge, Cost, fixed_afterwards, groups
from dpsc.ledger.chain import Head, Row, end_of
from dpsc.ledger.records import Contents, DataSet, Entry, State
from dpsc.privacy.accounting import Loss
from dpsc.privacy.guarantee import Guarantee
from dpsc.privacy.rounded_gaussian import discrete_gaussian_slack
from dpsc.types import JsonObject

_MALFORMED = (KeyError, TypeError, ValueError, DpscError)
_GRAM_OF_0_1_0 = ("GramRelease", "discrete Gaussian on unit rows' Gram matrix")  # algorithm and basis


@dataclass(frozen=True)
class Balance:
    """What a data set has spent and has left: the numbers that every command, page and Python shows.

    Attributes
    ----------
    dataset : DataSet
    spent : float
        How much of the budget's epsilon is spent (by the partition that has spent most, if it is not about one).
    remaining : float
        The largest epsilon of a further Gram release of all donors, or of those of one partition, at the budget's delta
        (a pure one for delta = 0). It is never more than the budget.
    states : mapping
        How many bookings are in which state; all count as spent.
    partitions : mapping
        The epsilon spent by each partition, with what was booked for all donors.
    added : tuple of float
        The epsilon of each release that ``spent`` is made of, at the budget's delta. Their sum is usually more.
    """

    dataset: DataSet
    spent: float
    remaining: float
    states: Mapping[State, int]
    partitions: Mapping[str, float]
    added: tuple[float, ...] = ()

    @property
    def share(self) -> float:
        """The spent share of the budget's epsilon."""
        return min(1.0, self.spent / self.dataset.epsilon)


class History:
    """What the rows of the book say, one after the other.

    Attributes
    ----------
    problems : list of str
        What makes no sense, beyond the hashes.
    unreadable : LedgerError or None
        The first row that could not be read; what is left out because of it might be a cost.
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows: list[Row] = []
        self.datasets: dict[str, DataSet] = {}
        self.outcomes: dict[int, Row] = {}
        self.problems: list[str] = []
        self.unreadable: LedgerError | None = None
        self._before: dict[str, list[Charge]] = {}  # what was booked before pockets were fixed, of old data sets
        self._with_pockets = False
        self._charges: dict[str, list[Charge]] = {}
        self._bookings: dict[int, Row] = {}
        self.extend(rows)

    def extend(self, rows: Iterable[Row]) -> None:
        """Read more rows."""
        for row in rows:
            self.rows.append(row)
            problem = self._read(row)
            if problem is not None:
                self.problems.append(problem)

    @property
    def head(self) -> Head:
        """How long the chain is and how it ends."""
        return end_of(self.rows)

    def dataset(self, name: str) -> DataSet:
        """Return a data set, or say which ones there are."""
        found = self.datasets.get(name) or self.datasets.get(records.normalised(name))
        if found is None:
            known = ", ".join(map(repr, self.datasets)) or "none yet"
            twin = records.twin(name, self.datasets)
            advice = "enter it with dpsc ledger init" if twin is None else f"use {twin!r}, which {records.DIFFERS}"
            raise LedgerError(f"the ledger has no data set {name!r} (it has: {known}); {advice}.")
        return found

    def charges(self, name: str) -> list[Charge]:
        """Return what was booked for a data set; every booking counts, whatever became of it."""
        return self._charges.get(name, [])

    def booking(self, number: int) -> Row | None:
        """Return the row of a booking."""
        return self._bookings.get(number)

    def entries(self, name: str | None = None) -> list[Entry]:
        """Return bookings with their states."""
        bookings = (row for row in self._bookings.values() if name in (None, row.dataset))
        return [read_entry(row, self.outcomes.get(row.number)) for row in bookings]

    def remaining(self, name: str, *, delta: float | None = None, partition: str | None = None) -> float:
        """Return the largest epsilon that a further Gram release at ``delta`` may have, as :class:`Ledger` does."""
        known = self.dataset(name)
        at = known.delta if delta is None else checks.delta("delta", delta)
        return min(known.budget.largest(group, at) for group in groups(self.charges(known.name), partition))

    def allows(self, name: str, guarantee: Guarantee, *, partition: str | None = None) -> bool:
        """Return whether a release with this guarantee would be accepted."""
        known, cost = self.dataset(name), Cost.of(records.require_guarantee(guarantee))
        return all(known.budget.allows([*group, cost]) for group in groups(self.charges(known.name), partition))

    def balance(self, name: str, *, after: Guarantee | None = None, partition: str | None = None) -> Balance:
        """Return what a data set, or one partition, has spent and has left, or would have after a release from it."""
        known = self.dataset(name)
        charged = list(self.charges(known.name))
        if after is not None:
            charged.append(Charge(Cost.of(records.require_guarantee(after)), partition))
        budget = known.budget
        labels = list(dict.fromkeys(c.partition for c in charged if c.partition is not None))
        concerned = groups(charged, partition)
        spent, most = max(((budget.spent(group), group) for group in concerned), key=lambda each: each[0])
        return Balance(
            dataset=known,
            spent=spent,
            remaining=min(budget.largest(group, known.delta) for group in concerned),
            states=Counter(entry.state for entry in self.entries(known.name)),
            partitions={label: budget.spent(groups(charged, label)[0]) for label in labels},
            added=tuple(budget.spent([cost]) for cost in most),
        )

    def overspent(self) -> list[str]:
        """Return a problem for each data set that has more booked than its budget allows."""
        return [
            f"more is booked for {name!r} than its budget allows"
            for name, known in self.datasets.items()
            if not all(
                known.budget.allows(each) or each in groups(self._before.get(name, []), None)
                for each in groups(self.charges(name), None)
            )
        ]

    def _fix_pockets(self) -> None:
        """Fix the pockets of every data set by what is booked so far: from here on all have them."""
        self._with_pockets = True
        for name, known in self.datasets.items():
            fixed = fixed_afterwards(known.epsilon, known.delta, self.charges(name))
            self.datasets[name] = replace(known, budget=fixed)
            self._before[name] = list(self.charges(name))

    def _read(self, row: Row) -> str | None:
        """Take a row in, and return what is wrong with it."""
        number, name = row.number, str(row.dataset)
        try:
            if row.event == "dataset":
                if name in self.datasets:
                    return f"entry {number} enters {name!r} a second time"
                self.datasets[name] = read_dataset(row)
                if "pure" in row.content:
                    self._with_pockets = True
                elif self._with_pockets:
                    return f"entry {number} enters {name!r} without pockets, as only an older version of dpsc does"
            elif row.event == "pockets":
                if self._with_pockets:
                    return f"entry {number} fixes pockets, which are fixed already"
                self._fix_pockets()
            elif row.event == "booked":
                self._bookings[number] = row
                self._charges.setdefault(name, []).append(_charge(row))
                if name not in self.datasets:
                    return f"entry {number} books for {name!r}, which was never entered"
            elif row.event in ("confirmed", "failed"):
                if row.booking not in self._bookings or row.booking in self.outcomes:
                    return f"entry {number} finishes booking {row.booking}, which is not open"
                self.outcomes[row.booking] = row
            else:
                return f"entry {number} is of an unknown kind"
        except LedgerError as problem:
            self.unreadable = self.unreadable or problem
            return str(problem)
        return None


def read_dataset(row: Row) -> DataSet:
    """Turn a row into a data set."""
    try:
        body = row.content
        pockets = (float(body["pure"]), _pair(body["other"])) if "pure" in body else ()  # not before 0.3.0
        known = DataSet(
            name=str(row.dataset),
            epsilon=float(body["epsilon"]),
            delta=float(body["delta"]),
            adjacency=str(body["adjacency"]),
            description=body["description"],
            created=row.time,
            who=row.who,
            budget=Budget(float(body["epsilon"]), float(body["delta"]), *pockets),
        )
        known.budget.require_sound()
        if known.fingerprint != body["fingerprint"]:
            raise ValueError("the fingerprint is not that of the description")
    except _MALFORMED as problem:
        raise records.unreadable(row.number, problem) from None
    return known


def read_entry(row: Row, outcome: Row | None) -> Entry:
    """Turn a booking, and its outcome if it has one, into an entry."""
    states: dict[str, State] = {"confirmed": "confirmed", "failed": "failed"}
    try:
        body = row.content
        found = None if outcome is None else outcome.content.get("contents")  # not in rows before 0.3.0
        return Entry(
            number=row.number,
            time=row.time,
            dataset=str(row.dataset),
            who=row.who,
            algorithm=str(body["algorithm"]),
            parameters=dict(body["parameters"]),
            promise=dict(body["guarantee"]),
            partition=row.partition,
            output=body["output"],
            purpose=body.get("purpose"),  # not in rows of 0.1.0
            state="booked" if outcome is None else states[outcome.event],
            sha256=None if outcome is None else outcome.content.get("sha256"),
            hash=row.hash,
            contents=None if found is None else Contents(**found),
        )
    except _MALFORMED as problem:
        raise records.unreadable(row.number, problem) from None


def _charge(row: Row) -> Charge:
    try:
        return Charge(read_cost(row.content), row.partition)
    except _MALFORMED as problem:
        raise records.unreadable(row.number, problem) from None


def read_cost(body: JsonObject) -> Cost:
    """Read what a booking costs; one that is about to be made is read in the same way.

    0.1.0 booked a Gram release as rho-zCDP: discrete Gaussian noise of scale ``4^bits / sqrt(rho)`` on the diagonal and
    1 / sqrt(2) of that above it, for at most 2000 periods. The same noise is Gaussian with mu^2 = 2 rho, sigma_0 =
    4^bits / mu and a slack (docs/proofs/gaussian-noise.md). Other zCDP releases are not: their noise is not known.
    """
    cost = Cost.of_json(body["guarantee"])
    rho, parameters = cost.loss.rho, body.get("parameters")
    bits = parameters.get("grid_bits") if isinstance(parameters, Mapping) else None
    if (body.get("algorithm"), body["guarantee"].get("basis")) != _GRAM_OF_0_1_0 or cost.loss != Loss.from_rho(rho):
        return cost
    if rho == 0 or type(bits) is not int or not 4 <= bits <= 26:
        return cost
    slack = discrete_gaussian_slack(math.sqrt(2 * rho), GRAM_COORDINATES, 4.0**bits)
    return cost if math.isinf(slack[0]) else replace(cost, loss=Loss(0.0, 0.0, 0.0, 2 * rho, *slack))


def _pair(given: Iterable[float]) -> tuple[float, float]:
    epsilon, delta = given
    return float(epsilon), float(delta)
