from __future__ import annotations

import multiprocessing
import os
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from dpsc import DpscError
from dpsc.evidence.paper import reproduce
from dpsc.evidence.paper.points import Outcome, Point
from dpsc.evidence.paper.reproduce import KeptOutcomes

POINTS = [
    Point(r, m, 10, 10, v, 50.0, 50.0) for r in ("published", "printed") for m in ("out", "obj") for v in (1.0, 9.0)
]
GRAM = Point("ours", "gram", 10, 10, 0.0, 1.0, 1.0, 1e-6)


def test_finished_points_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "points.jsonl"
    reproduce.run(POINTS[:4], 20, 0, KeptOutcomes(path, 20, 0, resume=False))
    ran: list[Point] = []
    real = reproduce.run_batch

    def counting(batch: list[Point], runs: int, seed: int) -> list[Outcome]:
        ran.extend(batch)
        return real(batch, runs, seed)

    monkeypatch.setattr(reproduce, "run_batch", counting)
    resumed = reproduce.run(POINTS, 20, 0, KeptOutcomes(path, 20, 0, resume=True))
    assert set(ran) == set(POINTS[4:])
    whole = reproduce.run(POINTS, 20, 0, KeptOutcomes(tmp_path / "other.jsonl", 20, 0, resume=False))
    assert resumed == whole


def test_a_line_cut_short_is_run_again_and_the_file_stays_readable(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    whole = reproduce.run(POINTS, 20, 0, KeptOutcomes(path, 20, 0, resume=False))
    path.write_text(path.read_text("utf-8")[:-30], "utf-8")
    store = KeptOutcomes(path, 20, 0, resume=True)
    assert len(store.outcomes) == len(POINTS) - 1
    assert reproduce.run(POINTS, 20, 0, store) == whole
    assert KeptOutcomes(path, 20, 0, resume=True).outcomes == whole


def test_another_seed_or_number_of_runs_is_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    KeptOutcomes(path, 20, 0, resume=False)
    for runs, seed in ((20, 1), (30, 0)):
        with pytest.raises(DpscError, match="--seed and --runs"):
            KeptOutcomes(path, runs, seed, resume=True)


def test_processes_give_what_one_process_gives_and_import_nothing_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = [*POINTS, GRAM]
    alone = reproduce.run(points, 20, 3, KeptOutcomes(tmp_path / "a", 20, 3, resume=False), workers=1)
    (tmp_path / "multiprocessing").mkdir()
    (tmp_path / "multiprocessing" / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    together = reproduce.run(points, 20, 3, KeptOutcomes(tmp_path / "b", 20, 3, resume=False), workers=2)
    assert together == alone
    assert not (tmp_path / "ran").exists()


def test_an_interruption_ends_the_processes() -> None:
    started: list[BaseProcess] = []

    def interrupted() -> None:
        with reproduce._pool(1) as pool:
            pid = pool.submit(os.getpid).result()
            started.extend(child for child in multiprocessing.active_children() if child.pid == pid)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    (process,) = started
    process.join(60)
    assert not process.is_alive()


def test_processes_are_started_where_they_are_worth_it() -> None:
    cores = len(os.sched_getaffinity(0))
    assert [reproduce._processes([[GRAM]] * few, 50) for few in (0, 4, 5)] == [1, 1, cores]
    assert reproduce._processes([[GRAM], POINTS], 4) == 1


def test_progress_counts_every_point_once(tmp_path: Path) -> None:
    path, counts = tmp_path / "points.jsonl", [0]

    def count(new: int) -> None:
        counts[-1] += new

    reproduce.run(POINTS[:3], 20, 0, KeptOutcomes(path, 20, 0, resume=False), on_progress=count)
    counts.append(0)
    reproduce.run(POINTS, 20, 0, KeptOutcomes(path, 20, 0, resume=True), on_progress=count)
    assert counts == [3, len(POINTS)]
