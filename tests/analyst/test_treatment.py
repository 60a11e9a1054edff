"""Treatments that end or come in spells, periods that are left out, and what an effect is worth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, PanelError, ParameterError, PrivatePanel, Release, ReleaseError, SyntheticControl
from dpsc.analyst.intervals import variance_of
from dpsc.answers import words
from dpsc.answers.effects import AFTER, LATER_MINUS_EARLIER, ON_MINUS_AFTER
from dpsc.answers.result import Result
from dpsc.types import Array
from tests.making import make_panel
from tests.soak import quick_or_long

MONTHS = pd.period_range("2022-01", periods=30, freq="M")
FIRST, LAST = "2023-07", "2023-12"  # the treated periods: 18 to 23
T0, END = 18, 24


def paths(count: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    factors = np.cumsum(rng.normal(size=(2, 30)), axis=1)
    return np.asarray(50 + rng.uniform(0.5, 1.5, (count, 2)) @ factors + 0.7 * rng.normal(size=(count, 30)))


@pytest.fixture(scope="module")
def asked() -> tuple[Release, pd.Series[float]]:
    """A release, and a target without any effect."""
    units = paths(520, 0)
    release = GramRelease(epsilon=2.0, delta=1e-6, scale=3.0, seed=0).release(pd.DataFrame(units[20:], columns=MONTHS))
    return release, pd.Series(units[:20].mean(axis=0), index=MONTHS, name="orders")


def said_of(result: Result) -> str:
    return " ".join([*words.answer(result), *words.developed(result), *words.worth(result)])


def with_effect(target: pd.Series[float], effect: Any) -> pd.Series[float]:
    changed = target.copy()
    changed.iloc[T0:END] += effect
    return changed


def test_the_effect_is_that_of_the_treated_periods_and_the_forecast_is_the_same(asked: Any) -> None:
    release, target = asked
    whole, ended = release.estimate(target, FIRST), release.estimate(target, FIRST, treatment_end=LAST)
    pd.testing.assert_series_equal(ended.counterfactual, whole.counterfactual)
    gaps = ended.gaps
    assert ended.att == pytest.approx(gaps.iloc[:6].mean())
    assert ended.total.effect == pytest.approx(gaps.iloc[:6].sum())
    assert ended.average == pytest.approx(whole.average_over(MONTHS[T0:END]))
    assert ended.to_frame()["treatment"].tolist() == ["on"] * 6 + ["off"] * 6
    assert ended.cumulative()["effect"].iloc[-1] == pytest.approx(ended.total.effect)
    assert "treatment" not in whole.to_frame()
    later = whole.during(LAST)
    assert (later.average, later.phases) == (ended.average, ended.phases)


def test_what_is_left_out_or_after_the_treatment_moves_neither_fit_nor_effect(asked: Any) -> None:
    """Also where it would move everything."""
    release, target = asked
    changed = target.copy()
    changed.iloc[T0 : T0 + 2] += 1000.0
    changed.iloc[END:] -= 1000.0
    one, other = (release.estimate(y, FIRST, treatment_end=LAST, gap=2) for y in (target, changed))
    assert one.average == other.average
    assert one.left_out.tolist() == list(MONTHS[T0 : T0 + 2])
    pd.testing.assert_series_equal(one.counterfactual, other.counterfactual)
    pd.testing.assert_frame_equal(one.before_frame(), other.before_frame())
    assert one.att == pytest.approx(one.gaps.iloc[2:6].mean())
    assert one.average != release.estimate(target, FIRST, treatment_end=LAST).average


def test_spells_of_one_piece_are_dates_and_others_count_where_they_are_on(asked: Any) -> None:
    release, target = asked
    on = pd.Series(0, index=MONTHS)
    on.iloc[T0:END] = 1
    assert release.estimate(target, treated=on).average == release.estimate(target, FIRST, treatment_end=LAST).average
    on.iloc[T0 + 2 : T0 + 4] = 0
    for given in (on, on.set_axis(on.index.astype(str)), on.to_dict(), on.to_numpy(), on.astype(bool)):
        result = release.estimate(target, treated=given)
        assert result.att == pytest.approx(result.gaps.iloc[[0, 1, 4, 5]].mean())
    assert result.treatment_time == MONTHS[T0]
    assert result.contrasts().loc[AFTER, "effect"] == pytest.approx(result.gaps.iloc[[2, 3, *range(6, 12)]].mean())


def test_contrasts_are_what_their_names_say(asked: Any) -> None:
    release, target = asked
    result = release.estimate(target, FIRST, treatment_end=LAST, gap=1)
    gaps, found = result.gaps, result.contrasts()
    assert list(found.index) == [AFTER, ON_MINUS_AFTER, LATER_MINUS_EARLIER]
    treated, after = gaps.iloc[1:6].mean(), gaps.iloc[6:].mean()
    assert found["effect"].tolist() == pytest.approx(
        [after, treated - after, gaps.iloc[4:6].mean() - gaps.iloc[1:3].mean()]
    )
    assert ((found["lower"] < found["effect"]) & (found["effect"] < found["upper"])).all()
    assert found["percent"].notna().tolist() == [True, False, False]  # a difference is no share of anything
    unseen = target.where(target.index < MONTHS[END])
    assert list(release.estimate(unseen, FIRST, treatment_end=LAST).contrasts().index) == [LATER_MINUS_EARLIER]
    assert list(release.estimate(target, MONTHS[29]).contrasts().index) == []


def test_an_error_that_is_the_same_in_all_periods_does_not_make_differences_sure() -> None:
    """It would cancel in a difference; as it may not be there, the difference keeps the model's variance."""
    covariance, difference = np.eye(4), np.array([[0.5, 0.5, -0.5, -0.5]])
    assert variance_of(difference, covariance)[0] == pytest.approx(1.0)
    walk = np.minimum.outer(np.arange(1.0, 5), np.arange(1.0, 5))
    assert variance_of(difference, walk)[0] >= float(difference[0] @ walk @ difference[0])


