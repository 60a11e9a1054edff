"""Tables and figure of docs/guides/which-method.md, from the file that which_method.py wrote.

python benchmarks/which_method_tables.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from dpsc.answers.figures.sheet import BLUE, ORANGE, SKY

RESULTS = Path(__file__).parent / "results"
FIGURE = Path(__file__).parent.parent / "docs" / "guides" / "which-method.png"
FAMILIES = {"real": "real panels", "made": "factor models"}
TARGETS = ("one unit", "average of 30")
TIMES = {"calm": 0.0, "shock": 3.0}
KEY = ["family", "target", "n", "epsilon", "shock"]
CLEAR = 0.1  # closer or further than the best donor-free forecast by less than this counts as equal
ADVICE = {"release": "use GramRelease", "equal": "within 10%", "no release": "do not release"}
COLOURS = {"release": BLUE, "equal": SKY, "no release": ORANGE}
RIVALS = {
    "gram": "`GramRelease`",
    "output": "`OutputPerturbation`",
    "objective": "`ObjectivePerturbation`",
    "last value": "last value",
    "line": "straight line",
    "mean": "mean before",
    "difference in differences": "difference in differences, not private",
    "ridge": "ridge, best penalty, not private",
}


def read(half: str) -> pd.DataFrame:
    return pd.read_csv(RESULTS / f"which_method-{half}.csv")


def ratio(rows: pd.DataFrame, name: str, over: str = "free") -> float:
    """Return the error over another number: geometric mean over panels."""
    return float(np.exp(np.log(rows[name] / rows[over]).mean()))


def both(rows: pd.DataFrame, name: str = "gram", over: str = "free") -> tuple[float, float]:
    """Return the ratio in calm times and in a shock."""
    calm, shock = (ratio(rows[rows["shock"] == size], name, over) for size in TIMES.values())
    return calm, shock


def advice(calm: float, shock: float) -> str:
    """Return what to do, from the error over the best donor-free forecast in both times."""
    together = float(np.sqrt(calm * shock))
    return "release" if together <= 1 - CLEAR else "equal" if together < 1 + CLEAR else "no release"


def on_map(results: pd.DataFrame) -> pd.DataFrame:
    """Return the real panels, and the factor models with all their periods."""
    return results[(results["family"] == "real") | (results["T0"] == 40)]


def maps(results: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield family, target and the rows of each of the four maps."""
    kept = on_map(results)
    for family in FAMILIES:
        for target in TARGETS:
            yield family, target, kept[(kept["family"] == family) & (kept["target"] == target)]


def pair(numbers: tuple[float, float]) -> str:
    """Return "calm / shock", which a narrow screen does not break."""
    return "\N{NO-BREAK SPACE}/\N{NO-BREAK SPACE}".join(
        f"{number:.2f}" if number < 10 else f"{number:,.0f}" for number in numbers
    )


def head(*cells: str) -> list[str]:
    return ["| " + " | ".join(cells) + " |", "|" + "---|" * len(cells)]


def errors(results: pd.DataFrame) -> str:
    """Return the map as a table: calm / shock, bold where the release is clearly better."""
    epsilons = sorted(results["epsilon"].unique())
    lines = head("panels", "target", "donors", *(f"ε = {epsilon:g}" for epsilon in epsilons))
    for family, target, rows in maps(results):
        for n, part in rows.groupby("n"):
            cells = []
            for _, cell in part.groupby("epsilon"):
                found = both(cell)
                mark = {"release": "**", "equal": "", "no release": "*"}[advice(*found)]
                cells.append(f"{mark}{pair(found)}{mark}")
            lines.append("| " + " | ".join([FAMILIES[family], target, f"{n:,}", *cells]) + " |")
    return "\n".join(lines)


