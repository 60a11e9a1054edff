"""The fields of the custodian's page: what they are called, the option each stands for, and the commands they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dpsc.checks import command
from dpsc.errors import Parameter, mentioned, rendered
from dpsc.tables.spec import TableSpec
from dpsc.web.page_files import File


@dataclass(frozen=True)
class Field:
    """A field of the page.

    Attributes
    ----------
    label : str
    hint : str
        What may stand in it.
    default : str
    choices : tuple of pairs
        A value and how it is shown, if there is a list to choose from.
    """

    label: str
    hint: str = ""
    default: str = ""
    choices: tuple[tuple[str, str], ...] = ()


_AS_SEEN = ("", "as the file shows")

FIELDS = {
    "path": Field("Or type where it is on this machine", "/data/donors.csv"),
    "shape": Field("Shape", choices=(_AS_SEEN, ("long", "long: one row per unit and period"),
                                     ("wide", "wide: one row per unit"))),
    "unit": Field("Column of units"),
    "time": Field("Column of periods"),
    "outcome": Field("Column of numbers"),
    "sep": Field("Between columns", choices=(_AS_SEEN, ("comma", "comma"), ("semicolon", "semicolon"), ("tab", "tab"),
                                             ("pipe", "pipe |"))),
    "encoding": Field("Encoding", choices=(_AS_SEEN, ("utf-8", "UTF-8"), ("utf-16", "UTF-16"),
                                           ("windows-1252", "Windows-1252"), ("latin-1", "Latin-1"))),
    "sheet": Field("Sheet of a workbook"),
    "periods": Field("Periods", "2021-01..2023-12, or a file"),
    "time_format": Field("How dates are written", "%d/%m/%Y"),
    "decimal": Field("Mark before decimals", choices=(("", "–"), ("point", "point"), ("comma", "comma"))),
    "thousands": Field("Mark between thousands", choices=(("", "–"), ("none", "none"), ("comma", "comma"),
                       ("point", "point"), ("space", "space"), ("apostrophe", "apostrophe"))),
    "missing": Field("Missing cells", choices=(
        ("", "public kernel (usual)"), ("interpolate", "lines between own numbers"),
        ("midpoint", "the middle of the bounds"), ("error", "refuse"))),
    "repeated": Field("Cells that several rows give", choices=(
        ("", "–"), ("missing", "missing (usual)"), ("sum", "the sum, as of bills"),
        ("mean", "the mean, as of readings"), ("last", "the last, as of corrections"))),
    "low": Field("Lowest possible number", "none"),
    "high": Field("Highest possible number", "none"),
    "exclude": Field("Units to leave out", "A17, A23"),
    "like_before": Field("First treated period of that series", "2023-04"),
    "scale": Field("How much a donor moves", "from public knowledge, or empty"),
    "dataset": Field("Data set that pays"),
    "new_name": Field("Name of the data set", "patients"),
    "new_epsilon": Field("Epsilon in total", default="2"),
    "new_delta": Field("Delta in total", default="1e-6"),
    "n": Field("Number of donors", "as counted"),
    "epsilon": Field("Epsilon of this release", default="1"),
    "delta": Field("Delta of this release", default="1e-6"),
    "recipient": Field("Who receives it", "the team of Dr Ruiz"),
    "purpose": Field("What it is for", "effect of the new treatment on costs"),
    "file_name": Field("Name of the release", "as the file of the donors"),
    "typed_name": Field("Type the name of the data set to spend"),
}  # fmt: skip

_OPTIONS = {
    "bounds": "lowest and highest possible number", "like": "a public series that moves like a donor",
    "target": "a public series that moves like a donor", "before": "first treated period of that series",
    "reference": "a public path to subtract", "wide": "shape", "name": "name of the data set",
    "like_file": "similar series", "reference_file": "a public path to subtract",
}  # fmt: skip
LABELS = _OPTIONS | {name: field.label[:1].lower() + field.label[1:] for name, field in FIELDS.items()}


def in_words(text: str) -> str:
    """Write a sentence of the library with the names of fields in the place of parameters.

    Examples
    --------
    >>> in_words(f"say {Parameter('periods')} and check again")
    'say “periods” and check again'
    """
    return rendered(text, named)


def named(parameter: Parameter) -> str:
    """Write a parameter as the field of the page that sets it."""
    label = LABELS.get(parameter.name)
    if label is None:
        return parameter.python
    return f"“{label}” {parameter.typed}".rstrip()


def field_of(text: str) -> str | None:
    """Return the field that a sentence of the library is about: that of the first parameter that has one."""
    known = {"bounds": "low", "wide": "shape"}
    fields = (known.get(parameter.name, parameter.name) for parameter in mentioned(text))
    return next((field for field in fields if field in FIELDS), None)


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
    spec : TableSpec or None
        How the table is read, if it was checked.
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
    spec: TableSpec | None
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
    given = [] if facts.spec is None else facts.spec.options()
    given += _money(facts)
    for name in ("low", "scale", *(["like_before"] if facts.like is not None else [])):
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
