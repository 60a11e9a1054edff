"""Periods before the treatment, tests of several numbers together, pooled placebos, groups and weights by size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import f as fisher

from dpsc.analyst.intervals import JointUncertainty
from dpsc.answers.effects import holm
from dpsc.answers.joint_tests import PreTrend, all_zero
from dpsc.answers.study import Study
from dpsc.errors import ParameterError, ReleaseError
from dpsc.types import Array
from tests.analyst.test_panel import DATE, paths, published, table
from tests.analyst.test_panel import released as released_panel
from tests.analyst.test_study import released, units
from tests.soak import quick_or_long

NAMES = ["north", "south", "east", "west"]
DATES = {"north": 16, "south": 18, "east": 18, "west": 17}
GROUPS = {"north": "coast", "south": "coast", "east": "inland", "west": "inland"}


def of(targets: Array, donors: Array, **options: Any) -> Study:
    return released(donors).study(dict(zip(NAMES, targets, strict=True)), DATES, **options)


@pytest.fixture(scope="module")
def rows() -> Array:
    return units(304, 0)


@pytest.fixture(scope="module")
def study(rows: Array) -> Study:
    return of(rows[:4], rows[4:], groups=GROUPS)


def test_leads_are_forecasts_of_earlier_dates_and_know_nothing_of_the_periods_after_them(rows: Array) -> None:
    found = of(rows[:4], rows[4:])
    event = found.by_event_time(before=4)
    for unit, result in found.results.items():
        placebo = result.repeats.placebo(DATES[unit] - 4)
        assert list(placebo.gaps.index) == list(range(DATES[unit] - 4, DATES[unit]))
    each = [result.repeats.placebo(DATES[unit] - 4).gaps.to_numpy() for unit, result in found.results.items()]
    np.testing.assert_allclose(event.loc[-4:-1, "effect"], np.mean(each, axis=0))
    moved = rows[:4].copy()
    for k, name in enumerate(NAMES):
        moved[k, DATES[name] - 1] += 7.0
    after = of(moved, rows[4:]).by_event_time(before=4)
    np.testing.assert_allclose(after.loc[-4:-2], event.loc[-4:-2])
    assert after["effect"][-1] == pytest.approx(event["effect"][-1] + 7.0)


def test_leads_of_one_unit_have_the_intervals_of_its_own_forecast(rows: Array) -> None:
    one = released(rows[1:]).study({"north": rows[0]}, 17)
    placebo = one.results["north"].repeats.placebo(17 - 5)
    np.testing.assert_allclose(one.by_event_time()["lower"].iloc[:5], placebo.to_frame()["gap_lower"])


def test_as_many_periods_before_as_asked_for_or_as_there_are(study: Study) -> None:
    assert list(study.by_event_time().index) == list(range(-5, 8))
    assert list(study.by_event_time(before=2).index) == list(range(-2, 8))
    with pytest.raises(ParameterError, match="at most 14 periods earlier"):
        study.by_event_time(before=15)
    short = released(units(304, 0)[4:]).study({"a": units(1, 5)[0]}, 2)
    assert list(short.by_event_time().index[:1]) == [0]
    with pytest.raises(ParameterError, match="at least 3 periods"):
        short.pre_trend()


def test_a_trend_before_the_treatment_is_found_and_none_is_not(rows: Array) -> None:
    calm = of(rows[:4], rows[4:]).pre_trend()
    assert calm.p_value > 0.05
    ahead = rows[:4] + 3.0 * np.maximum(0, np.arange(24) - 12)
    test = of(ahead, rows[4:]).pre_trend()
    assert test.p_value < 0.01
    assert "moved away" in str(test)
    assert "no proof" in str(calm)


def test_equivalence_is_two_one_sided_tests_of_every_period(study: Study) -> None:
    test = study.pre_trend(bound=2.0)
    at_90 = study.by_event_time(level=0.9).loc[-5:-1]
    widest = float(at_90[["lower", "upper"]].abs().to_numpy().max())
    assert test.smallest_bound == pytest.approx(widest)
    assert (
        study.pre_trend(bound=1.01 * widest).equivalence_p < 0.05 < study.pre_trend(bound=0.99 * widest).equivalence_p
    )
    assert test.equivalence_p == test.table["equivalence_p"].max()
    assert "evidence" in str(study.pre_trend(bound=1.01 * widest))
    with pytest.raises(ParameterError, match="bound"):
        study.pre_trend(bound=-1.0)


def test_the_usual_bound_grows_with_the_outcomes_units(rows: Array) -> None:
    """0.36 standard deviations around each unit's level and what donors do: levels have no part in it."""
    rng = np.random.default_rng(3)
    flat = 50 + np.sin(np.arange(24)) + rng.normal(size=(2004, 24))
    one, shifted = (
        of(flat[:4] + level, flat[4:]).pre_trend().bound for level in (0.0, np.array([[0.0], [40], [-9], [5]]))
    )
    assert one == pytest.approx(shifted)
    apart = [(flat[k] - flat[4:].mean(axis=0))[: DATES[name]] for k, name in enumerate(NAMES)]
    squares = sum(float(((path - path.mean()) ** 2).sum()) for path in apart)
    assert one == pytest.approx(0.36 * np.sqrt(squares / sum(len(path) - 1 for path in apart)), rel=0.02)
    assert of(10 * rows[:4], 10 * rows[4:]).pre_trend(bound=1.0).usual is False


