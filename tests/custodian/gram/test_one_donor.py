"""What one donor's rows or file look like changes that donor's own contribution, and nothing else."""

from __future__ import annotations

import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsc import Donors, DpscError, GramRelease, OutputPerturbation, Panel, PanelError, scan
from dpsc.custodian.donors import blocks
from dpsc.custodian.donors.donor_files import Engine
from dpsc.custodian.gram import dask as workers
from dpsc.custodian.gram import exact_sum, sources
from dpsc.custodian.gram.algorithm import CustodianSum
from dpsc.custodian.gram.exact_sum import Counts
from dpsc.release.kernel import Kernel
from dpsc.tables.spec import Repeated
from dpsc.types import Array, Integers
from tests.making import save
from tests.soak import quick_or_long

ENGINES: tuple[Engine, ...] = ("memory", "stream")
COLUMNS: dict[str, Any] = {"unit": "u", "time": "t", "outcome": "y"}
MAKE = GramRelease(epsilon=1.0, delta=1e-6, scale=1.0)
T = 6


def summed(path: Path, engine: Engine, **options: Any) -> tuple[Integers, int, list[Any]]:
    made = MAKE.custodian_sum(scan(path, **COLUMNS, engine=engine, **options))
    return made.total, made.n, list(made.times)


def moved(one: Integers, other: Integers) -> float:
    """How far the sum moves, where 1 is as far as one donor may move it."""
    difference = (one - other).astype(object)
    return float((difference**2).sum()) / (2 * 16.0**18)


def one_file_per_donor(folder: Path, first: pa.Array, kind: str = "parquet") -> Path:
    """Ten donors near 1e8, a file each, and before them one whose numbers have another type."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(11):
        values = first if i == 0 else pa.array(1e8 + rng.normal(size=T))
        table = pa.table({"u": [f"p{i:02}"] * T, "t": list(range(T)), "y": values})
        path = folder / f"{i:02}.{kind}"
        pq.write_table(table, path) if kind == "parquet" else pyarrow.feather.write_feather(table, path)
    return folder


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize(
    "first",
    [
        pa.array(np.arange(T, dtype=np.float32)),
        pa.array(np.arange(T, dtype=np.int64)),
        pa.array([Decimal(i) for i in range(T)], pa.decimal128(5, 2)),
        pa.array([str(i) for i in range(T)]),
        pa.array(np.arange(T, dtype=np.float64)),
    ],
    ids=["float32", "int64", "decimal", "text", "float64"],
)
def test_the_type_of_one_donors_file_is_not_forced_on_the_others(first: pa.Array, kind: str, tmp_path: Path) -> None:
    """The first file's float32 or decimals used to round every donor: the sum moved 850 times as far as it may."""
    usual = one_file_per_donor(tmp_path / "usual", pa.array(np.arange(T, dtype=np.float64)), kind)
    other = one_file_per_donor(tmp_path / "other", first, kind)
    for engine in ENGINES:
        (one, n, _), (two, m, _) = summed(usual, engine), summed(other, engine)
        assert n == m == 11
        assert moved(one, two) == 0  # the same values, written in another way


def test_files_of_a_folder_with_units_of_several_kinds_are_read_as_text(tmp_path: Path) -> None:
    """Text "01" used to become the number 1, another donor, if the first file had numbers; then it was refused."""
    for name, units in (("a", [1, 1]), ("b", ["01", "01"]), ("c", ["2", "2"]), ("d", [2.0, 3.0])):
        pq.write_table(pa.table({"u": units, "t": [0, 1], "y": [1.0, 2.0]}), tmp_path / f"{name}.parquet")
    for engine in ENGINES:
        assert summed(tmp_path, engine, periods="0..1")[1] == 4  # 1, 01, 2 and 3
    pq.write_table(pa.table({"u": [5, 5], "t": ["0", "1"], "y": [1.0, 2.0]}), tmp_path / "e.parquet")
    for engine in ENGINES:
        with pytest.raises(DpscError, match=r"e\.parquet: column 't' is of another kind than in a\.parquet"):
            summed(tmp_path, engine)


