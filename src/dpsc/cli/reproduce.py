"""``dpsc reproduce``: the paper's figures and claims, three recipes side by side."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from dpsc.errors import DpscError, ParameterError
from dpsc.paper.claims import Finding
from dpsc.paper.points import RECIPES, Recipe
from dpsc.paper.reproduce import points_of, reproduce
from dpsc.paper.tables import SPECS, Name

Choice = TypeVar("Choice", bound=str)


def run(figures: Sequence[str], recipes: Sequence[str], runs: int, seed: int, out: Path, resume: bool) -> None:
    """Run, report progress on stderr and print the verdicts."""
    chosen_figures: list[Name] = _choose("figure", figures, list(SPECS))
    chosen_recipes: list[Recipe] = _choose("recipe", recipes, list(RECIPES))
    started = time.monotonic()
    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), disable=not Console(stderr=True).is_terminal, transient=True,
    )  # fmt: skip
    try:
        with progress:
            points = len(points_of(chosen_figures, chosen_recipes))
            task = progress.add_task(f"{runs} runs a point", total=points)
            findings = reproduce(
                out, chosen_figures, chosen_recipes, runs=runs, seed=seed, resume=resume,
                on_progress=lambda count: progress.advance(task, count),
                on_drawing=lambda name: progress.update(task, description=f"drawing {name}"),
            )  # fmt: skip
    except KeyboardInterrupt:
        again = f"dpsc reproduce --runs {runs} --seed {seed} --out {out} --resume"
        raise DpscError(
            f"interrupted; finished points are kept. Go on with the same figures and recipes: {again}"
        ) from None

    console = Console(highlight=False)
    if findings:
        console.print(_verdicts(findings, chosen_recipes))
    console.print(f"{points} points of {runs} runs in {time.monotonic() - started:.0f} s. Open:")
    console.print(f"  {out / 'report.html'}", soft_wrap=True)
    console.print(f"  {out / 'claims.csv'} and {', '.join(chosen_figures)} as .png, .svg, .csv", soft_wrap=True)


def _choose(option: str, given: Sequence[str], known: Sequence[Choice]) -> list[Choice]:
    """Check names and return them in the paper's order; all if none was given."""
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ParameterError(f"--{option} {name} is not one of {', '.join(known)}.{hint}")
    return [name for name in known if name in given or not given]


def _verdicts(findings: Sequence[Finding], recipes: Sequence[Recipe]) -> Table:
    """Return what came of each claim, one row a claim."""
    marks = {"holds": "[green]holds[/]", "does not hold": "[red]does not[/]", "undecided": "[dim]undecided[/]"}
    counts = {r: Counter(f.verdict for f in findings if f.recipe == r) for r in recipes}
    heads = {"published": "published\n[bold red]NOT PRIVATE[/]", "printed": "printed", "ours": "ours"}
    table = Table(title="What the paper's experiment section says", title_justify="left", show_footer=True)
    table.add_column("claim", footer="claims that hold")
    for recipe in recipes:
        total = sum(counts[recipe].values())
        table.add_column(heads[recipe], footer=f"{counts[recipe]['holds']} of {total}", no_wrap=True)
    for claim in dict.fromkeys(finding.claim for finding in findings):
        verdicts = {f.recipe: f.verdict for f in findings if f.claim == claim}
        table.add_row(claim.sentence, *(marks[verdicts[recipe]] for recipe in recipes))
    return table
