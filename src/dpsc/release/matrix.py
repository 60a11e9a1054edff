"""What a release holds: a noisy integer matrix and everything public about it. Knows no raw data and no target.

It also says what may be in a release, for those that are made here, merged, or read from a file of unknown origin.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Self

import numpy as np

from dpsc.checks import LONGEST_NAME, LONGEST_TEXT, is_printable
from dpsc.errors import Parameter, ParameterError, ReleaseError
from dpsc.privacy.accounting import Loss
from dpsc.privacy.guarantee import REPLACE_ONE, Guarantee, rests_on_its_publisher
from dpsc.privacy.rounded_gaussian import discrete_gaussian_budget, discrete_gaussian_slack
from dpsc.release.kernel import Kernel
from dpsc.release.population import Population
from dpsc.release.rowmap import RowMap
from dpsc.release.scale import MOST_COUNTS, Scale
from dpsc.release.segments import LABELS, READABLE, PoolLike, Segments
from dpsc.types import Array, Integers, Times, one_thread
from dpsc.version import __version__

_LONGEST_MERGED = 100_000  # characters of what a merged release has from all sites
GRID_BITS = 18  # entries of unit rows to four parts in a million; leaves room for sixty million donors
LARGEST_T = 2000
LARGEST_NUMBER = 1e100  # of a reference path: its square is still a number
MOST_COORDINATES = LARGEST_T * (LARGEST_T + 1) // 2 + MOST_COUNTS  # numbers that a release adds noise to


def budget_mu(epsilon: float, delta: float, grid_bits: int) -> float:
    """Return the sensitivity in standard deviations of the noise that a budget pays for."""
    loss = discrete_gaussian_budget(epsilon, delta, MOST_COORDINATES, 4.0**grid_bits)
    return math.sqrt(loss.mu_squared + 2 * loss.rho)


def require_room(segments: Segments | None, T: int) -> None:
    """Refuse more segments than there are numbers that a budget pays the slack for: public numbers only."""
    entries = T * (T + 1) // 2
    if segments is not None and len(segments.labels) * entries + MOST_COUNTS > MOST_COORDINATES:
        raise ParameterError(
            f"{len(segments.labels)} segments of {T} periods are too many for a release, which has room for "
            f"{(MOST_COORDINATES - MOST_COUNTS) // entries}; declare fewer {LABELS}, or coarser periods."
        )


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedMatrix:
    """The fields of :class:`dpsc.Release`, which describes them, and the moments estimated from them."""

    matrix: Integers
    n: int
    times: Times
    outcome: str
    row_map: RowMap
    scale: Scale
    diagonal_scale: float
    off_diagonal_scale: float
    guarantee: Guarantee | None
    no_guarantee: str = ""
    sites: int = 1
    provenance: str = ""
    periods_from: str = ""
    identities: tuple[str, ...] = field(default_factory=lambda: (secrets.token_hex(16),))
    datasets: tuple[str, ...] = ()
    segments: Segments | None = None
    pool: tuple[float, ...] = ()  # how often each segment counts in answers; once each if it is empty
    part_of: str = ""  # what it costs beside other outcomes of one release, in words; not stored
    unpaid: bool = False  # nobody said which data set of a ledger pays for it; not stored
    made_by: str = f"dpsc {__version__}"
    made_on: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d"))

    def __post_init__(self) -> None:
        promise = self.guarantee
        require_one_of(promise, self.no_guarantee)
        require_text(self.provenance, _LONGEST_MERGED)
        require_text("" if promise is None else promise.basis, _LONGEST_MERGED)
        names = self.no_guarantee, self.periods_from, self.made_by, self.made_on, *self.identities, *self.datasets
        for text in (*names, "" if promise is None else promise.adjacency):
            require_text(text)
        require_public_labels(self.outcome, self.times)
        blocks = () if self.segments is None else (len(self.segments.labels),)
        if self.matrix.shape != (*blocks, self.row_map.size, self.row_map.size):
            raise ReleaseError("the matrices do not fit the periods and segments.")
        if promise is not None:
            self._require_paid(promise)

    def _require_paid(self, guarantee: Guarantee) -> None:
        """Refuse a claim that the noise does not pay for.

        One site: replacing a row changes the integers by a symmetric D with ``||D||_F^2 <= 2 * 16^k``, k = grid_bits.
        Discrete Gaussian noise of scales d on the diagonal and o above it has ``mu^2 = sum_i D_ii^2 / d^2 + sum_{i<j}
        D_ij^2 / o^2 <= ||D||_F^2 / s^2 <= 2 * 16^k / s^2`` with s = min(d, sqrt(2) o), and rows that are orthogonal
        attain it, in one segment or in two (D is all matrices together): a claim of mu^2, less the share for the scale,
        needs ``mu^2 >= 2 * 16^k / s^2``, and its slack must be there. (A claim of rho counts as mu^2 = 2 rho.)
        Merged: site i has ``s_i^2 >= 2 * 16^k / mu_i^2``, the claim is the largest of the mu_i, and variances add up,
        so ``s^2 >= sum_i s_i^2 >= sites * 2 * 16^k / mu^2``, at any depth of merging. That is necessary only: a sum
        does not tell how the noise was shared among its sites. (Scales are made larger by 1e-12, more than rounding
        takes away.)
        """
        if guarantee.adjacency != REPLACE_ONE:
            raise ReleaseError(
                f"the noise of a release protects neighbours that {REPLACE_ONE}, and the file claims something else."
            )
        if not math.isclose(self.diagonal_scale, math.sqrt(2) * self.off_diagonal_scale, rel_tol=1e-9):
            raise ReleaseError("the noise scales do not belong together: diagonal and off-diagonal differ by sqrt(2).")
        s = min(self.diagonal_scale, math.sqrt(2) * self.off_diagonal_scale) / 4.0**self.grid_bits
        loss = guarantee.loss
        claimed = (loss.mu_squared + 2 * loss.rho) * (1 - self.scale.share)
        if not claimed * s**2 >= 2 * self.sites or not self._slack_is_charged(loss):
            raise ReleaseError("the noise scales are too small for the guarantee: there is less noise than it claims.")

    def _slack_is_charged(self, loss: Loss) -> bool:
        """Return whether a Gaussian claim includes what discrete noise may cost beyond it."""
        if loss.mu_squared == 0:
            return True
        size, counts = self.row_map.size, MOST_COUNTS if self.scale.share > 0 else 0
        coordinates = len(self.blocks) * size * (size + 1) // 2 + counts
        slack = discrete_gaussian_slack(math.sqrt(loss.mu_squared), coordinates, 4.0**self.grid_bits)
        return loss.rest_epsilon >= slack[0] and loss.rest_delta >= slack[1]

    def __repr__(self) -> str:
        promise = self.guarantee if self.guarantee is not None else f"no guarantee: {self.no_guarantee}"
        return f"<{type(self).__name__}: {self.n} donors × {self.T} periods, {promise}>"

    @property
    def T(self) -> int:
        """The number of periods."""
        return len(self.times)

    @property
    def kernel(self) -> Kernel:
        """How rows were whitened."""
        return self.row_map.kernel

    @property
    def reference(self) -> Array | None:
        """The path that was subtracted from every row."""
        return self.row_map.reference

    @property
    def grid_bits(self) -> int:
        """The resolution of the integers."""
        return self.row_map.grid_bits

    @property
    def blocks(self) -> Integers:
        """The matrices of all segments, or the only one."""
        return self.matrix.reshape(-1, *self.matrix.shape[-2:])

    @property
    def weights(self) -> Array:
        """How often each matrix counts in answers."""
        return np.array(self.pool or (1.0,) * len(self.blocks))

    @property
    def noise_scale(self) -> float:
        """The standard deviation of the noise on a diagonal entry, for vectors of length one: the trace is n."""
        return self.diagonal_scale / 4.0**self.grid_bits * float(np.linalg.norm(self.weights))

    @property
    def noise_in_donors(self) -> float:
        """The size of the largest direction of the noise, as a number of donors who all move in this direction."""
        return self.noise_scale * math.sqrt(2 * self.row_map.size)

    @property
    def noisy_moments(self) -> Array:
        """The noisy second-moment matrix of the vectors of length one, in real numbers."""
        if self.segments is None:
            return np.asarray(self.matrix / 4.0**self.grid_bits)
        return np.asarray(np.tensordot(self.weights, self.blocks / 4.0**self.grid_bits, axes=1))

    @cached_property
    def sizes(self) -> Array:
        """About how many donors each segment has, at least one: their traces, made to add up to n.

        Their number is private, and so is a trace without its noise; n is public. The error has the standard deviation
        :attr:`sizes_error`.
        """
        traces = np.trace(self.blocks / 4.0**self.grid_bits, axis1=1, axis2=2)
        return np.asarray(np.maximum(traces + (self.n - traces.sum()) / len(traces), 1.0))

    @property
    def sizes_error(self) -> float:
        """The standard deviation of the noise in each of the sizes."""
        return self.diagonal_scale / 4.0**self.grid_bits * math.sqrt(self.row_map.size * (1 - 1 / len(self.blocks)))

    @property
    def donors(self) -> float:
        """How many donors answers are drawn from: n, or about as many as its pool of segments has."""
        return float(self.weights @ self.sizes) if self.pool else float(self.n)

    @property
    def donors_error(self) -> float:
        """The standard deviation of the noise in :attr:`donors`; none in n, which is public."""
        apart = self.weights - self.weights.mean()
        return float(np.linalg.norm(apart)) * self.diagonal_scale / 4.0**self.grid_bits * math.sqrt(self.row_map.size)

    @property
    def readable(self) -> bool:
        """Whether the donors that answer are enough to be read beside the noise; their number is known about."""
        return self.donors >= READABLE * self.noise_in_donors

    @property
    def asked(self) -> str:
        """Which segments answer, in words; empty if there are none."""
        return "" if self.segments is None else self.segments.named(self.weights.tolist(), self.sizes.tolist())

    def of(self, pool: PoolLike) -> Self:
        """Return the same release, of which some segments answer; it costs nothing more.

        Parameters
        ----------
        pool : str, list of str or mapping
            One segment, several that are added up, or segments with the shares that they have in the target: each
            then counts by its share, however many donors it has.

        Examples
        --------
        >>> from dpsc import GramRelease
        >>> rows = np.cumsum(np.random.default_rng(0).normal(size=(400, 12)), axis=1)
        >>> make = GramRelease(epsilon=2.0, delta=1e-6, scale=3.0)
        >>> release = make.release(rows, by=["north", "south"] * 200, labels=["north", "south"])
        >>> release.of("north").asked
        'segment north'
        """
        if self.segments is None:
            raise ParameterError(
                f"this release is not divided into segments, so there is no {Parameter('pool')} to choose."
            )
        shares = self.segments.shares(pool)
        together = sum(float(self.sizes[place]) for place in shares)
        weights = [0.0] * len(self.segments.labels)
        for place, share in shares.items():
            weights[place] = 1.0 if share is None else share * together / float(self.sizes[place])
        return replace(self, pool=() if set(weights) == {1.0} else tuple(weights))

    def pools(self) -> tuple[Self, ...]:
        """Return the pools that are worth asking: all segments together, then each that is readable by itself."""
        if self.segments is None:
            return (self,)
        each = (self.of(label) for label in self.segments.labels)
        return replace(self, pool=()), *(one for one in each if one.readable)

    @cached_property
    def population(self) -> Population:
        """The donors' population, estimated once."""
        with one_thread():
            return Population.of(self.noisy_moments, self.donors, self.noise_scale, self.row_map)


