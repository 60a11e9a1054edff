"""Files as people have them: separators, marks in numbers, encodings, workbooks. No row changes how others are read."""

from __future__ import annotations

import gzip
import itertools
import math
import pickle
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from dpsc import GramRelease, scan
from dpsc.custodian.gram.dask import DaskDonors, long_frame, piece_sum
from dpsc.errors import DpscError, ParameterError, TableError
from dpsc.tables import reader
from dpsc.tables.dialect import SEPARATORS, Dialect
from dpsc.tables.numbers import THOUSANDS, Numbers
from dpsc.tables.spec import TableSpec
from dpsc.types import Array, Integers
from tests.custodian.gram.test_stream import PRODUCTS, expected
from tests.making import SECRET, long, save, told, wide

N, T = 40, 9
COLUMNS: dict[str, Any] = {"unit": "who", "time": "week", "outcome": "cost"}
SPACES = (" ", "\u00a0", "\u2009", "\u202f")


@pytest.fixture(scope="module")
def donors() -> Array:
    values = np.random.default_rng(0).normal(size=(N, T)).cumsum(axis=1)
    values[:, 0] *= 12_345  # so that thousands have marks
    return np.round(values, 2)


def written(number: float, decimal: str, thousands: str, digits: int = 2) -> str:
    return f"{number:,.{digits}f}".replace(",", "T").replace(".", decimal).replace("T", thousands)


def table(
    donors: Array, path: Path, *, sep: str, decimal: str = ".", thousands: str = "", encoding: str = "utf-8",
    layout: str = "long", name: str = "Müller",
) -> Path:  # fmt: skip
    texts = [[written(x, decimal, thousands) for x in row] for row in donors.tolist()]
    labels = [f"{name} {i}" for i in range(len(donors))]
    frame = long(np.array(texts), labels) if layout == "long" else wide(np.array(texts, dtype=object), labels)
    text = frame.to_csv(index=False, sep=sep)
    content = text.encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def total(path: Path, layout: str = "long", **options: Any) -> Integers:
    columns = COLUMNS if layout == "long" else {"unit": "who", "wide": True}
    summed: Integers = scan(path, **columns, **options).add_up(PRODUCTS, lambda rows: None)[0]
    return summed


