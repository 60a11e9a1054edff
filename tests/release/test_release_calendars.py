"""A release and a target write the same periods in two ways: on both sides, in files, in settings, over sites."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsc import Donors, GramRelease, Panel, PanelError, Release, ReleaseError, scan
from dpsc.answers import words
from dpsc.answers.placebos import NoRepeats
from dpsc.custodian.donors.donor_files import Engine
from dpsc.release import settings
from dpsc.release.file_format import dumps
from dpsc.release.file_format import loads as read_text
from dpsc.release.settings import Settings
from tests.making import long, save
from tests.periods.test_calendars import FAMILIES, FORMS, MONTHS
from tests.release.test_release import edited

HERE = Path(__file__).parent
T = 14
MAKE = GramRelease(epsilon=1.0, delta=1e-6, scale=2.0, directions=5, seed=1)
ROWS = np.round(np.cumsum(np.random.default_rng(0).normal(size=(60, T)), axis=1), 6)
TARGET = ROWS[0]
PERIODS = pd.period_range("2021-11", periods=T, freq="M")


def written(form: str, freq: str = "M") -> list[Any]:
    return list(FAMILIES[freq][form](pd.period_range("2021-11-15", periods=T, freq=freq)))


def loads(text: str) -> Release:
    return read_text(text, Release)


def released(form: str, freq: str = "M") -> Release:
    return MAKE.release(Donors.from_arrays(ROWS, times=written(form, freq)))


def gaps(release: Release, index: Any, treatment_time: Any) -> Any:
    return release.estimate(pd.Series(TARGET, index=index), treatment_time).gaps


@pytest.mark.parametrize(("freq", "form"), FORMS)
def test_a_release_in_one_form_and_a_target_in_another(freq: str, form: str) -> None:
    """The integers are the same whatever the labels, and so is the answer; a saved file has the same periods."""
    usual = released(next(iter(FAMILIES[freq])), freq)
    made = released(form, freq)
    np.testing.assert_array_equal(made.matrix, usual.matrix)
    assert made.times.equals(usual.times)
    restored = loads(dumps(made))
    assert restored.times.equals(usual.times)
    assert type(restored.times) is type(usual.times)
    expected = gaps(usual, usual.times, usual.times[10])
    pd.testing.assert_series_equal(gaps(restored, written(form, freq), written(form, freq)[10]), expected)


@pytest.mark.parametrize("kind", ["wide", "long"])
def test_every_engine_reads_every_form(kind: str, tmp_path: Path) -> None:
    expected = MAKE.custodian_sum(Donors.from_arrays(ROWS, times=list(PERIODS)))
    engines: tuple[Engine, ...] = ("memory", "stream")
    for form in ("2022-01", "31/01/2022", "Jan 2022", "2022M01", "202201", "month ends", "2022-01-01 00:00:00"):
        names = [f"p{i:02}" for i in range(len(ROWS))]
        table = long(ROWS, names, written(form), ("u", "t", "y"))
        options: dict[str, Any] = {"unit": "u", "time": "t", "outcome": "y"}
        if kind == "wide":
            labels = [str(label) for label in written(form)]
            table = pd.DataFrame(ROWS, columns=labels).assign(u=names)
            options = {"unit": "u", "wide": True}
        path = save(table, tmp_path / "t.csv")
        for engine in engines:
            summed = MAKE.custodian_sum(scan(path, **options, engine=engine))
            np.testing.assert_array_equal(summed.total, expected.total)
            assert summed.times.equals(PERIODS)
            how = "%d/%m/%Y" if form == "31/01/2022" else None  # a convention is public: donors do not decide it
            declared = scan(path, **options, periods="2021-11..2022-12", time_format=how, engine=engine)
            np.testing.assert_array_equal(MAKE.custodian_sum(declared).total, expected.total)


def test_donors_do_not_decide_whether_the_day_comes_first(tmp_path: Path) -> None:
    """With declared periods dates such as 31/01/2022 are read if it is said how; one donor cannot turn all others."""
    path = save(long(ROWS, range(len(ROWS)), written("31/01/2022"), ("u", "t", "y")), tmp_path / "t.csv")
    options: dict[str, Any] = {"unit": "u", "time": "t", "outcome": "y", "periods": "2021-11..2022-12"}
    with pytest.raises(Exception, match=r"no row .* declared periods.* time_format='%d/%m/%Y'"):
        MAKE.custodian_sum(scan(path, **options))


def test_a_file_of_format_2_with_dates_one_by_one_is_a_calendar() -> None:
    old = Release.load(HERE / "version-2-dates.dpsc.json")
    assert old.times.equals(pd.period_range("2022-01", periods=12, freq="M"))
    target = pd.Series(np.arange(12.0), index=old.times.strftime("%b %Y"))  # type: ignore[attr-defined]
    assert len(old.estimate(target, "September 2022").counterfactual) == 4
    assert json.loads(dumps(old))["periods"] == {
        "kind": "calendar",
        "name": "time",
        "every": "month",
        "first": "2022-01",
        "step": 1,
        "length": 12,
    }


def test_a_file_of_0_1_0_takes_quarters_as_people_write_them() -> None:
    old = Release.load(HERE / "version-0.1.0.dpsc.json")
    quarters = ["Q1 2020", "Q2 2020", "Q3 2020", "Q4 2020", "Q1 2021"]
    result = old.estimate(pd.Series(np.arange(5.0), index=quarters), "Q4 2020")
    assert [str(period) for period in result.counterfactual.index] == ["2020Q4", "2021Q1"]


@pytest.mark.parametrize(
    "periods",
    [
        {"kind": "text", "values": ["2021-11", "2021-12", "2022-01"]},
        {"kind": "text", "values": ["Nov 2021", "Dec 2021", "Jan 2022"]},
        {
            "kind": "datetime",
            "tz": None,
            "values": [f"{day}T00:00:00" for day in ("2021-11-01", "2021-12-01", "2022-01-01")],
        },
        {"kind": "date", "values": ["2021-11-30", "2021-12-31", "2022-01-31"]},
        {"kind": "period", "freq": "M", "values": ["2021-11", "2021-12", "2022-01"]},
        {"kind": "integer", "values": [202111, 202112, 202201]},
        {"kind": "calendar", "every": "month", "values": ["2021-11", "2021-12", "2022-01"]},
        {"kind": "calendar", "every": "month", "first": "2021-11", "step": 1, "length": 3},
    ],
)
def test_labels_of_every_file_are_recognised(periods: dict[str, Any]) -> None:
    made = MAKE.release(np.random.default_rng(0).normal(size=(9, 3)))
    assert loads(edited(made, periods={"name": None} | periods)).times.equals(PERIODS[:3])


def test_text_that_is_not_in_the_order_of_time_stays_text() -> None:
    """An earlier version kept the order that a category had; the matrix is in that order."""
    made = MAKE.release(np.random.default_rng(0).normal(size=(9, 3)))
    for values in (["2022-01", "2021-12", "2021-11"], ["01/02/2022", "01/03/2022", "01/04/2022"]):
        read = loads(edited(made, periods={"kind": "text", "name": None, "values": values}))
        assert read.times.tolist() == values


GOOD = {"kind": "calendar", "name": None, "every": "month", "first": "2021-11", "step": 1, "length": 3}


@pytest.mark.parametrize(
    "change",
    [
        {"every": "fortnight"}, {"every": None}, {"first": "2021-Q4"}, {"first": 202111}, {"first": "x"}, {"step": 0},
        {"step": -1}, {"step": 1.0}, {"step": 10**9}, {"length": 0}, {"length": 10**9}, {"length": True},
        {"every": "year", "first": "9999"}, {"every": "year", "first": 1999}, {"values": []}, {"name": 3},
        {"values": ["2021-11", "2021-12", "2021-12"]}, {"values": ["2022-01", "2021-12", "2021-11"]}, {"first": None},
        {"values": ["2021-11", "2021-12", 5]}, {"values": "2021"}, {"every": "day", "first": "9999-12-31"},
    ],
)  # fmt: skip
def test_a_calendar_that_makes_no_sense_is_refused(change: dict[str, Any]) -> None:
    made = MAKE.release(np.random.default_rng(0).normal(size=(9, 3)))
    loads(edited(made, periods=GOOD))
    with pytest.raises(ReleaseError):
        loads(edited(made, periods=GOOD | change))


@pytest.mark.parametrize(
    ("times", "stored"),
    [
        (range(1980, 1994), {"every": "year", "first": "1980", "step": 1, "length": T}),
        (range(1850, 1990, 10), {"every": "year", "first": "1850", "step": 10, "length": T}),
        (
            pd.date_range("2022-01-03", periods=T, freq="14D"),
            {"every": "day", "first": "2022-01-03", "step": 14, "length": T},
        ),
    ],
)
def test_regular_calendars_are_stored_by_their_first_period(times: Any, stored: dict[str, Any]) -> None:
    made = MAKE.release(Donors.from_arrays(ROWS, times=list(times)))
    body = json.loads(dumps(made))["periods"]
    assert body == {"kind": "calendar", "name": "time"} | stored
    assert loads(dumps(made)).times.equals(made.times)


def test_a_hole_is_stored_said_and_known_to_the_analyst() -> None:
    holed = PERIODS.append(pd.period_range("2023-02", periods=1, freq="M"))[1:]
    made = loads(dumps(MAKE.release(Donors.from_arrays(ROWS, times=list(holed)))))
    assert made.times.equals(holed)
    assert json.loads(dumps(made))["periods"]["values"][-2:] == ["2022-12", "2023-02"]
    result = made.estimate(TARGET, "2022-10")
    assert result.notes == ("in the release, 2023-01 is missing between 2022-12 and 2023-02",)


def test_a_target_is_cut_or_completed_with_a_note() -> None:
    made = released("2022-01")
    usual = made.estimate(TARGET, "2022-09")
    beyond = pd.Series(np.r_[np.nan, TARGET, 7.0, 8.0], index=pd.date_range("2021-10-31", periods=T + 3, freq="ME"))
    result = made.estimate(beyond, "2022-09")
    pd.testing.assert_series_equal(result.gaps, usual.gaps)
    assert result.notes == (
        "the target's 2021-10, before the release begins, is left out",
        "the target's 2023-01 and 2023-02, after the release ends, are left out",
    )
    assert "2023-01" in result.summary()
    short = made.estimate(pd.Series(TARGET[:12], index=written("31/01/2022")[:12]), "30/09/2022")
    assert short.observed.notna().tolist() == [True, True, False, False]
    assert short.notes == ("the target has no number in 2022-11 and 2022-12: no effect is counted there",)
    assert made.estimate(TARGET[:10], "2022-09").notes == ()  # not observed at all, as the answer says
    with pytest.raises(PanelError, match="'Sep-22' is not a date that can be read; write it as 2021-11"):
        made.estimate(TARGET, "Sep-22")
    pd.testing.assert_series_equal(short.counterfactual, usual.counterfactual)
    with pytest.raises(ReleaseError, match="no number in periods 2022-07 and 2022-08, before the intervention"):
        made.estimate(pd.Series(TARGET[:8], index=PERIODS[:8]), "2022-09")


def test_sites_that_write_months_in_their_own_ways_merge() -> None:
    one = replace(MAKE, seed=1).release(Donors.from_arrays(ROWS[:30], times=written("Jan 2022")))
    other = replace(MAKE, seed=2).release(Donors.from_arrays(ROWS[30:], times=written("month ends")))
    assert Release.merge([one, other], disjoint=True).times.equals(PERIODS)
    later = replace(MAKE, seed=2).release(Donors.from_arrays(ROWS[30:], times=list(PERIODS + 1)))
    with pytest.raises(ReleaseError, match="differ in their periods"):
        Release.merge([one, later], disjoint=True)
    weeks = pd.period_range("2022-01-03", periods=T, freq="W")
    iso = replace(MAKE, seed=1).release(Donors.from_arrays(ROWS[:30], times=list(weeks)))
    fridays = pd.date_range("2022-01-07", periods=T, freq="7D")
    dated = replace(MAKE, seed=2).release(Donors.from_arrays(ROWS[30:], times=list(fridays)))
    assert Release.merge([iso, dated], disjoint=True).n == 60


@pytest.mark.parametrize("form", MONTHS)
def test_settings_and_a_reference_hold_for_every_form(form: str) -> None:
    path = pd.Series(np.linspace(0, 1, T + 2), index=pd.date_range("2021-10-01", periods=T + 2, freq="MS"))
    agreed = settings.loads(Settings(scale=2.0, directions=5, periods=pd.Index(written(form))).dumps())
    assert agreed.periods is not None
    assert agreed.periods.equals(PERIODS)
    donors = Donors.from_arrays(ROWS, times=written(form))
    made = replace(MAKE, reference=path).release(donors)
    np.testing.assert_allclose(np.asarray(made.reference), path.iloc[1:-1])


def test_a_panel_takes_a_target_in_another_form() -> None:
    frame = long(ROWS[1:], range(1, 60), written("Jan 2022"), ("u", "t", "y"))
    panel = Panel.from_long(
        frame,
        unit="u",
        time="t",
        outcome="y",
        target=pd.Series(TARGET, index=written("31/01/2022")),
        treatment_time="2022-09-30",
    )
    assert panel.T0 == 10
    np.testing.assert_array_equal(panel.target, TARGET)
    assert repr(panel) == "Panel(59 donors × 14 periods, 10 before and 4 after treatment at 2022-09, unbounded)"


@pytest.mark.parametrize(
    ("freq", "form", "first", "last"),
    [
        ("M", "month starts", "2022-09", "2022-12"),
        ("Q-DEC", "starts", "2024Q2", "2025Q1"),
        ("W-SUN", "PeriodIndex", "2022-W04", "2022-W07"),
        ("Y-DEC", "ends", "2031", "2034"),
    ],
)
def test_labels_are_shown_as_people_write_them(freq: str, form: str, first: str, last: str) -> None:
    result = released(form, freq).estimate(pd.Series(TARGET, index=written(form, freq)), written(form, freq)[10])
    files = replace(result, repeats=NoRepeats()).files()
    contents = {"result.json": files.json(), "counterfactual.csv": files.csv()}
    if freq == "W-SUN":  # a page has figures, which take a while; weeks are the hardest to write
        contents["report.html"] = files.html()
    texts = {name: content.decode() for name, content in contents.items()}
    texts["summary"] = result.summary()
    for text in texts.values():
        assert first in text
        assert last in text
        assert "00:00" not in text
    assert texts["counterfactual.csv"].splitlines()[1].startswith((f'"{first}",', f"{first},"))
    assert json.loads(texts["result.json"])["treatment_time"] == first
    assert first in words.span(result)
