"""The panel release: noise of the stated laws on every number, and refusals before anything is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest

from dpsc import DpscError, ParameterError, PrivatePanel, ReleaseError
from dpsc.custodian.donors.people import OnRows
from dpsc.custodian.groups.algorithm import PanelRelease, PeopleSum
from dpsc.custodian.groups.bounding import Bounding
from dpsc.errors import DpscWarning
from dpsc.evidence.audit.people import NOBODY, Person, added, moves, pairs
from dpsc.privacy import discrete
from dpsc.release import panel_file
from dpsc.release.panel import noise_of
from dpsc.types import Integers, Times
from tests.conftest import scale_pvalue
from tests.making import make_private_panel

LAWS = {"gaussian": 1e-6, "laplace": 0.0}
ALPHA = 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("bound", [None, 0.5])  # whole steps, and parts of them
def test_every_number_gets_noise_of_the_stated_law_and_one_10_percent_too_small_is_rejected(
    law: str, seed: int | None, bound: float | None
) -> None:
    panel = make_private_panel(map(str, range(100)), range(100), delta=LAWS[law], seed=seed, person_bound=bound)
    (block,) = panel.blocks
    assert (block.law, block.rule.finer) == (law, 1 if bound is None else 8)
    assert block.people is not None
    for noise in (block.sums, block.people):
        assert scale_pvalue(noise / block.scale, law) > ALPHA
        assert scale_pvalue(0.9 * noise / block.scale, law) < ALPHA
    together = np.corrcoef(block.sums.ravel(), block.people.ravel())[0, 1]
    assert abs(together) < 0.06  # 10,000 numbers: six standard deviations


@pytest.mark.parametrize("statistic", ["mean", "total", "share", "count"])
@pytest.mark.parametrize("law", LAWS)
def test_the_noise_pays_for_the_worst_people_and_not_for_one_percent_more(statistic: str, law: str) -> None:
    """OpenDP's own map of scale to loss says the same of the pair that moves the tables the furthest."""
    bounds = {"bounds": (-2.0, 2.0)} if statistic in ("mean", "total") else {}
    make = PanelRelease(epsilon=0.7, delta=LAWS[law], statistic=statistic, cells_per_period=2, **bounds)  # type: ignore[arg-type]
    rule = make.rule_for(tuple("abcd"), pd.Index(range(6)))
    guarantee = make.guarantee_for(rule)
    assert guarantee is not None
    kind, scale = noise_of(rule, guarantee.loss)
    reached = [moves(rule, pair) for pair in pairs(rule)]
    if law == "laplace":
        loss, claimed = discrete.measurement(kind, scale).map(max(l1 for l1, _ in reached)), 0.7
    else:
        squared = max(squared for _, squared in reached)
        loss, claimed = discrete.measurement(kind, scale).map(math.sqrt(squared)), guarantee.loss.mu_squared / 2
    assert 0.99 * claimed <= loss <= claimed


@pytest.mark.parametrize("law", LAWS)
def test_a_table_without_people_has_noise_like_any_other(law: str) -> None:
    """Cells without people are neither left out nor exact."""
    (block,) = make_private_panel(delta=LAWS[law]).blocks
    assert (block.sums != 0).all()
    assert block.people is not None
    assert (block.people != 0).all()


def test_a_seeded_release_says_so_and_repeats_itself() -> None:
    with pytest.warns(DpscWarning, match="seed=3 .* NOT PRIVATE"):
        one, other = (make_private_panel(seed=3) for _ in range(2))
    assert np.array_equal(one.blocks[0].sums, other.blocks[0].sums)
    assert one.guarantee is None
    assert "seed" in one.no_guarantee
    assert not np.array_equal(make_private_panel().blocks[0].sums, make_private_panel().blocks[0].sums)


@dataclass
class Unread:
    """People whose records must not be looked at."""

    units: tuple[str, ...] = ("a", "b", "c")
    times: Times = field(default_factory=lambda: pd.Index([1, 2]))
    outcome: str = "visits"

    def rows_expected(self) -> int | None:
        return None

    def add_up(self, summand: Bounding, on_rows: OnRows) -> Integers:
        raise AssertionError("records were read")


