"""Workbooks: read back with openpyxl, as a spreadsheet would."""

from __future__ import annotations

import re
import zipfile
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import openpyxl
import pandas as pd
import pytest

from dpsc import GramRelease, ParameterError, PrivatePanel, Release, SyntheticControl
from dpsc.answers import excel
from dpsc.answers import result as results
from tests.making import make_panel

C, A = (f"{{http://schemas.openxmlformats.org/drawingml/2006/{name}}}" for name in ("chart", "main"))
LABELS = ["w1", "w2", "w3", "w4", "w5", "w6", "=1+1", "+cmd|' /C calc'!A0", "@w9"]


@pytest.fixture(scope="module")
def release() -> Release:
    rows = 50 + np.cumsum(np.random.default_rng(0).normal(size=(400, len(LABELS))), axis=1)
    made = GramRelease(epsilon=1.0, delta=1e-6, scale=3.0).release(rows)
    return replace(made, times=pd.Index(LABELS))


@pytest.fixture(scope="module")
def result(release: Release) -> Any:
    return release.estimate(np.linspace(50, 53, len(LABELS)), "=1+1", title="=what if")


def sheet(path: Path, name: str) -> list[list[Any]]:
    return [list(row) for row in openpyxl.load_workbook(path)[name].iter_rows(values_only=True)]


def test_a_workbook_holds_the_numbers_of_the_result(result: Any, tmp_path: Path) -> None:
    path = result.to_excel(tmp_path / "new" / "out.xlsx", units="euros")
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == [
        "answer",
        "charts",
        "path",
        "effects",
        "periods",
        "without donors",
        "placebos",
        "placebos in space",
        "sensitivity",
        "dates tried",
        "parameters",
        "guarantee",
    ]
    effects = pd.DataFrame(sheet(path, "effects")[1:], columns=sheet(path, "effects")[0])
    np.testing.assert_allclose(effects["effect"].astype(float), result.effects()["effect"])
    np.testing.assert_allclose(effects["p value"].astype(float), result.effects()["p_value"])
    periods = pd.DataFrame(sheet(path, "periods")[1:], columns=sheet(path, "periods")[0])
    np.testing.assert_allclose(periods["gap lower"].astype(float), result.to_frame()["gap_lower"])
    answer = dict(sheet(path, "answer"))
    assert answer["average effect"] == pytest.approx(result.att)
    assert answer["measured in"] == "euros"
    assert dict(sheet(path, "guarantee"))["epsilon"] == 1
    assert dict(sheet(path, "parameters"))["number of donors"] == 400
    dates, made_up = sheet(path, "placebos"), sheet(path, "placebos in space")
    assert [len(dates), len(made_up)] == [2 + len(result.placebos().table), 2 + results.MADE_UP]
    for rows in (dates, made_up):  # the answer itself comes first
        assert rows[1][:2] == ["the answer: =1+1", pytest.approx(result.att)]
    assert [row[1] for row in dates[2:]] == pytest.approx(list(result.placebos().table["effect"]))
    path_rows = pd.DataFrame(sheet(path, "path")[1:], columns=sheet(path, "path")[0])
    np.testing.assert_allclose(path_rows["observed"].astype(float), result.target)
    np.testing.assert_allclose(path_rows["counterfactual"].astype(float)[result.T0 :], result.counterfactual)
    np.testing.assert_allclose(path_rows["predicted"].astype(float)[: result.T0], result.fitted)
    assert path_rows["counterfactual"][: result.T0].isna().all()


def charts(path: Path) -> dict[str, list[tuple[str, list[Any], list[Any]]]]:
    """Return the charts of a workbook by title: name, places and numbers of each series, as in the cells."""
    book, found = openpyxl.load_workbook(path), {}

    def cells(reference: str) -> list[Any]:
        name, _, span = reference.rpartition("!")
        return [row[0].value for row in book[name.strip("'")][span.replace("$", "")]]

    with zipfile.ZipFile(path) as packed:
        for name in packed.namelist():
            if re.fullmatch(r"xl/charts/chart\d+\.xml", name):
                root = ElementTree.fromstring(packed.read(name))
                title = "".join(each.text or "" for each in root.find(f".//{C}title").iter(f"{A}t"))  # type: ignore[union-attr]
                found[title] = [
                    (
                        str(each.find(f"{C}tx//{C}v").text),  # type: ignore[union-attr]
                        cells(str(each.find(f"{C}cat//{C}f").text)),  # type: ignore[union-attr]
                        cells(str(each.find(f"{C}val//{C}f").text)),  # type: ignore[union-attr]
                    )
                    for each in root.iter(f"{C}ser")
                ]
    return found


def test_charts_are_drawn_from_the_cells(result: Any, tmp_path: Path) -> None:
    found = charts(result.to_excel(tmp_path / "out.xlsx", units="euros"))
    assert list(found) == [
        "'=what if",
        "Effect on outcome in each period",
        "The answer, and dates when nothing happened",
        "The answer, and units without the intervention",
        "Effect on outcome under other choices",
    ]
    observed, predicted, without, lower, upper = (numbers for _, _, numbers in found["'=what if"])
    assert observed == pytest.approx(list(result.target))
    assert predicted[: result.T0] == pytest.approx(list(result.fitted))
    assert without[result.T0 :] == pytest.approx(list(result.counterfactual))
    frame = result.to_frame()
    assert lower[result.T0 :] == pytest.approx(list(frame["counterfactual_lower"]))
    assert upper[result.T0 :] == pytest.approx(list(frame["counterfactual_upper"]))
    _, places, _ = found["'=what if"][0]
    assert places[:3] == ["w1", "w2", "w3"]
    high, low, effect = (numbers for _, _, numbers in found["Effect on outcome in each period"])
    assert effect == pytest.approx(list(result.gaps))
    assert [low, high] == [pytest.approx(list(frame["gap_lower"])), pytest.approx(list(frame["gap_upper"]))]
    ((_, places, placebos),) = found["The answer, and dates when nothing happened"]
    assert places == ["the answer: =1+1", *result.placebos().table.index]
    assert placebos == pytest.approx([result.att, *result.placebos().table["effect"]])


