"""The rehearsal: examine the donors and say what a release would be like. Private: for the custodian only.

What a release would be like comes from public numbers only: the number of donors, the periods, the budget, the target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from dpsc.analyst.plan import plan
from dpsc.checks import small
from dpsc.custodian.check import lenient_reader
from dpsc.custodian.check.examine import CustodianExamination, custodian_examine
from dpsc.custodian.check.findings import Finding, in_order, small_segments
from dpsc.custodian.gram.algorithm import GramRelease
from dpsc.errors import Parameter, ParameterError
from dpsc.periods.dates import period_name
from dpsc.privacy.guarantee import best_guess
from dpsc.release.scale import share_for
from dpsc.release.segments import READABLE
from dpsc.tables import series as public_series
from dpsc.tables.spec import TableSpec
from dpsc.types import TargetLike

_RUNS = 6  # simulated panels: a first look, for which dpsc plan has more


@dataclass(frozen=True, eq=False)
class Outlook:
    """What to expect from a release.

    Attributes
    ----------
    n, T, T0 : int
        Donors, periods, and periods before the intervention.
    epsilon, delta : float
    noise_share : float
        The noise over what all donors say together; nothing can be learned from 1 on.
    directions : int
        How many patterns of movement could be seen, of T - 1.
    guess : float
        How often an attacker who knows all other donors would guess right.
    finds_scale : bool
        Whether donors are enough to find out privately how much they move; otherwise a release asks.
    error, detectable, without_privacy, last_value : float
        As in :class:`dpsc.analyst.plan.Plan`; not a number if the release is useless.
    unit : str
        Of these, in words.
    """

    n: int
    T: int
    T0: int
    epsilon: float
    delta: float
    noise_share: float
    directions: int
    guess: float
    finds_scale: bool
    error: float = float("nan")
    detectable: float = float("nan")
    without_privacy: float = float("nan")
    last_value: float = float("nan")
    unit: str = ""

    @property
    def worth_having(self) -> bool:
        """Whether anything could be learned."""
        return self.noise_share < 1

    @property
    def smallest_segment(self) -> int:
        """How many donors a segment needs, about, to be read by itself."""
        return math.ceil(READABLE * self.noise_share * self.n)

    @property
    def small_delta(self) -> bool:
        """Whether delta is below one over n."""
        return self.delta < 1 / self.n


def three_quarters(T: int) -> int:
    """Return how many periods are taken to be before the intervention, as long as nothing is said."""
    return max(1, min(T - 1, round(0.75 * T)))


def outlook(
    n: int,
    T: int,
    T0: int,
    epsilon: float,
    delta: float,
    *,
    target: TargetLike | None = None,
    averages: int = 1,
    like: bool = False,
) -> Outlook:
    """Say what a release of n donors over T periods, T0 before the intervention, would be like; no donor is touched.

    Parameters
    ----------
    n, T, T0 : int
    epsilon, delta : float
    target : Series or array, optional
        The target before the intervention, public. Errors are then in its units.
    averages : int
        How many units the target is the average of.
    like : bool
        Whether the release will be given a public series that moves about like a donor.

    Examples
    --------
    >>> outlook(5, 24, 18, epsilon=1.0, delta=1e-6).worth_having
    False
    """
    algorithm, enough = GramRelease(epsilon=epsilon, delta=delta), True
    try:
        share_for(n, algorithm.mu, like)
    except ParameterError:
        enough = False
    share, directions = algorithm.noise_share(n, T), algorithm.directions_kept(n, T)
    known = Outlook(n, T, T0, epsilon, delta, share, directions, best_guess(epsilon, delta), enough)
    if not known.worth_having or T0 < 2 or T0 >= T:
        return known
    expected = plan(n, T0, T - T0, epsilon, delta, averages=averages, target=target, runs=_RUNS)
    row = expected.table.iloc[0]
    errors = {name: float(row[name]) for name in ("error", "detectable", "last_value", "without_privacy")}
    return replace(known, unit=expected.unit, **errors)  # type: ignore[arg-type]


def problems_of(outlook: Outlook) -> list[Finding]:
    """Say why a release would be refused for its public numbers."""
    found = []
    if not outlook.worth_having:
        words = (
            f"nothing could be learned: with {outlook.n:,} donors and epsilon {outlook.epsilon:g} the noise is "
            f"{outlook.noise_share:.0%} of what all donors say together. Use more donors or a larger budget (dpsc plan)"
        )
        found.append(Finding("correct", "useless", 1, words))
    elif not outlook.finds_scale:
        words = (
            f"{outlook.n:,} donors are too few to find out privately how much a donor moves. Give "
            f"{Parameter('target')} and {Parameter('before')} here, or add {Parameter('scale')} to the release, from "
            "public knowledge"
        )
        found.append(Finding("correct", "scale", 1, words))
    if not outlook.small_delta:
        words = f"delta {small(outlook.delta)} is not below one over the number of donors; use 1e-6 or less"
        found.append(Finding("correct", "delta", 1, words))
    return found


@dataclass(frozen=True, repr=False)
class Rehearsal:
    """What was seen, and what a release would be like. Private: for the custodian only.

    Attributes
    ----------
    seen : CustodianExamination
    outlook : Outlook or None
        None if there is nothing to release.
    like_before : str or None
        The first treated period of the target, if it is known; what is before it says how much a donor moves.
    """

    seen: CustodianExamination
    outlook: Outlook | None = None
    like_before: str | None = None


def rehearse(
    donors: Path,
    said: TableSpec,
    epsilon: float,
    delta: float,
    target: Path | None = None,
    before: int | None = None,
    averages: int = 1,
) -> Rehearsal:
    """Examine the donors and say what a release would be like. Private: for the custodian only."""
    seen = custodian_examine(donors, said)
    T = len(seen.periods)
    if not seen.units or T < 2:
        return Rehearsal(seen)
    if before is not None and before >= T:
        raise ParameterError(f"{Parameter('before', before)} leaves no period after the intervention: there are {T}.")
    T0 = before or three_quarters(T)
    like = target is not None and before is not None
    history = None if target is None else _history(target, seen.periods[T0], T0, said)
    expected = outlook(seen.units, T, T0, epsilon, delta, target=history, averages=averages, like=like)
    found = [*seen.findings, *problems_of(expected)]
    if seen.division is not None:
        found += small_segments(seen.division, expected.smallest_segment, epsilon)
    seen = replace(seen, findings=in_order(found))
    return Rehearsal(seen, expected, seen.periods[T0] if like else None)


def custodian_first_rows(donors: Path, said: TableSpec, rows: int = 5) -> list[list[str]]:
    """Return the names of the columns and the first rows, as they are written. Private: for the custodian only."""
    sample = lenient_reader.first_rows(lenient_reader.open_as_text(donors, said))
    columns = [[value or "" for value in column.slice(0, rows).to_pylist()] for column in sample.values()]
    return [list(sample), *map(list, zip(*columns, strict=True))]


def _history(target: Path, first: str, T0: int, said: TableSpec) -> pd.Series[float]:
    """Return the target before the intervention: before the period of that name, or its first T0 values."""
    series = public_series.like(target, None, said)
    assert series is not None
    names = [period_name(period) for period in series.index]
    return series.iloc[: names.index(first) if first in names else T0]
