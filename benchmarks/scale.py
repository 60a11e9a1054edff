"""How cost grows with the number of donors, against peers and limits measured in the same run, one BLAS thread.

    OPENBLAS_NUM_THREADS=1 python benchmarks/scale.py [--only fit|tables|periods|people|order|two-step|start]
        [--largest 10000000] [--records 50000000] [--rows 100000000]

Every measurement runs in its own process, so that its peak memory is its own (after the first round). What it is
compared with runs there too, in turn, so that others' work on the machine meets both. Times are the shortest of several
rounds; processor time is user and system time of the process and of those that it started. Writes results/scale.csv;
benchmarks/results_page.py turns it into figures and RESULTS.md.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import psutil

Task = Callable[[], object]
Tasks = tuple[Task, Task]  # what is measured, and what it is compared with
OUT = Path(__file__).parent / "results"
DATA = Path(tempfile.gettempdir()) / "dpsc-bench"
T0, H = 40, 10
FIT_SIZES = (10, 100, 1000, 10_000, 100_000)
FITS = ("dpsc ridge", "dpsc robust", "dpsc Gram", "scikit-learn Ridge", "pysyncon RobustSynth", "primal n × n ridge")
LARGEST_PRIMAL = 10_000  # n × n doubles: 800 MB
COLUMNS, ROW_GROUP = 50, 100_000
GRAMS = ("bare X'X", "exact Gram, 1 thread")
DUCKDB = "DuckDB's group by"
MEMORY, DASK, BARE = ", held in memory", ", Dask on 2 workers", ", read and bare X'X"
SIZES = {  # of tables, in donors of 50 periods
    "wide Parquet": (100_000, 1_000_000, 10_000_000),
    "wide Parquet" + MEMORY: (100_000, 1_000_000),
    "wide Parquet" + DASK: (100_000, 1_000_000, 10_000_000),
    "wide Parquet" + BARE: (1_000_000, 10_000_000),
    "wide CSV": (100_000, 1_000_000),
    "long Parquet": (100_000, 1_000_000),
    "long Parquet" + MEMORY: (100_000, 400_000),
    "long CSV": (10_000, 100_000),
    "PostgreSQL": (10_000, 100_000, 400_000),
    "DuckDB": (10_000, 100_000),
    "SQLite": (10_000,),
}
PEOPLE = ("kept in a private file", "held in memory", DUCKDB)
PEOPLE_COLUMNS = ("person", "unit", "month", "spent")
PEOPLE_UNITS = [f"region {i:02}" for i in range(60)]
PEOPLE_MONTHS = [f"{2020 + i // 12}-{1 + i % 12:02}" for i in range(36)]
ORDER_COLUMNS, ORDER_PERIODS = ("unit", "month", "spent"), 50
SORTED = "DuckDB's sort"
ORDERS = ("shuffled", "a file for each month", "shuffled" + DASK, SORTED)
PERIODS, PERIODS_DONORS = (10, 50, 200, 1000, 2000), 20_000


def panel(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    factors = np.cumsum(rng.normal(size=(3, T0 + H)), axis=1)
    paths = rng.uniform(-1, 1, (n + 1, 3)) @ factors + 0.3 * rng.normal(size=(n + 1, T0 + H))
    return paths[1:], paths[0]


def fit_task(name: str, n: int) -> Callable[[], object]:
    """Return one fit, from arrays in memory to a counterfactual (imports are done before)."""
    donors, target = panel(n)
    X, Z, y = donors[:, :T0], donors[:, T0:], target[:T0]
    if name.startswith("dpsc"):
        from dpsc import GramRelease, Panel, SyntheticControl

        whole = Panel.from_arrays(donors, target, treatment_time=T0)
        if name == "dpsc ridge":
            return lambda: SyntheticControl(method="ridge", lambda_=1.0).fit(whole)
        if name == "dpsc robust":
            return lambda: SyntheticControl(method="robust", rank=min(3, n), lambda_=1.0).fit(whole)
        return lambda: GramRelease(epsilon=1.0, delta=1e-9).release(whole).estimate(whole.target, T0)
    if name == "scikit-learn Ridge":
        from sklearn.linear_model import Ridge

        return lambda: Ridge(alpha=0.5, fit_intercept=False, solver="auto").fit(X.T, y).predict(Z.T)
    if name == "pysyncon RobustSynth":
        from pysyncon import RobustSynth

        prepared = dataprep(donors, target)

        def robust() -> object:
            synth = RobustSynth()
            synth.fit(prepared, lambda_=0.5, sv_count=min(3, n))
            return synth

        return robust

    def primal() -> object:
        f = np.linalg.solve(X @ X.T + 0.5 * np.eye(n), X @ y)
        return Z.T @ f

    return primal


def dataprep(donors: np.ndarray, target: np.ndarray) -> object:
    """Return the panel in the form that pysyncon takes, made before the time is taken."""
    from pysyncon import Dataprep

    names = [f"d{i}" for i in range(len(donors))]
    wide = pd.DataFrame(np.vstack([target, donors]).T, columns=["target", *names])
    long = wide.assign(time=range(len(wide))).melt(id_vars="time", var_name="unit", value_name="y")
    return Dataprep(
        foo=long, predictors=["y"], predictors_op="mean", time_predictors_prior=range(T0), dependent="y",
        unit_variable="unit", time_variable="time", treatment_identifier="target", controls_identifier=names,
        time_optimize_ssr=range(T0),
    )  # fmt: skip


def parquet(n: int) -> Path:
    """Make, once, a wide Parquet file of n donors and 50 periods, in row groups of 100,000."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    DATA.mkdir(exist_ok=True)
    path = DATA / f"{n}.parquet"
    if not path.exists():
        names = [f"t{i:02}" for i in range(COLUMNS)]
        schema = pa.schema([("who", pa.int64()), *((name, pa.float64()) for name in names)])
        rng = np.random.default_rng(0)
        with pq.ParquetWriter(path, schema, compression="snappy") as writer:
            for start in range(0, n, ROW_GROUP):
                rows = min(ROW_GROUP, n - start)
                block = rng.normal(size=(COLUMNS, rows))
                arrays = [pa.array(np.arange(start, start + rows)), *(pa.array(column) for column in block)]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return path