def test_a_study_and_a_private_panel_have_charts_of_their_own(release: Release, tmp_path: Path) -> None:
    paths = 50 + np.cumsum(np.random.default_rng(1).normal(size=(2, len(LABELS))), axis=1)
    study = release.study(dict(zip("ab", paths, strict=True)), {"a": "w5", "b": "w6"})
    found = charts(study.to_excel(tmp_path / "study.xlsx"))
    assert list(found) == [
        "Effect on outcome in each unit",
        "Effect on outcome by periods since the treatment",
        "Effect on outcome by period",
    ]
    *_, (_, places, effects) = found["Effect on outcome by periods since the treatment"]
    assert places == list(study.by_event_time().index)
    assert effects == pytest.approx(list(study.by_event_time()["effect"]))
    table = pd.DataFrame(paths[[0] * 30] + np.random.default_rng(2).normal(size=(30, len(LABELS))), columns=range(9))
    panel = PrivatePanel.from_noisy_table(table.rename(index="u{}".format), noise=0.2, guarantee="of a friend")
    one = panel.estimate("u0", 5)
    ((_, donors, weights),) = charts(one.to_excel(tmp_path / "panel.xlsx"))["Weights of the donors that count most"]
    assert len(donors) == excel._BARS
    largest = one.weights.reindex(donors).abs()
    assert weights == pytest.approx(list(one.weights.reindex(donors)))
    assert largest.min() >= one.weights.drop(donors).abs().max()


def test_an_answer_without_intervals_has_bars_and_a_comparison_no_chart(tmp_path: Path) -> None:
    path = SyntheticControl().fit(make_panel()).to_excel(tmp_path / "out.xlsx")
    assert [name for name, _, _ in charts(path)["Effect on outcome in each period"]] == ["gap"]
    (tmp_path / "book.xlsx").write_bytes(excel.book({"one": [{"unit": "north", "effect": 1.5}], "two": []}))
    assert openpyxl.load_workbook(tmp_path / "book.xlsx").sheetnames == ["one"]
    assert charts(tmp_path / "book.xlsx") == {}


def test_an_axis_of_paths_holds_them_and_does_not_begin_at_zero() -> None:
    for values in ([243.1, 305.9], [-0.02, 0.013], [1e6, 1.0001e6], [5.0, 7.0]):
        ends = excel._ends(values)
        assert ends["min"] <= min(values) < max(values) <= ends["max"]
        assert ends["max"] - ends["min"] < 2.1 * (max(values) - min(values))
    assert excel._ends([3.0, 3.0]) == {}


def test_no_text_becomes_a_formula(result: Any, tmp_path: Path) -> None:
    path = result.to_excel(tmp_path / "out.xlsx")
    cells = [cell for page in openpyxl.load_workbook(path) for row in page.iter_rows() for cell in row]
    assert not [cell.value for cell in cells if cell.data_type == "f"]
    texts = [cell.value for cell in cells if isinstance(cell.value, str)]
    assert "'=1+1" in texts
    assert "'=what if" in texts
    assert not [text for text in texts if text.startswith(("=", "+", "-", "@"))]


def test_a_control_character_does_not_stop_the_workbook() -> None:
    made = excel.book({"one": [{"unit": "no\x07rth\x00", "effect": 1.5}, {"unit": "south", "effect": None}]})
    assert made.startswith(b"PK")


def test_numbers_down_a_column_are_shown_alike(result: Any, tmp_path: Path) -> None:
    page = openpyxl.load_workbook(result.to_excel(tmp_path / "out.xlsx"))["periods"]
    for column in page.iter_cols(2):
        assert len({cell.number_format for cell in column[1:]}) == 1


def test_a_study_has_a_sheet_of_units(release: Release, tmp_path: Path) -> None:
    paths = 50 + np.cumsum(np.random.default_rng(1).normal(size=(3, len(LABELS))), axis=1)
    names = ["north", "-south", "west"]
    study = release.study(dict(zip(names, paths, strict=True)), {"north": "w5", "-south": "w6"})
    path = study.to_excel(tmp_path / "study.xlsx")
    units = sheet(path, "units")
    assert [row[0] for row in units] == ["unit", "north", "'-south"]
    assert [row[1] for row in units[1:]] == ["w5", "w6"]
    assert dict(sheet(path, "answer"))["never treated, for comparison only"] == "west"
    assert [row[0] for row in sheet(path, "event time")] == ["periods after", -1, 0, 1, 2, 3, 4]


def test_without_a_guarantee_the_workbook_says_so(tmp_path: Path) -> None:
    path = SyntheticControl().fit(make_panel()).to_excel(tmp_path / "out.xlsx")
    assert "NOT PRIVATE" in sheet(path, "guarantee")[1][1]
    assert "placebos" not in openpyxl.load_workbook(path).sheetnames


def test_without_the_writer_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(excel, "find_spec", missing)
    with pytest.raises(ParameterError, match=r"pip install 'dpsc\[xlsx\]'"):
        SyntheticControl().fit(make_panel()).to_excel(tmp_path / "out.xlsx")
    assert list(tmp_path.iterdir()) == []
