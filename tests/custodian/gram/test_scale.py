"""The private scale: what its counts cost, that their noise is what it says, and that the estimate is good enough."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpsc import DpscError, GramRelease, Panel, ParameterError, scan
from dpsc.custodian.gram.exact_sum import Counts
from dpsc.custodian.gram.sources import ArrayDonors, sum_of_rows
from dpsc.privacy import discrete
from dpsc.privacy.source import seeded, system
from dpsc.release.kernel import Kernel
from dpsc.release.rowmap import constant_for, constant_over_scale, movement, whitened_size
from dpsc.release.scale import COUNTED_AT_MOST, LARGEST_SHARE, LEAST, MOST_COUNTS, estimated, noisy_counts, share_for
from dpsc.types import Array, Integers
from tests.conftest import scale_pvalue
from tests.making import long, save, wide

MAKE = GramRelease(epsilon=1.0, delta=1e-6)


def walks(n: int, size: float = 1.0, T: int = 20, seed: int = 0) -> Array:
    """Donors that move about as much as each other, give or take a factor of two."""
    rng = np.random.default_rng(seed)
    return np.asarray(size * rng.lognormal(sigma=0.6, size=(n, 1)) * rng.normal(size=(n, T)).cumsum(axis=1))


@pytest.mark.statistical
def test_the_noise_on_counts_has_the_stated_scale_and_the_test_rejects_10_percent_less() -> None:
    """For sensitivity sqrt(2): counts that change by sqrt(2) are then mu standard deviations apart."""
    counts, mu, bits = np.arange(60 * MOST_COUNTS), 0.05, 18
    noise = (noisy_counts(counts, int(counts.sum()), mu, bits, system()) - counts) * mu / math.sqrt(2)
    assert stats.kstest(noise, "norm").pvalue > 1e-6
    assert scale_pvalue(noise, "gaussian") > 1e-6
    assert scale_pvalue(0.9 * noise, "gaussian") < 1e-4
    assert len(np.unique(noise)) == noise.size


def test_the_noise_on_counts_is_opendps_on_the_grid_of_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a rounded float, and its scale is never below what the slack was charged for: 4^bits / mu of the budget."""
    drawn: list[float] = []
    original = discrete.measurement

    def watched(kind: discrete.Kind, scale: float) -> Any:
        drawn.append(scale)
        return original(kind, scale)

    monkeypatch.setattr(discrete, "measurement", watched)
    counts = sum_of_rows(walks(400), Counts(20, Kernel.named("high"), None))
    noisy = noisy_counts(counts, 400, 0.05, 10, system())
    assert drawn == [pytest.approx(math.sqrt(2) * 4**10 / 0.05, rel=1e-9)]
    np.testing.assert_array_equal(noisy * 4**10, np.rint(noisy * 4**10))
    for share in (share_for(400, MAKE.mu, True), LARGEST_SHARE):
        assert math.sqrt(2) / (MAKE.mu * math.sqrt(share)) >= 1 / MAKE.mu


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_share_is_small_falls_with_the_donors_and_never_exceeds_its_limit(epsilon: float) -> None:
    mu = GramRelease(epsilon=epsilon, delta=1e-9).mu
    shares = [share_for(n, mu, True) for n in (1, 30, 300, 3000, 10**5, 10**9)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] <= LARGEST_SHARE < 0.2
    assert shares[-1] == share_for(COUNTED_AT_MOST, mu, True) > 0
    for n in (1, 30, 300, 3000, 10**5):
        if n < 20 / mu:  # the noise would hide such counts, or take too much of the budget
            with pytest.raises(ParameterError, match=f"{n} donors are too few"):
                share_for(n, mu, False)
        elif n > 50 / mu:
            assert share_for(n, mu, True) <= share_for(n, mu, False) <= LARGEST_SHARE


def test_too_few_donors_without_a_guess_are_refused_and_told_what_to_give() -> None:
    donors = walks(60)
    with pytest.raises(ParameterError, match=r"60 donors are too few.* like.* scale"):
        MAKE.custodian_sum(donors)
    for known in ({"scale": 2.0}, {"like": donors[0]}):
        assert GramRelease(epsilon=1.0, delta=1e-6, **known).custodian_sum(donors).n == 60
    assert MAKE.custodian_sum(walks(400)).scale.source == "counted"


