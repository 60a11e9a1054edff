"""The Gram release: one small private matrix from which any number of counterfactuals follow for free."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsc import checks
from dpsc.answers.result import SEEDED
from dpsc.data.dates import period_name
from dpsc.data.donors import Donors, require_public_periods
from dpsc.data.frames import PeriodsFrom, to_floats
from dpsc.data.panel import Panel
from dpsc.errors import PanelError, Parameter, ParameterError
from dpsc.gram.contents import LARGEST_NUMBER, LARGEST_T, require_public_labels
from dpsc.gram.kernel import Kernel, Smoothness
from dpsc.gram.release import Release
from dpsc.gram.sources import ArrayDonors, DonorSource, source_of
from dpsc.gram.summing import OnRows
from dpsc.privacy import accounting, discrete, exact
from dpsc.privacy import source as randomness
from dpsc.privacy.accounting import Loss
from dpsc.privacy.division import warn_of_large_delta
from dpsc.privacy.guarantee import Guarantee
from dpsc.types import Array, Integers

GRID_BITS = 18  # entries of unit rows to four parts in a million; leaves room for sixty million donors


@dataclass(frozen=True, eq=False, repr=False)
class CustodianSum:
    """The exact sum over the donors, without noise. Private: it stays with the custodian, never printed or saved."""

    total: Integers
    n: int
    times: pd.Index[Any]
    outcome: str
    kernel: Kernel
    reference: Array | None
    grid_bits: int
    periods_from: PeriodsFrom

    def __post_init__(self) -> None:
        require_public_labels(self.outcome, self.times)  # before anything is booked


@dataclass(frozen=True)
class GramRelease:
    """Release the T × T second-moment matrix of the donors, each scaled to length one.

    No bounds are needed: only the direction of a donor's row counts, so no row can weigh more than any other. Ridge and
    principal-component synthetic control depend on the donors only through this matrix, and its noise does not
    grow with n, so the error falls with the number of donors.

    Parameters
    ----------
    epsilon, delta : float
        The whole budget; delta must be above 0 (Gaussian noise). Choose delta well below 1/n.
    smoothness : {"high", "mild", "none"}
        How persistent such series are, from public knowledge: see docs/gram-release.md.
    reference : Series or array, optional
        A public path that is subtracted from every donor (and later from the target): a national average, a price
        index. A large common level hides how donors differ; subtract it.
    grid_bits : int
        The resolution of the integer arithmetic: entries of unit rows are cut off at 2^-grid_bits. The default has room
        for sixty million donors; each bit less gives room for four times as many.
    seed : int, optional
        For experiments only; the release then carries no guarantee.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> donors = rng.normal(size=(500, 2)) @ np.cumsum(rng.normal(size=(2, 12)), axis=1)
    >>> GramRelease(epsilon=1.0, delta=1e-6).release(donors)
    <Release: 500 donors × 12 periods, (1, 1e-06)-differential privacy, replace one donor, exact arithmetic; ...>
    """

    _: KW_ONLY
    epsilon: float
    delta: float
    smoothness: Smoothness = "high"
    reference: Any | None = None
    grid_bits: int = GRID_BITS
    seed: int | None = None

    def __post_init__(self) -> None:
        checks.epsilon("epsilon", self.epsilon)
        if checks.delta("delta", self.delta) == 0:
            raise ParameterError(
                "the Gram release adds Gaussian noise, which needs delta above 0; use for example delta=1e-6, or "
                "OutputPerturbation for pure differential privacy."
            )
        Kernel.named(self.smoothness)
        if not 4 <= checks.whole_number("grid_bits", self.grid_bits, at_least=1) <= 26:
            raise ParameterError(f"{{it}} must be between 4 and 26, not {self.grid_bits}.", it=Parameter("grid_bits"))

    @property
    def rho(self) -> float:
        """The zCDP cost that the budget pays for."""
        return accounting.zcdp_rho(self.epsilon, self.delta)

    @property
    def guarantee(self) -> Guarantee | None:
        """What a release will promise, known before noise is drawn; None if the noise comes from a seed."""
        if self.seed is not None:
            return None
        return Guarantee(
            self.epsilon,
            self.delta,
            arithmetic="exact",
            basis="discrete Gaussian on unit rows' Gram matrix",
            loss=Loss.from_rho(self.rho),
        )

    @np.errstate(all="ignore")
    def release(
        self,
        donors: Panel | Donors | DonorSource | pd.DataFrame | CustodianSum | Any,
        *,
        provenance: str = "",
        outcome: str | None = None,
        dataset: str | None = None,
    ) -> Release:
        """Turn private donors into a release.

        Parameters
        ----------
        donors : Donors, Panel, DataFrame, array or CustodianSum
            :class:`dpsc.Donors` (from a long or wide frame), donors in files (:func:`dpsc.scan`), a panel (its target
            is not used), a wide frame (one row per donor, one column per period), an n × T array, or the
            result of :meth:`custodian_sum` for any of these.
        provenance : str
            Free text for the readers of the release. It is published as it is.
        outcome : str, optional
            The outcome's name; the panel's own by default.
        dataset : str, optional
            The name under which the donors are booked in a ledger, published with the release: releases of the same
            data set do not merge. Partitions of one data set are disjoint, so each is given by a name of its own.

        Notes
        -----
        Private: the rows. Neighbours: one row replaced. With integer vectors q of length at most 2^k, replacing one
        changes the sum of q q' by a matrix of squared Frobenius norm ``|q|^4 + |q'|^4 - 2 (q.q')^2 <= 2 * 16^k``.
        Discrete Gaussian noise of scale s on the diagonal and s / sqrt(2) above it costs
        ``rho = sum_i D_ii^2 / (2 s^2) + sum_{i<j} D_ij^2 / s^2 = ||D||_F^2 / (2 s^2) <= 16^k / s^2``, so s = 4^k /
        sqrt(rho). It would break if a vector could be longer (round to nearest instead of truncating), or if rows
        were dropped or scaled by something computed from other rows.
        """
        for name, text in (("provenance", provenance), ("outcome", outcome), ("dataset", dataset)):
            checks.printable(name, "" if text is None else str(text))
        summed = donors if isinstance(donors, CustodianSum) else self.custodian_sum(donors)
        self._require_own(summed)
        total, n, T = summed.total, summed.n, len(summed.times)
        warn_of_large_delta(self.delta, n)
        largest = n * 4.0**self.grid_bits
        diagonal, above = self._scales()
        source = randomness.choose(self.seed)

        rows, columns = np.triu_indices(T, 1)
        noisy = np.zeros((T, T), dtype=np.int64)
        noisy[np.diag_indices(T)] = discrete.add(np.diag(total), "gaussian", diagonal, source, largest=largest)
        noisy[rows, columns] = discrete.add(total[rows, columns], "gaussian", above, source, largest=largest)
        noisy[columns, rows] = noisy[rows, columns]

        return Release(
            matrix=noisy,
            n=n,
            times=summed.times,
            outcome=summed.outcome if outcome is None else str(outcome),
            kernel=summed.kernel,
            reference=summed.reference,
            grid_bits=self.grid_bits,
            diagonal_scale=diagonal,
            off_diagonal_scale=above,
            guarantee=self.guarantee,
            no_guarantee="" if self.seed is None else SEEDED,
            provenance=str(provenance),
            periods_from=summed.periods_from,
            datasets=() if dataset is None else (str(dataset),),
        )

    @np.errstate(all="ignore")
    def custodian_sum(self, donors: Any, *, on_rows: OnRows = lambda rows: None) -> CustodianSum:
        """Add up the donors exactly, without noise: private, only for :meth:`release`.

        This is the long part of a release. Nothing is spent yet, so it may fail or be repeated.
        """
        where = source_of(donors)
        require_public_periods(where.periods_from)
        if isinstance(where, ArrayDonors):  # n is known, so refuse before the donors are touched
            self._check_sizes(len(where.values), len(where.times))
        elif len(where.times) > LARGEST_T:
            self._check_sizes(1, len(where.times))
        kernel, reference = Kernel.named(self.smoothness), self.reference_for(where.times)
        total, n = where.add_up(kernel, reference, self.grid_bits, on_rows)
        if n == 0:
            raise PanelError("no donor is left.")
        if not isinstance(where, ArrayDonors):
            self._check_sizes(n, len(where.times))
        return CustodianSum(total, n, where.times, where.outcome, kernel, reference, self.grid_bits, where.periods_from)

    def _scales(self) -> tuple[float, float]:
        """Return the scales of the noise on the diagonal and above it."""
        diagonal = exact.safely_above(4.0**self.grid_bits / math.sqrt(self.rho))
        return diagonal, exact.safely_above(diagonal / math.sqrt(2))

    def _require_own(self, summed: CustodianSum) -> None:
        """Refuse a sum that was made with other parameters than this algorithm's."""
        mine = (Kernel.named(self.smoothness), self.grid_bits)
        same_path = np.array_equal(_or_nothing(self.reference_for(summed.times)), _or_nothing(summed.reference))
        if (summed.kernel, summed.grid_bits) != mine or not same_path:
            raise ParameterError("this sum was made with another smoothness, reference or grid_bits than this release.")

    def _check_sizes(self, n: int, T: int) -> None:
        """Refuse public sizes that cannot be added up."""
        if T > LARGEST_T:
            raise PanelError(f"{T} periods are too many for a Gram release (at most {LARGEST_T}); aggregate them.")
        largest = n + discrete.WIDEST / math.sqrt(self.rho)  # of the sum and its noise, for rows of length one
        fitting = [bits for bits in range(4, 27) if exact.fits(exact.safely_above(largest * 4.0**bits))]
        if self.grid_bits not in fitting:
            then = "{fitting}, which is still fine" if fitting else "fewer donors or a larger budget"
            raise ParameterError(
                f"the sum over {n:,} donors could exceed 64-bit integers with {{given}}; use {then}.",
                given=Parameter("grid_bits", str(self.grid_bits)),
                fitting=Parameter("grid_bits", str(max(fitting, default=0))),
            )

    def reference_for(self, times: pd.Index[Any]) -> Array | None:
        """Return the reference path over the donors' periods, or refuse one that lacks a period."""
        if self.reference is None:
            return None
        given = self.reference
        if isinstance(given, pd.Series):
            same = given.index.dtype == times.dtype
            given = given.reindex(times) if same else pd.Series(np.nan, index=times)
        try:
            values = to_floats(given, "reference")
        except PanelError as problem:
            raise ParameterError(problem.message) from None
        it = Parameter("reference")
        if values.shape != (len(times),):
            raise ParameterError(f"{{it}} must give one number for each of the {len(times)} periods.", it=it)
        if not np.isfinite(values).all():
            hole = period_name(times[~np.isfinite(values)][0])
            raise ParameterError(f"{{it}} has no number for the period {hole}, which the donors have.", it=it)
        if np.abs(values).max() > LARGEST_NUMBER:
            raise ParameterError(f"{{it}} has a number beyond {LARGEST_NUMBER:g}.", it=it)
        return values


def _or_nothing(path: Array | None) -> Array:
    return np.empty(0) if path is None else path
