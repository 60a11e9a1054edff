from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, Release, ReleaseError
from dpsc.analyst.intervals import JointUncertainty
from dpsc.answers.study import Study
from dpsc.types import Array
from tests.soak import quick_or_long

T = 24


def units(count: int, seed: int, T: int = T) -> Array:
    """Random walks around a common one: a study's errors share the error of the estimated mean."""
    rng = np.random.default_rng(seed)
    return np.asarray(100 + 2 * np.cumsum(rng.normal(size=T)) + np.cumsum(rng.normal(size=(count, T)), axis=1))


def released(donors: Array | pd.DataFrame, epsilon: float = 1.0, seed: int = 0) -> Release:
    return GramRelease(epsilon=epsilon, delta=1e-6, scale=4.0, seed=seed).release(donors)


@pytest.fixture(scope="module")
def study() -> Study:
    paths = units(304, 0)
    targets = {"north": paths[0], "south": paths[1], "west": paths[2], "never": paths[3]}
    return released(paths[4:]).study(targets, {"north": 16, "south": 18, "west": 18})


def test_a_study_of_one_unit_is_its_estimate() -> None:
    paths = units(301, 1)
    release = released(paths[1:])
    one, alone = release.study({"north": paths[0]}, 17), release.estimate(paths[0], 17)
    assert one.average == pytest.approx(alone.average)
    assert one.results["north"].gaps.equals(alone.gaps)
    by_event = one.by_event_time(before=0)
    assert by_event["effect"].to_numpy() == pytest.approx(alone.gaps.to_numpy())
    assert by_event["lower"].to_numpy() == pytest.approx(alone.to_frame()["gap_lower"].to_numpy())


def test_pooled_effects_are_averages_of_the_units_gaps(study: Study) -> None:
    gaps = {name: result.gaps for name, result in study.results.items()}
    effects = study.effects()["effect"]
    assert effects["average over unit-periods"] == pytest.approx(np.concatenate(list(gaps.values())).mean())
    assert effects["average over units"] == pytest.approx(np.mean([gap.mean() for gap in gaps.values()]))
    assert effects["total"] == pytest.approx(sum(gap.sum() for gap in gaps.values()))
    event = study.by_event_time(before=0)
    assert event["units"].tolist() == [3] * 6 + [1] * 2
    assert event["effect"][0] == pytest.approx(np.mean([gap.iloc[0] for gap in gaps.values()]))
    assert event["effect"][7] == pytest.approx(gaps["north"].iloc[7])
    calendar = study.by_calendar_time()
    assert calendar["units"].to_dict() == {16: 1, 17: 1} | dict.fromkeys(range(18, 24), 3)
    assert calendar["effect"][20] == pytest.approx(np.mean([gap[20] for gap in gaps.values()]))
    assert study.by_unit().loc["south", "effect"] == pytest.approx(gaps["south"].mean())


def test_weights_count(study: Study) -> None:
    only = replace(study, weights=pd.Series({"north": 0.0, "south": 2.0, "west": 0.0}))
    assert only.average.effect == pytest.approx(study.results["south"].att)
    assert only.effects()["effect"]["average over units"] == pytest.approx(study.results["south"].att)


def test_never_treated_units_are_shown_and_not_used(study: Study) -> None:
    assert list(study.never_treated) == ["never"]
    assert "never treated, shown for comparison only: never" in study.summary()
    assert "never" not in set(study.to_frame()["unit"])


def test_labels_of_units_that_were_never_treated_are_understood_as_those_of_others() -> None:
    paths, months = units(303, 0), pd.period_range("2020-01", periods=T, freq="M")
    release = released(pd.DataFrame(paths[3:], columns=months))
    named = {name: pd.Series(path, index=months.strftime("%b %Y")) for name, path in zip("abc", paths, strict=False)}
    named["b"] = named["b"].iloc[5:]
    found = release.study(named, {"a": "2021-06"})
    assert found.never_treated["c"].to_numpy() == pytest.approx(paths[2])
    assert found.never_treated["b"].isna().sum() == 5
    assert found.never_treated["b"]["2020-06"] == paths[1][5]
    found.plot("units")
    with pytest.raises(ReleaseError, match="unit 'c'"):
        release.study(named | {"c": paths[2][:1]}, {"a": "2021-06"})


