"""An answer in plain words, and what its guarantee means for the donors."""

from __future__ import annotations

import math
from typing import Any

from dpsc.answers.base import Answer, Verdict
from dpsc.data.dates import period_name
from dpsc.privacy.guarantee import Guarantee


def number(value: float) -> str:
    """Write a number with four significant digits and commas between thousands.

    Examples
    --------
    >>> number(1234567.0), number(0.012346), number(-3.0)
    ('1,235,000', '0.01235', '-3')
    """
    if not math.isfinite(value):
        return "–"
    if value == 0 or abs(value) < 1e-4 or abs(value) >= 1e9:
        return f"{value:.4g}"
    rounded = float(f"{value:.4g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 1000 else f"{rounded:.10g}"


def signed(value: float) -> str:
    """Write a difference with its sign."""
    return ("+" if value > 0 else "") + number(value)


def parameter_text(value: Any) -> str:
    """Write a parameter: a float with :func:`number`, anything else as it is."""
    return number(value) if isinstance(value, float) else str(value)


def answer(result: Answer, units: str | None = None) -> list[str]:
    """Answer the question in two sentences."""
    seen = result.observed.notna()
    outcome, unit = str(result.target.name), f" {units}" if units else ""
    if not seen.any():
        path = f"an average of {number(float(result.counterfactual.mean()))}{unit}"
        return [f"Without the intervention we would expect {path} of {outcome} {span(result)}.",
                "The target was not observed in that time, so there is no effect to report."]  # fmt: skip
    actual, without = result.observed[seen].mean(), result.counterfactual[seen].mean()
    first = (
        f"Without the intervention, {outcome} would have averaged about {number(float(without))}{unit} {span(result)}; "
        f"it was {number(float(actual))}."
    )
    return [first, _second(result, unit)]


def _second(result: Answer, unit: str) -> str:
    effect = f"The difference is {signed(result.att)}{unit}"
    if result.interval_kind == "none":
        return f"{effect}. This was computed from the raw donors: it is NOT PRIVATE and comes without an interval."
    low, high = result.att_interval()
    level = percent(result.level)
    if result.interval_kind == "projection noise":
        return (
            f"{effect}. The noise of the last step alone moves it by up to {number((high - low) / 2)}{unit} ({level}); "
            "how well the noisy weights fit is not known, so this is not an interval for the effect."
        )
    where = f"with a {level} interval from {signed(low)} to {signed(high)}{unit}"
    if low <= 0 <= high:
        return f"{effect}, {where}: the data are also compatible with no effect at all."
    direction = "an increase" if low > 0 else "a decrease"
    if result.level < 0.9:
        return f"{effect}, {where}."
    return f"{effect}, {where}: {direction} that chance and privacy noise alone would rarely produce."


def donors_help(verdict: Verdict) -> str:
    """Answer whether the donors help, in one line.

    Examples
    --------
    >>> donors_help(Verdict("yes", "the donors track this target", "because."))
    'Do the donors help? Yes: the donors track this target.'
    """
    return f"Do the donors help? {verdict.grade.capitalize()}: {verdict.headline}."


def sentence(text: str) -> str:
    """Write a text with a capital letter at its beginning and a full stop at its end."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def span(result: Answer) -> str:
    """Name the treated periods, and how many of them were observed if not all were."""
    index, seen = result.counterfactual.index, int(result.observed.notna().sum())
    gaps = "" if seen in (0, len(index)) else f" ({seen} of {len(index)} periods observed)"
    first, last = period_name(index[0]), period_name(index[-1])
    return (f"in {first}" if len(index) == 1 else f"from {first} to {last}") + gaps


def percent(level: float) -> str:
    """Write a level in percent, without rounding it up to 100%.

    Examples
    --------
    >>> percent(0.95), percent(0.9999)
    ('95%', '99.99%')
    """
    return f"{100 * level:.10g}%"


def meaning(guarantee: Guarantee) -> list[str]:
    """Say what a guarantee means for a donor."""
    factor = math.exp(min(guarantee.epsilon, 700.0))
    guess = (factor + guarantee.delta) / (1 + factor)
    sentences = [
        f"Epsilon is {guarantee.epsilon:g}. Take any donor and anything that someone might want to learn about them. "
        "If the donor's whole record is replaced by any other, the odds of any conclusion drawn from what was "
        f"published change by a factor of at most {number(factor)}.",
        "In other words: suppose that someone knows everything about all other donors and must guess which of two "
        f"equally likely records a donor has. This guess is right at most {guess:.1%} of the time; a blind guess is "
        "right 50% of the time.",
    ]
    if guarantee.delta > 0:
        sentences.append(f"This may fail with a probability of at most {guarantee.delta:g} (delta).")
    sentences.append(
        "The guarantee holds whatever else is known or will become known. It covers only this publication: if "
        "there are others from the same donors, their losses add up."
    )
    if guarantee.arithmetic == "float":
        sentences.append("It was computed in floating point, whose last digits may leak more than the proof says.")
    return sentences
