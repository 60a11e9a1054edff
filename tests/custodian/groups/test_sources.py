"""People in a frame, in files of all kinds and on a cluster add up to the same integers, wherever their rows are."""

from __future__ import annotations

import io
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsc import DpscError, PanelRelease, People, scan
from dpsc.custodian.donors import divided
from dpsc.custodian.donors.divided import Divided
from dpsc.custodian.donors.people import PersonCells, mixed
from dpsc.custodian.donors.records import Grid, keys_of
from dpsc.custodian.gram import dask
from dpsc.custodian.groups import bounding, people_files
from dpsc.custodian.groups.bounding import Bounding, LengthCounts
from dpsc.errors import ParameterError, TableError
from dpsc.periods.calendar import places
from dpsc.periods.declare import declared
from dpsc.release.table_rule import Statistic, TableRule
from dpsc.types import Integers
from tests.making import SECRET, save, told
from tests.soak import quick_or_long

UNITS, PERIODS = ["north", "south", "007"], "2022-01..2022-04"
COLUMNS: dict[str, Any] = {"person": "who", "unit": "region", "time": "day", "outcome": "cost"}
DECLARED: dict[str, Any] = {"units": UNITS, "periods": PERIODS}
MEAN = TableRule("mean", (0.0, 10.0), 9.0, 1, None, 3, 4)


