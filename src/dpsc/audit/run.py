"""Run an audit: every attack on every case, at a false-alarm rate for the whole run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dpsc.audit.case import Case, Effort, Finding, judge

FALSE_ALARM = 1e-3  # of the whole run, however many attacks it makes
CALLS = 20  # runs in bulk for every real call


@dataclass(frozen=True)
class Audit:
    """The findings of an audit, and how it was run."""

    groups: tuple[tuple[Finding, ...], ...]  # one group per case
    runs: int
    calls: int
    seed: int | None
    false_alarm: float

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all attacks."""
        return tuple(finding for group in self.groups for finding in group)

    @property
    def broken(self) -> list[Finding]:
        """The attacks that showed more than was claimed."""
        return [finding for finding in self.findings if finding.verdict == "BROKEN"]

    def strongest(self) -> list[Finding]:
        """Return for each case the attack that broke the claim or, if none did, came closest to it."""
        return [strongest(group) for group in self.groups]

    def to_json(self, known_broken: Audit | None = None) -> str:
        """Return everything as JSON; an infinite loss is null. What is known to be broken is listed apart."""
        content: dict[str, Any] = {
            "runs": self.runs, "calls": self.calls, "seed": self.seed, "false_alarm": self.false_alarm,
            "broken": len(self.broken), "findings": [_row(finding) for finding in self.findings],
        }  # fmt: skip
        if known_broken is not None:
            content["known_to_be_broken"] = [_row(finding) for finding in known_broken.findings]
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def strongest(findings: Sequence[Finding]) -> Finding:
    """Return the attack that broke the claim or, if none did, came closest to it."""
    return max(findings, key=lambda finding: (finding.verdict == "BROKEN", finding.share))


def audit(
    cases: Sequence[Case],
    *,
    runs: int,
    calls: int | None = None,
    seed: int | None = None,
    false_alarm: float = FALSE_ALARM,
    on_attack: Callable[[str], None] = lambda name: None,
) -> Audit:
    """Attack every case.

    Each statistical attack tests one event, on runs that did not choose it, at ``false_alarm`` divided by the number of
    statistical attacks; by the union bound the whole run raises a false alarm with probability at most ``false_alarm``.
    ``runs`` are drawn in bulk on each neighbour, ``calls`` are real calls of an algorithm (a twentieth by default).
    """
    effort = Effort(runs, max(200, runs // CALLS) if calls is None else calls, seed)
    error = false_alarm / max(1, count(cases))
    groups = []
    for case in cases:
        findings = []
        for attack in case.attacks:
            on_attack(f"{case.title}: {attack.name}")
            findings.append(judge(case, attack, attack.run(effort, error)))
        groups.append(tuple(findings))
    return Audit(tuple(groups), runs, effort.calls, seed, false_alarm)


def count(cases: Iterable[Case]) -> int:
    """Return how many attacks may be wrong by chance."""
    return sum(attack.statistical for case in cases for attack in case.attacks)


def _row(f: Finding) -> dict[str, Any]:
    return {
        "mechanism": f.mechanism, "title": f.title, "attack": f.attack, "claim": f.claim.epsilon,
        "delta": f.claim.delta, "unit": f.claim.unit or "epsilon", "shown": _finite(f.shown),
        "share": _finite(f.share), "verdict": f.verdict, "how": f.how, "note": f.note,
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