def wide_csv(n: int) -> Path:
    """Make, once, a wide CSV of n donors and 50 periods, of numbers with two decimals."""
    import pyarrow as pa
    from pyarrow import csv

    path = DATA / f"{n}.csv"
    if not path.exists():
        DATA.mkdir(exist_ok=True)
        names = [f"t{i:02}" for i in range(COLUMNS)]
        rng = np.random.default_rng(0)
        schema = pa.schema([("who", pa.int64()), *((name, pa.float64()) for name in names)])
        with csv.CSVWriter(path, schema) as writer:
            for start in range(0, n, ROW_GROUP):
                rows = min(ROW_GROUP, n - start)
                block = rng.normal(50, 20, size=(COLUMNS, rows)).round(2)
                arrays = [pa.array(np.arange(start, start + rows)), *(pa.array(column) for column in block)]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
    return path


def long_table(n: int, ending: str) -> Path:
    """Make, once, a long table of n donors in 50 months, the rows of each together: Parquet, CSV or a file of DuckDB."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    DATA.mkdir(exist_ok=True)
    path = DATA / f"{n}-long.{ending}"
    if path.exists():
        return path
    if ending != "parquet":
        import duckdb

        source = long_table(n, "parquet")
        with duckdb.connect(str(path) if ending == "duckdb" else ":memory:", config={"threads": 2}) as made:
            if ending == "duckdb":
                made.execute(f"create table visits as select * from '{source}'")
            else:
                made.execute(f"copy (select * from '{source}') to '{path}' (format csv, header)")
        return path
    rng = np.random.default_rng(0)
    months = pa.array([f"{2020 + i // 12}-{1 + i % 12:02}" for i in range(COLUMNS)])
    schema = pa.schema([("unit", pa.string()), ("month", pa.string()), ("spent", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, ROW_GROUP // 5):
            rows = min(ROW_GROUP // 5, n - start)
            who = pa.array(np.char.add("C", (10**9 + np.arange(start, start + rows)).astype(str)))
            units = who.take(pa.array(np.repeat(np.arange(rows), COLUMNS)))
            when = months.take(pa.array(np.tile(np.arange(COLUMNS), rows)))
            spent = pa.array(rng.gamma(2, 30, rows * COLUMNS).round(2))
            writer.write_table(pa.Table.from_arrays([units, when, spent], schema=schema))
    return path


def sqlite(n: int) -> Path:
    """Make, once, a file of SQLite with the same rows."""
    import sqlite3

    import pyarrow.parquet as pq

    path = DATA / f"{n}-long.sqlite"
    if not path.exists():
        with sqlite3.connect(path) as made, pq.ParquetFile(long_table(n, "parquet")) as file:
            made.execute("create table visits (unit text, month text, spent real)")
            for batch in file.iter_batches():
                columns = (column.to_pylist() for column in batch.columns)
                made.executemany("insert into visits values (?, ?, ?)", zip(*columns, strict=True))
        made.close()
    return path


@contextmanager
def postgres(n: int) -> Iterator[str]:
    """Start a server with the same rows, and yield its address; nothing is left of it."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from tests.ledger.servers import a_server

    for server in a_server():
        address = server.url("data").replace("+psycopg", "")
        with server.connect("data") as here, here.cursor() as cursor:
            cursor.execute("create table visits (unit text, month text, spent double precision)")
            with cursor.copy("copy visits from stdin csv header") as copy, long_table(n, "csv").open("rb") as file:
                while some := file.read(2**20):
                    copy.write(some)
        yield address


