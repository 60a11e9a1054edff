"""A cluster gives the same integers as one process, whatever its size, and also when workers die."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsc.bounds import Array
from dpsc.engines import dask as engine
from dpsc.engines.arrow import Files
from dpsc.engines.dask import DaskDonors
from dpsc.errors import DpscError, TableError
from dpsc.tabular import Layout
from tests.engines.test_stream import KERNEL, LONG, WIDE, expected, long, save, wide

N, T = 237, 9


@pytest.fixture(scope="module")
def donors() -> Array:
    return np.round(np.random.default_rng(0).normal(size=(N, T)).cumsum(axis=1), 6)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50) as local:
        yield local


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("layout", [WIDE, LONG], ids=["wide", "long"])
def test_an_existing_cluster_gives_the_same_integers(
    donors: Array, cluster: Any, tmp_path: Path, kind: str, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_PIECE_CELLS", 50 * T)  # several pieces
    mixed = long(donors).sample(frac=1, random_state=1)  # a long table need not be sorted here
    path = save(wide(donors) if layout.wide else mixed, tmp_path / f"donors.{kind}")
    seen: list[int] = []
    total, n = DaskDonors(Files(path, layout), cluster.scheduler_address).gram(KERNEL, None, 18, seen.append)
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))
    assert sum(seen) == pytest.approx(N, rel=0.15)


def test_a_person_with_two_rows_in_two_pieces_is_refused(
    donors: Array, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_PIECE_CELLS", 50 * T)
    frame = wide(donors)
    frame.loc[200, "who"] = "p00003"
    path = save(frame, tmp_path / "twice.parquet")
    with pytest.raises(TableError, match="more than one row"):
        DaskDonors(Files(path, WIDE), cluster.scheduler_address).gram(KERNEL, None, 18, lambda rows: None)


def test_a_corrupt_file_is_named_by_the_worker_that_met_it(donors: Array, cluster: Any, tmp_path: Path) -> None:
    save(wide(donors[:100]), tmp_path / "good.parquet")
    save(wide(donors[100:], 100), tmp_path / "late.parquet")
    data = bytearray((tmp_path / "late.parquet").read_bytes())
    data[200:900] = b"\x00" * 700
    (tmp_path / "late.parquet").write_bytes(data)
    with pytest.raises(TableError, match=r"late\.parquet cannot be read"):
        DaskDonors(Files(tmp_path, WIDE), cluster.scheduler_address).gram(KERNEL, None, 18, lambda rows: None)


def test_a_scheduler_that_is_not_there_is_named() -> None:
    nowhere = DaskDonors(Files(Path("x.parquet"), WIDE), "tcp://127.0.0.1:9")
    with pytest.raises(DpscError, match="no Dask scheduler at tcp://127"), nowhere._client():
        pass


def test_a_worker_killed_in_the_middle_changes_nothing(
    donors: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import LocalCluster

    monkeypatch.setattr(engine, "_PIECE_CELLS", 50 * T)
    many = np.tile(donors, (40, 1))
    path = save(wide(many), tmp_path / "donors.parquet")
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50) as local:
        first = next(iter(local.workers.values()))
        victim, done = first.process.process.pid, threading.Event()

        def kill(rows: int) -> None:
            if not done.is_set():  # after the first piece, with most still to do
                done.set()
                os.kill(victim, signal.SIGKILL)

        total, n = DaskDonors(Files(path, WIDE), local.scheduler_address).gram(KERNEL, None, 18, kill)
        assert done.is_set()
        deadline = time.monotonic() + 30
        while first.process is not None and first.process.process.pid == victim and time.monotonic() < deadline:
            time.sleep(0.1)
        assert first.process is None or first.process.process.pid != victim  # it did die
    assert n == 40 * N
    np.testing.assert_array_equal(total, 40 * expected(donors))


def test_what_goes_wrong_on_a_worker_is_told_without_the_donors(
    donors: Array, cluster: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = long(donors).assign(cost=lambda t: t["cost"] + 77777.125)
    table.loc[4, "week"] = "w1"  # a donor with two rows for a period
    path = save(table, tmp_path / "twice.parquet")
    with pytest.raises(TableError, match="more than one row for a period") as refusal:
        DaskDonors(Files(path, LONG), cluster.scheduler_address).gram(KERNEL, None, 18, lambda rows: None)
    printed = capfd.readouterr()
    assert "777" not in printed.out + printed.err + str(refusal.value)
