"""The paper's two algorithms exactly as printed: DPSC_out (Algorithm 2) and DPSC_obj (Algorithm 3).

They exist to reproduce and compare. DPSC_out is private as printed, with far more noise than it needs. DPSC_obj is not
proved private: its proof assumes ||f||_1 <= 1 at the output, which minimising over R^n does not give.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np

from dpsc import checks
from dpsc.answers.result import SEEDED, PrivateResult, UnprovenResult, released
from dpsc.custodian.donors.panel import Panel, require_panel
from dpsc.custodian.weights.classic import ridge_weights
from dpsc.custodian.weights.projection import Parameters, findings, sizes
from dpsc.errors import UnprovenError
from dpsc.privacy import laplace, sensitivity
from dpsc.privacy import source as noise
from dpsc.privacy.additive import NoiseLaw
from dpsc.privacy.exact import require_solvable
from dpsc.privacy.guarantee import Guarantee
from dpsc.types import Array

WHY_UNPROVEN = (
    "the paper's proof bounds the gradient only where ||f||_1 <= 1, but minimises over all of R^n, where no finite "
    "epsilon holds for the weights"
)


@dataclass(frozen=True)
class PrintedOutputPerturbation:
    """Algorithm 2. Build it with :meth:`dpsc.OutputPerturbation.as_printed`."""

    _: KW_ONLY
    epsilon1: float
    epsilon2: float
    lambda_: float
    seed: int | None = None

    def __post_init__(self) -> None:
        _check(self.epsilon1, self.epsilon2, self.lambda_)

    @property
    def guarantee(self) -> Guarantee | None:
        """What a result will promise, known before noise is drawn; None if the noise comes from a seed."""
        if self.seed is not None:
            return None
        learning = Guarantee(self.epsilon1, basis="paper, Theorem step1.privacy")
        return learning + Guarantee(self.epsilon2, basis="paper, Lemma step2.privacy")

    @np.errstate(all="ignore")
    def fit(self, panel: Panel) -> PrivateResult | UnprovenResult:
        """Release noisy weights and a noisy counterfactual, (epsilon1 + epsilon2, 0)-differentially private."""
        require_panel(panel)
        data = panel.scaled("DPSC_out (Algorithm 2)")
        require_solvable(panel.n, panel.T0, math.sqrt(panel.T0), self.lambda_ / 2)
        source = noise.choose(self.seed)

        # Step 1: learn regression coefficients
        f_reg = ridge_weights(data.X, data.y, self.lambda_)
        a = sensitivity.printed_ridge(panel.n, panel.T0, self.lambda_) / self.epsilon1
        f_out = f_reg + laplace.sample(panel.n, a, source)

        # Step 2: predict via projection
        b = sensitivity.post_period(panel.h) / self.epsilon2
        y_out, noise_law = _project(data.Z, f_out, b, source)

        parameters = _parameters(self, panel) | {"a": a, "b": b}
        name = "DPSC_out as printed (paper, Algorithm 2)"
        return released(self.guarantee, SEEDED, **findings(panel, name, f_out, y_out, parameters, noise_law))


@dataclass(frozen=True)
class PrintedObjectivePerturbation:
    """Algorithm 3. Build it with :meth:`dpsc.ObjectivePerturbation.as_printed`."""

    _: KW_ONLY
    epsilon1: float
    epsilon2: float
    lambda_: float
    delta: float = 0.0
    c: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        _check(self.epsilon1, self.epsilon2, self.lambda_)
        checks.delta("delta", self.delta)
        if self.c is not None:
            checks.finite_number("c", self.c, above=0)

    @property
    def guarantee(self) -> None:
        """None: nothing is proved."""
        return None

    @np.errstate(all="ignore")
    def fit(self, panel: Panel, *, unproven: bool = False) -> UnprovenResult:
        """Run on data; this needs ``unproven=True``, because no guarantee is known to hold."""
        if unproven is not True:
            raise UnprovenError(
                f"DPSC_obj as printed carries no guarantee: {WHY_UNPROVEN}. To run it on data anyway, for "
                "example to reproduce the paper, call fit(panel, unproven=True)."
            )
        require_panel(panel)
        data = panel.scaled("DPSC_obj (Algorithm 3)")
        require_solvable(panel.n, panel.T0, math.sqrt(panel.T0), self.lambda_ / 2)
        source = noise.choose(self.seed)
        n, T0 = data.X.shape

        # Step 1: learn regression coefficients
        c = default_c(n, T0) if self.c is None else self.c
        epsilon0, Delta = divide_budget(self.epsilon1, self.lambda_, c)
        beta = printed_beta(n, T0, epsilon0, self.delta, c)
        b_vector = beta * source.normals((n,)) if self.delta > 0 else laplace.sample(n, beta, source)
        f_obj = perturbed_minimiser(data.X, data.y, self.lambda_ + Delta, b_vector)

        # Step 2: predict via projection
        b = sensitivity.post_period(panel.h) / self.epsilon2
        y_obj, noise_law = _project(data.Z, f_obj, b, source)

        used = {"delta": self.delta, "c": c, "epsilon0": epsilon0, "Delta": Delta, "beta": beta, "b": b}
        parameters = _parameters(self, panel) | used
        name = "DPSC_obj as printed (paper, Algorithm 3)"
        reason = WHY_UNPROVEN if self.seed is None else f"{WHY_UNPROVEN}; {SEEDED}"
        return UnprovenResult(**findings(panel, name, f_obj, y_obj, parameters, noise_law), reason=reason)


def default_c(n: int, T0: int) -> float:
    """Return the paper's bound on the eigenvalues of 2 (X'X'' - XX'), ``(1 + sqrt(16 n - 15)) T0``."""
    return (1 + math.sqrt(16 * n - 15)) * T0


