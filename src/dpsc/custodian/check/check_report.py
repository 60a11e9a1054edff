"""What ``dpsc check`` says, in plain sections: the same for a terminal and for a page. Private, as what it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from dpsc.analyst.plan import in_range
from dpsc.answers.words import number
from dpsc.checks import small
from dpsc.custodian.check.examine import CustodianExamination
from dpsc.custodian.check.findings import Finding
from dpsc.custodian.check.run import Outlook, Rehearsal
from dpsc.errors import Parameter, rendered
from dpsc.release.describe import noise_of

MISSING = Parameter("missing")
_OTHER = "In 'other' are units with another label, with several, or without one."
_WORST = 5  # periods that are listed
_A_LINE = 48  # periods of a line of the strip
_HEIGHTS = "▁▂▃▄▅▆▇"
_NEVER = (
    "The periods, how dates and numbers are written, what is done with cells that several rows give, bounds, the "
    "reference path, the scale, the segments, epsilon, and which units to leave out. Choose them from public "
    "knowledge. A choice made by looking at these numbers tells something about single people, and no noise covers it: "
    "the guarantee would no longer hold."
)
_MAY = (
    "Typing errors, rows that occur twice, names of one person written in two ways, a lost file. Correct by fixed "
    "rules that are the same for everybody, not by looking at single people."
)


@dataclass(frozen=True)
class Section:
    """A heading with what is below it; most have one of these.

    Facts have names and values; the strip has names, signs and words after them. A table begins with its header, and
    its second and third columns are numbers. Lines are paragraphs; commands are to be run as they are.
    """

    title: str
    note: str = ""
    facts: Sequence[tuple[str, str]] = ()
    strip: Sequence[tuple[str, str, str]] = ()
    table: Sequence[Sequence[str]] = ()
    findings: Sequence[Finding] = ()
    lines: Sequence[str] = ()
    commands: Sequence[str] = ()

    def rendered(self, write: Callable[[Parameter], str]) -> Section:
        """Return it with its parameters as ``write`` writes them."""
        return replace(
            self,
            note=rendered(self.note, write),
            facts=[(name, rendered(value, write)) for name, value in self.facts],
            table=[[rendered(cell, write) for cell in row] for row in self.table],
            findings=[finding.rendered(write) for finding in self.findings],
            lines=[rendered(line, write) for line in self.lines],
        )


def sections(made: Rehearsal, commands: Sequence[str] = (), datasets: Sequence[str] = ()) -> list[Section]:
    """Return everything that is shown, in order; ``datasets`` are those of the ledger."""
    seen = made.seen
    parts = [understood(seen), *graded(seen.findings, "a release would be refused, or wrong")]
    if seen.periods:
        divided = [] if seen.division is None else [segments(seen, made.outlook)]
        parts += [*divided, calendar(seen), presence(seen), rules(seen)]
    parts += warned(_NEVER, _MAY)
    if made.outlook is not None:
        parts.append(expected(made.outlook))
    if commands:
        when = f"as it is; add {Parameter('dry_run', True)} to try it first" if seen.ready else "when all is corrected"
        lines = ["Periods are published, and they are the same for all donors. Are these the ones you mean?"]
        date = Parameter("treatment_time", "PERIOD")
        if "target" not in made.said and "scale" not in made.said:
            lines.append(
                "If you know a public series that moves about as much as a donor, such as the target before the "
                f"intervention, add {Parameter('target', 'FILE')} {date}: the release is better for it."
            )
        elif "target" in made.said and "treatment_time" not in made.said:
            lines.append(f"If the target was treated within these periods, add {date}: only what is before it counts.")
        if len(datasets) > 1:
            names = ", ".join(map(repr, datasets))
            lines.append(f"Your ledger has several data sets; add {Parameter('dataset')}, one of {names}.")
        parts.append(Section("The command to run", when, commands=commands, lines=lines))
    return parts


def graded(found: Sequence[Finding], until: str) -> list[Section]:
    """Return what must be corrected, if there is anything, and what is worth a look."""
    notes = {"correct": ("To correct", until), "look": ("Worth a look", "a release can be made without correcting it")}
    parts = [Section(*note, findings=[each for each in found if each.grade == grade]) for grade, note in notes.items()]
    return [part for part in parts if part.findings]


def warned(never: str, may: str) -> list[Section]:
    """Say what the custodian must not do with what was shown, and may do."""
    return [
        Section("What must NOT be chosen from this view", lines=[never]),
        Section("What may be corrected", lines=[may]),
    ]


def verdict(found: Sequence[Finding]) -> str:
    """Say in one line whether a release can be made."""
    count = sum(finding.grade == "correct" for finding in found)
    if count:
        return f"NOT READY: {'one thing' if count == 1 else f'{count} things'} to correct"
    return "READY: nothing needs to be corrected"


def understood(seen: CustodianExamination) -> Section:
    """Say how the table was read and what it holds."""
    spec = seen.spec
    if not seen.rows:
        return Section("What was understood", facts=[("file", seen.reading)])
    if spec.wide:
        columns = f"units in {spec.unit!r}, one column for each period"
    else:
        columns = f"units in {spec.unit!r}, periods in {spec.time!r}, numbers in {spec.outcome!r}"
    shape = "wide: one row per unit, one column per period" if spec.wide else "long: one row per unit and period"
    facts = [("file", seen.reading), ("shape", shape), ("columns", columns)]
    if seen.periods:
        first, last, T = seen.periods[0], seen.periods[-1], len(seen.periods)
        facts.append(("periods", f"{T} {seen.calendar}, from {first} to {last}; the table writes {seen.written!r}"))
    rows = f"{seen.rows:,} rows" + ("" if seen.whole else ", the first of the table: the others were not looked at")
    facts.append(("holds", f"{seen.units:,} units, {rows}"))
    if seen.guessed:
        one = "it was" if len(seen.guessed) == 1 else "they were"
        names = ", ".join(str(Parameter(name)) for name in seen.guessed)
        facts.append(("guessed", f"{names}: {one} not given. Say what was understood wrongly"))
    return Section("What was understood", facts=facts)


def segments(seen: CustodianExamination, outlook: Outlook | None) -> Section:
    """Say how many units are in each segment, and which say enough by themselves."""
    assert seen.division is not None
    n, least = max(1, seen.units), None if outlook is None else outlook.smallest_segment
    table = [("segment", "units", "share", "" if least is None else "by itself")]
    for name, units in seen.division.rows:
        enough = "" if least is None else "can be asked" if units >= least else "too small: ask it with others"
        table.append((name, f"{units:,}", percent(units / n), enough))
    lines = [f"All segments together cost what one costs. {_OTHER}"]
    return Section(f"Segments by {seen.division.by!r}", table=table, lines=lines)


def calendar(seen: CustodianExamination) -> Section:
    """Draw one sign per period, a year to a line where periods have years, and list the worst."""
    n = max(1, seen.units)
    strip = []
    for name, positions in _lines(seen.periods):
        share = sum(seen.missing[k] for k in positions) / len(positions) / n
        signs = "".join(_sign(seen.missing[k] / n) for k in positions)
        strip.append((name, signs, "complete" if share == 0 else f"{percent(share)} missing"))
    ranked = sorted(range(len(seen.periods)), key=lambda k: -seen.missing[k])[:_WORST]
    worst = [(seen.periods[k], f"{seen.missing[k]:,}", percent(seen.missing[k] / n)) for k in ranked if seen.missing[k]]
    table = [("most missing in", "units without", "share"), *worst] if worst else []
    legend = "· all are there, ▁ to ▇ some are missing, █ EVERYBODY is missing"
    return Section("The calendar", legend, strip=strip, table=table)


def _lines(periods: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Divide periods by what they begin with, a year or a month, or else into lines of equal length."""
    for digits in (4, 7):
        lines = [(name, list(group)) for name, group in groupby(range(len(periods)), key=lambda k: periods[k][:digits])]
        longest = max(len(group) for _, group in lines)
        if 1 < longest <= 53 and 2 * len(lines) <= len(periods) and all(p[:4].isdigit() for p in periods):
            return lines
    return [(periods[k], list(range(k, min(k + _A_LINE, len(periods))))) for k in range(0, len(periods), _A_LINE)]