@pytest.mark.parametrize("layout", ["long", "wide"])
@pytest.mark.parametrize("sep", SEPARATORS.values())
def test_every_separator_and_mark_gives_the_same_integers_in_both_engines(
    donors: Array, tmp_path: Path, sep: str, layout: str
) -> None:
    right = expected(donors)
    for decimal, thousands in itertools.product(".,", ("", ",", ".", "'", "\u2019", *SPACES)):
        if decimal == thousands:
            continue
        path = table(donors, tmp_path / "d.csv", sep=sep, decimal=decimal, thousands=thousands, layout=layout)
        said: dict[str, Any] = {"decimal": decimal}
        if thousands and sep != ";" and decimal == ".":
            said["thousands"] = thousands
        for engine in ("memory", "stream"):
            np.testing.assert_array_equal(total(path, layout, engine=engine, **said), right)
            if sep == ";":  # two decimals: each number shows by itself what its marks are
                np.testing.assert_array_equal(total(path, layout, engine=engine), right)


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-16", None),
        ("cp1252", "windows-1252"),
        ("latin-1", "latin-1"),
        ("utf-16-le", "utf-16-le"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_every_encoding_gives_the_same_integers(
    donors: Array, tmp_path: Path, encoding: str, said: str | None, ending: str
) -> None:
    path = table(donors, tmp_path / f"d.{ending}", sep=";", decimal=",", thousands="\u00a0", encoding=encoding)
    for engine in ("memory", "stream"):
        np.testing.assert_array_equal(total(path, engine=engine, encoding=said), expected(donors))
    units = scan(path, **COLUMNS, encoding=said).files.matrix().units
    assert units[0] == "Müller 0"


def test_a_header_shows_its_encoding_and_a_row_does_not(donors: Array, tmp_path: Path) -> None:
    path = table(donors, tmp_path / "d.csv", sep=";", encoding="cp1252")
    with pytest.raises(TableError, match="not text in utf-8; say in which encoding it is, for example encoding='wind"):
        total(path)
    path.write_bytes(path.read_bytes().replace(b"cost", "Größe".encode("cp1252")))
    columns = COLUMNS | {"outcome": "Größe"}
    files = scan(path, **columns).files
    assert files.matrix().units[0] == "Müller 0"
    assert files.table.as_understood == "separator semicolon, encoding windows-1252, each number by itself"


def test_a_worker_reads_what_one_process_reads(donors: Array, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    for part in range(2):
        table(donors[part::2], folder / f"{part}.csv", sep=";", decimal=",", encoding="utf-16", layout="wide",
              name=f"part {part}")  # fmt: skip
    files = scan(folder, unit="who", wide=True, engine="stream").files
    job = pickle.loads(pickle.dumps(DaskDonors(files).instructions(PRODUCTS)))
    sums = [piece_sum(job, (str(folder / f"{part}.csv"), None)) for part in range(2)]
    assert [part.problem for part in sums] == [None, None]
    np.testing.assert_array_equal(sums[0].total + sums[1].total, expected(donors))
    path = table(donors, tmp_path / "d.csv", sep=";", decimal=",", encoding="cp1252")
    files = scan(path, **COLUMNS, engine="stream", encoding="cp1252").files
    job = pickle.loads(pickle.dumps(DaskDonors(files).instructions(PRODUCTS)))
    np.testing.assert_array_equal(long_frame(job, (str(path), None), 0)["cost"], donors.ravel())


@given(st.floats(-1e6, 1e6), st.sampled_from(".,"), st.sampled_from(["", *THOUSANDS]), st.sampled_from([1, 2, 4, 5]))
def test_a_number_is_read_as_it_is_written(number: float, decimal: str, thousands: str, digits: int) -> None:
    if decimal == thousands:
        return
    text = written(number, decimal, thousands, digits)
    for numbers in (Numbers(".,", THOUSANDS), Numbers(decimal, THOUSANDS)):
        found = numbers.read(pa.array([text]))
        assert (found.wrong, found.ambiguous) == (None, None)
        assert float(found.texts[0].as_py()) == float(f"{number:.{digits}f}")


def test_what_has_two_readings_and_what_has_none() -> None:
    each = Numbers(".,", THOUSANDS)
    for text in ("1.234", "12,345", "-123.456"):
        assert each.read(pa.array(["1", text])).ambiguous == 1
    for text in ("1.2.3", "12.34.567", "1,234.567.890", "1e", "1 23", "5 EUR", "--1", "1.234,5,6", "0x1", ".", "1'23"):
        assert each.read(pa.array(["1", text])).wrong == 1
    comma = Numbers(",", THOUSANDS)
    assert comma.read(pa.array(["1.234", "1,234", "1.5e3"])).texts.to_pylist() == ["1234", "1.234", None]
    assert comma.read(pa.array(["1,5", "1.5"])).wrong == 1  # three digits make a group, and nothing else does


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_ambiguity_is_shown_on_made_up_numbers(tmp_path: Path, engine: Any) -> None:
    path = tmp_path / "d.csv"
    path.write_text("who;week;cost\na;1;2,5\na;2;987.654\nb;1;3\nb;2;4\n")
    with pytest.raises(TableError, match=r"in two ways \(for example in line 3\)") as refused:
        total(path, engine=engine)
    for words in ("1.234 is one thousand two hundred thirty-four", "decimal='comma' or decimal='point'"):
        assert words in str(refused.value)
    assert not told(str(refused.value).replace(".", ""))
    assert scan(path, **COLUMNS, decimal="comma", engine=engine).files.matrix().values[0, 1] == 987654
    path.write_text(path.read_text().replace("2,5", "2.5"))
    assert scan(path, **COLUMNS, decimal=".").files.matrix().values[0, 1] == 987.654


def test_points_that_nothing_shows_to_be_decimal_points(tmp_path: Path) -> None:
    path = tmp_path / "d.tsv"
    path.write_text("who\tweek\tcost\na\t1\t1.234\na\t2\t17\nb\t1\t12.345\nb\t2\t3\n")
    with pytest.raises(TableError, match="in two ways"):
        total(path)
    assert scan(path, **COLUMNS, decimal="point").files.matrix().values.tolist() == [[1.234, 17], [12.345, 3]]
    assert scan(path, **COLUMNS, decimal="comma").files.matrix().values.tolist() == [[1234, 17], [12345, 3]]
    path.write_text(path.read_text().replace("17", "0.17"))
    assert scan(path, **COLUMNS).files.matrix().values.tolist() == [[1.234, 0.17], [12.345, 3]]
    commas = tmp_path / "d.csv"  # with commas between columns, a point is before decimals
    commas.write_text(path.read_text().replace("0.17", "17").replace("\t", ","))
    assert scan(commas, **COLUMNS).files.matrix().values.tolist() == [[1.234, 17], [12.345, 3]]


NASTY = ("2.5", "2,5", "1.234", "1,234", "1.234,5", "1,234.5", "1 234", "1'234", "0,001", "", "NA", "x", '"', ";", "\t",
         "1;2", "1,2", "1|2", "9.999.999", "9,999,999", "\u00a0", "Ä", "\ufeff", "1e3", "-", "=1+1")  # fmt: skip


@pytest.mark.parametrize("sep", [",", ";", "\t"])
@pytest.mark.parametrize("others", ["1.234", "1,234", "1,5", "1500"])
def test_one_donor_cannot_change_how_others_are_read(tmp_path: Path, sep: str, others: str) -> None:
    """Attack: whatever one donor writes, the others' numbers are the same, or the table is refused."""
    path = tmp_path / "d.csv"
    head, quoted = sep.join(("who", "week", "cost")), f'"{others}"' if sep == "," else others
    rest = [sep.join((unit, "1", quoted)) for unit in "bcd"]
    cells = [(cell, "utf-8") for cell in NASTY] + [("Ä", "cp1252"), ("Ä", "utf-16-le")]
    options: list[dict[str, Any]] = [{}, {"decimal": "."}, {"decimal": ","}]
    for said in options:
        readings: list[tuple[float, ...]] = []
        for cell, encoding in cells:
            lines = [head.encode(), sep.join(("a", "1", cell)).encode(encoding), *(line.encode() for line in rest)]
            path.write_bytes(b"\n".join(lines) + b"\n")
            try:
                matrix = scan(path, **COLUMNS, periods=[1], **said).files.matrix()
            except DpscError:
                continue
            readings.append(tuple(matrix.values[np.isin(matrix.units, list("bcd"))].ravel().tolist()))
        assert len(set(readings)) <= 1
        if others == "1500" or (others == "1,5" and sep == ";" and said != {"decimal": "."}):
            assert len(readings) > 3  # so that not everything is refused


def test_a_rule_by_the_column_would_let_one_donor_change_all_others() -> None:
    """The attack above has power: the rule that every spreadsheet uses fails it."""

    def by_column(cells: list[str]) -> list[float] | None:
        fits = [
            mark for mark in ",." if (r := Numbers(mark, THOUSANDS).read(pa.array(cells))).wrong is None and r.texts
        ]
        return [float(x) for x in Numbers(fits[0], THOUSANDS).read(pa.array(cells)).texts.to_pylist()] if fits else None

    others = ["1.234"] * 3
    one, other = by_column(["2,5", *others]), by_column(["2.5", *others])
    assert one is not None
    assert other is not None
    assert one[1:] == [1234.0] * 3
    assert other[1:] == [1.234] * 3


def test_the_named_columns_tell_the_separator(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text('who;week;"cost, in EUR"\na;1;2,50\na;2;3,50\n')
    assert scan(path, **COLUMNS | {"outcome": "cost, in EUR"}).files.matrix().values.tolist() == [[2.5, 3.5]]
    series = tmp_path / "s.csv"
    series.write_text("week, of;x\n1;2,5\n2;3,5\n")
    with pytest.raises(TableError, match="two separators, comma and semicolon; say which it is: sep='comma' or sep="):
        reader.series(series)
    assert reader.series(series, TableSpec(dialect=Dialect(sep="semicolon"))).tolist() == [2.5, 3.5]
    assert reader.series(series, TableSpec(time="week, of", outcome="x")).tolist() == [2.5, 3.5]
    series.write_text("sep=;\nweek;x\n1;2,5\n")
    with pytest.raises(TableError, match="remove that line"):
        reader.series(series)


def test_a_row_in_place_of_a_header_is_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    for row in (f"a;1;{SECRET}".replace(".", ","), "a;987.654"):
        path.write_text(f"{row}\n{row}\n")
        with pytest.raises(TableError, match="header line") as refused:
            total(path)
        assert not told(str(refused.value).replace(".", ""))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"sep": ":"}, "sep ':' is not one of comma (,), semicolon (;), tab, pipe (|)"),
        ({"decimal": ";"}, "decimal ';' is not one of point (.), comma (,)"),
        ({"thousands": "_"}, "thousands '_' is not one of"),
        ({"encoding": "ebcdic!"}, "usual ones are utf-8, utf-16, windows-1252 and latin-1"),
        ({"encoding": "base64"}, "is not an encoding"),
        ({"decimal": ",", "thousands": "comma"}, "are the same mark"),
    ],
)
def test_what_cannot_be_said(said: dict[str, str], words: str) -> None:
    with pytest.raises(ParameterError) as refused:
        Dialect(**said)  # type: ignore[arg-type]
    assert words in str(refused.value)


