"""Whether donors of the target's own kind answer better than all: panels with known labels, calm and in a shock.

    python benchmarks/segments.py [--runs 50] [--workers 2]

The target is a unit, or the average of 30, of one segment. Each run makes two releases of the same donors at the same
cost: an undivided one, and one divided by the labels. It asks the first; of the second the target's own segment, and
all segments together. A shock hits every unit after T0, or the target's segment alone. The release gets the target
before T0 as ``like``, nothing else. Writes results/segments.csv (mean logarithms of errors over others) and segments.md.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import panels
import problems
from panels import Array

from dpsc import GramRelease

OUT = Path(__file__).parent / "results"
EPSILONS = (1.0, 2.0)
TIMES = ("calm", "shock to all", "shock to its segment")
TARGETS = {"single": 1, "average of 30": 30}
SIZES = ["below 1", "1 to 2", "2 to 5", "5 to 20", "above 20"]
USUAL = 3.0  # a shock, in median changes from one period to the next
MADE = {"four markets, 1,000": 1000, "four markets, 10,000": 10_000}
_NORTHEAST = ["CT", "ME", "MA", "NH", "RI", "VT", "NJ", "NY", "PA", "9", "23", "25", "33", "44", "50", "34", "36", "42"]
_MIDWEST = [
    "IL",
    "IN",
    "MI",
    "OH",
    "WI",
    "IA",
    "KS",
    "MN",
    "MO",
    "NE",
    "ND",
    "SD",
    "17",
    "18",
    "26",
    "39",
    "55",
    "19",
    "20",
    "27",
    "29",
    "31",
    "38",
    "46",
]
_WEST = [
    "AZ",
    "CO",
    "ID",
    "MT",
    "NV",
    "NM",
    "UT",
    "WY",
    "AK",
    "CA",
    "HI",
    "OR",
    "WA",
    "4",
    "8",
    "16",
    "30",
    "32",
    "35",
    "49",
    "56",
    "2",
    "6",
    "15",
    "41",
    "53",
]


def region(state: Any) -> str:
    """Return the Census region of a state, by its letters or its number."""
    names = {"northeast": _NORTHEAST, "midwest": _MIDWEST, "west": _WEST}
    return next((name for name, states in names.items() if str(state) in states), "south")


def schooling(years: Any) -> str:
    """Return which school was finished, by years."""
    return "no high school" if years < 12 else "high school" if years == 12 else "college"


KINDS: dict[str, tuple[str, str, Callable[[Any], str]]] = {  # what labels are of, their column, and how it is read
    "wages of heads of households": ("education", "education", schooling),
    "wages of young men": ("education", "educ", schooling),
    "employment in British firms": ("sector", "sector", str),
    "research of firms": ("sector", "sector", str),
    "crime in counties": ("region", "region", str),
    "income in counties": ("region", "statefips", region),
    "murders in counties": ("region", "statefips", region),
    "earnings after college": ("region", "state_abbr", region),
    "life expectancy in countries": ("continent", "continent", str),
    "delays of planes": ("carrier", "carrier", str),
}


def labelled(name: str, run: int) -> tuple[Array, Array, tuple[int, ...]]:
    """Return a panel, the label of each unit, and where the intervention may be."""
    if name in MADE:
        return made(MADE[name], run)
    panel, (_, column, read) = panels.frame(name), KINDS[name]
    of_unit = panels.rows(name).groupby(panels.SOURCES[name].columns[0])[column].agg(lambda rows: rows.mode().iloc[0])
    labels = np.array([read(of_unit[unit]) for unit in panel.index])
    return panel.to_numpy(float), labels, panels.treatment_times(panel.shape[1])


def made(n: int, run: int) -> tuple[Array, Array, tuple[int, ...]]:
    """Return four segments of equal size: each unit follows two walks of all, and two of its segment, and noise."""
    rng, T = problems.generator("segments", n, run), 36
    labels = np.arange(n) % 4
    everybody = rng.uniform(0, 1, (n, 2)) @ panels.factors("walk", 2, T, rng)
    own = np.stack([panels.factors("walk", 2, T, rng) for _ in range(4)])
    theirs = np.einsum("nk,nkt->nt", rng.uniform(0, 1, (n, 2)), own[labels])
    return everybody + theirs + rng.normal(size=(n, T)), labels.astype(str), (24,)


def settings() -> Iterator[tuple[str, str]]:
    """Yield panels and targets for which a segment has three times as many units as the target averages."""
    for name in (*KINDS, *MADE):
        _, labels, _ = labelled(name, 0)
        for target, m in TARGETS.items():
            if pd.Series(labels).value_counts().max() >= 3 * m:
                yield name, target


def one_run(name: str, target: str, run: int) -> list[dict[str, Any]]:
    """Measure one target at all times and budgets."""
    X, labels, times = labelled(name, run)
    m, rng = TARGETS[target], problems.generator("segments", name, target, run)
    T0 = int(rng.choice(times))
    counts = pd.Series(labels).value_counts()
    large = sorted(counts.index[counts >= 3 * max(m, 2)])
    shares = counts[large].to_numpy(float)
    own = str(rng.choice(large, p=shares / shares.sum()))
    treated = rng.choice(np.flatnonzero(labels == own), m, replace=False)
    donors = np.setdiff1d(np.arange(len(X)), treated)
    loss = problems.losses(X, T0, USUAL, rng)
    found = []
    for time, hit in zip(TIMES, (0.0, 1.0, (labels == own)[:, np.newaxis]), strict=True):
        Y = (X - hit * loss)[:, : T0 + problems.LONGEST]
        y = Y[treated].mean(axis=0)
        free = min(panels.rmse(f(panels.Problem(Y, y, T0, (0, 0), y[T0:])), y[T0:]) for f in problems.FREE.values())
        for epsilon in EPSILONS:
            make = GramRelease(epsilon=epsilon, delta=1e-6, like=y[:T0], seed=run)
            undivided = make.release(Y[donors])
            divided = make.release(Y[donors], by=labels[donors], labels=sorted(counts.index))
            errors = {
                "undivided": undivided.estimate(y, T0),
                "own segment": divided.estimate(y, T0, pool=own),
                "all segments": divided.estimate(y, T0),
            }
            about = {"panel": name, "target": target, "time": time, "epsilon": epsilon, "run": run, "T0": T0}
            about |= {"donors": len(donors), "segments": len(counts), "own donors": int((labels[donors] == own).sum())}
            noise = undivided.noise_scale * np.sqrt(2 * undivided.row_map.size)
            about |= {"noise": noise, "free": free}
            found.append(about | {k: panels.rmse(v.counterfactual, y[T0:]) for k, v in errors.items()})
    return found


def settled(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per panel, target, time, budget and size of the segment over the noise: mean logs over runs."""
    size = pd.cut(runs["own donors"] / runs["noise"], [0, 1, 2, 5, 20, np.inf], labels=SIZES).astype(str)
    logs = {
        f"{name} over undivided": np.log(runs[name] / runs["undivided"]) for name in ("own segment", "all segments")
    }
    by = ["panel", "target", "time", "epsilon", "size"]
    groups = runs.assign(size=size, **logs).groupby(by, sort=False)
    found = groups[[*logs]].mean().assign(runs=groups.size(), donors=groups["donors"].last())
    return found.assign(own=groups["own donors"].sum()).reset_index()


