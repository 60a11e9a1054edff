"""The rehearsal: examine the donors and say what a release would be like. Private: for the custodian only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from dpsc.custodian.check import check_report, lenient_reader
from dpsc.custodian.check.check_report import Section
from dpsc.custodian.check.examine import CustodianExamination, custodian_examine
from dpsc.custodian.check.findings import Finding
from dpsc.custodian.check.guess import Said
from dpsc.custodian.check.outlook import Outlook, outlook
from dpsc.custodian.donors.missing import BOUNDS
from dpsc.custodian.gram.exact_sum import OnRows
from dpsc.errors import ParameterError
from dpsc.periods.dates import period_name
from dpsc.tables import formats
from dpsc.tables import series as public_series
from dpsc.tables.dialect import Dialect
from dpsc.tables.spec import MIDPOINT, Missing, Repeated


@dataclass(frozen=True)
class Wishes:
    """How the release would be made."""

    periods: str | None
    missing: Missing | None
    bounds: tuple[float, float] | None
    epsilon: float
    delta: float
    target: Path | None
    before: int | None
    averages: int
    repeated: Repeated | None = None


@dataclass(frozen=True, repr=False)
class Rehearsal:
    """Everything that a rehearsal found. Private: for the custodian only."""

    seen: CustodianExamination
    findings: tuple[Finding, ...]
    outlook: Outlook | None
    commands: tuple[str, ...]
    datasets: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether nothing needs to be corrected."""
        return all(finding.grade != "correct" for finding in self.findings)

    @property
    def sections(self) -> list[Section]:
        """What is shown."""
        return check_report.sections(self.seen, self.findings, self.outlook, self.commands, self.datasets)


def rehearse(donors: Path, said: Said, dialect: Dialect, wishes: Wishes, datasets: tuple[str, ...] = ()) -> Rehearsal:
    """Examine the donors and say what a release would be like. Private: for the custodian only.

    ``datasets`` are those of the ledger in which a release would be booked.
    """
    if wishes.missing == "midpoint" and wishes.bounds is None:
        raise ParameterError("{midpoint} needs {bounds}.", midpoint=MIDPOINT, bounds=BOUNDS)
    seen, found = custodian_examined(donors, said, dialect, wishes.periods, wishes.missing, wishes.repeated)
    T = len(seen.periods)
    if not seen.units or T < 2:
        return Rehearsal(seen, tuple(found), None, ())
    if wishes.before is not None and wishes.before >= T:
        raise ParameterError(f"--before {wishes.before} leaves no period after the intervention: there are {T}.")
    T0 = wishes.before or max(1, min(T - 1, round(0.75 * T)))
    like = wishes.target is not None and wishes.before is not None
    expected = outlook(
        seen.units, T, wishes.epsilon, wishes.delta, T0=T0, target=_history(wishes.target, seen, T0, said, dialect),
        averages=wishes.averages, like=like,
    )  # fmt: skip
    found += check_report.problems_of(expected)
    commands = _commands(donors, seen, wishes, seen.periods[T0] if like else None, datasets)
    return Rehearsal(seen, tuple(sorted(found, key=lambda finding: finding.grade)), expected, commands, datasets)


def custodian_examined(
    donors: Path,
    said: Said,
    dialect: Dialect,
    periods: str | None,
    missing: Missing | None,
    repeated: Repeated | None,
    on_rows: OnRows = lambda rows: None,
) -> tuple[CustodianExamination, list[Finding]]:
    """Examine the donors; return what was seen, and what must be corrected or said. Private: for the custodian only."""
    seen = custodian_examine(
        donors, said, periods=periods, missing=missing, repeated=repeated, dialect=dialect, on_rows=on_rows
    )
    found = [*seen.findings, *_to_be_said(seen), *_order(seen)]
    if seen.units and len(seen.periods) == 1:
        found.append(Finding("correct", "periods", 1, "there is one period; a release needs at least 2"))
    return seen, sorted(found, key=lambda finding: finding.grade)


