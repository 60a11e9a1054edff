"""The items of the TARGET statement: all of them, filled with what an answer knows and with nothing else."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dpsc import SyntheticControl
from dpsc.answers import reporting, words
from tests.answers.test_paragraph import panel_result
from tests.answers.test_report import gram_result
from tests.making import make_panel

__all__ = ["panel_result"]
NUMBERS = [
    *("1", "2", "3", "4", "5"),
    *(f"{which}{letter}" for letter in "abcdefgh" for which in (6, 7)),
    *map(str, range(8, 22)),
]
SECTIONS = {"Abstract": 1, "Introduction": 3, "Methods": 17, "Results": 7, "Discussion": 2, "Other information": 5}


def known(form: Any) -> dict[str, str]:
    """What stands beside each item, but for the marks."""
    rows = [row for section in form.sections if section.table for row in section.table.rows]
    return {row[0][0]: " ".join(part for part in row[2] if type(part) is str) for row in rows}


def marked(form: Any) -> set[str]:
    rows = [row for section in form.sections if section.table for row in section.table.rows]
    return {row[0][0] for row in rows if any(type(part) is not str for part in row[2])}


def form_of(result: Any, *dates: Any) -> Any:
    return reporting.form(result.files("euros", dates).content())


def test_the_21_items_stand_in_their_six_sections() -> None:
    assert [item.number for item in reporting.ITEMS] == NUMBERS
    assert len({int(re.match(r"\d+", number)[0]) for number in NUMBERS}) == 21  # type: ignore[index]
    found = [item.section for item in reporting.ITEMS]
    assert {name: found.count(name) for name in SECTIONS} == SECTIONS
    assert len({(item.topic, item.section) for item in reporting.ITEMS}) == len(NUMBERS)


def test_an_answer_fills_in_what_it_knows_and_marks_the_rest() -> None:
    result = gram_result(5.0)
    form = form_of(result, "2021Q2")
    said, text = known(form), form.to_markdown()
    low, high = result.att_interval()
    middle, least, most = words.column([result.att, low, high], sign=True)
    assert said["13"].startswith(f"The average effect is {middle} euros")
    assert f"with a 95% interval from {least} to {most}; p < 0.001." in said["13"]
    assert "3,000 donors" in said["5"]
    assert "2018Q1 to 2022Q4" in said["5"]
    assert "the 15 periods before" in said["7c"]
    assert "starts at 2021Q4" in said["7d"]
    assert "epsilon 1 and delta 1e-06" in said["7h"]
    assert "for each donor" in said["7h"]
    assert said["18"] == "Other dates that were asked about: 2021Q2."
    assert "at least as large" in said["14"]
    assert words.number(result.detectable()) in said["14"]
    assert text.count("[TO ADD: ") == len(form.to_add)
    assert f"{len(form.to_add)} places are for a person to fill" in text
    for item in reporting.ITEMS:  # each is filled in by somebody, and by whom the dossier says
        who = reporting.filled_by(item)
        assert ("analyst" in who) == (item.number in marked(form))
        assert "answer" in who or not said[item.number]
    assert not re.search(r"\bnan\b|None", text)


def test_a_study_a_panel_and_an_answer_without_privacy_have_them_too(panel_result: Any) -> None:
    one = gram_result(5.0)
    target = one.target
    study = one.repeats.release.study(
        {"north": target, "south": target + 1.0}, {"north": target.index[14], "south": target.index[15]}
    )
    found = known(form_of(study))
    assert found["8"].startswith("2 treated units.")
    assert f"{words.column([study.att], sign=True)[0][:4]}" in found["13"]
    assert "2021Q3 to 2021Q4" in found["7b"]
    bare = known(form_of(SyntheticControl(method="ridge").fit(make_panel())))
    assert "No guarantee of privacy" in bare["7h"]
    assert "differential" not in " ".join(bare.values())
    others = known(form_of(panel_result))
    assert "publisher's word" in others["7h"]
    assert "differential" not in " ".join(others.values())


def test_a_treatment_that_ended_is_said_with_its_end() -> None:
    release = gram_result(5.0).repeats.release
    target = gram_result(5.0).target
    ended = release.estimate(target, treatment_time=target.index[14], treatment_end=target.index[16])
    assert "is treated in 3 periods from 2021Q3 to 2022Q1;" in known(form_of(ended))["7b"]
    assert "is treated from 2021Q4 on;" in known(form_of(gram_result(5.0)))["7b"]


def test_what_a_result_does_not_say_is_not_made_up() -> None:
    assert known(form_of(gram_result(5.0)))["18"] == ""
    for number in ("2", "4", "6a", "6c", "17", "20", "21"):
        assert known(form_of(gram_result(5.0)))[number] == ""


@pytest.mark.parametrize("name", [reporting.SOURCE, reporting.SCOPE])
def test_the_source_and_the_scope_are_named(name: str) -> None:
    text = form_of(gram_result(5.0)).to_markdown()
    assert name.split(",")[0] in text
    assert "10.1001/jama.2025.13350" in text
