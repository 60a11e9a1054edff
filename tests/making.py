"""What tests are made of: panels, tables of donors, a secret and clusters, made here and in no test file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsc import Panel
from dpsc.analyst.private_panel import PrivatePanel
from dpsc.custodian.groups.algorithm import PanelRelease, PeopleSum
from dpsc.evidence.audit.people import Crowd, Person
from dpsc.release.kernel import Kernel, Smoothness
from dpsc.release.rowmap import RowMap
from dpsc.types import Array

SECRET = 987654.321  # a donor's value: whatever goes wrong, nothing that is printed, raised or saved shows it


def told(*texts: str) -> bool:
    """Whether one of the texts shows the secret, or its first digits; not by chance within noise or a hash."""
    return any(re.search(r"987654\D?3|(?<![0-9a-f])98765(?![0-9a-f]{3})", text) for text in texts)


def make_panel(n: int = 12, T0: int = 8, h: int = 3, seed: int = 0, bounds: tuple[float, float] = (-1, 1)) -> Panel:
    """Donors and target that follow two factors, within [-1, 1] times the bounds' size."""
    rng = np.random.default_rng(seed)
    factors = rng.uniform(-1, 1, size=(2, T0 + h))
    loadings = rng.uniform(-0.5, 0.5, size=(n + 1, 2))
    paths = (loadings @ factors) * max(abs(bounds[0]), abs(bounds[1]))
    paths = np.clip(paths, *bounds)
    return Panel.from_arrays(paths[1:], paths[0], treatment_time=T0, bounds=bounds)


def make_private_panel(
    units: Any = ("a", "b", "c"), times: Any = (2001, 2002), sums: Any = 0, dataset: str = "", **options: Any
) -> PrivatePanel:
    """A released panel of sums that are given, in steps of the rule, and means of values in 0..10 by default."""
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "bounds": (0.0, 10.0)} | options
    make = PanelRelease(**given)
    units, times = tuple(units), pd.Index(times)
    rule = make.rule_for(units, times)
    total = np.broadcast_to(np.asarray(sums, dtype=np.int64), (rule.tables, len(units), len(times))).copy()
    return make.release(PeopleSum(total, rule, units, times, "visits"), dataset=dataset)


def crowd_of(number: int, seed: int = 0, size: float = 0.3) -> Crowd:
    """People with few large and many small values, each in some of 6 years in one of 4 units."""
    rng = np.random.default_rng(seed)
    people = []
    for _ in range(number):
        years = rng.permutation(6)[: 1 + rng.binomial(5, 0.2)]
        values = size * rng.lognormal() * rng.uniform(0.5, 1, len(years))
        people.append(Person(np.sort(years) * 4 + rng.integers(4), values))
    return Crowd(people, pd.Index(range(2001, 2007)))


def make_bounded_panel(number: int = 3000, **options: Any) -> PrivatePanel:
    """A released panel of totals in 0..10 whose bound on a person was found privately."""
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "bounds": (0.0, 10.0), "statistic": "total"}
    return PanelRelease(**given | {"person_bound_quantile": 0.5} | options).release(crowd_of(number), dataset=None)


def row_map(
    T: int,
    smoothness: Smoothness = "high",
    *,
    directions: int | None = None,
    constant: float = 1.0,
    reference: Array | None = None,
    bits: int = 18,
) -> RowMap:
    """A map as of a release, with all T - 1 directions by default."""
    kept = T - 1 if directions is None else directions
    return RowMap(T, Kernel.named(smoothness), reference, kept, constant, bits)


def wide(values: Array, units: Any = None, times: Any = None, unit: str = "who") -> pd.DataFrame:
    """One row per unit, one column per period."""
    frame = pd.DataFrame(values, columns=list(period_labels(values) if times is None else times))
    frame.insert(0, unit, unit_labels(values) if units is None else units)
    return frame


def long(
    values: Any, units: Any = None, times: Any = None, names: tuple[str, str, str] = ("who", "week", "cost")
) -> pd.DataFrame:
    """One row per unit and period, one unit after the other."""
    units = list(unit_labels(values) if units is None else units)
    times = list(period_labels(values) if times is None else times)
    unit = [label for label in units for _ in times]
    return pd.DataFrame({names[0]: unit, names[1]: times * len(units), names[2]: np.ravel(values)})


def unit_labels(values: Array) -> list[str]:
    return [f"p{i:05}" for i in range(len(values))]


def period_labels(values: Array) -> list[str]:
    return [f"w{t}" for t in range(1, values.shape[1] + 1)]


def save(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table in the kind of file that the name says; Parquet in row groups of fifty."""
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=50)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    elif path.suffix == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@contextmanager
def local_cluster(workers: int = 2, *, spawned: bool = False) -> Iterator[Any]:
    """A Dask cluster in processes of its own, which says nothing.

    Its workers are forked from a process that has imported what they need; only workers that are spawned, which takes
    seconds, print where the test listens.
    """
    import dask
    from distributed import LocalCluster
    from distributed.utils import get_mp_context

    with dask.config.set({"distributed.worker.multiprocessing-method": "spawn" if spawned else "forkserver"}):
        if not spawned:
            get_mp_context().set_forkserver_preload(["distributed", "dask.dataframe", "dpsc.custodian.gram.dask"])
        with LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster:
            yield cluster
