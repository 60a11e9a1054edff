"""``dpsc fit``: from a panel to an answer in one step, by someone who holds the donors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import common
from dpsc.cli.booking import Account, DatasetOption, LedgerOption, NoLedgerOption, PartitionOption, PurposeOption
from dpsc.custody.limits import require_reasonable


def fit(
    ctx: typer.Context,
    panel: Annotated[Path | None, typer.Argument(help="The panel: CSV, TSV, Excel, Parquet or Feather.")] = None,
    treated_unit: Annotated[str | None, typer.Option(help="The unit that was treated.")] = None,
    treatment_time: Annotated[str | None, typer.Option(help="The first treated period.")] = None,
    method: Annotated[str | None, typer.Option(help="gram (default), output, objective or nonprivate.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The privacy budget; 1 is usual.")] = None,
    delta: Annotated[float | None, typer.Option(help="Well below one over the number of donors, e.g. 1e-6.")] = None,
    out: common.AnswerOut = None,
    title: common.Title = None,
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
    bounds: common.Bounds = None,
    missing: common.Missing = None,
    repeated: common.Repeated = None,
    smoothness: common.Smoothness = None,
    reference: common.Reference = None,
    scale: common.Scale = None,
    like: Annotated[
        Path | None,
        typer.Option(
            help="Instead of --scale, and of the treated unit before the intervention: a table with a public series "
            "that moves about like a donor.",
            rich_help_panel=common.MOVES,
        ),
    ] = None,
    like_before: common.LikeBefore = None,
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
    i_know: common.IKnow = False,
    force: common.Force = False,
    json: common.Json = False,
) -> None:
    """Go from a panel to an answer in one step, for someone who holds the donors."""
    with common.errors("fit"):
        from dpsc.cli import fitting
        from dpsc.cli.analysis import Analysis

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
            common.keep_apart(place, *read, *account.files)
        fitting.run(
            analysis, account, out, kept, command=common.typed(ctx), i_know=i_know, force=force, as_json=json
        )  # fmt: skip
