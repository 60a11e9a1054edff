from __future__ import annotations

import base64
import csv
import html
import io
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, OutputPerturbation, Panel, ParameterError, SyntheticControl
from dpsc.analyst.estimate import Forecast
from dpsc.answers import result as results
from dpsc.answers import words
from dpsc.answers.base import Verdict
from dpsc.answers.effects import IntervalKind, IntervalPart
from dpsc.answers.figures.sheet import NARROW, WIDE
from dpsc.answers.placebos import NoRepeats
from dpsc.privacy.accounting import Loss
from dpsc.privacy.guarantee import Guarantee
from dpsc.types import Array
from tests.conftest import MADE_UP
from tests.making import make_panel


def small_print(axes: Any) -> str:
    (found,) = [text for text in axes.figure.texts if text.get_gid() == "small print"]
    return str(found.get_text()).replace("\n", " ")


@cache
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
    assert "from 2021Q4 to 2022Q4" in strong
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
    document = replace(result, target=unseen).files().content()
    assert document["average_effect"] is None
    json.dumps(document, allow_nan=False)


@pytest.mark.parametrize(
    ("epsilon", "factor", "guess"), [(1.0, "2.718", "73.1%"), (0.5, "1.649", "62.2%"), (2.0, "7.389", "88.1%")]
)
def test_epsilon_is_put_in_plain_words(epsilon: float, factor: str, guess: str) -> None:
    text = " ".join(words.meaning(Guarantee(epsilon, 1e-6, loss=Loss.from_epsilon_delta(epsilon, 1e-6))))
    assert f"at most {factor}." in text
    assert guess in text
    assert "with a probability of 1e-06, while the factor holds otherwise." in text


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.0, "0"), (12.0, "12"), (1234.5, "1,234"), (0.000123, "0.000123"), (1e-7, "1e-07"), (float("nan"), "–")],
)
def test_numbers_are_written_for_people(value: float, written: str) -> None:
    assert words.number(value) == written


@pytest.fixture(scope="module")
def strong() -> Any:
    """A result with a clear effect and a name that is code; what was tried beside it is computed once."""
    return gram_result(5.0, outcome="<script>alert(1)</script> & cost")


@pytest.fixture(scope="module")
def contents(strong: Any) -> dict[str, bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results, "MADE_UP", MADE_UP)
        made: dict[str, bytes] = dict(strong.files("€").folder("dpsc estimate <x>"))
    return made


@pytest.fixture(scope="module")
def page(contents: dict[str, bytes]) -> str:
    return contents["report.html"].decode("utf-8")


def light_page(result: Any) -> str:
    """Return the page without placebos and other choices, which take a moment."""
    page: str = replace(result, repeats=NoRepeats()).files().html().decode("utf-8")
    return page


def test_the_page_is_whole_self_contained_and_escaped(contents: dict[str, bytes], page: str) -> None:
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    for text in (
        "What was protected",
        "An average effect of",
        "Placebos: effects where there is none",
        "50 made-up units without any effect",
        "Other choices",
        "dated 1 earlier",
        "Dates tried",
        "a straight line through the target",
        "number of donors",
        "To paste into a paper",
        "We estimated what",
        "dpsc estimate &lt;x&gt;",
    ):
        assert text in page
    for jargon in ("forward_rmse", "log_bayes_factor", "noise_scale", ">phi<", ">nu<", ">T0<"):
        assert jargon not in page
    addresses = re.findall(r"(?:src|href|srcset)\s*=\s*\"([^\"]{0,30})", page)
    assert len(addresses) == 12  # six figures, each for a desk and for a phone
    assert all(address.startswith("data:image/svg+xml;base64,") for address in addresses)
    assert set(contents) == {
        "result.json",
        "counterfactual.csv",
        "reporting.md",
        "report.html",
        "path.svg",
        "path.png",
        "gaps.svg",
        "gaps.png",
    }


def drawings(page: str) -> list[str]:
    """Return the figures on a page, as SVG."""
    return [base64.b64decode(text).decode() for text in re.findall(r"data:image/svg\+xml;base64,([^\"]+)", page)]


