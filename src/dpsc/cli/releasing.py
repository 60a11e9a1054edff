"""What ``dpsc release`` does: add up the donors, book the guarantee, draw noise, write the file."""

from __future__ import annotations

from pathlib import Path

import typer

from dpsc.cli import common, screens
from dpsc.cli.booking import Account
from dpsc.cli.choices import Choices
from dpsc.cli.limits import require_small_delta
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
        about = {"outcome": summed.outcome, "periods": len(summed.times)} | ({"n": summed.n} if n_is_public else {})
        with account.booking(algorithm, output=out, description=about):  # before the release exists
            made = algorithm.release(summed, provenance=provenance, outcome=chosen.outcome, dataset=account.payer)
            made.save(output.place)
            output.finish()
    _show(made, out, as_json)
    if donors.files.as_understood is not None:
        typer.echo(f"\n{donors.files.path} was read with {donors.files.as_understood}.", err=True)
    account.tell()
    if custodian_notes:
        _tell_the_custodian(donors.files.custodian_units_alike())


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