def products(T: int) -> Any:
    """Return what a release adds up over T periods, in all directions."""
    from dpsc.custodian.gram.exact_sum import Products
    from dpsc.release.kernel import Kernel
    from dpsc.release.rowmap import RowMap

    return Products(RowMap(T, Kernel.named("high"), None, T - 1, 5.0, 18))


def in_memory(name: str, n: int, T: int) -> Callable[[], object]:
    """Return one of GRAMS on n × T normal numbers."""
    from dpsc.custodian.gram.sources import sum_of_rows

    donors = np.random.default_rng(0).normal(size=(n, T))
    if name == "bare X'X":
        return lambda: donors.T @ donors
    return lambda: sum_of_rows(donors, products(T), threads=1)


def periods_task(name: str, T: int) -> Callable[[], object]:
    return in_memory(name, PERIODS_DONORS, T)


def read_parquet(path: Path) -> int:
    """Read a Parquet file with pyarrow alone: with its fastest options, in constant memory."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, buffer_size=2**18, pre_buffer=False) as file:
        return sum(file.read_row_group(i).num_rows for i in range(file.num_row_groups))


def multiply_parquet(path: Path) -> object:
    """Read a Parquet file with pyarrow alone, and multiply its columns in float64: the least that a release takes."""
    import pyarrow.parquet as pq

    total = np.zeros((COLUMNS, COLUMNS))
    with pq.ParquetFile(path, buffer_size=2**18, pre_buffer=False) as file:
        for i in range(file.num_row_groups):
            columns = np.array([column.to_numpy() for column in file.read_row_group(i).columns[1:]])
            total += columns @ columns.T
    return total


def read_csv(path: Path) -> int:
    """Read a CSV with pyarrow alone, block by block."""
    from pyarrow import csv

    return sum(batch.num_rows for batch in csv.open_csv(path))


def grouped(source: str) -> int:
    """Group a long table by unit and month with DuckDB, which is not shown the result."""
    import duckdb

    if source.endswith(".duckdb"):
        connection = duckdb.connect(source, read_only=True, config={"threads": 2})
        rows = "visits"
    else:
        connection, rows = duckdb.connect(config={"threads": 2}), f"'{source}'"
    with connection:
        sums = f"select unit, month, sum(spent) as s from {rows} group by all"
        return int(connection.execute(f"select count(*), sum(s) from ({sums})").fetchall()[0][0])


def read_database(address: str) -> int:
    """Read all rows of a table with the driver alone."""
    from dpsc.tables.database import _ENGINES
    from dpsc.tables.places import place_of

    opened = _ENGINES[place_of(address, "visits").engine](address)
    return sum(batch.num_rows for batch in opened.batches("select unit, month, spent from visits", 2**20))


def tables_task(name: str, n: int) -> Tasks:
    """Return all passes of a release, until noise is drawn, and what reads or groups the same table."""
    from dpsc import GramRelease, scan

    kind, _, engine = name.partition(",")
    options: dict[str, Any] = {"engine": "memory" if "memory" in engine else "stream"}
    if "Dask" in engine:
        options = {"engine": "dask", "scheduler": two_workers()}
    if kind.startswith("wide"):
        path = parquet(n) if kind == "wide Parquet" else wide_csv(n)
        options |= {"unit": "who", "wide": True, "periods": [f"t{i:02}" for i in range(COLUMNS)]}
        base = partial(read_parquet if kind == "wide Parquet" else read_csv, path)
        if name.endswith(BARE):
            return partial(multiply_parquet, path), base
    else:
        options |= {"unit": "unit", "time": "month", "outcome": "spent", "periods": "2020-01..2024-02"}
        if kind.startswith("long"):
            path = long_table(n, kind.removeprefix("long ").lower())
            base = partial(grouped, str(path))
        else:
            options["table"] = "visits"
            if kind == "PostgreSQL":
                kept = postgres(n)
                path = kept.__enter__()
                atexit.register(kept.__exit__, None, None, None)
            else:
                file = long_table(n, "duckdb") if kind == "DuckDB" else sqlite(n)
                path = f"{kind.lower()}:///{file}"
            base = partial(read_database, path) if kind != "DuckDB" else partial(grouped, str(file))
    make = GramRelease(epsilon=1.0, delta=1e-9)
    return lambda: make.custodian_sum(scan(path, missing="kernel", **options)), base


def two_workers() -> str:
    """Start a scheduler and two workers, and return their address."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50)
    Client(cluster).wait_for_workers(2)
    return str(cluster.scheduler_address)


