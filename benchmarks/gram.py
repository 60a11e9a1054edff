"""Error and coverage of the Gram release against non-private ridge and donor-free baselines, at delta = 1e-6.

    python benchmarks/gram.py [--runs 100] [--only NAME]

Writes results/gram.csv, smoothness.csv, gram.md and gram.png. "Ridge" is non-private ridge at its best lambda,
one for all runs of a panel: the lambda with the smallest median error. Ratios are of medians over runs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import panels

from dpsc import GramRelease, ObjectivePerturbation, OutputPerturbation, Panel, plan
from dpsc.answers.palette import BLACK, BLUE, GREY
from dpsc.weights.classic import ridge_weights

EPSILONS = (0.5, 1.0, 2.0, 4.0)
DELTA = 1e-6
LAMBDAS = 10.0 ** np.arange(-5, 4.1, 0.5)
OUT = Path(__file__).parent / "results"


@cache
def real(name: str) -> Any:
    return panels.real(name)


def from_real(name: str, reference: float | None = None) -> Callable[[int], panels.Problem]:
    def make(run: int) -> panels.Problem:
        units, T0, bounds = real(name)
        order = np.random.default_rng(0).permutation(len(units))
        problem = panels.leave_one_out(units, T0, bounds, int(order[run % len(order)]))
        return problem if reference is None else replace(problem, reference=np.full(units.shape[1], reference))

    return make


def from_factors(n: int, **options: Any) -> Callable[[int], panels.Problem]:
    settings = {"noise": 0.5} | options
    return lambda run: panels.factor_model(n, 40, 10, np.random.default_rng([run, n]), **settings)


def from_paper(n: int, T0: int) -> Callable[[int], panels.Problem]:
    return lambda run: panels.paper(n, T0, 3, np.random.default_rng([run, n, T0]))


FAMILIES: dict[str, tuple[Callable[[int], panels.Problem], str]] = {
    "factor model, n = 100": (from_factors(100), "high"),
    "factor model, n = 1000": (from_factors(1000), "high"),
    "factor model, n = 10,000": (from_factors(10_000), "high"),
    "factor model, noise 0.3, n = 1000": (from_factors(1000, noise=0.3), "high"),
    "factor model, noise 0.3, n = 10,000": (from_factors(10_000, noise=0.3), "high"),
    "rank 1, n = 1000": (from_factors(1000, rank=1), "high"),
    "rank 5, n = 1000": (from_factors(1000, rank=5), "high"),
    "AR(0.7) factors, n = 1000": (from_factors(1000, kind="ar"), "high"),
    "white factors, n = 1000": (from_factors(1000, kind="white"), "none"),
    "seasonal factors, n = 1000": (from_factors(1000, kind="seasonal"), "none"),
    "paper, n = 1000, T0 = 10": (from_paper(1000, 10), "high"),
    "paper, n = 1000, T0 = 100": (from_paper(1000, 100), "high"),
    "wages (531 people)": (from_real("wages"), "high"),
    "wages, less log 12 (531 people)": (from_real("wages", reference=2.5), "high"),
    "hours (531 people)": (from_real("hours"), "high"),
    "hours, less log 2000 (531 people)": (from_real("hours", reference=7.6), "high"),
    "cigarettes (45 states)": (from_real("cigarettes"), "high"),
}


def one_run(family: str, smoothness: str, epsilon: float, run: int, full: bool) -> dict[str, Any]:
    """Measure everything on one problem; ``full`` adds intervals and the two-step algorithms."""
    problem = FAMILIES[family][0](run)
    T0, donors, target = problem.T0, problem.donors, problem.target
    make = GramRelease(epsilon=epsilon, delta=DELTA, smoothness=smoothness, reference=problem.reference, seed=run)  # type: ignore[arg-type]
    release = make.release(donors)
    result = release.estimate(target, T0)
    size = float(np.mean(donors[:, :T0] ** 2)) * T0
    row: dict[str, Any] = {"gram": panels.rmse(result.counterfactual, problem.truth)}
    for k, factor in enumerate(LAMBDAS):
        f = ridge_weights(donors[:, :T0], target[:T0], factor * size)
        row[f"ridge {k}"] = panels.rmse(donors[:, T0:].T @ f, problem.truth)
    row["ridge oracle"] = min(row[f"ridge {k}"] for k in range(len(LAMBDAS)))
    for name, forecast in panels.BASELINES.items():
        row[name] = panels.rmse(forecast(problem), problem.truth)
    row["signal"] = float(np.sqrt(np.mean(problem.truth**2)))
    if full:
        observed = target[T0:]
        for part in ("both", "privacy"):
            band = result.interval(0.95, part)  # type: ignore[arg-type]
            row[f"covered {part}"] = float(((band["lower"] <= observed) & (observed <= band["upper"])).mean())
        low, high = result.att_interval(0.95)
        row["covered att"] = float(low <= 0 <= high)
        data = Panel.from_arrays(donors, target, treatment_time=T0, bounds=problem.bounds)
        half = epsilon / 2
        for name, algorithm, options in (
            ("our out", OutputPerturbation(epsilon=epsilon, delta=DELTA, seed=run), {}),
            ("our obj", ObjectivePerturbation(epsilon=epsilon, delta=DELTA, seed=run), {}),
            ("printed out", OutputPerturbation.as_printed(epsilon1=half, epsilon2=half, lambda_=T0, seed=run), {}),
            ("printed obj", ObjectivePerturbation.as_printed(epsilon1=half, epsilon2=half, lambda_=T0, delta=DELTA, seed=run),
             {"unproven": True}),
        ):  # fmt: skip
            row[name] = panels.rmse(algorithm.fit(data, **options).counterfactual, problem.truth)  # type: ignore[attr-defined]
    return row


def summarise(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return medians, with ridge at the lambda that is best for all runs together, and mean coverages."""
    frame = pd.DataFrame(rows)
    medians = frame.median()
    ridge = min(medians[f"ridge {k}"] for k in range(len(LAMBDAS)))
    free = min(medians["last value"], medians["line"])
    out = {
        "gram": medians["gram"], "ridge": ridge, "last value": medians["last value"], "line": medians["line"],
        "donors' mean": medians["donors' mean"], "gram / ridge": medians["gram"] / ridge,
        "gram / best donor-free": medians["gram"] / free,
        "median of gram / ridge oracle": float((frame["gram"] / frame["ridge oracle"]).median()),
        "gram / signal": medians["gram"] / medians["signal"],
    }  # fmt: skip
    for name in ("our out", "our obj", "printed out", "printed obj"):
        if name in frame:
            out[f"{name} / ridge"] = medians[name] / ridge
    for name in ("covered both", "covered att", "covered privacy"):
        if name in frame:
            out[name] = frame[name].mean()
    return out


