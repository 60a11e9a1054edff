"""``dpsc inspect`` and ``dpsc merge``: what is in a release and what it guarantees; releases become one."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsc import files
from dpsc.checks import printable
from dpsc.cli import terminal
from dpsc.cli.options import Force, Json, command, option
from dpsc.errors import ParameterError, ReleaseError

if TYPE_CHECKING:
    from dpsc.analyst.private_panel import PrivatePanel


@command("inspect", "dpsc inspect patients.dpsc.json", "dpsc inspect panel.dpsc.json --table cells.csv")
def inspect(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    page: Path | None = option("Write the page for whoever receives it (.html)."),
    table: Path | None = option("Of a private panel: write value, noise and people of each cell, as .csv or .xlsx."),
    dossier: Path | None = option(
        "Write what a privacy officer files, with marks where a person must add something: dossier.html, dossier.md "
        "and record.json.",
        metavar="FOLDER",
    ),
    record: bool = option("Print a record for a registry of differential-privacy deployments (JSON).", default=False),
    custodian: str | None = option("For --record and --dossier: who publishes the release."),
    intended_use: str | None = option("For --record and --dossier: what it is to be used for."),
    force: Force = False,
    json: Json = False,
) -> None:
    """Show what a release holds and guarantees; costs no budget."""
    from dpsc.analyst.private_panel import PrivatePanel, load_with_hash
    from dpsc.cli import render
    from dpsc.release import describe, describe_panel
    from dpsc.release import dossier as papers

    if not record and dossier is None and (custodian is not None or intended_use is not None):
        raise ParameterError("--custodian and --intended-use are for --record and --dossier.")
    printable("custodian", custodian or "")
    printable("intended_use", intended_use or "")
    for place in (page, table, dossier):
        terminal.keep_apart(place, release)
    loaded, digest = load_with_hash(release)
    if table is not None:
        if not isinstance(loaded, PrivatePanel):
            raise ParameterError("--table is for panels of people; this release has no cells.")
        _require_table(table)
        with terminal.output_file(table, force, "--table") as output:
            _write_table(loaded, output.place)
    say = describe_panel if isinstance(loaded, PrivatePanel) else describe
    if page is not None:
        with terminal.output_file(page, force, "--page") as output:
            files.write(output.place, say.page(loaded, release.name, digest))
    if dossier is not None:
        made = papers.files(loaded, release.name, digest, custodian=custodian, intended_use=intended_use)
        with terminal.output_folder(dossier, force, "--dossier") as output:
            for name, text in made.items():
                files.write(output.place / name, text)
    if record:
        content = say.record(loaded, digest, custodian=custodian, intended_use=intended_use)
        terminal.print_json(content, indent=1)
        return
    opened = None if dossier is None else dossier / papers.NAMES[0]
    then = "\n".join(f"Open {place}" for place in (page, table, opened) if place is not None)
    render.show_release(loaded, release, digest, json, then)


def _require_table(place: Path) -> None:
    """Refuse a kind of table that is not written."""
    from dpsc.answers import excel

    if place.suffix.lower() not in (".csv", ".xlsx"):
        raise ParameterError(f"--table {place}: write a .csv or an .xlsx file.")
    if place.suffix.lower() == ".xlsx":
        excel.require_writer()


def _write_table(panel: PrivatePanel, place: Path) -> None:
    """Write value, noise and people of each cell as CSV or as a workbook, for other programs."""
    from dpsc.answers import excel
    from dpsc.periods.dates import period_name

    frame = panel.to_frame()
    time = str(frame.columns[1])
    frame = frame.assign(**{time: [period_name(period) for period in frame[time]]})
    if place.suffix.lower() == ".xlsx":
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        files.write(place, excel.book({"panel": rows}))  # type: ignore[dict-item]
    else:
        files.write(place, files.csv_text(frame.columns, frame.itertuples(index=False)))


@command("merge", "dpsc merge north.dpsc.json south.dpsc.json --disjoint -o both.dpsc.json")
def merge(
    releases: Annotated[list[Path], typer.Argument(help="Release files.")],
    out: Path = option("The merged release file.", "--out", "-o", default=MISSING),
    disjoint: bool = option("Your word that nobody is in two of them; files cannot show it.", default=False),
    same_donors: bool = option(
        "Your word that all are of the same donors: averaged, they have less noise.", default=False
    ),
    force: Force = False,
    json: Json = False,
) -> None:
    """Add up releases of different donors, or average those of the same donors; costs no budget.

    All have the same periods and were made with one settings file: dpsc plan --settings writes it, dpsc release
    --settings reads it. Private panels are put together: other units with other people, or later periods of the same
    units.
    """
    from dpsc.analyst.private_panel import PrivatePanel, load
    from dpsc.analyst.release import Release
    from dpsc.analyst.releases import Releases
    from dpsc.cli import render
    from dpsc.release.file_format import sha256

    terminal.keep_apart(out, *releases)
    if len(releases) < 2:
        raise ReleaseError("name at least two release files to merge.")
    loaded = [load(path) for path in releases]
    grids = [one for one in loaded if isinstance(one, PrivatePanel)]
    if any(isinstance(one, Releases) for one in loaded):
        raise ReleaseError(
            "files of several outcomes are not merged: let each site make one file for each outcome, with settings "
            "that all agree on and a share of its budget for each."
        )
    if 0 < len(grids) < len(loaded):
        raise ReleaseError("a panel of people and a release of donors cannot be merged.")
    with terminal.output_file(out, force) as output:
        if grids:
            if same_donors:
                raise ReleaseError("--same-donors is for releases of donors; a panel has each period once.")
            made: PrivatePanel | Release = PrivatePanel.join(grids, disjoint=disjoint)
        else:
            donors = [one for one in loaded if isinstance(one, Release)]
            made = Release.merge(donors, disjoint=disjoint, same_donors=same_donors)
        made.save(output.place)
    render.show_release(made, out, sha256(out), json, f"Written to {out}.")
