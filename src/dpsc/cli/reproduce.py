"""``dpsc reproduce``: the paper's figures and claims, three recipes side by side."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from dpsc.cli import terminal
from dpsc.cli.options import command
from dpsc.errors import DpscError

if TYPE_CHECKING:
    from dpsc.evidence.paper.claims import Judgement
    from dpsc.evidence.paper.points import Recipe


@command("reproduce")
def reproduce(
    figure: Annotated[list[str] | None, typer.Option(help="A figure to draw; may be repeated. All by default.")] = None,
    recipe: Annotated[list[str] | None, typer.Option(help="published, printed or ours; may be repeated.")] = None,
    runs: Annotated[int, typer.Option(min=2, help="Runs per point.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for figures, tables and the report.")] = Path(
        "reproduction"
    ),
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an interrupted run stopped.")] = False,
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