def runs_for(family: str, runs: int) -> int:
    """On the real panels every unit is the target: all 532 people twice, all 46 states four times."""
    return 1064 if "people" in family else 184 if "states" in family else runs


def measure(runs: int, families: list[str]) -> pd.DataFrame:
    rows = []
    with ProcessPoolExecutor() as pool:
        for family in families:
            smoothness = FAMILIES[family][1]
            for epsilon in EPSILONS:
                jobs = [
                    pool.submit(one_run, family, smoothness, epsilon, run, epsilon in (1.0, 4.0))
                    for run in range(runs_for(family, runs))
                ]
                rows.append({"panel": family, "smoothness": smoothness, "epsilon": epsilon}
                            | summarise([job.result() for job in jobs]))  # fmt: skip
            print(f"{family}: {rows[-3]['gram / ridge']:.3g} × ridge at epsilon 1", flush=True)
    return pd.DataFrame(rows)


def compare_smoothness(runs: int, families: list[str]) -> pd.DataFrame:
    rows = []
    with ProcessPoolExecutor() as pool:
        for family in families:
            row: dict[str, Any] = {"panel": family}
            for smoothness in ("high", "mild", "none"):
                jobs = [
                    pool.submit(one_run, family, smoothness, 1.0, run, False) for run in range(runs_for(family, runs))
                ]
                row[smoothness] = summarise([job.result() for job in jobs])["gram / ridge"]
            rows.append(row)
    return pd.DataFrame(rows)


def check_plans(results: pd.DataFrame) -> pd.DataFrame:
    """Compare what was planned for the factor model, from public numbers, with what then happened."""
    rows = []
    for family, n in (
        ("factor model, n = 100", 100),
        ("factor model, n = 1000", 1000),
        ("factor model, n = 10,000", 10_000),
    ):
        problem = FAMILIES[family][0](0)
        noise_free = panels.factor_model(n, 40, 10, np.random.default_rng([0, n]), noise=0.0)
        ratio = float(np.sqrt(np.mean(noise_free.donors**2)) / 0.5)
        expected = plan(n, 40, 10, EPSILONS, DELTA, signal_to_noise=ratio)
        unit = float(np.median([np.sqrt(np.mean(FAMILIES[family][0](r).target[: problem.T0] ** 2)) for r in range(40)]))
        for _, row in expected.table.iterrows():
            got = results[(results["panel"] == family) & (results["epsilon"] == row["epsilon"])]["gram"].iloc[0] / unit
            rows.append({"panel": family, "epsilon": row["epsilon"], "planned": row["error"], "happened": got})
    return pd.DataFrame(rows)


