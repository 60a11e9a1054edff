"""The Gram release: one small private matrix from which any number of counterfactuals follow for free."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.analyst.release import Release
from dpsc.analyst.releases import Releases
from dpsc.answers.result import SEEDED
from dpsc.custodian.donors.donor_files import FileSource
from dpsc.custodian.donors.donors import Donors, require_public_periods
from dpsc.custodian.donors.frames import PeriodsFrom
from dpsc.custodian.donors.panel import Panel
from dpsc.custodian.gram.exact_sum import Counts, Products
from dpsc.custodian.gram.sources import ArrayDonors, DonorSource, source_of
from dpsc.errors import PanelError, Parameter, ParameterError
from dpsc.periods.calendar import places
from dpsc.periods.dates import period_name
from dpsc.periods.match import aligned, same
from dpsc.privacy import discrete, exact
from dpsc.privacy import source as randomness
from dpsc.privacy.accounting import Loss
from dpsc.privacy.additive import warn_of_large_delta
from dpsc.privacy.guarantee import GRAM, Guarantee, promised
from dpsc.privacy.rounded_gaussian import discrete_gaussian_budget
from dpsc.release.kernel import Kernel, Smoothness
from dpsc.release.matrix import (
    GRID_BITS,
    LARGEST_NUMBER,
    LARGEST_T,
    MOST_COORDINATES,
    require_public_labels,
    require_room,
)
from dpsc.release.outcomes import require_outcomes, shares_of
from dpsc.release.rowmap import (
    ENOUGH_FOR_CONSTANT,
    ENOUGH_PER_DIRECTION,
    SMALL_CONSTANT,
    RowMap,
    constant_for,
    constant_over_scale,
    directions_for,
    require_constant,
    whitened_size,
)
from dpsc.release.scale import (
    COUNTED_AT_MOST,
    LARGEST_SHARE,
    Scale,
    estimated,
    guess_from,
    level_of,
    noisy_counts,
    require_scale,
    share_for,
)
from dpsc.release.segments import Segments
from dpsc.release.settings import Settings, load
from dpsc.tables.spec import Missing
from dpsc.types import Array, Integers, OnProgress, Times, to_floats, unwatched


@dataclass(frozen=True, eq=False, repr=False)
class CustodianSum:
    """The exact sum over the donors, without noise. Private: it stays with the custodian, never printed or saved.

    The scale, if donors were counted for it, already carries its noise; it is published only with the release.
    """

    total: Integers
    n: int
    times: Times
    outcome: str
    row_map: RowMap
    scale: Scale
    periods_from: PeriodsFrom
    scale_paid_by: tuple[float, float, int | None] | None = None  # epsilon, delta and seed, if the scale cost something
    segments: Segments | None = None  # the total then has one matrix for each

    def __post_init__(self) -> None:
        require_public_labels(self.outcome, self.times)  # before anything is booked


def require_same_donors(sums: Mapping[str, CustodianSum]) -> None:
    """Refuse sums over different numbers of donors, periods or segments: nothing of them but these is looked at."""
    first, *others = sums.values()
    for name, other in zip(list(sums)[1:], others, strict=True):
        what = "numbers of donors" if first.n != other.n else "segments" if first.segments != other.segments else ""
        what = what or ("" if same(first.times, other.times) else "periods")
        if what:
            raise PanelError(
                f"{next(iter(sums))!r} and {name!r} have different {what}; outcomes are of the same donors."
            )


_OF_AN_OUTCOME = ("share", "scale", "like", "reference")


@dataclass(frozen=True)
class GramRelease:
    """Release how the donors move together: a noisy Gram matrix, from which counterfactuals of any target follow.

    Every donor is a vector of length one: only its direction counts, so no donor weighs more than any other, and no
    bounds are needed. The noise does not grow with n: the more donors, the smaller the error.

    Parameters
    ----------
    epsilon, delta : float
        The whole budget; delta must be above 0 (Gaussian noise). Choose delta well below 1/n.
    smoothness : {"high", "mild", "none"}
        How slowly such series move, from public knowledge: see docs/explanation/gram-release.md.
    reference : Series or array, optional
        A public path that is subtracted from every donor (and later from the target): a national average, a price
        index.
    scale : float, optional
        About how much a donor's series moves over the whole time, in the outcome's units, from public knowledge: the
        standard deviation of its values around their mean. A factor of two does not matter much. Needed if that is
        beyond 1e-12 to 1e12, where nothing can be found out.
    like : Series or array, optional
        A public series that moves about like a donor, such as the target before the intervention, instead of
        ``scale``. It gives a first guess, which a small share of the budget makes better. With neither, the
        whole scale is found privately, if there are enough donors. A panel's target is used by default. The
        reference is subtracted from it if it is a Series over the donors' periods.
    directions : int, optional
        How many of the smoothest directions to keep, at most T - 1; by default as many as the donors can fill.
    constant : float, optional
        How large the constant beside each donor's movement is, as a share of the scale. By default it grows with the
        number of donors from 0.7 to 2.5; with ``directions``, on which sites agree whose releases add up, it is 0.7.
    grid_bits : int
        The resolution of the integer arithmetic: entries of unit vectors are cut off at 2^-grid_bits. The default has
        room for sixty million donors; each bit less gives room for four times as many.
    seed : int, optional
        For experiments only; the release then carries no guarantee.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> donors = rng.normal(size=(500, 2)) @ np.cumsum(rng.normal(size=(2, 12)), axis=1)
    >>> GramRelease(epsilon=1.0, delta=1e-6, scale=2.0).release(donors)
    <Release: 500 donors × 12 periods, (1, 1e-06)-differential privacy, replace one donor, exact arithmetic; ...>
    """

    _: KW_ONLY
    epsilon: float
    delta: float
    smoothness: Smoothness = "high"
    reference: Any | None = None
    scale: float | None = None
    like: Any | None = None
    directions: int | None = None
    constant: float | None = None
    grid_bits: int = GRID_BITS
    seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.epsilon("epsilon", self.epsilon))
        object.__setattr__(self, "delta", checks.delta("delta", self.delta))
        if self.delta == 0:
            raise ParameterError(
                "the Gram release adds Gaussian noise, which needs delta above 0; use for example delta=1e-6, or "
                "OutputPerturbation for pure differential privacy."
            )
        Kernel.named(self.smoothness)
        if self.scale is not None:
            require_scale(self.scale)
        if self.scale is not None and self.like is not None:
            raise ParameterError(f"give {Parameter('scale')} or {Parameter('like')}, not both.")
        if self.like is not None:
            guess_from(self.like, 2, Kernel.named(self.smoothness))
        if self.directions is not None:
            checks.whole_number("directions", self.directions, at_least=1)
        if self.constant is not None:
            require_constant(self.constant)
        if not 4 <= checks.whole_number("grid_bits", self.grid_bits, at_least=1) <= 26:
            raise ParameterError(f"{Parameter('grid_bits')} must be between 4 and 26, not {self.grid_bits}.")

    @classmethod
    def from_settings(
        cls,
        settings: Settings | str | Path,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        seed: int | None = None,
    ) -> GramRelease:
        """Return the algorithm that sites agreed on, whose releases add up; ``settings`` is a file or its contents.

        Each site may choose its own budget; what the settings suggest is the default.
        """
        agreed = settings if isinstance(settings, Settings) else load(settings)
        epsilon, delta = agreed.epsilon if epsilon is None else epsilon, agreed.delta if delta is None else delta
        if epsilon is None or delta is None:
            it = Parameter("epsilon" if epsilon is None else "delta")
            raise ParameterError(f"the settings suggest no {it}; give one.")
        return cls(
            epsilon=epsilon,
            delta=delta,
            smoothness=agreed.smoothness,
            reference=agreed.reference_path,
            scale=agreed.scale,
            directions=agreed.directions,
            constant=agreed.constant,
            grid_bits=agreed.grid_bits,
            seed=seed,
        )

    @property
    def loss(self) -> Loss:
        """What a release costs: all of it, whatever share goes into the scale."""
        return discrete_gaussian_budget(self.epsilon, self.delta, MOST_COORDINATES, 4.0**self.grid_bits)

    @property
    def mu(self) -> float:
        """The sensitivity in standard deviations of the noise that the whole budget pays for."""
        return math.sqrt(exact.safely_below(self.loss.mu_squared + 2 * self.loss.rho))

    @property
    def guarantee(self) -> Guarantee | None:
        """What a release will promise, known before noise is drawn; None if the noise comes from a seed."""
        counted = "" if self.scale is not None else ", and on counts of donors by how much they move"
        return promised(self.epsilon, self.delta, self.seed, basis=f"{GRAM}{counted}", loss=self.loss)

    def divided(
        self, outcomes: Iterable[str], each: Mapping[str, Mapping[str, Any]] | None = None
    ) -> dict[str, GramRelease]:
        """Return the algorithm of each of several outcomes, which share this budget; ``each`` as in :meth:`release`.

        Examples
        --------
        >>> parts = GramRelease(epsilon=1.0, delta=1e-6).divided(["orders", "revenue"])
        >>> print(", ".join(f"{name}: {part.epsilon:.3f}" for name, part in parts.items()))
        orders: 0.689, revenue: 0.689
        """
        names, each = list(outcomes), {} if each is None else each
        require_outcomes(names)
        for name in ("scale", "like", "reference"):
            if getattr(self, name) is not None:
                raise ParameterError(
                    f"{Parameter(name)} is what is known of one outcome; with several say it of each, for example "
                    f"each={{{names[0]!r}: {{{name!r}: ...}}}}."
                )
        unknown = [name for name in each if name not in names] + [
            what for known in each.values() for what in known if what not in _OF_AN_OUTCOME
        ]
        if unknown:
            raise ParameterError(
                f"each= says {unknown[0]!r}; it takes the names of outcomes, and of each {', '.join(_OF_AN_OUTCOME)}."
            )
        shares, parts = shares_of({name: each.get(name, {}).get("share", 1) for name in names}), {}
        for k, (name, share) in enumerate(shares.items()):
            loss, left = self.loss, exact.safely_below(share)
            part = replace(loss, mu_squared=left * loss.mu_squared, rho=left * loss.rho)
            known = {what: value for what, value in each.get(name, {}).items() if what != "share"}
            seed = None if self.seed is None else self.seed + k * 2**65  # another noise for each
            parts[name] = replace(self, epsilon=part.epsilon(self.delta), seed=seed, **known)
        self.guarantee_of(parts.values())
        return parts

    def guarantee_of(self, parts: Iterable[GramRelease]) -> Guarantee | None:
        """Return what algorithms that this one was divided into promise together; refuse more than this promises."""
        promises = [part.guarantee for part in parts]
        known = [promise for promise in promises if promise is not None]
        if self.guarantee is None or len(known) < len(promises):
            return None
        loss = sum((promise.loss for promise in known), Loss())
        if not loss.within(self.epsilon, self.delta):  # where some parts are zCDP and others are not
            raise ParameterError(
                f"the grid is too coarse to be shared in this way; use a larger {Parameter('grid_bits')}."
            )
        basis = max((promise.basis for promise in known), key=len)
        return replace(self.guarantee, basis=f"{basis}, of {len(known)} outcomes together", loss=loss)

    @overload
    def release(
        self,
        donors: Mapping[str, Any],
        *,
        each: Mapping[str, Mapping[str, Any]] | None = ...,
        provenance: str = ...,
        dataset: str | None = ...,
        missing: Missing | None = ...,
        by: Any | None = ...,
        labels: str | Iterable[str] | None = ...,
        on_progress: OnProgress = ...,
    ) -> Releases: ...

    @overload
    def release(
        self,
        donors: Panel | Donors | DonorSource | pd.DataFrame | CustodianSum | Any,
        *,
        provenance: str = ...,
        outcome: str | None = ...,
        dataset: str | None = ...,
        missing: Missing | None = ...,
        by: Any | None = ...,
        labels: str | Iterable[str] | None = ...,
        on_progress: OnProgress = ...,
    ) -> Release: ...

    @np.errstate(all="ignore")
    def release(
        self,
        donors: Mapping[str, Any] | Panel | Donors | DonorSource | pd.DataFrame | CustodianSum | Any,
        *,
        each: Mapping[str, Mapping[str, Any]] | None = None,
        provenance: str = "",
        outcome: str | None = None,
        dataset: str | None = "",
        missing: Missing | None = None,
        by: Any | None = None,
        labels: str | Iterable[str] | None = None,
        on_progress: OnProgress = unwatched,
    ) -> Release | Releases:
        """Turn private donors into a release.

        Parameters
        ----------
        donors : Donors, Panel, DataFrame, array or CustodianSum
            :class:`dpsc.Donors` (from a long or wide frame), donors in files (:func:`dpsc.scan`), a panel (of whose
            target only the scale of its movement is used), a wide frame (one row per donor, one column per period),
            an n × T array, or the result of :meth:`custodian_sum` for any of these. Or, by name, the donors of several
            outcomes: the same people over the same periods. All outcomes together then cost what one costs.
        each : mapping, optional
            What is known of each of several outcomes: ``{"orders": {"scale": 3.0, "share": 2}, ...}``, with its
            ``scale``, ``like`` and ``reference``, and its ``share`` of the budget (of mu squared), equal by default.
        provenance : str
            Free text for the readers of the release. It is published as it is.
        outcome : str, optional
            The outcome's name; the panel's own by default.
        dataset : str, optional
            The name under which the donors are booked in a ledger, published with the release: releases of the same
            data set do not merge. Partitions of one data set are disjoint, so each is given by a name of its own.
            None says that no ledger is kept; if nothing is said, ``save`` warns of it.
        missing : {"error", "interpolate", "midpoint", "kernel"}, optional
            The rule for missing cells of a wide frame or an array, refused by default; other donors have theirs.
        by : column name or list, optional
            The segments of the donors of a wide frame or an array (age band, plan, region); other donors have theirs.
            The release then holds a matrix for each segment, at no further cost.
        labels : str or list of str, optional
            The segments, declared beforehand; any other label counts as "other".
        on_progress : callable
            Is told what is being done, how many more rows or donors are done, and of how many if that is known. It may
            stop the work, by raising. Private, but for the number of donors.

        Notes
        -----
        Private: the rows. Neighbours: one row replaced. With integer vectors q of length at most 2^k, each made of one
        donor and public numbers, replacing one changes the sum of q q' by a matrix D of squared Frobenius norm ``|q|^4
        + |q'|^4 - 2 (q.q')^2 <= 2 * 16^k``. Discrete Gaussian noise of scale s on the diagonal and s / sqrt(2) above it
        has ``mu^2 = sum_i D_ii^2 / s^2 + sum_{i<j} 2 D_ij^2 / s^2 = ||D||_F^2 / s^2 <= 2 * 16^k / s^2``, so s = sqrt(2)
        4^k / mu. With segments there is a sum for each, and every donor is in exactly one, by its own rows: replacing
        one takes q q' out of one sum and puts q' of another donor into the same one, or into another, where the squares
        of both blocks add up to ``|q|^4 + |q'|^4 <= 2 * 16^k``. So any number of segments costs what one does; the
        slack is charged for all of them. It would break if a donor counted in two sums. It holds for any public map of
        one row. The constant R of the map follows from the scale and from the number of donors' labels
        (:func:`dpsc.release.rowmap.constant_over_scale`), which neighbours share and the release publishes: both data
        sets are mapped with the same R. It would break if a vector could be longer (round to nearest instead of
        truncating), if rows were dropped or scaled by something computed from other rows, or if R followed from the
        number of usable rows, which one donor can change. The scale, if donors are counted for it, is released before
        with a share of mu^2, so that it is public for the matrix. Proof: docs/proofs/gram.md.

        Several outcomes are as many releases, each with a share of mu^2: replacing a donor changes all of them, and
        squares of mu add up, whatever each finds out for its own scale. Slacks add up, too. It would break if the
        shares came to more than one, or if one were chosen by looking at donors.
        """
        if isinstance(donors, Mapping):
            return self._release_each(
                donors,
                each,
                provenance,
                dataset,
                {"missing": missing, "by": by, "labels": labels, "on_progress": on_progress},
            )
        if each is not None:
            raise ParameterError("each= belongs to several outcomes, given by name.")
        checks.about_a_release(provenance, outcome, dataset)
        if isinstance(donors, CustodianSum):
            given = {"missing": missing, "by": by, "labels": labels}
            if said := next((name for name, value in given.items() if value is not None), None):
                raise ParameterError(f"{Parameter(said)} is for frames and arrays, not for a sum.")
            summed = donors
        else:
            summed = self.custodian_sum(donors, missing=missing, by=by, labels=labels, on_progress=on_progress)
        self._require_own(summed)
        n, size = summed.n, summed.row_map.size
        total = summed.total.reshape(-1, size, size)
        warn_of_large_delta(self.delta, n)
        randomness.warn_of_seed(self.seed)
        largest = n * 4.0**self.grid_bits
        diagonal, above = self._scales(summed.scale.share)
        source = randomness.choose(self.seed)

        rows, columns = np.triu_indices(size, 1)
        noisy = np.zeros_like(total)
        for block, exactly in zip(noisy, total, strict=True):
            block[np.diag_indices(size)] = discrete.add(np.diag(exactly), "gaussian", diagonal, source, largest=largest)
            block[rows, columns] = discrete.add(exactly[rows, columns], "gaussian", above, source, largest=largest)
            block[columns, rows] = block[rows, columns]

        return Release(
            matrix=noisy.reshape(summed.total.shape),
            n=n,
            times=summed.times,
            outcome=summed.outcome if outcome is None else str(outcome),
            row_map=summed.row_map,
            scale=summed.scale,
            diagonal_scale=diagonal,
            off_diagonal_scale=above,
            guarantee=self.guarantee,
            no_guarantee="" if self.seed is None else SEEDED,
            provenance=str(provenance),
            periods_from=summed.periods_from,
            datasets=(str(dataset),) if dataset else (),
            unpaid=dataset == "" and self.seed is None,
            segments=summed.segments,
        )

    def _release_each(
        self,
        donors: Mapping[str, Any],
        each: Mapping[str, Mapping[str, Any]] | None,
        provenance: str,
        dataset: str | None,
        how: Mapping[str, Any],
    ) -> Releases:
        """Add up each outcome, look whether they are of the same donors, and release them."""
        parts = self.divided(donors, each)
        sums = {
            name: of if isinstance(of, CustodianSum) else parts[name].custodian_sum(of, **how)
            for name, of in donors.items()
        }
        require_same_donors(sums)
        made = [
            parts[name].release(summed, outcome=name, provenance=provenance, dataset=dataset)
            for name, summed in sums.items()
        ]
        together = [replace(one, identities=made[0].identities, made_on=made[0].made_on) for one in made]
        return Releases(tuple(together), self.guarantee_of(parts.values()))

    @np.errstate(all="ignore")
    def custodian_sum(
        self,
        donors: Any,
        *,
        on_progress: OnProgress = unwatched,
        missing: Missing | None = None,
        by: Any | None = None,
        labels: str | Iterable[str] | None = None,
    ) -> CustodianSum:
        """Add up the donors exactly, without noise: private, only for :meth:`release`, whose other options it takes.

        This is the long part of a release. Nothing is published yet, so it may fail or be repeated.
        """
        with donors.files.watched(on_progress) if isinstance(donors, FileSource) else nullcontext():
            return self._custodian_sum(donors, source_of(donors, missing, by=by, labels=labels), on_progress)

    def _custodian_sum(self, donors: Any, where: DonorSource, on_progress: OnProgress) -> CustodianSum:
        require_public_periods(where.periods_from)
        T = len(where.times)
        if isinstance(where, ArrayDonors):  # n is known, so refuse before the donors are touched
            self._check_sizes(len(where.values), T)
        elif T > LARGEST_T:
            self._check_sizes(1, T)
        require_room(where.segments, T)
        if T < 2:
            raise PanelError("a release needs at least 2 periods: donors are compared by how they move.")
        kernel, reference = Kernel.named(self.smoothness), self.reference_for(where.times)
        counts, counted = self._count(where, kernel, reference, on_progress)
        scale = self._scale(donors, counts, counted, where.times, reference)
        noise = self._scales(scale.share)[0] / 4.0**self.grid_bits
        kept = directions_for(counted, T, noise, kernel) if self.directions is None else min(self.directions, T - 1)
        constant = self._over_scale
        over_scale = constant_over_scale(counted, noise) if constant is None else constant
        row_map = RowMap(T, kernel, reference, kept, constant_for(scale.value, over_scale), self.grid_bits)
        segments = where.segments
        summand, expected = Products(row_map, 0 if segments is None else len(segments.labels)), where.rows_expected()
        total, n = where.add_up(summand, lambda rows: on_progress("adding up donors", rows, expected))
        if n == 0:
            raise PanelError("no donor is left.")
        if not isinstance(where, ArrayDonors):
            self._check_sizes(n, T)
        paid_by = self._payer if scale.share > 0 else None
        about = where.times, where.outcome, row_map, scale, where.periods_from
        return CustodianSum(total, n, *about, paid_by, segments)

    def noise_share(self, n: int, T: int, scale_share: float | None = None) -> float:
        """Return the size of the largest direction of the noise over that of n donors together: public numbers only.

        From 1 on the noise is larger than everything the donors say, and nothing can be learned from a release.
        Without ``scale_share``, what :meth:`scale_share` says, the scale is taken to cost as much as it may.
        """
        kept = self.directions_kept(n, T, scale_share)
        return self._noise(scale_share) * math.sqrt(2 * (kept + 1)) / n

    def directions_kept(self, n: int, T: int, scale_share: float | None = None) -> int:
        """Return how many directions a release of n donors over T periods keeps: public numbers only."""
        kernel = Kernel.named(self.smoothness)
        kept = directions_for(n, T, self._noise(scale_share), kernel) if self.directions is None else self.directions
        return min(kept, T - 1)

    def scale_share(self, n: int, times: Times) -> float:
        """Return which share of the budget finds the scale; refuse too few donors. Public numbers only."""
        if self.scale is not None:
            return 0.0
        return share_for(n, self.mu, self._guess(None, times, self.reference_for(times)) is not None)

    def _noise(self, scale_share: float | None) -> float:
        """Return the noise on a diagonal entry, for vectors of length one."""
        most = 0.0 if self.scale is not None else LARGEST_SHARE
        return self._scales(most if scale_share is None else scale_share)[0] / 4.0**self.grid_bits

    def _count(
        self, where: DonorSource, kernel: Kernel, reference: Array | None, on_progress: OnProgress
    ) -> tuple[Integers, int]:
        """Return counts of donors by movement, and how many were counted: all, or enough to make all choices.

        An array of donors whose scale is given need not be counted.
        """
        T = len(where.times)
        summand = Counts(T, kernel, reference)
        if self.scale is not None and (isinstance(where, ArrayDonors) or self.directions is not None):
            return summand.zero, len(where.values) if isinstance(where, ArrayDonors) else 0
        noise = self._scales(LARGEST_SHARE)[0] / 4.0**self.grid_bits
        enough = math.ceil(max(ENOUGH_PER_DIRECTION * T, ENOUGH_FOR_CONSTANT) * noise)
        enough = enough if self.scale is not None else max(enough, COUNTED_AT_MOST)
        expected = where.rows_expected()
        most = None if expected is None else min(enough, expected)
        counts, counted = where.add_up(summand, lambda rows: on_progress("counting donors", rows, most), enough)
        if counted == 0:
            raise PanelError("no donor is left.")
        return counts, counted

    def _scale(self, donors: Any, counts: Integers, counted: int, times: Times, reference: Array | None) -> Scale:
        """Return how much a donor moves: as given, or from counts with noise and a guess if there is one."""
        T = len(times)
        if self.scale is not None:
            return Scale(whitened_size(self.scale, T, Kernel.named(self.smoothness)), "given", 0.0)
        guess = self._guess(donors, times, reference)
        share = share_for(counted, self.mu, guess is not None)
        self._check_sizes(counted, T, share)
        mu = self.mu * math.sqrt(exact.safely_below(share))
        apart = None if self.seed is None else self.seed + 2**64  # other noise than the matrix has
        noisy = noisy_counts(counts, counted, mu, self.grid_bits, randomness.choose(apart))
        value = estimated(noisy, counted, mu, guess)
        if guess is None:
            return Scale(value, "counted", share)
        public = donors.target[: donors.T0] if self.like is None else self.like
        return Scale(value, "like and counted", share, level_of(public))

    def _guess(self, donors: Any, times: Times, reference: Array | None) -> float | None:
        """Return what the public series says about the scale, None if there is no such series or it does not move."""
        like = self._like(donors, times, reference)
        return None if like is None else guess_from(like, len(times), Kernel.named(self.smoothness))

    def _like(self, donors: Any, times: Times, reference: Array | None) -> Any | None:
        """Return the public series that donors may move like, less the reference where its periods are known."""
        if self.like is None and isinstance(donors, Panel):
            before = donors.target[: donors.T0]
            return before if reference is None else before - reference[: donors.T0]
        if reference is None or not isinstance(self.like, pd.Series):
            return self.like
        where = places(self.like.index, times)
        return self.like if (where < 0).any() else self.like - reference[where]

    def _scales(self, share: float) -> tuple[float, float]:
        """Return the scales of the noise on the diagonal and above it, if a share of the budget went elsewhere."""
        mu = self.mu * math.sqrt(exact.safely_below(1 - share))
        diagonal = exact.safely_above(math.sqrt(2) * 4.0**self.grid_bits / mu)
        return diagonal, exact.safely_above(diagonal / math.sqrt(2))

    def _require_own(self, summed: CustodianSum) -> None:
        """Refuse a sum that was made with other parameters than this algorithm's."""
        made = summed.row_map
        mine = RowMap(
            made.T,
            Kernel.named(self.smoothness),
            self.reference_for(summed.times),
            made.directions if self.directions is None else min(self.directions, made.T - 1),
            made.constant if self._over_scale is None else constant_for(summed.scale.value, self._over_scale),
            self.grid_bits,
        )
        if not made.same_as(mine) or (summed.scale.source == "given") != (self.scale is not None):
            raise ParameterError("this sum was made with another smoothness, reference, scale or grid_bits.")
        if summed.scale_paid_by not in (None, self._payer):
            raise ParameterError("the scale of this sum was found with another epsilon, delta or seed.")

    @property
    def _over_scale(self) -> float | None:
        """The constant over the scale, if it is agreed on; None if it follows from the number of donors."""
        return SMALL_CONSTANT if self.constant is None and self.directions is not None else self.constant

    @property
    def _payer(self) -> tuple[float, float, int | None]:
        """What the noise on counts depends on; the noise on the matrix must depend on the same."""
        return self.epsilon, self.delta, self.seed

    def _check_sizes(self, n: int, T: int, share: float = 1 - LARGEST_SHARE) -> None:
        """Refuse public sizes that cannot be added up, with noise that a share of the budget pays for."""
        if T > LARGEST_T:
            raise PanelError(f"{T} periods are too many for a Gram release (at most {LARGEST_T}); aggregate them.")
        widest = discrete.WIDEST * math.sqrt(2) / self.mu / math.sqrt(share)
        largest = n + widest  # of the sum and its noise, for vectors of length one
        fitting = [bits for bits in range(4, 27) if exact.fits(exact.safely_above(largest * 4.0**bits))]
        if self.grid_bits not in fitting:
            then = (
                f"{Parameter('grid_bits', max(fitting))}, which is still fine"
                if fitting
                else "fewer donors or a larger budget"
            )
            raise ParameterError(
                f"the sum over {n:,} donors could exceed 64-bit integers with "
                f"{Parameter('grid_bits', self.grid_bits)}; use {then}."
            )

    def reference_for(self, times: Times) -> Array | None:
        """Return the reference path over the donors' periods, or refuse one that lacks a period."""
        if self.reference is None:
            return None
        given, it = self.reference, Parameter("reference")
        try:
            values = to_floats(given, "reference")
            if isinstance(given, pd.Series):
                path = pd.Series(values, index=given.index)
                values = aligned(path, times, what="reference", whole="donors", spare=True)[0].to_numpy()
        except PanelError as problem:
            raise ParameterError(problem.message) from None
        if values.shape != (len(times),):
            raise ParameterError(f"{it} must give one number for each of the {len(times)} periods.")
        if not np.isfinite(values).all():
            hole = period_name(times[~np.isfinite(values)][0])
            raise ParameterError(f"{it} has no number for the period {hole}, which the donors have.")
        if np.abs(values).max() > LARGEST_NUMBER:
            raise ParameterError(f"{it} has a number beyond {LARGEST_NUMBER:g}.")
        return values
