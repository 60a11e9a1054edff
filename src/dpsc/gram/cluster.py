"""A Dask cluster on this machine that only this process may use: raw donors pass through it.

Its connections are encrypted and need a certificate that exists in this process alone, so that no other user of the
machine can connect. What workers may write goes to a private folder, which is removed at the end; what a killed
process leaves there is removed by the next one.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpsc.errors import DpscError

_PREFIX = "dpsc-dask-"
_CLOSED = {
    "distributed.p2p.storage.disk": False,  # rows on their way between workers stay in memory
    "distributed.worker.memory.target": False,  # and so do results that wait
    "distributed.worker.memory.spill": False,
    "distributed.scheduler.http.routes": [],  # pages that anybody on the machine could open
    "distributed.worker.http.routes": [],
}


@contextmanager
def local_client(workers: int | None) -> Iterator[Any]:
    """Start a cluster with so many workers, all cores by default, and yield a client of it."""
    import dask
    from distributed import Client, LocalCluster, Security

    security = Security.temporary()
    with private_folder() as scratch, dask.config.set(_CLOSED):
        with _workers_ignore_interrupts(), _explained():
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                protocol="tls://",
                security=security,
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                local_directory=str(scratch),
                silence_logs=50,
            )
        with cluster, Client(cluster, security=security) as client:
            yield client


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except RuntimeError:
        raise DpscError(
            "the workers of a local Dask cluster could not be started. In a script, put everything that runs below "
            "if __name__ == '__main__': workers run the script's first level again."
        ) from None


@contextmanager
def private_folder() -> Iterator[Path]:
    """Yield a new folder that only this user may read; remove it at the end, and first those of processes that died."""
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # mode 0700
    try:
        with _locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned() -> None:
    """Remove folders whose lock is free: the system frees it when a process ends, however it ends."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with _locked(folder):
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # in use, or gone in the meantime
            continue


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    import fcntl

    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


@contextmanager
def _workers_ignore_interrupts() -> Iterator[None]:
    """Let processes that start here leave Ctrl-C to the process that started them, which ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
