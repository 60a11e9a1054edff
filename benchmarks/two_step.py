"""Error of the two-step algorithms, printed and ours, next to non-private ridge and donor-free baselines.

    python benchmarks/two_step.py [--runs 40]

Writes results/two_step.csv, .md and .png. One fixed budget (epsilon, and delta where a column says so) is the whole
cost.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import panels

from dpsc import ObjectivePerturbation, OutputPerturbation, Panel
from dpsc.answers.figures.sheet import BLACK, BLUE, GREY, ORANGE, PURPLE, SKY, VERMILION

EPSILONS = (0.5, 1.0, 2.0, 4.0, 10.0, 100.0)
DELTA = 1e-6
OUT = Path(__file__).parent / "results"


def problems(panel: str, n: int, run: int) -> panels.Problem:
    rng = np.random.default_rng([run, n, len(panel)])
    if panel == "paper":
        return panels.paper(n, 10, 3, rng)
    if panel == "factor model":
        return panels.factor_model(n, 40, 10, rng)
    wages, T0, bounds = panels.real("wages")
    return panels.leave_one_out(rng.permutation(wages), T0, bounds, 0, n)


def algorithms(epsilon: float, T0: int, seed: int) -> Iterator[tuple[str, object]]:
    half = epsilon / 2
    yield "printed out", OutputPerturbation.as_printed(epsilon1=half, epsilon2=half, lambda_=T0, seed=seed)
    yield (
        "printed obj (unproven)",
        ObjectivePerturbation.as_printed(epsilon1=half, epsilon2=half, lambda_=T0, seed=seed),
    )
    for delta, name in ((0.0, "pure"), (DELTA, "delta")):
        yield f"our out, {name}", OutputPerturbation(epsilon=epsilon, delta=delta, seed=seed)
        yield f"our obj, {name}", ObjectivePerturbation(epsilon=epsilon, delta=delta, seed=seed)


def measure(runs: int) -> pd.DataFrame:
    rows = []
    for panel, sizes in (("paper", (10, 100, 1000)), ("factor model", (10, 100, 1000)), ("wages", (10, 100, 531))):
        for n in sizes:
            for run in range(runs):
                problem = problems(panel, n, run)
                data = Panel.from_arrays(
                    problem.donors, problem.target, treatment_time=problem.T0, bounds=problem.bounds, missing="error"
                )

                def note(
                    name: str, epsilon: float, error: float, panel: str = panel, n: int = n, run: int = run
                ) -> None:
                    rows.append({"panel": panel, "n": n, "run": run, "method": name, "epsilon": epsilon, "rmse": error})

                note("non-private ridge (best lambda)", np.nan, panels.best_ridge(problem))
                for name, forecast in panels.BASELINES.items():
                    note(name, np.nan, panels.rmse(forecast(problem), problem.truth))
                for epsilon in EPSILONS:
                    for name, algorithm in algorithms(epsilon, problem.T0, run):
                        options = {"unproven": True} if "unproven" in name else {}
                        result = algorithm.fit(data, **options)  # type: ignore[attr-defined]
                        note(name, epsilon, panels.rmse(result.counterfactual, problem.truth))
            print(f"{panel}, n = {n}: done", flush=True)
    return pd.DataFrame(rows)


def table(results: pd.DataFrame) -> pd.DataFrame:
    free = results[results["epsilon"].isna()].groupby(["panel", "n", "method"])["rmse"].median().unstack()
    private = (
        results.dropna().groupby(["panel", "n", "method", "epsilon"])["rmse"].median().unstack(["method", "epsilon"])
    )
    keep = [c for c in private.columns if c[1] in (1.0, 10.0, 100.0)]
    return free.join(private[keep].rename(columns=lambda v: v, level=0))


def as_markdown(results: pd.DataFrame, runs: int) -> str:
    medians = results.groupby(["panel", "n", "method", "epsilon"], dropna=False)["rmse"].median().reset_index()
    lines = [
        f"Median RMSE over {runs} runs, in the outcome's units; total budget epsilon, delta = 0 (pure) or {DELTA:g}.",
        "",
    ]
    for panel, part in medians.groupby("panel", sort=False):
        sizes = sorted(part["n"].unique())
        lines += [f"### {panel}", "", "| method | epsilon | " + " | ".join(f"n = {n}" for n in sizes) + " |"]
        lines += ["|---|---|" + "---|" * len(sizes)]
        order = part.drop_duplicates("method")["method"]
        for method in order:
            rows = part[part["method"] == method]
            for epsilon in [np.nan] if rows["epsilon"].isna().all() else EPSILONS:
                same = rows["epsilon"].isna() if np.isnan(epsilon) else rows["epsilon"] == epsilon
                cells = [f"{rows[same & (rows['n'] == n)]['rmse'].iloc[0]:.3g}" for n in sizes]
                lines.append(
                    f"| {method} | {'–' if np.isnan(epsilon) else f'{epsilon:g}'} | " + " | ".join(cells) + " |"
                )
        lines.append("")
    return "\n".join(lines)


def draw(results: pd.DataFrame, path: Path) -> None:
    from matplotlib.figure import Figure

    colours = {"printed out": GREY, "printed obj (unproven)": PURPLE, "our out, pure": SKY,
               "our out, delta": BLUE, "our obj, pure": ORANGE, "our obj, delta": VERMILION}  # fmt: skip
    names = list(dict.fromkeys(results["panel"]))
    figure = Figure(figsize=(11, 9), layout="constrained")
    grid = figure.subplots(len(names), 3, sharex=True, sharey="row")
    for row, panel in zip(grid, names, strict=True):
        for axes, n in zip(row, sorted(results[results["panel"] == panel]["n"].unique()), strict=True):
            part = results[(results["panel"] == panel) & (results["n"] == n)]
            for method, colour in colours.items():
                medians = part[part["method"] == method].groupby("epsilon")["rmse"].median()
                axes.plot(medians.index, medians, color=colour, marker="o", ms=3.5, lw=1.6, label=method)
            for method, style in (("non-private ridge (best lambda)", "-"), ("last value", "--"), ("line", ":")):
                level = part[part["method"] == method]["rmse"].median()
                axes.axhline(level, color=BLACK, lw=1, ls=style, label=method)
            axes.set(xscale="log", yscale="log", title=f"{panel}, n = {n}")
            axes.spines[["top", "right"]].set_visible(False)
        row[0].set_ylabel("median RMSE")
    for axes in grid[-1]:
        axes.set_xlabel("epsilon (total)")
    figure.legend(
        *grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9
    )
    figure.savefig(path, dpi=120)


def main(runs: int) -> None:
    results = measure(runs)
    OUT.mkdir(exist_ok=True)
    medians = results.groupby(["panel", "n", "method", "epsilon"], dropna=False, sort=False)["rmse"]
    medians.quantile([0.25, 0.5, 0.75]).unstack().round(6).to_csv(OUT / "two_step.csv")
    (OUT / "two_step.md").write_text(as_markdown(results, runs), encoding="utf-8")
    draw(results, OUT / "two_step.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    main(parser.parse_args().runs)