def _sign(share: float) -> str:
    """Return a block whose height is the share that is missing."""
    if share in (0.0, 1.0):
        return "·" if share == 0 else "█"
    return _HEIGHTS[min(len(_HEIGHTS) - 1, int(share * len(_HEIGHTS)))]


def presence(seen: CustodianExamination) -> Section:
    """Say who joined late, left, or missed periods."""
    n, filling = max(1, seen.units), seen.filling

    def those(count: int) -> str:
        return f"{count:,} of {seen.units:,} units ({percent(count / n)})"

    facts = [
        ("in every period", those(seen.units - filling.units - filling.without)),
        ("joined late", those(seen.late)),
        ("left early", those(seen.leaving)),
        ("gaps in between", those(seen.gaps)),
    ]
    return Section("Who was there when", facts=facts)


def rules(seen: CustodianExamination) -> Section:
    """Say what each rule for missing cells would fill."""
    filling, all_cells = seen.filling, max(1, seen.units * len(seen.periods))
    if not filling.cells and not filling.without:
        return Section("Missing cells", lines=[f"There are none: every rule for them ({MISSING}) does nothing."])
    count, who = f"{filling.cells:,} ({percent(filling.cells / all_cells)})", f"{filling.units:,}"
    outside = filling.before + filling.after
    by = f"{filling.between:,} on straight lines between its own numbers, {outside:,} by repeating its first or last"
    table = [
        (str(MISSING), "fills cells", "of units", "how"),
        ("kernel", count, who, "what the public kernel expects, given the unit's own other cells; the default"),
        ("interpolate", count, who, by),
        ("midpoint", count, who, f"the middle of {Parameter('bounds')}, the same for everybody"),
        ("error", "0", "0", "nothing: a release is refused"),
    ]
    empty = f"{filling.without:,} units without any number count as donors; nothing is learned from them."
    lines = [empty] if filling.without else []
    return Section("What each rule for missing cells would fill", table=table, lines=lines)


