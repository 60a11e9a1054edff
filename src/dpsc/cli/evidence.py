"""``dpsc audit`` and ``dpsc reproduce``: the evidence for what dpsc claims, and the paper's claims beside it.

An audit attacks every mechanism, or checks one release file and says what a file cannot show.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from dpsc import files
from dpsc.cli import terminal
from dpsc.cli.options import Json, command, option
from dpsc.errors import DpscError, ParameterError, ReleaseError

if TYPE_CHECKING:
    from dpsc.evidence.audit.case import AuditFinding
    from dpsc.evidence.audit.run import Audit
    from dpsc.evidence.paper.claims import Judgement
    from dpsc.evidence.paper.points import Recipe

QUICK, THOROUGH = 40_000, 1_000_000
EPSILONS = (0.5, 1.0, 2.0, 4.0)
_STYLES = {
    "holds": "green",
    "cannot be told": "yellow",
    "broken": "bold red",
    "BROKEN": "bold red",
    "not claimed": "yellow",
}


@dataclass(frozen=True, kw_only=True)
class Attacks:
    """What is attacked, and how often."""

    mechanism: list[str] | None = option("A mechanism to attack. May be repeated; all by default.")
    runs: int | None = option("Runs on each of two neighbouring data sets; 40,000 by default.", min=1000)
    seed: int | None = option("Attack seeded noise, a stand-in for the real noise: repeatable.", min=0)
    out: Path | None = option(
        "The folder for figure and JSON; audit-output by default.", "--out", "-o", metavar="FOLDER"
    )
    thorough: bool = option("A million runs at four budgets; it takes long.", default=False)
    show_broken: bool = option("Also attack mechanisms that are broken, which must be caught.", default=False)


@command("audit", "dpsc audit --show-broken", "dpsc audit patients.dpsc.json --sha256 5f0c...")
def audit(
    release: Annotated[
        Path | None, typer.Argument(help="A release to check; without one, the software is attacked.")
    ] = None,
    sha256: str | None = option("The hash that the file should have.", "--sha256"),
    *,
    attacks: Attacks,
    json: Json = False,
) -> None:
    """Attack every mechanism and print what was demonstrated; or check a release file.

    Exit code: 0 if all claims hold, 1 if something is broken.
    """
    if release is None:
        if sha256 is not None:
            raise ParameterError("--sha256 is for a release file: name the file.")
        fine = attack(attacks, as_json=json)
    else:
        if attacks != Attacks():
            raise ParameterError("a release file is checked by itself: the other options are for attacks.")
        fine = check(release, sha256, as_json=json)
    if not fine:
        raise typer.Exit(1)


def attack(asked: Attacks, *, as_json: bool) -> bool:
    """Run, write a figure and JSON, print the table; return whether claims held and what is broken was caught."""
    from dpsc.answers.figures import as_bytes
    from dpsc.evidence.audit.broken import BROKEN
    from dpsc.evidence.audit.run import audit, draw
    from dpsc.evidence.audit.shipped import NAMES, cases

    chosen = terminal.choose("mechanism", asked.mechanism or [], NAMES)
    runs = asked.runs or (THOROUGH if asked.thorough else QUICK)
    out = asked.out or Path("audit-output")
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    attacked = cases(chosen, EPSILONS if asked.thorough else (1.0,))
    known = [make() for make in BROKEN.values()] if asked.show_broken else []
    with terminal.progress("attacking", sum(len(case.attacks) for case in attacked + known)) as advance:
        result = audit(attacked, runs=runs, seed=asked.seed, on_attack=lambda name: advance())
        caught = audit(known, runs=runs, seed=asked.seed, on_attack=lambda name: advance())
    content = result.to_json(caught if asked.show_broken else None)
    files.write(out / "audit.json", content)
    files.write(out / "audit.png", as_bytes(draw(result.groups, caught.groups), "png"))
    missed = [group[0] for group in caught.groups if not any(f.verdict == "BROKEN" for f in group)]
    if as_json:
        typer.echo(content, nl=False)
    else:
        _report(result, caught, missed, out, time.monotonic() - started)
    return not result.broken and not missed


def _report(result: Audit, caught: Audit, missed: Sequence[AuditFinding], out: Path, seconds: float) -> None:
    screen = terminal.console()
    screen.print(_table("Claimed and demonstrated privacy loss", result.strongest()))
    if caught.groups:
        screen.print(_table("Known to be broken: NOT PRIVATE, and must be caught", caught.strongest()))
        sources = dict.fromkeys(finding.note for finding in caught.findings if finding.note)
        screen.print("Other packages' mechanisms are written anew from their published description:")
        for source in sources:
            screen.print(f"  {source}", soft_wrap=True)
    calls = f"{result.runs:,} runs in bulk, {result.calls:,} real calls on each neighbour, {seconds:.0f} s"
    screen.print(f"{calls}. A false alarm anywhere: probability at most {result.false_alarm:g}.")
    if result.seed is not None:
        screen.print("Seeded: this attacked noise from a seed, a stand-in for the real noise that is never private.")
    for finding in result.broken:
        broken = f" {finding.title}, {finding.attack}: {finding.how}"
        screen.print(Text.assemble(("BROKEN", "bold red"), broken), soft_wrap=True)
    for finding in missed:
        screen.print(Text.assemble(("NOT CAUGHT", "bold red"), f" {finding.title}"), soft_wrap=True)
    screen.print(f"  {out / 'audit.png'} and {out / 'audit.json'} (every attack)", soft_wrap=True)
    screen.print("This attacked the software. dpsc audit RELEASE checks a file that was made with it.")


def _table(title: str, findings: Sequence[AuditFinding]) -> Table:
    """Return one row per mechanism: claim, demonstrated lower bound, share of the claim, verdict."""
    shown = Table(title=title, title_justify="left", pad_edge=False, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shown.add_column("mechanism", overflow="fold")
    shown.add_column("claim", no_wrap=True)
    shown.add_column("shown", justify="right", no_wrap=True)
    shown.add_column("share", justify="right", no_wrap=True)
    shown.add_column("verdict", no_wrap=True)
    for f in findings:
        name = f.title.removeprefix("NOT PRIVATE: ")
        shown.add_row(name, str(f.claim), *_loss_and_share(f), Text(f.verdict, _STYLES[f.verdict]))
    return shown


def _loss_and_share(finding: AuditFinding) -> tuple[str, str]:
    """Show the loss demonstrated and its share of the claim; if it is less than 0.1% too large, by how much."""
    if finding.verdict == "BROKEN" and finding.share - 1 < 1e-3:
        return f"+{finding.shown - finding.claim.epsilon:.1g}", ">100%"
    loss = "∞" if math.isinf(finding.shown) else f"{finding.shown:.4g}"
    return loss, "∞" if math.isinf(finding.share) else f"{finding.share:.0%}"


def check(path: Path, expected: str | None, *, as_json: bool) -> bool:
    """Check a file, print what was found, and return whether nothing is broken."""
    from dpsc.analyst.private_panel import PrivatePanel, parsed
    from dpsc.release import describe, describe_panel, file_format, verify
    from dpsc.release.verify import Check

    text, found = file_format.read(path)
    if expected is None:
        advice = "no hash was given: ask the custodian for it by another way than the file, and add --sha256 HASH"
        checks = [Check("SHA-256", "cannot be told", advice)]
    elif found == expected.strip().lower():
        checks = [Check("SHA-256", "holds", "it is the one that was given")]
    else:
        checks = [Check("SHA-256", "broken", "this is another file: its hash is not the one that was given")]
    not_shown: tuple[str, ...] = verify.NOT_SHOWN
    identities: tuple[str, ...] = ()
    try:
        release = parsed(text)
    except ReleaseError as problem:
        checks.append(Check("file", "broken", str(problem)))
    else:
        if isinstance(release, PrivatePanel):
            made, not_shown = f"by {describe_panel.made(release)}", verify.PANEL_NOT_SHOWN
            more = verify.panel_checks(release)
        else:
            first = describe.parts_of(release)[0]
            made = f"by {first.made_by}" + (f" on {first.made_on}" if first.made_on else "")
            more = verify.checks(release)
        checks.append(Check("file", "holds", f"a complete release, made {made}; its checksum matches"))
        identities = (release if isinstance(release, PrivatePanel) else first).identities
        checks += more
    fine = all(each.verdict != "broken" for each in checks)
    if as_json:
        told = {"checks": [asdict(each) for each in checks], "not_shown": list(not_shown)}
        named = {"file": str(path), "sha256": found, "identities": list(identities)}
        terminal.print_json({**named, "holds": fine, "summary": verify.summary(str(path), checks), **told})
        return fine
    table = Table(show_header=False, show_edge=False)
    for each in checks:
        table.add_row(Text(each.what, "dim"), Text(each.verdict, _STYLES[each.verdict]), Text(each.why))
    screen = terminal.console()
    screen.print(Text(f"{verify.summary(str(path), checks)}\n", "" if fine else "bold red"))
    screen.print(table)
    screen.print(f"\nSHA-256   {found}", soft_wrap=True)
    if identities:
        screen.print(f"Identity  {', '.join(identities)}", soft_wrap=True)
    screen.print("\nWhat the outcomes mean:")
    for outcome, meaning in verify.MEANING.items():
        screen.print(Text.assemble("  ", (outcome, _STYLES[outcome]), f": {meaning}"))
    screen.print("\nWhat no file can show:")
    for line in not_shown:
        screen.print(Text(f"  - {line}"))
    screen.print("\nThis checked a file. dpsc audit without a file attacks the software that makes such files.")
    return fine


@command("reproduce", "dpsc reproduce --runs 100 -o reproduction")
def reproduce(
    figure: list[str] | None = option("A figure to draw. May be repeated; all by default."),
    recipe: list[str] | None = option("published, printed or ours. May be repeated; all by default."),
    runs: int = option("Runs per point.", min=2, default=500),
    seed: int = option("The same seed gives the same numbers.", min=0, default=0),
    out: Path = option(
        "The folder for figures, tables and report.", "--out", "-o", metavar="FOLDER", default=Path("reproduction")
    ),
    resume: bool = option("Go on where an interrupted run stopped.", default=False),
) -> None:
    """Run the paper's experiments again, under three recipes for the noise."""
    from dpsc.evidence.paper.figures import SPECS
    from dpsc.evidence.paper.points import RECIPES
    from dpsc.evidence.paper.reproduce import points_of, reproduce

    figures = terminal.choose("figure", figure or [], list(SPECS))
    recipes = terminal.choose("recipe", recipe or [], list(RECIPES))
    started = time.monotonic()
    points = len(points_of(figures, recipes))
    try:
        with terminal.progress(f"{runs} runs per point", points) as advance:
            findings = reproduce(out, figures, recipes, runs=runs, seed=seed, resume=resume, on_progress=advance)
    except KeyboardInterrupt:
        again = f"dpsc reproduce --runs {runs} --seed {seed} --out {out} --resume"
        raise DpscError(
            f"interrupted; finished points are kept. Go on with the same figures and recipes: {again}"
        ) from None
    screen = terminal.console()
    if findings:
        screen.print(_verdicts(findings, recipes))
    screen.print(f"{points} points of {runs} runs in {time.monotonic() - started:.0f} s. Open:")
    screen.print(f"  {out / 'report.html'}", soft_wrap=True)
    screen.print(f"  {out / 'claims.csv'} and {', '.join(figures)} as .png, .svg, .csv", soft_wrap=True)


def _verdicts(findings: Sequence[Judgement], recipes: Sequence[Recipe]) -> Table:
    """Return the verdicts, one row per claim."""
    words = {"holds": ("holds", "green"), "does not hold": ("does not", "red"), "undecided": ("undecided", "dim")}
    counts = {r: Counter(f.verdict for f in findings if f.recipe == r) for r in recipes}
    published = Text.assemble("published\n", ("NOT PRIVATE", "bold red"))
    heads = {"published": published, "printed": Text("printed"), "ours": Text("ours")}
    table = Table(title="What the paper's experiment section says", title_justify="left", show_footer=True)
    table.add_column("claim", footer="claims that hold")
    for recipe in recipes:
        total = sum(counts[recipe].values())
        table.add_column(heads[recipe], footer=f"{counts[recipe]['holds']} of {total}", no_wrap=True)
    for claim in dict.fromkeys(finding.claim for finding in findings):
        verdicts = {f.recipe: f.verdict for f in findings if f.claim == claim}
        table.add_row(claim.sentence, *(Text(*words[verdicts[recipe]]) for recipe in recipes))
    return table