def untreated() -> Iterator[Any]:
    """Yield answers about averages of ten units that were never treated, from several releases."""
    for seed in range(quick_or_long(6, 40)):
        units = paths(500, 100 + seed)
        made = GramRelease(epsilon=2.0, delta=1e-6, scale=3.0, seed=seed).release(units[200:])
        for k in range(20):
            yield made.estimate(units[10 * k : 10 * k + 10].mean(axis=0), T0, treatment_end=END - 1)


def test_intervals_of_contrasts_hold_as_often_as_they_say() -> None:
    """And would not if they were half as long."""
    held, short = [], []
    for result in untreated():
        found = result.contrasts()
        held.append((found["lower"] <= 0) & (found["upper"] >= 0))
        short.append(found["effect"].abs() <= (found["upper"] - found["lower"]) / 4)
    shares = pd.DataFrame(held).mean()
    assert (shares >= 0.9).all(), shares
    assert (pd.DataFrame(short).mean() < 0.88).all()


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        (np.linspace(6, 0.5, 6), "While treated the effect fades"),
        (-np.linspace(0.5, 6, 6), "While treated the effect grows"),
        (3.0, "It cannot be said whether the effect fades while treated"),
    ],
)
def test_whether_it_fades_is_said_in_words(asked: Any, effect: Any, said: str) -> None:
    release, target = asked
    result = release.estimate(with_effect(target, effect), FIRST, treatment_end=LAST)
    text = said_of(result)
    assert said in text
    assert "The effect is smaller after the treatment" in text
    assert "compatible with no effect." in text
    assert "The last treated period is 2023-12." in text
    assert release.estimate(target, FIRST).ended is False


def test_what_remains_after_the_treatment_is_said(asked: Any) -> None:
    release, target = asked
    changed = target.copy()
    changed.iloc[T0:] += 5.0
    text = said_of(release.estimate(changed, FIRST, treatment_end=LAST))
    assert "an effect remains" in text
    assert "It cannot be said whether the effect is smaller after the treatment" in text
    on = pd.Series(0.0, index=MONTHS)
    on.iloc[[18, 19, 22, 23]] = 1
    text = said_of(release.estimate(changed, treated=on, gap=1))
    assert "The treatment was on from 2023-07 to 2023-08 and from 2023-11 to 2023-12." in text
    assert "2023-07 is left out: neither fitted nor in the effect." in text
    assert "In the periods without treatment the difference is" in text


