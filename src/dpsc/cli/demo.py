"""``dpsc demo``: every step on two real panels, through the real commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import terminal


def demo(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for everything it makes.")] = Path("demo-output"),
    force: terminal.Force = False,
) -> None:
    """Show every step on a real panel: plan, check, release, estimate, report; and how close it came to the truth."""
    with terminal.errors("demo"), terminal.output_folder(out, force) as output:
        from dpsc.cli.demonstrating import Story

        Story(ctx, output.place, out).tell()
