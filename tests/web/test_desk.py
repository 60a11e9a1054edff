"""What the analyst puts on the desk, and what is said of it."""

from __future__ import annotations

import html
import json
import runpy
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpsc
from dpsc.answers import words
from dpsc.answers.figures.sheet import WIDE
from dpsc.cli import app as cli
from dpsc.web.analyst import app, pasted
from dpsc.web.analyst.app import _downloads
from dpsc.web.analyst.desk import AnalystDesk, Columns
from dpsc.web.desk import File

WAGES = [1.4176, 1.5574, 1.6014, 1.6009, 1.642, 2.163, 2.2307, 2.1859]
YEARS = range(1980, 1988)
RELEASE = Path(__file__).parent / "wages.dpsc.json"


@pytest.fixture
def desk(tmp_path: Path) -> AnalystDesk:
    made = AnalystDesk(tmp_path)
    made.open_release(File(RELEASE, "wages.dpsc.json"))
    return made


def comma(value: float) -> str:
    return str(value).replace(".", ",")


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(map(str, WAGES)),
        "\r\n".join(map(str, WAGES)) + "\r\n",
        "wage\n" + "\n".join(map(str, WAGES)),
        "\n".join(map(comma, WAGES)),
        "\t".join(map(str, WAGES)),
        "\n".join(f"{y}\t{comma(w)}" for y, w in zip(YEARS, WAGES, strict=True)),
        "year\tlog wage\n" + "\n".join(f"{y}\t{w}" for y, w in zip(YEARS, WAGES, strict=True)),
        "\t".join(map(str, YEARS)) + "\n" + "\t".join(map(str, WAGES)),
        "year,log wage\n" + "\n".join(f"{y},{w}" for y, w in zip(YEARS, WAGES, strict=True)),
        "\n".join(f"{y};{w}" for y, w in reversed(list(zip(YEARS, WAGES, strict=True)))),
    ],
    ids=["column", "windows", "named", "commas", "row", "two columns", "header", "two rows", "csv", "back"],
)
def test_a_column_from_a_spreadsheet_is_enough(desk: AnalystDesk, text: str) -> None:
    desk.paste_target(text)
    assert desk.problems == {}
    desk.choose(5)
    assert desk.result is not None
    assert list(desk.result.target) == pytest.approx(WAGES)


def test_what_is_wrong_is_said_beside_its_field(desk: AnalystDesk, tmp_path: Path) -> None:
    desk.paste_target("\n".join(map(str, range(9))))
    assert "9 numbers without periods, and the release has 8 periods, 1980 to 1987" in desk.problems["target"]
    desk.paste_target("1980\tone\n1981\ttwo")
    assert set(desk.problems) == {"target"}
    assert str(tmp_path) not in desk.problems["target"]
    desk.paste_target("x" * (pasted.LARGEST + 1))
    assert "drop it as a file" in desk.problems["target"]
    bad = tmp_path / "upload.json"
    bad.write_text("{")
    desk.open_release(File(bad, "release of June.json"))
    assert desk.problems["release"].startswith("release of June.json: this is not valid JSON")
    assert desk.release is not None  # the one before stays
    desk.paste_target("\n".join(map(str, WAGES)))
    assert set(desk.problems) == {"release"}


def test_an_ambiguous_date_is_settled_on_the_page(desk: AnalystDesk) -> None:
    desk.paste_target("a\tb\tc\n" + "\n".join(f"{y}\t{w}\t0" for y, w in zip(YEARS, WAGES, strict=True)))
    assert "“column of periods”, “column of numbers”" in desk.problems["target"]
    desk.say({"time": "a", "outcome": "b"}, "")
    assert desk.problems == {}


def test_other_units_and_other_periods_are_noted(desk: AnalystDesk) -> None:
    desk.paste_target("\n".join(f"{y}\t{1000 * w}" for y, w in zip(range(1980, 1990), [*WAGES, 2.2, 2.3], strict=True)))
    desk.choose(5)
    desk.numbers_are(True, "target")
    assert desk.result is not None
    shown = app.answer(desk, WIDE)
    assert len(desk.result.notes) == 2
    assert shown.count('class="note"') == 1  # the other one is said beside the light
    assert "about 1,000 times what" in shown