def records(n: int = 600, seed: int = 0) -> pd.DataFrame:
    """Rows in no order: some without a person, some elsewhere, at other times, without a number or far outside."""
    rng = np.random.default_rng(seed)
    who = [f"{i:04}" for i in rng.integers(0, n // 5, n)]
    days = pd.Timestamp("2021-12-15") + pd.to_timedelta(rng.integers(0, 150, n), "D")
    frame = pd.DataFrame(
        {"who": who, "region": rng.choice([*UNITS, "7", "abroad"], n), "day": days.strftime("%Y-%m-%d")}
    )
    cost = rng.normal(5, 4, n).round(2)
    cost[rng.random(n) < 0.02] = 1e9
    return frame.assign(cost=cost, who=frame["who"].where(rng.random(n) > 0.03, ""))


def by_hand(frame: pd.DataFrame, rule: TableRule = MEAN) -> Integers:
    """What one loop over the rows makes of them."""
    bounding, found = Bounding(rule), []
    for row in frame.itertuples():
        month = str(row.day)[:7]
        region = str(row.region)
        if row.who and region in UNITS and month in ("2022-01", "2022-02", "2022-03", "2022-04"):
            amounts, kept = bounding.amounts(np.array([row.cost], dtype=float))
            cell = (int(month[-2:]) - 1) * 3 + UNITS.index(region)
            if kept[0]:
                found.append((int(keys_of(pa.array([row.who]))[0]), cell, int(amounts[0])))
    keys, cells, sums = (list(column) for column in zip(*found, strict=True))
    return bounding.of(PersonCells.of(np.array(keys, np.uint64), np.array(cells), np.array(sums)))


def total(people: Any, rule: TableRule = MEAN) -> Integers:
    seen: list[int] = []
    summed: Integers = people.add_up(Bounding(rule), seen.append)
    assert sum(seen) >= 0
    return summed


def by_length(people: Any) -> Integers:
    counts: Integers = people.add_up(LengthCounts(MEAN), lambda rows: None)
    assert (counts > 0).sum() > 3
    return counts


@pytest.mark.parametrize("statistic", ["mean", "total", "share", "count"])
def test_a_frame_of_any_library_gives_what_a_loop_gives(statistic: Statistic) -> None:
    bounds = (0.0, 10.0) if statistic in ("mean", "total") else None
    rule = TableRule(statistic, bounds, None, 2, 5, 3, 4)
    frame = records()
    wanted = by_hand(frame, rule)
    kinds = [
        frame,
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
        frame.astype({"who": "category", "region": "category"}),
    ]
    for kind in kinds:
        np.testing.assert_array_equal(total(People.from_long(kind, **COLUMNS, **DECLARED), rule), wanted)


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet", "feather", "xlsx"])
def test_every_kind_of_file_gives_the_same_integers(kind: str, tmp_path: Path) -> None:
    frame = records()
    path = save(frame, tmp_path / f"records.{kind}")
    for engine in ("auto", "memory") if kind == "xlsx" else ("auto", "memory", "stream"):
        people = scan(path, **COLUMNS, **DECLARED, engine=engine)
        np.testing.assert_array_equal(total(people), by_hand(frame))
        np.testing.assert_array_equal(by_length(people), by_length(People.from_long(frame, **COLUMNS, **DECLARED)))


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_rows_of_a_person_may_be_in_several_files_and_blocks(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Divided, "at_once", 64)
    monkeypatch.setattr(divided, "_OF_A_PART", 16)
    frame, folder = records(), tmp_path / "records"
    folder.mkdir()
    for number in range(4):
        save(frame.sample(frac=1, random_state=3)[number::4], folder / f"{number}.parquet")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    np.testing.assert_array_equal(total(scan(folder, **COLUMNS, **DECLARED, engine=engine)), by_hand(frame))
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_cluster_gives_the_same_integers(
    kind: str, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "PIECE_CELLS", 200)  # several pieces
    frame = records()
    path = save(frame, tmp_path / f"records.{kind}")
    people = scan(path, **COLUMNS, **DECLARED, engine="dask", scheduler=cluster.scheduler_address)
    np.testing.assert_array_equal(total(people), by_hand(frame))
    np.testing.assert_array_equal(by_length(people), by_length(People.from_long(frame, **COLUMNS, **DECLARED)))
    counted = scan(path, **COLUMNS | {"outcome": None}, **DECLARED, scheduler=cluster.scheduler_address)
    with pytest.raises(ParameterError, match="outcome="):
        total(counted)


def test_a_cluster_quotes_no_cell(cluster: Any, tmp_path: Path) -> None:
    frame = records().astype({"cost": object})
    frame.loc[3, "cost"] = f"secret {SECRET}"
    path = save(frame, tmp_path / "records.csv")
    with pytest.raises(DpscError) as caught:
        total(scan(path, **COLUMNS, **DECLARED, scheduler=cluster.scheduler_address))
    assert not told(str(caught.value))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_identifiers_are_text_and_never_numbers(kind: str, tmp_path: Path) -> None:
    """One missing identifier must not merge 123456789012345678 and ...679, nor 007 and 7."""
    who = ["123456789012345678", "123456789012345679", "", "007", "7"]
    frame = pd.DataFrame({"who": who, "region": "north", "day": "2022-01-05", "cost": 1.0})
    rule = TableRule("count", None, None, 1, None, 3, 4)
    path = save(frame, tmp_path / f"records.{kind}")
    wanted = 4 * rule.ends_steps[1]
    assert total(scan(path, **COLUMNS, **DECLARED), rule).sum() == wanted
    assert total(People.from_long(frame, **COLUMNS, **DECLARED), rule).sum() == wanted
    numbers = pa.table(
        {
            "who": pa.array([123456789012345678, 123456789012345679, None, 7, 7]),
            **{name: pa.array(frame[name]) for name in ("region", "day", "cost")},
        }
    )
    assert total(People.from_long(numbers, **COLUMNS, **DECLARED), rule).sum() == 3 * rule.ends_steps[1]


@given(texts=st.lists(st.text(min_size=1, max_size=300), max_size=20), start=st.integers(0, 3))
@settings(max_examples=quick_or_long(100, 2000), deadline=None)
def test_a_hash_belongs_to_the_text_alone(texts: list[str], start: int) -> None:
    array = pa.array(["x" * start, *texts], pa.string()).slice(1)
    alone = [int(keys_of(pa.array([text], pa.large_string()))[0]) for text in texts]
    assert keys_of(array).tolist() == alone
    assert len(set(alone)) == len(set(texts))


def test_the_hash_stays_what_it_is() -> None:
    """Thinned panels of two months must agree on who is who."""
    word = int.from_bytes(b"7", "little")
    assert int(keys_of(pa.array(["7"]))[0]) == int(mixed(mixed(np.array([1], np.uint64)) ^ np.uint64(word))[0])
    known = [16900314130207111004, 5245329656984838775]
    assert keys_of(pa.array(["person-0001", "ä" * 200])).tolist() == known


def test_labels_of_time_may_be_dates_or_moments_of_a_day() -> None:
    days = [datetime(2022, 1, 31, 23, 59, 59), datetime(2022, 2, 1), datetime(1969, 12, 31, 23), None]
    grid = Grid(tuple(UNITS), declared(PERIODS))
    for kind in (pa.timestamp("s"), pa.timestamp("ns"), pa.date32()):
        labels = pa.array(days, pa.timestamp("us")).cast(kind, safe=False)
        assert grid.places_of(labels).tolist() == [0, 1, -1, -1]
        years = Grid(tuple(UNITS), declared("2021..2022"))
        assert years.places_of(labels).tolist() == [1, 1, -1, -1]
    written = pa.array(["2022-01-31", "Feb 2022", "total", None, "2022-01-31"])
    assert grid.places_of(written).tolist() == [0, 1, -1, -1, 0]


NUMBERS = st.integers(0, 61).map("{:02}".format)
MOMENTS = st.tuples(
    st.sampled_from(["2022", "2021", "0000", "9999"]), NUMBERS, NUMBERS, st.sampled_from([" ", "T", "  ", ""]),
    NUMBERS, NUMBERS, st.sampled_from(["", ":00", ":59.5", ":61", ":30Z", ":30+02:00", ":"]),
)  # fmt: skip


@given(parts=st.lists(MOMENTS, min_size=1, max_size=20))
@settings(max_examples=quick_or_long(100, 3000), deadline=None)
def test_a_moment_is_where_its_label_says_whatever_is_cut(parts: list[tuple[str, ...]]) -> None:
    written = [f"{year}-{month}-{day}{gap}{hour}:{minute}{rest}" for year, month, day, gap, hour, minute, rest in parts]
    for periods in (PERIODS, "2021..2022", "2022-01-01..2022-03-31", "2022-W01..2022-W20"):
        grid = Grid(tuple(UNITS), declared(periods))
        assert grid.places_of(pa.array(written)).tolist() == places(written, grid.times).tolist()


def test_units_and_periods_must_be_declared_and_units_be_three(tmp_path: Path) -> None:
    path = save(records(), tmp_path / "records.csv")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"units": UNITS}, "declare periods="),
        ({"periods": PERIODS}, "declare units="),
        ({"units": ["north", "south"], "periods": PERIODS}, "3 to 10,000 units"),
        ({"units": "north,south", "periods": PERIODS}, "list of names"),
        ({"units": ["north", "south", "North "], "periods": PERIODS}, "same name"),
    ]
    for given_, message in cases:
        with pytest.raises(DpscError, match=message):
            scan(path, **COLUMNS, **given_)
    with pytest.raises(ParameterError, match="belong to person"):
        scan(path, unit="region", time="day", outcome="cost", units=UNITS)  # type: ignore[call-overload]
    wrongs: list[dict[str, Any]] = [
        {"wide": True},
        {"bounds": (0, 1)},
        {"missing": "kernel"},
        {"exclude": ["x"]},
        {"repeated": "sum"},
    ]
    for wrong in wrongs:
        with pytest.raises(ParameterError, match="not for people"):
            scan(path, **COLUMNS, **DECLARED, **wrong)


