"""The plan of a private panel: the noise is that of its release, and the budget of months adds up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import PanelRelease, plan_panel
from dpsc.analyst.plan_panel import Lengths, expected
from dpsc.custodian.groups.algorithm import PeopleSum
from dpsc.errors import DpscError, ParameterError
from dpsc.evidence.audit.people import NOBODY, Crowd
from dpsc.privacy.guarantee import composed
from dpsc.release.lengths import fewest

UNITS = tuple(f"shop {k}" for k in range(12))
USUAL: dict[str, Any] = {"units": 40, "people": 800, "periods": 36, "bounds": (0, 100), "change": 1.5}


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize(
    "options",
    [
        {"statistic": "mean", "bounds": (0, 100)},
        {"statistic": "mean", "bounds": (0, 100), "person_bound": 40.0},
        {"statistic": "share"},
        {"statistic": "total", "bounds": (0, 50)},
        {"statistic": "count", "cells_per_person": 3},
    ],
)
def test_the_noise_of_a_cell_is_that_of_a_release(options: dict[str, Any], delta: float) -> None:
    people, times = 40_000, np.arange(8)
    release = PanelRelease(epsilon=1.0, delta=delta, seed=3, **options)
    rule = release.rule_for(UNITS, pd.Index(times))
    value = 0.3 * rule.half_width
    total = np.full((rule.tables, 12, 8), round(people * value / rule.step), dtype=np.int64)
    if rule.counts_people:
        total[1] = people * rule.one_person
    table = release.release(PeopleSum(total, rule, UNITS, pd.Index(times), "cost")).table
    planned = plan_panel(12, people, 8, 3, epsilon=1.0, delta=delta, usual=rule.middle + value, **options)
    assert planned.table["noise"].item() == pytest.approx(np.median(table.noise), rel=0.02)


def test_months_together_cost_the_budget() -> None:
    planned = plan_panel(**USUAL, epsilon=1.0, monthly=24)
    share = planned.table["epsilon_each"].item()
    release = PanelRelease(epsilon=share, delta=1e-6 / 24, bounds=(0, 100))
    promise = release.guarantee_for(release.rule_for(UNITS, pd.Index([0])))
    assert promise is not None
    assert 0.999 < composed([promise] * 24).epsilon <= 1.0 + 1e-9
    yearly = plan_panel(**USUAL | {"periods": 24}, epsilon=1.0).table["noise"].item()
    assert planned.table["noise"].item() == pytest.approx(yearly, rel=0.02)  # a month's bound is the root of a 24th


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_what_it_costs_to_find_a_bound_is_what_a_release_pays(delta: float) -> None:
    planned = plan_panel(12, 800, 8, 3, epsilon=1.0, delta=delta, bounds=(0.0, 100.0)).finding(1.0)
    assert planned is not None
    make = PanelRelease(epsilon=1.0, delta=delta, bounds=(0.0, 100.0))
    found, alone = (
        replace(make, person_bound_quantile=quantile).release(Crowd([NOBODY], pd.Index(range(8)), UNITS)).blocks[0]
        for quantile in (0.5, None)
    )
    assert found.lengths is not None
    assert planned["more_noise"] == pytest.approx(found.deviation / alone.deviation - 1, rel=1e-6)
    assert 0.025 < planned["more_noise"] < 0.054
    assert planned["fewest_people"] == pytest.approx(fewest(0.5, found.lengths.noise))
    assert plan_panel(12, 800, 8, 3, statistic="share").finding(1.0) is None
    monthly = plan_panel(12, 800, 8, 3, delta=delta, bounds=(0.0, 100.0), monthly=12).finding(1.0)
    assert monthly is not None
    assert monthly["fewest_people"] > 3 * planned["fewest_people"]


def test_more_budget_and_smaller_bounds_show_smaller_effects() -> None:
    table = plan_panel(**USUAL, epsilon=[0.5, 2.0], person_bound=[50.0, 200.0]).table
    assert list(table["epsilon"]) == [0.5, 0.5, 2.0, 2.0]
    noise = table["noise"].to_numpy()
    assert noise[0] < noise[1]
    assert noise[2] < noise[0]
    assert (np.argsort(noise) == np.argsort(table["detectable"].to_numpy())).all()
    assert table["noise_over_change"].to_numpy() == pytest.approx(noise / 1.5)


@pytest.mark.parametrize(("cells", "times"), [(1, 0.67), (4, 1.34), (36, 4.02)])
def test_noise_without_delta_is_as_the_guide_says(cells: int, times: float) -> None:
    """Less if a person counts in one cell or two, more otherwise (docs/guides/panels.md, PanelRelease)."""
    pure, usual = (
        plan_panel(40, 800, 36, bounds=(0, 100), cells_per_person=cells, epsilon=1.0, delta=delta).table["noise"][0]
        for delta in (0.0, 1e-6)
    )
    assert pure / usual == pytest.approx(times, rel=0.01)


def test_ways_say_what_else_could_be_done() -> None:
    ways = plan_panel(**USUAL).ways(1.0)
    here = ways.loc["as it is"]
    for change in ("twice the epsilon", "half the bound on a person", "half the cells for a person", "units in pairs"):
        assert ways.loc[change, "noise"] < here["noise"]
    assert ways.loc["half the bound on a person", "person_bound"] == here["person_bound"] / 2
    assert "half the bound on a person" not in plan_panel(40, 800, 36, statistic="share").ways(1.0).index


def test_a_public_series_says_what_is_usual() -> None:
    series = [50.0, 52, 51, 54, 53]
    planned = plan_panel(40, 800, 36, bounds=(0, 100), target=series, epsilon=1.0)
    assert planned.wish.change == pytest.approx(np.sqrt(np.mean(np.diff(series) ** 2)))
    assert planned.wish.usual == pytest.approx(52)
    assert "detectable" not in plan_panel(40, 800, 36, bounds=(0, 100)).table


def test_without_noise_a_plan_depends_on_the_change_alone() -> None:
    error, seen = expected(2.0, 0.0, 0.0, units=41, before=12, after=1)
    assert error == pytest.approx(2 * np.sqrt(0.2))
    assert seen == pytest.approx(4.4 * 2 * np.sqrt(1 + 1 / 40))
    assert expected(2.0, 1.0, 1.0, units=41, before=12, after=1) > (error, seen)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"units": 3}, "units"),
        ({"people": 0}, "people"),
        ({"after": 35}, "leaves 1 periods"),
        ({"bounds": None}, "needs bounds"),
        ({"bounds": (5, 1)}, "not below"),
        ({"person_bound": 0.0}, "person_bound"),
        ({"change": 0.0}, "change"),
        ({"monthly": 0}, "monthly"),
        ({"epsilon": -1.0}, "epsilon"),
    ],
)
def test_a_bad_wish_is_refused_in_a_sentence(options: dict[str, Any], said: str) -> None:
    with pytest.raises(DpscError, match=said):
        plan_panel(**USUAL | options)


def test_what_a_bound_on_a_person_cuts_is_that_of_stated_lengths() -> None:
    stated = Lengths(100.0, 400.0)
    spread = np.log(4) / 1.2815515655446004
    drawn = 100 * np.exp(spread * np.random.default_rng(0).normal(size=400_000))
    for bound in (30.0, 100.0, 1000.0):
        cut, kept = stated.cut(bound)
        assert cut == pytest.approx((drawn > bound).mean(), abs=0.005)
        assert kept == pytest.approx(np.minimum(drawn, bound).sum() / drawn.sum(), abs=0.01)
    table = plan_panel(40, 800, 36, bounds=(0, 100), person_bound=[50, 200], lengths=(100, 400), epsilon=1.0).table
    assert (np.diff(table["people_cut"]) < 0).all()
    assert (np.diff(table["noise"]) > 0).all()
    with pytest.raises(ParameterError, match="nine in ten"):
        plan_panel(40, 800, 36, bounds=(0, 100), lengths=(400, 100))
