"""What the ledger holds, as small values: data sets and bookings. It knows no database and no donors."""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal

from dpsc import checks
from dpsc.errors import DpscError, LedgerError, without_passwords
from dpsc.ledger.budget import Budget
from dpsc.periods import dates
from dpsc.privacy.accounting import Loss
from dpsc.privacy.guarantee import Guarantee
from dpsc.types import JsonObject

State = Literal["booked", "confirmed", "failed"]
LONGEST_TEXT = 500
LONGEST_JSON = 20_000
DIFFERS = "differs from it only in case, spaces or Unicode form"  # a name that a reader takes for another


@dataclass(frozen=True)
class DataSet:
    """A data set that has a budget.

    Attributes
    ----------
    name : str
    epsilon, delta : float
        The budget of everything that is ever released from it, together.
    adjacency : str
        Which databases count as neighbours; only guarantees for the same ones can be booked.
    description : dict
        What is public about it; ``fingerprint`` is the SHA-256 of its canonical JSON.
    created, who : str
        When (UTC) and by whom it was entered.
    budget : Budget
        The same budget with its pockets: how much of it is for which kind of release.
    """

    name: str
    epsilon: float
    delta: float
    adjacency: str
    description: JsonObject
    created: str
    who: str
    budget: Budget

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the public description, never of donors' values."""
        return fingerprint(self.description)


@dataclass(frozen=True)
class Contents:
    """What is in a release file.

    Attributes
    ----------
    outcome : str
        Several are divided by commas.
    first, last : str
        The first and the last period; of a panel that grew, of those that were added last.
    periods : int
        How many there are from the first to the last.
    n : int or None
        How many donors; None for a panel of people.
    parts : int
        Of how many releases a panel consists.
    """

    outcome: str
    first: str
    last: str
    periods: int
    n: int | None
    parts: int

    @property
    def told(self) -> str:
        """Which periods it covers, in words."""
        return self.first if self.first == self.last else f"{self.first} to {self.last}"

    def has_all_of(self, other: Contents) -> bool:
        """Return whether every period of another file of the same outcome is in this one, too."""
        if self.outcome != other.outcome or (self.n is None) != (other.n is None):
            return False
        if self.parts != other.parts:  # a panel that grows holds what was published before
            return self.parts > other.parts
        if (self.first, self.last, self.periods) == (other.first, other.last, other.periods):
            return True
        places = [_place(label) for label in (self.first, other.first, other.last, self.last)]
        kinds = {kind for kind, _ in places}
        return len(kinds) == 1 and None not in kinds and sorted(places) == places and self.periods >= other.periods


@dataclass(frozen=True)
class Entry:
    """A booking and its state. Whatever the state, it counts as spent."""

    number: int
    time: str
    dataset: str
    who: str
    algorithm: str
    parameters: JsonObject
    promise: JsonObject
    partition: str | None
    output: str | None
    purpose: str | None
    state: State
    sha256: str | None
    hash: str
    contents: Contents | None = None

    @property
    def guarantee(self) -> Guarantee:
        """What was promised."""
        return guarantee_from_json(self.promise)


def _place(label: str) -> tuple[str | None, float]:
    """Return what kind of period a label is, and where it lies among others of this kind."""
    written = dates.read(label)
    if written is not None:
        return written.every, written.first.toordinal()
    try:
        return "number", float(Decimal(label))
    except InvalidOperation:
        return None, 0.0


def canonical(value: object, name: str) -> str:
    """Return the canonical JSON text of a value of plain types; refuse anything that might hold data."""
    _require_plain(value, name)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    if len(text) > LONGEST_JSON:
        raise LedgerError(
            f"{name} is too long for the ledger ({len(text)} characters, at most {LONGEST_JSON}); the ledger holds "
            "a few public facts about a release, not data."
        )
    return text


def _require_plain(value: object, name: str) -> None:
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        for key, item in value.items():
            _require_plain(item, f"{name}.{key}")
    elif isinstance(value, list | tuple):
        for item in value:
            _require_plain(item, name)
    elif isinstance(value, str) and without_passwords(value) != value:
        raise LedgerError(f"{name} holds a password; leave it out, because the ledger is shown and exported.")
    elif not (value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value))):
        raise LedgerError(
            f"{name} must be text, finite numbers, lists or mappings of them, not {checks.shown(value)}; frames, "
            "arrays and anything else that may hold donors' values are refused."
        )


