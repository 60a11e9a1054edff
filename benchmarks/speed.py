"""Speed of the Gram release and of its estimates, as ratios against bare matrix products in the same run.

Long tables are compared with DuckDB, which groups the same file.

    OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py
    OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py --customers 20000    # only a trial of the long tables

Writes results/speed.md, except in a trial. Each time is the shortest of several repetitions, taken in turn.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import before
import numpy as np

from dpsc import GramRelease, SyntheticControl
from dpsc.custodian.donors.panel import Panel
from dpsc.custodian.gram.exact_sum import Products
from dpsc.custodian.gram.sources import sum_of_rows
from dpsc.release.kernel import Kernel
from dpsc.release.rowmap import RowMap

THREADS = ("1 thread", "2 threads")
OUT = Path(__file__).parent / "results"


def best(*tasks: Callable[[], object], repeat: int = 5) -> list[float]:
    """Return the shortest time of each task, repeated in turn so that other load on the machine affects all alike."""
    times = [[float("inf")] for _ in tasks]
    for _ in range(repeat):
        for k, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            times[k].append(time.perf_counter() - start)
    return [min(t) for t in times]


def peak_memory() -> float:
    """Return the largest resident memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


ADD_UP = """
import sys, time
import numpy as np
from dpsc import GramRelease
donors = np.cumsum(np.random.default_rng(0).normal(size=(1_000_000, 50)), axis=1)
release = GramRelease(epsilon=1.0, delta=1e-9, **eval(sys.argv[1]))
times = []
for _ in range(5):
    start = time.perf_counter()
    release.custodian_sum(donors)
    times.append(time.perf_counter() - start)
print(min(times))
"""


def against_before() -> list[str]:
    """Return the time to add up a million donors over 50 periods, against version 0.1.0, in turn."""
    here = str(Path(__file__).parent.parent / "src")
    ways = {
        "version 0.1.0": (str(before.source()), "{}"),
        "scale given": (here, "dict(scale=1.0)"),
        "scale found privately": (here, "{}"),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(3):
        for name, (path, options) in ways.items():
            environment = os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
            command = [sys.executable, "-c", ADD_UP, options]
            done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
            times[name].append(float(done.stdout))
    least = {name: min(values) for name, values in times.items()}
    return [
        f"| exact sum, {name}, 1,000,000 × 50 | {seconds:.2f} | {seconds / least['version 0.1.0']:.2f} × 0.1.0 |"
        for name, seconds in least.items()
    ]


LONG = """
import resource, time
import numpy as np
from dpsc import GramRelease
rng = np.random.default_rng(0)
T, n = 2000, 4000
donors = rng.normal(1, 1, size=(n, 3)) @ np.cumsum(rng.normal(size=(3, T)), axis=1) + rng.normal(size=(n, T))
release = GramRelease(epsilon=1.0, delta=1e-6, scale=30.0, directions=T - 1, seed=0).release(donors)
release.save("long.dpsc.json")
"""
READ = """
import resource, time
import numpy as np
from dpsc import Release
release = Release.load("long.dpsc.json")
target = np.cumsum(np.random.default_rng(1).normal(size=2000))
start = time.perf_counter()
release.estimate(target, 1960).interval()
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def long_panel() -> str:
    """Return time and memory of an estimate with 2,000 periods and as many directions, in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent / "src"), "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        for program in (LONG, READ):
            command = [sys.executable, "-c", program]
            done = subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True, text=True)
    seconds, memory = map(float, done.stdout.split())
    return f"| estimate with intervals, T = 2,000 | {seconds:.1f} | goal 20; {memory:.2f} GB in all, goal 1 |"


MAKE_TABLES = """
import sys
import numpy as np, pandas as pd, pyarrow as pa, pyarrow.parquet as pq
rng = np.random.default_rng(0)
n, T = int(sys.argv[1]), 52
weeks = pd.date_range("2023-01-02", periods=T, freq="7D").strftime("%Y-%m-%d").to_numpy()
customers = np.array([f"C{i:07d}" for i in rng.permutation(n)])
spent = np.round(rng.normal(size=(n, T)).cumsum(axis=1) * 10 + 100, 2)
table = pa.table({"customer": np.repeat(customers, T), "week": np.tile(weeks, n), "spent": spent.ravel()})
pq.write_table(table, "sorted.parquet")
pq.write_table(table.take(pa.array(rng.permutation(n * T))), "shuffled.parquet")
"""
GROUP = """
import sys, time
import duckdb
duckdb.sql("SET enable_progress_bar = false")
start = time.perf_counter()
duckdb.sql(f"SELECT customer, week, sum(spent) AS spent FROM '{sys.argv[1]}' GROUP BY customer, week").to_arrow_table()
print(time.perf_counter() - start)
"""
COMMAND = """
import subprocess, sys, time
columns = ["--unit", "customer", "--time", "week", "--outcome", "spent"]
budget = ["--epsilon", "1", "--delta", "1e-9", "--no-ledger", "-o", "r.json", "--force"]
start = time.perf_counter()
command = [sys.executable, "-m", "dpsc", "release", *sys.argv[1:], *columns, *budget]
subprocess.run(command, check=True, capture_output=True)
print(time.perf_counter() - start)
"""
FRAME = """
import sys, time
import pandas as pd
from dpsc import Donors, GramRelease
frame = pd.read_parquet(sys.argv[1])
start = time.perf_counter()
donors = Donors.from_long(frame, unit="customer", time="week", outcome="spent")
GramRelease(epsilon=1.0, delta=1e-9).release(donors)
print(time.perf_counter() - start)
"""


