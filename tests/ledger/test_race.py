"""Eight processes at a time, round after round: exactly as many succeed as the budget can pay for."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from dpsc import GramRelease, Ledger
from dpsc.privacy.accounting import gaussian_delta
from tests.soak import quick_or_long

pytestmark = pytest.mark.end_to_end
ROUNDS = quick_or_long(11, 200)  # 11: every budget, every second one with a booking before the race


def affordable(epsilon: float, delta: float, size: float) -> int:
    """How many Gram releases of this size at the same delta a budget pays for, by the curve or by a plain sum."""
    one = GramRelease(epsilon=size, delta=delta, scale=1.0).guarantee
    assert one is not None
    mu_squared = one.loss.mu_squared + 2 * one.loss.rho
    by_curve = max(k for k in range(100) if k == 0 or gaussian_delta(math.sqrt(k * mu_squared), epsilon) <= delta)
    return max(by_curve, 1 if size <= epsilon else 0)  # two would have twice the delta


def test_eight_processes_never_overspend(url: str) -> None:
    script = Path(__file__).with_name("race.py")
    done = subprocess.run([sys.executable, script, url, str(ROUNDS)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    rounds = json.loads(done.stdout)
    assert len(rounds) == ROUNDS
    outcomes: Counter[str] = Counter()
    for each in rounds:
        told = Counter(each["told"])
        expected = min(8, affordable(each["budget"], 1e-6, 0.25) - each["before"])
        assert told == Counter({"booked": expected, "refused": 8 - expected}), each
        outcomes += told
    assert min(outcomes["booked"], outcomes["refused"]) >= ROUNDS  # it was a race: some always lost, some always won

    ledger = Ledger(url)
    assert ledger.verify() == []
    raced = Counter(entry.state for entry in ledger.entries())
    assert sum(raced.values()) == outcomes["booked"] + sum(each["before"] for each in rounds)
    assert raced["confirmed"] == sum(Counter(each["told"])["booked"] for each in rounds[::10])
