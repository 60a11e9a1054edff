"""The statistics of the audit: a false alarm is as rare as stated, and a real leak is found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpsc.evidence.audit.case import Case, ClaimedLoss, Effort, Exact, LowBits, Sampled
from dpsc.evidence.audit.measure import Score, attack, black_box_scores, epsilon_lower_bound
from dpsc.evidence.audit.run import FALSE_ALARM, audit, count
from dpsc.evidence.audit.shipped import cases
from dpsc.types import Array

pytestmark = pytest.mark.statistical
OUTPUT: dict[str, Score] = {"output": lambda v: v[:, 0]}


def test_the_lower_bound_is_what_can_be_shown_and_no_more() -> None:
    assert epsilon_lower_bound(0, 1000, 0, 1000) == 0
    assert epsilon_lower_bound(500, 1000, 500, 1000) < 0.01
    many = epsilon_lower_bound(730_000, 1_000_000, 269_000, 1_000_000)
    assert 0.98 < many < math.log(0.73 / 0.269)
    assert epsilon_lower_bound(10, 1000, 0, 1000, delta=0.1) == 0


def test_the_lower_bound_counts_each_sample_by_its_own_size() -> None:
    """All of a small sample of neighbours is certainly no evidence, however large the other sample is."""
    assert epsilon_lower_bound(900, 1000, 10, 10) == 0
    assert epsilon_lower_bound(9, 10, 10, 1000) > 2


def test_clopper_pearson_is_what_it_says() -> None:
    """The bound uses p from below and q from above; both are checked against scipy's own interval."""
    error = 1e-3
    p = stats.binomtest(70, 100).proportion_ci(1 - error, "exact").low
    q = stats.binomtest(20, 100).proportion_ci(1 - error, "exact").high
    assert epsilon_lower_bound(70, 100, 20, 100, delta=0.05, error=error) == pytest.approx(math.log((p - 0.05) / q))


def randomised_response(epsilon: float, side: int, runs: int, rng: np.random.Generator) -> Array:
    """A coin that tells the truth with probability e^eps / (1 + e^eps): its epsilon is exactly this."""
    truth = rng.random((runs, 1)) < math.exp(epsilon) / (1 + math.exp(epsilon))
    return np.where(truth, side, 1 - side).astype(np.float64)


@pytest.mark.parametrize("error", [0.3, 0.05])
def test_on_an_exactly_tight_mechanism_the_bound_exceeds_the_claim_as_rarely_as_stated(error: float) -> None:
    """False alarms happen, so the test could fail, but no more often than the error allows."""
    epsilon, repetitions, alarms = 1.0, 600, 0
    rng = np.random.default_rng(0)
    for _ in range(repetitions):
        one, other = (randomised_response(epsilon, side, 300, rng) for side in (0, 1))
        alarms += attack(one, other, OUTPUT, error=error).epsilon > epsilon
    assert alarms <= stats.binom.ppf(1 - 1e-4, repetitions, error)
    if error > 0.1:
        assert alarms > 0


def test_choosing_and_measuring_on_the_same_runs_would_alarm_too_often() -> None:
    """Why the sample is halved: of many events chosen on the runs that measure them, the best looks too good."""
    epsilon, repetitions, error, events = 0.1, 25, 0.3, 40
    rng = np.random.default_rng(1)
    honest, greedy = 0, 0
    # Coins of their own: every event about a single one of them is (0.1, 0)-private.
    scores: dict[str, Score] = {f"coin {j}": (lambda v, j=j: v[:, j]) for j in range(events)}  # type: ignore[misc]
    for _ in range(repetitions):
        one, other = (np.hstack([randomised_response(epsilon, s, 200, rng) for _ in scores]) for s in (0, 1))
        honest += attack(one, other, scores, error=error).epsilon > epsilon
        hits = [(int((one[:, j] == 0).sum()), int((other[:, j] == 0).sum())) for j in range(events)]
        greedy += max(epsilon_lower_bound(a, 200, b, 200, error=error) for a, b in hits) > epsilon
    too_many = stats.binom.ppf(1 - 1e-4, repetitions, error)
    assert honest <= too_many < greedy


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_scale_10_percent_too_small_is_found(epsilon: float) -> None:
    rng = np.random.default_rng(0)
    for factor, broken in ((1.0, False), (0.9, True)):
        one, other = (s + factor / epsilon * rng.laplace(size=(400_000, 1)) for s in (0, 1))
        shown = attack(one, other, OUTPUT, error=1e-4).epsilon
        assert (shown > epsilon) is broken


