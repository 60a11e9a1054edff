"""``dpsc reproduce``: the paper's figures and claims, three recipes side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import terminal


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
    with terminal.errors("reproduce"):
        from dpsc.cli import reproducing

        reproducing.run(figure or [], recipe or [], runs, seed, out, resume)