def require_one_of(promise: Guarantee | None, reason: str) -> None:
    """Refuse a release with neither a guarantee nor the reason why it has none, with both, or with that of others."""
    if (promise is None) == (not reason):
        raise ReleaseError("a release carries either a guarantee or the reason why it has none.")
    if rests_on_its_publisher(reason):
        raise ReleaseError("a release of dpsc does not rest on the word of another publisher.")


def require_text(text: str, longest: int = LONGEST_TEXT) -> None:
    """Refuse what could do something to a terminal or a page, or is too long for it."""
    if isinstance(text, str) and len(text) > longest:
        raise ReleaseError(f"a text of the release is longer than {longest:,} characters.")
    if not isinstance(text, str) or not is_printable(text):
        raise ReleaseError("a text of the release is not printable text on one line; it may hold control characters.")


def require_public_labels(outcome: str, times: Times) -> None:
    """Refuse an outcome or periods that a release could not be read with: not printable, or not in order."""
    for text in (
        outcome,
        *([] if times.name is None else [str(times.name)]),
        *(t for t in times if isinstance(t, str)),
    ):
        require_text(text, LONGEST_NAME)
    text_has_its_own_order = all(isinstance(t, str) for t in times)
    if not times.is_unique or not (text_has_its_own_order or times.is_monotonic_increasing):
        raise ReleaseError("the periods repeat or are not in order.")
