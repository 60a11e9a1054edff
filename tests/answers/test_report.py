from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsc
from dpsc import GramRelease, OutputPerturbation, Panel, SyntheticControl
from dpsc.answers import report, words
from dpsc.answers.base import Verdict
from dpsc.answers.uncertainty import IntervalKind, IntervalPart
from dpsc.gram.estimate import Forecast
from dpsc.privacy.accounting import Loss
from dpsc.privacy.guarantee import Guarantee
from dpsc.types import Array
from tests.making import make_panel


def caption(axes: Any) -> str:
    return next(str(text.get_text()) for text in axes.figure.texts if text.get_gid() == "caption")


def gram_result(effect: float = 0.0, outcome: str = "cost") -> Any:
    rng = np.random.default_rng(0)
    factors = np.cumsum(rng.normal(size=(2, 20)), axis=1)
    donors = rng.uniform(-1, 1, (3000, 2)) @ factors + 0.1 * rng.normal(size=(3000, 20))
    target = np.array([0.6, -0.4]) @ factors
    target[15:] += effect
    times = list(pd.period_range("2018Q1", periods=20, freq="Q"))
    panel = Panel.from_arrays(donors, target, treatment_time=times[15], times=times, outcome=outcome)
    return GramRelease(epsilon=1.0, delta=1e-6).release(panel).estimate(panel.target, times[15])


def test_an_effect_is_distinguished_from_no_effect() -> None:
    strong, none = (" ".join(words.answer(gram_result(effect))) for effect in (5.0, 0.0))
    assert "an increase that chance and privacy noise alone would rarely produce" in strong
    assert "from 2021-Q4 to 2022-Q4" in strong
    assert "the data are also compatible with no effect at all" in none
    assert "a decrease" in " ".join(words.answer(gram_result(-5.0)))


def test_answers_without_an_interval_for_the_effect_say_so() -> None:
    panel = make_panel()
    two_step = " ".join(words.answer(OutputPerturbation(epsilon=1.0).fit(panel)))
    assert "not an interval for the effect" in two_step
    assert "NOT PRIVATE" in " ".join(words.answer(SyntheticControl().fit(panel)))


def test_a_target_not_observed_after_the_intervention_has_no_effect() -> None:
    result = gram_result()
    unseen = result.target.copy()
    unseen.iloc[15:] = np.nan
    assert "no effect to report" in " ".join(words.answer(replace(result, target=unseen)))
    document = report.to_json(replace(result, target=unseen))
    assert document["average_effect"] is None
    json.dumps(document, allow_nan=False)


@pytest.mark.parametrize(
    ("epsilon", "factor", "guess"), [(1.0, "2.718", "73.1%"), (0.5, "1.649", "62.2%"), (2.0, "7.389", "88.1%")]
)
def test_epsilon_is_put_in_plain_words(epsilon: float, factor: str, guess: str) -> None:
    text = " ".join(words.meaning(Guarantee(epsilon, 1e-6, loss=Loss.from_epsilon_delta(epsilon, 1e-6))))
    assert f"at most {factor}." in text
    assert guess in text
    assert "1e-06 (delta)" in text


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.0, "0"), (12.0, "12"), (1234.5, "1,234"), (0.000123, "0.000123"), (1e-7, "1e-07"), (float("nan"), "–")],
)
def test_numbers_are_written_for_people(value: float, written: str) -> None:
    assert words.number(value) == written


def test_the_page_is_whole_self_contained_and_escaped() -> None:
    result = gram_result(5.0, outcome="<script>alert(1)</script> & cost")
    contents = report.result_files(result, command="dpsc estimate <x>", units="€")
    page = contents["report.html"].decode("utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    for text in (
        "What was protected",
        "placebo in time",
        "straight line",
        "Average effect",
        "Cite as",
        "dpsc estimate &lt;x&gt;",
    ):
        assert text in page
    addresses = re.findall(r"(?:src|href)\s*=\s*\"([^\"]{0,30})", page)
    assert len(addresses) == 2
    assert all(address.startswith("data:image/svg+xml;base64,") for address in addresses)
    assert set(contents) == {
        "result.json", "counterfactual.csv", "report.html", "path.svg", "path.png", "gaps.svg", "gaps.png",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (Verdict("yes", "they track it", "it is so. Quite."), "Do the donors help? Yes: they track it."),
        (Verdict("unclear", "cannot tell", "both fit"), "Do the donors help? Unclear: cannot tell."),
        (Verdict("no", "<b>they do not</b>", "none fits."), "Do the donors help? No: <b>they do not</b>."),
    ],
)
def test_whether_the_donors_help_stands_beside_the_answer(verdict: Verdict, said: str) -> None:
    """In the page, the numbers, the summary and the figure; in words, and with a light of its own for each grade."""
    result = replace(gram_result(5.0), verdict=verdict)
    contents = report.result_files(result)
    page = contents["report.html"].decode("utf-8")
    reason = words.sentence(verdict.reason)
    assert reason[0].isupper()
    assert reason.endswith(".")
    light = f'<div class="verdict {verdict.grade}"><span class="light"></span><p><strong>{html.escape(said)}</strong>'
    between = page.split(html.escape(words.answer(result)[1]))[1].split(f"{light} {html.escape(reason)}</p></div>")
    assert len(between) == 2
    assert "<figure>" not in between[0]
    assert f".{verdict.grade} .light" in page
    document = json.loads(contents["result.json"])
    assert document["verdict"] == {"grade": verdict.grade, "headline": verdict.headline, "reason": verdict.reason}
    assert f"{said} {reason}" in result.summary()
    assert caption(result.plot()).startswith(f"{said}\n")


