"""From outputs to a privacy loss that is demonstrated: two samples, a known law, or the lowest bits of floats.

For objective perturbation noise and minimiser determine each other, so the loss of every run is known.
The formulas are written a second time on purpose: they check those of :mod:`dpsc.privacy.accounting`.

0 + noise keeps all the fine bits of small noise. 1 + noise is rounded to the grid of numbers near 1, and stays on that
grid even where the sum is small (Mironov 2012). So a small output with fine bits can only come from 0 + noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import log_ndtr
from scipy.stats import beta

from dpsc.evidence.paper.recipes import minimise_over_ball
from dpsc.types import Array, Integers

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


def _lower_bounds(
    hits: Integers, runs: int, neighbour_hits: Integers, neighbour_runs: int, delta: float, error: float
) -> Array:
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


_WINDOW = 40.0  # scales on either side of the centres; the probability beyond them is below e^-40
_LARGEST_TABLE = 2_000_000


def gaussian_delta(shift: float, epsilon: float) -> float:
    """Return delta(epsilon) of Gaussian noise whose centres are ``shift`` standard deviations apart.

    Examples
    --------
    >>> f"{gaussian_delta(1 / 4.2247, 1.0):.2g}"
    '1e-06'
    """
    if shift == 0:
        return 0.0
    upper, lower = shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift
    return float(max(0.0, math.exp(log_ndtr(upper)) - math.exp(epsilon + log_ndtr(lower))))


def table_delta(log_p: Array, log_q: Array, epsilon: float) -> float:
    """Return delta(epsilon) between two laws given by their log-probabilities on the same points."""
    return float(np.sum(np.maximum(np.exp(log_p) - np.exp(epsilon + log_q), 0.0)))


def discrete_tables(law: str, shift: int, scale: float) -> tuple[Array, Array]:
    """Return the log-probabilities of discrete noise around 0 and around ``shift``, on the integers that matter."""
    reach = math.ceil(_WINDOW * scale) + abs(shift)
    if 2 * reach + 1 > _LARGEST_TABLE:
        raise ValueError("the noise is too wide to tabulate; its law is the continuous one to many digits")
    points = np.arange(-reach, reach + 1, dtype=np.float64)

    def log_law(x: Array) -> Array:
        size = np.abs(x) / scale
        return np.asarray(-size if law == "laplace" else -(size**2) / 2)

    one, other = log_law(points), log_law(points - shift)
    return one - np.log(np.exp(one).sum()), other - np.log(np.exp(other).sum())


def epsilon_at(delta: float, curve: Callable[[float], float]) -> float:
    """Return the smallest epsilon with ``curve(epsilon) <= delta``, for a decreasing curve.

    Examples
    --------
    >>> round(epsilon_at(1e-6, lambda epsilon: gaussian_delta(1 / 4.2247, epsilon)), 3)
    1.0
    """
    if curve(0.0) <= delta:
        return 0.0
    upper = 1.0
    while curve(upper) > delta and upper < 2.0**60:
        upper *= 2
    lower = 0.0
    while upper - lower > 1e-12 * upper:
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if curve(middle) > delta else (lower, middle)
    return lower


def gaussian_epsilon(shift: float, delta: float) -> float:
    """Return the smallest epsilon of Gaussian noise whose centres are ``shift`` standard deviations apart."""
    return epsilon_at(delta, partial(gaussian_delta, shift))


def table_epsilon(log_p: Array, log_q: Array, delta: float) -> float:
    """Return the smallest epsilon at which two tabulated laws are within delta, in the worse of both directions."""
    if delta == 0:
        return float(np.abs(log_p - log_q).max())
    directions = ((log_p, log_q), (log_q, log_p))
    return max(epsilon_at(delta, partial(table_delta, p, q)) for p, q in directions)


def from_losses(losses: Array, *, delta: float, error: float) -> Shown:
    """Return the epsilon that sampled privacy losses L = log p(output) / q(output), output drawn from p, demonstrate.

    If L > t has probability at least s under p, it has at most s e^-t under q, so (epsilon, delta) needs
    ``s (1 - e^(epsilon - t)) <= delta``. Half of the sample chooses t, the other half bounds s from below.
    """
    training, testing = losses[: len(losses) // 2], losses[len(losses) // 2 :]

    def promise(t: float, sample: Array) -> tuple[float, int]:
        hits = int((sample >= t).sum())
        share = float(beta.ppf(error, hits, len(sample) - hits + 1)) if hits else 0.0
        return (t + math.log1p(-delta / share) if share > delta else 0.0), hits

    tails = np.geomspace(20 / len(training), 1, 200)
    t = max(np.unique(np.quantile(training, 1 - tails)), key=lambda t: promise(t, training)[0])
    epsilon, hits = promise(float(t), testing)
    return Shown(max(epsilon, 0.0), f"loss at least {t:.4g} in {hits} of {len(testing)}")


_ON_THE_SPHERE = 1e-7


def log_density(b: Array, beta: float, law: str) -> Array:
    """Return the logarithm of the density of each row of noise, up to a constant."""
    if law == "gaussian":
        return np.asarray(-(b**2).sum(axis=1) / (2 * beta**2))
    if law == "laplace":  # independent entries
        return np.asarray(-np.abs(b).sum(axis=1) / beta)
    return np.asarray(-np.linalg.norm(b, axis=1) / beta)


def unconstrained_losses(X: Array, neighbour: Array, y: Array, nu: float, b: Array, beta: float, law: str) -> Array:
    """Return log p(f) / p'(f) for the minimisers f over R^n that the noise b, one row per run, leads to on X.

    ``b = 2 X (y - X'f) - nu f`` determines f and is determined by it, with Jacobian det(2 X X' + nu I).
    """
    f = minimisers(X, y, nu, b)
    b_neighbour = -gradients(neighbour, y, nu, f)
    volume = _log_det(_hessian(X, nu)) - _log_det(_hessian(neighbour, nu))
    return log_density(b, beta, law) - log_density(b_neighbour, beta, law) + volume


def minimisers(X: Array, y: Array, nu: float, b: Array) -> Array:
    """Minimise ``||y - X'f||^2 + (nu/2) ||f||^2 + b'f`` over R^n for every row of b."""
    return np.asarray(np.linalg.solve(_hessian(X, nu), (2 * X @ y - b).T).T)


def ball_losses(X: Array, neighbour: Array, y: Array, nu: float, b: Array, beta: float, law: str) -> Array:
    """Return the privacy losses of (minimiser over the l1 ball, normal vector): what the proof is about.

    The noise that leads to the same pair on the neighbour is ``b + g(alpha) - g'(alpha)``; on a face with tangent
    basis V the Jacobians are 1 / det(V'AV).
    """
    alpha = minimise_over_ball(X, y, nu, b)
    moved = b + gradients(X, y, nu, alpha) - gradients(neighbour, y, nu, alpha)
    losses = log_density(b, beta, law) - log_density(moved, beta, law)
    on_sphere = np.abs(alpha).sum(axis=1) > 1 - _ON_THE_SPHERE
    signs = np.where(on_sphere[:, np.newaxis], np.sign(np.where(np.abs(alpha) < _ON_THE_SPHERE, 0.0, alpha)), 0.0)
    faces, of_run = np.unique(signs, axis=0, return_inverse=True)
    volumes = np.array([_face_volume(X, nu, face) - _face_volume(neighbour, nu, face) for face in faces])
    return np.asarray(losses + volumes[of_run.ravel()])


def _face_volume(X: Array, nu: float, signs: Array) -> float:
    """Return log det(V'AV) on the face with these signs, or inside the ball if all signs are zero."""
    A = _hessian(X, nu)
    support = np.flatnonzero(signs)
    if not support.size:
        return _log_det(A)
    basis = np.linalg.svd(signs[support][np.newaxis])[2][1:].T
    return _log_det(basis.T @ A[np.ix_(support, support)] @ basis) if support.size > 1 else 0.0


def gradients(X: Array, y: Array, nu: float, f: Array) -> Array:
    """Return the gradient of ``||y - X'f||^2 + (nu/2) ||f||^2`` at every row of f."""
    return np.asarray(2 * (f @ X - y) @ X.T + nu * f)


def _hessian(X: Array, nu: float) -> Array:
    return np.asarray(2 * X @ X.T + nu * np.eye(len(X)))


def _log_det(A: Array) -> float:
    return float(np.linalg.slogdet(A)[1])


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


def low_bit_attack(outputs: Array, neighbour_outputs: Array, *, delta: float = 0.0, error: float = 1e-3) -> float:
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
