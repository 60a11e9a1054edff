from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from scipy import stats

from dpsc import Panel
from dpsc.types import Array

# The same examples in every run: a failure in CI is one that can be repeated.
settings.register_profile("dpsc", deadline=None, derandomize=True)
settings.load_profile("dpsc")


def make_panel(n: int = 12, T0: int = 8, h: int = 3, seed: int = 0, bounds: tuple[float, float] = (-1, 1)) -> Panel:
    """Donors and target that follow two factors, within [-1, 1] times the bounds' size."""
    rng = np.random.default_rng(seed)
    factors = rng.uniform(-1, 1, size=(2, T0 + h))
    loadings = rng.uniform(-0.5, 0.5, size=(n + 1, 2))
    paths = (loadings @ factors) * max(abs(bounds[0]), abs(bounds[1]))
    paths = np.clip(paths, *bounds)
    return Panel.from_arrays(paths[1:], paths[0], treatment_time=T0, bounds=bounds)


class NoNoise:
    """A source whose noise is zero, to look at what is computed before noise is added."""

    private = False

    def normals(self, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape)

    def gammas(self, shape_parameter: float, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape)


def scale_pvalue(standardised: Array, law: str) -> float:
    """Test the scale of noise alone: the sum of sizes (Laplace) or of squares (Gaussian) has a known law."""
    n = standardised.size
    if law == "laplace":
        total, shape = float(np.abs(standardised).sum()), float(n)
    else:
        total, shape = float(np.sum(standardised**2)) / 2, n / 2
    return 2 * float(min(stats.gamma.cdf(total, shape), stats.gamma.sf(total, shape)))


@pytest.fixture
def panel() -> Panel:
    return make_panel()


def printed_objective(f: Array, X: Array, y: Array, lambda_: float, b: Array | float = 0.0) -> float:
    """The paper's J: 1/T0 ||y - X'f||^2 + lambda/(2 T0) ||f||^2 + 1/T0 b'f, to be minimised by brute force."""
    T0 = X.shape[1]
    noise = np.broadcast_to(np.asarray(b, dtype=np.float64), f.shape)
    return float(np.sum((y - X.T @ f) ** 2) / T0 + lambda_ / (2 * T0) * np.sum(f**2) + noise @ f / T0)
