"""Nobody else on the machine gets into a local cluster, and nothing of donors is left on disk."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dpsc.folders import private_folder
from dpsc.gram import cluster

INTRUDER = """
import os, sys
from distributed import Client
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    Client(sys.argv[1], timeout=3).submit(os.getuid).result(timeout=3)
except Exception as refused:
    print("turned away", type(refused).__name__)
else:
    print("got in")
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with cluster.local_client(1) as client:
        yield client


def test_a_process_of_another_user_is_turned_away(client: Any) -> None:
    """As root this is another user's process; otherwise one of ours, which has no certificate either."""
    address = client.scheduler.address
    assert client.submit(os.getuid).result() == os.getuid()
    for where in (address, address.replace("tls://", "tcp://")):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", INTRUDER, where],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.stdout.startswith("turned away"), done.stdout + done.stderr


def served(ip: str, port: int, page: str) -> bytes:
    """Ask for a page as a browser would; a port that speaks TLS closes the connection."""
    with socket.create_connection((ip, port), timeout=3) as connection:
        try:
            connection.sendall(f"GET /{page} HTTP/1.1\r\nHost: {ip}\r\nConnection: close\r\n\r\n".encode())
            return connection.recv(1000)
        except OSError:
            return b""


def test_every_port_is_on_this_machine_and_serves_no_page(client: Any) -> None:
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    listening = {c.laddr for p in processes for c in p.net_connections() if c.status == psutil.CONN_LISTEN}
    assert len(listening) >= 2
    for ip, port in listening:
        assert ip == "127.0.0.1"
        for page in ("info/main/workers.html", "status", "metrics", "json/counts.json"):
            assert not served(ip, port, page).startswith(b"HTTP/1.1 200")


def test_workers_keep_rows_in_memory(client: Any) -> None:
    def settings() -> list[bool]:
        import dask

        names = ("p2p.storage.disk", "worker.memory.spill", "worker.memory.target")
        return [dask.config.get(f"distributed.{name}") for name in names]

    assert list(client.run(settings).values()) == [[False, False, False]]


def test_a_private_folder_is_private_and_goes_away() -> None:
    with private_folder("dpsc-dask-") as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "rows").write_text("secret")
    assert not folder.exists()


def test_what_a_killed_process_leaves_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import time, tempfile; from dpsc.folders import private_folder\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "with private_folder('dpsc-dask-') as f:\n"
        "    (f / 'rows').write_text('secret'); print(f, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    left = Path(process.stdout.readline().strip())
    assert left.parent == tmp_path
    with private_folder("dpsc-dask-"):
        assert left.exists()  # in use, so it stays
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert (left / "rows").exists()
    deadline = time.monotonic() + 60
    while left.exists() and time.monotonic() < deadline:
        with private_folder("dpsc-dask-"):
            pass
    assert not left.exists()
