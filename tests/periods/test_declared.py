"""Periods are declared and not read from donors: what one donor's rows say of periods shows nowhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import Donors, GramRelease, OutputPerturbation, Panel, PanelError, scan
from dpsc.custodian.donors.donor_files import Engine
from dpsc.periods.calendar import places
from dpsc.periods.declare import completed, declaration, declared

MAKE = GramRelease(epsilon=1.0, delta=1e-6, scale=1.0, seed=1)


DAYS = list(pd.period_range("2024-01-01", "2024-06-30", freq="D"))


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([[f"p{i:02}" for i in range(30)], range(2000, 2008)], names=["who", "year"])
    return pd.DataFrame({"x": rng.normal(size=len(index)).round(4)}, index=index).reset_index()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1980..1983", [1980, 1981, 1982, 1983]),
        ("2021-11..2022-01", list(pd.period_range("2021-11", "2022-01", freq="M"))),
        ("Nov 2021..January 2022", list(pd.period_range("2021-11", "2022-01", freq="M"))),
        ("2022-02-27..2022-03-01", list(pd.period_range("2022-02-27", "2022-03-01", freq="D"))),
        ("202112..202201", list(pd.period_range("2021-12", "2022-01", freq="M"))),
        ("2020-W53..2021-W02", list(pd.period_range("2020-12-28", "2021-01-11", freq="W"))),
        ("2020Q4..2021q1", [pd.Period("2020Q4"), pd.Period("2021Q1")]),
        ("1980..1982, 1985,1987..1988", [1980, 1981, 1982, 1985, 1987, 1988]),
        ("2022-03..2022-04,2021-12", [pd.Period("2021-12", "M"), pd.Period("2022-03", "M"), pd.Period("2022-04", "M")]),
        ("1980, 1982", [1980, 1982]),
        ("2024-01-01..2024-02-01 by week", DAYS[0:32:7]),
        ("2024-01-01..2024-02-01 by 2 Weeks", DAYS[0:32:14]),
        ("2024-01-01..2024-02-26 by 4 weeks", DAYS[0:57:28]),
        ("2024-01-01..2024-02-26 by 28 days", DAYS[0:57:28]),
        ("2024-01-01..2024-05-06 by 4-4-5 weeks", [DAYS[0], DAYS[28], DAYS[56], DAYS[91], DAYS[119]]),
        ("2024-01-05..2024-01-09 by working day", [DAYS[4], DAYS[7], DAYS[8]]),
        ("2024-01-01..2024-01-15,2024-01-29..2024-02-05 by week", [DAYS[k] for k in (0, 7, 14, 28, 35)]),
        ("2024-01-01..2024-01-15 by week,2024-01-22", [DAYS[k] for k in (0, 7, 14, 21)]),
        ("2024-W01..2024-W05 by 2 weeks", list(pd.period_range("2024-01-01", periods=5, freq="W")[::2])),
        ("2024-01-31..2024-03-31 by month", list(pd.period_range("2024-01", "2024-03", freq="M"))),
        ("2024-01..2024-07 by 3 months", list(pd.period_range("2024-01", "2024-07", freq="M")[::3])),
        ("1970..2000 by 10, 2005", [1970, 1980, 1990, 2000, 2005]),
        ("1..9 by 4", [1, 5, 9]),
        (["t10", "t2"], ["t2", "t10"]),
        ([3, 1, 2], [1, 2, 3]),
        (pd.Index([2001, 2000]), [2000, 2001]),
    ],
)
def test_what_people_declare(given: Any, expected: list[Any]) -> None:
    assert declared(given).tolist() == expected


@pytest.mark.parametrize(
    "wrong",
    [
        "a..b", "2022..2020", "..", "1..9999999", [], [1, 1], 5, "2020-01-01..x", "1..99999999999999999999",
        [[1, 2], [3, 4]], pd.period_range("2022-01-03", periods=4, freq="h"), "\ud800..b", "2020..2021-05",
        "2020Q1..2021-05", "0001-01-01..9999-12-31", "1980..1982,1982..1984", "1980..1982,",
        "1980..1982,2021-05..2021-07", "1..90000,100001..190000", "1980..1982,a", "2024-01-01 by week",
        "2024-01..2024-12 by week", "2024-01..2024-12 by quarter", "2024-01-01..2024-12-01 by 0 weeks",
        "2024-01-01..2024-12-01 by", "2024-01-01..2024-12-01 by fortnight", "1980..1990 by week", "1..9 by year",
        "2024-01-01..2024-12-01 by week by 2", "1980..1990 by 99999999999", "2024-01-01..2024-12-01 by 2 working days",
    ],
)  # fmt: skip
def test_what_cannot_be_a_declaration_is_refused(wrong: Any) -> None:
    with pytest.raises(PanelError):
        declared(wrong)


def test_a_week_that_a_year_does_not_have_is_named() -> None:
    with pytest.raises(PanelError, match="the year 2024 has 52 ISO weeks"):
        declared("2024-W01..2024-W53")
    assert len(declared("2026-W01..2026-W53")) == 53


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-01..2024-12-23 by week", "2024-01-01..2024-06-24,2024-07-08..2024-12-23 by week",
        "2024-01-01..2024-06-24,2024-07-08 by week", "2024-01-01..2024-12-02 by 4 weeks",
        "2024-01-01..2024-12-30 by 4-4-5 weeks", "2024-01-01..2024-12-31 by working day", "2021-01..2021-06,2021-08",
        "1970..2020 by 10 years", "1..21 by 5",
        "2024-01..2024-11 by 2 months", "2024-W01..2024-W51 by 2 weeks", "2024-01-01..2024-03-01",
        "2024-01-01..2024-03-01 by 10 days", "2020Q1..2024Q4",
    ],
)  # fmt: skip
def test_periods_are_declared_as_somebody_would_write_them(text: str) -> None:
    assert declaration(declared(text)) == text


def test_a_calendar_is_completed_by_its_own_step() -> None:
    """Weeks that nobody has are weeks, not days; dates without a step stay as they are."""
    weeks = declared("2024-01-01..2024-12-23 by week")
    assert completed(weeks.delete([3, 4, 20])).equals(weeks)
    irregular = declared(["2024-01-01", "2024-01-09", "2024-03-01", "2024-12-23"])
    assert completed(irregular).equals(irregular)
    assert declaration(irregular) == "2024-01-01,2024-01-09,2024-03-01,2024-12-23"


def test_a_step_in_python_reads_the_rows_of_weekly_dates() -> None:
    weeks = declared("2024-01-01..2024-02-26 by week")
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([range(30), [str(day) for day in weeks]], names=["who", "week"])
    table = pd.DataFrame({"x": rng.normal(size=len(index))}, index=index).reset_index().astype({"who": str})
    donors = Donors.from_long(
        table, unit="who", time="week", outcome="x", periods="2024-01-01..2024-02-26 by week", missing="error"
    )
    assert donors.times.equals(weeks)
    np.testing.assert_array_equal(np.sort(donors.values.ravel()), np.sort(table["x"]))


def test_python_says_which_periods_would_fit_to_the_custodian_who_asks(tmp_path: Path) -> None:
    """Weekends are empty for everybody; a lost month is not a matter of the calendar. Nothing is refused."""
    days = declared("2024-01-01..2024-03-29 by working day").delete(0)
    rows = [(f"p{i:02}", str(day), float(i)) for i in range(30) for day in days]
    table = pd.DataFrame(rows, columns=["who", "day", "x"])
    table.to_csv(tmp_path / "d.csv", index=False)
    columns: Any = {"unit": "who", "time": "day", "outcome": "x"}
    every, working = "2024-01-01..2024-03-31", "2024-01-02..2024-03-29 by working day"
    for periods, fits in ((every, working), (working, None), ("2024-01-01..2024-03-31 by working day", None)):
        for donors in (
            Donors.from_long(table, **columns, periods=periods),
            scan(tmp_path / "d.csv", **columns, periods=periods),
        ):
            misfit = donors.custodian_misfit()
            assert (None if misfit is None else misfit.fitting) == fits
    lost = table[~table["day"].str.startswith("2024-02")]
    assert Donors.from_long(lost, **columns, periods=working).custodian_misfit() is None


def test_one_period_written_in_several_ways_is_one_place() -> None:
    index = declared("2022-01..2022-03")
    written = ["2022-01", "2022-01-31", 202202, "202202", pd.Timestamp("2022-03-01"), "2022-02-15", "total", None, ""]
    assert places(written, index).tolist() == [0, 0, 1, 1, 2, 1, -1, -1, -1]
    zoned = [pd.Timestamp("2022-03-31 23:30", tz="Europe/London"), pd.Timestamp("2022-02-01", tz="Asia/Tokyo")]
    assert places(zoned, index).tolist() == [2, 1]  # by the clock on the wall
    quarters = declared("2022Q1..2022Q4")
    assert places(["2022-Q1", "2022-05", "2022-12-31", None, "zz"], quarters).tolist() == [0, 1, 3, -1, -1]
    assert places(["2000", 2001, "2001.0", 2001.5, True], declared("2000..2002")).tolist() == [0, 1, 1, -1, -1]


def rows_of(change: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    return change(frame())


# What one donor's rows may look like; each of these was refused, or told apart with certainty by the periods published.
NEIGHBOURS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "as they are": lambda f: f,
    "one row later than all others": lambda f: pd.concat([f, f.iloc[[0]].assign(year=2030)]),
    "a row missing": lambda f: f.drop(index=3),
    "no value at all": lambda f: f.assign(x=f["x"].mask(f["who"] == "p00")),
    "only rows outside": lambda f: f.assign(year=f["year"].mask(f["who"] == "p00", 1900)),
    "an infinite value": lambda f: f.assign(x=f["x"].mask(f.index == 2, np.inf)),
    "a period twice": lambda f: pd.concat([f, f.iloc[[1]]]),
    "a period of another kind": lambda f: f.astype({"year": object}).assign(
        year=lambda g: g["year"].mask(g.index == 4, "total")
    ),
}


@pytest.mark.parametrize("engine", ["memory", "stream"])
@pytest.mark.parametrize("case", NEIGHBOURS)
def test_no_refusal_and_no_period_depends_on_a_donors_rows(case: str, engine: Engine, tmp_path: Path) -> None:
    """Every neighbour gives a release of the same public shape, and all other donors count as before."""
    table = NEIGHBOURS[case](frame()).sort_values("who", kind="stable")
    table.to_csv(tmp_path / "t.csv", index=False)
    options: dict[str, Any] = {"unit": "who", "time": "year", "outcome": "x", "periods": "2000..2007"}
    summed = MAKE.custodian_sum(scan(tmp_path / "t.csv", **options, engine=engine))
    usual = MAKE.custodian_sum(Donors.from_long(frame(), unit="who", time="year", outcome="x"))
    assert summed.n == usual.n == 30
    assert summed.times.tolist() == list(range(2000, 2008))
    others = MAKE.custodian_sum(Donors.from_long(frame().query("who != 'p00'"), unit="who", time="year", outcome="x"))
    alone = summed.total - others.total  # what the one donor adds, an integer vector of length at most 2^bits
    assert 0 < np.trace(alone) <= 4**summed.row_map.grid_bits
    assert np.linalg.matrix_rank(alone.astype(float)) == 1
    from_frame = MAKE.custodian_sum(Donors.from_long(table, **options))
    np.testing.assert_array_equal(from_frame.total, summed.total)
    assert MAKE.release(summed).periods_from == "declared"


def test_without_declared_periods_every_donor_needs_every_period(tmp_path: Path) -> None:
    """A later row of one donor used to add a period to the release, for everybody to see."""
    later = NEIGHBOURS["one row later than all others"](frame())
    later.to_csv(tmp_path / "t.csv", index=False)
    columns: dict[str, Any] = {"unit": "who", "time": "year", "outcome": "x"}
    engines: tuple[Engine, ...] = ("memory", "stream")
    for engine in engines:
        source = scan(tmp_path / "t.csv", **columns, missing="interpolate", engine=engine)
        with pytest.raises(PanelError, match="does not have a row for every period"):
            MAKE.custodian_sum(source)
    pool = Donors.from_long(later, **columns, missing="interpolate")
    assert pool.periods_from == "rows with gaps"
    with pytest.raises(PanelError, match="not every unit has a row for each"):
        MAKE.release(pool)
    panel = Panel.from_long(
        later, **columns, treated_unit="p05", treatment_time=2005, missing="interpolate", bounds=(-9, 9)
    )
    for private in (MAKE.release, OutputPerturbation(epsilon=1.0, seed=1).fit):
        with pytest.raises(PanelError, match="not every unit has a row for each"):
            private(panel)
    assert MAKE.release(Donors.from_long(frame(), **columns)).periods_from == "rows"


def test_a_panel_takes_declared_periods() -> None:
    panel = Panel.from_long(
        NEIGHBOURS["one row later than all others"](frame()),
        unit="who",
        time="year",
        outcome="x",
        treated_unit="p05",
        treatment_time=2005,
        periods="2001..2007",
    )
    assert panel.times.tolist() == list(range(2001, 2008))
    assert MAKE.release(panel).periods_from == "declared"


def test_a_wide_table_has_a_column_for_each_declared_period(tmp_path: Path) -> None:
    wide = frame().pivot(index="who", columns="year", values="x").reset_index().assign(note="north")
    wide.to_csv(tmp_path / "w.csv", index=False)
    source = scan(tmp_path / "w.csv", unit="who", wide=True, periods="2002..2005")
    assert MAKE.release(source).times.tolist() == [2002, 2003, 2004, 2005]
    with pytest.raises(PanelError, match="no column for the declared period 2008"):
        MAKE.release(scan(tmp_path / "w.csv", unit="who", wide=True, periods="2002..2008"))


def test_an_exchange_of_one_donor_moves_the_sum_by_at_most_the_bound(tmp_path: Path) -> None:
    """All pairs of neighbours above: the squared Frobenius norm of the difference is at most 2 * 16^bits."""
    totals = []
    for change in NEIGHBOURS.values():
        table = change(frame()).sort_values("who", kind="stable")
        pool = Donors.from_long(table, unit="who", time="year", outcome="x", periods="2000..2007")
        totals.append(MAKE.custodian_sum(pool).total.astype(object))
    moved = max(int(((one - other) ** 2).sum()) for one in totals for other in totals)
    assert 0.5 * 16**18 < moved <= 2 * 16**18