def expected(outlook: Outlook) -> Section:
    """Say what a release would be like."""
    facts = [
        ("donors, periods", f"{outlook.n:,} donors, {outlook.T} periods; {outlook.T0} before an intervention"),
        (
            "budget",
            f"epsilon {outlook.epsilon:g}, delta {small(outlook.delta)}: somebody who knows all other donors guesses "
            f"between two records of a donor right at most {outlook.guess:.1%} of the time; a blind guess 50%",
        ),
        ("noise", noise_of(outlook.noise_share, outlook.n)),
    ]
    if outlook.worth_having:
        facts.append(
            ("could be seen", f"{outlook.directions} of the {outlook.T - 1} patterns in which a series can move")
        )
    if outlook.unit:
        error, effect = in_range("error", outlook.error), in_range("detectable", outlook.detectable)
        facts += [
            ("error", f"{error}; without donors, by the target's last value, about {about(outlook.last_value)}"),
            ("effect", f"{effect}: the smallest average effect that would be seen in 8 of 10 cases"),
            ("measured in", outlook.unit),
        ]
    told = (
        "Simulated quickly; ranges hold what comes in about 8 of 10 cases. dpsc plan says more, and how large a budget "
    )
    lines = [f"{told}it takes."] if outlook.unit else []
    return Section("What the release would be like", "from public numbers only", facts=facts, lines=lines)


def about(value: float) -> str:
    """Write two digits of a number."""
    return number(float(f"{value:.2g}"))


def percent(share: float) -> str:
    """Return a share in percent, never rounded to nothing or to everything."""
    if 0 < share < 0.001:
        return "< 0.1%"
    return f"{share:.0%}" if share in (0.0, 1.0) else f"{min(share, 0.999):.1%}"
