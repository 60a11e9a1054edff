"""The paper's data, a point of a figure with the errors of many runs, yardsticks, and verdicts on comparisons."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.stats import truncnorm

from dpsc.custodian.weights.classic import ridge_weights
from dpsc.types import Array

Generator = Literal["printed", "published"]
H = 3  # periods to predict, in every experiment of the paper


@dataclass(frozen=True, eq=False)
class Dataset:
    """Donors and a target without an intervention, scaled to [-1, 1], and the signal beneath their noise.

    Attributes
    ----------
    donors, donor_signal : n × T
    target, signal : length T
    T0 : int
        Periods before the intervention.
    sigma : float
        The standard deviation of the noise on each entry.
    """

    donors: Array
    donor_signal: Array
    target: Array
    signal: Array
    T0: int
    sigma: float

    @property
    def X(self) -> Array:
        """Donors before the intervention."""
        return self.donors[:, : self.T0]

    @property
    def Z(self) -> Array:
        """Donors after it."""
        return self.donors[:, self.T0 :]

    @property
    def y(self) -> Array:
        """The target before the intervention."""
        return self.target[: self.T0]

    @property
    def truth(self) -> Array:
        """What a perfect counterfactual would be: the target's signal after the intervention."""
        return self.signal[self.T0 :]

    def rmse(self, answers: Array) -> Array:
        """Return the root mean squared error of each answer (the last axis is time)."""
        error: Array = answers - self.truth
        return np.asarray(np.sqrt(np.einsum("...t,...t->...", error, error) / error.shape[-1]))


def generate(generator: Generator, n: int, T0: int, rng: np.random.Generator, h: int = H) -> Dataset:
    """Draw one data set."""
    return printed(n, T0, h, rng) if generator == "printed" else published(n, T0, h, rng)


def printed(n: int, T0: int, h: int, rng: np.random.Generator) -> Dataset:
    """Draw lines through zero with slopes N(4, 1) on [3, 5] and noise N(0, 0.1) on [-1, 1], as the text says.

    The text does not say how data up to 5 T come to lie in [-1, 1], which its theorems need; we divide by 5 T + 1, the
    largest value that can occur, a public number.
    """
    T = T0 + h
    slopes = truncnorm.rvs(-1, 1, loc=4, size=n + 1, random_state=rng)
    sd = np.sqrt(0.1)
    noise = truncnorm(-1 / sd, 1 / sd, scale=sd)
    signal = np.outer(slopes, np.arange(1, T + 1))
    paths = signal + noise.rvs(size=signal.shape, random_state=rng)
    return _dataset(paths / (5 * T + 1), signal / (5 * T + 1), T0, float(noise.std()) / (5 * T + 1))


def published(n: int, T0: int, h: int, rng: np.random.Generator) -> Dataset:
    """Draw what the authors' code draws.

    Its truncated normals take the bounds in standard deviations, so slopes are in [7, 9] and noise in [-0.1, 0.1];
    there is an intercept; and the signal is centred and scaled by its own extremes (which a private method must not do)
    before noise is added, so entries reach 1.09.
    """
    T = T0 + h
    slopes = truncnorm.rvs(3, 5, loc=4, size=n + 1, random_state=rng)
    intercepts = rng.uniform(-1, 1, size=n + 1)
    signal = intercepts[:, np.newaxis] + np.outer(slopes, np.arange(1, T + 1))
    low, high = signal.min(), signal.max()
    signal = (signal - (low + high) / 2) / ((high - low) / 2)
    noise = truncnorm(-1, 1, scale=0.1)
    return _dataset(signal + noise.rvs(size=signal.shape, random_state=rng), signal, T0, float(noise.std()))


def _dataset(paths: Array, signal: Array, T0: int, sigma: float) -> Dataset:
    """Use the first path as the target."""
    return Dataset(paths[1:], signal[1:], paths[0], signal[0], T0, sigma)


def ridge(data: Dataset, lambda_: float) -> float:
    """Return the error of non-private synthetic control (the paper's Algorithm 1)."""
    return float(data.rmse(data.Z.T @ ridge_weights(data.X, data.y, lambda_)))


def donor_free(data: Dataset) -> dict[str, float]:
    """Return the errors of the target's last value, of a line through it, and of the donors' plain mean."""
    times = np.arange(len(data.target))
    slope, level = np.polyfit(times[: data.T0], data.y, 1)
    answers: dict[str, Array] = {
        "last value": np.full(len(data.truth), data.y[-1]),
        "straight line": level + slope * times[data.T0 :],
        "donors' mean": data.Z.mean(axis=0),
    }
    return {name: float(data.rmse(answer)) for name, answer in answers.items()}


Recipe = Literal["published", "printed", "ours"]
AlgorithmName = Literal["out", "obj", "gram"]
METHODS: tuple[AlgorithmName, ...] = ("out", "obj")  # the paper's two

