"""A release in steps: choose, open the donors, add them up, book what it costs, draw noise, write.

What may be refused is refused before anything is booked: budgets that protect nobody, choices that contradict what
sites agreed on. The sum over the donors may carry a scale that was found with noise. It is private until it is booked:
if the booking is refused, nobody sees it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsc.custodian.gram.algorithm import GramRelease, require_same_donors
from dpsc.errors import Parameter, ParameterError, UnwiseError
from dpsc.periods.match import aligned, same
from dpsc.release.kernel import Smoothness
from dpsc.release.matrix import GRID_BITS
from dpsc.release.segments import Segments
from dpsc.release.settings import Settings, load
from dpsc.tables import reader, series
from dpsc.tables.formats import in_file
from dpsc.tables.spec import Missing, TableSpec
from dpsc.types import JsonObject, OnProgress, Times

if TYPE_CHECKING:
    from dpsc.analyst.release import Release
    from dpsc.analyst.releases import Releases
    from dpsc.custodian.custody.payer import Account, Output
    from dpsc.custodian.gram.algorithm import CustodianSum
    from dpsc.custodian.gram.dask import DaskDonors
    from dpsc.custodian.gram.sources import FileDonors
    from dpsc.privacy.guarantee import Guarantee

LARGEST_EPSILON = 20.0
FEWEST_DONORS = 100  # assumed where their number is not known: a delta that is too large for them is too large
EPSILON, DELTA = Parameter("epsilon"), Parameter("delta")


def require_reasonable(epsilon: float | None, i_know: bool) -> None:
    """Refuse an epsilon that protects little."""
    if epsilon is None:
        return
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ParameterError(f"{EPSILON} must be a number above 0, not {epsilon!r}.")
    if epsilon > 1e6:
        raise ParameterError(f"{EPSILON} must be at most a million.")
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
            f"noise is {share:.0%} of all donors together. Use more donors or a larger {EPSILON}; a plan "
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

    def booked(
        self, summed: CustodianSum, account: Account, output: Output, *, n_is_public: bool, provenance: str = ""
    ) -> Release:
        """Book what the release costs, make it and write it: see :meth:`Account.making`."""

        def make() -> Release:
            return self.algorithm.release(summed, provenance=provenance, outcome=self.outcome, dataset=account.payer)

        about = _described(summed.outcome, summed, n_is_public)
        return account.making(make, self.algorithm, output, description=about)


@dataclass(frozen=True)
class SeveralChoices:
    """How a release of several outcomes of the same donors is made, at the cost of one.

    Attributes
    ----------
    algorithm : GramRelease
        With the budget of all.
    each : mapping
        What is known of each outcome, and its share: as :meth:`GramRelease.release` takes it.
    parts : mapping
        How each is made, with its part of the budget.
    """

    algorithm: GramRelease
    each: Mapping[str, Mapping[str, Any]]
    parts: Mapping[str, Choices]

    @classmethod
    def of(cls, chosen: Mapping[str, Choices], shares: Sequence[float] | None) -> SeveralChoices:
        """Divide the budget of all between outcomes: equally, or in the proportions that are given in their order."""
        shares = [1.0] * len(chosen) if shares is None else shares
        if len(shares) != len(chosen):
            raise ParameterError(f"{Parameter('share')} is given {len(shares)} times for {len(chosen)} outcomes.")
        each = {
            name: {"share": share, **{what: getattr(one.algorithm, what) for what in ("scale", "like", "reference")}}
            for (name, one), share in zip(chosen.items(), shares, strict=True)
        }
        for name, known in each.items():
            for what in ("like", "reference"):
                if known[what] is not None and known[what].name != name:
                    raise ParameterError(
                        f"{Parameter(what)} needs a column for each of several outcomes, under its name; it has none "
                        f"for {name!r}."
                    )
        algorithm = replace(next(iter(chosen.values())).algorithm, scale=None, like=None, reference=None)
        parts = algorithm.divided(each, each)
        return cls(algorithm, each, {name: replace(one, algorithm=parts[name]) for name, one in chosen.items()})

    @property
    def promise(self) -> Guarantee | None:
        """What all outcomes promise together."""
        return self.algorithm.guarantee_of(part.algorithm for part in self.parts.values())

    def booked(
        self,
        summed: Mapping[str, CustodianSum],
        account: Account,
        output: Output,
        *,
        n_is_public: bool,
        provenance: str = "",
    ) -> Releases:
        """Book what all outcomes cost together, make them and write them: see :meth:`Account.making`."""

        def make() -> Releases:
            return self.algorithm.release(summed, each=self.each, provenance=provenance, dataset=account.payer)

        what: JsonObject = {
            "description": _described(", ".join(summed), next(iter(summed.values())), n_is_public),
            "promise": self.promise,
            "parameters": {"outcomes": ", ".join(f"{name} ({known['share']:g})" for name, known in self.each.items())},
        }
        return account.making(make, self.algorithm, output, **what)


def _described(outcome: str, summed: CustodianSum, n_is_public: bool) -> JsonObject:
    """Return what is public about the donors."""
    about = {"outcome": outcome, "periods": len(summed.times)}
    return about | {"n": summed.n} if n_is_public else about


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


def opened(donors: FileDonors | DaskDonors, chosen: Choices, reference: Path | None, on_progress: OnProgress) -> None:
    """Look whether the donors can be read and the reference fits."""
    with donors.files.watched(on_progress), in_file(reference or ""):
        chosen.algorithm.reference_for(donors.times)


def added_up(
    donors: FileDonors | DaskDonors, chosen: Choices, on_progress: OnProgress, *, i_know: bool
) -> CustodianSum:
    """Add up the donors. Private; nothing is booked yet."""
    algorithm = chosen.algorithm
    summed = algorithm.custodian_sum(donors, on_progress=on_progress)
    require_small_delta(algorithm.delta, summed.n, i_know)
    require_worth_having(algorithm, summed.n, len(summed.times), i_know)
    return summed


def each_added_up(
    donors: Mapping[str, FileDonors | DaskDonors],
    chosen: SeveralChoices,
    add_up: Callable[[str, FileDonors | DaskDonors, Choices], CustodianSum],
) -> dict[str, CustodianSum]:
    """Add up the donors for each outcome; refuse files that changed meanwhile, or donors that are others."""
    before = {name: _state_of(each) for name, each in donors.items()}
    sums = {name: add_up(name, each, chosen.parts[name]) for name, each in donors.items()}
    if {*before.values(), *map(_state_of, donors.values())} != {next(iter(before.values()))}:
        raise ParameterError("a file of the donors changed while outcome after outcome was read; begin again.")
    require_same_donors(sums)
    return sums


def _state_of(donors: FileDonors | DaskDonors) -> tuple[tuple[str, int, int], ...]:
    """Return what shows that files were changed: their names, sizes and times."""
    table = donors.files.table
    paths = [str(file.path) for file in table.files] if table.sheet is None else [str(donors.files.path)]
    states = ((path, os.stat(path)) for path in paths if os.path.isfile(path))  # not of databases and object stores
    return tuple((path, state.st_size, state.st_mtime_ns) for path, state in states)
