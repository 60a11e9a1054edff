"""The exact integers are the same from every kind of file, block size, order and engine."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsc import Donors, GramRelease, scan
from dpsc.custodian.donors import divided
from dpsc.custodian.donors.divided import Divided
from dpsc.custodian.donors.donor_files import Files
from dpsc.custodian.donors.frames import text_of
from dpsc.custodian.gram import exact_sum
from dpsc.custodian.gram.exact_sum import Counts, Products, Summand
from dpsc.custodian.gram.sources import FileDonors, source_of
from dpsc.errors import PanelError, TableError
from dpsc.periods.declare import declared
from dpsc.release.kernel import Kernel
from dpsc.tables import formats, reader, table_file
from dpsc.tables.spec import TableSpec
from dpsc.types import Array, Integers
from tests.making import long, row_map, save, wide

N, T = 237, 9
WIDE, LONG = TableSpec("who", wide=True), TableSpec("who", "week", "cost")
PRODUCTS = Products(row_map(T, directions=5))


@pytest.fixture(scope="module")
def donors() -> Array:
    return np.round(np.random.default_rng(0).normal(size=(N, T)).cumsum(axis=1), 6)


def expected(donors: Array, summand: Summand = PRODUCTS) -> Integers:
    return source_of(donors).add_up(summand, lambda rows: None)[0]


def streamed(path: Path, spec: TableSpec, summand: Summand = PRODUCTS, **options: Any) -> tuple[Integers, int]:
    return FileDonors(Files(path, spec, **options)).add_up(summand, lambda rows: None)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "feather"])
@pytest.mark.parametrize("spec", [WIDE, LONG], ids=["wide", "long"])
def test_every_kind_of_file_gives_the_same_integers(donors: Array, tmp_path: Path, kind: str, spec: TableSpec) -> None:
    path = save(wide(donors) if spec.wide else long(donors), tmp_path / f"donors.{kind}")
    total, n = streamed(path, spec)
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))


@pytest.mark.parametrize("size", [1, 7, 50, 100_000])
@pytest.mark.parametrize("spec", [WIDE, LONG], ids=["wide", "long"])
def test_any_size_of_block_gives_the_same_rows(donors: Array, tmp_path: Path, size: int, spec: TableSpec) -> None:
    path = save(wide(donors) if spec.wide else long(donors), tmp_path / "donors.parquet")
    files = Files(path, spec)
    blocks = files.blocks(size, files.identities())
    written = [block(np.empty((T, size))) for block in blocks]
    np.testing.assert_array_equal(np.hstack(written), donors.T)


def test_a_large_row_group_is_read_in_parts(donors: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet's usual row group has a million rows; it need not fit into memory at once."""
    monkeypatch.setattr(table_file, "_LARGE_GROUP", 20 * T)
    path = tmp_path / "donors.parquet"
    pq.write_table(pa.Table.from_pandas(wide(donors)).select([5, 0, 3, 1, 2, 4, 6, 7, 8, 9]), path)
    files = Files(path, WIDE)
    blocks = files.blocks(20, files.identities())
    assert [block(np.empty((T, 20))).shape[1] for block in blocks] == [20] * 11 + [17]
    total, n = streamed(path, WIDE)
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))


def test_a_block_whose_units_are_all_excluded_adds_nothing(donors: Array, tmp_path: Path) -> None:
    path = save(wide(donors), tmp_path / "donors.parquet")  # in row groups of fifty
    first = tuple(f"p{i:05}" for i in range(50))
    total, n = streamed(path, WIDE, exclude=first)
    assert n == N - 50
    np.testing.assert_array_equal(total, expected(donors[50:]))


def test_a_partitioned_folder_is_one_table_in_any_order(donors: Array, tmp_path: Path) -> None:
    folder = tmp_path / "donors"
    frame = wide(donors[::-1]).assign(region=["north", "south", "west"] * (N // 3))
    pq.write_to_dataset(pa.Table.from_pandas(frame), folder, partition_cols=["region"])
    total, n = streamed(folder, WIDE)
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))
    for region, part in frame.groupby("region"):
        (tmp_path / "csv" / f"region={region}").mkdir(parents=True)
        save(part.drop(columns="region"), tmp_path / "csv" / f"region={region}" / "part.csv")
    total, n = streamed(tmp_path / "csv", WIDE)
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))