def test_every_figure_of_a_page_is_there_for_a_desk_and_for_a_phone(page: str) -> None:
    widths = [float(re.search(r'width="([\d.]+)pt"', drawing)[1]) for drawing in drawings(page)]  # type: ignore[index]
    assert widths == pytest.approx([72 * NARROW, 72 * WIDE] * 6)
    assert page.count('<source media="(max-width: 36rem)" srcset=') == page.count("<img ") == 6


def test_a_table_that_is_too_wide_for_a_phone_becomes_a_list_there(page: str) -> None:
    assert len(re.findall(r'<div class="wide"><table', page)) == len(re.findall("<table", page)) > 3
    _, effects, periods, *_ = page.split("<table")
    assert periods.startswith(' class="list"')
    assert 'data-name="counterfactual"' in periods
    assert effects.startswith(">")  # four columns


def test_a_page_prints(page: str) -> None:
    assert "@page { size: A4" in page


def test_the_title_is_the_question() -> None:
    named = light_page(replace(gram_result(5.0), title="Costs, had nobody come"))
    assert "<h1>Costs, had nobody come</h1>" in named
    assert "<title>Costs, had nobody come</title>" in named
    assert "What would cost have been from" in named


def test_every_date_that_was_tried_is_said(strong: Any, contents: dict[str, bytes], page: str) -> None:
    document = json.loads(contents["result.json"])
    tried = {row["treatment_time"]: row["for"] for row in document["dates_tried"]}
    assert next(iter(tried.items())) == ("2021Q4", ["the intervention"])
    assert set(tried) == {"2021Q4", *strong.sensitivity().dates, *strong.placebos().table.index}
    assert tried["2021Q3"] == ["dated earlier", "placebo"]
    listed = page.split("<h2>Dates tried</h2>")[1].split("<h2>")[0]
    assert all(date in listed for date in tried)


def test_the_document_says_what_the_result_does(strong: Any, contents: dict[str, bytes]) -> None:
    document = json.loads(contents["result.json"])
    effects = strong.effects()
    assert [row["of"] for row in document["effects"]] == list(effects.index)
    assert [row["p_value"] for row in document["effects"]] == pytest.approx(list(effects["p_value"]))
    assert document["p_value"] == pytest.approx(strong.p_value)
    assert document["total"]["effect"] == pytest.approx(strong.total.effect)
    assert document["detectable"] == pytest.approx(strong.detectable())
    assert document["percent"] is None
    assert "zero or less" in document["no_percent"]
    assert document["placebos"]["in_time"]["share_as_large"] == strong.placebos().share
    assert document["placebos"]["in_time"]["count"] == len(strong.placebos().table)
    assert [row["choice"] for row in document["sensitivity"]] == list(strong.sensitivity().table["choice"])
    assert document["parameters"]["release"] == strong.repeats.release.identities[0][:8]


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
    page = light_page(result)
    reason = words.sentence(verdict.reason)
    assert reason[0].isupper()
    assert reason.endswith(".")
    light = f'<span class="light" aria-hidden="true"></span><p><strong>{html.escape(said)}</strong>'
    beside = f'<div class="verdict {verdict.grade}">{light} {html.escape(reason)}</p></div>'
    answer = f'<p class="answer" id="sentence">{html.escape(" ".join(words.answer(result)))}</p>'
    above = [beside, answer] if verdict.grade == "no" else [answer, beside]  # what must be known first comes first
    assert "".join(above) in page.split("<figure>")[0].replace("\n", "")
    said_once, paper = page.split("<h2>To paste into a paper</h2>")
    for text in (said, reason, verdict.headline):
        assert said_once.count(html.escape(text)) == 1  # a figure says it only where it stands alone
    assert paper.count(html.escape(reason)) == 1
    assert "<text" not in page or all(verdict.headline not in drawing for drawing in drawings(page))
    assert f".{verdict.grade} .light" in page
    document = result.files().content()
    assert document["verdict"] == {
        "grade": verdict.grade,
        "headline": verdict.headline,
        "reason": verdict.reason,
        "check_first": False,
    }
    assert f"{said} {reason}" in result.summary()
    assert said in small_print(result.plot())


