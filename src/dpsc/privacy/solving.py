"""How wrong a computed solution of the ridge system can be, from public numbers alone."""

from __future__ import annotations

import math

from dpsc.errors import ParameterError
from dpsc.privacy import exact


def require_solvable(n: int, T0: int, R: float, mu: float) -> float:
    """Return E, the perturbation that solving (X'X + mu I) r = y amounts to, or refuse a mu that is too small for it.

    Higham, Accuracy and Stability of Numerical Algorithms, Theorem 10.4, for Cholesky; ||X'X|| <= n R^2.
    """
    E = (1.01 * T0 * exact.gamma(3 * T0 + 1) + 4 * exact.UNIT_ROUNDOFF + exact.gamma(n + 1)) * (n * R**2 + mu)
    if mu / 8 < E:
        raise ParameterError(
            f"lambda_ = {2 * mu:g} is too small for {n} donors: the weights could not be solved for accurately enough "
            "to promise anything. Use a larger lambda_."
        )
    return E


def solver_error(n: int, T0: int, y_norm: float, R: float, mu: float) -> float:
    """Bound the l2 distance between computed and true ridge weights.

    The solution r of a system perturbed by at most E moves X r by at most
    ``||X (X'X + mu I)^-1|| E ||r|| <= E ||y|| / (2 sqrt(mu) (mu - E))``; the product X r adds gamma_T0 R ||r|| per
    coordinate.
    """
    E = require_solvable(n, T0, R, mu)
    solving = E * y_norm / (2 * math.sqrt(mu) * (mu - E))
    multiplying = math.sqrt(n) * exact.gamma(T0 + 1) * R * y_norm / (mu - E)
    return exact.safely_above(solving + multiplying)