def long_tables(customers: int) -> list[str]:
    """Return the times of releases from a long table of 52 weeks, against DuckDB's grouping of it, in turn."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent / "src"), "OPENBLAS_NUM_THREADS": "1"}
    duckdb = "DuckDB groups by unit and week"
    command = "`dpsc release`, reading and start of the program included"
    frame = "`Donors.from_long` of a frame, and its release"
    stream = "`dpsc release --engine stream`"
    ways = {duckdb: (GROUP,), command: (COMMAND,), frame: (FRAME,), stream: (COMMAND, "--engine", "stream")}
    lines = []
    with tempfile.TemporaryDirectory() as folder:

        def run(program: str, *arguments: str) -> str:
            done = [sys.executable, "-c", program, *arguments]
            return subprocess.run(done, env=environment, cwd=folder, check=True, capture_output=True, text=True).stdout

        run(MAKE_TABLES, str(customers))
        for order in ("sorted", "shuffled"):
            least = dict.fromkeys(ways, float("inf"))
            for _ in range(3):
                for name in ways:
                    program, *options = ways[name]
                    least[name] = min(least[name], float(run(program, f"{order}.parquet", *options)))
            against = {
                duckdb: "",
                command: f"{least[command] / least[duckdb]:.1f} × DuckDB, goal 3",
                frame: f"{least[frame] / least[command]:.2f} × the command, goal 1.3",
                stream: f"{least[stream] / least[duckdb]:.1f} × DuckDB",
            }
            lines += [
                f"| long table, {52 * customers:,} rows, {order}: {name} | {least[name]:.1f} | {against[name]} |"
                for name in ways
            ]
    return lines


HEAD = ["| what | seconds | against |", "|---|---|---|"]


def measured() -> list[str]:
    """Return the table of all speeds."""
    rng = np.random.default_rng(0)
    donors = rng.normal(size=(1_000_000, 110))
    first = peak_memory()
    GramRelease(epsilon=1.0, delta=1e-9, scale=1.0).release(donors[:100])
    lines = [*HEAD]

    high, none = (Products(RowMap(110, Kernel.named(name), None, 109, 5.0, 18)) for name in ("high", "none"))
    start = peak_memory()
    GramRelease(epsilon=1.0, delta=1e-9, scale=1.0).release(donors)
    extra = peak_memory() - max(first, start)
    names = ["bare `X.T @ X`, one BLAS thread"]
    names += [f"exact Gram, smoothness {name}, {threads}" for name in ("high", "none") for threads in THREADS]
    times = best(
        lambda: donors.T @ donors,
        lambda: sum_of_rows(donors, high, threads=1),
        lambda: sum_of_rows(donors, high, threads=2),
        lambda: sum_of_rows(donors, none, threads=1),
        lambda: sum_of_rows(donors, none, threads=2),
    )
    for name, seconds in zip(names, times, strict=True):
        lines.append(f"| {name}, 1,000,000 × 110 | {seconds:.2f} | {seconds / times[0]:.2f} × bare |")
    lines += against_before()
    lines.append(f"| memory of a release beyond its input, 1,000,000 × 110 | – | {extra:.0f} MB |")

    small = donors[:2000]
    target = donors[0]
    (noise,) = best(lambda: GramRelease(epsilon=1.0, delta=1e-9, scale=1.0, directions=109).release(small[:10]))
    lines.append(f"| release of 10 donors, T = 110 (the noise) | {noise:.2f} | goal 0.3 |")
    releases = [GramRelease(epsilon=1.0, delta=1e-6, scale=1.0).release(small) for _ in range(6)]
    estimate, interval = [], []
    for release in releases:
        start_time = time.perf_counter()
        result = release.estimate(target, 100)
        estimate.append(time.perf_counter() - start_time)
        result.interval()
        interval.append(time.perf_counter() - start_time)
    lines.append(f"| estimate without intervals, T = 110 | {min(estimate):.3f} | goal 0.2 |")
    lines.append(f"| estimate with intervals, T = 110 | {min(interval):.3f} | goal 2 |")

    lines.append(long_panel())
    lines += long_tables(200_000)

    panel = Panel.from_arrays(donors[:100_000], target, treatment_time=100)
    (fit,) = best(lambda: SyntheticControl(lambda_=10.0).fit(panel))
    lines.append(f"| non-private ridge, 100,000 donors, T0 = 100 | {fit:.2f} | goal 0.5 |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--customers", type=int, help="time long tables of so many customers only, and write nothing")
    customers = parser.parse_args().customers
    if customers is not None:
        print("\n".join([*HEAD, *long_tables(customers)]))
        return
    lines = measured()
    OUT.mkdir(exist_ok=True)
    (OUT / "speed.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
