"""A bound on a person found privately: what it costs, what follows from counts, what a file says."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import DpscError, PanelRelease, ParameterError, PrivatePanel, ReleaseError
from dpsc.evidence.audit.people import NOBODY, Crowd
from dpsc.ledger.budget import Cost
from dpsc.privacy import discrete
from dpsc.privacy.rounded_gaussian import discrete_gaussian_slack
from dpsc.release import describe_panel, panel_file
from dpsc.release.file_format import checksum_of
from dpsc.release.lengths import BINS, SHARE, UNIT, Bins, NoisyLengths, fewest
from dpsc.release.panel import Block, noise_of, numbers, resolution
from dpsc.release.table_rule import TableRule
from tests.conftest import scale_pvalue
from tests.making import crowd_of, make_bounded_panel, make_private_panel

LAWS = {"gaussian": 1e-6, "laplace": 0.0}
ALPHA = 1e-6
RULE = TableRule("total", (0.0, 10.0), None, 1, None, 4, 6)


def block_of(**options: Any) -> Block:
    return make_bounded_panel(**options).blocks[0]


def lengths_of(block: Block) -> NoisyLengths:
    assert block.lengths is not None
    return block.lengths


# Noise and what it costs.


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seed", [None, 1])
def test_every_count_gets_noise_of_the_stated_law_and_one_10_percent_too_small_is_rejected(
    law: str, seed: int | None
) -> None:
    make = PanelRelease(epsilon=1, delta=LAWS[law], bounds=(0, 10), person_bound_quantile=0.5, seed=seed)
    found = make.noisy_lengths(np.zeros((300, BINS), dtype=np.int64), RULE)
    assert found.law == law
    assert scale_pvalue(found.counts / found.scale, law) > ALPHA
    assert scale_pvalue(0.9 * found.counts / found.scale, law) < ALPHA


@pytest.mark.parametrize("statistic", ["mean", "total"])
@pytest.mark.parametrize("law", LAWS)
def test_counts_and_table_together_cost_the_budget_whatever_bound_is_found(statistic: Any, law: str) -> None:
    """OpenDP's own map of scale to loss says so, for two people in other bins who move the table the furthest."""
    make = PanelRelease(epsilon=0.7, delta=LAWS[law], statistic=statistic, bounds=(0, 2), person_bound_quantile=0.5)
    free = make.rule_for(tuple("abcd"), pd.Index(range(6)))
    guarantee = make.guarantee_for(free)
    assert guarantee is not None
    scale = make.noisy_lengths(np.zeros(BINS, dtype=np.int64), free).scale
    for rule in Bins(free).rules:
        assert make.guarantee_for(rule) == guarantee
        kind, of_table = noise_of(rule, guarantee.loss, True)
        parts: tuple[tuple[float, float], ...]
        if law == "laplace":
            parts = (scale, 2 * UNIT), (of_table, rule.l1_sensitivity)
            claimed = 0.7
        else:
            parts = (scale, math.sqrt(2) * UNIT), (of_table, math.sqrt(rule.squared_sensitivity))
            claimed = guarantee.loss.mu_squared / 2 + guarantee.loss.rho
        costs = [discrete.measurement(kind, s).map(moved) for s, moved in parts]
        assert costs[0] == pytest.approx(SHARE * claimed, rel=1e-6)
        assert 0.999 * claimed <= sum(costs) <= claimed


def test_the_slack_is_charged_for_all_counts_and_for_the_smallest_bound_that_could_be_found() -> None:
    make = PanelRelease(epsilon=1, delta=1e-6, bounds=(0, 2), person_bound_quantile=0.5)
    free = make.rule_for(tuple("abcd"), pd.Index(range(6)))
    guarantee = make.guarantee_for(free)
    assert guarantee is not None
    loss = guarantee.loss
    assert loss.mu_squared > 0
    whatever: tuple[TableRule | Bins, ...] = (*Bins(free).rules, Bins(free))
    for what in whatever:
        epsilon, delta = discrete_gaussian_slack(math.sqrt(loss.mu_squared), numbers(free) + BINS, resolution(what))
        assert loss.rest_epsilon >= epsilon
        assert loss.rest_delta >= delta