@pytest.mark.parametrize("written", ["0", "2.5", "many", "-3", "1,5", "9" * 5000])
def test_a_number_of_people_that_is_none_is_said_beside_its_field(desk: AnalystDesk, written: str) -> None:
    desk.paste_target("\n".join(map(str, WAGES)))
    desk.choose(5)
    desk.say_averages("30")
    known = desk.result
    desk.say_averages(written)
    assert set(desk.problems) == {"averages"}
    said = app.averages_help(desk, WIDE)
    assert "“how many people the target averages” must be a whole number of at least 1, not" in said
    assert len(said) < 600
    assert desk.result is not None  # as if it were not known
    assert "averages" not in desk.result.parameters
    desk.say_averages(" 30 ")
    assert desk.problems == {}
    assert desk.result is known
    desk.say_averages("")
    assert desk.averages is None


def answered(desk: AnalystDesk) -> bool:
    return desk.result is not None


def studied(desk: AnalystDesk) -> bool:
    return desk.study is not None


def test_the_page_asks_about_units_before_it_answers(desk: AnalystDesk) -> None:
    desk.paste_target("\n".join(str(100 * w) for w in WAGES))
    desk.choose(5)
    assert not answered(desk)
    assert desk.tried == []  # nothing was seen
    for panel in app.PANELS.values():
        assert 'id="sentence"' not in panel(desk, WIDE)
    asked = app.answer(desk, WIDE)
    assert "The target is about 100 times what the donors" in asked
    assert "Yes, it is: I will correct the target" in asked
    assert "No, the numbers are right: show the answer" in asked
    assert "question under “Answer” first" in app.export(desk, WIDE)
    desk.numbers_are(False, "target")
    assert not answered(desk)
    assert "Nothing is shown until then." in app.answer(desk, WIDE)
    desk.choose(4)
    assert desk.questions["target"].to_correct
    desk.numbers_are(True, "target")
    shown = app.answer(desk, WIDE)
    assert "Unclear: check the units before you read on.</strong> The target is about 100 times" in shown
    assert shown.index("Unclear: check") < shown.index('id="sentence"')
    assert desk.tried == ["1984"]
    desk.choose(5)
    assert desk.questions == {}  # it was said of these numbers
    desk.paste_target("\n".join(str(101 * w) for w in WAGES))
    assert not answered(desk)
    desk.paste_target("\n".join(map(str, WAGES)))
    assert desk.questions == {}
    assert answered(desk)
    assert "We also asked about other dates before settling" not in app.export(desk, WIDE)
    desk.choose(4)
    assert "We also asked about other dates before settling: 1985." in app.export(desk, WIDE)
    desk.choose(5)
    desk.numbers_are(True, "target")  # a click that came too late


def test_a_table_and_a_second_release_are_asked_about_too(desk: AnalystDesk, tmp_path: Path) -> None:
    rows = [
        f"{u};1985;{y};{w * times};{many}"
        for u, times, many in (("a", 1.0, "200"), ("b", 100.0, ""))
        for y, w in zip(YEARS, WAGES, strict=True)
    ]
    desk.paste_several("unit;start;year;wage;people\n" + "\n".join(rows))
    assert desk.columns.averages == ""  # it changes intervals: nobody else says it
    desk.name_column("averages", "people")
    assert desk.problems == {}
    assert not desk.all_tried
    (text,) = desk.questions["several"].texts
    assert text.startswith("b: the target is about 100 times")
    assert 'id="several_right"' in app.several(desk, WIDE)
    desk.numbers_are(True, "several")
    assert desk.study is not None
    assert desk.study.results["a"].parameters["averages"] == 200
    assert "averages" not in desk.study.results["b"].parameters
    assert desk.long_file is not None
    typed = shlex.split(app.study_command(str(RELEASE), str(desk.long_file.path), desk.how_several_are_read))
    assert typed[typed.index("--averages-column") + 1] == "people"
    assert CliRunner().invoke(cli, [*typed[1:-1], str(tmp_path / "study.json")]).exit_code == 0
    (effect, *_) = json.loads((tmp_path / "study.json").read_text())["effects"]
    assert effect["effect"] == pytest.approx(desk.study.average.effect)

    desk.paste_target("\n".join(str(100 * w) for w in WAGES))
    desk.choose(5)
    desk.open_other(File(RELEASE, "wages.dpsc.json"))
    assert set(desk.questions) == {"target", "other"}
    assert 'id="other_right"' in app.comparison(desk, WIDE)
    desk.numbers_are(True, "other")  # the same release and numbers, so both are answered
    assert desk.questions == {}
    assert desk.comparison is not None


