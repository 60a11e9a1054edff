"""From two samples of outputs, one for each neighbour, to a privacy loss that has been demonstrated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from dpsc.types import Array

Score = Callable[[Array], Array]
_THRESHOLDS = 200


@dataclass(frozen=True)
class Shown:
    """A privacy loss that an attack demonstrated, and the event that demonstrates it."""

    epsilon: float
    how: str


def epsilon_lower_bound(
    hits: int, runs: int, neighbour_hits: int, neighbour_runs: int, *, delta: float = 0.0, error: float = 1e-3
) -> float:
    """Return an epsilon that the mechanism exceeds, wrong with probability at most ``error``.

    (epsilon, delta)-differential privacy means p <= e^epsilon q + delta for the probabilities p and q of any event
    under two neighbours. Clopper-Pearson bounds p from below and q from above, each at half the error. The event
    must have been chosen on other runs.

    Examples
    --------
    >>> round(epsilon_lower_bound(5000, 10_000, 0, 10_000), 1)
    6.5
    """
    counts = np.array([hits]), np.array([neighbour_hits])
    return float(_lower_bounds(counts[0], runs, counts[1], neighbour_runs, delta, error)[0])


def attack(
    outputs: Array,
    neighbour_outputs: Array,
    scores: Mapping[str, Score],
    *,
    delta: float = 0.0,
    error: float = 1e-3,
) -> Shown:
    """Return the privacy loss that the best of many events demonstrates between two samples of outputs (runs × d).

    The first half of each sample chooses a score, a threshold, a side of the threshold and the more likely neighbour;
    the second half measures this one event once. So the result exceeds the true epsilon with probability at most
    ``error``, whatever the scores are and however many. The sizes of the samples may differ.
    """
    halves = [(sample[: len(sample) // 2], sample[len(sample) // 2 :]) for sample in (outputs, neighbour_outputs)]
    (training, testing), (other_training, other_testing) = halves
    best, event = -math.inf, None
    for name, score in scores.items():
        values, other_values = score(training), score(other_training)
        unit = _unit(np.concatenate([values, other_values]))
        for threshold, above, swap, promise in _candidates(
            _rounded(values, unit), _rounded(other_values, unit), delta, error
        ):
            if promise > best:
                best, event = promise, (name, unit, threshold, above, swap)
    assert event is not None
    name, unit, threshold, above, swap = event
    one, other = (_rounded(scores[name](sample), unit) for sample in (testing, other_testing))
    counts = [int((v >= threshold).sum() if above else (v <= threshold).sum()) for v in (one, other)]
    runs = [len(one), len(other)]
    if swap:
        counts, runs = counts[::-1], runs[::-1]
    epsilon = epsilon_lower_bound(counts[0], runs[0], counts[1], runs[1], delta=delta, error=error)
    side = "at least" if above else "at most"
    return Shown(epsilon, f"{name} {side} {threshold:.4g}: {counts[0]} of {runs[0]} against {counts[1]} of {runs[1]}")


def black_box_scores(centre: Array, neighbour_centre: Array) -> dict[str, Score]:
    """Return scores that need only the expected outputs: the projection on their difference, and distances."""
    along = neighbour_centre - centre
    length = float(np.linalg.norm(along))
    unit = along / length if length > 0 else np.eye(len(along))[0]
    return {
        "projection": lambda v: np.asarray((v - centre) @ unit),
        "distance to one": lambda v: np.asarray(np.linalg.norm(v - centre, axis=1)),
        "distance to the other": lambda v: np.asarray(np.linalg.norm(v - neighbour_centre, axis=1)),
        "size": lambda v: np.asarray(np.linalg.norm(v, axis=1)),
        "first coordinate": lambda v: np.asarray(v[:, 0]),
        "size of the first coordinate": lambda v: np.abs(v[:, 0]),
    }


def _candidates(one: Array, other: Array, delta: float, error: float) -> list[tuple[float, bool, bool, float]]:
    """Return thresholds with the bound that each reaches on the training half: (threshold, above, swap, bound)."""
    tails = np.geomspace(1 / max(len(one), 2), 0.5, _THRESHOLDS // 4)
    shares = np.unique(np.concatenate([tails, 1 - tails, np.linspace(0, 1, _THRESHOLDS // 2)]))
    thresholds = np.unique(np.quantile(np.concatenate([one, other]), shares, method="nearest"))
    found = []
    ordered = [np.sort(one), np.sort(other)]
    for above in (False, True):
        if above:
            counts = [len(v) - np.searchsorted(v, thresholds, side="left") for v in ordered]
        else:
            counts = [np.searchsorted(v, thresholds, side="right") for v in ordered]
        for swap in (False, True):
            (a, runs_a), (b, runs_b) = ((counts[i], len(ordered[i])) for i in ((1, 0) if swap else (0, 1)))
            bounds = _lower_bounds(a, runs_a, b, runs_b, delta, error)
            best = int(np.argmax(bounds))
            found.append((float(thresholds[best]), above, swap, float(bounds[best])))
    return found


def _lower_bounds(hits: Any, runs: int, neighbour_hits: Any, neighbour_runs: int, delta: float, error: float) -> Array:
    p = np.where(hits > 0, beta.ppf(error / 2, np.maximum(hits, 1), runs - hits + 1), 0.0)
    misses = neighbour_runs - neighbour_hits
    q = np.where(misses > 0, beta.isf(error / 2, neighbour_hits + 1, np.maximum(misses, 1)), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(p > delta, np.maximum(np.log((p - delta) / q), 0.0), 0.0))


def _unit(scores: Array) -> float:
    """Return a unit that keeps nine digits of the scores' usual size, or zero if that size is zero or infinite.

    A likelihood ratio that is constant on half of the outputs should be one value, not many. The unit is fixed on the
    training half: if it depended on what is measured, the event would not be the same for both neighbours.
    """
    size = float(np.quantile(np.abs(scores), 0.9))
    return 2.0 ** (math.frexp(size)[1] - 30) if 0 < size < math.inf else 0.0


def _rounded(scores: Array, unit: float) -> Array:
    return np.asarray(np.rint(scores / unit) * unit) if unit > 0 else scores
