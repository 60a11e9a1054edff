"""Donors and people in databases: the same integers as from a file, one moment for all passes, and nothing quoted."""

from __future__ import annotations

import itertools
import re
import sqlite3
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from dpsc import GramRelease, PanelRelease, scan
from dpsc.custodian.donors import divided
from dpsc.custodian.donors.donor_files import FileSource
from dpsc.custodian.gram import exact_sum
from dpsc.custodian.gram.exact_sum import Products
from dpsc.custodian.gram.sources import source_of
from dpsc.custodian.groups.people_files import FilePeople
from dpsc.errors import DpscError, ParameterError, TableError
from dpsc.tables import database
from dpsc.tables.dialect import AS_USUAL
from dpsc.tables.places import Selection, place_of
from dpsc.types import Array
from tests.cli.conftest import quick
from tests.ledger.servers import Server, a_server
from tests.making import SECRET, long, row_map, told, wide
from tests.soak import quick_or_long

N, T = 211, 7
PRODUCTS = Products(row_map(T, directions=5))
NAMES: dict[str, Any] = {"unit": "who", "time": "week", "outcome": "cost"}
KINDS = ["postgresql", "sqlite", "duckdb"]
_numbers = itertools.count()

Save = Callable[..., str]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    yield from a_server()


@pytest.fixture(scope="module")
def donors() -> Array:
    return np.round(np.random.default_rng(0).normal(size=(N, T)).cumsum(axis=1), 6)


@pytest.fixture(params=KINDS)
def save(request: pytest.FixtureRequest, tmp_path: Path) -> Save:
    """Return what puts a frame into a new database and returns its address."""
    kind = request.param

    def put(frame: pd.DataFrame, name: str = "visits", types: dict[str, str] | None = None) -> str:
        columns = {column: (types or {}).get(str(column), _type(frame[column])) for column in frame}
        declared = ", ".join(f'"{column}" {type_}' for column, type_ in columns.items())
        rows = [
            tuple(None if cell is None or cell != cell else cell for cell in row)
            for row in frame.itertuples(index=False)
        ]
        if kind == "postgresql":
            running: Server = request.getfixturevalue("server")
            schema = f"data{next(_numbers)}"
            address = running.url(schema).replace("+psycopg", "")
            with running.connect(schema) as here:
                here.execute(f'create table "{name}" ({declared})')
                with here.cursor() as cursor:
                    cursor.executemany(f'insert into "{name}" values ({", ".join(["%s"] * len(columns))})', rows)
            return address
        path = tmp_path / f"{next(_numbers)}.db"
        marks = ", ".join("?" * len(columns))
        if kind == "sqlite":
            with sqlite3.connect(path) as lite:
                lite.execute(f'create table "{name}" ({declared})')
                lite.executemany(f'insert into "{name}" values ({marks})', rows)
            lite.close()
            return f"sqlite:///{path}"
        import duckdb

        with duckdb.connect(str(path)) as duck:
            duck.register("frame", frame)
            duck.execute(f'create table "{name}" ({declared})')
            duck.execute(f'insert into "{name}" select * from frame')
        return f"duckdb:///{path}"

    return put


def _type(column: Any) -> str:
    return "double precision" if pd.api.types.is_float_dtype(column) else "text"


def added(address: str, summand: Products = PRODUCTS, **options: Any) -> Any:
    return scan(address, **options).add_up(summand, lambda rows: None)


def expected(donors: Array) -> Any:
    return source_of(donors).add_up(PRODUCTS, lambda rows: None)[0]


def test_a_table_gives_the_same_integers_as_an_array(donors: Array, save: Save) -> None:
    address = save(long(donors).sample(frac=1, random_state=0))
    total, n = added(address, **NAMES, table="visits")
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))
    total, n = added(address, **NAMES, query="select * from visits where week <> 'never';")
    np.testing.assert_array_equal(total, expected(donors))
    total, n = added(save(wide(donors), "Wide table"), unit="who", wide=True, table="Wide table")
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))


