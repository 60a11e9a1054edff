"""What ``dpsc release`` does: add up the donors, book the guarantee, draw noise, write the file."""

from __future__ import annotations

from pathlib import Path

from dpsc.cli import common, screens
from dpsc.cli.booking import Account
from dpsc.cli.limits import require_small_delta
from dpsc.data import tables
from dpsc.data.formats import in_file
from dpsc.gram.algorithm import GramRelease
from dpsc.gram.kernel import Smoothness
from dpsc.gram.release import Release
from dpsc.gram.sources import DonorSource


def algorithm_of(
    epsilon: float,
    delta: float,
    smoothness: Smoothness | None,
    reference: Path | None,
    time_format: str | None,
    grid_bits: int,
) -> GramRelease:
    """Return the algorithm that the options describe."""
    path = None if reference is None else tables.series(reference, None, None, time_format)
    return GramRelease(
        epsilon=epsilon, delta=delta, smoothness=smoothness or "high", reference=path, grid_bits=grid_bits
    )


def run(
    donors: DonorSource,
    algorithm: GramRelease,
    account: Account,
    out: Path,
    *,
    reference: Path | None,
    n_is_public: bool,
    provenance: str,
    i_know: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Make a release, write it to ``out`` and show it; what may be refused is refused before anything is booked."""
    with common.output_file(out, force) as output:
        with common.working("opening the donors"):
            with in_file(reference or ""):
                algorithm.reference_for(donors.times)
            expected = donors.rows_expected()
        with screens.progress("donors", expected) as advance:
            exactly = algorithm.custodian_sum(donors, on_rows=advance)
        require_small_delta(algorithm.delta, exactly.n, i_know)
        about = {"outcome": exactly.outcome, "periods": len(exactly.times)} | ({"n": exactly.n} if n_is_public else {})
        with account.booking(algorithm, output=out, description=about):  # before noise is drawn
            made = algorithm.release(exactly, provenance=provenance)
            made.save(output.place)
            output.finish()
    _show(made, out, as_json)
    account.tell()


def _show(made: Release, out: Path, as_json: bool) -> None:
    if as_json:
        common.print_json({"file": str(out), **screens.release_json(made)})
        return
    screens.show_release(made, out)
    common.console().print(f"\nWritten to {out}. It is safe to share; the donors stay with you.", soft_wrap=True)
