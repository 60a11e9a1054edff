"""``dpsc audit``: attack every mechanism, and show the privacy loss demonstrated next to the one claimed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsc.cli import common
from dpsc.cli.reproduce import choose

if TYPE_CHECKING:
    from rich.table import Table

    from dpsc.audit.case import Finding
    from dpsc.audit.run import Audit

QUICK, THOROUGH = 40_000, 1_000_000
EPSILONS = (0.5, 1.0, 2.0, 4.0)


def audit(
    mechanism: Annotated[list[str] | None, typer.Option(help="What to attack; may be repeated. All if none.")] = None,
    runs: Annotated[int | None, typer.Option(min=1000, help="Runs in bulk on each neighbour.")] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Repeat an audit; it then attacks the seeded twins of the samplers."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for figure and JSON.")] = Path("audit-output"),
    thorough: Annotated[bool, typer.Option("--thorough", help="A million runs, four budgets; takes long.")] = False,
    show_broken: Annotated[
        bool, typer.Option("--show-broken", help="Also attack mechanisms known to be broken, which must be caught.")
    ] = False,
    json: common.Json = False,
) -> None:
    """Attack every mechanism, and print the loss shown next to the one claimed."""
    with common.errors("audit"):
        if not run(mechanism or [], runs, seed, out, thorough=thorough, show_broken=show_broken, as_json=json):
            raise typer.Exit(1)


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
    import time

    from dpsc import files
    from dpsc.answers.plot import as_bytes
    from dpsc.audit.broken import BROKEN
    from dpsc.audit.picture import draw
    from dpsc.audit.run import audit
    from dpsc.audit.shipped import NAMES, cases
    from dpsc.cli import screens

    chosen = choose("mechanism", mechanisms, NAMES)
    runs = (THOROUGH if thorough else QUICK) if runs is None else runs
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    attacked = cases(chosen, EPSILONS if thorough else (1.0,))
    known = [make() for make in BROKEN.values()] if show_broken else []
    with screens.progress("attacking", sum(len(case.attacks) for case in attacked + known)) as advance:
        result = audit(attacked, runs=runs, seed=seed, on_attack=lambda name: advance())
        caught = audit(known, runs=runs, seed=seed, on_attack=lambda name: advance())
    files.write(out / "audit.json", result.to_json())
    files.write(out / "audit.png", as_bytes(draw(result.groups), "png"))
    missed = [group[0] for group in caught.groups if not any(f.verdict == "BROKEN" for f in group)]
    if as_json:
        typer.echo(result.to_json(), nl=False)
    else:
        _report(result, caught, missed, out, time.monotonic() - started)
    return not result.broken and not missed


def _report(result: Audit, caught: Audit, missed: Sequence[Finding], out: Path, seconds: float) -> None:
    from dpsc.cli.screens import console as screen

    console = screen()
    console.print(table("Claimed and demonstrated privacy loss", result.strongest()))
    if caught.groups:
        console.print(table("Known to be broken: NOT PRIVATE, and must be caught", caught.strongest()))
    calls = f"{result.runs:,} runs in bulk, {result.calls:,} real calls on each neighbour, {seconds:.0f} s"
    console.print(f"{calls}. A false alarm anywhere: probability at most {result.false_alarm:g}.")
    if result.seed is not None:
        console.print("Seeded: this attacked the seeded twins of the samplers, whose noise is never private.")
    for finding in result.broken:
        console.print(f"[bold red]BROKEN[/] {finding.title}, {finding.attack}: {finding.how}", soft_wrap=True)
    for finding in missed:
        console.print(f"[bold red]NOT CAUGHT[/] {finding.title}", soft_wrap=True)
    console.print(f"  {out / 'audit.png'} and {out / 'audit.json'} (every attack)", soft_wrap=True)


def table(title: str, findings: Sequence[Finding]) -> Table:
    """Return one row a mechanism: claim, demonstrated lower bound, share of the claim, verdict."""
    from rich import box
    from rich.table import Table

    marks = {"holds": "[green]holds[/]", "BROKEN": "[bold red]BROKEN[/]", "not claimed": "[yellow]not claimed[/]"}
    shown = Table(title=title, title_justify="left", pad_edge=False, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shown.add_column("mechanism", overflow="fold")
    shown.add_column("claim", no_wrap=True)
    shown.add_column("shown", justify="right", no_wrap=True)
    shown.add_column("share", justify="right", no_wrap=True)
    shown.add_column("verdict", no_wrap=True)
    for f in findings:
        name = f.title.removeprefix("NOT PRIVATE: ")
        shown.add_row(name, str(f.claim), number(f), share(f), marks[f.verdict])
    return shown


def number(finding: Finding) -> str:
    """Show what was demonstrated; a claim exceeded by a hair shows the hair."""
    if finding.verdict == "BROKEN" and finding.share - 1 < 1e-3:
        return f"+{finding.shown - finding.claim.epsilon:.1g}"
    return "∞" if math.isinf(finding.shown) else f"{finding.shown:.4g}"


def share(finding: Finding) -> str:
    """Show the share of the claim."""
    if finding.verdict == "BROKEN" and finding.share - 1 < 1e-3:
        return ">100%"
    return "∞" if math.isinf(finding.share) else f"{finding.share:.0%}"
