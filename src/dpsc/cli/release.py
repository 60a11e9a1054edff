"""``dpsc release``: the custodian turns donors into one private file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import common
from dpsc.cli.ledger import DatasetOption, LedgerOption, booking, opened


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
    smoothness: common.Smoothness = None,
    reference: common.Reference = None,
    bounds: common.Bounds = None,
    missing: common.Missing = "error",
    exclude: Annotated[list[str] | None, typer.Option(help="A unit to leave out, such as the treated one.")] = None,
    provenance: Annotated[str, typer.Option(help="Free text for whoever reads the release; published as it is.")] = "",
    engine: Annotated[str, typer.Option(help="auto, memory, stream (larger than memory) or dask.")] = "auto",
    scheduler: Annotated[str | None, typer.Option(help="An existing Dask scheduler's address.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Of a local Dask cluster; all cores by default.")] = None,
    grid_bits: Annotated[int, typer.Option(help="Resolution of the integers; less above 60 million donors.")] = 18,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    i_know: common.IKnow = False,
    force: common.Force = False,
    json: common.Json = False,
) -> None:
    """Turn private donors into one small private release."""
    with common.errors("release"):
        from dpsc import GramRelease, scan
        from dpsc.cli import screens
        from dpsc.cli.analysis import require_reasonable, require_small_delta
        from dpsc.data import tables
        from dpsc.data.formats import in_file

        require_reasonable(epsilon, i_know)
        opened(ledger, dataset)
        common.keep_apart(out, donors, reference)
        path = None if reference is None else tables.series(reference, None, None, time_format)
        algorithm = GramRelease(
            epsilon=epsilon, delta=delta, smoothness=smoothness or "high", reference=path, grid_bits=grid_bits  # type: ignore[arg-type]
        )  # fmt: skip
        with common.output_file(out, force) as output:
            with common.working(f"opening {donors}"):
                where = scan(
                    donors, unit=unit, time=time, outcome=outcome, wide=wide, time_format=time_format, bounds=bounds,
                    missing=missing, exclude=exclude or (), engine=engine, scheduler=scheduler, workers=workers,  # type: ignore[arg-type]
                )  # fmt: skip
                with in_file(reference or donors):
                    algorithm.reference_for(where.times)
                expected = where.rows_expected()
            with screens.progress("donors", expected) as advance, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a large delta, which is refused below
                exactly = algorithm.custodian_sum(where, on_rows=advance)
            require_small_delta(delta, exactly.n, i_know)
            about = {"outcome": exactly.outcome, "periods": len(exactly.times)} | ({} if exclude else {"n": exactly.n})
            with booking(ledger, dataset, algorithm, output=out, description=about):  # before noise is drawn
                made = algorithm.release(exactly, provenance=provenance)
                made.save(output.place)
                output.finish()
        if json:
            import json as encoder

            typer.echo(encoder.dumps({"file": str(out), **screens.release_json(made)}, ensure_ascii=False))
            return
        screens.show_release(made, out)
        screens.console().print(f"\nWritten to {out}. It may be handed on; the donors stay with you.", soft_wrap=True)
