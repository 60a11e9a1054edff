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
    lambda_, epsilon1, epsilon2, delta : float
        The algorithm's parameters.
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


def bound(method: AlgorithmName, setting: Setting, form: Form) -> float:
    """Bound the RMSE of DPSC_out (Theorem thm.acc.out) or of DPSC_obj (Theorem thm.acc.obj).

    Both add up the same terms, given the expected distance of the released weights from f_reg.

    Examples
    --------
    >>> setting = Setting(n=10, T0=10, h=3, lambda_=10, epsilon1=1, epsilon2=1,
    ...                   signal_norm=5, weight_error=0, sigma=0.1, psi=0.1)
    >>> round(bound("out", setting, "as_printed")), round(bound("out", setting, "corrected"))
    (79, 10745)
    """
    n, h = setting.n, setting.h
    of_weights = (_output_noise if method == "out" else _objective_noise)(setting, form)
    of_W = (math.sqrt(2) if form == "as_printed" else 2 * n * h) / setting.epsilon2  # E||W||_F / sqrt(h)
    first = setting.signal_norm / math.sqrt(h) * (setting.weight_error + of_weights)
    return first + (math.sqrt(n) * setting.sigma + of_W) * (math.sqrt(n) * setting.psi + of_weights)


def _output_noise(setting: Setting, form: Form) -> float:
    """E||v||."""
    a = printed_ridge(setting.n, setting.T0, setting.lambda_) / setting.epsilon1
    return a if form == "as_printed" else setting.n * a


def _objective_noise(setting: Setting, form: Form) -> float:
    """Bound E||f_obj - f_reg|| (Lemma lem.fobjacc) with the printed or the right E||b||."""
    n, T0 = setting.n, setting.T0
    c = default_c(n, T0)
    epsilon0, Delta = divide_budget(setting.epsilon1, setting.lambda_, c)
    beta = printed_beta(n, T0, epsilon0, setting.delta, c)
    if form == "as_printed":
        b_norm = math.sqrt(n * beta) if setting.delta > 0 else beta
    else:
        b_norm = math.sqrt(n) * beta if setting.delta > 0 else n * beta
    nu = setting.lambda_ + Delta
    shift = (1 / setting.lambda_ + 1 / nu) * 2 * T0**2 * math.sqrt(n) if Delta != 0 else 0.0
    return 2 / nu * b_norm + shift
