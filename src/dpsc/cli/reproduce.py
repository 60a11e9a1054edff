"""``dpsc reproduce``: the paper's figures and claims, three recipes side by side."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from dpsc.cli import common
from dpsc.errors import DpscError, ParameterError

if TYPE_CHECKING:
    from dpsc.paper.claims import Judgement
    from dpsc.paper.points import Recipe

Choice = TypeVar("Choice", bound=str)


def reproduce(
    figure: Annotated[list[str] | None, typer.Option(help="A figure to draw; may be repeated. All by default.")] = None,
    recipe: Annotated[list[str] | None, typer.Option(help="published, printed or ours; may be repeated.")] = None,
    runs: Annotated[int, typer.Option(min=2, help="Runs a point.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for figures, tables, report.")] = Path(
        "reproduction"
    ),
    resume: Annotated[bool, typer.Option("--resume", help="Go on where an interrupted run stopped.")] = False,
) -> None:
    """Run the paper's experiments again, under three recipes for the noise."""
    with common.errors("reproduce"):
        _run(figure or [], recipe or [], runs, seed, out, resume)


def _run(figures: Sequence[str], recipes: Sequence[str], runs: int, seed: int, out: Path, resume: bool) -> None:
    import time

    from dpsc.cli import screens
    from dpsc.paper.points import RECIPES
    from dpsc.paper.reproduce import points_of
    from dpsc.paper.reproduce import reproduce as run
    from dpsc.paper.tables import SPECS

    chosen_figures = choose("figure", figures, list(SPECS))
    chosen_recipes = choose("recipe", recipes, list(RECIPES))
    started = time.monotonic()
    points = len(points_of(chosen_figures, chosen_recipes))
    try:
        with screens.progress(f"{runs} runs a point", points) as advance:
            findings = run(
                out, chosen_figures, chosen_recipes, runs=runs, seed=seed, resume=resume, on_progress=advance
            )
    except KeyboardInterrupt:
        again = f"dpsc reproduce --runs {runs} --seed {seed} --out {out} --resume"
        raise DpscError(
            f"interrupted; finished points are kept. Go on with the same figures and recipes: {again}"
        ) from None

    console = screens.console()
    if findings:
        console.print(_verdicts(findings, chosen_recipes))
    console.print(f"{points} points of {runs} runs in {time.monotonic() - started:.0f} s. Open:")
    console.print(f"  {out / 'report.html'}", soft_wrap=True)
    console.print(f"  {out / 'claims.csv'} and {', '.join(chosen_figures)} as .png, .svg, .csv", soft_wrap=True)


def choose(option: str, given: Sequence[str], known: Sequence[Choice]) -> list[Choice]:
    """Check names and return them in the paper's order; all if none was given."""
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ParameterError(f"--{option} {name} is not one of {', '.join(known)}.{hint}")
    return [name for name in known if name in given or not given]


def _verdicts(findings: Sequence[Judgement], recipes: Sequence[Recipe]) -> Any:
    """Return what came of each claim, one row a claim."""
    from collections import Counter

    from rich.table import Table

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
