"""``dpsc audit``: attack every mechanism, and show the privacy loss demonstrated next to the one claimed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import common


def audit(
    mechanism: Annotated[
        list[str] | None, typer.Option(help="A mechanism to attack; may be repeated. All by default.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1000, help="Runs on each of two neighbouring data sets; 40,000 by default.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Make the audit repeatable; it then attacks seeded noise, a stand-in for the real noise."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for figure and JSON.")] = Path("audit-output"),
    thorough: Annotated[
        bool, typer.Option("--thorough", help="A million runs at four budgets; takes a long time.")
    ] = False,
    show_broken: Annotated[
        bool, typer.Option("--show-broken", help="Also attack mechanisms known to be broken, which must be caught.")
    ] = False,
    json: common.Json = False,
) -> None:
    """Attack every mechanism, and print the privacy loss demonstrated next to the one claimed."""
    with common.errors("audit"):
        from dpsc.cli import auditing

        if not auditing.run(mechanism or [], runs, seed, out, thorough=thorough, show_broken=show_broken, as_json=json):
            raise typer.Exit(1)
