"""DPSC_out: learn the weights, add noise to them, project the donors after the intervention."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dpsc import checks
from dpsc.answers.result import SEEDED, PrivateResult, UnprovenResult, released
from dpsc.custodian.donors.panel import Panel, require_panel
from dpsc.custodian.weights.minimiser import GriddedRows
from dpsc.custodian.weights.printed import PrintedOutputPerturbation
from dpsc.custodian.weights.projection import check_answer, findings, onto_l1_ball, release_answer, sizes
from dpsc.privacy import exact, sensitivity
from dpsc.privacy import source as randomness
from dpsc.privacy.additive import StepBudget, divide, release_integers, warn_of_large_delta
from dpsc.privacy.exact import solver_error
from dpsc.privacy.guarantee import Guarantee, promised
from dpsc.types import Array

NAME = "OutputPerturbation"
OnProgress = Callable[[int], None]
SMALLEST_TARGET = 1e-150  # a target below this, on a scale where bounds are 1, counts as zero
SMALLEST_ROW_NORM = 2.0**-10  # well above the grid of exact arithmetic


@dataclass(frozen=True)
class OutputPerturbation:
    """Private synthetic control by output perturbation, with the exact sensitivity and the answer projected.

    Parameters
    ----------
    epsilon, delta : float
        The whole budget. delta = 0 gives pure differential privacy and Laplace noise, delta > 0 Gaussian noise.
    split : float
        The share of the budget that the weights get; the rest pays for the counterfactual.
    lambda_ : float, optional
        The paper's lambda on the scale of [-1, 1]. Default: the square of the row norm, which is T0 without
        ``row_norm``: the paper's advice, and a public number.
    row_norm : float, optional
        A public bound on the norm of a donor's scaled row before the intervention, at most sqrt(T0). Longer rows are
        shortened to it, silently; the noise on the weights shrinks with it.
    weights_ball : bool
        Whether to project the released weights onto {||f||_1 <= 1}, the paper's model assumption. It costs no budget.
    seed : int, optional
        For experiments only; the result then says that it is not private.

    Examples
    --------
    >>> panel = Panel.from_arrays(np.ones((4, 6)), np.ones(6), treatment_time=4, bounds=(-1, 1))
    >>> print(OutputPerturbation(epsilon=1.0).fit(panel).guarantee)
    (1, 0)-differential privacy, replace one donor, exact arithmetic; exact ridge sensitivity, answer projection
    """

    _: KW_ONLY
    epsilon: float
    delta: float = 0.0
    split: float = 0.5
    lambda_: float | None = None
    row_norm: float | None = None
    weights_ball: bool = True
    seed: int | None = None
    arithmetic: InitVar[str | None] = None

    def __post_init__(self, arithmetic: str | None) -> None:
        checks.budget(self.epsilon, self.delta, self.split, arithmetic)
        if self.lambda_ is not None:
            checks.finite_number("lambda_", self.lambda_, above=0)
        if self.row_norm is not None:
            checks.finite_number("row_norm", self.row_norm, at_least=SMALLEST_ROW_NORM)

    @property
    def _budgets(self) -> tuple[StepBudget, StepBudget]:
        """The budgets of the weights and of the answer."""
        return divide(self.epsilon, self.delta, self.split)

    @property
    def guarantee(self) -> Guarantee | None:
        """What a result will promise, known before noise is drawn; None if the noise comes from a seed."""
        for_weights, for_answer = self._budgets
        basis, loss = "exact ridge sensitivity, answer projection", for_weights.loss + for_answer.loss
        return promised(self.epsilon, self.delta, self.seed, basis=basis, loss=loss)

    @np.errstate(all="ignore")
    def fit(self, panel: Panel, *, on_progress: OnProgress = lambda drawn: None) -> PrivateResult | UnprovenResult:
        """Release weights and a counterfactual; ``on_progress`` receives how many weights have their noise."""
        require_panel(panel)
        data = panel.scaled(NAME)
        source = randomness.choose(self.seed)
        square = float(panel.T0) if self.row_norm is None else min(self.row_norm**2, float(panel.T0))
        R = math.sqrt(square)
        lambda_ = square if self.lambda_ is None else float(self.lambda_)
        for_weights, for_answer = self._budgets
        check_answer(data, for_answer)
        warn_of_large_delta(self.delta, panel.n)

        # Step 1: learn regression coefficients
        X = GriddedRows((shorten_rows(rows, R) for rows in data.X_blocks()), data.shape)
        f, weight_scale = release_ridge(X, data.y, lambda_, R, for_weights, source, on_progress)
        f = onto_l1_ball(f) if self.weights_ball else f

        # Step 2: predict via projection
        path, noise = release_answer(data, f, for_answer, source)

        chosen = {"epsilon": self.epsilon, "delta": self.delta, "split": self.split, "weights_ball": self.weights_ball}
        used = {"noise": noise.law, "weight_scale": weight_scale, "answer_scale": noise.scale}
        parameters = sizes(panel) | {"lambda_": lambda_, "row_norm": R} | chosen | used
        return released(self.guarantee, SEEDED, **findings(panel, NAME, f, path, parameters, noise))

    @staticmethod
    def as_printed(
        *, epsilon1: float, epsilon2: float, lambda_: float, seed: int | None = None
    ) -> PrintedOutputPerturbation:
        """Return the paper's Algorithm 2: (epsilon1 + epsilon2, 0)-differentially private, far too noisy to use.

        Parameters
        ----------
        epsilon1, epsilon2 : float
            The budgets of the learning and of the projection step.
        lambda_ : float
            The paper's lambda, above 0.
        seed : int, optional
            For experiments only; the result then says that it is not private.

        Examples
        --------
        >>> panel = Panel.from_arrays(np.ones((4, 6)), np.ones(6), treatment_time=4, bounds=(-1, 1))
        >>> result = OutputPerturbation.as_printed(epsilon1=0.5, epsilon2=0.5, lambda_=4.0).fit(panel)
        >>> print(result.guarantee)
        (1, 0)-differential privacy, replace one donor, float arithmetic; paper, Theorem step1.privacy, ...
        """
        return PrintedOutputPerturbation(epsilon1=epsilon1, epsilon2=epsilon2, lambda_=lambda_, seed=seed)


def shorten_rows(X: Array, R: float) -> Array:
    """Scale rows longer than R down to it, a little below so that rounding cannot exceed it; a row-local function."""
    if math.sqrt(X.shape[1]) <= R:  # entries in [-1, 1] are enough
        return X
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X * np.minimum(1.0, R * (1 - 2.0**-40) / np.maximum(norms, R / 2)))


def release_ridge(
    X: GriddedRows,
    y: Array,
    lambda_: float,
    R: float,
    budget: StepBudget,
    source: randomness.Source,
    on_progress: OnProgress = lambda drawn: None,
) -> tuple[Array, float]:
    """Release the ridge weights as integers with discrete noise; return them in real units, and the noise scale.

    Private: X, rows of norm at most R. Neighbours: one row replaced. The donors were truncated to a grid, which
    shortens rows and is row-local, so ``sensitivity.exact_ridge`` bounds how far the true weights of the truncated
    donors move. What is computed in floating point differs from those by at most e (``solver_error``), and rounding to
    the grid moves each of n weights by at most half a unit. So the integers move by at most
    ``(sensitivity + 2 e) / unit + sqrt(n)`` in l2 and sqrt(n) times that in l1. A solver without the stated error
    bound, or a unit chosen from the donors, would break it.
    """
    n, T0 = X.shape
    mu = lambda_ / 2
    y_norm = exact.norm(y)
    e = solver_error(n, T0, y_norm, R, mu)
    if y_norm < SMALLEST_TARGET:
        return np.zeros(n), 0.0  # the weights are zero whatever the donors are
    l2 = exact.safely_above(sensitivity.exact_ridge(y_norm, R, lambda_) + 2 * e)
    unit = exact.power_of_two_below(l2 / math.sqrt(n) / 2**24)

    gram = X.second_moments()
    gram[np.diag_indices(T0)] += mu
    f = X @ cho_solve(cho_factor(gram), y)

    l2_units = exact.safely_above(l2 / unit + math.sqrt(n))
    noisy, noise = release_integers(
        exact.as_integers(np.rint(f / unit)),
        (math.sqrt(n) * l2_units, l2_units),
        budget,
        source,
        largest=(y_norm / (2 * math.sqrt(mu)) + e) / unit + 1,
        on_progress=on_progress,
    )
    return noisy * unit, noise.scale * unit