def divide_budget(epsilon1: float, lambda_: float, c: float) -> tuple[float, float]:
    """Return epsilon0, what is left for the noise, and Delta, the curvature added when epsilon1 is small."""
    jacobian = math.log(1 + 2 * c / lambda_ + c**2 / lambda_**2)
    if epsilon1 > jacobian:
        return epsilon1 - jacobian, 0.0
    return epsilon1 / 2, c / math.expm1(epsilon1 / 4) - lambda_


def printed_beta(n: int, T0: int, epsilon0: float, delta: float, c: float) -> float:
    """Return beta: a standard deviation when delta > 0, the scale of the high-dimensional Laplace otherwise."""
    gradient = 4 * T0 * math.sqrt(8 + n)
    if delta > 0:
        return gradient * math.sqrt(2 * math.log(2 / delta) + epsilon0) / epsilon0
    return min(gradient, c * math.sqrt(n) + 4 * T0) / epsilon0


def perturbed_minimiser(X: Array, y: Array, nu: float, b: Array) -> Array:
    """Minimise ``||y - X'f||^2 + (nu/2) ||f||^2 + b'f`` over R^n, for nu = lambda + Delta.

    The minimiser is ``(X X' + (nu/2) I)^-1 (X y - b/2)``. With more donors than periods the Woodbury identity leaves
    a T0 × T0 system: ``(X X' + m I)^-1 v = (v - X (X'X + m I)^-1 X'v) / m``.
    """
    n, T0 = X.shape
    m = nu / 2
    v = X @ y - b / 2
    if n <= T0:
        return np.linalg.solve(X @ X.T + m * np.eye(n), v)
    return np.asarray((v - X @ np.linalg.solve(X.T @ X + m * np.eye(T0), X.T @ v)) / m)


def _check(epsilon1: float, epsilon2: float, lambda_: float) -> None:
    checks.epsilon("epsilon1", epsilon1)
    checks.epsilon("epsilon2", epsilon2)
    checks.finite_number("lambda_", lambda_, above=0)


def _project(Z: Array, f: Array, b: float, source: noise.Source) -> tuple[Array, NoiseLaw]:
    """Return (Z + W)'f, where W is one joint draw in n*h dimensions (independent entries would not be private).

    Given the released f, the noise W'f on the answer is ||f|| times h coordinates of that draw.
    """
    W = laplace.sample(Z.size, b, source).reshape(Z.shape)
    law = NoiseLaw("joint laplace", b * float(np.linalg.norm(f)), Z.shape[1], ambient=Z.size)
    return np.asarray((Z + W).T @ f), law


def _parameters(algorithm: PrintedOutputPerturbation | PrintedObjectivePerturbation, panel: Panel) -> Parameters:
    chosen = {"lambda_": algorithm.lambda_, "epsilon1": algorithm.epsilon1, "epsilon2": algorithm.epsilon2}
    return sizes(panel) | chosen
