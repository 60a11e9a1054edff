"""``dpsc inspect`` and ``dpsc merge``: what is in a release and what it guarantees; releases become one."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path
from typing import Annotated

import typer

from dpsc import files
from dpsc.checks import printable
from dpsc.cli import terminal
from dpsc.cli.options import Force, Json, command, option
from dpsc.errors import ParameterError, ReleaseError


@command("inspect")
def inspect(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    page: Path | None = option("Write the page for whoever receives it: an .html file."),
    record: bool = option("Print a record for a registry of differential-privacy deployments (JSON).", default=False),
    custodian: str | None = option("For --record: who publishes the release."),
    intended_use: str | None = option("For --record: what it is to be used for."),
    force: Force = False,
    json: Json = False,
) -> None:
    """Show what a release holds and guarantees."""
    from dpsc.analyst.release import Release
    from dpsc.cli import render
    from dpsc.release import describe, file_format

    if not record and (custodian is not None or intended_use is not None):
        raise ParameterError("--custodian and --intended-use are for --record.")
    printable("custodian", custodian or "")
    printable("intended_use", intended_use or "")
    terminal.keep_apart(page, release)
    loaded, digest = file_format.load_with_hash(release, Release)
    if page is not None:
        with terminal.output_file(page, force, "--page") as output:
            files.write(output.place, describe.page(loaded, release.name, digest))
    if record:
        content = describe.record(loaded, digest, custodian=custodian, intended_use=intended_use)
        terminal.print_json(content, indent=1)
    else:
        render.show_release(loaded, release, digest, json, "" if page is None else f"Open {page}")


@command("merge")
def merge(
    releases: Annotated[list[Path], typer.Argument(help="Release files of custodians with different donors.")],
    out: Path = option("The merged release file.", "--out", "-o", default=MISSING),
    disjoint: bool = option("Your word that no donor is in two of them; the files cannot show it.", default=False),
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
    render.show_release(merged, out, sha256(out), json, f"Written to {out}.")