def test_both_tails_and_both_directions_are_tried() -> None:
    rng = np.random.default_rng(0)
    narrow, wide = rng.normal(size=(20_000, 1)), 3 * rng.normal(size=(20_000, 1))
    folded, folded_wide = -np.abs(narrow), -np.abs(wide)
    for one, other in ((narrow, wide), (wide, narrow), (folded, folded_wide), (folded_wide, folded)):
        assert attack(one, other, OUTPUT, error=1e-4).epsilon > 2


def test_the_event_is_the_same_for_both_samples_whatever_their_sizes_are() -> None:
    """The same few values on both sides, but for one outlier: a threshold on a value must not split the samples."""
    rng = np.random.default_rng(0)
    values = np.arange(1, 8) / 7
    for outlier in (1e3, 1e9, 1e-9):
        one, other = rng.choice(values, (20_000, 1)), rng.choice(values, (20_000, 1))
        one[-1] = outlier
        assert attack(one, other, OUTPUT, error=1e-6).epsilon < 0.1


@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_discrete_outputs_are_no_false_alarm(epsilon: float) -> None:
    """Coarse integers, thresholds on atoms, and distances to a centre that is not one of them."""
    rng = np.random.default_rng(0)
    scale, share = 16.0, -math.expm1(-1 / 16.0)
    shift = round(epsilon * scale)
    one, other = (
        s + rng.geometric(share, (500_000, 1)) - rng.geometric(share, (500_000, 1)) for s in (0.0, float(shift))
    )
    scores = black_box_scores(np.array([0.3]), np.array([shift - 0.2]))
    assert 0.7 * epsilon < attack(one, other, scores, error=1e-5).epsilon <= epsilon


def test_the_error_of_a_run_is_divided_over_its_attacks() -> None:
    errors: list[float] = []

    class Spy:
        name, claim, statistical = "spy", ClaimedLoss(1.0), True

        def run(self, effort: Effort, error: float) -> object:
            errors.append(error)
            return Exact("x", ClaimedLoss(1.0), lambda: 0.5).run(effort, error)

    computed = Exact("computed", ClaimedLoss(1.0), lambda: 1.0)
    audit([Case("a", "a", (Spy(), computed)), Case("b", "b", (Spy(), Spy()))], runs=1000, seed=0)  # type: ignore[arg-type]
    assert errors == [pytest.approx(FALSE_ALARM / 3)] * 3
    assert FALSE_ALARM == 1e-3


def test_every_sampling_attack_counts_as_one_that_may_be_wrong() -> None:
    shipped = cases()
    sampling = [a for case in shipped for a in case.attacks if not isinstance(a, Exact)]
    assert all(a.statistical for a in sampling)
    assert count(shipped) == len(sampling) > 20
    assert any(isinstance(a, LowBits) for a in sampling)


def test_noise_that_comes_twice_is_told_from_noise_that_does_not() -> None:
    def fixed(side: int, effort: Effort) -> Array:
        return side + np.random.default_rng(0).laplace(size=(effort.runs, 1))

    def fresh(side: int, effort: Effort) -> Array:
        return side + effort.source().normals((effort.runs, 1))

    effort = Effort(2000, 200, seed=0)
    assert math.isinf(Sampled("fixed", ClaimedLoss(1.0), fixed).run(effort, 1e-4).epsilon)
    assert Sampled("fresh", ClaimedLoss(9.0), fresh).run(effort, 1e-4).epsilon < 9


def test_seeds_of_an_effort_are_never_used_twice_and_can_be_repeated() -> None:
    one, again = Effort(1, 1, seed=3), Effort(1, 1, seed=3)
    first = [one.seed() for _ in range(5)] + [one.few().seed() for _ in range(5)]
    assert len(set(first)) == 10
    assert [again.seed() for _ in range(5)] == first[:5]
    assert Effort(1, 1).seed() is None
    assert Effort(1, 1).source().private
