"""How much a typical donor moves: given, guessed from a public series, or counted privately.

The release needs a public number of about this size, the constant that stands beside each row. Wrong by a factor of
two it costs little, by more it costs much, so a small part of the budget may go into a better one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.special import ndtr

from dpsc import checks
from dpsc.errors import DpscError, PanelError, Parameter, ParameterError
from dpsc.privacy import discrete, exact
from dpsc.privacy.source import Source
from dpsc.release.kernel import Kernel
from dpsc.release.rowmap import movement
from dpsc.types import Array, Integers, TargetLike, to_floats

ScaleFrom = Literal["given", "counted", "like and counted", "none"]

LEAST, MOST = -40, 40  # powers of two between which donors are counted; those beyond count at the ends
MOST_COUNTS = MOST - LEAST + 1
LARGEST_SCALE = 1e60  # and its inverse the smallest
COUNTED_AT_MOST = 50_000  # donors, unless the constant needs more; for the estimate more would not make it better
_DONORS_PER_NOISE = 9.0  # as many as the noise's standard deviation makes a count clear, given a guess ...
_DONORS_PER_NOISE_ALONE = 11.0  # ... and without one
_SMALLEST_SHARE = 0.005  # with many donors: the counts should outweigh a guess that is far off
_LARGEST_SHARE_GUESSED = 0.1
LARGEST_SHARE = 0.15
_GUESS = 0.6, 1.0  # donors move 2^0.6 times as much as a target that may be an average of some, give or take 2^1
_GUESS_WRONG = 0.02  # the probability that a guess says nothing
_SPREAD = 0.9  # of donors' movements, as a standard deviation in powers of two
_MISFIT = 0.05  # of a count, as a share of all donors: how wrong the spread may be


@dataclass(frozen=True)
class Scale:
    """The scale of a release and what it cost.

    Attributes
    ----------
    value : float
        How much a typical donor moves, as the length of its whitened movement.
    source : {"given", "counted", "like and counted", "none"}
        "given" as public knowledge; "counted" privately; "like and counted": a public series gave a first guess.
        "none" in releases of version 0.1.0, which have no scale.
    share : float
        Of the squared mu of the release's budget that the counts cost.
    level : float
        The usual size of the public series' values, two digits of it: donors of other units have another. 0 if it is
        not known.
    """

    value: float
    source: ScaleFrom
    share: float
    level: float = 0.0


NO_SCALE = Scale(0.0, "none", 0.0)


def guess_from(like: TargetLike, T: int, kernel: Kernel) -> float | None:
    """Return how much a public series would move over T periods; None if it does not move at all."""
    try:
        values = to_floats(like, "like")
    except PanelError as problem:
        raise ParameterError(problem.message) from None
    path = values[np.isfinite(values)]
    if values.ndim != 1 or len(path) < 2:
        raise ParameterError(f"{Parameter('like')} must be a series of at least 2 finite numbers.")
    size = movement(path, kernel) * math.sqrt((T - 1) / (len(path) - 1))
    least = max(1 / LARGEST_SCALE, 1e-12 * float(np.abs(path).max()))  # more than rounding leaves of a constant
    return size if least < size <= LARGEST_SCALE else None


def level_of(like: object) -> float:
    """Return the usual size of a public series' values: two digits of their mean absolute value."""
    values = to_floats(like, "like")
    level = float(np.abs(values[np.isfinite(values)]).mean())
    return float(f"{level:.2g}") if 1 / LARGEST_SCALE <= level <= LARGEST_SCALE else 0.0


def require_scale(scale: float) -> None:
    """Refuse a scale that is not a positive number of sensible size."""
    checks.finite_number("scale", scale, above=0)
    if not 1 / LARGEST_SCALE <= scale <= LARGEST_SCALE:
        raise ParameterError(f"{Parameter('scale')} must not be beyond {LARGEST_SCALE:g}.")


def share_for(n: int, mu: float, guessed: bool) -> float:
    """Return which share of mu squared to spend on counts of n donors, or say that n is too small.

    The counts have sensitivity sqrt(2), so the noise on each has standard deviation ``sqrt(2 / (share mu^2))``.
    """
    wanted = _DONORS_PER_NOISE if guessed else _DONORS_PER_NOISE_ALONE
    share = max(_SMALLEST_SHARE, 2 * (wanted / (min(n, COUNTED_AT_MOST) * mu)) ** 2)
    if guessed:
        return min(share, _LARGEST_SHARE_GUESSED)
    if share > LARGEST_SHARE:
        raise ParameterError(
            f"{n} donors are too few to find out privately, within this budget, how much a donor moves. Give "
            f"{Parameter('like')}, a public series that moves about as much as a donor, such as the target "
            f"before the intervention; or {Parameter('scale')}, how much such a series moves over the whole "
            "time, from public knowledge."
        )
    return share


def noisy_counts(counts: Integers, n: int, mu: float, bits: int, source: Source) -> Array:
    """Return counts of n donors, a public number, with discrete Gaussian noise.

    Private: the counts. One donor replaced moves from one count to another: two counts change by one, an l2
    sensitivity of sqrt(2). Counts are multiplied by 4^bits, so that the noise of scale ``sqrt(2) 4^bits / mu`` is on as
    fine a grid as that of the matrix. Every donor is in one count, whatever its values, so they add up to n for all
    data; if they did not, the counts would be wrong, and what they add up to would not be public.
    """
    if int(counts.sum()) != n:
        raise DpscError("donors were not counted once each; nothing was released. Please report this error in dpsc.")
    unit = 4.0**bits
    sigma = exact.safely_above(math.sqrt(2) * unit / mu)
    whole = counts * int(unit)
    return np.asarray(discrete.add(whole, "gaussian", sigma, source, largest=n * unit) / unit)


def estimated(counts: Array, n: int, mu: float, guess: float | None) -> float:
    """Return the scale from noisy counts of n donors, and a public guess if there is one. Pure post-processing.

    Movements are taken for log-normal with a known spread; the scale is their median, as likely too small as too large
    by what counts and guess say about it.
    """
    medians, expected = _expected_counts()
    variance = 2 / mu**2 + (_MISFIT * n) ** 2
    logs = (expected @ counts * n - n**2 * (expected**2).sum(axis=1) / 2) / variance
    if guess is not None:
        about, spread = _GUESS
        near = np.exp(-(((medians - math.log2(guess) - about) / spread) ** 2) / 2)
        prior = (1 - _GUESS_WRONG) * near / max(float(near.sum()), 1e-300) + _GUESS_WRONG / len(medians)
        logs = logs + np.log(prior)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    return float(2.0 ** np.interp(0.5, np.cumsum(weights) - weights / 2, medians))


@lru_cache(maxsize=1)
def _expected_counts() -> tuple[Array, Array]:
    """Return medians on a grid, in powers of two, and which share of donors each count then expects."""
    medians, lower = np.arange(LEAST, MOST + 1, 0.25), np.arange(LEAST, MOST + 1)
    ends = (lower - medians[:, np.newaxis]) / _SPREAD
    return medians, np.asarray(ndtr(ends + 1 / _SPREAD) - ndtr(ends))