def test_an_empty_cell_is_a_missing_number_and_moves_no_other(desk: AnalystDesk) -> None:
    cells = ["wage", *map(str, WAGES)]
    cells[3] = ""
    desk.paste_target("\n".join(cells) + "\n\n")
    assert desk.target is not None
    assert desk.target.isna().tolist() == [year == 1982 for year in YEARS]
    assert desk.target.iloc[-1] == WAGES[-1]
    desk.paste_target("\n" + "\n".join(map(str, WAGES)))
    assert "first cell is empty" in desk.problems["target"]


def test_every_date_that_was_tried_is_in_the_report(desk: AnalystDesk) -> None:
    desk.paste_target("\n".join(map(str, WAGES)))
    for position in (3, 6, 3, 5, 99, 1):
        desk.choose(position)
    assert desk.tried == ["1983", "1986", "1985"]
    assert desk.date == "1985"
    assert desk.result is not None
    tried = desk.result.files(None, desk.tried).content()["dates_tried"]
    assert [row["treatment_time"] for row in tried if "asked for, too" in row["for"]] == ["1983", "1986"]
    desk.paste_target("\n".join(str(w + 1) for w in WAGES))
    assert desk.tried == ["1985"]  # the chosen date, for another target
    desk.paste_target("\n".join(map(str, WAGES)))
    assert desk.tried == ["1983", "1986", "1985"]  # nothing is forgotten


def test_command_and_script_give_the_same_answer(
    desk: AnalystDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.paste_target("\n".join(map(comma, WAGES)))
    desk.choose(4)
    desk.choose(5)
    desk.say({}, "log dollars")
    desk.say_averages("1,200")
    assert desk.result is not None
    assert desk.result.parameters["averages"] == 1200
    assert "the average of 1,200 people" in app.answer(desk, WIDE)
    place = tmp_path / "analyst"
    place.mkdir()
    monkeypatch.chdir(place)
    downloads = _downloads(desk)
    Path("wages.dpsc.json").write_bytes(downloads["release_again"][1]())
    Path("target.csv").write_bytes(downloads["target_table"][1]())
    typed = shlex.split(app.command(app.asked_of(desk), "result.json"))
    assert CliRunner().invoke(cli, typed[1:]).exit_code == 0
    made = json.loads(Path("result.json").read_text())
    assert made["average_effect"] == pytest.approx(desk.result.average.effect)
    assert made["parameters"]["averages"] == 1200
    assert "averages=1200" in downloads["script"][1]().decode()
    Path("answer.py").write_bytes(downloads["script"][1]())
    runpy.run_path("answer.py")
    page = Path("report.html").read_text("utf-8")
    assert "before settling on it" in page
    assert desk.result.files("log dollars").content()["answer"][0] in page


def test_several_units_and_a_second_release(desk: AnalystDesk, tmp_path: Path) -> None:
    rows = [
        f"{u};{s};{y};{w + shift}"
        for u, s, shift in (("a", "1985", 0.0), ("b", "1986", 0.1), ("c", "", 0.2))
        for y, w in zip(YEARS, WAGES, strict=True)
    ]
    desk.paste_several("region;start;year;wage\n" + "\n".join(rows))
    assert desk.problems == {}
    assert desk.columns == Columns("region", "start", "year", "wage")
    assert desk.study is not None
    assert list(desk.study.results) == ["a", "b"]
    assert desk.long_file is not None
    typed = shlex.split(app.study_command(str(RELEASE), str(desk.long_file.path), desk.how_several_are_read))
    assert CliRunner().invoke(cli, [*typed[1:-1], str(tmp_path / "study.json")]).exit_code == 0
    (effect, *_) = json.loads((tmp_path / "study.json").read_text())["effects"]
    assert effect["effect"] == pytest.approx(desk.study.average.effect)
    desk.paste_target("\n".join(map(str, WAGES)))
    desk.choose(5)
    desk.open_other(File(RELEASE, "wages.dpsc.json"))
    assert desk.comparison is not None
    assert desk.comparison.names == ["wages.dpsc.json", "wages.dpsc.json (second)"]


def long_table(*columns: str, header: str) -> str:
    rows = [[column.format(u=u, s=s, y=y, w=w) for column in columns] for u, s, y, w in LONG]
    return "\n".join([header, *(";".join(row) for row in rows)])


LONG = [
    (u, s, y, w + k) for k, (u, s) in enumerate([("a", 1985), ("b", 1986)]) for y, w in zip(YEARS, WAGES, strict=True)
]


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("region;start;year;wage", "{u};{s};{y};{w}"),
        ("wage;year;adopted;region", "{w};{y};{s};{u}"),
        ("id;note;state;log wage;year;first treated", "7{u};x;{u};{w};{y};{s}"),
        ("store;month;sales;size;since", "{u};{y};{w};3;{s}"),
    ],
)
def test_the_columns_of_a_table_are_offered_and_the_sensible_ones_chosen(
    desk: AnalystDesk, header: str, columns: str
) -> None:
    desk.paste_several(long_table(*columns.split(";"), header=header))
    assert desk.problems == {}
    assert desk.columns_there == tuple(header.split(";"))
    assert desk.study is not None
    assert list(desk.study.results) in (["a", "b"], ["7a", "7b"])
    assert [result.T0 for result in desk.study.results.values()] == [5, 6]
    assert list(next(iter(desk.study.results.values())).target) == pytest.approx(WAGES)