RECIPES: tuple[Recipe, ...] = ("published", "printed", "ours")
DATA: dict[Recipe, Generator] = {"published": "published", "printed": "printed", "ours": "printed"}
SIZES = ((10, 10), (10, 100), (100, 10), (100, 100))  # n, T0
LAMBDAS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0)
EPSILONS = (2.0, 4.0, 10.0, 20.0, 40.0, 100.0, 200.0)
DELTA = 1e-6

TITLE: dict[Recipe, str] = {
    "published": "published code: NOT PRIVATE",
    "printed": "as printed in the paper",
    "ours": "ours",
}


@dataclass(frozen=True)
class Point:
    """One point of a curve."""

    recipe: Recipe
    method: AlgorithmName
    n: int
    T0: int
    lambda_: float  # not used by the Gram release
    epsilon1: float
    epsilon2: float
    delta: float = 0.0

    @property
    def epsilon(self) -> float:
        """The total epsilon."""
        return self.epsilon1 + self.epsilon2

    @property
    def key(self) -> str:
        """A name that holds every parameter, for files and seeds."""
        size = f"n={self.n} T0={self.T0}"
        budget = f"eps1={self.epsilon1:g} eps2={self.epsilon2:g} delta={self.delta:g}"
        return f"{self.recipe} {self.method} {size} lambda={self.lambda_:g} {budget}"

    @property
    def protection(self) -> str:
        """What the recipe would promise donors with noise from the operating system; here noise comes from a seed."""
        if self.recipe == "published":
            return "NOT PRIVATE"
        if self.recipe == "printed" and self.method == "obj":
            return "unproven"
        return f"({self.epsilon:g}, {self.delta:g})-DP"


@dataclass(frozen=True)
class Outcome:
    """The RMSE of many runs at one point: its mean, the standard error of the mean, and its median."""

    mean: float
    error: float
    median: float
    runs: int

    @classmethod
    def of(cls, rmse: Array) -> Outcome:
        """Summarise runs."""
        error = float(np.std(rmse, ddof=1)) / math.sqrt(rmse.size) if rmse.size > 1 else math.inf
        return cls(float(np.mean(rmse)), error, float(np.median(rmse)), rmse.size)

    @property
    def band(self) -> tuple[float, float]:
        """A 95% interval of the mean; an RMSE is not below zero."""
        return max(self.mean - 1.96 * self.error, 0.0), self.mean + 1.96 * self.error


def generator_for(seed: int, *names: object) -> np.random.Generator:
    """Return the generator of a seed and a name; what else is run, and in which order, does not matter."""
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return np.random.default_rng([seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])


@lru_cache(maxsize=16)
def dataset(generator: Generator, n: int, T0: int, seed: int) -> Dataset:
    """Return the data set of a size, which all points of a seed share, as in the paper."""
    return generate(generator, n, T0, generator_for(seed, "data", generator, n, T0))


Verdict = Literal["holds", "does not hold", "undecided"]
Z = 1.96
BETTER, UNCLEAR, WORSE = 1, 0, -1


def compare(a: Outcome | float, b: Outcome | float, factor: float = 1.0) -> int:
    """Return BETTER if ``factor * a`` is significantly below b, WORSE if significantly above."""
    a_mean, a_error = (a.mean, a.error) if isinstance(a, Outcome) else (a, 0.0)
    b_mean, b_error = (b.mean, b.error) if isinstance(b, Outcome) else (b, 0.0)
    difference = b_mean - factor * a_mean
    margin = Z * math.hypot(factor * a_error, b_error)
    return BETTER if difference > margin else WORSE if difference < -margin else UNCLEAR


def all_of(signs: Sequence[int]) -> Verdict:
    """Return "holds" if every comparison is BETTER, "does not hold" if one is WORSE."""
    if all(sign == BETTER for sign in signs):
        return "holds"
    return "does not hold" if WORSE in signs else "undecided"


def most_of(signs: Sequence[int]) -> Verdict:
    """Return "holds" if more than half of the comparisons are BETTER, "does not hold" if at least half are WORSE."""
    if signs.count(BETTER) > len(signs) / 2:
        return "holds"
    return "does not hold" if signs.count(WORSE) >= len(signs) / 2 else "undecided"


def tally(signs: Sequence[int]) -> str:
    """Count comparisons in words."""
    return f"{signs.count(BETTER)} yes, {signs.count(WORSE)} no, {signs.count(UNCLEAR)} within noise"


def named(size: tuple[int, int]) -> str:
    """Name a size."""
    return f"n={size[0]}, T0={size[1]}"


def geometric_mean(ratios: Iterable[float]) -> float:
    """Average ratios."""
    return float(np.exp(np.mean(np.log(list(ratios)))))