def records(n: int) -> Path:
    """Make, once, a Parquet file of n records of n / 25 people in 36 months and 60 units, in no order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    DATA.mkdir(exist_ok=True)
    path = DATA / f"{n}-records.parquet"
    if not path.exists():
        rng = np.random.default_rng(0)
        units, months = pa.array(PEOPLE_UNITS), pa.array(PEOPLE_MONTHS)
        schema = pa.schema([*((name, pa.string()) for name in PEOPLE_COLUMNS[:3]), (PEOPLE_COLUMNS[3], pa.float64())])
        with pq.ParquetWriter(path, schema) as writer:
            for start in range(0, n, 1_000_000):
                rows = min(1_000_000, n - start)
                who = rng.integers(0, max(1, n // 25), rows)
                away = rng.random(rows) < 0.05
                where = np.where(away, rng.integers(0, len(units), rows), who * 7919 % len(units))
                who_text = pa.array(np.char.add("P", (10**9 + who).astype(str)))
                when = months.take(pa.array(rng.integers(0, len(months), rows)))
                spent = pa.array(rng.gamma(2, 30, rows).round(2))
                writer.write_table(pa.table([who_text, units.take(pa.array(where)), when, spent], schema=schema))
    return path


def people_task(name: str, n: int) -> Callable[[], object]:
    """Return one way to add up records of people in cells."""
    path = records(n)
    if name == DUCKDB:
        import duckdb

        person, unit, month, spent = PEOPLE_COLUMNS
        sums = f"select {person}, {unit}, {month}, sum({spent}) as s from '{path}' group by all"
        return lambda: (
            duckdb.connect(config={"threads": 2}).execute(f"select count(*), sum(s) from ({sums})").fetchall()
        )
    from dpsc import scan
    from dpsc.custodian.groups.bounding import Bounding
    from dpsc.release.table_rule import TableRule

    columns = dict(zip(("person", "unit", "time", "outcome"), PEOPLE_COLUMNS, strict=True))
    engine = "memory" if name == "held in memory" else "stream"
    people = scan(path, **columns, units=PEOPLE_UNITS, periods=PEOPLE_MONTHS, engine=engine)
    rule = TableRule("mean", (0.0, 500.0), 800.0, 1, None, len(PEOPLE_UNITS), len(PEOPLE_MONTHS))
    return lambda: people.add_up(Bounding(rule), lambda rows: None)


def in_any_order(n: int, name: str) -> Path:
    """Make, once, a long table of n rows, n / 50 units in 50 months: shuffled, or a folder with a file for each month."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = DATA / f"{n}-{'shuffled' if name == SORTED else name}".replace(" ", "-")
    if not folder.exists():
        DATA.mkdir(exist_ok=True)
        rng, units = np.random.default_rng(0), n // ORDER_PERIODS
        making = folder.with_name(folder.name + "-making")
        making.mkdir(exist_ok=True)
        months = pa.array([f"{2020 + i // 12}-{1 + i % 12:02}" for i in range(ORDER_PERIODS)])
        for part in range(ORDER_PERIODS):
            if name == "a file for each month":
                who, when = rng.permutation(units), np.full(units, part)
            else:  # row i is of unit i // 50, mixed by a step that has no divisor in common with n
                row = (np.arange(part * units, (part + 1) * units, dtype=np.int64) * 7_368_787) % n
                who, when = row // ORDER_PERIODS, row % ORDER_PERIODS
            columns = [pa.array(np.char.add("C", (10**9 + who).astype(str))), months.take(pa.array(when))]
            values = pa.array(rng.gamma(2, 30, units).round(2))
            pq.write_table(pa.table([*columns, values], names=list(ORDER_COLUMNS)), making / f"{part:02}.parquet")
        making.rename(folder)
    return folder


