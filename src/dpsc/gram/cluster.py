"""A Dask cluster on this machine that only this process may use: raw donors pass through it.

Its connections are encrypted and need a certificate that exists in this process alone, so that no other user of the
machine can connect. What scheduler and workers may write, and import, is in a private folder, which is removed at the
end; what a killed process leaves there is removed by the next one.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpsc.errors import DpscError
from dpsc.folders import no_imports_from_here, private_folder

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
    with (
        private_folder(_PREFIX) as scratch,
        _off_the_path_at_the_end(scratch),
        no_imports_from_here(),
        dask.config.set(_CLOSED | {"temporary-directory": str(scratch)}),
    ):
        with _workers_ignore_interrupts(), _explained():
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                protocol="tls://",
                security=security,
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                silence_logs=50,
            )
        with cluster, Client(cluster, security=security) as client:
            yield client


@contextmanager
def _off_the_path_at_the_end(scratch: Path) -> Iterator[None]:
    """Take what is in a folder off ``sys.path``, where Dask puts it, before it is removed and others may make it."""
    try:
        yield
    finally:
        sys.path[:] = [path for path in sys.path if not str(path).startswith(str(scratch))]


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
