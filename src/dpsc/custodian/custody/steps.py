"""A release in steps: choose, open the donors, add them up, book what it costs, draw noise, write.

What may be refused is refused before anything is booked: budgets that protect nobody, choices that contradict what
sites agreed on. The sum over the donors may carry a scale that was found with noise. It is private until it is booked:
if the booking is refused, nobody sees it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpsc.custodian.donors.presence import Misfit, custodian_misfit
from dpsc.custodian.gram.algorithm import GramRelease
from dpsc.custodian.gram.exact_sum import Presence
from dpsc.errors import Parameter, ParameterError, UnwiseError
from dpsc.periods.match import aligned, same
from dpsc.release.kernel import Smoothness
from dpsc.release.matrix import GRID_BITS
from dpsc.release.segments import Segments
from dpsc.release.settings import Settings, load
from dpsc.tables import reader, series
from dpsc.tables.formats import in_file
from dpsc.tables.spec import Missing, TableSpec
from dpsc.types import Times

if TYPE_CHECKING:
    from dpsc.analyst.release import Release
    from dpsc.custodian.custody.payer import Account
    from dpsc.custodian.gram.algorithm import CustodianSum
    from dpsc.custodian.gram.dask import DaskDonors
    from dpsc.custodian.gram.exact_sum import OnRows
    from dpsc.custodian.gram.sources import FileDonors

LARGEST_EPSILON = 20.0
FEWEST_DONORS = 100  # assumed where their number is not known: a delta that is too large for them is too large
_LOOKED_AT = 100_000  # donors, for periods that nobody has
EPSILON, DELTA = Parameter("epsilon"), Parameter("delta")


def require_reasonable(epsilon: float | None, i_know: bool) -> None:
    """Refuse an epsilon that protects little."""
    if epsilon is None:
        return
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ParameterError(f"{EPSILON} must be a number above 0, not {epsilon!r}.")
    if epsilon > 1e6:
        raise ParameterError(f"{EPSILON} above a million is no budget at all.")
    if epsilon > LARGEST_EPSILON and not i_know:
        raise UnwiseError(
            f"{EPSILON} {epsilon:g} is above {LARGEST_EPSILON:g} and protects nobody: it lets the odds of any guess "
            f"about a donor change by a factor of e^{epsilon:g}. Budgets around 1 are usual."
        )


def require_small_delta(delta: float | None, n: int | None, i_know: bool, who: str = "donors") -> None:
    """Refuse a delta that is not below 1 / n: publishing one donor at random would satisfy it."""
    if delta is None or delta < 1 / (n or FEWEST_DONORS) or i_know:
        return
    why = (
        f"is too large: it should be well below one over the number of {who}."
        if n is None
        else f"is not below one over the number of donors, {1 / n:.2g}: a mechanism that publishes one donor at random "
        "would satisfy it."
    )
    raise UnwiseError(f"{DELTA} {delta:g} {why} Use 1e-6 or less.")


def require_worth_having(algorithm: GramRelease, n: int, T: int, i_know: bool) -> None:
    """Refuse a release from which nothing could be learned, before it is booked; n is public."""
    share = algorithm.noise_share(n, T)
    if share >= 1 and not i_know:
        raise UnwiseError(
            f"nothing could be learned from this release: with {n:,} donors and {EPSILON} {algorithm.epsilon:g} its "
            f"noise is {share:.0%} of what all donors say together. Use more donors or a larger {EPSILON}; a plan "
            "tells how large. Nothing was booked or written."
        )


@dataclass(frozen=True)
class Choices:
    """How a release is made.

    Attributes
    ----------
    algorithm : GramRelease
    periods : Index or None
        The declared periods.
    outcome : str or None
        The name under which the outcome is published; that of its column if None.
    missing : str or None
        The rule for missing cells.
    segments : Segments or None
        The declared ones.
    """

    algorithm: GramRelease
    periods: Times | None
    outcome: str | None
    missing: Missing | None
    segments: Segments | None = None


def of_options(
    said: TableSpec,
    *,
    epsilon: float | None,
    delta: float | None,
    settings: Path | None = None,
    smoothness: Smoothness | None = None,
    reference: Path | None = None,
    scale: float | None = None,
    like: Path | None = None,
    like_before: str | None = None,
    grid_bits: int | None = None,
) -> Choices:
    """Return what was said of a release and of the donors' table; None stands for what was not said."""
    path = series.reference(reference, said)
    similar = series.like(like, like_before, said)
    index = None if said.periods is None else reader.typed_periods(said.periods, path, said.time_format)
    segments = Segments.declared(said.by, said.labels)
    if settings is None:
        if epsilon is None or delta is None:
            it = Parameter("epsilon" if epsilon is None else "delta")
            raise ParameterError(f"{it} is needed (or a {Parameter('settings', 'FILE')} that has it).")
        algorithm = GramRelease(
            epsilon=epsilon,
            delta=delta,
            smoothness=smoothness or "high",
            reference=path,
            scale=scale,
            like=similar,
            grid_bits=GRID_BITS if grid_bits is None else grid_bits,
        )
        return Choices(algorithm, index, None, said.missing, segments)
    agreed = load(settings)
    agree = {
        "smoothness": smoothness in (None, agreed.smoothness),
        "scale": scale in (None, agreed.scale),
        "like": similar is None,
        "grid_bits": grid_bits in (None, agreed.grid_bits),
        "reference": path is None or _same_path(path, agreed),
        "periods": index is None or agreed.periods is None or same(index, agreed.periods),
        "by": segments in (None, agreed.segments),
    }
    for name, agrees in agree.items():
        if not agrees:
            raise ParameterError(
                f"{Parameter(name)} contradicts {settings}, which sites have agreed on: their releases would "
                "not add up. Leave it out."
            )
    algorithm = GramRelease.from_settings(agreed, epsilon=epsilon, delta=delta)
    periods_of_all = index if agreed.periods is None else agreed.periods
    return Choices(algorithm, periods_of_all, agreed.outcome, said.missing or agreed.missing, agreed.segments)


def _same_path(path: pd.Series[float], agreed: Settings) -> bool:
    given = path if agreed.periods is None else aligned(path, agreed.periods)[0]
    return agreed.reference is not None and np.array_equal(given.to_numpy(), agreed.reference)


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


def custodian_empty_periods(donors: FileDonors | DaskDonors) -> str | None:
    """Say that most of the declared periods have no donor, and which periods would fit; None if they fit. Private."""
    if donors.periods_from != "declared":
        return None
    files = donors.files
    if files.completion.missing != "kernel":  # another rule fills the cells that are looked for
        files = replace(files, spec=replace(files.spec, missing="kernel"), bounds=None)
    have, _ = replace(donors, files=files).add_up(Presence(len(files.times)), lambda rows: None, _LOOKED_AT)
    return in_words(custodian_misfit(have, files.times))


def in_words(misfit: Misfit | None) -> str | None:
    """Return what is wrong with declared periods as one sentence after the other."""
    if misfit is None or misfit.fitting is None:
        return None if misfit is None else f"{misfit.words}; dpsc check shows more"
    return f"{misfit.words}. These fit the rows: {Parameter('periods', misfit.fitting)}"


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
