"""What the private algorithms are measured against: non-private ridge, and forecasts that need no weights."""

from __future__ import annotations

import numpy as np

from dpsc.paper.generated import Dataset
from dpsc.types import Array
from dpsc.weights.classic import ridge_weights


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
