"""How often pooled intervals of a study hold the truth: 1, 5 and 30 treated units, all at once or one after the other.

    python benchmarks/study.py [--half report|design] [--runs 20] [--workers 2]
    python benchmarks/study.py --before [--half report|design] [--runs 4]

The treated units are drawn at random from a panel, the others are the donors; nobody is really treated, so every
pooled effect is zero and a 95% interval should hold zero 95% of the time. Staggered: dates spread over the second half
of the treatment times. "as if independent" leaves out what units share; it is there to show that it fails. Writes
results/study-HALF.csv and, for the report half, study.md.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import panels
import problems

from dpsc import GramRelease
from dpsc.answers.study import Study

OUT = Path(__file__).parent / "results"
UNITS = (1, 5, 30)
MORE_RUNS = 5  # of factor models: there are two of them, and thirteen panels
MADE = {"factor model, loadings around 0": 0.0, "factor model, loadings around 1": 1.0}


def settings(half: str) -> list[tuple[str, int, bool, float]]:
    """Return panels (three times as many units as are treated), how many are treated, whether staggered, the shock."""
    names = [name for name in panels.SOURCES if panels.half(name) == half]
    return [
        (name, units, staggered, shock)
        for name in (*names, *MADE)
        for units in UNITS
        if name in MADE or len(panels.load(name)) >= 3 * units
        for staggered in (False, True)
        if units > 1 or not staggered
        for shock in problems.SHOCKS
    ]


def units_of(name: str, shock: float, run: int, half: str) -> tuple[panels.Array, int]:
    """Return all units with the shock, and the first date of an intervention."""
    if name in MADE:
        seed = run if half == "report" else 10_000 + run
        problem = problems.factor_problem(3, "walk", MADE[name], False, 530, shock, seed)
        return np.vstack([problem.target, problem.donors]), problem.T0
    everything = panels.load(name)
    rng = problems.generator("study", name, run)
    T0 = int(rng.choice(panels.treatment_times(everything.shape[1])))
    return (everything - problems.losses(everything, T0, shock, rng))[:, : T0 + problems.LONGEST], T0


def as_if_independent(study: Study) -> Study:
    """Return the study with nothing shared between units."""
    uncertainty: Any = study.uncertainty
    own = replace(uncertainty, alike=0.0)
    covariance = np.zeros_like(uncertainty.covariance)
    for s in uncertainty.slices:
        covariance[s, s] = uncertainty.covariance[s, s]
    own.__dict__["covariance"] = covariance  # what is computed on first use
    return replace(study, uncertainty=own)


def asked(name: str, units: int, staggered: bool, shock: float, run: int, half: str) -> Study:
    """Return a study of units that were not treated."""
    paths, T0 = units_of(name, shock, run, half)
    rng = problems.generator("treated", name, units, run)
    order = rng.permutation(len(paths))
    treated, donors = paths[order[:units]], paths[order[units:]]
    last = paths.shape[1] - 1
    dates = rng.integers(T0, last + 1, units) if staggered else np.full(units, T0)
    dates[0] = T0
    like = treated.mean(axis=0)[:T0]
    like = like if np.ptp(like) > 0 else donors[0, :T0]
    release = GramRelease(epsilon=1.0, delta=1e-6, like=like, seed=run).release(donors)
    return release.study({k: treated[k] for k in range(units)}, {k: int(dates[k]) for k in range(units)})


def one_run(name: str, units: int, staggered: bool, shock: float, run: int, half: str) -> dict[str, float]:
    study = asked(name, units, staggered, shock, run, half)
    found: dict[str, float] = {}
    for kind, each in (("", study), (" as if independent", as_if_independent(study) if units > 1 else study)):
        effects = each.effects()
        event, calendar = each.by_event_time(before=0), each.by_calendar_time()
        found |= {
            f"average{kind}": float(effects["lower"].iloc[0] <= 0 <= effects["upper"].iloc[0]),
            f"over units{kind}": float(effects["lower"].iloc[1] <= 0 <= effects["upper"].iloc[1]),
            f"event time{kind}": float(((event["lower"] <= 0) & (event["upper"] >= 0)).mean()),
            f"calendar{kind}": float(((calendar["lower"] <= 0) & (calendar["upper"] >= 0)).mean()),
            f"width{kind}": float(effects["upper"].iloc[0] - effects["lower"].iloc[0]),
        }
    return found | {"p below 0.05": float(study.p_value < 0.05), "alike": float(study.uncertainty.alike)}  # type: ignore[attr-defined]


def one_before(name: str, units: int, staggered: bool, shock: float, run: int, half: str) -> dict[str, float]:
    """Return whether intervals before the treatment hold zero, and whether tests reject what is true."""
    study = asked(name, units, staggered, shock, run, half)
    test = study.pre_trend()
    held = (test.table["lower"] <= 0) & (test.table["upper"] >= 0)
    found = {
        "each period before": float(held.mean()),
        "their average": float(test.average.lower <= 0 <= test.average.upper),
        "pre-trend p < 0.05": float(test.p_value < 0.05),
        "pre-trend p < 0.2": float(test.p_value < 0.2),
        "smallest bound / usual bound": test.smallest_bound / test.bound,
    }
    if units > 1:
        two = study.by_group({k: str(k % 2) for k in range(units)})
        found |= {"two groups p < 0.05": float(two.p_value < 0.05)}
        five = study.by_group({k: str(k % 5) for k in range(units)})
        found |= {"five groups p < 0.05": float(five.p_value < 0.05)}
    return found


def before_table(frame: pd.DataFrame) -> str:
    """Return how often intervals before the treatment hold, and how often tests reject, by number of units."""
    frame = frame.assign(family=np.where(frame["panel"].isin(list(MADE)), "factor models", "real panels"))
    columns = ["each period before", "their average", "pre-trend p < 0.05", "pre-trend p < 0.2",
               "two groups p < 0.05", "five groups p < 0.05"]  # fmt: skip
    grouped = frame.groupby(["family", "units"])
    means = grouped[columns].mean().reset_index()
    means["smallest bound / usual bound"] = grouped["smallest bound / usual bound"].median().to_numpy()
    head = "| " + " | ".join(means.columns) + " |\n|" + "---|" * len(means.columns)
    rows = ["| " + " | ".join(("–" if np.isnan(v) else f"{v:.3f}") if isinstance(v, float) else str(v) for v in row)
            + " |" for row in means.itertuples(index=False)]  # fmt: skip
    return "\n".join([head, *rows])


def before(half: str, runs: int) -> None:
    """Measure what is asked about the time before the treatment, where calm: a shock comes after it."""
    jobs = [setting for setting in settings(half) if setting[3] == 0 and (setting[2] or setting[1] == 1)]
    rows = []
    for panel, units, staggered, shock in jobs:
        for run in range(MORE_RUNS * runs if panel in MADE else runs):
            found = one_before(panel, units, staggered, shock, run, half)
            rows.append({"panel": panel, "units": units, "run": run} | found)
    frame = pd.DataFrame(rows)
    frame.round(6).to_csv(OUT / f"study-before-{half}.csv", index=False)
    print(before_table(frame))


def one_setting(setting: tuple[str, int, bool, float], runs: int, half: str) -> dict[str, Any]:
    runs = MORE_RUNS * runs if setting[0] in MADE else runs
    rows = pd.DataFrame([one_run(*setting, run, half) for run in range(runs)])
    return dict(zip(("panel", "units", "staggered", "shock"), setting, strict=True)) | rows.mean().to_dict()


def table(frame: pd.DataFrame) -> str:
    """Return the coverage by number of units, over all panels."""
    frame = frame.assign(
        family=np.where(frame["panel"].isin(list(MADE)), "factor models", "real panels"),
        dates=np.where(frame["staggered"], "staggered", "at once"),
        times=np.where(frame["shock"] > 0, "shock", "calm"),
    )
    frame["width / as if independent"] = frame["width"] / frame["width as if independent"]
    columns = [
        "average",
        "over units",
        "event time",
        "calendar",
        "average as if independent",
        "width / as if independent",
    ]
    means = frame.groupby(["family", "units", "dates", "times"])[columns].mean().round(3).reset_index()
    head = "| " + " | ".join(means.columns) + " |\n|" + "---|" * len(means.columns)
    rows = ["| " + " | ".join(f"{v:.3f}" if isinstance(v, float) else str(v) for v in row) + " |"
            for row in means.itertuples(index=False)]  # fmt: skip
    return "\n".join([head, *rows])


def seconds() -> float:
    """Return how long a study of 30 units staggered over 10 dates at T = 110 takes after loading, with its tables."""
    rng = np.random.default_rng(0)
    paths = np.cumsum(rng.normal(size=(1030, 110)) + rng.normal(size=110), axis=1)
    release = GramRelease(epsilon=1.0, delta=1e-6, scale=10.0, seed=0).release(paths[30:])
    start = time.perf_counter()
    study = release.study(dict(enumerate(paths[:30])), [60 + 4 * (k // 3) for k in range(30)])
    for made in (study.effects, study.by_unit, study.by_event_time, study.by_calendar_time):
        made()
    return time.perf_counter() - start


def main(half: str, runs: int, workers: int) -> None:
    jobs = settings(half)
    with ProcessPoolExecutor(workers) as pool:
        frame = pd.DataFrame(pool.map(one_setting, jobs, [runs] * len(jobs), [half] * len(jobs)))
    frame.round(6).to_csv(OUT / f"study-{half}.csv", index=False)
    print(table(frame))
    if half == "report":
        write(frame)


def write(frame: pd.DataFrame) -> None:
    speed = f"30 units staggered over 10 dates, T = 110, with all tables: {min(seconds() for _ in range(3)):.2f} s\n"
    (OUT / "study.md").write_text(f"## Coverage of pooled 95% intervals\n\n{table(frame)}\n\n## Speed\n\n{speed}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("report", "design"), default="report")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--before", action="store_true", help="the time before the treatment, and groups, alone")
    arguments = parser.parse_args()
    if arguments.before:
        before(arguments.half, arguments.runs)
    else:
        main(arguments.half, arguments.runs, arguments.workers)