def test_the_joint_law_has_the_variances_of_each_number(study: Study) -> None:
    law = study.uncertainty
    assert isinstance(law, JointUncertainty)
    _, combinations = study._rows(study._event_times)
    several = combinations[:6]
    scale, degrees = law.together(several)
    for k in range(6):
        spread = law._law(several[[k]]).spreads[0, 0]
        assert scale[k, k] == pytest.approx(spread**2)
    assert np.linalg.eigvalsh(scale).min() > 0
    one = study._pooled(several[:1], 0.95)[0].effect
    squares = one**2 / scale[0, 0]
    assert all_zero(np.array([one]), several[:1], law) == pytest.approx(float(fisher.sf(squares, 1, degrees)))


def test_a_number_that_is_there_twice_counts_once(study: Study) -> None:
    _, combinations = study._rows(study._event_times)
    effects = np.array([effect.effect for effect in study._pooled(combinations[:3], 0.95)])
    once = all_zero(effects, combinations[:3], study.uncertainty)
    twice = all_zero(np.tile(effects, 2), np.tile(combinations[:3], (2, 1)), study.uncertainty)
    assert once == pytest.approx(twice)


def calm_tests(seed: int, walk: bool) -> PreTrend:
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(204, 24))
    values = 2 * np.cumsum(rng.normal(size=24)) + (np.cumsum(steps, axis=1) if walk else steps)
    return of(100 + values[:4], 100 + values[4:]).pre_trend()


@pytest.mark.parametrize("walk", [True, False])
def test_without_a_trend_tests_reject_rarely_and_intervals_hold(walk: bool) -> None:
    tests = [calm_tests(seed, walk) for seed in range(quick_or_long(24, 400))]
    assert np.mean([test.p_value < 0.05 for test in tests]) <= 0.10
    assert np.mean([test.p_value < 0.25 for test in tests]) >= 0.02  # and not never
    held = [(test.table["lower"] <= 0) & (test.table["upper"] >= 0) for test in tests]
    assert np.mean(held) > 0.92


def test_groups_are_averages_of_their_unit_periods_and_are_compared_with_the_rest(study: Study) -> None:
    found = study.by_group()
    gaps = {name: result.gaps.to_numpy() for name, result in study.results.items()}
    coast, inland = (
        np.concatenate([gaps[n] for n in NAMES if GROUPS[n] == group]).mean() for group in ("coast", "inland")
    )
    assert found.table["effect"].tolist() == pytest.approx([coast, inland])
    assert found.table["units"].tolist() == [2, 2]
    assert found.table["difference"].tolist() == pytest.approx([coast - inland, inland - coast])
    assert found.table["difference_p"].to_numpy() == pytest.approx(found.p_value)
    whole = study.by_group({name: name for name in NAMES})
    assert whole.table["effect"].tolist() == pytest.approx([gaps[name].mean() for name in NAMES])


def test_a_difference_between_groups_is_found_and_what_units_share_is_no_difference(rows: Array) -> None:
    moved = rows[:4].copy()
    moved[:, 18:] += 8.0
    same = of(moved, rows[4:], groups=GROUPS).by_group()
    assert same.p_value > 0.05
    assert "no proof" in str(same)
    moved[:2, 18:] += 8.0
    apart = of(moved, rows[4:], groups=GROUPS).by_group()
    assert apart.p_value < 0.01
    assert "coast minus inland" in str(apart)
    three = of(moved, rows[4:]).by_group({"north": "a", "south": "a", "east": "b", "west": "c"})
    assert three.table["adjusted_p"].tolist() == pytest.approx(holm(three.table["difference_p"].tolist()))
    assert "adjustment for 3 comparisons" in str(three)


