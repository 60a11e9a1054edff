"""Folders that only this user may use, and what a kill leaves of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpsc.errors import DpscError
from dpsc.files import beside, private_folder

ABANDONED = ".r.json.0123456789ab.part"
WRITER = """
import sys, time
from pathlib import Path
from dpsc.files import beside
with beside(Path(sys.argv[1])) as folder:
    (folder / "r.json").write_text("half")
    print(folder.parent, flush=True)
    time.sleep(600)
"""


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Another process that is writing a file, killed at the end; yields its folder."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Path(process.stdout.readline().strip())
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def test_what_a_killed_process_was_writing_is_removed_by_the_next_that_writes_the_same_file(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    with writing(out) as left:
        with beside(out) as mine:
            assert (left / "new" / "r.json").exists()  # its process lives
            (mine / "r.json").write_text("whole")
            os.replace(mine / "r.json", out)
        assert left.parent == tmp_path
    assert (left / "new" / "r.json").exists()
    for other in ("s.json", "r", "json"):
        with beside(tmp_path / other):
            assert left.exists()
    with beside(out):
        assert not left.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def abandoned(folder: Path) -> Path:
    """What a killed process leaves: a folder with a lock that nobody holds."""
    folder.mkdir(mode=0o700)
    (folder / "lock").touch()
    (folder / "new").mkdir()
    (folder / "new" / "r.json").write_text("half")
    return folder


def test_only_folders_that_dpsc_made_for_this_file_are_removed(tmp_path: Path) -> None:
    """The folder of an output may be shared, and hold anything under any name."""
    kept = [abandoned(tmp_path / name) for name in (".r.json.part", ".r.json.mine.part", ".s.json.0123456789ab.part")]
    target = abandoned(tmp_path / "precious")
    (tmp_path / ".r.json.aaaaaaaaaaaa.part").symlink_to(target)
    readable = abandoned(tmp_path / ".r.json.bbbbbbbbbbbb.part")
    readable.chmod(0o755)
    unlocked = abandoned(tmp_path / ".r.json.cccccccccccc.part")
    (unlocked / "lock").unlink()
    linked = abandoned(tmp_path / ".r.json.dddddddddddd.part")
    (linked / "lock").unlink()
    (linked / "lock").symlink_to(target / "lock")
    kept += [target, readable, unlocked, linked]
    if os.getuid() == 0:
        kept.append(abandoned(tmp_path / ".r.json.eeeeeeeeeeee.part"))
        os.chown(kept[-1], 65534, 65534)
    gone = abandoned(tmp_path / ABANDONED)
    (gone / "link").symlink_to(target)
    with beside(tmp_path / "r.json"):
        assert not gone.exists()
    assert all((folder / "new" / "r.json").exists() for folder in kept)
    assert (tmp_path / ".r.json.aaaaaaaaaaaa.part").is_symlink()


def test_a_name_with_signs_of_a_pattern_is_only_a_name(tmp_path: Path) -> None:
    other, own = abandoned(tmp_path / ABANDONED), abandoned(tmp_path / ".[r].*.0123456789ab.part")
    with beside(tmp_path / "[r].*"):
        assert other.exists()
        assert not own.exists()


def test_a_temporary_folder_that_others_can_change_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They could rename a private folder and put their own, or a link, in its place."""
    place = tmp_path / "tmp" / "inner"
    place.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    for shared in (place, place.parent):
        for mode in (0o777, 0o775, 0o722):
            shared.chmod(mode)
            with pytest.raises(DpscError, match=rf"can change {shared}, .*Set TMPDIR"), private_folder("dpsc-"):
                pass
        shared.chmod(0o1777)
        with private_folder("dpsc-") as folder:
            assert folder.parent == place
    if os.getuid() == 0:
        os.chown(place.parent, 65534, 65534)  # who may rename what is in it
        with pytest.raises(DpscError, match="Set TMPDIR"), private_folder("dpsc-"):
            pass
    assert not list(place.iterdir())
