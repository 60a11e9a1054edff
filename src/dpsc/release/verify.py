"""Is a release file what it says it is? Checks of one file, each with what it can and cannot show.

Every check of the matrix holds for whatever donors: M = G + W, where G is a sum of n products of vectors of length at
most one and W the noise that the file claims, which is as good as Gaussian on this grid: s on the diagonal, s / sqrt(2)
above it, so that its distribution does not change under rotations. A genuine file breaks one with a probability of
at most 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.fft import dct
from scipy.special import chdtr, ndtri

from dpsc.release import describe
from dpsc.release.matrix import ReleasedMatrix
from dpsc.release.outcomes import ReleasedOutcomes
from dpsc.release.panel import ReleasedPanel
from dpsc.types import Array, one_thread

FALSE_ALARM = 1e-6
_ENOUGH = 1 / 3  # of the claimed noise, for a check that holds; what is proved of all of it is at most 0.6 to 0.9
_NOTHING = 0.01
_FEWEST_ENTRIES = 10  # of a block that is looked at: fewer say nothing
_Z = float(-ndtri(FALSE_ALARM / 2))

Verdict = Literal["holds", "cannot be told", "broken"]
MEANING: dict[Verdict, str] = {
    "holds": "the file shows it",
    "cannot be told": "the file alone shows neither this nor the opposite; that is usual for genuine files",
    "broken": "the file is not what it says, or has no guarantee; a check of its numbers calls a genuine "
    "file broken with a probability of at most 1 in 1,000,000",
}


@dataclass(frozen=True)
class Check:
    """One check: what was checked, what came out, and why."""

    what: str
    verdict: Verdict
    why: str


NOT_SHOWN = (
    "that every donor is in it once, and is a real one",
    "that bounds, periods, scale and exclusions were chosen without looking at donors",
    "that the noise was drawn from a good source, and only once: a custodian who drew until they liked it spent more",
    "that there is no other release of the same donors: ask for the ledger",
    "noise that was made smaller by less than the check of the noise can see",
    "who made the file: whoever edits it can make a new checksum, so get its SHA-256 by another way",
)


PANEL_NOT_SHOWN = (
    "that every person has one identifier, and is a real one; and that people of several sites are different",
    "that units, periods and bounds were chosen without looking at people",
    "that the noise is there and from a good source, and was drawn once: who drew until they liked it spent more",
    "that there is no other release of the same people: ask for the ledger",
    NOT_SHOWN[-1],
)


def panel_checks(panel: ReleasedPanel) -> list[Check]:
    """Return the checks of a panel that was read without complaint."""
    hidden = "usual for a table: nothing in it shows which part of a number is noise"
    claim = Check("claim", "cannot be told", panel.no_guarantee) if panel.publisher else _claim(panel)
    return [claim, Check("noise", "cannot be told", hidden)]


def summary(name: str, made: Sequence[Check]) -> str:
    """Say in one sentence what the checks of a file have shown, and what follows.

    Examples
    --------
    >>> noise = Check("noise", "cannot be told", "many donors hide it")
    >>> summary("it", [Check("file", "holds", "complete")])
    'Nothing in it contradicts what it says: 1 check holds, none is broken.'
    >>> summary("it", [noise, Check("claim", "broken", "no guarantee")])
    'it is BROKEN: 1 of 2 checks shows that it is not what it says, or has no guarantee (claim). Do not use it.'
    """
    named = {each: [check.what for check in made if check.verdict == each] for each in MEANING}
    if broken := named["broken"]:
        verb = "shows" if len(broken) == 1 else "show"
        why = f"{len(broken)} of {len(made)} checks {verb} that it is not what it says, or has no guarantee"
        return f"{name} is BROKEN: {why} ({', '.join(broken)}). Do not use it."
    holds = len(named["holds"])
    said = f"{holds} {'check holds' if holds == 1 else 'checks hold'}, none is broken"
    if hidden := named["cannot be told"]:
        said += f", and {len(hidden)} cannot be told from the file alone ({', '.join(hidden)})"
    return f"Nothing in {name} contradicts what it says: {said}."


def checks(release: describe.Released) -> list[Check]:
    """Return the checks of a release that was read without complaint: claim, number of donors, size, noise."""
    if isinstance(release, ReleasedOutcomes):
        each = [
            replace(check, what=f"{part.outcome}: {check.what}") for part in release.parts for check in checks(part)
        ]
        return [_claim(release), *each]
    with one_thread():
        return [_claim(release), _number_of_donors(release), _size(release), _noise(release)]


def _claim(release: describe.Released | ReleasedPanel) -> Check:
    """Say what the scales pay for; that they do was checked when the file was read."""
    what = "claim"
    if release.guarantee is None:
        named = release if isinstance(release, ReleasedPanel) else describe.parts_of(release)[0]
        return Check(what, "broken", f"NOT PRIVATE: {named.no_guarantee}")
    epsilon, delta = release.guarantee.epsilon, release.guarantee.delta
    why = f"the noise that the file states is enough for epsilon {epsilon:g} at delta {delta:g}"
    return Check(what, "holds", why)


def _number_of_donors(release: ReleasedMatrix) -> Check:
    """Compare the trace with n: vectors have length one, less what truncation takes off."""
    size, n = release.row_map.size, release.n
    trace, deviation = float(np.trace(release.noisy_moments)), release.noise_scale * math.sqrt(size)
    truncated = 2 * math.sqrt(size) * n / 2.0**release.grid_bits
    fits = n - truncated - _Z * deviation <= trace <= n + _Z * deviation
    why = f"the file says {n:,}; its numbers say {trace:,.0f}, with an error of up to about {2 * deviation:,.0f}"
    return Check("number of donors", "holds" if fits else "broken", why)


def _size(release: ReleasedMatrix) -> Check:
    """Compare the eigenvalues with what n donors and this noise can make.

    G has eigenvalues from 0 to n. Those of W are within E = s sqrt(2 size) on average (Sudakov-Fernique), and the
    largest changes by at most s per standard normal deviation of the noise, so it exceeds E + t with a probability of
    at most exp(-t^2 / (2 s^2)).
    """
    most = release.noise_in_donors + release.noise_scale * math.sqrt(2 * math.log(2 / FALSE_ALARM))
    values = np.linalg.eigvalsh(release.noisy_moments)
    fits = bool(values[0] >= -most and values[-1] <= release.n + most)
    possible = f"{release.n:,} donors and this noise give {-most:,.0f} to {release.n + most:,.0f}"
    why = f"its eigenvalues are {values[0]:,.0f} to {values[-1]:,.0f}; {possible}"
    return Check("matrix", "holds" if fits else "broken", why)


def _noise(release: ReleasedMatrix) -> Check:
    """Compare the noise that can be seen with the noise that is claimed, from both sides; in every segment."""
    parts = [release] if release.segments is None else [release.of(label) for label in release.segments.labels]
    chance, seen = min(_too_quiet(part) for part in parts)
    chance *= len(parts)
    if chance < FALSE_ALARM:
        why = (
            "noise is missing: where donors say least, entries vary "
            f"{seen:.2g} times as much as the claimed noise alone would"
        )
        return Check("noise", "broken", why)
    proved = min(1.0, *(_at_least(part) for part in parts))
    at_least = f"the file proves at least {100 * proved:.0f}% of the noise that it claims"
    if proved >= _ENOUGH:
        return Check("noise", "holds", f"{at_least}; no file can prove all of it")
    hidden = "usual for a genuine file: the donors' own movements hide the noise"
    if proved < _NOTHING:
        return Check(
            "noise", "cannot be told", f"{hidden}; the file proves neither that it is there nor that it is missing"
        )
    return Check("noise", "cannot be told", f"{hidden}; {at_least}, and nothing speaks against the rest")


def _too_quiet(release: ReleasedMatrix) -> tuple[float, float]:
    """Return how likely so little variation is with the noise that is claimed, at most, and how little it is.

    Where donors say least, between the roughest directions, entries above the diagonal are mostly noise. For a block
    of directions that is chosen beforehand, the sum of their squares over s^2 / 2 is chi-squared with as many degrees
    of freedom as there are entries, or larger, whatever G is: so a sum that is too small shows that noise is missing.
    Of blocks of all, a half, a quarter... of the directions the one that shows most counts, for all of them.
    """
    rough, found = _by_roughness(release), [(1.0, 1.0)]
    blocks = [m for m in (len(rough) // 2**k for k in range(12)) if m * (m - 1) // 2 >= _FEWEST_ENTRIES]
    for m in blocks:
        entries = rough[-m:, -m:][np.triu_indices(m, 1)] / (release.noise_scale / math.sqrt(2))
        squares, count = float(entries @ entries), len(entries)
        found.append((float(chdtr(count, squares)) * len(blocks), math.sqrt(squares / count)))
    return min(found)


def _at_least(release: ReleasedMatrix) -> float:
    """Return a lower bound of the noise that is there, over the noise that is claimed: what no donors can make.

    G has no negative eigenvalue, so those of M are no further below zero than those of W, one by one: the root of the
    sum of their squares is at most that of W. This has a mean of at most s sqrt(size (size + 1)) / 2 and changes by at
    most s per standard normal deviation of the noise; so noise of a smaller scale than this would hardly make M.
    """
    values, size = np.linalg.eigvalsh(release.noisy_moments), release.row_map.size
    below = math.sqrt(float(np.sum(values[values < 0] ** 2)))
    return below / (math.sqrt(size * (size + 1)) / 2 + math.sqrt(2 * math.log(1 / FALSE_ALARM))) / release.noise_scale


def _by_roughness(release: ReleasedMatrix) -> Array:
    """Return the matrix in directions from smooth to rough: a public rotation, which leaves the noise what it is."""
    M, kept = release.noisy_moments, release.row_map.directions
    if kept is not None and kept < release.T - 1:
        return M  # which is in this order
    first = 0 if kept is None else 1
    M = M.copy()
    M[:, first:] = dct(M[:, first:], norm="ortho", axis=1)
    M[first:, :] = dct(M[first:, :], norm="ortho", axis=0)
    return M
