"""The parameters of a result in words: what each is, for a reader who has not read the code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsc.answers.words import number

_WORDS = {
    "n": "number of donors",
    "T0": "periods before the intervention",
    "h": "periods from the intervention on",
    "sites": "releases that were added up",
    "release": "name of the release, a random number",
    "noise_scale": "size of the noise on the donors' sums of squares (all donors together: their number)",
    "phi": "how much of a period's deviation is expected to last to the next (1: all of it)",
    "nu": "share of a donor's movement that is taken to last one period only",
    "common_directions": "ways to move that the donors share, found above the noise",
    "log_bayes_factor": "evidence that the donors track the target (log of a ratio of chances; above 3 is clear)",
    "lambda_": "ridge penalty of the weights, on data in [-1, 1]",
    "row_norm": "largest length that a donor's row may have",
    "epsilon": "privacy budget (epsilon)",
    "epsilon1": "privacy budget of the weights (epsilon 1)",
    "epsilon2": "privacy budget of the answer (epsilon 2)",
    "delta": "chance that the promise may fail (delta)",
    "split": "share of the budget spent on the weights",
    "weights_ball": "the weights are kept within",
    "noise": "law of the noise",
    "weight_scale": "size of the noise on each weight",
    "answer_scale": "size of the noise on each period of the answer",
    "a": "size of the noise on the weights (the paper's a)",
    "b": "size of the noise on the answer (the paper's b)",
    "c": "how curved the objective can be (the paper's c)",
    "epsilon0": "privacy budget left for the noise in the objective (the paper's epsilon 0)",
    "Delta": "quadratic term that was added to the objective (the paper's Delta)",
    "beta": "rate of the noise in the objective (the paper's beta)",
    "solver_scale": "size of the noise that covers the solver's error",
}
_OF_AN_OBJECTIVE = {"nu": "quadratic term that was added to the objective"}


def in_words(parameters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what each parameter means, and its value as text.

    Examples
    --------
    >>> in_words({"n": 1200, "common_directions": 2, "new_one": 0.123456})
    [('number of donors', '1,200'), ('ways to move that the donors share, found above the noise', '2'),
     ('new one', '0.1235')]
    """
    words = _WORDS | (_OF_AN_OBJECTIVE if "beta" in parameters else {})
    return [(words.get(name, name.strip("_").replace("_", " ")), _text(value)) for name, value in parameters.items()]


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {None: "–", True: "yes", False: "no"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if isinstance(value, float) else str(value)