def test_options_of_another_kind_of_file(donors: Array, tmp_path: Path) -> None:
    path = save(wide(donors), tmp_path / "d.parquet")
    for said in ({"sep": ";"}, {"encoding": "utf-8"}):
        with pytest.raises(TableError, match="is for text files"):
            total(path, "wide", **said)
    with pytest.raises(TableError, match="sheet is for Excel workbooks"):
        total(save(wide(donors), tmp_path / "d.csv"), "wide", sheet="x")


def test_numbers_as_text_in_other_kinds_of_files(tmp_path: Path) -> None:
    path = save(long(np.array([["1,5", "1.234,5"]])), tmp_path / "d.parquet")
    assert scan(path, **COLUMNS, decimal=",").files.matrix().values.tolist() == [[1.5, 1234.5]]
    with pytest.raises(TableError, match=r"column 'cost' holds text in row 1.*say so: decimal='comma'"):
        total(path)


# Workbooks


def book(path: Path, **sheets: list[list[Any]]) -> Path:
    made = Workbook()
    made.remove(made.worksheets[0])
    for title, rows in sheets.items():
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path


def test_a_workbook_gives_the_same_integers(donors: Array, tmp_path: Path) -> None:
    for frame, layout in ((long(donors), "long"), (wide(donors), "wide")):
        rows = [list(frame.columns), *frame.to_numpy(object).tolist()]
        path = book(tmp_path / "d.xlsx", data=rows)
        np.testing.assert_array_equal(total(path, layout), expected(donors))
        assert scan(path, **(COLUMNS if layout == "long" else {"unit": "who", "wide": True})).rows_expected() == N


