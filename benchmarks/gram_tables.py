"""The tables and the figure of the Gram release's benchmark, from the files that gram.py wrote.

python benchmarks/gram_tables.py [--half report|design]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from dpsc.answers.figures.sheet import BLACK, BLUE, GREY, ORANGE

OUT = Path(__file__).parent / "results"
RIVALS = {
    "dpsc": "**dpsc**",
    "0.1.0": "version 0.1.0",
    "difference in differences": "difference in differences, not private",
    "ridge": "ridge, not private",
}


def geometric_mean(ratios: pd.Series[float]) -> float:
    return float(np.exp(np.log(ratios).mean()))


def over_free(rows: pd.DataFrame, name: str) -> float:
    """Return the error over the best donor-free forecast: geometric mean over panels, in each over its targets."""
    return float(np.exp(np.log(rows[name] / rows["free"]).groupby(rows["panel"]).mean().mean()))


def over_ridge(rows: pd.DataFrame) -> float:
    return float(np.exp(np.log(rows["dpsc"] / rows["ridge"]).groupby(rows["panel"]).mean().mean()))


def line(*cells: object) -> str:
    return "| " + " | ".join(f"{c:.2f}" if isinstance(c, float) else str(c) for c in cells) + " |"


def head(*cells: str) -> list[str]:
    return [line(*cells), "|" + "---|" * len(cells)]


def main_table(real: pd.DataFrame) -> list[str]:
    """Errors at epsilon 1, calm and in a shock side by side, for all donors and for samples."""
    rows = head("", *(f"{label} donors: {when}" for label in ("all", "300", "100") for when in ("calm", "shock")))
    at_one = real[real["epsilon"] == 1]
    parts = [at_one[(at_one["n"] == n) & (at_one["shock"] == shock)] for n in (0, 300, 100) for shock in (0.0, 3.0)]
    for name, label in RIVALS.items():
        rows.append(line(label, *(over_free(part, name) for part in parts)))
    return rows


def by_epsilon(real: pd.DataFrame) -> list[str]:
    rows = head("all donors", *(f"ε = {e:g}" for e in sorted(real["epsilon"].unique())), "ridge, not private")
    for shock, when in ((0.0, "calm"), (3.0, "shock")):
        part = real[(real["n"] == 0) & (real["shock"] == shock)]
        cells = [over_free(p, "dpsc") for _, p in part.groupby("epsilon")]
        rows.append(line(when, *cells, over_free(part[part["epsilon"] == 1], "ridge")))
    return rows


def by_panel(real: pd.DataFrame) -> list[str]:
    rows = head("panel", "donors", "calm: dpsc", "0.1.0", "ridge", "shock: dpsc", "0.1.0", "ridge")
    part = real[(real["epsilon"] == 1) & (real["n"] == 0)]
    for panel, those in part.groupby("panel"):
        cells: list[object] = [panel, int(those["donors"].max())]
        for shock in (0.0, 3.0):
            here = those[those["shock"] == shock]
            cells += [over_free(here, name) for name in ("dpsc", "0.1.0", "ridge")]
        rows.append(line(*cells))
    return rows


def by_target(real: pd.DataFrame) -> list[str]:
    rows = head("target", "calm: dpsc", "ridge", "shock: dpsc", "ridge")
    part = real[(real["epsilon"] == 1) & (real["n"] == 0)]
    for target, those in part.groupby("target"):
        cells: list[object] = [target]
        for shock in (0.0, 3.0):
            here = those[those["shock"] == shock]
            cells += [over_free(here, name) for name in ("dpsc", "ridge")]
        rows.append(line(*cells))
    return rows


def intervals(real: pd.DataFrame) -> list[str]:
    """Coverage of 95% intervals of an untreated target, and widths against 0.1.0's."""
    rows = head(
        "target", "donors", "", "points", "average effect", "width / 0.1.0's", "points, 0.1.0", "average, 0.1.0"
    )
    part = real[(real["epsilon"] == 1) & (real["n"] != 300)]
    for (target, n, shock), those in part.groupby(["target", "n", "shock"]):
        width = float((those["width"] / those["width of 0.1.0"]).median())
        rows.append(
            line(
                target, n or "all", "shock" if shock else "calm",
                *(f"{those[name].mean():.3f}" for name in ("points covered", "average covered")), width,
                *(f"{those[name].mean():.3f}" for name in ("points covered of 0.1.0", "average covered of 0.1.0")),
            )
        )  # fmt: skip
    return rows


def misses(real: pd.DataFrame) -> list[str]:
    """Panels whose coverage is outside 93 to 97%."""
    rows = head("panel", "", "points", "average effect")
    part = real[(real["epsilon"] == 1) & (real["n"] == 0)]
    for (panel, shock), those in part.groupby(["panel", "shock"]):
        found = [float(those[name].mean()) for name in ("points covered", "average covered")]
        if not all(0.93 <= share <= 0.97 for share in found):
            rows.append(line(panel, "shock" if shock else "calm", *(f"{share:.3f}" for share in found)))
    return rows


