"""``dpsc check``: the rehearsal, for the custodian's eyes only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import common
from dpsc.custody.limits import require_reasonable


def check(
    donors: Annotated[Path, typer.Argument(help="The donors: CSV, TSV, Excel, Parquet or Feather, or a folder.")],
    unit: Annotated[
        str | None, typer.Option(help="The column that names the units.", rich_help_panel="Columns")
    ] = None,
    time: common.Time = None,
    outcome: common.Outcome = None,
    wide: common.Wide = False,
    time_format: common.TimeFormat = None,
    periods: common.Periods = None,
    sep: common.Sep = None,
    decimal: common.Decimal = None,
    thousands: common.Thousands = None,
    encoding: common.Encoding = None,
    sheet: common.Sheet = None,
    missing: common.Missing = None,
    repeated: common.Repeated = None,
    bounds: common.Bounds = None,
    epsilon: Annotated[float, typer.Option(help="The privacy budget that the release would have.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Well below one over the number of donors.")] = 1e-6,
    target: Annotated[
        Path | None, typer.Option(help="The target, a public series; what to expect is then in its units.")
    ] = None,
    before: Annotated[
        int | None, typer.Option(min=2, help="Periods before the intervention; three quarters of all by default.")
    ] = None,
    averages: Annotated[int, typer.Option(min=1, help="How many units the target is the average of.")] = 1,
    i_know: common.IKnow = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write this private page (.html) or its numbers (.json).")
    ] = None,
    force: common.Force = False,
    json: common.Json = False,
) -> None:
    """Look at donors before a release: all problems at once, and the command to run. PRIVATE: custodian only.

    Columns that are not named are guessed. Nothing is spent, and nothing is written unless -o says so. Ends with 0 if
    the donors are ready, with 1 if something must be corrected first.
    """
    with common.errors("check"):
        from dpsc.cli import checking
        from dpsc.custody.rehearsal import Wishes
        from dpsc.data.dialects import Dialect
        from dpsc.data.guessing import Said

        require_reasonable(epsilon, i_know)
        common.keep_apart(out, donors, target)
        ready = checking.run(
            donors, Said(unit, time, outcome, wide, time_format), Dialect(sep, decimal, thousands, encoding, sheet),
            Wishes(periods, missing, bounds, epsilon, delta, target, before, averages, repeated),  # type: ignore[arg-type]
            out, force=force, as_json=json,
        )  # fmt: skip
        if not ready:
            raise typer.Exit(1)