def custodian_first_rows(donors: Path, said: Said, dialect: Dialect, rows: int = 5) -> list[list[str]]:
    """Return the names of the columns and the first rows, as they are written. Private: for the custodian only."""
    sample = lenient_reader.first_rows(lenient_reader.open_as_text(donors, dialect, said))
    columns = [[value or "" for value in column.slice(0, rows).to_pylist()] for column in sample.values()]
    return [list(sample), *map(list, zip(*columns, strict=True))]


def _order(seen: CustodianExamination) -> list[Finding]:
    """Say that rows must be together in a file that is too large to be held in memory."""
    if not seen.scattered or formats.fits_in_memory(seen.path, wide=False):
        return []
    words = (
        f"the rows of {seen.scattered:,} units do not follow each other, and the file is read as a stream. Sort it by "
        "unit, or add --engine memory"
    )
    return [Finding("correct", "scattered", seen.scattered, words)]


def _history(
    target: Path | None, seen: CustodianExamination, T0: int, said: Said, dialect: Dialect
) -> pd.Series[float] | None:
    """Return the target before the intervention: before the period of that name, or its first T0 values."""
    if target is None:
        return None
    series = public_series.like(target, None, said.time_format, dialect)
    assert series is not None
    names = [period_name(period) for period in series.index]
    first = seen.periods[T0]
    return series.iloc[: names.index(first) if first in names else T0]


_FROM_ROWS = {"--periods": "FIRST..LAST", "--time-format": "FORMAT", "--decimal": "MARK", "--thousands": "MARK"}


def only_in_rows(seen: CustodianExamination) -> list[str]:
    """Return the options that only the donors' rows showed; a wide table has its periods in the header."""
    wide = seen.layout is not None and seen.layout.wide
    return [name for name in seen.guessed if name in _FROM_ROWS and not (wide and name == "--periods")]


def _to_be_said(seen: CustodianExamination) -> list[Finding]:
    """Ask for what only the rows showed: one donor's rows must not decide what is published, or how others are read."""
    asked = only_in_rows(seen)
    if not asked:
        return []
    they_decide, they, them = ("They decide", "they", "them") if len(asked) > 1 else ("It decides", "it", "it")
    words = (
        f"say {' and '.join(asked)} and check again. {they_decide} what is published, or how everybody's numbers are "
        f"read, so {they} must come from what you know of the data, not from its rows, where one person could decide "
        f"{them}"
    )
    shown = dict(zip(seen.options, seen.options[1:], strict=False))
    return [Finding("correct", "to be said", len(asked), words,
                    tuple(f"the rows show {name} {shown[name]}" for name in asked))]  # fmt: skip


def _without_guesses(seen: CustodianExamination) -> list[str]:
    """Return the options of the command, with gaps for what the custodian must say."""
    options = list(seen.options)
    for name in only_in_rows(seen):
        options[options.index(name) + 1] = _FROM_ROWS[name]
    return options


def _commands(
    donors: Path, seen: CustodianExamination, wishes: Wishes, like_before: str | None, datasets: tuple[str, ...]
) -> tuple[str, ...]:
    """Return what to run: a ledger, if there is none, and the release."""
    name = check_report.stem(donors)
    budget = ["--epsilon", check_report.typed(wishes.epsilon), "--delta", check_report.typed(wishes.delta)]
    options = [*_without_guesses(seen), *budget]
    if wishes.missing is not None:
        options += ["--missing", wishes.missing]
    if wishes.repeated is not None:
        options += ["--repeated", wishes.repeated]
    if wishes.bounds is not None:
        options += ["--bounds", *map(check_report.typed, wishes.bounds)]
    if like_before is not None:
        options += ["--like", str(wishes.target), "--like-before", like_before]
    place, number = Path(f"{name}.dpsc.json"), 2
    while place.exists():
        place, number = Path(f"{name}-{number}.dpsc.json"), number + 1
    release = check_report.command(["dpsc", "release", str(donors)], [*options, "-o", str(place)])
    if datasets:
        return (release,)
    return (check_report.command(["dpsc", "ledger", "init", name], budget), release)