def test_the_error_of_a_difference_leaves_out_what_groups_share(study: Study) -> None:
    """Forecasts of all units are off in the same way; a difference is surer than two independent groups would be."""
    found, law = study.by_group().table, study.uncertainty
    assert isinstance(law, JointUncertainty)
    widths = (found["upper"] - found["lower"]).to_numpy()
    assert law.correlation > 0
    assert found["difference_upper"].iloc[0] - found["difference_lower"].iloc[0] < np.hypot(*widths)


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"north": "a"}, "have no group for 'south'"),
        (dict.fromkeys(NAMES, "a"), "at least two"),
        (None, "which unit is in"),
    ],
)
def test_groups_that_do_not_fit_are_refused(rows: Array, groups: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        of(rows[:4], rows[4:]).by_group(groups)


def test_pooled_placebos_in_time_date_all_units_earlier(study: Study) -> None:
    found = study.placebos()
    assert found.table.index.tolist()[0] == 1
    assert found.table.index.tolist()[-1] == 14
    assert len(found.table) == 12
    longest = sum(len(result.counterfactual) for result in study.results.values())
    assert found.table["periods"].tolist()[-1] == longest
    assert found.table["periods"].tolist()[0] == 4
    assert found.share == (found.table["p_value"] <= study.p_value).mean()
    assert "earlier dates" in str(found)


def test_made_up_groups_are_as_alike_as_the_units_of_the_study(rows: Array) -> None:
    """Their pooled effects vary by what the study's own standard error says, also where units are alike."""
    rng = np.random.default_rng(9)
    group = 3 * np.cumsum(rng.normal(size=24))
    for targets, expected in ((rows[:4], 0.0), (rows[:4] + group, 0.4)):
        found = of(targets, rows[4:])
        assert isinstance(found.uncertainty, JointUncertainty)
        assert found.uncertainty.correlation >= expected
        placebos = found.placebos("space", groups=quick_or_long(30, 400))
        spread = float(placebos.table["effect"].std())
        assert 0.5 < spread / found.standard_error < 1.3
    assert "groups of 4 made-up units" in str(placebos)
    assert placebos.share == (placebos.table["effect"].abs() >= abs(found.att)).mean()


def test_a_large_effect_outranks_all_made_up_groups(rows: Array) -> None:
    moved = rows[:4].copy()
    moved[:, 16:] += 15.0
    assert of(moved, rows[4:]).placebos("space", groups=25).share == 0


def test_other_real_units_are_drawn_in_groups_of_the_same_size() -> None:
    values = paths()
    values[[2, 3], 18:] += 12.0
    found = published(values).study({"shop 2": DATE, "shop 3": DATE})
    placebos = found.placebos("space", groups=19)
    assert placebos.rank == 1
    for name in placebos.table.index:
        assert len(set(name.split(", "))) == 2
        assert not {"shop 2", "shop 3"} & set(name.split(", "))
    first, second = placebos.table.index[0].split(", ")
    alone = published(values).study({first: DATE, second: DATE}, exclude=["shop 2", "shop 3"])
    assert placebos.table["effect"].iloc[0] == pytest.approx(alone.att)
    assert str(placebos).startswith("the pooled effect has rank 1 of")
    few = published(values[:6]).study({"shop 2": DATE, "shop 3": DATE})
    assert len(few.placebos("space").table) == 0
    assert few.trials().in_space is None


def test_units_count_by_their_size(rows: Array) -> None:
    sizes = {"north": 300, "south": 100, "east": 50, "west": 50}
    by_size, by_hand = (of(rows[:4], rows[4:], weights=w, averages=sizes) for w in ("size", sizes))
    assert by_size.average == pytest.approx(by_hand.average)
    assert by_size.weights.to_dict() == sizes
    with pytest.raises(ReleaseError, match="size of 'north' is not known"):
        of(rows[:4], rows[4:], weights="size")
    with pytest.raises(ReleaseError, match="not 'sizes'"):
        of(rows[:4], rows[4:], weights="sizes", averages=sizes)


def test_units_of_a_panel_count_by_their_people() -> None:
    found = released_panel(paths(), people=500).study({"shop 2": DATE, "shop 3": DATE}, weights="size")
    assert found.weights.tolist() == pytest.approx([500, 500], rel=0.1)
    with pytest.raises(ReleaseError, match="does not say how many people"):
        published(paths()).study({"shop 2": DATE, "shop 3": DATE}, weights="size")


def test_a_report_has_all_of_it(study: Study, every_group: None) -> None:
    content = study.files("euros").content()
    assert content["pre_trend"]["p_value"] == pytest.approx(study.pre_trend().p_value)
    assert content["groups"]["p_value"] == pytest.approx(study.by_group().p_value)
    assert [row["group"] for row in content["groups"]["effects"]] == ["coast", "inland"]
    assert content["placebos"]["in_time"]["placebos"][0]["periods_earlier"] == 1
    assert content["placebos"]["in_space"]["count"] == 25
    for said in ("Pre-trend test", "Equivalence test", "groups of 4 made-up units", "Liu, Wang and Xu", "both groups"):
        assert said in content["paragraph"]
    page = study.files("euros").html().decode()
    for said in ("Group by group", "Before the treatment", "Placebos", "periods earlier"):
        assert said in page
    made = study._tables()
    assert {"groups", "before", "placebos"} <= set(made)


def test_a_panel_has_all_of_it() -> None:
    values = paths(own=0.2)
    panel = published(values, 0.05)
    found = panel.study({"shop 2": DATE, "shop 3": "2022-09"}, groups=pd.Series({"shop 2": "a", "shop 3": "b"}))
    content = found.files().content()
    assert content["placebos"]["in_space"]["units"] == content["placebos"]["in_space"]["count"] + 1
    assert content["groups"] is not None
    assert len(content["pre_trend"]["periods"]) == 6
    assert "other units" in found.files().html().decode()
    assert table(values).shape == (14, 24)