def test_dates_labels_and_numbers_of_a_workbook(tmp_path: Path) -> None:
    months = [datetime(2022, month, 1) for month in (1, 2, 3)]
    rows: list[list[Any]] = [[7, months[0], 1], [7, months[1], "1,5"], [7.0, months[2], None], ["007", months[0], "NA"],
            ["007", months[1], 1.234], ["007", months[2], "1.234"], [None, None, None]]  # fmt: skip
    path = book(tmp_path / "d.xlsx", one=[["who", "week", "cost", "note"], *rows])
    files = scan(path, **COLUMNS, decimal="comma").files
    assert list(files.times) == list(pd.period_range("2022-01", "2022-03", freq="M"))
    matrix = files.matrix()
    assert matrix.units.tolist() == ["7", "007"]
    np.testing.assert_array_equal(matrix.values, [[1, 1.5, math.nan], [math.nan, 1.234, 1234]])
    with pytest.raises(TableError, match="column 'cost' holds text in row 3"):
        scan(path, **COLUMNS).files.matrix()
    broken = book(tmp_path / "e.xlsx", one=[["who", "week", "cost"], ["a", 1, months[0]]])
    with pytest.raises(TableError, match="holds text in row 2"):
        scan(broken, **COLUMNS).files.matrix()


def test_the_sheet_is_chosen(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", notes=[["a"]], data=[["week", "x"], [1, 2.5], [2, 3]], empty=[])
    with pytest.raises(TableError, match="there are 3 sheets, 'notes', 'data', 'empty'; say which: sheet='NAME'"):
        reader.series(path)
    with pytest.raises(TableError, match=r"there is no sheet 'Data' .*'notes', 'data', 'empty'"):
        reader.series(path, TableSpec(dialect=Dialect(sheet="Data")))
    with pytest.raises(TableError, match="the first row of the sheet is empty"):
        reader.series(path, TableSpec(dialect=Dialect(sheet="empty")))
    assert reader.series(path, TableSpec(dialect=Dialect(sheet="data"))).tolist() == [2.5, 3]


@pytest.mark.parametrize("engine", ["stream", "dask"])
def test_engines_that_cannot_read_workbooks_say_so(tmp_path: Path, engine: Any) -> None:
    path = book(tmp_path / "d.xlsx", data=[["who", "week", "cost"], ["a", 1, 2]])
    with pytest.raises(ParameterError, match=f"engine='{engine}' cannot read Excel workbooks, only engine='memory'"):
        scan(path, **COLUMNS, engine=engine)
    with pytest.raises(TableError, match="a folder of Excel workbooks; give one of them"):
        scan(tmp_path, **COLUMNS).add_up(PRODUCTS, lambda rows: None)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_carriage_returns_do_not_hide_an_open_quotation_mark(tmp_path: Path, encoding: str) -> None:
    """An open mark swallows other donors' lines; as many carriage returns in its own made the count right again."""
    lines = ["unit,time,y", *(f"u{i},{2000 + t},{i + t}" for t in range(4) for i in range(3))]
    lines[1], lines[7] = 'u0,"x,1', 'u0,x",1'
    lines[10] = "\r".join(["u0,2003,1"] * 7)
    (tmp_path / "d.csv").write_bytes("\n".join([*lines, ""]).encode(encoding))
    source = scan(tmp_path / "d.csv", unit="unit", time="time", outcome="y", periods="2000..2003", engine="memory")
    with pytest.raises(DpscError, match="quotation mark"):
        GramRelease(epsilon=1.0, delta=1e-6, scale=1.0).custodian_sum(source)