@pytest.mark.parametrize(
    ("grades", "grade", "headline", "reason"),
    [
        ("yes yes", "yes", "the donors track all 2 treated units", "they explain the time before"),
        ("yes yes no", "yes", "the donors track 2 of 3 treated units", "with forecasts from their own past: c."),
        ("yes unclear", "unclear", "the donors track 1 of 2 treated units", "cannot tell: b."),
        ("no no yes", "no", "the donors track 1 of 3 treated units", "own past: a, b."),
        ("no no", "no", "the donors track none of 2 treated units", "own past: a, b."),
        ("no", "no", "the donors do not track the treated unit", "own past: a."),
        ("yes", "yes", "the donors track the treated unit", "they explain"),
        ("no " * 9, "no", "the donors track none of 9 treated units", "own past: 9 units."),
        ("unclear unclear", "unclear", "the time before the intervention cannot tell", "the unit's own past: a, b."),
        ("check unclear", "unclear", "check the units before you read on", "Check the units of measurement first: a."),
        ("yes check", "unclear", "the donors track 1 of 2 treated units", "Check the units of measurement first: b."),
    ],
)  # fmt: skip
def test_a_study_says_once_for_which_units_the_donors_help(grades: str, grade: str, headline: str, reason: str) -> None:
    each: list[Any] = [
        Verdict("unclear", "check", "x", True) if said == "check" else Verdict(said, "x", "x")  # type: ignore[arg-type]
        for said in grades.split()
    ]
    one = gram_result(5.0)
    names = "abcdefghi"[: len(each)]
    study = one.repeats.release.study(dict.fromkeys(names, one.target), one.treatment_time)
    results = {name: replace(study.results[name], verdict=verdict) for name, verdict in zip(names, each, strict=True)}
    study = replace(study, results=results)
    found = words.study_verdict(study)
    assert found is not None
    assert (found.grade, found.headline) == (grade, headline)
    assert reason in found.reason
    assert found.check_first is ("check" in grades)
    document = study.files().content()
    assert document["verdict"]["headline"] == headline
    assert words.sentence(headline) in document["paragraph"]
    assert headline not in " ".join(document["answer"])
    assert (
        words.study_verdict(replace(study, results={n: replace(r, verdict=None) for n, r in results.items()})) is None
    )


def test_a_page_of_a_study_says_once_whether_the_donors_help() -> None:
    one = gram_result(5.0)
    study = one.repeats.release.study({"a": one.target, "b": -one.target}, one.treatment_time)
    page = study.files().html().decode("utf-8").split("<h2>To paste into a paper</h2>")[0]
    assert page.count("Do the donors help?") == 1
    assert page.count("the donors track all 2 treated units") == 1


def test_a_brief_page_has_question_answer_one_figure_and_three_numbers(strong: Any, tmp_path: Path) -> None:
    result = replace(strong, repeats=NoRepeats(), title="Costs, had nobody come")
    path = result.report(tmp_path / "board.html", units="euros", brief=True)
    page = path.read_text("utf-8")
    assert "<h1>Costs, had nobody come</h1>" in page
    assert html.escape(words.answer(result, "euros")[0]) in page
    assert page.count("Do the donors help?") == page.count("<img ") == 1
    numbers = re.findall(r"<dt>(.*?)</dt><dd><strong>(.*?)</strong>(.*?)</dd>", page)
    assert [label for label, *_ in numbers] == ["average effect per period", "total effect", "p-value"]
    effect, low, high = words.column([result.att, *result.att_interval()], sign=True)
    assert numbers[0][1:] == (f"{effect} euros", f"95% interval {low} to {high}")  # no percentage of a negative cost
    assert numbers[2][1] == html.escape(words.p_text(result.p_value))
    protected = page.split("<h2>What was protected</h2>")[1]
    assert protected.count("<p>") == 2
    assert "epsilon = 1 and delta = 1e-06." in protected
    for more in ("<table", "Placebos", "How it was computed", "To paste into a paper"):
        assert more not in page
    with pytest.raises(ParameterError, match=r"brief=True makes one page: name a file that ends in \.html"):
        result.report(tmp_path / "folder", brief=True)


def test_a_brief_page_without_a_guarantee_or_an_interval_says_so() -> None:
    page = SyntheticControl().fit(make_panel()).files().html(brief=True).decode("utf-8")
    assert "NOT PRIVATE" in page
    assert "What was protected" not in page
    assert re.findall(r"<dt>(.*?)</dt>", page) == ["average effect per period", "total effect"]