def test_a_period_that_was_not_observed_has_no_weight() -> None:
    paths = units(302, 2)
    release, gone = released(paths[2:]), paths[1].copy()
    gone[20:] = np.nan
    found = release.study({"a": paths[0], "b": gone}, 18)
    gaps = np.concatenate([found.results["a"].gaps, found.results["b"].gaps.dropna()])
    assert found.att == pytest.approx(gaps.mean())
    assert found.by_event_time(before=0)["units"].tolist() == [2, 2, 1, 1, 1, 1]
    assert found.notes == ("b: the target has no number in 20, 21, 22 and 1 more: no effect is counted there",)
    both = release.study({"a": gone, "b": gone}, 18)
    assert both.notes == (found.notes[0].replace("b:", "all units:"),)
    assert both.notes[0] in both.summary()


@pytest.mark.parametrize(
    ("dates", "problem"),
    [
        ({"north": 16, "nroth": 17}, "Did you mean 'north'"),
        ([16, 17, 18], "differ in number: 1 and 3"),
        (None, "no target has"),
    ],
)
def test_dates_that_do_not_fit_are_refused(dates: object, problem: str) -> None:
    paths = units(31, 3)
    with pytest.raises(ReleaseError, match=problem):
        released(paths[1:]).study({"north": paths[0]}, dates)


def test_weights_that_do_not_fit_are_refused() -> None:
    paths = units(31, 3)
    for weights in ({}, {"north": -1.0}, {"north": 0.0}, {"north": float("nan")}):
        with pytest.raises(ReleaseError, match="weights"):
            released(paths[1:]).study({"north": paths[0]}, 16, weights=weights)


def as_if_independent(study: Study) -> Study:
    """Forget what units share."""
    assert isinstance(study.uncertainty, JointUncertainty)
    own = replace(study.uncertainty)
    covariance = np.zeros_like(own.covariance)
    for s in own.slices:
        covariance[s, s] = own.covariance[s, s]
    own.__dict__["covariance"] = covariance
    return replace(study, uncertainty=own)


@pytest.mark.parametrize("staggered", [False, True])
def test_pooled_intervals_hold_and_those_of_independent_units_do_not(staggered: bool) -> None:
    """With few donors the error of the estimated mean is most of what is left, and all units have the same."""
    joint: list[bool] = []
    apart: list[bool] = []
    for seed in range(quick_or_long(20 if staggered else 14, 400)):
        paths = units(62, 100 + seed)
        dates = [16 + k % 6 if staggered else 18 for k in range(12)]
        release = released(paths[12:], epsilon=0.5, seed=seed)
        found = release.study(dict(enumerate(paths[:12])), dates)
        for kept, study in ((joint, found), (apart, as_if_independent(found))):
            low, high = study.att_interval()
            kept.append(low <= 0 <= high)
    assert np.mean(apart) < 0.9 <= np.mean(joint)


def test_the_joint_covariance_is_one_and_shares_the_means_error() -> None:
    paths = units(64, 7)
    found = released(paths[4:]).study(dict(enumerate(paths[:4])), [15, 15, 18, 20])
    uncertainty = found.uncertainty
    assert isinstance(uncertainty, JointUncertainty)
    V = uncertainty.covariance
    assert np.linalg.eigvalsh(V).min() > -1e-9 * np.trace(V)
    one, other = uncertainty.slices[:2]
    shared = np.trace(V[one, other]) / np.trace(V[one, one])
    assert 0.05 < shared < 1


def test_units_alike_are_recognised() -> None:
    """Units that all differ from the donors in the same way are not independent of each other."""
    rng = np.random.default_rng(9)
    paths = units(330, 8)
    group = 3 * np.cumsum(rng.normal(size=T))
    release = released(paths[30:], epsilon=4.0)
    alone, together = (
        release.study(dict(enumerate(targets)), 18).uncertainty for targets in (paths[:30], paths[:30] + group)
    )
    assert isinstance(alone, JointUncertainty)
    assert isinstance(together, JointUncertainty)
    assert alone.alike < 0.1 < 0.3 < together.alike


def test_units_of_a_release_of_0_1_0_can_be_pooled() -> None:
    release = Release.load(Path(__file__).parents[1] / "release" / "release-0.1.0.dpsc.json")
    rng = np.random.default_rng(0)
    targets = {k: np.cumsum(rng.normal(size=release.T)) for k in range(3)}
    date = release.times[release.T * 2 // 3]
    found = release.study(targets, date)
    assert np.isfinite(found.average).sum() >= 4
