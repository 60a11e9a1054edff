"""``dpsc check``: the rehearsal, for the custodian's eyes only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import terminal


def check(
    donors: Annotated[Path, typer.Argument(help="The donors: CSV, TSV, Excel, Parquet or Feather, or a folder.")],
    unit: Annotated[
        str | None, typer.Option(help="The column that names the units.", rich_help_panel="Columns")
    ] = None,
    time: terminal.Time = None,
    outcome: terminal.Outcome = None,
    wide: terminal.Wide = False,
    time_format: terminal.TimeFormat = None,
    periods: terminal.Periods = None,
    sep: terminal.Sep = None,
    decimal: terminal.Decimal = None,
    thousands: terminal.Thousands = None,
    encoding: terminal.Encoding = None,
    sheet: terminal.Sheet = None,
    missing: terminal.Missing = None,
    repeated: terminal.Repeated = None,
    bounds: terminal.Bounds = None,
    epsilon: Annotated[float, typer.Option(help="The privacy budget that the release would have.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Well below one over the number of donors.")] = 1e-6,
    target: Annotated[
        Path | None, typer.Option(help="The target, a public series; what to expect is then in its units.")
    ] = None,
    before: Annotated[
        int | None, typer.Option(min=2, help="Periods before the intervention; three quarters of all by default.")
    ] = None,
    averages: Annotated[int, typer.Option(min=1, help="How many units the target is the average of.")] = 1,
    i_know: terminal.IKnow = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write this private page (.html) or its numbers (.json).")
    ] = None,
    force: terminal.Force = False,
    json: terminal.Json = False,
) -> None:
    """Look at donors before a release: all problems at once, and the command to run. PRIVATE: custodian only.

    Columns that are not named are guessed. Nothing is spent, and nothing is written unless -o says so. Ends with 0 if
    the donors are ready, with 1 if something must be corrected first.
    """
    with terminal.errors("check"):
        from dpsc.cli import checking
        from dpsc.custodian.check.guess import Said
        from dpsc.custodian.check.run import Wishes
        from dpsc.custodian.custody.options import require_reasonable
        from dpsc.tables.dialect import Dialect

        require_reasonable(epsilon, i_know)
        terminal.keep_apart(out, donors, target)
        ready = checking.run(
            donors, Said(unit, time, outcome, wide, time_format), Dialect(sep, decimal, thousands, encoding, sheet),
            Wishes(periods, missing, bounds, epsilon, delta, target, before, averages, repeated),  # type: ignore[arg-type]
            out, force=force, as_json=json,
        )  # fmt: skip
        if not ready:
            raise typer.Exit(1)
