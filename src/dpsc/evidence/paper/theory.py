"""The paper's accuracy bounds, as printed and with the noise norms corrected.

The printed theorems assume E||v|| = a for density proportional to exp(-||v||/a) in d dimensions. It is d * a, so the
printed bounds are too small by the dimension and are violated in practice. ``corrected`` uses the right norms:
``a -> n a`` for the weights and ``sqrt(2)/epsilon2 -> 2 n h / epsilon2`` for the projected matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dpsc.custodian.weights.printed import default_c, divide_budget, printed_beta
from dpsc.errors import ParameterError
from dpsc.evidence.paper.points import AlgorithmName
from dpsc.privacy.sensitivity import printed_ridge

Form = Literal["as_printed", "corrected"]
FORMS: tuple[Form, ...] = ("as_printed", "corrected")


@dataclass(frozen=True)
class Setting:
    """The quantities in the accuracy theorems.

    Attributes
    ----------
    n, T0, h : int
        Donors, periods before and from the intervention on.
    lambda_, epsilon1, epsilon2, delta, c : float
        The algorithm's parameters; ``c=None`` is the paper's default.
    signal_norm : float
        The spectral norm of the donors' true signal after the intervention, ||M_post||.
    weight_error : float
        E||f_reg - f||, the non-private distance to the true weights.
    sigma : float
        The standard deviation of the observation noise.
    psi : float
        A bound on the largest non-private weight.
    """

    n: int
    T0: int
    h: int
    lambda_: float
    epsilon1: float
    epsilon2: float
    signal_norm: float
    weight_error: float
    sigma: float
    psi: float
    delta: float = 0.0
    c: float | None = None


def output_bound(setting: Setting, form: Form) -> float:
    """Bound the RMSE of DPSC_out (Theorem thm.acc.out).

    Examples
    --------
    >>> setting = Setting(n=10, T0=10, h=3, lambda_=10, epsilon1=1, epsilon2=1,
    ...                   signal_norm=5, weight_error=0, sigma=0.1, psi=0.1)
    >>> round(output_bound(setting, "as_printed")), round(output_bound(setting, "corrected"))
    (79, 10745)
    """
    return _combine(setting, form, weight_noise=_output_noise(setting, form))


def objective_bound(setting: Setting, form: Form) -> float:
    """Bound the RMSE of DPSC_obj (Theorem thm.acc.obj)."""
    return _combine(setting, form, weight_noise=_objective_noise(setting, form))


def bound(method: AlgorithmName, setting: Setting, form: Form) -> float:
    """Bound the RMSE of one of the two algorithms."""
    return output_bound(setting, form) if method == "out" else objective_bound(setting, form)


def cost_of_privacy(setting: Setting, form: Form) -> float:
    """Return what privacy adds to the bound for DPSC_out (equation eq.accu.diff): the terms with an epsilon in them."""
    v = _output_noise(setting, form)
    W = _projection_noise(setting, form)
    spread = setting.signal_norm / math.sqrt(setting.h) + math.sqrt(setting.n) * setting.sigma
    return spread * v + W * (math.sqrt(setting.n) * setting.psi + v)


def output_corollary(setting: Setting, *, s: float, xi: float) -> float:
    """Return the closed form of Corollary cor.accuracy, as printed: it does not hold.

    Besides the noise norms, its eigenvalue lemma (lem.eigen) is false: it gives X X' a smallest eigenvalue of
    (1 - xi) T0, but a rank-k matrix with k < n has smallest eigenvalue 0. ``s`` bounds the observation noise; xi in
    (0, 1) is free.
    """
    return _corollary(setting, s, xi, _output_noise(setting, "as_printed"))


def objective_corollary(setting: Setting, *, s: float, xi: float) -> float:
    """Return the closed form of Corollary cor.accuracy.obj, as printed: it does not hold, for the same reasons."""
    return _corollary(setting, s, xi, _objective_noise(setting, "as_printed"))


def _combine(setting: Setting, form: Form, weight_noise: float) -> float:
    """Add up the terms both theorems share, given the expected distance of the released weights from f_reg."""
    first = setting.signal_norm / math.sqrt(setting.h) * (setting.weight_error + weight_noise)
    rows = math.sqrt(setting.n) * setting.sigma + _projection_noise(setting, form)
    return first + rows * (math.sqrt(setting.n) * setting.psi + weight_noise)


def _corollary(setting: Setting, s: float, xi: float, weight_noise: float) -> float:
    if not 0 < xi < 1:
        raise ParameterError(f"xi must be between 0 and 1, not {xi!r}.")
    n, T0, sigma = setting.n, setting.T0, setting.sigma
    regularisation = setting.lambda_ / (2 * T0)
    numerator = (math.sqrt(2 * n) * sigma + math.sqrt(2 * n) * sigma * s) * T0 + regularisation
    weight_error = numerator / ((1 - xi) * T0 + regularisation)
    rows = math.sqrt(n) * sigma + _projection_noise(setting, "as_printed")
    return math.sqrt(n) * (weight_error + weight_noise) + rows * (math.sqrt(n) * setting.psi + weight_noise)


def _projection_noise(setting: Setting, form: Form) -> float:
    """E||W||_F / sqrt(h)."""
    _check(form)
    if form == "as_printed":
        return math.sqrt(2) / setting.epsilon2
    return 2 * setting.n * setting.h / setting.epsilon2


def _output_noise(setting: Setting, form: Form) -> float:
    """E||v||."""
    _check(form)
    a = printed_ridge(setting.n, setting.T0, setting.lambda_) / setting.epsilon1
    return a if form == "as_printed" else setting.n * a


def _objective_noise(setting: Setting, form: Form) -> float:
    """Bound E||f_obj - f_reg|| (Lemma lem.fobjacc) with the printed or the right E||b||."""
    _check(form)
    n, T0 = setting.n, setting.T0
    c = default_c(n, T0) if setting.c is None else setting.c
    epsilon0, Delta = divide_budget(setting.epsilon1, setting.lambda_, c)
    beta = printed_beta(n, T0, epsilon0, setting.delta, c)
    if form == "as_printed":
        b_norm = math.sqrt(n * beta) if setting.delta > 0 else beta
    else:
        b_norm = math.sqrt(n) * beta if setting.delta > 0 else n * beta
    nu = setting.lambda_ + Delta
    shift = (1 / setting.lambda_ + 1 / nu) * 2 * T0**2 * math.sqrt(n) if Delta != 0 else 0.0
    return 2 / nu * b_norm + shift


def _check(form: Form) -> None:
    if form not in FORMS:
        raise ParameterError(f"form must be 'as_printed' or 'corrected', not {form!r}.")
