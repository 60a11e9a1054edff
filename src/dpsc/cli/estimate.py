"""``dpsc estimate``: the analyst turns a release and a public target into an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import common


def estimate(
    ctx: typer.Context,
    release: Annotated[Path, typer.Argument(help="The custodian's release file.")],
    target: Annotated[Path, typer.Argument(help="The target: a table with a column of periods and one of numbers.")],
    treatment_time: Annotated[str, typer.Option(help="The first treated period.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder for figures, tables and the report.")
    ] = None,
    time: common.Time = None,
    outcome: common.Outcome = None,
    time_format: common.TimeFormat = None,
    units: Annotated[str | None, typer.Option(help="What the outcome is measured in, for the report.")] = None,
    level: common.Level = 0.95,
    force: common.Force = False,
    json: common.Json = False,
) -> None:
    """Answer what the target would have been without the intervention; costs no budget."""
    with common.errors("estimate"):
        from dpsc.cli import delivery
        from dpsc.data import intervention, tables
        from dpsc.data.formats import in_file
        from dpsc.gram.release import Release

        common.keep_apart(out, release, target)
        loaded = Release.load(release)
        series = tables.series(target, time, outcome, time_format)
        with in_file(target):
            result = loaded.estimate(
                series, intervention.typed_period(treatment_time, loaded.times, time_format), level=level
            )
        delivery.hand_over(result, out, command=common.typed(ctx), units=units, force=force, as_json=json)