def order_task(name: str, n: int) -> Callable[[], object]:
    """Return a way to bring the rows of each unit together, and what a release adds up of them."""
    path = in_any_order(n, name.removesuffix(DASK))
    if name == SORTED:
        import duckdb

        settings = {"threads": 2, "memory_limit": "2GB", "temp_directory": str(DATA / "duckdb")}
        rows = f"from '{path}/*.parquet' order by {', '.join(ORDER_COLUMNS[:2])}"
        target = DATA / "sorted.parquet"
        return lambda: duckdb.connect(config=settings).execute(f"copy (select * {rows}) to '{target}'")
    from dpsc import scan

    columns = dict(zip(("unit", "time", "outcome"), ORDER_COLUMNS, strict=True))
    engine: dict[str, Any] = {"engine": "stream"}
    if name.endswith(DASK):
        engine = {"engine": "dask", "scheduler": two_workers()}
    donors = scan(path, **columns, periods="2020-01..2024-02", missing="kernel", **engine)
    return lambda: donors.add_up(products(ORDER_PERIODS), lambda rows: None)


def two_step_task(name: str, n: int) -> Callable[[], object]:
    from dpsc import ObjectivePerturbation, OutputPerturbation, Panel

    donors = np.random.default_rng(0).random((n, 103))
    donors *= 2
    donors -= 1
    target = np.linspace(-0.5, 0.5, 103)

    def run() -> object:
        whole = Panel.from_arrays(donors, target, treatment_time=100, bounds=(-1, 1))
        algorithm = OutputPerturbation if name.startswith("output") else ObjectivePerturbation
        return algorithm(epsilon=1.0, delta=1e-9 if name.endswith("δ > 0") else 0.0).fit(whole)

    return run


TASKS: dict[str, Callable[[str, int], Any]] = {
    "fit": fit_task,
    "tables": tables_task,
    "periods": periods_task,
    "people": people_task,
}
TASKS |= {"order": order_task, "two-step": two_step_task}


def peak_memory() -> float:
    """Return the most memory that this process, or one of those it started, has had, in MB."""
    return max(map(_peak_of, family()))