def test_a_donor_split_between_two_files_is_put_together(donors: Array, tmp_path: Path) -> None:
    table = long(donors)
    (tmp_path / "d").mkdir()
    save(table.iloc[:1000], tmp_path / "d" / "part-1.parquet")  # 1000 is within a donor's nine rows
    save(table.iloc[1000:], tmp_path / "d" / "part-2.parquet")
    total, n = streamed(tmp_path / "d", LONG)
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))


def test_a_release_from_files_is_the_release_of_their_donors(donors: Array, tmp_path: Path) -> None:
    path = save(wide(donors), tmp_path / "donors.parquet")
    for options in ({"scale": 2.0}, {"scale": 2.0, "directions": 4}, {"like": donors[0]}):
        make = GramRelease(epsilon=1.0, delta=1e-6, seed=4, **options)
        from_file, from_array = make.release(FileDonors(Files(path, WIDE))), make.release(donors)
        np.testing.assert_array_equal(from_file.matrix, from_array.matrix)
        assert from_file.scale == from_array.scale
    assert from_file.times.tolist() == [f"w{t}" for t in range(1, T + 1)]
    assert from_file.n == N


def test_missing_cells_bounds_and_excluded_units_are_treated_as_in_memory(donors: Array, tmp_path: Path) -> None:
    holes = donors.copy()
    holes[5, 3] = holes[7, 0] = np.nan
    weeks = declared([f"w{t}" for t in range(1, T + 1)])
    for spec, frame, periods in ((WIDE, wide(holes), None), (LONG, long(holes).dropna(), weeks)):
        path = save(frame, tmp_path / f"{spec.wide}.parquet")
        with pytest.raises(PanelError, match=r"has no value in period w|does not have a row for every period"):
            streamed(path, spec)
        filled = replace(spec, missing="interpolate")
        options: dict[str, Any] = {"bounds": (-2, 2), "exclude": ("p00009",)}
        rows = Donors.from_arrays(np.delete(holes, 9, axis=0), missing="interpolate", bounds=(-2, 2))
        for held in (False, True):
            total, n = streamed(path, filled, **options, periods=periods, held=held)
            assert n == N - 1
            np.testing.assert_array_equal(total, expected(rows.values))


def test_a_person_with_two_rows_is_refused_where_missing_cells_are(donors: Array, tmp_path: Path) -> None:
    frame = wide(donors)
    frame.loc[200, "who"] = "p00003"
    with pytest.raises(PanelError, match="several rows for it, which count as none"):
        streamed(save(frame, tmp_path / "twice.parquet"), WIDE)
    table = long(donors)
    with pytest.raises(PanelError, match="several rows for it, which count as none"):
        streamed(save(pd.concat([table.iloc[:1], table]), tmp_path / "long.parquet"), LONG)
    table.loc[4, "week"] = "w1"  # and no row for w5
    with pytest.raises(TableError, match="does not have a row for every period"):
        streamed(save(table, tmp_path / "long.parquet"), LONG)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_rows_of_a_donor_are_together_in_whatever_order(donors: Array, tmp_path: Path, kind: str) -> None:
    """Sorted by a numeric identifier, as text not sorted at all; periods within a donor in any order."""
    table = long(donors)
    table["who"] = table["who"].str[1:].astype(int) + 995  # 1000 comes after 999, and as text before it
    mixed = table.sample(frac=1, random_state=0).sort_values("who", kind="stable")
    for frame in (table, mixed, mixed.iloc[::-1]):
        path = save(frame, tmp_path / f"numbers.{kind}")
        for held in (False, True):
            total, n = streamed(path, LONG, held=held)
            assert n == N
            np.testing.assert_array_equal(total, expected(donors))


def by_month(donors: Array, folder: Path) -> Path:
    """Save a file for each period, with every donor in each: the usual layout of exports."""
    folder.mkdir()
    for period, rows in long(donors).groupby("week"):
        save(rows, folder / f"{period}.parquet")
    return folder


