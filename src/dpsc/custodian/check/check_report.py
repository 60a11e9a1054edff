"""What ``dpsc check`` says, in plain sections: the same for a terminal and for a page. Private, as what it is about."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from dpsc.answers.words import number
from dpsc.checks import written_out
from dpsc.custodian.check.examine import CustodianExamination
from dpsc.custodian.check.findings import Finding
from dpsc.custodian.check.outlook import Outlook

_WORST = 5  # periods that are listed
_A_LINE = 48  # periods of a line of the strip
_HEIGHTS = "▁▂▃▄▅▆▇"


@dataclass(frozen=True)
class Section:
    """A heading with what is below it; most have one of these.

    Attributes
    ----------
    title, note : str
    facts : list of pairs
        A name and a value.
    strip : list of pairs
        A name and block characters, and words after them.
    table : list of rows
        The first is the header; columns of numbers begin at the second.
    findings : list of Finding
    lines : list of str
        Paragraphs.
    commands : list of str
        To be run as they are.
    """

    title: str
    note: str = ""
    facts: Sequence[tuple[str, str]] = ()
    strip: Sequence[tuple[str, str, str]] = ()
    table: Sequence[Sequence[str]] = ()
    findings: Sequence[Finding] = ()
    lines: Sequence[str] = ()
    commands: Sequence[str] = field(default_factory=list)


def sections(
    seen: CustodianExamination,
    found: Sequence[Finding],
    outlook: Outlook | None,
    commands: Sequence[str],
    datasets: Sequence[str] = (),
) -> list[Section]:
    """Return everything that is shown, in order."""
    correct = [finding for finding in found if finding.grade == "correct"]
    look = [finding for finding in found if finding.grade == "look"]
    parts = [understood(seen)]
    if correct:
        parts.append(Section("To correct", "a release would be refused, or wrong", findings=correct))
    if look:
        parts.append(Section("Worth a look", "a release would be made all the same", findings=look))
    if seen.periods:
        parts += [calendar(seen), presence(seen), rules(seen)]
    parts += choices()
    if outlook is not None:
        parts.append(expected(outlook))
    if commands:
        once = "when all is corrected" if correct else "as it is; add --dry-run to rehearse it first"
        parts.append(Section("The command to run", once, commands=commands, lines=_beside(commands[-1], datasets)))
    return parts


def _beside(release: str, datasets: Sequence[str]) -> list[str]:
    """Say what a custodian should know about the command."""
    lines = ["Periods are published, and they are the same for all donors. Are these the ones you mean?"]
    if "--like" not in release:
        lines.append(
            "If you know a public series that moves about like a donor, such as the target before the intervention, "
            "add --like FILE --like-before PERIOD: the release is better for it."
        )
    if len(datasets) > 1:
        lines.append(f"Your ledger has several data sets; add --dataset, one of {', '.join(map(repr, datasets))}.")
    return lines


def verdict(found: Sequence[Finding]) -> str:
    """Say in one line whether a release can be made."""
    count = sum(finding.grade == "correct" for finding in found)
    if count:
        return f"NOT READY: {'one thing' if count == 1 else f'{count} things'} to correct"
    return "READY: nothing needs to be corrected"


def understood(seen: CustodianExamination) -> Section:
    """Say how the table was read and what it holds."""
    layout = seen.layout
    if layout is None:
        return Section("What was understood", facts=[("file", seen.reading)])
    if layout.wide:
        columns = f"units in {layout.unit!r}, one column for each period"
    else:
        columns = f"units in {layout.unit!r}, periods in {layout.time!r}, numbers in {layout.outcome!r}"
    shape = "wide: one row per unit, one column per period" if layout.wide else "long: one row per unit and period"
    facts = [("file", seen.reading), ("shape", shape), ("columns", columns)]
    if seen.periods:
        first, last, T = seen.periods[0], seen.periods[-1], len(seen.periods)
        facts.append(("periods", f"{T} {seen.calendar}, from {first} to {last}; the table writes {seen.written!r}"))
    rows = f"{seen.rows:,} rows" + ("" if seen.whole else ", the first of the table: the others were not looked at")
    facts.append(("holds", f"{seen.units:,} units, {rows}"))
    if seen.guessed:
        one = "it was" if len(seen.guessed) == 1 else "they were"
        facts.append(("guessed", f"{', '.join(seen.guessed)}: {one} not given. The command at the end says what was "
                                 "understood; correct it if it is wrong"))  # fmt: skip
    return Section("What was understood", facts=facts)


def calendar(seen: CustodianExamination) -> Section:
    """Draw one sign per period, a year to a line where periods have years, and list the worst."""
    n = max(1, seen.units)
    strip = []
    for name, positions in _lines(seen.periods):
        share = sum(seen.missing[k] for k in positions) / len(positions) / n
        signs = "".join(_sign(seen.missing[k] / n) for k in positions)
        strip.append((name, signs, "complete" if share == 0 else f"{_percent(share)} missing"))
    ranked = sorted(range(len(seen.periods)), key=lambda k: -seen.missing[k])[:_WORST]
    worst = [
        (seen.periods[k], f"{seen.missing[k]:,}", _percent(seen.missing[k] / n)) for k in ranked if seen.missing[k]
    ]
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
        return f"{count:,} of {seen.units:,} units ({_percent(count / n)})"

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
        return Section(
            "Missing cells", lines=["There are none: every rule for missing cells (--missing) does nothing."]
        )
    count, who = f"{filling.cells:,} ({_percent(filling.cells / all_cells)})", f"{filling.units:,}"
    outside = filling.before + filling.after
    table = [
        ("--missing", "fills cells", "of units", "how"),
        ("kernel", count, who, "what the public kernel expects, given the unit's own other cells; the default"),
        ("interpolate", count, who, f"{filling.between:,} on straight lines between the unit's own numbers, "
                                    f"{outside:,} by repeating its first or last"),
        ("midpoint", count, who, "the middle of --bounds, the same for everybody"),
        ("error", "0", "0", "nothing: a release is refused"),
    ]  # fmt: skip
    lines = []
    if filling.without:
        lines.append(f"{filling.without:,} units without any number stay empty: each counts as a fixed public vector.")
    return Section("What each rule for missing cells would fill", table=table, lines=lines)


def choices() -> list[Section]:
    """Say what must not be chosen from what was just seen, and what may be corrected."""
    never = (
        "The periods, how dates and numbers are written, what cells are that several rows give, bounds, the reference "
        "path, the scale, epsilon, and which units to leave out. Choose them from public knowledge. A choice made by "
        "looking at these numbers tells something about single people, and no noise covers it: the guarantee would no "
        "longer hold."
    )
    may = (
        "Typing errors, rows that occur twice, names of one person written in two ways, a lost file. Correct by fixed "
        "rules that are the same for everybody, not by looking at single people."
    )
    return [Section("What must NOT be chosen from this view", lines=[never]),
            Section("What may be corrected", lines=[may])]  # fmt: skip


def expected(outlook: Outlook) -> Section:
    """Say what a release would be like."""
    facts = [
        ("donors, periods", f"{outlook.n:,} donors, {outlook.T} periods; {outlook.T0} before an intervention"),
        ("budget", f"epsilon {outlook.epsilon:g}, delta {small(outlook.delta)}: an attacker who knows all other "
                   f"donors guesses right {outlook.guess:.1%} of the time, 50% is blind"),
        ("noise", f"its largest direction is {outlook.noise_share:.1%} of what all donors say together"),
    ]  # fmt: skip
    if outlook.worth_having:
        facts.append(("could be seen", f"{outlook.directions} of {outlook.T - 1} ways in which a series can move"))
    if outlook.unit:
        facts += [
            ("error", f"about {_about(outlook.error)}; without donors, by the target's last value, about "
                      f"{_about(outlook.last_value)}"),
            ("effect", f"an average effect of {_about(outlook.detectable)} or more would be seen in 8 of 10 cases"),
            ("measured in", outlook.unit),
        ]  # fmt: skip
    lines = ["Simulated quickly. dpsc plan says more, and how large a budget it takes."] if outlook.unit else []
    return Section("What the release would be like", "from public numbers only", facts=facts, lines=lines)


def problems_of(outlook: Outlook) -> list[Finding]:
    """Say why a release would be refused for its public numbers."""
    found = []
    if not outlook.worth_having:
        words = (
            f"nothing could be learned: with {outlook.n:,} donors and epsilon {outlook.epsilon:g} the noise is "
            f"{outlook.noise_share:.0%} of what all donors say together. Use more donors or a larger budget (dpsc plan)"
        )
        found.append(Finding("correct", "useless", 1, words))
    elif not outlook.finds_scale:
        words = (
            f"{outlook.n:,} donors are too few to find out privately how much a donor moves. Give --target and "
            "--before here, or add --scale to the release, from public knowledge"
        )
        found.append(Finding("correct", "scale", 1, words))
    if not outlook.small_delta:
        words = f"delta {small(outlook.delta)} is not below one over the number of donors; use 1e-6 or less"
        found.append(Finding("correct", "delta", 1, words))
    return found


def command(parts: Sequence[str], options: Sequence[str]) -> str:
    """Return a command for a shell, each option with its value, on lines that do not wrap.

    Control characters in the name of a column or file are written out: pasted into a terminal, they would be keys.

    Examples
    --------
    >>> print(command(["dpsc", "release", "my donors.csv"], ["--unit", "who", "--wide", "-o", "r.json"]))
    dpsc release 'my donors.csv' --unit who --wide -o r.json
    """
    pieces: list[str] = []
    for option in map(written_out, options):
        if option.startswith("-") or not pieces:
            pieces.append(shlex.quote(option))
        else:
            pieces[-1] += f" {shlex.quote(option)}"
    lines = [shlex.join(map(written_out, parts))]
    for piece in pieces:
        if len(lines[-1]) + len(piece) > 74:
            lines.append(f"    {piece}")
        else:
            lines[-1] += f" {piece}"
    return " \\\n".join(lines)


def stem(path: Path) -> str:
    """Return the name of a file without its endings."""
    return path.name.split(".")[0] or "donors"


def small(number_: float) -> str:
    """Write a number as people read it: 1e-6, not 1e-06."""
    return re.sub(r"e([+-])0+", r"e\1", f"{number_:g}")


def typed(number_: float) -> str:
    """Write a number for a command, with all its digits.

    Examples
    --------
    >>> typed(1.0), typed(1e-6), typed(1234567.8)
    ('1', '1e-6', '1234567.8')
    """
    return re.sub(r"e([+-])0+", r"e\1", repr(float(number_)).removesuffix(".0"))


def ended(text: str) -> str:
    """Write a text as a sentence, whatever it ends with."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def _about(value: float) -> str:
    return number(float(f"{value:.2g}"))


def _percent(share: float) -> str:
    if 0 < share < 0.001:
        return "< 0.1%"
    return f"{share:.0%}" if share in (0.0, 1.0) else f"{min(share, 0.999):.1%}"
