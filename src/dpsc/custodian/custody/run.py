"""The steps of a release: open the donors, add them up, book what it costs, draw noise, write.

What may be refused is refused before anything is booked. The sum over the donors may carry a scale that was found with
noise. It is private until it is booked: if the booking is refused, nobody sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dpsc.analyst.release import Release
from dpsc.custodian.custody.options import Choices, require_small_delta, require_worth_having
from dpsc.custodian.custody.payer import Account
from dpsc.custodian.gram.algorithm import CustodianSum
from dpsc.custodian.gram.dask import DaskDonors
from dpsc.custodian.gram.exact_sum import OnRows
from dpsc.custodian.gram.sources import FileDonors
from dpsc.tables.formats import in_file


def opened(donors: FileDonors | DaskDonors, chosen: Choices, reference: Path | None) -> int | None:
    """Look whether the donors can be read and the reference fits; return how many there are, if that is known."""
    with in_file(reference or ""):
        chosen.algorithm.reference_for(donors.times)
    return donors.rows_expected()


def added_up(donors: FileDonors | DaskDonors, chosen: Choices, on_rows: OnRows, *, i_know: bool) -> CustodianSum:
    """Add up the donors. Private; nothing is booked yet."""
    algorithm = chosen.algorithm
    summed = algorithm.custodian_sum(donors, on_rows=on_rows)
    require_small_delta(algorithm.delta, summed.n, i_know)
    require_worth_having(algorithm, summed.n, len(summed.times), i_know)
    return summed


def booked(
    summed: CustodianSum,
    chosen: Choices,
    account: Account,
    out: Path,
    place: Path,
    finish: Callable[[], None],
    *,
    n_is_public: bool,
    provenance: str = "",
) -> Release:
    """Book what the release costs, make it, write it to ``place``, and let ``finish`` move it to ``out``."""
    about = {"outcome": summed.outcome, "periods": len(summed.times)} | ({"n": summed.n} if n_is_public else {})
    with account.booking(chosen.algorithm, output=out, description=about):  # before the release exists
        made = chosen.algorithm.release(summed, provenance=provenance, outcome=chosen.outcome, dataset=account.payer)
        made.save(place)
        finish()
    return made
