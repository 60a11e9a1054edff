"""The custodian's rehearsal: what a table holds and what is wrong with it, all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, scan
from dpsc.custodian.check import lenient_reader
from dpsc.custodian.check.examine import MARK, CustodianExamination, custodian_examine
from dpsc.custodian.check.findings import Finding
from dpsc.errors import ParameterError, TableError
from dpsc.tables.dialect import Dialect
from dpsc.tables.spec import TableSpec
from tests.making import long, save, wide

T = 12
MONTHS = [f"{day:%Y-%m}" for day in pd.date_range("2021-01-01", periods=T, freq="MS")]


UNDERSTOOD = TableSpec("patient", "month", "cost", periods="2021-01..2021-12")


def table(n: int = 6, seed: int = 0) -> pd.DataFrame:
    values = np.random.default_rng(seed).uniform(50, 150, (n, T)).round(2)
    return long(values, [f"p{i}" for i in range(n)], MONTHS, ("patient", "month", "cost"))


def saved(frame: pd.DataFrame, path: Path, **how: Any) -> Path:
    frame.to_csv(path, index=False, **how)
    return path


def found(seen: CustodianExamination, kind: str) -> Finding:
    those = [finding for finding in seen.findings if finding.kind == kind]
    assert len(those) == 1, (kind, seen.findings)
    return those[0].rendered(lambda parameter: parameter.option)


def known(seen: CustodianExamination) -> list[Finding]:
    """Return what was found, but for what was not said and only rows showed."""
    return [finding for finding in seen.findings if finding.kind != "to be said"]


def is_ready(seen: CustodianExamination) -> bool:
    return all(finding.grade != "correct" for finding in known(seen))


def test_a_clean_table_is_ready_and_understood(tmp_path: Path) -> None:
    seen = custodian_examine(saved(table(), tmp_path / "d.csv"))
    assert is_ready(seen)
    assert known(seen) == []
    assert (seen.units, seen.rows, len(seen.periods), seen.calendar) == (6, 72, T, "months")
    assert seen.spec == UNDERSTOOD
    assert seen.guessed == ("unit", "time", "outcome", "periods")
    assert (sum(seen.missing), seen.late, seen.leaving, seen.gaps, seen.filling.cells) == (0, 0, 0, 0, 0)


def test_a_messy_table_shows_everything_at_once(tmp_path: Path) -> None:
    frame = table(8)
    frame = frame[frame["month"] != "2021-05"]  # lost for everybody
    frame = frame[~((frame["patient"] == "p1") & (frame["month"] < "2021-04"))]  # joins late
    frame = frame[~((frame["patient"] == "p2") & (frame["month"] > "2021-10"))]  # leaves
    frame = frame[~((frame["patient"] == "p3") & (frame["month"] == "2021-08"))]  # a gap
    frame.loc[frame["patient"] == "p4", "cost"] = 77.0
    frame = frame.astype({"cost": object}).reset_index(drop=True)
    frame["cost"] = frame["cost"].map(lambda value: f"{value:.2f}".replace(".", ","))
    rows = {name: frame.index[frame["patient"] == name] for name in ("p0", "p5", "p6")}
    frame.loc[rows["p0"][:2], "cost"] = ["unknown", "12 EUR"]
    frame.loc[rows["p0"][2], "cost"] = "-5,00"
    frame.loc[rows["p0"][3], "cost"] = "1.234.567,00"
    frame.loc[rows["p5"][0], "month"] = "total"
    frame.loc[rows["p5"][1], "month"] = ""
    frame.loc[rows["p5"][2], "patient"] = ""
    frame.loc[rows["p6"][:3], "patient"] = "P6 "
    frame = pd.concat([frame, frame.iloc[[6]]], ignore_index=True)
    seen = custodian_examine(saved(frame, tmp_path / "d.csv", sep=";"))

    assert not is_ready(seen)
    assert "separator semicolon" in seen.reading
    assert "decimal comma" in seen.reading
    assert seen.spec.parts()["decimal"] == "comma"
    assert seen.spec.parts()["periods"] == "2021-01..2021-12"
    assert found(seen, "text").examples == ("line 2 (2021-01) says 'unknown'", "line 3 (2021-02) says '12 EUR'")
    assert found(seen, "negative").examples == ("line 4 (2021-03) says -5",)
    assert found(seen, "extreme").examples == ("line 5 (2021-04) says 1234567",)
    assert found(seen, "unread period").examples == (f"line {rows['p5'][0] + 2} says 'total'",)
    assert found(seen, "no period").examples == (f"line {rows['p5'][1] + 2}",)
    assert found(seen, "no unit").examples == (f"line {rows['p5'][2] + 2}",)
    assert found(seen, "twice").examples == (f"line {len(frame) + 1} repeats line 8, the same number",)
    first, later = rows["p6"][0] + 2, rows["p6"][3] + 2
    assert found(seen, "alike").examples == (f"'P6 ' (line {first}) and 'p6' (line {later})",)
    assert found(seen, "nobody").words.startswith("2021-05: missing for EVERYBODY")
    assert found(seen, "constant").examples[0].startswith("'p4'")
    assert seen.missing[4] == seen.units
    assert {finding.kind for finding in seen.findings if finding.grade == "look"} == {"negative", "extreme", "constant"}


def test_who_was_there_and_what_a_rule_would_fill(tmp_path: Path) -> None:
    frame = table(5)
    frame = frame[~((frame["patient"] == "p1") & (frame["month"] < "2021-04"))]  # 3 before
    frame = frame[~((frame["patient"] == "p2") & (frame["month"] > "2021-10"))]  # 2 after
    frame.loc[(frame["patient"] == "p3") & (frame["month"] == "2021-08"), "cost"] = np.nan  # 1 between
    frame.loc[frame["patient"] == "p4", "cost"] = np.nan
    seen = custodian_examine(saved(frame, tmp_path / "d.csv"))
    assert (seen.late, seen.leaving, seen.gaps) == (1, 1, 1)
    filling = seen.filling
    assert (filling.before, filling.after, filling.between, filling.cells, filling.units) == (3, 2, 1, 6, 3)
    assert filling.without == found(seen, "no cell").count == 1
    assert seen.missing[:3] == (2, 2, 2)
    assert is_ready(seen)
    strict = custodian_examine(tmp_path / "d.csv", TableSpec(missing="error"))
    assert not is_ready(strict)
    assert "--missing error" in found(strict, "missing").words


def test_what_is_counted_is_what_a_release_would_fill(tmp_path: Path) -> None:
    """The same numbers as the reader that a release uses."""
    from dpsc.custodian.scan import scan

    frame = table(9, seed=3).sample(frac=0.7, random_state=1).sort_values(["patient", "month"])
    seen = custodian_examine(saved(frame, tmp_path / "d.csv"))
    periods = str(seen.spec.parts()["periods"])
    donors = scan(tmp_path / "d.csv", unit="patient", time="month", outcome="cost", periods=periods)
    values = donors.files.matrix().values
    assert seen.missing == tuple(np.isnan(values).sum(axis=0))
    assert seen.filling.cells == np.isnan(values).sum()
    assert seen.filling.units == np.isnan(values).any(axis=1).sum()


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_wide_tables_of_every_kind(ending: str, tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(50, 150, (7, T)).round(2)
    values[2, 5] = np.nan
    frame = wide(values, [f"f{i}" for i in range(6)] + ["F1"], MONTHS, unit="firm")
    frame.insert(1, "region", "north")
    path = tmp_path / f"d.{ending}"
    save(frame, path)
    seen = custodian_examine(path)
    assert seen.spec.wide
    assert seen.spec == TableSpec("firm", wide=True, periods="2021-01..2021-12")
    assert (seen.units, seen.gaps, seen.filling.between) == (7, 1, 1)
    row = {"csv": (3, 8), "parquet": (2, 7), "xlsx": (3, 8)}[ending]
    name = "line" if ending == "csv" else "row"
    assert found(seen, "alike").examples == (f"'f1' ({name} {row[0]}) and 'F1' ({name} {row[1]})",)
    frame.loc[6, "firm"] = "f0"
    save(frame, path)
    again = found(custodian_examine(path), "twice")
    assert (again.grade, again.count) == ("correct", T)
    assert again.examples == (f"{name} {row[1]} repeats {name} {row[0] - 1}, another number",)
    assert found(custodian_examine(path, TableSpec(repeated="sum")), "twice").grade == "look"


def test_units_are_counted_as_a_release_counts_them(tmp_path: Path) -> None:
    """A label of a space is one; an empty cell is none."""
    frame = table().replace({"patient": {"p2": " ", "p4": ""}})
    path = saved(frame, tmp_path / "d.csv")
    seen = custodian_examine(path, TableSpec(periods="2021-01..2021-12"))
    made = scan(path, unit="patient", time="month", outcome="cost", periods="2021-01..2021-12")
    n = GramRelease(epsilon=1.0, delta=1e-6, scale=1.0).custodian_sum(made).n
    assert (seen.units, found(seen, "no unit").count, n) == (5, T, 5)


@pytest.mark.parametrize("ending", ["parquet", "xlsx"])
def test_long_tables_with_types_of_their_own(ending: str, tmp_path: Path) -> None:
    frame = table().assign(month=lambda f: pd.to_datetime(f["month"]))
    path = tmp_path / f"d.{ending}"
    save(frame, path)
    seen = custodian_examine(path)
    assert is_ready(seen)
    assert seen.spec == UNDERSTOOD


def test_text_in_a_workbook_is_found_with_its_row(tmp_path: Path) -> None:
    frame = table().astype({"cost": object})
    frame.loc[4, "cost"] = "none yet"
    frame.to_excel(tmp_path / "d.xlsx", index=False)
    assert found(custodian_examine(tmp_path / "d.xlsx"), "text").examples == ("row 6 (2021-05) says 'none yet'",)


DATES = {
    "%d/%m/%Y": "%d/%m/%Y",
    "%m/%d/%Y": "%m/%d/%Y",
    "%d.%m.%Y": None,
    "%b %Y": None,
    "%Y%m": None,
}


@pytest.mark.parametrize("written", DATES)
def test_dates_as_people_write_them(written: str, tmp_path: Path) -> None:
    ends = pd.to_datetime(table()["month"]) + pd.offsets.MonthEnd(0)
    seen = custodian_examine(saved(table().assign(month=ends.dt.strftime(written)), tmp_path / "d.csv"))
    assert is_ready(seen), seen.findings
    assert seen.spec.parts()["periods"] == "2021-01..2021-12"
    assert seen.spec.time_format == DATES[written]


def test_dates_that_can_be_read_in_two_ways_are_told(tmp_path: Path) -> None:
    starts = pd.to_datetime(table()["month"]).dt.strftime("%d/%m/%Y")
    path = saved(table().assign(month=starts), tmp_path / "d.csv")
    assert "--time-format" in found(custodian_examine(path), "dates").words
    assert is_ready(custodian_examine(path, TableSpec(time_format="%d/%m/%Y")))


def test_declared_periods_leave_rows_outside(tmp_path: Path) -> None:
    seen = custodian_examine(saved(table(), tmp_path / "d.csv"), TableSpec(periods="2021-03..2021-12"))
    assert found(seen, "outside").count == 12
    assert is_ready(seen)
    assert len(seen.periods) == 10
    without = ",".join(month for month in MONTHS if month != "2021-05")
    frame = table()[table()["month"] != "2021-05"]
    path = saved(frame, tmp_path / "d.csv")
    assert not is_ready(custodian_examine(path))
    assert is_ready(custodian_examine(path, TableSpec(periods=without)))


def test_thousands_and_tabs_are_recognised(tmp_path: Path) -> None:
    frame = table().assign(cost=lambda f: (1000 * f["cost"]).map("{:,.2f}".format))
    assert custodian_examine(saved(frame, tmp_path / "d.csv")).spec.parts()["thousands"] == "comma"
    seen = custodian_examine(saved(table(), tmp_path / "d.tsv", sep="\t"))
    assert is_ready(seen)
    assert seen.spec.parts()["decimal"] == "point"


def test_numbers_in_two_ways_need_a_word(tmp_path: Path) -> None:
    frame = table().assign(cost="1,234")
    path = saved(frame, tmp_path / "d.csv", sep=";")
    assert found(custodian_examine(path), "ambiguous").count == 72
    assert is_ready(custodian_examine(path, TableSpec(dialect=Dialect(decimal="comma"))))


def test_lines_with_too_many_fields_are_read_around(tmp_path: Path) -> None:
    lines = saved(table(), tmp_path / "d.csv").read_text("utf-8").splitlines()
    lines[3] += ",again"
    lines[9] = lines[9].rsplit(",", 1)[0]
    lines[20] = lines[20].rsplit(",", 1)[0] + ",much"
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n", "utf-8")
    seen = custodian_examine(tmp_path / "d.csv")
    assert found(seen, "fields").examples == ("line 4", "line 10")
    assert found(seen, "text").examples[0].startswith("line 21 ")
    assert seen.rows == 70


def test_a_table_without_rows_and_one_that_is_no_panel(tmp_path: Path) -> None:
    assert found(custodian_examine(saved(table().iloc[:0], tmp_path / "d.csv")), "empty").words == "there are no rows"
    with pytest.raises(TableError, match="which column holds the periods"):
        custodian_examine(saved(pd.DataFrame({"a": ["x", "y"], "b": ["z", "w"]}), tmp_path / "e.csv"))
    with pytest.raises(TableError, match="there is no column 'costs'"):
        custodian_examine(saved(table(), tmp_path / "f.csv"), TableSpec(outcome="costs"))
    with pytest.raises(ParameterError):
        custodian_examine(tmp_path / "f.csv", TableSpec(dialect=Dialect(sep=":")))


def test_a_very_large_table_is_read_in_part_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lenient_reader, "MOST_CELLS", 30)
    monkeypatch.setattr(lenient_reader, "_AT_ONCE", 24)
    seen = custodian_examine(table().to_parquet(tmp_path / "d.parquet") or tmp_path / "d.parquet")
    assert not seen.whole
    assert 30 <= seen.rows < 72


def test_nobody_sees_it_by_printing_it(tmp_path: Path) -> None:
    seen = custodian_examine(saved(table(), tmp_path / "d.csv"))
    assert repr(seen) == f"<CustodianExamination: {MARK}>"


def test_an_encoding_that_the_header_does_not_show_is_found(tmp_path: Path) -> None:
    frame = table()
    frame.loc[50, "patient"] = "Müller"
    seen = custodian_examine(saved(frame, tmp_path / "d.csv", encoding="cp1252"))
    assert seen.units == 7
    assert seen.spec.parts()["encoding"] == "windows-1252"
    assert "encoding" in seen.guessed
    with_utf8 = custodian_examine(tmp_path / "d.csv", TableSpec(dialect=Dialect(encoding="utf-8")))
    assert "--encoding windows-1252" in found(with_utf8, "encoding").words


def test_a_quotation_mark_that_swallows_lines_is_told(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text('who,month,cost\n"a,2021-01,1\nb,2021-01,2\n', "utf-8")
    assert "near line 2" in found(custodian_examine(tmp_path / "d.csv"), "unreadable").words
    lines = saved(table(), tmp_path / "d.csv").read_text("utf-8").splitlines()
    lines[5], lines[7] = '"' + lines[5], lines[7].replace(",", '",', 1)
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n", "utf-8")
    assert "quotation mark" in found(custodian_examine(tmp_path / "d.csv"), "unreadable").words


def test_other_columns_of_a_wide_table_are_left_alone(tmp_path: Path) -> None:
    frame = wide(np.random.default_rng(0).uniform(50, 150, (7, T)).round(2), times=MONTHS, unit="firm")
    frame["icd10"] = "F32"
    path = saved(frame, tmp_path / "d.csv")
    assert known(custodian_examine(path)) == []
    few = custodian_examine(path, TableSpec(periods="2021-03..2021-12"))
    assert is_ready(few)
    assert len(few.periods) == 10


def test_a_date_among_years_is_no_period_of_the_table(tmp_path: Path) -> None:
    frame = table().assign(month=lambda f: f["month"].map(dict(zip(MONTHS, range(1990, 1990 + T), strict=True))))
    frame = frame.astype({"month": object})
    frame.loc[7, "month"] = "31/12/2021"
    seen = custodian_examine(saved(frame, tmp_path / "d.csv"))
    assert seen.spec.parts()["periods"] == "1990..2001"
    assert found(seen, "unread period").examples == ("line 9 says '31/12/2021'",)


def test_a_cell_with_a_space_is_text_where_a_release_says_so(tmp_path: Path) -> None:
    """Plain CSV is read by Arrow, which refuses it; with semicolons the cell is empty."""
    frame = table().astype({"cost": object})
    frame.loc[7, "cost"] = " "
    assert found(custodian_examine(saved(frame, tmp_path / "d.csv")), "text").count == 1
    seen = custodian_examine(saved(frame, tmp_path / "d.csv", sep=";"))
    assert is_ready(seen)
    assert seen.filling.cells == 1
