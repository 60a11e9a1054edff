"""What a release holds: a noisy integer matrix and everything public about it. Knows no raw data and no target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dpsc.blas import one_thread
from dpsc.gram import moments
from dpsc.gram.kernel import Kernel
from dpsc.privacy.guarantee import Guarantee
from dpsc.types import Array, Integers


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedMatrix:
    """The fields of :class:`dpsc.Release`, which describes them, and the moments estimated from them."""

    matrix: Integers
    n: int
    times: pd.Index[Any]
    outcome: str
    kernel: Kernel
    reference: Array | None
    grid_bits: int
    diagonal_scale: float
    off_diagonal_scale: float
    guarantee: Guarantee | None
    no_guarantee: str = ""
    sites: int = 1
    provenance: str = ""
    periods_from: str = ""

    def __repr__(self) -> str:
        promise = self.guarantee if self.guarantee is not None else f"no guarantee: {self.no_guarantee}"
        return f"<{type(self).__name__}: {self.n} donors × {self.T} periods, {promise}>"

    @property
    def T(self) -> int:
        """The number of periods."""
        return len(self.times)

    @property
    def noise_scale(self) -> float:
        """The standard deviation of the noise on a diagonal entry, where every donor adds about 1/T."""
        return self.diagonal_scale / 4.0**self.grid_bits

    @property
    def noisy_moments(self) -> Array:
        """The noisy second-moment matrix of the whitened unit rows, in real numbers."""
        return np.asarray(self.matrix / 4.0**self.grid_bits)

    @cached_property
    def denoised(self) -> moments.Denoised:
        """The default estimate of the donors' second moments, computed once."""
        with one_thread():
            return moments.denoise(self.noisy_moments, self.n, self.noise_scale, self.kernel)

    @cached_property
    def replicates(self) -> list[Array]:
        """Second moments estimated from simulated releases around this one, for intervals."""
        with one_thread():
            return moments.replicates(self.denoised, self.n, self.noise_scale, self.kernel)
