"""Panels of people on the command line: what they are, in words and tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dpsc import files
from dpsc.cli import terminal
from dpsc.errors import ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from dpsc.analyst.private_panel import PrivatePanel
    from dpsc.custodian.custody.panels import PanelChoices
    from dpsc.custodian.groups.people_files import FilePeople
    from dpsc.types import JsonObject


def rehearsed(people: FilePeople, chosen: PanelChoices, account: terminal.Account) -> JsonObject:
    """Do everything that a release does except draw its noise, book and write; return public numbers."""
    from dpsc.custodian.custody import panels
    from dpsc.periods.dates import period_name
    from dpsc.release.describe_panel import enough_people

    algorithm, (block,) = chosen.algorithm, panels.rehearsed(people, chosen, account.payer).blocks
    with terminal.passes() as tell:
        summed = replace(algorithm, person_bound_quantile=None).custodian_sum(people, on_progress=tell)
    misfit = panels.custodian_misfit_of(summed)
    terminal.tell_the_custodian(misfit and misfit.note)
    terminal.tell_the_custodian(f"the table was {people.how}")
    promise = algorithm.guarantee_for(block.rule)
    return {
        "dry_run": True,
        "statistic": block.rule.statistic,
        "units": len(block.units),
        "periods": len(block.times),
        "first_period": period_name(block.times[0]),
        "last_period": period_name(block.times[-1]),
        "guarantee": str(promise),
        "noise_of_a_sum": block.deviation * block.rule.part,
        "noise_may_be_less": block.lengths is not None,
        "enough_people": enough_people(block) if block.rule.counts_people else None,
        "booking": account.would_cost(promise),
        "read_with": people.table.as_understood,
    }


def show_rehearsal(told: JsonObject) -> None:
    """Print what a release would be."""
    from dpsc.answers.words import number

    screen = terminal.console()
    screen.print("DRY RUN: every record was read; no noise was drawn, nothing was booked or written.", style="bold")
    noise = number(float(f"{told['noise_of_a_sum']:.2g}"))
    most = "at most " if told["noise_may_be_less"] else ""
    if told["enough_people"] is None:
        said = f"{most}a standard deviation of {noise} in every cell"
    else:
        said = (
            f"{most}a standard deviation of {noise} in a cell's sum, divided by its people for the "
            f"{told['statistic']}; cells with fewer than about {told['enough_people']:,} people would be missing"
        )
    and_page = "" if told["page"] is None else f", with {told['page']} for whoever receives it"
    lines = [
        f"{told['units']} units, {told['periods']} periods from {told['first_period']} to {told['last_period']}",
        *([] if told["read_with"] is None else [f"read with {told['read_with']}"]),
        f"would promise: {told['guarantee']}",
        f"noise: {said}",
        *told["booking"],
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
        "provenance": "; ".join(panel.provenances) or "–",
        "made": f"by {say.made(panel)}",
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

        excel.require_writer()


def _for_spreadsheets(panel: PrivatePanel) -> pd.DataFrame:
    from dpsc.periods.dates import period_name

    frame = panel.to_frame()
    time = frame.columns[1]
    return frame.assign(**{str(time): [period_name(period) for period in frame[time]]})
