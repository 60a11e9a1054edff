"""``dpsc estimate``: the analyst turns a release and public targets into answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import terminal

SEVERAL = "Several treated units"


def estimate(
    ctx: typer.Context,
    release: Annotated[Path, typer.Argument(help="The custodian's release file.")],
    target: Annotated[
        Path,
        typer.Argument(
            help="The target: a table with a column of periods and one of numbers. With --unit a long table of several "
            "targets, one row per unit and period."
        ),
    ],
    treatment_time: Annotated[
        str | None, typer.Option(help="The first treated period, of the target or of all units.")
    ] = None,
    out: terminal.AnswerOut = None,
    title: terminal.Title = None,
    unit: Annotated[
        str | None, typer.Option(help="The column that names the units.", rich_help_panel=SEVERAL)
    ] = None,
    treatment_time_column: Annotated[
        str | None,
        typer.Option(
            help="The column with each unit's own first treated period, the same in all its rows; empty for a unit "
            "that was never treated: it is shown and not used for any number.",
            rich_help_panel=SEVERAL,
        ),
    ] = None,
    weight_column: Annotated[
        str | None,
        typer.Option(help="The column with each unit's weight in pooled effects; equal without.",
                     rich_help_panel=SEVERAL),
    ] = None,
    averages: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many units the target, or each of several, is the average of. Intervals are then shorter, and "
            "other units of measurement are noticed more often.",
        ),
    ] = None,
    averages_column: Annotated[
        str | None,
        typer.Option(
            help="The column that says it for each unit; empty where it is not known.", rich_help_panel=SEVERAL
        ),
    ] = None,
    time: terminal.Time = None,
    outcome: terminal.Outcome = None,
    time_format: terminal.TimeFormat = None,
    sep: terminal.Sep = None,
    decimal: terminal.Decimal = None,
    thousands: terminal.Thousands = None,
    encoding: terminal.Encoding = None,
    sheet: terminal.Sheet = None,
    units: Annotated[str | None, typer.Option(help="What the outcome is measured in, for the report.")] = None,
    level: terminal.Level = 0.95,
    force: terminal.Force = False,
    json: terminal.Json = False,
) -> None:  # fmt: skip
    """Answer what targets would have been without the intervention; costs no budget."""
    with terminal.errors("estimate"):
        from dpsc.analyst import ask
        from dpsc.analyst.release import Release
        from dpsc.cli import delivery, estimating
        from dpsc.errors import ParameterError
        from dpsc.tables.dialect import Dialect

        columns = {
            "--treatment-time-column": treatment_time_column,
            "--weight-column": weight_column,
            "--averages-column": averages_column,
        }
        estimating.require_one_question(treatment_time, unit, columns)
        if averages is not None and averages_column is not None:
            raise ParameterError("give --averages for all units or --averages-column for each, not both.")
        terminal.keep_apart(out, release, target)
        if out is not None:
            delivery.is_file(out)
        estimating.require_order(release, target)
        loaded = Release.load(release)
        dialect = Dialect(sep, decimal, thousands, encoding, sheet)
        if unit is not None:
            found: delivery.Finding = ask.several(
                loaded, target, unit=unit, start=treatment_time_column, treatment_time=treatment_time,
                weight=weight_column, averages=averages_column or averages, time=time, outcome=outcome,
                time_format=time_format, dialect=dialect, level=level, title=title or "",
            )  # fmt: skip
        else:
            found = ask.one(
                loaded, target, str(treatment_time), averages=averages, time=time, outcome=outcome,
                time_format=time_format, dialect=dialect, level=level, title=title or "",
            )  # fmt: skip
        delivery.hand_over(found, out, command=terminal.typed(ctx), units=units, force=force, as_json=json)