def test_types_of_a_database_are_read_like_those_of_a_file(donors: Array, save: Save) -> None:
    """Identifiers that are numbers, dates, decimals; and cells without a value."""
    dates = pd.date_range("2024-01-01", periods=T, freq="MS")
    frame = long(donors, units=range(1000, 1000 + N), times=[str(day.date()) for day in dates])
    frame.loc[3, "cost"] = None
    types = {"who": "bigint", "week": "date", "cost": "numeric(20,6)"}
    declared: dict[str, Any] = {"periods": "2024-01..2024-07", "missing": "midpoint", "bounds": (-50, 50)}
    total, n = added(save(frame, types=types), **NAMES, table="visits", exclude=["1005"], **declared)
    values = donors.copy()
    values[0, 3] = 0.0
    assert n == N - 1
    np.testing.assert_array_equal(total, expected(np.delete(values, 5, axis=0)))


def test_people_are_added_up_from_a_database(save: Save, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "patient": rng.integers(0, 60, 600).astype(str),
            "clinic": rng.choice(["A", "B", "C"], 600),
            "month": rng.choice(["2024-01", "2024-02"], 600),
            "cost": rng.gamma(2, 30, 600).round(2),
        }
    )
    columns: dict[str, Any] = {"person": "patient", "unit": "clinic", "time": "month", "outcome": "cost"}
    columns |= {"units": ["A", "B", "C"], "periods": "2024-01..2024-02"}
    make = PanelRelease(epsilon=1.0, delta=1e-6, bounds=(0, 500))
    frame.to_csv(tmp_path / "visits.csv", index=False)
    from_file = make.custodian_sum(scan(tmp_path / "visits.csv", **columns))
    np.testing.assert_array_equal(
        make.custodian_sum(scan(save(frame), **columns, table="visits")).total, from_file.total
    )