def _peak_of(process: psutil.Process) -> float:
    (line,) = (s for s in Path(f"/proc/{process.pid}/status").read_text().splitlines() if s.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def family() -> list[psutil.Process]:
    """Return this process and those it started, but for a database's server."""
    found = [psutil.Process()]
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # a server's process may end at any moment
            if "postgres" not in process.name():
                found.append(process)
    return found


def processor_seconds() -> float:
    """Return user and system time of this process and of those it started."""
    return time.process_time() + sum(sum(process.cpu_times()[:2]) for process in family()[1:])


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return how long work takes, and how much processor time."""
    started, before = time.perf_counter(), processor_seconds()
    work()
    return time.perf_counter() - started, processor_seconds() - before


def one(kind: str, name: str, n: int, rounds: int) -> None:
    """Measure one task in this process, and print it; what it is compared with, too, in turn."""
    made = TASKS[kind](name, n)
    task, base = made if isinstance(made, tuple) else (made, None)
    Path("/proc/self/clear_refs").write_text("5")  # what making the file took does not count
    before = peak = peak_memory()
    times, bases = [], []
    for _ in range(rounds):
        times.append(timed(task))
        peak = peak if len(times) > 1 else peak_memory()  # of the first round, before what it is compared with
        if base is not None:
            bases.append(timed(base))
    row = {"kind": kind, "what": name, "n": n, "peak MB": peak, "added MB": peak - before}
    row |= dict(zip(("seconds", "processor"), map(min, zip(*times, strict=True)), strict=True))
    if bases:
        row |= dict(zip(("base seconds", "base processor"), map(min, zip(*bases, strict=True)), strict=True))
    print(json.dumps(row), flush=True)
    atexit._run_exitfuncs()  # a database's server
    os._exit(0)  # ends clusters at once


def measured(kind: str, name: str, n: int, rounds: int = 3) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, __file__, "--one", kind, name, str(n), str(rounds)],
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout.strip():
        print(done.stderr[-500:])
        return {"kind": kind, "what": name, "n": n}
    print(done.stdout.strip().splitlines()[-1], flush=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def start_up() -> list[dict[str, object]]:
    """Time fresh interpreters, in turn."""
    commands = {
        "python -c pass": ["-c", "pass"],
        "dpsc --help": ["-m", "dpsc", "--help"],
        "import dpsc": ["-c", "import dpsc"],
        "import every public name of dpsc": ["-c", "from dpsc import *"],
        "import numpy, pandas": ["-c", "import numpy, pandas"],
    }
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(7):
        for name, arguments in commands.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
            best[name] = min(best[name], time.perf_counter() - started)
    return [{"kind": "start", "what": name, "n": 0, "seconds": seconds} for name, seconds in best.items()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=[*TASKS, "start"])
    parser.add_argument("--largest", type=int, default=10_000_000)
    parser.add_argument("--records", type=int, default=50_000_000)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--one", nargs=4)
    options = parser.parse_args()
    if options.one:
        kind, name, n, rounds = options.one
        one(kind, name, int(n), int(rounds))
    wanted = [options.only] if options.only else [*TASKS, "start"]
    rows: list[dict[str, object]] = []
    if "fit" in wanted:
        for n in FIT_SIZES:
            slow = n >= 10_000
            rows += [
                measured("fit", name, n, 1 if slow and "pysyncon" in name else 3)
                for name in FITS
                if not (name.startswith("primal") and n > LARGEST_PRIMAL) and not ("pysyncon" in name and n > 10_000)
            ]
    if "tables" in wanted:
        for name, sizes in SIZES.items():
            rows += [measured("tables", name, n, 1 if n > 10**6 else 3) for n in sizes if n <= options.largest]
    if "periods" in wanted:
        rows += [measured("periods", name, T, 5 if T <= 500 else 2) for T in PERIODS for name in GRAMS]
    if "people" in wanted:
        records(options.records)
        rows += [measured("people", name, options.records, 3) for name in PEOPLE]
    if "order" in wanted:
        wanted_rows = [(name, options.rows) for name in ORDERS if not name.endswith(DASK)]
        wanted_rows += [(name, options.rows // 10) for name in ORDERS[::2]]  # Dask holds the rows in memory
        for name, n in wanted_rows:
            in_any_order(n, name.removesuffix(DASK))
            rows.append(measured("order", name, n, 1))
    if "two-step" in wanted:
        n = min(1_000_000, options.largest)
        rows += [measured("two-step", name, n, 1) for name in ("output, δ = 0", "output, δ > 0", "objective, δ = 0")]
    if "start" in wanted:
        rows += start_up()
    path = OUT / "scale.csv"
    new = pd.DataFrame(rows)
    if path.exists():
        old = pd.read_csv(path)
        new = pd.concat([old[~old["kind"].isin(new["kind"].unique())], new])
    new.to_csv(path, index=False, float_format="%.6g")
    if failed := [f"{row['what']}, n = {row['n']}" for row in rows if "seconds" not in row]:
        raise SystemExit(f"could not be measured: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
