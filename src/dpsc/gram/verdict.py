"""Do the donors help? The target's own past, with the donors and without them."""

from __future__ import annotations

import math

from dpsc.answers.base import Verdict

CLEAR = 3.0  # a log Bayes factor beyond which the pre-period speaks for or against the donors


def verdict(log_bayes_factor: float, doubt: str = "") -> Verdict:
    """Say whether the donors explain the target's past better than its own past does; a doubt comes first."""
    if doubt:
        return Verdict("unclear", "check the units before you read on", doubt, check_first=True)
    factor = math.exp(min(abs(log_bayes_factor), 16.0))
    times = "more than a million" if factor > 1e6 else f"about {float(f'{factor:.2g}'):,.0f}"
    if log_bayes_factor > CLEAR:
        return Verdict(
            "yes",
            "the donors track this target",
            f"with the donors, the target's path before the intervention is {times} times as likely as without them.",
        )
    if log_bayes_factor < -CLEAR:
        return Verdict(
            "no",
            "the donors do not track this target",
            f"without donors, the target's path before the intervention is {times} times as likely as with them. If "
            "something new hit everybody after it, the donors may still be the better guide.",
        )
    return Verdict(
        "unclear",
        "the time before the intervention cannot tell",
        "the target's path before the intervention is about as likely with the donors as without them.",
    )
