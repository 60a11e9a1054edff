"""The rehearsal: examine the donors and say what a release would be like. Private: for the custodian only.

What a release would be like comes from public numbers only: the number of donors, the periods, the budget, the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from dpsc.analyst.plan import WITHIN, plan
from dpsc.checks import small
from dpsc.custodian.check import lenient_reader
from dpsc.custodian.check.examine import CustodianExamination, custodian_examine
from dpsc.custodian.check.findings import Finding, in_order, small_segments
from dpsc.custodian.gram.algorithm import GramRelease
from dpsc.errors import Parameter, ParameterError
from dpsc.periods import calendar
from dpsc.periods.dates import period_name
from dpsc.periods.match import first_treated
from dpsc.privacy.guarantee import best_guess
from dpsc.release.kernel import Smoothness
from dpsc.release.scale import share_for
from dpsc.release.segments import READABLE
from dpsc.tables import series as public_series
from dpsc.tables.formats import in_file
from dpsc.tables.spec import TableSpec
from dpsc.types import JsonObject, TargetLike

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
        The noise over all donors together; nothing can be learned from 1 on.
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
    def ranges(self) -> dict[str, float]:
        """The ends of the ranges of what is likely, by the names that a plan's table has for them."""
        ends = {name: zip(("low", "high"), WITHIN[name], strict=True) for name in ("error", "detectable")}
        return {f"{name}_{end}": getattr(self, name) * factor for name in ends for end, factor in ends[name]}

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
    scale: float | None = None,
    smoothness: Smoothness = "high",
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
    scale, smoothness
        As the release will be given them.

    Examples
    --------
    >>> outlook(5, 24, 18, epsilon=1.0, delta=1e-6).worth_having
    False
    """
    algorithm, enough = GramRelease(epsilon=epsilon, delta=delta, scale=scale, smoothness=smoothness), scale is not None
    if not enough:
        with suppress(ParameterError):
            share_for(n, algorithm.mu, like)
            enough = True
    share, directions = algorithm.noise_share(n, T), algorithm.directions_kept(n, T)
    known = Outlook(n, T, T0, epsilon, delta, share, directions, best_guess(epsilon, delta), enough)
    if not known.worth_having or T0 < 2 or T0 >= T:
        return known
    expected = plan(n, T0, T - T0, epsilon, delta, averages=averages, smoothness=smoothness, target=target, runs=_RUNS)
    row = expected.table.iloc[0]
    errors = {name: float(row[name]) for name in ("error", "detectable", "last_value", "without_privacy")}
    return replace(known, unit=expected.unit, **errors)  # type: ignore[arg-type]


def problems_of(outlook: Outlook) -> list[Finding]:
    """Say why a release would be refused for its public numbers."""
    found = []
    if not outlook.worth_having:
        words = (
            f"nothing could be learned: with {outlook.n:,} donors and epsilon {outlook.epsilon:g} the noise is "
            f"{outlook.noise_share:.0%} of all donors together. Use more donors or a larger budget (dpsc plan)"
        )
        found.append(Finding("correct", "useless", 1, words))
    elif not outlook.finds_scale:
        words = (
            f"{outlook.n:,} donors are too few to find out privately how much a donor moves. Give "
            f"{Parameter('target', 'FILE')} {Parameter('treatment_time', 'PERIOD')}, or {Parameter('scale')} from "
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
    said : dict
        What was said of how donors move, by the names of options that a release takes.
    """

    seen: CustodianExamination
    outlook: Outlook | None = None
    said: JsonObject = field(default_factory=dict)


def rehearse(
    donors: Path,
    said: TableSpec,
    epsilon: float,
    delta: float,
    *,
    like: Path | None = None,
    like_before: str | None = None,
    scale: float | None = None,
    smoothness: Smoothness | None = None,
    reference: Path | None = None,
    before: int | None = None,
    averages: int = 1,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> Rehearsal:
    """Examine the donors and say what a release would be like. Private: for the custodian only.

    What is said of how donors move is as in :func:`dpsc.custodian.custody.steps.of_options`. The intervention comes
    in the period ``like_before``, or after so many periods; after three quarters of all if neither is said.
    """
    if before is not None and like_before is not None:
        raise ParameterError(f"give {Parameter('before')} or {Parameter('treatment_time')}, not both.")
    path = public_series.reference(reference, said)
    seen = custodian_examine(donors, said, on_rows, reference=path)
    make = GramRelease(
        epsilon=epsilon,
        delta=delta,
        scale=scale,
        smoothness=smoothness or "high",
        reference=path,
        like=public_series.like(like, like_before, seen.spec),
    )
    T = len(seen.periods)
    if not seen.units or T < 2:
        return Rehearsal(seen)
    times = calendar.calendar(seen.periods)
    with in_file(reference or ""):
        make.reference_for(times)
    if before is not None and before >= T:
        raise ParameterError(f"{Parameter('before', before)} leaves no period after the intervention: there are {T}.")
    T0 = before or three_quarters(T)
    if like_before is not None:
        T0 = first_treated(times, like_before, time_format=said.time_format)
        if T0 == 0:
            raise ParameterError(f"{Parameter('treatment_time', like_before)} leaves no period before it.")
    date = seen.periods[T0] if before is not None else like_before
    history = make.like if make.like is None or like_before is not None else _history(make.like, seen.periods[T0], T0)
    expected = outlook(
        seen.units,
        T,
        T0,
        epsilon,
        delta,
        target=history,
        averages=averages,
        like=like is not None,
        scale=scale,
        smoothness=make.smoothness,
    )
    found = [*seen.findings, *problems_of(expected)]
    if seen.division is not None:
        found += small_segments(seen.division, expected.smallest_segment, epsilon)
    seen = replace(seen, findings=in_order(found))
    moves = {
        "target": None if like is None else str(like),
        "treatment_time": None if like is None else date,
        "scale": scale,
        "smoothness": smoothness,
        "reference": None if reference is None else str(reference),
    }
    return Rehearsal(seen, expected, {name: value for name, value in moves.items() if value is not None})


def custodian_first_rows(donors: Path, said: TableSpec, rows: int = 5) -> list[list[str]]:
    """Return the names of the columns and the first rows, as they are written. Private: for the custodian only."""
    sample = lenient_reader.first_rows(lenient_reader.open_as_text(donors, said))
    columns = [[value or "" for value in column.slice(0, rows).to_pylist()] for column in sample.values()]
    return [list(sample), *map(list, zip(*columns, strict=True))]


def _history(series: pd.Series[float], first: str, T0: int) -> pd.Series[float]:
    """Return the target before the intervention: before the period of that name, or its first T0 values."""
    names = [period_name(period) for period in series.index]
    return series.iloc[: names.index(first) if first in names else T0]