def verdicts(real: pd.DataFrame) -> list[str]:
    rows = head(
        "do the donors help?", "calm: how often said", "donors better", "shock: how often said", "donors better"
    )
    part = real[real["epsilon"] == 1]
    countries = part["panel"].str.contains("countries")
    everywhere = countries | True
    named = [(grade, grade, everywhere) for grade in ("yes", "unclear", "no")]
    named += [("no: panels of countries", "no", countries), ("no: all others", "no", ~countries)]
    for name, grade, those in named:
        cells: list[str] = [name]
        for shock in (0.0, 3.0):
            asked = part[part["shock"] == shock]
            here = part[(part["shock"] == shock) & those]
            said, won = here[f"verdict {grade}"].sum(), here[f"won if {grade}"].sum()
            cells += [f"{said / asked['runs'].sum():.0%}", f"{won / max(1, said):.0%}"]
        rows.append(line(*cells))
    return rows


def factors(made: pd.DataFrame) -> list[str]:
    rows = head("loadings", "levels", "n", "calm: dpsc / ridge", "0.1.0 / ridge", "dpsc / donor-free", "shock: dpsc / ridge",
                "0.1.0 / ridge", "dpsc / donor-free", "points covered", "average covered")  # fmt: skip
    for (loadings, levels, n), those in made.groupby(["loadings", "levels", "n"]):
        cells: list[object] = ["around 1" if loadings else "around 0", "own" if levels else "none", f"{n:,}"]
        for shock in (0.0, 3.0):
            here = those[those["shock"] == shock]
            cells += [geometric_mean(here["dpsc"] / here["ridge"]), geometric_mean(here["0.1.0"] / here["ridge"]),
                      geometric_mean(here["dpsc"] / here["free"])]  # fmt: skip
        cells += [f"{those[name].mean():.3f}" for name in ("points covered", "average covered")]
        rows.append(line(*cells))
    return rows


def goals(real: pd.DataFrame) -> list[str]:
    """Say what was hoped for and what was reached, at epsilon 1."""
    at_one = real[real["epsilon"] == 1]
    rows = head("goal", "reached")
    for n, label, calm, shock in ((0, "all donors", 0.72, 0.58), (100, "100 donors", 0.85, 0.75)):
        for value, size, when in ((calm, 0.0, "calm"), (shock, 3.0, "shock")):
            part = at_one[(at_one["n"] == n) & (at_one["shock"] == size)]
            rows.append(line(f"{label}, {when}: at most {value}", over_free(part, "dpsc")))
    everything = at_one[at_one["n"] == 0]
    worst = max(
        (over_free(those, "dpsc"), f"{panel}, {'shock' if shock else 'calm'}")
        for (panel, shock), those in everything.groupby(["panel", "shock"])
    )
    rows.append(line("no panel worse than 1.5", f"{worst[0]:.2f} ({worst[1]})"))
    large = everything[everything["donors"] >= 400]
    rows.append(line("over ridge, 400 donors or more: at most 1.25", over_ridge(large)))
    return rows


def draw(real: pd.DataFrame, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, (shock, title) in zip(figure.subplots(1, 2, sharey=True), ((0.0, "calm"), (3.0, "shock")), strict=True):
        part = real[(real["n"] == 0) & (real["shock"] == shock)]
        epsilons = sorted(part["epsilon"].unique())
        axes.plot(epsilons, [over_free(part[part["epsilon"] == e], "dpsc") for e in epsilons], color=BLUE, marker="o",
                  lw=2, label="dpsc")  # fmt: skip
        at_one = part[part["epsilon"] == 1]
        axes.plot([1], [over_free(at_one, "0.1.0")], color=ORANGE, marker="s", ls="", label="version 0.1.0")
        axes.axhline(over_free(at_one, "ridge"), color=BLACK, lw=1.2, label="ridge, not private")
        axes.axhline(over_free(at_one, "difference in differences"), color=GREY, lw=1.2, ls="--",
                     label="difference in differences, not private")  # fmt: skip
        axes.axhline(1, color=GREY, lw=1.2, ls=":", label="best without donors")
        axes.set(xscale="log", title=title, xlabel="epsilon", ylim=(0, None))
        axes.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("error / best donor-free forecast")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=120)


def main(half: str = "report") -> None:
    real, made = pd.read_csv(OUT / f"gram-{half}.csv"), pd.read_csv(OUT / "gram-factors.csv")
    sections = {
        "Error over the best donor-free forecast, epsilon 1": main_table(real),
        "Goals": goals(real),
        "By epsilon": by_epsilon(real),
        "By panel, all donors": by_panel(real),
        "By target, all donors": by_target(real),
        "Coverage of 95% intervals": intervals(real),
        "Panels outside 93 to 97%, all donors": misses(real),
        "The verdict": verdicts(real),
        "Factor models": factors(made),
    }
    text = "\n\n".join(f"## {title}\n\n" + "\n".join(rows) for title, rows in sections.items())
    name = "gram.md" if half == "report" else f"gram-{half}.md"
    (OUT / name).write_text(text + "\n", encoding="utf-8")
    if half == "report":
        draw(real, OUT / "gram.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("report", "design"), default="report")
    main(parser.parse_args().half)
