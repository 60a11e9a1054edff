"""What ``dpsc audit`` does: attack, write a figure and JSON, print the table."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from dpsc import files
from dpsc.answers.plot import as_bytes
from dpsc.cli import render
from dpsc.cli.terminal import choose, console
from dpsc.evidence.audit.broken import BROKEN
from dpsc.evidence.audit.case import Finding
from dpsc.evidence.audit.run import Audit, audit, draw
from dpsc.evidence.audit.shipped import NAMES, cases

QUICK, THOROUGH = 40_000, 1_000_000
EPSILONS = (0.5, 1.0, 2.0, 4.0)


def run(
    mechanisms: Sequence[str],
    runs: int | None,
    seed: int | None,
    out: Path,
    *,
    thorough: bool,
    show_broken: bool,
    as_json: bool,
) -> bool:
    """Run, write a figure and JSON, print the table; return whether claims held and what is broken was caught."""
    chosen = choose("mechanism", mechanisms, NAMES)
    runs = (THOROUGH if thorough else QUICK) if runs is None else runs
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    attacked = cases(chosen, EPSILONS if thorough else (1.0,))
    known = [make() for make in BROKEN.values()] if show_broken else []
    with render.progress("attacking", sum(len(case.attacks) for case in attacked + known)) as advance:
        result = audit(attacked, runs=runs, seed=seed, on_attack=lambda name: advance())
        caught = audit(known, runs=runs, seed=seed, on_attack=lambda name: advance())
    content = result.to_json(caught if show_broken else None)
    files.write(out / "audit.json", content)
    files.write(out / "audit.png", as_bytes(draw(result.groups, caught.groups), "png"))
    missed = [group[0] for group in caught.groups if not any(f.verdict == "BROKEN" for f in group)]
    if as_json:
        typer.echo(content, nl=False)
    else:
        _report(result, caught, missed, out, time.monotonic() - started)
    return not result.broken and not missed


def _report(result: Audit, caught: Audit, missed: Sequence[Finding], out: Path, seconds: float) -> None:
    screen = console()
    screen.print(table("Claimed and demonstrated privacy loss", result.strongest()))
    if caught.groups:
        screen.print(table("Known to be broken: NOT PRIVATE, and must be caught", caught.strongest()))
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


def table(title: str, findings: Sequence[Finding]) -> Table:
    """Return one row per mechanism: claim, demonstrated lower bound, share of the claim, verdict."""
    styles = {"holds": "green", "BROKEN": "bold red", "not claimed": "yellow"}
    shown = Table(title=title, title_justify="left", pad_edge=False, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shown.add_column("mechanism", overflow="fold")
    shown.add_column("claim", no_wrap=True)
    shown.add_column("shown", justify="right", no_wrap=True)
    shown.add_column("share", justify="right", no_wrap=True)
    shown.add_column("verdict", no_wrap=True)
    for f in findings:
        name = f.title.removeprefix("NOT PRIVATE: ")
        shown.add_row(name, str(f.claim), number(f), share(f), Text(f.verdict, styles[f.verdict]))
    return shown


def number(finding: Finding) -> str:
    """Show the loss demonstrated; of a claim exceeded by less than 0.1%, show by how much."""
    if finding.verdict == "BROKEN" and finding.share - 1 < 1e-3:
        return f"+{finding.shown - finding.claim.epsilon:.1g}"
    return "∞" if math.isinf(finding.shown) else f"{finding.shown:.4g}"


def share(finding: Finding) -> str:
    """Show the share of the claim."""
    if finding.verdict == "BROKEN" and finding.share - 1 < 1e-3:
        return ">100%"
    return "∞" if math.isinf(finding.share) else f"{finding.share:.0%}"
