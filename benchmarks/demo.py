"""How typical the demo is: the private answer against forecasts without donors, for 200 random groups of planes.

    python benchmarks/demo.py [--groups 200] [--workers 2]

Everything is as in ``dpsc demo``: delays of planes (``dpsc.datasets.flights``), thirty planes as the target, 17 fortnights
before the intervention and 9 after it, epsilon 1, delta 1e-6. Every group has noise of its own. Calm: the year as it was.
Shock: something new delays every plane from the intervention on (``problems.losses``). No effect is added, so that the
target itself is the truth. The best forecast without donors is the one with the smallest median error over all groups, as
in gram.py; the best for each group, which nobody can know in advance, is beside it.

The group that the demo shows is chosen by rule: of the medians over five draws of noise, calm, its ratio is the median.

Settings were decided on groups from 10,000 on; docs/reference/demo-data.md says which of them after a look at these groups too.
Writes results/demo.csv (one row per group, time and draw of noise), demo.md and demo.png.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import flights_file
import numpy as np
import pandas as pd
import panels
import problems

from dpsc import Donors, GramRelease, datasets
from dpsc.answers.result import UnprovenResult
from dpsc.release.kernel import Smoothness

OUT = Path(__file__).parent / "results"
DRAWS = 5
TIMES = {"calm": 0.0, "shock": -3.0}  # a shock that delays
FREE = list(problems.FREE)


@cache
def delays() -> pd.DataFrame:
    """Return all planes × fortnights."""
    return pd.read_csv(flights_file.FILE, index_col="plane")


def problem(group: int, shock: float) -> panels.Problem:
    """Return the donors and the target of a group, without any effect."""
    panel = delays()
    is_donor = panel.index.isin(datasets.flights(group).donors["plane"])
    T0 = list(panel.columns).index(datasets.CHANGED_ON)
    X = panel.to_numpy(float)
    X = X - problems.losses(X, T0, shock, problems.generator("demo", group))
    y = np.nanmean(X[~is_donor], axis=0)
    return panels.Problem(X[is_donor], y, T0, problems.NO_BOUNDS, y[T0:])


def difference_in_differences(problem: panels.Problem) -> panels.Array:
    """Forecast with the donors' mean, moved to the target's level before T0: not private."""
    path, T0 = np.nanmean(problem.donors, axis=0), problem.T0
    return np.asarray(problem.target[:T0].mean() + path[T0:] - path[:T0].mean())


def answer(given: panels.Problem, smoothness: Smoothness, seed: int) -> UnprovenResult:
    """Release the donors with noise from a seed, and estimate the target."""
    T0, y = given.T0, given.target
    algorithm = GramRelease(epsilon=1.0, delta=1e-6, smoothness=smoothness, like=y[:T0], seed=seed)
    result = algorithm.release(Donors.from_arrays(given.donors, missing="kernel")).estimate(y, T0)
    assert isinstance(result, UnprovenResult)
    return result


def one_group(group: int) -> list[dict[str, object]]:
    """Return the errors for one group: five draws of noise in calm times, one in a shock."""
    rows: list[dict[str, object]] = []
    for time, shock in TIMES.items():
        given = problem(group, shock)
        errors = {name: panels.rmse(forecast(given), given.truth) for name, forecast in problems.FREE.items()}
        errors["difference in differences"] = panels.rmse(difference_in_differences(given), given.truth)
        default = answer(given, "high", DRAWS * group)
        errors["default smoothness"] = panels.rmse(default.counterfactual, given.truth)
        for draw in range(DRAWS if time == "calm" else 1):
            result = answer(given, "none", DRAWS * group + draw)
            low, high = result.att_interval()
            rows.append({
                "group": group, "time": time, "draw": draw, **errors,
                "dpsc": panels.rmse(result.counterfactual, given.truth), "average effect": result.att, "low": low,
                "high": high, "log_bayes_factor": float(result.parameters["log_bayes_factor"]),
            })  # fmt: skip
    return rows


def best_free(rows: pd.DataFrame) -> str:
    """Return the forecast without donors that has the smallest median error over groups."""
    return min(FREE, key=lambda name: float(rows[name].median()))


def shown_group(found: pd.DataFrame) -> int:
    """Return the group whose ratio, a median over draws in calm times, is the median: the lower of two in the middle."""
    calm = found[found["time"] == "calm"]
    ratios = (calm[best_free(calm[calm["draw"] == 0])] / calm["dpsc"]).groupby(calm["group"]).median()
    return int(ratios.sort_values(kind="stable").index[(len(ratios) - 1) // 2])


def tables(found: pd.DataFrame) -> str:
    """Return how close the answers are, and by how much they are closer than without donors."""
    shown, first = shown_group(found), found[found["draw"] == 0]
    times = dict(iter(first.groupby("time")))
    lines = ["| median error, minutes | calm | shock |", "|---|---|---|"]
    names = {"dpsc": "**dpsc**, ε = 1", "default smoothness": "dpsc with the default smoothness, ε = 1", **{name: f"{name}, without donors" for name in FREE},
             "difference in differences": "difference in differences, not private"}  # fmt: skip
    for column, name in names.items():
        lines.append(f"| {name} | " + " | ".join(f"{rows[column].median():.1f}" for rows in times.values()) + " |")
    lines += ["", "| how many times closer the private answer is | time | 5% | 25% | median | 75% | 95% | closer in |",
              "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for time, rows in times.items():
        best = best_free(rows)
        against = {f"**the best without donors** ({best})": rows[best], **{name: rows[name] for name in FREE},
                   "the best for each group, in hindsight": rows[FREE].min(axis=1)}  # fmt: skip
        for name, errors in against.items():
            ratio = errors / rows["dpsc"]
            cells = [f"{value:.2f}" for value in ratio.quantile([0.05, 0.25, 0.5, 0.75, 0.95])]
            lines.append(f"| {name} | {time} | " + " | ".join(cells) + f" | {(ratio > 1).mean():.1%} |")
    calm = found[(found["time"] == "calm") & (found["group"] == shown)]
    ratios = calm[best_free(times["calm"])] / calm["dpsc"]
    rows = times["calm"]
    lines += [
        "",
        f"The demo shows group {shown}: over five draws of noise {', '.join(f'{r:.2f}' for r in sorted(ratios))} times "
        f"closer. In calm times the verdict is that the donors help in {(rows['log_bayes_factor'] > 3).mean():.1%} of the "
        f"groups, the 95% interval of the average effect holds the truth in "
        f"{((rows['low'] <= 0) & (rows['high'] >= 0)).mean():.1%} and is {(rows['high'] - rows['low']).median():.0f} "
        f"minutes wide (median), and an effect of {datasets.MINUTES_ADDED:g} minutes is told from none in "
        f"{(rows['low'] + datasets.MINUTES_ADDED > 0).mean():.1%}.",
    ]
    return "\n".join(lines)


def figure(found: pd.DataFrame) -> None:
    """Draw the distribution of the ratios, and where the shown group lies."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    from dpsc.answers.figures.sheet import BLACK, BLUE, GREY, VERMILION

    sheet = Figure(figsize=(7.2, 4), layout="constrained")
    axes = sheet.subplots()
    first, shown = found[found["draw"] == 0], shown_group(found)
    for (time, rows), colour, style in zip(first.groupby("time"), (BLUE, VERMILION), ("-", "--"), strict=True):
        ratio = (rows.set_index("group")[best_free(rows)] / rows.set_index("group")["dpsc"]).sort_values()
        share = np.arange(1, len(ratio) + 1) / len(ratio)
        words = {"calm": "the year as it was", "shock": "something new delays every plane"}[str(time)]
        axes.step(
            ratio, share, where="post", color=colour, ls=style, lw=2, label=f"{words} (median {ratio.median():.1f})"
        )
        axes.plot(ratio[shown], share[list(ratio.index).index(shown)], "o", color=colour, ms=8)
    axes.plot([], [], "o", color=BLACK, label="the group that the demo shows")
    axes.axvline(1, color=GREY, lw=1.2)
    axes.text(0.97, 0.5, "without donors\nis closer", ha="right", va="center", color=GREY, fontsize=9)
    axes.set(xscale="log", xlim=(0.55, None), ylim=(0, 1.02))
    axes.xaxis.set_major_locator(FixedLocator([0.5, 1, 1.5, 2, 3, 5, 10]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    axes.set_xlabel("how many times closer the private answer is than the best forecast without donors")
    axes.set_ylabel("share of the groups, up to here")
    axes.spines[["top", "right"]].set_visible(False)
    sheet.legend(*axes.get_legend_handles_labels(), loc="outside upper left", frameon=False, fontsize=9)
    sheet.savefig(OUT / "demo.png", dpi=150)


def main(groups: int, workers: int) -> None:
    with ProcessPoolExecutor(workers) as pool:
        found = pd.DataFrame([row for rows in pool.map(one_group, range(groups), chunksize=5) for row in rows])
    found.round(4).to_csv(OUT / "demo.csv", index=False)
    found = pd.read_csv(OUT / "demo.csv")
    (OUT / "demo.md").write_text(tables(found) + "\n", encoding="utf-8")
    figure(found)
    print(tables(found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    main(arguments.groups, arguments.workers)
