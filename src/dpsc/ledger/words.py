"""What is said of a budget and of earlier releases, from the ledger alone: the same words in every command and page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpsc.checks import small
from dpsc.ledger.budget import Cost
from dpsc.ledger.contents import to_use
from dpsc.ledger.history import Balance, History
from dpsc.ledger.records import DataSet, Entry
from dpsc.privacy.guarantee import REPLACE_PERSON, Guarantee

_LISTED = 4  # earlier releases; the others are counted
_INDEPENDENT = "their noise is independent, so that their worst cases hardly ever come together"
_REGULAR = (
    "One file answers any number of questions. If releases come regularly, plan them together: dpsc plan --releases 8 "
    "says what each of 8 may cost. If people are in groups such as clinics, a panel (dpsc release --person) can grow: "
    "it publishes new periods only."
)
_GROWS = (
    "A panel that grows publishes each period once (dpsc release --append), and its newest file holds all periods. "
    "dpsc plan --units 40 --monthly 24 says what each of 24 monthly releases may cost."
)
_AVERAGED = "Files of the same donors, periods and settings have less noise together: dpsc merge --same-donors."


def would_cost(history: History, dataset: str, promise: Guarantee, *, partition: str | None = None) -> list[str]:
    """Say what a release would cost, whether there is room for it, and what was released before; books nothing."""
    people = of_people(promise)
    now = history.balance(dataset, partition=partition)
    cost = f"cost: {cost_of(promise, now.dataset)} of the budget of {now.dataset.name!r}"
    before = f"left before: {room_for(now, people=people)}"
    earlier = released_before(history.entries(now.dataset.name), partition)
    if not history.allows(dataset, promise, partition=partition):
        return [f"{cost}; there is NO ROOM for it", before, *earlier]
    then = history.balance(dataset, after=promise, partition=partition)
    lines = [f"{cost}; there is room for it", before, f"left after: {room_for(then, people=people)}"]
    if earlier:
        lines += [*earlier, f"together with this release: {spent_of(then)}", _GROWS if people else _REGULAR]
    return lines


def told(history: History, entry: Entry, place: str) -> list[str]:
    """Say what a release has cost, what is spent and left, and which file to use if there are several."""
    balance = history.balance(entry.dataset, partition=entry.partition)
    people, why = of_people(entry.guarantee), explained(balance)
    of = "" if entry.partition is None else f", partition {entry.partition!r}"
    entries = history.entries(entry.dataset)
    earlier = released_before([each for each in entries if each.number < entry.number], entry.partition)
    return [
        f"Booked as entry {entry.number} of {entry.dataset!r}{of} in {place}.",
        f"  cost   {cost_of(entry.guarantee, balance.dataset)}",
        f"  spent  {spent_of(balance)}",
        f"  left   {room_for(balance, people=people)}",
        *([] if why is None else [why]),
        *(f"{line[0].upper()}{line[1:]}." for line in earlier),
        *([*which_file(entries), _GROWS if people else _REGULAR] if earlier else []),
    ]


def cost_of(promise: Guarantee, known: DataSet) -> str:
    """Say what a release costs, at its own delta and at that of the budget."""
    told = f"epsilon {promise.epsilon:g} at delta {small(promise.delta)}"
    there = known.budget.spent([Cost.of(promise)])
    same = promise.delta == known.delta or f"{there:.4g}" == f"{promise.epsilon:.4g}"
    return told if same else f"{told} (epsilon {there:.4g} at delta {small(known.delta)})"


def spent_of(balance: Balance) -> str:
    """Say what is spent of the budget."""
    known = balance.dataset
    return f"epsilon {balance.spent:.4g} of {known.epsilon:g} at delta {small(known.delta)}"


def room_for(balance: Balance, size: float | None = None, delta: float | None = None, *, people: bool = False) -> str:
    """Say which release there is room for, at the budget's delta unless another is asked about."""
    at, size = balance.dataset.delta if delta is None else delta, balance.remaining if size is None else size
    kind = "pure" if at == 0 else "panel" if people else "Gram"
    return f"a {kind} release of up to epsilon {size:g} at delta {small(at)}" if size > 0 else "nothing"


def explained(balance: Balance) -> str | None:
    """Return why epsilons come to less than their sum, where they do."""
    added, known, spent = balance.added, balance.dataset, balance.spent
    at = f"at delta {small(known.delta)}"
    if len(added) > 1 and spent < 0.999 * sum(added):
        count = {2: "Two", 3: "Three", 4: "Four"}.get(len(added), f"{len(added):,}")
        same = f"at epsilon {added[0]:.4g} each"
        which = same if len(set(added)) == 1 else f"whose epsilons add up to {sum(added):.4g}"
        return f"{count} releases {which} protect like one at {spent:.4g} {at}: {_INDEPENDENT}."
    if added and spent + balance.remaining > 1.001 * known.epsilon:
        return (
            f"A release at epsilon {spent:.4g} and one at {balance.remaining:g} protect together like one at "
            f"{known.epsilon:g} {at}: {_INDEPENDENT}."
        )
    return None


def released_before(entries: Sequence[Entry], partition: str | None = None) -> list[str]:
    """Say which releases of these donors there were; nothing if there was none."""
    concerned = [entry for entry in entries if partition is None or entry.partition in (None, partition)]
    if not concerned:
        return []
    who = "people" if all(of_people(entry.guarantee) for entry in concerned) else "donors"
    listed = [f"data of these {who} were released on {released(entry)}" for entry in concerned[-_LISTED:]]
    more = len(concerned) - len(listed)
    return [*([f"{more:,} earlier releases of them: dpsc ledger show"] if more else []), *listed]


def released(entry: Entry) -> str:
    """Say when and for which periods there was a release, how it is called and what it cost, as far as it is known."""
    found, promise = entry.contents, entry.promise
    what = "" if found is None else f" for {found.told} ({found.outcome})"
    where = "" if entry.output is None else f", as {Path(entry.output).name}"
    state = "" if entry.state == "confirmed" else ", of which no file was confirmed"
    of = "" if entry.partition is None else f", partition {entry.partition}"
    return (
        f"{entry.time[:10]}{what}{where}, at epsilon {promise['epsilon']:g} and delta {small(promise['delta'])}{of}"
        f"{state}"
    )


def which_file(entries: Sequence[Entry]) -> list[str]:
    """Say which of several release files analysts should use; nothing if there is one."""
    known = [entry for entry in entries if entry.contents is not None and entry.state == "confirmed"]
    best = to_use(known)
    if len(known) < 2 or any(entry.partition is not None for entry in known):
        return []
    if len(best) == 1:
        said = f"Analysts should use {_file(best[0])}: it has every period of the other files, and no more noise."
    else:
        each = " and ".join(f"{_file(entry)} for {entry.contents.told}" for entry in best if entry.contents is not None)
        said = f"No file has all periods and the least noise. Analysts should use {each}."
    covered = [entry.contents for entry in known if not of_people(entry.guarantee)]
    return [said] if len(set(covered)) == len(covered) else [said, _AVERAGED]


def _file(entry: Entry) -> str:
    return f"entry {entry.number}" if entry.output is None else Path(entry.output).name


def of_people(promise: Guarantee) -> bool:
    """Return whether a guarantee is about people in groups."""
    return promise.adjacency == REPLACE_PERSON
