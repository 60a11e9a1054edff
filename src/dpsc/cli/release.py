"""``dpsc release``: the custodian turns donors into one private file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpsc.cli import common
from dpsc.cli.booking import Account, DatasetOption, LedgerOption
from dpsc.cli.limits import require_reasonable, require_small_delta


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
    workers: Annotated[
        int | None, typer.Option(min=1, help="Workers of a local Dask cluster; all cores by default.")
    ] = None,
    grid_bits: Annotated[
        int, typer.Option(help="Resolution of the integers in bits; use fewer above 60 million donors.")
    ] = 18,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    i_know: common.IKnow = False,
    force: common.Force = False,
    json: common.Json = False,
) -> None:
    """Turn private donors into one small private release."""
    with common.errors("release"):
        from dpsc import tabular
        from dpsc.cli import screens
        from dpsc.gram import sources
        from dpsc.gram.algorithm import GramRelease

        require_reasonable(epsilon, i_know)
        account = Account(ledger, dataset)
        common.keep_apart(out, donors, reference)
        layout = tabular.Layout(unit, time, outcome, wide, time_format)
        path = None if reference is None else tabular.series(reference, None, None, time_format)
        algorithm = GramRelease(
            epsilon=epsilon, delta=delta, smoothness=smoothness or "high", reference=path, grid_bits=grid_bits  # type: ignore[arg-type]
        )  # fmt: skip
        with common.output_file(out, force) as output:
            with common.working(f"opening {donors}"):
                where = sources.donors_in(
                    donors, layout, engine=engine, scheduler=scheduler, workers=workers, bounds=bounds,  # type: ignore[arg-type]
                    missing=missing, exclude=tuple(exclude or ()),  # type: ignore[arg-type]
                )  # fmt: skip
                tabular.require_periods(path, where.times, reference)
                expected = sources.rows_expected(where)
            with screens.progress("donors", expected) as advance:
                exactly = algorithm.custodian_sum(where, on_rows=advance)
            require_small_delta(delta, exactly.n, i_know)
            about = {"outcome": exactly.outcome, "periods": len(exactly.times)} | ({} if exclude else {"n": exactly.n})
            with account.booking(algorithm, output=out, description=about):  # before noise is drawn
                made = algorithm.release(exactly, provenance=provenance)
                made.save(output.place)
                output.finish()
        if json:
            common.print_json({"file": str(out), **screens.release_json(made)})
            return
        screens.show_release(made, out)
        screens.console().print(f"\nWritten to {out}. It is safe to share; the donors stay with you.", soft_wrap=True)