def test_without_a_verdict_nothing_is_said_of_it() -> None:
    result = SyntheticControl().fit(make_panel())
    assert result.verdict is None
    contents = report.result_files(result)
    assert json.loads(contents["result.json"])["verdict"] is None
    assert "Do the donors help?" not in contents["report.html"].decode("utf-8") + result.summary()


def test_the_verdict_follows_the_target() -> None:
    """Donors on two factors track a target on the same factors, and not one that swings by itself."""
    followed = gram_result()
    assert followed.verdict.grade == "yes"
    swinging = pd.Series(3 * np.cos(2.5 * np.arange(20)), index=followed.target.index)
    release = followed.repeats.release
    assert release.estimate(swinging, followed.treatment_time).verdict.grade == "no"


class Lopsided:
    """The truth is between 1 below and 3 above the counterfactual, per period."""

    kind: IntervalKind = "effect"

    def ends(self, combinations: Array, level: float, part: IntervalPart) -> tuple[Array, Array]:
        size = np.abs(combinations).sum(axis=1) * (1.0 if part == "both" else 0.5)
        return -size, 3 * size

    def ends_before(self, level: float) -> tuple[Array, Array]:
        return np.array([-1.0]), np.array([3.0])


def test_intervals_that_are_not_symmetric_are_written_and_drawn_as_they_are() -> None:
    """Where the untreated outcome may be higher, the effect may be lower."""
    result = replace(gram_result(2.0), uncertainty=Lopsided())
    low, high = result.att_interval()
    assert (low, high) == pytest.approx((result.att - 3, result.att + 1))
    assert f"from {words.signed(low)} to {words.signed(high)}" in words.answer(result)[1]
    page = report.result_files(result)["report.html"].decode("utf-8")
    assert f"interval {words.signed(low)} to {words.signed(high)}" in page
    band = result.to_frame()
    np.testing.assert_allclose(band["lower"], result.counterfactual - 1)
    np.testing.assert_allclose(band["upper"], result.counterfactual + 3)
    top, bottom = result.plot().figure.axes
    without = np.concatenate([result.fitted, result.counterfactual])
    for axes, middle, below, above in ((top, without, 1, 3), (bottom, result.target - without, 3, 1)):
        drawn = axes.collections[0].get_paths()[0].get_extents()
        assert drawn.y0 == pytest.approx((middle - below).min())
        assert drawn.y1 == pytest.approx((middle + above).max())


def test_a_non_private_page_says_so_and_makes_no_promise() -> None:
    contents = report.result_files(SyntheticControl().fit(make_panel()), command="dpsc fit")
    page = contents["report.html"].decode("utf-8")
    assert "NOT PRIVATE" in page
    assert "What was protected" not in page
    document = json.loads(contents["result.json"])
    assert document["private"] is False
    assert document["guarantee"] is None


def test_the_numbers_in_the_page_are_those_of_the_result() -> None:
    result = gram_result(5.0)
    page = report.result_files(result, command="")["report.html"].decode("utf-8")
    assert f"Average effect: {words.signed(result.att)}" in page
    for value in result.counterfactual:
        assert f">{words.number(value)}<" in page
    placebo = result.placebo_in_time()
    assert words.signed(placebo.att) in page


def test_a_report_is_written_from_python_as_from_the_command(tmp_path: Path) -> None:
    result = gram_result(5.0)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "result.json").write_text("of an earlier report")
    page = dpsc.report(result, str(tmp_path / "new"), units="euros", command="make it")
    assert page == tmp_path / "new" / "report.html"
    contents = report.result_files(result, command="make it", units="euros")
    assert {file.name: file.read_bytes() for file in page.parent.iterdir()} == contents
    assert dpsc.report(SyntheticControl().fit(make_panel()), tmp_path / "a" / "b").exists()


def test_a_report_computes_its_placebo_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    real = Forecast.placebo

    def counting(self: Forecast, treatment_time: Any | None = None) -> Any:
        asked.append(treatment_time)
        return real(self, treatment_time)

    monkeypatch.setattr(Forecast, "placebo", counting)
    report.result_files(gram_result())
    assert asked == [None]


def test_all_notes_are_on_the_figure() -> None:
    result = OutputPerturbation(epsilon=0.01).fit(make_panel())
    assert len(result.notes) == 2
    assert caption(result.plot()).count("Note:") == 2


def test_labels_of_a_foreign_release_do_not_become_formulas() -> None:
    labels = ["w1", "w2", "w3", "=1+1", "+cmd|' /C calc'!A0", "@w6"]
    times = pd.Index(labels, name="=time")
    donors = np.random.default_rng(0).normal(size=(50, 6))
    release = GramRelease(epsilon=1.0, delta=1e-6, scale=1.0).release(donors)
    result = replace(release, times=times).estimate(np.ones(6), "=1+1")
    lines = report.result_files(result)["counterfactual.csv"].decode().splitlines()
    assert [line[:2] for line in lines] == ["'=", "'=", "'+", "'@"]
