"""``dpsc merge``: releases of different donors become one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import common


def merge(
    releases: Annotated[list[Path], typer.Argument(help="Release files of custodians with different donors.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The merged release file.")],
    disjoint: Annotated[
        bool, typer.Option("--disjoint", help="Your word that no donor is in two of them; the files cannot show it.")
    ] = False,
    force: common.Force = False,
    json: common.Json = False,
) -> None:
    """Add up releases of different donors, made over the same periods in the same way; costs no budget."""
    with common.errors("merge"):
        from dpsc.cli import screens
        from dpsc.errors import ReleaseError
        from dpsc.gram.release import Release

        common.keep_apart(out, *releases)
        if len(releases) < 2:
            raise ReleaseError("name at least two release files to merge.")
        with common.output_file(out, force) as output:
            merged = Release.merge([Release.load(path) for path in releases], disjoint=disjoint)
            merged.save(output.place)
        if json:
            common.print_json(screens.release_json(merged, out))
            return
        screens.show_release(merged, out)
        common.console().print(f"\nWritten to {out}.", soft_wrap=True)
