"""``dpsc release``: the custodian turns donors into one private file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpsc import files
from dpsc.checks import printable
from dpsc.cli import terminal
from dpsc.cli.payer import Account, DatasetOption, LedgerOption, NoLedgerOption, PartitionOption, PurposeOption

if TYPE_CHECKING:
    from dpsc.analyst.release import Release
    from dpsc.custodian.custody.options import Choices
    from dpsc.custodian.gram.dask import DaskDonors
    from dpsc.custodian.gram.sources import FileDonors


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
        from dpsc.custodian.custody import options
        from dpsc.custodian.gram.sources import donors_in
        from dpsc.tables.spec import TableSpec

        options.require_reasonable(epsilon, i_know)
        printable("provenance", provenance)
        terminal.require_no_password("--provenance", provenance)
        account = Account(ledger, dataset, partition=partition, purpose=purpose, no_ledger=no_ledger)
        page = None if no_page else terminal.page_beside(out)
        for place in (out, page):
            terminal.keep_apart(place, donors, reference, like, settings, *account.files)
        said = TableSpec.of({
            "unit": unit, "time": time, "outcome": outcome, "wide": wide, "time_format": time_format,
            "periods": periods, "sep": sep, "decimal": decimal, "thousands": thousands, "encoding": encoding,
            "sheet": sheet, "missing": missing, "repeated": repeated,
        })  # fmt: skip
        chosen = options.of_options(
            said,
            epsilon=epsilon,
            delta=delta,
            settings=settings,
            smoothness=smoothness,  # type: ignore[arg-type]
            reference=reference,
            scale=scale,
            like=like,
            like_before=like_before,
            grid_bits=grid_bits,
        )
        options.require_reasonable(chosen.algorithm.epsilon, i_know)  # which settings may have suggested
        source = donors_in(
            donors,
            replace(said, missing=chosen.missing),
            chosen.periods,
            bounds=bounds,
            exclude=exclude or (),
            engine=engine,  # type: ignore[arg-type]
            scheduler=scheduler,
            workers=workers,
        )
        if dry_run:
            for place in (out, page):
                if place is not None:
                    terminal.require_free(place, force)
            told = _rehearsed(source, chosen, account, i_know) | {"file": str(out), "page": page and str(page)}
            terminal.print_json(told) if json else _show_rehearsal(told)
            return
        from dpsc.release.file_format import sha256

        made = _made(
            source,
            chosen,
            account,
            out,
            page,
            reference=reference or settings,
            n_is_public=not exclude,
            provenance=provenance,
            i_know=i_know,
            force=force,
        )
        digest = sha256(out)
        page = _page(made, out, page, digest)
        _show(made, out, page, digest, json)
        if source.files.as_understood is not None:
            typer.echo(f"\n{donors} was read with {source.files.as_understood}.", err=True)
        account.tell()
        if custodian_notes:
            _tell_the_custodian(source.files.custodian_units_alike())


def _made(
    donors: FileDonors | DaskDonors,
    chosen: Choices,
    account: Account,
    out: Path,
    page: Path | None,
    *,
    reference: Path | None,
    n_is_public: bool,
    provenance: str,
    i_know: bool,
    force: bool,
) -> Release:
    """Add up the donors, book what the release costs, make it and write it."""
    from dpsc.custodian.custody import run as steps

    if page is not None:
        terminal.require_free(page, force)
    with terminal.output_file(out, force) as output:
        with terminal.working("opening the donors"):
            expected = steps.opened(donors, chosen, reference)
        with terminal.progress(f"donors, {donors.files.how}", expected) as advance:
            summed = steps.added_up(donors, chosen, advance, i_know=i_know)
        return steps.booked(
            summed, chosen, account, out, output.place, output.finish, n_is_public=n_is_public, provenance=provenance
        )


def _page(made: Release, out: Path, page: Path | None, digest: str) -> Path | None:
    """Write the page that goes out with a release. The release is whole and paid for, whatever becomes of its page."""
    from dpsc.release import describe

    if page is None:
        return None
    try:
        files.write(page, describe.page(made, out.name, digest))
    except Exception:
        typer.echo(f"The page could not be written. The release is whole: dpsc inspect {out} --page {page}", err=True)
        return None
    return page


def _rehearsed(donors: FileDonors | DaskDonors, chosen: Choices, account: Account, i_know: bool) -> dict[str, Any]:
    """Do everything that a release does except draw noise, book and write; return what it would be, public numbers.

    The scale, for which a release may count donors with noise, is left out.
    """
    from dpsc.custodian.custody.options import require_small_delta, require_worth_having
    from dpsc.periods.dates import period_name

    algorithm = chosen.algorithm
    with terminal.working("opening the donors"):
        algorithm.reference_for(donors.times)
        expected = donors.rows_expected()
    with terminal.progress("donors", expected) as advance:
        summed = replace(algorithm, scale=algorithm.scale or 1.0, like=None).custodian_sum(donors, on_rows=advance)
    n, T = summed.n, len(summed.times)
    require_small_delta(algorithm.delta, n, i_know)
    require_worth_having(algorithm, n, T, i_know)
    return {
        "dry_run": True,
        "donors": n,
        "periods": T,
        "first_period": period_name(summed.times[0]),
        "last_period": period_name(summed.times[-1]),
        "guarantee": str(algorithm.guarantee),
        "noise_share": algorithm.noise_share(n, T, algorithm.scale_share(n, summed.times)),
        "booking": account.would_cost(algorithm),
        "reading": donors.files.how,
        "read_with": donors.files.as_understood,
    }


def _show_rehearsal(told: dict[str, Any]) -> None:
    from dpsc.release.describe import noise_of

    screen = terminal.console()
    screen.print("DRY RUN: every donor was read; no noise was drawn, nothing was booked or written.", style="bold")
    n, periods = told["donors"], f"{told['periods']} periods from {told['first_period']} to {told['last_period']}"
    lines = [f"{n:,} donors, {periods}", told["reading"]]
    lines += [] if told["read_with"] is None else [f"read with {told['read_with']}"]
    lines += [f"would promise: {told['guarantee']}", f"noise: {noise_of(told['noise_share'], n)}"]
    and_page = "" if told["page"] is None else f", with {told['page']} for whoever receives it"
    lines += [f"book: {told['booking']}", f"would be written to {told['file']}{and_page}"]
    for line in lines:
        screen.print(f"  {line}", soft_wrap=True)


def _show(made: Release, out: Path, page: Path | None, digest: str, as_json: bool) -> None:
    from dpsc.cli import render

    if as_json:
        terminal.print_json(render.release_json(made, out, digest) | {"page": None if page is None else str(page)})
        return
    render.show_release(made, out, digest)
    told = "" if page is None else f", and {page}, which tells whoever receives it what it is"
    terminal.console().print(
        f"\nWritten to {out}{told}. It is safe to share; the donors stay with you.", soft_wrap=True
    )


def _tell_the_custodian(units_alike: int) -> None:
    """Print what is private: it goes to stderr, only if it was asked for, and says whom it is for."""
    note = (
        f"{units_alike} units have labels that differ only in case, spaces or Unicode form. If two of them are one "
        "person, the guarantee does not hold for that person: correct the labels and start from the beginning"
        if units_alike
        else "no two units have labels that differ only in case, spaces or Unicode form"
    )
    typer.echo(f"PRIVATE, for the custodian only: {note}.", err=True)
