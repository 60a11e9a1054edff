"""A cluster gives the same integers as one process, whatever its size, and also when workers die."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import distributed
import numpy as np
import pytest
from distributed import Security

from dpsc import Ledger, Release
from dpsc.custodian.donors.donor_files import Files
from dpsc.custodian.gram import dask as engine
from dpsc.custodian.gram.dask import DaskDonors, client_of
from dpsc.custodian.gram.exact_sum import Counts, Summand
from dpsc.errors import DpscError, TableError
from dpsc.tables.spec import TableSpec
from dpsc.types import Array
from tests.cli.conftest import quick
from tests.custodian.gram.test_stream import LONG, PRODUCTS, WIDE, expected
from tests.making import SECRET, local_cluster, long, save, told, wide

N, T = 237, 9


@pytest.fixture(scope="module")
def donors() -> Array:
    return np.round(np.random.default_rng(0).normal(size=(N, T)).cumsum(axis=1), 6)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("spec", [WIDE, LONG], ids=["wide", "long"])
def test_an_existing_cluster_gives_the_same_integers(
    donors: Array, cluster: Any, tmp_path: Path, kind: str, spec: TableSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PIECE_CELLS", 50 * T)  # several pieces
    mixed = long(donors).sample(frac=1, random_state=1)  # a long table need not be sorted here
    path = save(wide(donors) if spec.wide else mixed, tmp_path / f"donors.{kind}")
    seen: list[int] = []
    total, n = DaskDonors(Files(path, spec), cluster.scheduler_address).add_up(PRODUCTS, seen.append)
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))
    assert sum(seen) == pytest.approx(N, rel=0.15)
    counts = Counts(T, PRODUCTS.row_map.kernel, None)
    total, n = DaskDonors(Files(path, spec), cluster.scheduler_address).add_up(counts, lambda rows: None, enough=20)
    assert n == N  # all, because which would come first is not known
    np.testing.assert_array_equal(total, expected(donors, counts))


def test_a_person_with_two_rows_in_two_pieces_counts_once(
    donors: Array, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PIECE_CELLS", 50 * T)
    frame = wide(donors)
    frame.loc[200, "who"] = "p00003"
    path = save(frame, tmp_path / "twice.parquet")
    spec = replace(WIDE, repeated="mean")
    total, n = DaskDonors(Files(path, spec), cluster.scheduler_address).add_up(PRODUCTS, lambda rows: None)
    both = np.vstack([np.delete(donors, [3, 200], axis=0), donors[[3, 200]].mean(axis=0)])
    assert n == N - 1
    np.testing.assert_array_equal(total, expected(both))


def test_a_corrupt_file_is_named_by_the_worker_that_met_it(donors: Array, cluster: Any, tmp_path: Path) -> None:
    save(wide(donors[:100]), tmp_path / "good.parquet")
    save(wide(donors).iloc[100:], tmp_path / "late.parquet")
    data = bytearray((tmp_path / "late.parquet").read_bytes())
    data[200:900] = b"\x00" * 700
    (tmp_path / "late.parquet").write_bytes(data)
    with pytest.raises(TableError, match=r"late\.parquet: it cannot be read"):
        DaskDonors(Files(tmp_path, WIDE), cluster.scheduler_address).add_up(PRODUCTS, lambda rows: None)


def test_a_scheduler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    patient = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda address, timeout: patient(address, timeout=timeout / 10))
    with pytest.raises(DpscError, match="no Dask scheduler at tcp://127"), client_of("tcp://127.0.0.1:9", None):
        pass


@pytest.mark.end_to_end
def test_a_cluster_started_with_certificates_gives_the_same_integers_to_whoever_has_them(
    donors: Array, tmp_path: Path
) -> None:
    """As an administrator starts it: a scheduler and two workers, each a process of its own."""
    made = Security.temporary()
    for name, text in {"ca": made.tls_ca_file, "cert": made.tls_worker_cert, "key": made.tls_worker_key}.items():
        (tmp_path / f"{name}.pem").write_text(str(text))
        (tmp_path / f"{name}.pem").chmod(0o600)
    ca, cert, key = (str(tmp_path / f"{name}.pem") for name in ("ca", "cert", "key"))
    where = tmp_path / "scheduler.json"
    how = ["--tls-ca-file", ca, "--tls-cert", cert, "--tls-key", key, "--no-dashboard"]
    scheduler = ["scheduler", "--protocol", "tls", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(where)]
    folder = ["--local-directory", str(tmp_path), "--nthreads", "1", "--no-nanny"]
    commands = [scheduler, *([["worker", "--scheduler-file", str(where), "--protocol", "tls", *folder]] * 2)]
    silent: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [subprocess.Popen([sys.executable, "-m", "dask", *command, *how], **silent) for command in commands]
    try:
        deadline = time.monotonic() + 120
        while not where.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        address = json.loads(where.read_text())["address"]
        assert address.startswith("tls://")
        path = save(long(donors), tmp_path / "donors.parquet")
        with pytest.raises(DpscError, match="needs a certificate"), client_of(address, None):
            pass
        tls = "distributed.comm.tls"
        with dask.config.set({f"{tls}.ca-file": ca, f"{tls}.client.cert": cert, f"{tls}.client.key": key}):
            with distributed.Client(address) as client:
                client.wait_for_workers(2, timeout=120)
            total, n = DaskDonors(Files(path, LONG), address).add_up(PRODUCTS, lambda rows: None)
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()
    assert n == N
    np.testing.assert_array_equal(total, expected(donors))


class Victim:
    """A worker of a local cluster, to be killed while a release is under way."""

    def __init__(self, cluster: Any) -> None:
        self.nanny = next(iter(cluster.workers.values()))
        self.pid = self.nanny.process.process.pid
        self.killed = False

    def kill_once(self, rows: int) -> None:
        """Kill it, if it lives: after the first piece, with most still to do."""
        if not self.killed:
            self.killed = True
            os.kill(self.pid, signal.SIGKILL)

    def died(self) -> bool:
        deadline = time.monotonic() + 30
        while self._same() and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.killed and not self._same()

    def _same(self) -> bool:
        return self.nanny.process is not None and self.nanny.process.process.pid == self.pid


@pytest.fixture
def own_cluster() -> Iterator[Any]:
    """A cluster that a test may harm."""
    with local_cluster() as running:
        yield running


def test_a_worker_killed_in_the_middle_changes_nothing(
    donors: Array, own_cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PIECE_CELLS", 50 * T)
    path = save(wide(np.tile(donors, (15, 1))), tmp_path / "donors.parquet")
    victim = Victim(own_cluster)
    total, n = DaskDonors(Files(path, WIDE), own_cluster.scheduler_address).add_up(PRODUCTS, victim.kill_once)
    assert victim.died()
    assert n == 15 * N
    np.testing.assert_array_equal(total, 15 * expected(donors))


def test_a_release_during_which_a_worker_is_killed_is_booked_once(
    donors: Array, own_cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole command: the sum that noise is added to is the same, and the ledger has one entry."""
    monkeypatch.setattr(engine, "PIECE_CELLS", 50 * T)
    path, book, out = tmp_path / "donors.parquet", tmp_path / "book.sqlite", tmp_path / "release.json"
    save(wide(np.tile(donors, (15, 1))), path)
    victim, sums = Victim(own_cluster), []
    add_up = DaskDonors.add_up

    def interrupted(self: DaskDonors, summand: Summand, on_rows: Any, enough: float = math.inf) -> Any:
        def on(rows: int) -> None:
            victim.kill_once(rows)
            on_rows(rows)

        sums.append((summand, *add_up(self, summand, on, enough)))
        return sums[-1][1:]

    monkeypatch.setattr(DaskDonors, "add_up", interrupted)
    assert quick("ledger", "init", "patients", "--ledger", book, "--epsilon", 3, "--delta", 1e-6)[0] == 0
    code, _, err = quick(
        "release",
        path, "--wide", "--unit", "who", "--epsilon", 1, "--delta", 1e-7, "-o", out, "--engine", "dask",
        "--scheduler", own_cluster.scheduler_address, "--ledger", book, "--dataset", "patients",
    )  # fmt: skip
    assert code == 0, err
    assert victim.died()
    (_, counts, counted), (products, total, n) = sums
    assert counts.sum() == counted == n
    np.testing.assert_array_equal(total, 15 * expected(donors, products))
    assert Release.load(out).n == n == 15 * N
    (entry,) = Ledger(book).entries("patients")
    assert (entry.state, entry.guarantee.epsilon) == ("confirmed", 1.0)


def test_what_goes_wrong_on_a_worker_is_told_without_the_donors(
    donors: Array, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = long(donors).assign(cost=lambda t: t["cost"] * 1e-6 + SECRET)
    table.loc[4, "week"] = "w1"  # a donor with two rows for a period
    path = save(table, tmp_path / "twice.parquet")
    with local_cluster(1, spawned=True) as heard:
        heard.wait_for_workers(1)
        with pytest.raises(TableError, match="does not have a row for every period") as refusal:
            DaskDonors(Files(path, LONG), heard.scheduler_address).add_up(PRODUCTS, lambda rows: None)
    printed = capfd.readouterr()
    assert not told(printed.out, printed.err, str(refusal.value))
