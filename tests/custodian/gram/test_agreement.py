"""What one engine accepts or refuses, the others do too; and whatever goes wrong, no cell of a donor is quoted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from dpsc import DpscError, GramRelease
from dpsc.custodian.donors.donor_files import Engine
from dpsc.custodian.gram.dask import client_of
from dpsc.custodian.gram.exact_sum import Products
from dpsc.custodian.gram.sources import sum_of_rows
from dpsc.custodian.scan import scan
from dpsc.tables.spec import TableSpec
from tests.making import SECRET, local_cluster, row_map, save, told, wide

WIDE, LONG = TableSpec("who", wide=True), TableSpec("who", "year", "x")


@pytest.fixture(scope="module")
def scheduler(cluster: Any) -> str:
    return str(cluster.scheduler_address)


Outcome = tuple[np.ndarray[Any, Any], int] | str


def outcome(path: Path, spec: TableSpec, engine: Engine, scheduler: str, **options: Any) -> Outcome:
    """Return the integers and n, or the refusal."""
    try:
        columns = {name: getattr(spec, name) for name in ("unit", "time", "outcome", "wide", "time_format")}
        donors = scan(path, **columns, engine=engine, scheduler=scheduler if engine == "dask" else None, **options)
        made = GramRelease(epsilon=1.0, delta=1e-9, scale=1.0).custodian_sum(donors)
    except DpscError as problem:
        return str(problem)
    return made.total, made.n


def wide_csv(text: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / "t.csv").write_text(text)
        return folder / "t.csv"

    return write


def parquet(**columns: Any) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        pq.write_table(pa.table(columns), folder / "t.parquet")
        return folder / "t.parquet"

    return write


def saved_index(folder: Path) -> Path:
    frame = pd.DataFrame({"who": list("abcd"), "t1": [1.0, 2, 3, 4], "t2": [2.0, 3, 4, 4], "t3": [2.0, 3, 4, 5]})
    frame.iloc[[0, 1, 3]].to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def units_as_index(folder: Path) -> Path:
    frame = pd.DataFrame({"who": list("ab"), "t1": [1.0, 2], "t2": [2.0, 3]})
    frame.set_index("who").to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def late(value: str) -> Callable[[Path], Path]:
    """A CSV of whole numbers, long enough for its types to have been guessed before the last ones come."""

    def write(folder: Path) -> Path:
        lines = (f"u{i:06d},{t},{value if (i, t) == (39995, 2) else i + t}" for i in range(40000) for t in (1, 2, 3))
        return wide_csv("who,year,x\n" + "\n".join(lines) + "\n")(folder)

    return write


def empty_at_first(folder: Path) -> Path:
    lines = (f"u{i:06d},{i},{i + 1},{'' if i < 60000 else 3}" for i in range(60100))
    return wide_csv("who,t1,t2,t3\n" + "\n".join(lines) + "\n")(folder)


def decimals() -> Callable[[Path], Path]:
    numbers = [Decimal(f"{x:.25f}"[:22]) for x in np.random.default_rng(1).uniform(0.1, 1, 200)]
    column = pa.array(numbers, pa.decimal128(25, 20))
    return parquet(who=[f"u{i}" for i in range(200)], **{str(2000 + k): column for k in range(16)})


NULLS = pa.array([1, 1, None, None, 3, 3], pa.int64())
ACCEPTED: dict[str, tuple[Callable[[Path], Path], TableSpec, dict[str, Any]]] = {
    "whole numbers beyond 2^53": (parquet(who=["a", "b"], **{"1": [1, 2**53 + 1], "2": [4, 5]}), WIDE, {}),
    "long, whole numbers beyond 2^53": (parquet(who=[1, 1, 2, 2], year=[1, 2, 1, 2], x=[1, 2**53 + 1, 3, 4]), LONG, {}),
    "decimals": (decimals(), WIDE, {}),
    "row numbers saved with a frame": (saved_index, WIDE, {}),
    "units that were a frame's index": (units_as_index, WIDE, {}),
    "a unit called NA": (wide_csv("who,t1,t2\nNA,1,2\nb,3,4\n"), WIDE, {}),
    "a unit called NA, long": (wide_csv("who,year,x\nNA,1,2\nNA,2,4\nb,1,3\nb,2,5\n"), LONG, {}),
    "a decimal late in a column of whole numbers": (late("7.5"), LONG, {}),
    "a period that is empty at first": (empty_at_first, WIDE, {"missing": "interpolate"}),
    "hours of the day": (wide_csv("who,year,x\na,08:00,2\na,09:00,4\nb,08:00,3\nb,09:00,5\n"), LONG, {}),
    "years with a point": (wide_csv("who,year,x\na,2001.0,2\na,2002.0,4\nb,2001.0,3\nb,2002.0,5\n"), LONG, {}),
    "null as unit": (parquet(who=NULLS, year=[1, 2] * 3, x=[1.0, 2, 3, 4, 5, 6]), LONG, {}),
    "not a number as unit": (parquet(who=[1.0, np.nan], t1=[1.0, 2], t2=[2.0, 3]), WIDE, {}),
    "an empty name as unit": (wide_csv("who,t1,t2\n,1,2\nb,3,4\n"), WIDE, {}),
    "None among numbers": (wide_csv("who,t1,t2\na,None,2\nb,3,<NA>\n"), WIDE, {"missing": "interpolate"}),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_all_engines_accept_it_and_give_the_same_integers(case: str, scheduler: str, tmp_path: Path) -> None:
    make, spec, options = ACCEPTED[case]
    path = make(tmp_path)
    memory, stream, dask = (
        outcome(path, spec, engine, scheduler, **options) for engine in ("memory", "stream", "dask")
    )
    assert not isinstance(memory, str), memory
    for other in (stream, dask):
        assert not isinstance(other, str), other
        assert other[1] == memory[1]
        np.testing.assert_array_equal(other[0], memory[0])


REFUSED: dict[str, tuple[Callable[[Path], Path], TableSpec, dict[str, Any]]] = {
    "a row without a unit and no other": (wide_csv("who,t1,t2\n,1,2\n"), WIDE, {}),
    "a cell twice, and missing cells refused": (wide_csv("who,year,x\na,1,2\na,1,4\na,2,4\n"), LONG, {}),
    "a unit in two rows, and missing cells refused": (wide_csv("who,t1,t2\na,1,2\nb,3,4\na,1,2\n"), WIDE, {}),
    "text among numbers": (late(f"{SECRET}x"), LONG, {}),
    "text among numbers, wide": (wide_csv(f"who,t1,t2\na,1,{SECRET} EUR\nb,3,4\n"), WIDE, {}),
    "no header": (wide_csv(f"who1,{SECRET},4.5\nwho2,3.5,1.25\n"), WIDE, {}),
    "more fields than names": (wide_csv(f"who,1,2,3\na,1,2,3,{SECRET}\nb,3,4,5,9\n"), WIDE, {}),
    "row numbers saved in a CSV": (wide_csv("Unnamed: 0,who,t1\n0,a,1\n1,b,2\n".replace("Unnamed: 0", "")), WIDE, {}),
    "no rows": (parquet(who=pa.array([], pa.string()), t1=pa.array([], pa.float64())), WIDE, {}),
    "no rows, long": (
        parquet(who=pa.array([], pa.string()), year=pa.array([], pa.int64()), x=pa.array([], pa.float64())), LONG, {},
    ),
    "all units excluded": (wide_csv("who,t1,t2\na,1,2\nb,3,4\n"), WIDE, {"exclude": ("a", "b")}),
    "a way to fill that is none": (wide_csv("who,t1,t2\na,1,2\nb,3,4\n"), WIDE, {"missing": "guess"}),
    "the middle of no bounds": (wide_csv("who,t1,t2\na,1,2\nb,3,4\n"), WIDE, {"missing": "midpoint"}),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_all_engines_refuse_it_in_our_own_words(
    case: str, scheduler: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    make, spec, options = REFUSED[case]
    path = make(tmp_path)
    for engine in ("memory", "stream", "dask"):
        said = outcome(path, spec, engine, scheduler, **options)
        assert isinstance(said, str), engine
        assert not told(said)
    printed = capfd.readouterr()
    assert not told(printed.out, printed.err)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_hidden_files_of_a_folder_are_left_alone(kind: str, scheduler: str, tmp_path: Path) -> None:
    for name, unit in (("a", "a"), (".old", "b"), ("_c", "c"), ("_tmp/d", "d")):
        file = tmp_path / f"{name}.{kind}"
        file.parent.mkdir(exist_ok=True)
        frame = pd.DataFrame({"who": [unit] * 2, "year": [1, 2], "x": [1.0, 2.0]})
        save(frame, file)
    for engine in ("stream", "dask"):
        made = outcome(tmp_path, LONG, engine, scheduler)
        assert not isinstance(made, str), made
        assert made[1] == 1


def test_what_is_said_by_the_names_of_folders_cannot_be_a_unit(scheduler: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"who": ["a", "b"], "t1": [1.0, 2], "t2": [3.0, 4]})
    pq.write_to_dataset(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "d", partition_cols=["who"])
    for engine in ("stream", "dask"):
        said = outcome(tmp_path / "d", WIDE, engine, scheduler)
        assert isinstance(said, str)
        assert "'who' is in the names of its folders" in said


def test_a_folder_with_files_of_two_kinds_is_refused_by_their_names(tmp_path: Path) -> None:
    parquet(who=["a"], t1=[1.0])(tmp_path)
    (tmp_path / "README.txt").write_text("hello\n")
    said = outcome(tmp_path, WIDE, "stream", "")
    assert isinstance(said, str)
    assert "README.txt" in said
    assert "t.parquet" in said


def test_a_relative_path_is_the_custodians_not_the_workers(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide_csv("who,t1,t2\na,1,2\nb,3,5\n")(tmp_path)
    monkeypatch.chdir(tmp_path)  # where the workers are not
    made = outcome(Path("t.csv"), WIDE, "dask", scheduler)
    assert not isinstance(made, str), made
    assert made[1] == 2


def test_damaged_pages_are_found_if_the_file_has_checksums(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"who": np.arange(5000), "t1": rng.normal(size=5000), "t2": rng.normal(size=5000)})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    assert not isinstance(outcome(path, WIDE, "stream", ""), str)
    data = bytearray(path.read_bytes())
    data[60000:60008] = bytes(8)  # a donor's number, and still a number
    path.write_bytes(data)
    said = outcome(path, WIDE, "stream", "")
    assert isinstance(said, str)
    assert "t.parquet: it cannot be read" in said


def test_a_scheduler_without_workers_is_named() -> None:
    with (
        local_cluster(workers=0) as no_workers,
        pytest.raises(DpscError, match="has no workers"),
        client_of(no_workers.scheduler_address, None),
    ):
        pass


def test_a_kernel_that_shows_last_bits() -> None:
    """Steps at T = 17 lie on the edge of truncation: a last bit that differs shows in the integers."""
    levels = np.random.default_rng(0).uniform(0.1, 1, 300)
    rows = np.where(np.arange(17) < 1, 0.0, levels[:, np.newaxis])
    for directions in (16, 5):
        products = Products(row_map(17, "none", directions=directions, constant=1e-30))
        total = sum_of_rows(rows, products)
        for block in (1, 2, 7):
            np.testing.assert_array_equal(sum_of_rows(rows, products, block=block), total)


def test_all_engines_make_the_same_release_of_a_few_directions(scheduler: str, tmp_path: Path) -> None:
    """Seeded, so that matrices can be compared: with a scale that is given, and with one that is counted."""
    rng = np.random.default_rng(1)
    values = np.round(rng.normal(size=(700, 12)).cumsum(axis=1) * 10.0 ** rng.integers(-3, 4, (700, 1)), 6)
    path = save(wide(values), tmp_path / "t.csv")
    counting = GramRelease(epsilon=1.0, delta=1e-6, seed=2)
    engines: tuple[Engine, ...] = ("memory", "stream", "dask")
    for make in (counting, replace(counting, scale=3.0, directions=4)):
        releases = [make.release(values)]
        for engine in engines:
            address = scheduler if engine == "dask" else None
            releases.append(make.release(scan(path, unit="who", wide=True, engine=engine, scheduler=address)))
        for release in releases[1:]:
            np.testing.assert_array_equal(release.matrix, releases[0].matrix)
            assert release.row_map.same_as(releases[0].row_map)
            assert release.scale == releases[0].scale