def test_columns_that_are_not_there_are_named(tmp_path: Path) -> None:
    path = save(records(), tmp_path / "records.csv")
    with pytest.raises(TableError, match=r"no column 'whom' \(person=\)"):
        total(scan(path, **COLUMNS | {"person": "whom"}, **DECLARED))
    with pytest.raises(TableError, match="must name different columns"):
        scan(path, **COLUMNS | {"person": "region"}, **DECLARED)
    with pytest.raises(DpscError, match="no column 'whom'"):
        People.from_long(records(), **COLUMNS | {"person": "whom"}, **DECLARED)


def test_only_a_count_needs_no_outcome(tmp_path: Path) -> None:
    frame = records()
    path = save(frame, tmp_path / "records.parquet")
    columns = {name: column for name, column in COLUMNS.items() if name != "outcome"}
    count = TableRule("count", None, None, 1, None, 3, 4)
    for people in (scan(path, **columns, **DECLARED), People.from_long(frame, **columns, **DECLARED)):
        np.testing.assert_array_equal(total(people, count), by_hand(frame, count))
        with pytest.raises(ParameterError, match="which column holds the numbers"):
            total(people)
    made = PanelRelease(epsilon=1, delta=1e-6, statistic="count").release(scan(path, **columns, **DECLARED))
    assert made.outcome == "people"


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_a_cell_that_is_no_number_is_not_quoted(engine: Any, tmp_path: Path) -> None:
    frame = records().astype({"cost": object})
    frame.loc[3, "cost"] = f"secret {SECRET}"
    path = save(frame, tmp_path / "records.csv")
    with pytest.raises(DpscError) as caught:
        total(scan(path, **COLUMNS, **DECLARED, engine=engine))
    assert "column 'cost' holds text" in str(caught.value)
    assert not told(str(caught.value))
    with pytest.raises(DpscError) as caught:
        People.from_long(frame, **COLUMNS, **DECLARED)
    assert not told(str(caught.value))


