"""Triangular roots of covariances that rounding may have made singular."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from dpsc.errors import ReleaseError
from dpsc.types import Array

_ADDED = (0.0, 1e-13, 1e-10, 1e-7, 1e-4)  # to the diagonal, as a share of it: the first that is enough


def root_of(covariance: Array) -> Array:
    """Return a lower triangular L with L L' = covariance, or almost so."""
    for added in _ADDED:
        matrix = _with_added(covariance, added) if added else covariance
        root, failed = dpotrf(matrix.T)  # the upper root of the transpose, as LAPACK stores matrices
        if not failed and np.isfinite(root).all():
            return np.asarray(root.T)
    raise ReleaseError("the numbers of the release or the target are too large or too small to compute with.")


def _with_added(covariance: Array, share: float) -> Array:
    return covariance + share * float(np.diag(covariance).mean()) * np.eye(len(covariance))


def solve(root: Array, values: Array, *, transposed: bool = False) -> Array:
    """Return root^-1 values, or root'^-1 values: what SciPy's ``solve_triangular`` does, without its checks.

    An estimate solves thousands of small systems, for which the checks take longer than the solution.
    """
    solution, failed = dtrtrs(root.T, values, lower=0, trans=not transposed)  # root.T is as LAPACK stores matrices
    if failed:
        raise ReleaseError("the numbers of the release or the target are too large or too small to compute with.")
    return np.asarray(solution)
