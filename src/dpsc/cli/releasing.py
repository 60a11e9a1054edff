"""What ``dpsc release`` does: add up the donors, book the guarantee, draw noise, write the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from dpsc.cli import common, screens
from dpsc.cli.booking import Account
from dpsc.cli.choices import Choices
from dpsc.cli.limits import require_small_delta, require_worth_having
from dpsc.data.dates import period_name
from dpsc.data.formats import in_file
from dpsc.gram.dask import DaskDonors
from dpsc.gram.release import Release
from dpsc.gram.sources import FileDonors


def run(
    donors: FileDonors | DaskDonors,
    chosen: Choices,
    account: Account,
    out: Path,
    *,
    reference: Path | None,
    n_is_public: bool,
    provenance: str,
    custodian_notes: bool,
    i_know: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Make a release, write it to ``out`` and show it; what may be refused is refused before anything is booked.

    The sum over the donors may carry a scale that was found with noise. It is private until it is booked: if the
    booking is refused, nobody sees it.
    """
    algorithm = chosen.algorithm
    with common.output_file(out, force) as output:
        with common.working("opening the donors"):
            with in_file(reference or ""):
                algorithm.reference_for(donors.times)
            expected = donors.rows_expected()
        with screens.progress("donors", expected) as advance:
            summed = algorithm.custodian_sum(donors, on_rows=advance)
        require_small_delta(algorithm.delta, summed.n, i_know)
        require_worth_having(algorithm, summed.n, len(summed.times), i_know)
        about = {"outcome": summed.outcome, "periods": len(summed.times)} | ({"n": summed.n} if n_is_public else {})
        with account.booking(algorithm, output=out, description=about):  # before the release exists
            made = algorithm.release(summed, provenance=provenance, outcome=chosen.outcome, dataset=account.payer)
            made.save(output.place)
            output.finish()
    _show(made, out, as_json)
    account.tell()
    if custodian_notes:
        _tell_the_custodian(donors.files.custodian_units_alike())


def rehearse(
    donors: FileDonors | DaskDonors,
    chosen: Choices,
    account: Account,
    out: Path,
    *,
    i_know: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Do everything that a release does except draw noise, book and write; say what it would be, from public numbers.

    The scale, for which a release may count donors with noise, is left out.
    """
    algorithm = chosen.algorithm
    common.require_free(out, force)
    with common.working("opening the donors"):
        algorithm.reference_for(donors.times)
        expected = donors.rows_expected()
    with screens.progress("donors", expected) as advance:
        summed = replace(algorithm, scale=algorithm.scale or 1.0, like=None).custodian_sum(donors, on_rows=advance)
    n, T = summed.n, len(summed.times)
    require_small_delta(algorithm.delta, n, i_know)
    require_worth_having(algorithm, n, T, i_know)
    first, last = period_name(summed.times[0]), period_name(summed.times[-1])
    promise, noise, booking = str(algorithm.guarantee), algorithm.noise_share(n, T), account.would_cost(algorithm)
    if as_json:
        common.print_json({
            "dry_run": True, "donors": n, "periods": T, "first_period": first, "last_period": last,
            "guarantee": promise, "noise_share": noise, "booking": booking, "file": str(out),
        })  # fmt: skip
        return
    screen = common.console()
    screen.print("DRY RUN: every donor was read; no noise was drawn, nothing was booked or written.", style="bold")
    screen.print(f"  {n:,} donors, {T} periods from {first} to {last}", soft_wrap=True)
    screen.print(f"  would promise: {promise}", soft_wrap=True)
    screen.print(f"  noise: its largest direction is {noise:.1%} of what all donors say together")
    screen.print(f"  book: {booking}", soft_wrap=True)
    screen.print(f"  would be written to {out}", soft_wrap=True)


def _show(made: Release, out: Path, as_json: bool) -> None:
    if as_json:
        common.print_json({"file": str(out), **screens.release_json(made)})
        return
    screens.show_release(made, out)
    common.console().print(f"\nWritten to {out}. It is safe to share; the donors stay with you.", soft_wrap=True)


def _tell_the_custodian(units_alike: int) -> None:
    """Print what is private: it goes to stderr, only if it was asked for, and says whom it is for."""
    note = (
        f"{units_alike} units have labels that differ only in case, spaces or Unicode form. If two of them are one "
        "person, the guarantee does not hold for that person: correct the labels and start from the beginning"
        if units_alike
        else "no two units have labels that differ only in case, spaces or Unicode form"
    )
    typer.echo(f"PRIVATE, for the custodian only: {note}.", err=True)
