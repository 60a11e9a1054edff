"""``dpsc merge``: releases of different donors become one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import terminal
from dpsc.cli.options import Force, Json, command
from dpsc.errors import ReleaseError


@command("merge")
def merge(
    releases: Annotated[list[Path], typer.Argument(help="Release files of custodians with different donors.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The merged release file.")],
    disjoint: Annotated[
        bool, typer.Option("--disjoint", help="Your word that no donor is in two of them; the files cannot show it.")
    ] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Add up releases of different donors, made over the same periods in the same way; costs no budget."""
    from dpsc.analyst.release import Release
    from dpsc.cli import render
    from dpsc.release.file_format import sha256

    terminal.keep_apart(out, *releases)
    if len(releases) < 2:
        raise ReleaseError("name at least two release files to merge.")
    with terminal.output_file(out, force) as output:
        merged = Release.merge([Release.load(path) for path in releases], disjoint=disjoint)
        merged.save(output.place)
    digest = sha256(out)
    if json:
        terminal.print_json(render.release_json(merged, out, digest))
        return
    render.show_release(merged, out, digest)
    terminal.console().print(f"\nWritten to {out}.", soft_wrap=True)