def test_an_error_goes_when_what_it_is_about_changes(desk: AnalystDesk, tmp_path: Path) -> None:
    good = long_table("{u}", "{s}", "{y}", "{w}", header="region;start;year;wage")
    desk.paste_several("region;wage\na;1\nb;2")
    assert "which column holds the first treated periods? Choose it" in desk.problems["several"].replace("W", "w")
    desk.paste_several("")  # taken away
    assert (desk.problems, desk.columns_there, desk.columns) == ({}, (), Columns())
    desk.paste_several(good)
    desk.name_column("start", "wage")
    assert not studied(desk)
    assert set(desk.problems) == {"several"}
    desk.name_column("start", "no such column")  # of a page that shows another table
    desk.name_column("start", "start")
    assert desk.problems == {}
    assert desk.study is not None
    (tmp_path / "table.csv").write_text(good.replace("region", "town").replace(";", ","))
    desk.drop_several(File(tmp_path / "table.csv", "table.csv"))
    assert (desk.columns.unit, desk.several_pasted, desk.problems) == ("town", "", {})

    desk.paste_target("1980\tone\n1981\ttwo")
    assert set(desk.problems) == {"target"}
    desk.paste_target(" ")
    assert (desk.problems, desk.target, desk.result) == ({}, None, None)
    desk.paste_target("\n".join(map(str, WAGES)))
    desk.choose(5)
    desk.problems["target"] = "what is wrong with another date"
    desk.choose(5)  # answered before
    assert desk.problems == {}


def test_a_table_before_the_release_is_read_when_there_is_one(tmp_path: Path) -> None:
    desk = AnalystDesk(tmp_path)
    desk.paste_several(long_table("{u}", "{s}", "{y}", "{w}", header="region;start;year;wage"))
    assert "Open a release first" in desk.problems["several"]
    desk.open_release(File(RELEASE, "wages.dpsc.json"))
    assert desk.problems == {}
    assert desk.study is not None
    desk.open_demo()  # other periods
    assert desk.problems == {}
    assert not studied(desk)
    assert desk.columns_there == ()


