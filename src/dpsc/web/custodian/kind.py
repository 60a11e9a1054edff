"""What differs with who is protected: what is said of the table, how it is looked at, what is released and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dpsc.custodian.check.check_report import Section
from dpsc.custodian.check.findings import Finding
from dpsc.custodian.custody.payer import Account, Output
from dpsc.privacy.guarantee import Guarantee
from dpsc.tables.spec import TableSpec
from dpsc.types import OnProgress
from dpsc.web.desk import File

OnRows = Callable[[int], None]


@dataclass(frozen=True, repr=False)
class Seen:
    """What a check found. Private: for the custodian only.

    Attributes
    ----------
    findings : sequence of Finding
    ready : bool
        Whether nothing needs to be corrected.
    spec : TableSpec
        What is known of the table: said, or understood.
    sections : list of Section
        What is shown.
    only_in_rows : sequence of str
        The fields of what only rows show, and somebody must say.
    periods : sequence of str
        Those in the header.
    units : int, optional
        How many donors there are.
    """

    findings: Sequence[Finding]
    ready: bool
    spec: TableSpec
    sections: list[Section]
    only_in_rows: Sequence[str] = ()
    periods: Sequence[str] = ()
    units: int | None = None


@dataclass(frozen=True, repr=False)
class Order:
    """A release as it was said, ready to be made.

    Attributes
    ----------
    opened : callable
        Looks whether everything can be read.
    added_up : callable
        Adds up what is private; nothing is booked yet.
    booked : callable
        Books what it costs, makes it, and writes it.
    """

    opened: Callable[[Account, OnProgress], object]
    added_up: Callable[[OnProgress], Any]
    booked: Callable[[Any, Account, Output], object]


class Kind(Protocol):
    """One of the two answers to the question who is protected."""

    @property
    def rows(self) -> str:
        """What the rows are, in words."""

    @property
    def one(self) -> str:
        """Who is protected, in words."""

    @property
    def looks_at_noise(self) -> bool:
        """Whether what the check finds depends on the budget: with a smaller one it must look again."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the check is about."""

    @property
    def files(self) -> Sequence[File]:
        """The public files that were given."""

    def check_options(self) -> Mapping[str, object]:
        """Return what was said, as the command of the check takes it."""

    def look(self, data: File, on_rows: OnRows) -> Callable[[], Seen]:
        """Refuse what makes no sense; return what looks at the rows."""

    def judge(self) -> None:
        """Look at the public files, and say what is wrong with them beside their fields."""

    def promise(self, epsilon: float, delta: float) -> Guarantee:
        """Return what the release would promise, and find out what it would show."""

    def require_delta(self, delta: float) -> None:
        """Refuse a delta that protects nobody."""

    def forget(self) -> None:
        """Forget what was said about another budget."""

    def judge_amount(self) -> None:
        """Say what is wrong with a budget that there is."""

    def numbers(self) -> str:
        """Show how well an attacker guesses and what would be seen, from public numbers only."""

    def plan_options(self) -> Mapping[str, object]:
        """Return what was said, as ``dpsc plan`` takes it."""

    def release_options(self) -> list[str]:
        """Return what was said beside the table, as options of ``dpsc release``."""

    def order(self, data: File, spec: TableSpec) -> Order:
        """Return the release as it was said, and refuse what makes no sense."""
