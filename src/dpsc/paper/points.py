"""A point of a figure: a recipe, an algorithm, a size and its parameters; and the errors of many runs of it."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpsc.paper.generated import Generator
from dpsc.types import Array

Recipe = Literal["published", "printed", "ours"]
AlgorithmName = Literal["out", "obj", "gram"]

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
