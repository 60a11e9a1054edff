"""``dpsc release``: the custodian turns donors into one private file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.checks import printable
from dpsc.cli import common
from dpsc.cli.booking import Account, DatasetOption, LedgerOption, NoLedgerOption, PartitionOption, PurposeOption
from dpsc.cli.limits import require_reasonable


def release(
    donors: Annotated[Path, typer.Argument(help="The donors: CSV, TSV, Parquet or Feather, or a folder of them.")],
    epsilon: Annotated[float, typer.Option(help="The privacy budget; 1 is usual.")],
    delta: Annotated[float, typer.Option(help="Well below one over the number of donors, e.g. 1e-6.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The release file to write.")],
    unit: common.Unit,
    time: common.Time = None,
    outcome: common.Outcome = None,
    wide: common.Wide = False,
    time_format: common.TimeFormat = None,
    periods: common.Periods = None,
    smoothness: common.Smoothness = None,
    reference: common.Reference = None,
    scale: common.Scale = None,
    like: common.Like = None,
    like_before: common.LikeBefore = None,
    bounds: common.Bounds = None,
    missing: common.Missing = None,
    exclude: Annotated[list[str] | None, typer.Option(help="A unit to leave out, such as the treated one.")] = None,
    provenance: Annotated[str, typer.Option(help="Free text for whoever reads the release; published as it is.")] = "",
    engine: Annotated[str, typer.Option(help="auto, memory, stream (larger than memory) or dask.")] = "auto",
    scheduler: Annotated[str | None, typer.Option(help="An existing Dask scheduler's address.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Workers of a local Dask cluster; all cores by default.")
    ] = None,
    grid_bits: Annotated[
        int, typer.Option(help="Resolution of the integers in bits; use fewer above 60 million donors.")
    ] = 18,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    partition: PartitionOption = None,
    purpose: PurposeOption = None,
    no_ledger: NoLedgerOption = False,
    custodian_notes: Annotated[
        bool, typer.Option("--custodian-notes", help="Print private notes for the custodian: units that look alike.")
    ] = False,
    i_know: common.IKnow = False,
    force: common.Force = False,
    json: common.Json = False,
) -> None:
    """Turn private donors into one small private release."""
    with common.errors("release"):
        from dpsc.cli import releasing
        from dpsc.data import tables
        from dpsc.gram.sources import scan

        require_reasonable(epsilon, i_know)
        printable("provenance", provenance)
        common.require_no_password("--provenance", provenance)
        account = Account(ledger, dataset, partition=partition, purpose=purpose, no_ledger=no_ledger)
        common.keep_apart(out, donors, reference, like, *account.files)
        algorithm = releasing.algorithm_of(
            epsilon, delta, smoothness=smoothness, reference=reference, scale=scale, like=like,  # type: ignore[arg-type]
            like_before=like_before, time_format=time_format, grid_bits=grid_bits,
        )  # fmt: skip
        index = None if periods is None else tables.typed_periods(periods, algorithm.reference, time_format)
        source = scan(
            donors, unit=unit, time=time, outcome=outcome, wide=wide, time_format=time_format, periods=index,
            bounds=bounds, missing=missing, exclude=exclude or (), engine=engine, scheduler=scheduler, workers=workers,  # type: ignore[arg-type]
        )  # fmt: skip
        releasing.run(
            source, algorithm, account, out, reference=reference, n_is_public=not exclude, provenance=provenance,
            custodian_notes=custodian_notes, i_know=i_know, force=force, as_json=json,
        )  # fmt: skip
