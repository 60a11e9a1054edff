"""Nobody else on the machine gets into a local cluster, and nothing of donors is left on disk."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import distributed
import psutil
import pytest

from dpsc.custodian.gram import dask as cluster
from dpsc.errors import DpscError
from dpsc.files import private_folder

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

REPLACE = """
import os, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for path in sys.argv[1:]:
    for folder in (path, os.path.dirname(path)):
        try:
            os.rename(folder, folder + "-moved")
        except OSError:
            pass
        try:
            os.makedirs(path, exist_ok=True)
            open(path + "/planted_by_another_user.py", "w").close()
        except OSError:
            pass
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


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder for all users, in which another one has made what Dask would use."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o1777)
    (folder / "dask-scratch-space").mkdir()
    (folder / "dask-scratch-space").chmod(0o777)
    if os.getuid() == 0:
        os.chown(folder / "dask-scratch-space", 65534, 65534)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    shutil.rmtree(folder)


def out_of_reach(path: Path) -> bool:
    """Whether it is in a folder that only we may enter, which by modes and owners nobody else can replace."""
    above = [folder for folder in (path, *path.parents) if not folder.stat().st_mode & 0o077]
    trusted = {0, os.getuid(), os.stat("/").st_uid}
    return bool(above) and all(
        found.st_uid in trusted and (not found.st_mode & 0o022 or found.st_mode & stat.S_ISVTX)
        for found in (folder.stat() for folder in (above[0], *above[0].parents))
    )


def test_no_other_user_can_put_a_module_on_the_path_of_scheduler_or_workers(shared: Path) -> None:
    """Dask puts its scratch folders ahead of everything on sys.path; another user ran code as the custodian."""

    def path() -> list[str]:
        import sys

        return list(sys.path)

    def importable() -> bool:
        import importlib.util

        importlib.invalidate_caches()
        return importlib.util.find_spec("planted_by_another_user") is not None

    before = path()
    with cluster.local_client(1) as client:
        of_workers = client.run(path).values()
        added = {place for places in (path(), *of_workers) for place in places} - set(before)
        assert len(added) >= 2  # of the scheduler and the worker
        if os.getuid() == 0:
            subprocess.run([sys.executable, "-c", REPLACE, *added], check=True)
        assert not importable()
        assert not any(client.run(importable).values())
        assert all(out_of_reach(Path(place)) for place in added)
        assert all(Path(place).is_relative_to(shared) for place in added)
    assert path() == before


def test_a_cluster_that_does_not_start_leaves_nothing_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is removed: in /tmp another user may make one of that name."""
    before, added = list(sys.path), []

    def fails(**options: object) -> None:
        added.append(f"{dask.config.get('temporary-directory')}/dask-scratch-space/scheduler-1")
        sys.path[:0] = added
        raise RuntimeError

    monkeypatch.setattr(distributed, "LocalCluster", fails)
    with pytest.raises(DpscError, match="could not be started"), cluster.local_client(1):
        pass
    assert added
    assert sys.path == before


def test_workers_import_nothing_from_the_folder_that_the_release_is_made_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python looks there first when it starts a process, and others may write there: it may be a shared folder."""
    (tmp_path / "multiprocessing").mkdir()
    (tmp_path / "multiprocessing" / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    with cluster.local_client(1) as client:
        assert client.submit(os.getpid).result() != os.getpid()
    assert not (tmp_path / "ran").exists()
    assert "PYTHONSAFEPATH" not in os.environ


def test_a_private_folder_is_private_and_goes_away() -> None:
    with private_folder("dpsc-dask-") as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "rows").write_text("secret")
    assert not folder.exists()


def test_what_a_killed_process_leaves_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import time, tempfile; from dpsc.files import private_folder\n"
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
