"""Synthetic control without privacy: the paper's Algorithm 1, with three ways to learn the weights.

Everything here is computed from raw donors and comes back as a ``NonPrivateResult``. The module knows nothing
of noise. No n × n matrix is formed when there are more donors than periods.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import nnls

from dpsc.answers.result import NonPrivateResult
from dpsc.checks import finite_number, whole_number
from dpsc.custodian.donors.panel import Panel, require_panel
from dpsc.errors import PanelError, ParameterError
from dpsc.types import Array

WeightMethod = Literal["ridge", "simplex", "robust"]


@dataclass(frozen=True)
class SyntheticControl:
    """Non-private synthetic control.

    Parameters
    ----------
    method : {"ridge", "simplex", "robust"}
        ``"ridge"``: the paper's regularised least squares. ``"simplex"``: Abadie's weights, non-negative and
        summing to one. ``"robust"``: hard singular-value thresholding of the donors, then ridge.
    lambda_ : float, optional
        The paper's lambda (scikit-learn's ``alpha`` is ``lambda_ / 2``). It applies to the data as scaled by
        the panel's bounds, or to the data as they are if the panel has none. Default: T0 for ridge on a bounded
        panel (the paper's advice), 0 for robust.
    rank, threshold : optional
        For ``"robust"``, one of them: how many singular values to keep, or the size above which they are kept.

    Examples
    --------
    >>> donors = np.array([[1., 2., 3., 4.], [2., 2., 2., 2.]])
    >>> panel = Panel.from_arrays(donors, donors.mean(axis=0), treatment_time=3)
    >>> SyntheticControl(method="simplex").fit(panel).counterfactual.round(3).tolist()
    [3.0]
    """

    _: KW_ONLY
    method: WeightMethod = "ridge"
    lambda_: float | None = None
    rank: int | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.method not in ("ridge", "simplex", "robust"):
            raise ParameterError(f"method must be 'ridge', 'simplex' or 'robust', not {self.method!r}.")
        if self.method == "simplex" and self.lambda_ is not None:
            raise ParameterError("simplex weights have no lambda_; use method='ridge' or leave it out.")
        if self.lambda_ is not None:
            finite_number("lambda_", self.lambda_, above=0 if self.method == "ridge" else None, at_least=0)
        if self.method != "robust":
            if self.rank is not None or self.threshold is not None:
                raise ParameterError("rank and threshold belong to method='robust'.")
            return
        if (self.rank is None) == (self.threshold is None):
            raise ParameterError("method='robust' needs rank or threshold, one of them.")
        if self.rank is not None:
            whole_number("rank", self.rank, at_least=1)
        if self.threshold is not None:
            finite_number("threshold", self.threshold, at_least=0)

    def fit(self, panel: Panel) -> NonPrivateResult:
        """Learn the weights before the intervention and project the donors after it."""
        require_panel(panel)
        if np.isnan(panel.donors).any():  # without bounds
            panel.require_filled("SyntheticControl")
            raise PanelError(
                "a donor has no value in any period; leave it out with donors=, or build the panel "
                "with bounds=(lo, hi), whose middle it then gets."
            )
        U = panel.donors if panel.bounds is None else panel.bounds.scale(panel.donors)
        y = panel.target.to_numpy(dtype=np.float64)[panel.pre]
        y = y if panel.bounds is None else panel.bounds.scale(y, panel.pre)

        if self.method == "robust":
            U = hard_threshold(U, rank=self.rank, threshold=self.threshold)
        if self.method == "simplex":
            weights = simplex_weights(U[:, panel.pre], y)
        else:
            weights = ridge_weights(U[:, panel.pre], y, self._lambda(panel))

        path: Array = U.T @ weights
        path = path if panel.bounds is None else panel.bounds.unscale(path)
        return NonPrivateResult(
            target=panel.target,
            T0=panel.T0,
            counterfactual=pd.Series(path[panel.post], index=panel.times[panel.post], name="counterfactual"),
            fitted=pd.Series(path[panel.pre], index=panel.times[panel.pre], name="fitted"),
            weights=pd.Series(weights, index=panel.donor_labels, name="weight"),
            algorithm=f"synthetic control ({self.method})",
            method=self.method,
        )

    def _lambda(self, panel: Panel) -> float:
        if self.lambda_ is not None:
            return float(self.lambda_)
        if self.method == "robust":
            return 0.0
        if panel.bounds is None:
            raise ParameterError(
                "lambda_ has the outcome's squared units on a panel without bounds, so there is no default: give "
                "lambda_=, or build the panel with bounds=(lo, hi) to work on the scale of [-1, 1]."
            )
        return float(panel.T0)


def ridge_weights(X: Array, y: Array, lambda_: float) -> Array:
    """Minimise ``||y - X'f||^2 + (lambda_/2) ||f||^2`` over f in R^n.

    The paper's objective is this divided by T0, which changes nothing: the minimiser is
    ``f = (X X' + mu I)^-1 X y`` with mu = lambda_/2, and equally ``f = X (X'X + mu I)^-1 y``. The smaller of the two
    systems is solved. With lambda_ = 0 it is the least-squares solution of smallest norm.
    """
    n, T0 = X.shape
    mu = lambda_ / 2
    if mu == 0:
        return np.asarray(np.linalg.lstsq(X.T, y, rcond=None)[0])
    if n > T0:
        return X @ _solve(X.T @ X, mu, y)
    return _solve(X @ X.T, mu, X @ y)


def simplex_weights(X: Array, y: Array) -> Array:
    """Minimise ``||y - X'f||^2`` over f >= 0 with sum(f) = 1.

    The weights give the point of the donors' convex hull nearest to y. With P the rows of X - y, non-negative least
    squares of ``||P'u||^2 + (1'u - 1)^2`` finds it: at u = s f the best s leaves d^2 / (1 + d^2), increasing in the
    distance d = ||P'f||, so u / sum(u) is optimal.
    """
    P = X - y
    size = np.abs(P).max()
    if size == 0:
        return np.full(X.shape[0], 1.0 / X.shape[0])
    # Only the ratio of the two terms changes with the scale, not the optimal f; unit size keeps it well conditioned.
    system = np.vstack([P.T / size, np.ones(X.shape[0])])
    u = nnls(system, np.append(np.zeros(X.shape[1]), 1.0))[0]
    return np.asarray(u / u.sum())


def hard_threshold(U: Array, *, rank: int | None = None, threshold: float | None = None) -> Array:
    """Keep the largest singular values of U: the first ``rank``, or those above ``threshold``.

    Uses the smaller Gram matrix of U, so a tall panel costs a T × T eigenproblem.
    """
    tall = U.shape[0] >= U.shape[1]
    squared, vectors = np.linalg.eigh(U.T @ U if tall else U @ U.T)
    singular = np.sqrt(np.clip(squared, 0, None))
    if rank is None:
        rank = int((singular > (threshold or 0.0)).sum())
    basis = vectors[:, max(0, len(singular) - rank) :]
    return np.asarray((U @ basis) @ basis.T if tall else basis @ (basis.T @ U))


def _solve(gram: Array, mu: float, right: Array) -> Array:
    gram[np.diag_indices_from(gram)] += mu
    return np.asarray(cho_solve(cho_factor(gram, lower=True, overwrite_a=True), right))