def expected(results: pd.DataFrame) -> str:
    """Return the error at epsilon 1 in usual changes of the target from one period to the next."""
    lines = head("panels", "donors", *TARGETS)
    for family, name in FAMILIES.items():
        rows = on_map(results)[lambda t, family=family: (t["family"] == family) & (t["epsilon"] == 1)]
        for n, part in rows.groupby("n"):
            cells = [pair(both(part[part["target"] == target], over="usual change")) for target in TARGETS]
            lines.append(f"| {name} | {n:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def rivals(results: pd.DataFrame) -> str:
    """Return every method at epsilon 1, on the largest real samples and on factor models of 1,000 donors."""
    largest = {"real": 300, "made": 1000}
    parts = [rows[(rows["epsilon"] == 1) & (rows["n"] == largest[family])] for family, _, rows in maps(results)]
    names = [f"{FAMILIES[family]}, {largest[family]:,} donors: {target}" for family, target, _ in maps(results)]
    lines = head("method", *names)
    for name, label in RIVALS.items():
        lines.append(f"| {label} | " + " | ".join(pair(both(part, name)) for part in parts) + " |")
    return "\n".join(lines)


def periods(results: pd.DataFrame) -> str:
    """Return how much the number of periods before the intervention matters: factor models, epsilon 1."""
    lines = head("periods before", *TARGETS)
    rows = results[(results["family"] == "made") & (results["n"] == 1000) & (results["epsilon"] == 1)]
    for T0, part in rows.groupby("T0"):
        cells = [pair(both(part[part["target"] == target])) for target in TARGETS]
        lines.append(f"| {T0} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def never_best(results: pd.DataFrame) -> str:
    """Return how far the two-step algorithms are from useful, in the whole map."""
    kept = on_map(results)
    smallest = min(ratio(cell, name) for name in ("output", "objective") for _, cell in kept.groupby(KEY))
    return (
        f"On the whole map the smallest error of `OutputPerturbation` or `ObjectivePerturbation` is {smallest:.0f} times "
        "that of the best donor-free forecast."
    )


def spread(results: pd.DataFrame) -> str:
    """Return the best and the worst real panel at epsilon 1 with 300 donors."""
    words = []
    for target in TARGETS:
        for when, shock in TIMES.items():
            found = {"family": "real", "n": 300, "epsilon": 1.0, "target": target, "shock": shock}
            rows = results[(results[list(found)] == pd.Series(found)).all(axis=1)]
            each = rows["gram"] / rows["free"]
            words.append(f"from {each.min():.2f} to {each.max():.2f} for {target} ({when})")
    return "With 300 donors and ε = 1 the panels range " + ", ".join(words) + "."


def agreement(report: pd.DataFrame, design: pd.DataFrame) -> str:
    """Return how many cells of the real panels have the same colour on the other half."""
    colours = [
        [
            advice(*both(cell))
            for family, _, rows in maps(half)
            if family == "real"
            for _, cell in rows.groupby(["n", "epsilon"])
        ]
        for half in (report, design)
    ]
    same = sum(one == other for one, other in zip(*colours, strict=True))
    opposite = sum({one, other} == {"release", "no release"} for one, other in zip(*colours, strict=True))
    units = [half[half["family"] == "real"]["panel"].nunique() for half in (report, design)]
    return (
        f"The map of the real panels is of {units[0]} panels kept for the report. On {units[1]} others {same} of its "
        f"{len(colours[0])} cells have the same colour, and {opposite} the opposite one."
    )


def draw(results: pd.DataFrame, path: Path) -> None:
    """Draw the four maps."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch, Rectangle

    figure = Figure(figsize=(7.0, 7.4), layout="constrained")
    grid = figure.subplots(2, 2)
    for axes, (family, target, rows) in zip(grid.flat, maps(results), strict=True):
        sizes, epsilons = sorted(rows["n"].unique()), sorted(rows["epsilon"].unique())
        for (n, epsilon), cell in rows.groupby(["n", "epsilon"]):
            calm, shock = both(cell)
            x, y, what = epsilons.index(epsilon), sizes.index(n), advice(calm, shock)
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=COLOURS[what], edgecolor="white", lw=2))
            ink = "white" if what == "release" else "black"
            axes.text(x, y + 0.04, f"{calm:.2f}", ha="center", va="bottom", color=ink, fontsize=13, weight="bold")
            axes.text(x, y - 0.06, f"{shock:.2f}", ha="center", va="top", color=ink, fontsize=13)
        axes.set(xlim=(-0.5, len(epsilons) - 0.5), ylim=(-0.5, len(sizes) - 0.5))
        axes.set_xticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons], fontsize=13)
        axes.set_yticks(range(len(sizes)), [f"{n:,}" for n in sizes], fontsize=13)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_title(f"{FAMILIES[family].capitalize()}: {target}", fontsize=12.5)
        axes.set_xlabel("ε", fontsize=13)
    for left, right in grid:
        left.set_ylabel("donors", fontsize=13)
        right.set_yticklabels([])
    patches = [Patch(facecolor=COLOURS[what], label=label) for what, label in ADVICE.items()]
    figure.legend(handles=patches, loc="outside lower center", ncols=3, frameon=False, fontsize=13)
    figure.suptitle(
        "Error divided by that of the best forecast without donors\nbold: calm times; below: when a shock hits everybody",
        fontsize=13,
    )
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    draw(read("report"), FIGURE)
