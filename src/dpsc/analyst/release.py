"""What leaves the custodian, and everything that an analyst can do with it. Knows no raw data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.analyst import estimate, study
from dpsc.answers.effects import Prices
from dpsc.answers.result import PrivateResult, UnprovenResult
from dpsc.answers.study import Study
from dpsc.errors import Parameter, ReleaseError
from dpsc.periods.match import same
from dpsc.periods.treatment import Treatment, Treatments
from dpsc.privacy.exact import require_no_overflow
from dpsc.privacy.guarantee import Guarantee, together, weakest
from dpsc.release import describe, file_format
from dpsc.release.matrix import ReleasedMatrix
from dpsc.release.segments import PoolLike
from dpsc.types import AveragesLike, DatesLike, GroupsLike, Label, TargetLike, TargetsLike, TreatedLike, WeightsLike
from dpsc.version import __version__


@dataclass(frozen=True, eq=False, repr=False)
class Release(ReleasedMatrix):
    """A private release of donors, made by :class:`dpsc.GramRelease`.

    Attributes
    ----------
    matrix : integers
        The noisy sum of q q', q the donors' integer vectors: symmetric, not necessarily positive definite.
    n : int
        The number of donors, public.
    times : Index
        The periods.
    row_map : RowMap
        How a row became a vector: kernel, reference, directions, constant, grid_bits. Public.
    scale : Scale
        How much a typical donor moves, where this is from, and what it cost.
    diagonal_scale, off_diagonal_scale : float
        The scales of the noise, in the matrix's units.
    guarantee : Guarantee or None
        None if the noise came from a seed; ``no_guarantee`` then says so.
    sites : int
        How many releases of disjoint donors were merged.
    periods_from : str
        Where the periods are from: "declared" beforehand, the "header" of a wide table or the shape of an array, or the
        "rows" of the donors, each of whom had all of them; empty if it is not known.
    identities : tuple of str
        Random numbers that name this release, or all those that were merged: none counts twice.
    datasets : tuple of str
        The data sets of a ledger that paid for them, if they were booked.
    segments : Segments or None
        By what the donors are divided, and the declared labels. The matrix is then one for each.
    made_by, made_on : str
        The version of dpsc, and the day (UTC); for merged releases those of the merging. No day in older files.
    """

    def save(self, path: str | Path) -> None:
        """Write a JSON file, completely or not at all."""
        file_format.write(Path(path), file_format.dumps(self), unpaid=self.unpaid)

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a JSON file and check it."""
        return file_format.opened(Path(path), lambda text: file_format.loads(text, cls))[0]

    @staticmethod
    def page_of(path: str | Path, name: str | None = None) -> str:
        """Return the page for whoever receives a release file, as HTML; it depends on the file alone.

        ``name`` is what the page calls it; by default its own name.
        """
        path = Path(path)
        release, digest = file_format.opened(path, lambda text: file_format.loads(text, Release))
        return describe.page(release, path.name if name is None else name, digest)

    @classmethod
    def merge(cls, releases: Iterable[Release], *, disjoint: bool = False, same_donors: bool = False) -> Release:
        """Add up releases of disjoint donors (membership public), or average releases of the same donors.

        Disjoint: every donor is in one of them, so each keeps the guarantee of its own site; the merged guarantee is
        the weakest of them. The variances of the noise add up. The same donors: the mean, each counting by the inverse
        of its noise's variance, has the noise of one release with both budgets, and what all of them promise together.

        Parameters
        ----------
        releases : iterable of Release
            Made in the same way over the same periods. The same release, or two of the same data set, are refused
            wherever they are, inside merged ones too.
        disjoint : bool
            Your word that no donor is in two of them; nothing in the files can show it. A donor in two would be
            promised less than it loses.
        same_donors : bool
            Your word that all of them are of the same donors.

        Examples
        --------
        >>> from dpsc import GramRelease
        >>> rows = np.random.default_rng(0).normal(size=(200, 6))
        >>> make = GramRelease(epsilon=1.0, delta=1e-6, scale=1.0, directions=5)
        >>> Release.merge([make.release(rows[:80]), make.release(rows[80:])], disjoint=True).n
        200
        """
        releases = list(releases) if isinstance(releases, Iterable) else []
        if len(releases) < 2 or not all(isinstance(release, Release) for release in releases):
            raise ReleaseError("merge takes a list of all releases, as in Release.merge([one, other], disjoint=True).")
        identities = _identities(releases)
        if (disjoint is True) == (same_donors is True):
            raise ReleaseError(
                f"say which donors the releases have: {Parameter('disjoint', True)} if no donor is in two of them, or "
                f"{Parameter('same_donors', True)} if all are of the same donors."
            )
        if same_donors is True:
            return cls._averaged(releases, identities)
        datasets = _different_datasets(releases)
        first = releases[0]
        for other in releases[1:]:
            for name, of in _SETTINGS.items():
                if of(first) != of(other):
                    raise ReleaseError(
                        f"the releases differ in {name} ({of(first)} and {of(other)}); they add up only if they were "
                        f"made in the same way{_WHY.get(name, '')}. Before they release, sites agree on settings: dpsc "
                        "plan --sites 2 --settings FILE, then release --settings FILE (docs/guides/several-sites.md)."
                    )
            if not same(first.times, other.times):
                raise ReleaseError("the releases differ in their periods; they add up only over the same ones.")
            if not first.row_map.same_as(other.row_map):
                raise ReleaseError("the releases differ in the reference path; they add up only with the same one.")
        largest = sum(float(np.abs(r.matrix).max()) for r in releases)
        require_no_overflow(max(largest, sum(r.n for r in releases) * 4.0**first.grid_bits), "the sum over sites")
        promises, missing = _promises(releases)
        return cls(
            matrix=np.sum([r.matrix for r in releases], axis=0, dtype=np.int64),
            n=sum(r.n for r in releases),
            times=first.times,
            outcome=first.outcome,
            row_map=first.row_map,
            scale=min((r.scale for r in releases), key=lambda scale: scale.share),  # what all have paid at least
            diagonal_scale=float(np.linalg.norm([r.diagonal_scale for r in releases])),
            off_diagonal_scale=float(np.linalg.norm([r.off_diagonal_scale for r in releases])),
            guarantee=None if missing else weakest(promises, "per donor, of its own site", slacks_add=False),
            no_guarantee=missing,
            sites=sum(r.sites for r in releases),
            provenance="; ".join(dict.fromkeys(r.provenance for r in releases if r.provenance)),
            periods_from=first.periods_from if len({r.periods_from for r in releases}) == 1 else "",
            identities=identities,
            datasets=datasets,
            unpaid=any(r.unpaid for r in releases),
            segments=first.segments,
        )

    @classmethod
    def _averaged(cls, releases: list[Release], identities: tuple[str, ...]) -> Release:
        """Return the mean of releases of the same donors, with the least noise (docs/explanation/gram-release.md)."""
        first = releases[0]
        datasets = tuple(dict.fromkeys(dataset for release in releases for dataset in release.datasets))
        if len(datasets) > 1:
            raise ReleaseError(
                f"the releases are of {', '.join(map(repr, datasets))}, which are different donors; add them up with "
                f"{Parameter('disjoint', True)} if no donor is in two of them."
            )
        for other in releases[1:]:
            alike = same(first.times, other.times) and first.row_map.same_as(other.row_map)
            numbers = first.n == other.n and first.sites == other.sites
            if not (alike and numbers) or any(of(first) != of(other) for of in _SETTINGS.values()):
                raise ReleaseError(_ANOTHER_WEIGHT)
        precisions = np.array([release.diagonal_scale**-2.0 for release in releases])
        promises, missing = _promises(releases)
        return replace(
            first,
            matrix=np.rint(np.average([r.matrix for r in releases], axis=0, weights=precisions)).astype(np.int64),
            scale=min((r.scale for r in releases), key=lambda scale: scale.share),
            diagonal_scale=float(precisions.sum() ** -0.5),
            off_diagonal_scale=float(precisions.sum() ** -0.5 / math.sqrt(2)),
            guarantee=None if missing else together(promises),
            no_guarantee=missing,
            provenance="; ".join(dict.fromkeys(r.provenance for r in releases if r.provenance)),
            identities=identities,
            datasets=datasets,
            pool=(),
            unpaid=any(r.unpaid for r in releases),
            made_by=f"dpsc {__version__}",
            made_on=datetime.now(UTC).strftime("%Y-%m-%d"),
        )

    def estimate(
        self,
        target: TargetLike,
        treatment_time: Label = None,
        *,
        pool: PoolLike | None = None,
        level: float = 0.95,
        title: str = "",
        lambda_: float | None = None,
        rank: int | None = None,
        threshold: float | None = None,
        averages: int | None = None,
        treatment_end: Label = None,
        gap: int = 0,
        treated: TreatedLike | None = None,
        value_per_unit: float | None = None,
        cost: float | None = None,
        currency: str = "",
    ) -> PrivateResult | UnprovenResult:
        """Return a counterfactual for a public target; it costs nothing more.

        Parameters
        ----------
        target : Series, array or frame
            The treated unit: a Series by period, numbers in the order of the release's periods, or a frame with a
            column of periods and one of numbers (or one row with a column per period). It must be complete before the
            intervention; a period that is missing after it has no gap. Periods beyond the release are left out.
        treatment_time
            The first treated period; any period with at least 2 before it.
        level : float
            The level of the intervals in the summary and the plots.
        title : str
            The question, for figures and reports: "Wages of the trained men, had they not been trained".
        lambda_, rank, threshold : optional
            Instead of the default estimator: plain ridge with the paper's lambda on the scale of the release (donors
            of whitened length one), or robust synthetic control, which keeps ``rank`` directions or those with
            singular values above ``threshold``.
        averages : int, optional
            How many units the target is the average of, if that is known: intervals are then shorter, and a target in
            other units is noticed more often.
        pool : str, list of str or mapping, optional
            The segments of donors that answer, as for :meth:`of`; all by default. ``sensitivity()`` also asks every
            other pool that is readable.
        treatment_end : optional
            The last treated period, if the treatment ended: the effect is that of the treated periods, and
            ``contrasts()`` has what was seen after, and whether the effect fades.
        gap : int
            How many periods are left out, the first treated one and those that follow: they are neither fitted nor in
            the effect.
        treated : Series of 0 and 1, optional
            Instead of ``treatment_time`` and ``treatment_end``: 1 in each treated period, which may come in spells.
            Nothing after the first treated period is fitted.
        value_per_unit, cost, currency : optional
            What one unit of the outcome is worth in one period, what the intervention cost, and in which money:
            ``worth()``, words and reports then say what the total effect is worth.

        Returns
        -------
        PrivateResult
            With ``counterfactual``, ``gaps``, ``att``, ``interval()``, ``baselines``, ``notes``, ``placebos()``.
        """
        return estimate.estimate(
            self if pool is None else self.of(pool),
            target,
            treatment_time,
            level=level,
            title=title,
            lambda_=lambda_,
            rank=rank,
            threshold=threshold,
            averages=averages,
            treatment=Treatment(treatment_end, gap, treated),
            prices=Prices.of(value_per_unit, cost, currency),
        )

    def study(
        self,
        targets: TargetsLike,
        treatment_times: DatesLike | None = None,
        *,
        weights: WeightsLike | None = None,
        averages: AveragesLike | None = None,
        groups: GroupsLike | None = None,
        pool: PoolLike | None = None,
        level: float = 0.95,
        title: str = "",
        treatment_ends: DatesLike | None = None,
        gap: int = 0,
        treated: Mapping[Any, TreatedLike] | pd.DataFrame | None = None,
        value_per_unit: float | None = None,
        cost: float | None = None,
        currency: str = "",
    ) -> Study:
        """Return the answers for several treated units, each with its own date, and their pooled effects; all free.

        Parameters
        ----------
        targets : mapping of names to series, or frame with one column per target
        treatment_times : mapping, Series, list, or one date for all
            The first treated period of each target; a target without one (None, NaT, or not named) was never treated:
            it is shown beside the others and used for no number.
        weights : mapping or Series, or "size", optional
            Of the units in pooled effects; equal if left out. "size" counts each unit by ``averages``, the number of
            people (or others) that it is the average of: the pooled effect is then that on a usual one of them.
        averages : number, mapping or Series, optional
            How many units each target is the average of, where that is known.
        groups : mapping or Series, optional
            The group of each unit, such as its region, for :meth:`dpsc.Study.by_group`.
        pool, level, title
            As in :meth:`estimate`.
        treatment_ends : mapping or Series, or one period for all, optional
            The last treated period of each unit whose treatment ended.
        gap, value_per_unit, cost, currency
            As in :meth:`estimate`; the cost is that of all units together.
        treated : mapping of names to Series, or frame, optional
            Instead of ``treatment_times`` and ``treatment_ends``: 1 in each treated period of each unit, 0 in others.

        Examples
        --------
        >>> from dpsc import GramRelease
        >>> rows = np.cumsum(np.random.default_rng(0).normal(size=(403, 12)), axis=1)
        >>> release = GramRelease(epsilon=1.0, delta=1e-6, scale=3.0).release(rows[3:])
        >>> regions = {"north": rows[0], "south": rows[1], "west": rows[2]}
        >>> found = release.study(regions, {"north": 8, "south": 9})
        >>> list(found.results), list(found.never_treated), found.by_event_time()["units"].to_dict()
        (['north', 'south'], ['west'], {-2: 2, -1: 2, 0: 2, 1: 2, 2: 2, 3: 1})
        """
        release = self if pool is None else self.of(pool)
        treatments, prices = Treatments(treatment_ends, gap, treated), Prices.of(value_per_unit, cost, currency)
        return study.study(
            release, targets, treatment_times, weights, averages, groups, level, title, treatments, prices
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what is in it, and how its donors move."""
        return describe.card(self)

    def estimate_many(
        self, targets: TargetsLike, treatment_time: Label, **options: Any
    ) -> dict[Label, PrivateResult | UnprovenResult]:
        """Estimate several targets. Deprecated: ``study(targets, date).results`` has the same answers."""
        checks.deprecated("release.estimate_many(targets, date)", "release.study(targets, date).results")
        return {name: self.estimate(target, treatment_time, **options) for name, target in targets.items()}


_SETTINGS: dict[str, Callable[[Release], object]] = {
    "outcome": lambda release: release.outcome,
    "segments": lambda release: release.segments,
    "kernel": lambda release: release.kernel,
    "directions": lambda release: release.row_map.directions,
    "constant": lambda release: release.row_map.constant,
    "grid_bits": lambda release: release.grid_bits,
}


_WHY = {
    "constant": ", and each site's constant follows from the scale on which it measured movement and from how many "
    "donors it has",
    "directions": ", and each site kept as many directions as its own donors can fill",
}


_ANOTHER_WEIGHT = (
    "these releases of the same donors cannot be combined. They can if they have the same periods and were "
    "made with one settings file (dpsc plan --settings writes it, dpsc release --settings reads it). Otherwise each "
    "donor counts in each file with another weight, because its movement is measured over other periods or on another "
    "scale, so the files do not estimate the same sums. Use the one file that has the periods of the question; "
    "combining would gain little (docs/explanation/gram-release.md)."
)


def _promises(releases: list[Release]) -> tuple[list[Guarantee], str]:
    """Return the guarantees of releases, and why one of them has none."""
    missing = next((r.no_guarantee for r in releases if r.guarantee is None), "")
    return [r.guarantee for r in releases if r.guarantee is not None], missing


def _identities(releases: list[Release]) -> tuple[str, ...]:
    """Return all identities of releases, at any depth, or refuse the same one given twice."""
    identities = [identity for release in releases for identity in release.identities]
    same_matrix = any(
        np.array_equal(one.matrix, other.matrix) for k, one in enumerate(releases) for other in releases[:k]
    )
    if len(set(identities)) < len(identities) or same_matrix:
        raise ReleaseError("the same release is given twice, by itself or merged.")
    return tuple(identities)


def _different_datasets(releases: list[Release]) -> tuple[str, ...]:
    """Return the data sets of all sites, at any depth, or refuse what would count donors twice."""
    datasets = [dataset for release in releases for dataset in release.datasets]
    twice = next((dataset for k, dataset in enumerate(datasets) if dataset in datasets[:k]), None)
    if twice is not None:
        raise ReleaseError(
            f"two of the releases are of the data set {twice!r}; sites must have different donors. For releases of the "
            f"same donors give {Parameter('same_donors', True)} instead."
        )
    return tuple(datasets)