@pytest.mark.parametrize("layout", ["shuffled", "a file for each period", "two halves far apart"])
@pytest.mark.parametrize("pieces", [None, 64], ids=["as usual", "in many pieces"])
def test_a_long_table_in_any_order_gives_the_same_integers_in_a_stream(
    donors: Array, tmp_path: Path, layout: str, pieces: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if pieces is not None:
        monkeypatch.setattr(reader, "ROWS_AT_ONCE", 100)
        monkeypatch.setattr(Divided, "at_once", pieces)
        monkeypatch.setattr(divided, "_OF_A_PART", pieces)
    table = long(donors)
    if layout == "shuffled":
        path = save(table.sample(frac=1, random_state=0), tmp_path / "mixed.parquet")
    elif layout == "two halves far apart":
        path = save(pd.concat([table.iloc[3:], table.iloc[:3]]), tmp_path / "halves.parquet")
    else:
        path = by_month(donors, tmp_path / "months")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "private"))
    (tmp_path / "private").mkdir(mode=0o700)
    files = Files(path, LONG)
    total, n = FileDonors(files).add_up(PRODUCTS, lambda rows: None)
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))
    assert files.how == "kept in a private file meanwhile"
    assert not list((tmp_path / "private").iterdir())  # it has no name
    np.testing.assert_array_equal(streamed(path, LONG, held=True)[0], total)


def test_rows_in_any_order_follow_the_rules_of_those_that_are_together(donors: Array, tmp_path: Path) -> None:
    """Excluded units, several rows for a cell, rows without a unit, periods outside, and units with no other rows."""
    table = long(donors).assign(row=np.arange(N * T))
    again = table.iloc[::7].assign(cost=lambda rows: rows["cost"] + 1.0, row=lambda rows: rows["row"] + 0.5)
    nobody, outside = table.iloc[:9].assign(who=None), table.iloc[:5].assign(who="late", week="w99")
    table = pd.concat([table, again, nobody, outside]).sort_values(["who", "row"]).drop(columns="row")
    path = save(table, tmp_path / "sorted.parquet")
    turned = table.groupby(table.groupby(["who", "week"], dropna=False).cumcount(), sort=True)
    mixed = save(pd.concat([rows.sample(frac=1, random_state=1) for _, rows in turned]), tmp_path / "mixed.parquet")
    periods = declared([f"w{t}" for t in range(1, T)])
    counts = Counts(T - 1, Kernel.named("high"), None)
    for rule in ("missing", "sum", "mean", "last"):
        for summand in (Products(row_map(T - 1, directions=5)), counts):
            spec = replace(LONG, repeated=rule, missing="kernel")
            options: dict[str, Any] = {"periods": periods, "exclude": ("p00003", "p00100")}
            one, n = streamed(path, spec, summand, **options)
            other, m = streamed(mixed, spec, summand, **options)
            assert n == m == N + 1 - 2
            np.testing.assert_array_equal(one, other)
    with pytest.raises(TableError, match="not every unit of exclude"):
        streamed(mixed, replace(LONG, missing="kernel"), counts, periods=periods, exclude=("p00003", "nobody"))


def test_rows_that_move_while_they_are_read_are_refused(
    donors: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_sum, "BLOCK_CELLS", 10 * T)  # so that the two halves are in different blocks
    table = long(donors)
    files = Files(save(table, tmp_path / "donors.parquet"), LONG, periods=declared([f"w{t}" for t in range(1, T + 1)]))
    together = files._looked_at
    save(pd.concat([table.iloc[3:], table.iloc[:3]]), tmp_path / "donors.parquet")
    fresh = Files(files.path, files.spec, periods=files.periods)
    vars(fresh)["_looked_at"] = together
    with pytest.raises(TableError, match=r"moved while they were read; nothing was released\."):
        FileDonors(fresh).add_up(Products(row_map(T, directions=5)), lambda rows: None)


