"""``dpsc inspect``: what is in a release, what it guarantees, how noisy it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import common


def inspect(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    json: common.Json = False,
) -> None:
    """Show what a release holds and guarantees."""
    with common.errors("inspect"):
        from dpsc.cli import screens
        from dpsc.gram.release import Release

        loaded = Release.load(release)
        if json:
            common.print_json({"file": str(release), **screens.release_json(loaded)})
        else:
            screens.show_release(loaded, release)
