"""What is attacked and how: a mechanism, its claim, and attacks that try to show a larger loss than the claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from dpsc.evidence.audit import measure
from dpsc.evidence.audit.measure import Score, Shown
from dpsc.privacy import source as randomness
from dpsc.types import Array

_REPLAYED = 20  # so many repeated outputs reveal a seed: fresh noise repeats them with probability below 1e-20
_PILOT = 100
SHOWN_DELTA = 0.3  # for sampled attacks on Gaussian noise: events of probability 1e-6 would need millions of runs
ROUNDING = 1e-9  # the relative rounding error that an exact attack may have


@dataclass(frozen=True)
class ClaimedLoss:
    """What is claimed: (epsilon, delta), or a bound on another quantity, named by ``unit``."""

    epsilon: float
    delta: float = 0.0
    unit: str = ""

    def __str__(self) -> str:
        if self.unit:
            return f"{self.unit} {self.epsilon:.4g}"
        return f"ε = {self.epsilon:.4g}" + (f", δ = {self.delta:g}" if self.delta else "")


class Effort:
    """How many runs to make, and where their noise comes from: the operating system, or a sequence of seeds.

    A seed makes an audit repeatable, but the audit then attacks seeded noise, a stand-in for the real noise.
    """

    def __init__(self, runs: int, calls: int, seed: int | np.random.Generator | None = None) -> None:
        self.runs, self.calls = runs, calls
        self._generator = None if seed is None else np.random.default_rng(seed)

    def few(self) -> Effort:
        """Return an effort of a few runs that continues the same sequence of seeds."""
        return Effort(_PILOT, _PILOT, self._generator)

    def seed(self) -> int | None:
        """Return a seed that was not used before, or None for the operating system's entropy."""
        return None if self._generator is None else int(self._generator.integers(2**62))

    def source(self) -> randomness.Source:
        """Return a fresh source of noise."""
        return randomness.choose(self.seed())


@dataclass(frozen=True, eq=False)
class Attack:
    """One way to attack a mechanism: what it does, in a few words, and what it tries to exceed."""

    name: str
    claim: ClaimedLoss
    statistical: ClassVar[bool] = True  # whether its finding may be wrong, with a small probability ``error``

    def run(self, effort: Effort, error: float) -> Shown:
        """Return what it demonstrated."""
        raise NotImplementedError


Draw = Callable[[int, Effort], Array]


@dataclass(frozen=True, eq=False)
class Sampled(Attack):
    """The distinguishing attack: outputs of many runs on both neighbours.

    ``draw(side, effort)`` returns one output per row. Besides ``scores``, the attack uses projections and distances to
    the mean outputs, which a small separate sample estimates.
    """

    draw: Draw
    scores: Mapping[str, Score] = field(default_factory=dict)

    def run(self, effort: Effort, error: float) -> Shown:
        """Draw, look for repeated noise, then distinguish."""
        samples = [self.draw(side, effort) for side in (0, 1)]
        again = self.draw(0, effort.few())
        if np.array_equal(again[:_REPLAYED], samples[0][:_REPLAYED]):
            return Shown(math.inf, f"the same {_REPLAYED} outputs came twice: the noise can be subtracted")
        centres = [again.mean(axis=0), self.draw(1, effort.few()).mean(axis=0)]
        scores = {**measure.black_box_scores(*centres), **self.scores}
        return measure.attack(samples[0], samples[1], scores, delta=self.claim.delta, error=error)


@dataclass(frozen=True, eq=False)
class LowBits(Attack):
    """The low-bit attack on the first coordinate of the output."""

    draw: Draw

    def run(self, effort: Effort, error: float) -> Shown:
        """Draw and look at the last bits."""
        samples = [self.draw(side, effort)[:, 0] for side in (0, 1)]
        shown = measure.low_bit_attack(*samples, delta=self.claim.delta, error=error)
        return Shown(shown, "bits finer than the neighbour has")


@dataclass(frozen=True, eq=False)
class Losses(Attack):
    """Privacy losses of sampled outputs whose law is known on both neighbours; ``losses(effort)`` returns them."""

    losses: Callable[[Effort], Array]

    def run(self, effort: Effort, error: float) -> Shown:
        """Sample the losses and bound how often they are large."""
        return measure.from_losses(self.losses(effort), delta=self.claim.delta, error=error)


@dataclass(frozen=True, eq=False)
class Exact(Attack):
    """A privacy loss, or a share of a sensitivity, that is computed and not sampled."""

    reach: Callable[[], float]
    how: str = "computed"
    slack: float = ROUNDING
    statistical: ClassVar[bool] = False

    def run(self, effort: Effort, error: float) -> Shown:
        """Compute it."""
        return Shown(self.reach(), self.how)


@dataclass(frozen=True, eq=False)
class Case:
    """A mechanism under audit.

    ``standing`` is "not claimed" where the attack is known to succeed and the guarantee says so (low bits of float
    arithmetic).
    """

    name: str
    title: str
    attacks: tuple[Attack, ...]
    standing: Literal["claimed", "not claimed"] = "claimed"
    note: str = ""


Verdict = Literal["holds", "BROKEN", "not claimed"]


def known_broken(name: str, title: str, *attacks: Attack, source: str = "") -> Case:
    """Return a case that says in its name and title that it is not private; ``source`` is where it is described."""
    return Case(f"NOT-PRIVATE-{name}", f"NOT PRIVATE: {title}", attacks, note=source)


@dataclass(frozen=True)
class AuditFinding:
    """The result of one attack on one mechanism."""

    mechanism: str
    title: str
    attack: str
    claim: ClaimedLoss
    shown: float
    how: str
    verdict: Verdict
    note: str = ""

    @property
    def share(self) -> float:
        """The demonstrated loss as a share of the claim."""
        return self.shown / self.claim.epsilon


def judge(case: Case, attack: Attack, shown: Shown) -> AuditFinding:
    """Compare what was shown with what is claimed."""
    slack = attack.slack if isinstance(attack, Exact) else 0.0
    exceeded = shown.epsilon > attack.claim.epsilon * (1 + slack)
    verdict: Verdict = "holds" if not exceeded else "BROKEN" if case.standing == "claimed" else "not claimed"
    return AuditFinding(case.name, case.title, attack.name, attack.claim, shown.epsilon, shown.how, verdict, case.note)
