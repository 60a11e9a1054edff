"""What scaling every donor to length one does to mean and second moments, and how to undo it.

A vector (1, w) / |(1, w)| counts w with the weight ``1 / (1 + |w|^2)``: donors that move more count less. For w from
N(m, Sigma) the weighted moments are known exactly, because ``1 / (1 + |w|^2)`` is the integral of
``exp(-t (1 + |w|^2))`` over t > 0, and a Gaussian times such a factor is again Gaussian, with mean
``(I + 2 t Sigma)^-1 m`` and covariance ``(I + 2 t Sigma)^-1 Sigma``. So weighted moments are averages of these over t,
and the donors' own moments are those whose weighted moments are what the release shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsc.types import Array

_TIMES = np.exp(np.arange(-14.0, 6.1, 0.25))  # t, for an integral over its logarithm
_STEPS = 30
_DAMPING = 0.7


@dataclass(frozen=True, eq=False)
class Attenuation:
    """How a population's moments are weakened, in the basis of the eigenvectors of its covariance.

    Attributes
    ----------
    vectors : k × k
        Eigenvectors of Sigma.
    of_mean : array of length k
        The weighted mean is ``V diag(of_mean) V' m``.
    of_variances : array of length k
        Weighted over true variances.
    """

    vectors: Array
    of_mean: Array
    of_variances: Array

    @classmethod
    def of(cls, weighted_mean: Array, weighted_covariance: Array) -> Attenuation:
        """Return the attenuation from weighted moments, the second ones around the weighted mean.

        Mean and variances are found together, in steps towards those that weaken to what is given.
        """
        shown, V = np.linalg.eigh(weighted_covariance)
        shown = np.maximum(shown, 1e-12)
        shown_mean = V.T @ weighted_mean
        mean, variances = shown_mean.copy(), shown.copy()
        for _ in range(_STEPS):
            widths, weights = _weights(mean, variances)
            of_mean = weights @ (1 / widths)
            mean = shown_mean / of_mean
            around = weights @ (mean / widths) ** 2 - (weights @ (mean / widths)) ** 2
            left = np.maximum(shown - around, 0.1 * shown)
            variances *= (left / (weights @ (variances / widths))) ** _DAMPING
        return cls(V, of_mean, np.minimum(1.0, shown / variances))

    def to_mean(self) -> Array:
        """Return the matrix that turns the mean into the weighted mean."""
        return np.asarray((self.vectors * self.of_mean) @ self.vectors.T)

    def undone(self, paths: Array) -> Array:
        """Return A X for a matrix X of k rows, where A C A' is the covariance that weakens to the given C."""
        V = self.vectors
        return np.asarray((V / np.sqrt(self.of_variances)) @ (V.T @ paths))


def _weights(along: Array, variances: Array) -> tuple[Array, Array]:
    """Return 1 + 2 t variance for every t and direction, and how much each t counts."""
    t = _TIMES[:, np.newaxis]
    widths = 1 + 2 * t * variances
    logs = np.log(_TIMES) - _TIMES - np.log(widths).sum(axis=1) / 2 - (t * along**2 / widths).sum(axis=1)
    weights = np.exp(logs - logs.max())
    return widths, weights / weights.sum()