def test_a_table_of_a_database_is_never_taken_for_a_small_one(
    donors: Array, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many rows it has is known once they were read. It is not held in memory, and has enough parts."""
    monkeypatch.setattr(divided, "_OF_A_PART", N * T // 16)
    address = save(long(donors).sample(frac=1, random_state=0))
    told: dict[str, int | None] = {}

    def tell(doing: str, rows: int, of: int | None) -> None:
        told[doing] = of

    source = scan(address, **NAMES, table="visits", periods=[f"w{t}" for t in range(1, T + 1)], missing="kernel")
    GramRelease(epsilon=1.0, delta=1e-6).custodian_sum(source, on_progress=tell)
    passes = {"looking at the periods": None, "dividing into a private file": N * T}
    assert told == {**passes, "counting donors": N, "adding up donors": N}
    assert isinstance(source, FileSource)
    assert source.files._divided.parts == 16
    people = scan(
        address, person="who", unit="week", time="cost", units=["w1", "w2", "w3"], periods=["w1"], table="visits"
    )
    assert isinstance(people, FilePeople)
    assert not people.in_memory


def test_both_passes_read_the_rows_of_one_moment(donors: Array, server: Server) -> None:
    """The scale is counted in one pass, donors are added up in another; in between somebody deletes and adds rows."""
    schema = f"data{next(_numbers)}"
    address = server.url(schema).replace("+psycopg", "")
    with server.connect(schema) as here:
        here.execute("create table visits (who text, week text, cost double precision)")
        with here.cursor() as cursor:
            cursor.executemany("insert into visits values (%s, %s, %s)", long(donors).values.tolist())
    source = scan(address, **NAMES, table="visits", missing="kernel", periods=[f"w{t}" for t in range(1, T + 1)])
    first = source.add_up(PRODUCTS, lambda rows: None, enough=20)
    assert first[1] == 20  # and the rest of the rows is given up
    with server.connect(schema) as other:
        other.execute("delete from visits where who < 'p00100'")
        other.execute("insert into visits values ('late', 'w1', 5.0)")
    total, n = source.add_up(PRODUCTS, lambda rows: None)
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))
    assert (
        added(address, **NAMES, table="visits", missing="kernel", periods=["w1", "w2"], summand=Products(row_map(2)))[1]
        < N
    )


def test_both_passes_read_the_rows_of_one_moment_of_sqlite_too(donors: Array, tmp_path: Path) -> None:
    """In its mode in which others may write meanwhile."""
    path = tmp_path / "a.db"
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("pragma journal_mode = wal")
        long(donors).to_sql("visits", other, index=False)
        source = scan(f"sqlite:///{path}", **NAMES, table="visits", missing="kernel")
        assert source.add_up(PRODUCTS, lambda rows: None, enough=20)[1] == 20
        other.execute("delete from visits where who < 'p00100'")
        total, n = source.add_up(PRODUCTS, lambda rows: None)
        assert added(f"sqlite:///{path}", **NAMES, table="visits", missing="kernel")[1] < n == N
    np.testing.assert_array_equal(total, expected(donors))


def test_a_server_that_is_killed_meanwhile_is_told_and_nothing_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_sum, "BLOCK_CELLS", 1000 * T)
    for running in a_server():  # of its own, as it does not survive
        schema = "killed"
        address = running.url(schema).replace("+psycopg", "")
        with running.connect(schema) as here:
            here.execute("create table visits (who text, week text, cost double precision)")
            rows = f"generate_series(1, {quick_or_long(700_000, 5_000_000)}) i"
            here.execute(f"insert into visits select 'p' || i / {T}, 'w' || 1 + i % {T}, {SECRET} from {rows}")
        source = scan(address, **NAMES, table="visits", periods=[f"w{t}" for t in range(1, T + 1)], missing="kernel")

        def kill(rows: int, running: Server = running) -> None:
            if running.process.poll() is None:
                running.kill()

        with pytest.raises(TableError) as raised:
            source.add_up(PRODUCTS, kill)
        assert re.search(r"cannot be read, or not to the end; .* [\d,]+ rows were read before\.", str(raised.value))
        assert "table visits of postgresql:///postgres" in str(raised.value)
        assert not told("".join(traceback.format_exception(raised.value)))
        running.start()


def test_rows_come_in_few_bytes_at_a_time_and_in_the_same_order(server: Server) -> None:
    """PostgreSQL begins to read a large table where somebody else is reading it, and several workers may read it."""
    schema, rows = f"data{next(_numbers)}", quick_or_long(45_000, 5_000_000)
    address = server.url(schema).replace("+psycopg", "")
    with server.connect(schema) as here:
        filling = "repeat(md5(i::text), 30) as filling" if rows < 10**6 else "'' as filling"
        here.execute(f"create table visits as select i, {filling} from generate_series(1, {rows}) i")
    with server.connect(schema) as other, other.cursor("half") as half:
        half.execute("select * from visits")
        half.fetchmany(rows // 2)
        opened = database._ENGINES["postgres"](address)
        batches = list(opened.batches("select * from visits", 10**6))
    assert max(batch.nbytes for batch in batches) < 2**24
    numbers = np.concatenate([batch.column(0).to_numpy() for batch in batches])
    np.testing.assert_array_equal(numbers, np.arange(1, rows + 1))


def test_small_batches_of_a_driver_are_put_together(save: Save) -> None:
    """DuckDB gives 2,048 rows at a time; each batch takes us as long as some thousand rows."""
    rows = 9_000
    address = save(pd.DataFrame({"who": [f"p{i}" for i in range(rows)]}))
    for size in (10**6, 1000):
        file = database.DatabaseFile(cast(Selection, place_of(address, "visits")))
        batches = list(file.batches(None, ["who"], size, AS_USUAL))
        assert max(batch.num_rows for batch in batches) <= size
        assert size < rows or len(batches) == 1
        assert [who for batch in batches for who in batch.column(0).to_pylist()] == [f"p{i}" for i in range(rows)]


def test_the_connection_cannot_write(donors: Array, save: Save) -> None:
    address = save(long(donors))
    statement = "delete from visits returning who, week, cost"
    with pytest.raises(TableError):
        added(address, **NAMES, query=statement)
    opened = database._ENGINES[place_of(address, "visits").engine](address)  # type: ignore[attr-defined]
    with pytest.raises(Exception, match=r"(?i)read.?only"):
        list(opened.batches("delete from visits", 10))
    assert added(address, **NAMES, table="visits")[1] == N


def test_a_role_without_rights_and_other_refusals_are_one_sentence_each(donors: Array, server: Server) -> None:
    schema = f"data{next(_numbers)}"
    address = server.url(schema).replace("+psycopg", "")
    with server.connect(schema) as here:
        here.execute("create table visits (who text, week text, cost text)")
        here.execute("insert into visits values (%s, 'w1', %s)", ["a", f"{SECRET} euros"])
        here.execute("create role outsider login")
        here.execute(f"grant usage on schema {schema} to outsider")
    said = {
        (address.replace("dpsc@", "outsider@"), "visits"): "may not read it",
        (address, "visit"): "no such table",
        (address.replace("/postgres?", "/nowhere?"), "visits"): "cannot be read|no such database|connection",
        (address.replace("dpsc@", "dpsc:secret@").replace("?host=/", "?host=/not"), "visits"): "check|connection",
        (address, "visits"): "not a number|row 1",
    }
    for (where, table), words in said.items():
        with pytest.raises(TableError, match=words) as raised:
            added(where, **NAMES, table=table, periods=["w1", "w2"], missing="kernel")
        assert not told(str(raised.value))
        assert "secret" not in str(raised.value)


def test_a_query_that_quotes_a_cell_in_its_error_shows_nothing(save: Save) -> None:
    address = save(pd.DataFrame({"who": ["a"], "week": ["w1"], "cost": [f"{SECRET} euros"]}))
    if address.startswith("sqlite"):
        pytest.skip("its errors quote no cell: what cannot be converted becomes a number or nothing")
    with pytest.raises(TableError) as raised:
        added(
            address,
            **NAMES,
            query="select who, week, cast(cost as integer) / (length(cost) - length(cost)) as cost from visits",
        )
    assert not told("".join(traceback.format_exception(raised.value)))


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="table or query, one of them"):
        scan("postgresql://host/db", **NAMES)
    with pytest.raises(ParameterError, match="one of them"):
        scan("postgresql://host/db", **NAMES, table="a", query="select 1")
    with pytest.raises(ParameterError, match="is for a database"):
        scan(tmp_path / "donors.csv", **NAMES, table="a")
    with pytest.raises(ParameterError, match="reads files, not databases"):
        scan("postgresql://host/db", **NAMES, table="a", engine="dask")
    with pytest.raises(DpscError, match="four slashes"):
        added("sqlite:///nowhere.db", **NAMES, table="a")


def test_a_password_is_in_no_text() -> None:
    place = place_of("postgresql://ann:hunter2@db.example.org/clinic?password=hunter3", "visits")
    assert isinstance(place, Selection)
    for text in (str(place), repr(place), place.name, f"{place}", str(place.absolute()), repr(scan(place, **NAMES))):
        assert "hunter" not in text


def test_a_command_to_repeat_has_no_password_of_a_query() -> None:
    query = "select * from dblink('host=h password=hunter2', 'select 1') as t(who text)"
    place = place_of("postgresql://ann:hunter3@h/db", query=query)
    assert isinstance(place, Selection)
    assert "hunter" not in " ".join(place.typed())


@pytest.mark.parametrize(
    "address",
    ["postgresql://ann:hun/ter2@h/db", "postgresql://ann:p[hunter2@h/db", "postgresql://ann:hunter2\u2100@h/db",
     "s3://key:hunter2@bucket/visits", "s3://key:hun/ter2@bucket/visits"],
)  # fmt: skip
def test_an_address_that_its_password_tears_apart_is_refused_and_not_quoted(address: str) -> None:
    with pytest.raises(ParameterError, match=r"address") as raised:
        scan(address, **NAMES, table="visits" if address.startswith("postgres") else None)
    assert "ter2" not in "".join(traceback.format_exception(raised.value))


def test_a_file_of_a_database_may_have_any_name(tmp_path: Path) -> None:
    assert str(place_of(f"sqlite:///{tmp_path}/me@home.db", "a")) == f"table a of sqlite:///{tmp_path}/me@home.db"


def test_a_release_from_a_database_names_no_address(donors: Array, save: Save) -> None:
    source = scan(save(long(donors)), **NAMES, table="visits", periods=[f"w{t}" for t in range(1, T + 1)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = GramRelease(epsilon=1.0, delta=1e-6).release(source)
    assert release.n == N


@pytest.mark.parametrize("how", ["--table", "--query-file"])
def test_commands_read_a_database_from_check_to_release(donors: Array, save: Save, tmp_path: Path, how: str) -> None:
    address, said = save(long(donors)), "visits"
    if how == "--query-file":
        said = str(tmp_path / "q.sql")
        Path(said).write_text("select who, week, cost from visits -- all of them\n")
    columns = ["--unit", "who", "--time", "week", "--outcome", "cost"]
    columns += ["--periods", ",".join(f"w{t}" for t in range(1, T + 1))]
    code, out, err = quick("check", address, how, said, *columns)
    assert code == 0, err + out
    assert "rows of a database" in out
    assert "dpsc release" in out
    assert address in out.replace("'", "").replace("\\\n", "")
    budget = ["--epsilon", "1", "--delta", "1e-6", "-o", tmp_path / "a.dpsc.json"]
    code, out, err = quick("release", "--no-ledger", address, how, said, *columns, *budget)
    assert code == 0, err
    assert f"{N} donors" in out