def test_what_can_be_taken_away_of_a_study_is_under_export(desk: AnalystDesk, tmp_path: Path) -> None:
    assert "Open a release" in app.export(desk, WIDE)
    desk.paste_several(long_table("{u}", "{s}", "{y}", "{w}", header="region;start;year;wage"))
    assert desk.study is not None
    shown = app.export(desk, WIDE)
    assert "Open a release" not in shown
    for name in ("study_report", "study_brief", "study_workbook", "study_checklist", "study_table"):
        assert f'id="{name}"' in shown
    assert 'id="report"' not in shown
    assert "--treatment-time-column start" in shown
    assert desk.study.paragraph() in html.unescape(shown)
    desk.paste_target("\n".join(map(str, WAGES)))
    desk.choose(5)
    assert "The answer about one target" in app.export(desk, WIDE)
    for name, (_, content) in _downloads(desk).items():
        assert name in ("comparison_report", "outcomes_report") or content()


def test_the_lights_of_a_study_have_their_colours(desk: AnalystDesk) -> None:
    desk.paste_several(long_table("{u}", "{s}", "{y}", "{w}", header="region;start;year;wage"))
    assert desk.study is not None
    shown, verdict = app.several(desk, WIDE), words.study_verdict(desk.study)
    assert verdict is not None
    assert f'<div class="verdict {verdict.grade}"><span class="light"' in shown
    for result in desk.study.results.values():
        assert result.verdict is not None
        assert f'<span class="grade {result.verdict.grade}">' in shown


def test_periods_on_the_chart_are_where_the_figure_has_them(desk: AnalystDesk) -> None:
    """Between axes that begin and end somewhere, periods at equal distances are at equal distances."""
    desk.paste_target("\n".join(map(str, WAGES)))
    for choose in (None, 5):
        if choose is not None:
            desk.choose(choose)
        shown = app.answer(desk, WIDE)
        at = np.array(shown.split('data-at="')[1].split('"')[0].split(), dtype=float)
        assert len(at) == 8
        assert 0.03 < at[0] < 0.2
        assert 0.9 < at[-1] < 1
        assert np.diff(at) == pytest.approx((at[-1] - at[0]) / 7, abs=1e-4)


def test_labels_of_a_release_are_never_markup(desk: AnalystDesk) -> None:
    desk.paste_target(
        "period\t<img src=x onerror=alert(1)>\n" + "\n".join(f"{y}\t{w}" for y, w in zip(YEARS, WAGES, strict=True))
    )
    desk.say({}, "<script>alert(1)</script>")
    desk.choose(5)
    assert desk.release_file is not None
    desk.release_file = File(desk.release_file.path, "<b>x</b>.json")
    for panel in app.PANELS.values():
        shown = panel(desk, WIDE)
        assert "<script>" not in shown
        assert "<b>" not in shown
        assert "<img src=x" not in shown


def test_a_line_is_named_as_it_was_pasted(desk: AnalystDesk) -> None:
    for text in ("1\n2\nthree\n4", "wage\n1\ntwo\n4", "1980\t1\n1981\t2\n1982\tthree"):
        desk.paste_target(text)
        assert "line 3;" in desk.problems["target"], text


def test_the_report_of_a_study_lists_every_date_that_was_tried(desk: AnalystDesk) -> None:
    desk.paste_target("\n".join(map(str, WAGES)))
    desk.choose(4)
    for start in ("1985", "1986"):
        rows = [f"{unit};{start};{year};{wage}" for unit in "ab" for year, wage in zip(YEARS, WAGES, strict=True)]
        desk.paste_several("\n".join(["unit;start;year;wage", *rows]))
    assert desk.all_tried == ["1984", "1985", "1986"]
    assert desk.study is not None
    found = desk.study.files(None, desk.all_tried).content()["dates_tried"]
    assert {row["treatment_time"] for row in found} >= {"1984", "1985", "1986"}


