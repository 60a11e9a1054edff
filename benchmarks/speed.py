"""Speed of the Gram release and of its estimates, as ratios against bare matrix products in the same run.

    OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py

Writes results/speed.md. Each time is the shortest of several repetitions, taken in turn.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from dpsc import GramRelease, SyntheticControl
from dpsc.data.panel import Panel
from dpsc.gram.kernel import Kernel
from dpsc.gram.sources import sum_of_rows

OUT = Path(__file__).parent / "results"


def best(*tasks: Callable[[], object], repeat: int = 5) -> list[float]:
    """Return the shortest time of each task, repeated in turn so that other load on the machine affects all alike."""
    times = [[float("inf")] for _ in tasks]
    for _ in range(repeat):
        for k, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            times[k].append(time.perf_counter() - start)
    return [min(t) for t in times]


def peak_memory() -> float:
    """Return the largest resident memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    rng = np.random.default_rng(0)
    donors = rng.normal(size=(1_000_000, 110))
    before = peak_memory()
    GramRelease(epsilon=1.0, delta=1e-9).release(donors[:100])
    lines = ["| what | seconds | against |", "|---|---|---|"]

    high, none = Kernel.named("high"), Kernel.named("none")
    start = peak_memory()
    GramRelease(epsilon=1.0, delta=1e-9).release(donors)
    extra = peak_memory() - max(before, start)
    names = ["bare `X.T @ X`, one BLAS thread", "exact Gram, smoothness high, 1 thread", "exact Gram, smoothness high, 2 threads",
             "exact Gram, smoothness none, 1 thread", "exact Gram, smoothness none, 2 threads"]  # fmt: skip
    times = best(
        lambda: donors.T @ donors,
        lambda: sum_of_rows(donors, high, None, 18, threads=1),
        lambda: sum_of_rows(donors, high, None, 18, threads=2),
        lambda: sum_of_rows(donors, none, None, 18, threads=1),
        lambda: sum_of_rows(donors, none, None, 18, threads=2),
    )
    for name, seconds in zip(names, times, strict=True):
        lines.append(f"| {name}, 1,000,000 × 110 | {seconds:.2f} | {seconds / times[0]:.2f} × bare |")
    lines.append(f"| memory of a release beyond its input, 1,000,000 × 110 | – | {extra:.0f} MB |")

    small = donors[:2000]
    target = donors[0]
    (noise,) = best(lambda: GramRelease(epsilon=1.0, delta=1e-9).release(small[:10]))
    lines.append(f"| release of 10 donors, T = 110 (the noise) | {noise:.2f} | goal 0.3 |")
    releases = [GramRelease(epsilon=1.0, delta=1e-6).release(small) for _ in range(6)]
    estimate, interval = [], []
    for release in releases:
        start_time = time.perf_counter()
        result = release.estimate(target, 100)
        estimate.append(time.perf_counter() - start_time)
        result.interval()
        interval.append(time.perf_counter() - start_time)
    lines.append(f"| estimate without intervals, T = 110 | {min(estimate):.3f} | goal 0.2 |")
    lines.append(f"| estimate with intervals, T = 110 | {min(interval):.3f} | goal 2 |")

    panel = Panel.from_arrays(donors[:100_000], target, treatment_time=100)
    (fit,) = best(lambda: SyntheticControl(lambda_=10.0).fit(panel))
    lines.append(f"| non-private ridge, 100,000 donors, T0 = 100 | {fit:.2f} | goal 0.5 |")
    OUT.mkdir(exist_ok=True)
    (OUT / "speed.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
