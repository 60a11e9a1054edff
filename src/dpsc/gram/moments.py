"""From a noisy second-moment matrix to a usable one: pure post-processing of a release.

The default estimator models the donors as a few common directions plus a bulk of idiosyncratic variation, and uses
what is known about the noise: its scale, hence the size E of its largest eigenvalue, and that the trace is n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.optimize import nnls

from dpsc.gram.kernel import Kernel, correlation
from dpsc.types import Array

_ROUNDS = 6
_REPLICATES = 30
_BULK_PERSISTENCE = (0.0, 0.5, 0.95)


@dataclass(frozen=True, eq=False)
class Denoised:
    """An estimate of the donors' second moments.

    Attributes
    ----------
    moments : T × T
        In the outcome's own coordinates (up to a common factor), positive definite.
    centre : T × T
        The estimate of the noise-free matrix in whitened coordinates, around which releases are simulated.
    directions : int
        How many common directions rise above the noise.
    """

    moments: Array
    centre: Array
    directions: int


def denoise(gram: Array, n: int, noise_scale: float, kernel: Kernel) -> Denoised:
    """Estimate second moments from a noisy matrix.

    With E = noise_scale sqrt(2 T), the size of the largest eigenvalue of the noise: common directions are
    eigenvectors of gram - bulk with eigenvalue lam > E, of true size theta = (lam + sqrt(lam^2 - E^2)) / 2; the bulk
    is a non-negative combination of whitened AR(1) covariances, fitted to what the directions leave; both are
    estimated in turn. At the end eigenvalues are shrunk to sqrt(lam^2 - E^2), which is optimal in Frobenius norm for a
    low-rank matrix in such noise.
    """
    T = len(gram)
    E = noise_scale * math.sqrt(2 * T)
    root, shapes, basis, triangle = _bulk(kernel, T)
    gram = gram + np.eye(T) * (n - np.trace(gram)) / T

    bulk = max(float(np.median(np.linalg.eigvalsh(gram))), 0.0) * np.eye(T)
    for _ in range(_ROUNDS):
        lam, V = _above(gram - bulk, E)
        theta = (lam + np.sqrt(lam**2 - E**2)) / 2
        rest = gram - (V * theta) @ V.T
        amounts = nnls(triangle, basis.T @ rest.ravel())[0]
        bulk = np.tensordot(amounts, shapes, axes=1)

    eta = np.maximum(np.sqrt(lam**2 - E**2), 0.1 * E)
    signal = (V * eta) @ V.T
    return Denoised(
        moments=_unwhitened(signal + bulk + 0.001 * E * np.eye(T), root),
        centre=(V * theta) @ V.T + bulk,
        directions=len(lam),
    )


def replicates(denoised: Denoised, n: int, noise_scale: float, kernel: Kernel) -> list[Array]:
    """Return moments estimated from simulated releases around the estimate; the first are their truth, without noise.

    The seed is fixed: this noise is part of a computation and protects nothing.
    """
    rng = np.random.default_rng(0)
    T = len(denoised.centre)
    root = kernel.root(T)
    floor = 0.001 * noise_scale * math.sqrt(2 * T) * np.eye(T)
    estimates = [_unwhitened(denoised.centre + floor, root)]
    for _ in range(_REPLICATES):
        noise = symmetric_noise(T, noise_scale, rng)
        estimates.append(denoise(denoised.centre + noise, n, noise_scale, kernel).moments)
    return estimates


def symmetric_noise(T: int, scale: float, rng: np.random.Generator) -> Array:
    """Draw noise like that of a release, with this scale on the diagonal; in floating point, for simulations only."""
    above = np.triu(rng.normal(size=(T, T)), 1) * scale / math.sqrt(2)
    return np.asarray(above + above.T + np.diag(rng.normal(size=T)) * scale)


def plain(gram: Array, kernel: Kernel, *, ridge: float) -> Denoised:
    """Return the noisy moments with negative eigenvalues set to zero and ``ridge`` added to the diagonal."""
    root = kernel.root(len(gram))
    lam, V = _above(gram, 0.0)
    moments = _unwhitened((V * lam) @ V.T, root)
    return Denoised(moments + ridge * np.eye(len(gram)), (V * lam) @ V.T, len(lam))


def truncated(
    gram: Array, noise_scale: float, kernel: Kernel, *, rank: int | None = None, threshold: float | None = None
) -> Denoised:
    """Keep the largest eigenvalues: the first ``rank``, or those whose root, a singular value, is above a threshold."""
    root = kernel.root(len(gram))
    lam, V = _above(gram, 0.0 if threshold is None else threshold**2)
    if rank is not None:
        lam, V = lam[-rank:], V[:, -rank:]
    kept = (V * lam) @ V.T
    floor = 1e-9 * max(float(lam.max(initial=0.0)), noise_scale) * np.eye(len(gram))
    return Denoised(_unwhitened(kept + floor, root), kept, len(lam))


@lru_cache(maxsize=8)
def _bulk(kernel: Kernel, T: int) -> tuple[Array, Array, Array, Array]:
    """Return the kernel's root, the whitened covariances that make up the bulk, and a QR factorisation of them."""
    root = kernel.root(T)
    shapes = np.stack([_whitened(correlation(phi, T), root) for phi in _BULK_PERSISTENCE])
    basis, triangle = np.linalg.qr(shapes.reshape(len(shapes), -1).T)
    return root, shapes, basis, triangle


def _above(matrix: Array, limit: float) -> tuple[Array, Array]:
    """Return the eigenvalues above a limit, in increasing order, and their vectors."""
    values, vectors = eigh(matrix, subset_by_value=(limit, np.inf), check_finite=False)
    return np.asarray(values), np.asarray(vectors)


def _whitened(matrix: Array, root: Array) -> Array:
    """Return A M A' with A the inverse of the kernel's root."""
    half = solve_triangular(root, matrix, lower=True)
    return np.asarray(solve_triangular(root, half.T, lower=True))


def _unwhitened(matrix: Array, root: Array) -> Array:
    """Return A^-1 M A^-T."""
    return np.asarray(root @ matrix @ root.T)
