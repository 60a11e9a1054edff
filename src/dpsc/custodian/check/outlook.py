"""What a release would be like, from public numbers only: the number of donors, the periods, the budget, the target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dpsc.analyst.plan import plan
from dpsc.custodian.gram.algorithm import GramRelease
from dpsc.errors import ParameterError
from dpsc.privacy.guarantee import best_guess
from dpsc.release.scale import share_for

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
        How many ways to move could be seen, of T - 1.
    guess : float
        How often an attacker who knows all other donors would guess right.
    finds_scale : bool
        Whether donors are enough to find out privately how much they move; otherwise a release asks.
    small_delta : bool
        Whether delta is below one over n.
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
    small_delta: bool
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
    def ready(self) -> bool:
        """Whether a release would be made and worth having."""
        return self.worth_having and self.finds_scale and self.small_delta


def outlook(
    n: int,
    T: int,
    epsilon: float,
    delta: float,
    *,
    T0: int | None = None,
    target: Any | None = None,
    averages: int = 1,
    like: bool = False,
) -> Outlook:
    """Say what a release of n donors over T periods would be like; no donor is touched.

    Parameters
    ----------
    n, T : int
    epsilon, delta : float
    T0 : int, optional
        Periods before the intervention; three quarters of all by default.
    target : Series or array, optional
        The target before the intervention, public. Errors are then in its units.
    averages : int
        How many units the target is the average of.
    like : bool
        Whether the release will be given a public series that moves about like a donor.

    Examples
    --------
    >>> outlook(5, 24, epsilon=1.0, delta=1e-6).worth_having
    False
    """
    algorithm = GramRelease(epsilon=epsilon, delta=delta)
    T0 = max(1, min(T - 1, round(0.75 * T))) if T0 is None else T0
    share, enough = algorithm.noise_share(n, T), True
    try:
        share_for(n, algorithm.mu, like)
    except ParameterError:
        enough = False
    known = Outlook(
        n, T, T0, epsilon, delta, share, algorithm.directions_kept(n, T), best_guess(epsilon, delta), enough,
        small_delta=delta < 1 / n,
    )  # fmt: skip
    if share >= 1 or T0 < 2 or T0 >= T:
        return known
    expected = plan(n, T0, T - T0, epsilon, delta, averages=averages, target=target, runs=_RUNS)
    row = expected.table.iloc[0]
    return replace(
        known, error=float(row["error"]), detectable=float(row["detectable"]), last_value=float(row["last_value"]),
        without_privacy=float(row["without_privacy"]), unit=expected.unit,
    )  # fmt: skip