def test_a_brief_page_of_a_study_has_its_pooled_numbers() -> None:
    one = gram_result(5.0)
    study = one.repeats.release.study({"a": one.target, "b": one.target}, one.treatment_time)
    page = study.files("euros").html(brief=True).decode("utf-8")
    assert f"<strong>{words.column([study.att, *study.att_interval()], sign=True)[0]} euros</strong>" in page
    assert page.count("<img ") == 1


def test_without_a_verdict_nothing_is_said_of_it() -> None:
    result = SyntheticControl().fit(make_panel())
    assert result.verdict is None
    assert result.files().content()["verdict"] is None
    assert "Do the donors help?" not in light_page(result) + result.summary()


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

    def below(self, combinations: Array, values: Array) -> Array:
        return np.full(len(combinations), 0.25)

    def quantile(self, combinations: Array, chances: Array) -> Array:
        return np.asarray((4 * chances - 1) * np.abs(combinations).sum(axis=1))

    def ends_before(self, level: float) -> tuple[Array, Array]:
        return np.array([-1.0]), np.array([3.0])


def test_intervals_that_are_not_symmetric_are_written_and_drawn_as_they_are() -> None:
    """Where the untreated outcome may be higher, the effect may be lower."""
    result = replace(gram_result(2.0), uncertainty=Lopsided())
    low, high = result.att_interval()
    assert (low, high) == pytest.approx((result.att - 3, result.att + 1))
    _, least, most = words.column([result.att, low, high], sign=True)
    assert f"from {least} to {most}" in words.answer(result)[1]
    _, written_low, written_high = words.column([result.att, low, high], sign=True, decimals=3)
    assert f">{written_low} to {written_high}<" in light_page(result)
    band = result.to_frame()
    np.testing.assert_allclose(band["counterfactual_lower"], result.counterfactual - 1)
    np.testing.assert_allclose(band["counterfactual_upper"], result.counterfactual + 3)
    top, bottom = result.plot().figure.axes
    without = np.concatenate([result.fitted, result.counterfactual])
    for axes, middle, below, above in ((top, without, 1, 3), (bottom, result.target - without, 3, 1)):
        drawn = axes.collections[0].get_paths()[0].get_extents()
        assert drawn.y0 == pytest.approx((middle - below).min())
        assert drawn.y1 == pytest.approx((middle + above).max())


def test_a_non_private_page_says_so_and_makes_no_promise() -> None:
    contents = dict(SyntheticControl().fit(make_panel()).files().folder("dpsc fit"))
    page = contents["report.html"].decode("utf-8")
    assert "NOT PRIVATE" in page
    assert "What was protected" not in page
    document = json.loads(contents["result.json"])
    assert document["private"] is False
    assert document["guarantee"] is None
    assert document["placebos"] == {"in_time": None, "in_space": None}


def test_the_numbers_in_the_page_are_those_of_the_result(strong: Any, page: str) -> None:
    paths = [*strong.observed, *strong.counterfactual]
    for written in (*words.column(strong.counterfactual, like=paths), *words.column(strong.gaps, sign=True)):
        assert f">{written}<" in page
    table = strong.sensitivity().table
    for written in words.column(table["effect"], sign=True):
        assert f">{written}<" in page
    share = words.share(strong.placebos().share, len(strong.placebos().table))
    assert f"{share} would have looked at least as surprising" in page


@pytest.mark.parametrize("values", [[1.25, -0.333333, 10.0], [1234.5, 2.0], [0.01, 0.0202], [1.0, 30.0]])
def test_a_column_has_the_same_number_of_decimals(values: list[float]) -> None:
    written = words.column([*values, None], sign=True)
    assert len({len(text.partition(".")[2]) for text in written[:-1]}) == 1
    assert written[-1] == "–"
    size = max(map(abs, values))
    for value, text in zip(values, written, strict=False):
        assert float(text.replace(",", "")) == pytest.approx(value, abs=size / 1000)


def test_a_report_is_written_from_python_as_from_the_command(tmp_path: Path) -> None:
    result = SyntheticControl().fit(make_panel())
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "result.json").write_text("of an earlier report")
    page = result.report(str(tmp_path / "new"), units="euros", command="make it")
    assert page == tmp_path / "new" / "report.html"
    contents = dict(result.files("euros").folder("make it"))
    assert {file.name: file.read_bytes() for file in page.parent.iterdir()} == contents
    assert result.report(tmp_path / "a" / "page.html") == tmp_path / "a" / "page.html"
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["page.html"]


