"""Workbooks: read back with openpyxl, as a spreadsheet would."""

from __future__ import annotations

from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

from dpsc import GramRelease, ParameterError, Release, SyntheticControl
from dpsc.answers import excel
from dpsc.answers import result as results
from tests.making import make_panel

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
        "effects",
        "periods",
        "before",
        "placebos",
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
    assert len(sheet(path, "placebos")) == 1 + len(result.placebos().table) + results.MADE_UP


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
    assert dict(sheet(path, "answer"))["never treated, for the reader only"] == "west"
    assert [row[0] for row in sheet(path, "event time")] == ["periods after", -1, 0, 1, 2, 3, 4]


def test_without_a_guarantee_the_workbook_says_so(tmp_path: Path) -> None:
    path = SyntheticControl().fit(make_panel()).to_excel(tmp_path / "out.xlsx")
    assert "NOT PRIVATE" in sheet(path, "guarantee")[1][1]
    assert "placebos" not in openpyxl.load_workbook(path).sheetnames


def test_without_openpyxl_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(excel, "find_spec", missing)
    with pytest.raises(ParameterError, match=r"pip install 'dpsc\[xlsx\]'"):
        SyntheticControl().fit(make_panel()).to_excel(tmp_path / "out.xlsx")
    assert list(tmp_path.iterdir()) == []
