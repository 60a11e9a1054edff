"""``dpsc compare``: answers side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import terminal


def compare(
    ctx: typer.Context,
    answers: Annotated[
        list[Path], typer.Argument(help="Answers of dpsc estimate or fit: result.json files, or folders with one.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o",
            help="Where to write, by its ending: the figure (.png, .svg), a page (.html), the table (.csv, .xlsx), the "
            "numbers (.json), or a folder with page, figure and table.",
        ),
    ] = None,
    title: terminal.Title = None,
    force: terminal.Force = False,
    json: terminal.Json = False,
) -> None:  # fmt: skip
    """Show answers side by side: two releases, two budgets, two targets, two dates; one table, one figure."""
    with terminal.errors("compare"):
        from dpsc.cli import comparing

        comparing.run(answers, out, command=terminal.typed(ctx), title=title or "", force=force, as_json=json)