def test_placebos_have_the_pattern_of_the_treatment(asked: Any) -> None:
    release, target = asked
    result = release.estimate(target, FIRST, treatment_end="2023-09", gap=1)
    placebos = result.placebos().table
    assert placebos["periods"].tolist() == [2] * 14 + [1]  # the last pretended date that leaves one after the gap
    by_hand = release.estimate(target.iloc[:T0], "2022-08").average_over(MONTHS[8:10])
    assert placebos.loc["2022-08", "effect"] == pytest.approx(by_hand.effect)
    assert result.sensitivity().table["effect"].iloc[0] == pytest.approx(result.att)
    assert result.trials().in_space is not None


def test_the_worth_is_the_total_times_the_units_and_their_value(asked: Any) -> None:
    release, target = asked
    changed = with_effect(target, 3.0)
    plain = release.estimate(changed, FIRST, treatment_end=LAST)
    result = plain.valued(20.0, cost=100.0, currency="EUR")
    found, total = result.worth(), result.total
    assert found.loc["total effect"].tolist() == pytest.approx(total[:3])
    assert found.loc["value"].tolist() == pytest.approx([20 * number for number in total[:3]])
    assert found.loc["value minus cost"].tolist() == pytest.approx([20 * number - 100 for number in total[:3]])
    assert found.loc["return"].tolist() == pytest.approx([20 * number / 100 for number in total[:3]])
    said = release.estimate(
        changed, FIRST, treatment_end=LAST, averages=20, value_per_unit=20, cost=100, currency="EUR"
    )
    assert said.worth().loc["value", "effect"] == pytest.approx(20 * 20 * said.total.effect)
    text = said_of(said)
    assert "times the 20 units that the target averages" in text
    assert "each EUR spent brought" in text
    assert "It was worth more than it cost." in text
    less = plain.valued(-2.0).worth()
    assert list(less.index) == ["total effect", "value"]
    assert less.loc["value", "lower"] == pytest.approx(-2 * total.upper)
    assert list(plain.valued(1.0, cost=0).worth().index) == ["total effect", "value"]  # nothing to divide by
    unclear = said_of(release.estimate(target, FIRST, value_per_unit=1, cost=1.0))
    assert "It cannot be said whether it was worth its cost." in unclear


def test_what_makes_no_sense_is_refused(asked: Any) -> None:
    release, target = asked
    for said, message in (
        ({"treatment_time": FIRST, "treatment_end": "2023-01"}, "is before the first, 2023-07"),
        ({"treatment_time": FIRST, "treatment_end": LAST, "gap": 6}, "gap=6 leaves out every treated period"),
        ({"treatment_time": FIRST, "gap": -1}, "gap must be"),
        ({"treatment_time": FIRST, "treated": np.ones(30)}, "leave out treatment_time"),
        ({}, "say when the treatment began"),
        ({"treatment_time": FIRST, "cost": 10.0}, "cost needs value_per_unit"),
        ({"treatment_time": FIRST, "value_per_unit": 0.0}, "must not be 0"),
        ({"treatment_time": FIRST, "value_per_unit": 1.0, "cost": -1.0}, "cost must be"),
    ):
        with pytest.raises(ParameterError, match=message):
            release.estimate(target, **said)
    for treated, message in ((np.full(30, 2.0), "1 in each"), (np.zeros(30), "0 in every period")):
        with pytest.raises(PanelError, match=message):
            release.estimate(target, treated=treated)
    with pytest.raises(ReleaseError, match="leaves 0 periods before"):
        release.estimate(target, treated=np.ones(30))
    with pytest.raises(PanelError, match="is not one of the periods"):
        release.estimate(target, FIRST, treatment_end="2031-01")
    result = release.estimate(target, FIRST)
    with pytest.raises(ParameterError, match="begins with 2023-08"):
        result.during(treated=np.r_[np.zeros(19), np.ones(11)])
    with pytest.raises(ParameterError, match="value_per_unit="):
        result.worth()


