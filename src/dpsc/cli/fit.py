"""``dpsc fit``: from a panel to an answer in one step, by someone who holds the donors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import terminal
from dpsc.cli.payer import Account, DatasetOption, LedgerOption, NoLedgerOption, PartitionOption, PurposeOption


def fit(
    ctx: typer.Context,
    panel: Annotated[Path | None, typer.Argument(help="The panel: CSV, TSV, Excel, Parquet or Feather.")] = None,
    treated_unit: Annotated[str | None, typer.Option(help="The unit that was treated.")] = None,
    treatment_time: Annotated[str | None, typer.Option(help="The first treated period.")] = None,
    method: Annotated[str | None, typer.Option(help="gram (default), output, objective or nonprivate.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The privacy budget; 1 is usual.")] = None,
    delta: Annotated[float | None, typer.Option(help="Well below one over the number of donors, e.g. 1e-6.")] = None,
    out: terminal.AnswerOut = None,
    title: terminal.Title = None,
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
    bounds: terminal.Bounds = None,
    missing: terminal.Missing = None,
    repeated: terminal.Repeated = None,
    smoothness: terminal.Smoothness = None,
    reference: terminal.Reference = None,
    scale: terminal.Scale = None,
    like: Annotated[
        Path | None,
        typer.Option(
            help="Instead of --scale, and of the treated unit before the intervention: a table with a public series "
            "that moves about like a donor.",
            rich_help_panel=terminal.MOVES,
        ),
    ] = None,
    like_before: terminal.LikeBefore = None,
    split: Annotated[
        float | None, typer.Option(help="The share of the budget for the weights (output, objective).")
    ] = None,
    lambda_: Annotated[
        float | None, typer.Option("--lambda", help="The paper's ridge penalty, on data in [-1, 1].")
    ] = None,
    units: Annotated[str | None, typer.Option(help="What the outcome is measured in, for the report.")] = None,
    level: Annotated[float | None, typer.Option(help="The level of the intervals; 0.95 by default.")] = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    partition: PartitionOption = None,
    purpose: PurposeOption = None,
    no_ledger: NoLedgerOption = False,
    i_know: terminal.IKnow = False,
    force: terminal.Force = False,
    json: terminal.Json = False,
) -> None:
    """Go from a panel to an answer in one step, for someone who holds the donors."""
    with terminal.errors("fit"):
        from dpsc.cli import fitting
        from dpsc.cli.analysis import Analysis
        from dpsc.custodian.custody.options import require_reasonable

        given = {
            "data": panel, "treated_unit": treated_unit, "treatment_time": treatment_time, "method": method,
            "epsilon": epsilon, "delta": delta, "unit": unit, "time": time, "outcome": outcome, "wide": wide or None,
            "time_format": time_format, "periods": periods, "bounds": bounds, "missing": missing, "repeated": repeated,
            "smoothness": smoothness, "reference": reference, "scale": scale, "like": like, "like_before": like_before,
            "sep": sep, "decimal": decimal, "thousands": thousands, "encoding": encoding, "sheet": sheet,
            "split": split, "lambda_": lambda_, "measured_in": units, "title": title, "level": level,
        }  # fmt: skip
        analysis = Analysis.of(given)
        require_reasonable(analysis.epsilon, i_know)
        read = (analysis.data, analysis.reference, analysis.like)
        kept = fitting.kept_beside(analysis, out)
        account = Account(ledger, dataset, partition=partition, purpose=purpose, no_ledger=no_ledger)
        for place in (out, kept):
            terminal.keep_apart(place, *read, *account.files)
        fitting.run(
            analysis, account, out, kept, command=terminal.typed(ctx), i_know=i_know, force=force, as_json=json
        )  # fmt: skip