@pytest.mark.parametrize("how", [{"person_bound_quantile": 0.5}, {"person_bound": 0.005}, {}])
@pytest.mark.parametrize("statistic", ["mean", "total"])
def test_a_ledger_books_any_bound_on_a_person_as_gaussian_noise(how: dict[str, float], statistic: Any) -> None:
    """With the grid of large bounds, the slack of a small one was too large for a usual ledger, which refused it."""
    for delta in (1e-6, 1e-8):
        make = PanelRelease(epsilon=1, delta=delta, statistic=statistic, bounds=(0, 2), **how)  # type: ignore[arg-type]
        guarantee = make.guarantee_for(make.rule_for(tuple(map(str, range(60))), pd.Index(range(240))))
        assert guarantee is not None
        assert Cost.of(guarantee).kind == "Gaussian"


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("what", ["counts", "table", "table as if counts were free"])
def test_less_noise_than_claimed_is_refused(law: str, what: str) -> None:
    block = block_of(delta=LAWS[law])
    assert replace(block, scale=1.01 * block.scale).guarantee == block.guarantee
    assert block.guarantee is not None
    found = lengths_of(block)
    changes: dict[str, Any] = {
        "counts": {"lengths": replace(found, scale=0.9999 * found.scale)},
        "table": {"scale": 0.9999 * block.scale},
        "table as if counts were free": {"scale": noise_of(block.rule, block.guarantee.loss)[1]},
    }
    with pytest.raises(ReleaseError, match="less noise than it claims"):
        replace(block, **changes[what])


# What is found.


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("quantile", [0.5, 0.8])
def test_about_the_wanted_share_of_people_is_left_as_it_is(law: str, quantile: float) -> None:
    people = crowd_of(6000).people
    lengths = [float(np.linalg.norm(np.clip(person.values, 0, 10))) for person in people]
    make = PanelRelease(epsilon=1, delta=LAWS[law], bounds=(0, 10), statistic="total", person_bound_quantile=quantile)
    found = make.release(Crowd(people, pd.Index(range(2001, 2007)))).blocks[0].rule.person_bound
    assert found is not None
    below = np.quantile(lengths, [max(0.0, quantile - 0.15), min(1.0, quantile + 0.15)])
    assert below[0] <= found <= 1.26 * below[1]  # bins are 26% wide


@pytest.mark.parametrize("people", [[NOBODY], [crowd_of(1).people[0]], crowd_of(40).people])
@pytest.mark.parametrize("law", LAWS)
def test_too_few_people_are_never_refused_and_nothing_is_bounded_further(people: Any, law: str) -> None:
    make = PanelRelease(epsilon=1, delta=LAWS[law], bounds=(0, 10), statistic="total", person_bound_quantile=0.5)
    panel = make.release(Crowd(people, pd.Index(range(2001, 2007))))
    assert panel.blocks[0].rule.person_bound is None
    assert "no bound on the length of all values of a person was found" in describe_panel.bounding(panel)


def test_a_bound_follows_from_noisy_counts_alone() -> None:
    counts = np.zeros(BINS, dtype=np.int64)
    counts[[4, 9, 20]] = 1000 * UNIT, 500 * UNIT, 1500 * UNIT
    found = NoisyLengths(0.5, counts, "gaussian", 10.0 * UNIT)
    rules = Bins(RULE).rules
    assert [replace(found, quantile=q).bounded(RULE) for q in (0.3, 0.5, 0.51)] == [rules[4], rules[9], rules[20]]
    assert replace(found, counts=np.roll(counts, 10)).bounded(RULE) == rules[19]
    assert replace(found, counts=counts // 30).bounded(RULE) == RULE  # a hundred people are lost in the noise
    assert found.noise == 10
    assert fewest(0.5, found.noise) == pytest.approx(4 * 10 * math.sqrt(BINS) / 0.5)
    top = np.zeros(BINS, dtype=np.int64)
    top[-1] = 4000 * UNIT
    assert replace(found, counts=top).bounded(RULE) == RULE


def test_the_bounds_that_may_be_found_are_public_and_each_is_allowed() -> None:
    rules = Bins(RULE).rules
    bounds = [rule.person_bound for rule in rules]
    assert len(rules) == BINS
    assert rules[-1] == RULE
    assert rules == Bins(rules[3]).rules  # also when asked of a rule that has a bound
    most = 10 * math.sqrt(6)
    assert bounds[0] == pytest.approx(most / 1000, rel=0.005)
    assert bounds[-2] == pytest.approx(most / 10**0.1, rel=0.005)
    assert all(bound == float(f"{bound:.3g}") for bound in bounds[:-1])
    assert (np.diff(Bins(RULE).ends) > 0).all()


# Refusals.


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"statistic": "share", "bounds": None}, "person_bound_quantile is for means and totals"),
        ({"statistic": "count", "bounds": None}, "person_bound_quantile is for means and totals"),
        ({"person_bound": 3.0}, "not both"),
        ({"person_bound_quantile": 0}, "above 0"),
        ({"person_bound_quantile": 1}, "between 0 and 1"),
        ({"person_bound_quantile": math.nan}, "finite"),
        ({"person_bound_quantile": "median"}, "finite"),
    ],
)
def test_a_quantile_that_makes_no_sense_is_refused_in_one_sentence(options: dict[str, Any], problem: str) -> None:
    given: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "bounds": (0, 10), "person_bound_quantile": 0.5}
    with pytest.raises(ParameterError, match=problem):
        PanelRelease(**given | options)