@pytest.mark.parametrize("kind", ["csv", "feather", "parquet"])
def test_a_file_without_the_column_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    for name, outcome in (("a", "y"), ("b", "Y")):
        table = pa.table({"u": [name, name], "t": [0, 1], outcome: [1.0, 2.0]})
        path = tmp_path / f"{name}.{kind}"
        if kind == "csv":
            table.to_pandas().to_csv(path, index=False)
        else:
            pq.write_table(table, path) if kind == "parquet" else pyarrow.feather.write_feather(table, path)
    for engine in ENGINES:
        with pytest.raises(DpscError, match=rf"b\.{kind}: there is no column 'y'"):
            summed(tmp_path, engine, periods="0..1")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv"])
def test_a_quotation_mark_that_is_not_closed_swallows_nobody(ending: str, tmp_path: Path) -> None:
    """An open quotation mark in an unused column used to swallow all donors after it, without a word."""
    mark = "\t" if ending == "tsv" else ","
    for broken in ({8}, {8, 23}):
        lines = [mark.join(("u", "t", "y", "comment"))]
        for i in range(60):
            lines += [
                mark.join((f"p{i:02}", str(t), f"{i + t}", '"oops' if i in broken and t == 1 else "")) for t in (0, 1)
            ]
        text, path = "\n".join(lines) + "\n", tmp_path / f"t.{ending}"
        path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
        for engine in ENGINES:
            with pytest.raises(DpscError, match=r"quotation mark is not closed|cannot be read"):
                summed(path, engine)
    closed = text.replace('"oops', '"a ""fine"", comment"')
    path.write_bytes(gzip.compress(closed.encode()) if ending.endswith("gz") else closed.encode())
    assert all(summed(path, engine)[1] == 60 for engine in ENGINES)


def test_one_donors_type_of_time_does_not_name_the_periods() -> None:
    """1 and 1.0 are equal, and the first row used to decide which of them was published."""
    times = pd.Series([1.0, 2.0, 1, 2], dtype=object)
    frame = pd.DataFrame({"u": list("aabb"), "t": times, "y": [1.0, 2, 3, 4]})
    with pytest.raises(PanelError, match="mix kinds"):
        Donors.from_long(frame, **COLUMNS)
    zones = [pd.Timestamp("2022-01-01", tz="Asia/Tokyo"), pd.Timestamp("2021-12-31 15:00", tz="UTC")]
    frame = pd.DataFrame({"u": list("ab"), "t": pd.Series(zones, dtype=object), "y": [1.0, 2]})
    with pytest.raises(PanelError, match="mix kinds or time zones"):
        Donors.from_long(frame, **COLUMNS)


def test_with_declared_periods_even_a_nearly_empty_table_is_not_refused(tmp_path: Path) -> None:
    """One row more or less of one donor used to decide whether ten thousand sparse donors were refused."""
    donors, days = np.repeat(np.arange(2000), 5), np.tile([0, 400, 2500, 4000, 5900], 2000)
    frame = pd.DataFrame({"u": donors, "t": days, "y": np.arange(10_000.0)})
    frame.to_parquet(tmp_path / "t.parquet")
    options: dict[str, Any] = {"unit": "u", "time": "t", "outcome": "y", "periods": "0..599"}
    totals = [MAKE.custodian_sum(scan(tmp_path / "t.parquet", **options, engine=e)).total for e in ENGINES]
    np.testing.assert_array_equal(totals[0], totals[1])
    np.testing.assert_array_equal(totals[0], MAKE.custodian_sum(Donors.from_long(frame, **options)).total)