def as_markdown(results: pd.DataFrame, smoothness: pd.DataFrame, plans: pd.DataFrame, runs: int) -> str:
    lines = [
        f"Medians of {runs} runs (every unit as target on the real panels), delta = {DELTA:g}, all budget paid. Each number is an error divided by that of non-private "
        "ridge at its best lambda (one lambda for all runs of a panel).", "",
        "| panel | best donor-free | " + " | ".join(f"Gram, ε = {e:g}" for e in EPSILONS)
        + " | our out, ε = 1 | our obj, ε = 1 | printed out, ε = 1 | printed obj (unproven), ε = 1 |",
        "|---|" + "---|" * (len(EPSILONS) + 5),
    ]  # fmt: skip
    for family in FAMILIES:
        part = results[results["panel"] == family].set_index("epsilon")
        free = part.loc[1.0, ["last value", "line"]].min() / part.loc[1.0, "ridge"]
        cells = [f"{part.loc[e, 'gram / ridge']:.2f}" for e in EPSILONS]
        others = [
            f"{part.loc[1.0, f'{name} / ridge']:.2g}" for name in ("our out", "our obj", "printed out", "printed obj")
        ]
        lines.append(f"| {family} | {free:.2f} | " + " | ".join(cells + others) + " |")
    lines += ["", "Coverage of nominal 95% intervals for an untreated outcome (points, and the average over the post-period):", "",
              "| panel | ε = 1: points | average | privacy part alone | ε = 4: points | average |", "|---|---|---|---|---|---|"]  # fmt: skip
    for family in FAMILIES:
        part = results[results["panel"] == family].set_index("epsilon")
        cells = [part.loc[1.0, "covered both"], part.loc[1.0, "covered att"], part.loc[1.0, "covered privacy"],
                 part.loc[4.0, "covered both"], part.loc[4.0, "covered att"]]  # fmt: skip
        lines.append(f"| {family} | " + " | ".join(f"{c:.3f}" for c in cells) + " |")
    lines += [
        "",
        "Error over ridge at ε = 1 for the three kinds of smoothness:",
        "",
        "| panel | high | mild | none |",
        "|---|---|---|---|",
    ]
    for _, row in smoothness.iterrows():
        lines.append(f"| {row['panel']} | {row['high']:.2f} | {row['mild']:.2f} | {row['none']:.2f} |")
    lines += ["", "Plan against outcome (error as a share of the target's size before the intervention):", "",
              "| panel | ε | planned | happened | ratio |", "|---|---|---|---|---|"]  # fmt: skip
    for _, row in plans.iterrows():
        ratio = row["happened"] / row["planned"]
        lines.append(
            f"| {row['panel']} | {row['epsilon']:g} | {row['planned']:.3f} | {row['happened']:.3f} | {ratio:.2f} |"
        )
    return "\n".join(lines) + "\n"


def draw(results: pd.DataFrame, path: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    families = ["factor model, n = 100", "factor model, n = 1000", "factor model, n = 10,000", "wages (531 people)",
                "hours, less log 2000 (531 people)", "cigarettes (45 states)"]  # fmt: skip
    figure = Figure(figsize=(10.5, 6), layout="constrained")
    for axes, family in zip(figure.subplots(2, 3, sharex=True).flat, families, strict=True):
        part = results[results["panel"] == family].set_index("epsilon")
        axes.plot(part.index, part["gram"], color=BLUE, marker="o", lw=2, label="Gram release")
        for name, style in (("ridge", "-"), ("last value", "--"), ("line", ":"), ("donors' mean", "-.")):
            label = "ridge, not private" if name == "ridge" else name
            axes.axhline(part[name].iloc[0], color=BLACK if name == "ridge" else GREY, lw=1.2, ls=style, label=label)
        axes.set(xscale="log", yscale="log", title=family)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.spines[["top", "right"]].set_visible(False)
    for axes in figure.axes[3:]:
        axes.set_xlabel("epsilon")
    for axes in figure.axes[::3]:
        axes.set_ylabel("median error")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path, dpi=120)


def keep(new: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Replace the measured panels in a results file, in the order of FAMILIES."""
    old = pd.read_csv(path) if path.exists() else new.iloc[:0]
    old = old[~old["panel"].isin(new["panel"]) & old["panel"].isin(list(FAMILIES))]
    order = {family: k for k, family in enumerate(FAMILIES)}
    merged = pd.concat([old, new]).sort_values("panel", key=lambda column: column.map(order), kind="stable")
    merged.round(5).to_csv(path, index=False)
    return merged


def main(runs: int, only: str = "") -> None:
    OUT.mkdir(exist_ok=True)
    families = [family for family in FAMILIES if only in family]
    results = keep(measure(runs, families), OUT / "gram.csv")
    smoothness = keep(compare_smoothness(runs, families), OUT / "smoothness.csv")
    plans = check_plans(results)
    (OUT / "gram.md").write_text(as_markdown(results, smoothness, plans, runs), encoding="utf-8")
    draw(results, OUT / "gram.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--only", default="", help="measure only panels whose name contains this")
    arguments = parser.parse_args()
    main(arguments.runs, arguments.only)
