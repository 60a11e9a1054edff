"""The paragraph to paste: complete, true to the result, and open about what protects the donors."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, OutputPerturbation, PrivatePanel, SyntheticControl
from dpsc.answers import result as results
from dpsc.answers import words
from dpsc.answers.result import SEEDED
from dpsc.privacy.guarantee import REPLACE_PERSON, Guarantee
from tests.answers.test_report import gram_result
from tests.making import make_panel


@pytest.fixture(scope="module")
def panel_result() -> Any:
    rows = np.cumsum(np.random.default_rng(0).normal(size=(9, 12)) + np.sin(np.arange(12)), axis=1)
    table = pd.DataFrame(rows, index=[f"hospital {k}" for k in range(9)], columns=range(2010, 2022))
    panel = PrivatePanel.from_noisy_table(table, noise=0.1, guarantee="published by a friend")
    return panel.estimate("hospital 3", treatment_time=2018)


def test_it_states_question_donors_guarantee_numbers_tests_and_source() -> None:
    result = gram_result(5.0)
    text = result.paragraph("euros", ["2021Q2", result.treatment_time])
    low, high = result.att_interval()
    effect, least, most = words.column([result.att, low, high], sign=True)
    release = result.repeats.release.identities[0][:8]
    for part in (
        "We estimated what cost would have been without the intervention at 2021Q4.",
        "3,000 donors over 20 periods, from 2018Q1 to 2022Q4, 15 of them before the intervention.",
        "epsilon = 1 and delta = 1e-06. If the whole record of one donor were replaced by any other",
        "by a factor of at most 2.718; delta is at worst as bad as telling everything with a probability of 1e-06, "
        "while this factor holds otherwise.",
        f"The difference is {effect} euros",
        f"with a 95% interval from {least} to {most} euros",
        "p < 0.001",
        f"An average effect of {words.number(result.detectable())} euros or more",
        f"In placebo tests, {result.placebos()} and {result.placebos('space', units=results.MADE_UP)}.",
        words.sentence(result.verdict.reason),
        "We also asked about other dates before settling: 2021Q2.",
        f"release {release}; {result.guarantee}).",
        "Rho, Cummings and Misra",
    ):
        assert part in text, part
    assert not re.search(r"[\[\]{}<>]|None|nan|–", text.replace("p < ", ""))
    assert result.files("euros", ["2021Q2"]).content()["paragraph"] == text
    assert replace(result, title="Other").paragraph() == result.paragraph()


def test_a_study_is_written_as_one_question() -> None:
    one = gram_result(5.0)
    times = one.target.index
    study = one.repeats.release.study(
        {"north": one.target, "south": one.target - 1}, {"north": times[15], "south": times[17]}
    )
    text = study.paragraph("euros", ["2022Q1", "2022Q2"])
    average = study.average
    effect, low, high = words.column([average.effect, average.lower, average.upper], sign=True)
    assert (
        "in 2 treated units without the intervention that reached each at its own time, from 2021Q4 to 2022Q2." in text
    )
    assert f"{effect} euros" in text
    assert f"from {low} to {high} euros" in text
    tracked = [result.verdict.grade for result in study.results.values()].count("yes")
    assert f"The donors track {tracked} of 2 treated units." in text
    assert "before settling: 2022Q1." in text


def test_it_says_whom_a_guarantee_protects_and_when_there_is_none(panel_result: Any) -> None:
    panel = make_panel()
    raw = SyntheticControl().fit(panel).paragraph()
    assert "no privacy guarantee, it is NOT PRIVATE: it was computed from the raw donors." in raw
    assert "differential" not in raw
    noisy = OutputPerturbation(epsilon=1.0).fit(panel).paragraph()
    assert "not an interval for the effect" in noisy
    assert "epsilon = 1 and delta = 0" in noisy
    assert "at worst" not in noisy
    seeded = GramRelease(epsilon=1.0, delta=1e-6, seed=1, scale=1.0).release(panel.donors)
    assert f"NOT PRIVATE: {SEEDED}." in seeded.estimate(panel.target.to_numpy(), 8).paragraph()
    published = panel_result.paragraph()
    assert "a table that others protected" in published
    assert "published by a friend (the publisher's word, which dpsc cannot check)." in published
    assert f"{panel_result.leave_one_out()}."[1:] in published
    of_people = Guarantee(1.0, adjacency=REPLACE_PERSON, arithmetic="exact")
    people = replace(gram_result(), guarantee=of_people).paragraph()
    assert "uses people's records" in people
    assert "one person" in people
    assert "one donor" not in people