EXTREME = np.array([
    [math.nan] * 20, [math.inf] * 20, [-math.inf, *[0.0] * 19], [0.0] * 20, [7.0] * 20, [1.7e308, -1.7e308] * 10,
    [5e-324, 0.0] * 10, [math.nan, *[1e200] * 19], [*[0.0] * 19, math.nan], [math.inf, math.nan] * 10,
    [0.0, 2.0**-41] * 10, [0.0, 2.0**41] * 10, [1e154, -1e154] * 10, [1e-162, 0.0] * 10,
])  # fmt: skip


def in_engine(engine: Any, rows: Array, folder: Path, scheduler: str, table: Any = wide) -> Any:
    """Donors as an array, or in a file that an engine reads."""
    if engine == "array":
        return ArrayDonors(rows, pd.RangeIndex(20), "cost")
    path = save(table(rows, times=map(str, range(20))), folder / "donors.parquet")
    options: dict[str, Any] = {"wide": True} if table is wide else {"time": "week", "outcome": "cost"}
    options |= {"scheduler": scheduler} if engine == "dask" else {}
    return scan(path, unit="who", missing="kernel", periods="0..19", engine=engine, **options)


@pytest.mark.parametrize("engine", ["array", "memory", "stream", "dask"])
def test_every_donor_counts_once_whatever_its_values(engine: Any, cluster: Any, tmp_path: Path) -> None:
    """So the counts add up to the public number for all data, and the check that they do can refuse no data."""
    rows = np.vstack([EXTREME, walks(400)])
    for table in (wide, long):
        donors = in_engine(engine, rows, tmp_path, cluster.scheduler_address, table)
        counts, n = donors.add_up(Counts(20, Kernel.named("high"), None), lambda rows: None)
        assert counts.sum() == n == len(rows)
        assert counts.dtype == np.int64
        made = MAKE.custodian_sum(donors)
        assert (made.n, made.scale.source) == (len(rows), "counted")


