"""Panels of people on the command line: how they are made, shown and exported."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.table import Table
from rich.text import Text

from dpsc import files
from dpsc.cli import terminal
from dpsc.errors import Parameter, ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from dpsc.analyst.private_panel import PrivatePanel
    from dpsc.cli.options import DonorTableOptions, Groups, Knowledge, Payer
    from dpsc.cli.release import Asked, How
    from dpsc.custodian.custody.panels import PanelChoices
    from dpsc.custodian.groups.people_files import FilePeople
    from dpsc.types import JsonObject


def release(
    records: Path,
    asked: Asked,
    unit: str,
    table: DonorTableOptions,
    knowledge: Knowledge,
    groups: Groups,
    how: How,
    payer: Payer,
) -> None:
    """Turn records of people into a private table of units and periods."""
    from dpsc.analyst.private_panel import PrivatePanel
    from dpsc.custodian.custody import panels
    from dpsc.custodian.groups.sources import people_in
    from dpsc.release.file_format import sha256

    _require_for_people(asdict(knowledge) | {"settings": asked.settings, "exclude": how.exclude})
    _require_for_people({"grid_bits": how.grid_bits, "custodian_notes": how.custodian_notes})
    account = payer.account()
    out, page = asked.out, asked.page(how.no_page)
    for place in (out, page):
        terminal.keep_apart(place, records, *account.files)
    terminal.keep_apart(page, asked.append)
    grown = None if asked.append is None else PrivatePanel.load(asked.append)
    said = groups.spec(table.spec(unit))
    chosen = panels.of_options(
        said,
        epsilon=asked.epsilon,
        delta=asked.delta,
        bounds=table.bounds,
        grown=grown,
        i_know=how.i_know,
        **groups.said(),
    )
    people = people_in(
        records,
        said,
        chosen.units,
        chosen.periods,
        engine=how.engine,  # type: ignore[arg-type]
        scheduler=how.scheduler,
        workers=how.workers,
    )
    for place in (out, page):
        if place is not None:
            terminal.require_free(place, how.force)
    panels.opened(people, chosen, account.payer)
    if how.dry_run:
        rehearsed = _rehearsed(people, chosen, account) | {"file": str(out), "page": page and str(page)}
        terminal.print_json(rehearsed) if how.json else _show_rehearsal(rehearsed)
        return
    with terminal.output_file(out, how.force) as output:
        with terminal.progress(f"records, {people.files.how}", people.rows_expected()) as advance:
            summed = chosen.algorithm.custodian_sum(people, on_rows=advance)
        made = panels.booked(summed, chosen, account, out, output.place, output.finish, provenance=how.provenance)
    digest = sha256(out)
    page = write_page(made, out, page, digest)
    told = "" if page is None else f", and {page}, which tells whoever receives it what it is"
    safe = f"Written to {out}{told}. It is safe to share; the records stay with you."
    show(made, out, digest, how.json, safe, page=None if page is None else str(page))
    if people.files.as_understood is not None:
        typer.echo(f"\n{records} was read with {people.files.as_understood}.", err=True)
    account.tell()


def _require_for_people(said: JsonObject) -> None:
    for name, value in said.items():
        if value not in (None, False):
            raise ParameterError(f"{Parameter(name)} is for donors, not for people in groups; leave it out.")


def write_page(made: PrivatePanel, out: Path, page: Path | None, digest: str) -> Path | None:
    """Write the page that goes out with a panel. The panel is whole and paid for, whatever becomes of its page."""
    from dpsc.release import describe_panel

    if page is None:
        return None
    try:
        files.write(page, describe_panel.page(made, out.name, digest))
    except Exception:
        typer.echo(f"The page could not be written. The panel is whole: dpsc inspect {out} --page {page}", err=True)
        return None
    return page


def _rehearsed(people: FilePeople, chosen: PanelChoices, account: terminal.Account) -> JsonObject:
    """Do everything that a release does except draw its noise, book and write; return public numbers."""
    from dpsc.custodian.custody import panels
    from dpsc.periods.dates import period_name
    from dpsc.release.describe_panel import enough_people

    algorithm, (block,) = chosen.algorithm, panels.rehearsed(people, chosen, account.payer).blocks
    with terminal.progress("records", people.rows_expected()) as advance:
        algorithm.custodian_sum(people, on_rows=advance)
    promise = algorithm.guarantee_for(block.rule)
    return {
        "dry_run": True,
        "statistic": block.rule.statistic,
        "units": len(block.units),
        "periods": len(block.times),
        "first_period": period_name(block.times[0]),
        "last_period": period_name(block.times[-1]),
        "guarantee": str(promise),
        "noise_of_a_sum": block.deviation * block.rule.step,
        "enough_people": enough_people(block) if block.rule.counts_people else None,
        "booking": account.would_cost(promise),
        "reading": people.files.how,
        "read_with": people.files.as_understood,
    }


def _show_rehearsal(told: JsonObject) -> None:
    from dpsc.answers.words import number

    screen = terminal.console()
    screen.print("DRY RUN: every record was read; no noise was drawn, nothing was booked or written.", style="bold")
    noise = number(float(f"{told['noise_of_a_sum']:.2g}"))
    if told["enough_people"] is None:
        said = f"a standard deviation of {noise} in every cell"
    else:
        said = (
            f"a standard deviation of {noise} in a cell's sum, divided by its people for the {told['statistic']}; "
            f"cells with fewer than about {told['enough_people']:,} people would be missing"
        )
    and_page = "" if told["page"] is None else f", with {told['page']} for whoever receives it"
    lines = [
        f"{told['units']} units, {told['periods']} periods from {told['first_period']} to {told['last_period']}",
        told["reading"],
        *([] if told["read_with"] is None else [f"read with {told['read_with']}"]),
        f"would promise: {told['guarantee']}",
        f"noise: {said}",
        f"book: {told['booking']}",
        f"would be written to {told['file']}{and_page}",
    ]
    for line in lines:
        screen.print(f"  {line}", soft_wrap=True)


def show(
    panel: PrivatePanel, path: Path, digest: str, as_json: bool = False, then: str = "", **more: str | None
) -> None:
    """Print what is in the panel in a file, what it guarantees, how noisy it is, and the file's hash."""
    from dpsc.release import describe_panel as say

    if as_json:
        terminal.print_json({"file": str(path), "sha256": digest} | say.to_json(panel) | more)
        return
    told = {
        "outcome": panel.outcome,
        "value": say.statistic(panel),
        "units": say.units(panel),
        "periods": say.periods(panel),
        "guarantee": say.promise(panel),
        "noise": say.noise(panel),
        "missing": say.too_few(panel),
        "bounding": say.bounding(panel),
        "provenance": "; ".join(dict.fromkeys(b.provenance for b in panel.blocks if b.provenance)) or "–",
        "made": f"by {say.made(panel)}" if panel.blocks else "–",
        "identity": ", ".join(panel.identities) or "–",
    }
    table = Table(title=str(path), title_justify="left", show_header=False, show_edge=False)
    for name, value in told.items():
        table.add_row(Text(name, "dim"), Text(value))
    terminal.console().print(table)
    terminal.console().print(f" SHA-256: {digest}", soft_wrap=True)
    if then:
        terminal.console().print(f"\n{then}", soft_wrap=True)


def write_table(panel: PrivatePanel, place: Path) -> None:
    """Write value, noise and people of each cell as CSV or as a workbook, for other programs."""
    frame = _for_spreadsheets(panel)
    if place.suffix.lower() == ".xlsx":
        from dpsc.answers import excel

        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        files.write(place, excel.book({"panel": rows}))  # type: ignore[dict-item]
    else:
        files.write(place, files.csv_text(frame.columns, frame.itertuples(index=False)))


def require_table(place: Path) -> None:
    """Refuse a kind of table that is not written."""
    if place.suffix.lower() not in (".csv", ".xlsx"):
        raise ParameterError(f"--table {place}: write a .csv or an .xlsx file.")
    if place.suffix.lower() == ".xlsx":
        from dpsc.answers import excel

        excel.require_openpyxl()


def _for_spreadsheets(panel: PrivatePanel) -> pd.DataFrame:
    from dpsc.periods.dates import period_name

    frame = panel.to_frame()
    time = frame.columns[1]
    return frame.assign(**{str(time): [period_name(period) for period in frame[time]]})