def test_a_corrupt_file_in_a_folder_is_named_and_nothing_of_it_shown(donors: Array, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    save(wide(donors[:100]), folder / "good.parquet")
    save(wide(donors).iloc[100:], folder / "late.parquet")
    data = bytearray((folder / "late.parquet").read_bytes())
    data[200:900] = b"\x00" * 700  # within a page of data: the footer is whole
    (folder / "late.parquet").write_bytes(data)
    with pytest.raises(TableError, match=r"late\.parquet: it cannot be read"):
        streamed(folder, WIDE)
    (folder / "late.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(TableError, match=r"late\.parquet: it cannot be read"):
        streamed(folder, WIDE)


@pytest.mark.parametrize(
    ("frame", "spec", "problem"),
    [
        (pd.DataFrame({"who": ["a"], "region": ["x"], "w1": [1.0]}), WIDE, "'region' does not look like a period"),
        (pd.DataFrame({"who": ["a"], "w1": ["12 EUR"]}), WIDE, "column 'w1' holds text in row 1"),
        (pd.DataFrame({"who": ["a"]}), WIDE, "no columns of periods"),
        (pd.DataFrame({"whom": ["a"], "w1": [1.0]}), WIDE, "Did you mean 'whom'"),
        (pd.DataFrame({"who": ["a"], "week": [None], "cost": [1.0]}), LONG, "row 1 has no period"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(frame: pd.DataFrame, spec: TableSpec, problem: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=problem):
        streamed(save(frame, tmp_path / "t.parquet"), spec)


def test_progress_counts_every_donor(donors: Array, tmp_path: Path) -> None:
    for spec, frame in ((WIDE, wide(donors)), (LONG, long(donors))):
        for kind in ("parquet", "csv"):
            files = Files(save(frame, tmp_path / f"t.{kind}"), spec)
            seen: list[int] = []
            FileDonors(files).add_up(PRODUCTS, seen.append)
            assert sum(seen) == N
            assert files.rows_expected() == pytest.approx(N, rel=0 if kind == "parquet" else 0.15)


def test_units_taken_for_periods_are_not_published(donors: Array, tmp_path: Path) -> None:
    frame = long(donors).rename(columns={"who": "week", "week": "who"}).sort_values("who")
    with pytest.raises(TableError, match="are the two swapped"):
        streamed(save(frame, tmp_path / "swapped.parquet"), LONG, Products(row_map(N)))


def test_no_warning_depends_on_a_donor(donors: Array, tmp_path: Path) -> None:
    """Warnings are errors here: values whose sums overflow are worked on in silence, on threads too."""
    huge = donors.copy()
    huge[5], huge[6, ::2] = 1e308, 1e308
    huge[6, 1::2] = np.nan
    path = save(wide(huge), tmp_path / "huge.parquet")
    total, n = streamed(path, replace(WIDE, missing="interpolate"))
    assert n == N
    assert total.trace() > 0
    counting = GramRelease(epsilon=1.0, delta=1e-6, like=donors[0])
    assert counting.release(FileDonors(Files(path, replace(WIDE, missing="interpolate")))).n == N


@pytest.mark.parametrize("spec", [WIDE, LONG], ids=["wide", "long"])
def test_counts_are_the_same_from_a_file_as_from_an_array(donors: Array, tmp_path: Path, spec: TableSpec) -> None:
    path = save(wide(donors) if spec.wide else long(donors), tmp_path / "donors.csv")
    summand = Counts(T, PRODUCTS.row_map.kernel, np.linspace(0, 1, T))
    total, n = streamed(path, spec, summand)
    assert n == N == total.sum()
    np.testing.assert_array_equal(total, expected(donors, summand))


@pytest.mark.parametrize("kind", ["csv", "feather", "parquet", "row groups", "categories", "numbers"])
def test_a_table_in_any_order_is_held_as_its_frame_is_read(kind: str, tmp_path: Path) -> None:
    """Labels are told apart once for each part of a file, whatever order a file keeps its different labels in."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"who": np.repeat([f"u{i % 7}{i}" for i in range(60)], 5), "t": np.tile(range(5), 60)})
    frame["x"] = rng.normal(size=300)
    frame = frame.iloc[rng.permutation(300)].reset_index(drop=True)
    frame.loc[[4, 50], "who"] = [None, ""]
    if kind == "numbers":
        frame["who"] = frame["who"].str[2:].replace("", None).astype(float)
    path = tmp_path / f"t.{kind if kind in ('csv', 'feather') else 'parquet'}"
    written = frame
    if kind == "categories":
        written = frame.assign(who=pd.Categorical(frame.who, sorted(set(frame.who.dropna()) | {"nobody", "v"})))
    if path.suffix == ".parquet":
        written.to_parquet(path, row_group_size=300 if kind == "parquet" else 41)
    else:
        written.to_csv(path, index=False) if kind == "csv" else written.to_feather(path)
    files = scan(path, unit="who", time="t", outcome="x", periods="0..4").files
    read = Donors.from_long(frame, unit="who", time="t", outcome="x", periods="0..4")
    held = files.matrix()
    assert files.in_memory
    np.testing.assert_array_equal(held.values, read.values)
    assert [text_of(label) for label in held.units] == [text_of(label) for label in read.labels]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "feather", "folder"])
def test_the_default_engine_goes_by_the_sizes_of_the_files(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame({"who": list("abab"), "t": [1, 1, 2, 2], "x": [1.0, 2.0, 3.0, 4.0]})
    path = tmp_path / ("folder" if kind == "folder" else f"t.{kind}")
    if kind == "folder":
        path.mkdir()
        frame.to_csv(path / "one.csv", index=False)
    else:
        save(frame, path) if kind != "csv.gz" else frame.to_csv(path, index=False)

    def opened(free: float) -> FileDonors:
        monkeypatch.setattr("dpsc.tables.formats.free_memory", lambda: free)
        donors = scan(path, unit="who", time="t", outcome="x")
        assert isinstance(donors, FileDonors)
        return donors

    held, stream = opened(2.0**30), opened(2.0**30)
    assert held.files.how == "held in memory"
    assert held.add_up(Counts(2, Kernel.named("high"), None), lambda rows: None)[1] == 2
    stream = opened(60.0)
    assert stream.files.how == "read as a stream"
    assert stream.add_up(Counts(2, Kernel.named("high"), None), lambda rows: None)[1] == 2
    assert stream.files.how == "kept in a private file meanwhile"
    made = frame.sort_values("who")
    assert table_file.fits_in_memory(reader.files_at(path), wide=False) is False
    if path.suffix == ".parquet":  # what it holds makes no difference
        made.to_parquet(path)
        assert table_file.fits_in_memory(reader.files_at(path), wide=False) is False


def test_free_memory_is_what_the_group_of_this_process_and_those_around_it_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slice" / "job").mkdir(parents=True)
    for group, most, used in (("slice", 5000, 1000), ("slice/job", "max", 1000), (".", 9000, 1000)):
        (tmp_path / group / "memory.max").write_text(f"{most}\n")
        (tmp_path / group / "memory.current").write_text(f"{used}\n")
    (tmp_path / "own").write_text("4:memory:/old\n0::/slice/job\n")
    monkeypatch.setattr(formats, "_GROUPS", tmp_path)
    monkeypatch.setattr(formats, "_OWN_GROUP", tmp_path / "own")
    assert formats.free_memory() == 4000
    (tmp_path / "own").write_text("0::/\n")
    assert formats.free_memory() == 8000
    monkeypatch.setattr(formats, "_OWN_GROUP", tmp_path / "none")
    assert formats.free_memory() == 8000


def test_a_table_is_opened_and_pivoted_once_for_all_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpsc.custodian.donors import cells

    path = tmp_path / "t.parquet"
    values = np.random.default_rng(0).normal(size=(2000, 6)).cumsum(axis=1)
    frame = pd.DataFrame({"who": np.tile(range(2000), 6), "t": np.repeat(range(6), 2000), "x": values.T.ravel()})
    frame.to_parquet(path)
    happened: list[str] = []
    for place, name in ((cells, "pivot"), (cells, "factorize"), (reader, "open_table"), (reader, "rows_of")):
        real = getattr(place, name)

        def recording(*given: Any, real: Any = real, name: str = name, **named: Any) -> Any:
            happened.append(name)
            return real(*given, **named)

        monkeypatch.setattr(place, name, recording)
    GramRelease(epsilon=1.0, delta=1e-6).release(scan(path, unit="who", time="t", outcome="x"))
    assert sorted(happened) == ["factorize", "open_table", "pivot", "rows_of"]