@pytest.mark.parametrize(
    "changed",
    [{"epsilon": 2.0}, {"delta": 1e-5}, {"seed": 3}, {"person_bound_quantile": 0.4}, {"person_bound_quantile": None}],
)
def test_a_sum_whose_bound_was_found_in_another_way_is_refused(changed: dict[str, Any]) -> None:
    """Else counts drawn for a small epsilon, or from a seed, would be published under another promise."""
    make = PanelRelease(epsilon=1, delta=1e-6, bounds=(0, 10), statistic="total", person_bound_quantile=0.5)
    summed = make.custodian_sum(crowd_of(10))
    assert make.release(summed).guarantee is not None
    with pytest.raises(DpscError, match="the bound on a person of this sum was found"):
        replace(make, **changed).release(summed)


def test_a_bound_that_does_not_follow_from_the_counts_is_refused() -> None:
    block = block_of()
    for other in (None, 1.5):
        with pytest.raises(ReleaseError, match="does not follow"):
            replace(block, rule=replace(block.rule, person_bound=other), no_guarantee="x", guarantee=None)
    for wrong in (np.zeros(BINS - 1, dtype=np.int64), np.zeros(BINS + 1, dtype=np.int64)):
        with pytest.raises(ReleaseError, match="another kind"):
            replace(block, lengths=replace(lengths_of(block), counts=wrong))
    with pytest.raises(ReleaseError, match="another kind"):
        replace(block, lengths=replace(lengths_of(block), law="laplace"))
    (share,) = make_private_panel(statistic="share", bounds=None).blocks
    with pytest.raises(DpscError, match="means and totals"):
        replace(share, lengths=lengths_of(block))


# Files, words, joins.


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("number", [3000, 3])
def test_a_file_gives_back_bound_counts_and_promise(law: str, number: int, tmp_path: Path) -> None:
    made = make_bounded_panel(number, delta=LAWS[law])
    made.save(tmp_path / "panel.json")
    again = PrivatePanel.load(tmp_path / "panel.json")
    (one,), (other,) = made.blocks, again.blocks
    assert (one.rule, one.guarantee) == (other.rule, other.guarantee)
    for name in NoisyLengths.__dataclass_fields__:
        assert np.all(getattr(one.lengths, name) == getattr(other.lengths, name)), name
    (said,) = describe_panel.to_json(again)["releases"]
    assert said["person_bound_found"]["people"] == lengths_of(one).people.tolist()
    assert said["person_bound_found"]["up_to"][-1] is None
    record = json.dumps(describe_panel.record(again, "0" * 64))
    assert "noisy counts of people by length" in record
    assert "then the table: their losses add up" in record


@pytest.mark.parametrize(
    "change",
    [{"quantile": 2}, {"quantile": "0.5"}, {"counts": [0] * 5}, {"counts": [0.5] * BINS}, {"counts": None},
     {"scale": 0}, {"scale": 1e99}, {"scale": 1.0}, {"counts": [0] * BINS}],
)  # fmt: skip
def test_counts_that_are_none_are_refused_even_with_a_fitting_checksum(change: dict[str, Any]) -> None:
    body = json.loads(panel_file.dumps(make_bounded_panel()))
    del body["checksum"]
    body["blocks"][0]["lengths"].update(change)
    with pytest.raises(ReleaseError):
        panel_file.loads(json.dumps(body | {"checksum": checksum_of(body)}), PrivatePanel)


def test_a_panel_without_counts_says_nothing_of_them() -> None:
    assert "lengths" not in panel_file.dumps(make_private_panel())
    (said,) = describe_panel.to_json(make_private_panel())["releases"]
    assert said["person_bound_found"] is None


def test_a_bound_found_once_is_a_public_number_for_later_years() -> None:
    first = make_bounded_panel()
    later = replace(crowd_of(3000, seed=1), times=pd.Index(range(2007, 2013)))
    make = PanelRelease(
        epsilon=1, delta=1e-6, bounds=(0, 10), statistic="total", person_bound=first.blocks[0].rule.person_bound
    )
    joined = PrivatePanel.join([first, make.release(later)])
    assert joined.guarantee is not None
    assert [block.rule.person_bound for block in joined.blocks] == [first.blocks[0].rule.person_bound] * 2
    assert joined.guarantee.loss.mu_squared == pytest.approx(2 * first.guarantee.loss.mu_squared, rel=1e-3)  # type: ignore[union-attr]
