"""Answers from private panels: who is a donor, what noise and missing cells do, and placebos of real units."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import PanelRelease, PrivatePanel
from dpsc.analyst.panel import DonorRows
from dpsc.custodian.groups.algorithm import PeopleSum
from dpsc.errors import ParameterError, ReleaseError
from dpsc.types import Array
from tests.soak import quick_or_long

MONTHS = pd.period_range("2021-01", periods=24, freq="M")
DATE = "2022-07"
T0 = 18
PUBLISHED = "published by a friend"


def paths(units: int = 14, seed: int = 0, own: float = 0.4, T: int = 24) -> Array:
    """Rows of different levels that follow two walks, and noise of their own."""
    rng = np.random.default_rng(seed)
    common = np.cumsum(rng.normal(size=(2, T)), axis=1)
    loadings = rng.normal([1, 0.5], 0.5, (units, 2))
    return np.asarray(50 + 10 * rng.normal(size=(units, 1)) + loadings @ common + own * rng.normal(size=(units, T)))


def table(values: Array) -> pd.DataFrame:
    return pd.DataFrame(values, index=[f"shop {k}" for k in range(len(values))], columns=MONTHS[: values.shape[1]])


def published(values: Array, noise: Any = 0.2) -> PrivatePanel:
    return PrivatePanel.from_noisy_table(table(values), noise=noise, guarantee=PUBLISHED)


def released(values: Array, people: int = 500, times: Any = MONTHS, units: Any = None, **options: Any) -> PrivatePanel:
    """Release means of so many people each, bounded by 0 and 100."""
    units = tuple(f"shop {k}" for k in range(len(values))) if units is None else units
    release = PanelRelease(epsilon=1.0, delta=1e-6, bounds=(0, 100), **options)
    rule = release.rule_for(units, times)
    sums = np.rint(people * (values - rule.middle) / rule.step).astype(np.int64)
    total = np.stack([sums, np.full(sums.shape, people * rule.one_person)])
    return release.release(PeopleSum(total, rule, units, times, "spending"))


def refused(panel: PrivatePanel, *arguments: Any, **options: Any) -> str:
    with pytest.raises(ReleaseError) as problem:
        panel.estimate(*arguments, **options)
    return str(problem.value)


def test_a_unit_of_the_panel_is_compared_with_all_others() -> None:
    result = published(paths()).estimate("shop 3", DATE)
    assert list(result.weights.index) == [f"shop {k}" for k in range(14) if k != 3]
    assert result.T0 == T0
    assert result.target.name == "value in shop 3"
    assert result.weights.to_numpy().sum() == pytest.approx(1, abs=0.2)


def test_the_treated_row_has_no_part_in_its_donors() -> None:
    values = paths()
    others = DonorRows.of(published(values), {"shop 3"}).population.mean
    values[3] += 100 * np.sin(np.arange(24))
    np.testing.assert_array_equal(DonorRows.of(published(values), {"shop 3"}).population.mean, others)


def test_donors_are_those_that_are_not_excluded() -> None:
    values = paths()
    without = np.delete(values, [5, 9], axis=0)
    names = [f"shop {k}" for k in range(14) if k not in (5, 9)]
    left = published(values).estimate("shop 3", DATE, exclude=["shop 5", "shop 9"])
    alone = PrivatePanel.from_noisy_table(table(values).loc[names], noise=0.2, guarantee=PUBLISHED)
    pd.testing.assert_series_equal(left.counterfactual, alone.estimate("shop 3", DATE).counterfactual)
    assert len(without) == len(left.weights) + 1
    one = published(values).estimate("shop 3", DATE, exclude="shop 5")
    assert "shop 5" not in one.weights
    assert len(one.weights) == 12


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (("shop 33", DATE), {}, "no unit 'shop 33'. Did you mean 'shop 3'?"),
        (("shop 3", DATE), {"exclude": ["shp 4"]}, "no unit 'shp 4'. Did you mean"),
        (("shop 3", DATE), {"exclude": [f"shop {k}" for k in range(2, 14)]}, "2 donors are left, and at least 3"),
        (("shop 3", DATE), {"exclude": [f"shop {k}" for k in range(14)]}, "0 donors are left"),
        (("shop 3", "2021-02"), {}, "at least 2"),
        ((DATE, [1.0, 2.0]), {}, "the other way round"),
    ],
)
def test_bad_questions_are_refused_in_a_sentence(arguments: Any, options: Any, said: str) -> None:
    found = refused(published(paths()), *arguments, **options)
    assert said in found
    assert "\n" not in found


def test_a_donor_that_lacks_a_cell_is_none_and_named() -> None:
    values = paths()
    values[4, 2] = values[8, 20] = np.nan
    result = published(values).estimate("shop 3", DATE)
    assert not {"shop 4", "shop 8"} & set(result.weights.index)
    assert any("shop 4 and shop 8" in note for note in result.notes)
    values[5:, 0] = np.nan
    assert "lack a period" in refused(published(values[:7]), "shop 3", DATE, exclude=["shop 1"])


def test_periods_in_which_the_target_has_too_few_people_are_not_used() -> None:
    values = paths(own=0.1)
    whole = published(values, 0.05).estimate("shop 3", DATE)
    values[3, [0, 7]] = np.nan
    result = published(values, 0.05).estimate("shop 3", DATE)
    assert result.T0 == T0 - 2
    assert len(result.counterfactual) == 6
    assert MONTHS[7] not in result.target.index
    assert any("2021-01 and 2021-08" in note for note in result.notes)
    assert np.abs(result.counterfactual - whole.counterfactual).max() < 1
    assert len(result.placebos().table) == T0 - 4
    assert result.sensitivity().table["before"].iloc[:3].tolist() == [16, 15, 14]
    values[3, 1:T0] = np.nan
    assert "0 periods with enough people" in refused(published(values), "shop 3", DATE)


def test_a_period_without_people_after_the_intervention_has_no_effect() -> None:
    values = paths()
    values[3, 20] = np.nan
    result = published(values).estimate("shop 3", DATE)
    assert np.isnan(result.gaps.iloc[2])
    assert np.isfinite(result.att)
    assert any("2022-09" in note for note in result.notes)
    placebos = result.placebos("space").table
    assert np.isfinite(placebos["effect"]).all()


def test_a_public_series_from_outside_is_a_target() -> None:
    values = paths()
    panel = published(values[1:])
    outside = pd.Series(values[0], index=MONTHS)
    result = panel.estimate(outside, DATE)
    assert len(result.weights) == 13
    assert result.parameters["own_noise"] == 0
    cents = panel.estimate(100 * outside, DATE)
    assert cents.verdict is not None
    assert cents.verdict.check_first
    assert result.verdict is not None
    assert not result.verdict.check_first


def test_noise_of_the_target_widens_intervals_and_is_told() -> None:
    values = paths()
    shares = []
    for noise in (0.0, 1.0, 3.0):
        noisy = values + noise * np.random.default_rng(1).normal(size=values.shape)
        result = published(noisy, noise).estimate("shop 3", DATE)
        (low, high), (inner, outer) = result.att_interval(), result.att_interval(part="privacy")
        shares.append((outer - inner) / (high - low))
        assert any(note.startswith("privacy noise makes up") for note in result.notes)
        least = 2 * 1.96 * noise  # of a period's own noise alone
        assert (result.interval()["upper"] - result.interval()["lower"] >= 0.99 * least).all()
    assert 0.05 < shares[1] < shares[2] < 1
    assert shares[0] == pytest.approx(0, abs=1e-9)


def test_white_noise_of_the_target_averages_out_over_periods() -> None:
    """Twice the noise on a single later period does little to the average over six."""
    noise = np.full((14, 24), 0.2)
    narrow = published(paths(), table(noise)).estimate("shop 3", DATE).att_interval()
    noise[3, 20] = 3.0
    wide = published(paths(), table(noise)).estimate("shop 3", DATE).att_interval()
    grown = np.ptp(wide) ** 2 - np.ptp(narrow) ** 2
    assert 0.5 * (2 * 1.96 * 3 / 6) ** 2 < grown < 2 * (2 * 1.96 * 3 / 6) ** 2


def test_an_answer_from_a_release_carries_its_guarantee_and_what_was_bounded() -> None:
    result = released(paths(), person_bound=200.0).estimate("shop 3", DATE)
    assert result.guarantee is not None
    assert result.guarantee.adjacency == "replace one person"
    notes = " ".join(result.notes)
    assert "bounded outcome: a person's value in a cell counts as at least 0 and at most 100" in notes
    assert "length of at most 200" in notes
    assert "up to 2022-12" in notes


def test_answers_from_seeded_and_published_panels_carry_none() -> None:
    seeded = released(paths(), seed=1).estimate("shop 3", DATE)
    assert seeded.guarantee is None
    assert "seed" in seeded.reason
    theirs = published(paths()).estimate("shop 3", DATE)
    assert theirs.guarantee is None
    assert PUBLISHED in theirs.reason


def test_a_panel_that_grew_and_sites_that_joined_are_read_as_one() -> None:
    values = paths()
    early, late = released(values[:, :20], times=MONTHS[:20]), released(values[:, 20:], times=MONTHS[20:])
    grown = PrivatePanel.join([early, late]).estimate("shop 3", DATE)
    assert len(grown.counterfactual) == 6
    assert any("up to 2022-12" in note for note in grown.notes)
    assert len(early.estimate("shop 3", DATE).counterfactual) == 2
    names = tuple(f"shop {k}" for k in range(14))
    sites = [released(values[:6], units=names[:6]), released(values[6:], units=names[6:])]
    both = PrivatePanel.join(sites, disjoint=True)
    result = both.estimate("shop 3", DATE)
    assert len(result.weights) == 13
    assert result.guarantee == both.guarantee


def test_treated_units_of_a_study_are_nobodys_donors() -> None:
    values = paths()
    values[2, 15:] += 5
    values[3, T0:] += 5
    values[3, 1] = np.nan
    found = published(values).study({"shop 3": DATE, "shop 2": "2022-04"}, exclude=["shop 7"])
    for result in found.results.values():
        assert not {"shop 2", "shop 3", "shop 7"} & set(result.weights.index)
    assert list(found.by_unit()["periods"]) == [6, 9]
    assert sum("privacy noise makes up" in note for note in found.notes) == 1  # whatever the shares are
    of_all = [note.startswith("all units") for note in found.notes]
    assert of_all == sorted(of_all, reverse=True)
    assert 3 < found.att < 7
    assert found.p_value < 0.05
    alone = published(values).estimate("shop 3", DATE, exclude=["shop 2", "shop 7"])
    pd.testing.assert_series_equal(found.results["shop 3"].counterfactual, alone.counterfactual)


@pytest.mark.parametrize("dates", [{}, {"shop 33": DATE}, {"shop 3": "2021-02"}])
def test_a_study_names_what_is_wrong(dates: Any) -> None:
    with pytest.raises(ReleaseError, match=r"treated unit|Did you mean 'shop 3'|unit 'shop 3'"):
        published(paths()).study(dates)


def test_placebos_in_space_are_the_other_units_in_turn() -> None:
    values = paths()
    values[3, T0:] += 8
    result = published(values).estimate("shop 3", DATE, exclude=["shop 5"])
    found = result.placebos("space")
    assert list(found.table.index) == [f"shop {k}" for k in range(14) if k not in (3, 5)]
    alone = published(values).estimate("shop 7", DATE, exclude=["shop 3", "shop 5"])
    assert found.table.loc["shop 7", "effect"] == pytest.approx(alone.att)
    assert found.table.loc["shop 7", "over_error"] == pytest.approx(alone.att / alone.standard_error)
    assert found.rank == 1
    assert str(found) == "the effect has rank 1 of 13 units, by effect over standard error"
    assert "%" not in str(found)


def test_the_rank_is_calibrated_also_where_noise_differs() -> None:
    """Nothing happens to any unit: the smaller half of the ranks is as likely as the larger, noisy units or not."""
    runs, units = quick_or_long(24, 200), 9
    noise = np.where(np.arange(units) % 3 == 0, 2.0, 0.2)[:, np.newaxis] * np.ones(12)
    small = []
    for run in range(runs):
        rng = np.random.default_rng(run)
        values = paths(units, 100 + run, T=12) + noise * rng.normal(size=noise.shape)
        placebos = published(values, table(noise)).estimate(f"shop {3 * (run % 3)}", MONTHS[9]).placebos("space")
        assert placebos.rank is not None
        small.append(placebos.rank <= 3)
    expected, spread = runs / 3, np.sqrt(runs * 2 / 9)
    assert abs(sum(small) - expected) < 3 * spread


@pytest.mark.parametrize("shock", [0.0, 3.0])
def test_intervals_hold_what_would_have_been(shock: float) -> None:
    """Also if something new hits every unit, each more or less: nothing before tells of it."""
    runs, held = quick_or_long(40, 300), 0
    for run in range(runs):
        rng = np.random.default_rng(1000 + run)
        values = paths(16, 500 + run) + rng.normal(size=(16, 24))
        values[:, T0:] += shock * rng.uniform(0.5, 1.5, (16, 1))
        low, high = published(values, 1.0).estimate("shop 3", DATE).att_interval()
        held += low <= 0 <= high
    assert 0.87 * runs < held


def test_each_donor_is_left_out_in_turn() -> None:
    values = paths()
    result = published(values).estimate("shop 3", DATE)
    found = result.leave_one_out().table
    assert set(found.index) == set(result.weights.index)
    assert found["weight"].to_dict() == result.weights.to_dict()
    alone = published(values).estimate("shop 3", DATE, exclude=["shop 9"])
    assert found.loc["shop 9", "effect"] == pytest.approx(alone.att)


def test_weights_say_whom_the_counterfactual_follows() -> None:
    """Two groups that move apart; what all donors of a group gain after the intervention is added to the weights' sum.

    The mean's own smoothing takes some of it away.
    """
    rng = np.random.default_rng(5)
    one, other = np.cumsum(rng.normal(size=(2, 24)), axis=1)
    rows = np.array([one if k % 2 else other for k in range(20)]) * 3 + 0.1 * rng.normal(size=(20, 24))
    weights = published(rows, 0.1).estimate("shop 1", DATE).weights.to_dict()
    like = np.array([weights[f"shop {k}"] for k in range(3, 20, 2)])
    unlike = np.array([weights[f"shop {k}"] for k in range(0, 20, 2)])
    assert like.min() > unlike.max()
    assert like.sum() > 0.8
    assert abs(unlike.sum()) < 0.2


def test_only_panels_have_donors_to_leave_out() -> None:
    from dpsc import GramRelease

    result = GramRelease(epsilon=1.0, delta=1e-6, scale=3.0).release(paths(60)).estimate(paths()[0], T0)
    with pytest.raises(ParameterError, match="private panel"):
        result.leave_one_out()
    with pytest.raises(ParameterError, match="private panel"):
        result.plot("weights")


def test_the_report_shows_rank_weights_and_who_is_protected(tmp_path: Path) -> None:
    result = released(paths(9)).estimate("shop 3", DATE)
    page = result.report(tmp_path / "answer").read_text()
    assert "of 9</strong>" in page
    assert "Which donors?" in page
    assert "each person's whole record" in page
    assert "each donor's whole record" not in page
    assert "times in 100" not in page.split("In space")[1].split("</p>")[0]  # below 20 units a rank, no percent
    document = json.loads((tmp_path / "answer" / "result.json").read_text())
    assert document["placebos"]["in_space"]["units"] == 9
    assert len(document["donors"]) == 8
    assert document["placebos"]["in_space"]["placebos"][0]["unit"] == "shop 0"
    result.to_excel(tmp_path / "answer.xlsx")
    book = pd.read_excel(tmp_path / "answer.xlsx", sheet_name=None)
    assert len(book["donors"]) == 8
    assert book["answer"]["value"].astype(str).str.endswith(" of 9").sum() == 1


def test_of_very_many_donors_some_are_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsc.analyst.panel.MOST_REPEATED", 5)
    result = published(paths()).estimate("shop 3", DATE)
    assert len(result.placebos("space").table) == 5
    weights = result.weights.to_dict()
    most = sorted(weights, key=lambda name: -abs(weights[name]))[:5]
    assert list(result.leave_one_out().table.index) == most


def test_units_may_be_numbers() -> None:
    panel = PrivatePanel.from_noisy_table(table(paths()).set_axis(range(14)), noise=0.2, guarantee=PUBLISHED)
    assert panel.estimate(3, DATE).target.name == "value in 3"


def test_three_donors_are_enough_for_an_answer_and_too_few_for_placebos() -> None:
    result = published(paths(4)).estimate("shop 3", DATE)
    assert any("3 donors" in note for note in result.notes)
    assert np.isfinite(result.att)
    assert result.trials().donors is None


@pytest.mark.parametrize("times", [1e-30, 1e-3, 1.0, 30.0])
def test_any_noise_that_a_table_may_have_gives_an_answer(times: float) -> None:
    values = paths() * 1e40
    result = published(values, noise=times * float(np.ptp(values))).estimate("shop 3", DATE)
    assert np.isfinite(result.att_interval()).all()


def test_noise_that_cannot_be_that_of_the_table_is_refused() -> None:
    values = paths()
    assert "nothing can be learned" in refused(published(values, noise=1e4 * float(np.ptp(values))), "shop 3", DATE)
