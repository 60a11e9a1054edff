"""Triangular roots of covariances that rounding may have made singular."""

from __future__ import annotations

import numpy as np

from dpsc.errors import ReleaseError
from dpsc.types import Array

_ADDED = (0.0, 1e-13, 1e-10, 1e-7, 1e-4)  # to the diagonal, as a share of it: the first that is enough


def root_of(covariance: Array) -> Array:
    """Return a lower triangular L with L L' = covariance, or almost so."""
    size = float(np.diag(covariance).mean())
    for added in _ADDED:
        try:
            root = np.linalg.cholesky(covariance + added * size * np.eye(len(covariance)) if added else covariance)
        except np.linalg.LinAlgError:
            continue
        if np.isfinite(root).all():
            return root
    raise ReleaseError("the numbers of the release or the target are too large or too small to compute with.")