@pytest.mark.parametrize(
    ("people", "problem"),
    [
        (Unread(units=("a", "b")), "3 to 10,000"),
        (Unread(units=("a", "b", "B ", "b")), "same name"),
        (Unread(units=("a", "b", " ")), "no name"),
        (Unread(units=("a", "b", "c\x1b")), "printable"),
        (Unread(outcome="a\x1b[2J"), "printable"),
        (Unread(times=pd.Index([2, 1])), "not in order"),
        (Unread(times=pd.Index(range(2001))), "at most 2,000 periods"),
        (Unread(tuple(map(str, range(1001))), pd.Index(range(1000))), "at most 1,000,000 cells"),
    ],
)
def test_what_no_panel_could_hold_is_refused_before_records_are_read(people: Unread, problem: str) -> None:
    with pytest.raises(ReleaseError, match=problem):
        PanelRelease(epsilon=1.0, delta=1e-6, bounds=(0, 1)).custodian_sum(people)


def test_noise_that_does_not_fit_beside_the_sums_is_refused_before_records_are_read() -> None:
    for delta in (0.0, 1e-12):
        with pytest.raises(ParameterError, match="64-bit"):
            PanelRelease(epsilon=1e-9, delta=delta, bounds=(0, 1)).custodian_sum(Unread())


@pytest.mark.parametrize("changed", [{"bounds": (0, 2)}, {"statistic": "total"}, {"cells_per_person": 1}])
def test_a_sum_made_under_another_rule_is_refused(changed: dict[str, object]) -> None:
    first = PanelRelease(epsilon=1.0, delta=1e-6, bounds=(0, 1))
    rule = first.rule_for(("a", "b", "c"), pd.Index([1, 2]))
    summed = PeopleSum(added(rule, NOBODY), rule, ("a", "b", "c"), pd.Index([1, 2]), "visits")
    assert first.release(summed).guarantee is not None
    with pytest.raises(DpscError, match="another statistic or other bounds"):
        PanelRelease(**vars(first) | changed).release(summed)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("statistic", ["mean", "total"])
def test_sums_in_parts_of_a_step_come_back_as_what_they_are_with_the_stated_noise(statistic: str, law: str) -> None:
    make = PanelRelease(epsilon=20, delta=LAWS[law], statistic=statistic, bounds=(0, 10), person_bound=0.01)  # type: ignore[arg-type]
    units, times = tuple(map(str, range(20))), pd.Index(range(40))
    rule = make.rule_for(units, times)
    assert rule.finer > 1
    value = rule.middle + 0.01 / math.sqrt(2 * 40)
    crowd = [Person(np.arange(40) * 20 + number % 20, np.full(40, value)) for number in range(4000)]
    released = make.release(PeopleSum(added(rule, *crowd), rule, units, times, "visits"), dataset=None)
    table = panel_file.loads(panel_file.dumps(released), PrivatePanel).table
    apart = (table.values - (value if statistic == "mean" else 200 * value)) / table.noise
    assert 0.8 < float(np.std(apart)) < 1.25  # 800 numbers: five standard deviations
    assert abs(float(np.mean(apart))) < 0.25
    assert table.people is None or abs(float(np.mean(table.people)) - 200) < 10


def test_means_come_back_with_about_the_stated_noise() -> None:
    make = PanelRelease(epsilon=1.0, delta=1e-6, bounds=(0.0, 10.0))
    units, times = tuple("abcd"), pd.Index(range(2000, 2025))
    rule = make.rule_for(units, times)
    rng = np.random.default_rng(0)
    crowd = [
        Person(np.arange(25) * 4 + unit, np.clip(rng.normal(unit + 2, 1, 25), 0, 10))
        for unit in range(3)
        for _ in range(400)
    ]
    table = make.release(PeopleSum(added(rule, *crowd), rule, units, times, "visits")).table
    assert table.people is not None
    exact = np.array(
        [[np.mean([p.values[t] for p in crowd[400 * u : 400 * u + 400]]) for t in range(25)] for u in range(3)]
    )
    apart = (table.values[:3] - exact) / table.noise[:3]
    assert 0.7 < float(np.std(apart)) < 1.4
    assert np.isnan(table.values[3]).sum() >= 24  # nobody is there: one in 30,000 of such cells passes
    assert np.isfinite(table.people).all()
