"""How cost grows with the number of donors, against peers and limits measured in the same run, one BLAS thread.

    OPENBLAS_NUM_THREADS=1 python benchmarks/scale.py [--only fit|gram|periods|dask|people|order|two-step|start]
        [--largest 10000000] [--records 50000000]

Every measurement runs in its own process, so that its peak memory is its own (after the first round); times are the
shortest of several rounds in it. Writes results/scale.csv; benchmarks/results_page.py turns it into figures and RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

OUT = Path(__file__).parent / "results"
DATA = Path(tempfile.gettempdir()) / "dpsc-bench"
T0, H = 40, 10
FIT_SIZES = (10, 100, 1000, 10_000, 100_000)
FITS = ("dpsc ridge", "dpsc robust", "dpsc Gram", "scikit-learn Ridge", "pysyncon RobustSynth", "primal n × n ridge")
LARGEST_PRIMAL = 10_000  # n × n doubles: 800 MB
COLUMNS, ROW_GROUP = 50, 100_000
COLD = ", from disk"
READS = ("reading with pyarrow alone", "stream engine")
GRAMS = ("bare X'X", "exact Gram, 1 thread", "exact Gram, 2 threads")
DUCKDB = "DuckDB's group by"
PEOPLE = ("kept in a private file", "held in memory", DUCKDB)
PEOPLE_COLUMNS = ("person", "unit", "month", "spent")
PEOPLE_UNITS = [f"region {i:02}" for i in range(60)]
PEOPLE_MONTHS = [f"{2020 + i // 12}-{1 + i % 12:02}" for i in range(36)]
ORDER_COLUMNS, ORDER_PERIODS = ("unit", "month", "spent"), 50
SORTED = "DuckDB's sort"
ORDERS = ("shuffled", "a file for each month", SORTED)
PERIODS, PERIODS_DONORS = (12, 25, 50, 100, 200, 400), 200_000


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


def files(n: int) -> object:
    from dpsc.custodian.donors.donor_files import Files
    from dpsc.tables.spec import TableSpec

    return Files(parquet(n), TableSpec("who", wide=True))


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
    threads = 1 if name.endswith("1 thread") else 2
    return lambda: sum_of_rows(donors, products(T), threads=threads)


def periods_task(name: str, T: int) -> Callable[[], object]:
    return in_memory(name, PERIODS_DONORS, T)


def evict(path: Path) -> None:
    """Remove a file from the system's cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def gram_task(name: str, n: int) -> Callable[[], object]:
    from dpsc.custodian.gram.sources import FileDonors

    if name in GRAMS:
        return in_memory(name, n, COLUMNS)
    source, summand = files(n), products(COLUMNS)
    if name.endswith(COLD):
        evict(source.path)
    if name.startswith("reading with pyarrow alone"):

        def read() -> int:
            import pyarrow.parquet as pq

            options = {"buffer_size": 2**18, "pre_buffer": False}  # its fastest options, with constant memory
            with pq.ParquetFile(source.path, **options) as file:
                return sum(file.read_row_group(i).num_rows for i in range(file.num_row_groups))

        return read
    return lambda: FileDonors(source).add_up(summand, lambda rows: None)


def dask_task(name: str, n: int) -> Callable[[], object]:
    from distributed import Client, LocalCluster

    from dpsc.custodian.gram.dask import DaskDonors, Job, piece_sum, together
    from dpsc.custodian.gram.sources import FileDonors

    source, summand = files(n), products(COLUMNS)
    if name.endswith("without Dask"):
        pool = multiprocessing.get_context("spawn").Pool(int(name[0]))
        job = Job(source, summand)
        pieces = [(job.plain(), piece) for piece in job.pieces(None)]
        return lambda: together(pool.starmap(piece_sum, pieces, chunksize=1))
    if name == "stream, 1 thread":
        return lambda: FileDonors(source, threads=1).add_up(summand, lambda rows: None)
    cluster = LocalCluster(
        n_workers=int(name[5]), threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
    )
    Client(cluster).wait_for_workers(int(name[5]))
    return lambda: DaskDonors(source, cluster.scheduler_address).add_up(summand, lambda rows: None)


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
    path = in_any_order(n, name)
    if name == SORTED:
        import duckdb

        settings = {"threads": 2, "memory_limit": "2GB", "temp_directory": str(DATA / "duckdb")}
        rows = f"from '{path}/*.parquet' order by {', '.join(ORDER_COLUMNS[:2])}"
        target = DATA / "sorted.parquet"
        return lambda: duckdb.connect(config=settings).execute(f"copy (select * {rows}) to '{target}'")
    from dpsc import scan

    columns = dict(zip(("unit", "time", "outcome"), ORDER_COLUMNS, strict=True))
    donors = scan(path, **columns, periods="2020-01..2024-02", missing="kernel", engine="stream")
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


TASKS = {"fit": fit_task, "gram": gram_task, "periods": periods_task, "dask": dask_task, "people": people_task}
TASKS |= {"order": order_task, "two-step": two_step_task}


def peak_memory() -> float:
    """Return the most memory that this process has had, in MB, without that of the process that started it."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def one(kind: str, name: str, n: int, rounds: int) -> None:
    """Measure one task in this process, and print it."""
    task = TASKS[kind](name, n)
    before = peak = peak_memory()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        task()
        times.append(time.perf_counter() - started)
        peak = peak if len(times) > 1 else peak_memory()  # of the first round
    print(
        json.dumps(
            {
                "kind": kind,
                "what": name,
                "n": n,
                "seconds": min(times),
                "peak MB": peak,
                "added MB": peak - before,
            }
        ),
        flush=True,
    )
    os._exit(0)  # ends clusters and pools at once


def measured(kind: str, name: str, n: int, rounds: int = 3) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, __file__, "--one", kind, name, str(n), str(rounds)],
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout.strip():
        print(done.stderr[-500:])
        return {
            "kind": kind,
            "what": name,
            "n": n,
            "seconds": float("nan"),
            "peak MB": float("nan"),
            "added MB": float("nan"),
        }
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
    if "gram" in wanted:
        for n in (10_000, 100_000, 1_000_000, 10_000_000):
            if n <= options.largest:
                parquet(n)
                if n <= 1_000_000:
                    rows += [measured("gram", name, n, 9) for name in GRAMS]
                rows += [measured("gram", name, n, 3 if n > 1_000_000 else 9) for name in READS]
                if n >= 1_000_000:
                    rows += [measured("gram", name + COLD, n, 1) for name in READS]
    if "periods" in wanted:
        rows += [measured("periods", name, T, 7) for T in PERIODS for name in GRAMS]
    if "dask" in wanted:
        n = min(4_000_000, options.largest)
        names = ("stream, 1 thread", "dask 1 worker", "dask 2 workers", "1 without Dask", "2 without Dask")
        rows += [measured("dask", name, n, 6) for name in names]
    if "people" in wanted:
        records(options.records)
        rows += [measured("people", name, options.records, 3) for name in PEOPLE]
    if "order" in wanted:
        for name in ORDERS:
            in_any_order(options.rows, name)
        rows += [measured("order", name, options.rows, 1) for name in ORDERS]
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


if __name__ == "__main__":
    main()
