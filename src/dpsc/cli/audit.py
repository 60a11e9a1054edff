"""``dpsc audit``: attack every mechanism, or check one release file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import terminal
from dpsc.errors import ParameterError


def audit(
    release: Annotated[
        Path | None, typer.Argument(help="A release file to check. Without it, the software is attacked.")
    ] = None,
    sha256: Annotated[str | None, typer.Option("--sha256", help="The hash that the file should have.")] = None,
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
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder for figure and JSON; audit-output by default.")
    ] = None,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="A million runs at four budgets; takes a long time.")
    ] = False,
    show_broken: Annotated[
        bool, typer.Option("--show-broken", help="Also attack mechanisms known to be broken, which must be caught.")
    ] = False,
    json: terminal.Json = False,
) -> None:
    """Attack every mechanism and print what was demonstrated; or, given a release, check this file."""
    with terminal.errors("audit"):
        if release is not None:
            from dpsc.cli import file_checking

            if mechanism or runs or seed is not None or out or thorough or show_broken:
                raise ParameterError("a release file is checked by itself: the other options are for attacks.")
            fine = file_checking.run(release, sha256, as_json=json)
        else:
            from dpsc.cli import auditing

            if sha256 is not None:
                raise ParameterError("--sha256 is for a release file: name the file.")
            folder = Path("audit-output") if out is None else out
            options = {"thorough": thorough, "show_broken": show_broken, "as_json": json}
            fine = auditing.run(mechanism or [], runs, seed, folder, **options)
        if not fine:
            raise typer.Exit(1)
