"""Reading periods and columns; the mistakes people make are in tests/cli/test_mistakes.py."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dpsc import tabular
from dpsc.errors import TableError

HERE = Path("table.csv")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["1980", "1981"], [1980, 1981]),
        (["2020-01-31", "2020-02-29"], [pd.Timestamp("2020-01-31"), pd.Timestamp("2020-02-29")]),
        (["2020-01", "2020-02"], [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-02-01")]),
        (["2020Q1", "2020-q2"], [pd.Period("2020Q1"), pd.Period("2020Q2")]),
        (["week 1", "week 2"], ["week 1", "week 2"]),
        ([1.0, 2.0], [1, 2]),
        (["202112", "202201"], [pd.Timestamp("2021-12-01"), pd.Timestamp("2022-01-01")]),
        ([202112, 202201], [pd.Timestamp("2021-12-01"), pd.Timestamp("2022-01-01")]),
    ],
)
def test_periods_become_what_they_look_like(given: list[object], expected: list[object]) -> None:
    assert list(tabular.periods(pd.Series(given), "t", HERE, None)) == expected


def test_one_slip_among_dates_is_named() -> None:
    with pytest.raises(TableError, match="'2020-02-31' in column 't'"):
        tabular.periods(pd.Series(["2020-01-31", "2020-02-31", "2020-03-31"]), "t", HERE, None)
    with pytest.raises(TableError, match="'total' in column 't'"):
        tabular.periods(pd.Series(["2020-01-31", "2020-02-29", "total"]), "t", HERE, None)


def test_a_series_needs_no_names_when_there_are_two_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pd.DataFrame({"year": [3, 1, 2], "x": [0.3, 0.1, 0.2]}).to_csv(path, index=False)
    series = tabular.series(path, None, None)
    assert series.name == "x"
    assert series.index.name == "year"
    assert series[1] == 0.1
    pd.DataFrame({"year": [1, 1], "x": [0.3, 0.1]}).to_csv(path, index=False)
    with pytest.raises(TableError, match="the period 1 occurs twice"):
        tabular.series(path, None, None)


def test_donors_are_in_time_order_clipped_and_complete(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    pd.DataFrame({"u": list("aabb"), "t": [2, 1, 1, 2], "x": [5.0, 1.0, -7.0, 2.0]}).to_csv(path, index=False)
    layout = tabular.Layout("u", "t", "x")
    table = tabular.donors(path, layout, bounds=(0, 4), missing="error")
    assert list(map(int, table.columns)) == [1, 2]
    assert table.to_numpy().tolist() == [[1.0, 4.0], [0.0, 2.0]]
    assert tabular.donors(path, layout, bounds=None, missing="error", exclude=["a"]).to_numpy().tolist() == [
        [-7.0, 2.0]
    ]
    with pytest.raises(TableError, match="'c' \\(--exclude\\) is not in the data"):
        tabular.donors(path, layout, bounds=None, missing="error", exclude=["c"])