@pytest.mark.parametrize("engine", ["array", "memory", "stream", "dask"])
def test_the_number_of_donors_is_the_public_one_and_never_what_the_counts_add_up_to(
    engine: Any, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    donors = in_engine(engine, walks(400), tmp_path, cluster.scheduler_address)
    add_up = type(donors).add_up

    def one_lost(self: Any, summand: Any, on_rows: Any, enough: float = math.inf) -> tuple[Integers, int]:
        total, n = add_up(self, summand, on_rows, enough)
        return total - np.eye(1, total.size, int(total.argmax()), dtype=np.int64)[0].reshape(total.shape), n

    monkeypatch.setattr(type(donors), "add_up", one_lost)
    monkeypatch.setattr(discrete, "add", lambda *arguments, **options: pytest.fail("noise was drawn"))
    with pytest.raises(DpscError, match="not counted once each; nothing was released") as refusal:
        MAKE.custodian_sum(donors)
    assert not set("0123456789") & set(str(refusal.value))


@pytest.mark.parametrize("engine", ["array", "memory", "stream", "dask"])
def test_the_scale_is_estimated_with_the_number_of_donors_that_were_counted(
    engine: Any, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first ones if there are more than enough; Dask counts all, because it does not know who would come first."""
    told: list[int] = []

    def watched(noisy: Array, n: int, mu: float, guess: float | None) -> float:
        told.append(n)
        return 1.0

    monkeypatch.setattr("dpsc.custodian.gram.algorithm.estimated", watched)
    monkeypatch.setattr("dpsc.custodian.gram.algorithm.COUNTED_AT_MOST", 100)
    monkeypatch.setattr("dpsc.custodian.gram.algorithm.ENOUGH_PER_DIRECTION", 1e-3)
    monkeypatch.setattr("dpsc.custodian.gram.algorithm.ENOUGH_FOR_CONSTANT", 1e-3)
    donors = in_engine(engine, walks(400), tmp_path, cluster.scheduler_address)
    assert replace(MAKE, like=walks(1)[0]).custodian_sum(donors).n == 400
    assert told == [400 if engine == "dask" else 100]


def counts_of(median: float, n: int, rng: np.random.Generator) -> Integers:
    """Counts of donors whose movements are log-normal; the median and the spread are in powers of two."""
    powers = np.floor(median + 0.9 * rng.normal(size=n)).astype(int)
    return np.bincount(powers - LEAST, minlength=MOST_COUNTS)


@pytest.mark.statistical
def test_with_300_donors_the_scale_is_within_a_factor_of_two_although_the_guess_is_off_by_four() -> None:
    n, rng, source = 300, np.random.default_rng(0), seeded(0)
    mu = MAKE.mu * math.sqrt(share_for(n, MAKE.mu, True))
    within = {}
    for off in (-2, 2):
        errors = []
        for _ in range(1000):
            median = rng.uniform(-30, 30)
            noisy = noisy_counts(counts_of(median, n, rng), n, mu, 18, source)
            errors.append(math.log2(estimated(noisy, n, mu, 2.0 ** (median + off))) - median)
        within[off] = np.mean(np.abs(errors) <= 1)
    assert np.mean(list(within.values())) >= 0.95, within
    assert min(within.values()) >= 0.93, within


@pytest.mark.statistical
def test_without_a_guess_a_few_hundred_donors_show_the_scale() -> None:
    n, rng, source = 300, np.random.default_rng(0), seeded(0)
    mu = MAKE.mu * math.sqrt(share_for(n, MAKE.mu, False))
    medians = rng.uniform(-30, 30, 300)
    found = [estimated(noisy_counts(counts_of(m, n, rng), n, mu, 18, source), n, mu, None) for m in medians]
    assert np.mean(np.abs(np.log2(found) - medians) <= 1) >= 0.97


def test_the_scale_of_real_rows_is_about_their_median_movement() -> None:
    """From the counts of real rows with noise, in every way of making a release."""
    donors = walks(10_000, size=1e5)
    kernel = Kernel.named("high")
    median = float(np.median([movement(row, kernel) for row in donors[:1000]]))
    panel = Panel.from_arrays(donors, walks(1, size=1e5, seed=1)[0], treatment_time=15)
    make = GramRelease(epsilon=1.0, delta=1e-6, seed=0)
    like = replace(make, like=donors[0])
    ways = (make, donors, "counted"), (make, panel, "like and counted"), (like, donors, "like and counted")
    for algorithm, pool, source in ways:
        made = algorithm.custodian_sum(pool)
        assert made.scale.source == source
        assert 0 < made.scale.share < 0.05
        assert 0.5 < made.scale.value / median < 2
        noise = algorithm._scales(made.scale.share)[0] / 4.0**18
        assert made.row_map.constant == constant_for(made.scale.value, constant_over_scale(10_000, noise))


def test_a_given_scale_costs_nothing_and_donors_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsc.custodian.gram.algorithm.noisy_counts", lambda *arguments: pytest.fail("counted"))
    made = GramRelease(epsilon=1.0, delta=1e-6, scale=3.0)
    scale = made.custodian_sum(walks(50)).scale
    assert (scale.source, scale.share) == ("given", 0.0)
    assert scale.value == whitened_size(3.0, 20, Kernel.named("high"))
    assert made.guarantee is not None
    assert "counts" not in made.guarantee.basis
    assert MAKE.guarantee is not None
    assert "counts of donors" in MAKE.guarantee.basis


def test_a_target_that_does_not_move_is_no_guess() -> None:
    panel = Panel.from_arrays(walks(400), np.full(20, 5.0), treatment_time=15)
    assert MAKE.custodian_sum(panel).scale.source == "counted"


def test_of_a_panels_target_only_what_is_before_the_intervention_is_used() -> None:
    donors, target = walks(3000), walks(1, seed=3)[0]
    after = np.where(np.arange(20) < 15, target, target + 1e9)
    seeded_make = GramRelease(epsilon=1.0, delta=1e-6, seed=1)
    one, other = (
        seeded_make.custodian_sum(Panel.from_arrays(donors, path, treatment_time=15)).scale for path in (target, after)
    )
    assert one == other


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"scale": 0.0}, "scale"), ({"scale": -1.0}, "scale"), ({"scale": math.nan}, "scale"),
        ({"scale": 1e61}, "scale"), ({"scale": 1e-61}, "scale"), ({"scale": "2"}, "scale"), ({"like": [1.0]}, "like"),
        ({"like": [[1.0, 2.0]]}, "like"), ({"like": [math.nan, math.inf, 3.0]}, "like"), ({"like": "abc"}, "like"),
        ({"scale": 1.0, "like": [1.0, 2.0]}, "not both"), ({"directions": 0}, "directions"),
        ({"directions": 2.5}, "directions"),
    ],
)  # fmt: skip
def test_senseless_scales_and_directions_are_refused_by_name(options: dict[str, object], problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        GramRelease(**({"epsilon": 1.0, "delta": 1e-6} | options))  # type: ignore[arg-type]