def test_units_of_a_study_end_at_their_own_time(asked: Any) -> None:
    release, target = asked
    targets = {"a": with_effect(target, 3.0), "b": target + 1, "never": target}
    study = release.study(
        targets,
        {"a": FIRST, "b": "2023-08"},
        treatment_ends={"a": LAST},
        gap=1,
        weights={"a": 2, "b": 1},
        averages={"a": 20, "b": 5},
        value_per_unit=3.0,
        cost=10.0,
    )
    a, b = study.results.values()
    assert (a.counted.sum(), b.counted.sum()) == (5, 10)
    assert study.average.effect == pytest.approx((2 * a.total.effect + b.total.effect) / (2 * 5 + 10))
    assert study.effects().loc["average over units", "effect"] == pytest.approx((2 * a.att + b.att) / 3)
    assert study.by_unit()["treatment_end"].fillna("").tolist() == [LAST, ""]
    found, own = study.contrasts(), [each.contrasts() for each in (a, b)]
    assert found.loc[AFTER, "effect"] == pytest.approx(own[0].loc[AFTER, "effect"])
    assert found.loc[LATER_MINUS_EARLIER, "effect"] == pytest.approx(
        (2 * own[0].loc[LATER_MINUS_EARLIER, "effect"] + own[1].loc[LATER_MINUS_EARLIER, "effect"]) / 3
    )
    assert study.by_event_time(before=0).index.tolist() == list(range(1, 11))
    assert study.worth().loc["value", "effect"] == pytest.approx(3 * (20 * a.total.effect + 5 * b.total.effect))
    assert study.valued(6.0).worth().loc["value", "effect"] == pytest.approx(2 * study.worth().loc["value", "effect"])
    text = study.paragraph()
    assert "the treated periods times how many units the target averages, is" in text
    once = release.study(targets, {"a": FIRST, "b": FIRST}, weights={"a": 2, "b": 1}, value_per_unit=1.0)
    assert once.effects().loc["total", "effect"] != pytest.approx(once.worth().loc["value", "effect"])
    assert "treated periods of each unit once, whatever its weight, is" in once.paragraph()
    assert "The treatment ended in 1 of 2 units" in text
    assert "2 treated unit-periods are left out" in text
    assert "After the treatment the difference is" in text
    on = {name: np.zeros(30) for name in targets}
    on["a"][T0:END], on["b"][T0 + 1 :] = 1, 1
    same = release.study(targets, treated=on, gap=1, weights={"a": 2, "b": 1}, averages={"a": 20, "b": 5})
    assert same.average == pytest.approx(study.average)
    assert list(same.never_treated) == ["never"]
    with pytest.raises(ParameterError, match="not a treated unit"):
        release.study(targets, {"a": FIRST}, treatment_ends={"south": LAST})


def test_a_treatment_of_a_units_of_a_panel_may_end() -> None:
    rows = pd.DataFrame(paths(12, 5), index=[f"shop {k}" for k in range(12)], columns=MONTHS)
    panel = PrivatePanel.from_noisy_table(rows, noise=0.1, guarantee="published by a friend")
    result = panel.estimate("shop 3", FIRST, treatment_end=LAST, gap=1, value_per_unit=2.0)
    assert result.att == pytest.approx(result.gaps.iloc[1:6].mean())
    assert result.placebos("space").table["effect"].iloc[0] == pytest.approx(
        panel.estimate("shop 0", FIRST, exclude=["shop 3"], treatment_end=LAST, gap=1).att
    )
    assert result.worth().loc["value", "effect"] == pytest.approx(2 * result.total.effect)
    study = panel.study({"shop 3": FIRST, "shop 4": FIRST}, treatment_ends=LAST)
    assert [each.counted.sum() for each in study.results.values()] == [6, 6]
    on = {"shop 3": np.r_[np.zeros(T0), np.ones(12)], "shop 4": np.zeros(30)}
    assert list(panel.study(treated=on).results) == ["shop 3"]


def test_answers_without_privacy_have_the_same_questions() -> None:
    result = SyntheticControl(method="simplex").fit(make_panel(h=4)).during(gap=1).valued(2.0, cost=4.0)
    ended = result.during(result.counterfactual.index[1])
    assert result.att == pytest.approx(result.gaps.iloc[1:].mean())
    assert ended.att == pytest.approx(ended.gaps.iloc[:2].mean())
    found = ended.contrasts()
    assert found.loc[AFTER, "effect"] == pytest.approx(ended.gaps.iloc[2:].mean())
    assert found["lower"].isna().all()
    assert ended.worth().loc["return", "effect"] == pytest.approx(2 * ended.total.effect / 4)
    text = ended.paragraph()
    assert "After the treatment the difference is" in text
    assert "interval" not in " ".join(words.developed(ended))