def test_a_report_tries_everything_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    real = Forecast.placebo

    def counting(self: Forecast, treatment_time: Any | None = None, longest: int | None = None) -> Any:
        asked.append(treatment_time)
        return real(self, treatment_time, longest)

    monkeypatch.setattr(Forecast, "placebo", counting)
    result = replace(gram_result())  # one that nothing was tried for yet
    result.files().html()
    result.files().json()
    assert asked == list(result.target.index[2:15])


def test_a_figure_says_that_there_are_notes() -> None:
    result = OutputPerturbation(epsilon=0.01).fit(make_panel())
    assert len(result.notes) == 2
    assert "Its notes are in the report." in small_print(result.plot())
    assert "notes" not in small_print(gram_result(5.0).plot())


STARTS = "=+-@＝＋－＠\t\r"
FORMULAS = ["w1", "w2", "w3", "w8;=1+1;", "=1+1", "+cmd|' /C calc'!A0", "@w6", "＝1+1", "＋1", "－1", "＠1", "-2;\t=3"]


@pytest.mark.parametrize("several", [False, True], ids=["result", "study"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_labels_of_a_foreign_release_do_not_become_formulas(separator: str, several: bool) -> None:
    """Nowhere: a spreadsheet takes a comma, a semicolon or a tab for the end of a cell, as its country has it."""
    release = GramRelease(epsilon=1.0, delta=1e-6, scale=1.0).release(np.random.default_rng(0).normal(size=(50, 12)))
    release = replace(release, times=pd.Index([label.replace("\t", "") for label in FORMULAS], name="=time"))
    path = np.linspace(-2, -1, 12)
    if several:
        names = ["a", *FORMULAS[3:]]
        answer: Any = release.study(dict.fromkeys(names, path), dict.fromkeys(names, "w8;=1+1;"))
    else:
        answer = release.estimate(path, "w8;=1+1;")
    text = answer.files().csv().decode()
    cells = [cell for row in csv.reader(io.StringIO(text), delimiter=separator) for cell in row]
    assert any(cell.startswith("'=1+1") for cell in cells)
    starts = [cell for cell in cells if cell[:1] in {*STARTS}]
    assert not [cell for cell in starts if not re.fullmatch(r"-[\d.,e-]+", cell)]  # numbers stay numbers
    assert starts or separator != ","


def test_every_text_of_a_table_is_in_quotation_marks_and_no_number_is() -> None:
    release = GramRelease(epsilon=1.0, delta=1e-6, scale=1.0).release(np.random.default_rng(0).normal(size=(50, 4)))
    target = np.array([1.0, 2.0, 3.0, np.nan])
    numbered = release.estimate(target, 2).files().csv().decode().splitlines()
    assert numbered[0].startswith('"time","observed","counterfactual",')
    assert numbered[1].startswith("2,3.0,")
    assert numbered[2].startswith("3,,")  # missing
    named = replace(release, times=pd.Index(["w1", "w2", "w3;", 'w"4"']))
    lines = named.estimate(target, "w3;").files().csv().decode().splitlines()
    assert lines[1].startswith('"w3;",3.0,')
    assert lines[2].startswith('"w""4""",,')


def test_dates_that_somebody_asked_for_before_are_listed(strong: Any, page: str) -> None:
    asked = ["2021Q2", "2021Q4", strong.target.index[3], "2021Q2"]
    content = strong.files(dates_tried=asked).content()
    tried = {row["treatment_time"]: row["for"] for row in content["dates_tried"]}
    assert tried["2021Q4"] == ["the intervention"]
    assert tried["2021Q2"] == ["asked for, too", "dated earlier", "placebo"]
    listed = strong.files(dates_tried=asked).html().decode().split("<h2>Dates tried</h2>")[1].split("<h2>")[0]
    assert "before settling on it" in listed
    own = strong.files(dates_tried=["2021Q4"]).content()["dates_tried"]
    assert not any("asked for, too" in row["for"] for row in own)
    assert "before settling on it" not in page
