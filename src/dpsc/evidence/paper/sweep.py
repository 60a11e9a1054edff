"""Run the points of the figures: in batches, on all cores; each finished point is saved at once."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

from dpsc.errors import DpscError
from dpsc.evidence.paper import points as generated
from dpsc.evidence.paper.points import DATA, Dataset, Outcome, Point, generator_for
from dpsc.files import no_imports_from_here
from dpsc.types import one_thread

Outcomes = dict[Point, Outcome]
_FEW_GRAM_RUNS = 200  # take about as long as starting processes


@lru_cache(maxsize=16)
def dataset(generator: generated.Generator, n: int, T0: int, seed: int) -> Dataset:
    """Return the data set of a size, which all points of a seed share, as in the paper."""
    return generated.generate(generator, n, T0, generator_for(seed, "data", generator, n, T0))


def run_batch(batch: Sequence[Point], runs: int, seed: int) -> list[Outcome]:
    """Run points that share a recipe and a size. The outcome of a point does not depend on the other points."""
    first = batch[0]
    data = dataset(DATA[first.recipe], first.n, first.T0, seed)
    rngs = [generator_for(seed, point.key) for point in batch]
    with one_thread():
        if first.recipe == "ours":
            from dpsc.evidence.paper import ours

            times = min(runs, ours.MOST_GRAM_RUNS) if batch[0].method == "gram" else runs
            errors = [ours.simulate(data, point, times, rng) for point, rng in zip(batch, rngs, strict=True)]
        else:
            from dpsc.evidence.paper import recipes

            errors = list(recipes.simulate(data, batch, runs, rngs))
    return [Outcome.of(error) for error in errors]


def batches(points: Iterable[Point]) -> list[list[Point]]:
    """Group points that run together, the slowest groups first."""
    groups: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        alone = point if point.recipe == "ours" else None
        groups.setdefault((point.recipe, point.n, point.T0, alone), []).append(point)
    return sorted(groups.values(), key=lambda batch: (batch[0].method != "gram", -batch[0].n * batch[0].T0))


def run(
    points: Sequence[Point],
    runs: int,
    seed: int,
    store: KeptOutcomes,
    *,
    workers: int | None = None,
    on_progress: Callable[[int], None] = lambda count: None,
) -> Outcomes:
    """Return the outcome of every point, saved or new; ``on_progress`` receives how many more are finished."""
    missing = [point for point in dict.fromkeys(points) if point not in store.outcomes]
    on_progress(len(set(points)) - len(missing))
    work = batches(missing)
    for batch, outcomes in _results(work, runs, seed, workers or _processes(work, runs)):
        store.add(batch, outcomes)
        on_progress(len(batch))
    return {point: store.outcomes[point] for point in points}


def _processes(work: list[list[Point]], runs: int) -> int:
    """Return how many processes are worth starting: all cores for Gram releases, which take a while."""
    gram_runs = runs * sum(batch[0].method == "gram" for batch in work)
    return len(os.sched_getaffinity(0)) if gram_runs > _FEW_GRAM_RUNS else 1


def _results(
    work: list[list[Point]], runs: int, seed: int, workers: int
) -> Iterator[tuple[list[Point], list[Outcome]]]:
    """Yield batches as they finish."""
    if workers == 1:
        for batch in work:
            yield batch, run_batch(batch, runs, seed)
        return
    with _pool(workers) as pool:
        futures = {pool.submit(run_batch, batch, runs, seed): batch for batch in work}
        for future in as_completed(futures):
            yield futures[future], future.result()


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Open a pool of processes that ends when the command is interrupted."""
    context = multiprocessing.get_context("spawn")
    with no_imports_from_here():  # the pool itself starts a process, which looks after its locks
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_interrupts_to_the_parent)
    try:
        with no_imports_from_here():
            yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class KeptOutcomes:
    """Finished points in a file, one JSON line each, so that an interrupted run can continue where it stopped."""

    def __init__(self, path: Path, runs: int, seed: int, *, resume: bool) -> None:
        self.path = path
        self.outcomes: Outcomes = {}
        self._header = json.dumps({"dpsc reproduce": 1, "runs": runs, "seed": seed})
        if resume and path.exists():
            self._read()
        else:
            path.write_text(self._header + "\n", encoding="utf-8")

    def add(self, batch: Sequence[Point], outcomes: Sequence[Outcome]) -> None:
        """Save finished points."""
        with self.path.open("a", encoding="utf-8") as file:
            for point, outcome in zip(batch, outcomes, strict=True):
                file.write(json.dumps({"point": asdict(point), "outcome": asdict(outcome)}) + "\n")
                self.outcomes[point] = outcome

    def _read(self) -> None:
        """Read the finished points; drop a last line that an interruption left incomplete."""
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        if not lines or lines[0] != self._header:
            raise DpscError(
                f"{self.path} was made with another seed or number of runs: give the same --seed and --runs to "
                "resume it, or leave --resume out to start over."
            )
        for line in lines[1:]:
            try:
                entry = json.loads(line)
                point, outcome = Point(**entry["point"]), Outcome(**entry["outcome"])
                if all(isinstance(value, int | float) for value in asdict(outcome).values()):
                    self.outcomes[point] = outcome
            except (ValueError, KeyError, TypeError, RecursionError):
                continue
        kept = [
            json.dumps({"point": asdict(point), "outcome": asdict(outcome)}) for point, outcome in self.outcomes.items()
        ]
        self.path.write_text("\n".join([self._header, *kept]) + "\n", encoding="utf-8")
