"""Reading periods and columns; the mistakes people make are in tests/cli/test_mistakes.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, scan
from dpsc.errors import TableError
from dpsc.periods import calendar
from dpsc.tables import reader
from tests import following
from tests.making import save


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["1980", "1981"], [1980, 1981]),
        (["2020-01-31", "2020-02-29"], [pd.Period("2020-01"), pd.Period("2020-02")]),
        (["2020-01", "2020-02"], [pd.Period("2020-01"), pd.Period("2020-02")]),
        (["2020Q1", "2020-q2"], [pd.Period("2020Q1"), pd.Period("2020Q2")]),
        (["week 1", "week 2"], ["week 1", "week 2"]),
        ([1.0, 2.0], [1, 2]),
        (["202112", "202201"], [pd.Period("2021-12"), pd.Period("2022-01")]),
        ([202112, 202201], [pd.Period("2021-12"), pd.Period("2022-01")]),
    ],
)
def test_periods_become_what_they_look_like(given: list[object], expected: list[object]) -> None:
    assert list(calendar.understood(given, "t", str, None)) == expected


def test_one_slip_among_dates_is_named() -> None:
    with pytest.raises(TableError, match="'2020-02-31' in column 't'"):
        calendar.understood(["2020-01-31", "2020-02-31", "2020-03-31"], "t", str, None)
    with pytest.raises(TableError, match="'total' in column 't'"):
        calendar.understood(["2020-01-31", "2020-02-29", "total"], "t", str, None)


def test_a_series_needs_no_names_when_there_are_two_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pd.DataFrame({"year": [3, 1, 2], "x": [0.3, 0.1, 0.2]}).to_csv(path, index=False)
    series = reader.series(path)
    assert series.name == "x"
    assert series.index.name == "year"
    assert series[1] == 0.1
    pd.DataFrame({"year": [1, 1], "x": [0.3, 0.1]}).to_csv(path, index=False)
    with pytest.raises(TableError, match="the period 1 occurs twice"):
        reader.series(path)


@following.LINUX
@pytest.mark.parametrize("files", [3, 150])
def test_files_of_a_folder_are_opened_once_and_never_very_many_together(tmp_path: Path, files: int) -> None:
    for k in range(files):
        (tmp_path / f"{k}.csv").write_text(f"who,cost\ndonor {k},{k}\n")

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before, most = descriptors(), 0
    with following.opened(*tmp_path.iterdir()) as opened:
        table = reader.open_table(tmp_path, ["who"])
        for again in range(2 if files < 100 else 1):
            found = []
            for rows in reader.rows_of(table, ["who", "cost"]):
                found += rows.batch.column(1).to_pylist()
                most = max(most, descriptors() - before)
            assert sorted(found) == list(range(files)), again
    assert max(opened.values()) == 1
    assert most <= 10
    del table, rows
    assert descriptors() <= before


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
def test_a_column_in_the_names_of_folders_is_read_as_text(tmp_path: Path, kind: str) -> None:
    (tmp_path / "region=nor%20th").mkdir()
    save(pd.DataFrame({"who": ["a", "b"], "cost": [1.0, 2.0]}), tmp_path / "region=nor%20th" / f"d.{kind}")
    table = reader.open_table(tmp_path, ["who"])
    assert table.folders == {"region"}
    assert table.schema.names == ["who", "cost", "region"]
    (rows,) = reader.rows_of(table, ["region", "who"])
    assert rows.batch.to_pydict() == {"region": ["nor th"] * 2, "who": ["a", "b"]}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [[], [""], ['"end",2'], ["", "", '"end",2', ""]])
def test_lines_are_counted_as_arrow_reads_rows(tmp_path: Path, encoding: str, end: str, last: list[str]) -> None:
    """Blank lines are no rows, also between blocks; a quotation mark that stays open swallows some."""
    many = 2**17  # over 1 MB
    lines = ["who,cost", *(f'"donor {k}",1' for k in range(many)), *last]
    path = tmp_path / "d.csv"
    path.write_bytes(end.join(lines).encode(encoding))
    table = reader.open_table(path, ["who"])
    assert sum(rows.batch.num_rows for rows in reader.rows_of(table, ["who"])) == many + any(last)
    path.write_bytes(end.join([*lines, '"open,3', 'more",4']).encode(encoding))
    with pytest.raises(TableError, match="not closed on its own line"):
        list(reader.rows_of(reader.open_table(path, ["who"]), ["who"]))


def test_donors_are_in_time_order_clipped_and_complete(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    pd.DataFrame({"u": list("aabb"), "t": [2, 1, 1, 2], "x": [5.0, 1.0, -7.0, 2.0]}).to_csv(path, index=False)
    columns: dict[str, Any] = {"unit": "u", "time": "t", "outcome": "x"}

    def rows(**options: Any) -> list[list[float]]:
        files = scan(path, **columns, **options).files
        assert list(map(int, files.times)) == [1, 2]
        blocks = files.blocks(10, files.identities())
        return np.hstack([block(np.empty((2, 10))) for block in blocks]).T.tolist()  # type: ignore[no-any-return]

    assert rows(bounds=(0, 4)) == [[1.0, 4.0], [0.0, 2.0]]
    assert rows(exclude=["a"]) == [[-7.0, 2.0]]
    with pytest.raises(TableError, match="not every unit of exclude is in the data"):
        GramRelease(epsilon=1.0, delta=1e-6, scale=1.0).custodian_sum(scan(path, **columns, exclude=["c"]))


@pytest.mark.parametrize("written", ["../target.csv", "../a, b/target.csv"])
def test_a_file_of_periods_may_lie_in_another_folder(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two dots and commas also belong to paths: a file that is there is meant."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path(written).parent.mkdir(exist_ok=True)
    Path(written).write_text("year,x\n1980,1\n1982,2\n", encoding="utf-8")
    assert reader.typed_periods(written, None, None).tolist() == [1980, 1982]
    assert reader.typed_periods("1980..1982,1984", None, None).tolist() == [1980, 1981, 1982, 1984]