def fingerprint(description: Mapping[str, object]) -> str:
    """Return the SHA-256 of a public description, in whatever order its keys are given.

    Examples
    --------
    >>> fingerprint({"n": 38, "outcome": "sales"}) == fingerprint({"outcome": "sales", "n": 38})
    True
    """
    return hashlib.sha256(canonical(dict(description), "description").encode()).hexdigest()


def differences(described: Mapping[str, object], given: Mapping[str, object]) -> list[str]:
    """Return the keys that two descriptions share with different values."""

    def text(value: object) -> str:
        return canonical(value, "description")

    return [key for key in described if key in given and text(described[key]) != text(given[key])]


def text(name: str, value: object) -> str:
    """Return a short text without control characters, which could rewrite a terminal, or refuse it by name."""
    if not isinstance(value, str) or not value.strip():
        raise LedgerError(f"{name} must be a text that is not empty.")
    if len(value) > LONGEST_TEXT or not value.isprintable():
        raise LedgerError(f"{name} must be printable text of at most {LONGEST_TEXT} characters.")
    _require_plain(value, name)
    return value


def name(what: str, value: object) -> str:
    """Return a name as it is written down, or refuse it."""
    return text(what, normalised(text(what, value)))


def guarantee_to_json(guarantee: Guarantee) -> JsonObject:
    """Return a guarantee as plain values, floats throughout, so that it reads back the same."""
    plain = asdict(guarantee)
    plain["loss"] = {name: float(value) for name, value in plain["loss"].items()}
    return {**plain, "epsilon": float(guarantee.epsilon), "delta": float(guarantee.delta)}


def guarantee_from_json(plain: JsonObject) -> Guarantee:
    """Read a guarantee back."""
    return Guarantee(**{**plain, "loss": Loss(**plain["loss"])})


def public_terms(algorithm: object, guarantee: Guarantee | None = None) -> JsonObject:
    """Return what to book for an algorithm object: its name, its public parameters and its guarantee.

    An algorithm whose guarantee depends on the size of what is released states none; then it must be given.

    Examples
    --------
    >>> from dpsc import GramRelease
    >>> terms = public_terms(GramRelease(epsilon=0.5, delta=1e-6))
    >>> terms["algorithm"], terms["parameters"]["smoothness"], terms["guarantee"].epsilon
    ('GramRelease', 'high', 0.5)
    """
    promise = getattr(algorithm, "guarantee", None) if guarantee is None else guarantee
    if guarantee is None and not hasattr(algorithm, "guarantee"):
        raise LedgerError(f"a {type(algorithm).__name__} states no guarantee and cannot be booked.")
    parameters = {
        name: value if value is None or isinstance(value, bool | int | float | str) else "given"
        for name, value in vars(algorithm).items()
        if not name.startswith("_")
    }
    return {"algorithm": type(algorithm).__name__, "parameters": parameters, "guarantee": promise}


def require_guarantee(guarantee: object) -> Guarantee:
    """Refuse a run without a guarantee: a budget for it would mean nothing."""
    if guarantee is None:
        raise LedgerError(
            "this run has no guarantee (its noise comes from a seed, or nothing is proved about it), so its cost "
            "is not known and it cannot be booked. Leave the seed out, or choose an algorithm with a proof."
        )
    if not isinstance(guarantee, Guarantee):
        raise LedgerError(f"the ledger books a Guarantee, not {checks.shown(guarantee)}.")
    return guarantee


def unreadable(number: int, problem: Exception) -> LedgerError:
    """Return the error for an entry that is in the ledger but makes no sense."""
    kind = type(problem).__name__ if not isinstance(problem, DpscError) else str(problem)
    return LedgerError(
        f"entry {number} of the ledger cannot be read ({kind}): it was edited or damaged. Run dpsc ledger verify, and "
        "restore the ledger from a backup; nothing is booked until then."
    )


def normalised(name: str) -> str:
    r"""Return the form in which a new name is written down: composed characters, no spaces around it.

    Examples
    --------
    >>> normalised(" Cafe\u0301 ") == "Caf\u00e9"
    True
    """
    return unicodedata.normalize("NFC", name).strip()


def twin(name: str, known: Iterable[str]) -> str | None:
    """Return a known name that is another one and that a reader would take for the same.

    Examples
    --------
    >>> twin("Sales 2020 ", ["costs", "sales 2020"])
    'sales 2020'
    """
    return next((other for other in known if other != name and checks.read_as(other) == checks.read_as(name)), None)
