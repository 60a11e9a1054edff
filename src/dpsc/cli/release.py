"""``dpsc release``: the custodian turns donors into one private file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.checks import printable
from dpsc.cli import terminal
from dpsc.cli.payer import Account, DatasetOption, LedgerOption, NoLedgerOption, PartitionOption, PurposeOption


def release(
    donors: Annotated[Path, typer.Argument(help="The donors: CSV, TSV, Excel, Parquet or Feather, or a folder.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The release file to write.")],
    unit: terminal.Unit,
    epsilon: Annotated[float | None, typer.Option(help="The privacy budget; 1 is usual. Needed.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="Well below one over the number of donors, e.g. 1e-6. Needed.")
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
    smoothness: terminal.Smoothness = None,
    reference: terminal.Reference = None,
    scale: terminal.Scale = None,
    like: terminal.Like = None,
    like_before: terminal.LikeBefore = None,
    settings: Annotated[
        Path | None,
        typer.Option(
            help="What several sites have agreed on, so that their releases add up: a file from dpsc plan --settings. "
            "It may also suggest --epsilon, --delta and --missing.",
        ),
    ] = None,
    bounds: terminal.Bounds = None,
    missing: terminal.Missing = None,
    repeated: terminal.Repeated = None,
    exclude: Annotated[list[str] | None, typer.Option(help="A unit to leave out, such as the treated one.")] = None,
    provenance: Annotated[str, typer.Option(help="Free text for whoever reads the release; published as it is.")] = "",
    engine: Annotated[str, typer.Option(help="auto, memory, stream (larger than memory) or dask.")] = "auto",
    scheduler: Annotated[str | None, typer.Option(help="An existing Dask scheduler's address.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Workers of a local Dask cluster; all cores by default.")
    ] = None,
    grid_bits: Annotated[
        int | None, typer.Option(help="Resolution of the integers in bits, 18; use fewer above 60 million donors.")
    ] = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    partition: PartitionOption = None,
    purpose: PurposeOption = None,
    no_ledger: NoLedgerOption = False,
    custodian_notes: Annotated[
        bool, typer.Option("--custodian-notes", help="Print private notes for the custodian: units that look alike.")
    ] = False,
    no_page: Annotated[
        bool, typer.Option("--no-page", help="Do not write the page for whoever receives the release.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Do everything but draw noise, book and write; say what would happen.")
    ] = False,
    i_know: terminal.IKnow = False,
    force: terminal.Force = False,
    json: terminal.Json = False,
) -> None:
    """Turn private donors into one small private release."""
    with terminal.errors("release"):
        from dpsc.cli import releasing
        from dpsc.custodian.custody import options
        from dpsc.custodian.custody.options import require_reasonable
        from dpsc.custodian.gram.sources import scan
        from dpsc.tables.dialect import Dialect

        require_reasonable(epsilon, i_know)
        printable("provenance", provenance)
        terminal.require_no_password("--provenance", provenance)
        account = Account(ledger, dataset, partition=partition, purpose=purpose, no_ledger=no_ledger)
        page = None if no_page else terminal.page_beside(out)
        for place in (out, page):
            terminal.keep_apart(place, donors, reference, like, settings, *account.files)
        chosen = options.of_options(
            settings=settings, epsilon=epsilon, delta=delta, smoothness=smoothness, reference=reference, scale=scale,  # type: ignore[arg-type]
            like=like, like_before=like_before, periods=periods, time_format=time_format, grid_bits=grid_bits,
            missing=missing, dialect=Dialect(sep, decimal, thousands, encoding, sheet),  # type: ignore[arg-type]
        )  # fmt: skip
        require_reasonable(chosen.algorithm.epsilon, i_know)  # which settings may have suggested
        source = scan(
            donors, unit=unit, time=time, outcome=outcome, wide=wide, time_format=time_format,
            periods=chosen.periods, bounds=bounds, missing=chosen.missing, repeated=repeated or "missing",  # type: ignore[arg-type]
            exclude=exclude or (),
            sep=sep, decimal=decimal, thousands=thousands, encoding=encoding, sheet=sheet,
            engine=engine, scheduler=scheduler, workers=workers,  # type: ignore[arg-type]
        )  # fmt: skip
        if dry_run:
            releasing.rehearse(source, chosen, account, out, page, i_know=i_know, force=force, as_json=json)
            return
        releasing.run(
            source, chosen, account, out, page, reference=reference or settings, n_is_public=not exclude,
            provenance=provenance, custodian_notes=custodian_notes, i_know=i_know, force=force, as_json=json,
        )  # fmt: skip
