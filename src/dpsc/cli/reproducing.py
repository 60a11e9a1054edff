"""What ``dpsc reproduce`` does: run the experiments, and show which claims of the paper hold."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from dpsc.cli import render
from dpsc.cli.terminal import choose, console
from dpsc.errors import DpscError
from dpsc.evidence.paper.claims import Judgement
from dpsc.evidence.paper.points import RECIPES, Recipe
from dpsc.evidence.paper.reproduce import points_of, reproduce
from dpsc.evidence.paper.tidy import SPECS


def run(figures: Sequence[str], recipes: Sequence[str], runs: int, seed: int, out: Path, resume: bool) -> None:
    """Run, and print the verdict on each claim and where the figures are."""
    chosen_figures = choose("figure", figures, list(SPECS))
    chosen_recipes = choose("recipe", recipes, list(RECIPES))
    started = time.monotonic()
    points = len(points_of(chosen_figures, chosen_recipes))
    try:
        with render.progress(f"{runs} runs per point", points) as advance:
            findings = reproduce(
                out, chosen_figures, chosen_recipes, runs=runs, seed=seed, resume=resume, on_progress=advance
            )
    except KeyboardInterrupt:
        again = f"dpsc reproduce --runs {runs} --seed {seed} --out {out} --resume"
        raise DpscError(
            f"interrupted; finished points are kept. Go on with the same figures and recipes: {again}"
        ) from None

    screen = console()
    if findings:
        screen.print(_verdicts(findings, chosen_recipes))
    screen.print(f"{points} points of {runs} runs in {time.monotonic() - started:.0f} s. Open:")
    screen.print(f"  {out / 'report.html'}", soft_wrap=True)
    screen.print(f"  {out / 'claims.csv'} and {', '.join(chosen_figures)} as .png, .svg, .csv", soft_wrap=True)


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