def test_labels_that_are_equal_in_python_only_are_kept_apart_or_refused(tmp_path: Path) -> None:
    """Two hours of the same name when clocks are set back, and 0.0 beside -0.0, used to end in an IndexError."""
    hours = pd.date_range("2022-10-30 00:00", periods=5, freq="h", tz="Europe/Berlin").as_unit("us")
    frame = pd.DataFrame({"u": ["a"] * 5 + ["b"] * 5, "t": [*hours, *hours], "y": np.arange(10.0)})
    frame["t"] = pd.DatetimeIndex(frame["t"]).as_unit("us")
    frame.to_parquet(tmp_path / "hours.parquet")
    zeros = pa.table({"u": ["a", "a", "b", "b"], "t": [0.0, 1.0, -0.0, 1.0], "y": [1.0, 2, 3, 4]})
    pq.write_table(zeros, tmp_path / "zeros.parquet")
    for engine in ENGINES:
        for name in ("hours", "zeros"):
            try:
                assert summed(tmp_path / f"{name}.parquet", engine)[1] == 2
            except DpscError:
                assert name == "zeros"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "a", "b", "b"], pa.string_view()),
        pa.array([[1], [1], [2], [2]]),
        pa.array([b"\xff", b"\xff", b"b", b"b"]),
        pa.array([2**31 - 1, 0, 1, 2], pa.int32()).cast(pa.date32()),
        pa.array([0.0, 0.0, -0.0, 1.0], pa.float16()),
    ],
    ids=["view", "list", "bytes", "far dates", "float16"],
)
def test_columns_of_any_type_are_read_or_refused_in_our_own_words(
    column: pa.Array, engine: Engine, tmp_path: Path
) -> None:
    for name in ("u", "t", "y"):
        columns = {"u": pa.array(["a", "a", "b", "b"]), "t": pa.array([0, 1, 0, 1]), "y": pa.array([1.0, 2, 3, 4])}
        columns[name] = column
        try:
            pyarrow.feather.write_feather(pa.table(columns), tmp_path / "t.feather")
        except pa.ArrowException:  # it cannot even be written
            continue
        for periods in (None, "0..1"):
            said = ""
            try:
                assert summed(tmp_path / "t.feather", engine, periods=periods)[1] >= 1
            except DpscError as problem:
                said = str(problem)
            assert "1073741824" not in said
            assert "2147483647" not in said


def test_zero_and_minus_zero_are_one_unit_in_every_engine(tmp_path: Path) -> None:
    table = pa.table({"u": [0.0, -0.0, 1.0, 1.0], "t": [0, 1, 0, 1], "y": [1.0, 2, 3, 4]})
    pq.write_table(table, tmp_path / "t.parquet")
    totals = [summed(tmp_path / "t.parquet", engine, periods="0..1") for engine in ENGINES]
    assert [n for _, n, _ in totals] == [2, 2]
    np.testing.assert_array_equal(totals[0][0], totals[1][0])


def test_a_header_that_may_be_a_donors_row_is_not_quoted(tmp_path: Path) -> None:
    for line in ("Ann,HIV+,2000-01", "Ann,2000-01,NA", "Ann,north,north,2000"):
        (tmp_path / "t.csv").write_text(f"{line}\nBob,x,2000-02,1\n")
        with pytest.raises(DpscError) as refusal:
            summed(tmp_path / "t.csv", "memory")
        assert "Ann" not in str(refusal.value)
        assert "north" not in str(refusal.value)