@pytest.fixture
def panel_desk(tmp_path: Path) -> AnalystDesk:
    rng = np.random.default_rng(3)
    rows = np.cumsum(rng.normal(size=(10, 14)) * 0.3 + rng.normal(size=14), axis=1)
    rows[0, 9:] += 6
    table = pd.DataFrame(rows, index=[f"clinic {k}" for k in range(10)], columns=range(2010, 2024))
    dpsc.PrivatePanel.from_noisy_table(table, noise=0.2, guarantee="published by a friend").save(tmp_path / "p.json")
    (tmp_path / "desk").mkdir()
    made = AnalystDesk(tmp_path / "desk")
    made.open_release(File(tmp_path / "p.json", "clinics.dpsc.json"))
    return made


def test_a_unit_of_a_panel_is_a_target(
    panel_desk: AnalystDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = panel_desk
    assert desk.panel_units == tuple(f"clinic {k}" for k in range(10))
    assert "10 units" in app.release(desk, WIDE)
    desk.choose_unit("clinic 0")
    desk.choose(9)
    assert desk.result is not None
    assert desk.result.att == pytest.approx(6, abs=3)
    assert "clinic 0" in app.target(desk, WIDE)
    for panel in (app.answer, app.effects, app.placebos, app.choices, app.export):
        assert 'role="alert"' not in panel(desk, WIDE)
    assert "<strong>rank " in app.placebos(desk, WIDE)
    monkeypatch.chdir(tmp_path)
    Path("clinics.dpsc.json").write_bytes(Path("p.json").read_bytes())
    typed = shlex.split(app.command(app.asked_of(desk), "result.json"))
    assert CliRunner().invoke(cli, typed[1:]).exit_code == 0
    assert json.loads(Path("result.json").read_text())["average_effect"] == pytest.approx(desk.result.att)
    Path("answer.py").write_bytes(_downloads(desk)["script"][1]())
    runpy.run_path("answer.py")
    assert "clinic 0" in Path("report.html").read_text("utf-8")


def test_a_public_series_takes_the_place_of_a_unit_and_the_other_way_round(panel_desk: AnalystDesk) -> None:
    panel_desk.choose_unit("clinic 0")
    panel_desk.paste_target("\n".join(map(str, range(14))))
    panel_desk.choose(9)
    assert panel_desk.unit == ""
    assert panel_desk.result is not None
    assert list(panel_desk.result.target) == pytest.approx(range(14))
    panel_desk.choose_unit("clinic 1")
    assert (panel_desk.pasted, panel_desk.unit) == ("", "clinic 1")
    panel_desk.choose_unit("clinic 99")  # no unit of the panel
    assert panel_desk.unit == "clinic 1"


def test_several_units_of_a_panel_are_named_with_their_dates(panel_desk: AnalystDesk) -> None:
    panel_desk.paste_several("unit;start\nclinic 0;2019\nclinic 1;2021\nclinic 2;")
    assert panel_desk.problems == {}
    assert panel_desk.study is not None
    assert list(panel_desk.study.results) == ["clinic 0", "clinic 1"]
    panel_desk.paste_several("unit;start\nclinic 0;2019\nclinic X;2021")
    assert "no unit 'clinic X'" in panel_desk.problems["several"]


def test_an_end_and_a_value_are_said_and_follow_into_command_and_script(desk: AnalystDesk, tmp_path: Path) -> None:
    desk.paste_target("\n".join(map(str, WAGES)))
    desk.choose(4)
    desk.say_treatment("1985", "", "2,5", "3", "EUR")
    assert desk.problems == {}
    assert desk.result is not None
    assert desk.result.treatment_end == "1985"
    shown = app.effects(desk, WIDE)
    assert "After the treatment" in shown
    assert "value minus cost (EUR)" in shown
    typed = app.command(app.asked_of(desk))
    assert "--treatment-end 1985 --value-per-unit 2.5 --cost 3 --currency EUR" in typed
    asked = shlex.split(typed)
    asked[2:4] = [str(RELEASE), str(tmp_path / "target.csv")]
    (tmp_path / "target.csv").write_bytes(desk.target_table())
    done = CliRunner().invoke(cli, [*asked[1:-2], "--json"])
    assert json.loads(done.stdout)["worth"]["rows"][1]["effect"] == pytest.approx(
        desk.result.worth()["effect"]["value"]
    )
    assert "treatment_end='1985', value_per_unit=2.5" in app.script(app.asked_of(desk), [])
    desk.say_treatment("1982", "", "", "", "")
    assert "1982" in app.treatment_help(desk, WIDE)
    desk.say_treatment("", "many", "", "", "")
    assert "“periods left out” must be a whole number" in desk.problems["treatment"]
    assert desk.result is not None  # as if nothing had been said
    assert not desk.result.ended


def test_all_outcomes_of_a_file_are_shown_side_by_side(tmp_path: Path) -> None:
    rows = np.cumsum(np.random.default_rng(0).normal(size=(801, 12)), axis=1)
    make = dpsc.GramRelease(epsilon=2.0, delta=1e-6)
    each = {"orders": {"scale": 3.0}, "revenue": {"scale": 60.0}}
    released = make.release({"orders": rows[1:], "revenue": 20 * rows[1:]}, each=each, dataset=None)
    released.save(tmp_path / "both.dpsc.json")
    frame = pd.DataFrame({"week": range(12), "orders": rows[0], "revenue": 20 * rows[0], "on": [0] * 8 + [1] * 4})
    frame.to_csv(tmp_path / "town.csv", index=False)
    (tmp_path / "desk").mkdir()
    desk = AnalystDesk(tmp_path / "desk")
    desk.open_release(File(tmp_path / "both.dpsc.json", "both.dpsc.json"))
    desk.drop_target(File(tmp_path / "town.csv", "town.csv"))
    desk.choose(8)
    assert desk.problems == {}
    assert desk.outcomes_together is not None
    assert desk.outcomes_together["revenue"].att == released["revenue"].estimate(20 * rows[0], 8).att
    assert "p-value, adjusted" in app.answer(desk, WIDE)
    assert b"What was protected" in _downloads(desk)["outcomes_report"][1]()
    desk.paste_target("\n".join(map(str, rows[0])))
    assert desk.outcomes_together is None


def test_the_segments_that_answer_are_said_and_follow_into_command_and_script(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = np.cumsum(rng.normal(size=(1200, 12)), axis=1).round(4)
    made = dpsc.GramRelease(epsilon=1.0, delta=1e-6, scale=3.0)
    plans = pd.Series(["plus", "basic"] * 600, name="plan")
    path = tmp_path / "plans.dpsc.json"
    made.release(rows, by=plans, labels=["basic", "plus"], dataset=None).save(path)
    (tmp_path / "desk").mkdir()
    desk = AnalystDesk(tmp_path / "desk")
    desk.open_release(File(path, path.name))
    assert '<span class="segments">By plan: basic about' in app.release(desk, WIDE)
    desk.paste_target("\n".join(map(str, rows[0])))
    desk.choose(8)
    assert desk.result is not None
    assert desk.result.parameters["pool"] == "all segments of plan"
    desk.say_pool(" plus ")
    assert desk.result.parameters["pool"] == "plan plus"
    shown = app.choices(desk, WIDE)
    assert "The answer is from the donors of plan plus." in shown
    assert "donors: plan basic" in shown
    release = dpsc.Release.load(path)
    assert desk.result.att == release.estimate(rows[0], 8, pool="plus").att
    typed = app.command(app.asked_of(desk))
    assert "--pool plus" in typed
    asked = shlex.split(typed)
    asked[2:4] = [str(path), str(tmp_path / "target.csv")]
    (tmp_path / "target.csv").write_bytes(desk.target_table())
    done = CliRunner().invoke(cli, [*asked[1:-2], "--json"])
    assert json.loads(done.stdout)["average_effect"] == pytest.approx(desk.result.att)
    assert "pool=release.segments.typed('plus')" in app.script(app.asked_of(desk), [])
    desk.say_pool("pro")
    assert "no segment 'pro'" in desk.problems["pool"]
    assert "no segment &#39;pro&#39;" in app.release(desk, WIDE)
    assert desk.result.parameters["pool"] == "all segments of plan"
    desk.say_pool("basic=1, plus=3")
    desk.open_release(File(RELEASE, "wages.dpsc.json"))
    assert desk.pool == ""  # which is not divided
    assert desk.problems == {"target": desk.problems["target"]} if "target" in desk.problems else True