def ratio(rows: pd.DataFrame, name: str) -> float:
    """Return the error over that of the undivided release, a geometric mean over runs."""
    return float(np.exp((rows[f"{name} over undivided"] * rows["runs"]).sum() / rows["runs"].sum()))


def table(rows: pd.DataFrame, by: list[str], heads: list[str]) -> str:
    """Return a table with one line per group: the error of the own segment at each time, and of all of them."""
    lines = ["| " + " | ".join([*heads, *TIMES, "all segments asked"]) + " |"]
    lines.append("|---" * len(heads) + "|--:" * (len(TIMES) + 1) + "|")
    for key, part in rows.groupby(by, sort=False, observed=True):
        cells = [f"{ratio(part[part['time'] == time], 'own segment'):.2f}" for time in TIMES]
        names = [f"{value:g}" if isinstance(value, float) else str(value) for value in key]
        lines.append("| " + " | ".join([*names, *cells, f"{ratio(part, 'all segments'):.2f}"]) + " |")
    return "\n".join(lines)


def by_panel(rows: pd.DataFrame) -> str:
    """Return the errors on each panel."""
    of = {name: kind for name, (kind, _, _) in KINDS.items()} | dict.fromkeys(MADE, "market")
    sums = rows.groupby("panel")[["own", "runs"]].transform("sum")
    told = rows.assign(
        panel=[f"{name}, by {of[name]}" for name in rows["panel"]],
        donors=[f"{own:,.0f} of {n:,}" for own, n in zip(sums["own"] / sums["runs"], rows["donors"], strict=True)],
    )
    told["donors"] = told.groupby("panel")["donors"].transform("first")
    return table(told, ["panel", "donors", "epsilon"], ["panel", "of its own segment", "ε"])


def by_size(rows: pd.DataFrame) -> str:
    """Return the errors by how many donors the segment has, over the noise."""
    order = rows["size"].map(SIZES.index)
    sized = rows.assign(order=order).sort_values(["order", "target"], ascending=[True, False], kind="stable")
    return table(sized, ["size", "target"], ["donors of the segment over its noise", "target"])


def main(runs: int, workers: int) -> None:
    jobs = [(name, target, run) for name, target in settings() for run in range(runs)]
    with ProcessPoolExecutor(workers) as pool:
        futures = [pool.submit(one_run, *job) for job in jobs]
        measured = settled(pd.DataFrame([row for future in futures for row in future.result()]))
    measured.round(5).to_csv(OUT / "segments.csv", index=False)
    write(pd.read_csv(OUT / "segments.csv"))


def write(rows: pd.DataFrame) -> None:
    """Write the tables."""
    text = f"## By size of the segment\n\n{by_size(rows)}\n\n## By panel\n\n{by_panel(rows)}\n"
    (OUT / "segments.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    main(given.runs, given.workers)