@pytest.mark.parametrize("wrong", [{"time_format": "%Q"}, {"exclude": [1]}, {"exclude": "a"}, {"periods": object()}])
def test_odd_parameters_are_refused_in_our_own_words(wrong: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("u,t,y\na,1,2\n")
    with pytest.raises(DpscError):
        summed(tmp_path / "t.csv", "memory", **wrong)


def many_rows(extra: int) -> pd.DataFrame:
    """Two hundred donors; the first has extra rows outside the periods, which are ignored."""
    rows = np.random.default_rng(0).normal(size=(200, T)).cumsum(axis=1) * 2.0 ** np.arange(-10, 10).repeat(10)[:, None]
    frame = pd.DataFrame({"u": np.repeat(range(200), T), "t": np.tile(range(T), 200), "y": rows.ravel()})
    ignored = pd.DataFrame({"u": [0] * extra, "t": [99] * extra, "y": [1.0] * extra})
    return pd.concat([frame.iloc[:T], ignored, frame.iloc[T:]])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_which_donors_are_counted_does_not_depend_on_how_many_rows_one_has(
    threads: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are cut from the rows of the table; counting up to the end of a block counted hundreds more or fewer."""
    monkeypatch.setattr(exact_sum, "BLOCK_CELLS", 5 * T)
    monkeypatch.setattr(blocks, "_AHEAD", 0)
    counts = []
    for extra in (0, 40):
        path = tmp_path / f"{extra}.{kind}"
        frame = many_rows(extra)
        frame.to_parquet(path, row_group_size=30) if kind == "parquet" else frame.to_csv(path, index=False)
        for engine in ENGINES:
            found = scan(path, **COLUMNS, engine=engine, periods=f"0..{T - 1}")
            donors = sources.FileDonors(found.files, threads)
            total, n = donors.add_up(Counts(T, Kernel.named("high"), None), lambda rows: None, enough=103)
            assert n == total.sum() == 103
            counts.append(total)
    first = many_rows(0).y.to_numpy().reshape(200, T)[:103]
    counts.append(sources.sum_of_rows(first, Counts(T, Kernel.named("high"), None)))
    for other in counts[1:]:
        np.testing.assert_array_equal(other, counts[0])


@pytest.mark.parametrize("torn", [0, 7, 150])
def test_which_donors_are_counted_does_not_depend_on_where_the_rows_of_one_are(torn: int, tmp_path: Path) -> None:
    """Rows that are apart are divided by a hash; counting the first by hash would count others, because of one."""
    usual, counts = many_rows(0), []
    apart = pd.concat([usual.drop(index=torn * T), usual.loc[[torn * T]]])  # one row of one donor goes to the end
    for name, frame in (("usual", usual), ("apart", apart)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
        for engine in ENGINES:
            found = scan(tmp_path / f"{name}.parquet", **COLUMNS, engine=engine, periods=f"0..{T - 1}", exclude=["3"])
            total, n = found.add_up(Counts(T, Kernel.named("high"), None), lambda rows: None, enough=103)
            assert n == total.sum() == 103
            counts.append(total)
        assert found.files.how == ("read as a stream" if name == "usual" else "kept in a private file meanwhile")
    for other in counts[1:]:
        np.testing.assert_array_equal(other, counts[0])


@pytest.mark.parametrize("moved", [150, 199])
def test_a_donor_that_comes_among_those_that_are_counted_changes_two_counts(moved: int, tmp_path: Path) -> None:
    """It enters, and one other donor leaves: as far as a donor replaced moves the counts."""
    usual, counts = many_rows(0), []
    first = usual["u"] == moved
    for name, frame in (("usual", usual), ("moved", pd.concat([usual[first], usual[~first]]))):
        frame.to_parquet(tmp_path / f"{name}.parquet")
        for engine in ENGINES:
            found = scan(tmp_path / f"{name}.parquet", **COLUMNS, engine=engine, periods=f"0..{T - 1}")
            total, n = found.add_up(Counts(T, Kernel.named("high"), None), lambda rows: None, enough=103)
            assert n == 103
            counts.append(total)
    change = np.abs(counts[0] - counts[-1])
    assert (change.sum(), change.max()) == (2, 1)
    np.testing.assert_array_equal(counts[0], counts[1])
    np.testing.assert_array_equal(counts[2], counts[3])


HOSTILE = {
    "zeros": np.zeros(T), "a level": np.full(T, 1e300), "overflow": np.array([1.7e308, -1.7e308] * 3),
    "tiny": np.full(T, 5e-324), "huge": np.linspace(-1, 1, T) * 1e308, "squares overflow": np.arange(T) * 1e170,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    "options", [{"scale": 1.0}, {"like": np.arange(6.0)}, {"reference": np.full(T, 1e100)}], ids=str
)
def test_no_donor_makes_a_warning_an_error_or_another_map(
    name: str, options: dict[str, Any], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """The step that finds the scale included, from an array and from a stream, on threads and off them."""
    make = GramRelease(epsilon=1.0, delta=1e-6, seed=3, **options)
    usual = np.random.default_rng(1).normal(size=(400, T)).cumsum(axis=1)
    hostile = np.vstack([HOSTILE[name], usual[1:]])

    def both(rows: Array) -> list[CustodianSum]:
        frame = pd.DataFrame(rows, columns=[str(2000 + t) for t in range(T)]).assign(u=range(400))
        frame.to_parquet(tmp_path / "t.parquet")
        return [make.custodian_sum(rows), make.custodian_sum(scan(tmp_path / "t.parquet", unit="u", wide=True))]

    for one, other in zip(both(usual), both(hostile), strict=True):
        assert (one.n, one.row_map.directions, one.scale.share) == (
            other.n,
            other.row_map.directions,
            other.scale.share,
        )
        if make.scale is not None:
            assert moved(one.total, other.total) <= 1
    assert not recwarn.list


@pytest.mark.parametrize("label", ["seen on 3 May", "77/12/2022"])
def test_a_donors_label_of_a_period_is_named_by_its_row_and_not_quoted(label: str, tmp_path: Path) -> None:
    months = [f"2022-{month:02}" for month in range(1, 7)]
    frame = pd.DataFrame({"u": np.repeat(list("abc"), 6), "t": months * 3, "y": np.arange(18.0)})
    frame.loc[7, "t"] = label
    frame.to_csv(tmp_path / "t.csv", index=False)
    for engine in ENGINES:
        with pytest.raises(DpscError, match="the period of line 9 in column 't'") as refused:
            summed(tmp_path / "t.csv", engine)
        assert label not in str(refused.value)
    with pytest.raises(PanelError, match="a label of column 't' is not a date") as refused:
        Donors.from_long(frame, **COLUMNS)
    assert label not in str(refused.value)


# One donor's rows are replaced by anything: n and all other donors' integers stay, from every engine, bit for bit.

NAMES = ["007", "7", "123456789012345678", "123456789012345679", "1e3", "NA", "0", "00", "x"]
EXACT = GramRelease(epsilon=1.0, delta=1e-6, scale=1.0, directions=T - 1)
PERIODS = f"0..{T - 1}"
Lines = list[tuple[str, str, str]]  # unit, period and number, as a CSV has them


def others() -> Lines:
    values = np.random.default_rng(5).normal(size=(len(NAMES), T)).cumsum(axis=1).round(3)
    return [(name, str(t), repr(float(values[k, t]))) for k, name in enumerate(NAMES) for t in range(T)]


@pytest.fixture(scope="module")
def others_alone() -> Integers:
    """What the others add up to, from an array."""
    values = np.array([float(value) for _, _, value in others()]).reshape(len(NAMES), T)
    return EXACT.custodian_sum(values).total


def sums_of(lines: Lines, folder: Path, scheduler: str | None = None, **options: Any) -> list[tuple[Integers, int]]:
    """The sums from a long table in memory, as a stream and as a frame, and from a cluster if there is one."""
    frame = pd.DataFrame(lines, columns=["u", "t", "y"])
    path = folder / "t.csv"
    frame.to_csv(path, index=False)
    options = COLUMNS | {"periods": PERIODS} | options
    sources: list[Any] = [scan(path, **options, engine=engine) for engine in ENGINES]
    if scheduler is not None:
        sources.append(scan(path, **options, engine="dask", scheduler=scheduler))
    numbers = frame["y"].map(lambda cell: np.nan if cell in ("", "NA") else float(cell)).astype(float)
    sources.append(Donors.from_long(frame.assign(y=numbers), **options))
    made = [EXACT.custodian_sum(source) for source in sources]
    return [(each.total, each.n) for each in made]


def adds_one_donor(made: list[tuple[Integers, int]], alone: Integers) -> None:
    """All engines agree, and besides the others there is one donor: an integer vector of length at most 2^bits."""
    for total, n in made:
        assert n == len(NAMES) + 1
        np.testing.assert_array_equal(total, made[0][0])
    added = made[0][0] - alone
    assert 0 < np.trace(added) <= 4**EXACT.grid_bits
    assert np.linalg.matrix_rank(added.astype(float)) == 1


USUAL = [(str(t), str(t * t)) for t in range(T)]
ROWS: dict[str, list[tuple[str, str]]] = {
    "as others": USUAL,
    "a cell twice": [*USUAL, ("2", "50")],
    "every cell twice": USUAL + USUAL,
    "every cell twice, once without a number": USUAL + [(t, "nan") for t, _ in USUAL],
    "no number": [(t, "") for t, _ in USUAL],
    "no number, twice": [(t, "nan") for t, _ in USUAL] * 2,
    "infinite": [(t, "inf") for t, _ in USUAL] * 2,
    "outside the periods": [("99", "1"), ("1999-01-01", "2")],
    "no period": [("", "1"), ("total", "2")],
    "one cell": [("3", "1e308")],
    "a thousand rows": [("1", str(k)) for k in range(1000)],
    "sums that overflow": [("1", "1.7e308"), ("1", "1.7e308"), ("2", "-1.7e308"), ("2", "-1.7e308"), ("3", "1")],
}


@pytest.mark.parametrize("case", ROWS)
def test_whatever_rows_one_donor_has_n_and_all_others_stay(
    case: str, others_alone: Integers, cluster: Any, tmp_path: Path
) -> None:
    """Rows of one cell used to be averaged; some tables were refused, which depends on a donor."""
    lines = others()
    lines[T:T] = [("p", time, value) for time, value in ROWS[case]]
    adds_one_donor(sums_of(lines, tmp_path, cluster.scheduler_address), others_alone)


def test_a_donor_without_a_usable_row_is_the_fixed_unit_vector(others_alone: Integers, tmp_path: Path) -> None:
    fixed = np.zeros_like(others_alone)
    fixed[0, 0] = 4**EXACT.grid_bits
    for case in ("no number", "no number, twice", "infinite", "outside the periods", "no period", "every cell twice"):
        lines = others() + [("p", time, value) for time, value in ROWS[case]]
        for total, _ in sums_of(lines, tmp_path):
            np.testing.assert_array_equal(total - others_alone, fixed)


@pytest.mark.parametrize("case", ROWS)
def test_a_panel_for_the_papers_methods_refuses_no_rows_of_one_donor(case: str) -> None:
    """Only with public bounds, without which they are refused whatever the donors are."""
    lines = [*others(), *(("p", time, value) for time, value in ROWS[case])]
    rows = [(unit, time, float(value) if value else np.nan) for unit, time, value in lines]
    options: dict[str, Any] = COLUMNS | {"periods": PERIODS, "bounds": (-9, 9), "treatment_time": 4}
    for rule in ("interpolate", "midpoint"):
        frame = pd.DataFrame(rows, columns=["u", "t", "y"])
        panel = Panel.from_long(frame, **options, treated_unit="x", missing=rule)
        values = np.array([float(value) for _, _, value in others()]).reshape(len(NAMES), T)
        np.testing.assert_array_equal(panel.donors[:-1], np.clip(values[:-1], -9, 9))
        assert panel.n == len(NAMES)
        assert np.isfinite(panel.donors).all()
        assert OutputPerturbation(epsilon=1.0, seed=1).fit(panel).counterfactual.notna().all()


cells = st.one_of(st.floats().map(repr), st.sampled_from(["", "1e308", "-1e308", "0", "1e16", "1", "-1e16", "NA"]))
lines_of_one = st.lists(st.tuples(st.sampled_from(["0", "1", "2", "1.0", "99", "", "x"]), cells), min_size=1)


@settings(max_examples=quick_or_long(25, 1000), suppress_health_check=list(HealthCheck))
@given(rows=lines_of_one, rule=st.sampled_from(["missing", "sum", "mean", "last"]), where=st.integers(0, len(NAMES)))
def test_any_rows_of_one_donor_under_any_rule(
    rows: list[tuple[str, str]], rule: Repeated, where: int, others_alone: Integers, tmp_path_factory: Any
) -> None:
    lines = others()
    lines[where * T : where * T] = [("p", time, value) for time, value in rows]
    adds_one_donor(sums_of(lines, tmp_path_factory.mktemp("one"), repeated=rule), others_alone)


@pytest.mark.parametrize("name", ["abc", "8", "8.0", "07", "1e400", "-0", "nan", " ", "true", "2022-01-01"])
def test_what_one_donor_is_called_does_not_change_who_the_others_are(
    name: str, others_alone: Integers, cluster: Any, tmp_path: Path
) -> None:
    lines = [(name, time, value) for time, value in USUAL] + others()
    adds_one_donor(sums_of(lines, tmp_path, cluster.scheduler_address), others_alone)


def test_rows_without_a_label_are_nobodys(others_alone: Integers, cluster: Any, tmp_path: Path) -> None:
    """They used to be refused; they are left out, wherever they are."""
    lines = others()
    for place in (0, T + 2, 3 * T):  # the second one is between the rows of a donor
        lines[place:place] = [("", "1", "1000"), ("", "99", "")]
    for total, n in sums_of(lines, tmp_path, cluster.scheduler_address):
        assert n == len(NAMES)
        np.testing.assert_array_equal(total, others_alone)


def test_a_table_of_nobody_is_refused_by_every_engine(tmp_path: Path) -> None:
    """Which tells that n is 0, and n is public."""
    frame = pd.DataFrame({"u": pd.Series([None] * 3, dtype=object), "t": [0, 1, 2], "y": [1.0, 2.0, 3.0]})
    path = save(frame, tmp_path / "t.csv")
    for engine in ENGINES:
        with pytest.raises(PanelError, match="no donor is left"):
            EXACT.custodian_sum(scan(path, **COLUMNS, periods=PERIODS, engine=engine))
    with pytest.raises(PanelError, match="no row of the frame has a unit"):
        Donors.from_long(frame, **COLUMNS, periods=PERIODS)
    with pytest.raises(PanelError, match="no row of the frame has a unit"):
        Donors.from_wide(pd.DataFrame({"u": [None, None], "0": [1.0, 2.0], "1": [3.0, 4.0]}), unit="u")


@pytest.mark.parametrize("kind", ["whole numbers", "floats", "text", "anything", "a workbook"])
def test_units_are_text_whatever_the_type_of_their_column(kind: str, tmp_path: Path) -> None:
    """Pandas reads parts of a large CSV as numbers and others as text, by what other rows hold: 7 and "7" are one."""
    numbers = [7, 8, 1000, 2**52]
    kinds: dict[str, list[Any]] = {
        "whole numbers": numbers, "floats": [float(k) for k in numbers], "text": list(map(str, numbers)),
        "anything": [7, "8", 1000.0, str(2**52)], "a workbook": [7, "8", 1000.0, 2**52],
    }  # fmt: skip
    other: list[Any] = [7.0, 8, "1000", 2**52] if kind in ("anything", "a workbook") else kinds[kind]
    rows = [(u, t, float(k * t)) for t in range(T) for k, u in enumerate(kinds[kind] if t % 2 else other)]
    frame = pd.DataFrame(rows, columns=["u", "t", "y"])
    if kind in ("anything", "a workbook"):
        frame["u"] = pd.Series([row[0] for row in rows], dtype=object)
    values = np.array([[float(k * t) for t in range(T)] for k in range(4)])
    expected = EXACT.custodian_sum(values)
    sources: list[Any] = [Donors.from_long(frame, **COLUMNS, periods=PERIODS)]
    if kind == "a workbook":
        sources.append(scan(save(frame, tmp_path / "t.xlsx"), **COLUMNS, periods=PERIODS))
    elif kind != "anything":  # which Parquet does not hold
        path = save(frame.sort_values("u"), tmp_path / "t.parquet")
        sources += [scan(path, **COLUMNS, periods=PERIODS, engine=engine) for engine in ENGINES]
    for source in sources:
        made = EXACT.custodian_sum(source)
        assert made.n == 4
        np.testing.assert_array_equal(made.total, expected.total)


@pytest.mark.parametrize("wrong", [None, "abc", 12.5])
def test_one_missing_or_odd_identifier_leaves_the_others_in_a_frame(wrong: Any) -> None:
    """It turns whole numbers into floats or objects, for everybody."""
    usual = pd.DataFrame({"u": [5, 5, 70, 70, 9, 9], "t": [0, 1] * 3, "y": [1.0, 2, 3, 5, 8, 13]})
    other = usual.assign(u=pd.Series([5, 5, 70, 70, wrong, wrong]))
    one, two = (Donors.from_long(frame, **COLUMNS, periods="0..1") for frame in (usual, other))
    assert len(two.values) == (2 if wrong is None else 3)
    np.testing.assert_array_equal(one.values[:2], two.values[:2])


def test_truth_values_and_numbers_are_different_labels_in_a_frame() -> None:
    """1, 1.0 and True are equal to Python: the first row used to decide."""
    frame = pd.DataFrame({"u": pd.Series([True, 1, 1.0, True], dtype=object), "t": [0, 0, 1, 1], "y": [1.0, 2, 3, 4]})
    assert Donors.from_long(frame, **COLUMNS, periods="0..1").values.tolist() == [[1.0, 4.0], [2.0, 3.0]]


@pytest.mark.parametrize("rule", ["missing", "sum", "mean", "last"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_unit_with_several_rows_in_a_wide_table_counts_once(
    rule: Repeated, kind: str, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It used to be refused. Its cells follow the rule, in every engine; rows without a name are left out."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(160, T)).cumsum(axis=1).round(3)
    names: list[str | None] = [f"p{k}" for k in range(160)]
    names[120] = names[77] = names[3]
    names[121] = names[60]
    names[5] = names[150] = None
    values[77, 2], values[60, :] = np.nan, np.nan
    frame = pd.DataFrame(values, columns=[str(t) for t in range(T)])
    frame.insert(0, "u", names)
    path = save(frame, tmp_path / f"w.{kind}")
    options: dict[str, Any] = {"unit": "u", "wide": True, "periods": PERIODS, "repeated": rule}
    long = frame.melt("u", var_name="t", value_name="y")
    expected = EXACT.custodian_sum(Donors.from_long(long, **COLUMNS, periods=PERIODS, repeated=rule))
    monkeypatch.setattr(exact_sum, "BLOCK_CELLS", 7 * T)
    monkeypatch.setattr(workers, "PIECE_CELLS", 60 * T)
    for engine in (*ENGINES, "dask"):
        address = cluster.scheduler_address if engine == "dask" else None
        made = EXACT.custodian_sum(scan(path, **options, engine=engine, scheduler=address))
        assert made.n == expected.n == 155
        np.testing.assert_array_equal(made.total, expected.total)


def test_several_rows_of_one_unit_do_not_push_others_out_of_the_count(tmp_path: Path) -> None:
    values = 2.0 ** np.arange(-20, 20)[:, None] * np.arange(T)
    usual = pd.DataFrame(values, columns=[str(t) for t in range(T)])
    usual.insert(0, "u", [f"p{k:02}" for k in range(40)])
    other = pd.concat([usual.iloc[[0]]] * 5 + [usual.iloc[1:], usual.iloc[[0]]])
    counts = []
    for name, frame in (("usual", usual), ("other", other)):
        path = save(frame, tmp_path / f"{name}.csv")
        for engine in ENGINES:
            found = scan(path, unit="u", wide=True, periods=PERIODS, repeated="mean", engine=engine)
            total, n = found.add_up(Counts(T, Kernel.named("high"), None), lambda rows: None, enough=23)
            assert n == 23
            counts.append(total)
    for other_counts in counts[1:]:
        np.testing.assert_array_equal(other_counts, counts[0])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_last_row_is_the_last_in_the_table_whoever_reads_it(
    kind: str, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "PIECE_CELLS", 50 * 3)
    rng = np.random.default_rng(1)
    frames = [
        pd.DataFrame({"u": rng.integers(0, 40, 900), "t": rng.integers(0, T, 900), "y": rng.normal(size=900).round(3)})
        for _ in range(2)
    ]
    for k, frame in enumerate(frames):
        save(frame, tmp_path / f"{k}.{kind}")
    options: dict[str, Any] = COLUMNS | {"periods": PERIODS, "repeated": "last"}
    expected = EXACT.custodian_sum(Donors.from_long(pd.concat(frames), **options)).total
    address = cluster.scheduler_address
    for source in (
        scan(tmp_path, **options, engine="memory"),
        scan(tmp_path, **options, engine="dask", scheduler=address),
    ):
        np.testing.assert_array_equal(EXACT.custodian_sum(source).total, expected)
    ordered = pd.concat(frames).sort_values("u", kind="stable")
    path = save(ordered, tmp_path / f"ordered.{kind}")
    np.testing.assert_array_equal(EXACT.custodian_sum(scan(path, **options, engine="stream")).total, expected)


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("ms"), pa.timestamp("us", "UTC")], ids=str)
def test_a_date_that_python_cannot_hold_is_outside_the_periods(kind: Any, cluster: Any, tmp_path: Path) -> None:
    """It used to stop the release."""
    second = 1 if kind == pa.date32() else 86400 * (10**6 if "us" in str(kind) else 10**3)
    days = [0, 31, 59] * 3
    units = ["a"] * 3 + ["b"] * 3 + ["c"] * 3
    far = (2**31 - 1) if kind == pa.date32() else 2**62
    width = pa.int32() if kind == pa.date32() else pa.int64()
    table = pa.table(
        {
            "u": [*units, "a"],
            "t": pa.array([*(day * second for day in days), far], width).cast(kind),
            "y": [1.0, 2, 4, 3, 3, 1, 5, 6, 5, 1000],
        }
    )
    pq.write_table(table.sort_by("u"), tmp_path / "far.parquet")
    expected = EXACT.custodian_sum(np.array([[1.0, 2, 4], [3, 3, 1], [5, 6, 5]]))
    for engine in (*ENGINES, "dask"):
        address = cluster.scheduler_address if engine == "dask" else None
        source = scan(
            tmp_path / "far.parquet", **COLUMNS, periods="1970-01..1970-03", engine=engine, scheduler=address,
        )  # fmt: skip
        made = EXACT.custodian_sum(source)
        assert made.n == 3
        np.testing.assert_array_equal(made.total, expected.total)
