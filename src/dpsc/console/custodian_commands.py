"""What the custodian's page does, as commands to type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dpsc.console.dropped import File
from dpsc.custody.rehearsing import command

READING = ("shape", "unit", "time", "outcome", "sep", "encoding", "sheet", "periods", "time_format", "decimal",
           "thousands", "missing", "repeated", "low", "high")  # fmt: skip


NUMBERS = ("epsilon", "delta", "new_epsilon", "new_delta", "scale", "low", "high")  # decimals may follow a comma


@dataclass(frozen=True, repr=False)
class Facts:
    """What lies on the desk.

    Attributes
    ----------
    fields : mapping
        What was written into the fields.
    donors, like, reference : File or None
    options : mapping
        How the table is read: options of a command and their values.
    n, before, after : int or None
        Donors, and periods before an intervention and from it on.
    dataset : str
        Empty if none was chosen.
    ledger : str or None
        Where it is, if it was said.
    out : Path
    """

    fields: Mapping[str, str]
    donors: File | None
    like: File | None
    reference: File | None
    options: Mapping[str, str]
    n: int | None
    before: int
    after: int
    dataset: str
    ledger: str | None
    out: Path

    def __getitem__(self, name: str) -> str:
        value = self.fields[name].strip()
        return value.replace(",", ".") if name in NUMBERS else value


def commands_of(facts: Facts) -> dict[str, str]:
    """Return the commands that do the same as each page."""
    ledger = [] if facts.ledger is None else ["--ledger", facts.ledger]
    plan = ["--n", str(facts.n or "N"), "--before", str(facts.before), "--after", str(facts.after), *_money(facts)]
    new = ["--epsilon", facts["new_epsilon"], "--delta", facts["new_delta"], *ledger]
    said = [part for name in READING for part in _option(facts, name)]
    return {
        "check": command(["dpsc", "check", _donors(facts)], said),
        "plan": command(["dpsc", "plan"], [*plan, *_file("--target", facts.like)]),
        "init": command(["dpsc", "ledger", "init", facts["new_name"] or "NAME"], new),
        "show": command(["dpsc", "ledger", "show"], ledger),
        "release": release_command(facts),
        "entries": command(["dpsc", "ledger", "entries"], ledger),
        "verify": command(["dpsc", "ledger", "verify"], ledger),
        "export": command(["dpsc", "ledger", "export"], ["--out", "book.csv", *ledger]),
    }


def release_command(facts: Facts) -> str:
    """Return the command that makes the release."""
    given = [part for name, value in facts.options.items() for part in ([name, value] if value else [name])]
    given += _money(facts)
    for name in ("missing", "repeated", "low", "scale", *(["like_before"] if facts.like is not None else [])):
        given += _option(facts, name)
    given += [*_file("--like", facts.like), *_file("--reference", facts.reference)]
    for label in filter(None, map(str.strip, facts["exclude"].split(","))):
        given += ["--exclude", label]
    if facts["recipient"] and facts["purpose"]:
        given += ["--purpose", f"for {facts['recipient']}: {facts['purpose']}"]
    given += ["--dataset", facts.dataset] if facts.dataset else []
    given += [] if facts.ledger is None else ["--ledger", facts.ledger]
    return command(["dpsc", "release", _donors(facts)], [*given, "-o", str(facts.out)])


def _donors(facts: Facts) -> str:
    return "donors.csv" if facts.donors is None else facts.donors.name


def _money(facts: Facts) -> list[str]:
    return ["--epsilon", facts["epsilon"], "--delta", facts["delta"]]


def _file(option: str, file: File | None) -> list[str]:
    return [] if file is None else [option, file.name]


def _option(facts: Facts, name: str) -> list[str]:
    value = facts[name]
    if name == "shape":
        return ["--wide"] if value == "wide" else []
    if name in ("low", "high"):
        both = [facts["low"], facts["high"]]
        return ["--bounds", *both] if name == "low" and all(both) else []
    return [f"--{name.replace('_', '-')}", value] if value else []
