"""Panels: claims that noise does not pay for are refused, files come back, months add up, the dearest site counts."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import DpscError, ReleaseError
from dpsc.analyst.private_panel import PrivatePanel
from dpsc.answers.result import SEEDED
from dpsc.ledger.contents import promises_something_else, release_in
from dpsc.ledger.records import guarantee_to_json
from dpsc.privacy.accounting import Loss
from dpsc.privacy.guarantee import PUBLISHERS_WORD, REPLACE_ONE, REPLACE_PERSON, Guarantee, mark_of
from dpsc.release import describe_panel, panel_file
from dpsc.release.file_format import checksum_of
from dpsc.release.panel import Block
from tests.making import make_private_panel

LAWS = {"gaussian": 1e-6, "laplace": 0.0}
BY_ITS_PUBLISHER = mark_of(PUBLISHERS_WORD)
MONTHS = pd.period_range("2024-01", periods=12, freq="M")
NORTH, SOUTH = ("a", "b", "c"), ("d", "e", "f", "g")


def months(count: int = 3, **options: Any) -> list[PrivatePanel]:
    return [make_private_panel(times=MONTHS[k : k + 1], **options) for k in range(count)]


# What is claimed.


@pytest.mark.parametrize("statistic", ["mean", "total", "share", "count"])
@pytest.mark.parametrize("law", LAWS)
def test_less_noise_than_claimed_is_refused(statistic: str, law: str) -> None:
    bounds: Any = {"bounds": (0.0, 1.0) if statistic in ("mean", "total") else None}
    (block,) = make_private_panel(statistic=statistic, delta=LAWS[law], **bounds).blocks
    assert replace(block, scale=1.01 * block.scale).guarantee == block.guarantee
    with pytest.raises(ReleaseError, match="less noise than it claims"):
        replace(block, scale=0.9999 * block.scale)


def forged_claims(block: Block) -> dict[str, Guarantee]:
    """Claims that the noise of one block does not pay for, each of them consistent in itself."""
    assert block.guarantee is not None
    honest, least = block.guarantee, Loss(rho=1e-12)
    slack = {"rest_epsilon": honest.loss.rest_epsilon, "rest_delta": honest.loss.rest_delta}
    return {
        "epsilon as nothing in zCDP": replace(honest, delta=1e-9, loss=least + Loss(pure=honest.loss.pure)),
        "epsilon as zCDP alone": replace(honest, delta=1e-9, loss=least + Loss(pure_as_rho=honest.loss.pure_as_rho)),
        "nothing but the rest": replace(honest, loss=Loss(rest_epsilon=honest.epsilon, rest_delta=honest.delta)),
        "half of the epsilon": replace(honest, epsilon=honest.epsilon / 2, loss=Loss.from_pure(honest.epsilon / 2)),
        "a pure one": replace(honest, delta=0.0, loss=Loss.from_pure(honest.epsilon)),
        "half of mu": replace(honest, loss=replace(honest.loss, mu_squared=honest.loss.mu_squared / 4)),
        "no slack": replace(honest, loss=replace(honest.loss, rest_epsilon=0.0, rest_delta=0.0)),
        "no slack of delta": replace(honest, loss=replace(honest.loss, rest_delta=slack["rest_delta"] / 2)),
        "no slack of epsilon": replace(honest, loss=replace(honest.loss, rest_epsilon=slack["rest_epsilon"] / 2)),
    }


FORGED = {
    "laplace": ["epsilon as nothing in zCDP", "epsilon as zCDP alone", "nothing but the rest", "half of the epsilon"],
    "gaussian": [
        "nothing but the rest",
        "a pure one",
        "half of mu",
        "no slack",
        "no slack of delta",
        "no slack of epsilon",
    ],
}


@pytest.mark.parametrize(("law", "how"), [(law, how) for law, ways in FORGED.items() for how in ways])
def test_a_claim_that_the_noise_does_not_pay_for_is_refused(law: str, how: str) -> None:
    (block,) = make_private_panel(delta=LAWS[law]).blocks
    claim = forged_claims(block)[how]
    with pytest.raises(ReleaseError, match="too small for the guarantee"):
        replace(block, guarantee=claim)


def test_neither_a_wider_rule_nor_other_neighbours_are_paid_by_the_same_noise() -> None:
    (block,) = make_private_panel().blocks
    for wider in (2, 3):
        with pytest.raises(ReleaseError, match="too small for the guarantee"):
            replace(block, rule=replace(block.rule, cells_per_period=wider))
    assert block.guarantee is not None
    with pytest.raises(ReleaseError, match=REPLACE_PERSON):
        replace(block, guarantee=replace(block.guarantee, adjacency=REPLACE_ONE))
    with pytest.raises(ReleaseError, match="either a guarantee or the reason"):
        replace(block, guarantee=None)


# Files.


@pytest.mark.parametrize("statistic", ["mean", "total", "share", "count"])
@pytest.mark.parametrize("law", LAWS)
def test_a_file_gives_back_the_same_panel(statistic: str, law: str, tmp_path: Path) -> None:
    bounds: Any = {"bounds": (0.1, 0.3), "person_bound": 0.2} if statistic in ("mean", "total") else {"bounds": None}
    made = make_private_panel(
        NORTH, MONTHS, sums=2**40, statistic=statistic, delta=LAWS[law], cells_per_person=5, dataset="people", **bounds
    )
    made.save(tmp_path / "panel.json")
    again = PrivatePanel.load(tmp_path / "panel.json")
    for one, other in zip(made.blocks, again.blocks, strict=True):
        for name in Block.__dataclass_fields__:
            assert np.all(getattr(one, name) == getattr(other, name)), name
    assert again.guarantee == made.guarantee
    pd.testing.assert_frame_equal(again.to_frame(), made.to_frame())


def test_a_published_table_comes_back_as_the_publishers_word() -> None:
    frame = pd.DataFrame({2021: [10.0, 9, math.nan], 2022: [11, 9, 9]}, index=["fr", "de", "it"])
    made = PrivatePanel.from_noisy_table(frame, noise=0.5, guarantee="published by a friend")
    again = panel_file.loads(panel_file.dumps(made), PrivatePanel)
    pd.testing.assert_frame_equal(again.to_frame(), made.to_frame())
    assert again.guarantee is None
    assert again.no_guarantee.startswith("published by a friend (the publisher's word")


@pytest.mark.parametrize(
    ("noise", "mark", "other"), [(0.3, BY_ITS_PUBLISHER, "NOT PRIVATE"), (0.0, "NOT PRIVATE", BY_ITS_PUBLISHER)]
)
def test_answers_from_a_published_table_say_whose_word_their_guarantee_is(
    noise: float, mark: str, other: str, tmp_path: Path
) -> None:
    """Only a table without any noise is called not private: nothing protects it, whatever its publisher says."""
    frame = pd.DataFrame(np.cumsum(np.random.default_rng(0).normal(size=(8, 12)), axis=1), columns=range(2001, 2013))
    panel = PrivatePanel.from_noisy_table(frame.rename(index="u{}".format), noise=noise, guarantee="of a friend")
    result, study = panel.estimate("u3", treatment_time=2009), panel.study({"u3": 2009, "u4": 2009})
    panel.save(tmp_path / "p.json")
    said = [result.headline, result._repr_html_(), study._repr_html_(), describe_panel.page(panel, "p.json", "0" * 64)]
    for brief in (False, True):
        result.report(tmp_path / "r.html", brief=brief)
        said.append((tmp_path / "r.html").read_text("utf-8"))
    for text in map(html.unescape, said):
        assert mark in text
        assert other not in text
    assert other not in result.paragraph()


def edited(change: Callable[[dict[str, Any]], object], made: PrivatePanel | None = None) -> str:
    body = json.loads(panel_file.dumps(make_private_panel() if made is None else made))
    del body["checksum"]
    change(body)
    return json.dumps(body | {"checksum": checksum_of(body)})


@pytest.mark.parametrize(
    "change",
    [
        {"sums": [0] * 5},
        {"sums": [0.0] * 6},
        {"sums": [2**63] * 6},
        {"people": None},
        {"units": ["a", "b"]},
        {"units": ["a", "b", "b "]},
        {"identity": "x"},
        {"made_on": "yesterday"},
        {"outcome": 1},
        {"noise": {"law": "uniform", "scale": 1e9}},
        {"noise": {"law": "gaussian", "scale": 0}},
        {"noise": {"law": "gaussian", "scale": 1e99}},
        {"noise": {"law": "gaussian", "scale": 1.0}},
        {"rule": {"statistic": "mean"}},
        {"guarantee": None},
    ],
)
def test_what_breaks_the_schema_is_refused_even_with_a_fitting_checksum(change: dict[str, Any]) -> None:
    with pytest.raises(ReleaseError):
        panel_file.loads(edited(lambda body: body["blocks"][0].update(change)), PrivatePanel)


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("parts", [None, 1, 4, "8", [8]])
def test_numbers_in_other_parts_of_a_step_are_refused(parts: object, seed: int | None) -> None:
    """A file without parts is from before there were any: its numbers are whole steps."""
    made = make_private_panel(person_bound=0.5, seed=seed)
    assert made.blocks[0].rule.finer == 8

    def other(body: dict[str, Any]) -> None:
        body["blocks"][0]["parts"] = parts
        if parts is None:
            del body["blocks"][0]["parts"]

    with pytest.raises(ReleaseError, match="other parts of a step"):
        panel_file.loads(edited(other, made), PrivatePanel)
    whole = edited(lambda body: body["blocks"][0].pop("parts"))
    assert panel_file.loads(whole, PrivatePanel).blocks[0].rule.finer == 1


def test_months_in_other_parts_of_a_step_join_as_what_they_are() -> None:
    made = [make_private_panel(times=[k], sums=2**40, person_bound=bound) for k, bound in enumerate((None, 1.0, 0.01))]
    joined = panel_file.loads(panel_file.dumps(PrivatePanel.join(made)), PrivatePanel)
    assert len({block.rule.finer for block in joined.blocks}) == 3
    for name in ("values", "noise", "people"):
        alone = np.hstack([getattr(month.table, name) for month in made])
        np.testing.assert_array_equal(getattr(joined.table, name), alone)


@pytest.mark.parametrize("count", [1.0, True, 0, "1", 10**400])
def test_a_rule_whose_counts_are_no_counts_is_refused(count: object) -> None:
    with pytest.raises(ReleaseError):
        panel_file.loads(edited(lambda body: body["blocks"][0]["rule"].update(cells_per_period=count)), PrivatePanel)


def test_a_file_of_many_small_sites_does_not_ask_for_a_table_that_no_memory_holds() -> None:
    """Sites of other units in other periods: the cells that nobody published count, too."""
    sites = [
        make_private_panel([f"{k}/{j}" for j in range(1000)], [1500 + k], statistic="count", bounds=None)
        for k in range(40)
    ]
    with pytest.raises(ReleaseError, match="at most 1,000,000 cells, not 40,000 units × 40 periods"):
        PrivatePanel.join(sites, disjoint=True)


# Joins.


def test_months_add_up_as_one_release_of_all_of_them() -> None:
    joined = PrivatePanel.join(months(12))
    assert joined.guarantee is not None
    once = months(1)[0].guarantee
    assert once is not None
    assert joined.guarantee.loss.mu_squared == pytest.approx(12 * once.loss.mu_squared)
    assert joined.guarantee.loss.rest_delta == pytest.approx(12 * once.loss.rest_delta)
    assert joined.guarantee.delta == pytest.approx(12e-6)
    added = sum(panel.guarantee for panel in months(12) if panel.guarantee)
    assert added  # from Python 3.12 on, sum() adds numbers more exactly than +, so delta may differ in its last bit
    assert joined.guarantee == replace(added, delta=joined.guarantee.delta)
    assert joined.times.equals(MONTHS)
    assert joined.table.values.shape == (3, 12)


def test_months_of_both_laws_add_up() -> None:
    one, other = months(2)
    pure = make_private_panel(times=MONTHS[1:2], delta=0.0)
    joined = PrivatePanel.join([one, pure])
    assert joined.guarantee is not None
    assert one.guarantee is not None
    assert other.guarantee is not None
    assert joined.guarantee.loss.pure == 1.0
    assert joined.guarantee.loss.mu_squared == one.guarantee.loss.mu_squared
    assert joined.guarantee.epsilon == pytest.approx(2.0, rel=1e-3)  # no better than the sum: one is pure


def test_of_disjoint_sites_the_largest_counts_and_slacks_add_up() -> None:
    north, south = make_private_panel(NORTH, epsilon=0.5), make_private_panel(SOUTH, epsilon=2.0)
    joined = PrivatePanel.join([north, south], disjoint=True)
    assert joined.guarantee is not None
    losses = [panel.guarantee.loss for panel in (north, south) if panel.guarantee]
    assert joined.guarantee.loss.mu_squared == losses[1].mu_squared
    assert joined.guarantee.loss.rest_delta >= losses[0].rest_delta + losses[1].rest_delta
    assert joined.guarantee.epsilon == pytest.approx(2.0)
    assert joined.units == NORTH + SOUTH


def test_sites_of_both_laws_cost_what_somebody_who_may_be_in_either_loses() -> None:
    north, south = make_private_panel(NORTH, epsilon=0.5, delta=0.0), make_private_panel(SOUTH)
    joined = PrivatePanel.join([north, south], disjoint=True)
    assert joined.guarantee is not None
    assert joined.guarantee.loss.pure == 0.5
    assert 1.0 < joined.guarantee.epsilon <= 1.5


def test_sites_grow_by_months_and_the_dearest_of_the_sums_counts() -> None:
    parts = [make_private_panel(units, MONTHS[k : k + 1]) for k in range(3) for units in (NORTH, SOUTH)]
    joined = PrivatePanel.join(parts[:-1], disjoint=True)  # the last month of the south is missing
    assert joined.guarantee is not None
    once = parts[0].guarantee
    assert once is not None
    assert joined.guarantee.loss.mu_squared == pytest.approx(3 * once.loss.mu_squared)
    assert np.isnan(joined.table.values[3:, 2]).all()
    assert [len(site) for site in joined.sites] == [3, 2]


def test_a_seeded_month_takes_the_guarantee_from_the_panel() -> None:
    joined = PrivatePanel.join([*months(2), make_private_panel(times=MONTHS[2:3], seed=1)])
    assert joined.guarantee is None
    assert joined.no_guarantee == SEEDED


@pytest.mark.parametrize("delta", [1e-10, 1e-13, 1e-14, 2e-15, 1e-15, 1e-20])
def test_slacks_of_many_sites_beside_a_tiny_delta_still_have_a_guarantee(delta: float) -> None:
    """They came to more than delta, and the panel could be neither shown nor booked."""
    units = [[f"{site}/{k}" for k in range(100)] for site in range(4)]
    sites = [make_private_panel(names, MONTHS, delta=delta) for names in units]
    joined = PrivatePanel.join(sites, disjoint=True)
    assert joined.guarantee is not None
    assert joined.guarantee.epsilon < 1.05
    assert joined.guarantee.delta <= 8 * delta


def test_a_panel_of_two_thousand_days_joins_and_adds_up() -> None:
    """Pairs of blocks were compared: for two thousand this took a minute."""
    days = pd.period_range("2020-01-01", periods=2000, freq="D")
    made = make_private_panel(times=days[:1], statistic="count", bounds=None).blocks[0]
    blocks = tuple(replace(made, times=days[k : k + 1], identity=f"{k:032x}") for k in range(2000))
    again = panel_file.loads(panel_file.dumps(PrivatePanel(blocks)), PrivatePanel)
    assert again.guarantee is not None
    assert made.guarantee is not None
    assert again.guarantee.loss.mu_squared == pytest.approx(2000 * made.guarantee.loss.mu_squared)


REFUSED: dict[str, tuple[Callable[[], list[PrivatePanel]], str]] = {
    "nothing": (list, "list of all panels"),
    "one, as for month.join([next])": (lambda: months(1), "list of all panels"),
    "other units without a word": (lambda: [make_private_panel(NORTH), make_private_panel(SOUTH)], "disjoint=True"),
    "a month twice": (lambda: [*months(2), *months(1)], "2024-01 is there twice"),
    "the same twice": (lambda: months(1) * 2, "given twice"),
    "other bounds": (lambda: [*months(1), make_private_panel(times=MONTHS[1:2], bounds=(0.0, 9.0))], "bounds"),
    "another statistic": (lambda: [*months(1), make_private_panel(times=MONTHS[1:2], statistic="total")], "statistic"),
    "another kind of periods": (lambda: [*months(1), make_private_panel(times=[2025])], "kind of periods"),
    "somebody else's": (
        lambda: [PrivatePanel.from_noisy_table(pd.DataFrame({1: [1.0] * 3, 2: 2.0}), noise=1, guarantee="theirs")] * 2,
        "do not join",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_panel_together_is_refused(name: str) -> None:
    make, problem = REFUSED[name]
    with pytest.raises(ReleaseError, match=problem):
        PrivatePanel.join(make())


@pytest.mark.parametrize("units", [("a", "b"), ("b", "a", "c"), ("A", "b ", "x"), ("a", "b", "c", "d")])
def test_units_in_common_are_refused_whatever_somebodys_word(units: tuple[str, ...]) -> None:
    """Two sites with a unit in common have people in common."""
    other = make_private_panel((*units, "z"), [2003])
    with pytest.raises(ReleaseError, match="share some units"):
        PrivatePanel.join([make_private_panel(), other], disjoint=True)


def test_two_sites_of_one_data_set_are_refused() -> None:
    sites = [make_private_panel(units, dataset="people") for units in (NORTH, SOUTH)]
    with pytest.raises(ReleaseError, match="'people'; sites must have different people"):
        PrivatePanel.join(sites, disjoint=True)
    grown = [make_private_panel(times=MONTHS[k : k + 1], dataset="people") for k in range(2)]
    assert PrivatePanel.join(grown).datasets == ("people",)


# The ledger confirms what was booked.


def test_the_ledger_looks_at_the_promise_of_the_new_part_of_a_grown_panel() -> None:
    old, new = make_private_panel(times=MONTHS[:1], epsilon=0.5), make_private_panel(times=MONTHS[1:2], epsilon=1.0)
    grown = panel_file.dumps(PrivatePanel.join([old, new])).encode()
    booked = {name: panel.guarantee for name, panel in (("old", old), ("new", new))}
    assert booked["new"] is not None
    assert booked["old"] is not None
    assert not promises_something_else(release_in(grown), guarantee_to_json(booked["new"]))
    assert promises_something_else(release_in(grown), guarantee_to_json(booked["old"]))
    together = PrivatePanel.join([old, new]).guarantee
    assert together is not None
    assert promises_something_else(release_in(grown), guarantee_to_json(together))


def test_a_panel_without_a_promise_is_never_what_was_booked() -> None:
    promise = make_private_panel().guarantee
    assert promise is not None
    seeded = make_private_panel(seed=1)
    theirs = PrivatePanel.from_noisy_table(pd.DataFrame({1: [1.0] * 3, 2: [2.0] * 3}), noise=1, guarantee="theirs")
    for made in (seeded, theirs):
        assert promises_something_else(release_in(panel_file.dumps(made).encode()), guarantee_to_json(promise))


@pytest.mark.parametrize("content", [b"[" * 200_000, b"\xff", b"{", b"[]", b'{"format": "dpsc-pane"}'])
def test_a_file_that_is_no_release_promises_nothing_else(content: bytes) -> None:
    assert not promises_something_else(release_in(content), {})


NO_PROMISES = [None, {}, {"loss": 1}, {"epsilon": 10**400, "loss": {}}]


@pytest.mark.parametrize("blocks", [[], [1], {}, None, 5, [{}], *([{"guarantee": none}] for none in NO_PROMISES)])
def test_a_panel_that_makes_no_sense_is_not_what_was_booked(blocks: object) -> None:
    promise = make_private_panel().guarantee
    assert promise is not None
    content = json.dumps({"format": "dpsc-panel", "blocks": blocks}).encode()
    assert promises_something_else(release_in(content), guarantee_to_json(promise))


# Tables of others.

WIDE = pd.DataFrame({1: [1.0] * 3, 2: 2.0}, index=["a", "b", "c"])
LONG = pd.DataFrame({"u": list("abcabc"), "t": [1, 1, 1, 2, 2, 2], "y": 1.0, "s": 0.1})
NAMED = {"unit": "u", "time": "t", "outcome": "y"}


@pytest.mark.parametrize(
    ("frame", "options", "problem"),
    [
        ([1, 2], {"noise": 1}, "must be a table of pandas, not a list"),
        (LONG, {"noise": "s", "unit": "u"}, "give unit, time and outcome"),
        (LONG, {"noise": 0.1}, "column 'u' is not numeric.*has a row for each cell, give unit, time and outcome"),
        (LONG, {"noise": "s", **NAMED, "unit": "U"}, "no column 'U'. Did you mean 'u'"),
        (LONG, {"noise": "s", **NAMED, "unit": ["u"]}, "no column a list"),
        (LONG, {"noise": "z", **NAMED}, "no column 'z'"),
        (pd.concat([LONG, LONG]), {"noise": "s", **NAMED}, "two rows for the same unit and period"),
        (WIDE, {"noise": "s"}, "names a column only where"),
        (WIDE, {"noise": -1}, "at least 0"),
        (WIDE, {"noise": WIDE.drop("a")}, "for every cell that has a value"),
        (WIDE, {"noise": pd.concat([WIDE, WIDE])}, "two rows for the same unit"),
        (WIDE, {"noise": 1, "guarantee": " "}, "says who published"),
        (WIDE.drop("a"), {"noise": 1}, "3 to 10,000"),
        (WIDE * 1e101, {"noise": 1}, "beyond 1e\\+100"),
        (WIDE, {"noise": 1e101}, "beyond 1e\\+100"),
        (WIDE * math.inf, {"noise": 1}, "beyond 1e\\+100"),
    ],
)
def test_a_table_of_others_that_makes_no_sense_is_refused_in_a_sentence(
    frame: Any, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(DpscError, match=problem):
        PrivatePanel.from_noisy_table(frame, **{"guarantee": "theirs"} | options)
