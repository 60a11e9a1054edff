"""DPSC_obj made private: perturb the objective, minimise it over {||f||_1 <= 1}, project the donors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass

import numpy as np

from dpsc import checks
from dpsc.answers.result import SEEDED, PrivateResult, UnprovenResult, released
from dpsc.custodian.donors.panel import Panel, require_panel
from dpsc.custodian.weights import minimiser
from dpsc.custodian.weights.minimiser import GriddedRows
from dpsc.custodian.weights.printed import PrintedObjectivePerturbation
from dpsc.custodian.weights.projection import check_answer, findings, onto_l1_ball, release_answer, sizes
from dpsc.errors import ParameterError
from dpsc.privacy import discrete, exact, sensitivity
from dpsc.privacy import source as randomness
from dpsc.privacy.accounting import Loss
from dpsc.privacy.additive import StepBudget, release_integers, single, warn_of_large_delta
from dpsc.privacy.guarantee import Guarantee, promised
from dpsc.types import Array, Integers

NAME = "ObjectivePerturbation"
OnProgress = Callable[[int], None]
LARGEST_LAMBDA = 1e12
SOLVER_SHARE = 0.02  # of the learning budget, to hide how the solver's last digits depend on donors


@dataclass(frozen=True)
class ObjectivePerturbation:
    """Private synthetic control by objective perturbation over {||f||_1 <= 1}.

    The paper's Algorithm 3 with the constraint that its proof needs, sharper constants, and the answer projected.

    Parameters
    ----------
    epsilon, delta : float
        The whole budget. delta = 0 gives pure differential privacy and Laplace noise, delta > 0 Gaussian noise.
    split : float
        The share of the budget that the weights get; the rest pays for the counterfactual.
    lambda_ : float, optional
        The paper's lambda on the scale of [-1, 1]; T0 by default, the paper's advice. The algorithm raises it to the
        curvature ``nu`` that the privacy of the minimiser needs.
    seed : int, optional
        For experiments only; the result then says that it is not private.

    Examples
    --------
    >>> panel = Panel.from_arrays(np.ones((4, 6)), np.ones(6), treatment_time=4, bounds=(-1, 1))
    >>> print(ObjectivePerturbation(epsilon=1.0, delta=1e-6).fit(panel).guarantee)
    (1, 1e-06)-differential privacy, replace one donor, exact arithmetic; constrained objective ...
    """

    _: KW_ONLY
    epsilon: float
    delta: float = 0.0
    split: float = 0.5
    lambda_: float | None = None
    seed: int | None = None
    arithmetic: InitVar[str | None] = None

    def __post_init__(self, arithmetic: str | None) -> None:
        checks.budget(self.epsilon, self.delta, self.split, arithmetic)
        if self.lambda_ is not None:
            checks.finite_number("lambda_", self.lambda_, above=0)
            if self.lambda_ > LARGEST_LAMBDA:
                raise ParameterError(f"lambda_ must be at most {LARGEST_LAMBDA:g}, not {self.lambda_:g}.")

    @property
    def _budgets(self) -> tuple[tuple[float, float], StepBudget]:
        """The (epsilon, delta) of the weights and the budget of the answer."""
        rest = 1 - self.split
        for_answer = single(rest * self.epsilon, rest * self.delta)
        return (self.split * self.epsilon, self.split * self.delta), for_answer

    @property
    def guarantee(self) -> Guarantee | None:
        """What a result will promise, known before noise is drawn; None if the noise comes from a seed."""
        for_weights, for_answer = self._budgets
        loss = Loss.from_epsilon_delta(*for_weights) + for_answer.loss
        basis = "constrained objective perturbation, answer projection"
        return promised(self.epsilon, self.delta, self.seed, basis=basis, loss=loss)

    @np.errstate(all="ignore")
    def fit(self, panel: Panel, *, on_progress: OnProgress = lambda drawn: None) -> PrivateResult | UnprovenResult:
        """Release weights and a counterfactual; ``on_progress`` receives how many numbers are drawn, two per donor."""
        require_panel(panel)
        data = panel.scaled(NAME)
        source = randomness.choose(self.seed)
        lambda_ = float(panel.T0) if self.lambda_ is None else float(self.lambda_)
        (epsilon1, delta1), for_answer = self._budgets
        check_answer(data, for_answer)
        warn_of_large_delta(self.delta, panel.n)

        # Step 1: learn regression coefficients
        X = GriddedRows(data.X_blocks(), data.shape)
        f, used = release_minimiser(X, data.y, lambda_, epsilon1, delta1, source, on_progress)

        # Step 2: predict via projection
        path, noise = release_answer(data, f, for_answer, source)

        chosen = {"lambda_": lambda_, "epsilon": self.epsilon, "delta": self.delta, "split": self.split}
        parameters = sizes(panel) | chosen | {"noise": noise.law, **used, "answer_scale": noise.scale}
        return released(self.guarantee, SEEDED, **findings(panel, NAME, f, path, parameters, noise))

    @staticmethod
    def as_printed(
        *,
        epsilon1: float,
        epsilon2: float,
        lambda_: float,
        delta: float = 0.0,
        c: float | None = None,
        seed: int | None = None,
    ) -> PrintedObjectivePerturbation:
        """Return the paper's Algorithm 3. It is not proved private: ``fit`` needs ``unproven=True``.

        Parameters
        ----------
        epsilon1, epsilon2 : float
            The budgets of the learning and of the projection step, as the paper claims them.
        lambda_ : float
            The paper's lambda, above 0.
        delta : float
            0 for Laplace noise, above 0 for Gaussian noise in the objective.
        c : float, optional
            The paper's bound on eigenvalues; ``(1 + sqrt(16 n - 15)) T0`` by default.
        seed : int, optional
            For experiments only.

        Examples
        --------
        >>> panel = Panel.from_arrays(np.ones((4, 6)), np.ones(6), treatment_time=4, bounds=(-1, 1))
        >>> algorithm = ObjectivePerturbation.as_printed(epsilon1=0.5, epsilon2=0.5, lambda_=4.0)
        >>> algorithm.fit(panel, unproven=True).guarantee is None
        True
        """
        return PrintedObjectivePerturbation(
            epsilon1=epsilon1, epsilon2=epsilon2, lambda_=lambda_, delta=delta, c=c, seed=seed
        )


def release_minimiser(
    X: GriddedRows,
    y: Array,
    lambda_: float,
    epsilon: float,
    delta: float,
    source: randomness.Source,
    on_progress: OnProgress = lambda drawn: None,
) -> tuple[Array, dict[str, float]]:
    """Release the minimiser of the perturbed objective over the l1 ball, (epsilon, delta)-differentially private.

    Private: X, entries in [-1, 1]. Neighbours: one row replaced.
    The true minimiser alpha is one mechanism: the noise b that leads to a given alpha (and normal vector)
    differs between neighbours by the gradient's difference (``sensitivity.constrained_gradient``), and the Jacobian by
    ``sensitivity.constrained_jacobian``. What is computed is within a public tolerance of alpha and is then released
    with noise for twice that tolerance, as a second mechanism that sees alpha. Proof, also for noise on a grid:
    docs/proofs/objective-perturbation.md. It would break without the constraint, or with a tolerance that the solver
    does not keep.
    """
    n, T0 = X.shape
    for_noise, for_solver = (1 - SOLVER_SHARE) * epsilon, SOLVER_SHARE * epsilon
    nu = max(lambda_, (sensitivity.constrained_jacobian(n, T0, 1.0) - 1) / math.expm1(min(for_noise / 2, 700)))
    epsilon0 = exact.safely_below(for_noise - math.log(sensitivity.constrained_jacobian(n, T0, nu)))

    limit = 4 * minimiser.gradient_size(T0, nu)
    tolerance = minimiser.tolerance(n, T0, nu)
    if tolerance >= 1e-3:
        raise ParameterError(f"lambda_ = {lambda_:g} is too small to solve for accurate weights; use a larger one.")
    finest = 2 * nu * tolerance / math.sqrt(n)
    integers, beta, unit = draw_on_a_grid(n, T0, epsilon0, (1 - SOLVER_SHARE) * delta, finest, source, on_progress)
    b = minimiser.shrink_noise(integers, math.ceil(limit / unit)) * unit
    alpha = minimiser.minimise(X, y, nu, b)

    # The continuous noise of the proof is within half a unit of b in each coordinate (docs).
    apart = exact.safely_above(2 * (tolerance + math.sqrt(n) * unit / 2 / nu))
    grid = exact.power_of_two_below(apart / math.sqrt(n))
    l2 = exact.safely_above(apart / grid + math.sqrt(n))
    noisy, noise = release_integers(
        exact.as_integers(np.rint(alpha / grid)),
        (math.sqrt(n) * l2, l2),
        single(for_solver, SOLVER_SHARE * delta),
        source,
        largest=1 / grid + 1,
        on_progress=on_progress,
    )
    used = {"nu": nu, "epsilon0": epsilon0, "beta": beta, "solver_scale": noise.scale * grid}
    return onto_l1_ball(noisy * grid), used


def draw_on_a_grid(
    n: int,
    T0: int,
    epsilon0: float,
    delta: float,
    finest: float,
    source: randomness.Source,
    on_progress: OnProgress = lambda drawn: None,
) -> tuple[Integers, float, float]:
    """Draw discrete noise for the objective; return the integers, the scale of the noise and the unit of its grid.

    The proof spreads each integer uniformly over its cell: this noise has a density, which the proof needs, and the
    true draw is within half a unit of it. Laplace: shifting by h changes the integers by at most ||h||_1 / unit + n in
    l1. Gaussian: t bounds all n entries except with probability delta / 1000; there, and shifted by h,
    r = ||h|| / beta, the density is within a factor e^eta of the continuous one, eta = n (t + r + 2) unit / beta. The
    unit is ``finest`` or coarser, but never so fine that 64 bits hold less than 2^12 scales on either side.
    """
    l1, l2 = sensitivity.constrained_gradient(n, T0)
    if delta == 0:
        unit = exact.power_of_two_below(max(min(l1 / n / 2**14, finest), l1 / epsilon0 / 2**50))
        beta = exact.safely_above((l1 + n * unit) / epsilon0)
        kind: discrete.Kind = "laplace"
    else:
        tail = math.sqrt(2 * math.log(2 * n * 1000 / delta))
        eta = min(epsilon0 / 2**12, 0.005)
        beta = exact.safely_above(gaussian_beta(l2, epsilon0 - 2 * eta, 0.99 * delta))
        reach = n * (tail + l2 / beta + 2)
        unit = exact.power_of_two_below(max(min(eta * beta / reach, beta / 2**10, finest), beta / 2**50))
        if reach * unit / beta > eta:
            raise ParameterError("the grid of the noise is too coarse for so many donors; use a larger budget.")
        kind = "gaussian"
    zeros = np.zeros(n, dtype=np.int64)
    return discrete.add(zeros, kind, beta / unit, source, largest=0, on_progress=on_progress), beta, unit


def gaussian_beta(l2: float, epsilon0: float, delta: float) -> float:
    """Return the standard deviation with which the privacy loss of the noise exceeds epsilon0 with probability delta.

    The gradient's difference h lies in a fixed plane (of e_i and X(x' - x)), so <b, h> <= ||h|| beta chi, where chi is
    the norm of a standard normal in the plane: P(chi > t) = exp(-t^2 / 2) = delta. The loss is at most
    ``r t + r^2 / 2`` with r = ||h|| / beta.
    """
    t = math.sqrt(2 * math.log(1 / delta))
    return l2 / (2 * epsilon0) * (t + math.sqrt(t**2 + 2 * epsilon0))
