"""The low-bit attack: floating-point outputs lie on a grid whose fineness depends on what was added to the noise.

0 + noise keeps all the fine bits of small noise. 1 + noise is rounded to the grid of numbers near 1, and stays on that
grid even where the sum is small (Mironov 2012). So a small output with fine bits can only come from 0 + noise.
"""

from __future__ import annotations

import itertools

import numpy as np

from dpsc.audit.distinguish import epsilon_lower_bound
from dpsc.types import Array


def lowest_bit(values: Array) -> Array:
    """Return, for each number, the exponent of its lowest set bit: the finest power of two it is a multiple of.

    Examples
    --------
    >>> lowest_bit(np.array([1.0, 0.75, 3.0, 0.1])).tolist()
    [0.0, -2.0, 0.0, -55.0]
    """
    mantissa, exponent = np.frexp(np.abs(values))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    return np.where(whole == 0, 1e3, np.log2(np.maximum(lowest, 1.0)) + exponent - 53)


def attack(outputs: Array, neighbour_outputs: Array, *, delta: float = 0.0, error: float = 1e-3) -> float:
    """Return the privacy loss that low bits demonstrate between two samples of one output coordinate.

    Half of each sample chooses an event of the form "smaller than 2^a and with bits below 2^k", in either direction;
    the other half measures it.
    """
    features = [np.stack([np.ceil(np.log2(np.abs(s) + 1e-300)), lowest_bit(s)]) for s in (outputs, neighbour_outputs)]
    training = [f[:, : f.shape[1] // 2] for f in features]
    testing = [f[:, f.shape[1] // 2 :] for f in features]

    def measure(sample: list[Array], event: tuple[float, float, bool]) -> float:
        size, bit, swap = event
        one, other = sample[::-1] if swap else sample
        hits, neighbour_hits = (int(((f[0] <= size) & (f[1] <= bit)).sum()) for f in (one, other))
        return epsilon_lower_bound(hits, one.shape[1], neighbour_hits, other.shape[1], delta=delta, error=error)

    sizes, bits = (np.unique(np.quantile(training[0][i], np.linspace(0, 1, 25), method="nearest")) for i in (0, 1))
    events = list(itertools.product(sizes, bits, (False, True)))
    return measure(testing, max(events, key=lambda event: measure(training, event)))
