"""What ``dpsc release`` does: add up the donors, book the guarantee, draw noise, write the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from dpsc import files
from dpsc.analyst.release import Release
from dpsc.cli import render, terminal
from dpsc.cli.payer import Account
from dpsc.custodian.custody import run as steps
from dpsc.custodian.custody.options import Choices, require_small_delta, require_worth_having
from dpsc.custodian.gram.dask import DaskDonors
from dpsc.custodian.gram.sources import FileDonors
from dpsc.periods.dates import period_name
from dpsc.release import describe
from dpsc.release.file_format import sha256


def run(
    donors: FileDonors | DaskDonors,
    chosen: Choices,
    account: Account,
    out: Path,
    page: Path | None,
    *,
    reference: Path | None,
    n_is_public: bool,
    provenance: str,
    custodian_notes: bool,
    i_know: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Make a release, write it and the page that goes out with it, and show it."""
    if page is not None:
        terminal.require_free(page, force)
    with terminal.output_file(out, force) as output:
        with terminal.working("opening the donors"):
            expected = steps.opened(donors, chosen, reference)
        with render.progress("donors", expected) as advance:
            summed = steps.added_up(donors, chosen, advance, i_know=i_know)
        made = steps.booked(
            summed, chosen, account, out, output.place, output.finish, n_is_public=n_is_public, provenance=provenance
        )
    digest = sha256(out)
    page = _page(made, out, page, digest)
    _show(made, out, page, digest, as_json)
    if donors.files.as_understood is not None:
        typer.echo(f"\n{donors.files.path} was read with {donors.files.as_understood}.", err=True)
    account.tell()
    if custodian_notes:
        _tell_the_custodian(donors.files.custodian_units_alike())


def _page(made: Release, out: Path, page: Path | None, digest: str) -> Path | None:
    """Write the page that goes out with a release. The release is whole and paid for, whatever becomes of its page."""
    if page is None:
        return None
    try:
        files.write(page, describe.page(made, out.name, digest))
    except Exception:
        typer.echo(f"The page could not be written. The release is whole: dpsc inspect {out} --page {page}", err=True)
        return None
    return page


def rehearse(
    donors: FileDonors | DaskDonors,
    chosen: Choices,
    account: Account,
    out: Path,
    page: Path | None,
    *,
    i_know: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Do everything that a release does except draw noise, book and write; say what it would be, from public numbers.

    The scale, for which a release may count donors with noise, is left out.
    """
    algorithm = chosen.algorithm
    for place in (out, page):
        if place is not None:
            terminal.require_free(place, force)
    with terminal.working("opening the donors"):
        algorithm.reference_for(donors.times)
        expected = donors.rows_expected()
    with render.progress("donors", expected) as advance:
        summed = replace(algorithm, scale=algorithm.scale or 1.0, like=None).custodian_sum(donors, on_rows=advance)
    n, T = summed.n, len(summed.times)
    require_small_delta(algorithm.delta, n, i_know)
    require_worth_having(algorithm, n, T, i_know)
    first, last = period_name(summed.times[0]), period_name(summed.times[-1])
    noise = algorithm.noise_share(n, T, algorithm.scale_share(n, summed.times))
    promise, booking = str(algorithm.guarantee), account.would_cost(algorithm)
    if as_json:
        terminal.print_json({
            "dry_run": True, "donors": n, "periods": T, "first_period": first, "last_period": last,
            "guarantee": promise, "noise_share": noise, "booking": booking, "file": str(out),
            "page": None if page is None else str(page),
        })  # fmt: skip
        return
    screen = terminal.console()
    screen.print("DRY RUN: every donor was read; no noise was drawn, nothing was booked or written.", style="bold")
    screen.print(f"  {n:,} donors, {T} periods from {first} to {last}", soft_wrap=True)
    if donors.files.as_understood is not None:
        screen.print(f"  read with {donors.files.as_understood}", soft_wrap=True)
    screen.print(f"  would promise: {promise}", soft_wrap=True)
    screen.print(f"  noise: {describe.noise_of(noise, n)}", soft_wrap=True)
    screen.print(f"  book: {booking}", soft_wrap=True)
    and_page = "" if page is None else f", with {page} for whoever receives it"
    screen.print(f"  would be written to {out}{and_page}", soft_wrap=True)


def _show(made: Release, out: Path, page: Path | None, digest: str, as_json: bool) -> None:
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