def test_a_column_may_be_in_the_names_of_folders(tmp_path: Path) -> None:
    frame = records()
    for region, part in frame.groupby("region"):
        (tmp_path / f"region={region}").mkdir()
        save(part.drop(columns="region"), tmp_path / f"region={region}" / "part.parquet")
    np.testing.assert_array_equal(total(scan(tmp_path, **COLUMNS, **DECLARED)), by_hand(frame))


def test_nobody_at_all_adds_nothing(tmp_path: Path) -> None:
    path = save(records().iloc[:0], tmp_path / "records.csv")
    for people in (scan(path, **COLUMNS, **DECLARED), People.from_long(records().iloc[:0], **COLUMNS, **DECLARED)):
        summed = total(people)
        assert summed.shape == (2, 3, 4)
        assert not summed.any()


@pytest.mark.parametrize("in_memory", [True, False])
def test_one_identifier_with_most_records_does_not_fill_the_memory(
    in_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All records without a real identifier, "unknown", are one person's."""
    monkeypatch.setattr(Divided, "at_once", 50)
    largest, real = [0], bounding._people

    def watched(rows: list[Integers]) -> PersonCells:
        largest.append(sum(map(len, rows)))
        return real(rows)

    monkeypatch.setattr(bounding, "_people", watched)
    rule = TableRule("total", (-1e5, 1e5), None, 3, None, 3, 4)  # that nothing is cut by
    frame = records(3000).assign(who="unknown", cost=1.0)
    grid = Grid(tuple(UNITS), declared(PERIODS))
    blocks = [grid.of_frame(part, **COLUMNS) for _, part in frame.groupby(np.arange(len(frame)) // 31)]
    summed = bounding.add_up(blocks, Bounding(rule), lambda rows: None, expected=3000, in_memory=in_memory)
    np.testing.assert_array_equal(summed, by_hand(frame, rule))
    assert 50 < max(largest) < 250


def test_a_full_disk_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = save(records(), tmp_path / "records.parquet")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: Full())
    with pytest.raises(DpscError, match=r"No space left on device\. Set TMPDIR"):
        total(scan(path, **COLUMNS, **DECLARED, engine="stream"))


def test_few_records_are_held_and_many_kept_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(records(), tmp_path / "records.parquet")
    assert scan(path, **COLUMNS, **DECLARED).how == "held in memory"
    monkeypatch.setattr(people_files, "_MOST_HELD", 599 * bounding.WIDTH)
    assert scan(path, **COLUMNS, **DECLARED).how == "kept in a private file meanwhile"


WEIRD = [
    None, "", np.nan, "x", "\ud800", "\x00", b"north", 1, 1.0, 2**70, 1e300, True, pd.NaT, pd.NA, date(2022, 1, 1),
    datetime(2022, 1, 1, tzinfo=UTC), pd.Timestamp("2022-01-01"), pd.Period("2022"), Decimal("1.5"), (1, 2), [1],
    {"a": 1}, object(), "1.234", "2,5", "1e5", "01/02/2022", "13/01/2022", np.float32(1), np.datetime64("2022"), 1j,
]  # fmt: skip


def as_bytes(label: str) -> bytes:
    return label.encode()


@pytest.mark.parametrize("column", ["who", "region", "day", "cost"])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("written", [str, as_bytes, "category"])
def test_nothing_that_one_person_writes_changes_how_others_are_read(column: str, first: bool, written: Any) -> None:
    """A row of somebody elsewhere adds nothing, whatever is in it; or it is refused in a sentence.

    Labels of the others are text, or bytes, also as categories.
    """
    others = records(60).astype(object)
    labels = ["who", "region"]
    others[labels] = others[labels].map(str if written is str else as_bytes)
    others["day"] = others["day"].where(others.index % 2 == 0, others["day"].str.replace("-", "/"))
    alone, same = total(People.from_long(others, **COLUMNS, **DECLARED)), 0
    for weird in WEIRD:
        row = {"who": "z", "region": "abroad", "day": "2022-02-03", "cost": 1.0} | {column: weird}
        one = pd.DataFrame({name: pd.Series([value], dtype=object) for name, value in row.items()})
        if column == "region":
            one["who"] = ""
        both = pd.concat([one, others] if first else [others, one], ignore_index=True)
        try:
            if written == "category" and column in labels and not isinstance(weird, tuple | list | dict):
                both[column] = both[column].astype("category")
            together = total(People.from_long(both, **COLUMNS, **DECLARED))
        except DpscError:
            continue
        same += 1
        assert np.array_equal(together, alone), weird
    assert same >= (10 if column == "cost" else len(WEIRD))
